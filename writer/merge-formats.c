/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "writer/merge-formats.h"

#define FORMAT_MAX MIB
#define ID_WORD	   "\nID: "

/* A format's text: what is before its id, and behind that */
struct parts {
	size_t before;
	const char *behind;
	uint32_t id;
};

void merge_formats_done(struct merge_formats *formats)
{
	sections_formats_done(&formats->all);
	free(formats->common);
	free(formats->first);
}

static bool split(const char *text, struct parts *ret)
{
	const char *word = strstr(text, ID_WORD);
	unsigned long id;
	char *end;

	if (!word)
		return false;
	ret->before = (size_t)(word - text) + strlen(ID_WORD);
	id = strtoul(text + ret->before, &end, 10);
	ret->behind = end;
	ret->id = (uint32_t)id;
	return end != text + ret->before && id < SUBBUF_EVENT_IDS;
}

/* The fields up to the blank line are those of all events */
static char *common_of(const char *text)
{
	const char *begin = strstr(text, "format:\n"), *end = begin ? strstr(begin, "\n\n") : NULL;

	return end ? strndup(begin, (size_t)(end - begin)) : strdup("");
}

static uint32_t pid_at(const char *common)
{
	const char *pid = strstr(common, " common_pid;");
	unsigned at;

	return pid && sscanf(pid, " common_pid; offset:%u; size:4;", &at) == 1 ? at : 0;
}

static int check_common(struct merge_formats *formats, const struct trace_dat *dat,
			const char *text, struct merge_ids *ids, struct fault *why)
{
	_cleanup_free_ char *common = common_of(text);

	if (!common)
		return -ENOMEM;
	ids->pid_at = pid_at(common);
	if (!formats->common) {
		formats->common = TAKE_PTR(common);
		formats->first = strdup(dat->path);
		return formats->first ? 0 : -ENOMEM;
	}
	return strcmp(common, formats->common) == 0
		       ? 0
		       : fault_set(
				 why, -EINVAL,
				 "%s and %s cannot be in one file: their kernels begin events with "
				 "different fields (common_…)",
				 formats->first, dat->path);
}

static bool is_used(const struct merge_formats *formats, uint32_t id)
{
	return formats->used[id / 8] & 1U << id % 8;
}

/* Return: 0: there is none */
static uint32_t choose_id(const struct merge_formats *formats, uint32_t wanted)
{
	if (wanted > 0 && !is_used(formats, wanted))
		return wanted;
	/* from above: a file that comes later may want a lower one */
	for (uint32_t id = SUBBUF_EVENT_IDS - 1; id > 0; id--)
		if (!is_used(formats, id))
			return id;
	return 0;
}

/* The same but for its id; NULL: none */
static const char *find_same(const struct merge_formats *formats, const char *system,
			     const char *text, const struct parts *parts)
{
	for (size_t i = 0; i < formats->all.n; i++) {
		const struct sections_format *other = &formats->all.list[i];
		struct parts of;

		if (strncmp(other->text, text, parts->before) == 0 &&
		    strcmp(other->system, system) == 0 && split(other->text, &of) &&
		    strcmp(of.behind, parts->behind) == 0)
			return other->text;
	}
	return NULL;
}

static char *with_id(const char *text, const struct parts *parts, uint32_t id)
{
	return strf("%.*s%" PRIu32 "%s", (int)parts->before, text, id, parts->behind);
}

static int add_format(struct merge_formats *formats, const struct trace_dat *dat,
		      const char *system, const char *text, struct merge_ids *ids,
		      struct fault *why)
{
	struct parts parts, of;
	const char *same;
	uint32_t id;
	int r;

	if (!split(text, &parts))
		return 0; /* nobody could tell its events */
	r = formats->common && ids->pid_at > 0 ? 0 : check_common(formats, dat, text, ids, why);
	if (r < 0)
		return r;
	same = find_same(formats, system, text, &parts);
	id = same && split(same, &of) ? of.id : choose_id(formats, parts.id);
	if (id == 0)
		return fault_set(why, -EINVAL, "%s: there are more kinds of events than ids",
				 dat->path);
	ids->ids[parts.id] = (uint16_t)id;
	formats->used[id / 8] |= (uint8_t)(1U << id % 8);
	return same ? 0 : sections_formats_add(&formats->all, system, with_id(text, &parts, id));
}

/* @take: less than 0 ends it */
static int each_format(const struct trace_dat *dat,
		       int (*take)(void *userdata, const char *system, const char *text),
		       void *userdata, struct fault *why)
{
	int r = 0;

	for (size_t i = 0; i < dat->n_formats && r >= 0; i++) {
		_cleanup_free_ char *text = NULL;

		r = trace_dat_load(dat, &dat->formats[i].text, FORMAT_MAX, &text, why);
		if (r >= 0)
			r = take(userdata, dat->systems[dat->formats[i].system], text);
	}
	return r;
}

struct adding {
	struct merge_formats *formats;
	const struct trace_dat *dat;
	struct merge_ids *ids;
	struct fault *why;
};

static int add_one(void *userdata, const char *system, const char *text)
{
	const struct adding *a = userdata;

	return add_format(a->formats, a->dat, system, text, a->ids, a->why);
}

int merge_formats_add(struct merge_formats *formats, const struct trace_dat *dat,
		      struct merge_ids *ret, struct fault *why)
{
	struct adding adding = {formats, dat, ret, why};
	int r;

	*ret = (struct merge_ids){};
	r = each_format(dat, add_one, &adding, why);
	return r == -ENOMEM ? fault_errno(why, r, "%s: cannot read its formats", dat->path) : r;
}

struct taking {
	const struct merge_ids *ids;
	struct sections_formats *to;
};

static int take_one(void *userdata, const char *system, const char *text)
{
	const struct taking *t = userdata;
	struct parts parts;

	return split(text, &parts)
		       ? sections_formats_add(t->to, system,
					      with_id(text, &parts, t->ids->ids[parts.id]))
		       : sections_formats_add(t->to, system, strdup(text));
}

int merge_formats_of(const struct trace_dat *dat, const struct merge_ids *ids,
		     struct sections_formats *ret, struct fault *why)
{
	struct taking taking = {ids, ret};
	int r = each_format(dat, take_one, &taking, why);

	return r == -ENOMEM ? fault_errno(why, r, "%s: cannot read its formats", dat->path) : r;
}

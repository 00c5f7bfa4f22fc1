/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/io.h"
#include "formats/trace-dat.h"
#include "writer/cut-internal.h"
#include "writer/sections.h"
#include "writer/task-names.h"

#define TEXT_MAX  (64 * MIB) /* no section of ours is longer */
#define UNAME_MAX 4096

/* Bytes of the newest source as they are */
static int put_range(const struct cut *cut, FILE *out, uint64_t from, uint64_t to,
		     struct fault *why)
{
	const struct trace_dat_extent extent = {from, to - from};
	_cleanup_free_ char *bytes = NULL;
	int r = trace_dat_load(cut_newest(cut)->dat, &extent, TEXT_MAX, &bytes, why);

	return r < 0 ? r : sections_put(out, bytes, to - from);
}

/* Where the event formats begin (the count of ftrace's), and where they end */
static uint64_t formats_begin(const struct trace_dat *dat)
{
	return dat->header_event.offset + dat->header_event.size;
}

static uint64_t formats_end(const struct trace_dat *dat)
{
	return dat->kallsyms.offset - sizeof(uint32_t);
}

static int same_formats(const struct trace_dat *a, const struct trace_dat *b, struct fault *why)
{
	const struct trace_dat_extent x = {formats_begin(a), formats_end(a) - formats_begin(a)};
	const struct trace_dat_extent y = {formats_begin(b), formats_end(b) - formats_begin(b)};
	_cleanup_free_ char *text_x = NULL, *text_y = NULL;
	int r;

	if (x.size != y.size)
		return 0;
	r = trace_dat_load(a, &x, TEXT_MAX, &text_x, why);
	if (r >= 0)
		r = trace_dat_load(b, &y, TEXT_MAX, &text_y, why);
	return r < 0 ? r : memcmp(text_x, text_y, x.size) == 0;
}

/* --- the union of all sources' formats */

struct format {
	const char *system; /* in a source's trace_dat */
	unsigned id;
	char *text;
};

struct formats {
	struct format *list;
	size_t n;
};

static void formats_done(struct formats *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->list[i].text);
	free(f->list);
}

static unsigned format_id(const char *text)
{
	const char *id = strstr(text, "\nID:");

	return id ? (unsigned)strtoul(id + 4, NULL, 10) : 0;
}

static bool formats_have(const struct formats *f, const char *system, unsigned id)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->list[i].id == id && strcmp(f->list[i].system, system) == 0)
			return true;
	return false;
}

static int formats_add_source(struct formats *f, const struct trace_dat *dat, struct fault *why)
{
	for (size_t i = 0; i < dat->n_formats; i++) {
		const char *system = dat->systems[dat->formats[i].system];
		_cleanup_free_ char *text = NULL;
		struct format *more;
		unsigned id;
		int r;

		r = trace_dat_load(dat, &dat->formats[i].text, TEXT_MAX, &text, why);
		if (r < 0)
			return r;
		id = format_id(text);
		if (formats_have(f, system, id))
			continue;
		more = reallocarray(f->list, f->n + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		f->list = more;
		more[f->n++] = (struct format){system, id, TAKE_PTR(text)};
	}
	return 0;
}

static int put_union(const struct cut *cut, FILE *out, struct fault *why)
{
	_cleanup_(formats_done) struct formats f = {0};
	_cleanup_free_ struct sections_format *list = NULL;
	int r = 0;

	for (size_t i = cut->n; i-- > 0 && r >= 0;)
		r = formats_add_source(&f, cut->sources[i].dat, why);
	if (r < 0)
		return r;
	list = calloc(f.n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < f.n; i++)
		list[i] = (struct sections_format){f.list[i].system, f.list[i].text};
	return sections_put_formats(out, list, f.n);
}

int cut_write_sections(const struct cut *cut, FILE *out, struct fault *why)
{
	const struct trace_dat *newest = cut_newest(cut)->dat;
	uint64_t end = newest->printk_formats.offset + newest->printk_formats.size;
	int r, same = 1;

	for (size_t i = 0; i + 1 < cut->n && same > 0; i++)
		same = same_formats(cut->sources[i].dat, newest, why);
	if (same < 0)
		return same;
	if (same)
		return put_range(cut, out, 0, end, why);
	r = put_range(cut, out, 0, formats_begin(newest), why);
	if (r >= 0)
		r = put_union(cut, out, why);
	return r < 0 ? r : put_range(cut, out, formats_end(newest), end, why);
}

int cut_uname(const struct cut *cut, char **ret, struct fault *why)
{
	const struct trace_dat *dat = cut_newest(cut)->dat;

	*ret = NULL;
	for (size_t i = 0; i < dat->n_options; i++)
		if (dat->options[i].id == TRACE_DAT_OPTION_UNAME)
			return trace_dat_load(dat, &dat->options[i].data, UNAME_MAX, ret, why);
	return 0;
}

int cut_names(const struct cut *cut, char **ret, size_t *ret_size, struct fault *why)
{
	_cleanup_(task_names_freep) struct task_names *names = task_names_new(SIZE_MAX);
	size_t room = 0;
	int r = names ? 0 : -ENOMEM;

	for (size_t i = 0; i < cut->n && r >= 0; i++) {
		_cleanup_free_ char *text = NULL;

		r = trace_dat_load(cut->sources[i].dat, &cut->sources[i].dat->cmdlines, TEXT_MAX,
				   &text, why);
		if (r >= 0)
			r = task_names_merge(names, text);
		room += cut->sources[i].dat->cmdlines.size;
	}
	return r < 0 ? r : task_names_render(names, room, ret, ret_size);
}

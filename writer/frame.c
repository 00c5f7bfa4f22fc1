/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "writer/frame.h"
#include "writer/sections.h"

#define OPTION_MAX (16 * MIB) /* bytes: no real one comes near */
#define TAIL	   4096U

int frame_number(FILE *out, const struct trace_dat *dat, size_t size, uint64_t value)
{
	uint8_t bytes[8];

	trace_dat_put(dat, bytes, size, value);
	return sections_put(out, bytes, size);
}

int frame_names(const struct trace_dat *dat, struct frame_text *ret, struct fault *why)
{
	struct frame_text names = {.prefix_size = 8, .text = dat->cmdlines};
	uint64_t *size = &names.text.size;
	char tail[TAIL];
	bool end = false;

	while (*size > 0 && !end) {
		size_t n = MIN(*size, sizeof(tail)), used = n;
		int r = trace_dat_read(dat, tail, n, names.text.offset + *size - n, why);

		if (r < 0)
			return r;
		while (used > 0 && tail[used - 1] == '\n')
			used--;
		end = used > 0;
		*size -= n - used;
	}
	names.newline = dat->cmdlines.size > 0;
	trace_dat_put(dat, names.prefix, 8, *size + names.newline);
	*ret = names;
	return 0;
}

int frame_option(FILE *out, const struct trace_dat *dat, uint16_t id, uint32_t size)
{
	int r = frame_number(out, dat, 2, id);

	return r < 0 ? r : frame_number(out, dat, 4, size);
}

/* Those of sections begin with that of strings */
static bool is_common(uint16_t id)
{
	return id != TRACE_DAT_OPTION_END && id != TRACE_DAT_OPTION_BUFFER &&
	       id != TRACE_DAT_OPTION_CPUCOUNT && id < TRACE_DAT_OPTION_SECTIONS;
}

int frame_options(FILE *out, const struct trace_dat *dat, struct fault *why)
{
	int r = 0;

	for (size_t i = 0; i < dat->n_options && r >= 0; i++) {
		const struct trace_dat_option_place *o = &dat->options[i];
		_cleanup_free_ char *data = NULL;

		if (!is_common(o->id))
			continue;
		r = trace_dat_load(dat, &o->data, OPTION_MAX, &data, why);
		if (r < 0)
			return r;
		r = frame_option(out, dat, o->id, (uint32_t)o->data.size);
		if (r >= 0)
			r = sections_put(out, data, o->data.size);
	}
	if (r >= 0)
		r = frame_option(out, dat, TRACE_DAT_OPTION_CPUCOUNT, 4);
	if (r >= 0)
		r = frame_number(out, dat, 4, dat->n_cpus);
	return r < 0 ? fault_errno(why, r, "cannot write") : 0;
}

/* @line: of a damage. Return: 0 to go on without. */
static int tell(struct region_read_told told, const char *line, struct fault *why)
{
	if (!told.told)
		return fault_set(why, -EBADMSG, "%s", line);
	told.told(told.userdata, line);
	return 0;
}

static int load_own(const struct trace_dat *dat, struct region_read_told told,
		    struct own_section *ret, struct fault *why)
{
	struct fault damage = {};
	int r = own_section_load(dat, ret, &damage);

	if (r == -ENOENT)
		return 0;
	if (r == -EBADMSG)
		return tell(told, damage.text, why);
	return r < 0 ? fault_set(why, r, "%s", damage.text) : 0;
}

/* Which of the entries are taken over, to the front. Return: how many, or negative errno. */
static int choose_own(const struct trace_dat *dat, struct own_section *own,
		      struct region_read_told told, struct fault *why)
{
	int n = 0;

	for (size_t i = 0; i < own->n; i++) {
		struct own_entry *e = &own->entries[i];
		struct fault damage;
		int r;

		if (e->damaged) {
			(void)fault_at(
				&damage, -EBADMSG, dat->path, e->place,
				"flyrec's own section: the checksum of its %s does not match",
				own_section_kind(e->kind));
			r = tell(told, damage.text, why);
			if (r < 0)
				return r;
		} else if (e->kind != OWN_INDEX && e->size > 0) {
			own->entries[n] = *e;
			own->entries[n++].room = 0;
		}
	}
	return n;
}

int frame_own(const struct trace_dat *dat, const struct own_entry *more,
	      struct region_read_told told, uint8_t **ret, size_t *ret_size, struct fault *why)
{
	_cleanup_own_section_ struct own_section own = {};
	_cleanup_free_ struct own_entry *entries = NULL;
	int r = load_own(dat, told, &own, why), n;

	if (r < 0)
		return r;
	n = choose_own(dat, &own, told, why);
	if (n < 0)
		return n;
	*ret = NULL;
	*ret_size = 0;
	if (n == 0 && !more)
		return 0;
	entries = calloc((size_t)n + 1, sizeof(*entries));
	if (!entries)
		return fault_errno(why, -ENOMEM, "cannot write");
	if (n > 0)
		memcpy(entries, own.entries, (size_t)n * sizeof(*entries));
	if (more)
		entries[n++] = *more;
	r = own_section_build(entries, (size_t)n, dat->big_endian, ret, ret_size);
	return r < 0 ? fault_errno(why, r, "cannot write flyrec's own section") : 0;
}

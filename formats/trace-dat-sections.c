/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "formats/trace-dat-sections.h"

#define MAX_SECTIONS 65536U /* nothing real comes near it */

static const char *const section_names[_TRACE_DAT_SECTION_MAX] = {
	[TRACE_DAT_SECTION_OPTIONS] = "options",
	[TRACE_DAT_SECTION_BUFFER] = "a ring buffer",
	[TRACE_DAT_SECTION_HEADERS] = "headers",
	[TRACE_DAT_SECTION_FTRACE] = "ftrace's formats",
	[TRACE_DAT_SECTION_EVENTS] = "event formats",
	[TRACE_DAT_SECTION_KALLSYMS] = "kallsyms",
	[TRACE_DAT_SECTION_PRINTK] = "printk formats",
	[TRACE_DAT_SECTION_CMDLINES] = "task names",
};

/* Bytes of the file that nothing else may share */
struct section_claim {
	uint64_t place, end;
	const char *what;
};

void v7_sections_done(struct v7_sections *list)
{
	free(list->items);
	free(list->claims);
}

const char *v7_sections_name(unsigned id, char *room, size_t size)
{
	if (id < _TRACE_DAT_SECTION_MAX && section_names[id])
		return section_names[id];
	(void)snprintf(room, size, "section %u", id);
	return room;
}

int v7_sections_read(const struct v7_sections *list, uint64_t place, struct section *ret,
		     struct fault *why)
{
	uint8_t head[TRACE_DAT_SECTION_HEAD];
	int r = trace_dat_data_file(list->data, head, sizeof(head), place, why);

	if (r < 0)
		return r;
	*ret = (struct section){
		.id = (uint16_t)trace_dat_data_number(list->data, head, 2),
		.packed = trace_dat_data_number(list->data, head + 2, 2) & TRACE_DAT_SECTION_PACKED,
		.place = place,
		.size = trace_dat_data_number(list->data, head + 8, 8),
	};
	return 0;
}

bool v7_sections_cut(const struct v7_sections *list, struct section *s)
{
	uint64_t left = list->file_size - s->place - TRACE_DAT_SECTION_HEAD;

	if (s->size <= left)
		return false;
	s->size = left;
	return true;
}

static bool section_follows(const struct v7_sections *list, uint64_t place)
{
	struct section s;

	return v7_sections_read(list, place, &s, NULL) >= 0 &&
	       s.size <= list->file_size - place - TRACE_DAT_SECTION_HEAD;
}

int v7_sections_walk(struct v7_sections *list, uint64_t place, bool finished)
{
	char room[32];
	int r = 0;

	for (unsigned n = 0; place < list->file_size && r >= 0; n++) {
		struct section s;
		struct fault why;
		bool cut;

		if (n >= MAX_SECTIONS)
			return damage_add(list->damages, place, "more than %u sections",
					  MAX_SECTIONS);
		r = v7_sections_read(list, place, &s, &why);
		if (r < 0)
			return damage_add_fault(list->damages, r, &why);
		cut = v7_sections_cut(list, &s);
		if (cut)
			r = damage_add(
				list->damages, place,
				"%s: the section runs past the end of the file, only %" PRIu64
				" bytes of it are there",
				v7_sections_name(s.id, room, sizeof(room)), s.size);
		/* its size is written when its content is there */
		if (!finished && s.id == TRACE_DAT_SECTION_BUFFER && s.size == 0 &&
		    !section_follows(list, place + TRACE_DAT_SECTION_HEAD))
			s.size = list->file_size - place - TRACE_DAT_SECTION_HEAD;
		place += TRACE_DAT_SECTION_HEAD + s.size;
		if (s.id == TRACE_DAT_SECTION_OPTIONS &&
		    s.size == 0) /* zeros: nothing was written here */
			continue;
		if (r >= 0)
			r = array_grow(&list->items, list->n, sizeof(s));
		if (r >= 0)
			list->items[list->n++] = s;
	}
	return r;
}

int v7_sections_claim(struct v7_sections *list, uint64_t place, uint64_t end, const char *what)
{
	int r = array_grow(&list->claims, list->n_claims, sizeof(*list->claims));

	if (r >= 0)
		list->claims[list->n_claims++] = (struct section_claim){place, end, what};
	return r;
}

static int compare_claims(const void *a, const void *b)
{
	const struct section_claim *x = a, *y = b;

	return x->place != y->place ? (x->place < y->place ? -1 : 1) : x->end < y->end;
}

int v7_sections_check_claims(struct v7_sections *list)
{
	const struct section_claim *widest = NULL;
	int r = 0;

	if (list->n_claims > 0)
		qsort(list->claims, list->n_claims, sizeof(*list->claims), compare_claims);
	for (size_t i = 0; i < list->n_claims && r >= 0; i++) {
		const struct section_claim *c = &list->claims[i];

		if (widest && c->place < widest->end)
			r = damage_add(list->damages, c->place, "%s overlaps %s at 0x%" PRIx64,
				       c->what, widest->what, widest->place);
		if (!widest || c->end > widest->end)
			widest = c;
	}
	return r;
}

int v7_sections_piece(const struct v7_sections *list, const struct section *s, uint64_t max,
		      struct data_piece *ret, struct fault *why)
{
	uint64_t begin = s->place + TRACE_DAT_SECTION_HEAD;
	uint8_t head[TRACE_DAT_PACKED_HEAD];
	uint64_t packed, size;
	int r;

	*ret = (struct data_piece){
		.kind = DATA_PLAIN, .place = begin, .length = s->size, .size = s->size};
	if (s->packed) {
		if (s->size < TRACE_DAT_PACKED_HEAD)
			return fault_at(why, -ENODATA, list->path, s->place,
					"the compressed section of %" PRIu64 " bytes is too short",
					s->size);
		r = trace_dat_data_file(list->data, head, sizeof(head), begin, why);
		if (r < 0)
			return r;
		packed = trace_dat_data_number(list->data, head, 4);
		size = trace_dat_data_number(list->data, head + 4, 4);
		if (packed > s->size - TRACE_DAT_PACKED_HEAD)
			return fault_at(why, -EBADMSG, list->path, begin,
					"%" PRIu64
					" compressed bytes do not fit into the section of %" PRIu64,
					packed, s->size);
		*ret = (struct data_piece){.kind = DATA_BLOCK,
					   .place = begin + TRACE_DAT_PACKED_HEAD,
					   .length = packed,
					   .size = size};
	}
	if (ret->size > max)
		return fault_at(why, -EBADMSG, list->path, s->place,
				"a section of %" PRIu64 " bytes, which cannot be", ret->size);
	return 0;
}

struct section *v7_sections_at(const struct v7_sections *list, uint64_t place)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].place == place)
			return &list->items[i];
	return NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sections are found through the options, and through the sizes of those before them where options
 * are missing: a file that was cut has still what was written before.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "formats/own-section.h"
#include "formats/trace-dat-chunks.h"
#include "formats/trace-dat-data.h"
#include "formats/trace-dat-index.h"
#include "formats/trace-dat-options.h"
#include "formats/trace-dat-v7.h"
#include "formats/trace-dat.h"

#define BUFFER_CPU_SIZE 20

/* Nothing real comes near these */
#define MAX_CPU	    8192U  /* more than NR_CPUS of any kernel */
#define MAX_TABLES  65536U /* CPUs times buffers, which few bytes of a file could ask for */
#define MAX_BUFFERS 4096U
#define MAX_KEPT    64U

/* A CPU's data, as a BUFFER option says */
struct area {
	uint32_t cpu;
	uint64_t entry; /* place of what says so */
	uint64_t place, size;
};

struct buffer {
	char *name, *clock;
	bool packed;
	uint64_t option; /* place */
	struct area *areas;
	size_t n_areas;
	uint64_t option_at; /* address of the option of version 6, 0: none; and of its table */
	uint64_t table_at;
};

struct v7 {
	struct trace_dat *dat;
	struct trace_dat_data *data;
	struct damages *damages;
	struct chunk_source chunks;
	struct trace_dat_index *index;
	bool zstd;

	struct v7_sections sections;
	uint64_t options_place;
	struct v7_options options;
	struct buffer *buffers;
	size_t n_buffers;
	uint32_t n_cpus;
};

static void v7_done(struct v7 *v)
{
	for (size_t i = 0; i < v->n_buffers; i++) {
		free(v->buffers[i].name);
		free(v->buffers[i].clock);
		free(v->buffers[i].areas);
	}
	v7_options_done(&v->options);
	v7_sections_done(&v->sections);
	free(v->buffers);
	trace_dat_index_free(v->index);
	trace_dat_data_free(v->data);
}

/* --- the file's own bytes */

static uint64_t number(const struct v7 *v, const uint8_t *bytes, size_t size)
{
	return trace_dat_data_number(v->data, bytes, size);
}

/* --- sections of text */

static const char *name_of(enum trace_dat_section id)
{
	return v7_sections_name(id, NULL, 0);
}

/* A section by the option that names it, else by where it lies; 1, 0 there is none, or negative */
static int find_section(struct v7 *v, enum trace_dat_section id, struct section *ret,
			struct fault *why)
{
	char room[32];
	int r;

	if (v->options.found[id] != 0) {
		r = v7_sections_read(&v->sections, v->options.found[id], ret, why);
		if (r < 0)
			return r;
		if (ret->id != id)
			return fault_at(why, -EBADMSG, v->dat->path, v->options.found_by[id],
					"%s should be at 0x%" PRIx64 ", where %s is", name_of(id),
					v->options.found[id],
					v7_sections_name(ret->id, room, sizeof(room)));
		if (v7_sections_cut(&v->sections, ret) && !ret->packed)
			return fault_at(why, -ENODATA, v->dat->path, ret->place,
					"%s: the section runs past the end of the file",
					name_of(id));
		return 1;
	}
	for (size_t i = 0; i < v->sections.n; i++)
		if (v->sections.items[i].id == id) {
			*ret = v->sections.items[i];
			return 1;
		}
	return 0;
}

/* What of version 6 stands in front of the text, which has to be as long as it says */
static size_t size_word(enum trace_dat_section id)
{
	return id == TRACE_DAT_SECTION_KALLSYMS || id == TRACE_DAT_SECTION_PRINTK ? 4
	       : id == TRACE_DAT_SECTION_CMDLINES				  ? 8
										  : 0;
}

/* Can it be unpacked, and does it agree about its size? */
static int check_section(struct v7 *v, enum trace_dat_section id, const struct data_piece *piece,
			 struct fault *why)
{
	uint64_t at = trace_dat_data_end(v->data) - piece->size;
	size_t word = size_word(id), n;
	uint8_t bytes[8];
	int r;

	if (piece->size < MAX(word, (size_t)4))
		return fault_at(why, -EBADMSG, v->dat->path, piece->place,
				"%s: %" PRIu64 " bytes are too few", name_of(id), piece->size);
	r = trace_dat_data_read(v->data, bytes, MAX(word, (size_t)4), at, &n, why);
	if (r < 0 || word == 0)
		return r;
	if (number(v, bytes, word) != piece->size - word)
		return fault_at(why, -EBADMSG, v->dat->path, piece->place,
				"%s: %" PRIu64 " bytes, but the section has %" PRIu64, name_of(id),
				number(v, bytes, word), piece->size - word);
	return 0;
}

static int put_section(struct v7 *v, enum trace_dat_section id, struct fault *why)
{
	struct data_piece piece;
	struct section s;
	int r = find_section(v, id, &s, why);

	if (r == 0)
		return fault_at(why, -EBADMSG, v->dat->path, v->options_place,
				"no section has the %s", name_of(id));
	if (r >= 0)
		r = v7_sections_piece(&v->sections, &s, DATA_SECTION_MAX, &piece, why);
	if (r >= 0)
		r = v7_sections_claim(&v->sections, s.place,
				      s.place + TRACE_DAT_SECTION_HEAD + s.size, name_of(id));
	if (r >= 0 && piece.size > 0)
		r = trace_dat_data_add(v->data, &piece, NULL);
	if (r < 0)
		return r;
	r = check_section(v, id, &piece, why);
	if (r < 0 && piece.size > 0)
		trace_dat_data_drop(v->data);
	return r;
}

/* Bytes that the file does not have; @place: what says so */
static int put_made(struct v7 *v, uint64_t place, const void *bytes, size_t size)
{
	const struct data_piece piece = {.kind = DATA_MADE, .size = size, .place = place};

	return trace_dat_data_add(v->data, &piece, bytes);
}

static int put_number(struct v7 *v, uint64_t place, size_t size, uint64_t value)
{
	uint8_t bytes[8];

	trace_dat_put(v->dat, bytes, size, value);
	return put_made(v, place, bytes, size);
}

/* Without headers and formats of events nothing can be read; of the rest there is none then */
static int put_sections(struct v7 *v, struct fault *why)
{
	int r = 0;

	for (enum trace_dat_section id = TRACE_DAT_SECTION_HEADERS;
	     id < _TRACE_DAT_SECTION_MAX && r >= 0; id++) {
		struct fault missing;

		r = put_section(v, id, &missing);
		if (r >= 0)
			continue;
		if (id == TRACE_DAT_SECTION_HEADERS || id == TRACE_DAT_SECTION_EVENTS) {
			if (why)
				*why = missing;
			return r;
		}
		r = damage_add_fault(v->damages, r, &missing);
		if (r >= 0)
			r = put_number(v, v->options_place, MAX(size_word(id), (size_t)4), 0);
	}
	return r;
}

/* --- ring buffers */

static struct buffer *add_buffer(struct v7 *v)
{
	if (array_grow(&v->buffers, v->n_buffers, sizeof(*v->buffers)) < 0)
		return NULL;
	v->buffers[v->n_buffers] = (struct buffer){};
	return &v->buffers[v->n_buffers++];
}

static int add_area(struct v7 *v, struct buffer *b, const struct area *area)
{
	int r;

	if (area->place > v->sections.file_size || area->size > v->sections.file_size - area->place)
		r = damage_add(v->damages, area->entry,
			       "cpu %u: the data at 0x%" PRIx64 " of %" PRIu64
			       " bytes runs past the end of the file",
			       area->cpu, area->place, area->size);
	else
		r = 0;
	if (r >= 0)
		r = array_grow(&b->areas, b->n_areas, sizeof(*b->areas));
	if (r < 0)
		return r;
	b->areas[b->n_areas++] = *area;
	v->n_cpus = MAX(v->n_cpus, area->cpu + 1);
	return 0;
}

/* Is the section that the option names compressed? Where it is not found, as all others are */
static int look_at_section(struct v7 *v, const struct option *o, uint64_t place, bool *ret)
{
	struct section *known = v7_sections_at(&v->sections, place);
	struct section s;
	struct fault why;
	int r;

	*ret = v->zstd;
	if (known)
		known->named = true;
	r = place < v->sections.file_size ? v7_sections_read(&v->sections, place, &s, &why)
					  : -ENODATA;
	if (r == -EIO)
		return r;
	if (r < 0 || s.id != TRACE_DAT_SECTION_BUFFER)
		return damage_add(v->damages, o->place,
				  "option BUFFER: no section of a ring buffer is at 0x%" PRIx64,
				  place);
	*ret = s.packed;
	return 0;
}

static int read_areas(struct v7 *v, struct buffer *b, const struct option *o, size_t at, uint32_t n)
{
	_cleanup_free_ bool *seen = calloc(MAX_CPU, sizeof(*seen));
	int r = seen ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && r >= 0; i++, at += BUFFER_CPU_SIZE) {
		const uint8_t *p = o->data + at;
		const struct area area = {
			.cpu = (uint32_t)number(v, p, 4),
			.entry = o->packed ? o->place : o->place + OPTION_HEAD + at,
			.place = number(v, p + 4, 8),
			.size = number(v, p + 12, 8),
		};

		if (area.size == 0)
			continue;
		if (area.cpu >= MAX_CPU)
			r = damage_add(v->damages, area.entry, "cpu %u, which cannot be", area.cpu);
		else if (seen[area.cpu])
			r = damage_add(v->damages, area.entry, "cpu %u has data already", area.cpu);
		else
			r = add_area(v, b, &area);
		if (area.cpu < MAX_CPU)
			seen[area.cpu] = true;
	}
	return r;
}

/* A string that ends in the option */
static char *option_string(const struct option *o, size_t *at)
{
	const char *text = (const char *)o->data + *at;
	size_t room = *at < o->size ? o->size - *at : 0, n = strnlen(text, room);

	if (n == room)
		return NULL;
	*at += n + 1;
	return strndup(text, MIN(n, CURSOR_NAME_MAX - 1));
}

/*
 * trace-cmd takes the sub-buffers' size here from where it runs, not from the file, when it
 * converts: a smaller one than the file's says nothing.
 */
static int read_buffer(struct v7 *v, const struct option *o)
{
	uint64_t place = o->size >= 8 ? number(v, o->data, 8) : 0;
	struct buffer *b;
	size_t at = 8, left;
	uint32_t page, n;
	int r;

	if (o->size >= 8 && place == 0) /* written before its data: it comes again */
		return 0;
	b = add_buffer(v);
	if (!b)
		return -ENOMEM;
	b->option = o->place;
	b->name = option_string(o, &at);
	b->clock = b->name ? option_string(o, &at) : NULL;
	left = o->size - MIN(at, (size_t)o->size);
	if (!b->clock || left < 8) {
		free(b->name);
		free(b->clock);
		v->n_buffers--;
		return damage_add(v->damages, o->place, "option BUFFER: it is too short");
	}
	page = (uint32_t)number(v, o->data + at, 4);
	n = (uint32_t)number(v, o->data + at + 4, 4);
	r = look_at_section(v, o, place, &b->packed);
	if (r < 0)
		return r;
	if (page > v->dat->page_size)
		return damage_add(v->damages, o->place,
				  "buffer \"%.64s\": sub-buffers of %u bytes, which are not of the "
				  "file's size of %u: not read",
				  b->name, page, v->dat->page_size);
	if (n > (left - 8) / BUFFER_CPU_SIZE) {
		r = damage_add(v->damages, o->place,
			       "option BUFFER: %u CPUs do not fit into its %u bytes", n, o->size);
		n = (uint32_t)((left - 8) / BUFFER_CPU_SIZE);
	}
	return r < 0 ? r : read_areas(v, b, o, at + 8, n);
}

static int put_buffer_first(struct v7 *v)
{
	struct buffer first = {.option = v->options_place};

	for (size_t i = 0; i < v->n_buffers; i++)
		if (v->buffers[i].name[0] == '\0') {
			first = v->buffers[i];
			memmove(v->buffers + 1, v->buffers, i * sizeof(*v->buffers));
			v->buffers[0] = first;
			return 0;
		}
	first.name = strdup("");
	first.clock = strdup("");
	if (!first.name || !first.clock || !add_buffer(v)) {
		free(first.name);
		free(first.clock);
		return -ENOMEM;
	}
	memmove(v->buffers + 1, v->buffers, (v->n_buffers - 1) * sizeof(*v->buffers));
	v->buffers[0] = first;
	return 0;
}

/* --- their data */

static int put_plain(struct v7 *v, const struct area *area, uint64_t *ret_end)
{
	uint64_t size =
		MIN(area->size, v->sections.file_size - MIN(area->place, v->sections.file_size));
	struct data_piece piece = {.kind = DATA_PLAIN, .place = area->place};

	piece.size = piece.length = round_down(size, v->dat->page_size);
	*ret_end = area->place + piece.size;
	if (area->size % v->dat->page_size &&
	    damage_add(v->damages, area->entry,
		       "cpu %u: %" PRIu64 " bytes are no whole number of sub-buffers", area->cpu,
		       area->size) < 0)
		return -ENOMEM;
	return piece.size > 0 ? trace_dat_data_add(v->data, &piece, NULL) : 0;
}

static int put_area(struct v7 *v, const struct buffer *b, const struct area *area)
{
	uint64_t at, end = area->place;
	uint8_t entry[TRACE_DAT_ENTRY_SIZE];
	int r;

	trace_dat_data_align(v->data, v->dat->page_size);
	at = trace_dat_data_end(v->data);
	if (area->place >= v->sections.file_size)
		return 0;
	r = b->packed ? chunks_put(&v->chunks, area->cpu, area->place, area->size, &end)
		      : put_plain(v, area, &end);
	if (r >= 0)
		r = v7_sections_claim(&v->sections, area->place, end, "the data of a CPU");
	if (r < 0)
		return r;
	trace_dat_put(v->dat, entry, 8, at);
	trace_dat_put(v->dat, entry + 8, 8, trace_dat_data_end(v->data) - at);
	trace_dat_data_patch(v->data, trace_dat_entry_at(b->table_at, area->cpu), entry,
			     sizeof(entry));
	return 0;
}

/* --- a ring buffer that no option names, in a file that was cut */

/* The CPUs are counted: what follows is one's data after the other's, aligned or not */
static int find_areas(struct v7 *v, struct buffer *b, const struct section *s)
{
	uint64_t pos = s->place + TRACE_DAT_SECTION_HEAD, end = pos + s->size;
	int r = 1;

	for (uint32_t cpu = 0; pos < end && r > 0 && cpu < MAX_CPU; cpu++) {
		struct area area = {.cpu = cpu, .entry = s->place, .place = pos};

		r = chunks_find(&v->chunks, end, &area.place, &area.size);
		if (r > 0 && add_area(v, b, &area) < 0)
			r = -ENOMEM;
		pos = area.place + area.size;
	}
	return MIN(r, 0);
}

/* Not compressed: a CPU's data ends where time runs backwards */
static int find_plain_areas(struct v7 *v, struct buffer *b, const struct section *s)
{
	uint64_t page = v->dat->page_size,
		 end = round_down(s->place + TRACE_DAT_SECTION_HEAD + s->size, page);
	struct area area = {.entry = s->place,
			    .place = round_up(s->place + TRACE_DAT_SECTION_HEAD, page)};
	uint64_t last = 0;
	int r = 0;

	for (uint64_t pos = area.place; pos < end && r >= 0; pos += page) {
		uint8_t bytes[8];
		struct fault why;
		uint64_t ts;

		r = trace_dat_data_file(v->data, bytes, sizeof(bytes), pos, &why);
		if (r < 0)
			break;
		ts = number(v, bytes, 8);
		if (ts == 0) /* never written */
			break;
		if (ts < last) {
			r = add_area(v, b, &area);
			area = (struct area){.cpu = area.cpu + 1, .entry = s->place, .place = pos};
		}
		last = ts;
		area.size += page;
	}
	return r >= 0 && area.size > 0 ? add_area(v, b, &area) : r;
}

static int recover_buffers(struct v7 *v)
{
	int r = 0;

	for (size_t i = 0; i < v->sections.n && r >= 0; i++) {
		const struct section *s = &v->sections.items[i];
		struct buffer *b;

		if (s->id != TRACE_DAT_SECTION_BUFFER || s->named || s->size == 0)
			continue;
		b = add_buffer(v);
		if (!b)
			return -ENOMEM;
		b->option = s->place;
		b->packed = s->packed;
		b->name = strdup("");
		b->clock = strdup("");
		if (!b->name || !b->clock)
			return -ENOMEM;
		r = s->packed ? find_areas(v, b, s) : find_plain_areas(v, b, s);
		if (r >= 0)
			r = damage_add(
				v->damages, s->place,
				"a ring buffer whose option is missing: its name and its CPUs "
				"are not known, %zu of them are taken for the first ones",
				b->n_areas);
	}
	return r;
}

static int read_buffers(struct v7 *v)
{
	int r = 0;

	for (size_t i = 0; i < v->options.n && v->n_buffers < MAX_BUFFERS && r >= 0; i++) {
		const struct option *o = &v->options.items[i];

		if (o->id == TRACE_DAT_OPTION_BUFFER)
			r = read_buffer(v, o);
		else if (o->id == TRACE_DAT_OPTION_CPUCOUNT && o->size >= 4)
			v->n_cpus = MAX(v->n_cpus,
					(uint32_t)MIN(number(v, o->data, 4), (uint64_t)MAX_CPU));
	}
	if (r >= 0 && v->options.broken)
		r = recover_buffers(v);
	return r < 0 ? r : put_buffer_first(v);
}

/* --- the tables of version 6 */

static int put_option_head(struct v7 *v, const struct option *o, uint16_t id, uint32_t size)
{
	uint8_t head[OPTION_HEAD];

	trace_dat_put(v->dat, head, 2, id);
	trace_dat_put(v->dat, head + 2, 4, size);
	return put_made(v, o ? o->place : v->options_place, head, sizeof(head));
}

static int put_option(struct v7 *v, const struct option *o)
{
	const struct data_piece piece = {
		.kind = o->packed ? DATA_MADE : DATA_COPIED,
		.size = o->size,
		.place = o->packed ? o->place : o->place + OPTION_HEAD,
	};
	int r = put_option_head(v, o, o->id, o->size);

	return r < 0 ? r : trace_dat_data_add(v->data, &piece, o->data);
}

/* Those that mean the same in both versions */
static bool is_common(uint16_t id)
{
	return id < TRACE_DAT_SECTION_HEADERS && id != TRACE_DAT_OPTION_BUFFER &&
	       id != TRACE_DAT_OPTION_CPUCOUNT;
}

static int put_buffer_option(struct v7 *v, struct buffer *b)
{
	uint32_t n = (uint32_t)strlen(b->name) + 1;
	const struct option from = {.place = b->option};
	int r = put_option_head(v, &from, TRACE_DAT_OPTION_BUFFER, 8 + n);

	b->option_at = trace_dat_data_end(v->data);
	if (r >= 0)
		r = put_number(v, b->option, 8, 0);
	return r < 0 ? r : put_made(v, b->option, b->name, n);
}

/* The text of trace_clock: the option's, or made of what a buffer says */
static char *clock_text(const struct v7 *v, bool *ret_option)
{
	*ret_option = true;
	for (size_t i = 0; i < v->options.n; i++)
		if (v->options.items[i].id == TRACE_DAT_OPTION_TRACECLOCK)
			return strndup((const char *)v->options.items[i].data,
				       MIN(v->options.items[i].size, CURSOR_NAME_MAX - 1));
	*ret_option = false;
	for (size_t i = 0; i < v->n_buffers; i++)
		if (v->buffers[i].clock[0])
			return strf("[%s]\n", v->buffers[i].clock);
	return strdup("");
}

static int put_options(struct v7 *v, const char *clock, bool has_option)
{
	uint32_t n = (uint32_t)strlen(clock) + 1;
	int r = put_made(v, v->options_place, TRACE_DAT_OPTIONS, TRACE_DAT_WORD_SIZE);

	for (size_t i = 0; i < v->options.n && r >= 0; i++)
		if (is_common(v->options.items[i].id))
			r = put_option(v, &v->options.items[i]);
	for (size_t i = 1; i < v->n_buffers && r >= 0; i++)
		r = put_buffer_option(v, &v->buffers[i]);
	if (r >= 0 && !has_option && clock[0]) {
		r = put_option_head(v, NULL, TRACE_DAT_OPTION_TRACECLOCK, n);
		if (r >= 0)
			r = put_made(v, v->options_place, clock, n);
	}
	return r < 0 ? r : put_number(v, v->options_place, 2, TRACE_DAT_OPTION_END);
}

static int compare_areas(const void *a, const void *b)
{
	const struct area *x = a, *y = b;

	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

/* Empty for now; the place of each entry is what says it */
static int put_table(struct v7 *v, struct buffer *b)
{
	static const uint8_t none[TRACE_DAT_ENTRY_SIZE];
	uint64_t at = trace_dat_data_end(v->data);
	uint8_t offset[8];
	size_t next = 0;
	int r = put_made(v, b->option, TRACE_DAT_FLYRECORD, TRACE_DAT_WORD_SIZE);

	b->table_at = at + TRACE_DAT_WORD_SIZE;
	if (b->n_areas > 0)
		qsort(b->areas, b->n_areas, sizeof(*b->areas), compare_areas);
	for (uint32_t cpu = 0; cpu < v->n_cpus && r >= 0; cpu++) {
		bool has = next < b->n_areas && b->areas[next].cpu == cpu;

		r = put_made(v, has ? b->areas[next].entry : b->option, none, sizeof(none));
		next += has;
	}
	trace_dat_put(v->dat, offset, 8, at);
	if (r >= 0 && b->option_at)
		trace_dat_data_patch(v->data, b->option_at, offset, sizeof(offset));
	return r;
}

static int put_tables(struct v7 *v)
{
	bool has_option;
	_cleanup_free_ char *clock = clock_text(v, &has_option);
	int r;

	if (!clock)
		return -ENOMEM;
	r = put_number(v, v->options_place, 4, v->n_cpus);
	if (r >= 0)
		r = put_options(v, clock, has_option);
	for (size_t i = 0; i < v->n_buffers && r >= 0; i++) {
		r = put_table(v, &v->buffers[i]);
		if (r >= 0 && i == 0 && clock[0]) {
			r = put_number(v, v->options_place, 8, strlen(clock) + 1);
			if (r >= 0)
				r = put_made(v, v->options_place, clock, strlen(clock) + 1);
		}
	}
	return r;
}

/* One that makes no sense is told, and left out */
static int keep_section(struct v7 *v, const struct option *o, const struct section *s)
{
	struct trace_dat *dat = v->dat;
	struct data_piece piece;
	uint8_t first;
	size_t n;
	struct fault why;
	int r = v7_sections_piece(&v->sections, s, DATA_SECTION_MAX, &piece, &why);

	if (r < 0)
		return damage_add_fault(v->damages, r, &why);
	r = array_grow(&dat->kept, dat->n_kept, sizeof(*dat->kept));
	if (r < 0)
		return r;
	dat->kept[dat->n_kept++] =
		(struct trace_dat_kept){o->id, {trace_dat_data_end(v->data), piece.size}};
	r = v7_sections_claim(&v->sections, s->place, s->place + TRACE_DAT_SECTION_HEAD + s->size,
			      "a section");
	if (r < 0 || piece.size == 0)
		return r;
	r = trace_dat_data_add(v->data, &piece, NULL);
	if (r < 0)
		return r;
	r = trace_dat_data_read(v->data, &first, 1, trace_dat_data_end(v->data) - piece.size, &n,
				&why);
	if (r >= 0)
		return 0;
	trace_dat_data_drop(v->data);
	dat->n_kept--;
	return damage_add_fault(v->damages, r, &why);
}

/* Those that an option of their id names: whatever else such an option says is not known */
static int keep_sections(struct v7 *v)
{
	int r = 0;

	for (size_t i = 0; i < v->options.n && r >= 0; i++) {
		const struct option *o = &v->options.items[i];
		struct section s;

		if (o->id < _TRACE_DAT_SECTION_MAX || o->size != 8 || v->dat->n_kept == MAX_KEPT ||
		    v7_sections_read(&v->sections, number(v, o->data, 8), &s, NULL) < 0 ||
		    s.id != o->id)
			continue;
		if (!v7_sections_cut(&v->sections, &s)) /* else the walk has told it */
			r = keep_section(v, o, &s);
	}
	return r;
}

/* A damaged one is told, and done without */
static int read_index(struct v7 *v)
{
	uint8_t *bytes = NULL;
	struct fault why;
	size_t size;
	int r = own_section_read(v->dat, OWN_INDEX, &bytes, &size, &why);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return damage_add_fault(v->damages, r, &why);
	r = trace_dat_index_new(v->data, bytes, size, &v->index);
	if (r < 0)
		free(bytes);
	if (r == -EBADMSG)
		return damage_add(v->damages, v->dat->own.offset,
				  "the index in flyrec's own section makes no sense");
	v->chunks.index = v->index;
	v->chunks.index_place = v->dat->own.offset;
	return r;
}

static int put_data(struct v7 *v)
{
	int r = read_index(v);

	for (size_t i = 0; i < v->n_buffers && r >= 0; i++)
		for (size_t k = 0; k < v->buffers[i].n_areas && r >= 0; k++)
			r = put_area(v, &v->buffers[i], &v->buffers[i].areas[k]);
	if (r >= 0)
		r = keep_sections(v);
	return r < 0 ? r : v7_sections_check_claims(&v->sections);
}

/* --- the file */

/* What its data is compressed with, which may be more than this build can read */
static void read_compression(struct cursor *c, struct v7 *v)
{
	uint64_t at = c->pos;
	_cleanup_free_ char *name = cursor_string(c, "the name of the compression");

	free(cursor_string(c, "the version of the compression"));
	v->options_place = cursor_number(c, 8, "the place of the options");
	if (c->error || strcmp(name, "none") == 0)
		return;
	v->zstd = strcmp(name, "zstd") == 0;
	if (!v->zstd)
		(void)cursor_broken(
			c, -EOPNOTSUPP, at,
			"compressed with %.32s, which is not supported: trace-cmd convert "
			"--compression zstd -i FILE -o OUT",
			name);
	else if (!HAVE_ZSTD)
		(void)cursor_broken(
			c, -EOPNOTSUPP, at,
			"compressed with zstd, which this build does not read: trace-cmd "
			"convert --compression none -i FILE -o OUT");
}

/* The file's beginning, with the other version */
static int put_head(struct v7 *v, struct fault *why)
{
	const struct data_piece piece = {.kind = DATA_COPIED, .size = TRACE_DAT_FILE_HEAD};
	uint8_t bytes[TRACE_DAT_FILE_HEAD];
	int r = trace_dat_data_file(v->data, bytes, sizeof(bytes), 0, why);

	if (r < 0)
		return r;
	bytes[TRACE_DAT_MAGIC_SIZE] = '6';
	return trace_dat_data_add(v->data, &piece, bytes);
}

/* Whoever reads it looks at its checksums: it may be cut */
static void find_own(struct v7 *v)
{
	for (size_t i = 0; i < v->sections.n; i++) {
		const struct section *s = &v->sections.items[i];

		if (s->id == TRACE_DAT_V7_OWN && !s->packed)
			v->dat->own = (struct trace_dat_extent){s->place + TRACE_DAT_SECTION_HEAD,
								s->size};
	}
}

static int build(struct v7 *v, uint64_t from, uint64_t first, struct fault *why)
{
	int r = v7_sections_walk(&v->sections, first, v->options_place != 0);

	find_own(v);
	if (r >= 0)
		r = v7_options_read(&v->options, v->options_place, from);
	if (r >= 0)
		r = put_head(v, why);
	if (r >= 0)
		r = put_sections(v, why);
	if (r >= 0)
		r = read_buffers(v);
	if (r >= 0 && v->n_buffers * (uint64_t)MAX(v->n_cpus, 64U) > MAX_TABLES)
		return fault_at(why, -EBADMSG, v->dat->path, v->options_place,
				"more buffers than make sense: %zu of %u CPUs", v->n_buffers,
				v->n_cpus);
	if (r >= 0)
		r = put_tables(v);
	return r < 0 ? r : put_data(v);
}

int trace_dat_v7_open(struct cursor *c)
{
	_cleanup_(v7_done) struct v7 v = {.dat = c->dat, .damages = &c->dat->damages};
	struct fault why = {};
	uint64_t from;
	int r;

	read_compression(c, &v);
	if (c->error)
		return c->error;
	from = c->pos - 8;
	v.data = trace_dat_data_new(c->dat->fd, c->dat->path, c->dat->big_endian);
	v.sections = (struct v7_sections){
		.data = v.data,
		.path = c->dat->path,
		.damages = v.damages,
		.file_size = c->dat->file_size,
	};
	v.options = (struct v7_options){.sections = &v.sections, .data = v.data};
	v.chunks = (struct chunk_source){
		.data = v.data,
		.damages = v.damages,
		.fd = c->dat->fd,
		.size = c->dat->file_size,
		.page_size = c->dat->page_size,
	};
	r = v.data ? build(&v, from, c->pos, &why) : -ENOMEM;
	if (r < 0) {
		c->error = r;
		if (why.error)
			(void)fault_set(c->why, r, "%s", why.text);
		else if (r != -ENOMEM)
			(void)fault_errno(c->why, r, "%s: cannot read", c->dat->path);
		return r;
	}
	c->dat->data = TAKE_PTR(v.data);
	c->dat->file_size = trace_dat_data_end(c->dat->data);
	c->pos = TRACE_DAT_FILE_HEAD;
	c->window_size = 0;
	return 0;
}

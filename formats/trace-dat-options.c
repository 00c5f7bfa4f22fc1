/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "formats/trace-dat-options.h"
#include "formats/trace-dat.h"

/* Nothing real comes near these */
#define MAX_OPTIONS	 (16 * MIB) /* bytes, all together */
#define MAX_OPTION_CHAIN 4096U

void v7_options_done(struct v7_options *options)
{
	for (size_t i = 0; i < options->n_texts; i++)
		free(options->texts[i]);
	free(options->texts);
	free(options->items);
}

static int add_option(struct v7_options *options, const struct option *option)
{
	uint16_t id = option->id;
	int r;

	if (id >= TRACE_DAT_SECTION_HEADERS && id < _TRACE_DAT_SECTION_MAX && option->size >= 8) {
		options->found[id] = trace_dat_data_number(options->data, option->data, 8);
		options->found_by[id] = option->place;
	}
	r = array_grow(&options->items, options->n, sizeof(*options->items));
	if (r >= 0)
		options->items[options->n++] = *option;
	return r;
}

/* @ret_next: 0: these are the last; also if they have no end */
static int parse_options(struct v7_options *options, const struct section *s, const uint8_t *bytes,
			 size_t size, uint64_t *ret_next)
{
	*ret_next = 0;
	for (size_t at = 0; at + OPTION_HEAD <= size;) {
		struct option o = {
			.id = (uint16_t)trace_dat_data_number(options->data, bytes + at, 2),
			.size = (uint32_t)trace_dat_data_number(options->data, bytes + at + 2, 4),
			.data = bytes + at + OPTION_HEAD,
			.place = s->packed ? s->place : s->place + TRACE_DAT_SECTION_HEAD + at,
			.packed = s->packed,
		};
		int r;

		if (o.size > size - at - OPTION_HEAD) {
			options->broken = true;
			return damage_add(
				options->sections->damages, o.place,
				"option %u has %u bytes, but only %zu follow in its section", o.id,
				o.size, size - at - OPTION_HEAD);
		}
		if (o.id == TRACE_DAT_OPTION_END) {
			*ret_next =
				o.size >= 8 ? trace_dat_data_number(options->data, o.data, 8) : 0;
			return 0;
		}
		r = add_option(options, &o);
		if (r < 0)
			return r;
		at += OPTION_HEAD + o.size;
	}
	options->broken = true;
	return damage_add(options->sections->damages, s->place, "the options have no end");
}

static int read_options(struct v7_options *options, const struct section *s, uint64_t *ret_next)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct data_piece piece;
	struct fault why;
	int r = v7_sections_piece(options->sections, s, MAX_OPTIONS - options->size, &piece, &why);

	*ret_next = 0;
	if (r >= 0) {
		bytes = malloc(piece.size + 1);
		if (!bytes)
			return -ENOMEM;
		r = s->packed ? trace_dat_data_unpack(options->data, piece.place, piece.length,
						      bytes, piece.size, &why)
			      : trace_dat_data_file(options->data, bytes, piece.size, piece.place,
						    &why);
	}
	if (r < 0) {
		options->broken = true;
		return damage_add_fault(options->sections->damages, r, &why);
	}
	r = array_grow(&options->texts, options->n_texts, sizeof(*options->texts));
	if (r < 0)
		return r;
	options->size += piece.size;
	options->texts[options->n_texts++] = bytes;
	return parse_options(options, s, TAKE_PTR(bytes), piece.size, ret_next);
}

/* The section of options at @place, if there is one: 1, 0 that ends the chain, negative errno */
static int chain_section(struct v7_options *options, uint64_t place, uint64_t from,
			 struct section *ret)
{
	struct fault why;
	char room[32];
	int r;

	if (place == 0)
		return damage_add(options->sections->damages, from,
				  "the file was not finished: there is no place of options");
	if (place >= options->sections->file_size)
		return damage_add(options->sections->damages, from,
				  "options at 0x%" PRIx64
				  ", behind the end of the file at 0x%" PRIx64,
				  place, options->sections->file_size);
	r = v7_sections_read(options->sections, place, ret, &why);
	if (r < 0)
		return damage_add_fault(options->sections->damages, r, &why);
	if (ret->id != TRACE_DAT_SECTION_OPTIONS)
		return damage_add(options->sections->damages, from,
				  "options should be at 0x%" PRIx64 ", where %s is", place,
				  v7_sections_name(ret->id, room, sizeof(room)));
	(void)v7_sections_cut(options->sections, ret);
	return 1;
}

static bool was_read(const uint64_t *places, size_t n, uint64_t place)
{
	for (size_t i = 0; i < n; i++)
		if (places[i] == place)
			return true;
	return false;
}

static int read_chain(struct v7_options *options, uint64_t place, uint64_t from, uint64_t *places,
		      size_t *n)
{
	int r;

	do {
		struct section s;

		r = chain_section(options, place, from, &s);
		if (r <= 0) {
			options->broken = true;
			return r;
		}
		if (*n == MAX_OPTION_CHAIN || was_read(places, *n, place)) {
			options->broken = true;
			return damage_add(options->sections->damages, from,
					  "the options have no end: those at 0x%" PRIx64
					  " come again",
					  place);
		}
		places[(*n)++] = place;
		r = v7_sections_claim(options->sections, place,
				      place + TRACE_DAT_SECTION_HEAD + s.size, "options");
		if (r >= 0)
			r = read_options(options, &s, &place);
		from = s.place;
	} while (r >= 0 && place != 0);
	return r;
}

int v7_options_read(struct v7_options *options, uint64_t place, uint64_t from)
{
	_cleanup_free_ uint64_t *places = calloc(MAX_OPTION_CHAIN, sizeof(*places));
	uint64_t next;
	size_t n = 0;
	int r = places ? read_chain(options, place, from, places, &n) : -ENOMEM;

	for (size_t i = 0; i < options->sections->n && options->broken && r >= 0; i++)
		if (options->sections->items[i].id == TRACE_DAT_SECTION_OPTIONS &&
		    !was_read(places, n, options->sections->items[i].place) &&
		    n < MAX_OPTION_CHAIN) {
			places[n++] = options->sections->items[i].place;
			r = read_options(options, &options->sections->items[i], &next);
		}
	return r;
}

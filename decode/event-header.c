/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <math.h>
#include <string.h>

#include "basic/macro.h"
#include "decode/event-header.h"

#define HEADER_SIZE	   8
#define FLAG_LITTLE_ENDIAN 0x02
#define FLAG_EXTENSION	   0x04

#define KIND_METADATA 1
#define KIND_ACTIVITY 2
#define KIND_CHAIN    0x8000
#define ID_SIZE	      16

/* Of an encoding */
#define ENCODING       0x1f
#define CONSTANT_ARRAY 0x20
#define VARIABLE_ARRAY 0x40
#define CHAIN	       0x80 /* a format follows; of a format: a tag */

enum {
	ENCODING_STRUCT = 1, /* the format is the number of its fields */
	ENCODING_VALUE8,
	ENCODING_VALUE16,
	ENCODING_VALUE32,
	ENCODING_VALUE64,
	ENCODING_VALUE128,
	ENCODING_STRING8, /* ends with a NUL */
	ENCODING_STRING16,
	ENCODING_STRING32,
	ENCODING_COUNTED8, /* begins with the number of its characters */
	ENCODING_COUNTED16,
	ENCODING_COUNTED32,
};

enum {
	FORMAT_SIGNED = 2,
	FORMAT_HEX = 3,
	FORMAT_ERRNO = 4,
	FORMAT_PID = 5,
	FORMAT_TIME = 6,
	FORMAT_BOOLEAN = 7,
	FORMAT_FLOAT = 8,
	FORMAT_HEX_BYTES = 9,
	FORMAT_LATIN1 = 10,
	FORMAT_UTF = 11,
	FORMAT_UUID = 15,
	FORMAT_PORT = 16,
	FORMAT_IPV4 = 17,
	FORMAT_IPV6 = 18,
};

#define DEPTH_MAX 8    /* of structures */
#define ITEMS_MAX 8192 /* of an event: structures in arrays multiply */

/* An event that is being printed */
struct header {
	struct decode_event event; /* in the byte order that its flags say */
	uint32_t described, end;   /* in the description: how far it is read, its end */
	uint32_t at;		   /* in the payload */
	const uint8_t *activity;   /* or NULL */
	const uint8_t *parent;	   /* or NULL */
	const char *name;	   /* NULL: no description */
	uint32_t items;
	bool damaged;
	bool json;
	struct text *out;
};

struct definition {
	const char *name;
	size_t name_size;
	unsigned encoding, format, count;
	bool is_array, is_counted; /* the count is in the payload */
};

bool event_header_is(const struct field *fields, size_t n)
{
	static const struct {
		const char *name;
		uint32_t offset, size;
	} wanted[] = {
		{"eventheader_flags", 0, 1},
		{"version", 1, 1},
		{"id", 2, 2},
		{"tag", 4, 2},
		{"opcode", 6, 1},
		{"level", 7, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (n != ARRAY_SIZE(wanted) || strcmp(fields[i].name, wanted[i].name) != 0 ||
		    fields[i].size != wanted[i].size ||
		    fields[i].offset - fields[0].offset != wanted[i].offset)
			return false;
	return true;
}

/* --- reading */

/* So many bytes of the payload; NULL: they are not all there */
static const uint8_t *take(struct header *h, uint64_t size)
{
	const uint8_t *p = h->event.data + h->at;

	if (h->damaged || size > h->event.size - h->at) {
		h->damaged = true;
		return NULL;
	}
	h->at += (uint32_t)size;
	return p;
}

static uint64_t take_number(struct header *h, uint32_t size)
{
	uint32_t at = h->at;

	return take(h, size) ? decode_number(&h->event, at, size) : 0;
}

/* The same of the description */
static unsigned take_described(struct header *h, uint32_t size)
{
	unsigned value;

	if (h->damaged || size > h->end - h->described) {
		h->damaged = true;
		return 0;
	}
	value = (unsigned)decode_number(&h->event, h->described, size);
	h->described += size;
	return value;
}

/* Up to its NUL; without attributes */
static const char *take_name(struct header *h, size_t *ret_size)
{
	const char *name = (const char *)h->event.data + h->described;
	const char *nul = h->damaged ? NULL : memchr(name, '\0', h->end - h->described);

	*ret_size = 0;
	if (!nul) {
		h->damaged = true;
		return "";
	}
	h->described += (uint32_t)(nul - name) + 1;
	*ret_size = strcspn(name, ";");
	return name;
}

static bool next_definition(struct header *h, struct definition *ret)
{
	unsigned encoding;

	*ret = (struct definition){.count = 1};
	if (h->damaged || h->described >= h->end)
		return false;
	ret->name = take_name(h, &ret->name_size);
	encoding = take_described(h, 1);
	if (encoding & CHAIN)
		ret->format = take_described(h, 1);
	if (ret->format & CHAIN)
		(void)take_described(h, 2); /* a tag */
	ret->format &= ~(unsigned)CHAIN;
	if (encoding & CONSTANT_ARRAY)
		ret->count = take_described(h, 2);
	ret->encoding = encoding & ENCODING;
	ret->is_counted = encoding & VARIABLE_ARRAY;
	ret->is_array = encoding & (CONSTANT_ARRAY | VARIABLE_ARRAY);
	return !h->damaged;
}

/* --- printing */

static void put_text(struct header *h, const char *text, size_t size)
{
	if (h->json) {
		text_json(h->out, text, size);
		return;
	}
	text_char(h->out, '"');
	text_data(h->out, text, size);
	text_char(h->out, '"');
}

/* What is no number, but needs no quotes for people */
static void put_word(struct header *h, const char *word)
{
	if (h->json)
		text_char(h->out, '"');
	text_string(h->out, word);
	if (h->json)
		text_char(h->out, '"');
}

static void put_key(struct header *h, const struct definition *d)
{
	if (h->json) {
		text_json(h->out, d->name, d->name_size);
		text_char(h->out, ':');
	} else {
		text_data(h->out, d->name, d->name_size);
		text_char(h->out, '=');
	}
}

static void put_hex_bytes(struct header *h, const uint8_t *bytes, size_t size)
{
	if (h->json)
		text_char(h->out, '"');
	for (size_t i = 0; i < size; i++)
		text_printf(h->out, "%02x", bytes[i]);
	if (h->json)
		text_char(h->out, '"');
}

static void put_uuid(struct header *h, const uint8_t *b)
{
	char word[37];

	(void)snprintf(word, sizeof(word),
		       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
		       b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		       b[13], b[14], b[15]);
	put_word(h, word);
}

static void put_address(struct header *h, int family, const uint8_t *bytes)
{
	char word[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(family, bytes, word, sizeof(word));
	put_word(h, word);
}

static void put_float(struct header *h, uint64_t value, uint32_t size)
{
	double number;
	float single;
	uint32_t bits = (uint32_t)value;

	memcpy(&number, &value, sizeof(number));
	memcpy(&single, &bits, sizeof(single));
	if (size == 4)
		number = (double)single;
	if (h->json && !isfinite(number))
		text_string(h->out, "null");
	else
		text_printf(h->out, "%.*g", size == 4 ? 9 : 17, number);
}

static void put_utf8(struct text *out, uint32_t c)
{
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		text_char(out, (char)c);
		return;
	}
	if (c < 0x800) {
		text_char(out, (char)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			text_char(out, (char)(0xe0 | c >> 12));
		} else {
			text_char(out, (char)(0xf0 | c >> 18));
			text_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		text_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	text_char(out, (char)(0x80 | (c & 0x3f)));
}

/* Characters of @unit bytes as UTF-8; those of one byte are Latin-1 */
static void put_units(struct header *h, uint32_t at, uint32_t n, uint32_t unit)
{
	struct text utf8 = {};

	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = (uint32_t)decode_number(&h->event, at + i * unit, unit), low = 0;

		if (i == 0 && unit > 1 && c == 0xfeff) /* a byte order mark */
			continue;
		if (unit == 2 && c >= 0xd800 && c < 0xdc00 && i + 1 < n)
			low = (uint32_t)decode_number(&h->event, at + (i + 1) * unit, unit);
		if (low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			i++;
		}
		put_utf8(&utf8, c);
	}
	put_text(h, utf8.bytes ? utf8.bytes : "", utf8.size);
	h->out->no_memory |= utf8.no_memory;
	text_done(&utf8);
}

static void put_string(struct header *h, const struct definition *d)
{
	bool counted = d->encoding >= ENCODING_COUNTED8;
	uint32_t unit = 1U << (d->encoding - (counted ? ENCODING_COUNTED8 : ENCODING_STRING8));
	uint32_t n = counted ? (uint32_t)take_number(h, 2) : 0, at = h->at;
	const uint8_t *bytes;

	while (!counted && at + (n + 1) * unit <= h->event.size &&
	       decode_number(&h->event, at + n * unit, unit) != 0)
		n++;
	bytes = take(h, (uint64_t)(n + !counted) * unit);
	if (!bytes)
		put_text(h, "", 0);
	else if (d->format == FORMAT_HEX_BYTES)
		put_hex_bytes(h, bytes, (size_t)n * unit);
	else if (unit == 1 && d->format != FORMAT_LATIN1)
		put_text(h, (const char *)bytes, n);
	else
		put_units(h, at, n, unit);
}

static void put_number(struct header *h, const struct definition *d, uint32_t size)
{
	const uint32_t at = h->at;
	const uint64_t value = take_number(h, size);
	char word[24];

	switch (d->format) {
	case FORMAT_SIGNED:
	case FORMAT_ERRNO:
	case FORMAT_PID:
	case FORMAT_TIME:
		text_i64(h->out, decode_signed(value, size));
		break;
	case FORMAT_HEX:
		(void)snprintf(word, sizeof(word), "0x%llx", (unsigned long long)value);
		put_word(h, word);
		break;
	case FORMAT_BOOLEAN:
		text_string(h->out, value ? "true" : "false");
		break;
	case FORMAT_LATIN1:
	case FORMAT_UTF:
		put_units(h, at, !h->damaged, size);
		break;
	default:
		text_u64(h->out, value);
	}
}

static void put_value(struct header *h, const struct definition *d)
{
	const uint32_t size = 1U << (d->encoding - ENCODING_VALUE8);
	const uint8_t *bytes = h->event.data + h->at;
	bool is_there = !h->damaged && size <= h->event.size - h->at;

	if (!is_there || (size == 16 && d->format != FORMAT_UUID && d->format != FORMAT_IPV6) ||
	    d->format == FORMAT_HEX_BYTES)
		put_hex_bytes(h, bytes, take(h, size) ? size : 0);
	else if (size == 16 && d->format == FORMAT_UUID)
		put_uuid(h, take(h, size));
	else if (size == 16)
		put_address(h, AF_INET6, take(h, size));
	else if (size == 4 && d->format == FORMAT_IPV4)
		put_address(h, AF_INET, take(h, size));
	else if (size == 2 && d->format == FORMAT_PORT)
		text_u64(h->out, (uint64_t)bytes[0] << 8 | take(h, size)[1]);
	else if (size >= 4 && d->format == FORMAT_FLOAT)
		put_float(h, take_number(h, size), size);
	else
		put_number(h, d, size);
}

static void put_fields(struct header *h, unsigned n, unsigned depth);

/* Over the definitions of a structure's fields, of which one that is a structure counts as one */
static void skip_fields(struct header *h, unsigned n, unsigned depth)
{
	struct definition d;

	if (depth > DEPTH_MAX)
		h->damaged = true;
	while (n-- > 0 && next_definition(h, &d))
		if (d.encoding == ENCODING_STRUCT)
			skip_fields(h, d.format, depth + 1);
}

static void put_element(struct header *h, const struct definition *d, unsigned depth)
{
	if (++h->items > ITEMS_MAX)
		h->damaged = true;
	if (d->encoding == ENCODING_STRUCT) {
		text_char(h->out, '{');
		put_fields(h, d->format, depth + 1);
		text_char(h->out, '}');
	} else if (d->encoding >= ENCODING_VALUE8 && d->encoding <= ENCODING_VALUE128) {
		put_value(h, d);
	} else if (d->encoding >= ENCODING_STRING8 && d->encoding <= ENCODING_COUNTED32) {
		put_string(h, d);
	} else {
		h->damaged = true;
		text_string(h->out, h->json ? "null" : "?");
	}
}

static void put_field(struct header *h, const struct definition *d, unsigned depth)
{
	const unsigned n = d->is_counted ? (unsigned)take_number(h, 2) : d->count;
	const uint32_t members = h->described;

	if (d->is_array)
		text_char(h->out, '[');
	for (unsigned i = 0; i < n && (i == 0 || !h->damaged); i++) {
		if (i > 0)
			text_char(h->out, ',');
		h->described = members;
		put_element(h, d, depth);
	}
	if (n == 0 && d->encoding == ENCODING_STRUCT)
		skip_fields(h, d->format, depth + 1);
	if (d->is_array)
		text_char(h->out, ']');
}

/* So many, or up to the end of the description */
static void put_fields(struct header *h, unsigned n, unsigned depth)
{
	struct definition d;

	if (depth > DEPTH_MAX)
		h->damaged = true;
	for (unsigned i = 0; i < n && next_definition(h, &d); i++) {
		if (i > 0)
			text_char(h->out, h->json ? ',' : ' ');
		put_key(h, &d);
		put_field(h, &d, depth);
	}
}

/* --- the header */

/* Where the description and the payload are. Return: false: there is nothing to be said. */
static bool open_header(const struct decode_event *event, const struct field *flags,
			struct header *h)
{
	unsigned bits, kind = KIND_CHAIN;

	if (event->size < flags->offset || event->size - flags->offset < HEADER_SIZE)
		return false;
	bits = event->data[flags->offset];
	h->event = *event;
	h->event.big_endian = !(bits & FLAG_LITTLE_ENDIAN);
	h->at = flags->offset + HEADER_SIZE;
	if (!(bits & FLAG_EXTENSION))
		return false;
	while (kind & KIND_CHAIN && !h->damaged) {
		uint32_t size = (uint32_t)take_number(h, 2), at;
		const uint8_t *bytes;

		kind = (unsigned)take_number(h, 2);
		at = h->at;
		bytes = take(h, size);
		if (bytes && (kind & ~KIND_CHAIN) == KIND_METADATA && !h->name) {
			h->described = at;
			h->end = at + size;
			h->name = "";
		} else if (bytes && (kind & ~KIND_CHAIN) == KIND_ACTIVITY && size >= ID_SIZE) {
			h->activity = bytes;
			h->parent = size >= 2 * ID_SIZE ? bytes + ID_SIZE : NULL;
		}
	}
	return h->name || h->activity || h->damaged;
}

void event_header_text(const struct decode_event *event, const struct field *flags,
		       struct text *out)
{
	struct header h = {.out = out};
	size_t size;

	if (!open_header(event, flags, &h))
		return;
	if (h.name) {
		h.name = take_name(&h, &size);
		text_char(out, ' ');
		text_data(out, h.name, size);
		if (h.described < h.end)
			text_char(out, ' ');
		put_fields(&h, UINT32_MAX, 0);
	}
	if (h.activity) {
		text_string(out, " activity=");
		put_uuid(&h, h.activity);
	}
	if (h.parent) {
		text_string(out, " parent=");
		put_uuid(&h, h.parent);
	}
	if (h.damaged)
		text_string(out, " <damaged>");
}

void event_header_json(const struct decode_event *event, const struct field *flags,
		       struct text *out)
{
	struct header h = {.out = out, .json = true};
	size_t size;

	if (!open_header(event, flags, &h))
		return;
	text_string(out, ",\"eventheader\":{\"name\":");
	if (h.name) {
		h.name = take_name(&h, &size);
		text_json(out, h.name, size);
	} else {
		text_string(out, "null");
	}
	text_string(out, ",\"fields\":{");
	put_fields(&h, UINT32_MAX, 0);
	text_char(out, '}');
	if (h.activity) {
		text_string(out, ",\"activity\":");
		put_uuid(&h, h.activity);
	}
	if (h.parent) {
		text_string(out, ",\"parent\":");
		put_uuid(&h, h.parent);
	}
	if (h.damaged)
		text_string(out, ",\"damaged\":true");
	text_char(out, '}');
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "basic/macro.h"
#include "decode/field.h"

bool field_place(const struct tep_format_field *from, struct field *ret)
{
	if (from->offset < 0 || from->size < 0 || from->offset > INT32_MAX / 2 ||
	    from->size > INT32_MAX / 2)
		return false;
	*ret = (struct field){
		.offset = (uint32_t)from->offset,
		.size = (uint32_t)from->size,
		.element = (uint32_t)from->elementsize,
		.is_signed = from->flags & TEP_FIELD_IS_SIGNED,
		.is_array = from->flags & TEP_FIELD_IS_ARRAY,
		.is_string = from->flags & TEP_FIELD_IS_STRING,
		.is_pointer = from->flags & TEP_FIELD_IS_POINTER,
		.is_dynamic = from->flags & TEP_FIELD_IS_DYNAMIC,
		.is_relative = from->flags & TEP_FIELD_IS_RELATIVE,
		.is_last = !from->next,
	};
	return true;
}

uint64_t decode_number(const struct decode_event *event, uint64_t offset, uint32_t size)
{
	const uint8_t *p = event->data + offset;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;

	if (offset > event->size || size > event->size - offset)
		return 0;
	switch (size) {
	case 1:
		return *p;
	case 2:
		memcpy(&u16, p, sizeof(u16));
		return event->big_endian ? be16toh(u16) : le16toh(u16);
	case 4:
		memcpy(&u32, p, sizeof(u32));
		return event->big_endian ? be32toh(u32) : le32toh(u32);
	case 8:
		memcpy(&u64, p, sizeof(u64));
		return event->big_endian ? be64toh(u64) : le64toh(u64);
	default:
		return 0;
	}
}

/*
 * The word: offset in the low half, size in the high half; a word of 16 bits is an offset and all
 * that follows. What goes beyond the event is nothing, as in libtraceevent.
 */
const uint8_t *decode_dynamic(const struct decode_event *event, const struct field *field,
			      uint32_t *ret_size)
{
	uint64_t word = decode_number(event, field->offset, field->size);
	uint32_t offset = word & 0xffff, size = (word >> 16) & 0xffff;

	if (field->size == 2)
		size = offset <= event->size ? event->size - offset : 0;
	if (offset > event->size)
		offset = 0;
	if (offset + size > event->size)
		size = 0;
	if (field->is_relative)
		offset += field->offset + field->size;
	if (offset > event->size)
		offset = event->size;
	*ret_size = MIN(size, event->size - offset);
	return event->data + offset;
}

int64_t field_signed(const struct field *field, const struct decode_event *event)
{
	uint64_t value = field_number(field, event);

	return field->is_signed ? decode_signed(value, field->size) : (int64_t)value;
}

const uint8_t *field_bytes(const struct field *field, const struct decode_event *event,
			   uint32_t *ret_size)
{
	uint32_t offset = MIN(field->offset, event->size);

	if (field->is_dynamic)
		return decode_dynamic(event, field, ret_size);
	*ret_size = MIN(field->size, event->size - offset);
	return event->data + offset;
}

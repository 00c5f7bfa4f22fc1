/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * EventHeader: events of user_events (Documentation/trace/user_events.rst) that bring the names and
 * types of their fields with them. The kernel's format has only the header, with these six fields:
 *
 *	flags:u8 version:u8 id:u16 tag:u16 opcode:u8 level:u8
 *	{ size:u16 kind:u16 data[size] }*   if flags say so; kind's highest bit: another one follows
 *	payload                             the fields, without any padding
 *
 * Kind 1 describes the payload, kind 2 is the activity that the event belongs to:
 *
 *	name\0 { name\0 encoding:u8 [format:u8] [tag:u16] [count:u16] }*
 *	id[16] [parent[16]]
 *
 * A name may have attributes behind a ';'. The flags also say in which byte order all that is.
 * https://github.com/microsoft/LinuxTracepoints, eventheader.h. Any thread.
 */
#pragma once

#include "decode/field.h"
#include "decode/text.h"

/**
 * event_header_is() - is a kind of event one of these, by its fields?
 */
bool event_header_is(const struct field *fields, size_t n);

/**
 * event_header_text() - append " NAME FIELD=VALUE …"
 * event_header_json() - append ",\"eventheader\":{\"name\":…,\"fields\":{…}}"
 * @flags: where the header is: the first of the fields
 * Nothing is appended to what has no description. What leads beyond the event ends there, and is
 * marked as damaged.
 */
void event_header_text(const struct decode_event *event, const struct field *flags,
		       struct text *out);
void event_header_json(const struct decode_event *event, const struct field *flags,
		       struct text *out);

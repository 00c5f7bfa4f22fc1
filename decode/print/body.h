/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event's print format, compiled: what libtraceevent walks through for each event again is
 * looked at once. Prints the same text. A body does not change; struct decode_tools is one
 * thread's.
 */
#pragma once

#include "decode/print/string.h"

struct body;

/**
 * body_compile() - @event's print format
 * @event: must outlive @ret
 * @symbols: may be NULL
 * Return: 0, -EOPNOTSUPP (libtraceevent must print it: it has parts that are not compiled),
 * -ENOMEM.
 */
int body_compile(struct tep_event *event, const struct kallsyms *symbols, struct body **ret);
struct body *body_free(struct body *body);
DEFINE_CLEANUP(struct body *, body_free)

void body_print(const struct body *body, const struct decode_record *record,
		struct decode_tools *tools, struct text *out);

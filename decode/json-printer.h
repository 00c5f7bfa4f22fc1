/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A line of JSON for an event; see printer.h. Values come from the fields as the format declares
 * them, not from the print format: numbers stay numbers. One thread's.
 */
#pragma once

#include "decode/decoder.h"
#include "decode/field-value.h"
#include "decode/text.h"

struct json_printer;

int json_printer_new(const struct decoder *decoder, struct json_printer **ret);
struct json_printer *json_printer_free(struct json_printer *printer);

/**
 * json_printer_put() - append the line
 * Return: 0 or -ENOMEM.
 */
int json_printer_put(struct json_printer *printer, const struct decode_event *event,
		     struct text *out);

/**
 * json_printer_new_fields() - one for json_printer_fields() alone, which needs no symbols
 */
int json_printer_new_fields(const struct decoder *decoder, struct json_printer **ret);

/**
 * json_printer_fields() - append the object of an event's fields alone
 * Return: 0 or -ENOMEM.
 */
int json_printer_fields(struct json_printer *printer, const struct decode_event *event,
			struct text *out);

/**
 * json_printer_value() - append the value of a field
 */
void json_printer_value(const struct field_value *value, const struct decode_event *event,
			struct text *out);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A line of text for an event; see printer.h. One thread's: libtraceevent's handles are not for
 * several, so that each printer has its own.
 */
#pragma once

#include "decode/printer.h"

struct tep_event;
struct text_printer;

int text_printer_new(const struct decoder *decoder, const struct printer_config *config,
		     struct text_printer **ret);
struct text_printer *text_printer_free(struct text_printer *printer);
DEFINE_CLEANUP(struct text_printer *, text_printer_free)

int text_printer_put(struct text_printer *printer, const struct decode_event *event, bool ordered,
		     struct text *out);

/* Who makes the text of an event */
enum text_how {
	TEXT_UNKNOWN,	  /* nobody: no format, or none that can be trusted */
	TEXT_COMPILED,	  /* decode/print */
	TEXT_TEP,	  /* libtraceevent */
	TEXT_TEP_ORDERED, /* libtraceevent, and it depends on what it printed before */
};

/**
 * text_printer_how() - for tests: who prints the events of an id
 * @ret: the parsed format, if there is one
 */
enum text_how text_printer_how(struct text_printer *printer, uint32_t id, struct tep_event **ret);

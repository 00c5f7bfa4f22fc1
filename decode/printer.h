/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events as lines of text or of JSON: what `export` and `tail` print. The text is that of
 * `trace-cmd report` 3.1.6, byte for byte; flyrecctl(1) describes the JSON. A printer is one
 * thread's.
 */
#pragma once

#include "decode/decoder.h"
#include "decode/event-time.h"
#include "decode/text.h"

enum printer_form {
	PRINTER_TEXT,
	PRINTER_JSON,
};

struct printer_config {
	enum printer_form form;
	/* the rest is for text */
	struct event_time time;	 /* how times are printed */
	enum text_escape escape; /* what becomes of control characters */
	bool no_plugins;	 /* for tests: as if libtraceevent's plugins were not installed */
	bool by_libtraceevent;	 /* for tests: what would be compiled, too */
};

struct printer;

/**
 * printer_new() - Thread: main; loads libtraceevent's plugins, as trace-cmd does
 * @decoder: outlives the printer
 * Return: 0 or -ENOMEM.
 */
int printer_new(const struct decoder *decoder, const struct printer_config *config,
		struct printer **ret);

/**
 * printer_free() - Thread: main
 */
struct printer *printer_free(struct printer *printer);
DEFINE_CLEANUP(struct printer *, printer_free)

enum {
	PRINTER_E_ORDER = 1, /* nothing was appended */
};

/**
 * printer_put() - append the event's line (or lines) with the newline
 * @event: with its task
 * @ordered: this printer sees all events of its kind in their order
 *
 * The text of a few kinds of event depends on what was printed before (calls of functions are
 * indented, formats that do not parse change their mind), and plugins have static buffers. These
 * are refused with PRINTER_E_ORDER unless @ordered, which one printer of the process at a time may
 * be. Return: 0, PRINTER_E_ORDER, or -ENOMEM.
 */
int printer_put(struct printer *printer, const struct decode_event *event, bool ordered,
		struct text *out);

/* --- for tests */

/* Who makes the text of an event */
enum text_how {
	TEXT_UNKNOWN,	  /* nobody: no format, or none that can be trusted */
	TEXT_COMPILED,	  /* decode/print */
	TEXT_TEP,	  /* libtraceevent */
	TEXT_TEP_ORDERED, /* libtraceevent, and it depends on what it printed before */
};

struct tep_event;

/**
 * printer_how() - who prints the events of an id
 * @ret: the parsed format, if there is one
 */
enum text_how printer_how(struct printer *printer, uint32_t id, struct tep_event **ret);

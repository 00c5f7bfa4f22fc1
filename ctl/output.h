/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How results are shown: tables, a pager, colours - on a terminal; plain lines with tabs elsewhere;
 * or one JSON document. Main thread.
 */
#pragma once

#include <json-c/json.h>

#include "basic/macro.h"
#include "basic/out-file.h"
#include "ctl/ctl.h"
#include "decode/decoder.h"
#include "decode/text.h"

#define TABLE_COLUMNS_MAX 12

struct table {
	const char *headings[TABLE_COLUMNS_MAX];
	unsigned numbers; /* bit N: column N is one of numbers, to the right */
	unsigned shorten; /* likewise: its cells may lose their ends on a narrow terminal */
	unsigned tails;	  /* likewise: their beginnings */
	unsigned spare;	  /* likewise: may be left out there if all its cells are 0 or - */
	unsigned n_columns;
	char **cells; /* n_columns a row */
	size_t n_rows;
	int error;
};

/*
 * @cell: takes over a malloc'ed text, row by row, column by column; NULL: no memory. Control
 * characters are escaped.
 */
void table_add(struct table *table, char *cell);
void table_add_text(struct table *table, const char *text);
void table_add_number(struct table *table, uint64_t number);
void table_add_bytes(struct table *table, uint64_t bytes); /* "12.3M" */
void table_add_time(struct table *table, uint64_t usec);   /* local time; "-" for 0 */

/**
 * table_fit() - the width of each column
 * @screen: columns of the terminal. What has to be wider, names and numbers, is.
 * @ret: of columns that are left out: 0. Pure function.
 */
void table_fit(const struct table *table, unsigned screen, unsigned ret[TABLE_COLUMNS_MAX]);

/**
 * text_shorten() - to so many characters, with an ellipsis in the place of what is missing
 * @tail: keep the end
 * @ellipsis: "…", or "..." where there is none
 * Return: malloc'ed, NULL without memory.
 */
char *text_shorten(const char *text, unsigned width, bool tail, const char *ellipsis);

/* Characters of a UTF-8 text */
unsigned text_width(const char *text);

/**
 * table_print() - print and free; Return: 0 or negative errno.
 */
int table_print(struct table *table);
void table_done(struct table *table);

char *format_bytes(uint64_t bytes); /* "12.3M", malloc'ed */
char *format_time(uint64_t usec);   /* "2026-01-31 12:34:56.123", malloc'ed */
/* The same; on a terminal without its date if that is the one of @before */
char *format_time_after(uint64_t usec, uint64_t before);
char *format_timespan(uint64_t usec); /* "3h 12min", malloc'ed */

/**
 * output_begin() - on a terminal, all until output_end() goes through a pager if it has more lines
 * than that
 */
void output_begin(const struct ctl *ctl);
/* Return: CTL_DONE, or CTL_FAILED if not everything could be written */
enum ctl_status output_end(void);

/**
 * output_is_aligned() - is it for a terminal, where columns stand below each other?
 */
bool output_is_aligned(void);

/* Columns of the terminal; UINT_MAX: it is for none */
unsigned output_width(void);

/* Is it for a locale with UTF-8? */
bool output_is_utf8(void);

/**
 * output_screen() - for flyrecctl on the far side of ssh, whose standard output is a pipe to our
 * terminal: a value of SCREEN_VARIABLE
 * Return: malloc'ed; NULL: it is no terminal.
 */
char *output_screen(void);
#define SCREEN_VARIABLE "FLYRECCTL_SCREEN"

/**
 * output_escape() - what is to be done with control characters in events' texts
 * @fd: where they go
 */
enum text_escape output_escape(const struct ctl *ctl, int fd);

/* Log what is wrong with a file's formats */
void output_warnings(const struct decoder *decoder);

/* "\033[1m" and the like, or "" where there are no colours */
const char *style(const char *sequence);
#define STYLE_BOLD   "\033[1m"
#define STYLE_RED    "\033[31m"
#define STYLE_YELLOW "\033[33m"
#define STYLE_OFF    "\033[0m"

/* --- --output= of verbs that copy a trace.dat */

/**
 * output_open() - begin the file, or standard output without one
 * Return: CTL_DONE; CTL_FAILED or CTL_USAGE, after a line on standard error.
 */
enum ctl_status output_open(const struct ctl *ctl, struct out_file *ret);

/**
 * output_copy() - copy a file of flyrecd's there, a compressed one as version 6 unless --raw
 * @path: as flyrecd names it, or its name alone
 * @progress: as of copy_trace(); may be NULL
 * Return: 0; REWRITE_E_DAMAGED; or negative errno, after a line on standard error; as
 * output_publish().
 */
int output_copy(struct ctl *ctl, const char *session, const char *path, const struct out_file *to,
		void (*progress)(uint64_t done, uint64_t total));

/**
 * output_publish() - all is written
 */
int output_publish(const struct ctl *ctl, struct out_file *file);

/* --- JSON */

/**
 * print_json() - one document and a line end; consumes @object
 * @object: NULL: no memory. Return: CTL_DONE or CTL_FAILED, after a line on standard error.
 */
enum ctl_status print_json(struct json_object *object);

/**
 * put_json() - the same as a part of a document, with what follows it
 */
enum ctl_status put_json(struct json_object *object, const char *end);

/* {"KEY": @value} */
enum ctl_status print_json_member(const char *key, struct json_object *value);

/* json-c's, that tolerate NULL from a failed allocation */
void json_add(struct json_object *object, const char *key, struct json_object *value);
void json_append(struct json_object *array, struct json_object *value);
struct json_object *json_text(const char *text);
struct json_object *json_number(uint64_t number);
struct json_object *json_list(char *const *list);

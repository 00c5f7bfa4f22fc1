/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/strv.h"
#include "ctl/output.h"
#include "ctl/query-rows.h"
#include "decode/text.h"

#define FIT_ROWS  200U /* by these columns are made wide enough */
#define WIDTH_MAX 60U  /* of a column; what is longer moves those behind it */
#define GAP	  2U

struct rows {
	enum rows_form form;
	unsigned n; /* columns; 0: no statement has any yet */
	uint64_t n_rows;
	struct text line;

	/* ROWS_COLUMNS on a terminal */
	char **kept; /* the names and the first rows, until their widths are known */
	size_t n_kept;
	unsigned *widths; /* NULL: not known yet */
	bool *numbers;	  /* the column has nothing else */
};

struct rows *rows_new(enum rows_form form)
{
	struct rows *rows = calloc(1, sizeof(*rows));

	if (rows)
		rows->form = form;
	return rows;
}

static void forget(struct rows *rows)
{
	for (size_t i = 0; i < rows->n_kept; i++)
		free(rows->kept[i]);
	free(rows->kept);
	free(rows->widths);
	free(rows->numbers);
	rows->kept = NULL;
	rows->n_kept = 0;
	rows->widths = NULL;
	rows->numbers = NULL;
}

struct rows *rows_free(struct rows *rows)
{
	if (!rows)
		return NULL;
	forget(rows);
	text_done(&rows->line);
	free(rows);
	return NULL;
}

void rows_set_form(struct rows *rows, enum rows_form form)
{
	rows->form = form;
}

static int put_line(struct rows *rows)
{
	if (rows->line.no_memory)
		return -ENOMEM;
	(void)fwrite(rows->line.bytes, 1, rows->line.size, stdout);
	rows->line.size = 0;
	return ferror(stdout) ? -EIO : 0;
}

static void put_hex(struct text *out, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		text_char(out, "0123456789abcdef"[(unsigned char)bytes[i] >> 4]);
		text_char(out, "0123456789abcdef"[bytes[i] & 15]);
	}
}

/* --- columns */

/* One line without control characters; NULL without memory */
static char *shown(const struct query_cell *cell)
{
	struct text hex = {};
	char *text;

	if (cell->kind == CELL_NULL)
		return strdup("-");
	if (cell->kind == CELL_BLOB) {
		put_hex(&hex, cell->bytes, cell->size);
		text_char(&hex, '\0');
		if (!hex.no_memory)
			return hex.bytes;
		text_done(&hex);
		return NULL;
	}
	text = strndup(cell->bytes, cell->size);
	if (escape_replace(&text) >= 0)
		return text;
	free(text);
	return NULL;
}

static int put_cells(struct rows *rows, char *const *cells)
{
	for (unsigned i = 0; i < rows->n; i++) {
		const unsigned width = rows->widths ? rows->widths[i] : 0;
		const unsigned own = text_width(cells[i]), fill = own < width ? width - own : 0;
		const bool right = rows->widths && rows->numbers[i];

		if (right)
			text_fill(&rows->line, ' ', fill);
		text_string(&rows->line, cells[i]);
		if (i + 1 == rows->n)
			continue;
		if (!rows->widths)
			text_char(&rows->line, '\t');
		else
			text_fill(&rows->line, ' ', GAP + (right ? 0 : fill));
	}
	text_char(&rows->line, '\n');
	return put_line(rows);
}

static int put_kept(struct rows *rows)
{
	int r = 0;

	rows->widths = calloc(rows->n, sizeof(*rows->widths));
	if (!rows->widths)
		return -ENOMEM;
	for (size_t i = 0; i < rows->n_kept; i++) {
		unsigned *width = &rows->widths[i % rows->n];

		*width = MAX(*width, MIN(text_width(rows->kept[i]), WIDTH_MAX));
	}
	for (size_t i = 0; i < rows->n_kept && r >= 0; i += rows->n)
		r = put_cells(rows, rows->kept + i);
	for (size_t i = 0; i < rows->n_kept; i++)
		free(rows->kept[i]);
	rows->n_kept = 0;
	return r;
}

/* Takes over the text */
static int keep_cell(struct rows *rows, char *cell)
{
	char **more = NULL;

	if (cell)
		more = reallocarray(rows->kept, rows->n_kept + 1, sizeof(*more));
	if (!more) {
		free(cell);
		return -ENOMEM;
	}
	rows->kept = more;
	rows->kept[rows->n_kept++] = cell;
	return 0;
}

static char *heading(const char *name)
{
	char *text = strdup(name);

	if (escape_replace(&text) < 0) {
		free(text);
		return NULL;
	}
	for (char *p = text; text && *p; p++)
		*p = (char)toupper((unsigned char)*p);
	return text;
}

static int begin_columns(struct rows *rows, const char *const *names)
{
	int r = 0;

	forget(rows);
	rows->numbers = malloc(MAX(rows->n, 1U) * sizeof(*rows->numbers));
	if (!rows->numbers)
		return -ENOMEM;
	memset(rows->numbers, true, rows->n * sizeof(*rows->numbers));
	for (unsigned i = 0; i < rows->n && r >= 0; i++)
		r = keep_cell(rows, heading(names[i]));
	if (r < 0 || output_is_aligned())
		return r;
	r = put_cells(rows, rows->kept);
	for (size_t i = 0; i < rows->n_kept; i++)
		free(rows->kept[i]);
	rows->n_kept = 0;
	return r;
}

static int put_columns(struct rows *rows, const struct query_cell *cells)
{
	const size_t first = rows->n_kept;
	int r = 0;

	for (unsigned i = 0; i < rows->n && r >= 0; i++) {
		rows->numbers[i] &= cells[i].kind == CELL_INTEGER || cells[i].kind == CELL_REAL ||
				    cells[i].kind == CELL_NULL || rows->widths;
		r = keep_cell(rows, shown(&cells[i]));
	}
	if (r < 0 || (output_is_aligned() && !rows->widths && rows->n_rows < FIT_ROWS))
		return r;
	if (output_is_aligned() && !rows->widths)
		return put_kept(rows);
	r = put_cells(rows, rows->kept + first);
	for (size_t i = first; i < rows->n_kept; i++)
		free(rows->kept[i]);
	rows->n_kept = first;
	return r;
}

/* --- CSV */

static void put_csv_text(struct text *out, const char *bytes, size_t size)
{
	text_char(out, '"');
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '"')
			text_char(out, '"');
		text_char(out, bytes[i]);
	}
	text_char(out, '"');
}

/* An empty text has quotes, NULL has not */
static void put_csv(struct text *out, const char *bytes, size_t size)
{
	bool plain = size > 0;

	for (size_t i = 0; i < size && plain; i++)
		plain = !strchr(",\"\r\n", bytes[i]);
	if (plain)
		text_bytes(out, bytes, size);
	else
		put_csv_text(out, bytes, size);
}

static int put_csv_row(struct rows *rows, const struct query_cell *cells)
{
	for (unsigned i = 0; i < rows->n; i++) {
		if (i > 0)
			text_char(&rows->line, ',');
		if (cells[i].kind == CELL_BLOB) {
			put_hex(&rows->line, cells[i].bytes, cells[i].size);
		} else if (output_is_aligned() && cells[i].kind == CELL_TEXT) {
			_cleanup_free_ char *text = shown(&cells[i]);

			if (!text)
				return -ENOMEM;
			put_csv(&rows->line, text, strlen(text));
		} else if (cells[i].kind != CELL_NULL) {
			put_csv(&rows->line, cells[i].bytes, cells[i].size);
		}
	}
	text_char(&rows->line, '\n');
	return put_line(rows);
}

/* --- JSON */

static void put_json_cell(struct text *out, const struct query_cell *cell)
{
	switch (cell->kind) {
	case CELL_NULL:
		text_string(out, "null");
		break;
	case CELL_INTEGER:
		text_bytes(out, cell->bytes, cell->size);
		break;
	case CELL_REAL: /* "Inf" is none of JSON's */
		if (strpbrk(cell->bytes, "In"))
			text_string(out, "null");
		else
			text_bytes(out, cell->bytes, cell->size);
		break;
	case CELL_TEXT:
		text_json(out, cell->bytes, cell->size);
		break;
	case CELL_BLOB:
		text_char(out, '"');
		put_hex(out, cell->bytes, cell->size);
		text_char(out, '"');
		break;
	}
}

static int put_json_row(struct rows *rows, const struct query_cell *cells)
{
	text_string(&rows->line, rows->n_rows > 0 ? "," : "");
	text_char(&rows->line, '[');
	for (unsigned i = 0; i < rows->n; i++) {
		if (i > 0)
			text_char(&rows->line, ',');
		put_json_cell(&rows->line, &cells[i]);
	}
	text_char(&rows->line, ']');
	return put_line(rows);
}

/* --- all of them */

int rows_columns(void *userdata, const char *const *names, unsigned n)
{
	struct rows *rows = userdata;

	int r = rows->n > 0 ? rows_end(rows, true) : 0;

	if (r < 0)
		return r;
	rows->n = n;
	rows->n_rows = 0;
	if (rows->form == ROWS_COLUMNS)
		return begin_columns(rows, names);
	text_string(&rows->line, rows->form == ROWS_JSON ? "{\"columns\":[" : "");
	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			text_char(&rows->line, ',');
		if (rows->form == ROWS_JSON)
			text_json(&rows->line, names[i], strlen(names[i]));
		else
			put_csv(&rows->line, names[i], strlen(names[i]));
	}
	text_string(&rows->line, rows->form == ROWS_JSON ? "],\"rows\":[" : "\n");
	return put_line(rows);
}

int rows_row(void *userdata, const struct query_cell *cells, unsigned n)
{
	struct rows *rows = userdata;
	int r = 0;

	(void)n;
	switch (rows->form) {
	case ROWS_COLUMNS:
		r = put_columns(rows, cells);
		break;
	case ROWS_CSV:
		r = put_csv_row(rows, cells);
		break;
	case ROWS_JSON:
		r = put_json_row(rows, cells);
		break;
	}
	rows->n_rows++;
	return r;
}

int rows_end(struct rows *rows, bool whole)
{
	int r = 0;

	if (rows->n == 0)
		return 0;
	if (rows->form == ROWS_COLUMNS && rows->n_kept > 0)
		r = put_kept(rows);
	if (rows->form == ROWS_JSON) {
		text_string(&rows->line, whole ? "]}\n" : "\n");
		r = put_line(rows);
	}
	forget(rows);
	rows->n = 0;
	rows->n_rows = 0;
	return r;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/ini.h"

#define BOM "\xef\xbb\xbf"

struct reader {
	const char *file;
	const struct ini_handler *handler;
	void *userdata;
	char *section;	      /* NULL before the first header */
	bool section_unknown; /* its header could not be read */
	char *logical;	      /* the logical line so far: continued lines joined, NUL-terminated */
	size_t size, room;
	unsigned line; /* where it began */
	bool open;     /* it ends in a backslash: more follows */
	bool faulty;   /* a part of it was refused, and reported */
	bool failed;   /* there was a fault, and nobody to report it to */
};

static void fault(struct reader *r, unsigned line, const char *text)
{
	if (r->handler->on_fault)
		r->handler->on_fault(r->file, line, text, r->userdata);
	else
		r->failed = true;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* White space off both ends, in place */
static char *strip(char *text)
{
	size_t n;

	while (is_space(*text))
		text++;
	for (n = strlen(text); n > 0 && is_space(text[n - 1]); n--)
		;
	text[n] = '\0';
	return text;
}

/* Why a line cannot be text, or NULL */
static const char *not_text(const char *line, size_t size)
{
	for (size_t i = 0, n; i < size; i += n) {
		unsigned char c = (unsigned char)line[i];

		if (c == '\0')
			return "a NUL byte: this is not a text file";
		if (c == '\r')
			return "a carriage return in the middle of a line";
		if ((c < ' ' && c != '\t') || c == 0x7f)
			return "a control character";
		n = utf8_length(line + i, size - i);
		if (n == 0)
			return "not valid UTF-8";
	}
	return NULL;
}

/* An odd number of backslashes at the end: the last one is not itself escaped */
static bool is_continued(const char *text, size_t size)
{
	size_t n = 0;

	while (n < size && text[size - 1 - n] == '\\')
		n++;
	return n % 2 == 1;
}

const char *ini_bad_value(const char *value)
{
	size_t n = strlen(value);
	const char *why = strchr(value, '\t') ? "a control character" : not_text(value, n);

	if (why)
		return why;
	if (is_continued(value, n))
		return "a backslash at its end";
	return n > 0 && (is_space(value[0]) || is_space(value[n - 1]))
		       ? "white space at its beginning or end"
		       : NULL;
}

static int append(struct reader *r, const char *line, size_t size)
{
	if (r->room - r->size < size + 1) {
		size_t room = MAX(r->room * 2, r->size + size + 1);
		char *p = realloc(r->logical, room);

		if (!p)
			return -ENOMEM;
		r->logical = p;
		r->room = room;
	}
	memcpy(r->logical + r->size, line, size);
	r->size += size;
	r->logical[r->size] = '\0';
	return 0;
}

static int begin_section(struct reader *r, char *text)
{
	struct ini_entry entry = {.file = r->file, .line = r->line};
	size_t n = strlen(text);
	char *name;

	r->section_unknown = true;
	if (text[n - 1] != ']') {
		fault(r, r->line, "a section header must end in ']'");
		return 0;
	}
	if (n == 2 || strcspn(text + 1, "[]") != n - 2) {
		fault(r, r->line, "not a section header: a name in [brackets] is needed");
		return 0;
	}
	name = strndup(text + 1, n - 2);
	if (!name)
		return -ENOMEM;
	free(r->section);
	r->section = name;
	r->section_unknown = false;
	entry.section = name;
	return r->handler->on_entry(&entry, r->userdata);
}

static int assign(struct reader *r, char *text)
{
	struct ini_entry entry = {.file = r->file, .line = r->line, .section = r->section};
	char *equals = strchr(text, '=');

	if (!equals) {
		fault(r, r->line, "missing '='");
		return 0;
	}
	if (equals == text) {
		fault(r, r->line, "missing key before '='");
		return 0;
	}
	if (r->section_unknown)
		return 0;
	if (!r->section) {
		fault(r, r->line, "assignment before the first [Section]");
		return 0;
	}
	*equals = '\0';
	entry.key = strip(text);
	entry.value = strip(equals + 1);
	return r->handler->on_entry(&entry, r->userdata);
}

/* The logical line is complete */
static int finish_line(struct reader *r)
{
	char *text;
	int ret = 0;

	if (!r->faulty && r->size > 0) {
		text = strip(r->logical);
		if (*text == '[')
			ret = begin_section(r, text);
		else if (*text)
			ret = assign(r, text);
	}
	r->size = 0;
	r->open = false;
	r->faulty = false;
	return ret;
}

/* One line of the file, without its line end */
static int take_line(struct reader *r, unsigned number, const char *line, size_t size)
{
	const char *why;
	size_t indent = 0;
	int ret;

	while (indent < size && is_space(line[indent]))
		indent++;
	/* what a comment says is nobody's business, in whatever encoding */
	if (indent < size && (line[indent] == '#' || line[indent] == ';') &&
	    !memchr(line, '\0', size))
		return 0;
	why = not_text(line, size);
	if (why)
		fault(r, number, why);
	if (!r->open)
		r->line = number;
	r->open = is_continued(line, size);
	if (why)
		r->faulty = true;
	if (!r->faulty) {
		ret = append(r, line, size);
		if (ret < 0)
			return ret;
		if (r->open)
			r->logical[r->size - 1] = ' ';
	}
	return r->open ? 0 : finish_line(r);
}

int ini_parse(const char *file, const char *data, size_t size, const struct ini_handler *handler,
	      void *userdata)
{
	struct reader r = {.file = file, .handler = handler, .userdata = userdata};
	unsigned number = 0;
	int ret = 0;

	if (size >= strlen(BOM) && memcmp(data, BOM, strlen(BOM)) == 0) {
		data += strlen(BOM);
		size -= strlen(BOM);
	}
	while (size > 0 && ret >= 0 && !r.failed) {
		const char *end = memchr(data, '\n', size);
		size_t n = end ? (size_t)(end - data) : size;
		size_t whole = end ? n + 1 : n;

		if (n > 0 && data[n - 1] == '\r')
			n--;
		ret = take_line(&r, ++number, data, n);
		data += whole;
		size -= whole;
	}
	if (ret >= 0 && r.open) /* the file ends in a backslash: what there is counts */
		ret = finish_line(&r);
	if (ret >= 0 && r.failed)
		ret = -EBADMSG;
	free(r.section);
	free(r.logical);
	return ret < 0 ? ret : 0;
}

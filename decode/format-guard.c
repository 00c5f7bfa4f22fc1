/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "basic/macro.h"
#include "decode/format-guard.h"

/* In brackets: what kernels have */
#define MAX_WIDTH	4096U	    /* of a conversion, and its precision [64] */
#define MAX_DEPTH	32U	    /* of brackets [14] */
#define MAX_OPERATORS	1024U	    /* and brackets between two commas [139]: each is a recursion */
#define MAX_CONVERSIONS 512U	    /* [25] */
#define MAX_SIZE	(256 * KIB) /* [6 KiB]; joining string literals takes time by its square */

struct guard {
	char *at;
	const char *fields, *print; /* of an event; NULL: of none */
	unsigned depth, operators, conversions;
	const char *why;
};

static void refuse(struct guard *g, const char *why)
{
	if (!g->why)
		g->why = why;
}

/* From behind a '%' to the letter; libtraceevent takes flags and digits in any order */
static const char *check_conversion(struct guard *g, const char *p, const char *end)
{
	unsigned n = 0;

	for (; p < end && *p && strchr("#+- .*hlLzZqtj0123456789", *p); p++) {
		n = isdigit((unsigned char)*p) ? 10 * n + (unsigned)(*p - '0') : 0;
		if (n > MAX_WIDTH) {
			refuse(g, "a width or precision above 4096");
			return p;
		}
	}
	if (++g->conversions > MAX_CONVERSIONS)
		refuse(g, "more than 512 conversions");
	return p < end && *p == '%' ? p + 1 : p; /* "%%" */
}

static void check_string(struct guard *g, const char *p, const char *end)
{
	while (p < end && (p = memchr(p, '%', (size_t)(end - p))))
		p = check_conversion(g, p + 1, end);
}

/* A literal as libtraceevent reads it: up to the same quote, a backslash takes the next along */
static void skip_literal(struct guard *g)
{
	const char quote = *g->at, *begin = ++g->at;

	for (; *g->at && *g->at != quote; g->at++)
		if (*g->at == '\\' && g->at[1])
			g->at++;
	check_string(g, begin, g->at);
	if (*g->at)
		g->at++;
}

static bool take_word(const char **p, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*p, word, n) != 0 || isalnum((unsigned char)(*p)[n]) || (*p)[n] == '_')
		return false;
	*p += n;
	*p += strspn(*p, " ");
	return true;
}

/*
 * Behind "sizeof(": the sizes of types are harmless. Of int and long long, libtraceevent 1.7 goes
 * on with a token that it has freed: it gets the number.
 */
static char size_of_type(const char **p)
{
	static const char *const sized[] = {"u8",    "s8",    "u16",   "s16",  "u32",	"s32",
					    "u64",   "s64",   "__u8",  "__s8", "__u16", "__s16",
					    "__u32", "__s32", "__u64", "__s64"};
	bool is_unsigned;

	for (size_t i = 0; i < ARRAY_SIZE(sized); i++)
		if (take_word(p, sized[i]))
			return ' '; /* as it is */
	is_unsigned = take_word(p, "unsigned");
	if (take_word(p, "int"))
		return '4';
	if (take_word(p, "long"))
		return take_word(p, "long") ? '8' : ' ';
	return is_unsigned ? ' ' : '\0';
}

static void check_sizeof(struct guard *g, char *word)
{
	const char *p = g->at + strspn(g->at, " ");
	char number = '\0';

	if (*p == '(') {
		p++;
		p += strspn(p, " ");
		number = size_of_type(&p);
	}
	if (!number || *p != ')') {
		refuse(g, "a sizeof of something that is no basic type");
		return;
	}
	p++;
	if (number != ' ') {
		memset(word, ' ', (size_t)(p - word));
		*word = number;
	}
	g->at = word + (p - word);
}

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* "field:TYPE NAME;" or "field:TYPE NAME[N];" */
static bool has_field(const struct guard *g, const char *name, size_t size)
{
	static const char begin[] = "field:";

	for (const char *p = g->fields; (p = strstr(p, begin)) && p < g->print;) {
		const char *end = p + strcspn(p, "[;\n");

		if (*end == '[' && end[1] == ']' && end[2] == ' ') /* __data_loc char[] NAME */
			end = p + strcspn(p, ";\n");
		while (end > p && end[-1] == ' ')
			end--;
		p += sizeof(begin) - 1;
		if (end - p > (ptrdiff_t)size && strncmp(end - size, name, size) == 0 &&
		    !is_of_word(end[-(ptrdiff_t)size - 1]))
			return true;
	}
	return false;
}

/*
 * Behind "REC": libtraceevent marks the next field behind __print_flags() and __print_symbolic(),
 * also of another format where this one ends early, and takes it for granted that there is one.
 */
static void check_field(struct guard *g)
{
	const char *p = g->at + strspn(g->at, " \t\n"), *name;

	if (strncmp(p, "->", 2) != 0)
		return;
	name = p + 2 + strspn(p + 2, " \t\n");
	for (p = name; is_of_word(*p); p++)
		;
	if (!has_field(g, name, (size_t)(p - name)))
		refuse(g, "a field that the event does not have");
}

/*
 * Behind the name of a function that a plugin defines and that reads where its pointer says:
 * kernels give it nothing but a dynamic array, with a cast before it or not.
 */
static void check_pointer(struct guard *g)
{
	const char *p = g->at + strspn(g->at, " ");

	p += *p == '(';
	if (take_word(&p, "p") && *p == ',') /* the buffer that the kernel formats into */
		p++;
	p += strspn(p, " ");
	if (*p == '(')
		p += strcspn(p, ")") + 1 - (strchr(p, ')') == NULL);
	p += strspn(p, " ");
	if (take_word(&p, "__get_dynamic_array") && *p == '(') {
		p += strcspn(p, ")");
		p += *p == ')';
		p += strspn(p, " ");
		if (*p == ',' || *p == ')')
			return;
	}
	refuse(g, "a pointer that is none into the record");
}

static bool is_of_pointer(const char *word, size_t size)
{
	static const char *const names[] = {"__le16_to_cpup", "scsi_trace_parse_cdb"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == size && strncmp(word, names[i], size) == 0)
			return true;
	return false;
}

static void skip_word(struct guard *g)
{
	char *word = g->at;

	while (is_of_word(*g->at))
		g->at++;
	if (g->at - word == 6 && strncmp(word, "sizeof", 6) == 0)
		check_sizeof(g, word);
	else if (g->print && word > g->print && g->at - word == 3 && strncmp(word, "REC", 3) == 0)
		check_field(g);
	else if (g->print && word > g->print && is_of_pointer(word, (size_t)(g->at - word)))
		check_pointer(g);
}

static void take_sign(struct guard *g)
{
	char c = *g->at++;

	if (strchr(",;\n", c)) {
		g->operators = 0;
		return;
	}
	if (!strchr("([{}])?:|&+-*/%<>=!~", c))
		return;
	if (strchr("([{", c) && ++g->depth > MAX_DEPTH)
		refuse(g, "brackets nested more than 32 deep");
	if (strchr(")]}", c) && g->depth > 0)
		g->depth--;
	if (++g->operators > MAX_OPERATORS)
		refuse(g, "an expression of more than 1024 operators");
}

static const char *check(char *text)
{
	struct guard g = {.at = text, .fields = text, .print = strstr(text, "\nprint fmt:")};

	while (*g.at && !g.why) {
		if (g.at - text > (ptrdiff_t)MAX_SIZE)
			refuse(&g, "longer than 256 KiB");
		else if (*g.at == '"' || *g.at == '\'')
			skip_literal(&g);
		else if (is_of_word(*g.at))
			skip_word(&g);
		else
			take_sign(&g);
	}
	return g.why;
}

void format_guard(char *text, const char **ret_why)
{
	*ret_why = check(text);
	if (*ret_why)
		format_guard_fields(text);
}

void format_guard_fields(char *text)
{
	char *print = strstr(text, "\nprint fmt:");

	if (print)
		print[1] = '\0';
	if (check(text))
		text[0] = '\0';
}

const char *format_guard_string(const char *text)
{
	struct guard g = {};

	check_string(&g, text, text + strlen(text));
	return g.why;
}

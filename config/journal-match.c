/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/strv.h"
#include "config/journal-match.h"

#define CAPITALS      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define SMALL	      "abcdefghijklmnopqrstuvwxyz"
#define DIGITS	      "0123456789"
#define NAME_MAX_SIZE 64U /* JOURNAL_FIELD_NAME_MAX of systemd */
#define ID_SIZE	      32U

static bool is_alternative(const char *term)
{
	return strcmp(term, "+") == 0;
}

/* Up to and with the "=" */
static size_t field_size(const char *term)
{
	return strcspn(term, "=") + 1;
}

static bool same_field(const char *a, const char *b)
{
	return field_size(a) == field_size(b) && memcmp(a, b, field_size(a)) == 0;
}

static bool is_field(const char *term, const char *name)
{
	return strncmp(term, name, strlen(name)) == 0 && term[strlen(name)] == '=';
}

static int check_name(const char *term, size_t size, struct fault *why)
{
	size_t capitals = strspn(term, CAPITALS DIGITS "_");

	if (strncmp(term, "__", 2) == 0)
		return fault_set(why, -EINVAL,
				 "%.*s is where an entry is, not a field of it, and cannot be "
				 "matched",
				 (int)size, term);
	if (size > 0 && capitals < size && strspn(term, CAPITALS SMALL DIGITS "_") >= size)
		return fault_set(why, -EINVAL,
				 "%.*s is no field, their names are all capitals, as in "
				 "_SYSTEMD_UNIT",
				 (int)size, term);
	if (size == 0 || size > NAME_MAX_SIZE || capitals < size || strchr(DIGITS, *term))
		return fault_set(why, -EINVAL,
				 "\"%.*s\" is no field: a name is capitals, digits and '_', at "
				 "most %u of them, and does not begin with a digit",
				 (int)size, term, NAME_MAX_SIZE);
	return 0;
}

static int check_value(const char *term, const char *value, struct fault *why)
{
	static const char *const units[] = {"_SYSTEMD_UNIT", "_SYSTEMD_USER_UNIT", "UNIT"};

	if (!*value)
		return fault_set(why, -EINVAL, "the value after %s is missing", term);
	if (is_field(term, "PRIORITY") && (!strchr("01234567", *value) || value[1]))
		return fault_set(why, -EINVAL,
				 "PRIORITY is 0 to 7, as in PRIORITY=3 for errors; give one term "
				 "for each that is wanted");
	if (is_field(term, "MESSAGE_ID") &&
	    (strlen(value) != ID_SIZE || strspn(value, DIGITS "abcdef") != ID_SIZE))
		return fault_set(why, -EINVAL,
				 "MESSAGE_ID is %u digits 0-9 and a-f without '-', as in "
				 "MESSAGE_ID=fc2e22bc6ee647b6b90729ab34a250b1",
				 ID_SIZE);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (is_field(term, units[i]) && strpbrk(value, "*?[/ "))
			return fault_set(why, -EINVAL,
					 "%s: not the name of a unit; the journal has no patterns, "
					 "only whole values",
					 term);
	return 0;
}

static int check_term(const char *term, struct fault *why)
{
	size_t size = strcspn(term, "=");
	int r;

	if (strlen(term) > JOURNAL_TERM_MAX)
		return fault_set(why, -EINVAL, "a term has at most %d bytes", JOURNAL_TERM_MAX);
	if (*term == '/')
		return fault_set(why, -EINVAL, "must be FIELD=VALUE; for a program, _EXE=%s", term);
	if (!term[size])
		return fault_set(why, -EINVAL,
				 "\"%s\" must be FIELD=VALUE, as in PRIORITY=3; a value with "
				 "blanks is quoted, as in \"MESSAGE=Out of memory\"",
				 term);
	r = check_name(term, size, why);
	return r < 0 ? r : check_value(term, term + size + 1, why);
}

/* One term, of which parts may be quoted: *@text is moved behind it. Return: 0, -EINVAL: a quote is
 * not closed, or -ENOMEM. */
static int take_term(const char **text, char **ret)
{
	char *term = malloc(strlen(*text) + 1), *to = term, quote = '\0';

	if (!term)
		return -ENOMEM;
	for (; **text && (quote || **text != ' '); (*text)++) {
		if (quote ? **text == quote : **text == '"' || **text == '\'')
			quote = quote ? '\0' : **text;
		else
			*to++ = **text;
	}
	*to = '\0';
	if (quote) {
		free(term);
		return -EINVAL;
	}
	*ret = term;
	return 0;
}

static int check_alternative(const char *before, const char *rest, struct fault *why)
{
	if (before && !is_alternative(before) && rest[strspn(rest, " ")])
		return 0;
	return fault_set(why, -EINVAL, "'+' must stand between two terms");
}

int journal_match_parse(const char *text, char ***ret, struct fault *why)
{
	_cleanup_(strv_freep) char **terms = NULL;
	size_t n = 0;

	while (text += strspn(text, " "), *text) {
		_cleanup_free_ char *term = NULL;
		int r = take_term(&text, &term);

		if (r == -EINVAL)
			return fault_set(why, r, "a quote is not closed");
		if (r >= 0 && is_alternative(term))
			r = check_alternative(n > 0 ? terms[n - 1] : NULL, text, why);
		else if (r >= 0)
			r = check_term(term, why);
		if (r >= 0 && n == JOURNAL_TERMS)
			r = fault_set(why, -EINVAL, "more than %u terms", JOURNAL_TERMS);
		if (r >= 0)
			r = strv_append(&terms, term);
		if (r < 0)
			return r;
		n++;
	}
	*ret = TAKE_PTR(terms);
	return 0;
}

/* Does one of the terms of @field hold, of those from @begin to the next "+"? */
static bool field_holds(char *const *begin, const bool *found, const char *field)
{
	for (size_t i = 0; begin[i] && !is_alternative(begin[i]); i++)
		if (found[i] && same_field(begin[i], field))
			return true;
	return false;
}

bool journal_match_holds(char *const *terms, const bool *found)
{
	while (terms && *terms) {
		bool holds = true;
		size_t n = 0;

		for (; terms[n] && !is_alternative(terms[n]); n++)
			holds = holds && field_holds(terms, found, terms[n]);
		if (holds)
			return true;
		n += terms[n] != NULL;
		terms += n;
		found += n;
	}
	return false;
}

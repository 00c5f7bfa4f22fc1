/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kinds of configuration values that are words and strings, and lists of them.
 */
#include <errno.h>
#include <string.h>

#include "basic/strv.h"
#include "config/config-keys.h"
#include "config/config-value.h"

#define FIELD(type, key, object) ((type *)value_field(key, object))

/* --- choices */

static const struct choice *find_choice(const struct config_key *key, const char *text,
					struct fault *why)
{
	_cleanup_free_ char *words = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	size_t size = 0;

	for (const struct choice *c = key->choices; c->word; c++)
		if (strcmp(c->word, text) == 0)
			return c;

	f = open_memstream(&words, &size);
	if (!f)
		return NULL;
	for (const struct choice *c = key->choices; c->word; c++)
		if (c == key->choices || c->value != c[-1].value)
			(void)fprintf(f, "%s%s", c == key->choices ? "" : ", ", c->word);
	(void)fflush(f);
	(void)value_refuse(why, "must be one of %s", words);
	return NULL;
}

static int choice_parse(const struct config_key *key, void *object, const char *text,
			struct fault *why)
{
	const struct choice *c = find_choice(key, text, why);

	if (!c)
		return why->error ? why->error : -ENOMEM;
	*FIELD(int, key, object) = c->value;
	return 0;
}

static void choice_clear(const struct config_key *key, void *object)
{
	*FIELD(int, key, object) = 0;
}

static int choice_copy(const struct config_key *key, const void *from, void *to)
{
	*FIELD(int, key, to) = *FIELD(int, key, from);
	return 0;
}

static void choice_print(const struct config_key *key, const void *object, FILE *f)
{
	const struct choice *c = key->choices;

	while (c->value != *FIELD(int, key, object))
		c++;
	(void)fprintf(f, "%s=%s\n", key->name, c->word);
}

const struct value_kind value_choice = {
	.parse = choice_parse,
	.clear = choice_clear,
	.copy = choice_copy,
	.print = choice_print,
};

/* --- strings */

static int string_parse(const struct config_key *key, void *object, const char *text,
			struct fault *why)
{
	int r = key->check ? key->check(text, object, why) : 0;

	return r < 0 ? r : strv_set(FIELD(char *, key, object), text);
}

static int word_parse(const struct config_key *key, void *object, const char *text,
		      struct fault *why)
{
	const struct choice *c = find_choice(key, text, why);

	if (!c)
		return why->error ? why->error : -ENOMEM;
	return strv_set(FIELD(char *, key, object), c->word);
}

static void string_clear(const struct config_key *key, void *object)
{
	char **field = FIELD(char *, key, object);

	free(*field);
	*field = NULL;
}

static int string_copy(const struct config_key *key, const void *from, void *to)
{
	const char *text = *FIELD(char *, key, from);

	return strv_set(FIELD(char *, key, to), text);
}

static void string_print(const struct config_key *key, const void *object, FILE *f)
{
	const char *text = *FIELD(char *, key, object);

	(void)fprintf(f, "%s=%s\n", key->name, text ? text : "");
}

const struct value_kind value_string = {
	.parse = string_parse,
	.clear = string_clear,
	.copy = string_copy,
	.print = string_print,
};

const struct value_kind value_word = {
	.parse = word_parse,
	.clear = string_clear,
	.copy = string_copy,
	.print = string_print,
};

/* --- lists */

/* A string given again moves to the end: of contradicting words the last one counts */
static int add_string(const struct config_key *key, void *object, const char *text,
		      struct fault *why)
{
	char ***field = FIELD(char **, key, object);
	int r;

	strv_remove(*field, text);
	r = key->check ? key->check(text, object, why) : 0;
	return r < 0 ? r : strv_append(field, text);
}

static int lines_parse(const struct config_key *key, void *object, const char *text,
		       struct fault *why)
{
	_cleanup_free_ char *line = NULL;
	int r = value_squeeze(text, &line);

	return r < 0 ? r : add_string(key, object, line, why);
}

static int words_parse(const struct config_key *key, void *object, const char *text,
		       struct fault *why)
{
	_cleanup_free_ char *copy = strdup(text);
	char *state = NULL;

	if (!copy)
		return -ENOMEM;
	for (char *w = strtok_r(copy, " \t", &state); w; w = strtok_r(NULL, " \t", &state)) {
		int r = add_string(key, object, w, why);

		if (r < 0)
			return r;
	}
	return 0;
}

static void list_clear(const struct config_key *key, void *object)
{
	char ***field = FIELD(char **, key, object);

	strv_free(*field);
	*field = NULL;
}

static int list_copy(const struct config_key *key, const void *from, void *to)
{
	return strv_copy(*FIELD(char **, key, from), FIELD(char **, key, to));
}

static void list_print(const struct config_key *key, const void *object, FILE *f)
{
	STRV_FOREACH (s, *FIELD(char **, key, object))
		(void)fprintf(f, "%s=%s\n", key->name, *s);
}

const struct value_kind value_lines = {
	.is_list = true,
	.parse = lines_parse,
	.clear = list_clear,
	.copy = list_copy,
	.print = list_print,
};

const struct value_kind value_words = {
	.is_list = true,
	.parse = words_parse,
	.clear = list_clear,
	.copy = list_copy,
	.print = list_print,
};

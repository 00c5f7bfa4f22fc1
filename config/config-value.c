/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "basic/parse.h"
#include "basic/strv.h"
#include "config/config-keys.h"
#include "config/config-value.h"
#include "config/post.h"
#include "writer/storage-config.h"

/* Fields are as the comments in the header say; each key's offset points to one of its kind */
#define FIELD(type, key, object) ((type *)value_field(key, object))

void *value_field(const struct config_key *key, const void *object)
{
	return (char *)object + key->offset;
}

int value_refuse(struct fault *why, const char *format, ...)
{
	va_list ap;

	why->error = -EINVAL;
	va_start(ap, format);
	(void)vsnprintf(why->text, sizeof(why->text), format, ap);
	va_end(ap);
	return -EINVAL;
}

int value_init(const struct config_key *key, void *object)
{
	struct fault why = {};

	key->kind->clear(key, object);
	return key->fallback ? key->kind->parse(key, object, key->fallback, &why) : 0;
}

int value_reset(const struct config_key *key, void *object, const void *defaults)
{
	key->kind->clear(key, object);
	return key->kind->is_list ? 0 : key->kind->copy(key, defaults, object);
}

int value_squeeze(const char *text, char **ret)
{
	char *copy = malloc(strlen(text) + 1), *to = copy, quote = '\0';

	if (!copy)
		return -ENOMEM;
	for (; *text; text++) {
		if (quote)
			quote = *text == quote ? '\0' : quote;
		else if (*text == '"' || *text == '\'')
			quote = *text;
		if (quote || (*text != ' ' && *text != '\t'))
			*to++ = *text;
		else if (to > copy && to[-1] != ' ')
			*to++ = ' ';
	}
	while (to > copy && to[-1] == ' ')
		to--;
	*to = '\0';
	*ret = copy;
	return 0;
}

/* --- plain numbers: of the size that their kind says */

static void number_clear(const struct config_key *key, void *object)
{
	memset(value_field(key, object), 0, key->kind->size);
}

static int number_copy(const struct config_key *key, const void *from, void *to)
{
	memcpy(value_field(key, to), value_field(key, from), key->kind->size);
	return 0;
}

static int number_parse(const struct config_key *key, void *object, const char *text,
			struct fault *why)
{
	uint64_t n;
	int r = parse_u64(text, &n);

	if (r == -EINVAL)
		return value_refuse(why, "not a number");
	if (r < 0 || n < key->min || n > key->max)
		return value_refuse(why, "out of range, must be %" PRIu64 " to %" PRIu64, key->min,
				    key->max);
	if (key->kind->size == sizeof(unsigned))
		*FIELD(unsigned, key, object) = (unsigned)n;
	else
		*FIELD(uint64_t, key, object) = n;
	return 0;
}

static void number_print(const struct config_key *key, const void *object, FILE *f)
{
	(void)fprintf(f, "%s=%" PRIu64 "\n", key->name,
		      key->kind->size == sizeof(unsigned) ? *FIELD(unsigned, key, object)
							  : *FIELD(uint64_t, key, object));
}

const struct value_kind value_unsigned = {
	.size = sizeof(unsigned),
	.parse = number_parse,
	.clear = number_clear,
	.copy = number_copy,
	.print = number_print,
};

const struct value_kind value_u64 = {
	.size = sizeof(uint64_t),
	.parse = number_parse,
	.clear = number_clear,
	.copy = number_copy,
	.print = number_print,
};

/* --- bool */

static int bool_parse(const struct config_key *key, void *object, const char *text,
		      struct fault *why)
{
	if (parse_bool(text, FIELD(bool, key, object)) < 0)
		return value_refuse(why, "not a boolean, yes or no");
	return 0;
}

static void bool_print(const struct config_key *key, const void *object, FILE *f)
{
	(void)fprintf(f, "%s=%s\n", key->name, *FIELD(bool, key, object) ? "yes" : "no");
}

const struct value_kind value_bool = {
	.size = sizeof(bool),
	.parse = bool_parse,
	.clear = number_clear,
	.copy = number_copy,
	.print = bool_print,
};

/* --- percent */

static int percent_parse(const struct config_key *key, void *object, const char *text,
			 struct fault *why)
{
	int r = parse_percent(text, FIELD(unsigned, key, object));

	if (r == -ERANGE)
		return value_refuse(why, "out of range, must be 0 to 100");
	return r < 0 ? value_refuse(why, "not a percentage") : 0;
}

const struct value_kind value_percent = {
	.size = sizeof(unsigned),
	.parse = percent_parse,
	.clear = number_clear,
	.copy = number_copy,
	.print = number_print,
};

static int share_parse(const struct config_key *key, void *object, const char *text,
		       struct fault *why)
{
	unsigned percent = 0, hundredths = 0;
	const char *p = text;

	if (!isdigit((unsigned char)*p))
		return value_refuse(why, "not a percentage");
	for (; isdigit((unsigned char)*p) && percent <= 100; p++)
		percent = percent * 10 + (unsigned)(*p - '0');
	if (*p == '.') {
		p++;
		for (unsigned place = 10; isdigit((unsigned char)*p) && place > 0; place /= 10)
			hundredths += (unsigned)(*p++ - '0') * place;
	}
	if (*p == '%')
		p++;
	if (*p && percent <= 100)
		return value_refuse(why,
				    "not a percentage, with two places behind the point at most");
	if (percent * 100 + hundredths > 10000)
		return value_refuse(why, "out of range, must be 0 to 100");
	*FIELD(unsigned, key, object) = percent * 100 + hundredths;
	return 0;
}

static void share_print(const struct config_key *key, const void *object, FILE *f)
{
	unsigned share = *FIELD(unsigned, key, object);

	(void)fprintf(f, "%s=%u.%02u%%\n", key->name, share / 100, share % 100);
}

const struct value_kind value_share = {
	.size = sizeof(unsigned),
	.parse = share_parse,
	.clear = number_clear,
	.copy = number_copy,
	.print = share_print,
};

/* NULL: it is none of the key's choices, or there are none */
static const struct choice *find_word(const struct config_key *key, const char *text)
{
	for (const struct choice *c = key->choices; c && c->word; c++)
		if (strcmp(c->word, text) == 0)
			return c;
	return NULL;
}

/* --- uint64_t: sizes, times */

static int size_parse(const struct config_key *key, void *object, const char *text,
		      struct fault *why)
{
	const struct choice *word = find_word(key, text);
	uint64_t n;
	int r;

	if (word) {
		*FIELD(uint64_t, key, object) = (uint64_t)word->value;
		return 0;
	}
	r = parse_size(text, &n);
	if (r == -EINVAL)
		return value_refuse(why, "not a size, a number of bytes or with K, M, G or T%s%s",
				    key->choices ? ", nor " : "",
				    key->choices ? key->choices->word : "");
	if (r < 0 || n > key->max)
		return value_refuse(why, "too large, must be at most %" PRIu64 " bytes", key->max);
	if (n < key->min)
		return value_refuse(why, "too small, must be at least %" PRIu64 " bytes", key->min);
	if (key->check) {
		r = key->check(text, object, why);
		if (r < 0)
			return r;
	}
	*FIELD(uint64_t, key, object) = n;
	return 0;
}

static int time_parse(const struct config_key *key, void *object, const char *text,
		      struct fault *why)
{
	uint64_t n;
	int r = parse_time(text, &n);

	if (r == -EINVAL)
		return value_refuse(why, "not a time span, a number of seconds or with us, ms, s, "
					 "min, h, d or w");
	if (r < 0 || n > key->max)
		return value_refuse(why, "too long, must be at most %llus",
				    (unsigned long long)key->max / USEC_PER_SEC);
	if (n < key->min)
		return value_refuse(why, "too short, must be at least %" PRIu64 "ms",
				    key->min / 1000);
	*FIELD(uint64_t, key, object) = n;
	return 0;
}

static void size_auto_clear(const struct config_key *key, void *object)
{
	*FIELD(uint64_t, key, object) = STORAGE_DEFAULT;
}

/* What is not set, and could not be set so, is printed as what sets it so */
static void size_print(const struct config_key *key, const void *object, FILE *f)
{
	uint64_t n = *FIELD(uint64_t, key, object);

	for (const struct choice *c = key->choices; c && c->word; c++)
		if (n == (uint64_t)c->value) {
			(void)fprintf(f, "%s=%s\n", key->name, c->word);
			return;
		}
	if (n == STORAGE_DEFAULT)
		(void)fprintf(f, "%s=\n", key->name);
	else
		number_print(key, object, f);
}

static void time_print(const struct config_key *key, const void *object, FILE *f)
{
	(void)fprintf(f, "%s=%" PRIu64 "us\n", key->name, *FIELD(uint64_t, key, object));
}

const struct value_kind value_size = {
	.size = sizeof(uint64_t),
	.parse = size_parse,
	.clear = number_clear,
	.copy = number_copy,
	.print = size_print,
};

const struct value_kind value_size_auto = {
	.size = sizeof(uint64_t),
	.parse = size_parse,
	.clear = size_auto_clear,
	.copy = number_copy,
	.print = size_print,
};

const struct value_kind value_time = {
	.size = sizeof(uint64_t),
	.parse = time_parse,
	.clear = number_clear,
	.copy = number_copy,
	.print = time_print,
};

/* --- choices */

static const struct choice *find_choice(const struct config_key *key, const char *text,
					struct fault *why)
{
	const struct choice *found = find_word(key, text);
	_cleanup_free_ char *words = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	size_t size = 0;

	if (found)
		return found;
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

static void choice_print(const struct config_key *key, const void *object, FILE *f)
{
	const struct choice *c = key->choices;

	while (c->value != *FIELD(int, key, object))
		c++;
	(void)fprintf(f, "%s=%s\n", key->name, c->word);
}

const struct value_kind value_choice = {
	.size = sizeof(int),
	.parse = choice_parse,
	.clear = number_clear,
	.copy = number_copy,
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

/* @suffix: of each word */
static int add_words(const struct config_key *key, void *object, char *text, const char *suffix,
		     struct fault *why)
{
	char *state = NULL;

	for (char *w = strtok_r(text, " \t", &state); w; w = strtok_r(NULL, " \t", &state)) {
		_cleanup_free_ char *word = strf("%s%s", w, suffix);
		int r = word ? add_string(key, object, word, why) : -ENOMEM;

		if (r < 0)
			return r;
	}
	return 0;
}

static int words_parse(const struct config_key *key, void *object, const char *text,
		       struct fault *why)
{
	_cleanup_free_ char *copy = strdup(text);

	return copy ? add_words(key, object, copy, "", why) : -ENOMEM;
}

static int patterns_parse(const struct config_key *key, void *object, const char *text,
			  struct fault *why)
{
	_cleanup_free_ char *line = NULL, *words = NULL;
	uint64_t post_usec;
	int r = value_squeeze(text, &line);

	if (r >= 0)
		r = post_split(line, &words, &post_usec, why);
	/* The line continues with its " post=TIME", or ends */
	return r < 0 ? r : add_words(key, object, words, line + strlen(words), why);
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

const struct value_kind value_patterns = {
	.is_list = true,
	.parse = patterns_parse,
	.clear = list_clear,
	.copy = list_copy,
	.print = list_print,
};

/* --- CPUs */

static int cpus_parse(const struct config_key *key, void *object, const char *text,
		      struct fault *why)
{
	char **field = FIELD(char *, key, object), *cpus;
	struct cpu_list list, before;
	int r = parse_cpu_list(text, &list);

	if (r == -ERANGE)
		return value_refuse(why, "a CPU number is out of range, must be 0 to %d",
				    CPU_LIST_MAX - 1);
	if (r < 0)
		return value_refuse(why, "not a list of CPUs, as in 0-3,8");
	if (*field && parse_cpu_list(*field, &before) >= 0)
		for (size_t i = 0; i < ARRAY_SIZE(list.bits); i++)
			list.bits[i] |= before.bits[i];
	r = cpu_list_format(&list, &cpus);
	if (r < 0)
		return r;
	free(*field);
	*field = cpus;
	return 0;
}

static void cpus_print(const struct config_key *key, const void *object, FILE *f)
{
	if (*FIELD(char *, key, object))
		string_print(key, object, f);
}

const struct value_kind value_cpus = {
	.is_list = true,
	.parse = cpus_parse,
	.clear = string_clear,
	.copy = string_copy,
	.print = cpus_print,
};

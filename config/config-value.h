/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kinds of values a configuration key can have: how each is read, forgotten, copied and printed
 * in its canonical form. A key of the table (config/config-keys.h) names its kind and where in the
 * configuration object the value lives. Main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"
#include "basic/macro.h"

struct config_key;

/* @object: the struct session_config or struct daemon_config that holds the field */
struct value_kind {
	size_t size;  /* of the field, of numbers and choices */
	bool is_list; /* assignments add up; "" empties it, where for others "" is the default */
	/* 0, -EINVAL with the reason in @why, or -ENOMEM; a list may then hold a part of it */
	int (*parse)(const struct config_key *key, void *object, const char *text,
		     struct fault *why);
	void (*clear)(const struct config_key *key, void *object);
	/* into a cleared field */
	int (*copy)(const struct config_key *key, const void *from, void *to);
	/* "Key=value\n", for lists one line an element */
	void (*print)(const struct config_key *key, const void *object, FILE *f);
};

/* One word of a choice; the first with a value is the one printed */
struct choice {
	const char *word;
	int value;
};

extern const struct value_kind value_bool;     /* bool */
extern const struct value_kind value_unsigned; /* unsigned, within min and max of the key */
extern const struct value_kind value_u64;      /* uint64_t, likewise */
extern const struct value_kind value_percent;  /* unsigned */
extern const struct value_kind value_share;    /* unsigned, hundredths of a percent */
/* uint64_t bytes, within min and max, or one of the key's choices */
extern const struct value_kind value_size;
extern const struct value_kind value_size_auto; /* the same, STORAGE_DEFAULT when not set */
extern const struct value_kind value_time;	/* uint64_t microseconds, within min and max */
extern const struct value_kind value_choice;	/* int or enum, one of the key's choices */
extern const struct value_kind value_word;	/* char *, one of the key's choices */
extern const struct value_kind value_string;	/* char *, NULL when not set; the key's check */
extern const struct value_kind value_cpus;  /* char *, a CPU list, canonical; NULL when not set */
extern const struct value_kind value_lines; /* char **, one string an assignment; check */
extern const struct value_kind value_words; /* char **, split at white space; check */
/* The same; a "post=TIME" at the end belongs to each of them */
extern const struct value_kind value_patterns;

/**
 * value_field() - where a key's value lives in @object
 */
void *value_field(const struct config_key *key, const void *object);

/**
 * value_squeeze() - runs of white space to one blank, except inside quotes
 * @ret: malloc'ed
 * Return: 0 or -ENOMEM.
 */
int value_squeeze(const char *text, char **ret);

/**
 * value_refuse() - -EINVAL, with the reason for a person
 */
int value_refuse(struct fault *why, const char *format, ...) _printf_(2, 3);

/**
 * value_init() - set a key's field, as it comes from calloc(), to its built-in default
 */
int value_init(const struct config_key *key, void *object);

/**
 * value_reset() - what an empty assignment does: lists are emptied, others go back to @defaults
 */
int value_reset(const struct config_key *key, void *object, const void *defaults);

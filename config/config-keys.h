/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one table of configuration keys: everything that reads, prints, copies or documents the
 * configuration goes by it. HACKING.md says how to add a key. Main thread.
 */
#pragma once

#include "config/config-value.h"

/* Files a key may be in */
enum config_file_kind {
	CONFIG_FILE_DAEMON = 1,	 /* flyrecd.conf */
	CONFIG_FILE_SESSION = 2, /* sessions.d/NAME.conf */
};

struct config_key {
	const char *section;
	const char *name;
	unsigned files; /* enum config_file_kind, or-ed */
	const struct value_kind *kind;
	size_t offset; /* in struct daemon_config for [Daemon], else in struct session_config */
	const char *fallback; /* built-in default, as it would stand in a file; NULL: not set */
	uint64_t min, max;    /* for numbers, sizes (bytes) and times (us) */
	const struct choice *choices; /* ends with a NULL word */
	/* for strings and sizes, what else they must be: 0, or value_refuse() */
	int (*check)(const char *text, const void *object, struct fault *why);
};

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/**
 * config_key_find() - a key by section and name in one kind of file, or NULL
 */
const struct config_key *config_key_find(enum config_file_kind file, const char *section,
					 const char *name);

/**
 * config_section_known() - does this kind of file have such a section?
 */
bool config_section_known(enum config_file_kind file, const char *section);

/**
 * config_key_unsupported() - does this build lack what a key was set to?
 * @object: with the value already parsed into it
 */
bool config_key_unsupported(const struct config_key *key, const void *object);

/**
 * config_explain_key() - "unknown key …", with what might have been meant
 */
void config_explain_key(enum config_file_kind file, const char *section, const char *name,
			struct fault *ret);
void config_explain_section(enum config_file_kind file, const char *section, struct fault *ret);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For tests: a temporary directory with etc/ and usr/ in it, files in them, and what config_load()
 * says about them, with paths cut to what is below the directory.
 */
#pragma once

#include "config/config.h"

struct config_dir {
	char path[64];
	struct daemon_config *config; /* of the last config_dir_load() */
	char *complaints;	      /* "w|e FILE:LINE: text\n" each; w: warning, e: error */
	unsigned n_faults;
};

/* For cmocka: *@state is a struct config_dir */
int config_dir_setup(void **state);
int config_dir_teardown(void **state);

/* @name: e.g. "etc/sessions.d/a.conf"; directories on the way are made */
void config_dir_write(struct config_dir *dir, const char *name, const char *text);
void config_dir_write_bytes(struct config_dir *dir, const char *name, const void *data,
			    size_t size);
void config_dir_link(struct config_dir *dir, const char *name, const char *target);

/* Load etc/ and usr/; returns what config_load() returned */
int config_dir_load(struct config_dir *dir);

/* The session, which must be there */
const struct session_config *config_dir_session(const struct config_dir *dir, const char *name);

/* Load one session, x, from @text, which has no fault */
const struct session_config *config_dir_load_session(struct config_dir *dir, const char *text);

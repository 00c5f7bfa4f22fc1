/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SQLite as an extension sees it: by a table of functions, whichever library has loaded us. In
 * flyrecctl, where SQLite is linked, the table comes from sqlite3_auto_extension(). sqlite.c has
 * it.
 */
#pragma once

#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3

/**
 * query_sqlite_init() - an extension's entry point: take the table, add SQL functions
 */
int query_sqlite_init(sqlite3 *db, char **error, const sqlite3_api_routines *api);

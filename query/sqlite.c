/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "query/sqlite.h"
#include "query/percentile.h"

#define VERSION_LEAST 3038000 /* sqlite3_vtab_in() */

/* SQLite's own way: the same for all connections of a process */
const sqlite3_api_routines *sqlite3_api;

int query_sqlite_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	SQLITE_EXTENSION_INIT2(api);
	/* the table of an older one ends before what vtab.c calls */
	if (sqlite3_libversion_number() < VERSION_LEAST) {
		*error = sqlite3_mprintf("flyrec: SQLite 3.38 or later is needed");
		return SQLITE_ERROR;
	}
	return percentile_add(db);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "query/database.h"
#include "query/vtab.h"

#define TICK_STEPS   20000 /* of SQLite's machine, from one look to the next whether to go on */
#define LENGTH_MAX   (16 * MIB)
#define SQL_MAX	     (1 * MIB)
#define COLUMNS_MAX  2000
#define EXPR_MAX     500
#define COMPOUND_MAX 100
#define CACHE_KIB    2048

/* query/sqlite.h, where the types are those of an extension */
int query_sqlite_init(sqlite3 *db, char **error, const struct sqlite3_api_routines *api);

struct query_database {
	sqlite3 *db;
	struct query_limits limits;
};

/* What only reads what is there. Statements are planned with what SQLite calls FUNCTION and READ */
static int authorize(void *userdata, int action, const char *a, const char *b, const char *schema,
		     const char *inside)
{
	static const char *const pragmas[] = {"table_info", "table_xinfo", "function_list",
					      "module_list", "compile_options"};

	(void)userdata;
	(void)schema;
	(void)inside;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_UPDATE: /* a virtual table is declared; by itself SQL may not change it */
		return sqlite3_stricmp(a, "sqlite_master") == 0 ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_FUNCTION:
		return sqlite3_stricmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_PRAGMA:
		for (size_t i = 0; i < ARRAY_SIZE(pragmas); i++)
			if (sqlite3_stricmp(a, pragmas[i]) == 0)
				return SQLITE_OK;
		return SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

/* SQLite's meaning: other than 0 ends it */
static int on_tick(void *userdata)
{
	const struct query_database *d = userdata;

	return !d->limits.goes_on(d->limits.userdata);
}

static void set_limits(struct query_database *d)
{
	(void)sqlite3_limit(d->db, SQLITE_LIMIT_LENGTH, (int)LENGTH_MAX);
	(void)sqlite3_limit(d->db, SQLITE_LIMIT_SQL_LENGTH, (int)SQL_MAX);
	(void)sqlite3_limit(d->db, SQLITE_LIMIT_COLUMN, COLUMNS_MAX);
	(void)sqlite3_limit(d->db, SQLITE_LIMIT_EXPR_DEPTH, EXPR_MAX);
	(void)sqlite3_limit(d->db, SQLITE_LIMIT_COMPOUND_SELECT, COMPOUND_MAX);
	(void)sqlite3_limit(d->db, SQLITE_LIMIT_ATTACHED, 0);
	(void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	(void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	if (d->limits.goes_on)
		sqlite3_progress_handler(d->db, TICK_STEPS, on_tick, d);
}

/* Nothing spills into a file: it could not be opened */
static int prepare_connection(struct query_database *d, struct query *query)
{
	char pragma[64];
	int r;

	r = sqlite3_exec(d->db, "PRAGMA temp_store=MEMORY", NULL, NULL, NULL);
	(void)snprintf(pragma, sizeof(pragma), "PRAGMA cache_size=-%d", CACHE_KIB);
	if (r == SQLITE_OK)
		r = sqlite3_exec(d->db, pragma, NULL, NULL, NULL);
	if (r == SQLITE_OK)
		r = vtab_attach(query, d->db);
	if (r == SQLITE_OK)
		r = sqlite3_set_authorizer(d->db, authorize, NULL);
	set_limits(d);
	return r;
}

int query_database_new(struct query *query, const struct query_limits *limits,
		       struct query_database **ret, struct fault *why)
{
	_cleanup_(query_database_freep) struct query_database *d = calloc(1, sizeof(*d));
	int r = SQLITE_NOMEM;

	if (d) {
		d->limits = *limits;
		/* which gives query/ the functions that it calls SQLite by */
		r = sqlite3_auto_extension((void (*)(void))query_sqlite_init);
	}
	if (r == SQLITE_OK)
		r = sqlite3_open_v2(
			":memory:", &d->db,
			SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, NULL);
	if (r == SQLITE_OK)
		r = prepare_connection(d, query);
	if (r != SQLITE_OK)
		return fault_set(why, -ENOMEM, "cannot query: SQLite: %s", sqlite3_errstr(r));
	(void)sqlite3_hard_heap_limit64((sqlite3_int64)limits->memory);
	*ret = TAKE_PTR(d);
	return 0;
}

struct query_database *query_database_free(struct query_database *database)
{
	if (!database)
		return NULL;
	(void)sqlite3_close(database->db);
	free(database);
	return NULL;
}

static int fail(struct query_database *d, int r, struct fault *why)
{
	switch (r & 0xff) {
	case SQLITE_NOMEM:
		return fault_set(why, -ENOMEM, "more memory is needed than %llu MiB",
				 (unsigned long long)d->limits.memory / MIB);
	case SQLITE_INTERRUPT:
		return fault_set(why, -EINTR, "interrupted");
	case SQLITE_AUTH:
		return fault_set(why, -EINVAL, "only reading is allowed: %s",
				 sqlite3_errmsg(d->db));
	default:
		return fault_set(why, -EINVAL, "%s", sqlite3_errmsg(d->db));
	}
}

static struct query_cell cell_of(sqlite3_stmt *statement, int column)
{
	static const enum query_cell_kind kinds[] = {
		[SQLITE_INTEGER] = CELL_INTEGER, [SQLITE_FLOAT] = CELL_REAL,
		[SQLITE_TEXT] = CELL_TEXT,	 [SQLITE_BLOB] = CELL_BLOB,
		[SQLITE_NULL] = CELL_NULL,
	};
	struct query_cell cell = {.kind = kinds[sqlite3_column_type(statement, column)]};

	cell.bytes = cell.kind == CELL_BLOB ? sqlite3_column_blob(statement, column)
					    : (const char *)sqlite3_column_text(statement, column);
	cell.size = (size_t)sqlite3_column_bytes(statement, column);
	if (!cell.bytes)
		cell.bytes = "";
	return cell;
}

static int run_statement(struct query_database *d, sqlite3_stmt *statement,
			 const struct query_output *output, struct fault *why)
{
	const unsigned n = (unsigned)sqlite3_column_count(statement);
	_cleanup_free_ struct query_cell *cells = calloc(n + 1, sizeof(*cells));
	_cleanup_free_ const char **names = calloc(n + 1, sizeof(*names));
	int r, step;

	if (!cells || !names)
		return fault_errno(why, -ENOMEM, "cannot query");
	for (unsigned i = 0; i < n; i++)
		names[i] = sqlite3_column_name(statement, (int)i);
	r = n > 0 ? output->on_columns(output->userdata, names, n) : 0;
	while (r >= 0 && (step = sqlite3_step(statement)) != SQLITE_DONE) {
		if (step != SQLITE_ROW)
			return fail(d, step, why);
		for (unsigned i = 0; i < n; i++)
			cells[i] = cell_of(statement, (int)i);
		r = output->on_row(output->userdata, cells, n);
	}
	return MIN(r, 0);
}

static bool is_blank(const char *sql)
{
	return sql[strspn(sql, " \t\r\n;")] == '\0';
}

int query_database_run(struct query_database *database, const char *sql, bool once,
		       const struct query_output *output, struct fault *why)
{
	int r = 0;

	*why = (struct fault){};
	while (r >= 0 && !is_blank(sql)) {
		sqlite3_stmt *statement;

		r = sqlite3_prepare_v2(database->db, sql, -1, &statement, &sql);
		if (r != SQLITE_OK)
			return fail(database, r, why);
		if (once && !is_blank(sql))
			r = fault_set(why, -EINVAL, "this output has room for one statement only");
		else if (statement)
			r = run_statement(database, statement, output, why);
		(void)sqlite3_finalize(statement);
	}
	return r;
}

bool query_database_complete(const char *sql)
{
	return sqlite3_complete(sql);
}

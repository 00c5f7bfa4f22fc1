/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What xBestIndex has decided goes to xFilter as a text, "CODES|COLUMNS|KEYS": a letter for each
 * argument, which columns are looked at, and by which ones rows are to be brought together.
 *
 *	e g G l L	ts = >= > <= <
 *	c p s n		cpu, pid, system, name =; capitals: IN, all values at once
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "basic/strv.h"
#include "query/groups.h"
#include "query/query-internal.h"
#include "query/sqlite.h"
#include "query/vtab.h"

#define CODES_MAX   32U
#define EVENT_BYTES 48U /* for estimates */

/* What a module is registered with */
struct registered {
	struct query *query;
	struct query_table *table;
};

struct vtab {
	sqlite3_vtab base;
	struct query *query;
	struct query_table *table;
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct query_want want;
	bool none; /* no row can be wanted */
	struct query_scan *scan;
	size_t host;	       /* whose rows it has */
	struct groups *groups; /* NULL: rows come as they are found */
	sqlite3_int64 row;     /* with groups */
	bool eof;
};

/* --- errors */

static int fail(sqlite3_vtab *base, int r, const struct fault *why)
{
	if (r == SCAN_E_STOPPED)
		return SQLITE_INTERRUPT;
	if (r == -ENOMEM)
		return SQLITE_NOMEM;
	sqlite3_free(base->zErrMsg);
	base->zErrMsg = sqlite3_mprintf("%s", why->text);
	return SQLITE_ERROR;
}

/* --- tables */

static void put_column(sqlite3_str *sql, const struct query_column *column)
{
	sqlite3_str_appendf(sql, "\"%w\" %s%s", column->name,
			    column->flags & COLUMN_TEXT ? "TEXT" : "INTEGER",
			    column->flags & COLUMN_HIDDEN ? " HIDDEN" : "");
}

/* A field of an event's that is called so */
static bool has_host(const struct query_table *table)
{
	for (size_t i = 0; i < table->n_columns; i++)
		if (strcasecmp(table->columns[i].name, "host") == 0)
			return true;
	return false;
}

/* NULL without memory; by sqlite3_malloc() */
static char *declaration(const struct query_table *table, size_t n_hosts)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendf(sql, "CREATE TABLE \"%w\"(", table->name);
	for (size_t i = 0; i < table->n_columns; i++) {
		if (i > 0)
			sqlite3_str_appendall(sql, ", ");
		put_column(sql, &table->columns[i]);
	}
	/* whose it is: seen where there are several */
	if (!has_host(table))
		sqlite3_str_appendf(sql, ", host TEXT%s", n_hosts > 1 ? "" : " HIDDEN");
	sqlite3_str_appendall(sql, ")");
	return sqlite3_str_finish(sql);
}

static int on_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
		      char **error)
{
	const struct registered *from = aux;
	struct fault why;
	struct vtab *vtab;
	char *sql;
	int r = query_table_columns(from->query, from->table, &why);

	(void)argc;
	(void)argv;
	if (r < 0) {
		*error = sqlite3_mprintf("%s", why.text);
		return SQLITE_ERROR;
	}
	sql = declaration(from->table, strv_length(from->query->hosts.names));
	r = sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;
	sqlite3_free(sql);
	if (r != SQLITE_OK)
		return r;
	vtab = sqlite3_malloc64(sizeof(*vtab));
	if (!vtab)
		return SQLITE_NOMEM;
	*vtab = (struct vtab){.query = from->query, .table = from->table};
	*ret = &vtab->base;
	return SQLITE_OK;
}

static int on_disconnect(sqlite3_vtab *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

/* --- what a scan is to go by */

struct plan {
	const struct query_table *table;
	sqlite3_index_info *info;
	char codes[CODES_MAX + 1];
	unsigned n;
	double rows, scanned;
	size_t n_hosts;
	bool from, to;
};

static char time_code(int op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return 'e';
	case SQLITE_INDEX_CONSTRAINT_GE:
		return 'g';
	case SQLITE_INDEX_CONSTRAINT_GT:
		return 'G';
	case SQLITE_INDEX_CONSTRAINT_LE:
		return 'l';
	case SQLITE_INDEX_CONSTRAINT_LT:
		return 'L';
	default:
		return 0;
	}
}

/* SQLite looks at all rows again, but for texts, which cost more than all else */
static void take_constraint(struct plan *plan, int i, char code, bool omit)
{
	plan->info->aConstraintUsage[i].argvIndex = (int)plan->n + 1;
	plan->info->aConstraintUsage[i].omit = omit;
	plan->codes[plan->n++] = code;
}

static void plan_time(struct plan *plan, int i, int op)
{
	const char code = time_code(op);

	if (!code)
		return;
	plan->from |= strchr("egG", code) != NULL;
	plan->to |= strchr("elL", code) != NULL;
	take_constraint(plan, i, code, false);
}

static void plan_equal(struct plan *plan, int i, int column)
{
	static const char codes[] = {
		[COLUMN_CPU] = 'c',
		[COLUMN_PID] = 'p',
		[COLUMN_SYSTEM] = 's',
		[COLUMN_NAME] = 'n',
	};
	const bool text = column == COLUMN_SYSTEM || column == COLUMN_NAME;
	char code = codes[column];

	if (strchr(plan->codes, code) || strchr(plan->codes, code - 'a' + 'A'))
		return;
	if (text && sqlite3_stricmp(sqlite3_vtab_collation(plan->info, i), "BINARY") != 0)
		return;
	if (sqlite3_vtab_in(plan->info, i, 1))
		code = (char)(code - 'a' + 'A');
	take_constraint(plan, i, code, text);
	plan->rows *= text ? 0.1 : 0.3;
	if (column == COLUMN_CPU)
		plan->scanned *= 0.5;
}

static void plan_constraints(struct plan *plan)
{
	for (int i = 0; i < plan->info->nConstraint && plan->n < CODES_MAX; i++) {
		const struct sqlite3_index_constraint *c = &plan->info->aConstraint[i];

		if (!c->usable || c->iColumn < 0 || c->iColumn > COLUMN_NAME ||
		    !(plan->table->type->goes_by & 1U << c->iColumn))
			continue;
		if (c->iColumn == COLUMN_TS)
			plan_time(plan, i, c->op);
		else if (c->op == SQLITE_INDEX_CONSTRAINT_EQ)
			plan_equal(plan, i, c->iColumn);
	}
	if (plan->from || plan->to) {
		const double share = plan->from && plan->to ? 0.001 : 0.3;

		plan->rows *= share;
		plan->scanned *= share;
	}
}

/* The columns that are looked at, beside those of @info's order */
static bool list_others(const struct plan *plan, const struct query_want *want,
			struct groups_config *ret, unsigned *others, unsigned *wide)
{
	const sqlite3_index_info *info = plan->info;

	for (unsigned i = 0; i < plan->table->n_columns; i++) {
		const unsigned flags = plan->table->columns[i].flags;
		bool key = false;

		for (int k = 0; k < info->nOrderBy; k++)
			key |= info->aOrderBy[k].iColumn == (int)i;
		if (key || !query_wants(want, i))
			continue;
		if (flags & COLUMN_LONG || ret->n_others == GROUPS_COLUMNS_MAX ||
		    ret->n_wide == GROUPS_COLUMNS_MAX)
			return false;
		if (flags & COLUMN_WIDE)
			wide[ret->n_wide++] = i;
		else
			others[ret->n_others++] = i;
	}
	return true;
}

/* Is it for GROUP BY or DISTINCT, by columns that are here? */
static bool can_group(const struct plan *plan)
{
	const sqlite3_index_info *info = plan->info;
	const struct query_want want = {.columns = info->colUsed};
	unsigned others[GROUPS_COLUMNS_MAX], wide[GROUPS_COLUMNS_MAX];
	struct groups_config config = {};

	if (info->nOrderBy == 0 || info->nOrderBy > (int)GROUPS_COLUMNS_MAX ||
	    sqlite3_vtab_distinct(plan->info) == 0 || plan->table->n_columns >= 63)
		return false;
	/* the host is no column of the table's */
	if (info->colUsed & UINT64_C(1) << plan->table->n_columns)
		return false;
	for (int i = 0; i < info->nOrderBy; i++)
		if (info->aOrderBy[i].iColumn < 0 ||
		    info->aOrderBy[i].iColumn >= (int)plan->table->n_columns)
			return false;
	return list_others(plan, &want, &config, others, wide);
}

static bool is_in_order(const struct plan *plan)
{
	const sqlite3_index_info *info = plan->info;

	return info->nOrderBy == 1 && plan->table->type->ordered && plan->n_hosts == 1 &&
	       info->aOrderBy[0].iColumn == COLUMN_TS && !info->aOrderBy[0].desc;
}

static int on_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct vtab *vtab = (const struct vtab *)(const void *)base;
	struct plan plan = {
		.table = vtab->table,
		.info = info,
		.n_hosts = strv_length(vtab->query->hosts.names),
	};
	sqlite3_str *text = sqlite3_str_new(NULL);
	const double all = (double)vtab->query->bytes / EVENT_BYTES + 1;

	plan.rows = plan.scanned = all;
	plan_constraints(&plan);
	sqlite3_str_appendf(text, "%s|%llx|", plan.codes, (unsigned long long)info->colUsed);
	if (is_in_order(&plan)) {
		info->orderByConsumed = 1;
	} else if (can_group(&plan)) {
		info->orderByConsumed = 1;
		for (int i = 0; i < info->nOrderBy; i++)
			sqlite3_str_appendf(text, "%d%c", info->aOrderBy[i].iColumn,
					    info->aOrderBy[i].desc ? '-' : '+');
	}
	info->idxStr = sqlite3_str_finish(text);
	if (!info->idxStr)
		return SQLITE_NOMEM;
	info->needToFreeIdxStr = 1;
	info->estimatedCost = plan.scanned + 2 * plan.rows + 1000;
	info->estimatedRows = (sqlite3_int64)plan.rows + 1;
	return SQLITE_OK;
}

/* --- a scan */

static int on_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	struct cursor *cursor = sqlite3_malloc64(sizeof(*cursor));

	(void)base;
	if (!cursor)
		return SQLITE_NOMEM;
	*cursor = (struct cursor){.eof = true};
	*ret = &cursor->base;
	return SQLITE_OK;
}

static struct vtab *vtab_of(const struct cursor *cursor)
{
	return (struct vtab *)(void *)cursor->base.pVtab;
}

static void end_scan(struct cursor *cursor)
{
	if (cursor->scan)
		vtab_of(cursor)->table->type->close(cursor->scan);
	cursor->scan = NULL;
	cursor->groups = groups_free(cursor->groups);
	strv_free(cursor->want.systems);
	strv_free(cursor->want.names);
	free(cursor->want.pids);
	cursor->want = (struct query_want){.to = INT64_MAX};
	cursor->none = false;
	cursor->eof = true;
}

static int on_close(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)(void *)base;

	end_scan(cursor);
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static void not_before(struct query_want *want, double from)
{
	if (from >= 9.2e18)
		want->from = INT64_MAX;
	else if (from > 0)
		want->from = MAX(want->from, (uint64_t)from);
}

static void not_behind(struct cursor *cursor, double to)
{
	if (to < 0)
		cursor->none = true;
	else if (to < 9.2e18)
		cursor->want.to = MIN(cursor->want.to, (uint64_t)to);
}

/* SQLite compares once more: a bound that is too wide is none */
static void narrow_by_real(struct cursor *cursor, char code, double value)
{
	if (strchr("egG", code))
		not_before(&cursor->want, floor(value));
	if (strchr("elL", code))
		not_behind(cursor, ceil(value));
}

static void narrow_by_integer(struct cursor *cursor, char code, int64_t value)
{
	struct query_want *want = &cursor->want;

	if (strchr("egG", code) && value > 0)
		want->from = MAX(want->from, (uint64_t)value);
	if (strchr("elL", code) && value < 0)
		cursor->none = true;
	else if (strchr("elL", code))
		want->to = MIN(want->to, (uint64_t)value);
}

static int add_number(struct cursor *cursor, bool cpu, sqlite3_value *value)
{
	struct query_want *want = &cursor->want;
	sqlite3_int64 number;

	/* of another kind: equal to none; as are numbers that no such thing has */
	if (sqlite3_value_numeric_type(value) != SQLITE_INTEGER &&
	    sqlite3_value_numeric_type(value) != SQLITE_FLOAT)
		return SQLITE_OK;
	number = sqlite3_value_int64(value);
	if (cpu && number >= 0 && number < CPU_LIST_MAX)
		cpu_list_add(&want->cpus, (unsigned)number);
	if (cpu || number < INT32_MIN || number > INT32_MAX)
		return SQLITE_OK;
	if (array_grow(&want->pids, want->n_pids, sizeof(*want->pids)) < 0)
		return SQLITE_NOMEM;
	want->pids[want->n_pids++] = (int32_t)number;
	return SQLITE_OK;
}

static int add_text(char ***list, sqlite3_value *value)
{
	const char *text;

	if (sqlite3_value_type(value) == SQLITE_NULL || sqlite3_value_type(value) == SQLITE_BLOB)
		return SQLITE_OK;
	text = (const char *)sqlite3_value_text(value);
	return text && strv_append(list, text) >= 0 ? SQLITE_OK : SQLITE_NOMEM;
}

static int add_equal(struct cursor *cursor, char code, sqlite3_value *value)
{
	switch (code) {
	case 's':
		return add_text(&cursor->want.systems, value);
	case 'n':
		return add_text(&cursor->want.names, value);
	default:
		return add_number(cursor, code == 'c', value);
	}
}

/* One value, or all of IN */
static int narrow_by_values(struct cursor *cursor, char code, sqlite3_value *argument)
{
	const bool in = code >= 'A' && code <= 'Z';
	const char kind = (char)(in ? code - 'A' + 'a' : code);
	sqlite3_value *value = argument;
	int r = in ? sqlite3_vtab_in_first(argument, &value) : SQLITE_OK;

	cursor->want.has_cpus |= kind == 'c';
	cursor->want.has_pids |= kind == 'p';
	while (r == SQLITE_OK && value) {
		r = add_equal(cursor, kind, value);
		if (r != SQLITE_OK || !in)
			break;
		r = sqlite3_vtab_in_next(argument, &value);
	}
	/* no name is equal to any of them */
	cursor->none |=
		(kind == 's' && !cursor->want.systems) || (kind == 'n' && !cursor->want.names);
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

static int narrow(struct cursor *cursor, char code, sqlite3_value *value)
{
	if (!strchr("egGlL", code))
		return narrow_by_values(cursor, code, value);
	switch (sqlite3_value_numeric_type(value)) {
	case SQLITE_INTEGER:
		narrow_by_integer(cursor, code, sqlite3_value_int64(value));
		break;
	case SQLITE_FLOAT:
		narrow_by_real(cursor, code, sqlite3_value_double(value));
		break;
	case SQLITE_NULL:
		cursor->none = true;
		break;
	default:
		break; /* any number is less than a text: SQLite sees to that */
	}
	return SQLITE_OK;
}

/* "5+0-" */
static int begin_groups(struct cursor *cursor, const char *keys)
{
	const struct query_table *table = vtab_of(cursor)->table;
	unsigned columns[GROUPS_COLUMNS_MAX], others[GROUPS_COLUMNS_MAX], wide[GROUPS_COLUMNS_MAX];
	bool descending[GROUPS_COLUMNS_MAX];
	struct groups_config config = {
		.keys = columns, .descending = descending, .others = others, .wide = wide};

	while (*keys && config.n_keys < GROUPS_COLUMNS_MAX) {
		char *end;

		columns[config.n_keys] = (unsigned)strtoul(keys, &end, 10);
		descending[config.n_keys++] = *end == '-';
		keys = end + 1;
	}
	for (unsigned i = 0; i < table->n_columns; i++) {
		bool key = false;

		for (size_t k = 0; k < config.n_keys; k++)
			key |= columns[k] == i;
		if (key || !query_wants(&cursor->want, i))
			continue;
		config.nulls |= table->columns[i].flags & COLUMN_WIDE &&
				!(table->columns[i].flags & COLUMN_SET);
		if (table->columns[i].flags & COLUMN_WIDE)
			wide[config.n_wide++] = i;
		else
			others[config.n_others++] = i;
	}
	cursor->groups = groups_new(&config);
	return cursor->groups ? SQLITE_OK : SQLITE_NOMEM;
}

static int begin_host(struct cursor *cursor, size_t host, struct fault *why)
{
	const struct vtab *vtab = vtab_of(cursor);

	if (cursor->scan)
		vtab->table->type->close(cursor->scan);
	cursor->scan = NULL;
	cursor->host = host;
	vtab->query->host = host;
	return vtab->table->type->open(vtab->query, vtab->table, &cursor->want, &cursor->scan, why);
}

/* The rows of one host after those of the other: as struct query_table_type's next() */
static int next_row(struct cursor *cursor, struct fault *why)
{
	const struct vtab *vtab = vtab_of(cursor);
	int r;

	while ((r = vtab->table->type->next(cursor->scan, why)) == 0 &&
	       vtab->query->hosts.names[cursor->host + 1]) {
		r = begin_host(cursor, cursor->host + 1, why);
		if (r < 0)
			return r;
	}
	return r;
}

/* All rows, before SQLite sees any */
static int fill_groups(struct cursor *cursor, struct fault *why)
{
	const struct query_table_type *type = vtab_of(cursor)->table->type;
	int r;

	while ((r = next_row(cursor, why)) == 1) {
		r = groups_add(cursor->groups, type, cursor->scan);
		if (r < 0)
			return r;
	}
	if (r == 0)
		groups_sort(cursor->groups);
	return r;
}

static int on_next(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)(void *)base;
	struct fault why;
	int r;

	if (cursor->groups) {
		cursor->row++;
		cursor->eof = !groups_next(cursor->groups);
		return SQLITE_OK;
	}
	r = next_row(cursor, &why);
	cursor->eof = r != 1;
	return r == 0 || r == 1 ? SQLITE_OK : fail(base->pVtab, r, &why);
}

static int on_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
		     sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)(void *)base;
	struct fault why;
	char *keys;
	int r = SQLITE_OK;

	(void)number;
	end_scan(cursor);
	for (int i = 0; i < argc && r == SQLITE_OK; i++)
		r = narrow(cursor, plan[i], argv[i]);
	if (r != SQLITE_OK)
		return r;
	if (cursor->none || cursor->want.from > cursor->want.to)
		return SQLITE_OK;
	cursor->want.columns = strtoull(plan + argc + 1, &keys, 16);
	if (keys[1]) {
		r = begin_groups(cursor, keys + 1);
		if (r != SQLITE_OK)
			return r;
	}
	r = begin_host(cursor, 0, &why);
	if (r >= 0 && cursor->groups)
		r = fill_groups(cursor, &why);
	if (r != 0)
		return fail(base->pVtab, r, &why);
	return on_next(base);
}

static int on_eof(sqlite3_vtab_cursor *base)
{
	return ((const struct cursor *)(const void *)base)->eof;
}

static int on_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	struct cursor *cursor = (struct cursor *)(void *)base;
	struct value value;

	if (column >= (int)vtab_of(cursor)->table->n_columns) {
		sqlite3_result_text(context, vtab_of(cursor)->query->hosts.names[cursor->host], -1,
				    SQLITE_TRANSIENT);
		return SQLITE_OK;
	}
	if (cursor->groups)
		value = groups_column(cursor->groups, (unsigned)column);
	else if (vtab_of(cursor)->table->type->column(cursor->scan, (unsigned)column, &value) < 0)
		return SQLITE_NOMEM;
	switch (value.kind) {
	case VALUE_INTEGER:
		sqlite3_result_int64(context, value.number);
		break;
	case VALUE_TEXT:
		sqlite3_result_text64(context, value.text, value.size, SQLITE_TRANSIENT,
				      SQLITE_UTF8);
		break;
	case VALUE_NULL:
		break;
	}
	return SQLITE_OK;
}

static int on_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	const struct cursor *cursor = (const struct cursor *)(const void *)base;

	*ret = cursor->groups ? cursor->row : vtab_of(cursor)->table->type->row(cursor->scan);
	return SQLITE_OK;
}

/* --- */

/* Without xCreate: the tables are there from the beginning, in each schema */
static const sqlite3_module module = {
	.iVersion = 0,
	.xConnect = on_connect,
	.xBestIndex = on_best_index,
	.xDisconnect = on_disconnect,
	.xDestroy = on_disconnect,
	.xOpen = on_open,
	.xClose = on_close,
	.xFilter = on_filter,
	.xNext = on_next,
	.xEof = on_eof,
	.xColumn = on_column,
	.xRowid = on_rowid,
};

static void on_unregister(void *aux)
{
	struct registered *registered = aux;

	query_unref(registered->query);
	free(registered);
}

int vtab_attach(struct query *query, sqlite3 *db)
{
	for (size_t i = 0; i < query->n_tables; i++) {
		struct registered *aux = malloc(sizeof(*aux));
		int r;

		if (!aux)
			return SQLITE_NOMEM;
		*aux = (struct registered){query, query->tables[i]};
		query->refs++;
		/* undone by itself where it fails */
		r = sqlite3_create_module_v2(db, query->tables[i]->name, &module, aux,
					     on_unregister);
		if (r != SQLITE_OK)
			return r;
	}
	return SQLITE_OK;
}

int vtab_sql(struct query *query, size_t i, char **ret, struct fault *why)
{
	struct query_table *table = query->tables[i];
	int r = query_table_columns(query, table, why);
	char *sql = r < 0 ? NULL : declaration(table, strv_length(query->hosts.names));

	if (r < 0)
		return r;
	*ret = sql ? strdup(sql) : NULL;
	sqlite3_free(sql);
	return *ret ? 0 : fault_errno(why, -ENOMEM, "%s", table->name);
}

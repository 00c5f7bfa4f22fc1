/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>
#include <sys/mman.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "decode/text.h"
#include "query/database.h"
#include "tests/fuzz/query-target.h"
#include "tests/unit/analysis-fixture.h"

#define DEPTH  4U
#define TICKS  20U
#define MEMORY (32 * MIB)
#define ROUNDS 4U /* of events in a sound file */
#define DELTA  10U

const char *__lsan_default_suppressions(void);

/* libtraceevent's parser forgets a token here and there where it gives a format up */
const char *__lsan_default_suppressions(void)
{
	return "leak:libtraceevent\n";
}

/* --- SQL */

struct maker {
	const uint8_t *choices;
	size_t n, at;
	unsigned depth;
	struct text sql;
};

static unsigned choose(struct maker *m, unsigned of)
{
	return m->at < m->n ? m->choices[m->at++] % of : 0;
}

static void word(struct maker *m, const char *text)
{
	text_string(&m->sql, text);
	text_char(&m->sql, ' ');
}

static void one_of(struct maker *m, const char *const *words, unsigned n)
{
	word(m, words[choose(m, n)]);
}
#define ONE_OF(m, ...)                                \
	one_of(m, (const char *const[]){__VA_ARGS__}, \
	       ARRAY_SIZE(((const char *const[]){__VA_ARGS__})))

static void select_from(struct maker *m);

static void column(struct maker *m)
{
	ONE_OF(m, "ts", "cpu", "pid", "comm", "unit", "name", "system", "fields", "lost_before",
	       "nsec", "next_comm", "prev_state", "field_pid", "tgid", "buffer", "rowid", "a.ts",
	       "waker", "stack", "number", "from_ts", "args", "\"pid\"");
}

static void literal(struct maker *m)
{
	ONE_OF(m, "0", "1", "-1", "1000", "1050", "5", "9223372036854775807",
	       "-9223372036854775808", "1e300", "0.5", "NULL", "'sched_switch'", "'sched'", "'t5'",
	       "x'00ff'", "''", "'%'", "9e999");
}

static void expression(struct maker *m)
{
	if (++m->depth > DEPTH) {
		literal(m);
		m->depth--;
		return;
	}
	switch (choose(m, 12)) {
	case 0:
		literal(m);
		break;
	case 1:
		ONE_OF(m, "count(", "max(", "min(", "sum(", "percentile(50,", "median(", "total(",
		       "group_concat(", "count(DISTINCT", "length(", "abs(", "json_extract(fields,",
		       "typeof(", "json_valid(", "hex(", "flyrec_open(", "percentile(");
		expression(m);
		word(m, ")");
		break;
	case 2:
	case 3:
	case 4:
		column(m);
		ONE_OF(m, "=", "<", ">", "<=", ">=", "<>", "IS", "IS NOT", "LIKE", "+", "-", "/",
		       "%", "||", "AND", "OR", "COLLATE NOCASE =", "->>", "GLOB");
		expression(m);
		break;
	case 5:
		column(m);
		word(m, "IN (");
		if (choose(m, 3) == 0)
			select_from(m);
		else
			for (unsigned i = choose(m, 4) + 1; i > 0; i--) {
				literal(m);
				word(m, i > 1 ? "," : "");
			}
		word(m, ")");
		break;
	case 6:
		column(m);
		word(m, "BETWEEN");
		literal(m);
		word(m, "AND");
		literal(m);
		break;
	case 7:
		word(m, "(");
		expression(m);
		ONE_OF(m, "AND", "OR", "+", "=");
		expression(m);
		word(m, ")");
		break;
	case 8:
		word(m, "EXISTS (");
		select_from(m);
		word(m, ")");
		break;
	default:
		column(m);
		break;
	}
	m->depth--;
}

static void table(struct maker *m)
{
	ONE_OF(m, "events", "sched_sched_switch", "sched_sched_waking", "runqueue", "blocked",
	       "irqs", "block", "syscalls", "tasks", "clocks", "files", "irq_softirq_entry",
	       "raw_syscalls_sys_enter", "ftrace_kernel_stack", "pragma_module_list",
	       "sqlite_master", "events(1)");
}

static void select_from(struct maker *m)
{
	if (++m->depth > DEPTH) {
		word(m, "SELECT 1");
		m->depth--;
		return;
	}
	ONE_OF(m, "SELECT", "SELECT DISTINCT", "SELECT *,",
	       "SELECT ts, lag(ts) OVER (PARTITION BY pid ORDER BY ts),");
	expression(m);
	if (choose(m, 3) == 0) {
		word(m, ",");
		expression(m);
	}
	word(m, "FROM");
	table(m);
	word(m, "AS a");
	if (choose(m, 4) == 0) {
		ONE_OF(m, "JOIN", "LEFT JOIN", ",", "NATURAL JOIN");
		table(m);
		word(m, "AS b");
	}
	if (choose(m, 2) == 0) {
		word(m, "WHERE");
		expression(m);
	}
	if (choose(m, 3) == 0) {
		word(m, "GROUP BY");
		column(m);
		if (choose(m, 2) == 0) {
			word(m, ",");
			column(m);
		}
		if (choose(m, 4) == 0) {
			word(m, "HAVING");
			expression(m);
		}
	}
	if (choose(m, 3) == 0) {
		ONE_OF(m, "UNION", "EXCEPT", "INTERSECT", "UNION ALL");
		select_from(m);
	} else if (choose(m, 2) == 0) {
		word(m, "ORDER BY");
		column(m);
		ONE_OF(m, "", "DESC", "ASC NULLS LAST");
	}
	if (choose(m, 3) == 0)
		ONE_OF(m, "LIMIT 3", "LIMIT 2 OFFSET 1", "LIMIT 0");
	m->depth--;
}

static void statement(struct maker *m)
{
	switch (choose(m, 16)) {
	case 0:
		ONE_OF(m, "ATTACH 'x' AS y", "DROP TABLE events", "PRAGMA table_info(events)",
		       "VACUUM", "UPDATE events SET ts = 1", "DELETE FROM events",
		       "CREATE VIEW v AS SELECT 1", "PRAGMA temp_store=1", "REINDEX",
		       "EXPLAIN SELECT * FROM events", "SELECT", ")",
		       "CREATE VIRTUAL TABLE x USING events");
		break;
	case 1:
		word(m,
		     "WITH RECURSIVE a(ts, pid) AS (SELECT 1, 2 UNION ALL SELECT ts + 1, pid FROM a)");
		select_from(m);
		break;
	default:
		select_from(m);
		break;
	}
	text_char(&m->sql, '\0');
}

/* --- files */

static void put_numbers(struct craft *pages, unsigned id, uint32_t number)
{
	struct craft event = craft_kinds[0];

	fixture_numbers(&event, id, 5, (const uint32_t[]){number, 8, 8, 0}, 4);
	fixture_put(pages, DELTA, &event);
	craft_done(&event);
}

static void put_switch(struct craft *pages, int prev, uint64_t state, int next)
{
	struct craft event = craft_kinds[0];

	fixture_switch(&event, prev, state, next);
	fixture_put(pages, DELTA, &event);
	craft_done(&event);
}

static void put_wake(struct craft *pages, unsigned id, int by, int pid)
{
	struct craft event = craft_kinds[0];

	fixture_wake(&event, id, by, pid, 0);
	fixture_put(pages, DELTA, &event);
	craft_done(&event);
}

/* Of what each table of analysis is made */
static void put_round(struct craft *pages, unsigned round)
{
	put_numbers(pages, ID_RAW_ENTER, round);
	put_numbers(pages, ID_ISSUE, 1);
	put_wake(pages, ID_WAKING, 5, 6);
	put_numbers(pages, ID_SOFTIRQ_ENTRY, 3);
	put_numbers(pages, ID_SOFTIRQ_EXIT, 3);
	put_switch(pages, 5, round % 3, 6);
	put_numbers(pages, ID_COMPLETE, 1);
	put_wake(pages, ID_WAKING, 6, 5);
	put_switch(pages, 6, round % 2, 5);
	put_numbers(pages, ID_RAW_EXIT, round);
}

int query_target_sound(void)
{
	const int fd = memfd_create("sound", MFD_CLOEXEC);
	struct craft file = craft_kinds[0], pages = craft_kinds[0];
	const struct craft_file craft = {
		.formats = fixture_formats,
		.n_formats = FIXTURE_FORMATS,
		.pages = &pages,
		.cmdlines = "5 t5\n6 t6\n",
	};
	const size_t page = craft_page_begin(&pages, 1000);

	for (unsigned i = 0; i < ROUNDS; i++)
		put_round(&pages, i);
	craft_page_end(&pages, page, 4096, 0);
	craft_file(&file, &craft);
	if (fd < 0 || io_pwrite_all(fd, file.bytes, file.size, 0) < 0)
		abort();
	craft_done(&pages);
	craft_done(&file);
	return fd;
}

/* --- */

struct query_target {
	struct event_filter filter;
	struct query *query;
	struct query_database *database;
	unsigned ticks;
	uint64_t bits; /* of rows: each is read */
};

static bool goes_on(void *userdata)
{
	return ((struct query_target *)userdata)->ticks++ < TICKS;
}

static bool on_progress(void *userdata, uint64_t done, uint64_t bytes)
{
	if (done > bytes)
		abort();
	return goes_on(userdata);
}

static int on_columns(void *userdata, const char *const *names, unsigned n)
{
	(void)userdata;
	for (unsigned i = 0; i < n; i++)
		if (!names[i])
			abort();
	return 0;
}

static int on_row(void *userdata, const struct query_cell *cells, unsigned n)
{
	struct query_target *t = userdata;

	for (unsigned i = 0; i < n; i++)
		t->bits += cells[i].size > 0 ? (uint8_t)cells[i].bytes[cells[i].size - 1] & 1 : 0;
	return 0;
}

struct query_target *query_target_open(int fd, bool twice)
{
	struct query_target *t = calloc(1, sizeof(*t));
	const struct source sources[] = {{"fuzz", fd, 1}, {"fuzz", fd, 1}};
	struct query_config config = {
		.sources = sources,
		.n = twice ? 2 : 1,
		.on_progress = on_progress,
		.userdata = t,
	};
	const struct query_limits limits = {.memory = MEMORY, .goes_on = goes_on, .userdata = t};
	struct fault why = {};

	if (!t)
		abort();
	config.filter = &t->filter;
	if (query_new(&config, &t->query, &why) < 0) {
		if (why.text[0] == '\0')
			abort(); /* each refusal says why */
		free(t);
		return NULL;
	}
	if (query_database_new(t->query, &limits, &t->database, &why) < 0)
		abort();
	return t;
}

void query_target_close(struct query_target *target)
{
	if (!target)
		return;
	query_database_free(target->database);
	if (query_unref(target->query))
		abort();
	free(target);
}

void query_target_ask(struct query_target *target, const uint8_t *choices, size_t n)
{
	struct maker m = {.choices = choices, .n = n};
	const struct query_output output = {on_columns, on_row, target};
	struct query_notes notes;
	struct fault why = {};

	statement(&m);
	if (m.sql.no_memory)
		abort();
	target->ticks = 0;
	if (query_database_run(target->database, m.sql.bytes, false, &output, &why) < 0 &&
	    why.text[0] == '\0' && target->ticks <= TICKS)
		abort();
	text_done(&m.sql);
	if (query_take_notes(target->query, &notes) < 0)
		abort();
	own_sheds_done(&notes.sheds);
}

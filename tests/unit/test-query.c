/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows and columns of tables, what conditions leave out, rows brought together, files that overlap,
 * and how a query ends that may not go on
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/strv.h"
#include "decode/text.h"
#include "query/database.h"
#include "tests/unit/analysis-fixture.h"

#define PAGE   4096
#define MEMORY (16 * MIB)
#define FILES  3

static const struct craft_format formats[] = {
	{"ftrace",
	 "name: other\nID: 5\n" CRAFT_COMMON_FIELDS "\nprint fmt: \"%d\", REC->common_pid\n"},
	{"my",
	 "name: event\nID: 10\n" CRAFT_COMMON_FIELDS
	 "\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n"
	 "\tfield:unsigned int how;\toffset:12;\tsize:4;\tsigned:0;\n"
	 "\tfield:char text[8];\toffset:16;\tsize:8;\tsigned:0;\n"
	 "\tfield:u64 big;\toffset:24;\tsize:8;\tsigned:0;\n"
	 "\tfield:unsigned short list[2];\toffset:32;\tsize:4;\tsigned:0;\n"
	 "\nprint fmt: \"%s %s\", __print_flags(REC->how, \"|\", { 1, \"ONE\" }, { 2, \"TWO\" }), "
	 "REC->pid ? __print_symbolic(REC->pid, { 7, \"seven\" }, { 8, \"eight\" }) : \"none\"\n"},
	{"my",
	 "name: other-one\nID: 11\n" CRAFT_COMMON_FIELDS "\nprint fmt: \"%d\", REC->common_pid\n"},
	{"my_other",
	 "name: one\nID: 12\n" CRAFT_COMMON_FIELDS "\nprint fmt: \"%d\", REC->common_pid\n"},
};

struct fixture {
	int fds[FILES];
	size_t n;
	unsigned recording;
	unsigned left; /* looks until it may not go on */
	struct text rows;
	/* what the last query was told of its files */
	struct text sheds; /* "EVENT FROM TO;" */
	struct spans_totals totals;
};

static void put_event(struct craft *page, uint32_t delta, unsigned id, int by, unsigned i)
{
	struct craft event = {.big_endian = page->big_endian, .commit_size = page->commit_size};
	char text[8] = "";

	(void)snprintf(text, sizeof(text), "x%u", i % 3);
	craft_number(&event, 2, id);
	craft_number(&event, 2, 0);
	craft_number(&event, 4, (uint32_t)by);
	if (id == 10) {
		craft_number(&event, 4, i % 2 ? 7 : 0);
		craft_number(&event, 4, i % 4);
		craft_bytes(&event, text, sizeof(text));
		craft_number(&event, 8, UINT64_MAX - i);
		craft_number(&event, 2, i);
		craft_number(&event, 2, 1);
	}
	fixture_put(page, delta, &event);
	craft_done(&event);
}

static void write_file(struct fixture *f, const struct craft_file *craft)
{
	struct craft file = {.big_endian = craft->pages->big_endian,
			     .commit_size = craft->pages->commit_size};

	craft_file(&file, craft);
	f->fds[f->n++] = craft_fd(&file);
}

/* t5 and t6 preempt each other, from 1000 to 1040 every 10; @sheds: as in struct craft_file */
static void add_turns(struct fixture *f, const char *sheds)
{
	struct craft pages = craft_kinds[0];
	size_t page = craft_page_begin(&pages, 1000);

	for (int i = 0; i < 5; i++) {
		struct craft event = craft_kinds[0];

		fixture_switch(&event, 5 + i % 2, 0, 6 - i % 2);
		fixture_put(&pages, i > 0 ? 10 : 0, &event);
		craft_done(&event);
	}
	craft_page_end(&pages, page, PAGE, 0);
	write_file(f, &(struct craft_file){.formats = fixture_formats,
					   .n_formats = FIXTURE_FORMATS,
					   .sheds = sheds,
					   .pages = &pages});
	craft_done(&pages);
}

/* t6 waits from 1000 on; then some are lost, and t5 ends its turn at 2000 */
static void add_losses(struct fixture *f)
{
	struct craft pages = craft_kinds[0];

	for (int i = 0; i < 2; i++) {
		struct craft event = craft_kinds[0];
		size_t page = craft_page_begin(&pages, 1000 + 1000 * (uint64_t)i);

		fixture_switch(&event, i == 0 ? 6 : 5, 0, i == 0 ? 5 : 0);
		fixture_put(&pages, 0, &event);
		craft_done(&event);
		if (i == 0)
			craft_page_end(&pages, page, PAGE, 0);
		else
			craft_page_end_missed(&pages, page, PAGE, 7);
	}
	write_file(f, &(struct craft_file){
			      .formats = fixture_formats,
			      .n_formats = FIXTURE_FORMATS,
			      .pages = &pages,
		      });
	craft_done(&pages);
}

/* @n events of ids 10, 11, 10, 12 and so on, from @begin on, 10 apart */
static void add_dated(struct fixture *f, struct craft kind, uint64_t begin, unsigned first,
		      unsigned n, const char *date, const uint8_t *boot_id)
{
	struct craft pages = kind;
	const struct craft_file craft = {
		.formats = formats,
		.n_formats = ARRAY_SIZE(formats),
		.pages = &pages,
		.cmdlines = "5 five\n",
		.clock = date ? "local [mono]\n" : NULL,
		.date = date,
		.boot_id = boot_id,
	};
	size_t page = craft_page_begin(&pages, begin);

	for (unsigned i = first; i < first + n; i++)
		put_event(&pages, i > first ? 10 : 0,
			  i % 2 == 0   ? 10
			  : i % 4 == 1 ? 11
				       : 12,
			  i % 8 < 4 ? 5 : 6, i);
	craft_page_end(&pages, page, PAGE, 0);
	write_file(f, &craft);
	craft_done(&pages);
}

static void add_file(struct fixture *f, struct craft kind, uint64_t begin, unsigned first,
		     unsigned n)
{
	add_dated(f, kind, begin, first, n, NULL, NULL);
}

static void done(struct fixture *f)
{
	for (size_t i = 0; i < f->n; i++)
		close(f->fds[i]);
	text_done(&f->rows);
	text_done(&f->sheds);
	*f = (struct fixture){};
}

static int on_columns(void *userdata, const char *const *names, unsigned n)
{
	(void)userdata;
	for (unsigned i = 0; i < n; i++)
		assert_non_null(names[i]);
	return 0;
}

/* "1,x;2,-;" */
static int on_row(void *userdata, const struct query_cell *cells, unsigned n)
{
	struct fixture *f = userdata;

	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			text_char(&f->rows, ',');
		text_string(&f->rows, cells[i].kind == CELL_NULL ? "-" : cells[i].bytes);
	}
	text_char(&f->rows, ';');
	return 0;
}

static bool goes_on(void *userdata)
{
	struct fixture *f = userdata;

	return f->left > 0 && f->left-- > 0;
}

static void take_notes(struct fixture *f, struct query *query)
{
	struct query_notes notes;

	assert_int_equal(query_take_notes(query, &notes), 0);
	f->totals = notes.totals;
	f->sheds.size = 0;
	for (size_t i = 0; i < notes.sheds.n; i++) {
		const struct own_shed *shed = &notes.sheds.list[i];

		_cleanup_free_ char *line =
			strf("%s %" PRIu64 " %" PRIu64 ";", shed->event, shed->from, shed->to);

		text_string(&f->sheds, line);
	}
	text_char(&f->sheds, '\0');
	own_sheds_done(&notes.sheds);
	/* they are taken */
	assert_int_equal(query_take_notes(query, &notes), 0);
	assert_int_equal(notes.sheds.n, 0);
	assert_int_equal(notes.totals.events, 0);
}

static int run(struct fixture *f, const char *sql, struct fault *why)
{
	const struct event_filter filter = {};
	struct source sources[FILES];
	const struct query_config config = {
		.sources = sources, .n = f->n, .filter = &filter, .userdata = f};
	const struct query_limits limits = {.memory = MEMORY, .goes_on = goes_on, .userdata = f};
	const struct query_output output = {on_columns, on_row, f};
	struct query_database *database = NULL;
	struct query *query;
	int r;

	for (size_t i = 0; i < f->n; i++)
		sources[i] = (struct source){"f", f->fds[i], f->recording};
	f->rows.size = 0;
	if (f->left == 0)
		f->left = UINT32_MAX;
	if (query_new(&config, &query, why) < 0 ||
	    query_database_new(query, &limits, &database, why) < 0)
		fail_msg("%s", why->text);
	r = query_database_run(database, sql, false, &output, why);
	query_database_free(database);
	take_notes(f, query);
	query_unref(query);
	text_char(&f->rows, '\0');
	return r;
}

static void rows_are(struct fixture *f, const char *sql, const char *rows)
{
	struct fault why;

	if (run(f, sql, &why) < 0)
		fail_msg("%s: %s", sql, why.text);
	if (strcmp(f->rows.bytes, rows) != 0)
		fail_msg("%s: %s, not %s", sql, f->rows.bytes, rows);
}

/* Of all byte orders and sizes of long */
static void test_columns(void **state)
{
	(void)state;
	FOR_EACH_CRAFT(c)
	{
		struct fixture f = {};

		add_file(&f, c, 1000, 0, 8);
		rows_are(&f, "SELECT count(*), min(ts), max(ts) FROM events", "8,1000,1070;");
		rows_are(&f,
			 "SELECT ts, cpu, pid, comm, unit, system, name, lost_before FROM events "
			 "WHERE ts IN (1010, 1040)",
			 "1010,0,5,five,-,my,other-one,0;1040,0,6,-,-,my,event,0;");
		rows_are(&f, "SELECT fields FROM events WHERE ts = 1020",
			 "{\"pid\":0,\"how\":2,\"text\":\"x2\",\"big\":18446744073709551613,"
			 "\"list\":[2,1]};");
		/* the task's pid and the field's; as SQLite counts, and in the order of the format
		 */
		rows_are(&f, "SELECT * FROM my_event WHERE ts <= 1020",
			 "1000,0,5,five,-,0,0,x0,-1,[0,1];1020,0,5,five,-,0,2,x2,-3,[2,1];");
		rows_are(&f,
			 "SELECT pid, field_pid, how_name, pid_name FROM my_event WHERE how = 2",
			 "5,0,TWO,none;6,0,TWO,none;");
		done(&f);
	}
}

static void test_names(void **state)
{
	struct fixture f = {};

	(void)state;
	add_file(&f, craft_kinds[0], 1000, 0, 8);
	/* of two that would have the same name, and of one with a sign that is none of SQL's */
	rows_are(
		&f,
		"SELECT (SELECT count(*) FROM my_other_one), (SELECT count(*) FROM my_other_one_2)",
		"2,2;");
	rows_are(&f, "SELECT count(*) FROM pragma_module_list WHERE name LIKE 'my\\_%' ESCAPE '\\'",
		 "3;");
	rows_are(&f, "SELECT how_name, pid_name FROM my_event WHERE ts BETWEEN 1020 AND 1060",
		 "TWO,none;,none;TWO,none;");
	done(&f);
}

static void test_conditions(void **state)
{
	struct fixture f = {};

	(void)state;
	add_file(&f, craft_kinds[0], 1000, 0, 16);
	rows_are(&f, "SELECT count(*) FROM events WHERE ts > 1000 AND ts < 1030", "2;");
	rows_are(&f, "SELECT count(*) FROM events WHERE ts >= 1000 AND ts <= 1030.5", "4;");
	rows_are(&f, "SELECT count(*) FROM events WHERE ts > 1000.5 AND ts < 1029.5", "2;");
	rows_are(&f, "SELECT count(*) FROM events WHERE ts < '1030'", "3;");
	rows_are(&f, "SELECT count(*) FROM events WHERE ts < 'x'", "16;");
	rows_are(&f, "SELECT count(*) FROM events WHERE ts > 'x'", "0;");
	rows_are(&f, "SELECT count(*) FROM events WHERE ts < NULL", "0;");
	rows_are(&f, "SELECT count(*) FROM events WHERE ts BETWEEN 1030 AND 1020", "0;");
	rows_are(&f, "SELECT count(*) FROM events WHERE ts > -5 AND ts < 9223372036854775807",
		 "16;");
	rows_are(&f, "SELECT count(*) FROM events WHERE name = 'event'", "8;");
	rows_are(&f, "SELECT count(*) FROM events WHERE name IN ('event', 'one', NULL, x'00')",
		 "12;");
	rows_are(&f, "SELECT count(*) FROM events WHERE name IN ('no', 'such')", "0;");
	rows_are(&f, "SELECT count(*) FROM events WHERE name = NULL", "0;");
	rows_are(&f, "SELECT count(*) FROM events WHERE name = 'EVENT' COLLATE NOCASE", "8;");
	rows_are(&f, "SELECT count(*) FROM events WHERE system = 'my' AND name = 'one'", "0;");
	rows_are(&f, "SELECT count(*) FROM events WHERE name = 'event' OR pid = 6", "12;");
	rows_are(&f, "SELECT count(*) FROM events WHERE pid = 6", "8;");
	rows_are(&f, "SELECT count(*) FROM events WHERE pid IN (6, 7, 4294967302)", "8;");
	rows_are(&f, "SELECT count(*) FROM events WHERE cpu IN (0, 99999, -1)", "16;");
	rows_are(&f, "SELECT count(*) FROM events WHERE cpu = 1", "0;");
	rows_are(&f, "SELECT count(comm) FROM events WHERE cpu = 0 AND ts < 1040", "4;");
	done(&f);
}

static void test_groups(void **state)
{
	struct fixture f = {};

	(void)state;
	add_file(&f, craft_kinds[0], 1000, 0, 16);
	rows_are(&f, "SELECT name, count(*) FROM events GROUP BY name",
		 "event,8;one,4;other-one,4;");
	rows_are(
		&f,
		"SELECT name, comm, sum(ts) FROM events GROUP BY name, comm ORDER BY name DESC, comm",
		"other-one,-,2180;other-one,five,2100;"
		"one,-,2220;one,five,2140;"
		"event,-,4360;event,five,4200;");
	rows_are(&f, "SELECT DISTINCT name FROM events", "event;one;other-one;");
	/* conditions that SQLite looks at by itself */
	rows_are(
		&f,
		"SELECT name, count(*) FROM events WHERE comm IS NOT NULL AND ts % 20 = 0 GROUP BY name",
		"event,4;");
	rows_are(&f, "SELECT text, count(DISTINCT how), max(big) FROM my_event GROUP BY text",
		 "x0,2,-1;x1,2,-5;x2,2,-3;");
	/* texts that are others in each row are not kept */
	rows_are(&f, "SELECT name, count(DISTINCT fields) FROM events GROUP BY name",
		 "event,8;one,1;other-one,1;");
	rows_are(
		&f,
		"SELECT pid, median(ts), percentile(ts, 100), percentile(ts, 25) FROM events GROUP BY pid",
		"5,1055.0,1110.0,1017.5;6,1095.0,1150.0,1057.5;");
	rows_are(&f, "SELECT median(ts) FROM events WHERE pid = 7", "-;");
	/* small numbers, and those that are none; by SQLite itself, the rows of a table that has
	 * NULLs */
	rows_are(
		&f,
		"SELECT median(x), percentile(x, 75) FROM (SELECT 3 AS x UNION SELECT 5e9 UNION SELECT -1)",
		"3.0,2500000001.5;");
	rows_are(
		&f,
		"SELECT field_pid, count(*), sum(big), min(how), count(how) FROM my_event GROUP BY field_pid",
		"0,8,-64,0,8;");
	done(&f);
}

/* What files of one recording have in common comes once, else twice */
static void test_recording(void **state)
{
	struct fixture f = {};

	(void)state;
	add_file(&f, craft_kinds[0], 1000, 0, 8); /* to 1070 */
	add_file(&f, craft_kinds[0], 1040, 4, 8); /* to 1110 */
	add_file(&f, craft_kinds[0], 1020, 2, 3); /* to 1040 */
	rows_are(&f, "SELECT count(*), count(DISTINCT ts) FROM events", "19,12;");
	rows_are(&f, "SELECT count(*) FROM events WHERE ts >= 1040 AND ts < 1060", "5;");
	f.recording = 1;
	rows_are(&f, "SELECT count(*), count(DISTINCT ts) FROM events", "12,12;");
	rows_are(&f, "SELECT count(*) FROM events WHERE ts >= 1040 AND ts < 1060", "2;");
	rows_are(&f, "SELECT from_ts, to_ts, bytes FROM files ORDER BY from_ts",
		 "1000,1070,4096;1020,1040,4096;1040,1110,4096;");
	/* the same row in each scan */
	rows_are(&f, "SELECT count(*) FROM events WHERE rowid IN (SELECT rowid FROM events)",
		 "12;");
	done(&f);
}

/* By their clock, not by their dates, if both are of the same boot */
static void test_dates(void **state)
{
	static const uint8_t boots[2][16] = {{1}, {2}};

	(void)state;
	for (unsigned other = 0; other < 2; other++) {
		struct fixture f = {.recording = 1};

		add_dated(&f, craft_kinds[0], 1000, 0, 8, "0x10", boots[0]);
		add_dated(&f, craft_kinds[0], 1040, 4, 8, "0x13", boots[other]);
		rows_are(&f, "SELECT count(*), min(ts), max(ts) FROM events",
			 other ? "16,17000,20110;" : "12,17000,20110;");
		done(&f);
	}
}

/* Nothing waited while the events that tell were not recorded */
static void test_not_recorded(void **state)
{
	struct fixture f = {};

	(void)state;
	add_turns(&f, NULL);
	rows_are(&f, "SELECT count(*), sum(nsec) FROM runqueue", "4,40;");
	done(&f);
	add_turns(&f, "1005\t1025\tsched:sched_switch\n");
	rows_are(&f, "SELECT ts, nsec FROM runqueue", "1000,10;1010,10;1030,10;");
	done(&f);
}

static void notes_are(struct fixture *f, const char *sql, const char *sheds, uint64_t gaps,
		      uint64_t ended)
{
	struct fault why;

	if (run(f, sql, &why) < 0)
		fail_msg("%s: %s", sql, why.text);
	if (strcmp(f->sheds.bytes, sheds) != 0)
		fail_msg("%s: %s, not %s", sql, f->sheds.bytes, sheds);
	if (f->totals.gaps != gaps || f->totals.ended != ended)
		fail_msg("%s: %" PRIu64 " gaps, %" PRIu64 " ended", sql, f->totals.gaps,
			 f->totals.ended);
}

/* Only of the kinds of events and the times that were asked for. What was shed ends waits, too. */
static void test_notes(void **state)
{
	struct fixture f = {};

	(void)state;
	add_turns(&f, "900\t1025\tsched:sched_switch\n"
		      "1030\t18446744073709551615\tsched:sched_waking\n");
	notes_are(&f, "SELECT count(*) FROM runqueue",
		  "sched:sched_switch 1000 1025;sched:sched_waking 1030 1040;", 0, 2);
	notes_are(&f, "SELECT count(*) FROM events",
		  "sched:sched_switch 1000 1025;sched:sched_waking 1030 1040;", 0, 0);
	notes_are(&f, "SELECT count(*) FROM sched_sched_waking", "sched:sched_waking 1030 1040;", 0,
		  0);
	notes_are(&f, "SELECT count(*) FROM events WHERE name = 'sched_switch'",
		  "sched:sched_switch 1000 1025;", 0, 0);
	notes_are(&f, "SELECT count(*) FROM events WHERE ts BETWEEN 1030 AND 1040",
		  "sched:sched_waking 1030 1040;", 0, 0);
	notes_are(&f, "SELECT count(*) FROM events a, events b",
		  "sched:sched_switch 1000 1025;sched:sched_waking 1030 1040;", 0, 0);
	notes_are(&f, "SELECT count(*) FROM files", "", 0, 0);
	done(&f);
	/* between two pages events were lost */
	add_losses(&f);
	notes_are(&f, "SELECT count(*) FROM events", "", 1, 0);
	notes_are(&f, "SELECT count(*) FROM events a, events b", "", 1, 0);
	notes_are(&f, "SELECT count(*) FROM runqueue", "", 1, 0);
	notes_are(&f, "SELECT count(*) FROM events WHERE ts < 1020", "", 0, 0);
	notes_are(&f, "SELECT 1", "", 0, 0);
	done(&f);
}

static void fails(struct fixture *f, const char *sql, int error, const char *text)
{
	struct fault why;
	int r = run(f, sql, &why);

	if (r != error || !strstr(why.text, text))
		fail_msg("%s: %d, %s", sql, r, why.text);
}

static void test_limits(void **state)
{
	struct fixture f = {};

	(void)state;
	add_file(&f, craft_kinds[0], 1000, 0, 16);
	fails(&f, "DELETE FROM events", -EINVAL, "");
	fails(&f, "ATTACH ':memory:' AS x", -EINVAL, "only reading");
	fails(&f, "PRAGMA hard_heap_limit=0", -EINVAL, "only reading");
	fails(&f, "UPDATE sqlite_master SET name = 'x'", -EINVAL, "");
	fails(&f, "SELECT load_extension('x')", -EINVAL, "load_extension");
	fails(&f, "SELECT nothing FROM events", -EINVAL, "nothing");
	fails(&f, "SELECT percentile(ts, 101) FROM events", -EINVAL, "between 0 and 100");
	fails(&f, "SELECT percentile(ts, pid) FROM events", -EINVAL, "the same in all rows");
	fails(&f,
	      "WITH RECURSIVE f(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM f LIMIT 1000000) "
	      "SELECT count(DISTINCT hex(randomblob(50)) || x) FROM f",
	      -ENOMEM, "16 MiB");
	f.left = 3;
	fails(&f,
	      "WITH RECURSIVE f(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM f) SELECT count(*) FROM f",
	      -EINTR, "interrupted");
	done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),	     cmocka_unit_test(test_names),
		cmocka_unit_test(test_conditions),   cmocka_unit_test(test_groups),
		cmocka_unit_test(test_recording),    cmocka_unit_test(test_dates),
		cmocka_unit_test(test_not_recorded), cmocka_unit_test(test_notes),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "analysis/source-set.h"
#include "basic/array-room.h"
#include "convert/clickhouse/clickhouse-facts.h"
#include "convert/clickhouse/native.h"
#include "decode/who.h"
#include "formats/own-cause.h"
#include "formats/own-clocks.h"
#include "formats/own-findings.h"
#include "formats/own-section.h"

#define COLUMNS_MAX 10U

struct cell {
	uint64_t number;
	size_t at, size; /* of a text, in texts */
};

/* Rows until there are all */
struct rows {
	struct clickhouse_facts *facts;
	const struct table *table;
	struct text texts;
	struct cell *cells;
	size_t n_cells;
};

struct table {
	const char *name;
	int (*add)(struct rows *rows, struct fault *why);
	struct {
		const char *name, *type;
		size_t size; /* of a number; 0: a text */
	} columns[COLUMNS_MAX];
};

/* For add_row(): a value of a column */
struct value {
	uint64_t number;
	const char *text; /* NULL: "" */
};

static size_t n_columns(const struct table *table)
{
	size_t n = 0;

	while (n < COLUMNS_MAX && table->columns[n].name)
		n++;
	return n;
}

/* As many as the table has columns */
static int add_row(struct rows *rows, const struct value *values)
{
	const size_t n = n_columns(rows->table);

	for (size_t i = 0; i < n; i++) {
		const char *text = values[i].text ? values[i].text : "";

		if (array_grow(&rows->cells, rows->n_cells, sizeof(*rows->cells)) < 0)
			return -ENOMEM;
		rows->cells[rows->n_cells++] = (struct cell){
			.number = values[i].number, .at = rows->texts.size, .size = strlen(text)};
		text_string(&rows->texts, text);
	}
	return rows->texts.no_memory ? -ENOMEM : 0;
}

static void tell(struct clickhouse_facts *facts, const char *line)
{
	facts->n_faults++;
	facts->on_fault(line);
}

/* A kind of flyrec's own section; Return: 1, 0 there is none, or negative errno */
static int read_own(struct rows *rows, enum own_kind kind, uint8_t **ret, size_t *ret_size,
		    struct fault *why)
{
	int r = own_section_read(rows->facts->export->dat, kind, ret, ret_size, why);

	if (r == -EBADMSG)
		tell(rows->facts, why->text);
	return r == -EBADMSG || r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* --- tasks */

/* Times to the end of what the type can hold: still */
static uint64_t time_value(uint64_t ts)
{
	return MIN(ts, (uint64_t)INT64_MAX);
}

static int add_task(void *userdata, int32_t pid, uint64_t from, uint64_t to,
		    const struct task_who *is)
{
	const struct task_place *place = is->place;

	return add_row(userdata, (const struct value[]){
					 {.number = (uint64_t)pid},
					 {.number = (uint64_t)is->tgid},
					 {.text = is->process},
					 {.text = place ? place->names.unit : NULL},
					 {.text = place ? place->names.container : NULL},
					 {.text = place ? place->path : NULL},
					 {.number = time_value(from)},
					 {.number = time_value(to)},
				 });
}

static int add_tasks(struct rows *rows, struct fault *why)
{
	_cleanup_(who_freep) struct who *who = NULL;
	struct who_file file;
	struct fault damage;
	int r = who_new(NULL, NULL, true, &who);

	if (r >= 0)
		r = who_add_file(who, rows->facts->export->decoder, &file, &damage, why);
	if (r < 0)
		return r;
	who_file_done(&file);
	if (damage.text[0])
		tell(rows->facts, damage.text);
	return who_each(who, add_task, rows);
}

/* --- clocks */

static int add_reading(struct rows *rows, const char *clock, const struct own_clock *c)
{
	const bool status = !(c->flags & OWN_CLOCK_NO_STATUS);

	return add_row(rows, (const struct value[]){
				     {.text = own_clock_at_name(c->at)},
				     {.number = c->realtime},
				     {.text = clock},
				     {.number = c->trace},
				     {.number = c->mono_raw},
				     {.number = c->boot},
				     {.number = c->width},
				     {.number = status ? c->maxerror : UINT32_MAX},
				     {.number = status ? c->status : 0},
				     {.number = (uint64_t)c->tai},
			     });
}

static int add_clocks(struct rows *rows, struct fault *why)
{
	_cleanup_free_ struct own_clocks *clocks = malloc(sizeof(*clocks));
	const struct own_clock *list[OWN_CLOCKS_MAX];
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size, n;
	int r = clocks ? read_own(rows, OWN_CLOCKS, &bytes, &size, why) : -ENOMEM;

	if (r <= 0 || own_clocks_take(bytes, size, rows->facts->export->dat->big_endian, clocks,
				      NULL, NULL) < 0)
		return r;
	n = own_clocks_list(clocks, list);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = add_reading(rows, clocks->clock, list[i]);
	return r;
}

/* --- findings */

static int add_finding(void *userdata, const struct own_finding *finding)
{
	const struct rows *rows = userdata;
	const bool usecs = decoder_facts(rows->facts->export->decoder)->in_usecs;

	return add_row(userdata,
		       (const struct value[]){
			       {.number = finding->start_usec * (usecs ? NSEC_PER_USEC : 1)},
			       {.number = finding->duration_nsec},
			       {.number = finding->score},
			       {.text = finding->rule},
			       {.number = finding->pid},
			       {.text = finding->task},
			       {.text = finding->unit},
			       {.text = finding->text},
		       });
}

static int add_findings(struct rows *rows, struct fault *why)
{
	return export_findings(rows->facts->export, add_finding, rows, rows->facts->on_fault,
			       &rows->facts->n_faults, why);
}

/* --- snapshots: a row a file, or more where it has several causes */

/* The first line of a cause's text may be "id: ID" */
static int add_cause(struct rows *rows, const struct own_cause *cause,
		     const struct source_look *look)
{
	const char *line =
		cause->text && strncmp(cause->text, "id: ", 4) == 0 ? cause->text + 4 : "";
	_cleanup_free_ char *id = strndup(line, strcspn(line, "\n"));
	const bool any = look->first != UINT64_MAX;

	if (!id)
		return -ENOMEM;
	return add_row(rows, (const struct value[]){
				     {.number = cause->usec * NSEC_PER_USEC},
				     {.text = id},
				     {.text = cause->reason},
				     {.text = cause->text},
				     {.number = any ? look->first : 0},
				     {.number = any ? look->last : 0},
				     {.number = rows->facts->export->dat->n_cpus},
				     {.number = look->bytes},
			     });
}

static int add_causes(struct rows *rows, const struct source_look *look, struct fault *why)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct own_cause cause;
	size_t size, at = 0;
	bool any = false;
	int r = read_own(rows, OWN_CAUSE, &bytes, &size, why), taken;

	while (r > 0 && (taken = own_cause_take(bytes, size, rows->facts->export->dat->big_endian,
						&at, &cause)) != 0) {
		any |= taken > 0;
		if (taken < 0)
			tell(rows->facts, "what the snapshot was taken for is damaged");
		else if (add_cause(rows, &cause, look) < 0)
			return -ENOMEM;
	}
	if (r < 0 || any)
		return r;
	return add_cause(rows, &(struct own_cause){}, look);
}

static int add_snapshots(struct rows *rows, struct fault *why)
{
	const struct trace_dat *dat = rows->facts->export->dat;
	const struct source source = {.name = dat->path, .fd = dat->fd};
	_cleanup_(source_set_freep) struct source_set *set = NULL;
	const struct source_look *look;
	int r = source_set_new(&source, 1, &set);

	if (r >= 0)
		r = source_set_look(set, 0, true, &look, why);
	return r < 0 ? r : add_causes(rows, look, why);
}

/* --- all */

static const struct table tables[] = {
	{"tasks",
	 add_tasks,
	 {{"pid", NATIVE_I32, 4},
	  {"tgid", NATIVE_I32, 4},
	  {"comm", NATIVE_WORD, 0},
	  {"unit", NATIVE_WORD, 0},
	  {"container", NATIVE_WORD, 0},
	  {"cgroup", NATIVE_WORD, 0},
	  {"from_ts", NATIVE_TIME, 8},
	  {"to_ts", NATIVE_TIME, 8}}},
	{"clocks",
	 add_clocks,
	 {{"at", NATIVE_WORD, 0},
	  {"ts", NATIVE_TIME, 8},
	  {"clock", NATIVE_WORD, 0},
	  {"trace", NATIVE_U64, 8},
	  {"mono_raw", NATIVE_U64, 8},
	  {"boot", NATIVE_U64, 8},
	  {"width", NATIVE_U32, 4},
	  {"maxerror", NATIVE_U32, 4},
	  {"status", NATIVE_U32, 4},
	  {"tai", NATIVE_I32, 4}}},
	{"findings",
	 add_findings,
	 {{"ts", NATIVE_TIME, 8},
	  {"nsec", NATIVE_U64, 8},
	  {"score", NATIVE_U64, 8},
	  {"rule", NATIVE_WORD, 0},
	  {"pid", NATIVE_I32, 4},
	  {"task", NATIVE_WORD, 0},
	  {"unit", NATIVE_WORD, 0},
	  {"text", NATIVE_WORD, 0}}},
	{"snapshots",
	 add_snapshots,
	 {{"ts", NATIVE_TIME, 8},
	  {"id", NATIVE_WORD, 0},
	  {"reason", NATIVE_WORD, 0},
	  {"text", NATIVE_WORD, 0},
	  {"from_ts", NATIVE_TIME, 8},
	  {"to_ts", NATIVE_TIME, 8},
	  {"cpus", NATIVE_U16, 2},
	  {"bytes", NATIVE_U64, 8}}},
};

static const struct table *find_table(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (strcmp(tables[i].name, name) == 0)
			return &tables[i];
	return NULL;
}

bool clickhouse_facts_has(const char *table)
{
	return find_table(table) != NULL;
}

static void put_column(const struct rows *rows, size_t column, struct native_block *block,
		       struct native_words *words)
{
	const struct table *table = rows->table;
	const size_t step = n_columns(table), size = table->columns[column].size;

	if (size)
		native_column(block, table->columns[column].name, table->columns[column].type);
	else
		native_words_begin(words, block->rows);
	for (size_t i = column; i < rows->n_cells; i += step) {
		const struct cell *cell = &rows->cells[i];

		if (size)
			native_number(block->out, cell->number, size);
		else
			native_words_add(words, cell->size ? rows->texts.bytes + cell->at : "",
					 cell->size);
	}
	if (!size)
		native_words_put(words, block, table->columns[column].name);
}

static void put_block(const struct rows *rows, struct text *out)
{
	const struct clickhouse_labels *labels = &rows->facts->labels;
	const size_t n = n_columns(rows->table);
	struct native_words words = {};
	struct native_block block;

	native_begin(&block, out, rows->n_cells / n);
	native_word(&block, "host", labels->host);
	native_word(&block, "boot_id", labels->boot_id);
	native_word(&block, "session", labels->session);
	native_word(&block, "file", labels->file);
	for (size_t i = 0; i < n; i++)
		put_column(rows, i, &block, &words);
	native_words_done(&words);
}

int clickhouse_facts_put(struct clickhouse_facts *facts, const char *table, struct text *out,
			 struct fault *why)
{
	struct rows rows = {.facts = facts, .table = find_table(table)};
	int r;

	why->error = 0;
	r = rows.table->add(&rows, why);
	if (r >= 0 && rows.n_cells > 0)
		put_block(&rows, out);
	if (out->no_memory)
		r = -ENOMEM;
	text_done(&rows.texts);
	free(rows.cells);
	return r < 0 && why->error == 0
		       ? fault_errno(why, r, "%s: cannot export", facts->export->dat->path)
		       : MIN(r, 0);
}

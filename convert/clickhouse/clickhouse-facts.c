/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "analysis/source-set.h"
#include "convert/clickhouse/clickhouse-facts.h"
#include "decode/who.h"
#include "formats/own-cause.h"
#include "formats/own-clocks.h"
#include "formats/own-findings.h"
#include "formats/own-section.h"

/* Rows of a table on their way out */
struct rows {
	struct clickhouse_facts *facts;
	struct native_rows *rows;
	struct text *out;
};

struct table {
	int (*add)(struct rows *rows, struct fault *why);
	struct native_table native;
};

static int add_row(const struct rows *rows, const struct native_value *values)
{
	return native_rows_add(rows->rows, values, rows->out);
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

	return add_row(userdata, (const struct native_value[]){
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

	return add_row(rows, (const struct native_value[]){
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
		       (const struct native_value[]){
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
	return add_row(rows, (const struct native_value[]){
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
	const struct source source = {
		.name = dat->path, .fd = dat->fd, .frame = rows->facts->export->frame};
	_cleanup_(source_set_freep) struct source_set *set = NULL;
	const struct source_look *look;
	int r = source_set_new(&source, 1, &set);

	if (r >= 0)
		r = source_set_look(set, 0, true, &look, why);
	return r < 0 ? r : add_causes(rows, look, why);
}

/* --- all */

static const struct table tables[] = {
	{add_tasks,
	 {"tasks",
	  {{"pid", NATIVE_I32},
	   {"tgid", NATIVE_I32},
	   {"comm", NATIVE_WORD},
	   {"unit", NATIVE_WORD},
	   {"container", NATIVE_WORD},
	   {"cgroup", NATIVE_WORD},
	   {"from_ts", NATIVE_TIME},
	   {"to_ts", NATIVE_TIME}}}},
	{add_clocks,
	 {"clocks",
	  {{"at", NATIVE_WORD},
	   {"ts", NATIVE_TIME},
	   {"clock", NATIVE_WORD},
	   {"trace", NATIVE_U64},
	   {"mono_raw", NATIVE_U64},
	   {"boot", NATIVE_U64},
	   {"width", NATIVE_U32},
	   {"maxerror", NATIVE_U32},
	   {"status", NATIVE_U32},
	   {"tai", NATIVE_I32}}}},
	{add_findings,
	 {"findings",
	  {{"ts", NATIVE_TIME},
	   {"nsec", NATIVE_U64},
	   {"score", NATIVE_U64},
	   {"rule", NATIVE_WORD},
	   {"pid", NATIVE_I32},
	   {"task", NATIVE_WORD},
	   {"unit", NATIVE_WORD},
	   {"text", NATIVE_WORD}}}},
	{add_snapshots,
	 {"snapshots",
	  {{"ts", NATIVE_TIME},
	   {"id", NATIVE_WORD},
	   {"reason", NATIVE_WORD},
	   {"text", NATIVE_WORD},
	   {"from_ts", NATIVE_TIME},
	   {"to_ts", NATIVE_TIME},
	   {"cpus", NATIVE_U16},
	   {"bytes", NATIVE_U64}}}},
};

static const struct table *find_table(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (strcmp(tables[i].native.name, name) == 0)
			return &tables[i];
	return NULL;
}

bool clickhouse_facts_has(const char *table)
{
	return find_table(table) != NULL;
}

int clickhouse_facts_put(struct clickhouse_facts *facts, const char *table, struct text *out,
			 struct fault *why)
{
	const struct table *is = find_table(table);
	struct rows rows = {.facts = facts, .out = out};
	int r = native_rows_new(&is->native, &facts->labels, &rows.rows);

	why->error = 0;
	if (r >= 0)
		r = is->add(&rows, why);
	if (r >= 0)
		r = native_rows_end(rows.rows, out);
	native_rows_free(rows.rows);
	return r < 0 && why->error == 0
		       ? fault_errno(why, r, "%s: cannot export", facts->export->dat->path)
		       : MIN(r, 0);
}

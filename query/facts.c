/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/strv.h"
#include "decode/who.h"
#include "formats/own-clocks.h"
#include "formats/own-section.h"
#include "query/facts.h"
#include "query/query-internal.h"

#define CMDLINES_MAX (16 * MIB)

struct query_scan {
	struct query *query;
	struct who *who; /* has texts of rows */
	char **texts;	 /* others that rows have */
	size_t n_texts;
	size_t n_columns;
	struct value *cells; /* row by row */
	size_t n_cells;
	size_t row;	/* its number, from 1 on */
	int64_t before; /* numbers of rows of hosts before */
};

struct kind {
	/* Add the rows of a file */
	int (*add)(struct query_scan *scan, size_t source, const struct decoder *decoder,
		   struct fault *why);
	int (*finish)(struct query_scan *scan); /* NULL: that was all */
};

static int add_cell(struct query_scan *scan, struct value value)
{
	if (array_grow(&scan->cells, scan->n_cells, sizeof(*scan->cells)) < 0)
		return -ENOMEM;
	scan->cells[scan->n_cells++] = value;
	return 0;
}

/* Of a text that lasts as long as the scan; NULL is fine */
static struct value text_value(const char *text)
{
	return text && *text
		       ? (struct value){.kind = VALUE_TEXT, .text = text, .size = strlen(text)}
		       : (struct value){};
}

static struct value time_value(uint64_t ts)
{
	return ts == 0 || ts == UINT64_MAX ? (struct value){} : value_number((int64_t)ts);
}

/* As many as the table has columns */
static int add_row(struct query_scan *scan, const struct value *values)
{
	int r = 0;

	for (size_t i = 0; i < scan->n_columns && r >= 0; i++)
		r = add_cell(scan, values[i]);
	return r;
}

/* A copy that lasts as long as the scan */
static int keep_text(struct query_scan *scan, const char *text, const char **ret)
{
	char *copy = strdup(text);

	if (!copy || array_grow(&scan->texts, scan->n_texts, sizeof(*scan->texts)) < 0) {
		free(copy);
		return -ENOMEM;
	}
	*ret = scan->texts[scan->n_texts++] = copy;
	return 0;
}

/* --- tasks */

/* pid, tgid, comm, unit, container, cgroup, from_ts, to_ts */
static int add_said(void *userdata, int32_t pid, uint64_t from, uint64_t to,
		    const struct task_who *is)
{
	const struct task_place *place = is->place;

	return add_row(userdata, (const struct value[]){
					 value_number(pid),
					 is->tgid > 0 ? value_number(is->tgid) : (struct value){},
					 text_value(is->process),
					 text_value(place ? place->names.unit : NULL),
					 text_value(place ? place->names.container : NULL),
					 text_value(place ? place->path : NULL),
					 time_value(from),
					 time_value(to),
				 });
}

/* "PID NAME" of a task that is not known otherwise */
static int add_name(struct query_scan *scan, char *line)
{
	char *name;
	const long pid = strtol(line, &name, 10);
	const char *kept;
	int r;

	if (pid <= 0 || pid > INT32_MAX || *name != ' ' ||
	    who_find(scan->who, (int32_t)pid, UINT64_MAX))
		return 0;
	r = keep_text(scan, name + 1, &kept);
	if (r < 0)
		return r;
	return add_row(scan, (const struct value[8]){value_number(pid), {}, text_value(kept)});
}

static int add_tasks(struct query_scan *scan, size_t source, const struct decoder *decoder,
		     struct fault *why)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	_cleanup_free_ char *names = NULL;
	struct fault damage;
	struct who_file file;
	char *next = NULL;
	int r = scan->who ? 0 : who_new(NULL, NULL, true, &scan->who);

	(void)source;
	if (r >= 0)
		r = who_add_file(scan->who, decoder, &file, &damage, why);
	if (r < 0)
		return r;
	who_file_done(&file);
	scan->query->n_faults += damage.text[0] != '\0';
	if (damage.text[0] && scan->query->config.on_fault)
		scan->query->config.on_fault(damage.text);
	if (file.says)
		return 0;
	r = trace_dat_load(dat, &dat->cmdlines, CMDLINES_MAX, &names, why);
	for (char *line = r < 0 ? NULL : strtok_r(names, "\n", &next); line && r >= 0;
	     line = strtok_r(NULL, "\n", &next))
		r = add_name(scan, line);
	return r;
}

static int finish_tasks(struct query_scan *scan)
{
	return scan->who ? who_each(scan->who, add_said, scan) : 0;
}

/* --- clocks */

/* file, at, ts, trace, mono_raw, boot, width, maxerror, status, tai */
static int add_reading(struct query_scan *scan, const char *file, const struct own_clock *c)
{
	const bool status = !(c->flags & OWN_CLOCK_NO_STATUS);
	const struct value none = {};

	return add_row(
		scan,
		(const struct value[]){
			text_value(file),
			text_value(own_clock_at_name(c->at)),
			value_number((int64_t)c->realtime),
			c->flags & OWN_CLOCK_NO_TRACE ? none : value_number((int64_t)c->trace),
			value_number((int64_t)c->mono_raw),
			value_number((int64_t)c->boot),
			value_number(c->width),
			status ? value_number(c->maxerror) : none,
			status ? value_number(c->status) : none,
			value_number(c->tai),
		});
}

static int add_clocks(struct query_scan *scan, size_t source, const struct decoder *decoder,
		      struct fault *why)
{
	const char *name = source_set_source(scan->query->set, source)->name;
	const struct trace_dat *dat = decoder_dat(decoder);
	_cleanup_free_ uint8_t *bytes = NULL;
	_cleanup_free_ struct own_clocks *clocks = malloc(sizeof(*clocks));
	const struct own_clock *list[OWN_CLOCKS_MAX];
	size_t size, n;
	int r = clocks ? own_section_read(dat, OWN_CLOCKS, &bytes, &size, why) : -ENOMEM;

	if (r == -ENOENT || r == -EBADMSG)
		return 0;
	if (r < 0)
		return r;
	if (own_clocks_take(bytes, size, dat->big_endian, clocks, NULL, NULL) < 0)
		return 0;
	n = own_clocks_list(clocks, list);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = add_reading(scan, name, list[i]);
	return r;
}

/* --- files */

/* file, version, bytes, from_ts, to_ts, cpus, buffers, clock */
static int add_file(struct query_scan *scan, size_t source, const struct decoder *decoder,
		    struct fault *why)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	_cleanup_free_ char *text = NULL, *clock = NULL;
	const struct source_look *look;
	const char *kept = NULL;
	int r = source_set_look(scan->query->set, source, true, &look, why);

	if (r >= 0)
		r = trace_dat_clock(dat, &text, why);
	if (r < 0)
		return r;
	clock = trace_dat_clock_name(text);
	r = clock ? keep_text(scan, clock, &kept) : -ENOMEM;
	if (r < 0)
		return r;
	return add_row(scan, (const struct value[]){
				     text_value(source_set_source(scan->query->set, source)->name),
				     value_number(dat->version),
				     value_number((int64_t)look->bytes),
				     time_value(look->first),
				     time_value(look->last),
				     value_number(dat->n_cpus),
				     value_number((int64_t)dat->n_buffers),
				     text_value(kept),
			     });
}

/* --- a scan */

static void close_scan(struct query_scan *scan)
{
	if (!scan)
		return;
	who_free(scan->who);
	for (size_t i = 0; i < scan->n_texts; i++)
		free(scan->texts[i]);
	free(scan->texts);
	free(scan->cells);
	free(scan);
}

static int add_source(struct query_scan *scan, const struct kind *kind, size_t source,
		      struct fault *why)
{
	const struct decoder *decoder;
	int r = source_set_open(scan->query->set, source, &decoder, why);

	if (r < 0)
		return r;
	r = kind->add(scan, source, decoder, why);
	source_set_close(scan->query->set, source);
	return r == -ENOMEM ? fault_errno(why, r, "cannot query") : r;
}

static int open_scan(struct query *query, struct query_table *table, const struct query_want *want,
		     struct query_scan **ret, struct fault *why)
{
	const struct kind *kind = table->kind;
	struct query_scan *scan = calloc(1, sizeof(*scan));
	int r = 0;

	(void)want;
	if (!scan)
		return fault_errno(why, -ENOMEM, "cannot query");
	scan->query = query;
	scan->before = (int64_t)query->host << HOST_ROWS;
	scan->n_columns = table->n_columns;
	source_set_fresh(query->set);
	for (size_t i = 0; i < source_set_size(query->set) && r >= 0; i++)
		if (text_equal(source_set_source(query->set, i)->host,
			       query->hosts.names[query->host]))
			r = add_source(scan, kind, i, why);
	if (r >= 0 && kind->finish && kind->finish(scan) < 0)
		r = fault_errno(why, -ENOMEM, "cannot query");
	if (r < 0) {
		close_scan(scan);
		return r;
	}
	*ret = scan;
	return 0;
}

static int next_row(struct query_scan *scan, struct fault *why)
{
	(void)why;
	return scan->row++ * scan->n_columns < scan->n_cells;
}

static int64_t row_number(const struct query_scan *scan)
{
	return scan->before + (int64_t)scan->row;
}

static int column_value(struct query_scan *scan, unsigned column, struct value *ret)
{
	*ret = scan->cells[(scan->row - 1) * scan->n_columns + column];
	return 0;
}

static const struct query_table_type type = {
	.open = open_scan,
	.next = next_row,
	.column = column_value,
	.row = row_number,
	.close = close_scan,
};

#define TABLE(name_, columns_, ...)                        \
	const struct query_table name_##_table = {         \
		.name = (char *)#name_,                    \
		.type = &type,                             \
		.kind = &(const struct kind){__VA_ARGS__}, \
		.columns = (columns_),                     \
		.n_columns = ARRAY_SIZE(columns_),         \
	}

static struct query_column tasks_columns[] = {
	{"pid", 0},
	{"tgid", 0},
	{"comm", COLUMN_TEXT},
	{"unit", COLUMN_TEXT},
	{"container", COLUMN_TEXT},
	{"cgroup", COLUMN_TEXT},
	{"from_ts", 0},
	{"to_ts", 0},
};
TABLE(tasks, tasks_columns, add_tasks, finish_tasks);

static struct query_column clocks_columns[] = {
	{"file", COLUMN_TEXT}, {"at", COLUMN_TEXT}, {"ts", 0},	     {"trace", 0},  {"mono_raw", 0},
	{"boot", 0},	       {"width", 0},	    {"maxerror", 0}, {"status", 0}, {"tai", 0},
};
TABLE(clocks, clocks_columns, add_clocks, NULL);

static struct query_column files_columns[] = {
	{"file", COLUMN_TEXT}, {"version", 0}, {"bytes", 0},   {"from_ts", 0},
	{"to_ts", 0},	       {"cpus", 0},    {"buffers", 0}, {"clock", COLUMN_TEXT},
};
TABLE(files, files_columns, add_file, NULL);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <search.h>
#include <string.h>
#include <strings.h>

#include "basic/crc32.h"
#include "basic/strv.h"
#include "query/events.h"
#include "query/facts.h"
#include "query/query-internal.h"
#include "query/waits.h"

#define READ_MEMORY (8 * MIB) /* of each file that is read; one after the other, mostly */

/* --- kinds of events */

static void free_kind(struct event_kind *kind)
{
	if (!kind)
		return;
	free(kind->system);
	free(kind->name);
	free(kind->formats);
	free(kind);
}

static struct event_kind *new_kind(const char *system, const char *name)
{
	struct event_kind *kind = calloc(1, sizeof(*kind));

	if (!kind)
		return NULL;
	kind->system = strdup(system);
	kind->name = strdup(name);
	if (kind->system && kind->name)
		return kind;
	free_kind(kind);
	return NULL;
}

static int by_kind(const void *a, const void *b)
{
	const struct event_kind *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r != 0 ? r : strcmp(x->system, y->system);
}

/* NULL without memory */
static struct event_kind *get_kind(struct query *q, const char *system, const char *name)
{
	struct event_kind like = {.system = (char *)system, .name = (char *)name};
	struct event_kind **found = tfind(&like, &q->by_kind, by_kind), *kind;

	if (found)
		return *found;
	kind = new_kind(system, name);
	if (!kind || array_grow(&q->kinds, q->n_kinds, sizeof(*q->kinds)) < 0 ||
	    !tsearch(kind, &q->by_kind, by_kind)) {
		free_kind(kind);
		return NULL;
	}
	q->kinds[q->n_kinds++] = kind;
	return kind;
}

static int add_format(struct event_kind *kind, size_t source, uint32_t checksum)
{
	for (size_t i = 0; i < kind->n_formats; i++)
		if (kind->formats[i].checksum == checksum)
			return 0;
	if (array_grow(&kind->formats, kind->n_formats, sizeof(*kind->formats)) < 0)
		return -ENOMEM;
	kind->formats[kind->n_formats++] = (struct event_format){source, checksum};
	return 0;
}

static int add_kind(struct query *q, const struct decoder *decoder, size_t source, size_t format)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	const char *system = dat->systems[dat->formats[format].system];
	const char *name = decoder_name(decoder, format), *fields;
	struct event_kind *kind;

	if (!*name)
		return 0;
	kind = get_kind(q, system, name);
	if (!kind)
		return -ENOMEM;
	fields = strstr(decoder_format_text(decoder, format), "format:");
	return add_format(kind, source, fields ? crc32_add(0, fields, strlen(fields)) : 0);
}

static int add_source(struct query *q, size_t source, struct fault *why)
{
	const struct source_look *look;
	const struct decoder *decoder;
	int r = source_set_open(q->set, source, &decoder, why);

	if (r < 0)
		return r;
	r = source_set_look(q->set, source, false, &look, why);
	if (r >= 0)
		q->bytes += look->bytes;
	if (r >= 0)
		r = sources_read_sheds(decoder, &q->sheds, why);
	for (size_t i = 0; i < decoder_dat(decoder)->n_formats && r >= 0; i++)
		if (add_kind(q, decoder, source, i) < 0)
			r = fault_errno(why, -ENOMEM, "cannot query");
	source_set_close(q->set, source);
	return r;
}

/* --- tables */

static void free_table(struct query_table *table)
{
	for (size_t i = 0; table->own_columns && i < table->n_columns; i++)
		free((char *)table->columns[i].name);
	if (table->own_columns)
		free(table->columns);
	free(table->name);
	free(table);
}

/* Takes over the name */
static int add_table(struct query *q, const struct query_table *like, char *name)
{
	struct query_table *table = name ? malloc(sizeof(*table)) : NULL;

	if (!table || array_grow(&q->tables, q->n_tables, sizeof(*q->tables)) < 0) {
		free(name);
		free(table);
		return -ENOMEM;
	}
	*table = *like;
	table->name = name;
	q->tables[q->n_tables++] = table;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct query_table *const *x = a, *const *y = b;

	return strcasecmp((*x)->name, (*y)->name);
}

/* "a_b:c" and "a:b_c" would have the same one */
static int make_unique(struct query *q, size_t first)
{
	unsigned n = 1;

	for (size_t i = first + 1; i < q->n_tables; i++) {
		char *name;

		if (strcasecmp(q->tables[i]->name, q->tables[i - 1]->name) != 0) {
			n = 1;
			continue;
		}
		name = strf("%s_%u", q->tables[i]->name, ++n);
		if (!name)
			return -ENOMEM;
		free(q->tables[i]->name);
		q->tables[i]->name = name;
		SWAP(q->tables[i], q->tables[i - 1]); /* the next is compared with the plain one */
	}
	return 0;
}

static int add_event_tables(struct query *q)
{
	const size_t first = q->n_tables;

	for (size_t i = 0; i < q->n_kinds; i++) {
		struct query_table table = {.type = &events_type, .kind = q->kinds[i]};
		char *name = strf("%s_%s", q->kinds[i]->system, q->kinds[i]->name);

		for (char *p = name; p && *p; p++)
			if (!isalnum((unsigned char)*p))
				*p = '_';
		if (add_table(q, &table, name) < 0)
			return -ENOMEM;
	}
	qsort(q->tables + first, q->n_tables - first, sizeof(*q->tables), by_name);
	return make_unique(q, first);
}

static int add_tables(struct query *q)
{
	static const struct query_table *const tables[] = {
		&events_table,	 &runqueue_table, &blocked_table, &irqs_table,	&block_table,
		&syscalls_table, &tasks_table,	  &clocks_table,  &files_table,
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (add_table(q, tables[i], strdup(tables[i]->name)) < 0)
			return -ENOMEM;
	return add_event_tables(q);
}

int query_table_columns(struct query *query, struct query_table *table, struct fault *why)
{
	return table->columns ? 0 : events_columns(query, table, why);
}

size_t query_tables(const struct query *query)
{
	return query->n_tables;
}

const char *query_table_name(const struct query *query, size_t i)
{
	return query->tables[i]->name;
}

/* --- */

int query_new(const struct query_config *config, struct query **ret, struct fault *why)
{
	_cleanup_(query_unrefp) struct query *q = calloc(1, sizeof(*q));
	int r = q ? 0 : -ENOMEM;

	if (r >= 0) {
		q->refs = 1;
		q->config = *config;
		r = host_sources_find(config->sources, config->n, &q->hosts, why);
		if (r >= 0 && config->place)
			r = config->place(&q->hosts, config->n, why);
		if (r < 0)
			return r;
		q->config.sources = q->hosts.list;
		q->config.n = q->hosts.n;
		r = source_set_new(q->config.sources, q->config.n, &q->set);
	}
	if (r < 0)
		return fault_errno(why, r, "cannot query");
	for (size_t i = 0; i < q->config.n; i++) {
		r = add_source(q, i, why);
		if (r < 0)
			return r;
	}
	q->asked = calloc(MAX(q->sheds.n, (size_t)1), sizeof(*q->asked));
	if (!q->asked || add_tables(q) < 0)
		return fault_errno(why, -ENOMEM, "cannot query");
	q->made = true;
	*ret = TAKE_PTR(q);
	return 0;
}

/* The list has them, too */
static void free_nothing(void *kind)
{
	(void)kind;
}

struct query *query_unref(struct query *query)
{
	if (!query || --query->refs > 0)
		return NULL;
	for (size_t i = 0; i < query->n_tables; i++)
		free_table(query->tables[i]);
	free(query->tables);
	tdestroy(query->by_kind, free_nothing);
	for (size_t i = 0; i < query->n_kinds; i++)
		free_kind(query->kinds[i]);
	free(query->kinds);
	own_sheds_done(&query->sheds);
	free(query->asked);
	source_set_free(query->set);
	host_sources_done(&query->hosts);
	if (query->made && query->config.on_free)
		query->config.on_free(query->config.userdata);
	free(query);
	return NULL;
}

struct sources_config query_sources(struct query *query)
{
	return (struct sources_config){
		.set = query->set,
		.host = query->hosts.names[query->host],
		.filter = query->config.filter,
		.last = query->config.last,
		.memory = READ_MEMORY,
		.on_fault = query->config.on_fault,
	};
}

bool query_goes_on(const struct query *query, const struct sources *sources)
{
	return !query->config.on_progress ||
	       query->config.on_progress(query->config.userdata, sources_done(sources),
					 sources_bytes(sources));
}

/* --- what they did not tell */

void query_note(struct query *query, const struct spans_totals *read,
		const struct sources_facts *facts,
		bool (*wants)(const struct query_scan *scan, const char *system, const char *name),
		const struct query_scan *scan)
{
	struct spans_totals *all = &query->notes.totals;

	if (read->events == 0)
		return;
	all->from = all->events > 0 ? MIN(all->from, read->from) : read->from;
	all->to = MAX(all->to, read->to);
	all->events += read->events;
	all->gaps = MAX(all->gaps, read->gaps);
	all->ended = MAX(all->ended, read->ended);
	all->unknown = MAX(all->unknown, read->unknown);
	all->left_out = MAX(all->left_out, read->left_out);
	if (facts->n_silent >= query->notes.facts.n_silent)
		query->notes.facts = *facts;
	for (size_t i = 0; i < query->sheds.n; i++) {
		const struct own_shed *shed = &query->sheds.list[i];
		const char *name = strchr(shed->event, ':');
		_cleanup_free_ char *system = NULL;

		if (query->asked[i] || shed->from > read->to || shed->to < read->from)
			continue;
		if (wants && name)
			system = strndup(shed->event, (size_t)(name - shed->event));
		query->asked[i] = !system || wants(scan, system, name + 1);
	}
}

int query_take_notes(struct query *query, struct query_notes *ret)
{
	struct query_notes notes = query->notes;

	query->notes = (struct query_notes){};
	for (size_t i = 0; i < query->sheds.n; i++) {
		const struct own_shed *shed = &query->sheds.list[i];

		if (query->asked[i] &&
		    own_sheds_add(&notes.sheds, shed->event, MAX(shed->from, notes.totals.from),
				  MIN(shed->to, notes.totals.to)) < 0) {
			own_sheds_done(&notes.sheds);
			return -ENOMEM;
		}
		query->asked[i] = false;
	}
	*ret = notes;
	return 0;
}

size_t query_faults(const struct query *query)
{
	return query->n_faults;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export --format=clickhouse: rows of one of the tables of fleet/schema.sql, in ClickHouse's Native
 * format (native.h); without rows, nothing. Events are read by the main thread in the order of
 * time, workers make blocks of a batch of them each, which are brought in the order of the table.
 * Main thread.
 */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "convert/clickhouse/clickhouse-events.h"
#include "convert/clickhouse/clickhouse-facts.h"
#include "convert/clickhouse/clickhouse-order.h"
#include "convert/clickhouse/clickhouse-waits.h"
#include "convert/convert.h"
#include "decode/event-batches.h"
#include "formats/own-clocks.h"
#include "formats/own-section.h"

#define BATCH_EVENTS 16384U
#define UNAME_MAX    4096U
#define TABLES	     "events waits tasks clocks findings snapshots"

struct job {
	const struct export *export;
	struct clickhouse_labels labels;
	struct clickhouse_order *order;
	char *uname, boot_id[37];
};

static void on_fault(const char *text)
{
	log_error("%s", text);
}

/* --- whose rows they are */

/* "Linux HOST RELEASE MACHINE" */
static int find_host(struct job *job, struct fault *why)
{
	char *host, *end;
	int r = trace_dat_load_option(job->export->dat, TRACE_DAT_OPTION_UNAME, UNAME_MAX,
				      &job->uname, why);

	job->labels.host = "";
	if (r <= 0)
		return r;
	host = strchr(job->uname, ' ');
	end = host ? strchr(host + 1, ' ') : NULL;
	if (!end)
		return 0;
	*end = '\0';
	job->labels.host = host + 1;
	return 0;
}

static int find_boot(struct job *job, struct fault *why)
{
	static const uint8_t none[16];
	const struct trace_dat *dat = job->export->dat;
	_cleanup_free_ struct own_clocks *clocks = malloc(sizeof(*clocks));
	_cleanup_free_ uint8_t *bytes = NULL;
	char *to = job->boot_id;
	size_t size;
	int r = clocks ? own_section_read(dat, OWN_CLOCKS, &bytes, &size, why)
		       : fault_errno(why, -ENOMEM, "%s: cannot export", dat->path);

	if (r < 0)
		return r == -ENOENT || r == -EBADMSG ? 0 : r;
	if (own_clocks_take(bytes, size, dat->big_endian, clocks, NULL, NULL) < 0 ||
	    memcmp(clocks->boot_id, none, sizeof(none)) == 0)
		return 0;
	for (size_t i = 0; i < sizeof(clocks->boot_id); i++)
		to += sprintf(to, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
			      clocks->boot_id[i]);
	return 0;
}

static int find_labels(struct job *job, struct fault *why)
{
	const struct convert_options *options = job->export->options;
	const struct export_part *part = job->export->part;
	const char *slash = strrchr(job->export->dat->path, '/');
	int r = find_host(job, why);

	if (r >= 0)
		r = find_boot(job, why);
	job->labels.session = options->session ? options->session : "";
	if (options->host_name)
		job->labels.host = options->host_name;
	if (part) {
		job->labels.host = part->host;
		job->labels.session = part->session;
	}
	job->labels.boot_id = job->boot_id;
	job->labels.file = slash ? slash + 1 : job->export->dat->path;
	return r;
}

/* --- events */

struct maker {
	struct clickhouse_events *events;
	struct clickhouse_order *order;
};

static void maker_free(void *userdata)
{
	struct maker *maker = userdata;

	if (maker)
		clickhouse_events_free(maker->events);
	free(maker);
}

static int maker_new(void *userdata, void **ret)
{
	const struct job *job = userdata;
	struct maker *maker = calloc(1, sizeof(*maker));
	int r = maker ? clickhouse_events_new(job->export->decoder, &job->labels, &maker->events)
		      : -ENOMEM;

	if (r < 0) {
		maker_free(maker);
		return r;
	}
	maker->order = job->order;
	*ret = maker;
	return 0;
}

/* Whoever's turn it is writes what is complete: there is no text for the main thread */
static int make(void *userdata, const struct decode_event *events, size_t n,
		const struct event_turn *turn, struct text *out)
{
	const struct maker *maker = userdata;

	(void)out;
	return clickhouse_events_put(maker->events, events, n, turn, maker->order);
}

static int run_events(struct job *job, int fd, size_t *n_faults, struct fault *why)
{
	struct event_batches batches = {
		.stream.on_fault = on_fault,
		.batch = BATCH_EVENTS,
		.fd = fd,
		.userdata = job,
		.maker_new = maker_new,
		.maker_free = maker_free,
		.make = make,
	};
	int written, r = clickhouse_order_new(job->export->decoder, fd, &job->order);

	if (r < 0)
		return fault_errno(why, r, "%s: cannot export", job->export->dat->path);
	r = export_events(job->export, &batches, why);
	*n_faults += batches.n_faults;
	if (r == 0)
		(void)clickhouse_order_flush(job->order, true);
	written = clickhouse_order_written(job->order, why);
	clickhouse_order_free(job->order);
	return written != 0 ? written : r;
}

/* --- all */

static int run_facts(struct job *job, const char *table, int fd, size_t *n_faults,
		     struct fault *why)
{
	struct clickhouse_facts facts = {
		.export = job->export, .labels = job->labels, .on_fault = on_fault};
	_cleanup_(text_done) struct text out = {};
	int r = clickhouse_facts_put(&facts, table, &out, why);

	*n_faults += facts.n_faults;
	return r < 0 ? r : out_file_write(fd, out.bytes, out.size, why);
}

static int run_waits(struct job *job, int fd, size_t *n_faults, struct fault *why)
{
	struct clickhouse_waits waits = {
		.export = job->export, .labels = job->labels, .on_fault = on_fault};
	int r = clickhouse_waits_put(&waits, fd, why);

	*n_faults += waits.n_faults;
	return r;
}

static int run(struct job *job, const char *table, int fd, size_t *n_faults, struct fault *why)
{
	int r = find_labels(job, why);

	if (r < 0)
		return r;
	if (strcmp(table, "events") == 0)
		return run_events(job, fd, n_faults, why);
	if (strcmp(table, CLICKHOUSE_WAITS) == 0)
		return run_waits(job, fd, n_faults, why);
	return run_facts(job, table, fd, n_faults, why);
}

static bool is_table(const char *name)
{
	return strcmp(name, "events") == 0 || strcmp(name, CLICKHOUSE_WAITS) == 0 ||
	       clickhouse_facts_has(name);
}

enum convert_status export_clickhouse(const struct export *export)
{
	const char *table = export->options->table ? export->options->table : "events";
	const struct decoder_facts *times = decoder_facts(export->decoder);
	struct job job = {.export = export};
	enum convert_status status;
	struct out_file output;
	struct fault why;
	size_t n_faults = 0;
	int r;

	if (!is_table(table)) {
		log_error("--table=%s: there are %s", table, TABLES);
		return CONVERT_USAGE;
	}
	if (export->part && (export->options->host_name || export->options->session)) {
		log_error("%s: is merged, and says which hosts and sessions it is of: without "
			  "--host-name= and --session=",
			  export->dat->path);
		return CONVERT_USAGE;
	}
	if (!times->in_usecs || !times->has_date)
		log_warning("%s: its times are not of the wall clock", export->dat->path);
	if (export_output_open(export, &output) < 0)
		return CONVERT_FAILED;
	r = run(&job, table, output.fd, &n_faults, &why);
	if (r < 0)
		log_error("%s", why.text);
	status = export_output_close(export, &output, r);
	free(job.uname);
	return n_faults && r != OUT_FILE_E_PIPE ? CONVERT_FAILED : status;
}

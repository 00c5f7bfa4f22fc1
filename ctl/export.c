/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/hosts.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "convert/convert.h"
#include "ctl/analysis.h"
#include "ctl/command.h"
#include "ctl/confine.h"
#include "ctl/input.h"
#include "ctl/output.h"
#include "ctl/place.h"
#include "ctl/report.h"
#include "decode/plugins.h"
#include "decode/print-all.h"

static void on_fault(const char *text)
{
	log_error("%s", text);
}

/* One row each. A function logs what goes wrong. */
enum { TEXT, JSON, PERFETTO, CLICKHOUSE, ARM_SNAPSHOT, GDB_TFILE, QEMU4V, HTML };

const char *const export_formats[] = {
	[TEXT] = "text",
	[JSON] = "json",
	[PERFETTO] = "perfetto",
	[CLICKHOUSE] = "clickhouse",
	[ARM_SNAPSHOT] = "arm-snapshot",
	[GDB_TFILE] = "gdb-tfile",
	[QEMU4V] = "qemu4v",
	[HTML] = "html",
	NULL,
};

#define HOSTS_MAX 500U /* of a merged file: pids of all are one space of 31 bits */

static const struct format {
	enum convert_status (*run)(const struct export *export); /* NULL: our own */
	bool more_files; /* it opens others than FILE and OUT, and makes its own */
	bool no_file;	 /* it is not made out of one FILE */
	bool binary;	 /* nothing for a terminal */
	bool parts;	 /* it takes each host by itself: struct export_part */
	bool several;	 /* and several FILEs */
} formats[] = {
	[TEXT] = {NULL},
	[JSON] = {NULL},
	[PERFETTO] = {export_perfetto, .binary = true, .parts = true, .several = true},
	[CLICKHOUSE] = {export_clickhouse, .binary = true, .parts = true},
	[ARM_SNAPSHOT] = {NULL, .no_file = true},
	[GDB_TFILE] = {export_gdb_tfile, .more_files = true},
	[QEMU4V] = {export_qemu4v},
	[HTML] = {NULL, .parts = true, .several = true},
};

/* What to export; the output is open but for formats with more files */
struct work {
	const struct ctl *ctl;
	struct event_filter *filter;
	uint64_t last; /* nanoseconds; 0: all */
	const struct format *format;
	const struct source *sources; /* the FILEs */
	size_t n;
	struct out_file output;
	bool complete; /* the output is */
};

/* Text or JSON, our own */
static enum convert_status run_lines(const struct work *w, const struct export *export)
{
	const bool json = w->format == &formats[JSON];
	struct print_all job = {
		.decoder = export->decoder,
		.filter = export->filter,
		.printer.form = json ? PRINTER_JSON : PRINTER_TEXT,
		.on_fault = on_fault,
	};
	enum convert_status status;
	struct out_file output;
	struct fault why;
	int r;

	if (event_time_choose(&job.printer.time, w->ctl->time, EVENT_TIME_EPOCH, export->decoder,
			      &why) < 0) {
		log_error("%s", why.text);
		return CONVERT_FAILED;
	}
	if (!json && !plugins_open())
		log_notice(
			"libtraceevent's plugins (libtraceevent1-plugin) are not installed: some "
			"kinds of events are printed otherwise than by trace-cmd report");
	if (export_output_open(export, &output) < 0)
		return CONVERT_FAILED;
	job.fd = output.fd;
	job.printer.escape = output_escape(w->ctl, output.fd);
	r = print_all(&job, &why);
	if (r < 0)
		log_error("%s", why.text);
	status = export_output_close(export, &output, r);
	return r != OUT_FILE_E_PIPE && job.n_faults ? CONVERT_FAILED : status;
}

/* --- HTML */

/* Of the sources of a host, or of all, for what they were taken for */
struct dats {
	struct trace_dat **list; /* NULL at the end */
	size_t n;
};

static void dats_done(struct dats *dats)
{
	for (size_t i = 0; i < dats->n; i++)
		trace_dat_free(dats->list[i]);
	free(dats->list);
}

static int open_dats(const struct host_sources *hosts, const char *host, struct dats *ret,
		     uint64_t *ret_error, struct fault *why)
{
	int r = 0;

	ret->list = calloc(hosts->n + 1, sizeof(*ret->list));
	if (!ret->list)
		return fault_errno(why, -ENOMEM, "cannot export");
	for (size_t i = 0; i < hosts->n && r >= 0; i++) {
		const struct source *source = &hosts->list[i];

		if (source->host != host)
			continue;
		*ret_error = MAX(*ret_error, source->error);
		r = trace_dat_open_frame(source->fd, source->name, source->frame,
					 &ret->list[ret->n], why);
		ret->n += r >= 0;
	}
	return r;
}

/* Of one host, or the only one */
static int put_part(const struct work *w, const struct host_sources *hosts, size_t i,
		    const char *name, char *const *files, struct text *page, size_t *n_faults)
{
	const size_t n = strv_length(hosts->names);
	struct analysis analysis = {
		.ctl = (struct ctl *)w->ctl,
		.sources = {.sources = hosts->list, .n = hosts->n},
		.host = n > 1 ? hosts->names[i] : NULL,
		.filter = *w->filter,
		.last = w->last,
	};
	struct report_part part = {.analysis = &analysis, .files = files};
	_cleanup_(dats_done) struct dats dats = {};
	struct fault why;
	int r = open_dats(hosts, hosts->names[i], &dats, &part.error, &why);

	if (r < 0) {
		log_error("%s", why.text);
		return r;
	}
	part.dats = (const struct trace_dat *const *)dats.list;
	r = report_part(&part, name, i, n, page);
	*n_faults += analysis.facts.n_faults;
	own_sheds_done(&analysis.sheds);
	journal_lines_done(&analysis.journal);
	return r;
}

static const char *name_of(const struct work *w, size_t i)
{
	const char *path = w->sources[i].name, *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* "A.dat", "A.dat and 2 more" */
static char *page_name(const struct work *w)
{
	return w->n == 1 ? strdup(name_of(w, 0)) : strf("%s and %zu more", name_of(w, 0), w->n - 1);
}

/* Damages that were left out are an error, but the page is there */
static enum convert_status run_html(const struct work *w, const struct export *export,
				    const struct host_sources *hosts)
{
	_cleanup_free_ char *name = page_name(w);
	_cleanup_free_ char **files = calloc(w->n + 1, sizeof(*files));
	enum convert_status status;
	struct out_file output;
	struct text page = {};
	size_t n_faults = 0;
	struct fault why;
	int r = name && files ? 0 : log_error_errno(-ENOMEM, "export: %m");

	if (r < 0 || export_output_open(export, &output) < 0)
		return CONVERT_FAILED;
	for (size_t i = 0; i < w->n; i++)
		files[i] = (char *)name_of(w, i);
	report_begin(name, &page);
	for (size_t i = 0; hosts->names[i] && r >= 0; i++)
		r = put_part(w, hosts, i, name, files, &page, &n_faults);
	if (r >= 0)
		r = report_end(&page);
	if (r >= 0) {
		r = out_file_write(output.fd, page.bytes, page.size, &why);
		if (r < 0)
			log_error("%s", why.text);
	}
	text_done(&page);
	status = export_output_close(export, &output, r);
	return r != OUT_FILE_E_PIPE && n_faults ? CONVERT_FAILED : status;
}

/* --- hosts */

static int find_hosts(const struct work *w, struct host_sources *hosts, struct fault *why)
{
	const char *name = w->sources[0].name;
	int r = w->format->parts ? host_sources_find(w->sources, w->n, hosts, why) : 0;

	if (r >= 0 && w->n > 1)
		r = place_sources(hosts->list, hosts->n, why);
	if (r < 0 || !hosts->names || !hosts->names[1])
		return r;
	return strv_length(hosts->names) <= HOSTS_MAX || w->format == &formats[CLICKHOUSE]
		       ? 0
		       : fault_set(why, -E2BIG, "%s%s: more than %u hosts", name,
				   w->n > 1 ? " and the others" : "", HOSTS_MAX);
}

/* Rows have a session, too: also where all files that were merged are of one host */
static bool has_parts(const struct work *w, const struct host_sources *hosts)
{
	if (!hosts->names)
		return false;
	return w->n > 1 || hosts->names[1] ||
	       (w->format == &formats[CLICKHOUSE] && hosts->list[0].frame > 0);
}

struct part {
	struct trace_dat *dat;
	struct decoder *decoder;
};

static void part_done(struct part *part)
{
	decoder_free(part->decoder);
	trace_dat_free(part->dat);
}

static int part_open(struct part *part, const struct work *w, const struct source *source,
		     struct fault *why)
{
	int r = trace_dat_open_frame(source->fd, source->name, source->frame, &part->dat, why);

	if (r >= 0)
		r = decoder_new(part->dat, &part->decoder, why);
	if (r >= 0 && source->placed)
		decoder_place(part->decoder, &source->rate, source->offset, source->dated);
	return r < 0 ? r : event_filter_prepare(w->filter, part->decoder, why);
}

static enum convert_status run_part(const struct work *w, struct export *export,
				    const struct source *source)
{
	_cleanup_(part_done) struct part part = {};
	struct fault why;

	if (part_open(&part, w, source, &why) < 0) {
		log_error("%s", why.text);
		return CONVERT_FAILED;
	}
	export->dat = part.dat;
	export->decoder = part.decoder;
	export->frame = source->frame;
	export->part->host = source->host;
	export->part->session = source->session;
	export->part->error = source->error;
	return w->format->run(export);
}

static int count_cpus(const struct host_sources *hosts, uint32_t *ret, struct fault *why)
{
	int r = 0;

	*ret = 0;
	for (size_t i = 0; i < hosts->n && r >= 0; i++) {
		_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;

		r = trace_dat_open_frame(hosts->list[i].fd, hosts->list[i].name,
					 hosts->list[i].frame, &dat, why);
		if (r >= 0)
			*ret = MAX(*ret, dat->n_cpus);
	}
	return r;
}

/* One host after the other, each with what it has in the file */
static enum convert_status run_hosts(const struct work *w, struct export *export,
				     const struct host_sources *hosts)
{
	enum convert_status status = CONVERT_DONE;
	struct export_part part = {};
	bool complete = true;
	struct fault why;

	if (count_cpus(hosts, &part.n_cpus, &why) < 0) {
		log_error("%s", why.text);
		return CONVERT_FAILED;
	}
	export->part = &part;
	for (; hosts->names[part.index]; part.index++)
		for (size_t i = 0; i < hosts->n; i++) {
			if (hosts->list[i].host != hosts->names[part.index])
				continue;
			*export->ret_complete = false;
			if (run_part(w, export, &hosts->list[i]) != CONVERT_DONE)
				status = CONVERT_FAILED;
			complete &= *export->ret_complete;
		}
	*export->ret_complete = complete;
	free(part.kept);
	return status;
}

#define COMPLETE 8 /* beside a status: the output is */

/* Without rights: from here on the file is read */
static int export_open(void *userdata)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_(decoder_freep) struct decoder *decoder = NULL;
	_cleanup_host_sources_ struct host_sources hosts = {};
	struct work *w = userdata;
	struct export export = {
		.options = &w->ctl->convert,
		.path = w->ctl->output,
		.filter = w->filter,
		.output = w->format->more_files ? NULL : &w->output,
		.ret_complete = &w->complete,
	};
	enum convert_status status;
	struct fault why;

	if (trace_dat_open_fd(w->sources[0].fd, w->sources[0].name, &dat, &why) < 0 ||
	    find_hosts(w, &hosts, &why) < 0 || decoder_new(dat, &decoder, &why) < 0 ||
	    event_filter_prepare(w->filter, decoder, &why) < 0) {
		log_error("%s", why.text);
		return CTL_FAILED;
	}
	output_warnings(decoder);
	export.dat = dat;
	export.decoder = decoder;
	if (w->format == &formats[HTML])
		status = run_html(w, &export, &hosts);
	else if (has_parts(w, &hosts))
		status = run_hosts(w, &export, &hosts);
	else if (w->format->run)
		status = w->format->run(&export);
	else
		status = run_lines(w, &export);
	return (int)status | (w->complete ? COMPLETE : 0);
}

/* None of the FILEs is replaced */
static int open_output(struct work *w, struct fault *why)
{
	const unsigned flags = w->format->binary ? OUT_FILE_BINARY : 0;
	int r = out_file_open(&w->output, w->ctl->output, w->sources[0].fd, "export", flags, why);

	for (size_t i = 1; i < w->n && r >= 0; i++) {
		struct out_file other;

		r = out_file_choose(&other, w->ctl->output, w->sources[i].fd, "export", flags, why);
	}
	return r;
}

/* What makes a new file leaves it to us to give it its name */
static enum ctl_status export_confined(struct work *w)
{
	enum ctl_status status = CTL_FAILED;
	struct fault why;
	int r;

	plugins_open();
	if (w->format->more_files)
		return ctl_confine_writer(w->ctl->output, "/") < 0
			       ? CTL_FAILED
			       : (enum ctl_status)export_open(w);
	r = open_output(w, &why);
	if (r >= 0 && w->output.kind != OUT_FILE_NEW) {
		if (ctl_confine() >= 0)
			status = (enum ctl_status)(export_open(w) & ~COMPLETE);
	} else if (r >= 0) {
		int status_of = ctl_confined(w->sources[0].name, NULL, export_open, w);

		if (status_of >= 0 && status_of & COMPLETE)
			r = out_file_publish(&w->output, &why);
		if (r >= 0 && status_of == COMPLETE)
			status = CTL_DONE;
	}
	if (r < 0)
		log_error("%s", why.text);
	out_file_done(&w->output);
	return status;
}

/* The FILEs that are open */
struct inputs {
	struct input *list;
	struct source *sources;
	size_t n;
};

static void inputs_done(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->n; i++)
		input_done(&inputs->list[i]);
	free(inputs->list);
	free(inputs->sources);
}

static int inputs_open(struct inputs *inputs, char *const *paths, size_t n, struct fault *why)
{
	inputs->list = calloc(n, sizeof(*inputs->list));
	inputs->sources = calloc(n, sizeof(*inputs->sources));
	if (!inputs->list || !inputs->sources)
		return fault_errno(why, -ENOMEM, "cannot export");
	for (size_t i = 0; i < n; i++) {
		int r = input_open(&inputs->list[i], paths[i], why);

		if (r < 0)
			return r;
		inputs->sources[i].name = inputs->list[i].name;
		inputs->sources[i].fd = inputs->list[i].fd;
		inputs->n++;
	}
	return 0;
}

static enum ctl_status export_files(const struct ctl *ctl, struct event_filter *filter,
				    uint64_t last, const struct format *format, char *const *paths,
				    size_t n)
{
	_cleanup_(inputs_done) struct inputs inputs = {};
	struct fault why;

	if (inputs_open(&inputs, paths, n, &why) < 0) {
		log_error("%s", why.text);
		return CTL_FAILED;
	}
	return export_confined(&(struct work){
		.ctl = ctl,
		.filter = filter,
		.last = last,
		.format = format,
		.sources = inputs.sources,
		.n = inputs.n,
	});
}

enum ctl_status verb_export(struct ctl *ctl, int argc, char **argv)
{
	struct event_filter filter = {};
	enum ctl_status status = CTL_USAGE;
	const struct format *format;
	uint64_t usec = 0;
	int n;

	if (ctl->host)
		return ctl_complain(ctl, "works on local files, not with -H");
	n = command_format(ctl, "export", export_formats);
	if (n < 0)
		return CTL_USAGE;
	format = &formats[n];
	if (format->no_file && (argc > 2 || !ctl->output))
		return ctl_complain(ctl, "--format=arm-snapshot takes --output=DIR and at most one "
					 "FILE");
	if (format->no_file)
		return (enum ctl_status)export_arm(&ctl->convert, ctl->output, argv[1]);
	if (argc < 2 || (argc > 2 && !format->several))
		return ctl_complain(ctl, format->several
						 ? "a FILE is wanted, or - for standard input"
						 : "one FILE is wanted, or - for standard input");
	if (ctl->last && parse_time(ctl->last, &usec) < 0)
		return ctl_complain(ctl, "--last=: not understood: \"%s\"", ctl->last);
	(void)signal(SIGPIPE, SIG_IGN);
	if (command_filter(ctl, &filter))
		status = export_files(ctl, &filter, usec * NSEC_PER_USEC, format, argv + 1,
				      (size_t)argc - 1);
	event_filter_done(&filter);
	return status;
}

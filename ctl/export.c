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

static const struct format {
	enum convert_status (*run)(const struct export *export); /* NULL: our own */
	bool more_files; /* it opens others than FILE and OUT, and makes its own */
	bool no_file;	 /* it is not made out of one FILE */
	bool binary;	 /* nothing for a terminal */
	bool one_host;	 /* tasks are told apart by their pids */
} formats[] = {
	[TEXT] = {NULL},
	[JSON] = {NULL},
	[PERFETTO] = {export_perfetto, .binary = true, .one_host = true},
	[CLICKHOUSE] = {export_clickhouse, .binary = true, .one_host = true},
	[ARM_SNAPSHOT] = {NULL, .no_file = true},
	[GDB_TFILE] = {export_gdb_tfile, .more_files = true},
	[QEMU4V] = {export_qemu4v},
	[HTML] = {NULL, .one_host = true},
};

/* One file to export; the output is open but for formats with more files */
struct work {
	const struct ctl *ctl;
	struct event_filter *filter;
	uint64_t last; /* nanoseconds; 0: all */
	const struct format *format;
	const char *name;
	int fd;
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

/* Damages that were left out are an error, but the page is there */
static enum convert_status run_html(const struct work *w, const struct export *export)
{
	const char *slash = strrchr(w->name, '/');
	struct source source = {.name = w->name, .fd = w->fd};
	struct analysis analysis = {
		.ctl = (struct ctl *)w->ctl,
		.sources = {.sources = &source, .n = 1},
		.filter = *w->filter,
		.last = w->last,
	};
	enum convert_status status;
	struct out_file output;
	struct text page = {};
	struct fault why;
	int r;

	if (export_output_open(export, &output) < 0)
		return CONVERT_FAILED;
	r = report_write(&analysis, export->dat, slash && slash[1] ? slash + 1 : w->name, &page);
	if (r >= 0) {
		r = out_file_write(output.fd, page.bytes, page.size, &why);
		if (r < 0)
			log_error("%s", why.text);
	}
	text_done(&page);
	status = export_output_close(export, &output, r);
	return r != OUT_FILE_E_PIPE && analysis.facts.n_faults ? CONVERT_FAILED : status;
}

static int check_hosts(const struct work *w, struct fault *why)
{
	const struct source source = {.name = w->name, .fd = w->fd};
	_cleanup_host_sources_ struct host_sources hosts = {};
	int r = w->format->one_host ? host_sources_find(&source, 1, &hosts, why) : 0;

	return r < 0 || !hosts.names || !hosts.names[1]
		       ? r
		       : fault_set(
				 why, -EINVAL,
				 "%s: is of several hosts, whose tasks have the same pids; export "
				 "the files that it was merged from",
				 w->name);
}

#define COMPLETE 8 /* beside a status: the output is */

/* Without rights: from here on the file is read */
static int export_open(void *userdata)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_(decoder_freep) struct decoder *decoder = NULL;
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

	if (trace_dat_open_fd(w->fd, w->name, &dat, &why) < 0 || check_hosts(w, &why) < 0 ||
	    decoder_new(dat, &decoder, &why) < 0 ||
	    event_filter_prepare(w->filter, decoder, &why) < 0) {
		log_error("%s", why.text);
		return CTL_FAILED;
	}
	output_warnings(decoder);
	export.dat = dat;
	export.decoder = decoder;
	if (w->format->run)
		status = w->format->run(&export);
	else if (w->format == &formats[HTML])
		status = run_html(w, &export);
	else
		status = run_lines(w, &export);
	return (int)status | (w->complete ? COMPLETE : 0);
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
	r = out_file_open(&w->output, w->ctl->output, w->fd, "export",
			  w->format->binary ? OUT_FILE_BINARY : 0, &why);
	if (r >= 0 && w->output.kind != OUT_FILE_NEW) {
		if (ctl_confine() >= 0)
			status = (enum ctl_status)(export_open(w) & ~COMPLETE);
	} else if (r >= 0) {
		int status_of = ctl_confined(w->name, NULL, export_open, w);

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

static enum ctl_status export_file(const struct ctl *ctl, struct event_filter *filter,
				   uint64_t last, const struct format *format, const char *path)
{
	_cleanup_(input_done) struct input input;
	struct fault why;

	if (input_open(&input, path, &why) < 0) {
		log_error("%s", why.text);
		return CTL_FAILED;
	}
	return export_confined(&(struct work){
		.ctl = ctl,
		.filter = filter,
		.last = last,
		.format = format,
		.name = input.name,
		.fd = input.fd,
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
	if (argc != 2)
		return ctl_complain(ctl, "one FILE is wanted, or - for standard input");
	if (ctl->last && parse_time(ctl->last, &usec) < 0)
		return ctl_complain(ctl, "--last=: not understood: \"%s\"", ctl->last);
	(void)signal(SIGPIPE, SIG_IGN);
	if (command_filter(ctl, &filter))
		status = export_file(ctl, &filter, usec * NSEC_PER_USEC, format, argv[1]);
	event_filter_done(&filter);
	return status;
}

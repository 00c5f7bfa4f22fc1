/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/log.h"
#include "basic/new-file.h"
#include "basic/strv.h"
#include "ctl/export-run.h"
#include "ctl/export.h"

static bool understood(int r, const char *option, const char *value)
{
	if (r >= 0)
		return true;
	(void)fprintf(stderr, "flyrecctl: export: %s: %s: \"%s\"\n", option,
		      r == -ENOMEM ? "out of memory" : "not understood", value);
	return false;
}

static bool parse_filter(const struct ctl *ctl, struct export_filter *filter)
{
	STRV_FOREACH (e, ctl->events)
		if (!understood(export_filter_event(filter, *e), "--event=", *e))
			return false;
	STRV_FOREACH (p, ctl->pids)
		if (!understood(export_filter_pids(filter, *p), "--pid=", *p))
			return false;
	return (!ctl->cpus ||
		understood(export_filter_cpus(filter, ctl->cpus), "--cpu=", ctl->cpus)) &&
	       (!ctl->since || understood(export_filter_time(&filter->since, ctl->since),
					  "--since=", ctl->since)) &&
	       (!ctl->until ||
		understood(export_filter_time(&filter->until, ctl->until), "--until=", ctl->until));
}

static bool parse_format(const char *text, enum export_format *ret)
{
	if (!text)
		(void)fprintf(stderr, "flyrecctl: export: --format= is missing\n");
	else if (strcmp(text, "text") == 0 || strcmp(text, "json") == 0)
		*ret = strcmp(text, "json") == 0 ? EXPORT_JSON : EXPORT_TEXT;
	else
		(void)fprintf(stderr,
			      "flyrecctl: export: unknown format \"%s\": text and json are known\n",
			      text);
	return text && (strcmp(text, "text") == 0 || strcmp(text, "json") == 0);
}

static void on_fault(const char *text)
{
	log_error("%s", text);
}

/* Where the output goes: standard output, a device or a pipe as it is, or a new file */
static int open_output(const char *path, const struct trace_dat *dat, struct new_file *file,
		       int *ret_fd)
{
	struct stat st, in;
	int r;

	if (!path) {
		*ret_fd = STDOUT_FILENO;
		return 0;
	}
	if (stat(path, &st) >= 0 && S_ISDIR(st.st_mode))
		return log_error_errno(-EISDIR, "%s: cannot write: %m", path);
	if (stat(path, &st) >= 0 && !S_ISREG(st.st_mode)) {
		file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		if (file->fd < 0)
			return log_error_errno(-errno, "%s: cannot open: %m", path);
		*ret_fd = file->fd;
		return 0;
	}
	if (stat(path, &st) >= 0 && fstat(dat->fd, &in) >= 0 && st.st_dev == in.st_dev &&
	    st.st_ino == in.st_ino)
		return log_error_errno(-EINVAL, "%s: is the file to export", path);
	r = new_file_open(file, path, 0666);
	if (r < 0)
		return log_error_errno(r, "%s: cannot create: %m", path);
	*ret_fd = file->fd;
	return 0;
}

static enum ctl_status export_to(const char *output, struct export_job *job)
{
	struct new_file file = {.fd = -EBADF};
	enum ctl_status status = CTL_FAILED;
	struct fault why;
	int r;

	if (open_output(output, job->dat, &file, &job->fd) < 0)
		return CTL_FAILED;
	r = export_run(job, &why);
	if (r < 0)
		log_error("%s", why.text);
	else if (r == EXPORT_E_PIPE)
		status = CTL_DONE; /* they have seen enough */
	else if (file.path && (r = new_file_publish(&file)) < 0)
		(void)log_error_errno(r, "%s: cannot write: %m", output);
	else
		status = job->n_faults ? CTL_FAILED : CTL_DONE;
	new_file_done(&file);
	return status;
}

static enum ctl_status export_file(const struct ctl *ctl, struct export_filter *filter,
				   enum export_format format, const char *path)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_(decoder_freep) struct decoder *decoder = NULL;
	struct export_job job;
	struct fault why;

	if (trace_dat_open(path, &dat, &why) < 0 || decoder_new(dat, &decoder, &why) < 0 ||
	    export_filter_prepare(filter, dat, decoder, &why) < 0) {
		log_error("%s", why.text);
		return CTL_FAILED;
	}
	job = (struct export_job){
		.dat = dat,
		.decoder = decoder,
		.filter = filter,
		.format = format,
		.on_fault = on_fault,
	};
	return export_to(ctl->output, &job);
}

enum ctl_status verb_export(const struct ctl *ctl, int argc, char **argv)
{
	struct export_filter filter = {};
	enum ctl_status status = CTL_USAGE;
	enum export_format format = EXPORT_TEXT;

	if (argc != 2) {
		(void)fprintf(stderr, "flyrecctl: export: one FILE is wanted\n");
		return CTL_USAGE;
	}
	if (ctl->host) {
		(void)fprintf(stderr, "flyrecctl: export: works on local files, not with -H\n");
		return CTL_USAGE;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	if (parse_format(ctl->format, &format) && parse_filter(ctl, &filter))
		status = export_file(ctl, &filter, format, argv[1]);
	export_filter_done(&filter);
	return status;
}

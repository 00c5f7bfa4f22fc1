/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export --format=gdb-tfile: its options and its two files, OUT and OUT.gdb.
 */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "convert/gdb/export-gdb.h"

static void on_fault(const char *text)
{
	log_error("%s", text);
}

static void on_notice(const char *text)
{
	log_notice("%s", text);
}

static int parse_max_frames(const char *text, uint64_t *ret)
{
	char *end;

	if (!text)
		return 0;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9') {
		(void)fprintf(stderr, "flyrecctl: export: --max-frames=: not understood: \"%s\"\n",
			      text);
		return -EINVAL;
	}
	return 0;
}

/* OUT.gdb, if OUT is a file */
static int open_command(const struct out_file *output, struct new_file *command, FILE **ret)
{
	_cleanup_free_ char *path = NULL;
	int fd, r;

	if (!output->file.path)
		return 0;
	if (asprintf(&path, "%s.gdb", output->path) < 0) {
		path = NULL;
		return log_error_errno(-ENOMEM, "%s: %m", output->path);
	}
	r = new_file_open(command, path, OUT_FILE_MODE);
	if (r < 0)
		return log_error_errno(r, "%s: cannot create: %m", path);
	fd = dup(command->fd);
	*ret = fd < 0 ? NULL : fdopen(fd, "w");
	if (!*ret) {
		r = -errno;
		close_p(&fd);
		return log_error_errno(r, "%s: cannot create: %m", path);
	}
	return 0;
}

static int run(struct export_gdb_job *job)
{
	struct fault why;
	bool done = false;
	int r = export_gdb_again(job, &done, &why);

	if (r >= 0 && !done)
		r = export_gdb_run(job, &why);
	if (r < 0)
		log_error("%s", why.text);
	return r;
}

enum convert_status export_gdb_tfile(const struct export *export)
{
	struct export_gdb_job job = {
		.dat = export->dat,
		.decoder = export->decoder,
		.filter = export->filter,
		.max_frames = EXPORT_GDB_MAX_FRAMES,
		.on_fault = on_fault,
		.on_notice = on_notice,
	};
	struct new_file command = {.fd = -EBADF};
	struct out_file output;
	enum convert_status status;
	int r;

	if (parse_max_frames(export->options->max_frames, &job.max_frames) < 0)
		return CONVERT_USAGE;
	if (!export->path) {
		(void)fprintf(stderr, "flyrecctl: export: --output= is missing\n");
		return CONVERT_USAGE;
	}
	if (export_output_open(export, &output) < 0)
		return CONVERT_FAILED;
	job.fd = output.fd;
	job.tfile = output.path;
	r = open_command(&output, &command, &job.command);
	if (r >= 0)
		r = run(&job);
	if (job.command)
		(void)fclose(job.command);
	if (r == 0 && command.path) {
		r = new_file_publish(&command);
		if (r < 0)
			(void)log_error_errno(r, "%s: cannot write: %m", command.path);
	}
	status = export_output_close(export, &output, r);
	if (status == CONVERT_FAILED && r == 0)
		(void)unlink(command.path);
	new_file_done(&command);
	return r != OUT_FILE_E_PIPE && job.n_faults ? CONVERT_FAILED : status;
}

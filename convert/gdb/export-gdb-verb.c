/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export --format=gdb-tfile: its options, its two files, OUT and OUT.gdb, and the two passes.
 */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "basic/strv.h"
#include "convert/gdb/export-gdb.h"
#include "decode/event-stream.h"

#define OUTPUT_SIZE MIB

int export_gdb_result(const struct export_gdb_job *job, int r, struct fault *why)
{
	if (r < 0 && why->error == 0)
		return fault_errno(why, r, "%s: cannot export", job->dat->path);
	return r;
}

void export_gdb_notice(const struct export_gdb_job *job, const char *text)
{
	if (job->on_notice)
		job->on_notice(text);
}

/* --- writing */

static int flush(const struct export_gdb_job *job, struct text *out, struct fault *why)
{
	int r = out->no_memory ? -ENOMEM : out_file_write(job->fd, out->bytes, out->size, why);

	out->size = 0;
	return r;
}

/* @out: NULL: the first pass */
static int pass(struct export_gdb_job *job, const struct export_gdb_maker *maker, void *userdata,
		struct text *out, struct fault *why)
{
	_cleanup_(event_stream_freep) struct event_stream *stream = NULL;
	const struct event_stream_config config = {
		.filter = job->filter,
		.all = maker->all,
		.no_tasks = !out || maker->all,
		.on_fault = out ? NULL : job->on_fault, /* what is broken is told of once */
	};
	struct decode_event event;
	int r;

	r = event_stream_new(job->decoder, &config, &stream, why);
	if (r < 0)
		return r;
	while ((r = event_next(stream, &event, why)) > 0) {
		r = maker->take(userdata, &event, out, why);
		if (r != 0)
			break;
		if (out && (out->size >= OUTPUT_SIZE || out->no_memory)) {
			r = flush(job, out, why);
			if (r != 0)
				return r;
		}
	}
	if (!out)
		job->n_faults += event_stream_faults(stream);
	return r < 0 ? r : maker->end_pass(userdata, out);
}

static int write_head(const struct export_gdb_job *job, const struct export_gdb_maker *maker,
		      void *userdata, struct fault *why)
{
	_cleanup_free_ char *head = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&head, &size);

	if (!out)
		return -ENOMEM;
	maker->put_head(userdata, out);
	if (fclose(out) != 0)
		return -ENOMEM;
	return out_file_write(job->fd, head, size, why);
}

int export_gdb_write(struct export_gdb_job *job, const struct export_gdb_maker *maker,
		     void *userdata, struct fault *why)
{
	_cleanup_(text_done) struct text out = {};
	int r;

	r = pass(job, maker, userdata, NULL, why);
	if (r == 0)
		r = write_head(job, maker, userdata, why);
	if (r == 0)
		r = pass(job, maker, userdata, &out, why);
	if (r != 0)
		return r;
	text_fill(&out, '\0', 4);
	r = flush(job, &out, why);
	if (r != 0 || !job->command)
		return r;
	maker->put_command(userdata, job->command);
	if (fflush(job->command) != 0 || ferror(job->command))
		return fault_errno(why, -EIO, "cannot write the command file");
	return 0;
}

/* --- the verb */

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
	path = strf("%s.gdb", output->path);
	if (!path)
		return log_error_errno(-ENOMEM, "%s: %m", output->path);
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

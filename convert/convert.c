/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <unistd.h>

#include "basic/log.h"
#include "convert/convert.h"
#include "decode/event-batches.h"
#include "formats/trace-dat-read.h"
#include "writer/copy.h"

int export_output_open(const struct export *export, struct out_file *out)
{
	struct fault why;
	int r;

	if (export->output) {
		*out = *export->output;
		out->file = (struct new_file){.fd = -EBADF};
		return 0;
	}
	r = out_file_open(out, export->path, export->dat->fd, "export", 0, &why);
	if (r < 0)
		log_error("%s", why.text);
	return r;
}

enum convert_status export_output_close(const struct export *export, struct out_file *out, int r)
{
	struct fault why;

	if (export->output) {
		*export->ret_complete = r == 0;
		return r < 0 ? CONVERT_FAILED : CONVERT_DONE;
	}
	if (r == 0) {
		r = out_file_publish(out, &why);
		if (r < 0)
			log_error("%s", why.text);
	}
	out_file_done(out);
	return r < 0 ? CONVERT_FAILED : CONVERT_DONE;
}

ssize_t import_read(const struct import *import, void *buffer, size_t size, struct fault *why)
{
	ssize_t n;

	do {
		int r = import_stopped(import, why);

		if (r < 0)
			return r;
		n = read(import->fd, buffer, size);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? fault_errno(why, -errno, "%s: cannot read", import->name) : n;
}

int import_stopped(const struct import *import, struct fault *why)
{
	return import->stop && *import->stop ? fault_errno(why, -EINTR, "%s", import->name) : 0;
}

int import_begin(struct import *import, const struct event_file_params *params, struct fault *why)
{
	struct event_file_params p = *params;

	p.path = import->out.kind == OUT_FILE_NEW ? import->out.path : NULL;
	p.mode = OUT_FILE_MODE;
	return event_file_new(&p, &import->file, why);
}

int import_finish(struct import *import, struct event_file_totals *ret, struct fault *why)
{
	int r = import_stopped(import, why);

	if (r >= 0)
		r = event_file_finish(import->file, ret, why);
	if (r >= 0 && import->out.kind != OUT_FILE_NEW)
		r = copy_trace(event_file_fd(import->file), import->out.path, import->out.fd, NULL,
			       why);
	return r;
}

int export_events(const struct export *export, struct event_batches *batches, struct fault *why)
{
	int r = who_new(export->filter->units, export->filter->containers, true,
			&batches->stream.who);

	batches->decoder = export->decoder;
	batches->stream.filter = export->filter;
	r = r < 0 ? fault_errno(why, r, "%s: cannot export", export->dat->path)
		  : event_batches_run(batches, why);
	batches->stream.who = who_free(batches->stream.who);
	return r;
}

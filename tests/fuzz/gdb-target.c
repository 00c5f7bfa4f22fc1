/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "basic/io.h"
#include "basic/log.h"
#include "convert/gdb/export-gdb.h"
#include "convert/gdb/gdb-tfile.h"
#include "tests/fuzz/gdb-target.h"

static void require(bool true_, const char *what, const struct fault *why)
{
	if (true_)
		return;
	(void)fprintf(stderr, "gdb-target: %s: %s\n", what, why ? why->text : "");
	abort();
}

static int memory_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	require(fd >= 0, "no memory file", NULL);
	return fd;
}

/* The frames of a file as they are, for comparison: numbers and sizes of what comes of each */
static uint64_t count_frames(const uint8_t *data, size_t size, bool big_endian)
{
	_cleanup_(gdb_tfile_freep) struct gdb_tfile *tfile = NULL;
	struct gdb_tfile_frame frame;
	struct fault why;
	uint64_t at, n = 0;

	require(gdb_tfile_parse(data, MIN(size, GDB_TFILE_DESCRIPTION_MAX), "x", NULL, &tfile,
				&why) >= 0,
		"the description does not parse", &why);
	at = tfile->frames_at;
	while (gdb_tfile_frame(data + at, size - at, big_endian, at, "x", &frame, &why) > 0) {
		at += GDB_TFILE_HEAD_SIZE + frame.size;
		n++;
	}
	return n;
}

static void export_again(int fd, int out)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_(decoder_freep) struct decoder *decoder = NULL;
	struct event_filter filter = {.to = UINT64_MAX};
	struct export_gdb_job job = {.filter = &filter, .fd = out};
	struct fault why;
	bool done = false;

	require(trace_dat_open_fd(fd, "import", &dat, &why) >= 0, "the import does not open", &why);
	require(decoder_new(dat, &decoder, &why) >= 0, "the import does not decode", &why);
	job.dat = dat;
	job.decoder = decoder;
	require(export_gdb_again(&job, &done, &why) >= 0, "no export of the import", &why);
	require(done && job.n_faults == 0, "the import is none", NULL);
}

/* What was taken must come out again, with as many frames, and be taken again */
static void round_trip(const uint8_t *data, size_t size, int fd, bool big_endian)
{
	_cleanup_close_ int out = memory_file("again");
	_cleanup_free_ uint8_t *again = NULL;
	off_t n;

	export_again(fd, out);
	n = lseek(out, 0, SEEK_END);
	require(n > 0, "the export is empty", NULL);
	again = malloc((size_t)n);
	require(again && io_pread_all(out, again, (size_t)n, 0) >= 0, "cannot read", NULL);
	require(count_frames(data, size, big_endian) == count_frames(again, (size_t)n, big_endian),
		"another number of frames", NULL);
}

static int try(const uint8_t *data, size_t size, const char *endian)
{
	_cleanup_close_ int in = memory_file("in");
	const struct convert_options options = {.endian = endian};
	struct import import = {.options = &options,
				.name = "in",
				.fd = in,
				.out = {.path = "/dev/null",
					.kind = OUT_FILE_EXISTING,
					.fd = open("/dev/null", O_WRONLY | O_CLOEXEC)}};
	struct fault why = {};
	int r;

	require(io_pwrite_all(in, data, size, 0) >= 0, "cannot write", NULL);
	r = import_gdb_tfile(&import, &why);
	require(r >= 0 || r == -EBADMSG || r == -E2BIG, "another error", &why);
	if (r >= 0)
		round_trip(data, size, event_file_fd(import.file), strcmp(endian, "big") == 0);
	event_file_free(import.file);
	out_file_done(&import.out);
	return r >= 0;
}

int gdb_target(const uint8_t *data, size_t size)
{
	int taken;

	log_open(LOG_CRIT);
	taken = try(data, size, "little");
	return try(data, size, "big") || taken;
}

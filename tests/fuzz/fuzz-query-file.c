/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz-query-file - SQL over a damaged trace.dat. The first 64 bytes of the input choose the SQL,
 * the rest is the file; if that is none, it is a list of changes of a sound one: where, in two
 * bytes, and a byte that comes there. libFuzzer target; the corpus has files of fuzz-analysis and
 * fuzz-trace-dat, and changes.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "basic/fault.h"
#include "basic/io.h"
#include "basic/macro.h"
#include "formats/trace-dat-read.h"
#include "tests/fuzz/query-target.h"

#define CHOICES 64U
#define CHANGE	3U /* bytes */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_trace_dat(int fd)
{
	struct trace_dat *dat = NULL;
	struct fault why;
	const bool is = trace_dat_open_fd(fd, "fuzz", &dat, &why) >= 0;

	trace_dat_free(dat);
	return is;
}

static int file_of(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("fuzz-query-file", MFD_CLOEXEC);

	if (fd < 0 || io_pwrite_all(fd, data, size, 0) < 0)
		abort();
	if (is_trace_dat(fd))
		return TAKE_FD(fd);
	close(fd);
	fd = query_target_sound();
	for (size_t i = 0; i + CHANGE <= size; i += CHANGE)
		if (io_pwrite_all(fd, data + i + 2, 1, (off_t)(data[i] << 8 | data[i + 1])) < 0)
			abort();
	return TAKE_FD(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t n = MIN(size, (size_t)CHOICES);
	_cleanup_close_ int fd = file_of(data + n, size - n);
	struct query_target *target = query_target_open(fd, n > 0 && data[0] & 1);

	if (target)
		query_target_ask(target, data, n);
	query_target_close(target);
	return 0;
}

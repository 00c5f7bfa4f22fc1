/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <sys/stat.h>

#include "basic/now.h"
#include "formats/trace-dat-read.h"
#include "writer/file-info.h"
#include "writer/store.h"

struct times {
	uint64_t first, last; /* ns of the file's clock; 0: none */
};

static int look_at_cpu(const struct trace_dat *dat, const struct trace_dat_buffer *buffer,
		       unsigned cpu, void *subbuf, struct times *times)
{
	const struct trace_dat_region *region = &buffer->regions[cpu];
	struct subbuf_info info;
	int r;

	if (region->size < dat->layout.size || trace_dat_check_region(dat, buffer, cpu, NULL) < 0)
		return 0;
	r = trace_dat_read(dat, subbuf, dat->layout.size, region->offset, NULL);
	if (r < 0 && r != -EBADMSG)
		return r;
	if (r >= 0 && subbuf_check(&dat->layout, subbuf, NULL, &info, NULL) == 0 &&
	    (times->first == 0 || info.first_ts < times->first))
		times->first = info.first_ts;
	r = trace_dat_read(dat, subbuf, dat->layout.size,
			   region->offset + region->size - dat->layout.size, NULL);
	if (r >= 0 && subbuf_check(&dat->layout, subbuf, NULL, &info, NULL) == 0 &&
	    info.last_ts > times->last)
		times->last = info.last_ts;
	return r == -EBADMSG ? 0 : r; /* a damaged chunk tells no time */
}

static int look_at_data(const struct trace_dat *dat, struct times *times)
{
	_cleanup_free_ void *subbuf = malloc(dat->layout.size);
	int r = 0;

	if (!subbuf)
		return -ENOMEM;
	for (size_t i = 0; i < dat->n_buffers; i++)
		for (unsigned cpu = 0; cpu < dat->n_cpus && r >= 0; cpu++)
			r = look_at_cpu(dat, &dat->buffers[i], cpu, subbuf, times);
	return r;
}

int file_info_read(int fd, const char *name, struct file_info *ret)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	struct file_info info = {};
	struct times times = {};
	struct stat st;
	int64_t date;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = trace_dat_open_fd(fd, name, &dat, NULL);
	if (r < 0)
		return r;
	info.bytes = (uint64_t)st.st_blocks * 512;
	info.raw_bytes = store_raw_bytes(fd);
	if (info.raw_bytes == 0)
		info.raw_bytes = info.bytes;
	info.n_cpus = dat->n_cpus;
	info.end_usec = timespec_usec(st.st_mtim);
	(void)store_parse_archive_name(name, &info.start_usec);
	if (trace_dat_date(dat, &date, NULL) > 0 && look_at_data(dat, &times) >= 0) {
		if (times.first > 0)
			info.start_usec = times.first / NSEC_PER_USEC + (uint64_t)date;
		if (times.last > 0)
			info.end_usec = times.last / NSEC_PER_USEC + (uint64_t)date;
	}
	*ret = info;
	return 0;
}

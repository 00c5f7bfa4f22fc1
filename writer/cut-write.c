/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "basic/fault-point.h"
#include "basic/io.h"
#include "writer/cut-internal.h"
#include "writer/options.h"
#include "writer/probes.h"

#define CPUSTAT_ROOM 512
#define TABLE_ALIGN  16
#define REGION_ALIGN (4 * KIB) /* so that extents can be shared with the sources */
#define COPY_SIZE    MIB

/* The file in the making */
struct output {
	int fd;
	uint64_t table_at;
	uint64_t *cpustat_at; /* [n_cpus], in the file */
	uint64_t at;	      /* where the next region goes */
};

/* What is counted while the sub-buffers of a CPU are looked at */
struct count {
	uint64_t subbufs, events, lost, unknown_losses;
	uint64_t first_nsec, last_nsec;
};

static int count_slice(const struct cut_source *s, const struct cut_slice *slice, char *buffer,
		       struct count *count, struct fault *why)
{
	uint64_t size = s->dat->page_size, chunk = COPY_SIZE - COPY_SIZE % size;

	for (uint64_t done = 0; done < slice->size;) {
		uint64_t n = MIN(chunk, slice->size - done);
		int r = io_pread_all(s->fd, buffer, n, slice->offset + done);

		if (r < 0)
			return fault_errno(why, r, "cannot read %s", s->name);
		for (uint64_t i = 0; i < n; i += size) {
			struct subbuf_fault fault;
			struct subbuf_info info;

			if (subbuf_check(&s->dat->layout, buffer + i, NULL, &info, &fault) != 0)
				return fault_set(why, -EBADMSG,
						 "%s: offset 0x%" PRIx64 ": no sub-buffer", s->name,
						 slice->offset + done + i);
			if (count->subbufs > 0) { /* what came before the first is not missing */
				count->lost += info.header.missed_events;
				count->unknown_losses +=
					info.header.missed && !info.header.missed_stored;
			} else {
				count->first_nsec = info.header.timestamp;
			}
			count->last_nsec = info.last_ts;
			count->subbufs++;
			count->events += info.events;
		}
		done += n;
	}
	return 0;
}

static int copy_by_hand(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size,
			char *buffer)
{
	while (size > 0) {
		size_t n = MIN(size, (uint64_t)COPY_SIZE);
		int r = io_pread_all(from, buffer, n, from_at);

		if (r >= 0)
			r = io_pwrite_all(to, buffer, n, to_at);
		if (r < 0)
			return r;
		from_at += n;
		to_at += n;
		size -= n;
	}
	return 0;
}

/* By reference where the file system shares extents, else by copy inside the kernel */
static int copy_slice(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size,
		      char *buffer)
{
	off_t in = (off_t)from_at, out = (off_t)to_at;

	while (size > 0) {
		ssize_t n = copy_file_range(from, &in, to, &out, size, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 &&
		    (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS))
			return copy_by_hand(from, (uint64_t)in, to, (uint64_t)out, size, buffer);
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		size -= (uint64_t)n;
	}
	return 0;
}

static int write_cpustat(const struct output *o, unsigned cpu, const struct count *count,
			 uint32_t subbuf)
{
	char text[CPUSTAT_ROOM], padded[CPUSTAT_ROOM];

	(void)snprintf(text, sizeof(text),
		       "CPU: %u\nentries: %" PRIu64 "\noverrun: %" PRIu64
		       "\ncommit overrun: 0\nflyrec subbufs: %" PRIu64 "\nflyrec bytes: %" PRIu64
		       "\nflyrec lost events: %" PRIu64 "\nflyrec losses of unknown size: %" PRIu64
		       "\nflyrec final: yes\n",
		       cpu, count->events, count->lost, count->subbufs, count->subbufs * subbuf,
		       count->lost, count->unknown_losses);
	options_cpustat(padded, sizeof(padded), text);
	return io_pwrite_all(o->fd, padded, sizeof(padded), o->cpustat_at[cpu]);
}

static int write_cpu(const struct cut *cut, unsigned cpu, struct output *o, char *buffer,
		     struct count *count, struct fault *why)
{
	uint64_t entry[2] = {o->at, 0};
	int r;

	for (size_t i = 0; i < cut->n; i++) {
		const struct cut_source *s = &cut->sources[i];
		const struct cut_slice *slice = &s->slices[cpu];

		if (slice->size == 0)
			continue;
		r = count_slice(s, slice, buffer, count, why);
		if (r < 0)
			return r;
		r = copy_slice(s->fd, slice->offset, o->fd, o->at, slice->size, buffer);
		if (r < 0)
			return fault_errno(why, r, "cannot copy from %s", s->name);
		entry[1] += slice->size;
		o->at += slice->size;
	}
	r = io_pwrite_all(o->fd, entry, sizeof(entry), o->table_at + cpu * sizeof(entry));
	if (r >= 0)
		r = write_cpustat(o, cpu, count, cut_newest(cut)->dat->page_size);
	o->at = round_up(o->at, REGION_ALIGN);
	return r < 0 ? fault_errno(why, r, "cannot write") : 0;
}

static int load_clock(const struct cut *cut, char **ret, struct fault *why)
{
	const struct trace_dat *dat = cut_newest(cut)->dat;

	return trace_dat_load(dat, &dat->clock, 4096, ret, why);
}

/* size:u64 names, cpus:u32, options, table, clock: behind the sections that are there already */
static int write_tables(const struct cut *cut, FILE *out, struct output *o, const char *clock,
			struct options *options, struct fault *why)
{
	uint64_t at = (uint64_t)ftello(out) + sizeof(uint64_t), clock_size = strlen(clock) + 1;
	uint32_t n_cpus = cut->n_cpus;
	_cleanup_free_ char *names = NULL;
	size_t used;
	uint64_t size;
	int r;

	r = cut_names(cut, &names, &used, why);
	if (r < 0)
		return r;
	/* Newlines behind the names put the table on its alignment */
	o->table_at = round_up(at + used + sizeof(n_cpus) + options->size, TABLE_ALIGN);
	size = o->table_at - options->size - sizeof(n_cpus) - at;
	(void)fwrite(&size, sizeof(size), 1, out);
	(void)fwrite(names, 1, used, out);
	for (uint64_t i = used; i < size; i++)
		(void)putc('\n', out);
	(void)fwrite(&n_cpus, sizeof(n_cpus), 1, out);
	(void)fwrite(options->data, 1, options->size, out);
	for (unsigned cpu = 0; cpu < n_cpus; cpu++) {
		const uint64_t entry[2] = {0, 0};

		o->cpustat_at[cpu] = o->table_at - options->size + options->cpustat_at[cpu];
		(void)fwrite(entry, sizeof(entry), 1, out);
	}
	(void)fwrite(&clock_size, sizeof(clock_size), 1, out);
	(void)fwrite(clock, 1, clock_size, out);
	o->at = round_up((uint64_t)ftello(out),
			 MAX(REGION_ALIGN, (uint64_t)cut_newest(cut)->dat->page_size));
	return fflush(out) != 0 ? fault_errno(why, -errno, "cannot write") : 0;
}

static int write_header(const struct cut *cut, struct output *o, const char *note,
			struct fault *why)
{
	_cleanup_(options_done) struct options options = {0};
	_cleanup_free_ char *clock = NULL, *probes = NULL;
	_cleanup_fclose_ FILE *out = NULL;
	struct options_params params = {
		.n_cpus = cut->n_cpus,
		.cpustat_room = CPUSTAT_ROOM,
		.has_date = true,
		.date_usec = cut_newest(cut)->date_usec,
		.note = note,
	};
	int fd, r;

	if (getrandom(&params.trace_id, sizeof(params.trace_id), GRND_NONBLOCK) < 0)
		params.trace_id = (uint64_t)params.date_usec;
	r = load_clock(cut, &clock, why);
	if (r < 0)
		return r;
	params.clock = clock;
	for (size_t i = 0; i < cut->n && r >= 0; i++)
		r = probes_merge(cut->sources[i].dat, &probes, why);
	if (r < 0)
		return r;
	params.probes = probes;
	r = options_make(&params, &options);
	if (r < 0)
		return fault_errno(why, r, "cannot write");
	fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		close_p(&fd);
		return fault_errno(why, -ENOMEM, "cannot write the header");
	}
	r = cut_write_sections(cut, out, why);
	return r < 0 ? r : write_tables(cut, out, o, clock, &options, why);
}

static uint64_t to_realtime(const struct cut *cut, uint64_t nsec)
{
	return (uint64_t)((int64_t)(nsec / NSEC_PER_USEC) + cut_newest(cut)->date_usec);
}

static int fill(const struct cut *cut, int fd, const char *note, struct cut_report *report,
		struct fault *why)
{
	_cleanup_free_ uint64_t *cpustat_at = calloc(cut->n_cpus, sizeof(*cpustat_at));
	_cleanup_free_ char *buffer = malloc(COPY_SIZE);
	struct output o = {.fd = fd, .cpustat_at = cpustat_at};
	int r;

	if (!cpustat_at || !buffer)
		return fault_errno(why, -ENOMEM, "cannot write");
	r = write_header(cut, &o, note, why);
	report->files = (unsigned)cut->n;
	report->begin_usec = UINT64_MAX;
	for (unsigned cpu = 0; cpu < cut->n_cpus && r >= 0; cpu++) {
		struct count count = {0};

		r = write_cpu(cut, cpu, &o, buffer, &count, why);
		report->bytes += count.subbufs * cut_newest(cut)->dat->page_size;
		report->events += count.events;
		report->lost_events += count.lost;
		if (count.subbufs == 0)
			continue;
		report->begin_usec = MIN(report->begin_usec, to_realtime(cut, count.first_nsec));
		report->end_usec = MAX(report->end_usec, to_realtime(cut, count.last_nsec));
	}
	if (r < 0)
		return r;
	if (ftruncate(fd, (off_t)o.at) < 0 || fsync(fd) < 0)
		return fault_errno(why, -errno, "cannot sync");
	return 0;
}

int cut_write(struct cut *cut, int dir_fd, const char *name, const char *note,
	      struct cut_report *ret, struct fault *why)
{
	_cleanup_free_ char *tmp = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct cut_report report = {0};
	int r;

	if (asprintf(&tmp, ".%s.new", name) < 0)
		return fault_errno(why, -ENOMEM, "cannot create %s", name);
	(void)unlinkat(dir_fd, tmp, 0);
	fd = openat(dir_fd, tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return fault_errno(why, -errno, "cannot create %s", name);
	if (why)
		*why = (struct fault){0};
	r = fill(cut, fd, note, &report, why);
	if (r < 0 && why && why->error == 0)
		(void)fault_errno(why, r, "cannot write %s", name);
	fault_point("cut-rename");
	if (r >= 0) {
		r = io_rename_new_at(dir_fd, tmp, name);
		if (r < 0)
			(void)fault_errno(why, r, "cannot rename to %s", name);
	}
	if (r < 0) {
		(void)unlinkat(dir_fd, tmp, 0);
		return r;
	}
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	*ret = report;
	return fsync(dir_fd) < 0 ? fault_errno(why, -errno, "cannot sync the directory") : 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "basic/fault-point.h"
#include "basic/io.h"
#include "formats/trace-dat.h"
#include "writer/cut-internal.h"
#include "writer/probes.h"
#include "writer/store.h"
#include "writer/task-merge.h"
#include "writer/task-names.h"

/* --- the header: of the sources */

#define TEXT_MAX  (64 * MIB) /* no section of ours is longer */
#define UNAME_MAX 4096

/* Bytes of the newest source as they are */
static int put_range(const struct cut *cut, FILE *out, uint64_t from, uint64_t to,
		     struct fault *why)
{
	const struct trace_dat_extent extent = {from, to - from};
	_cleanup_free_ char *bytes = NULL;
	int r = trace_dat_load(cut_newest(cut)->dat, &extent, TEXT_MAX, &bytes, why);

	return r < 0 ? r : sections_put(out, bytes, to - from);
}

/* Where the event formats begin (the count of ftrace's), and where they end */
static uint64_t formats_begin(const struct trace_dat *dat)
{
	return dat->header_event.offset + dat->header_event.size;
}

static uint64_t formats_end(const struct trace_dat *dat)
{
	return dat->kallsyms.offset - sizeof(uint32_t);
}

static int same_formats(const struct trace_dat *a, const struct trace_dat *b, struct fault *why)
{
	const struct trace_dat_extent x = {formats_begin(a), formats_end(a) - formats_begin(a)};
	const struct trace_dat_extent y = {formats_begin(b), formats_end(b) - formats_begin(b)};
	_cleanup_free_ char *text_x = NULL, *text_y = NULL;
	int r;

	if (x.size != y.size)
		return 0;
	r = trace_dat_load(a, &x, TEXT_MAX, &text_x, why);
	if (r >= 0)
		r = trace_dat_load(b, &y, TEXT_MAX, &text_y, why);
	return r < 0 ? r : memcmp(text_x, text_y, x.size) == 0;
}

/* --- the union of all sources' formats */

static unsigned format_id(const char *text)
{
	const char *id = strstr(text, "\nID:");

	return id ? (unsigned)strtoul(id + 4, NULL, 10) : 0;
}

static bool formats_have(const struct sections_formats *f, const char *system, unsigned id)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->list[i].system, system) == 0 && format_id(f->list[i].text) == id)
			return true;
	return false;
}

static int formats_add_source(struct sections_formats *f, const struct trace_dat *dat,
			      struct fault *why)
{
	int r = 0;

	for (size_t i = 0; i < dat->n_formats && r >= 0; i++) {
		const char *system = dat->systems[dat->formats[i].system];
		_cleanup_free_ char *text = NULL;

		r = trace_dat_load(dat, &dat->formats[i].text, TEXT_MAX, &text, why);
		if (r >= 0 && !formats_have(f, system, format_id(text)))
			r = sections_formats_add(f, system, TAKE_PTR(text));
	}
	return r;
}

static int put_union(const struct cut *cut, FILE *out, struct fault *why)
{
	_cleanup_(sections_formats_done) struct sections_formats f = {};
	int r = 0;

	for (size_t i = cut->n; i-- > 0 && r >= 0;)
		r = formats_add_source(&f, cut->sources[i].dat, why);
	return r < 0 ? r : sections_put_formats(out, f.list, f.n);
}

/*
 * Everything up to the printk formats, taken over from the newest source; event formats of the
 * others are added where they differ (modules and probes that came and went), events told apart by
 * system and id.
 */
static int put_sections(const struct cut *cut, FILE *out, struct fault *why)
{
	const struct trace_dat *newest = cut_newest(cut)->dat;
	uint64_t end = newest->printk_formats.offset + newest->printk_formats.size;
	int r, same = 1;

	for (size_t i = 0; i + 1 < cut->n && same > 0; i++)
		same = same_formats(cut->sources[i].dat, newest, why);
	if (same < 0)
		return same;
	if (same)
		return put_range(cut, out, 0, end, why);
	r = put_range(cut, out, 0, formats_begin(newest), why);
	if (r >= 0)
		r = put_union(cut, out, why);
	return r < 0 ? r : put_range(cut, out, formats_end(newest), end, why);
}

/* The task names of all sources as "PID COMM\n" lines; the newest name of a pid wins */
static int make_names(const struct cut *cut, char **ret, size_t *ret_size, struct fault *why)
{
	_cleanup_(task_names_freep) struct task_names *names = task_names_new(SIZE_MAX);
	size_t room = 0;
	int r = names ? 0 : -ENOMEM;

	for (size_t i = 0; i < cut->n && r >= 0; i++) {
		_cleanup_free_ char *text = NULL;

		r = trace_dat_load(cut->sources[i].dat, &cut->sources[i].dat->cmdlines, TEXT_MAX,
				   &text, why);
		if (r >= 0)
			r = task_names_merge(names, text);
		room += cut->sources[i].dat->cmdlines.size;
	}
	return r < 0 ? r : task_names_render(names, room, ret, ret_size);
}

int cut_write_header(const struct cut *cut, int fd, const struct options_params *params,
		     struct options *ret_options, struct sections_places *ret_places, FILE **ret,
		     struct fault *why)
{
	_cleanup_free_ char *uname = NULL, *probes = NULL, *names = NULL;
	_cleanup_fclose_ FILE *out = NULL;
	struct options_params all = *params;
	size_t used;
	int r = trace_dat_load_option(cut_newest(cut)->dat, TRACE_DAT_OPTION_UNAME, UNAME_MAX,
				      &uname, why);

	for (size_t i = 0; i < cut->n && r >= 0; i++)
		r = probes_merge(cut->sources[i].dat, &probes, why);
	if (r < 0)
		return r;
	all.n_cpus = cut->n_cpus;
	all.trace_id = options_new_trace_id();
	all.uname = uname;
	all.probes = probes;
	r = options_make(&all, ret_options);
	if (r < 0)
		return fault_errno(why, r, "cannot write");
	out = sections_open(fd);
	if (!out)
		return fault_errno(why, -ENOMEM, "cannot write the header");
	r = put_sections(cut, out, why);
	if (r >= 0)
		r = make_names(cut, &names, &used, why);
	if (r < 0)
		return r;
	r = sections_put_tables(out, names, used, 0, cut->n_cpus, ret_options, all.clock,
				ret_places);
	if (r < 0)
		return fault_errno(why, r, "cannot write");
	*ret = TAKE_PTR(out);
	return 0;
}

/* What the sources have of clocks, and what there is of now if that is of the same boot and clock
 */
static int merge_clocks(const struct cut *cut, const struct own_clocks *now, struct own_clocks *ret,
			struct fault *why)
{
	static const uint8_t unknown[16];
	_cleanup_(own_readings_done) struct own_readings readings = {};
	_cleanup_free_ char *text = NULL, *clock = NULL;
	const struct own_clock *list[OWN_CLOCKS_MAX];
	size_t n;
	int r = trace_dat_clock(cut_newest(cut)->dat, &text, why);

	for (size_t i = 0; i < cut->n && r >= 0; i++)
		r = own_readings_add(&readings, cut->sources[i].dat, cut->sources[i].from_nsec,
				     cut->sources[i].to_nsec, why);
	if (r < 0)
		return r;
	clock = trace_dat_clock_name(text);
	if (!clock)
		return fault_errno(why, -ENOMEM, "cannot write");
	/* Parts of a file of several sessions have been asked for nothing else */
	own_clocks_init(ret, clock,
			memcmp(cut_boot_id(cut), unknown, sizeof(unknown)) == 0 ? readings.boot_id
										: cut_boot_id(cut));
	own_readings_merge(&readings, ret);
	if (!now || strcmp(now->clock, ret->clock) != 0 ||
	    memcmp(now->boot_id, ret->boot_id, sizeof(now->boot_id)) != 0)
		return 0;
	n = own_clocks_list(now, list);
	for (size_t i = 0; i < n; i++)
		(void)own_clocks_add(ret, list[i]);
	return 0;
}

/* What the sources say of tasks, each thing once */
static int merge_tasks(const struct cut *cut, uint8_t **ret, size_t *ret_size, struct fault *why)
{
	_cleanup_(task_merge_freep) struct task_merge *merge = task_merge_new();
	int r = merge ? 0 : fault_errno(why, -ENOMEM, "cannot write");

	for (size_t i = 0; i < cut->n && r >= 0; i++)
		r = task_merge_add(merge, cut->sources[i].dat, why);
	return r < 0 ? r : task_merge_take(merge, ret, ret_size, why);
}

/* What the sources say that was not recorded; the newest knows best */
static int merge_sheds(const struct cut *cut, struct own_sheds *ret, struct fault *why)
{
	int r = 0;

	for (size_t i = 0; i < cut->n && r >= 0; i++)
		r = own_content_sheds(ret, cut->sources[i].dat, why);
	return r;
}

/* Flyrec's own section. @at: where the header ends, then where that ends */
static int write_own(const struct cut *cut, int fd, const struct own_content *own, uint64_t *at,
		     struct fault *why)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct own_content content = *own;
	_cleanup_own_sheds_ struct own_sheds sheds = {};
	struct own_clocks clocks;
	_cleanup_free_ uint8_t *tasks = NULL;
	struct own_places places;
	size_t size, tasks_size = 0;
	int r = merge_clocks(cut, own->clocks, &clocks, why);

	if (r >= 0)
		r = merge_tasks(cut, &tasks, &tasks_size, why);
	if (r >= 0)
		r = merge_sheds(cut, &sheds, why);
	if (r < 0)
		return r;
	content.sheds = &sheds;
	content.clocks = clocks.sequence > 0 ? &clocks : NULL;
	content.tasks = tasks;
	content.tasks_size = (uint32_t)tasks_size;
	r = own_content_build(&content, &bytes, &size, &places);
	if (r >= 0 && bytes) {
		*at = round_up(*at, OWN_SECTION_ALIGN);
		r = io_pwrite_all(fd, bytes, size, *at);
		*at += size;
	}
	return r < 0 ? fault_errno(why, r, "cannot write flyrec's own section") : 0;
}

int cut_end_header(const struct cut *cut, FILE *out, int fd, const struct own_content *own,
		   uint64_t *ret_at, struct fault *why)
{
	uint64_t at;
	int r;

	if (fflush(out) != 0)
		return fault_errno(why, -errno, "cannot write");
	at = (uint64_t)ftello(out);
	r = write_own(cut, fd, own, &at, why);
	if (r < 0)
		return r;
	*ret_at = round_up(at, MAX(CUT_REGION_ALIGN, (uint64_t)cut_newest(cut)->dat->page_size));
	return 0;
}

/* --- the file */

#define CPUSTAT_ROOM 512
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

/* Of the copies that are made piece by piece: whole sub-buffers, at least one */
static uint64_t chunk_size(uint32_t subbuf)
{
	return MAX(COPY_SIZE - COPY_SIZE % subbuf, (uint64_t)subbuf);
}

/* @n bytes of whole sub-buffers, which are at @at of the source */
static int count_subbufs(const struct cut_source *s, uint64_t at, uint64_t n, const char *buffer,
			 struct count *count, struct fault *why)
{
	for (uint64_t i = 0; i < n; i += s->dat->page_size) {
		struct subbuf_fault fault;
		struct subbuf_info info;

		if (subbuf_check(&s->dat->layout, buffer + i, NULL, &info, &fault) != 0)
			return fault_set(why, -EBADMSG, "%s: offset %s: no sub-buffer", s->name,
					 trace_dat_at(s->dat, at + i).text);
		if (count->subbufs == 0)
			count->first_nsec = info.header.timestamp;
		/* Before the first as well: that is what readers show */
		count->lost += info.header.missed_events;
		count->unknown_losses += info.header.missed && !info.header.missed_stored;
		count->last_nsec = info.last_ts;
		count->subbufs++;
		count->events += info.events;
	}
	return 0;
}

/* By reference at once; else piece by piece, each on its way to the disk while the next is read */
static int copy_slice(const struct cut_source *s, const struct cut_slice *slice,
		      const struct output *o, char *buffer, struct count *count, struct fault *why)
{
	bool cloned = io_clone_range(s->fd, slice->offset, o->fd, o->at, slice->size) >= 0;
	uint64_t chunk = chunk_size(s->dat->page_size);

	for (uint64_t done = 0; done < slice->size;) {
		uint64_t n = MIN(chunk, slice->size - done);
		int r = io_pread_all(s->fd, buffer, n, slice->offset + done);

		if (r < 0)
			return fault_errno(why, r, "cannot read %s", s->name);
		r = count_subbufs(s, slice->offset + done, n, buffer, count, why);
		if (r < 0)
			return r;
		if (!cloned)
			r = io_copy_range(s->fd, slice->offset + done, o->fd, o->at + done, n);
		if (r < 0)
			return fault_errno(why, r, "cannot copy from %s", s->name);
		if (!cloned)
			(void)sync_file_range(o->fd, (off_t)(o->at + done), (off_t)n,
					      SYNC_FILE_RANGE_WRITE);
		done += n;
	}
	return 0;
}

/*
 * The same of a file of version 7, whose bytes have to be unpacked. Those of a damaged chunk are
 * left out, which the sub-buffer behind them says. @ret: bytes that were written.
 */
static int unpack_slice(const struct cut_source *s, const struct cut_slice *slice,
			const struct output *o, char *buffer, struct count *count, uint64_t *ret,
			struct fault *why)
{
	uint64_t chunk = chunk_size(s->dat->page_size), written = 0;
	bool gap = false;

	for (uint64_t done = 0; done < slice->size;) {
		uint64_t at = slice->offset + done;
		size_t n = 0;
		int r = trace_dat_read_some(s->dat, buffer, MIN(chunk, slice->size - done), at, &n,
					    why);

		done += n;
		if (r == -EBADMSG) {
			gap = true;
			continue;
		}
		if (r < 0)
			return r;
		if (gap)
			subbuf_mark_missed(&s->dat->layout, buffer);
		gap = false;
		r = count_subbufs(s, at, n, buffer, count, why);
		if (r < 0)
			return r;
		r = io_pwrite_all(o->fd, buffer, n, o->at + written);
		if (r < 0)
			return fault_errno(why, r, "cannot write");
		written += n;
	}
	*why = (struct fault){0};
	*ret = written;
	return 0;
}

static int write_cpustat(const struct output *o, unsigned cpu, const struct count *count,
			 uint32_t subbuf, uint64_t from_nsec)
{
	const struct options_count kept = {
		.events = count->events,
		.lost = count->lost,
		.subbufs = count->subbufs,
		.bytes = count->subbufs * subbuf,
		.unknown_losses = count->unknown_losses,
		.from_nsec = from_nsec,
	};
	char text[CPUSTAT_ROOM];

	options_cpustat_final(text, sizeof(text), cpu, &kept);
	return io_pwrite_all(o->fd, text, sizeof(text), o->cpustat_at[cpu]);
}

static int write_cpu(const struct cut *cut, unsigned cpu, struct output *o, char *buffer,
		     struct count *count, struct fault *why)
{
	uint64_t entry[2] = {o->at, 0};
	int r;

	for (size_t i = 0; i < cut->n; i++) {
		const struct cut_source *s = &cut->sources[i];
		const struct cut_slice *slice = &s->slices[cpu];
		uint64_t size = slice->size;

		if (size == 0)
			continue;
		r = s->dat->data ? unpack_slice(s, slice, o, buffer, count, &size, why)
				 : copy_slice(s, slice, o, buffer, count, why);
		if (r < 0)
			return r;
		entry[1] += size;
		o->at += size;
	}
	r = io_pwrite_all(o->fd, entry, sizeof(entry), trace_dat_entry_at(o->table_at, cpu));
	if (r >= 0)
		r = write_cpustat(o, cpu, count, cut_newest(cut)->dat->page_size,
				  cut->sources[0].from_nsec);
	o->at = round_up(o->at, CUT_REGION_ALIGN);
	return r < 0 ? fault_errno(why, r, "cannot write") : 0;
}

static int write_header(const struct cut *cut, struct output *o, const struct cut_note *note,
			struct fault *why)
{
	_cleanup_(options_done) struct options options = {0};
	_cleanup_free_ char *clock = NULL;
	_cleanup_fclose_ FILE *out = NULL;
	struct options_params params = {
		.cpustat_room = CPUSTAT_ROOM,
		.has_date = cut_newest(cut)->has_date,
		.date_usec = cut_newest(cut)->date_usec,
		.note = note->text,
	};
	struct sections_places places;
	int r;

	r = trace_dat_clock(cut_newest(cut)->dat, &clock, why);
	params.clock = clock;
	if (r >= 0)
		r = cut_write_header(cut, o->fd, &params, &options, &places, &out, why);
	if (r >= 0)
		r = cut_end_header(cut, out, o->fd, &note->own, &o->at, why);
	if (r < 0)
		return r;
	o->table_at = places.table_at;
	for (unsigned cpu = 0; cpu < cut->n_cpus; cpu++)
		o->cpustat_at[cpu] = places.options_at + options.cpustat_at[cpu];
	return 0;
}

static uint64_t to_realtime(const struct cut *cut, uint64_t nsec)
{
	return (uint64_t)((int64_t)(nsec / NSEC_PER_USEC) + cut_newest(cut)->date_usec);
}

static int fill(const struct cut *cut, int fd, const struct cut_note *note,
		struct cut_report *report, struct fault *why)
{
	_cleanup_free_ uint64_t *cpustat_at = calloc(cut->n_cpus, sizeof(*cpustat_at));
	_cleanup_free_ char *buffer = malloc(chunk_size(cut_newest(cut)->dat->page_size));
	struct output o = {.fd = fd, .cpustat_at = cpustat_at};
	int r;

	if (!cpustat_at || !buffer)
		return fault_errno(why, -ENOMEM, "cannot write");
	r = write_header(cut, &o, note, why);
	report->files = (unsigned)cut->n;
	report->left_out_files = cut->left_out;
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
	return ftruncate(fd, (off_t)o.at) < 0
		       ? fault_errno(why, -errno, "cannot set the file's size")
		       : 0;
}

/* The file, not published yet; on error @why tells */
static int make(const struct cut *cut, int dir_fd, const char *name, const struct cut_note *note,
		struct store_file *file, struct cut_report *ret, struct fault *why)
{
	struct cut_report report = {0};
	int r = store_file_open(file, dir_fd, name, why);

	if (r < 0)
		return r;
	*why = (struct fault){0};
	r = fill(cut, file->fd, note, &report, why);
	if (r < 0)
		return why->error ? r : fault_errno(why, r, "cannot write %s", name);
	*ret = report;
	return 0;
}

int cut_write(const struct cut *cut, int dir_fd, const char *name, const struct cut_note *note,
	      struct cut_report *ret, struct fault *why)
{
	_cleanup_(store_file_done) struct store_file file = {.fd = -EBADF};
	struct cut_report report;
	int r = make(cut, dir_fd, name, note, &file, &report, why);

	if (r < 0)
		return r;
	fault_point("cut-rename");
	r = store_file_publish(&file, why);
	if (r >= 0)
		*ret = report;
	return r;
}

int cut_write_unnamed(const struct cut *cut, int dir_fd, const char *name, int *ret_fd,
		      struct cut_report *ret, struct fault *why)
{
	_cleanup_(store_file_done) struct store_file file = {.fd = -EBADF};
	static const struct cut_note none;
	int r = make(cut, dir_fd, name, &none, &file, ret, why);

	if (r >= 0)
		*ret_fd = TAKE_FD(file.fd); /* it never gets a name */
	return r;
}

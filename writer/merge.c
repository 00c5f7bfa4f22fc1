/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is in the new file, front to back: the header that all readers know, with formats, names and
 * ring buffers of all; flyrec's own section; a frame for each of the files; the regions. Where
 * these are is written when they are.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "formats/own-section.h"
#include "formats/trace-dat.h"
#include "writer/merge-file.h"
#include "writer/merge-names.h"
#include "writer/merge.h"
#include "writer/sections.h"

#define TEXT_MAX     (64 * MIB)
#define PIECE	     MIB
#define NAMES_SPARE  (64 * KIB) /* for names of tasks that are put together */
#define REGION_ALIGN (4 * KIB)

struct merge {
	struct merge_file *files;
	size_t n, n_buffers; /* n_buffers: all that are wanted */
	const struct merge_options *options;
	struct fault *why;
	struct merge_formats formats;
	const struct merge_file *axis,
		*largest; /* whose clock it is; who has the largest sub-buffers */
	char *clock;	  /* text of trace_clock */
	char *clock_name;
	unsigned n_cpus;
	bool same_symbols;
	FILE *out;
	int fd;
	struct sections_places places;
	struct own_hosts hosts;
	uint64_t own_at, at; /* at: where the next region goes */
	uint8_t *from, *to;  /* pieces as they are read and written; may be the same */
	size_t from_size;
};

static void merge_done(struct merge *m)
{
	if (m->out)
		(void)fclose(m->out);
	merge_formats_done(&m->formats);
	for (size_t i = 0; m->files && i < m->n; i++)
		merge_file_done(&m->files[i]);
	free(m->files);
	free(m->clock);
	free(m->clock_name);
	own_hosts_done(&m->hosts);
	if (m->to != m->from)
		free(m->to);
	free(m->from);
}

static int merge_failed(const struct merge *m, int error)
{
	return m->why->error ? error : fault_errno(m->why, error, "cannot write");
}

/* --- what there is */

/* Its descriptor, or what it was made as: a copy has the same */
static bool same_file(const struct merge_file *a, const struct merge_file *b)
{
	_cleanup_free_ char *x = NULL, *y = NULL;
	struct stat s, t;

	if (fstat(a->dat->fd, &s) >= 0 && fstat(b->dat->fd, &t) >= 0 && s.st_dev == t.st_dev &&
	    s.st_ino == t.st_ino)
		return true;
	return trace_dat_load_option(a->dat, TRACE_DAT_OPTION_TRACEID, 64, &x, NULL) > 0 &&
	       trace_dat_load_option(b->dat, TRACE_DAT_OPTION_TRACEID, 64, &y, NULL) > 0 &&
	       memcmp(x, y, sizeof(uint64_t)) == 0;
}

static int compare_names(const struct merge *m, const struct merge_file *a,
			 const struct merge_file *b)
{
	for (size_t i = 0; i < a->dat->n_buffers; i++)
		for (size_t k = 0; k < b->dat->n_buffers; k++)
			if (a->buffers[i].wanted && b->buffers[k].wanted &&
			    strcmp(a->buffers[i].name, b->buffers[k].name) == 0)
				return fault_set(m->why, -EINVAL,
						 "%s and %s are both of %s, and would be one ring "
						 "buffer; where they are of different hosts, give "
						 "these names: HOST=FILE",
						 a->dat->path, b->dat->path, a->buffers[i].name);
	return 0;
}

/* What a trace.dat has only once */
static int compare(const struct merge *m, const struct merge_file *a, const struct merge_file *b)
{
	_cleanup_free_ char *x = NULL, *y = NULL;
	int r;

	if (same_file(a, b))
		return fault_set(m->why, -EINVAL, "%s and %s are the same recording", a->dat->path,
				 b->dat->path);
	if (a->dat->long_size != b->dat->long_size ||
	    a->dat->layout.commit_size != b->dat->layout.commit_size ||
	    a->dat->layout.data_offset != b->dat->layout.data_offset)
		return fault_set(m->why, -EOPNOTSUPP,
				 "%s and %s cannot be in one file: sub-buffers of a %u-bit kernel "
				 "and of a %u-bit one",
				 a->dat->path, b->dat->path, 8 * a->dat->long_size,
				 8 * b->dat->long_size);
	r = trace_dat_load(a->dat, &a->dat->header_event, TEXT_MAX, &x, m->why);
	if (r >= 0)
		r = trace_dat_load(b->dat, &b->dat->header_event, TEXT_MAX, &y, m->why);
	if (r < 0)
		return r;
	if (strcmp(x, y) != 0)
		return fault_set(m->why, -EOPNOTSUPP,
				 "%s and %s cannot be in one file: their kernels have different "
				 "headers of events (header_event)",
				 a->dat->path, b->dat->path);
	return compare_names(m, a, b);
}

static void number_hosts(struct merge *m)
{
	unsigned next = 0;

	for (size_t i = 0; i < m->n; i++) {
		size_t k = 0;

		while (strcmp(m->files[k].host, m->files[i].host) != 0)
			k++;
		m->files[i].host_number = k < i ? m->files[k].host_number : next++;
	}
}

/* Of two files: 1, 0 other bytes there, negative errno */
static int same_bytes(const struct merge *m, const struct trace_dat *a, struct trace_dat_extent x,
		      const struct trace_dat *b, struct trace_dat_extent y)
{
	_cleanup_free_ char *text_x = NULL, *text_y = NULL;
	int r;

	if (x.size != y.size)
		return 0;
	r = trace_dat_load(a, &x, TEXT_MAX, &text_x, m->why);
	if (r >= 0)
		r = trace_dat_load(b, &y, TEXT_MAX, &text_y, m->why);
	return r < 0 ? r : memcmp(text_x, text_y, x.size) == 0;
}

static int compare_symbols(struct merge *m)
{
	const struct trace_dat *first = m->files[0].dat;
	int r = 1;

	for (size_t i = 1; i < m->n && r > 0; i++) {
		const struct trace_dat *dat = m->files[i].dat;

		r = same_bytes(m, first, first->kallsyms, dat, dat->kallsyms);
		if (r > 0)
			r = same_bytes(m, first, first->printk_formats, dat, dat->printk_formats);
	}
	m->same_symbols = r > 0;
	return MIN(r, 0);
}

static int place(struct merge *m)
{
	_cleanup_free_ struct axis_file *axis = calloc(m->n, sizeof(*axis));
	size_t best;
	int r;

	if (!axis)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++)
		axis[i] = m->files[i].axis;
	r = axis_place(axis, m->n, &best, m->why);
	for (size_t i = 0; i < m->n; i++)
		m->files[i].axis = axis[i];
	if (r < 0)
		return r;
	m->axis = &m->files[best];
	r = m->axis->axis.nsec.on ? 0 : trace_dat_clock(m->axis->dat, &m->clock, m->why);
	/* what readers take for nanoseconds */
	if (m->axis->axis.nsec.on)
		m->clock = strdup("[tsc2nsec]\n");
	if (r < 0 || !m->clock)
		return r < 0 ? r : -ENOMEM;
	m->clock_name = trace_dat_clock_name(m->clock);
	return m->clock_name ? 0 : -ENOMEM;
}

static int look_at(struct merge *m)
{
	int r = 0;

	m->largest = &m->files[0];
	for (size_t i = 0; i < m->n && r >= 0; i++) {
		const struct merge_file *file = &m->files[i];

		for (size_t k = 0; k < i && r >= 0; k++)
			r = compare(m, &m->files[k], file);
		if (r >= 0)
			r = merge_formats_add(&m->formats, file->dat, file->ids, m->why);
		m->n_cpus = MAX(m->n_cpus, file->dat->n_cpus);
		if (file->dat->page_size > m->largest->dat->page_size)
			m->largest = file;
		for (size_t k = 0; k < file->dat->n_buffers; k++)
			m->n_buffers += file->buffers[k].wanted;
	}
	if (r < 0)
		return r;
	number_hosts(m);
	r = compare_symbols(m);
	if (r >= 0)
		r = place(m);
	for (size_t i = 0; i < m->n && r >= 0; i++)
		r = merge_file_stats(&m->files[i],
				     m->files[i].dat->page_size < m->largest->dat->page_size);
	return r;
}

/* --- what is said about it */

static void put_span(FILE *out, uint64_t nsec)
{
	if (nsec < NSEC_PER_USEC)
		(void)fprintf(out, "%" PRIu64 " ns", nsec);
	else if (nsec < NSEC_PER_USEC * 1000)
		(void)fprintf(out, "%.3f us", (double)nsec / 1e3);
	else if (nsec < NSEC_PER_SEC)
		(void)fprintf(out, "%.3f ms", (double)nsec / 1e6);
	else
		(void)fprintf(out, "%.3f s", (double)nsec / 1e9);
}

static void put_line(const struct merge *m, FILE *out, const struct merge_file *file)
{
	const struct merge_file *same = &m->files[file->axis.same_as];

	(void)fprintf(out, "%s:%s: ", file->host, file->session);
	if (file->axis.moved == 0)
		(void)fputs("not moved, ", out);
	else
		(void)fprintf(out, "moved by %" PRIu64 ".%09" PRIu64 " s, ",
			      file->axis.moved / NSEC_PER_SEC, file->axis.moved % NSEC_PER_SEC);
	if (file->axis.shift.n_cpus > 0)
		(void)fputs("by TSC offset ", out);
	if (file->axis.shift.n_cpus > 0 && same == file) {
		(void)fputs("the clock of its host", out);
	} else if (same != file) {
		(void)fprintf(out, "the clock of %s:%s", same->host, same->session);
	} else if (file->axis.error == OWN_HOST_ERROR_UNKNOWN) {
		(void)fputs("not known how right its clock was", out);
	} else {
		(void)fputs("its clock was right to ", out);
		put_span(out, file->axis.error);
	}
	(void)fputc('\n', out);
}

static int describe(const struct merge *m, char **ret)
{
	size_t size;
	FILE *out = open_memstream(ret, &size);

	if (!out)
		return -ENOMEM;
	(void)fprintf(out, "flyrec merge: times by the clock of %s:%s (%s)\n", m->axis->host,
		      m->axis->session, *m->clock_name ? m->clock_name : "local");
	for (size_t i = 0; i < m->n; i++)
		put_line(m, out, &m->files[i]);
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

/* --- pieces of headers */

static int put_range(const struct merge *m, const struct trace_dat *dat, uint64_t from, uint64_t to)
{
	const struct trace_dat_extent extent = {from, to - from};
	_cleanup_free_ char *bytes = NULL;
	int r = trace_dat_load(dat, &extent, TEXT_MAX, &bytes, m->why);

	return r < 0 ? r : sections_put(m->out, bytes, to - from);
}

/* Of the largest sub-buffers, which all have now */
static int put_start(const struct merge *m)
{
	const struct trace_dat *dat = m->largest->dat;
	int r = sections_put_start(m->out, dat->long_size, dat->page_size);

	if (r >= 0)
		r = sections_put(m->out, TRACE_DAT_HEADER_PAGE, sizeof(TRACE_DAT_HEADER_PAGE));
	if (r >= 0)
		r = put_range(m, dat, dat->header_page.offset - sizeof(uint64_t),
			      dat->header_page.offset + dat->header_page.size);
	if (r >= 0)
		r = sections_put(m->out, TRACE_DAT_HEADER_EVENT, sizeof(TRACE_DAT_HEADER_EVENT));
	return r < 0 ? r
		     : put_range(m, dat, dat->header_event.offset - sizeof(uint64_t),
				 dat->header_event.offset + dat->header_event.size);
}

/* @dat: NULL: none */
static int put_symbols(const struct merge *m, const struct trace_dat *dat)
{
	int r = sections_put_u32(m->out, dat ? dat->kallsyms.size : 0);

	if (r >= 0 && dat)
		r = put_range(m, dat, dat->kallsyms.offset,
			      dat->kallsyms.offset + dat->kallsyms.size);
	if (r >= 0)
		r = sections_put_u32(m->out, dat ? dat->printk_formats.size : 0);
	if (r >= 0 && dat)
		r = put_range(m, dat, dat->printk_formats.offset,
			      dat->printk_formats.offset + dat->printk_formats.size);
	return r;
}

/* A ring buffer beside the first: an empty table, with the clock behind it as behind that one */
static int put_part(const struct merge *m, unsigned n_cpus, uint64_t *ret_table_at)
{
	const uint64_t entry[2] = {};
	int r;

	r = sections_put(m->out, TRACE_DAT_FLYRECORD, TRACE_DAT_WORD_SIZE);
	*ret_table_at = (uint64_t)ftello(m->out);
	for (unsigned cpu = 0; cpu < n_cpus && r >= 0; cpu++)
		r = sections_put(m->out, entry, sizeof(entry));
	return r < 0 ? r : sections_put_text64(m->out, m->clock, strlen(m->clock) + 1);
}

static uint64_t region_align(const struct merge *m)
{
	return MAX(REGION_ALIGN, (uint64_t)m->largest->dat->page_size);
}

static int pad(const struct merge *m, uint64_t alignment)
{
	uint64_t at = (uint64_t)ftello(m->out);

	return fseeko(m->out, (off_t)round_up(at, alignment), SEEK_SET) < 0 ? -errno : 0;
}

/* --- the header that all readers know */

static size_t names_room(const struct merge *m)
{
	size_t room = NAMES_SPARE;

	for (size_t i = 0; i < m->n; i++)
		room += m->files[i].dat->cmdlines.size;
	return room;
}

static int put_tables(struct merge *m, struct options_buffer *buffers, const char *text)
{
	_cleanup_(options_done) struct options options = {};
	const struct options_params params = {
		.n_cpus = m->n_cpus,
		.buffers = buffers,
		.n_buffers = m->n_buffers,
		.clock = m->clock,
		.has_date = m->axis->axis.dated,
		.date_usec = m->axis->axis.date_usec,
		.trace_id = options_new_trace_id(),
		.uname = m->axis->uname,
		.note = text,
	};
	size_t next = 0;
	int r = options_make(&params, &options);

	if (r >= 0)
		r = sections_put_tables(m->out, "", 0, names_room(m), m->n_cpus, &options, m->clock,
					&m->places);
	for (size_t i = 0; i < m->n && r >= 0; i++)
		for (size_t k = 0; k < m->files[i].dat->n_buffers && r >= 0; k++) {
			struct merge_buffer *b = &m->files[i].buffers[k];

			if (!b->wanted)
				continue;
			b->all.option_at = m->places.options_at + options.buffer_at[next++];
			r = put_part(m, m->n_cpus, &b->all.table_at);
		}
	return r;
}

static int put_header(struct merge *m, const char *text)
{
	_cleanup_free_ struct options_buffer *buffers =
		calloc(MAX(m->n_buffers, (size_t)1), sizeof(*buffers));
	size_t next = 0;
	int r = buffers ? put_start(m) : -ENOMEM;

	if (r >= 0)
		r = sections_put_formats(m->out, m->formats.all.list, m->formats.all.n);
	if (r >= 0)
		r = put_symbols(m, m->same_symbols ? m->files[0].dat : NULL);
	if (r < 0)
		return r;
	for (size_t i = 0; i < m->n; i++)
		for (size_t k = 0; k < m->files[i].dat->n_buffers; k++)
			if (m->files[i].buffers[k].wanted)
				buffers[next++] = (struct options_buffer){
					m->files[i].buffers[k].name,
					m->files[i].buffers[k].cpustats,
				};
	return put_tables(m, buffers, text);
}

/* Which files there are, in room that is reserved first */
static int write_hosts(struct merge *m)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ uint8_t *bytes = NULL;
	struct own_entry entry = {.kind = OWN_HOSTS};
	size_t size, text_size;
	int r = own_hosts_put(&m->hosts, &text, &text_size);

	if (r < 0)
		return r;
	entry.data = (const uint8_t *)text;
	entry.size = (uint32_t)text_size;
	r = own_section_build(&entry, 1, m->largest->dat->big_endian, &bytes, &size);
	if (r >= 0 && fseeko(m->out, (off_t)m->own_at, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? r : sections_put(m->out, bytes, size);
}

static int put_hosts(struct merge *m)
{
	int r = pad(m, OWN_SECTION_ALIGN);

	m->own_at = (uint64_t)ftello(m->out);
	for (size_t i = 0; i < m->n && r >= 0; i++) {
		const struct own_host host = merge_file_host(&m->files[i], 0);

		r = own_hosts_add(&m->hosts, &host);
	}
	return r < 0 ? r : write_hosts(m);
}

/* --- frames */

/* Texts of the first buffer's CPUs, each in room of its own */
static size_t stats_room(const struct merge_buffer *buffer)
{
	size_t room = 0;

	STRV_FOREACH (text, buffer->cpustats)
		room = MAX(room, strlen(*text) + 2);
	return room;
}

static void put_stats(const struct merge_buffer *buffer, unsigned n_cpus, size_t room,
		      struct options *options)
{
	STRV_FOREACH (text, buffer->cpustats) {
		unsigned cpu;

		if (sscanf(*text, "CPU: %u\n", &cpu) == 1 && cpu < n_cpus)
			options_cpustat(options->data + options->cpustat_at[cpu], room, *text);
	}
}

static int put_frame_tables(const struct merge *m, struct merge_file *file, const char *names,
			    size_t names_size, struct options_buffer *buffers)
{
	_cleanup_(options_done) struct options options = {};
	const struct trace_dat *dat = file->dat;
	const struct options_params params = {
		.n_cpus = dat->n_cpus,
		.cpustat_room = stats_room(&file->buffers[0]),
		.buffers = buffers,
		.n_buffers = dat->n_buffers - 1,
		.clock = m->clock,
		.has_date = m->axis->axis.dated,
		.date_usec = m->axis->axis.date_usec,
		.trace_id = options_new_trace_id(),
		.uname = file->uname,
		.probes = file->probes,
		.note = file->note,
	};
	struct sections_places places;
	int r;

	for (size_t i = 1; i < dat->n_buffers; i++)
		buffers[i - 1] =
			(struct options_buffer){dat->buffers[i].name, file->buffers[i].cpustats};
	r = options_make(&params, &options);
	if (r < 0)
		return r;
	put_stats(&file->buffers[0], dat->n_cpus, params.cpustat_room, &options);
	r = sections_put_tables(m->out, names, names_size, 0, dat->n_cpus, &options, m->clock,
				&places);
	file->buffers[0].frame.table_at = places.table_at;
	for (size_t i = 1; i < dat->n_buffers && r >= 0; i++) {
		struct merge_place *place = &file->buffers[i].frame;

		place->option_at = places.options_at + options.buffer_at[i - 1];
		r = put_part(m, dat->n_cpus, &place->table_at);
	}
	return r;
}

static int put_frame_formats(const struct merge *m, const struct merge_file *file)
{
	_cleanup_(sections_formats_done) struct sections_formats formats = {};
	int r = merge_formats_of(file->dat, file->ids, &formats, m->why);

	return r < 0 ? r : sections_put_formats(m->out, formats.list, formats.n);
}

static int put_frame_own(const struct merge *m, const struct merge_file *file)
{
	_cleanup_free_ uint8_t *own = NULL;
	size_t size;
	int r = merge_file_own(file, m->clock_name, &own, &size, m->why);

	if (r >= 0)
		r = pad(m, OWN_SECTION_ALIGN);
	return r < 0 ? r : sections_put(m->out, own, size);
}

static int put_frame(struct merge *m, size_t i)
{
	struct merge_file *file = &m->files[i];
	_cleanup_free_ struct options_buffer *buffers =
		calloc(file->dat->n_buffers, sizeof(*buffers));
	_cleanup_free_ char *names = NULL;
	size_t names_size;
	int r = buffers ? trace_dat_load(file->dat, &file->dat->cmdlines, TEXT_MAX, &names, m->why)
			: -ENOMEM;

	if (r >= 0)
		r = pad(m, OWN_SECTION_ALIGN);
	m->hosts.list[i].frame = (uint64_t)ftello(m->out);
	if (r >= 0)
		r = put_start(m);
	if (r >= 0)
		r = put_frame_formats(m, file);
	if (r >= 0)
		r = put_symbols(m, file->dat);
	if (r < 0)
		return r;
	for (names_size = file->dat->cmdlines.size;
	     names_size > 0 && strchr("\n", names[names_size - 1]);)
		names_size--;
	names_size += names_size < file->dat->cmdlines.size; /* the newline of the last line */
	r = put_frame_tables(m, file, names, names_size, buffers);
	return r < 0 ? r : put_frame_own(m, file);
}

static int put_headers(struct merge *m, const char *text)
{
	uint64_t end;
	int r = put_header(m, text);

	if (r >= 0)
		r = put_hosts(m);
	for (size_t i = 0; i < m->n && r >= 0; i++)
		r = put_frame(m, i);
	end = (uint64_t)ftello(m->out);
	m->at = round_up(end, region_align(m));
	if (r >= 0)
		r = write_hosts(m);
	if (r >= 0 && fflush(m->out) != 0)
		r = -errno;
	return r < 0 ? merge_failed(m, r) : 0;
}

/* --- the data */

struct progress {
	uint32_t cpu;
	struct time_rate rate;
	uint64_t ts; /* of the last event of this CPU */
	bool gap;    /* what came behind it was damaged */
};

/* One sub-buffer, at @offset of its file */
static int move_subbuf(const struct merge *m, struct merge_file *file, uint64_t offset,
		       const uint8_t *from, uint8_t *to, struct progress *progress)
{
	const struct subbuf_layout *layout = &file->dat->layout;
	const struct subbuf_move move = {
		.rate = progress->rate.on ? &progress->rate : NULL,
		.by = file->axis.moved,
		.ids = file->ids->ids,
		.pid_at = file->ids->pid_at,
		.pids = file->pids,
	};
	struct subbuf_fault fault;
	struct subbuf_info info;
	char text[160];
	int r;

	if (to != from) {
		memcpy(to, from, layout->size);
		memset(to + layout->size, 0, m->largest->dat->page_size - layout->size);
	}
	r = subbuf_move(layout, to, &move, &info, &fault);
	if (r == 0) {
		if (progress->gap)
			subbuf_mark_missed(layout, to);
		progress->gap = false;
		progress->ts = time_rate_apply(&progress->rate, info.last_ts) + move.by;
		if (info.events > 0) {
			file->first = MIN(file->first,
					  merge_file_time(file, progress->cpu, info.first_ts));
			file->last = MAX(file->last, progress->ts);
		}
		return 0;
	}
	if (r == SUBBUF_E_EMPTY)
		return 0;
	r = fault_at(m->why, -EBADMSG, file->dat->path, offset + fault.offset, "%s",
		     subbuf_fault_text(&fault, text, sizeof(text)));
	if (!m->options->told)
		return r;
	m->options->told(m->options->userdata, m->why->text);
	*m->why = (struct fault){};
	subbuf_make_empty(layout, to, progress->ts);
	progress->gap = true;
	return 0;
}

static int copy_region(struct merge *m, struct merge_file *file, size_t b, unsigned cpu,
		       uint64_t size)
{
	const uint32_t from_page = file->dat->page_size, to_page = m->largest->dat->page_size;
	const uint64_t offset = file->dat->buffers[b].regions[cpu].offset;
	/* larger ones are made one by one, in memory of as many */
	const size_t piece = m->from_size / to_page * from_page;
	uint8_t *to = from_page == to_page ? m->from : m->to;
	struct progress progress = {
		.cpu = cpu, .rate = axis_rate(&file->axis, cpu), .ts = file->axis.moved + 1};
	int r = 0;

	region_read_begin(file->read, &file->dat->buffers[b], cpu, size);
	for (uint64_t done = 0, n; done < size && r >= 0; done += n) {
		const size_t count = MIN(size - done, (uint64_t)piece) / from_page;

		n = (uint64_t)count * from_page;
		r = region_read_next(file->read, m->from, n, m->why);
		for (size_t i = 0; i < count && r >= 0; i++)
			r = move_subbuf(m, file, offset + done + i * from_page,
					m->from + i * from_page, to + i * to_page, &progress);
		if (r >= 0)
			r = io_pwrite_all(m->fd, to, count * to_page, m->at);
		m->at += count * to_page;
	}
	return r;
}

static int copy_file(struct merge *m, struct merge_file *file)
{
	int r = 0;

	for (size_t b = 0; b < file->dat->n_buffers && r >= 0; b++)
		for (unsigned cpu = 0; cpu < file->dat->n_cpus && r >= 0; cpu++) {
			uint64_t *region = &file->buffers[b].regions[2 * (size_t)cpu], size;

			r = region_read_size(file->read, &file->dat->buffers[b], cpu, &size,
					     m->why);
			region[0] = m->at;
			if (r >= 0)
				r = copy_region(m, file, b, cpu, size);
			region[1] = m->at - region[0];
			m->at = round_up(m->at, region_align(m));
		}
	return r;
}

/* A CPU that the file has not has a place that readers find sane. @buffer: NULL: it has none. */
static int write_place(const struct merge *m, const struct merge_place *place, unsigned n_cpus,
		       const struct merge_buffer *buffer, unsigned of_buffer)
{
	const uint64_t none[2] = {round_down(m->at, (uint64_t)m->largest->dat->page_size), 0};
	const uint64_t part_at = place->table_at - TRACE_DAT_WORD_SIZE;
	int r = 0;

	for (unsigned cpu = 0; cpu < n_cpus && r >= 0; cpu++)
		r = io_pwrite_all(m->fd, cpu < of_buffer ? &buffer->regions[2 * (size_t)cpu] : none,
				  sizeof(none), trace_dat_entry_at(place->table_at, cpu));
	return r < 0 || place->option_at == 0
		       ? r
		       : io_pwrite_all(m->fd, &part_at, sizeof(part_at), place->option_at);
}

static int write_places(const struct merge *m)
{
	const struct merge_place first = {.table_at = m->places.table_at};
	int r = write_place(m, &first, m->n_cpus, NULL, 0);

	for (size_t i = 0; i < m->n; i++)
		for (size_t k = 0; k < m->files[i].dat->n_buffers && r >= 0; k++) {
			const unsigned n_cpus = m->files[i].dat->n_cpus;
			const struct merge_buffer *b = &m->files[i].buffers[k];

			r = write_place(m, &b->frame, n_cpus, b, n_cpus);
			if (r >= 0 && b->wanted)
				r = write_place(m, &b->all, m->n_cpus, b, n_cpus);
		}
	return r;
}

static int write_names(const struct merge *m, struct merge_report *report)
{
	_cleanup_(merge_names_freep) struct merge_names *names = merge_names_new();
	_cleanup_free_ char *text = NULL;
	int r = names ? 0 : -ENOMEM;

	for (size_t i = 0; i < m->n && r >= 0; i++) {
		const struct merge_file *file = &m->files[i];
		_cleanup_free_ char *lines = NULL;

		r = trace_dat_load(file->dat, &file->dat->cmdlines, TEXT_MAX, &lines, m->why);
		if (r >= 0)
			r = merge_names_add(names, file->host_number, lines, file->pids);
	}
	if (r >= 0)
		r = merge_names_put(names, m->places.names_room, &text, &report->shared_names);
	return r < 0 ? r : io_pwrite_all(m->fd, text, m->places.names_room, m->places.names_at);
}

static int put_data(struct merge *m, struct merge_report *report)
{
	const size_t page = m->largest->dat->page_size;
	int r = 0;

	m->from_size = MAX(round_down(PIECE, page), page);
	m->from = aligned_alloc(REGION_READ_ALIGN, round_up(m->from_size, REGION_READ_ALIGN));
	m->to = malloc(m->from_size);
	if (!m->from || !m->to)
		return merge_failed(m, -ENOMEM);
	for (size_t i = 0; i < m->n && r >= 0; i++)
		r = copy_file(m, &m->files[i]);
	if (r >= 0)
		r = write_places(m);
	if (r >= 0)
		r = write_names(m, report);
	if (r >= 0 && ftruncate(m->fd, (off_t)m->at) < 0)
		r = -errno;
	return r < 0 ? merge_failed(m, r) : 0;
}

static size_t count_apart(const struct merge *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct merge_file *a = &m->files[i];
		bool meets = a->last == 0;

		for (size_t k = 0; k < m->n; k++)
			meets |= k != i && m->files[k].last > 0 && m->files[k].first <= a->last &&
				 a->first <= m->files[k].last;
		n += !meets;
	}
	return n;
}

/* --- all of it */

int merge_files(const struct merge_input *inputs, size_t n, int out_fd,
		const struct merge_options *options, struct merge_report *ret, struct fault *why)
{
	_cleanup_(merge_done) struct merge m = {
		.options = options, .why = why, .fd = out_fd, .n = n};
	_cleanup_(merge_report_done) struct merge_report report = {};
	int r = 0;

	*why = (struct fault){};
	if (n < 2 || n > OWN_HOSTS_MAX)
		return fault_set(why, -EINVAL, "two files are wanted, or more");
	m.files = calloc(n, sizeof(*m.files));
	m.out = sections_open(out_fd);
	if (!m.files || !m.out)
		return merge_failed(&m, -ENOMEM);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = merge_file_open(&m.files[i], &inputs[i],
				    (struct region_read_told){options->told, options->userdata},
				    why);
	if (r >= 0)
		r = look_at(&m);
	if (r >= 0)
		r = describe(&m, &report.text);
	if (r < 0)
		return merge_failed(&m, r);
	r = put_headers(&m, report.text);
	if (r >= 0)
		r = put_data(&m, &report);
	if (r < 0)
		return r;
	report.symbols_differ = !m.same_symbols;
	report.n_apart = count_apart(&m);
	*ret = report;
	report = (struct merge_report){};
	return 0;
}

void merge_report_done(struct merge_report *report)
{
	free(report->text);
	*report = (struct merge_report){};
}

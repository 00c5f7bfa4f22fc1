/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/fault-point.h"
#include "basic/io.h"
#include "basic/strv.h"
#include "formats/trace-dat.h"
#include "writer/cut-internal.h"
#include "writer/store.h"
#include "writer/together.h"

#define CPU_STATS "CPU: " /* what a CPU's CPUSTAT text begins with */

/* One ring buffer of the file in the making */
struct buffer {
	const struct trace_dat *dat; /* the session's file; NULL: nothing of that time */
	char **cpustats;
	uint64_t option_at; /* in the file: where the offset of its part goes */
	uint64_t part_at;   /* its "flyrecord" */
};

struct together {
	const struct together_part *parts;
	size_t n;
	struct buffer *buffers; /* [n] */
	struct cut files;	/* those of the parts that have one, for the header */
	char *clock;
	uint64_t table_at;  /* of the file's own ring buffer */
	uint64_t at;	    /* where the next region goes */
	unsigned page_size; /* bytes: of the largest sub-buffers */
};

static void together_done(struct together *t)
{
	for (size_t i = 0; t->buffers && i < t->n; i++)
		strv_free(t->buffers[i].cpustats);
	for (size_t i = 0; i < t->files.n; i++)
		trace_dat_free(t->files.sources[i].dat);
	free(t->buffers);
	free(t->files.sources);
	free(t->clock);
}

int together_compare(const struct together_shape *a, const struct together_shape *b,
		     struct fault *why)
{
	if (strcmp(a->clock, b->clock) != 0)
		return fault_set(why, -EOPNOTSUPP,
				 "sessions with different clocks cannot be in one file: %s has "
				 "Clock=%s, %s has Clock=%s",
				 a->name, a->clock, b->name, b->clock);
	if (a->n_cpus != b->n_cpus)
		return fault_set(why, -EOPNOTSUPP,
				 "sessions with different numbers of CPUs cannot be in one file: "
				 "%s has %u, %s has %u",
				 a->name, a->n_cpus, b->name, b->n_cpus);
	return 0;
}

/* --- what there is */

static int compare_files(const struct trace_dat *a, const struct trace_dat *b, struct fault *why)
{
	_cleanup_free_ char *text_a = NULL, *text_b = NULL, *clock_a = NULL, *clock_b = NULL;
	int r = trace_dat_clock(a, &text_a, why);

	if (r >= 0)
		r = trace_dat_clock(b, &text_b, why);
	if (r < 0)
		return r;
	clock_a = trace_dat_clock_name(text_a);
	clock_b = trace_dat_clock_name(text_b);
	if (!clock_a || !clock_b)
		return fault_errno(why, -ENOMEM, "cannot compare %s and %s", a->path, b->path);
	return together_compare(&(struct together_shape){a->path, clock_a, a->n_cpus},
				&(struct together_shape){b->path, clock_b, b->n_cpus}, why);
}

/* The texts of its CPUs as they are, without what fills them up */
static int read_cpustats(const struct trace_dat *dat, char ***ret, struct fault *why)
{
	size_t from = 0;

	for (;;) {
		_cleanup_free_ char *text = NULL, *line = NULL;
		int r = trace_dat_next_note(dat, CPU_STATS, &from, &text, why);

		if (r <= 0)
			return r;
		line = options_trimmed(CPU_STATS, text);
		r = line ? strv_append(ret, line) : -ENOMEM;
		if (r < 0)
			return fault_errno(why, r, "cannot read the statistics of %s", dat->path);
	}
}

static int open_part(struct together *t, size_t i, struct fault *why)
{
	struct cut_source *source = &t->files.sources[t->files.n];
	struct buffer *buffer = &t->buffers[i];
	int r;

	if (t->parts[i].fd < 0) {
		r = strv_append(&buffer->cpustats,
				t->parts[i].other_boot
					? "what was recorded in that time is of another boot\n"
					: "nothing was recorded in that time\n");
		return r < 0 ? fault_errno(why, r, "cannot write") : 0;
	}
	r = trace_dat_open_fd(t->parts[i].fd, t->parts[i].name, &source->dat, why);
	if (r < 0)
		return r;
	t->files.n++;
	source->name = source->dat->path;
	source->to_nsec = UINT64_MAX;
	source->fd = t->parts[i].fd;
	buffer->dat = source->dat;
	r = t->files.n > 1 ? compare_files(t->files.sources[0].dat, source->dat, why) : 0;
	for (unsigned cpu = 0; cpu < source->dat->n_cpus && r >= 0; cpu++)
		r = trace_dat_check_region(source->dat, &source->dat->buffers[0], cpu, why);
	return r < 0 ? r : read_cpustats(source->dat, &buffer->cpustats, why);
}

/*
 * A file has one size of sub-buffers. A smaller one lies in a larger one as if no more had been
 * traced: its header tells where its data ends. What the file says of its pages must be of the
 * largest, so that this one comes last, where the header is taken from.
 */
static void choose_page_size(struct together *t)
{
	struct cut_source *sources = t->files.sources, *last = &sources[t->files.n - 1];

	for (size_t i = 0; i < t->files.n; i++)
		if (sources[i].dat->page_size > last->dat->page_size)
			SWAP(sources[i], *last);
	t->page_size = last->dat->page_size;
}

static void correct_cpustats(const struct together *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->buffers[i].dat && t->buffers[i].dat->page_size != t->page_size)
			STRV_FOREACH (text, t->buffers[i].cpustats)
				options_drop_bytes(*text);
}

static int open_parts(struct together *t, struct fault *why)
{
	int r = 0;

	t->buffers = calloc(t->n, sizeof(*t->buffers));
	t->files.sources = calloc(t->n, sizeof(*t->files.sources));
	if (!t->buffers || !t->files.sources)
		return fault_errno(why, -ENOMEM, "cannot take a snapshot");
	for (size_t i = 0; i < t->n && r >= 0; i++)
		r = open_part(t, i, why);
	if (r < 0)
		return r;
	if (t->files.n == 0)
		return fault_set(why, -ENODATA, "nothing was recorded in that time");
	choose_page_size(t);
	correct_cpustats(t);
	t->files.n_cpus = t->files.sources[0].dat->n_cpus;
	return trace_dat_clock(cut_newest(&t->files)->dat, &t->clock, why);
}

/* --- the header */

/* The other ring buffers: empty tables for now, with the clock behind them as behind the first */
static int put_parts(struct together *t, FILE *out)
{
	const uint64_t entry[2] = {0, 0};
	int r = 0;

	for (size_t i = 0; i < t->n && r >= 0; i++) {
		t->buffers[i].part_at = (uint64_t)ftello(out);
		r = sections_put(out, TRACE_DAT_FLYRECORD, TRACE_DAT_WORD_SIZE);
		for (unsigned cpu = 0; cpu < t->files.n_cpus && r >= 0; cpu++)
			r = sections_put(out, entry, sizeof(entry));
		if (r >= 0)
			r = sections_put_text64(out, t->clock, strlen(t->clock) + 1);
	}
	return r;
}

static int write_header(struct together *t, int fd, const struct cut_note *note, struct fault *why)
{
	_cleanup_free_ struct options_buffer *buffers = calloc(t->n, sizeof(*buffers));
	_cleanup_(options_done) struct options options = {0};
	_cleanup_fclose_ FILE *out = NULL;
	struct options_params params = {
		.buffers = buffers,
		.n_buffers = t->n,
		.note = note->text,
		.clock = t->clock,
	};
	struct sections_places places;
	int r = buffers ? 0 : -ENOMEM;

	for (size_t i = 0; i < t->n && r >= 0; i++)
		buffers[i] = (struct options_buffer){t->parts[i].name, t->buffers[i].cpustats};
	for (size_t i = 0; i < t->files.n && r >= 0; i++) {
		r = trace_dat_date(t->files.sources[i].dat, &params.date_usec, why);
		params.has_date |= r > 0;
	}
	if (r >= 0)
		r = cut_write_header(&t->files, fd, &params, &options, &places, &out, why);
	if (r < 0)
		return r;
	r = put_parts(t, out);
	if (r < 0)
		return fault_errno(why, r, "cannot write");
	t->table_at = places.table_at;
	for (size_t i = 0; i < t->n; i++)
		t->buffers[i].option_at = places.options_at + options.buffer_at[i];
	return cut_end_header(&t->files, out, fd, &note->own, &t->at, why);
}

/* --- the data */

/* The file's own ring buffer has no data, but a place that readers find sane */
static int write_own_table(const struct together *t, int fd)
{
	const uint64_t entry[2] = {t->at, 0};
	int r = 0;

	for (unsigned cpu = 0; cpu < t->files.n_cpus && r >= 0; cpu++)
		r = io_pwrite_all(fd, entry, sizeof(entry), trace_dat_entry_at(t->table_at, cpu));
	return r;
}

/* @ret_size: bytes that it takes in the file */
static int copy_region(const struct together *t, size_t i, unsigned cpu, int fd, uint64_t *ret_size)
{
	const struct trace_dat *dat = t->buffers[i].dat;
	const struct trace_dat_region *region = &dat->buffers[0].regions[cpu];
	uint64_t piece = dat->page_size == t->page_size ? region->size : dat->page_size;
	uint64_t from = 0, to = 0;
	int r = 0;

	for (; from < region->size && r >= 0; from += piece) {
		r = io_copy_range(t->parts[i].fd, region->offset + from, fd, t->at + to, piece);
		to += round_up(piece, (uint64_t)t->page_size);
	}
	*ret_size = to;
	return r;
}

static int copy_buffer(struct together *t, size_t i, int fd, struct cut_report *report,
		       struct fault *why)
{
	const struct buffer *b = &t->buffers[i];
	uint64_t at = b->part_at + TRACE_DAT_WORD_SIZE;
	int r = io_pwrite_all(fd, &b->part_at, sizeof(b->part_at), b->option_at);

	for (unsigned cpu = 0; cpu < t->files.n_cpus && r >= 0; cpu++) {
		uint64_t entry[2] = {t->at, 0};

		if (b->dat)
			r = copy_region(t, i, cpu, fd, &entry[1]);
		if (r >= 0)
			r = io_pwrite_all(fd, entry, sizeof(entry), trace_dat_entry_at(at, cpu));
		t->at = round_up(t->at + entry[1], CUT_REGION_ALIGN);
		report->bytes += entry[1];
	}
	return r < 0 ? fault_errno(why, r, "cannot copy what %s recorded", t->parts[i].name) : 0;
}

static int fill(struct together *t, int fd, const struct cut_note *note, struct cut_report *report,
		struct fault *why)
{
	int r = write_header(t, fd, note, why);

	if (r < 0)
		return r;
	r = write_own_table(t, fd);
	if (r < 0)
		return fault_errno(why, r, "cannot write");
	for (size_t i = 0; i < t->n && r >= 0; i++)
		r = copy_buffer(t, i, fd, report, why);
	if (r < 0)
		return r;
	report->files = (unsigned)t->files.n;
	return ftruncate(fd, (off_t)t->at) < 0
		       ? fault_errno(why, -errno, "cannot set the file's size")
		       : 0;
}

int together_write(const struct together_part *parts, size_t n, int dir_fd, const char *name,
		   const struct cut_note *note, struct cut_report *ret, struct fault *why)
{
	_cleanup_(together_done) struct together t = {.parts = parts, .n = n};
	_cleanup_(store_file_done) struct store_file file = {.fd = -EBADF};
	struct cut_report report = {0};
	int r;

	*why = (struct fault){0};
	r = open_parts(&t, why);
	if (r >= 0)
		r = store_file_open(&file, dir_fd, name, why);
	if (r >= 0)
		r = fill(&t, file.fd, note, &report, why);
	if (r < 0)
		return why->error ? r : fault_errno(why, r, "cannot write %s", name);
	fault_point("together-rename");
	r = store_file_publish(&file, why);
	if (r >= 0)
		*ret = report;
	return r;
}

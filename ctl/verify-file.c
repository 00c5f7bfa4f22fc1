/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "ctl/verify.h"
#include "decode/format-check.h"
#include "formats/time-shift.h"
#include "formats/trace-dat-data.h"
#include "formats/trace-dat.h"

/* Small enough to stay in the CPU's cache between the read and the walk, which is worth a third */
#define CHUNK (256 * KIB)

#define MAX_CPUSTAT MIB

/* --- data */

/* A part of the file that nothing else may share */
struct claim {
	uint64_t offset, size;
	uint64_t entry; /* what said so */
	const struct trace_dat_buffer *buffer;
	int cpu; /* -1: a CPU table */
};

struct scan {
	const struct trace_dat *dat;
	struct verify_report *report;
	uint32_t *least; /* what was said about an id once is not said again */
	uint8_t *chunk;
	size_t chunk_size;

	/* the CPU being read */
	struct verify_cpu *cpu;
	char name[300]; /* "cpu N" or "buffer NAME cpu N" */
	uint64_t last_ts;
	uint64_t unwritten_from; /* where a run of zero sub-buffers began */
	uint64_t unwritten;	 /* length of the run */
};

static void name_cpu(const char *buffer, unsigned cpu, char *ret, size_t size)
{
	if (buffer[0])
		(void)snprintf(ret, size, "buffer %.255s cpu %u", buffer, cpu);
	else
		(void)snprintf(ret, size, "cpu %u", cpu);
}

static void check_empty(struct scan *s, const uint8_t *bytes, uint64_t offset)
{
	/* the first byte is zero: are all the same? */
	if (memcmp(bytes, bytes + 1, s->dat->layout.size - 1) != 0)
		verify_report_fault(s->report, offset,
				    "%s: the header of a sub-buffer is zero, its data is not",
				    s->name);
	else if (s->unwritten++ == 0)
		s->unwritten_from = offset;
}

/*
 * An event of an unknown or too small kind does not keep us from reading on: say it, for the first
 * of its id in the file, and look again without it.
 */
static int check_events(struct scan *s, const uint8_t *bytes, uint64_t offset,
			struct subbuf_info *ret)
{
	struct subbuf_fault fault;
	char text[160];
	int r;

	while ((r = subbuf_check(&s->dat->layout, bytes, s->least, ret, &fault)) < 0) {
		bool id = fault.reason == SUBBUF_EVENT_UNKNOWN ||
			  fault.reason == SUBBUF_EVENT_SMALLER_THAN_FORMAT;

		verify_report_fault(s->report, offset + fault.offset, "%s: %s%s", s->name,
				    subbuf_fault_text(&fault, text, sizeof(text)),
				    id ? " (the first such event)" : "");
		if (!id)
			break;
		s->least[fault.value] = 0;
	}
	return r;
}

static void check_one(struct scan *s, const uint8_t *bytes, uint64_t offset)
{
	struct subbuf_info info;
	int r;

	r = check_events(s, bytes, offset, &info);
	if (r == SUBBUF_E_EMPTY) {
		check_empty(s, bytes, offset);
		return;
	}
	if (s->unwritten) {
		verify_report_fault(s->report, s->unwritten_from,
				    "%s: %" PRIu64 " sub-buffers before others were never written",
				    s->name, s->unwritten);
		s->unwritten = 0;
	}
	s->cpu->subbufs++;
	if (r < 0)
		return;
	if (info.header.timestamp < s->last_ts)
		verify_report_fault(s->report, offset,
				    "%s: time runs backwards: sub-buffer of %" PRIu64
				    " after an event of %" PRIu64,
				    s->name, info.header.timestamp, s->last_ts);
	s->last_ts = info.last_ts;
	s->cpu->events += info.events;
	if (info.header.missed_stored)
		s->cpu->lost_events += info.header.missed_events;
	else if (info.header.missed)
		s->cpu->lost_unknown++;
}

/*
 * The next stretch that is not a hole, in whole sub-buffers counted from @base. File systems that
 * know no holes say that all is data.
 */
static void find_data(int fd, uint64_t base, uint64_t pos, uint64_t end, uint32_t size,
		      uint64_t *ret_from, uint64_t *ret_to)
{
	off_t from, to;

	*ret_to = end;
	from = lseek(fd, (off_t)pos, SEEK_DATA);
	if (from < 0) {
		*ret_from = errno == ENXIO ? end : pos;
		return;
	}
	*ret_from = MIN(base + round_down((uint64_t)from - base, size), end);
	to = lseek(fd, from, SEEK_HOLE);
	if (to > from)
		*ret_to = MIN(base + round_up((uint64_t)to - base, size), end);
}

/*
 * What follows at @pos, *n bytes at most, in whole sub-buffers; damaged bytes are told and left
 * out. Return: 1 with *n set, 0 so many are left out, or negative errno, told.
 */
static int read_chunk(struct scan *s, uint64_t pos, size_t *n)
{
	struct fault why;
	int r;

	r = trace_dat_read_some(s->dat, s->chunk, *n, pos, n, &why);
	if (r == -ENODATA)
		verify_report_fault(s->report, pos, "%s: the file became shorter while it was read",
				    s->name);
	else if (r == -EBADMSG)
		verify_report_line(s->report, why.text);
	else if (r < 0)
		verify_report_fault(s->report, pos, "%s: cannot read: %s", s->name, strerror(-r));
	return r == -EBADMSG ? 0 : r < 0 ? r : 1;
}

static void scan_region(struct scan *s, const struct trace_dat_region *region)
{
	uint64_t pos = region->offset, end = region->offset + region->size, from, to = pos;
	uint32_t size = s->dat->layout.size;

	if (s->dat->data) /* no holes */
		to = end;
	while (pos < end) {
		size_t n;
		int r;

		if (pos >= to) {
			find_data(s->dat->fd, region->offset, pos, end, size, &from, &to);
			if (from > pos) {
				if (s->unwritten == 0)
					s->unwritten_from = pos;
				s->unwritten += (from - pos) / size;
				pos = from;
				continue;
			}
		}
		n = MIN(to - pos, s->chunk_size);
		r = read_chunk(s, pos, &n);
		if (r < 0)
			return;
		for (size_t i = 0; r > 0 && i < n; i += size)
			check_one(s, s->chunk + i, pos + i);
		pos += n;
	}
}

static int compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static void report_overlap(struct verify_report *report, const struct claim *a,
			   const struct claim *b)
{
	char name_a[300] = "a CPU table", name_b[300] = "a CPU table";

	if (a->cpu >= 0)
		name_cpu(a->buffer->name, (unsigned)a->cpu, name_a, sizeof(name_a));
	if (b->cpu >= 0)
		name_cpu(b->buffer->name, (unsigned)b->cpu, name_b, sizeof(name_b));
	verify_report_fault(report, b->entry,
			    "%s: the region at 0x%" PRIx64 " overlaps that of %s at 0x%" PRIx64,
			    name_b, b->offset, name_a, a->offset);
}

/* What is wrong with the regions' places; @sound says which can be read */
static int check_regions(const struct trace_dat *dat, struct verify_report *report, bool *sound)
{
	_cleanup_free_ struct claim *claims =
		calloc(dat->n_buffers * (dat->n_cpus + 1UL) + 1, sizeof(*claims));
	const struct claim *widest = NULL;
	size_t n = 0;

	if (!claims)
		return -ENOMEM;
	for (size_t i = 0; i < dat->n_buffers; i++) {
		const struct trace_dat_buffer *b = &dat->buffers[i];

		claims[n++] =
			(struct claim){b->table.offset, b->table.size, b->table.offset, b, -1};
		for (unsigned cpu = 0; cpu < dat->n_cpus; cpu++) {
			const struct trace_dat_region *r = &b->regions[cpu];
			struct fault why;

			if (trace_dat_check_region(dat, b, cpu, &why) < 0) {
				verify_report_line(report, why.text);
				continue;
			}
			sound[i * dat->n_cpus + cpu] = true;
			if (r->size)
				claims[n++] =
					(struct claim){r->offset, r->size, r->entry, b, (int)cpu};
		}
	}
	qsort(claims, n, sizeof(*claims), compare_claims);
	for (size_t i = 0; i < n; i++) {
		if (widest && claims[i].offset < widest->offset + widest->size)
			report_overlap(report, widest, &claims[i]);
		if (!widest || claims[i].offset + claims[i].size > widest->offset + widest->size)
			widest = &claims[i];
	}
	return 0;
}

static int scan_buffers(struct scan *s, const bool *sound)
{
	const struct trace_dat *dat = s->dat;

	for (size_t i = 0; i < dat->n_buffers; i++) {
		for (unsigned cpu = 0; cpu < dat->n_cpus; cpu++) {
			s->cpu = &s->report->cpus[s->report->n_cpus];
			*s->cpu = (struct verify_cpu){.cpu = cpu,
						      .buffer = strdup(dat->buffers[i].name)};
			if (!s->cpu->buffer)
				return -ENOMEM;
			for (char *c = s->cpu->buffer; *c; c++)
				if (*c < ' ' || *c > '~')
					*c = '?';
			s->report->n_cpus++;
			name_cpu(s->cpu->buffer, cpu, s->name, sizeof(s->name));
			s->last_ts = s->unwritten = 0;
			if (sound[i * dat->n_cpus + cpu])
				scan_region(s, &dat->buffers[i].regions[cpu]);
			s->cpu->unwritten = s->unwritten;
		}
	}
	return 0;
}

/* The chunk where it was noticed: from there on the index is not asked for times */
static void check_index(const struct trace_dat *dat, struct verify_report *report)
{
	uint64_t wrong = dat->data ? trace_dat_data_times_wrong(dat->data) : 0;

	if (wrong)
		verify_report_fault(report, wrong,
				    "a chunk that begins at another time than the index has");
}

/* --- statistics */

static void compare_count(struct verify_report *report, uint64_t offset,
			  const struct verify_cpu *cpu, const char *text, const char *key,
			  uint64_t found)
{
	char name[300];
	uint64_t said;

	name_cpu(cpu->buffer, cpu->cpu, name, sizeof(name));
	if (trace_dat_note_number(text, key, &said) && said != found)
		verify_report_fault(report, offset,
				    "%s: CPUSTAT says \"%s: %" PRIu64 "\", the data has %" PRIu64,
				    name, key, said, found);
}

/* Which ring buffer the texts behind this one are of, if it says so: "\nBuffer: NAME\n\n" */
static bool find_buffer(char *text, const char **ret)
{
	char *end;

	if (strncmp(text, TRACE_DAT_BUFFER_STATS, strlen(TRACE_DAT_BUFFER_STATS)) != 0)
		return false;
	*ret = text + strlen(TRACE_DAT_BUFFER_STATS);
	end = strchr(*ret, '\n');
	if (end)
		*end = '\0';
	return true;
}

static struct verify_cpu *find_cpu(const struct verify_report *report, const char *buffer,
				   uint64_t cpu)
{
	for (size_t i = 0; i < report->n_cpus; i++)
		if (report->cpus[i].cpu == cpu && strcmp(report->cpus[i].buffer, buffer) == 0)
			return &report->cpus[i];
	return NULL;
}

/*
 * Has the region grown since the file was opened? A live file may be finished while it is read: its
 * last texts count more than what was there to be read then.
 */
static bool has_grown(const struct trace_dat *dat, const struct verify_report *report,
		      const struct verify_cpu *cpu)
{
	size_t i = (size_t)(cpu - report->cpus);
	const struct trace_dat_region *region =
		&dat->buffers[i / dat->n_cpus].regions[i % dat->n_cpus];
	uint8_t size[8];

	return dat->version == 6 &&
	       io_pread_all(dat->fd, size, sizeof(size), region->entry + 8) >= 0 &&
	       trace_dat_u64(dat, size) > region->size;
}

/*
 * When a disk is full at the end of a recording, the data says nothing of what would have followed:
 * events left in the ring buffer, those overwritten before, and those read but not written.
 */
static void count_at_end(struct verify_cpu *cpu, const char *text)
{
	uint64_t left, overrun, read;

	if (!trace_dat_note_number(text, "flyrec left in the ring buffer events", &left))
		return;
	cpu->lost_at_end = left;
	if (trace_dat_note_number(text, "overrun", &overrun) && overrun > cpu->lost_events)
		cpu->lost_at_end += overrun - cpu->lost_events;
	if (trace_dat_note_number(text, "read events", &read) && read > cpu->events)
		cpu->lost_at_end += read - cpu->events;
}

static void check_text(const struct trace_dat *dat, struct verify_report *report, uint64_t offset,
		       const char *buffer, const char *text)
{
	struct verify_cpu *cpu;
	uint64_t number;

	if (!strstr(text, "\nflyrec final: yes\n"))
		return;
	if (!trace_dat_note_number(text, "CPU", &number)) {
		verify_report_fault(report, offset, "CPUSTAT does not say of which CPU");
		return;
	}
	cpu = find_cpu(report, buffer, number);
	if (!cpu) {
		verify_report_fault(report, offset,
				    "CPUSTAT of cpu %" PRIu64 ", which the file lacks", number);
		return;
	}
	if (has_grown(dat, report, cpu))
		return;
	compare_count(report, offset, cpu, text, "flyrec subbufs", cpu->subbufs);
	compare_count(report, offset, cpu, text, "flyrec bytes", cpu->subbufs * dat->page_size);
	compare_count(report, offset, cpu, text, "flyrec lost events", cpu->lost_events);
	count_at_end(cpu, text);
}

/*
 * Compare each CPUSTAT text that says "flyrec final: yes" with report->cpus. One without that line
 * is trace-cmd's, or a file's that is still being written.
 */
static int check_cpustat(const struct trace_dat *dat, struct verify_report *report)
{
	_cleanup_free_ char *current = strdup(""); /* the ring buffer that texts are of */

	for (size_t i = 0; i < dat->n_options && current; i++) {
		const struct trace_dat_option_place *option = &dat->options[i];
		_cleanup_free_ char *text = NULL;
		const char *buffer;
		struct fault why;
		int r;

		if (option->id != TRACE_DAT_OPTION_CPUSTAT)
			continue;
		r = trace_dat_load(dat, &option->data, MAX_CPUSTAT, &text, &why);
		if (r == -ENOMEM)
			return r;
		if (r < 0) {
			verify_report_line(report, why.text);
		} else if (find_buffer(text, &buffer)) {
			free(current);
			current = strdup(buffer);
		} else {
			check_text(dat, report, option->data.offset, current, text);
		}
	}
	return current ? 0 : -ENOMEM;
}

/* "build-id HEX PATH" among the lines of a file's probes */
static int take_programs(const struct trace_dat *dat, struct verify_report *report)
{
	size_t from = 0;

	for (;;) {
		_cleanup_free_ char *lines = NULL;
		char *save = NULL;
		struct fault why;
		int r = trace_dat_next_note(dat, TRACE_DAT_PROBES, &from, &lines, &why);

		if (r <= 0)
			return r == -ENOMEM ? r : 0; /* check_cpustat() tells what cannot be read */
		for (char *l = strtok_r(lines, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
			struct verify_program p;
			char *path;

			if (strncmp(l, TRACE_DAT_BUILD_ID, strlen(TRACE_DAT_BUILD_ID)) != 0)
				continue;
			l += strlen(TRACE_DAT_BUILD_ID);
			path = strchr(l, ' ');
			if (!path)
				continue;
			*path++ = '\0';
			if (array_grow(&report->programs, report->n_programs, sizeof(p)) < 0)
				return -ENOMEM;
			p = (struct verify_program){strdup(l), strdup(path)};
			report->programs[report->n_programs++] = p;
			if (!p.build_id || !p.path)
				return -ENOMEM;
		}
	}
}

static int check_dat(const struct trace_dat *dat, struct verify_report *report)
{
	size_t n = dat->n_buffers * dat->n_cpus,
	       chunk_size = MAX(CHUNK, (uint64_t)dat->layout.size);
	_cleanup_free_ uint8_t *chunk = malloc(chunk_size);
	_cleanup_free_ bool *sound = calloc(n + 1, sizeof(*sound));
	_cleanup_free_ uint32_t *least = NULL;
	struct scan s = {dat, report, .chunk = chunk, .chunk_size = chunk_size};
	int r;

	report->version = dat->version;
	report->cpus = calloc(n + 1, sizeof(*report->cpus));
	if (!chunk || !sound || !report->cpus)
		return -ENOMEM;
	if (dat->header_page_subbuf != dat->page_size) { /* which to read the regions by? */
		verify_report_fault(report, dat->page_size_offset,
				    "the page size is %u, but header_page describes sub-buffers of "
				    "%u: the data cannot be read",
				    dat->page_size, dat->header_page_subbuf);
		return report->no_memory ? -ENOMEM : 0;
	}
	r = format_check(dat, verify_report_found, report, &least);
	if (r < 0)
		return r;
	s.least = least;
	r = check_regions(dat, report, sound);
	if (r < 0)
		return r;
	r = scan_buffers(&s, sound);
	if (r < 0)
		return r;
	check_index(dat, report);
	r = check_cpustat(dat, report);
	if (r >= 0)
		r = take_programs(dat, report);
	return r < 0 ? r : report->no_memory ? -ENOMEM : 0;
}

static int check_shift(const struct trace_dat *dat, struct verify_report *report)
{
	_cleanup_(time_shift_done) struct time_shift shift = {};
	struct fault why;
	int r = time_shift_read(dat, &shift, &why);

	if (r == -EBADMSG)
		verify_report_line(report, why.text);
	return r == -EBADMSG ? 0 : r;
}

int verify_dat(const struct trace_dat *dat, struct verify_report *report)
{
	int r;

	report->dat = dat;
	STRV_FOREACH (line, dat->damages.lines)
		verify_report_line(report, *line);
	report->more_errors += dat->damages.n - strv_length(dat->damages.lines);
	r = check_shift(dat, report);
	if (r >= 0)
		r = check_dat(dat, report);
	report->dat = NULL; /* it has places of its own */
	return r < 0 ? r : verify_own(dat, report);
}

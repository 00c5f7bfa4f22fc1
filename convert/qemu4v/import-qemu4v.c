/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/log.h"
#include "basic/parse.h"
#include "convert/convert.h"
#include "convert/qemu4v/qemu4v-event.h"

#define BLOCK	      (512U * 1024)
#define CLK_DEFAULT   1000 /* 1 us: the seconds that readers show are millions of clocks */
#define CLK_MAX	      NSEC_PER_SEC
#define PSEC_PER_NSEC 1000
#define FIRST_TS      1 /* a time of 0 in a ring buffer means: nothing was written */

struct job {
	struct import *import;
	uint64_t clk;	  /* nanoseconds */
	uint64_t line;	  /* the one being looked at, from 1 on */
	uint64_t time;	  /* of the last line that had one */
	uint32_t cpu;	  /* and a CPU: lines without one belong to it */
	unsigned n_names; /* CPUs that have got a name */
	uint64_t counts[_QEMU4V_KIND_MAX];
	uint64_t malformed, backwards;
	uint64_t first_malformed; /* line */
	const char *first_reason;
	uint64_t first_backwards; /* line */
};

/* --clk=10ns, or any time that parse_time() knows */
static int parse_clk(const char *text, uint64_t *ret)
{
	size_t n = strlen(text);
	uint64_t value;
	int r;

	if (n > 2 && strcmp(text + n - 2, "ns") == 0) {
		_cleanup_free_ char *number = strndup(text, n - 2);

		if (!number)
			return -ENOMEM;
		r = parse_u64(number, &value);
	} else {
		r = parse_time(text, &value);
		if (r >= 0 && value > UINT64_MAX / NSEC_PER_USEC)
			r = -ERANGE;
		value *= r >= 0 ? NSEC_PER_USEC : 0;
	}
	if (r < 0)
		return r;
	if (value == 0 || value > CLK_MAX)
		return -ERANGE;
	*ret = value;
	return 0;
}

/* A line's time as the ring buffer's; false: it does not fit */
static bool to_nsec(const struct job *job, const struct qemu4v_record *r, uint64_t *ret)
{
	uint64_t unit = job->clk, ts;

	if (r->form.scale == QEMU4V_PS) {
		*ret = r->time / PSEC_PER_NSEC;
		return true;
	}
	if (r->form.scale == QEMU4V_NS)
		unit = 1;
	else if (r->form.scale == QEMU4V_US)
		unit = NSEC_PER_USEC;
	if (__builtin_mul_overflow(r->time, unit, &ts) || ts > INT64_MAX)
		return false;
	*ret = ts;
	return true;
}

/* Names of the CPUs, as tasks: a reader shows them before the CPU's number */
static int name_cpus(struct job *job)
{
	for (; job->n_names <= job->cpu; job->n_names++) {
		char name[16];
		int r;

		(void)snprintf(name, sizeof(name), "cpu%u", job->n_names);
		r = event_file_task(job->import->file, (int)job->n_names + 1, name);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_event(struct job *job, const struct qemu4v_record *r, uint64_t ts)
{
	size_t size = qemu4v_event_size(r);
	void *at;
	int error = event_file_reserve(job->import->file, job->cpu, ts, size, &at);

	if (error >= 0)
		qemu4v_event_write(r, job->line, (int32_t)job->cpu + 1, at);
	return error;
}

/* A text of any length, in pieces */
static int add_text(struct job *job, const struct qemu4v_record *r, uint64_t ts)
{
	struct qemu4v_record piece = *r;
	uint32_t done = 0;
	int error;

	do {
		piece.text = r->text + done;
		piece.text_size = MIN(r->text_size - done, QEMU4V_TEXT_MAX);
		done += piece.text_size;
		piece.form.flags = r->form.flags;
		if (done < r->text_size)
			piece.form.flags |= QEMU4V_CONTINUED;
		error = add_event(job, &piece, ts);
	} while (error >= 0 && done < r->text_size);
	return error;
}

static int note_malformed(struct job *job, const char *reason, struct fault *why)
{
	if (job->import->options->strict)
		return fault_set(why, -EBADMSG, "%s: line %" PRIu64 ": %s", job->import->name,
				 job->line, reason);
	if (job->malformed++ == 0) {
		job->first_malformed = job->line;
		job->first_reason = reason;
	}
	return 0;
}

/* Time never runs backwards in a ring buffer. The event's own field keeps what the line said. */
static uint64_t clamp(struct job *job, uint64_t ts, bool has_time)
{
	uint64_t last = event_file_last_ts(job->import->file, job->cpu);

	ts = MAX(ts, (uint64_t)FIRST_TS);
	if (ts >= last)
		return ts;
	if (has_time && job->backwards++ == 0)
		job->first_backwards = job->line;
	return last;
}

static void make_text(struct qemu4v_record *r, const char *line, size_t size)
{
	r->kind = QEMU4V_TEXT;
	r->text = line;
	r->text_size = (uint32_t)(size - !!(r->form.flags & QEMU4V_CR));
}

static int add_line(struct job *job, const char *line, size_t size, bool ended, struct fault *why)
{
	struct qemu4v_record r;
	const char *reason;
	uint64_t ts = 0;
	int error = 0;

	if (qemu4v_parse(line, size, &r, &reason) < 0)
		error = note_malformed(job, reason, why);
	if (error >= 0 && r.has_time && !to_nsec(job, &r, &ts)) {
		make_text(&r, line, size);
		r.has_time = false;
		error = note_malformed(job, "the time is too far away", why);
	}
	if (error < 0)
		return error;
	if (r.form.cpu != QEMU4V_CPU_NONE)
		job->cpu = r.cpu;
	if (r.has_time)
		job->time = ts;
	r.form.flags |= ended ? 0 : QEMU4V_NO_NEWLINE;
	if (job->cpu >= job->n_names)
		error = name_cpus(job);
	ts = clamp(job, job->time, r.has_time);
	if (r.kind != QEMU4V_TEXT && qemu4v_event_size(&r) == 0)
		make_text(&r, line, size); /* nothing is wrong with it, it is just very long */
	job->counts[r.kind]++;
	if (error >= 0)
		error = r.kind == QEMU4V_TEXT ? add_text(job, &r, ts) : add_event(job, &r, ts);
	return error < 0 ? fault_errno(why, error, "%s: cannot write", job->import->out.path) : 0;
}

static int refuse_nul(struct job *job, const char *block, const char *nul, struct fault *why)
{
	for (const char *p = block; p < nul; p++)
		job->line += *p == '\n';
	return fault_set(why, -EBADMSG, "%s: line %" PRIu64 ": a NUL byte: this is no text",
			 job->import->name, job->line + 1);
}

static int refuse_length(struct job *job, struct fault *why)
{
	return fault_set(why, -EMSGSIZE, "%s: line %" PRIu64 ": is longer than %u bytes",
			 job->import->name, job->line + 1, QEMU4V_MAX_LINE);
}

/* All whole lines of a block. @ret: where the last, unfinished one begins. */
static int add_lines(struct job *job, const char *block, const char *end, const char **ret,
		     struct fault *why)
{
	const char *line = block, *newline;
	int r;

	while (line < end) {
		newline = memchr(line, '\n', (size_t)(end - line));
		if ((newline ? newline : end) - line > (ptrdiff_t)QEMU4V_MAX_LINE)
			return refuse_length(job, why);
		if (!newline)
			break;
		job->line++;
		r = add_line(job, line, (size_t)(newline - line), true, why);
		if (r < 0)
			return r;
		line = newline + 1;
	}
	*ret = line;
	return 0;
}

static int read_all(struct job *job, struct fault *why)
{
	_cleanup_free_ char *block = malloc(BLOCK);
	const char *rest = NULL;
	size_t kept = 0;
	ssize_t n;
	int r;

	if (!block)
		return fault_errno(why, -ENOMEM, "%s: cannot read", job->import->name);
	while ((n = import_read(job->import, block + kept, BLOCK - kept, why)) > 0) {
		const char *nul = memchr(block + kept, '\0', (size_t)n);

		if (nul)
			return refuse_nul(job, block, nul, why);
		r = add_lines(job, block, block + kept + n, &rest, why);
		if (r < 0)
			return r;
		kept = (size_t)(block + kept + n - rest);
		memmove(block, rest, kept);
	}
	if (n < 0 || kept == 0)
		return (int)n;
	job->line++;
	return add_line(job, block, kept, false, why);
}

static int add_note(const struct job *job)
{
	char note[512];

	(void)snprintf(note, sizeof(note),
		       "flyrec import: qemu4v\nclk: %" PRIu64 " ns\nlines: %" PRIu64
		       "\ninsn: %" PRIu64 "\nmem: %" PRIu64 "\nreg: %" PRIu64 "\ntext: %" PRIu64
		       "\nmalformed: %" PRIu64 "\ntime ran backwards: %" PRIu64 "\n",
		       job->clk, job->line, job->counts[QEMU4V_INSN], job->counts[QEMU4V_MEM],
		       job->counts[QEMU4V_REG], job->counts[QEMU4V_TEXT], job->malformed,
		       job->backwards);
	return event_file_note(job->import->file, note);
}

static void report(const struct job *job)
{
	const char *name = job->import->name;

	if (job->malformed)
		log_warning("%s: %" PRIu64 " of %" PRIu64 " lines malformed, kept as text; the "
			    "first is line %" PRIu64 ": %s",
			    name, job->malformed, job->line, job->first_malformed,
			    job->first_reason);
	if (job->backwards)
		log_warning("%s: the time runs backwards in %" PRIu64 " of %" PRIu64
			    " lines, which "
			    "get the time of the one before on their CPU; the first is line "
			    "%" PRIu64,
			    name, job->backwards, job->line, job->first_backwards);
}

int import_qemu4v(struct import *import, struct fault *why)
{
	struct sections_format formats[_QEMU4V_KIND_MAX];
	const struct event_file_params params = {
		.formats = formats,
		.n_formats = ARRAY_SIZE(formats),
		.clock = "[local]\n",
		.uname = "qemu4v",
	};
	struct job job = {.import = import, .clk = CLK_DEFAULT};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		formats[i] = (struct sections_format){QEMU4V_SYSTEM, qemu4v_event_formats[i]};
	if (import->options->clk)
		r = parse_clk(import->options->clk, &job.clk);
	if (r < 0)
		return fault_set(why, r, "--clk=: not understood, or not from 1ns to 1s: \"%s\"",
				 import->options->clk);
	r = import_begin(import, &params, why);
	if (r >= 0)
		r = read_all(&job, why);
	if (r >= 0 && job.line > 0 && job.malformed == job.line)
		r = fault_set(why, -EBADMSG,
			      "%s: not a trace of QEMU4V or Tarmac: none of its %" PRIu64
			      " lines is one; the first: %s",
			      import->name, job.line, job.first_reason);
	if (r >= 0 && add_note(&job) < 0)
		r = fault_errno(why, -ENOMEM, "%s", import->out.path);
	if (r >= 0)
		r = import_finish(import, NULL, why);
	if (r >= 0)
		report(&job);
	return r;
}

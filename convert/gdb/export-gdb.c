/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "convert/gdb/export-gdb.h"
#include "convert/gdb/gdb-command.h"
#include "convert/gdb/gdb-plan.h"
#include "convert/gdb/gdb-tfile.h"
#include "decode/event-stream.h"

#define OUTPUT_SIZE  MIB
#define MAX_PROGRAMS 64U
#define NOTES_MAX    400U

/* One kind of event at one address */
struct tracepoint {
	int32_t format;
	uint64_t address;
	uint64_t frames, bytes;
};

struct export_gdb {
	struct export_gdb_job *job;
	struct gdb_planner *planner;
	struct gdb_plan **plans; /* by index of the format */
	struct tracepoint *tracepoints;
	size_t n_tracepoints, last;
	uint64_t frames, bytes, first_ts, last_ts;
	bool more; /* events than max_frames lets through */
	uint8_t *output;
	size_t used, room;
};

static struct gdb_plan *plan_of(const struct export_gdb *x, int32_t format)
{
	return x->plans[format];
}

static int make_plan(struct export_gdb *x, int32_t format, struct fault *why)
{
	const struct export_gdb_job *job = x->job;
	char text[256];
	int r;

	if (x->plans[format])
		return 0;
	r = gdb_plan_new(x->planner, (size_t)format, &x->plans[format]);
	if (r == -EOPNOTSUPP) {
		(void)snprintf(text, sizeof(text), "%.100s: format not understood, no fields of it",
			       decoder_name(job->decoder, (size_t)format));
		if (job->on_notice)
			job->on_notice(text);
		return 0;
	}
	return r < 0 ? fault_errno(why, r, "%s: cannot export", job->dat->path) : 0;
}

/* Number of an event's tracepoint, less one; @add: if it is new */
static int find_tracepoint(struct export_gdb *x, int32_t format, uint64_t address, bool add,
			   size_t *ret, struct fault *why)
{
	struct tracepoint *more;

	for (size_t k = 0; k < x->n_tracepoints; k++) {
		const size_t i = (x->last + k) % x->n_tracepoints;

		if (x->tracepoints[i].format == format && x->tracepoints[i].address == address) {
			*ret = x->last = i;
			return 0;
		}
	}
	if (!add)
		return fault_set(why, -EBADMSG, "%s: changed while it was read", x->job->dat->path);
	if (x->n_tracepoints == GDB_TFILE_MAX_NUMBER)
		return fault_set(why, -E2BIG,
				 "%s: events at more than %d places, which gdb cannot number: "
				 "export fewer with --event= or --pid=",
				 x->job->dat->path, GDB_TFILE_MAX_NUMBER);
	more = reallocarray(x->tracepoints, x->n_tracepoints + 1, sizeof(*more));
	if (!more)
		return fault_errno(why, -ENOMEM, "%s: cannot export", x->job->dat->path);
	x->tracepoints = more;
	more[x->n_tracepoints] = (struct tracepoint){.format = format, .address = address};
	*ret = x->last = x->n_tracepoints++;
	return 0;
}

/* --- the two passes over the events */

typedef int take_event(struct export_gdb *x, const struct decode_event *event,
		       struct gdb_plan *plan, size_t tracepoint, struct fault *why);

static int count_event(struct export_gdb *x, const struct decode_event *event,
		       struct gdb_plan *plan, size_t tracepoint, struct fault *why)
{
	struct tracepoint *t = &x->tracepoints[tracepoint];
	const uint64_t size = gdb_plan_frame_size(plan, event);

	(void)why;
	if (x->frames == 0)
		x->first_ts = event->ts;
	x->last_ts = event->ts;
	x->frames++;
	x->bytes += size;
	t->frames++;
	t->bytes += size;
	return 0;
}

static int flush(struct export_gdb *x, struct fault *why)
{
	int r = out_file_write(x->job->fd, x->output, x->used, why);

	x->used = 0;
	return r;
}

static int put_event(struct export_gdb *x, const struct decode_event *event, struct gdb_plan *plan,
		     size_t tracepoint, struct fault *why)
{
	const size_t size = gdb_plan_frame_size(plan, event);
	int r;

	if (size > x->room - x->used) {
		r = flush(x, why);
		if (r != 0)
			return r;
	}
	if (size > x->room) {
		uint8_t *more = realloc(x->output, size);

		if (!more)
			return fault_errno(why, -ENOMEM, "%s: cannot export", x->job->dat->path);
		x->output = more;
		x->room = size;
	}
	gdb_plan_put(plan, event, (uint32_t)tracepoint + 1, size, x->output + x->used);
	x->used += size;
	return 0;
}

static int each_event(struct export_gdb *x, struct event_stream *stream, bool first,
		      take_event *take, struct fault *why)
{
	const struct export_gdb_job *job = x->job;
	struct decode_event event;
	uint64_t wanted = 0;
	int r;

	while ((r = event_next(stream, &event, why)) > 0) {
		const int32_t format = decoder_find(job->decoder, event.id);
		struct gdb_plan *plan;
		size_t tracepoint = 0;

		if (job->max_frames && wanted == job->max_frames) {
			x->more = true;
			return 0;
		}
		wanted++;
		if (format < 0)
			continue; /* of no event that the file knows: not even its fields' names */
		r = make_plan(x, format, why);
		if (r < 0)
			return r;
		plan = plan_of(x, format);
		r = find_tracepoint(x, format, gdb_plan_address(plan, &event), first, &tracepoint,
				    why);
		if (r >= 0)
			r = take(x, &event, plan, tracepoint, why);
		if (r != 0)
			return r;
	}
	return r;
}

static int pass(struct export_gdb *x, bool first, take_event *take, struct fault *why)
{
	struct export_gdb_job *job = x->job;
	_cleanup_(event_stream_freep) struct event_stream *stream = NULL;
	const struct event_stream_config config = {
		.filter = job->filter,
		.no_tasks = first,
		.on_fault = first ? job->on_fault : NULL, /* what is broken is told of once */
	};
	int r;

	r = event_stream_new(job->decoder, &config, &stream, why);
	if (r < 0)
		return r;
	r = each_event(x, stream, first, take, why);
	if (first)
		job->n_faults += event_stream_faults(stream);
	if (r < 0 && why->error == 0)
		return fault_errno(why, r, "%s: cannot export", job->dat->path);
	return r;
}

/* --- the head of the file */

static const char *system_of(const struct export_gdb *x, const struct tracepoint *t)
{
	const struct trace_dat *dat = x->job->dat;

	return dat->systems[dat->formats[t->format].system];
}

static void put_status(const struct export_gdb *x, FILE *out)
{
	const struct decoder *decoder = x->job->decoder;
	const uint64_t unit = decoder_in_usecs(decoder) ? NSEC_PER_USEC : 1;
	char notes[NOTES_MAX + 160] = "";
	size_t n = 0;

	for (size_t i = 0; i < x->n_tracepoints && n < NOTES_MAX; i++) {
		const struct tracepoint *t = &x->tracepoints[i];

		n += (size_t)snprintf(notes + n, sizeof(notes) - n, "%s%zu %.60s:%.60s",
				      i ? ", " : "", i + 1, system_of(x, t),
				      decoder_name(decoder, (size_t)t->format));
		n = MIN(n, sizeof(notes) - 1);
	}
	n = MIN(n, (size_t)NOTES_MAX);
	(void)fprintf(out,
		      "status 0;tstop::0;tframes:%" PRIx64 ";tcreated:%" PRIx64
		      ";tfree:0;tsize:%" PRIx64 ";starttime:%" PRIx64 ";stoptime:%" PRIx64
		      ";notes:",
		      x->frames, x->frames, x->bytes, x->first_ts / unit, x->last_ts / unit);
	gdb_tfile_put_hex(out, notes, n);
	(void)fputs(";username:\n", out);
}

struct command_line {
	FILE *out;
	uint32_t number;
	uint64_t address;
};

static void put_collect(void *userdata, const char *command)
{
	const struct command_line *line = userdata;

	gdb_tfile_put_source(line->out, line->number, line->address, "cmd", command);
}

static void put_tracepoint(const struct export_gdb *x, size_t i, FILE *out)
{
	const struct tracepoint *t = &x->tracepoints[i];
	const uint32_t number = (uint32_t)i + 1;
	struct command_line line = {out, number, t->address};
	char at[32];

	(void)fprintf(out, "tp T%" PRIx32 ":%" PRIx64 ":E:0:0\n", number, t->address);
	(void)snprintf(at, sizeof(at), "*0x%" PRIx64, t->address);
	gdb_tfile_put_source(out, number, t->address, "at", at);
	gdb_plan_collects(plan_of(x, t->format), put_collect, &line);
	(void)fprintf(out, "tp V%" PRIx32 ":%" PRIx64 ":%" PRIx64 ":%" PRIx64 "\n", number,
		      t->address, t->frames, t->bytes);
}

static void put_head(const struct export_gdb *x, FILE *out)
{
	const struct gdb_variables *variables = &x->planner->variables;
	char xml[512];

	(void)fwrite(GDB_TFILE_MAGIC, 1, GDB_TFILE_MAGIC_SIZE, out);
	(void)fprintf(out, "R %" PRIx32 "\n", gdb_general_size(x->planner->arch));
	put_status(x, out);
	for (size_t i = 0; i < variables->n; i++) {
		(void)fprintf(out, "tsv %zx:0:0:", i + 1);
		gdb_tfile_put_hex(out, variables->names[i], strlen(variables->names[i]));
		(void)putc('\n', out);
	}
	/* gdb numbers them from the last to the first */
	for (size_t i = x->n_tracepoints; i-- > 0;)
		put_tracepoint(x, i, out);
	(void)snprintf(xml, sizeof(xml),
		       "<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n"
		       "<target version=\"1.0\">\n%s<osabi>GNU/Linux</osabi>\n</target>\n",
		       gdb_arch_tdesc(x->planner->arch));
	gdb_tfile_put_tdesc(out, xml);
	(void)putc('\n', out);
}

static int write_head(struct export_gdb *x, struct fault *why)
{
	_cleanup_free_ char *head = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&head, &size);

	if (!out)
		return fault_errno(why, -ENOMEM, "%s: cannot export", x->job->dat->path);
	put_head(x, out);
	if (fclose(out) != 0)
		return fault_errno(why, -ENOMEM, "%s: cannot export", x->job->dat->path);
	return out_file_write(x->job->fd, head, size, why);
}

/* --- the command file */

/* Where programs were; the first place counts for one that ran at several */
static size_t find_programs(const struct export_gdb *x, struct gdb_program *programs,
			    bool *ret_several)
{
	size_t n = 0;

	*ret_several = false;
	for (size_t i = 0; i < x->n_tracepoints; i++) {
		const struct tracepoint *t = &x->tracepoints[i];
		const struct gdb_probe *probe = gdb_plan_probe(plan_of(x, t->format));
		size_t k;

		if (!probe || !probe->path)
			continue;
		for (k = 0; k < n && strcmp(programs[k].path, probe->path) != 0; k++)
			;
		if (k < n)
			/* equal distances: the same base, if they are in the same segment */
			*ret_several |= programs[k].address - programs[k].offset !=
					t->address - probe->offset;
		else if (n < MAX_PROGRAMS)
			programs[n++] =
				(struct gdb_program){probe->path, probe->offset, t->address};
	}
	return n;
}

static int write_command(const struct export_gdb *x, struct fault *why)
{
	const struct export_gdb_job *job = x->job;
	struct gdb_program programs[MAX_PROGRAMS];
	bool several;
	size_t n = find_programs(x, programs, &several);

	if (!job->command)
		return 0;
	if (several && job->on_notice)
		job->on_notice("the program ran at several addresses: the command file has the "
			       "first, --pid= selects one");
	gdb_command_write(job->command, job->tfile, programs, n);
	if (fflush(job->command) != 0 || ferror(job->command))
		return fault_errno(why, -EIO, "cannot write the command file");
	return 0;
}

static void done(struct export_gdb *x)
{
	for (size_t i = 0; x->plans && i < x->job->dat->n_formats; i++)
		gdb_plan_free(x->plans[i]);
	free(x->plans);
	gdb_planner_free(x->planner);
	free(x->tracepoints);
	free(x->output);
}

static void tell_more(const struct export_gdb *x)
{
	char text[160];

	(void)snprintf(text, sizeof(text),
		       "only the first %" PRIu64 " events were written, see --max-frames=",
		       x->job->max_frames);
	if (x->more && x->job->on_notice)
		x->job->on_notice(text);
}

int export_gdb_run(struct export_gdb_job *job, struct fault *why)
{
	struct export_gdb x = {.job = job, .room = OUTPUT_SIZE};
	static const uint8_t end[4];
	int r;

	*why = (struct fault){};
	x.plans = calloc(MAX(job->dat->n_formats, (size_t)1), sizeof(struct gdb_plan *));
	x.output = malloc(x.room);
	r = x.plans && x.output ? gdb_planner_new(job->decoder, &x.planner, why) : -ENOMEM;
	if (r == 0)
		r = pass(&x, true, count_event, why);
	if (r == 0)
		r = write_head(&x, why);
	if (r == 0)
		r = pass(&x, false, put_event, why);
	if (r == 0)
		r = flush(&x, why);
	if (r == 0)
		r = out_file_write(job->fd, end, sizeof(end), why);
	if (r == 0)
		r = write_command(&x, why);
	if (r == 0)
		tell_more(&x);
	done(&x);
	if (r < 0 && why->error == 0)
		return fault_errno(why, r, "%s: cannot export", job->dat->path);
	return r;
}

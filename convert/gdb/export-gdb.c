/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "convert/gdb/export-gdb.h"
#include "convert/gdb/gdb-command.h"
#include "convert/gdb/gdb-plan.h"
#include "convert/gdb/gdb-tfile.h"

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
	uint64_t wanted; /* events in this pass */
	bool more;	 /* than max_frames lets through */
};

static int make_plan(struct export_gdb *x, int32_t format)
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
		export_gdb_notice(job, text);
		return 0;
	}
	return r;
}

/* Number of an event's tracepoint, less one; @add: if it is new */
static int find_tracepoint(struct export_gdb *x, int32_t format, uint64_t address, bool add,
			   size_t *ret, struct fault *why)
{
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
	if (array_grow(&x->tracepoints, x->n_tracepoints, sizeof(*x->tracepoints)) < 0)
		return -ENOMEM;
	x->tracepoints[x->n_tracepoints] =
		(struct tracepoint){.format = format, .address = address};
	*ret = x->last = x->n_tracepoints++;
	return 0;
}

/* --- the passes over the events */

static void count_event(struct export_gdb *x, const struct decode_event *event,
			struct tracepoint *t, size_t size)
{
	if (x->frames == 0)
		x->first_ts = event->ts;
	x->last_ts = event->ts;
	x->frames++;
	x->bytes += size;
	t->frames++;
	t->bytes += size;
}

static int take(void *userdata, const struct decode_event *event, struct text *out,
		struct fault *why)
{
	struct export_gdb *x = userdata;
	const struct export_gdb_job *job = x->job;
	const int32_t format = decoder_find(job->decoder, event->id);
	const struct gdb_plan *plan;
	size_t tracepoint = 0, size;
	void *frame;
	int r;

	if (job->max_frames && x->wanted == job->max_frames) {
		x->more = true;
		return EXPORT_GDB_ENOUGH;
	}
	x->wanted++;
	if (format < 0)
		return 0; /* of no event that the file knows: not even its fields' names */
	r = make_plan(x, format);
	if (r < 0)
		return r;
	plan = x->plans[format];
	r = find_tracepoint(x, format, gdb_plan_address(plan, event), !out, &tracepoint, why);
	if (r < 0)
		return r;
	size = gdb_plan_frame_size(plan, event);
	if (!out) {
		count_event(x, event, &x->tracepoints[tracepoint], size);
		return 0;
	}
	frame = text_reserve(out, size);
	if (!frame)
		return -ENOMEM;
	gdb_plan_put(plan, event, (uint32_t)tracepoint + 1, size, frame);
	out->size += size;
	return 0;
}

static int end_pass(void *userdata, struct text *out)
{
	((struct export_gdb *)userdata)->wanted = 0;
	return 0;
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
	const uint64_t unit = decoder_facts(decoder)->in_usecs ? NSEC_PER_USEC : 1;
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

static void put_tracepoint(const struct export_gdb *x, size_t i, FILE *out)
{
	const struct tracepoint *t = &x->tracepoints[i];
	const uint32_t number = (uint32_t)i + 1;
	char at[32];

	(void)fprintf(out, "tp T%" PRIx32 ":%" PRIx64 ":E:0:0\n", number, t->address);
	(void)snprintf(at, sizeof(at), "*0x%" PRIx64, t->address);
	gdb_tfile_put_source(out, number, t->address, "at", at);
	gdb_plan_collects(x->plans[t->format], out, number, t->address);
	(void)fprintf(out, "tp V%" PRIx32 ":%" PRIx64 ":%" PRIx64 ":%" PRIx64 "\n", number,
		      t->address, t->frames, t->bytes);
}

static void put_head(void *userdata, FILE *out)
{
	const struct export_gdb *x = userdata;
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

/* --- the command file */

/* Where programs were; the first place counts for one that ran at several */
static size_t find_programs(const struct export_gdb *x, struct gdb_program *programs,
			    bool *ret_several)
{
	size_t n = 0;

	*ret_several = false;
	for (size_t i = 0; i < x->n_tracepoints; i++) {
		const struct tracepoint *t = &x->tracepoints[i];
		const struct gdb_probe *probe = gdb_plan_probe(x->plans[t->format]);
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

static void put_command(void *userdata, FILE *out)
{
	const struct export_gdb *x = userdata;
	struct gdb_program programs[MAX_PROGRAMS];
	bool several;
	size_t n = find_programs(x, programs, &several);

	if (several)
		export_gdb_notice(x->job,
				  "the program ran at several addresses: the command file has the "
				  "first, --pid= selects one");
	gdb_command_write(out, x->job->tfile, programs, n);
}

static void done(struct export_gdb *x)
{
	for (size_t i = 0; x->plans && i < x->job->dat->n_formats; i++)
		gdb_plan_free(x->plans[i]);
	free(x->plans);
	gdb_planner_free(x->planner);
	free(x->tracepoints);
}

static void tell_more(const struct export_gdb *x)
{
	char text[160];

	(void)snprintf(text, sizeof(text),
		       "only the first %" PRIu64 " events were written, see --max-frames=",
		       x->job->max_frames);
	if (x->more)
		export_gdb_notice(x->job, text);
}

int export_gdb_run(struct export_gdb_job *job, struct fault *why)
{
	static const struct export_gdb_maker maker = {
		.take = take,
		.end_pass = end_pass,
		.put_head = put_head,
		.put_command = put_command,
	};
	struct export_gdb x = {.job = job};
	int r;

	*why = (struct fault){};
	x.plans = calloc(MAX(job->dat->n_formats, (size_t)1), sizeof(struct gdb_plan *));
	r = x.plans ? gdb_planner_new(job->decoder, &x.planner, why) : -ENOMEM;
	if (r == 0)
		r = export_gdb_write(job, &maker, &x, why);
	if (r == 0)
		tell_more(&x);
	done(&x);
	return export_gdb_result(job, r, why);
}

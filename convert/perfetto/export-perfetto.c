/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export --format=perfetto: events as packets of a Perfetto trace. The main thread reads them in
 * the order of time and sees to what depends on those before: descriptors, whose tasks they are,
 * losses so far. Workers make bundles of them (perfetto-bundle.h). Memory is bounded by the number
 * of batches, tasks and CPUs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "basic/array-room.h"
#include "basic/log.h"
#include "basic/pid-map.h"
#include "basic/strv.h"
#include "convert/convert.h"
#include "convert/perfetto/perfetto-bundle.h"
#include "convert/perfetto/perfetto-notes.h"
#include "convert/perfetto/perfetto-proto.h"
#include "convert/perfetto/perfetto-wire.h"
#include "decode/event-batches.h"

#define BATCH_EVENTS 8192U
#define PIDS	     (UINT32_C(1) << 22) /* of a host: the kernel has no larger ones */

/* What Perfetto was told of a task, and of the process that it is the first thread of */
struct task {
	const struct task_name *name;
	const struct task_who *who, *process;
};

/* Of a CPU of a ring buffer */
struct cpu {
	const struct task_name *name; /* of its last event: nothing new in most */
	const struct task_who *who;
	int32_t pid;
	bool lost; /* it has a track for its losses, */
	uint64_t n_lost;
};

struct job {
	const struct export *export;
	struct perfetto_notes notes;
	struct perfetto_events events;
	struct pid_map pids;
	struct task *tasks; /* by their indexes */
	size_t room;
	struct cpu *cpus;
	struct perfetto_kept *kept; /* of a part of a file, else NULL */
	size_t n_before;	    /* of kept->typed */
};

/* --- tasks */

/* NULL without memory; none moves until the next call but one */
static struct task *get_task(struct job *job, int32_t pid)
{
	size_t index;

	if (pid_map_add(&job->pids, pid, &index) < 0 ||
	    array_room(&job->tasks, &job->room, index, sizeof(*job->tasks)) < 0)
		return NULL;
	return &job->tasks[index];
}

/* "NAME (UNIT)", "NAME (UNIT, CONTAINER)", "HOST:NAME (UNIT)" */
static void put_process(const struct job *job, const struct task_who *who, struct text *out)
{
	const struct export_part *part = job->export->part;
	const struct cgroup_names *names = who->place ? &who->place->names : NULL;
	size_t process = wire_begin(out, TREE_PROCESS);
	char name[512];

	wire_number(out, PROCESS_PID, perfetto_pid(&job->events, who->tgid));
	(void)snprintf(name, sizeof(name), "%.64s%s%s%s%s%s%.12s%s", part ? part->host : "",
		       part ? ":" : "", who->process[0] ? who->process : "?",
		       names && (names->unit || names->container) ? " (" : "",
		       names && names->unit ? names->unit : "",
		       names && names->unit && names->container ? ", " : "",
		       names && names->container ? names->container : "",
		       names && (names->unit || names->container) ? ")" : "");
	wire_string(out, PROCESS_CMDLINE, name);
	wire_end(out, process);
}

static void put_thread(const struct job *job, const struct decode_event *event, struct text *out)
{
	size_t thread = wire_begin(out, TREE_THREAD);

	wire_number(out, THREAD_TID, perfetto_pid(&job->events, event->pid));
	if (event->task->known)
		wire_text(out, THREAD_NAME, event->task->text, event->task->size);
	wire_number(out, THREAD_TGID, perfetto_pid(&job->events, event->who->tgid));
	wire_end(out, thread);
}

/* Of a task that is new, or another one by now */
static int tell_task(struct job *job, const struct decode_event *event, struct text *out)
{
	const struct task_who *who = event->who;
	struct task *task, *process;
	size_t packet, tree;

	if (!who || who->tgid <= 0)
		return 0;
	process = get_task(job, who->tgid);
	task = process ? get_task(job, event->pid) : NULL;
	if (!task)
		return -ENOMEM;
	if (task->name == event->task && task->who == who)
		return 0;
	process = get_task(job, who->tgid); /* there is one */
	packet = wire_begin(out, PERFETTO_PACKET);
	wire_number(out, PACKET_TIMESTAMP, event->ts + job->events.to_boot);
	tree = wire_begin(out, PACKET_PROCESS_TREE);
	if (process->process != who)
		put_process(job, who, out);
	put_thread(job, event, out);
	wire_end(out, tree);
	wire_number(out, PACKET_SEQUENCE, PERFETTO_SEQUENCE);
	wire_end(out, packet);
	process->process = who;
	task->name = event->task;
	task->who = who;
	return 0;
}

/* --- events */

/* Of this host, in an earlier part */
static bool is_typed_before(const struct job *job, const char *name)
{
	for (size_t i = 0; i < job->n_before; i++)
		if (strcmp(job->kept->typed[i], name) == 0)
			return true;
	return false;
}

static int meet_kind(struct job *job, struct perfetto_choice *choice,
		     const struct decode_event *event)
{
	int32_t format = decoder_find(job->events.decoder, event->id);
	int r = 0;

	choice->met = true;
	if (format >= 0)
		r = perfetto_plan_typed(job->events.decoder, (size_t)format, &choice->typed);
	if (choice->typed && job->kept && is_typed_before(job, choice->typed->name))
		choice->typed = perfetto_plan_free(choice->typed);
	if (choice->typed)
		choice->buffer = event->buffer + 1;
	if (choice->typed && job->kept && job->kept->n_typed < PERFETTO_TYPED_MAX)
		job->kept->typed[job->kept->n_typed++] = choice->typed->name;
	return r;
}

/* Before the first event that needs it */
static int describe(struct job *job, struct perfetto_choice *choice,
		    const struct decode_event *event, struct text *out)
{
	int r = perfetto_plan_any(job->events.decoder, decoder_find(job->events.decoder, event->id),
				  event->id, job->events.described, &choice->any);

	if (r >= 0 && choice->any->kind == PERFETTO_DESCRIBED)
		perfetto_plan_descriptor(choice->any, event->cpu + job->events.cpus, out);
	return r;
}

/* How many were lost on the CPU until then; of losses of unknown size at least one */
static void count_lost(const struct job *job, struct cpu *cpu, const struct decode_event *event,
		       struct text *out)
{
	const struct trace_dat *dat = job->export->dat;
	const char *buffer = dat->buffers[event->buffer].name;
	const struct export_part *part = job->export->part;
	uint64_t uuid = job->notes.tracks + PERFETTO_LOSSES +
			event->buffer * (uint64_t)dat->n_cpus + event->cpu;
	char name[256];

	if (!cpu->lost) {
		(void)snprintf(name, sizeof(name), "lost events, CPU %" PRIu32 "%s%.64s%s%.64s",
			       event->cpu, *buffer ? ", " : "", buffer, part ? ", " : "",
			       part ? part->host : "");
		perfetto_track(out, uuid, job->notes.tracks + PERFETTO_TRACK, name, true);
	}
	cpu->lost = true;
	cpu->n_lost += event->missed > 0 ? (uint64_t)event->missed : 1;
	perfetto_counter(out, uuid, event->ts + job->events.to_boot, cpu->n_lost);
}

static int on_event(void *userdata, struct decode_event *event, struct text *out)
{
	struct job *job = userdata;
	struct perfetto_choice *choice = perfetto_choice(&job->events, event->id);
	struct cpu *cpu = &job->cpus[event->buffer * (size_t)job->export->dat->n_cpus + event->cpu];
	int r = 0;

	if (!choice->met)
		r = meet_kind(job, choice, event);
	if (r >= 0 && !choice->any && !perfetto_is_typed(choice, event))
		r = describe(job, choice, event, out);
	if (r >= 0 &&
	    (cpu->pid != event->pid || cpu->who != event->who || cpu->name != event->task)) {
		cpu->pid = event->pid;
		cpu->who = event->who;
		cpu->name = event->task;
		r = tell_task(job, event, out);
	}
	if (event->missed != 0)
		count_lost(job, cpu, event, out);
	return r;
}

/* --- all */

static void on_fault(const char *text)
{
	log_error("%s", text);
}

static int begin(void *userdata, struct text *out, struct fault *why)
{
	struct job *job = userdata;
	int r = perfetto_notes_begin(&job->notes, out, why);

	job->events.to_boot = job->notes.to_boot;
	if (job->kept)
		job->kept->to_boot = job->notes.to_boot;
	if (job->kept)
		job->export->part->kept = job->kept;
	return r;
}

static int maker_new(void *userdata, void **ret)
{
	const struct job *job = userdata;
	struct perfetto_bundles *bundles;
	int r = perfetto_bundles_new(&job->events, &bundles);

	if (r >= 0)
		*ret = bundles;
	return r;
}

static void maker_free(void *maker)
{
	perfetto_bundles_free(maker);
}

static int make(void *maker, const struct decode_event *events, size_t n,
		const struct event_turn *turn, struct text *out)
{
	(void)turn;
	return perfetto_bundles_make(maker, events, n, out);
}

/* Pids, CPUs and tracks of its own for each host */
static int take_part(struct job *job, const struct export_part *part)
{
	const uint32_t host = part->index;

	job->kept = part->kept ? part->kept : calloc(1, sizeof(*job->kept));
	if (!job->kept)
		return -ENOMEM;
	if (job->kept->host != host)
		job->kept->n_typed = 0;
	job->kept->host = host;
	job->n_before = job->kept->n_typed;
	job->events.pids = host * PIDS;
	job->events.cpus = job->notes.cpus = host * part->n_cpus;
	job->events.described = host * SUBBUF_EVENT_IDS;
	job->notes.tracks = host * PERFETTO_HOST;
	return 0;
}

static int job_init(struct job *job, const struct export *export)
{
	const struct trace_dat *dat = export->dat;

	*job = (struct job){
		.export = export,
		.notes = {.export = export, .on_fault = on_fault},
		.events.decoder = export->decoder,
	};
	job->events.choices = calloc(dat->n_formats + 1, sizeof(*job->events.choices));
	job->cpus =
		calloc(MAX(dat->n_buffers * (size_t)dat->n_cpus, (size_t)1), sizeof(*job->cpus));
	if (!job->events.choices || !job->cpus)
		return -ENOMEM;
	return export->part ? take_part(job, export->part) : 0;
}

static void job_done(struct job *job)
{
	for (size_t i = 0; job->events.choices && i <= job->export->dat->n_formats; i++) {
		perfetto_plan_free(job->events.choices[i].typed);
		perfetto_plan_free(job->events.choices[i].any);
	}
	if (job->kept && !job->export->part->kept)
		free(job->kept);
	free(job->events.choices);
	free(job->tasks);
	pid_map_done(&job->pids);
	free(job->cpus);
}

static int run(struct job *job, int fd, size_t *ret_faults, struct fault *why)
{
	struct event_batches batches = {
		.stream.on_fault = on_fault,
		.batch = BATCH_EVENTS,
		.fd = fd,
		.userdata = job,
		.begin = begin,
		.on_event = on_event,
		.maker_new = maker_new,
		.maker_free = maker_free,
		.make = make,
	};
	int r = export_events(job->export, &batches, why);

	*ret_faults = batches.n_faults + job->notes.n_faults;
	return r;
}

enum convert_status export_perfetto(const struct export *export)
{
	enum convert_status status = CONVERT_FAILED;
	struct out_file output;
	struct fault why;
	size_t n_faults = 0;
	struct job job;
	int r = job_init(&job, export);

	if (r < 0) {
		(void)log_error_errno(r, "%s: cannot export: %m", export->dat->path);
	} else if (export_output_open(export, &output) >= 0) {
		r = run(&job, output.fd, &n_faults, &why);
		if (r < 0)
			log_error("%s", why.text);
		status = export_output_close(export, &output, r);
		if (n_faults && r != OUT_FILE_E_PIPE)
			status = CONVERT_FAILED;
	}
	job_done(&job);
	return status;
}

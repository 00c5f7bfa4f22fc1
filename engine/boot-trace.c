/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <systemd/sd-id128.h>
#include <time.h>

#include "basic/io.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "engine/boot-trace.h"
#include "engine/flight.h"
#include "writer/store.h"

#define HEAD_REST_MAX (4 * MIB) /* texts, tables, and formats that are the kernel's of now */

struct boot_trace {
	struct boot_trace_params params;
	struct instance *instance;
	struct boot_note *note; /* NULL: nobody has noted which boot it was */
	struct last_boot info;
	struct file_plan plan; /* without names: the tasks of now are not those of then */
	struct snapshot_result made;
	struct symbols *symbols; /* of that boot */
	size_t symbols_size;	 /* of their text */
	char *kept, *missing;	 /* CPUs: "0 1" */
	char *detail;
	bool taken;
};

void boot_trace_free(struct boot_trace *t)
{
	if (!t)
		return;
	file_plan_done(&t->plan);
	snapshot_result_done(&t->made);
	symbols_free(t->symbols);
	instance_free(t->instance);
	boot_note_free(t->note);
	last_boot_done(&t->info);
	free(t->kept);
	free(t->missing);
	free(t->detail);
	free(t);
}

const char *boot_trace_boot_id(const struct boot_trace *t)
{
	return t->note ? t->note->boot_id : BOOT_UNKNOWN;
}

bool boot_trace_is_taken(const struct boot_trace *t)
{
	return t->taken;
}

const char *boot_trace_name(const struct boot_trace *t)
{
	return t->made.name;
}

const char *boot_trace_missing(const struct boot_trace *t)
{
	return t->missing;
}

/* --- looking */

static int list_cpus(struct boot_trace *t)
{
	size_t size;
	FILE *kept = open_memstream(&t->kept, &size), *missing;

	missing = open_memstream(&t->missing, &size);
	for (unsigned cpu = 0; kept && missing && cpu < instance_n_cpus(t->instance); cpu++) {
		struct cpu_stats stats = {0};
		FILE *to;

		if (instance_read_stats(t->instance, cpu, &stats) < 0)
			stats.entries = 0;
		to = stats.entries > 0 ? kept : missing;
		(void)fprintf(to, "%s%u", ftell(to) > 0 ? " " : "", cpu);
	}
	if (!kept || fclose(kept) != 0) {
		if (missing)
			(void)fclose(missing);
		return -ENOMEM;
	}
	return !missing || fclose(missing) != 0 ? -ENOMEM : 0;
}

/* 0: not one that the kernel made at boot */
static int open_instance(struct boot_trace *t, struct fault *why)
{
	const struct boot_trace_params *p = &t->params;
	int r = instance_attach(p->instance, p->group, p->trace, &t->instance, why);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (!instance_is_kept(t->instance))
		return 0;
	r = instance_read_last_boot(t->instance, &t->info, why);
	return r < 0 ? r : 1;
}

int boot_trace_find(const struct boot_trace_params *params, struct boot_trace **ret,
		    struct fault *why)
{
	_cleanup_(boot_trace_freep) struct boot_trace *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return fault_errno(why, -ENOMEM, "cannot look at instance %s", params->instance);
	t->params = *params;
	t->made = (struct snapshot_result)SNAPSHOT_RESULT_INIT;
	r = open_instance(t, why);
	if (r <= 0 || t->info.current)
		return r < 0 ? r : BOOT_TRACE_NONE;
	r = boot_note_read(params->dir_fd, &t->note);
	if (r < 0 && r != -ENOENT && r != -EBADMSG)
		return fault_errno(why, r, "cannot read the file boot");
	/* Linux 6.12 does not tell by itself */
	if (t->note && strcmp(t->note->boot_id, params->boot_id) == 0)
		return BOOT_TRACE_NONE;
	r = list_cpus(t);
	if (r < 0)
		return fault_errno(why, r, "cannot look at instance %s", params->instance);
	if (!*t->kept && !t->note)
		return BOOT_TRACE_NONE;
	r = *t->kept ? BOOT_TRACE_HERE : BOOT_TRACE_LOST;
	*ret = TAKE_PTR(t);
	return r;
}

/* --- the file that it becomes */

/* Why there can be none, or NULL */
static const char *no_symbols(const struct boot_trace *t, const char *now)
{
	if (t->note && !boot_note_same_kernel(t->note))
		return "that kernel was of another build";
	if (!t->info.has_kernel)
		return "the kernel does not tell where it was";
	return *now ? NULL : "this kernel hides its own";
}

/* @ret_text: how the file's text has it */
static int make_symbols(struct boot_trace *t, char **ret_text)
{
	_cleanup_free_ char *now = NULL, *modules = NULL, *then = NULL;
	unsigned n_modules = 0;
	const char *reason;
	int r;

	r = symbols_copy(t->params.symbols, &now);
	if (r >= 0)
		r = io_read_file_at(AT_FDCWD, "/proc/modules", &modules, NULL);
	if (r < 0 && r != -ENOENT) /* a kernel without modules */
		return r;
	reason = no_symbols(t, now);
	if (reason)
		*now = '\0';
	r = last_boot_symbols(&t->info, now, modules ? modules : "", &then, &n_modules);
	if (r < 0)
		return r;
	t->symbols_size = strlen(then);
	t->symbols = symbols_new_of(TAKE_PTR(then));
	if (!t->symbols)
		return -ENOMEM;
	*ret_text = reason ? strf("none, %s", reason)
			   : strf("of that boot, by last_boot_info: the kernel and %u modules",
				  n_modules);
	return *ret_text ? 0 : -ENOMEM;
}

static void format_time(uint64_t usec, char *to, size_t size)
{
	time_t seconds = (time_t)(usec / USEC_PER_SEC);
	struct tm tm;

	(void)strftime(to, size, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&seconds, &tm));
}

/* For whom finds the file: what is known of that boot, and what is not */
static int explain(struct boot_trace *t, const char *method)
{
	const struct boot_note *note = t->note;
	_cleanup_free_ char *symbols = NULL;
	char noted[40] = "";
	struct utsname u;
	size_t size;
	FILE *out;
	int r = make_symbols(t, &symbols);

	if (r < 0)
		return r;
	out = open_memstream(&t->detail, &size);
	if (!out || uname(&u) < 0) {
		if (out)
			(void)fclose(out);
		return -ENOMEM;
	}
	if (note)
		format_time(note->noted_usec, noted, sizeof(noted));
	(void)fprintf(out, "kernel: %s%s%s\nsaved by boot: %s, kernel %s\n",
		      note ? note->release : BOOT_UNKNOWN, note ? " " : "",
		      note ? note->version : "", t->params.boot_id, u.release);
	if (note && note->has_date)
		(void)fprintf(out, "clock: that boot's %s; the time of day as it was at %s\n",
			      note->clock, noted);
	else
		(void)fputs("clock: that boot's; what time of day it was is not known\n", out);
	(void)fprintf(out, "symbols: %s\ntask names: only those in events\nmethod: %s\nCPUs: %s\n",
		      symbols, method, t->kept);
	if (*t->missing)
		(void)fprintf(
			out,
			"CPUs without data: %s (nothing was traced there, or the kernel did not take over what it found)\n",
			t->missing);
	return fclose(out) != 0 ? -ENOMEM : 0;
}

static int take_systems(struct boot_trace *t)
{
	const struct trace_config *trace = t->params.trace;
	char ***systems = &t->plan.systems;
	int r = 0;

	for (size_t i = 0; i < trace->n_events && r >= 0; i++)
		if (!strv_contains(*systems, trace->events[i].system))
			r = strv_append(systems, trace->events[i].system);
	return r;
}

static int make_clock(struct boot_trace *t)
{
	char **text = &t->plan.clock_text;

	if (!t->note)
		return io_read_file_at(instance_dir_fd(t->instance), "trace_clock", text, NULL);
	*text = strf("[%s]\n", t->note->clock);
	return *text ? 0 : -ENOMEM;
}

static int make_params(struct boot_trace *t)
{
	struct trace_file_params *p = &t->plan.params;
	const struct boot_note *note = t->note;
	sd_id128_t boot_id = SD_ID128_NULL;
	int r = take_systems(t);

	if (r >= 0)
		r = make_clock(t);
	if (r < 0)
		return r;
	if (note)
		(void)sd_id128_from_string(note->boot_id, &boot_id);
	*p = (struct trace_file_params){
		.n_cpus = instance_n_cpus(t->instance),
		.subbuf_size = instance_subbuf_size(t->instance),
		.source = {.tracing_fd = t->params.tracing_fd,
			   .instance_fd = instance_dir_fd(t->instance),
			   .systems = t->plan.systems},
		.symbols = t->symbols,
		.clock = t->plan.clock_text,
		.direct = t->params.direct,
		.has_date = note && note->has_date,
		.date_usec = note ? note->date_usec : 0,
		.uname = note ? note->uname : NULL,
	};
	if (note && note->subbuf_size == p->subbuf_size)
		p->source.kept = &note->kept;
	memcpy(p->boot_id, boot_id.bytes, sizeof(p->boot_id));
	return 0;
}

/* --- saving */

/* Bytes of the file before the data, rather more than less */
static uint64_t head_size(const struct boot_trace *t)
{
	return t->symbols_size + (t->note ? t->note->kept.formats_size : 0) + HEAD_REST_MAX;
}

static int write_file(struct boot_trace *t, struct flight *flight, struct fault *why)
{
	struct snapshot_order order = {
		.session = t->params.session,
		.reason = "boot",
		.rank = RETENTION_RANK_LAST,
		.trigger_usec = now_usec(CLOCK_REALTIME),
		.limits = t->params.limits,
	};
	int r;

	r = explain(t, flight_method_name(flight));
	if (r >= 0)
		r = make_params(t);
	if (r < 0)
		return fault_errno(why, r, "cannot describe the last boot's trace");
	order.detail = t->detail;
	(void)snprintf(t->made.boot_id, sizeof(t->made.boot_id), "%s", boot_trace_boot_id(t));
	r = flight_check_room(flight, head_size(t), why);
	if (r >= 0) {
		r = flight_capture(flight, 0, UINT64_MAX, why);
		t->taken = flight_has_taken(flight);
	}
	if (r >= 0)
		r = flight_export(flight, &t->plan, &order, &t->made, why);
	flight_drop(flight);
	return r;
}

int boot_trace_save(struct boot_trace *t, struct fault *why)
{
	_cleanup_(flight_freep) struct flight *flight = NULL;
	struct flight_params params = {
		.instance = t->instance,
		.method = "auto",
		.memory = t->params.memory,
		.threads = 1,
		/* Its clock may go otherwise now: read to the end */
		.counts_time = false,
	};
	int r;

	r = store_open_dir(t->params.dir_fd, "snapshot", &t->made.dir_fd, why);
	if (r < 0)
		return r;
	params.dir_fd = t->made.dir_fd;
	r = instance_buffer_size(t->instance, &params.buffer_size);
	if (r < 0)
		return fault_errno(why, r, "cannot tell the size of instance %s's ring buffer",
				   t->params.instance);
	r = flight_new(&params, &flight, why);
	return r < 0 ? r : write_file(t, flight, why);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>

#include <tracefs/tracefs.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "engine/clock.h"
#include "engine/file-plan.h"
#include "formats/trace-dat-read.h"
#include "recorder/pids.h"
#include "recorder/saved-cmdlines.h"

#define NAMES_ROOM_MAX (4 * MIB)
#define TASK_SIZE      16 /* with what most of them share: names and control groups */
#define TASKS_ROOM_MIN (16 * KIB)
#define TASKS_ROOM_MAX (4 * MIB)
#define NAME_LINE_SIZE 24 /* "4194304 " and 15 characters and the line break */

/* Names that may come together in one segment, at most */
static size_t names_max(void)
{
	_cleanup_free_ char *text = NULL;
	size_t pid_max = 32768;

	if (io_read_file_at(AT_FDCWD, "/proc/sys/kernel/pid_max", &text, NULL) >= 0)
		pid_max = strtoul(text, NULL, 10);
	return MIN(pid_max, (size_t)(NAMES_ROOM_MAX / NAME_LINE_SIZE));
}

int file_plan_init(struct file_plan *plan, const struct instance *instance)
{
	*plan = (struct file_plan){
		.params = {.n_cpus = instance_n_cpus(instance),
			   .subbuf_size = instance_subbuf_size(instance),
			   .names_room = names_max() * NAME_LINE_SIZE},
		.names = task_names_new(names_max()),
	};
	return plan->names ? 0 : -ENOMEM;
}

static int add_systems(struct file_plan *plan, char *const *systems)
{
	int r = 0;

	for (; systems && *systems && r >= 0; systems++)
		if (!strv_contains(plan->systems, *systems))
			r = strv_append(&plan->systems, *systems);
	return r;
}

void file_plan_add_clock(struct file_plan *plan, const struct own_clock *reading)
{
	if (plan->goes_on)
		(void)own_clocks_add(&plan->clocks, reading);
}

const struct own_clock *file_plan_reading(const struct file_plan *plan)
{
	const struct own_clock *list[OWN_CLOCKS_MAX];
	size_t n = own_clocks_list(&plan->clocks, list);

	return n > 0 ? list[n - 1] : NULL;
}

/* The date by the same reading, or by one before that tells the same. Boot and clock of the
 * readings are those of the file. @same: the clock is that of the file before. */
static void read_clocks(struct file_plan *plan, const struct instance *instance, const char *clock,
			bool same)
{
	struct trace_file_params *p = &plan->params;
	bool first = plan->clocks.sequence == 0 || !plan->goes_on, dated = same && p->has_date;
	struct own_clock reading;

	if (first)
		own_clocks_init(&plan->clocks, clock ? clock : "", p->boot_id);
	p->own.clocks = &plan->clocks;
	p->own.sheds = &plan->sheds;
	p->has_date = false;
	if (!clock ||
	    clock_read(instance, clock, first ? OWN_CLOCK_BEGIN : OWN_CLOCK_SNAPSHOT, &reading) < 0)
		return;
	p->has_date = !(reading.flags & OWN_CLOCK_NO_TRACE);
	if (p->has_date && !(dated && clock_date_stays(&plan->dated, &reading))) {
		plan->dated = reading;
		p->date_usec = clock_reading_date_usec(&reading);
	}
	(void)own_clocks_add(&plan->clocks, &reading);
}

int file_plan_describe(struct file_plan *plan, struct instance *instance, int tracing_fd,
		       char *const *more, struct fault *why)
{
	struct trace_file_params *p = &plan->params;
	_cleanup_free_ char *clock = NULL, *before = TAKE_PTR(plan->clock_text);
	char **systems = NULL;
	int r = instance_systems(instance, &systems, why);

	if (r < 0)
		return r;
	strv_free(TAKE_PTR(plan->systems));
	strv_free(TAKE_PTR(plan->build_ids));
	r = add_systems(plan, systems);
	tracefs_list_free(systems);
	if (r >= 0)
		r = add_systems(plan, more);
	if (r >= 0)
		r = strv_copy(instance_build_ids(instance), &plan->build_ids);
	if (r < 0)
		return fault_errno(why, r, "cannot prepare a segment");
	r = io_read_file_at(instance_dir_fd(instance), "trace_clock", &plan->clock_text, NULL);
	if (r < 0)
		return fault_errno(why, r, "cannot read trace_clock of instance %s",
				   instance_name(instance));
	clock = trace_dat_clock_name(plan->clock_text);
	p->source = (struct metadata_source){
		.tracing_fd = tracing_fd,
		.instance_fd = instance_dir_fd(instance),
		.systems = plan->systems,
		.build_ids = plan->build_ids,
	};
	p->clock = plan->clock_text;
	read_clocks(plan, instance, clock, before && strcmp(before, plan->clock_text) == 0);
	return 0;
}

int file_plan_read_names(const struct file_plan *plan, bool scan)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int proc = -EBADF;
	int r;

	if (!plan->names)
		return 0;
	r = saved_cmdlines_read(plan->params.source.tracing_fd, &text);
	if (r >= 0)
		r = task_names_merge(plan->names, text);
	if (r < 0)
		return r;
	proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -errno;
	return scan ? task_names_scan_proc(plan->names, proc) : task_names_look(plan->names, proc);
}

int file_plan_names_room(const struct file_plan *plan, size_t *ret)
{
	size_t room = 0;
	int r = plan->names ? task_names_next_room(plan->names, &room) : 0;

	if (r >= 0)
		*ret = MIN(room, plan->params.names_room);
	return r;
}

int file_plan_put_names(const struct file_plan *plan, struct trace_file *file)
{
	_cleanup_free_ char *text = NULL;
	int r;

	if (!plan->names)
		return 0;
	r = task_names_render(plan->names, trace_file_names_room(file), &text, NULL);
	if (r >= 0)
		r = trace_file_write_names(file, text);
	/* In another PID namespace numbers are not those of events */
	return r < 0 || !pids_in_first_namespace() ? r : trace_file_write_tasks(file, plan->names);
}

/* sysinfo(2) has 16 bits for it */
static uint64_t threads_of_the_machine(void)
{
	_cleanup_free_ char *text = NULL;
	unsigned long threads = 0;

	if (io_read_file_at(AT_FDCWD, "/proc/loadavg", &text, NULL) < 0 ||
	    sscanf(text, "%*s %*s %*s %*u/%lu", &threads) != 1)
		return 0;
	return threads;
}

uint32_t file_plan_tasks_room(const struct file_plan *plan, size_t names_room,
			      const struct trace_file *before)
{
	uint32_t room = 0;
	uint64_t used = before ? trace_file_tasks_used(before, &room) : 0;

	if (!plan->names)
		return 0;
	used = MAX(used, threads_of_the_machine() * TASK_SIZE);
	return (uint32_t)MIN(TASKS_ROOM_MIN + 2 * used + names_room / 32, TASKS_ROOM_MAX);
}

int file_plan_write_names(const struct file_plan *plan, struct trace_file *file, bool scan)
{
	int r = file_plan_read_names(plan, scan);

	return r < 0 ? r : file_plan_put_names(plan, file);
}

bool file_plan_names_fill(const struct file_plan *plan, const struct trace_file *file)
{
	size_t room = trace_file_names_room(file);
	uint32_t tasks_room, used = trace_file_tasks_used(file, &tasks_room);

	if (!plan->names)
		return false;
	return (room < plan->params.names_room && task_names_fill(plan->names, room)) ||
	       (used > tasks_room / 8 * 7 && tasks_room < TASKS_ROOM_MAX);
}

void file_plan_done(struct file_plan *plan)
{
	task_names_free(plan->names);
	strv_free(plan->systems);
	strv_free(plan->build_ids);
	free(plan->clock_text);
	own_sheds_done(&plan->sheds);
	*plan = (struct file_plan){};
}

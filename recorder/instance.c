/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <tracefs.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "recorder/dynamic.h"
#include "recorder/events.h"
#include "recorder/instance.h"
#include "recorder/kernel-text.h"
#include "recorder/last-boot.h"
#include "recorder/pids.h"
#include "recorder/ring-memory.h"
#include "recorder/settings.h"
#include "recorder/tracedir.h"
#include "recorder/tracefs.h"

enum tracing {
	TRACING_UNKNOWN, /* attached: as the earlier process left it */
	TRACING_OFF,
	TRACING_ON,
};

struct instance {
	char *name;
	const struct trace_config *config;
	struct tracefs_instance *tracefs;
	struct tracedir top; /* the machine's tracefs: read, and dynamic_events */
	struct tracedir dir;
	struct dynamic *dynamic;
	struct events *events;
	unsigned n_cpus;
	unsigned subbuf_size;
	enum tracing tracing;
};

/* rmdir while a reader is just closing its file */
#define RMDIR_TRIES   10
#define RMDIR_WAIT_NS (20 * 1000 * 1000L)

/* --- making and freeing the object */

void instance_free(struct instance *instance)
{
	if (!instance)
		return;
	events_free(instance->events);
	dynamic_free(instance->dynamic);
	tracedir_done(&instance->dir);
	tracedir_done(&instance->top);
	tracefs_instance_free(instance->tracefs);
	free(instance->name);
	free(instance);
}

/* Everything that needs no instance in the kernel; changes nothing. */
static int instance_new(const char *name, const char *group, const struct trace_config *config,
			struct instance **ret, struct fault *why)
{
	_cleanup_(instance_freep) struct instance *instance = calloc(1, sizeof(*instance));
	const char *top = tracefs_tracing_dir();
	int r;

	if (!instance)
		return fault_errno(why, -ENOMEM, "instance %s", name);
	instance->top.fd = instance->dir.fd = -EBADF;
	instance->config = config;
	if (!name[0] || name[0] == '.' || strchr(name, '/'))
		return fault_set(why, -EINVAL, "\"%s\" cannot be the name of an instance", name);
	if (!top)
		return fault_set(why, -ENOENT, "no tracefs is mounted");
	r = tracedir_open(&instance->top, top);
	if (r < 0)
		return fault_errno(why, r, "cannot open %s", top);
	r = possible_cpus(&instance->n_cpus, why);
	if (r < 0)
		return r;
	instance->name = strdup(name);
	if (!instance->name)
		return fault_errno(why, -ENOMEM, "instance %s", name);
	r = dynamic_new(config, group, &instance->dynamic, why);
	if (r < 0)
		return r == -ENOMEM ? fault_errno(why, r, "instance %s", name) : r;
	r = events_new(config, instance->dynamic, &instance->events);
	if (r < 0)
		return fault_errno(why, r, "instance %s", name);
	*ret = TAKE_PTR(instance);
	return 0;
}

/* The directory below instances/ that is there now */
static int open_dir(struct instance *instance, struct fault *why)
{
	_cleanup_free_ char *path = NULL;
	int r;

	path = strf("%s/instances/%s", instance->top.path, instance->name);
	if (!path)
		return fault_errno(why, -ENOMEM, "instance %s", instance->name);
	r = tracedir_open(&instance->dir, path);
	return r < 0 ? fault_errno(why, r, "cannot open %s", path) : 0;
}

static int read_subbuf_size(struct instance *instance, struct fault *why)
{
	static const char file[] = "events/header_page";
	_cleanup_free_ char *text = NULL;
	int r;

	r = tracedir_read(&instance->dir, file, &text, why);
	if (r < 0)
		return r;
	r = kernel_text_header_page(text, &instance->subbuf_size);
	return r < 0 ? tracedir_fault(&instance->dir, file, r, why,
				      "cannot determine the sub-buffer size")
		     : 0;
}

/* --- create, attach */

static int make_directory(struct instance *instance, struct fault *why)
{
	errno = 0;
	instance->tracefs = tracefs_instance_create(instance->name);
	if (!instance->tracefs) {
		int r = errno > 0 ? -errno : -EIO;

		return fault_errno(why, r, "cannot make the instance %s/instances/%s",
				   instance->top.path, instance->name);
	}
	if (!tracefs_instance_is_new(instance->tracefs))
		return fault_set(why, -EEXIST, "there is an instance %s/instances/%s already",
				 instance->top.path, instance->name);
	return 0;
}

static int make_new(struct instance *instance, struct fault *why)
{
	int r;

	r = make_directory(instance, why);
	if (r < 0)
		return r;
	r = open_dir(instance, why);
	if (r < 0)
		(void)tracefs_instance_destroy(instance->tracefs);
	return r;
}

static int set_up(struct instance *instance, struct fault *why)
{
	const struct trace_config *config = instance->config;
	int r;

	r = instance_trace(instance, false, why);
	if (r >= 0)
		r = settings_apply(&instance->dir, config, instance->n_cpus, why);
	if (r >= 0)
		r = read_subbuf_size(instance, why);
	if (r >= 0)
		r = dynamic_create(instance->dynamic, &instance->top, why);
	if (r >= 0)
		r = pids_apply(&instance->dir, config, why);
	if (r >= 0)
		r = events_setup(instance->events, &instance->dir, why);
	if (r >= 0)
		r = settings_keep_clock(&instance->dir, config, why);
	return r;
}

/* With Persistent=: is the kernel's there? */
static bool find_kept(struct instance *instance)
{
	bool found;

	if (!instance->config->persistent || open_dir(instance, NULL) < 0)
		return false;
	found = last_boot_is_kept(&instance->dir);
	tracedir_done(&instance->dir);
	return found;
}

/* Where it cannot be made anew, what was in it goes, and whatever the command line switched on */
static int empty_kept(struct instance *instance, struct fault *why)
{
	const struct tracedir *dir = &instance->dir;
	int r;

	r = instance_trace(instance, false, why);
	if (r >= 0)
		r = settings_reset_tracer(dir, why);
	if (r >= 0)
		r = tracedir_write(dir, "events/enable", "0", 0, why, "cannot disable all events");
	if (r >= 0)
		r = tracedir_write(dir, "trace", "\n", O_TRUNC, why,
				   "cannot empty the ring buffer");
	return r;
}

static int take_kept(struct instance *instance, struct fault *why)
{
	int r;

	instance->tracefs = tracefs_instance_alloc(NULL, instance->name);
	if (!instance->tracefs)
		return fault_errno(why, -ENOMEM, "instance %s", instance->name);
	r = open_dir(instance, why);
	return r < 0 ? r : empty_kept(instance, why);
}

int instance_create(const char *name, const char *group, const struct trace_config *config,
		    struct instance **ret, struct fault *why)
{
	_cleanup_(instance_freep) struct instance *instance = NULL;
	int r;

	r = instance_new(name, group, config, &instance, why);
	if (r >= 0)
		r = find_kept(instance) ? take_kept(instance, why) : make_new(instance, why);
	if (r < 0)
		return r;
	r = set_up(instance, why);
	if (r < 0) {
		(void)instance_destroy(TAKE_PTR(instance), NULL);
		return r;
	}
	*ret = TAKE_PTR(instance);
	return 0;
}

int instance_attach(const char *name, const char *group, const struct trace_config *config,
		    struct instance **ret, struct fault *why)
{
	_cleanup_(instance_freep) struct instance *instance = NULL;
	int r;

	r = instance_new(name, group, config, &instance, why);
	if (r >= 0)
		r = open_dir(instance, why);
	if (r >= 0)
		r = read_subbuf_size(instance, why);
	if (r < 0)
		return r;
	instance->tracefs = tracefs_instance_alloc(NULL, name);
	if (!instance->tracefs)
		return fault_errno(why, -ENOMEM, "instance %s", name);
	dynamic_adopt(instance->dynamic);
	events_adopt(instance->events, &instance->dir);
	*ret = TAKE_PTR(instance);
	return 0;
}

char *instance_marker(const struct instance *instance)
{
	return strf("%s/trace_marker", instance->dir.path);
}

char *const *instance_build_ids(const struct instance *instance)
{
	return instance->dynamic->build_ids;
}

int instance_set_build_ids(struct instance *instance, char *const *build_ids)
{
	return dynamic_set_build_ids(instance->dynamic, build_ids);
}

/* --- destroy */

/* Is the directory of our name still the one we opened? */
static bool is_ours(const struct instance *instance)
{
	struct stat ours, now;

	return instance->dir.fd >= 0 && fstat(instance->dir.fd, &ours) >= 0 &&
	       stat(instance->dir.path, &now) >= 0 && ours.st_ino == now.st_ino &&
	       ours.st_dev == now.st_dev;
}

/* @ret_file: name below @path that one of the process's fds points to */
static int find_in_process(int proc_fd, const char *pid, const char *path, char **ret_file)
{
	_cleanup_closedir_ DIR *dir = NULL;
	size_t n = strlen(path);
	struct dirent *entry;
	char name[64];
	int r;

	(void)snprintf(name, sizeof(name), "%.20s/fd", pid);
	r = io_opendir_at(proc_fd, name, &dir);
	if (r < 0)
		return r;
	while ((entry = readdir(dir))) {
		char target[PATH_MAX];
		ssize_t size = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (size <= 0)
			continue;
		target[size] = '\0';
		if (strncmp(target, path, n) != 0 || target[n] != '/')
			continue;
		*ret_file = strdup(target + n + 1);
		return *ret_file ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

/* The first open file below @path that some process has, as far as /proc lets us look */
static int find_holder(const char *path, char **ret)
{
	_cleanup_closedir_ DIR *proc = NULL;
	struct dirent *entry;
	int r;

	r = io_opendir_at(AT_FDCWD, "/proc", &proc);
	if (r < 0)
		return r;
	while ((entry = readdir(proc))) {
		_cleanup_free_ char *file = NULL, *comm = NULL;
		char name[64];

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    find_in_process(dirfd(proc), entry->d_name, path, &file) < 0)
			continue;
		(void)snprintf(name, sizeof(name), "%.20s/comm", entry->d_name);
		if (io_read_file_at(dirfd(proc), name, &comm, NULL) >= 0)
			comm[strcspn(comm, "\n")] = '\0';
		*ret = strf("%s, open in process %s (%s)", file, entry->d_name, comm ? comm : "?");
		return *ret ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

static int remove_directory(struct instance *instance, struct fault *why)
{
	static const struct timespec wait = {.tv_nsec = RMDIR_WAIT_NS};
	_cleanup_free_ char *holder = NULL;
	const char *path = instance->dir.path;

	for (int i = 0; i < RMDIR_TRIES; i++) {
		errno = 0;
		if (tracefs_instance_destroy(instance->tracefs) >= 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return fault_errno(why, errno > 0 ? -errno : -EIO, "cannot remove %s",
					   path);
		(void)nanosleep(&wait, NULL);
	}
	if (find_holder(path, &holder) >= 0)
		return fault_errno(why, -EBUSY, "cannot remove %s: held by %s", path, holder);
	return fault_errno(why, -EBUSY,
			   "cannot remove %s: one of its files is open or mapped somewhere, most "
			   "likely a trace_pipe or trace_pipe_raw",
			   path);
}

int instance_destroy(struct instance *instance, struct fault *why)
{
	struct fault step = {0};
	int first = 0;

	if (!instance)
		return 0;
	if (is_ours(instance)) {
		first = first_fault(first, instance_trace(instance, false, &step), &step, why);
		first = first_fault(first, settings_reset_tracer(&instance->dir, &step), &step,
				    why);
		first = first_fault(first, events_teardown(instance->events, &instance->dir, &step),
				    &step, why);
		first = first_fault(first,
				    last_boot_is_kept(&instance->dir)
					    ? empty_kept(instance, &step)
					    : remove_directory(instance, &step),
				    &step, why);
	}
	first = first_fault(first, dynamic_remove(instance->dynamic, &instance->top, &step), &step,
			    why);
	instance_free(instance);
	return first;
}

int instance_remove(const char *name, struct fault *why)
{
	struct trace_config config = {.clock = (char *)"mono"};
	struct instance *instance;
	int r = instance_attach(name, name, &config, &instance, why);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	events_clear_triggers(&instance->dir);
	return instance_destroy(instance, why);
}

/* --- watching */

static int check_tracing(struct instance *instance, struct changes *changes, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	bool on = instance->tracing == TRACING_ON;
	int r;

	if (instance->tracing == TRACING_UNKNOWN || settings_flips_tracing(instance->config))
		return 0;
	r = tracedir_read(&instance->dir, "tracing_on", &text, why);
	if (r < 0 || (text[0] == '1') == on)
		return r;
	r = instance_trace(instance, on, why);
	if (r >= 0)
		changes_add(changes, "tracing had been switched %s", on ? "off" : "on");
	return r;
}

static int check_all(struct instance *instance, struct changes *changes, struct fault *why)
{
	const struct tracedir *dir = &instance->dir;
	int r;

	r = settings_check(dir, instance->config, instance->n_cpus, instance->subbuf_size, changes,
			   why);
	if (r >= 0)
		r = dynamic_check(instance->dynamic, &instance->top, changes, why);
	if (r >= 0)
		r = pids_check(dir, instance->config, changes, why);
	if (r >= 0)
		r = events_check(instance->events, dir, changes, why);
	/* Last: what is traced again is then what was asked for. */
	if (r >= 0)
		r = check_tracing(instance, changes, why);
	return r;
}

static int gone(const struct instance *instance, struct fault *why)
{
	bool anew = faccessat(AT_FDCWD, instance->dir.path, F_OK, AT_EACCESS) >= 0;

	(void)fault_set(why, -ENODEV, "%s has been removed%s", instance->dir.path,
			anew ? ", and made anew by somebody else" : "");
	return INSTANCE_GONE;
}

int instance_check(struct instance *instance, struct fault *why)
{
	struct changes changes = {0};
	int r;

	if (!is_ours(instance))
		return gone(instance, why);
	r = check_all(instance, &changes, why);
	if (r < 0)
		return is_ours(instance) ? r : gone(instance, why);
	if (changes.n == 0)
		return INSTANCE_OK;
	(void)fault_set(why, 0, "%s: %s", instance->dir.path, changes.text);
	return changes.emptied ? INSTANCE_EMPTIED : INSTANCE_REPAIRED;
}

int instance_trace(struct instance *instance, bool on, struct fault *why)
{
	int r;

	r = tracedir_write(&instance->dir, "tracing_on", on ? "1" : "0", 0, why,
			   "cannot switch tracing %s", on ? "on" : "off");
	if (r >= 0)
		instance->tracing = on ? TRACING_ON : TRACING_OFF;
	return r;
}

int instance_has_events(const struct instance *instance, const struct trace_config *config,
			struct fault *why)
{
	return events_exist(config, &instance->dir, why);
}

int instance_update_events(struct instance *instance, struct fault *why)
{
	_cleanup_(events_freep) struct events *events = NULL;
	struct events *before = instance->events;
	int r;

	r = events_new(instance->config, instance->dynamic, &events);
	if (r < 0)
		return fault_errno(why, r, "instance %s", instance->name);
	r = events_replace(before, events, &instance->dir, why);
	if (r < 0)
		return r;
	instance->events = TAKE_PTR(events);
	events_free(before);
	return settings_keep_clock(&instance->dir, instance->config, why);
}

int instance_shed(struct instance *instance, const char *event, bool shed, struct fault *why)
{
	return events_shed(instance->events, &instance->dir, event, shed, why);
}

int instance_mark(const struct instance *instance, const char *text)
{
	return io_write_string_at(instance->dir.fd, "trace_marker", text, 0);
}

int instance_refresh_pids(struct instance *instance, struct fault *why)
{
	return pids_refresh(&instance->dir, instance->config, why);
}

int instance_count_tasks(const struct instance *instance, uint64_t *ret_tasks,
			 uint64_t *ret_processes)
{
	return pids_count(&instance->dir, instance->config, ret_tasks, ret_processes);
}

/* --- what it says and holds */

int instance_open_cpu(const struct instance *instance, unsigned cpu, int *ret_fd, struct fault *why)
{
	char file[64];
	int fd;

	(void)snprintf(file, sizeof(file), "per_cpu/cpu%u/trace_pipe_raw", cpu);
	fd = openat(instance->dir.fd, file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return tracedir_fault(&instance->dir, file, -errno, why, "cannot open");
	*ret_fd = fd;
	return 0;
}

int instance_read_stats(const struct instance *instance, unsigned cpu, struct cpu_stats *ret)
{
	_cleanup_free_ char *text = NULL;
	char file[64];
	int r;

	(void)snprintf(file, sizeof(file), "per_cpu/cpu%u/stats", cpu);
	r = tracedir_read(&instance->dir, file, &text, NULL);
	return r < 0 ? r : kernel_text_stats(text, ret);
}

int instance_buffer_size(const struct instance *instance, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	uint64_t kib;
	int r;

	r = tracedir_read(&instance->dir, "buffer_size_kb", &text, NULL);
	if (r < 0)
		return r;
	kib = strtoull(text, NULL, 10);
	if (kib == 0)
		return -EBADMSG; /* "X": CPUs differ */
	*ret = kib * KIB;
	return 0;
}

int instance_make_spare(const struct instance *instance, struct fault *why)
{
	uint64_t size;
	int r = instance_buffer_size(instance, &size);

	if (r < 0)
		return tracedir_fault(&instance->dir, "buffer_size_kb", r, why,
				      "cannot tell the buffer size");
	return ring_memory_make_spare(&instance->dir, size, instance->n_cpus, why);
}

int instance_drop_spare(const struct instance *instance, struct fault *why)
{
	return ring_memory_drop_spare(&instance->dir, why);
}

int instance_open_stats(const struct instance *instance, unsigned cpu)
{
	char file[64];
	int fd;

	(void)snprintf(file, sizeof(file), "per_cpu/cpu%u/stats", cpu);
	fd = openat(instance->dir.fd, file, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int instance_systems(struct instance *instance, char ***ret, struct fault *why)
{
	char **list = NULL;
	int r;

	r = events_systems(instance->events, &instance->dir, &list, why);
	if (r < 0) {
		tracefs_list_free(list);
		return r;
	}
	if (list)
		qsort(list, (size_t)tracefs_list_size(list), sizeof(*list), compare_strings);
	*ret = list;
	return 0;
}

bool instance_is_kept(const struct instance *instance)
{
	return last_boot_is_kept(&instance->dir);
}

int instance_read_last_boot(const struct instance *instance, struct last_boot *ret,
			    struct fault *why)
{
	return last_boot_read(&instance->dir, ret, why);
}

int instance_dir_fd(const struct instance *instance)
{
	return instance->dir.fd;
}

const char *instance_name(const struct instance *instance)
{
	return instance->name;
}

unsigned instance_n_cpus(const struct instance *instance)
{
	return instance->n_cpus;
}

unsigned instance_subbuf_size(const struct instance *instance)
{
	return instance->subbuf_size;
}

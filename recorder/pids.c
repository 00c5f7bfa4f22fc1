/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <tracefs.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "recorder/kernel-text.h"
#include "recorder/pids.h"
#include "recorder/unit-group.h"

#define FILE_NAME	    "set_event_pid"
#define DEPTH_MAX	    64U		/* of control groups; systemd's are less than ten deep */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCU /* PROC_PID_INIT_INO of linux/proc_ns.h */

/* Unit=, and what is found of it */
struct search {
	char **units;
	bool *seen; /* [of units]: it has threads */
	FILE *out;  /* all their numbers */
};

static bool is_any_unit(const char *name, const struct search *s)
{
	for (char **unit = s->units; *unit; unit++)
		if (unit_group_is(name, *unit))
			return true;
	return false;
}

/* cgroup.threads is version 2's list of threads, tasks version 1's. */
static int add_threads(int dir_fd, struct search *s)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = io_read_file_at(dir_fd, "cgroup.threads", &text, NULL);
	if (r == -ENOENT)
		r = io_read_file_at(dir_fd, "tasks", &text, NULL);
	/* The control group may go while we look at it. */
	if (r == -ENODEV || r == -ENOENT)
		return 0;
	if (r >= 0)
		(void)fputs(text, s->out);
	return r;
}

/*
 * Everything below @dir_fd, which it takes. @inside: below a unit's own directory
 */
static int walk(int dir_fd, bool inside, unsigned depth, struct search *s)
{
	_cleanup_closedir_ DIR *dir = fdopendir(dir_fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = -errno;
		close(dir_fd);
		return r;
	}
	if (inside)
		r = add_threads(dir_fd, s);
	while (r >= 0 && depth < DEPTH_MAX && (entry = readdir(dir))) {
		long before = ftell(s->out);
		int fd;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		fd = openat(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0) {
			r = errno == ENOENT || errno == ENODEV ? 0 : -errno;
			continue;
		}
		r = walk(fd, inside || is_any_unit(entry->d_name, s), depth + 1, s);
		for (size_t i = 0; s->units[i]; i++)
			s->seen[i] |=
				unit_group_is(entry->d_name, s->units[i]) && ftell(s->out) > before;
	}
	return r;
}

bool pids_in_first_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == FIRST_PID_NAMESPACE;
}

/* Of which units is nothing traced? Return: 0, or PIDS_MISSING with @why */
static int find_missing(const struct search *s, const char *reason, struct fault *why)
{
	_cleanup_free_ char *names = NULL;
	size_t size;
	FILE *out = open_memstream(&names, &size);
	unsigned n = 0;

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; s->units[i]; i++)
		if (!s->seen[i])
			(void)fprintf(out, "%s%s", n++ ? " " : "", s->units[i]);
	if (fclose(out) != 0)
		return -ENOMEM;
	if (n == 0)
		return 0;
	(void)fault_set(why, 0, "Unit=%s: %s, nothing of it is traced", names, reason);
	return PIDS_MISSING;
}

static int add_units(struct search *s, struct fault *why)
{
	char **units = s->units;
	char **dirs = NULL;
	int r;

	if (!pids_in_first_namespace())
		return find_missing(
			s,
			"flyrecd runs in a PID namespace and cannot tell the kernel which "
			"processes these are",
			why);
	r = unit_group_mounts(&dirs, why);
	if (r < 0)
		return r;
	if (!dirs)
		return fault_set(why, -ENOENT, "Unit=%s: no control groups of systemd are mounted",
				 units[0]);
	for (char **d = dirs; r >= 0 && *d; d++) {
		int fd = open(*d, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		r = fd < 0 ? -errno : walk(fd, false, 0, s);
		if (r < 0)
			(void)fault_errno(why, r, "cannot look for units in %s", *d);
	}
	tracefs_list_free(dirs);
	return r < 0 ? r : find_missing(s, "no process is there", why);
}

/* --- the list */

/* The thread group's other threads; a pid without /proc entry stands for itself (and later ones) */
static void add_process(uint32_t pid, FILE *out)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[40];

	(void)fprintf(out, "%u\n", pid);
	(void)snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			(void)fprintf(out, "%s\n", entry->d_name);
}

static int collect(const struct trace_config *config, bool units_only, char **ret,
		   struct fault *why)
{
	char *text = NULL;
	size_t size = 0;
	_cleanup_free_ bool *seen = NULL;
	struct search search = {.units = config->units, .out = open_memstream(&text, &size)};
	FILE *out = search.out;
	size_t n_units = strv_length(config->units);
	int r = 0;

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; !units_only && i < config->n_pids; i++)
		add_process(config->pids[i], out);
	search.seen = seen = calloc(n_units + 1, sizeof(*seen));
	if (!seen)
		r = -ENOMEM;
	else if (n_units > 0)
		r = add_units(&search, why);
	if (fclose(out) != 0 && r >= 0)
		r = -ENOMEM;
	if (r < 0)
		free(text);
	else
		*ret = text;
	return r;
}

static int by_number(const void *a, const void *b)
{
	const unsigned long *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The numbers of @text that may be tasks, sorted. Return: how many, or -ENOMEM. */
static ssize_t parse_list(const char *text, unsigned long **ret)
{
	unsigned long *list = calloc(strlen(text) / 2 + 1, sizeof(*list));
	ssize_t n = 0;
	char *end;

	if (!list)
		return -ENOMEM;
	for (const char *p = text; *p; p = end) {
		unsigned long pid = strtoul(p, &end, 10);

		if (end == p)
			break;
		if (pid != PIDS_NOBODY)
			list[n++] = pid;
		end += strspn(end, "\n ");
	}
	qsort(list, (size_t)n, sizeof(*list), by_number);
	*ret = list;
	return n;
}

/* First nobody, then @text. A long write may be taken in parts: the rest is appended. */
static int write_list(const struct tracedir *dir, const char *text, struct fault *why)
{
	_cleanup_close_ int fd = openat(dir->fd, FILE_NAME, O_WRONLY | O_CLOEXEC | O_TRUNC);
	char nobody[16];
	int r = fd < 0 ? -errno : 0;

	if (r >= 0) {
		(void)snprintf(nobody, sizeof(nobody), "%u\n", PIDS_NOBODY);
		r = io_write_all(fd, nobody, strlen(nobody));
	}
	if (r >= 0)
		r = io_write_all(fd, text, strlen(text));
	return r < 0 ? tracedir_fault(dir, FILE_NAME, r, why, "cannot choose the traced tasks") : 0;
}

int pids_apply(const struct tracedir *dir, const struct trace_config *config, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	int r;

	if (!pids_configured(config))
		return 0;
	r = collect(config, false, &text, why);
	if (r >= 0)
		r = write_list(dir, text, why);
	return r;
}

/*
 * Those of @text that are not followed yet, if there are any: a write waits for all CPUs, a tenth
 * of a second on a busy machine, and everybody waits for the event loop meanwhile
 */
static int append_new(const struct tracedir *dir, const char *text, struct fault *why)
{
	_cleanup_free_ char *followed = NULL, *fresh = NULL;
	_cleanup_free_ unsigned long *old = NULL, *now = NULL;
	_cleanup_close_ int fd = -EBADF;
	ssize_t n_old, n_now;
	size_t size = 0;
	FILE *out;
	int r = tracedir_read(dir, FILE_NAME, &followed, why);

	if (r < 0)
		return r;
	n_old = parse_list(followed, &old);
	n_now = parse_list(text, &now);
	out = open_memstream(&fresh, &size);
	if (!out)
		return -ENOMEM;
	for (ssize_t i = 0; i < n_now && n_old >= 0; i++)
		if (!bsearch(&now[i], old, (size_t)n_old, sizeof(*old), by_number))
			(void)fprintf(out, "%lu\n", now[i]);
	if (fclose(out) != 0 || n_old < 0 || n_now < 0)
		return -ENOMEM;
	if (size == 0)
		return 0;
	fd = openat(dir->fd, FILE_NAME, O_WRONLY | O_CLOEXEC | O_APPEND);
	r = fd < 0 ? -errno : io_write_all(fd, fresh, size);
	return r < 0 ? tracedir_fault(dir, FILE_NAME, r, why, "cannot choose the traced tasks") : 0;
}

int pids_refresh(const struct tracedir *dir, const struct trace_config *config, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	int missing, r;

	if (!config->units || !config->units[0])
		return 0;
	missing = collect(config, true, &text, why);
	r = missing < 0 ? missing : append_new(dir, text, why);
	return r < 0 ? r : missing;
}

static bool has_nobody(const char *text)
{
	char nobody[16];

	(void)snprintf(nobody, sizeof(nobody), "%u", PIDS_NOBODY);
	return kernel_text_has_word(text, nobody);
}

static int clear_list(const struct tracedir *dir, struct fault *why)
{
	_cleanup_close_ int fd = openat(dir->fd, FILE_NAME, O_WRONLY | O_TRUNC | O_CLOEXEC);

	return fd < 0 ? tracedir_fault(dir, FILE_NAME, -errno, why, "cannot trace all tasks") : 0;
}

int pids_check(const struct tracedir *dir, const struct trace_config *config,
	       struct changes *changes, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	bool want = pids_configured(config);
	int r;

	r = tracedir_read(dir, FILE_NAME, &text, why);
	if (r < 0 || (want ? has_nobody(text) : text[0] == '\0'))
		return r;
	r = want ? pids_apply(dir, config, why) : clear_list(dir, why);
	if (r >= 0)
		changes_add(changes, FILE_NAME " had been changed");
	return r;
}

int pids_count_text(const char *text, int proc_fd, uint64_t *ret_tasks, uint64_t *ret_processes)
{
	_cleanup_free_ unsigned long *list = NULL;
	_cleanup_closedir_ DIR *dir = NULL;
	ssize_t n = parse_list(text, &list);
	struct dirent *entry;
	int r;

	if (n < 0)
		return (int)n;
	*ret_tasks = (uint64_t)n;
	*ret_processes = 0;
	r = io_opendir_at(proc_fd, ".", &dir);
	if (r < 0)
		return r;
	while (n > 0 && (entry = readdir(dir))) {
		unsigned long pid = strtoul(entry->d_name, NULL, 10);

		if (pid > 0 && bsearch(&pid, list, (size_t)n, sizeof(*list), by_number))
			(*ret_processes)++;
	}
	return 0;
}

int pids_count(const struct tracedir *dir, const struct trace_config *config, uint64_t *ret_tasks,
	       uint64_t *ret_processes)
{
	_cleanup_close_ int proc_fd = -EBADF;
	_cleanup_free_ char *text = NULL;
	int r;

	*ret_tasks = *ret_processes = 0;
	if (!pids_configured(config))
		return 0;
	r = tracedir_read(dir, FILE_NAME, &text, NULL);
	if (r < 0)
		return r;
	proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return proc_fd < 0 ? -errno : pids_count_text(text, proc_fd, ret_tasks, ret_processes);
}

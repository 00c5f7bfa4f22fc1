/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bench/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "tests/tools/common.h"

/* The fields of /proc/PID/stat that are wanted here; proc(5) */
struct process {
	pid_t pid, parent;
	bool is_kernel; /* a kernel thread */
	uint64_t rss_pages;
};

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

/* Sum over the lines that begin with @key: the number that follows after @skip words */
static uint64_t file_number(const char *path, const char *key, unsigned skip)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	uint64_t sum = 0;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		const char *p = line + strlen(key);

		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		for (unsigned i = 0; i < skip; i++) {
			p += strspn(p, " \t");
			p += strcspn(p, " \t");
		}
		sum += strtoull(p, NULL, 10);
	}
	return sum;
}

static bool process_read(const char *pid, struct process *ret)
{
	char path[64], text[1024];
	unsigned flags = 0;
	const char *end;
	size_t n;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	_cleanup_fclose_ FILE *f = fopen(path, "re");

	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	end = strrchr(text, ')'); /* a name may have blanks and brackets */
	ret->pid = (pid_t)strtol(pid, NULL, 10);
	if (!end || sscanf(end, ") %*c %d %*d %*d %*d %*d %u", &ret->parent, &flags) != 2 ||
	    sscanf(end,
		   ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
		   "%*d %*u %*u %" SCNu64,
		   &ret->rss_pages) != 1)
		return false;
	ret->is_kernel = flags & PF_KTHREAD;
	return true;
}

static unsigned processes_read(struct process **ret)
{
	DIR *dir = opendir("/proc");
	struct process *all = NULL;
	struct dirent *entry;
	unsigned n = 0;

	if (!dir)
		err(2, "/proc");
	while ((entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (n % 256 == 0) {
			all = realloc(all, (n + 256) * sizeof(*all));
			if (!all)
				err(2, "realloc");
		}
		if (process_read(entry->d_name, &all[n]))
			n++;
	}
	(void)closedir(dir);
	*ret = all;
	return n;
}

/* Exact, where /proc/PID/stat counts in ticks; ended threads are in it */
static uint64_t process_cpu(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static uint64_t process_switches(pid_t pid)
{
	char path[320];
	struct dirent *entry;
	uint64_t sum = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, entry->d_name);
		sum += file_number(path, "voluntary_ctxt_switches:", 0);
		sum += file_number(path, "nonvoluntary_ctxt_switches:", 0);
	}
	if (dir)
		(void)closedir(dir);
	return sum;
}

static bool descends(const struct process *all, unsigned n, pid_t pid, pid_t root)
{
	while (pid != root && pid > 1) {
		pid_t parent = 0;

		for (unsigned i = 0; i < n; i++)
			if (all[i].pid == pid)
				parent = all[i].parent;
		pid = parent;
	}
	return pid == root;
}

void proc_tree_read(pid_t root, struct proc_tree *ret)
{
	_cleanup_free_ struct process *all = NULL;
	unsigned n = processes_read(&all);

	*ret = (struct proc_tree){0};
	for (unsigned i = 0; i < n; i++) {
		if (!descends(all, n, all[i].pid, root))
			continue;
		ret->cpu_nsec += process_cpu(all[i].pid);
		ret->rss += all[i].rss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
		ret->switches += process_switches(all[i].pid);
		ret->processes++;
	}
}

static uint64_t kernel_threads_nsec(void)
{
	_cleanup_free_ struct process *all = NULL;
	unsigned n = processes_read(&all);
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++) {
		char path[64];

		if (!all[i].is_kernel)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/schedstat", all[i].pid);
		sum += file_number(path, "", 0);
	}
	return sum;
}

/* Idle time is exact in /proc/stat (to a tick of 10 ms), busy time is what ticks happened to hit */
static uint64_t busy_nsec(void)
{
	uint64_t idle, iowait, steal;
	char line[256] = "";

	_cleanup_fclose_ FILE *f = fopen("/proc/stat", "re");

	if (!f || !fgets(line, sizeof(line), f) ||
	    sscanf(line, "cpu %*u %*u %*u %" SCNu64 " %" SCNu64 " %*u %*u %" SCNu64, &idle, &iowait,
		   &steal) != 3)
		errx(2, "cannot read /proc/stat");
	return now_nsec() * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) -
	       (idle + iowait + steal) * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

void proc_system_read(const char *disk_stat, struct proc_system *ret)
{
	ret->busy_nsec = busy_nsec();
	ret->kthread_nsec = kernel_threads_nsec();
	ret->cached = file_number("/proc/meminfo", "Cached:", 0) * KIB;
	/* sectors of 512 bytes, whatever the disk's own are; Documentation/block/stat.rst */
	ret->disk_bytes = 0;
	if (disk_stat)
		ret->disk_bytes = 512 * file_number(disk_stat, "", 6);
}

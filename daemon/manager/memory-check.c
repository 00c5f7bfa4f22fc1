/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "daemon/manager/memory-check.h"

uint64_t memory_wanted(const struct daemon_config *config, unsigned n_cpus)
{
	uint64_t wanted = 0;

	for (size_t i = 0; i < config->n_sessions; i++) {
		const struct session_config *s = config->sessions[i];

		if (s->enabled && s->mode == SESSION_FLIGHT)
			wanted += MIN(s->snapshot.memory, s->trace.buffer_size * n_cpus);
	}
	return wanted;
}

int memory_limit(int root_fd, uint64_t *ret)
{
	_cleanup_free_ char *groups = NULL, *path = NULL, *text = NULL;
	char *own;
	int r;

	r = io_read_file_at(root_fd, "proc/self/cgroup", &groups, NULL);
	if (r < 0)
		return r;
	/* Lines "ID:CONTROLLERS:PATH": the unified hierarchy has number 0 and comes last */
	own = strstr(groups, "0::/");
	if (!own || (own != groups && own[-1] != '\n'))
		return -ENOENT;
	own += strlen("0::/");
	own[strcspn(own, "\n")] = '\0';
	path = strf("sys/fs/cgroup/%s/memory.max", own);
	r = path ? io_read_file_at(root_fd, path, &text, NULL) : -ENOMEM;
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	r = parse_u64(text, ret);
	return r == -EINVAL ? -ENOENT : r; /* "max" */
}

/* Bytes of a state directory that is itself in memory; what is written there counts as ours */
static uint64_t kept_in_memory(const struct daemon_config *config, int state_fd)
{
	uint64_t room, sum = 0;
	struct statfs fs;

	if (state_fd < 0 || fstatfs(state_fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return 0;
	room = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
	for (size_t i = 0; i < config->n_sessions && sum < room; i++)
		if (config->sessions[i]->enabled)
			sum += MIN(config->sessions[i]->storage.max_use, room);
	return MIN(sum, room);
}

void memory_check(const struct daemon_config *config, int state_fd)
{
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t wanted = memory_wanted(config, (unsigned)MAX(online, 1L)), limit, kept;

	if (root_fd < 0 || memory_limit(root_fd, &limit) < 0)
		return;
	if (wanted > limit)
		log_warning(
			"snapshots of all flight sessions at once may take %llu MiB of memory, but flyrecd is killed beyond %llu MiB: lower Memory= of the sessions or raise MemoryMax= of its unit",
			(unsigned long long)(wanted / MIB), (unsigned long long)(limit / MIB));
	kept = kept_in_memory(config, state_fd);
	if (kept > limit)
		log_warning(
			"the state directory is in memory (tmpfs), and sessions may keep %llu MiB there, but flyrecd is killed beyond %llu MiB: lower MaxUse= of the sessions or raise MemoryMax= of its unit",
			(unsigned long long)(kept / MIB), (unsigned long long)(limit / MIB));
}

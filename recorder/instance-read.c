/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an instance says and holds
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <tracefs.h>

#include "recorder/instance-internal.h"
#include "recorder/kernel-text.h"
#include "recorder/last-boot.h"
#include "recorder/ring-memory.h"

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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is known of tasks, in flyrec's own section of a trace.dat: a part for each look that
 * somebody took at them, with those that are new since the part before, or are in another control
 * group.
 *
 *   { size:u32 (of all of it, a multiple of 16) checksum:u32 (of what follows)
 *     boot:u64 (when it was, nanoseconds since boot)
 *     first:u32 strings:u32 tasks:u32 hierarchy:u32
 *     { length bytes } * strings
 *     { pid tgid start name cgroup } * tasks
 *     zeros }*
 *
 * Lengths and all of a task are numbers of 7 bits a byte, the lowest first, the 8th bit set in all
 * but the last: pid and start less those of the task before, tgid less pid, signs folded in (0, -1,
 * 1, -2 …); start in hundredths of a second since boot; name and cgroup by the number of their
 * string, cgroup plus 1, 0: not known. Strings are numbered through all parts, the first of this
 * part being "first"; where that is 0 numbers begin anew. So a part can be added in place, and one
 * that is damaged takes none with it but those that need its strings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OWN_TASKS_HEAD 32U
#define OWN_TASKS_HZ   100U /* of start times: USER_HZ of the kernel */

struct own_task {
	int32_t pid, tgid;
	uint64_t start; /* hundredths of a second since boot */
	const char *name;
	const char *cgroup; /* path in the hierarchy that systemd has; NULL: not known */
};

/* A look at tasks */
struct own_look {
	uint64_t boot; /* nanoseconds since boot */
	uint32_t
		hierarchy; /* number of systemd's own, as in /proc/PID/cgroup; 0: the unified one */
};

/* --- reading */

struct own_tasks_reader {
	/* Less than 0 ends it; @task is good during the call */
	int (*on_task)(void *userdata, const struct own_look *look, const struct own_task *task);
	/* A part is damaged: bytes from the beginning; may be NULL */
	void (*on_damage)(void *userdata, size_t at);
	void *userdata;
};

/**
 * own_tasks_read() - all tasks, in the order in which they were added
 * Return: 0, what on_task() returned, or -ENOMEM.
 */
int own_tasks_read(const uint8_t *bytes, size_t size, bool big_endian,
		   const struct own_tasks_reader *reader);

/* --- writing */

/* What of a file is known that has parts already */
struct own_tasks_writer;

struct own_tasks_writer *own_tasks_writer_new(void);
struct own_tasks_writer *own_tasks_writer_free(struct own_tasks_writer *writer);

enum {
	OWN_TASKS_E_FULL = 1,
};

/**
 * own_tasks_begin() - a part
 * @room: bytes that it may have
 * Whoever cannot write one that has been made calls own_tasks_forget().
 */
void own_tasks_begin(struct own_tasks_writer *writer, const struct own_look *look, size_t room);

/**
 * own_tasks_add() - one more into this part
 * Best by pid. Return: 0, OWN_TASKS_E_FULL or -ENOMEM.
 */
int own_tasks_add(struct own_tasks_writer *writer, const struct own_task *task);

/**
 * own_tasks_end() - the part as it is in a file
 * @ret: malloc'ed; NULL: it would have no task
 * Return: 0 or -ENOMEM.
 */
int own_tasks_end(struct own_tasks_writer *writer, bool big_endian, uint8_t **ret,
		  size_t *ret_size);

/* The next part needs none of those before */
void own_tasks_forget(struct own_tasks_writer *writer);

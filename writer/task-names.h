/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names of tasks, for the PROCESS INFORMATION section: collected from the kernel's
 * saved_cmdlines and from /proc, kept over the kernel's forgetting, the newest name of a pid wins.
 * With them who these tasks are, for flyrec's own section: as found in /proc on the same way.
 * One object a session, shared by its jobs; any thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"
#include "formats/own-tasks.h"

struct task_names;

/**
 * task_names_new() - empty
 * @max: names kept at most; beyond it those seen longest ago go first
 */
struct task_names *task_names_new(size_t max);

/* Hold it for a job that may outlive the session: one more task_names_free() is due. Returns it. */
struct task_names *task_names_ref(struct task_names *names);
void task_names_free(struct task_names *names);

/**
 * task_names_merge() - take in the text of saved_cmdlines: "PID COMM\n" lines, "<...>" skipped
 * Return: 0 or -ENOMEM.
 */
int task_names_merge(struct task_names *names, const char *text);

/**
 * task_names_scan_proc() - take in every thread that is alive now
 * @proc_fd: /proc. Tasks that end while it looks are left out.
 *
 * It costs a file for each thread of the machine, so nothing is done if it was within the last
 * second: the name of a task that has run since then is in saved_cmdlines.
 * Return: 0 or negative errno.
 */
int task_names_scan_proc(struct task_names *names, int proc_fd);

/**
 * task_names_look() - find out who those tasks are whose names have been merged since the last look
 * or scan. Some files of /proc for each that is new, a thousand tasks at most. Return: 0 or
 * negative errno.
 */
int task_names_look(struct task_names *names, int proc_fd);

/**
 * task_names_put_tasks() - who they are, for a file
 * @since: what this returned there for the file's part before; 0: it has none yet
 * @room: bytes that there are
 * @ret: malloc'ed; NULL: nothing is new
 * Return: 0, OWN_TASKS_E_FULL: that is not all, or -ENOMEM.
 */
int task_names_put_tasks(struct task_names *names, uint32_t *since, struct own_tasks_writer *writer,
			 size_t room, uint8_t **ret, size_t *ret_size);

/**
 * task_names_next_room() - bytes that the next file should have for names: those seen since this
 * one was begun, and as many again as may come Return: 0 or -ENOMEM.
 */
int task_names_next_room(struct task_names *names, size_t *ret);

/**
 * task_names_file_begun() - it has been made, by what is known now
 */
void task_names_file_begun(struct task_names *names);

/**
 * task_names_fill() - is it time for the next file, as this one's @room bytes will not do for long?
 */
bool task_names_fill(struct task_names *names, size_t room);

/**
 * task_names_render() - as the section wants it, sorted by pid, filled up with newlines
 * @room: bytes; if they are not enough, the names seen longest ago are left out
 * @ret_text: malloc'ed, exactly @room bytes
 * @ret_used: bytes that hold names; may be NULL
 */
int task_names_render(struct task_names *names, size_t room, char **ret_text, size_t *ret_used);

DEFINE_CLEANUP(struct task_names *, task_names_free)

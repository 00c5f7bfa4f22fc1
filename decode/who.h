/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who a task is beyond its name: process, unit, container. From what files say of tasks
 * (formats/own-tasks.h), and from events that tell of new tasks and of other control groups, where
 * these were recorded: so that a child that lives for two milliseconds has its parent's unit. Of a
 * pid that is used twice, whoever has it at that time.
 *
 * who_…() themselves: one thread.
 */
#pragma once

#include "decode/cgroup-names.h"
#include "decode/decoder.h"
#include "formats/own-tasks.h"

/* A process; all its threads are the same */
struct task_who {
	int32_t tgid;			/* 0: not known */
	const struct task_place *place; /* NULL: not known */
	char process[16];		/* its name, NUL-terminated; "": not known */
};

/* A control group */
struct task_place {
	struct cgroup_names names;
	bool wanted;		  /* by the patterns of who_new() */
	struct task_who nameless; /* whoever is there and not known otherwise */
	char path[];
};

struct who;

/**
 * who_new() - knows nobody
 * @keep: what was handed out stays the same until who_free(), so that other threads may read it;
 * else until the next event, and memory does not grow with the number of processes that come and go
 * @units, @containers: patterns, fnmatch(3), for task_place.wanted; NULL: any will do. A unit also
 * goes by the name of the user's manager that it is in, and without ".service"; a container by the
 * beginning of its id. Borrowed.
 */
int who_new(char *const *units, char *const *containers, bool keep, struct who **ret);
struct who *who_free(struct who *who);
DEFINE_CLEANUP(struct who *, who_free)

/**
 * who_fits_unit() - are tasks of such a control group in a unit of this pattern, as in who_new()?
 */
bool who_fits_unit(const char *pattern, const struct cgroup_names *names);

/* What is looked up once in a file */
struct who_file {
	uint8_t *learns; /* [SUBBUF_EVENT_IDS]: what an event tells; 0: nothing */
	struct field fields[8][3];
	uint32_t hierarchy; /* as in struct own_look */
	bool says;	    /* the file says who its tasks are */
};

/**
 * who_add_file() - take in what a file says
 * @ret: undo with who_file_done()
 * @ret_damage: what of that is damaged and was left out; "": nothing
 * Return: 0, also if it says nothing, or negative errno with @why.
 */
int who_add_file(struct who *who, const struct decoder *decoder, struct who_file *ret,
		 struct fault *ret_damage, struct fault *why);
void who_file_done(struct who_file *file);

/* The same for whoever has no need of its events */
int who_learn_event(struct who *who, const struct who_file *file, const struct decode_event *event);

/**
 * who_event() - learn from an event; to be called for all of them in their order
 * Return: 0 or -ENOMEM.
 */
static inline int who_event(struct who *who, const struct who_file *file,
			    const struct decode_event *event)
{
	return file->learns[event->id] ? who_learn_event(who, file, event) : 0;
}

/**
 * who_tell() - somebody has looked: at @ts the task was this
 * Return: 0 or -ENOMEM.
 */
int who_tell(struct who *who, const struct own_task *task, uint64_t ts);

/**
 * who_find() - whose was the pid at that time?
 * @ts: as decoder_time(); UINT64_MAX: at last
 * Return: NULL: not known.
 */
const struct task_who *who_find(const struct who *who, int32_t pid, uint64_t ts);

/**
 * who_each() - call @take for all that files said, of each pid the newest first
 * @from, @to: when it was so; UINT64_MAX: still
 * Return: 0, or what @take returned if that is less.
 */
int who_each(const struct who *who,
	     int (*take)(void *userdata, int32_t pid, uint64_t from, uint64_t to,
			 const struct task_who *is),
	     void *userdata);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fnmatch.h>
#include <search.h>
#include <string.h>

#include "basic/array-room.h"
#include "basic/pid-map.h"
#include "basic/strv.h"
#include "decode/who.h"
#include "formats/own-clocks.h"
#include "formats/own-section.h"
#include "formats/own-tasks.h"

/* Start times are cut to hundredths of a second; clocks drift from each other between readings */
#define TICK_NSEC (NSEC_PER_SEC / OWN_TASKS_HZ)
#define NEAR_NSEC (5 * TICK_NSEC)

/* Between a control group's first task and the event of its birth */
#define BORN_NSEC (NSEC_PER_SEC / 1000)

/* Of a pid: it takes days to get round so often, and a damaged file says so at once */
#define SAID_MAX 4096

#define WHOS_CHUNK   512
#define CLONE_THREAD 0x10000

/* Of a task that somebody had to make, but nobody is known to have */
static const struct task_who nobody;

enum tells {
	TELLS_NOTHING,
	TELLS_FORK,
	TELLS_NEW_TASK,
	TELLS_WAKEUP_NEW,
	TELLS_EXEC,
	TELLS_MOVE,
	TELLS_POPULATED,
};

static const struct known_event {
	const char *system, *name;
	const char *fields[3]; /* without which it tells nothing */
} known_events[] = {
	[TELLS_FORK] = {"sched", "sched_process_fork", {"child_pid", "parent_pid"}},
	[TELLS_NEW_TASK] = {"task", "task_newtask", {"pid", "clone_flags", "comm"}},
	[TELLS_WAKEUP_NEW] = {"sched", "sched_wakeup_new", {"pid"}},
	[TELLS_EXEC] = {"sched", "sched_process_exec", {"pid", "filename"}},
	[TELLS_MOVE] = {"cgroup", "cgroup_attach_task", {"pid", "dst_path", "dst_root"}},
	[TELLS_POPULATED] = {"cgroup", "cgroup_notify_populated", {"val", "path", "root"}},
};

/* What a file said: from then on, until the next one */
struct said {
	struct said *next; /* an earlier one */
	uint64_t from;
	uint64_t start; /* of the task, as in struct own_task */
	bool first;	/* that it said of this task, and no event has told of its birth */
	struct task_who who;
};

struct slot {
	int32_t pid;
	struct said *said;
	/* What an event told last; NULL: nothing, or that is over */
	const struct task_who *who;
	uint64_t from;
	struct task_who *own; /* made for it last; NULL: none yet */
};

struct whos {
	struct whos *next;
	size_t n;
	struct task_who list[WHOS_CHUNK];
};

struct who {
	char *const *units, *const *containers;
	bool keep;
	struct pid_map pids;
	struct slot *slots; /* by their indexes */
	size_t room;
	void *places; /* tree of struct task_place, by path */
	struct whos *whos;
	struct said *forgotten; /* of SAID_MAX */

	/* A control group that has got its first task, and whoever put it there: maybe by clone3 */
	const struct task_place *populated; /* NULL: none */
	int32_t populated_by;
	uint64_t populated_at;
};

/* --- control groups */

static int by_path(const void *a, const void *b)
{
	const struct task_place *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static void free_place(void *p)
{
	struct task_place *place = p;

	cgroup_names_done(&place->names);
	free(place);
}

static bool fits_name(const char *pattern, const char *name)
{
	_cleanup_free_ char *service = NULL;

	if (!name)
		return false;
	if (fnmatch(pattern, name, FNM_NOESCAPE) == 0)
		return true;
	service = strf("%s.service", pattern);
	return service && fnmatch(service, name, FNM_NOESCAPE) == 0;
}

bool who_fits_unit(const char *pattern, const struct cgroup_names *names)
{
	return fits_name(pattern, names->unit) || fits_name(pattern, names->manager);
}

static bool fits_container(const char *pattern, const char *id)
{
	_cleanup_free_ char *begins = strf("%s*", pattern);

	return id && begins && fnmatch(begins, id, 0) == 0;
}

static bool is_wanted(const struct who *who, const struct cgroup_names *names)
{
	bool unit = !who->units, container = !who->containers;

	STRV_FOREACH (pattern, who->units)
		unit |= who_fits_unit(*pattern, names);
	STRV_FOREACH (pattern, who->containers)
		container |= fits_container(*pattern, names->container);
	return unit && container;
}

/* @path is not longer than @size; NULL without memory */
static const struct task_place *get_place(struct who *who, const char *path, size_t size)
{
	struct task_place *place, **found;

	size = strnlen(path, size);
	place = calloc(1, sizeof(*place) + size + 1);
	if (!place)
		return NULL;
	memcpy(place->path, path, size);
	found = tsearch(place, &who->places, by_path);
	if (!found || *found != place) {
		free(place);
		return found ? *found : NULL;
	}
	if (cgroup_names_parse(place->path, &place->names) < 0) {
		tdelete(place, &who->places, by_path);
		free(place);
		return NULL;
	}
	place->wanted = is_wanted(who, &place->names);
	place->nameless.place = place;
	return place;
}

/* --- tasks */

int who_new(char *const *units, char *const *containers, bool keep, struct who **ret)
{
	_cleanup_(who_freep) struct who *who = calloc(1, sizeof(*who));

	if (!who)
		return -ENOMEM;
	who->units = units;
	who->containers = containers;
	who->keep = keep;
	*ret = TAKE_PTR(who);
	return 0;
}

static void free_said(struct said *list)
{
	for (struct said *said = list, *next; said; said = next) {
		next = said->next;
		free(said);
	}
}

struct who *who_free(struct who *who)
{
	if (!who)
		return NULL;
	for (size_t i = 0; i < who->room; i++)
		free_said(who->slots[i].said);
	free_said(who->forgotten);
	for (struct whos *whos = who->whos, *next; whos; whos = next) {
		next = whos->next;
		free(whos);
	}
	tdestroy(who->places, free_place);
	free(who->slots);
	pid_map_done(&who->pids);
	free(who);
	return NULL;
}

static void fill(struct task_who *who, int32_t tgid, const struct task_place *place,
		 const char *process, size_t size)
{
	*who = (struct task_who){.tgid = tgid, .place = place};
	size = strnlen(process, MIN(size, sizeof(who->process) - 1));
	memcpy(who->process, process, size);
}

/* NULL without memory */
static struct task_who *new_who(struct who *who)
{
	if (!who->whos || who->whos->n == WHOS_CHUNK) {
		struct whos *more = malloc(sizeof(*more));

		if (!more)
			return NULL;
		more->n = 0;
		more->next = who->whos;
		who->whos = more;
	}
	return &who->whos->list[who->whos->n++];
}

/* Return: 0 or -ENOMEM */
static int set_who(struct who *who, struct slot *slot, int32_t tgid, const struct task_place *place,
		   const char *process, size_t size)
{
	if (who->keep || !slot->own)
		slot->own = new_who(who);
	if (!slot->own)
		return -ENOMEM;
	fill(slot->own, tgid, place, process, size);
	slot->who = slot->own;
	return 0;
}

/* NULL: nothing was ever told of it */
static const struct slot *find_slot(const struct who *who, int32_t pid)
{
	size_t index = pid_map_find(&who->pids, pid);

	return index < who->room ? &who->slots[index] : NULL;
}

/* NULL without memory */
static struct slot *get_slot(struct who *who, int32_t pid)
{
	size_t index;

	if (pid_map_add(&who->pids, pid, &index) < 0 ||
	    array_room(&who->slots, &who->room, index, sizeof(*who->slots)) < 0)
		return NULL;
	who->slots[index].pid = pid;
	return &who->slots[index];
}

/*
 * What is newer, of what a file and what an event said. When a task was born an event tells more
 * exactly: before that whoever had the pid may still have it.
 */
static const struct task_who *find_own(const struct who *who, int32_t pid, uint64_t ts)
{
	const struct slot *slot = find_slot(who, pid);
	const struct said *said;

	if (!slot)
		return NULL;
	said = slot->said;
	while (said && said->from > ts)
		said = said->next;
	if (slot->who && slot->from <= ts &&
	    (!said || slot->from >= said->from || (said->first && ts - said->from < NEAR_NSEC)))
		return slot->who;
	return said ? &said->who : NULL;
}

/* A process is where its first thread is */
const struct task_who *who_find(const struct who *who, int32_t pid, uint64_t ts)
{
	const struct task_who *own, *process;

	if (pid == 0)
		return NULL;
	own = find_own(who, pid, ts);
	if (!own || own->tgid == 0 || own->tgid == pid)
		return own;
	process = find_own(who, own->tgid, ts);
	return process && process->tgid == own->tgid ? process : own;
}

int who_each(const struct who *who,
	     int (*take)(void *userdata, int32_t pid, uint64_t from, uint64_t to,
			 const struct task_who *is),
	     void *userdata)
{
	int r = 0;

	for (size_t i = 0; i < who->room && r >= 0; i++) {
		uint64_t to = UINT64_MAX;

		for (const struct said *said = who->slots[i].said; said && r >= 0;
		     said = said->next) {
			r = take(userdata, who->slots[i].pid, said->from, to, &said->who);
			to = said->from;
		}
	}
	return MIN(r, 0);
}

/* --- from files */

/* To tell a time since boot by the trace's clock */
struct clocks {
	const struct decoder *decoder;
	struct own_clocks own;
	const struct own_clock *list[OWN_CLOCKS_MAX];
	size_t n;
};

static int load_clocks(const struct decoder *decoder, struct clocks *ret, struct fault *why)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	const struct trace_dat *dat = decoder_dat(decoder);
	size_t size;
	int r = own_section_read(dat, OWN_CLOCKS, &bytes, &size, why);

	*ret = (struct clocks){.decoder = decoder};
	if (r == -ENOENT || r == -EBADMSG)
		return 0;
	if (r < 0)
		return r;
	if (decoder_facts(decoder)->in_usecs &&
	    own_clocks_take(bytes, size, dat->big_endian, &ret->own, NULL, NULL) >= 0)
		ret->n = own_clocks_list(&ret->own, ret->list);
	return 0;
}

static uint64_t shift(const struct own_clock *reading, uint64_t boot, double rate)
{
	uint64_t distance = boot > reading->boot ? boot - reading->boot : reading->boot - boot;

	distance = (uint64_t)((double)distance * rate);
	/* A task that is older than the clock's beginning has been there all the time */
	return boot > reading->boot ? reading->trace + distance
				    : reading->trace - MIN(reading->trace, distance);
}

/* How fast the trace's clock goes, unless it stood still meanwhile as the machine was suspended */
static double rate_between(const struct own_clock *a, const struct own_clock *b)
{
	double rate;

	if (b->boot < a->boot + NSEC_PER_SEC || b->trace < a->trace)
		return 1;
	rate = (double)(b->trace - a->trace) / (double)(b->boot - a->boot);
	return rate > 0.99 && rate < 1.01 ? rate : 1;
}

/* By the nearest reading; 0 where none tells: then there is no before and after */
static uint64_t to_trace(const struct clocks *clocks, uint64_t boot)
{
	const struct own_clock *best = NULL, *before = NULL;
	uint64_t least = UINT64_MAX, ts;
	double rate = 1;

	for (size_t i = 0; i < clocks->n; i++) {
		const struct own_clock *c = clocks->list[i];
		uint64_t distance = c->boot > boot ? c->boot - boot : boot - c->boot;

		if (c->flags & OWN_CLOCK_NO_TRACE)
			continue;
		if (before)
			rate = rate_between(before, c);
		before = c;
		if (distance < least) {
			least = distance;
			best = c;
		}
	}
	if (!best)
		return 0;
	ts = shift(best, boot, rate);
	return ts == 0 ? 0 : decoder_time(clocks->decoder, ts);
}

static bool is_same(const struct task_who *who, const struct own_task *task,
		    const struct task_place *place)
{
	return who->tgid == task->tgid && who->place == place &&
	       strncmp(who->process, task->name, sizeof(who->process) - 1) == 0;
}

/* Without the first of all, which somebody may still have */
static void forget_first(struct who *who, struct slot *slot)
{
	struct said **last = &slot->said;

	while ((*last)->next)
		last = &(*last)->next;
	(*last)->next = who->forgotten;
	who->forgotten = *last;
	*last = NULL;
}

/* @from: of a task that is not known yet; @look: else, when it was seen so
 * Return: 0, 1 there are so many of it that the first was forgotten, or -ENOMEM. */
static int add_said(struct who *who, const struct own_task *task, uint64_t from, uint64_t look)
{
	const struct task_place *place = NULL;
	struct slot *slot = task->pid > 0 ? get_slot(who, task->pid) : NULL;
	struct said **at, *said;
	unsigned n = 0;
	bool first;

	if (task->pid <= 0)
		return 0;
	if (task->cgroup)
		place = get_place(who, task->cgroup, SIZE_MAX);
	if (!slot || (task->cgroup && !place))
		return -ENOMEM;
	for (said = slot->said; said; said = said->next)
		n++;
	if (n >= SAID_MAX)
		forget_first(who, slot);
	for (said = slot->said; said; said = said->next)
		if (said->start == task->start)
			break;
	first = !said;
	if (!first)
		from = look;
	for (at = &slot->said; *at && (*at)->from > from; at = &(*at)->next)
		;
	if (*at && (*at)->start == task->start && is_same(&(*at)->who, task, place))
		return 0;
	said = malloc(sizeof(*said));
	if (!said)
		return -ENOMEM;
	*said = (struct said){
		.next = *at,
		.from = from,
		.start = task->start,
		.first = first,
	};
	fill(&said->who, task->tgid, place, task->name, SIZE_MAX);
	*at = said;
	return n >= SAID_MAX;
}

struct loading {
	struct who *who;
	struct who_file *file;
	const struct clocks *clocks;
	bool damaged;
};

static int on_task(void *userdata, const struct own_look *look, const struct own_task *task)
{
	struct loading *l = userdata;
	uint64_t from = task->start > UINT64_MAX / TICK_NSEC ? 0 : task->start * TICK_NSEC;
	int r;

	l->file->says = true;
	l->file->hierarchy = look->hierarchy;
	from = to_trace(l->clocks, from);
	r = add_said(l->who, task, from - MIN(from, TICK_NSEC), to_trace(l->clocks, look->boot));
	l->damaged |= r > 0;
	return MIN(r, 0);
}

static void on_damage(void *userdata, size_t at)
{
	struct loading *l = userdata;

	(void)at;
	l->damaged = true;
}

static int load_tasks(struct who *who, const struct decoder *decoder, struct who_file *file,
		      struct fault *ret_damage, struct fault *why)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	_cleanup_free_ struct clocks *clocks = malloc(sizeof(*clocks));
	_cleanup_free_ uint8_t *bytes = NULL;
	struct loading l = {.who = who, .file = file, .clocks = clocks};
	const struct own_tasks_reader reader = {
		.on_task = on_task,
		.on_damage = on_damage,
		.userdata = &l,
	};
	size_t size;
	int r = clocks ? load_clocks(decoder, clocks, why) : -ENOMEM;

	if (r >= 0)
		r = own_section_read(dat, OWN_TASKS, &bytes, &size, why);
	if (r == -EBADMSG)
		*ret_damage = *why;
	if (r == -ENOENT || r == -EBADMSG)
		return 0;
	if (r >= 0)
		r = own_tasks_read(bytes, size, dat->big_endian, &reader);
	if (l.damaged)
		(void)fault_set(ret_damage, -EBADMSG,
				"%s: what it says of its tasks is damaged in part", dat->path);
	return r;
}

static int find_events(const struct decoder *decoder, struct who_file *file)
{
	const struct trace_dat *dat = decoder_dat(decoder);

	file->learns = calloc(SUBBUF_EVENT_IDS, 1);
	if (!file->learns)
		return -ENOMEM;
	for (size_t format = 0; format < dat->n_formats; format++)
		for (size_t k = TELLS_FORK; k < ARRAY_SIZE(known_events); k++) {
			const struct known_event *known = &known_events[k];
			uint32_t id = decoder_format_id(decoder, format);
			size_t n = 0;

			if (strcmp(known->name, decoder_name(decoder, format)) != 0 ||
			    strcmp(known->system, dat->systems[dat->formats[format].system]) != 0 ||
			    id >= SUBBUF_EVENT_IDS)
				continue;
			for (; n < ARRAY_SIZE(known->fields) && known->fields[n]; n++) {
				const struct field *field =
					decoder_field(decoder, format, known->fields[n]);

				if (!field)
					break;
				file->fields[k][n] = *field;
			}
			if (n == ARRAY_SIZE(known->fields) || !known->fields[n])
				file->learns[id] = (uint8_t)k;
		}
	return 0;
}

int who_add_file(struct who *who, const struct decoder *decoder, struct who_file *ret,
		 struct fault *ret_damage, struct fault *why)
{
	struct who_file file = {};
	int r = find_events(decoder, &file);

	*ret_damage = (struct fault){};
	if (r >= 0)
		r = load_tasks(who, decoder, &file, ret_damage, why);
	if (r < 0) {
		who_file_done(&file);
		return r == -ENOMEM
			       ? fault_errno(why, r, "%s: cannot read", decoder_dat(decoder)->path)
			       : r;
	}
	*ret = file;
	return 0;
}

void who_file_done(struct who_file *file)
{
	free(file->learns);
	*file = (struct who_file){};
}

int who_tell(struct who *who, const struct own_task *task, uint64_t ts)
{
	struct slot *slot = task->pid > 0 ? get_slot(who, task->pid) : NULL;
	int r = add_said(who, task, ts, ts);

	if (r >= 0 && slot && slot->from <= ts)
		slot->who = NULL;
	return MIN(r, 0);
}

/* --- from events */

/* What systemd starts goes elsewhere at once, and it need not be recorded where to */
static bool is_manager(const struct task_place *place)
{
	return ends_with(place->path, "/init.scope");
}

/* Where a child is */
static const struct task_place *birthplace(struct who *who, int32_t parent, uint64_t ts)
{
	const struct task_who *from = who_find(who, parent, ts);

	if (who->populated && who->populated_by == parent && ts >= who->populated_at &&
	    ts - who->populated_at < BORN_NSEC)
		return TAKE_PTR(who->populated);
	return from && from->place && !is_manager(from->place) ? from->place : NULL;
}

/*
 * A new task has its parent's control group, unless a file says another: it was born into that, as
 * systemd does it, or was there when somebody looked.
 * @tgid: 0: not known
 */
static int learn_birth(struct who *who, int32_t pid, int32_t parent, int32_t tgid,
		       const char *process, size_t size, uint64_t ts)
{
	struct slot *slot = pid > 0 ? get_slot(who, pid) : NULL;
	const struct task_place *place;

	if (pid <= 0)
		return 0;
	if (!slot)
		return -ENOMEM;
	/* Several kinds of events may tell of it; the first one tells most */
	if (slot->who && slot->from <= ts && ts - slot->from < NEAR_NSEC)
		return 0;
	slot->from = ts;
	slot->who = NULL;
	for (struct said *said = slot->said; said; said = said->next)
		if (said->from < ts + NEAR_NSEC && ts < said->from + NEAR_NSEC) {
			said->from = MIN(said->from, ts);
			said->first = false;
			return 0;
		}
	place = birthplace(who, parent, ts);
	if (tgid != 0)
		return set_who(who, slot, tgid, place, process, size);
	slot->who = place ? &place->nameless : &nobody;
	return 0;
}

static int learn_exec(struct who *who, int32_t pid, const char *file, size_t size, uint64_t ts)
{
	const struct task_who *before = who_find(who, pid, ts);
	struct slot *slot = pid > 0 ? get_slot(who, pid) : NULL;
	const char *name;

	if (pid <= 0)
		return 0;
	if (!slot)
		return -ENOMEM;
	size = strnlen(file, size);
	name = memrchr(file, '/', size);
	name = name ? name + 1 : file;
	slot->from = ts;
	return set_who(who, slot, pid, before ? before->place : NULL, name,
		       (size_t)(file + size - name));
}

static int learn_move(struct who *who, int32_t pid, const char *path, size_t size, uint64_t ts)
{
	const struct task_who *before = who_find(who, pid, ts);
	struct slot *slot = pid > 0 ? get_slot(who, pid) : NULL;
	const struct task_place *place;
	char process[sizeof(before->process)] = "";

	if (pid <= 0)
		return 0;
	place = get_place(who, path, size);
	if (!slot || !place)
		return -ENOMEM;
	if (before)
		(void)strcpy(process, before->process); /* which may be this slot's own */
	slot->from = ts;
	return set_who(who, slot, before ? before->tgid : 0, place, process, SIZE_MAX);
}

static int learn_populated(struct who *who, int32_t by, const char *path, size_t size, uint64_t ts)
{
	/* Those above it follow, if it was their first one, too */
	if (who->populated && who->populated_by == by && ts - who->populated_at < BORN_NSEC)
		return 0;
	who->populated = get_place(who, path, size);
	who->populated_by = by;
	who->populated_at = ts;
	return who->populated ? 0 : -ENOMEM;
}

/* Of the hierarchies that have units; to the root of one of several goes who is in the other */
static bool counts(const struct who_file *file, int64_t hierarchy, const char *path, size_t size)
{
	if (hierarchy != 0 && hierarchy != file->hierarchy)
		return false;
	return file->hierarchy == 0 || strnlen(path, size) != 1;
}

int who_learn_event(struct who *who, const struct who_file *file, const struct decode_event *event)
{
	const enum tells tells = file->learns[event->id];
	const struct field *f = file->fields[tells];
	const int32_t pid = (int32_t)field_number(&f[0], event);
	uint32_t size = 0;
	const char *text = "";
	bool thread;
	const struct task_who *parent;

	switch (tells) {
	case TELLS_FORK:
		return learn_birth(who, pid, (int32_t)field_number(&f[1], event), 0, "", 0,
				   event->ts);
	case TELLS_WAKEUP_NEW:
		return learn_birth(who, pid, event->pid, 0, "", 0, event->ts);
	case TELLS_NEW_TASK:
		thread = field_number(&f[1], event) & CLONE_THREAD;
		parent = thread ? who_find(who, event->pid, event->ts) : NULL;
		text = (const char *)field_bytes(&f[2], event, &size);
		return learn_birth(who, pid, event->pid,
				   !thread  ? pid
				   : parent ? parent->tgid
					    : 0,
				   thread ? "" : text, size, event->ts);
	case TELLS_EXEC:
		text = (const char *)field_bytes(&f[1], event, &size);
		return learn_exec(who, pid, text, size, event->ts);
	case TELLS_MOVE:
		text = (const char *)field_bytes(&f[1], event, &size);
		who->populated = NULL; /* that was it */
		return counts(file, field_signed(&f[2], event), text, size)
			       ? learn_move(who, pid, text, size, event->ts)
			       : 0;
	case TELLS_POPULATED:
		text = (const char *)field_bytes(&f[1], event, &size);
		return field_number(&f[0], event) == 1 &&
				       counts(file, field_signed(&f[2], event), text, size)
			       ? learn_populated(who, event->pid, text, size, event->ts)
			       : 0;
	case TELLS_NOTHING:
		break;
	}
	return 0;
}

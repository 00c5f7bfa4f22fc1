/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "writer/task-merge.h"
#include "writer/task-table.h"

struct task_merge {
	struct task_table *table;
	struct own_tasks_writer *writer;
	struct own_look look;
	uint32_t generation; /* of the look, 0: none yet */
	uint8_t *bytes;
	size_t size;
};

struct task_merge *task_merge_new(void)
{
	_cleanup_(task_merge_freep) struct task_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->table = task_table_new(SIZE_MAX);
	m->writer = own_tasks_writer_new();
	return m->table && m->writer ? TAKE_PTR(m) : NULL;
}

struct task_merge *task_merge_free(struct task_merge *m)
{
	if (!m)
		return NULL;
	task_table_free(m->table);
	own_tasks_writer_free(m->writer);
	free(m->bytes);
	free(m);
	return NULL;
}

/* The look is over: what it has brought becomes a part */
static int end_look(struct task_merge *m)
{
	_cleanup_free_ uint8_t *part = NULL;
	uint8_t *more;
	size_t size;
	int r;

	if (m->generation == 0)
		return 0;
	own_tasks_begin(m->writer, &m->look,
			OWN_SECTION_MAX / 2 - MIN(m->size, OWN_SECTION_MAX / 2));
	r = task_table_put(m->table, m->generation - 1, m->writer);
	if (r >= 0)
		r = own_tasks_end(m->writer, __BYTE_ORDER == __BIG_ENDIAN, &part, &size);
	if (r < 0 || !part)
		return r;
	more = realloc(m->bytes, m->size + size);
	if (!more)
		return -ENOMEM;
	memcpy(more + m->size, part, size);
	m->bytes = more;
	m->size += size;
	return 0;
}

static int on_task(void *userdata, const struct own_look *look, const struct own_task *task)
{
	struct task_merge *m = userdata;
	int r = 0;

	if (m->generation == 0 || look->boot != m->look.boot ||
	    look->hierarchy != m->look.hierarchy) {
		r = end_look(m);
		m->look = *look;
		m->generation++;
	}
	return r < 0 ? r : task_table_see(m->table, task, m->generation);
}

int task_merge_add(struct task_merge *m, const struct trace_dat *dat, struct fault *why)
{
	const struct own_tasks_reader reader = {.on_task = on_task, .userdata = m};
	_cleanup_free_ uint8_t *bytes = NULL;
	struct fault ignored;
	size_t size;
	int r = own_section_read(dat, OWN_TASKS, &bytes, &size, &ignored);

	if (r == -ENOENT || r == -EBADMSG)
		return 0;
	if (r < 0) {
		*why = ignored;
		return r;
	}
	r = own_tasks_read(bytes, size, dat->big_endian, &reader);
	return r < 0 ? fault_errno(why, r, "%s: cannot take its tasks", dat->path) : 0;
}

int task_merge_take(struct task_merge *m, uint8_t **ret, size_t *ret_size, struct fault *why)
{
	int r = end_look(m);

	if (r < 0)
		return fault_errno(why, r, "cannot write what is known of tasks");
	*ret = TAKE_PTR(m->bytes);
	*ret_size = m->size;
	m->generation = 0;
	return 0;
}

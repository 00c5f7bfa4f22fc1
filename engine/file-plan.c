/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>

#include "basic/strv.h"
#include "engine/file-plan.h"
#include "recorder/saved-cmdlines.h"

/* Names that the kernel knows; and, where asked for, those of all tasks alive */
static int refresh_names(const struct file_plan *plan, bool scan)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int proc = -EBADF;
	int r = saved_cmdlines_read(plan->params.source.tracing_fd, &text);

	if (r >= 0)
		r = task_names_merge(plan->names, text);
	if (r < 0 || !scan)
		return r;
	proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return proc < 0 ? -errno : task_names_scan_proc(plan->names, proc);
}

int file_plan_write_names(const struct file_plan *plan, struct trace_file *file, bool scan)
{
	_cleanup_free_ char *text = NULL;
	int r;

	if (!plan->names)
		return 0;
	r = refresh_names(plan, scan);
	if (r >= 0)
		r = task_names_render(plan->names, trace_file_names_room(file), &text, NULL);
	return r < 0 ? r : trace_file_write_names(file, text);
}

void file_plan_done(struct file_plan *plan)
{
	task_names_free(plan->names);
	strv_free(plan->systems);
	free(plan->clock_text);
	*plan = (struct file_plan){};
}

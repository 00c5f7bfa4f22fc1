/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "ctl/place.h"
#include "writer/merge-axis.h"

struct axis {
	struct axis_file *files;
	size_t n;
};

static void axis_free(struct axis *axis)
{
	for (size_t i = 0; i < axis->n; i++)
		axis_done(&axis->files[i]);
	free(axis->files);
}

static int axis_add(struct axis *axis, const struct source *source, struct fault *why)
{
	struct axis_file *file = &axis->files[axis->n];
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	int r = trace_dat_open_frame(source->fd, source->name, source->frame, &dat, why);

	if (r >= 0)
		r = axis_read(dat, file, why);
	if (r < 0)
		return r;
	file->path = source->name;
	axis->n++;
	return 0;
}

/* What is shown is the same for all CPUs */
static int check_cpus(const struct axis *axis, struct fault *why)
{
	struct time_rate shift;

	for (size_t i = 0; i < axis->n; i++)
		if (!time_shift_one(&axis->files[i].shift, &shift))
			return fault_set(why, -EOPNOTSUPP,
					 "%s: the TSC offsets of the guest's CPUs differ; merge "
					 "the files first",
					 axis->files[i].path);
	return 0;
}

int place_sources(struct source *sources, size_t n, struct fault *why)
{
	_cleanup_(axis_free) struct axis axis = {.files = calloc(n, sizeof(*axis.files))};
	size_t best;
	int r = axis.files ? 0 : fault_errno(why, -ENOMEM, "cannot read");

	for (size_t i = 0; i < n && r >= 0; i++)
		r = axis_add(&axis, &sources[i], why);
	if (r >= 0)
		r = check_cpus(&axis, why);
	if (r >= 0)
		r = axis_place(axis.files, n, &best, why);
	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct axis_file *file = &axis.files[i];

		sources[i].placed = true;
		sources[i].dated = file->dated;
		sources[i].rate = axis_rate(file, 0);
		sources[i].offset = (int64_t)((uint64_t)axis.files[best].date_usec * NSEC_PER_USEC +
					      file->moved);
		/* that of a frame is from before it was moved */
		if (sources[i].frame == 0)
			sources[i].error = file->error;
	}
	return r;
}

int place_hosts(struct host_sources *hosts, size_t n_files, struct fault *why)
{
	int r = n_files > 1 && hosts->names[1] ? place_sources(hosts->list, hosts->n, why) : 0;

	return r == -ENOMEM ? r : 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "ctl/place.h"
#include "writer/merge-axis.h"

int place_sources(struct source *sources, size_t n, struct fault *why)
{
	_cleanup_free_ struct axis_file *axis = calloc(n, sizeof(*axis));
	size_t best;

	if (!axis)
		return fault_errno(why, -ENOMEM, "cannot read");
	for (size_t i = 0; i < n; i++) {
		_cleanup_trace_dat_ struct trace_dat *dat = NULL;
		int r = trace_dat_open_frame(sources[i].fd, sources[i].name, sources[i].frame, &dat,
					     why);

		if (r >= 0)
			r = axis_read(dat, &axis[i], why);
		if (r < 0)
			return r;
	}
	best = axis_place(axis, n);
	for (size_t i = 0; i < n; i++) {
		sources[i].placed = true;
		sources[i].offset =
			(int64_t)((uint64_t)axis[best].date_usec * NSEC_PER_USEC + axis[i].moved);
		/* that of a frame is from before it was moved */
		if (sources[i].frame == 0)
			sources[i].error = axis[i].error;
	}
	return 0;
}

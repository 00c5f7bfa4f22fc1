/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "formats/own-hosts.h"
#include "writer/merge-axis.h"
#include "writer/own-content.h"

/* Others count cycles or events, or are unknown */
static bool counts_nanoseconds(const char *clock)
{
	static const char *const clocks[] = {"local",	 "global", "perf", "mono",
					     "mono_raw", "boot",   "tai"};

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		if (strcmp(clock, clocks[i]) == 0)
			return true;
	return false;
}

void axis_of_readings(struct axis_file *file, const struct own_clocks *clocks)
{
	const struct own_clock *list[OWN_CLOCKS_MAX];
	const size_t n = own_clocks_list(clocks, list);
	int64_t least = INT64_MAX, most = INT64_MIN;

	memcpy(file->boot_id, clocks->boot_id, sizeof(file->boot_id));
	for (size_t i = 0; i < n; i++) {
		const struct own_clock *c = list[i];

		if (c->flags & OWN_CLOCK_NO_TRACE)
			continue;
		/* The newest is the best: whoever set the clock knew better */
		file->has_readings = true;
		file->offset = (int64_t)(c->realtime - c->trace);
		least = MIN(least, file->offset);
		most = MAX(most, file->offset);
		file->error = c->flags & OWN_CLOCK_NO_STATUS
				      ? OWN_HOST_ERROR_UNKNOWN
				      : c->maxerror * NSEC_PER_USEC + (c->width + 1U) / 2;
	}
	if (file->has_readings && file->error != OWN_HOST_ERROR_UNKNOWN)
		file->error += (uint64_t)most - (uint64_t)least;
}

int axis_read(const struct trace_dat *dat, struct axis_file *ret, struct fault *why)
{
	struct axis_file file = {.error = OWN_HOST_ERROR_UNKNOWN};
	_cleanup_free_ char *text = NULL, *clock = NULL;
	struct own_clocks clocks;
	int r = trace_dat_clock(dat, &text, why);

	if (r < 0)
		return r;
	clock = trace_dat_clock_name(text);
	if (!clock)
		return fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	(void)strncat(file.clock, *clock ? clock : "local", sizeof(file.clock) - 1);
	if (!counts_nanoseconds(file.clock))
		return fault_set(
			why, -EINVAL,
			"%s: Clock=%s does not count nanoseconds, and cannot be put beside "
			"another clock",
			dat->path, file.clock);
	r = trace_dat_date(dat, &file.date_usec, why);
	file.has_date = r > 0;
	if (r >= 0)
		r = own_content_clocks(dat, &clocks, NULL, why);
	if (r >= 0)
		axis_of_readings(&file, &clocks);
	if (r < 0 && r != -ENOENT)
		return r;
	if (!file.has_readings && !file.has_date)
		return fault_set(why, -EINVAL,
				 "%s: does not tell what time of day it was: there are neither "
				 "readings of clocks nor a date in it",
				 dat->path);
	if (!file.has_readings)
		file.offset = (int64_t)((uint64_t)file.date_usec * NSEC_PER_USEC);
	if (!file.has_date)
		file.date_usec = file.offset / (int64_t)NSEC_PER_USEC;
	*ret = file;
	return 0;
}

static bool same_clock(const struct axis_file *a, const struct axis_file *b)
{
	static const uint8_t unknown[16];

	return memcmp(a->boot_id, unknown, sizeof(unknown)) != 0 &&
	       memcmp(a->boot_id, b->boot_id, sizeof(unknown)) == 0 &&
	       strcmp(a->clock, b->clock) == 0;
}

size_t axis_place(struct axis_file *files, size_t n)
{
	size_t best = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < i && !same_clock(&files[k], &files[i]))
			k++;
		files[i].same_as = k;
		files[i].offset = files[k].offset;
	}
	for (size_t i = 1; i < n; i++)
		if (files[i].offset < files[best].offset)
			best = i;
	for (size_t i = 0; i < n; i++)
		files[i].moved = (uint64_t)files[i].offset - (uint64_t)files[best].offset;
	return best;
}

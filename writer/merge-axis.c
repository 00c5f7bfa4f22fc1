/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "formats/own-hosts.h"
#include "formats/trace-clock.h"
#include "formats/trace-dat.h"
#include "writer/merge-axis.h"
#include "writer/own-content.h"

#define ID_MAX 64U
#define NO_ID  UINT64_C(1) /* no TRACEID of trace-cmd or flyrec is as small */

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

/* TRACEID */
static int read_id(const struct trace_dat *dat, uint64_t *ret, struct fault *why)
{
	_cleanup_free_ char *bytes = NULL;

	for (size_t i = 0; i < dat->n_options; i++)
		if (dat->options[i].id == TRACE_DAT_OPTION_TRACEID &&
		    dat->options[i].data.size >= sizeof(*ret)) {
			int r = trace_dat_load(dat, &dat->options[i].data, ID_MAX, &bytes, why);

			*ret = r < 0 ? 0 : trace_dat_u64(dat, bytes);
			return r;
		}
	return 0;
}

static int check_cpus(const struct trace_dat *dat, const struct time_shift *shift,
		      struct fault *why)
{
	for (size_t i = 0; i < dat->n_buffers && shift->n_cpus > 0; i++)
		for (uint32_t cpu = shift->n_cpus; cpu < dat->n_cpus; cpu++)
			if (dat->buffers[i].regions[cpu].size > 0)
				return fault_set(why, -EBADMSG,
						 "%s: option TIME_SHIFT does not know CPU %" PRIu32,
						 dat->path, cpu);
	return 0;
}

/* What trace-cmd's options say */
static int read_options(const struct trace_dat *dat, struct axis_file *file, struct fault *why)
{
	int r = read_id(dat, &file->id, why);

	if (r >= 0)
		r = time_shift_read(dat, &file->shift, why);
	if (r >= 0)
		r = check_cpus(dat, &file->shift, why);
	if (r >= 0) {
		file->nsec = TIME_RATE_SAME;
		r = time_shift_nsec(dat, &file->nsec, why);
		file->nsec.on = r > 0;
	}
	if (r < 0)
		return r;
	r = trace_dat_date(dat, &file->date_usec, why);
	/* A guest's is of its own clock, which its times are moved away from */
	file->has_date = r > 0 && file->shift.n_cpus == 0;
	return MIN(r, 0);
}

static int read_own(const struct trace_dat *dat, struct axis_file *file, struct fault *why)
{
	struct own_clocks clocks;
	int r = own_content_clocks(dat, &clocks, NULL, why);

	if (r >= 0)
		axis_of_readings(file, &clocks);
	return r == -ENOENT ? 0 : MIN(r, 0);
}

int axis_read(const struct trace_dat *dat, struct axis_file *ret, struct fault *why)
{
	_cleanup_(axis_done) struct axis_file file = {.path = dat->path,
						      .error = OWN_HOST_ERROR_UNKNOWN};
	_cleanup_free_ char *text = NULL, *clock = NULL;
	int r = trace_dat_clock(dat, &text, why);

	if (r < 0)
		return r;
	clock = trace_dat_clock_name(text);
	if (!clock)
		return fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	(void)strncat(file.clock, *clock ? clock : "local", sizeof(file.clock) - 1);
	r = read_options(dat, &file, why);
	if (r >= 0)
		r = read_own(dat, &file, why);
	if (r < 0)
		return r;
	if (!file.has_readings && file.has_date)
		file.offset = (int64_t)((uint64_t)file.date_usec * NSEC_PER_USEC);
	if (!file.has_date)
		file.date_usec = file.offset / (int64_t)NSEC_PER_USEC;
	*ret = file;
	file.shift = (struct time_shift){};
	return 0;
}

void axis_done(struct axis_file *file)
{
	time_shift_done(&file->shift);
}

int axis_set_offset(struct axis_file *file, uint32_t n_cpus, int64_t offset)
{
	struct time_rate *cpus = calloc(n_cpus, sizeof(*cpus));

	if (!cpus)
		return -ENOMEM;
	time_shift_done(&file->shift);
	for (uint32_t i = 0; i < n_cpus; i++) {
		cpus[i] = TIME_RATE_SAME;
		cpus[i].offset = -(uint64_t)offset;
	}
	file->shift = (struct time_shift){.n_cpus = n_cpus, .cpus = cpus};
	file->shift_given = true;
	file->has_date = false;
	return 0;
}

/* --- which have the same clock */

static bool same_boot(const struct axis_file *a, const struct axis_file *b)
{
	static const uint8_t unknown[16];

	return memcmp(a->boot_id, unknown, sizeof(unknown)) != 0 &&
	       memcmp(a->boot_id, b->boot_id, sizeof(unknown)) == 0;
}

static bool is_guest(const struct axis_file *file)
{
	return file->shift.n_cpus > 0;
}

static bool is_host_of(const struct axis_file *host, const struct axis_file *guest)
{
	return is_guest(guest) && !is_guest(host) && host->id != 0 && host->id == guest->shift.host;
}

/* With the clocks of hosts in place of those of guests */
static bool same_clock(const struct axis_file *a, const struct axis_file *b)
{
	if (strcmp(a->clock, b->clock) != 0)
		return false;
	return same_boot(a, b) || is_host_of(a, b) || is_host_of(b, a) ||
	       (is_guest(a) && is_guest(b) && a->shift.host == b->shift.host);
}

/* The host of guests whose offset was given; it may have no id, which has to be none of another */
static int choose_host(struct axis_file *files, size_t n, struct fault *why)
{
	struct axis_file *host = NULL;

	for (size_t i = n; i > 0; i--)
		if (!is_guest(&files[i - 1]))
			host = &files[i - 1];
	for (size_t i = 0; i < n; i++) {
		if (!files[i].shift_given)
			continue;
		if (!host || strcmp(host->clock, files[i].clock) != 0)
			return fault_set(
				why, -EINVAL,
				"%s: the first file that is no guest's is to be that of its "
				"host, with the same clock",
				files[i].path);
		if (host->id == 0)
			host->id = NO_ID;
		files[i].shift.host = host->id;
	}
	return 0;
}

/* From here on a guest is of its host's boot, whose clock it has */
static void find_hosts(struct axis_file *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (is_guest(&files[i]))
			memset(files[i].boot_id, 0, sizeof(files[i].boot_id));
		for (size_t k = 0; k < n; k++)
			if (is_host_of(&files[k], &files[i]))
				memcpy(files[i].boot_id, files[k].boot_id,
				       sizeof(files[i].boot_id));
	}
}

/* What one of them knows of a clock all of them know: the first that does, a host before guests */
static void share(struct axis_file *files, size_t n, size_t first)
{
	const struct axis_file *nsec = NULL, *day = NULL;

	for (size_t i = first; i < n; i++) {
		const struct axis_file *file = &files[i];

		if (file->same_as != first)
			continue;
		if (file->nsec.on && (!nsec || (is_guest(nsec) && !is_guest(file))))
			nsec = file;
		if (!is_guest(file) && !day && (file->has_readings || file->has_date))
			day = file;
	}
	for (size_t i = first; i < n; i++) {
		if (files[i].same_as != first)
			continue;
		if (nsec)
			files[i].nsec = nsec->nsec;
		files[i].dated = day != NULL;
		files[i].offset = day ? day->offset : 0;
		if (!files[i].has_date)
			files[i].date_usec = day ? day->date_usec : 0;
	}
}

/* --- where they are */

static int check_rate(const struct axis_file *file, struct fault *why)
{
	for (uint32_t cpu = 0; cpu < MAX(file->shift.n_cpus, 1U); cpu++) {
		const struct time_rate rate = axis_rate(file, cpu);

		if (time_rate_grows(&rate))
			return fault_set(why, -EINVAL,
					 "%s: its clock is slower than that of the new file would "
					 "be, and events could be too far apart for that",
					 file->path);
	}
	return 0;
}

/* tsc2nsec: what merge itself makes of cycles */
static bool counts_nanoseconds(const struct axis_file *file)
{
	return file->nsec.on || trace_clock_counts_time(file->clock) ||
	       strcmp(file->clock, "tsc2nsec") == 0;
}

/* It has to be put beside other clocks */
static int check_clock(const struct axis_file *file, struct fault *why)
{
	if (!counts_nanoseconds(file))
		return fault_set(why, -EINVAL,
				 "%s: Clock=%s does not count nanoseconds%s, and cannot be put "
				 "beside another clock",
				 file->path, file->clock,
				 strcmp(file->clock, "x86-tsc") == 0
					 ? ", nor says option TSC2NSEC how long a cycle is"
					 : "");
	if (!file->dated && is_guest(file))
		return fault_set(why, -EINVAL,
				 "%s: is of a KVM guest; when it was, only the file of its host "
				 "tells, which has the trace id 0x%" PRIx64,
				 file->path, file->shift.host);
	if (!file->dated)
		return fault_set(why, -EINVAL,
				 "%s: does not tell what time of day it was: there are neither "
				 "readings of clocks nor a date in it",
				 file->path);
	return 0;
}

int axis_place(struct axis_file *files, size_t n, size_t *ret, struct fault *why)
{
	size_t best = 0, n_clocks = 0;
	int r = choose_host(files, n, why);

	if (r < 0)
		return r;
	find_hosts(files, n);
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < i && !same_clock(&files[k], &files[i]))
			k++;
		files[i].same_as = k < i ? files[k].same_as : i;
		n_clocks += k == i;
	}
	for (size_t i = 0; i < n; i++)
		if (files[i].same_as == i)
			share(files, n, i);
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = check_rate(&files[i], why);
		if (r >= 0 && n_clocks > 1)
			r = check_clock(&files[i], why);
		if (files[i].offset < files[best].offset)
			best = i;
	}
	for (size_t i = 0; i < n; i++)
		files[i].moved = (uint64_t)files[i].offset - (uint64_t)files[best].offset;
	*ret = best;
	return r;
}

struct time_rate axis_rate(const struct axis_file *file, uint32_t cpu)
{
	struct time_rate rate = cpu < file->shift.n_cpus ? file->shift.cpus[cpu] : TIME_RATE_SAME;

	rate.on = file->shift.n_cpus > 0 || file->nsec.on;
	if (file->nsec.on) {
		rate.mult = file->nsec.mult;
		rate.shift = file->nsec.shift;
	}
	return rate;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "formats/time-shift.h"

#define SHIFT_HEAD 16 /* host, flags, cpus */
#define SHIFT_MAX  (16 * MIB)

void time_shift_done(struct time_shift *shift)
{
	free(shift->cpus);
	*shift = (struct time_shift){};
}

bool time_rate_grows(const struct time_rate *rate)
{
	return rate->on && (unsigned __int128)rate->scaling * rate->mult >
				   (unsigned __int128)1 << (rate->fraction + rate->shift);
}

/* The last one counts, as for trace-cmd */
static const struct trace_dat_extent *find_option(const struct trace_dat *dat,
						  enum trace_dat_option id)
{
	for (size_t i = dat->n_options; i > 0; i--)
		if (dat->options[i - 1].id == id)
			return &dat->options[i - 1].data;
	return NULL;
}

struct words {
	const struct trace_dat *dat;
	const char *bytes;
	uint64_t left;
};

static bool take(struct words *w, size_t size, uint64_t *ret)
{
	if (w->left < size)
		return false;
	*ret = size == 4 ? trace_dat_u32(w->dat, w->bytes) : trace_dat_u64(w->dat, w->bytes);
	w->bytes += size;
	w->left -= size;
	return true;
}

/* Return: what is wrong; NULL: nothing */
static const char *take_cpu(struct words *w, struct time_rate *ret)
{
	uint64_t n, times, offset = 0, scaling = 0, next;

	if (!take(w, 4, &n) || n > w->left / 24)
		return "is too short";
	if (n == 0)
		return "has a CPU without an offset";
	times = 8 * n;
	w->bytes += times;
	w->left -= times;
	for (uint64_t i = 0; i < n && take(w, 8, &next); i++) {
		if (i > 0 && next != offset)
			return "has offsets that change with time";
		offset = next;
	}
	for (uint64_t i = 0; i < n && take(w, 8, &next); i++) {
		if (i > 0 && next != scaling)
			return "has a scaling that changes with time";
		scaling = next;
	}
	if (scaling == 0)
		return "has a scaling of 0";
	*ret = TIME_RATE_SAME;
	ret->offset = offset;
	ret->scaling = scaling;
	return NULL;
}

static const char *take_shift(struct words *w, struct time_shift *shift)
{
	const char *wrong = NULL;
	uint64_t fraction;

	for (uint32_t i = 0; i < shift->n_cpus && !wrong; i++)
		wrong = take_cpu(w, &shift->cpus[i]);
	/* older ones end here */
	for (uint32_t i = 0; i < shift->n_cpus && !wrong && w->left > 0; i++) {
		if (!take(w, 8, &fraction))
			return "is too short";
		if (fraction > 63)
			return "has a fraction of more than 63 bits";
		shift->cpus[i].fraction = (unsigned)fraction;
	}
	return wrong;
}

static int damaged(const struct trace_dat *dat, struct fault *why, const char *wrong)
{
	return fault_set(why, -EBADMSG, "%s: option TIME_SHIFT %s", dat->path, wrong);
}

int time_shift_read(const struct trace_dat *dat, struct time_shift *ret, struct fault *why)
{
	const struct trace_dat_extent *option = find_option(dat, TRACE_DAT_OPTION_TIME_SHIFT);
	_cleanup_(time_shift_done) struct time_shift shift = {};
	_cleanup_free_ char *bytes = NULL;
	struct words words = {.dat = dat};
	uint64_t flags, cpus;
	const char *wrong;
	int r;

	*ret = shift;
	if (!option)
		return 0;
	if (option->size < SHIFT_HEAD)
		return damaged(dat, why, "is too short");
	r = trace_dat_load(dat, option, SHIFT_MAX, &bytes, why);
	if (r < 0)
		return r;
	words.bytes = bytes;
	words.left = option->size;
	if (!take(&words, 8, &shift.host) || !take(&words, 4, &flags) || !take(&words, 4, &cpus) ||
	    cpus > words.left / 4)
		return damaged(dat, why, "has more CPUs than there is room for");
	if (cpus == 0)
		return damaged(dat, why, "has no CPUs (trace-cmd attach -c says how many)");
	shift.n_cpus = (uint32_t)cpus;
	shift.cpus = calloc(cpus, sizeof(*shift.cpus));
	if (!shift.cpus)
		return fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	wrong = take_shift(&words, &shift);
	if (wrong)
		return damaged(dat, why, wrong);
	*ret = shift;
	shift.cpus = NULL;
	return 0;
}

bool time_shift_one(const struct time_shift *shift, struct time_rate *ret)
{
	*ret = TIME_RATE_SAME;
	ret->on = false;
	for (uint32_t i = 1; i < shift->n_cpus; i++)
		if (shift->cpus[i].offset != shift->cpus[0].offset ||
		    shift->cpus[i].scaling != shift->cpus[0].scaling ||
		    shift->cpus[i].fraction != shift->cpus[0].fraction)
			return false;
	if (shift->n_cpus > 0)
		*ret = shift->cpus[0];
	return true;
}

int time_shift_nsec(const struct trace_dat *dat, struct time_rate *ret, struct fault *why)
{
	const struct trace_dat_extent *option = find_option(dat, TRACE_DAT_OPTION_TSC2NSEC);
	_cleanup_free_ char *bytes = NULL;
	int r;

	if (!option || option->size < 16)
		return 0;
	r = trace_dat_load(dat, option, SHIFT_MAX, &bytes, why);
	if (r < 0 || trace_dat_u32(dat, bytes) == 0)
		return MIN(r, 0);
	ret->mult = trace_dat_u32(dat, bytes);
	ret->shift = trace_dat_u32(dat, bytes + 4) & 63;
	return 1;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/statvfs.h>

#include "engine/flight-internal.h"

static const char *const names[] = {"mapped", "swap", "drain"};

/* The first CPU that has a ring buffer tells */
static int can_map(const struct instance *instance, struct fault *why)
{
	int r = -EINVAL;

	for (unsigned cpu = 0; cpu < instance_n_cpus(instance) && r == -EINVAL; cpu++) {
		_cleanup_close_ int fd = -EBADF;

		r = instance_open_cpu(instance, cpu, &fd, why);
		if (r < 0)
			return r;
		r = ring_map_probe(fd);
	}
	return r < 0 ? fault_errno(why, r, "cannot map trace_pipe_raw") : 0;
}

static int find_snapshot(const struct instance *instance, struct fault *why)
{
	int fd = instance_dir_fd(instance);

	if (faccessat(fd, "snapshot", W_OK, AT_EACCESS) < 0 ||
	    faccessat(fd, "per_cpu/cpu0/snapshot_raw", R_OK, AT_EACCESS) < 0)
		return fault_errno(why, -errno, "this kernel has no snapshot files");
	return 0;
}

/* Return: as flight_new() */
static int choose(const struct flight_params *p, enum flight_method *ret, struct fault *why)
{
	bool any = strcmp(p->method, "auto") == 0;
	struct fault inner = {0};
	int r = 0;

	if (any || strcmp(p->method, "mapped") == 0) {
		*ret = FLIGHT_MAPPED;
		if (can_map(p->instance, &inner) >= 0)
			return 0;
		if (!any)
			return fault_set(why, -EOPNOTSUPP, "Method=mapped: %s", inner.text);
	}
	if (any || strcmp(p->method, "swap") == 0) {
		bool there = find_snapshot(p->instance, &inner) >= 0;

		*ret = FLIGHT_SWAP;
		r = there ? instance_make_spare(p->instance, &inner) : -EOPNOTSUPP;
		if (r >= 0)
			return 0;
		if (!any)
			return fault_set(why, r, "Method=swap: %s", inner.text);
		r = there ? FLIGHT_SECOND_BEST : 0;
	}
	*ret = FLIGHT_DRAIN;
	if (r == FLIGHT_SECOND_BEST)
		*why = inner;
	return r;
}

static void set_method(struct flight *f, const struct flight_params *params,
		       enum flight_method method)
{
	f->method = method;
	f->automatic = strcmp(params->method, "auto") == 0;
	f->params.method = NULL;
}

int flight_new(const struct flight_params *params, struct flight **ret, struct fault *why)
{
	_cleanup_(flight_freep) struct flight *f = calloc(1, sizeof(*f));
	enum flight_method method;
	int r;

	if (!f)
		return fault_errno(why, -ENOMEM, "cannot start");
	(void)pthread_mutex_init(&f->lock, NULL);
	f->params = *params;
	f->n_cpus = instance_n_cpus(params->instance);
	f->subbuf_size = instance_subbuf_size(params->instance);
	f->cpus = calloc(f->n_cpus, sizeof(*f->cpus));
	f->counts = calloc(f->n_cpus, sizeof(*f->counts));
	if (!f->cpus || !f->counts)
		return fault_errno(why, -ENOMEM, "cannot start");
	r = choose(params, &method, why);
	if (r < 0)
		return r;
	set_method(f, params, method);
	*ret = TAKE_PTR(f);
	return r;
}

int flight_change(struct flight *f, const struct flight_params *params, struct fault *why)
{
	enum flight_method method;
	int r = choose(params, &method, why);

	if (r < 0)
		return r;
	/* What was taken out of the kernel already is in the carry alone */
	if (f->carry && method == FLIGHT_MAPPED && strcmp(params->method, "auto") == 0)
		method = f->method;
	/* Somebody's snapshot trigger may need it: then it stays */
	if (f->method == FLIGHT_SWAP && method != FLIGHT_SWAP) {
		struct fault ignored;

		(void)instance_drop_spare(params->instance, &ignored);
	}
	f->params = *params;
	set_method(f, params, method);
	return r;
}

bool flight_fall_back(struct flight *f, int error)
{
	bool no_map = f->method == FLIGHT_MAPPED && error == -EBUSY;
	bool no_swap = f->method == FLIGHT_SWAP && f->swap_failed;

	if (!f->automatic || (!no_map && !no_swap))
		return false;
	flight_drop(f);
	f->method =
		no_map && find_snapshot(f->params.instance, NULL) >= 0 ? FLIGHT_SWAP : FLIGHT_DRAIN;
	return true;
}

/* Not by allocating it twice: one had to be given back, and that is no promise either */
int flight_check_room(struct flight *f, uint64_t head, struct fault *why)
{
	uint64_t wanted, there;
	struct statvfs vfs;

	if (f->method == FLIGHT_MAPPED)
		return 0;
	if (fstatvfs(f->params.dir_fd, &vfs) < 0)
		return fault_errno(why, -errno, "cannot tell how much room there is");
	wanted = 2 * flight_count_subbufs(f) * f->subbuf_size + head;
	there = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	if (there >= wanted)
		return 0;
	return fault_errno(why, -ENOSPC,
			   "method %s takes %" PRIu64 "M of disk space, and there are %" PRIu64
			   "M, so nothing is read out of the ring buffer",
			   flight_method_name(f), (uint64_t)((wanted + MIB - 1) / MIB),
			   (uint64_t)(there / MIB));
}

void flight_free(struct flight *f)
{
	if (!f)
		return;
	if (f->cpus) {
		flight_drop(f);
		flight_drop_memory(f);
	}
	carry_free(f->carry);
	(void)pthread_mutex_destroy(&f->lock);
	free(f->cpus);
	free(f->counts);
	free(f);
}

const char *flight_method_name(const struct flight *f)
{
	return names[f->method];
}

bool flight_has_taken(const struct flight *f)
{
	return f->taken;
}

void flight_counts(const struct flight *f, unsigned cpu, struct ledger_moved *ret)
{
	*ret = f->counts[cpu];
}

void flight_add_counts(struct flight *f)
{
	for (unsigned cpu = 0; cpu < f->n_cpus; cpu++) {
		struct ledger_moved *more = &f->cpus[cpu].counts;
		struct ledger_moved *c = &f->counts[cpu];

		c->subbufs += more->subbufs;
		c->bytes += more->bytes;
		c->torn += more->torn;
		*more = (struct ledger_moved){0};
	}
}

int flight_fault(struct flight *f, int error, const char *format, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	(void)pthread_mutex_lock(&f->lock);
	if (f->why && f->why->error == 0)
		(void)fault_errno(f->why, error, "%s", text);
	(void)pthread_mutex_unlock(&f->lock);
	return error;
}

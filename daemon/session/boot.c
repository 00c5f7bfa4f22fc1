/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sessions with Persistent=: their instance is made by the kernel at boot, in memory that outlives
 * it. What a boot that died has left there is saved before the instance is set up for this one.
 * Main thread.
 */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "daemon/session/session-internal.h"
#include "engine/boot-note.h"

/* Trouble that may be over at the next try, or that somebody can end: until then the evidence stays
 * where it is */
static bool may_pass(int error)
{
	static const int errors[] = {EACCES, EPERM,  ELOOP,  ENOTDIR, EEXIST,
				     ENOENT, ENOMEM, EMFILE, ENFILE};

	return session_is_error_of(error, errors, ARRAY_SIZE(errors)) ||
	       session_disk_may_return(error);
}

/* It waits in its ring buffer for the next try */
static int fail_for_now(struct session *s, int error, const char *text, struct fault *why)
{
	(void)fault_set(
		why, error,
		"%s; the trace of the boot that died waits in its ring buffer for the next try",
		text);
	boot_trace_free(TAKE_PTR(s->boot_trace));
	return error;
}

static int find(struct session *s, struct fault *why)
{
	_cleanup_free_ char *name = NULL, *group = NULL;
	struct boot_trace_params params = {
		.session = s->name,
		.trace = &s->spec.config->trace,
		.boot_id = s->env->boot_id_text,
		.dir_fd = s->claim.dir_fd,
		.tracing_fd = s->env->tracing_fd,
		.symbols = s->env->symbols,
		.memory = s->spec.config->snapshot.memory,
		.direct = s->spec.config->storage.direct,
	};
	int r = session_instance_names(s, &name, &group);

	if (r < 0)
		return fault_errno(why, r, "cannot name the instance");
	params.instance = name;
	params.group = group;
	session_snapshot_limits(s, &params.limits);
	return boot_trace_find(&params, &s->boot_trace, why);
}

static void forget(struct session *s)
{
	int r = boot_note_remove(s->claim.dir_fd);

	boot_trace_free(TAKE_PTR(s->boot_trace));
	if (r < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, r,
			       "cannot remove the last boot's note: %m, ignoring");
}

int session_find_boot_trace(struct session *s, struct fault *ret_why)
{
	struct fault why = {};
	int r;

	if (!s->spec.config->trace.persistent)
		return 0;
	r = find(s, &why);
	if (r < 0 && may_pass(r))
		return fail_for_now(s, r, why.text, ret_why);
	if (r < 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_RECOVERED, r,
			       "cannot look for the last boot's trace: %s, ignoring", why.text);
	if (r == BOOT_TRACE_LOST) {
		(void)log_full(
			LOG_WARNING, s->name, MESSAGE_EVENTS_LOST, 0,
			"boot %s ended without stopping this session, but nothing of its trace is left: the memory was cleared, or is elsewhere now, or the kernel (see its log, \"Ring buffer\") did not take over what it found",
			boot_trace_boot_id(s->boot_trace));
		forget(s);
	}
	return r == BOOT_TRACE_HERE;
}

int session_run_boot_trace(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	return boot_trace_save(s->boot_trace, why);
}

static void report_saved(struct session *s)
{
	const char *missing = boot_trace_missing(s->boot_trace);
	_cleanup_free_ char *path = session_announce_snapshot(s, boot_trace_name(s->boot_trace));

	(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0,
		       "boot %s ended without stopping this session, its trace is saved: %s%s%s",
		       boot_trace_boot_id(s->boot_trace), path ? path : "",
		       *missing ? "; there was nothing of CPUs " : "", missing);
}

int session_boot_trace_done(struct session *s, int result, const struct fault *why,
			    struct fault *ret_why)
{
	bool taken = boot_trace_is_taken(s->boot_trace);

	if (result < 0 && may_pass(result) && !taken)
		return fail_for_now(s, result, why->text, ret_why);
	if (result < 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_EVENTS_LOST, result,
			       "the trace of boot %s could not be saved and is lost: %s",
			       boot_trace_boot_id(s->boot_trace), why->text);
	else
		report_saved(s);
	forget(s);
	return 0;
}

void session_warn_of_clock(struct session *s)
{
	const char *clock = s->spec.config->trace.clock;
	struct last_boot boot;

	if (strcmp(clock, "local") == 0 ||
	    instance_read_last_boot(s->claim.instance, &boot, NULL) < 0)
		return;
	/* It sets the clock again at boot, over which the CPU that it starts on is emptied */
	if (boot.tells_current)
		(void)log_full(
			LOG_WARNING, s->name, NULL, 0,
			"Clock=%s with Persistent=yes: should this kernel die, the next boot will have nothing of its first CPU; Clock=local keeps that",
			clock);
	last_boot_done(&boot);
}

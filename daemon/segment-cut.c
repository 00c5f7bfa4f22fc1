/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The step that makes a snapshot. Runs as a job.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <syslog.h>
#include <systemd/sd-id128.h>
#include <time.h>

#include "daemon/segment-internal.h"
#include "writer/file-age.h"
#include "writer/store.h"

/* Of the boot that the data is from */
static void find_boot_id(const struct segment_cut *cut, char ret[33])
{
	sd_id128_t boot;

	if (!cut->boot_id && sd_id128_get_boot(&boot) >= 0)
		(void)sd_id128_to_string(boot, ret);
	else
		(void)snprintf(ret, 33, "%s", cut->boot_id ? cut->boot_id : "unknown");
}

void segment_label(const struct segment_cut *cut)
{
	_cleanup_close_ int fd = -EBADF;
	char time[32], boot_id[33];

	find_boot_id(cut, boot_id);
	fd = openat(cut->dir_fd, cut->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	(void)snprintf(time, sizeof(time), "%llu", (unsigned long long)cut->trigger_usec);
	(void)fsetxattr(fd, "user.flyrec.session", cut->session, strlen(cut->session), 0);
	(void)fsetxattr(fd, "user.flyrec.reason", cut->reason, strlen(cut->reason), 0);
	(void)fsetxattr(fd, "user.flyrec.time_usec", time, strlen(time), 0);
	(void)fsetxattr(fd, "user.flyrec.boot_id", boot_id, strlen(boot_id), 0);
}

static char *explain(const struct segment_cut *cut)
{
	time_t seconds = (time_t)(cut->trigger_usec / USEC_PER_SEC);
	char time[32], boot_id[33], *text;
	struct utsname u;
	struct tm tm;

	(void)strftime(time, sizeof(time), "%Y-%m-%d %H:%M:%S", gmtime_r(&seconds, &tm));
	find_boot_id(cut, boot_id);
	if (uname(&u) < 0 ||
	    asprintf(&text,
		     "flyrec snapshot of session%s %s\nreason: %s\ntime: %s.%06u UTC\nhost: %s\n"
		     "boot id: %s\n%s",
		     cut->n_parts > 0 ? "s" : "", cut->session, cut->reason, time,
		     (unsigned)(cut->trigger_usec % USEC_PER_SEC), u.nodename, boot_id,
		     cut->detail ? cut->detail : "") < 0)
		return NULL;
	return text;
}

uint64_t segment_retain_snapshots(struct segment *s, const struct segment_cut *request)
{
	struct retention_report report = {0};
	struct fault why;

	file_age_note(request->dir_fd, request->name, (int64_t)file_age_now_usec(),
		      file_age_now_usec());
	if (retention_apply(request->dir_fd, &request->limits, &report, &why) < 0)
		segment_note(s, LOG_WARNING, why.error, "%s", why.text);
	return report.kept_bytes;
}

int segment_name_snapshot(struct segment *s, struct segment_cut *request, char **ret_text)
{
	_cleanup_free_ char *text = explain(request);
	int r;

	if (!text)
		return fault_errno(&s->failure, -ENOMEM, "cannot take a snapshot");
	r = store_snapshot_name(request->dir_fd, request->trigger_usec, request->reason,
				request->name);
	if (r < 0)
		return fault_errno(&s->failure, r, "cannot name the snapshot");
	*ret_text = TAKE_PTR(text);
	return 0;
}

int segment_cut(struct segment *s, struct segment_cut *request)
{
	_cleanup_(cut_freep) struct cut *cut = NULL;
	_cleanup_free_ char *text = NULL;
	int r = segment_name_snapshot(s, request, &text);

	if (r < 0)
		return r;
	/* Names of tasks that came since the last sync */
	r = segment_write_names(s, s->file);
	if (r < 0)
		segment_note(s, LOG_WARNING, r, "cannot write task names: %s", strerror(-r));
	r = cut_open(s->dir_fd, request->from_usec, request->to_usec, &cut, &s->failure);
	if (r >= 0 && request->is_part)
		return cut_write_unnamed(cut, request->dir_fd, request->name, &request->part_fd,
					 &request->report, &s->failure);
	if (r >= 0)
		r = cut_write(cut, request->dir_fd, request->name, text, &request->report,
			      &s->failure);
	if (r < 0)
		return r;
	(void)segment_retain_snapshots(s, request);
	return 0;
}

int segment_join(struct segment *s, struct segment_cut *request)
{
	_cleanup_free_ char *text = NULL;
	int r = segment_name_snapshot(s, request, &text);

	if (r < 0)
		return r;
	r = together_write(request->parts, request->n_parts, request->dir_fd, request->name, text,
			   &request->report, &s->failure);
	if (r < 0)
		return r;
	s->kept_bytes = segment_retain_snapshots(s, request);
	return 0;
}

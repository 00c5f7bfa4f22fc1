/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What makes a snapshot. Runs as jobs.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <syslog.h>
#include <systemd/sd-id128.h>
#include <time.h>

#include "basic/now.h"
#include "daemon/segment-internal.h"
#include "writer/file-age.h"
#include "writer/store.h"

/* Of the boot that the data is from */
static void find_boot_id(const struct segment_cut *cut, char ret[33])
{
	sd_id128_t boot;

	if (!cut->boot_id[0] && sd_id128_get_boot(&boot) >= 0)
		(void)sd_id128_to_string(boot, ret);
	else
		(void)snprintf(ret, 33, "%s", cut->boot_id[0] ? cut->boot_id : BOOT_UNKNOWN);
}

static void note_boot_id(struct segment_cut *request)
{
	sd_id128_t boot;

	memcpy(boot.bytes, cut_boot_id(request->found), sizeof(boot.bytes));
	if (sd_id128_is_null(boot))
		(void)snprintf(request->boot_id, sizeof(request->boot_id), BOOT_UNKNOWN);
	else
		(void)sd_id128_to_string(boot, request->boot_id);
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

void segment_retain_snapshots(struct segment_cut *request)
{
	struct retention_report report = {0};

	file_age_note(request->dir_fd, request->name, (int64_t)now_usec(CLOCK_BOOTTIME),
		      now_usec(CLOCK_BOOTTIME));
	request->complaint = (struct fault){0};
	(void)retention_apply(request->dir_fd, &request->limits, &report, &request->complaint);
	request->kept_files = report.kept_files;
	request->kept_bytes = report.kept_bytes;
	request->evicted_files = report.files;
	request->evicted_bytes = report.bytes;
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

int segment_cut_begin(struct segment *s, struct segment_cut *request)
{
	int r;

	if (request->parts)
		return segment_name_snapshot(s, request, &request->text);
	/* Names of tasks that came since the last sync */
	r = segment_write_names(s, s->file);
	if (r < 0)
		segment_note(s, LOG_WARNING, r, "cannot write task names: %s", strerror(-r));
	r = cut_open(s->dir_fd, request->from_usec, request->to_usec, &request->found, &s->failure);
	if (r < 0)
		return r;
	note_boot_id(request);
	return segment_name_snapshot(s, request, &request->text);
}

int segment_cut_copy(struct segment_cut *request, struct fault *why)
{
	int r;

	if (request->is_part)
		return cut_write_unnamed(request->found, request->dir_fd, request->name,
					 &request->part_fd, &request->report, why);
	if (request->parts)
		r = together_write(request->parts, request->n_parts, request->dir_fd, request->name,
				   request->text, &request->report, why);
	else
		r = cut_write(request->found, request->dir_fd, request->name, request->text,
			      &request->report, why);
	if (r < 0)
		return r;
	segment_retain_snapshots(request);
	return 0;
}

void segment_cut_done(struct segment_cut *request)
{
	free(request->text);
	request->text = NULL;
	cut_free(request->found);
	request->found = NULL;
}

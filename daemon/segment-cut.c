/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The step that makes a snapshot. Runs as a job.
 */
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <syslog.h>
#include <systemd/sd-id128.h>
#include <time.h>

#include "daemon/segment-internal.h"
#include "writer/file-age.h"
#include "writer/store.h"

char *segment_explain(const struct segment_cut *cut)
{
	time_t seconds = (time_t)(cut->trigger_usec / USEC_PER_SEC);
	char time[32], boot_id[33] = "unknown", *text;
	sd_id128_t boot;
	struct utsname u;
	struct tm tm;

	(void)strftime(time, sizeof(time), "%Y-%m-%d %H:%M:%S", gmtime_r(&seconds, &tm));
	if (sd_id128_get_boot(&boot) >= 0)
		(void)sd_id128_to_string(boot, boot_id);
	if (uname(&u) < 0 ||
	    asprintf(&text,
		     "flyrec snapshot of session %s\nreason: %s\ntime: %s.%06u UTC\nhost: %s\n"
		     "boot id: %s\n%s",
		     cut->session, cut->reason, time, (unsigned)(cut->trigger_usec % USEC_PER_SEC),
		     u.nodename, boot_id, cut->detail ? cut->detail : "") < 0)
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

int segment_cut(struct segment *s, struct segment_cut *request)
{
	_cleanup_(cut_freep) struct cut *cut = NULL;
	_cleanup_free_ char *text = segment_explain(request);
	int r;

	if (!text)
		return fault_errno(&s->failure, -ENOMEM, "cannot take a snapshot");
	r = store_snapshot_name(request->dir_fd, request->trigger_usec, request->reason,
				request->name);
	if (r < 0)
		return fault_errno(&s->failure, r, "cannot name the snapshot");
	/* Names of tasks that came since the last sync */
	r = segment_write_names(s, s->file);
	if (r < 0)
		segment_note(s, LOG_WARNING, r, "cannot write task names: %s", strerror(-r));
	r = cut_open(s->dir_fd, request->from_usec, request->to_usec, &cut, &s->failure);
	if (r >= 0)
		r = cut_write(cut, request->dir_fd, request->name, text, &request->report,
			      &s->failure);
	if (r < 0)
		return r;
	(void)segment_retain_snapshots(s, request);
	return 0;
}

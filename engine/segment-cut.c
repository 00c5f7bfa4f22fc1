/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What makes a snapshot. Runs as jobs.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <syslog.h>
#include <systemd/sd-id128.h>
#include <time.h>

#include "basic/io.h"
#include "basic/now.h"
#include "engine/segment-internal.h"
#include "writer/file-age.h"
#include "writer/snapshot-note.h"
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
	if (cut->asker.origin == SNAPSHOT_BY_TRIGGER && cut->rank < RETENTION_RANK_LAST)
		(void)store_set_rank(fd, cut->rank);
}

static char *explain(const struct segment_cut *cut)
{
	time_t seconds = (time_t)(cut->trigger_usec / USEC_PER_SEC);
	char time[32], boot_id[33];
	_cleanup_free_ char *text = NULL;
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
		     cut->detail ? cut->detail : "") < 0) {
		text = NULL;
		return NULL;
	}
	/* Triggers that come while it is written, or soon after, are added */
	return cut->asker.origin == SNAPSHOT_BY_TRIGGER ? snapshot_note_pad(text) : TAKE_PTR(text);
}

static void retain(struct segment_cut *request, const struct retention_limits *limits,
		   struct fault *why)
{
	struct retention_report report = {0};

	(void)retention_apply(request->dir_fd, limits, &report, why);
	request->kept_files = report.kept_files;
	request->kept_bytes = report.kept_bytes;
	request->evicted_files += report.files;
	request->evicted_bytes += report.bytes;
}

static int refuse_for_room(const struct segment_cut *request, uint64_t bytes, uint64_t there,
			   struct fault *why)
{
	return fault_set(why, -ENOSPC,
			 "session %.64s: a snapshot of %.1fM would leave less than "
			 "KeepFree=%.1fM free on its file system, where %.1fM are",
			 request->session, (double)bytes / MIB,
			 (double)request->limits.keep_free / MIB, (double)there / MIB);
}

/* Parts are gone when the snapshot is there: not for them, but for that others make way */
int segment_make_way(struct segment_cut *request, uint64_t bytes, struct fault *why)
{
	const struct retention_limits room = {
		.max_use = UINT64_MAX,
		.keep_free = request->limits.keep_free + bytes,
		.keep_newest = true,
	};
	bool by_member = request->asker.origin == SNAPSHOT_BY_MEMBER;
	uint64_t there;
	struct statvfs vfs;
	int r = 0;

	if (request->pin)
		r = retention_pins_left(request->dir_fd, request->session, request->limits.max_use,
					why);
	if (r < 0)
		return r;
	if (by_member && !store_takes_attributes(request->dir_fd))
		return fault_set(why, -EOPNOTSUPP,
				 "session %.64s: its file system has no extended attributes, so "
				 "only root and AdminGroup= may have snapshots there",
				 request->session);
	if (fstatvfs(request->dir_fd, &vfs) < 0)
		return fault_errno(why, -errno, "cannot tell how much room there is");
	there = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	if (there >= room.keep_free)
		return 0;
	if (by_member)
		return refuse_for_room(request, bytes, there, why);
	if (!request->is_part)
		retain(request, &room, &request->complaint);
	return 0;
}

static int mark_asker(struct segment_cut *request, int fd, struct fault *why)
{
	int r = 0;

	if (request->asker.origin == SNAPSHOT_BY_MEMBER)
		r = fd < 0 ? fd : store_set_member(fd, request->asker.uid);
	if (r >= 0)
		return 0;
	(void)unlinkat(request->dir_fd, request->name, 0);
	return fault_errno(why, r, "cannot set the attribute user.flyrec.member_uid");
}

int segment_retain_snapshots(struct segment_cut *request, struct fault *why)
{
	_cleanup_close_ int fd = io_open_at(request->dir_fd, request->name, O_NOFOLLOW);
	int r = mark_asker(request, fd, why);

	if (r < 0)
		return r;
	file_age_note(request->dir_fd, request->name, (int64_t)now_usec(CLOCK_BOOTTIME),
		      now_usec(CLOCK_BOOTTIME));
	if (request->pin)
		(void)retention_pin(request->dir_fd, fd, request->session, request->limits.max_use,
				    &request->unpinned);
	request->complaint = (struct fault){0};
	retain(request, &request->limits, &request->complaint);
	return 0;
}

int segment_name_snapshot(struct segment_cut *request, char **ret_text, struct fault *why)
{
	_cleanup_free_ char *text = explain(request);
	int r;

	if (!text)
		return fault_errno(why, -ENOMEM, "cannot take a snapshot");
	r = store_snapshot_name(request->dir_fd, request->trigger_usec, request->reason,
				request->name);
	if (r < 0)
		return fault_errno(why, r, "cannot name the snapshot");
	*ret_text = TAKE_PTR(text);
	return 0;
}

/* Of the file that they become, about */
static uint64_t parts_size(const struct segment_cut *request)
{
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < request->n_parts; i++)
		if (request->parts[i].fd >= 0 && fstat(request->parts[i].fd, &st) >= 0)
			bytes += (uint64_t)st.st_blocks * 512;
	return bytes;
}

int segment_cut_begin(struct segment *s, struct segment_cut *request, struct fault *why)
{
	int r;

	if (request->parts) {
		r = segment_make_way(request, parts_size(request), why);
		return r < 0 ? r : segment_name_snapshot(request, &request->text, why);
	}
	/* Names of tasks that came since the last sync */
	r = segment_write_names(s, s->file);
	if (r < 0)
		segment_note(s, LOG_WARNING, r, "cannot write task names: %s", strerror(-r));
	r = cut_open(s->dir_fd, request->from_usec, request->to_usec, &request->found, why);
	if (r >= 0)
		r = segment_make_way(request, cut_size(request->found), why);
	if (r < 0)
		return r;
	note_boot_id(request);
	return segment_name_snapshot(request, &request->text, why);
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
	return r < 0 ? r : segment_retain_snapshots(request, why);
}

void segment_cut_done(struct segment_cut *request)
{
	free(request->text);
	request->text = NULL;
	cut_free(request->found);
	request->found = NULL;
}

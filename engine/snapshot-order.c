/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <systemd/sd-id128.h>
#include <time.h>

#include "basic/io.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "engine/snapshot-order.h"
#include "formats/own-findings.h"
#include "formats/own-journal.h"
#include "writer/file-age.h"
#include "writer/snapshot-note.h"

#define CAUSE_ROOM 2048 /* for triggers that join, bytes */

/* Of the boot that the data is from */
static void find_boot_id(const struct snapshot_result *made, char ret[33])
{
	sd_id128_t boot;

	if (!made->boot_id[0] && sd_id128_get_boot(&boot) >= 0)
		(void)sd_id128_to_string(boot, ret);
	else
		(void)snprintf(ret, 33, "%s", made->boot_id[0] ? made->boot_id : BOOT_UNKNOWN);
}

static void note_boot_id(struct snapshot_result *made)
{
	sd_id128_t boot;

	memcpy(boot.bytes, cut_boot_id(made->found), sizeof(boot.bytes));
	if (sd_id128_is_null(boot))
		(void)snprintf(made->boot_id, sizeof(made->boot_id), BOOT_UNKNOWN);
	else
		(void)sd_id128_to_string(boot, made->boot_id);
}

void snapshot_order_label(const struct snapshot_order *order, struct snapshot_result *made)
{
	_cleanup_close_ int fd = -EBADF;
	char time[32], boot_id[33];

	if (order->is_part)
		return;
	find_boot_id(made, boot_id);
	fd = openat(made->dir_fd, made->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	(void)snprintf(time, sizeof(time), "%llu", (unsigned long long)order->trigger_usec);
	(void)fsetxattr(fd, "user.flyrec.session", order->session, strlen(order->session), 0);
	(void)fsetxattr(fd, "user.flyrec.reason", order->reason, strlen(order->reason), 0);
	(void)fsetxattr(fd, "user.flyrec.time_usec", time, strlen(time), 0);
	(void)fsetxattr(fd, "user.flyrec.boot_id", boot_id, strlen(boot_id), 0);
	if (order->id)
		(void)store_add_id(fd, order->id);
	if (order->asker.origin == SNAPSHOT_BY_TRIGGER && order->rank < RETENTION_RANK_LAST)
		(void)store_set_rank(fd, order->rank);
	coresight_job_publish(&made->coresight, made->name, &order->limits);
}

static char *explain(const struct snapshot_order *order, const struct snapshot_result *made)
{
	time_t seconds = (time_t)(order->trigger_usec / USEC_PER_SEC);
	char time[32], boot_id[33];
	_cleanup_free_ char *text = NULL;
	struct utsname u;
	struct tm tm;

	(void)strftime(time, sizeof(time), "%Y-%m-%d %H:%M:%S", gmtime_r(&seconds, &tm));
	find_boot_id(made, boot_id);
	if (uname(&u) < 0)
		return NULL;
	text = strf("flyrec snapshot of session%s %s\nreason: %s\ntime: %s.%06u UTC\nhost: %s\n"
		    "boot id: %s\n%s",
		    order->n_parts > 0 ? "s" : "", order->session, order->reason, time,
		    (unsigned)(order->trigger_usec % USEC_PER_SEC), u.nodename, boot_id,
		    order->detail ? order->detail : "");
	/* Triggers that come while it is written, or soon after, are added */
	return text && snapshot_is_joined(&order->asker) ? snapshot_note_pad(text) : TAKE_PTR(text);
}

void snapshot_order_cause(const struct snapshot_order *order, struct own_cause *ret_cause,
			  struct own_content *ret)
{
	*ret_cause = (struct own_cause){
		.usec = order->trigger_usec,
		.reason = order->reason,
		.text = order->detail ? order->detail : "",
	};
	ret->cause = ret_cause;
	ret->findings_room = order->analyze ? OWN_FINDINGS_ROOM : 0;
	ret->journal_room = order->journal ? OWN_JOURNAL_ROOM : 0;
	ret->cause_room = snapshot_is_joined(&order->asker) ? CAUSE_ROOM : 0;
}

static void retain(struct snapshot_result *made, const struct retention_limits *limits,
		   struct fault *why)
{
	struct retention_report report = {0};

	(void)retention_apply(made->dir_fd, limits, &report, why);
	made->kept_files = report.kept_files;
	made->kept_bytes = report.kept_bytes;
	made->evicted_files += report.files;
	made->evicted_bytes += report.bytes;
}

static int refuse_for_room(const struct snapshot_order *order, uint64_t bytes, uint64_t there,
			   struct fault *why)
{
	return fault_set(why, -ENOSPC,
			 "session %.64s: a snapshot of %.1fM would leave less than "
			 "KeepFree=%.1fM free on its file system, where %.1fM are",
			 order->session, (double)bytes / MIB, (double)order->limits.keep_free / MIB,
			 (double)there / MIB);
}

/* Parts are gone when the snapshot is there: not for them, but for that others make way */
int snapshot_order_make_way(const struct snapshot_order *order, uint64_t bytes,
			    struct snapshot_result *made, struct fault *why)
{
	const struct retention_limits room = {
		.max_use = UINT64_MAX,
		.keep_free = order->limits.keep_free + bytes,
		.keep_newest = true,
	};
	bool by_member = snapshot_is_guests(&order->asker);
	uint64_t there;
	struct statvfs vfs;
	int r = 0;

	if (order->pin)
		r = retention_pins_left(made->dir_fd, order->session, order->limits.max_use, why);
	if (r < 0)
		return r;
	if (by_member && !store_takes_attributes(made->dir_fd))
		return fault_set(why, -EOPNOTSUPP,
				 "session %.64s: its file system has no extended attributes, so "
				 "only root and AdminGroup= may have snapshots there",
				 order->session);
	if (fstatvfs(made->dir_fd, &vfs) < 0)
		return fault_errno(why, -errno, "cannot tell how much room there is");
	there = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	if (there >= room.keep_free)
		return 0;
	if (by_member)
		return refuse_for_room(order, bytes, there, why);
	if (!order->is_part)
		retain(made, &room, &made->complaint);
	return 0;
}

static int mark_asker(const struct snapshot_order *order, const struct snapshot_result *made,
		      int fd, struct fault *why)
{
	int r = 0;

	if (snapshot_is_guests(&order->asker))
		r = fd < 0 ? fd : store_set_member(fd, order->asker.uid);
	if (r >= 0)
		return 0;
	(void)unlinkat(made->dir_fd, made->name, 0);
	return fault_errno(why, r, "cannot set the attribute user.flyrec.member_uid");
}

int snapshot_order_retain(const struct snapshot_order *order, struct snapshot_result *made,
			  struct fault *why)
{
	_cleanup_close_ int fd = io_open_at(made->dir_fd, made->name, O_NOFOLLOW);
	int r = mark_asker(order, made, fd, why);

	if (r < 0)
		return r;
	file_age_note(made->dir_fd, made->name, (int64_t)now_usec(CLOCK_BOOTTIME),
		      now_usec(CLOCK_BOOTTIME));
	if (order->pin)
		(void)retention_pin(made->dir_fd, fd, order->session, order->limits.max_use,
				    &made->unpinned);
	made->complaint = (struct fault){0};
	retain(made, &order->limits, &made->complaint);
	return 0;
}

int snapshot_order_name(const struct snapshot_order *order, struct snapshot_result *made,
			char **ret_text, struct fault *why)
{
	_cleanup_free_ char *text = explain(order, made);
	int r;

	if (!text)
		return fault_errno(why, -ENOMEM, "cannot take a snapshot");
	r = store_snapshot_name(made->dir_fd, order->trigger_usec, order->reason, made->name);
	if (r < 0)
		return fault_errno(why, r, "cannot name the snapshot");
	*ret_text = TAKE_PTR(text);
	return 0;
}

int snapshot_order_open(const struct snapshot_order *order, int state_fd,
			struct snapshot_result *made, struct fault *why)
{
	int r = store_open_dir(state_fd, "snapshot", &made->dir_fd, why);

	(void)memcpy(made->boot_id, order->boot_id, sizeof(made->boot_id));
	if (r >= 0 && order->coresight)
		coresight_job_collect(&made->coresight, made->dir_fd, order->trigger_usec,
				      order->reason);
	return r;
}

/* Of the file that they become, about */
static uint64_t parts_size(const struct snapshot_order *order)
{
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < order->n_parts; i++)
		if (order->parts[i].fd >= 0 && fstat(order->parts[i].fd, &st) >= 0)
			bytes += (uint64_t)st.st_blocks * 512;
	return bytes;
}

int snapshot_order_find(const struct snapshot_order *order, int record_fd,
			struct snapshot_result *made, struct fault *why)
{
	int r = 0;

	if (!order->parts)
		r = cut_open(record_fd, order->from_usec, order->to_usec, &made->found, why);
	if (r >= 0)
		r = snapshot_order_make_way(
			order, made->found ? cut_size(made->found) : parts_size(order), made, why);
	if (r < 0)
		return r;
	if (made->found)
		note_boot_id(made);
	return snapshot_order_name(order, made, &made->text, why);
}

int snapshot_order_make(const struct snapshot_order *order, struct snapshot_result *made,
			struct fault *why)
{
	struct own_cause cause;
	struct cut_note note = {.text = made->text, .own.clocks = order->clocks};
	int r;

	snapshot_order_cause(order, &cause, &note.own);
	if (order->is_part)
		return cut_write_unnamed(made->found, made->dir_fd, made->name, &made->part_fd,
					 &made->report, why);
	if (order->parts)
		r = together_write(order->parts, order->n_parts, made->dir_fd, made->name, &note,
				   &made->report, why);
	else
		r = cut_write(made->found, made->dir_fd, made->name, &note, &made->report, why);
	if (r >= 0)
		r = snapshot_order_retain(order, made, why);
	if (r >= 0)
		snapshot_order_label(order, made);
	return r;
}

void snapshot_result_done(struct snapshot_result *made)
{
	coresight_job_done(&made->coresight);
	close_p(&made->dir_fd);
	close_p(&made->part_fd);
	cut_free(made->found);
	free(made->text);
	free(made->path);
	*made = (struct snapshot_result)SNAPSHOT_RESULT_INIT;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * STATE/NAME/boot: what the next boot must know of this one, should this one die while a session
 * traces into memory that outlives it: which boot it was, of which kernel, what its clock meant,
 * and its event formats, as ids of modules' and dynamic events differ from boot to boot. Written
 * when the session traces; removed when it is stopped. Then nothing is left to be saved. Any
 * thread, one a session.
 *
 *   KEY VALUE lines; the last one is "formats SIZE", SIZE bytes of formats follow it, and the
 *   kernel's printk_formats behind them
 */
#pragma once

#include "writer/trace-file.h"

struct boot_note {
	char *boot_id;		 /* 32 hex digits */
	char *release, *version; /* of uname(2) */
	char *uname;		 /* as trace.dat files have it */
	char *clock;		 /* the selected one, "mono" */
	bool has_date;
	int64_t date_usec;   /* realtime minus the clock, as it was then */
	uint64_t noted_usec; /* realtime */
	unsigned subbuf_size;
	struct metadata_kept kept;
};

/**
 * boot_note_read() - -ENOENT: there is none; -EBADMSG: it makes no sense
 */
int boot_note_read(int dir_fd, struct boot_note **ret);

/**
 * boot_note_write() - this boot's, in place of an earlier one
 * @params: of the file that would be made now
 * @boot_id: 32 hex digits
 * Return: 0 or negative errno with @why set.
 */
int boot_note_write(int dir_fd, const struct trace_file_params *params, const char *boot_id,
		    struct fault *why);
int boot_note_remove(int dir_fd);
void boot_note_free(struct boot_note *note);

/* Is it of the kernel that runs now, to the byte? Then its addresses differ by KASLR only. */
bool boot_note_same_kernel(const struct boot_note *note);

DEFINE_CLEANUP(struct boot_note *, boot_note_free)

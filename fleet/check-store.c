/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Part of check.h: where snapshots are sent. rclone knows the store, a script knows rclone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "basic/log.h"
#include "fleet/check.h"

#define PROGRAM VENDOR_DIR "/flyrec-fleet-check-store"

/* @line: a word, a tab, a text. Return: it was one. */
static bool say_line(struct check *check, char *line)
{
	char *text = strchr(line, '\t');

	if (!text)
		return false;
	*text++ = 0;
	text[strcspn(text, "\n")] = 0;
	if (strcmp(line, "ok") == 0)
		check_ok(check, "store", "%s", text);
	else if (strcmp(line, "warn") == 0)
		check_warn(check, "store", "%s", text);
	else
		check_fail(check, "store", "%s", text);
	return true;
}

void check_store(struct check *check)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	bool said = false;
	FILE *f;
	int status;

	if (setenv("FLYREC_FLEET_CONFIG", check->fleet->config_path, 1) < 0)
		f = NULL;
	else
		f = popen("exec " PROGRAM, "re");
	if (!f) {
		check_fail(check, "store", "Cannot start " PROGRAM ": %s", strerror(errno));
		return;
	}
	while (getline(&line, &size, f) >= 0)
		said = say_line(check, line) || said;
	status = pclose(f);
	if (status != 0)
		check_fail(check, "store", PROGRAM " ended with status %d",
			   WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	else if (!said)
		check_fail(check, "store", PROGRAM " said nothing");
}

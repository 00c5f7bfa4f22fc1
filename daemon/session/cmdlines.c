/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "basic/io.h"
#include "basic/log.h"
#include "daemon/plumbing/state-root.h"
#include "daemon/session/cmdlines.h"
#include "daemon/session/environment.h"
#include "recorder/saved-cmdlines.h"

#define CMDLINES_FILE ".saved_cmdlines_size"
#define CMDLINES_SIZE 32768 /* the most the kernel takes: PID_MAX_DEFAULT */
#define NOTE_SIZE_MAX (4 * KIB)

static bool read_note(const struct environment *env, unsigned *ret)
{
	_cleanup_free_ char *text = NULL;
	char boot_id[33];

	return io_read_stored_file_at(state_root_fd(env->root), CMDLINES_FILE, NOTE_SIZE_MAX, &text,
				      NULL) >= 0 &&
	       sscanf(text, "%32s %u", boot_id, ret) == 2 &&
	       strcmp(boot_id, env->boot_id_text) == 0;
}

void cmdlines_raise(const struct environment *env)
{
	struct cmdlines *c = env->cmdlines;
	char line[64];
	struct fault why = {};
	unsigned old = 0;

	if (c->raised)
		return;
	c->raised = true;
	if (saved_cmdlines_raise(CMDLINES_SIZE, &c->old, &why) < 0)
		log_warning("%s, ignoring: some tasks may show as <...>", why.text);
	if (c->old == 0 && read_note(env, &old))
		c->old = old;
	if (c->old == 0)
		return;
	(void)snprintf(line, sizeof(line), "%s %u\n", env->boot_id_text, c->old);
	(void)io_replace_file_at(state_root_fd(env->root), CMDLINES_FILE, line, strlen(line), 0640);
}

void cmdlines_resume(const struct environment *env)
{
	unsigned old;

	if (read_note(env, &old))
		cmdlines_raise(env);
}

void cmdlines_restore(const struct environment *env)
{
	struct cmdlines *c = env->cmdlines;
	struct fault why = {};

	if (c->old == 0)
		return;
	if (saved_cmdlines_restore(CMDLINES_SIZE, c->old, &why) < 0)
		log_warning("%s, ignoring", why.text);
	(void)unlinkat(state_root_fd(env->root), CMDLINES_FILE, 0);
}

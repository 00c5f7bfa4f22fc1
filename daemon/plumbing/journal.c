/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/escape.h"
#include "daemon/plumbing/journal.h"

#define JOURNALD "/run/systemd/journal/socket"

const char *journal_dir(void)
{
	return secure_getenv("FLYREC_JOURNAL");
}

/* sd-journal says nothing of directories that it cannot read */
static int explain(struct fault *why)
{
	static const char *const dirs[] = {JOURNAL_RUNTIME, JOURNAL_PERSISTENT};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		_cleanup_close_ int fd = open(dirs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0 && errno == EACCES)
			return fault_set(why, -EACCES,
					 "flyrecd was started without a session that reads the "
					 "journal, and may not open %s: restart it",
					 dirs[i]);
	}
	if (access(JOURNALD, F_OK) < 0)
		return fault_set(why, -ENOENT, "there is no journal: journald does not run");
	return fault_set(why, -ENOENT,
			 "there is no journal in " JOURNAL_PERSISTENT "; one in " JOURNAL_RUNTIME
			 " is hidden by the unit's sandbox, see OnJournal= in flyrec.session(5)");
}

int journal_open(sd_journal **ret, struct fault *why)
{
	_cleanup_(sd_journal_closep) sd_journal *journal = NULL;
	const char *dir = journal_dir();
	int r;

	if (dir)
		r = sd_journal_open_directory(&journal, dir, 0);
	else
		r = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);
	if (r < 0)
		return fault_errno(why, r, "cannot open the journal");
	if (!dir && sd_journal_has_runtime_files(journal) <= 0 &&
	    sd_journal_has_persistent_files(journal) <= 0)
		return explain(why);
	*ret = TAKE_PTR(journal);
	return 0;
}

int journal_field(sd_journal *journal, const char *name, const char **ret, size_t *ret_size)
{
	const size_t skip = strlen(name) + 1;
	const void *data;
	size_t size;
	int r = sd_journal_get_data(journal, name, &data, &size);

	if (r < 0)
		return r;
	if (size < skip)
		return -EBADMSG;
	*ret = (const char *)data + skip;
	*ret_size = size - skip;
	return 0;
}

char *journal_name(sd_journal *journal, const char *name, const char *other, size_t max)
{
	const char *text = "";
	size_t size = 0;
	char *shown;

	if (journal_field(journal, name, &text, &size) < 0 && other)
		(void)journal_field(journal, other, &text, &size);
	size = MIN(size, max);
	shown = malloc(ESCAPE_ROOM * size + 1);
	if (shown)
		shown[escape_bytes(shown, text, size, false)] = '\0';
	return shown;
}

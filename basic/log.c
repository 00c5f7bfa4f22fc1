/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sd_journal_send would add our file and line as fields of every caller; we name our own */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#include "basic/escape.h"
#include "basic/log.h"

/* The log level and target: the one piece of process-wide state besides signal masks (STYLE.md 6)
 */
static int max_level = LOG_INFO;
static bool to_journal;

static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) >= 0 && st.st_dev == dev && st.st_ino == ino;
}

void log_open(int level)
{
	max_level = level;
	to_journal = stderr_is_journal();
}

void log_set_level(int level)
{
	max_level = level;
}

int log_level(void)
{
	return max_level;
}

static int send_to_journal(int level, const char *session, const char *message_id, int error,
			   char *const *more, const char *text)
{
	const char *colon = session ? ": " : "";
	char *fields[5] = {};
	struct iovec iov[5 + LOG_FIELDS_MAX];
	int n = 0, r = -ENOMEM;

	if (asprintf(&fields[n++], "MESSAGE=%s%s%s", session ? session : "", colon, text) < 0 ||
	    asprintf(&fields[n++], "PRIORITY=%d", level) < 0 ||
	    (session && asprintf(&fields[n++], "FLYREC_SESSION=%s", session) < 0) ||
	    (message_id && asprintf(&fields[n++], "MESSAGE_ID=%s", message_id) < 0) ||
	    (error && asprintf(&fields[n++], "ERRNO=%d", -error) < 0)) {
		fields[n - 1] = NULL; /* undefined after a failed asprintf */
	} else {
		int i = 0;

		for (; i < n; i++)
			iov[i] = (struct iovec){fields[i], strlen(fields[i])};
		for (; more && *more && i < n + LOG_FIELDS_MAX; more++)
			iov[i++] = (struct iovec){*more, strlen(*more)};
		r = sd_journal_sendv(iov, i);
	}
	for (int i = 0; i < n; i++)
		free(fields[i]);
	return r;
}

_printf_(6, 0) static void put_line(int level, const char *session, const char *message_id,
				    int error, char *const *fields, const char *format, va_list ap)
{
	char text[2048], escaped[ESCAPE_ROOM * sizeof(text)];

	if (level > max_level)
		return;
	errno = -error; /* for %m */
	(void)vsnprintf(text, sizeof(text), format, ap);
	escaped[escape_bytes(escaped, text, strlen(text), false)] = '\0';
	if (to_journal && send_to_journal(level, session, message_id, error, fields, escaped) >= 0)
		return;
	if (session)
		(void)fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, session,
			      escaped);
	else
		(void)fprintf(stderr, "%s: %s\n", program_invocation_short_name, escaped);
}

int log_full(int level, const char *session, const char *message_id, int error, const char *format,
	     ...)
{
	va_list ap;

	va_start(ap, format);
	put_line(level, session, message_id, error, NULL, format, ap);
	va_end(ap);
	return error;
}

void log_fields(int level, const char *session, const char *message_id, char *const *fields,
		const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	put_line(level, session, message_id, 0, fields, format, ap);
	va_end(ap);
}

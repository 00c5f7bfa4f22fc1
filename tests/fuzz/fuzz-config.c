/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzz target: any bytes as a session's file and as flyrecd.conf. Must not crash; a session that
 * was read without an error must print as a text that reads back to the same text.
 */
#include <string.h>

#include "basic/parse.h"
#include "config/config-session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An error while reading back what was accepted is a finding: say which, then stop */
static void on_complaint(enum config_severity severity, const char *file, unsigned line,
			 const char *text, void *userdata)
{
	(void)fprintf(stderr, "%s:%u: %s\n", file, line, text);
}

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	(void)fprintf(stderr, "not so: %s\n", what);
	abort();
}

static struct session_config *read_session(struct config_reader *reader, const char *text,
					   size_t size)
{
	struct session_config *session = NULL;

	require(session_config_new("fuzz", NULL, &session) == 0 &&
			session_config_read(reader, "fuzz.conf", text, size, NULL, session) == 0 &&
			session_config_finish(reader, "fuzz.conf", session) == 0,
		"a session can be read");
	return session;
}

static void fuzz_session(const char *text, size_t size)
{
	_cleanup_(session_config_freep) struct session_config *session = NULL, *again = NULL,
							      *copy = NULL;
	struct config_reader reader = {}, reader_again = {.complain = on_complaint};

	session = read_session(&reader, text, size);
	require(session_config_copy(session, &copy) == 0, "a session can be copied");
	if (reader.n_errors > 0)
		return;
	again = read_session(&reader_again, session->text, strlen(session->text));
	require(reader_again.n_errors == 0 && reader_again.n_warnings == 0, "it reads back");
	require(strcmp(session->text, again->text) == 0, "to the same text");
	require(strcmp(session->trace_text, again->trace_text) == 0, "and trace_text");
}

static void fuzz_daemon(const char *text, size_t size)
{
	_cleanup_(session_config_freep) struct session_config *builtin = NULL, *defaults = NULL;
	struct daemon_config daemon = {};
	struct config_reader reader = {};

	require(daemon_config_init(&daemon) == 0 &&
			session_config_new("defaults", NULL, &builtin) == 0 &&
			session_config_new("defaults", NULL, &defaults) == 0 &&
			daemon_config_read(&reader, "flyrecd.conf", text, size, builtin, defaults,
					   &daemon) == 0,
		"flyrecd.conf can be read");
	require(daemon.instance_prefix != NULL, "there is always a prefix");
	daemon_config_done(&daemon);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_session((const char *)data, size);
	fuzz_daemon((const char *)data, size);
	return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "ctl/command.h"
#include "ctl/output.h"
#include "ctl/remote.h"

#define LOCALTIME "/etc/localtime"

/* As one word for the shell at the other end */
static void put_quoted(FILE *f, const char *word)
{
	(void)fputs(" '", f);
	for (; *word; word++)
		(void)fputs(*word == '\'' ? "'\\''" : (const char[]){*word, '\0'}, f);
	(void)fputc('\'', f);
}

/*
 * Our time zone as the other machine's C library understands it, whichever zones are installed
 * there: the last line of a file of tzfile(5)
 * Return: malloc'ed, NULL: unknown.
 */
static char *time_zone(void)
{
	_cleanup_free_ char *bytes = NULL;
	char *line;
	size_t size;

	if (getenv("TZ"))
		return strdup(getenv("TZ"));
	if (io_read_file_at(AT_FDCWD, LOCALTIME, &bytes, &size) < 0 || size < 2 ||
	    bytes[size - 1] != '\n')
		return NULL;
	bytes[size - 1] = '\0';
	line = memrchr(bytes, '\n', size - 1);
	return line && line[1] ? strdup(line + 1) : NULL;
}

static void put_variable(FILE *f, const char *name, char *value)
{
	_cleanup_free_ char *word = value ? strf("%s=%s", name, value) : NULL;

	if (word)
		put_quoted(f, word);
	free(value);
}

static char *command_line(const struct ctl *ctl, char *const *argv, bool shown)
{
	_cleanup_(strv_freep) char **options = NULL;
	char *command = NULL;
	size_t size;
	FILE *f = command_words(ctl, &options) < 0 ? NULL : open_memstream(&command, &size);

	if (!f)
		return NULL;
	(void)fputs("env", f);
	put_variable(f, "TZ", time_zone());
	put_variable(f, SCREEN_VARIABLE, shown ? output_screen() : NULL);
	(void)fputs(" flyrecctl --runtime-dir", f);
	put_quoted(f, ctl->runtime_dir);
	put_quoted(f, *argv++);
	STRV_FOREACH (option, options)
		put_quoted(f, *option);
	(void)fputs(" --", f);
	STRV_FOREACH (word, argv)
		put_quoted(f, *word);
	return fclose(f) == 0 ? command : NULL;
}

enum ctl_status remote_run(const struct ctl *ctl, char *const *argv, int out_fd)
{
	_cleanup_free_ char *command = command_line(ctl, argv, out_fd == STDOUT_FILENO);
	pid_t pid;
	int status;

	if (!command)
		return CTL_FAILED;
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		/* what comes here by standard input is for those after us */
		(void)dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
		(void)dup2(out_fd, STDOUT_FILENO);
		execlp("ssh", "ssh", "-xT", "--", ctl->host, command, NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return CTL_FAILED;
	status = WEXITSTATUS(status);
	if (status == 127)
		(void)ctl_complain(ctl, "cannot run ssh or flyrecctl on %s", ctl->host);
	else if (status > CTL_USAGE)
		(void)ctl_complain(ctl, "no connection to %s: ssh ended with status %d", ctl->host,
				   status);
	return status <= CTL_USAGE ? (enum ctl_status)status : CTL_FAILED;
}

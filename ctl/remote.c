/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>
#include <sys/wait.h>

#include "basic/macro.h"
#include "ctl/remote.h"

char *remote_quoted(const char *word)
{
	char *quoted = NULL;
	size_t size;
	FILE *f = open_memstream(&quoted, &size);

	if (!f)
		return NULL;
	(void)fputc('\'', f);
	for (; *word; word++)
		(void)fputs(*word == '\'' ? "'\\''" : (const char[]){*word, '\0'}, f);
	(void)fputc('\'', f);
	return fclose(f) == 0 ? quoted : NULL;
}

/* As one word for the shell at the other end */
static void put_quoted(FILE *f, const char *word)
{
	_cleanup_free_ char *quoted = remote_quoted(word);

	(void)fprintf(f, " %s", quoted ? quoted : word);
}

enum ctl_status remote_run(const struct ctl *ctl, const char *const *words, int out_fd)
{
	_cleanup_free_ char *command = NULL;
	size_t size;
	FILE *f = open_memstream(&command, &size);
	pid_t pid;
	int status;

	if (!f)
		return CTL_FAILED;
	(void)fputs("flyrecctl --runtime-dir", f);
	put_quoted(f, ctl->runtime_dir);
	for (const char *const *word = words; *word; word++)
		put_quoted(f, *word);
	if (fclose(f) != 0)
		return CTL_FAILED;
	pid = fork();
	if (pid == 0) {
		(void)dup2(out_fd, STDOUT_FILENO);
		execlp("ssh", "ssh", "-xT", "--", ctl->host, command, NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return CTL_FAILED;
	if (WEXITSTATUS(status) == 255)
		(void)fprintf(stderr,
			      "flyrecctl: %s: no connection to %s: ssh ended with status "
			      "255\n",
			      words[0], ctl->host);
	if (WEXITSTATUS(status) == 127)
		(void)fprintf(stderr, "flyrecctl: %s: cannot run ssh or flyrecctl on %s\n",
			      words[0], ctl->host);
	return WEXITSTATUS(status) == 0		  ? CTL_DONE
	       : WEXITSTATUS(status) == CTL_USAGE ? CTL_USAGE
						  : CTL_FAILED;
}

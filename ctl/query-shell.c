/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one that reads lines sends each text of SQL, or line that begins with a dot, as its size and
 * itself, and waits for a byte, the exit status. Ctrl-C is a signal to both: to one it means to end
 * what is running, to the other nothing, but at the prompt.
 */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#if HAVE_LIBEDIT
#include <editline/readline.h>
#endif

#include "basic/io.h"
#include "basic/log.h"
#include "basic/strv.h"
#include "ctl/confine.h"
#include "ctl/output.h"
#include "ctl/query-shell.h"
#include "query/vtab.h"

#define TEXT_MAX (1 * MIB)
#define QUIT	 255 /* in the place of a status */

static const char help[] =
	"SQL ends with a semicolon, and may take several lines.\n"
	".tables [PATTERN]        List tables; * and ? are fine\n"
	".schema [PATTERN]        Show their columns\n"
	".mode columns|csv|json   Print rows so from now on\n"
	".help                    Show this\n"
	".quit                    End, as Ctrl-D does; Ctrl-C ends what is running\n";

/* --- the one that reads recordings */

static void on_interrupt(int number)
{
	(void)number;
	query_run_interrupt();
}

static enum ctl_status set_mode(struct query_run *run, const char *name)
{
	static const char *const names[] = {
		[ROWS_COLUMNS] = "columns", [ROWS_CSV] = "csv", [ROWS_JSON] = "json"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i], name) == 0) {
			run->form = (enum rows_form)i;
			rows_set_form(run->rows, run->form);
			return CTL_DONE;
		}
	log_error("query: .mode: columns, csv or json is wanted");
	return CTL_FAILED;
}

static enum ctl_status show_tables(struct query_run *run, const char *pattern, bool columns)
{
	struct fault why;

	for (size_t i = 0; i < query_tables(run->query); i++) {
		const char *name = query_table_name(run->query, i);
		_cleanup_free_ char *sql = NULL;

		if (*pattern && fnmatch(pattern, name, FNM_CASEFOLD) != 0)
			continue;
		if (columns && vtab_sql(run->query, i, &sql, &why) < 0) {
			log_error("query: %s", why.text);
			return CTL_FAILED;
		}
		printf("%s%s\n", columns ? sql : name, columns ? ";" : "");
	}
	return CTL_DONE;
}

/* Return: an enum ctl_status, or QUIT */
static int run_command(struct query_run *run, const char *line)
{
	const size_t n = strcspn(line, " \t");
	const char *argument = line + n + strspn(line + n, " \t");
	_cleanup_free_ char *name = strndup(line, n);

	if (!name)
		return CTL_FAILED;
	if (strcmp(name, ".quit") == 0 || strcmp(name, ".exit") == 0)
		return QUIT;
	if (strcmp(name, ".tables") == 0 || strcmp(name, ".schema") == 0)
		return show_tables(run, argument, name[1] == 's');
	if (strcmp(name, ".mode") == 0)
		return set_mode(run, argument);
	if (strcmp(name, ".help") == 0) {
		(void)fputs(help, stdout);
		return CTL_DONE;
	}
	log_error("query: unknown command %s; see .help", name);
	return CTL_FAILED;
}

static int read_all(int fd, void *data, size_t size)
{
	for (char *p = data; size > 0;) {
		ssize_t n = read(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

static int serve(struct query_run *run, int fd)
{
	uint32_t size;

	while (read_all(fd, &size, sizeof(size)) >= 0) {
		_cleanup_free_ char *text = size <= TEXT_MAX ? calloc(1, size + 1) : NULL;
		uint8_t status;

		if (!text || read_all(fd, text, size) < 0)
			return -EIO;
		status = (uint8_t)(*text == '.' ? run_command(run, text)
						: (int)query_run_sql(run, text));
		if (fflush(stdout) != 0 || io_write_all(fd, &status, 1) < 0 || status == QUIT)
			return -EIO;
	}
	return 0;
}

static void reader_main(struct query_run *run, int fd)
{
	const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
	const uint8_t ready = 0;
	int r;

	(void)sigaction(SIGINT, &action, NULL);
	r = ctl_confine();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user would take it away again */
	if (r >= 0)
		r = query_run_begin(run);
	if (r >= 0)
		r = io_write_all(fd, &ready, 1);
	if (r >= 0)
		(void)serve(run, fd);
	query_run_end(run);
	_exit(r < 0 ? CTL_FAILED : CTL_DONE);
}

/* --- the one that reads lines */

struct prompt {
	bool terminal;
	char *line; /* of getline() */
	size_t room;
};

/* malloc'ed, NULL: there are no more */
static char *read_line(struct prompt *prompt, bool first)
{
	ssize_t n;

	if (prompt->terminal) {
#if HAVE_LIBEDIT
		char *line = readline(first ? "flyrec> " : "   ...> ");

		if (!line)
			printf("\n");
		else if (*line)
			(void)add_history(line);
		return line;
#else
		printf("%s", first ? "flyrec> " : "   ...> ");
		(void)fflush(stdout);
#endif
	}
	n = getline(&prompt->line, &prompt->room, stdin);
	if (n < 0)
		return NULL;
	if (n > 0 && prompt->line[n - 1] == '\n')
		prompt->line[n - 1] = '\0';
	return strdup(prompt->line);
}

/* Of one or several lines: 1, 0 at the end of the input, -ENOMEM */
static int read_text(struct prompt *prompt, char **ret)
{
	_cleanup_free_ char *text = NULL;
	char *line;

	while ((line = read_line(prompt, !text))) {
		char *more = text ? strf("%s\n%s", text, line) : strdup(line);
		const bool command = !text && *line == '.';

		free(line);
		free(text);
		text = more;
		if (!text)
			return -ENOMEM;
		if (command || query_database_complete(text))
			break;
		if (text[strspn(text, " \t\n")] == '\0') {
			free(text);
			text = NULL;
		}
	}
	*ret = TAKE_PTR(text);
	return *ret != NULL;
}

/* Return: its status, or negative errno if the other one is gone */
static int ask(int fd, const char *text)
{
	const uint32_t size = (uint32_t)strlen(text);
	uint8_t status;
	int r;

	if (size > TEXT_MAX) {
		log_error("query: that is too long");
		return CTL_FAILED;
	}
	r = io_write_all(fd, &size, sizeof(size));
	if (r >= 0)
		r = io_write_all(fd, text, size);
	if (r >= 0)
		r = read_all(fd, &status, 1);
	return r < 0 ? r : status;
}

/* At the prompt a terminal's Ctrl-C ends all; what fails in a pipe is its status, as of SQL there
 */
static enum ctl_status converse(int fd)
{
	struct prompt prompt = {.terminal = isatty(STDIN_FILENO)};
	enum ctl_status status = CTL_DONE;
	uint8_t ready;
	int r = read_all(fd, &ready, 1);

	if (r >= 0 && prompt.terminal)
		printf("A semicolon ends SQL; .tables lists tables, .help all that begins with a dot.\n");
	while (r >= 0) {
		_cleanup_free_ char *text = NULL;

		(void)signal(SIGINT, SIG_DFL);
		r = read_text(&prompt, &text);
		if (r <= 0)
			break;
		(void)signal(SIGINT, SIG_IGN);
		r = ask(fd, text);
		if (r == QUIT)
			break;
		if (r > 0 && !prompt.terminal)
			status = CTL_FAILED;
	}
	free(prompt.line);
	return r < 0 ? CTL_FAILED : status;
}

enum ctl_status query_shell(struct query_run *run)
{
	enum ctl_status status;
	int fds[2], wait;
	pid_t pid;

	(void)fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
		(void)log_error_errno(-errno, "query: cannot make a socket: %m");
		return CTL_FAILED;
	}
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		reader_main(run, fds[1]);
	}
	close(fds[1]);
	if (pid < 0) {
		(void)log_error_errno(-errno, "query: cannot start a process: %m");
		close(fds[0]);
		return CTL_FAILED;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	status = converse(fds[0]);
	close(fds[0]);
	while (waitpid(pid, &wait, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(wait))
		log_error("query: the process that reads the recordings died by signal %d",
			  WTERMSIG(wait));
	return WIFEXITED(wait) && WEXITSTATUS(wait) == 0 ? status : CTL_FAILED;
}

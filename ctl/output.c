/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "basic/escape.h"
#include "ctl/output.h"

static struct {
	bool columns, colours;
	pid_t pager;
} out;

/* --- formats */

char *format_bytes(uint64_t bytes)
{
	static const char units[] = "BKMGTPE";
	double value = (double)bytes;
	unsigned unit = 0;
	char *text;

	while (value >= 1024 && units[unit + 1]) {
		value /= 1024;
		unit++;
	}
	if (asprintf(&text, unit == 0 || value >= 100 ? "%.0f%c" : "%.1f%c", value, units[unit]) <
	    0)
		return NULL;
	return text;
}

char *format_time(uint64_t usec)
{
	time_t seconds = (time_t)(usec / USEC_PER_SEC);
	struct tm tm;
	char day[32], *text;

	if (usec == 0)
		return strdup("-");
	(void)localtime_r(&seconds, &tm);
	(void)strftime(day, sizeof(day), "%Y-%m-%d %H:%M:%S", &tm);
	if (asprintf(&text, "%s.%03u", day, (unsigned)(usec % USEC_PER_SEC / 1000)) < 0)
		return NULL;
	return text;
}

char *format_timespan(uint64_t usec)
{
	uint64_t s = usec / USEC_PER_SEC;
	char *text;
	int r;

	if (s >= 86400)
		r = asprintf(&text, "%" PRIu64 "d %" PRIu64 "h", s / 86400, s % 86400 / 3600);
	else if (s >= 3600)
		r = asprintf(&text, "%" PRIu64 "h %" PRIu64 "min", s / 3600, s % 3600 / 60);
	else if (s >= 60)
		r = asprintf(&text, "%" PRIu64 "min %" PRIu64 "s", s / 60, s % 60);
	else
		r = asprintf(&text, "%" PRIu64 ".%" PRIu64 "s", s, usec % USEC_PER_SEC / 100000);
	return r < 0 ? NULL : text;
}

/* --- tables */

void table_add(struct table *t, char *cell)
{
	size_t n = t->n_rows; /* cells, until the table is printed */
	char **more = reallocarray(t->cells, n + 1, sizeof(*more));

	if (!more || escape_replace(&cell) < 0 || !cell) {
		t->error = -ENOMEM;
		free(cell);
		t->cells = more ? more : t->cells;
		return;
	}
	t->cells = more;
	more[n] = cell;
	t->n_rows++;
}

void table_add_text(struct table *t, const char *text)
{
	table_add(t, strdup(text && *text ? text : "-"));
}

void table_add_number(struct table *t, uint64_t number)
{
	char *text;

	table_add(t, asprintf(&text, "%" PRIu64, number) < 0 ? NULL : text);
}

void table_add_bytes(struct table *t, uint64_t bytes)
{
	table_add(t, format_bytes(bytes));
}

void table_add_time(struct table *t, uint64_t usec)
{
	table_add(t, format_time(usec));
}

static void print_row(const struct table *t, char *const *cells, const int *width)
{
	for (unsigned i = 0; i < t->n_columns; i++) {
		bool last = i + 1 == t->n_columns;

		if (out.columns)
			printf("%*s%s",
			       t->numbers & (1U << i) ? width[i]
			       : last		      ? 0
						      : -width[i],
			       cells[i], last ? "" : "  ");
		else
			printf("%s%s", cells[i], last ? "" : "\t");
	}
	(void)putchar('\n');
}

int table_print(struct table *t)
{
	int width[TABLE_COLUMNS_MAX] = {}, r = t->error;
	size_t n = t->n_rows / MAX(t->n_columns, 1U);

	for (unsigned i = 0; i < t->n_columns && r >= 0; i++) {
		width[i] = (int)strlen(t->headings[i]);
		for (size_t row = 0; row < n; row++)
			width[i] = MAX(width[i], (int)strlen(t->cells[row * t->n_columns + i]));
	}
	if (r >= 0) {
		printf("%s", style(STYLE_BOLD));
		print_row(t, (char *const *)t->headings, width);
		printf("%s", style(STYLE_OFF));
	}
	for (size_t row = 0; row < n && r >= 0; row++)
		print_row(t, t->cells + row * t->n_columns, width);
	for (size_t i = 0; i < t->n_rows; i++)
		free(t->cells[i]);
	free(t->cells);
	t->cells = NULL;
	t->n_rows = 0;
	return r;
}

/* --- where it goes */

const char *style(const char *sequence)
{
	return out.colours ? sequence : "";
}

/* Standard output into $PAGER, a command line for the shell; less shows short texts at once */
static void start_pager(void)
{
	const char *pager = getenv("PAGER");
	int fds[2];

	if (!pager)
		pager = "less -FRSX";
	if (!*pager || strcmp(pager, "cat") == 0 || pipe2(fds, O_CLOEXEC) < 0)
		return;
	out.pager = fork();
	if (out.pager == 0) {
		(void)dup2(fds[0], STDIN_FILENO);
		execl("/bin/sh", "sh", "-c", pager, NULL);
		_exit(127);
	}
	if (out.pager > 0)
		(void)dup2(fds[1], STDOUT_FILENO);
	close(fds[0]);
	close(fds[1]);
}

void output_begin(const struct ctl *ctl)
{
	const char *term = getenv("TERM");

	if (ctl->json || !isatty(STDOUT_FILENO))
		return;
	out.columns = true;
	out.colours = !getenv("NO_COLOR") && term && strcmp(term, "dumb") != 0;
	if (ctl->no_pager)
		return;
	(void)fflush(stdout);
	(void)signal(SIGPIPE, SIG_IGN); /* the pager may be left early */
	start_pager();
}

enum text_escape output_escape(const struct ctl *ctl, int fd)
{
	if (ctl->raw == CTL_RAW_AUTO)
		return isatty(fd) ? TEXT_ALL : TEXT_LINES;
	return ctl->raw == CTL_RAW_YES ? TEXT_RAW : TEXT_ALL;
}

enum ctl_status output_end(void)
{
	bool left = false;
	int r = fflush(stdout) != 0 || ferror(stdout) ? -errno : 0;

	if (out.pager > 0) {
		left = r == -EPIPE;
		(void)fclose(stdout);
		(void)close(STDOUT_FILENO);
		(void)waitpid(out.pager, NULL, 0);
		out.pager = 0;
	}
	if (r >= 0 || left)
		return CTL_DONE;
	(void)fprintf(stderr, "flyrecctl: cannot write: %s\n", strerror(-r));
	return CTL_FAILED;
}

/* --- JSON */

enum ctl_status print_json(struct json_object *object)
{
	const char *text =
		object ? json_object_to_json_string_ext(
				 object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
		       : NULL;
	bool done = text && puts(text) >= 0 && fflush(stdout) == 0;

	if (!done)
		(void)fprintf(stderr, "flyrecctl: cannot write: %s\n",
			      text ? strerror(errno) : strerror(ENOMEM));
	json_object_put(object);
	return done ? CTL_DONE : CTL_FAILED;
}

void json_add(struct json_object *object, const char *key, struct json_object *value)
{
	if (!object || json_object_object_add(object, key, value) != 0)
		json_object_put(value);
}

struct json_object *json_text(const char *text)
{
	return json_object_new_string(text ? text : "");
}

struct json_object *json_number(uint64_t number)
{
	return json_object_new_uint64(number);
}

struct json_object *json_list(char *const *list)
{
	struct json_object *array = json_object_new_array();

	for (; array && list && *list; list++)
		(void)json_object_array_add(array, json_text(*list));
	return array;
}

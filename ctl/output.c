/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "basic/escape.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/strv.h"
#include "ctl/bus.h"
#include "ctl/output.h"
#include "ctl/rewrite.h"
#include "formats/trace-dat-read.h"
#include "writer/copy.h"

#define COLUMN_GAP 2U
#define SHORT_MIN  8U /* characters that are left of a text that is shortened */

static struct {
	bool columns, colours;
	unsigned width, height; /* of the terminal */
	int kept_fd;		/* in memory, what is for the terminal; -EBADF: nothing */
	int screen_fd;		/* the terminal then */
} out = {.kept_fd = -EBADF, .screen_fd = -EBADF};

/* --- formats */

char *format_bytes(uint64_t bytes)
{
	static const char units[] = "BKMGTPE";
	double value = (double)bytes;
	unsigned unit = 0;

	while (value >= 1024 && units[unit + 1]) {
		value /= 1024;
		unit++;
	}
	return strf(unit == 0 || value >= 100 ? "%.0f%c" : "%.1f%c", value, units[unit]);
}

char *format_time(uint64_t usec)
{
	time_t seconds = (time_t)(usec / USEC_PER_SEC);
	struct tm tm;
	char day[32];

	if (usec == 0)
		return strdup("-");
	(void)localtime_r(&seconds, &tm);
	(void)strftime(day, sizeof(day), "%Y-%m-%d %H:%M:%S", &tm);
	return strf("%s.%03u", day, (unsigned)(usec % USEC_PER_SEC / 1000));
}

char *format_time_after(uint64_t usec, uint64_t before)
{
	char *text = format_time(usec), *then = format_time(before);
	size_t day = strlen("2026-01-31 ");

	if (out.columns && text && then && strlen(text) > day && strncmp(text, then, day) == 0)
		memmove(text, text + day, strlen(text + day) + 1);
	free(then);
	return text;
}

char *format_timespan(uint64_t usec)
{
	uint64_t s = usec / USEC_PER_SEC;

	if (s >= 86400)
		return strf("%" PRIu64 "d %" PRIu64 "h", s / 86400, s % 86400 / 3600);
	if (s >= 3600)
		return strf("%" PRIu64 "h %" PRIu64 "min", s / 3600, s % 3600 / 60);
	if (s >= 60)
		return strf("%" PRIu64 "min %" PRIu64 "s", s / 60, s % 60);
	return strf("%" PRIu64 ".%" PRIu64 "s", s, usec % USEC_PER_SEC / 100000);
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
	table_add(t, strf("%" PRIu64, number));
}

void table_add_bytes(struct table *t, uint64_t bytes)
{
	table_add(t, format_bytes(bytes));
}

void table_add_time(struct table *t, uint64_t usec)
{
	table_add(t, format_time(usec));
}

unsigned text_width(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* Behind so many characters */
static const char *text_skip(const char *text, unsigned n)
{
	for (; *text && (n > 0 || ((unsigned char)*text & 0xc0) == 0x80); text++)
		n -= ((unsigned char)text[1] & 0xc0) != 0x80 && n > 0;
	return text;
}

char *text_shorten(const char *text, unsigned width, bool tail, const char *ellipsis)
{
	unsigned n = text_width(text), dots = text_width(ellipsis), keep;

	if (n <= width)
		return strdup(text);
	keep = width > dots ? width - dots : 0;
	return tail ? strf("%s%s", ellipsis, text_skip(text, n - keep))
		    : strf("%.*s%s", (int)(text_skip(text, keep) - text), text, ellipsis);
}

/* Without looking at what the rest of the process does with its locale */
bool output_is_utf8(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", 0);
	const char *charset = locale ? nl_langinfo_l(CODESET, locale) : "";
	bool utf8 = strcmp(charset, "UTF-8") == 0;

	if (locale)
		freelocale(locale);
	return utf8;
}

static const char *cell_of(const struct table *t, size_t row, unsigned column)
{
	return t->cells[row * t->n_columns + column];
}

static bool column_is_dull(const struct table *t, unsigned column)
{
	for (size_t row = 0; row < t->n_rows / t->n_columns; row++)
		if (strcmp(cell_of(t, row, column), "0") != 0 &&
		    strcmp(cell_of(t, row, column), "-") != 0)
			return false;
	return true;
}

static unsigned table_width(const struct table *t, const unsigned *width)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < t->n_columns; i++)
		sum += width[i] > 0 ? width[i] + COLUMN_GAP : 0;
	return sum > 0 ? sum - COLUMN_GAP : 0;
}

void table_fit(const struct table *t, unsigned screen, unsigned width[TABLE_COLUMNS_MAX])
{
	size_t n = t->n_rows / MAX(t->n_columns, 1U);

	for (unsigned i = 0; i < t->n_columns; i++) {
		width[i] = text_width(t->headings[i]);
		for (size_t row = 0; row < n; row++)
			width[i] = MAX(width[i], text_width(cell_of(t, row, i)));
	}
	/* First what can be shortened, down to something that is still of use */
	for (unsigned i = t->n_columns; i-- > 0;) {
		unsigned all = table_width(t, width);

		if (all > screen && (t->shorten | t->tails) & 1U << i && width[i] > SHORT_MIN)
			width[i] -= MIN(all - screen, width[i] - SHORT_MIN);
	}
	for (unsigned i = t->n_columns; i-- > 0 && table_width(t, width) > screen;)
		if (t->spare & 1U << i && column_is_dull(t, i))
			width[i] = 0;
}

static int print_cell(const struct table *t, unsigned column, const char *text, unsigned width,
		      bool last)
{
	_cleanup_free_ char *cell = NULL;
	unsigned fill;

	/* a name, or a number, keeps its length, whatever there is room for */
	cell = (t->shorten | t->tails) & 1U << column
		       ? text_shorten(text, width, t->tails & 1U << column,
				      output_is_utf8() ? "…" : "...")
		       : strdup(text);
	if (!cell)
		return -ENOMEM;
	fill = width - MIN(width, text_width(cell));
	printf("%*s%s", t->numbers & 1U << column ? (int)fill : 0, "", cell);
	if (!last)
		printf("%*s", (int)((t->numbers & 1U << column ? 0 : fill) + COLUMN_GAP), "");
	return 0;
}

static int print_row(const struct table *t, char *const *cells, const unsigned *width)
{
	unsigned last = t->n_columns;
	int r = 0;

	while (last-- > 0 && width[last] == 0)
		;
	for (unsigned i = 0; i <= last && r >= 0; i++)
		if (!out.columns)
			printf("%s%s", cells[i], i == last ? "" : "\t");
		else if (width[i] > 0)
			r = print_cell(t, i, cells[i], width[i], i == last);
	(void)putchar('\n');
	return r;
}

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->n_rows; i++)
		free(t->cells[i]);
	free(t->cells);
	t->cells = NULL;
	t->n_rows = 0;
}

int table_print(struct table *t)
{
	unsigned width[TABLE_COLUMNS_MAX] = {};
	size_t n = t->n_rows / MAX(t->n_columns, 1U);
	int r = t->error;

	if (r >= 0) {
		table_fit(t, output_width(), width);
		printf("%s", style(STYLE_BOLD));
		r = print_row(t, (char *const *)t->headings, width);
		printf("%s", style(STYLE_OFF));
	}
	for (size_t row = 0; row < n && r >= 0; row++)
		r = print_row(t, t->cells + row * t->n_columns, width);
	table_done(t);
	return r;
}

/* --- where it goes */

const char *style(const char *sequence)
{
	return out.colours ? sequence : "";
}

/* Of the terminal that standard output is, or that the near side of ssh has told of */
static bool find_screen(void)
{
	const char *told = getenv(SCREEN_VARIABLE), *term = getenv("TERM");
	struct winsize size = {};

	if (!told && !isatty(STDOUT_FILENO))
		return false;
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	out.width = told ? (unsigned)strtoul(told, NULL, 10) : size.ws_col;
	out.width = out.width > 0 ? out.width : 80;
	out.height = size.ws_row > 0 ? size.ws_row : 24;
	out.colours = told ? strstr(told, "colours") != NULL
			   : !getenv("NO_COLOR") && term && strcmp(term, "dumb") != 0;
	return true;
}

char *output_screen(void)
{
	int fd = out.kept_fd < 0 ? STDOUT_FILENO : out.screen_fd;

	if (!isatty(fd) || (out.kept_fd < 0 && !find_screen()))
		return NULL;
	return strf("%u%s", out.width, out.colours ? " colours" : "");
}

unsigned output_width(void)
{
	return out.columns ? out.width : UINT_MAX;
}

/* Keep what is printed until it is known how much it is */
static void keep_output(void)
{
	(void)fflush(stdout);
	out.kept_fd = memfd_create("flyrecctl", MFD_CLOEXEC);
	out.screen_fd = out.kept_fd < 0 ? -EBADF : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (out.screen_fd < 0 || dup2(out.kept_fd, STDOUT_FILENO) < 0) {
		close_p(&out.kept_fd);
		close_p(&out.screen_fd);
	}
}

void output_begin(const struct ctl *ctl)
{
	const char *term = getenv("TERM");

	if (ctl->json || !find_screen())
		return;
	out.columns = true;
	if (!ctl->no_pager && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0)
		keep_output();
}

/* $PAGER, a command line for the shell, reads what was kept */
static bool run_pager(void)
{
	const char *pager = getenv("PAGER");
	int status = 0;
	pid_t pid;

	if (!pager)
		pager = "less -FRX";
	if (!*pager || strcmp(pager, "cat") == 0)
		return false;
	pid = fork();
	if (pid == 0) {
		(void)dup2(out.kept_fd, STDIN_FILENO);
		execl("/bin/sh", "sh", "-c", pager, NULL);
		_exit(127);
	}
	/* 126, 127: there is no such pager */
	return pid > 0 && waitpid(pid, &status, 0) == pid &&
	       !(WIFEXITED(status) && WEXITSTATUS(status) >= 126);
}

/* Lines, and not what becomes of them on a narrow terminal: who looks can make it wider */
static bool fits_screen(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n < out.height; /* the last line is the next prompt's */
}

static int show_kept(void)
{
	_cleanup_free_ char *text = NULL;
	off_t end = lseek(out.kept_fd, 0, SEEK_END);
	size_t size;
	int r;

	(void)dup2(out.screen_fd, STDOUT_FILENO);
	if (end < 0 || lseek(out.kept_fd, 0, SEEK_SET) < 0)
		return -errno;
	r = io_read_up_to(out.kept_fd, (size_t)end, &text, &size);
	if (r < 0)
		return r;
	if (!fits_screen(text) && lseek(out.kept_fd, 0, SEEK_SET) == 0 && run_pager())
		return 0;
	return io_write_all(STDOUT_FILENO, text, size);
}

enum text_escape output_escape(const struct ctl *ctl, int fd)
{
	if (ctl->raw == CTL_RAW_AUTO)
		return isatty(fd) || getenv(SCREEN_VARIABLE) ? TEXT_ALL : TEXT_LINES;
	return ctl->raw == CTL_RAW_YES ? TEXT_RAW : TEXT_ALL;
}

bool output_is_aligned(void)
{
	return out.columns;
}

enum ctl_status output_end(void)
{
	int r = fflush(stdout) != 0 || ferror(stdout) ? -errno : 0;

	if (out.kept_fd >= 0) {
		int shown = show_kept();

		r = r < 0 ? r : shown;
		close_p(&out.kept_fd);
		close_p(&out.screen_fd);
		out.kept_fd = out.screen_fd = -EBADF;
	}
	if (r >= 0)
		return CTL_DONE;
	(void)fprintf(stderr, "flyrecctl: cannot write: %s\n", strerror(-r));
	return CTL_FAILED;
}

void output_warnings(const struct decoder *decoder)
{
	STRV_FOREACH (line, decoder_warnings(decoder))
		log_warning("%s: %s", decoder_dat(decoder)->path, *line);
}

/* --- --output= */

enum ctl_status output_open(const struct ctl *ctl, struct out_file *ret)
{
	struct fault why;

	(void)signal(SIGPIPE, SIG_IGN); /* a reader that leaves early is an error like others */
	if (out_file_open(ret, ctl->output, -EBADF, "copy", OUT_FILE_BINARY, &why) >= 0)
		return CTL_DONE;
	log_error("%s: %s", ctl->verb, why.text);
	return ret->kind == OUT_FILE_STANDARD ? CTL_USAGE : CTL_FAILED;
}

int output_copy(struct ctl *ctl, const char *session, const char *path, const struct out_file *to,
		void (*progress)(uint64_t done, uint64_t total))
{
	_cleanup_close_ int fd = bus_call_fd(ctl, NULL, NULL, "OpenFile", "ss", session, path);
	struct rewrite rewrite = {
		.name = path,
		.in_fd = fd,
		.out_fd = to->fd,
		.spool_fd = -EBADF,
		.version = 6,
		.progress = progress,
	};
	unsigned version = 6;
	struct fault why;
	int r;

	if (fd < 0)
		return fd;
	(void)trace_dat_version(fd, &version);
	if (version == 7 && ctl->raw != CTL_RAW_YES)
		return rewrite_file(&rewrite);
	r = copy_trace(fd, path, to->fd, progress, &why);
	if (r < 0)
		log_error("%s: %s", ctl->verb, why.text);
	return r;
}

int output_publish(const struct ctl *ctl, struct out_file *file)
{
	struct fault why;
	int r = out_file_publish(file, &why);

	if (r < 0)
		log_error("%s: %s", ctl->verb, why.text);
	return r;
}

/* --- JSON */

enum ctl_status put_json(struct json_object *object, const char *end)
{
	const char *text =
		object ? json_object_to_json_string_ext(
				 object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
		       : NULL;
	bool done = text && printf("%s%s", text, end) >= 0 && fflush(stdout) == 0;

	if (!done)
		(void)fprintf(stderr, "flyrecctl: cannot write: %s\n",
			      text ? strerror(errno) : strerror(ENOMEM));
	json_object_put(object);
	return done ? CTL_DONE : CTL_FAILED;
}

enum ctl_status print_json(struct json_object *object)
{
	return put_json(object, "\n");
}

void json_add(struct json_object *object, const char *key, struct json_object *value)
{
	if (!object || json_object_object_add(object, key, value) != 0)
		json_object_put(value);
}

void json_append(struct json_object *array, struct json_object *value)
{
	if (!array || json_object_array_add(array, value) != 0)
		json_object_put(value);
}

enum ctl_status print_json_member(const char *key, struct json_object *value)
{
	struct json_object *o = json_object_new_object();

	json_add(o, key, value);
	return print_json(o);
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

	for (; list && *list; list++)
		json_append(array, json_text(*list));
	return array;
}

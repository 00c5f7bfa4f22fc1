/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "formats/trace-dat.h"
#include "writer/metadata.h"
#include "writer/sections.h"

struct symbols {
	pthread_mutex_t lock;
	char *modules; /* /proc/modules as it was when text was read */
	char *text;
	size_t size;
	bool fixed; /* of another boot */
};

const char *symbols_path(void)
{
	const char *path = secure_getenv("FLYREC_KALLSYMS");

	return path && *path ? path : "/proc/kallsyms";
}

struct symbols *symbols_new(void)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (s)
		pthread_mutex_init(&s->lock, NULL);
	return s;
}

struct symbols *symbols_new_of(char *text)
{
	struct symbols *s = symbols_new();

	if (!s) {
		free(text);
		return NULL;
	}
	s->text = text;
	s->size = strlen(text);
	s->fixed = true;
	return s;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	free(s->modules);
	free(s->text);
	free(s);
}

/* The kernel shows zeros to those who may not know: worse than no symbols */
static bool addresses_hidden(const char *text)
{
	for (const char *line = text; *line;) {
		if (line[strspn(line, "0")] != ' ')
			return false; /* per-CPU symbols are at 0 for everyone, the others are not
				       */
		line = strchrnul(line, '\n');
		line += *line == '\n';
	}
	return true;
}

/*
 * "ADDRESS t __pfx_FUNCTION": bytes in front of a function that the kernel may patch. They are half
 * of all symbols, and nothing ever runs there. Only a call that does not return, at the end of a
 * function, has a return address there, which without them is in the function that called.
 */
static bool is_padding(const char *line)
{
	line += strspn(line, "0123456789abcdef");
	return line[0] == ' ' && line[1] && strncmp(line + 2, " __pfx_", 7) == 0;
}

/* Returns the size of what is left */
static size_t drop_padding(char *text)
{
	char *to = text;

	for (const char *line = text, *next; *line; line = next) {
		next = strchrnul(line, '\n');
		next += *next == '\n';
		if (is_padding(line))
			continue;
		memmove(to, line, (size_t)(next - line));
		to += next - line;
	}
	*to = '\0';
	return (size_t)(to - text);
}

static int symbols_refresh(struct symbols *s)
{
	_cleanup_free_ char *modules = NULL, *text = NULL;
	int r;

	if (s->fixed)
		return 0;
	r = io_read_file_at(AT_FDCWD, "/proc/modules", &modules, NULL);
	if (r == -ENOENT) { /* a kernel without modules */
		modules = strdup("");
		r = modules ? 0 : -ENOMEM;
	}
	if (r < 0)
		return r;
	if (s->text && strcmp(modules, s->modules) == 0)
		return 0;
	r = io_read_file_at(AT_FDCWD, symbols_path(), &text, NULL);
	if (r == -ENOENT || r == -EACCES ||
	    r == -EPERM) { /* a trace without symbols is still one */
		text = strdup("");
		r = text ? 0 : -ENOMEM;
	}
	if (r < 0)
		return r;
	free(s->text);
	free(s->modules);
	s->size = addresses_hidden(text) ? 0 : drop_padding(text);
	s->text = realloc(text, s->size + 1);
	TAKE_PTR(text);
	s->modules = TAKE_PTR(modules);
	return 0;
}

int symbols_copy(struct symbols *s, char **ret)
{
	char *text = NULL;
	int r;

	pthread_mutex_lock(&s->lock);
	r = symbols_refresh(s);
	if (r >= 0) {
		text = strndup(s->text, s->size);
		r = text ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&s->lock);
	if (r >= 0)
		*ret = text;
	return r;
}

static int put_header_file(FILE *out, const struct metadata_source *source, const char *name,
			   struct fault *why)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	size_t size;
	int r;

	path = strf("events/%s", name);
	if (!path)
		return -ENOMEM;
	r = io_read_file_at(source->instance_fd, path, &text, &size);
	if (r == -ENOENT)
		r = io_read_file_at(source->tracing_fd, path, &text, &size);
	if (r < 0)
		return fault_errno(why, r, "cannot read %s of tracefs", path);
	r = sections_put(out, name, strlen(name) + 1);
	return r < 0 ? r : sections_put_text64(out, text, size);
}

/* Every format file of a system, in the order of names. -ENOENT: no such system. */
static int read_formats(int tracing_fd, const char *system, struct sections_formats *ret)
{
	_cleanup_(strv_freep) char **names = NULL;
	_cleanup_free_ char *path = strf("events/%s", system);
	int r = path ? io_list_at(tracing_fd, path, NULL, &names) : -ENOMEM;

	STRV_FOREACH (name, names) {
		_cleanup_free_ char *file = strf("%s/%s/format", path, *name);
		char *text = NULL;

		r = file ? io_read_file_at(tracing_fd, file, &text, NULL) : -ENOMEM;
		if (r >= 0)
			r = sections_formats_add(ret, system, text);
		else if (r == -ENOENT || r == -ENODEV || r == -ENOTDIR)
			r = 0; /* gone with its module, or no event */
		if (r < 0)
			break;
	}
	return r;
}

static int put_event_formats(FILE *out, const struct metadata_source *source, struct fault *why)
{
	_cleanup_(sections_formats_done) struct sections_formats formats = {};
	int r = read_formats(source->tracing_fd, "ftrace", &formats);

	if (r < 0)
		return fault_errno(why, r, "cannot read events/ftrace of tracefs");
	STRV_FOREACH (system, source->systems) {
		r = read_formats(source->tracing_fd, *system, &formats);
		if (r < 0 && r != -ENOENT) /* gone with its module */
			return fault_errno(why, r, "cannot read events/%s of tracefs", *system);
	}
	return sections_put_formats(out, formats.list, formats.n);
}

static int put_symbols(FILE *out, struct symbols *s, struct fault *why)
{
	int r;

	pthread_mutex_lock(&s->lock);
	r = symbols_refresh(s);
	if (r < 0)
		(void)fault_errno(why, r, "cannot read /proc/kallsyms");
	else
		r = sections_put_text32(out, s->text, s->size);
	pthread_mutex_unlock(&s->lock);
	return r;
}

static int read_printk(int tracing_fd, char **ret, struct fault *why)
{
	int r = io_read_file_at(tracing_fd, "printk_formats", ret, NULL);

	if (r == -ENOENT) {
		*ret = strdup("");
		return *ret ? 0 : -ENOMEM;
	}
	return r < 0 ? fault_errno(why, r, "cannot read printk_formats of tracefs") : 0;
}

static int put_formats_of(FILE *out, const struct metadata_source *source, unsigned page_size,
			  struct fault *why)
{
	int r = sections_put_start(out, sizeof(long), page_size);

	if (r >= 0)
		r = put_header_file(out, source, TRACE_DAT_HEADER_PAGE, why);
	if (r >= 0)
		r = put_header_file(out, source, TRACE_DAT_HEADER_EVENT, why);
	return r < 0 ? r : put_event_formats(out, source, why);
}

static int write_kept(FILE *out, const struct metadata_kept *kept, struct symbols *symbols,
		      struct fault *why)
{
	int r = sections_put(out, kept->formats, kept->formats_size);

	if (r >= 0)
		r = put_symbols(out, symbols, why);
	return r < 0 ? r : sections_put_text32(out, kept->printk, strlen(kept->printk));
}

int metadata_write(FILE *out, const struct metadata_source *source, unsigned page_size,
		   struct symbols *symbols, struct fault *why)
{
	_cleanup_free_ char *printk = NULL;
	int r;

	if (source->kept)
		return write_kept(out, source->kept, symbols, why);
	r = put_formats_of(out, source, page_size, why);
	if (r >= 0)
		r = put_symbols(out, symbols, why);
	if (r >= 0)
		r = read_printk(source->tracing_fd, &printk, why);
	return r < 0 ? r : sections_put_text32(out, printk, strlen(printk));
}

void metadata_kept_done(struct metadata_kept *kept)
{
	free(kept->formats);
	free(kept->printk);
	*kept = (struct metadata_kept){0};
}

int metadata_keep(const struct metadata_source *source, unsigned page_size,
		  struct metadata_kept *ret, struct fault *why)
{
	struct metadata_kept kept = {0};
	FILE *out = open_memstream(&kept.formats, &kept.formats_size);
	int r;

	if (!out)
		return -ENOMEM;
	r = put_formats_of(out, source, page_size, why);
	if (fclose(out) != 0 && r >= 0)
		r = -ENOMEM;
	if (r >= 0)
		r = read_printk(source->tracing_fd, &kept.printk, why);
	if (r < 0) {
		metadata_kept_done(&kept);
		return r;
	}
	*ret = kept;
	return 0;
}

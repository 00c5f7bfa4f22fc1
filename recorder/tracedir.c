/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "recorder/kernel-text.h"
#include "recorder/tracedir.h"

int tracedir_open(struct tracedir *ret, const char *path)
{
	_cleanup_close_ int fd = -EBADF;
	char *copy;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	ret->fd = TAKE_FD(fd);
	ret->path = copy;
	return 0;
}

void tracedir_done(struct tracedir *dir)
{
	close_p(&dir->fd);
	free(dir->path);
	*dir = (struct tracedir){.fd = -EBADF};
}

/* Composes "WHAT: PATH: strerror" and, unless NULL, ": QUOTE" */
static _printf_(6, 0) int refuse(const struct tracedir *dir, const char *file, int error,
				 const char *quote, struct fault *why, const char *what, va_list ap)
{
	_cleanup_free_ char *tried = why ? vstrf(what, ap) : NULL;

	if (!tried)
		return fault_errno(why, error, "%s/%s", dir->path, file);
	return fault_set(why, error, "%s: %s/%s: %s%s%s", tried, dir->path, file, strerror(-error),
			 quote ? ": " : "", quote ? quote : "");
}

int tracedir_fault(const struct tracedir *dir, const char *file, int error, struct fault *why,
		   const char *what, ...)
{
	va_list ap;

	va_start(ap, what);
	(void)refuse(dir, file, error, NULL, why, what, ap);
	va_end(ap);
	return error;
}

int tracedir_read(const struct tracedir *dir, const char *file, char **ret, struct fault *why)
{
	int r = io_read_file_at(dir->fd, file, ret, NULL);

	return r < 0 ? tracedir_fault(dir, file, r, why, "cannot read") : 0;
}

int tracedir_read_line(const struct tracedir *dir, const char *file, char **ret, struct fault *why)
{
	int r = tracedir_read(dir, file, ret, why);

	if (r < 0)
		return r;
	for (size_t n = strlen(*ret); n > 0 && (*ret)[n - 1] == '\n'; n--)
		(*ret)[n - 1] = '\0';
	return 0;
}

int tracedir_write(const struct tracedir *dir, const char *file, const char *text, int flags,
		   struct fault *why, const char *what, ...)
{
	_cleanup_free_ char *before = NULL, *after = NULL, *quote = NULL;
	va_list ap;
	int r;

	/* The log outlives the refusals it tells of: only what is new in it is about this write. */
	(void)io_read_file_at(dir->fd, "error_log", &before, NULL);
	r = io_write_string_at(dir->fd, file, text, flags);
	if (r >= 0)
		return 0;
	if (io_read_file_at(dir->fd, "error_log", &after, NULL) >= 0 &&
	    (!before || strcmp(before, after) != 0))
		(void)kernel_text_error_log_last(after, &quote);
	va_start(ap, what);
	(void)refuse(dir, file, r, quote, why, what, ap);
	va_end(ap);
	return r;
}

bool tracedir_exists(const struct tracedir *dir, const char *file)
{
	return faccessat(dir->fd, file, F_OK, AT_EACCESS) == 0;
}

int tracedir_event_path(const char *system, const char *name, const char *file, char **ret)
{
	*ret = strf("events/%s%s%s/%s", system, name ? "/" : "", name ? name : "", file);
	return *ret ? 0 : -ENOMEM;
}

int first_fault(int first, int r, const struct fault *step, struct fault *why)
{
	if (r >= 0 || r == -ENOENT || first < 0)
		return first;
	if (why)
		*why = *step;
	return r;
}

void changes_add(struct changes *changes, const char *format, ...)
{
	size_t n = strlen(changes->text);
	va_list ap;

	if (changes->n++ > 0) {
		(void)snprintf(changes->text + n, sizeof(changes->text) - n, "; ");
		n = strlen(changes->text);
	}
	va_start(ap, format);
	(void)vsnprintf(changes->text + n, sizeof(changes->text) - n, format, ap);
	va_end(ap);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "basic/fault-point.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/strv.h"
#include "ctl/bus.h"
#include "ctl/source.h"
#include "ctl/view.h"
#include "writer/file-info.h"
#include "writer/store.h"

static bool is_path(const char *word)
{
	size_t n = strlen(word);
	struct stat st;

	return strchr(word, '/') || (n > 4 && strcmp(word + n - 4, ".dat") == 0) ||
	       (stat(word, &st) >= 0 && !S_ISDIR(st.st_mode));
}

int source_list_add(struct source_list *list, const char *name, int fd)
{
	char *copy = strdup(name);

	if (!copy || array_grow(&list->sources, list->n, sizeof(*list->sources)) < 0) {
		free(copy);
		close(fd);
		return log_error_errno(-ENOMEM, "%s: %m", name);
	}
	list->sources[list->n++] = (struct source){.name = copy, .fd = fd};
	return 0;
}

static int add_path(struct source_list *list, const char *path)
{
	int fd = io_open_at(AT_FDCWD, path, 0);

	if (fd < 0)
		return log_error_errno(fd, "%s: cannot open: %m", path);
	return source_list_add(list, path, fd);
}

/* Return: a descriptor, BUS_E_NOT_FOUND, or negative errno after a line on stderr */
static int open_segment(struct ctl *ctl, const char *session, const char *file)
{
	struct fault why;
	int fd = bus_call_fd(ctl, &why, NULL, "OpenFile", "ss", session, file);

	if (fd < 0 && fd != BUS_E_NOT_FOUND)
		log_error("%s: %s", file, why.text);
	return fd;
}

/* Retention may remove one before it is opened. @current: the one being written, if any, which may
 * be finished by now, and has another name then */
static int add_segment(struct ctl *ctl, struct source_list *list, const char *session,
		       const char *path, int current)
{
	_cleanup_close_ int fd = open_segment(ctl, session, path);
	struct stat a, b;

	if (fd < 0)
		return fd == BUS_E_NOT_FOUND ? 0 : fd;
	if (current >= 0 && fstat(fd, &a) >= 0 && fstat(current, &b) >= 0 && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino)
		return 0;
	return source_list_add(list, path, TAKE_FD(fd));
}

static bool is_current(const struct view_file *file)
{
	return ends_with(file->path, "/" STORE_CURRENT);
}

/* As far as the daemon and the time of day tell */
static bool is_wanted(const struct view_file *file, const struct event_filter *filter,
		      bool snapshots)
{
	const bool segment = strcmp(file->kind, "segment") == 0 && !is_current(file);

	/* one of several sessions together has others' events, too */
	if (!segment && !(snapshots && strcmp(file->kind, "snapshot") == 0 &&
			  !ends_with(file->path, "-together.dat")))
		return false;
	if (filter->since.realtime && file->end_usec < filter->since.value)
		return false;
	return !filter->until.realtime || file->start_usec <= filter->until.value;
}

/* The one being written is never too old: it may have more by now. Takes over @fd. */
static int add_current(struct source_list *list, const struct view_files *files, int fd,
		       const struct event_filter *filter)
{
	const char *path = STORE_CURRENT;
	struct file_info info;

	for (size_t i = 0; i < files->n; i++)
		if (is_current(&files->files[i]))
			path = files->files[i].path;
	if (filter->until.realtime && file_info_read(fd, STORE_CURRENT, &info) >= 0 &&
	    info.start_usec > filter->until.value) {
		close(fd);
		return 0;
	}
	return source_list_add(list, path, fd);
}

/* The one being written is opened before the others are listed: whatever is finished meanwhile is
 * among those then. @recording: number of the session, for struct source; 0: snapshots are not
 * wanted */
static int add_session(struct ctl *ctl, struct source_list *list, const char *session,
		       const struct event_filter *filter, unsigned recording)
{
	_cleanup_close_ int current = -EBADF;
	struct view_files files;
	size_t before = list->n;
	int r = bus_find_session(ctl, session, NULL);

	if (r < 0)
		return r;
	current = open_segment(ctl, session, "record/" STORE_CURRENT);
	if (current < 0 && current != BUS_E_NOT_FOUND)
		return current;
	fault_point("source-opened");
	r = view_read_files(ctl, session, &files);
	if (r < 0)
		return r;
	for (size_t i = 0; i < files.n && r >= 0; i++)
		if (is_wanted(&files.files[i], filter, recording > 0))
			r = add_segment(ctl, list, session, files.files[i].path, current);
	if (r >= 0 && current >= 0)
		r = add_current(list, &files, TAKE_FD(current), filter);
	view_done(view_files_fields, &files);
	for (size_t i = before; i < list->n; i++)
		list->sources[i].recording = recording;
	if (r < 0 || list->n > before)
		return r;
	log_error("%s: session \"%s\" has no %s%s; see flyrecctl list %s", ctl->verb, session,
		  recording > 0 ? "recordings" : "segments",
		  filter->since.set || filter->until.set ? " of that time" : "", session);
	return -ENOENT;
}

int source_list_open(struct ctl *ctl, char *const *words, const struct event_filter *filter,
		     bool snapshots, struct source_list *ret)
{
	struct source_list list = {};
	unsigned recording = 0;
	struct rlimit limit;
	int r = 0;

	/* a session may have more segments than the usual limit allows */
	if (getrlimit(RLIMIT_NOFILE, &limit) >= 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	for (; *words && r >= 0; words++)
		r = is_path(*words)
			    ? add_path(&list, *words)
			    : add_session(ctl, &list, *words, filter, snapshots ? ++recording : 0);
	if (r < 0) {
		source_list_done(&list);
		return r;
	}
	*ret = list;
	return 0;
}

void source_list_done(struct source_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free((char *)list->sources[i].name);
		close(list->sources[i].fd);
	}
	free(list->sources);
	*list = (struct source_list){};
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrec.so, for programs that have SQLite: `.load flyrec.so`, then SELECT flyrec_open('FILE'), or
 * FLYREC_SOURCES=FILE:FILE in the environment, for programs that only load it. A FILE may be a
 * directory, of which all *.dat are taken, as one recording. On the thread of the connection.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "query/query.h"
#include "query/sqlite.h"
#include "query/vtab.h"

#define API	  __attribute__((visibility("default")))
#define SEPARATOR ":"

/* As long as a connection has the tables */
struct opened {
	struct source *sources;
	size_t n;
	unsigned recordings;
};

/* All events */
static const struct event_filter no_filter;

static void close_all(void *userdata)
{
	struct opened *opened = userdata;

	for (size_t i = 0; i < opened->n; i++) {
		free((char *)opened->sources[i].name);
		close(opened->sources[i].fd);
	}
	free(opened->sources);
	free(opened);
}

static int add_file(struct opened *opened, int dir_fd, const char *name, const char *shown,
		    unsigned recording, struct fault *why)
{
	const int fd = io_open_at(dir_fd, name, 0);
	char *copy = fd < 0 ? NULL : strdup(shown);

	if (fd < 0)
		return fault_errno(why, fd, "%s: cannot open", shown);
	if (!copy || array_grow(&opened->sources, opened->n, sizeof(*opened->sources)) < 0) {
		free(copy);
		close(fd);
		return fault_errno(why, -ENOMEM, "%s", shown);
	}
	opened->sources[opened->n++] =
		(struct source){.name = copy, .fd = fd, .recording = recording};
	return 0;
}

/* One of several sessions together has others' events, too */
static bool is_recording(const char *name)
{
	return name[0] != '.' && ends_with(name, ".dat") && !ends_with(name, "-together.dat");
}

/* -ENOTDIR: it is none */
static int add_directory(struct opened *opened, const char *path, struct fault *why)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(strv_freep) char **names = NULL;
	int r = fd < 0 ? -errno : io_list_at(fd, ".", is_recording, &names);

	if (r < 0)
		return r;
	opened->recordings++;
	STRV_FOREACH (name, names) {
		_cleanup_free_ char *shown = strf("%s/%s", path, *name);

		r = shown ? add_file(opened, fd, *name, shown, opened->recordings, why)
			  : fault_errno(why, -ENOMEM, "%s", path);
		if (r < 0)
			return r;
	}
	return names ? 0 : fault_set(why, -ENOENT, "%s: no *.dat there", path);
}

static int add_path(struct opened *opened, const char *path, struct fault *why)
{
	int r = add_directory(opened, path, why);

	return r == -ENOTDIR || r == -ENOENT ? add_file(opened, AT_FDCWD, path, path, 0, why) : r;
}

/* Takes over what is open */
static int attach(sqlite3 *db, struct opened *opened, size_t *ret_tables, struct fault *why)
{
	const struct query_config config = {
		.sources = opened->sources,
		.n = opened->n,
		.filter = &no_filter,
		.on_free = close_all,
		.userdata = opened,
	};
	_cleanup_(query_unrefp) struct query *query = NULL;
	int r = query_new(&config, &query, why);

	if (r < 0) {
		close_all(opened);
		return r;
	}
	*ret_tables = query_tables(query);
	r = vtab_attach(query, db);
	return r == SQLITE_OK ? 0 : fault_set(why, -EIO, "%s", sqlite3_errstr(r));
}

static int open_paths(sqlite3 *db, char *const *paths, size_t *ret_tables, struct fault *why)
{
	struct opened *opened = calloc(1, sizeof(*opened));
	int r = opened ? 0 : fault_errno(why, -ENOMEM, "flyrec_open()");

	STRV_FOREACH (path, r < 0 ? NULL : paths) {
		r = add_path(opened, *path, why);
		if (r < 0)
			break;
	}
	if (r < 0) {
		if (opened)
			close_all(opened);
		return r;
	}
	return attach(db, opened, ret_tables, why);
}

/* flyrec_open(PATH, …): once; the number of tables */
static void on_flyrec_open(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	_cleanup_(strv_freep) char **paths = NULL;
	bool *is_open = sqlite3_user_data(context);
	struct fault why = {};
	size_t tables = 0;
	int r = argc > 0 ? 0 : fault_set(&why, -EINVAL, "flyrec_open(): a path is missing");

	if (*is_open)
		r = fault_set(&why, -EBUSY, "flyrec_open(): recordings are open already");
	for (int i = 0; i < argc && r >= 0; i++) {
		const char *path = (const char *)sqlite3_value_text(argv[i]);

		r = path ? strv_append(&paths, path)
			 : fault_set(&why, -EINVAL, "flyrec_open(): a path is NULL");
	}
	if (r >= 0)
		r = open_paths(sqlite3_context_db_handle(context), paths, &tables, &why);
	if (r < 0) {
		sqlite3_result_error(context, why.text[0] ? why.text : "out of memory", -1);
		return;
	}
	*is_open = true;
	sqlite3_result_int64(context, (sqlite3_int64)tables);
}

static int open_environment(sqlite3 *db, bool *is_open, char **error)
{
	_cleanup_(strv_freep) char **paths = NULL;
	_cleanup_free_ char *list = NULL;
	const char *variable = secure_getenv("FLYREC_SOURCES");
	struct fault why = {};
	char *next = NULL;
	size_t tables;
	int r = 0;

	if (!variable || !*variable)
		return SQLITE_OK;
	list = strdup(variable);
	for (char *path = list ? strtok_r(list, SEPARATOR, &next) : NULL; path && r >= 0;
	     path = strtok_r(NULL, SEPARATOR, &next))
		r = strv_append(&paths, path);
	if (!list || r < 0)
		return SQLITE_NOMEM;
	if (open_paths(db, paths, &tables, &why) < 0) {
		*error = sqlite3_mprintf("FLYREC_SOURCES: %s", why.text);
		return SQLITE_ERROR;
	}
	*is_open = true;
	return SQLITE_OK;
}

API int sqlite3_flyrec_init(sqlite3 *db, char **error, const sqlite3_api_routines *api);

/* As sqlite3_load_extension() looks for it in a file flyrec.so */
API int sqlite3_flyrec_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	int r = query_sqlite_init(db, error, api);
	bool *is_open;

	if (r != SQLITE_OK)
		return r;
	is_open = sqlite3_malloc64(sizeof(*is_open));
	if (!is_open)
		return SQLITE_NOMEM;
	*is_open = false;
	r = sqlite3_create_function_v2(db, "flyrec_open", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
				       is_open, on_flyrec_open, NULL, NULL, sqlite3_free);
	return r == SQLITE_OK ? open_environment(db, is_open, error) : r;
}

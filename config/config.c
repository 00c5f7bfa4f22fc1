/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/strv.h"
#include "config/config-files.h"
#include "config/config-session.h"
#include "config/config-trace.h"
#include "config/config.h"

#define SUFFIX ".conf"

/* The administrator's directory and the vendor's, for config_files_*(); NULL-terminated */
struct dirs {
	char *path[3];
};

static void dirs_done(struct dirs *dirs)
{
	for (size_t i = 0; i < ARRAY_SIZE(dirs->path); i++)
		free(dirs->path[i]);
}

/* @name and @suffix below both */
static int dirs_below(const struct dirs *dirs, const char *name, const char *suffix,
		      struct dirs *ret)
{
	for (size_t i = 0; dirs->path[i]; i++) {
		ret->path[i] = strf("%s/%s%s", dirs->path[i], name, suffix);
		if (!ret->path[i])
			return -ENOMEM;
	}
	return 0;
}

static const char *const *dirs_list(const struct dirs *dirs)
{
	return (const char *const *)dirs->path;
}

/* What config_load() works with */
struct loader {
	struct config_reader reader;
	struct dirs top;
	struct dirs sessions; /* sessions.d in each */
	struct session_config *builtin;
	struct session_config *defaults; /* with [Storage] and [Snapshot] of flyrecd.conf */
	struct daemon_config *config;
};

static void loader_done(struct loader *loader)
{
	config_reader_forget(&loader->reader);
	dirs_done(&loader->top);
	dirs_done(&loader->sessions);
	session_config_free(loader->builtin);
	session_config_free(loader->defaults);
	config_free(loader->config);
}

static int loader_init(struct loader *loader, const char *config_dir, const char *vendor_dir)
{
	loader->config = calloc(1, sizeof(*loader->config));
	loader->top.path[0] = strdup(config_dir);
	if (!loader->config || !loader->top.path[0])
		return -ENOMEM;
	if (vendor_dir) {
		loader->top.path[1] = strdup(vendor_dir);
		if (!loader->top.path[1])
			return -ENOMEM;
	}
	if (dirs_below(&loader->top, "sessions.d", "", &loader->sessions) < 0 ||
	    session_config_new("defaults", NULL, &loader->builtin) < 0 ||
	    session_config_new("defaults", NULL, &loader->defaults) < 0)
		return -ENOMEM;
	return daemon_config_init(loader->config);
}

/* Put one file into the object it is about: @session, or NULL for flyrecd.conf */
static int read_file(struct loader *loader, const char *path, struct session_config *session)
{
	_cleanup_free_ char *text = NULL;
	struct fault why = {};
	size_t size;
	int r;

	r = config_files_read(path, &text, &size, &why);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		config_complain(&loader->reader, CONFIG_ERROR, path, 0, "%s", why.text);
		return 0;
	}
	if (session)
		return session_config_read(&loader->reader, path, text, size, loader->defaults,
					   session);
	return daemon_config_read(&loader->reader, path, text, size, loader->builtin,
				  loader->defaults, loader->config);
}

/* As config_files_list(); a directory that cannot be read is a complaint, and empty */
static int list(struct loader *loader, const struct dirs *dirs, const char *suffix, char ***ret)
{
	_cleanup_free_ char *dir = NULL;
	struct fault why = {};
	int r;

	r = config_files_list(dirs_list(dirs), suffix, ret, &dir, &why);
	if (r >= 0 || r == -ENOMEM)
		return r;
	config_complain(&loader->reader, CONFIG_ERROR, dir, 0, "%s", why.text);
	return 0;
}

/* The files of @name.d in all of @dirs, in the order of their names */
static int read_drop_ins(struct loader *loader, const struct dirs *dirs, const char *name,
			 struct session_config *session)
{
	_cleanup_(strv_freep) char **names = NULL;
	_cleanup_(dirs_done) struct dirs below = {};
	int r;

	r = dirs_below(dirs, name, ".d", &below);
	if (r >= 0)
		r = list(loader, &below, SUFFIX, &names);
	STRV_FOREACH (n, names) {
		_cleanup_free_ char *path = NULL;

		r = config_files_find(dirs_list(&below), *n, &path, NULL);
		if (r >= 0 && path)
			r = read_file(loader, path, session);
		if (r < 0)
			return r;
	}
	return r;
}

static int read_daemon(struct loader *loader)
{
	_cleanup_free_ char *path = NULL;
	int r;

	r = config_files_find(dirs_list(&loader->top), "flyrecd.conf", &path, NULL);
	if (r >= 0 && path)
		r = read_file(loader, path, NULL);
	return r < 0 ? r : read_drop_ins(loader, &loader->top, "flyrecd.conf", NULL);
}

/* --- sessions */

bool config_is_session_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= SESSION_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
		       n;
}

static int add_session(struct daemon_config *config, struct session_config *session)
{
	struct session_config **more;

	more = reallocarray(config->sessions, config->n_sessions + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	more[config->n_sessions++] = session;
	config->sessions = more;
	return 0;
}

/* One session of name @name whose main file is @path */
static int read_session(struct loader *loader, const char *file_name, const char *name,
			const char *path)
{
	_cleanup_(session_config_freep) struct session_config *session = NULL;
	unsigned n_errors = loader->reader.n_errors;
	int r;

	config_reader_forget(&loader->reader);
	r = session_config_new(name, loader->defaults, &session);
	if (r < 0)
		return r;
	session->path = strdup(path);
	if (!session->path)
		return -ENOMEM;
	r = read_file(loader, path, session);
	if (r >= 0)
		r = read_drop_ins(loader, &loader->sessions, file_name, session);
	/* after an error the session as a whole is not judged: it might only repeat the error */
	if (r < 0 || loader->reader.n_errors > n_errors)
		return r;
	r = session_config_finish(&loader->reader, path, session);
	if (r < 0 || loader->reader.n_errors > n_errors)
		return r;
	r = add_session(loader->config, session);
	if (r >= 0)
		session = NULL;
	return r;
}

/* @file_name: NAME.conf */
static int find_session(struct loader *loader, const char *file_name)
{
	_cleanup_free_ char *path = NULL, *name = NULL;
	int r;

	r = config_files_find(dirs_list(&loader->sessions), file_name, &path, NULL);
	if (r < 0 || !path)
		return r;
	name = strndup(file_name, strlen(file_name) - strlen(SUFFIX));
	if (!name)
		return -ENOMEM;
	if (config_is_session_name(name))
		return read_session(loader, file_name, name, path);
	config_complain(&loader->reader, CONFIG_ERROR, path, 0,
			"not a name for a session: letters, digits, '_' and '-', at most %d",
			SESSION_NAME_MAX);
	return 0;
}

/* NAME.conf.d without NAME.conf: most likely misspelt. That of a masked session is fine. */
static int find_stray_drop_ins(struct loader *loader)
{
	_cleanup_(strv_freep) char **names = NULL;
	int r;

	r = list(loader, &loader->sessions, SUFFIX ".d", &names);
	if (r < 0)
		return r;
	STRV_FOREACH (n, names) {
		_cleanup_free_ char *dir = NULL, *path = NULL, *file_name = NULL;
		bool masked;

		file_name = strndup(*n, strlen(*n) - strlen(".d"));
		if (!file_name ||
		    config_files_find(dirs_list(&loader->sessions), *n, &dir, NULL) < 0 ||
		    config_files_find(dirs_list(&loader->sessions), file_name, &path, &masked) < 0)
			return -ENOMEM;
		if (dir && !path && !masked)
			config_complain(&loader->reader, CONFIG_WARNING, dir, 0,
					"ignored, there is no %s", file_name);
	}
	return 0;
}

static int read_sessions(struct loader *loader)
{
	_cleanup_(strv_freep) char **names = NULL;
	int r;

	r = list(loader, &loader->sessions, SUFFIX, &names);
	if (r < 0)
		return r;
	STRV_FOREACH (n, names) {
		r = find_session(loader, *n);
		if (r < 0)
			return r;
	}
	return find_stray_drop_ins(loader);
}

static int compare_sessions(const void *a, const void *b)
{
	return strcmp((*(struct session_config *const *)a)->name,
		      (*(struct session_config *const *)b)->name);
}

/* --- all of it */

static int check_config_dir(struct loader *loader, const char *config_dir)
{
	struct stat st;
	int r = 0;

	if (stat(config_dir, &st) < 0)
		r = -errno;
	else if (!S_ISDIR(st.st_mode))
		r = -ENOTDIR;
	if (r < 0)
		config_complain(&loader->reader, r == -ENOENT ? CONFIG_WARNING : CONFIG_ERROR,
				config_dir, 0, "cannot read the directory: %s", strerror(-r));
	return r == -ENOENT ? 0 : r;
}

static int load(struct loader *loader, const char *config_dir, const char *vendor_dir,
		unsigned *ret_n_faults)
{
	int r = loader_init(loader, config_dir, vendor_dir);

	if (r >= 0)
		r = check_config_dir(loader, config_dir);
	if (r >= 0)
		r = read_daemon(loader);
	if (r >= 0)
		r = read_sessions(loader);
	if (ret_n_faults)
		*ret_n_faults = loader->reader.n_errors + loader->reader.n_warnings;
	return r;
}

int config_check(const char *config_dir, const char *vendor_dir, config_check_probe_t on_probe,
		 config_complain_t complain, void *userdata, unsigned *ret_n_faults)
{
	_cleanup_(loader_done) struct loader loader = {
		.reader = {.complain = complain, .userdata = userdata, .on_probe = on_probe},
	};

	return load(&loader, config_dir, vendor_dir, ret_n_faults);
}

int config_load(const char *config_dir, const char *vendor_dir, config_complain_t complain,
		void *userdata, struct daemon_config **ret, unsigned *ret_n_faults)
{
	_cleanup_(loader_done) struct loader loader = {
		.reader = {.complain = complain, .userdata = userdata},
	};
	struct daemon_config *config;
	int r = load(&loader, config_dir, vendor_dir, ret_n_faults);

	if (r < 0)
		return r;
	config = TAKE_PTR(loader.config);
	/* "a-b.conf" sorts before "a.conf", but "a" before "a-b" */
	if (config->n_sessions > 0)
		qsort(config->sessions, config->n_sessions, sizeof(struct session_config *),
		      compare_sessions);
	*ret = config;
	return 0;
}

void config_free(struct daemon_config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < config->n_sessions; i++)
		session_config_free(config->sessions[i]);
	free(config->sessions);
	daemon_config_done(config);
	free(config);
}

const struct session_config *config_find(const struct daemon_config *config, const char *name)
{
	for (size_t i = 0; i < config->n_sessions; i++)
		if (strcmp(config->sessions[i]->name, name) == 0)
			return config->sessions[i];
	return NULL;
}

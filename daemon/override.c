/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/ini.h"
#include "basic/io.h"
#include "basic/strv.h"
#include "daemon/override.h"
#include "daemon/runtime-changes.h"

/* What the file says; NULL: nothing */
struct override {
	char *enabled;
	char **events; /* behind an empty Event= */
	bool has_events;
};

static void override_done(struct override *o)
{
	free(o->enabled);
	strv_free(o->events);
}

static int on_entry(const struct ini_entry *entry, void *userdata)
{
	struct override *o = userdata;

	if (!entry->key)
		return 0;
	if (strcmp(entry->section, "Session") == 0 && strcmp(entry->key, "Enabled") == 0) {
		free(o->enabled);
		o->enabled = strdup(entry->value);
		return o->enabled ? 0 : -ENOMEM;
	}
	if (strcmp(entry->section, "Trace") != 0 || strcmp(entry->key, "Event") != 0)
		return 0;
	o->has_events = true;
	return *entry->value ? strv_append(&o->events, entry->value) : 0;
}

static int open_dir(const char *config_dir, const char *name, int *ret_fd, struct fault *why)
{
	_cleanup_free_ char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/sessions.d", config_dir) >= 0) {
		(void)mkdir(path, 0755);
		free(path);
	}
	if (asprintf(&path, "%s/sessions.d/%s.conf.d", config_dir, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return fault_errno(why, -errno, "cannot make %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fault_errno(why, -errno, "cannot open %s", path);
	*ret_fd = fd;
	return 0;
}

static int read_override(int dir_fd, struct override *ret)
{
	static const struct ini_handler handler = {.on_entry = on_entry};
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = io_read_file_at(dir_fd, OVERRIDE_FILE, &text, &size);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : ini_parse(OVERRIDE_FILE, text, size, &handler, ret);
}

static int write_override(int dir_fd, const struct override *o)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	(void)fprintf(f, "# Written by flyrecctl --persist; remove this file to go back to what "
			 "the others say\n");
	if (o->enabled)
		(void)fprintf(f, "[Session]\nEnabled=%s\n", o->enabled);
	if (o->has_events)
		(void)fprintf(f, "[Trace]\nEvent=\n");
	STRV_FOREACH (event, o->events)
		(void)fprintf(f, "Event=%s\n", *event);
	if (fclose(f) != 0)
		return -ENOMEM;
	return io_write_file_at(dir_fd, OVERRIDE_FILE, text, size, 0644);
}

static int change(const char *config_dir, const char *name,
		  int (*set)(struct override *, const void *), const void *what, struct fault *why)
{
	_cleanup_(override_done) struct override o = {};
	_cleanup_close_ int dir_fd = -EBADF;
	int r = open_dir(config_dir, name, &dir_fd, why);

	if (r < 0)
		return r;
	r = read_override(dir_fd, &o);
	if (r >= 0)
		r = set(&o, what);
	if (r >= 0)
		r = write_override(dir_fd, &o);
	return r < 0 ? fault_errno(why, r, "cannot write %s/sessions.d/%s.conf.d/" OVERRIDE_FILE,
				   config_dir, name)
		     : 0;
}

static int set_events(struct override *o, const void *what)
{
	const struct session_config *config = what;

	strv_free(TAKE_PTR(o->events));
	o->has_events = true;
	for (size_t i = 0; i < config->trace.n_events; i++) {
		_cleanup_free_ char *text = runtime_event_text(&config->trace.events[i]);

		if (!text || strv_append(&o->events, text) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int set_enabled(struct override *o, const void *what)
{
	free(o->enabled);
	o->enabled = strdup(*(const bool *)what ? "yes" : "no");
	return o->enabled ? 0 : -ENOMEM;
}

int override_events(const char *config_dir, const struct session_config *config, struct fault *why)
{
	return change(config_dir, config->name, set_events, config, why);
}

int override_enabled(const char *config_dir, const char *name, bool enabled, struct fault *why)
{
	return change(config_dir, name, set_enabled, &enabled, why);
}

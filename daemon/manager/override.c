/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/ini.h"
#include "basic/io.h"
#include "basic/strv.h"
#include "daemon/manager/override.h"
#include "daemon/manager/runtime-changes.h"

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

/* A file being read */
struct reading {
	struct override *o;
	struct fault *why; /* of what cannot be read */
	bool other;	   /* it says more than we write */
};

static void on_fault(const char *file, unsigned line, const char *text, void *userdata)
{
	struct reading *reading = userdata;

	if (reading->why->error == 0)
		(void)fault_set(reading->why, -EINVAL, "%s:%u: %s", file, line, text);
}

static int on_entry(const struct ini_entry *entry, void *userdata)
{
	struct reading *reading = userdata;
	struct override *o = reading->o;

	if (!entry->key)
		return 0;
	if (strcmp(entry->section, "Session") == 0 && strcmp(entry->key, "Enabled") == 0) {
		free(o->enabled);
		o->enabled = strdup(entry->value);
		return o->enabled ? 0 : -ENOMEM;
	}
	if (strcmp(entry->section, "Trace") != 0 || strcmp(entry->key, "Event") != 0) {
		reading->other = true;
		return 0;
	}
	o->has_events = true;
	return *entry->value ? strv_append(&o->events, entry->value) : 0;
}

static int open_dir(const char *config_dir, const char *name, int *ret_fd, struct fault *why)
{
	_cleanup_free_ char *parent = NULL, *path = NULL;
	int fd;

	if (!config_is_session_name(name))
		return fault_set(why, -EINVAL, "%.64s cannot be a session", name);
	parent = strf("%s/sessions.d", config_dir);
	path = strf("%s/sessions.d/%s.conf.d", config_dir, name);
	if (!parent || !path)
		return fault_errno(why, -ENOMEM, "cannot keep it");
	(void)mkdir(parent, 0755);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return fault_errno(why, -errno, "cannot make %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fault_errno(why, -errno, "cannot open %s", path);
	*ret_fd = fd;
	return 0;
}

static int parse(const char *path, const char *text, size_t size, struct reading *reading)
{
	static const struct ini_handler handler = {.on_entry = on_entry, .on_fault = on_fault};
	int r = ini_parse(path, text, size, &handler, reading);

	return r < 0 ? fault_errno(reading->why, r, "cannot read %s", path) : reading->why->error;
}

/* What is in it may be an administrator's work: what cannot be read is not written over */
static int read_override(int dir_fd, const char *path, struct override *ret, struct fault *why)
{
	struct reading reading = {.o = ret, .why = why};
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = io_read_file_at(dir_fd, OVERRIDE_FILE, &text, &size);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? fault_errno(why, r, "cannot read %s", path)
		     : parse(path, text, size, &reading);
}

/* Whoever reads it must find what was meant, and nothing else */
static int check_text(const char *path, const char *text, size_t size, const struct override *o,
		      struct fault *why)
{
	_cleanup_(override_done) struct override back = {};
	struct fault inner = {};
	struct reading reading = {.o = &back, .why = &inner};
	int r = parse(path, text, size, &reading);

	if (r < 0)
		return fault_set(why, r, "not written, as it could not be read: %s", inner.text);
	if (reading.other || back.has_events != o->has_events ||
	    !text_equal(back.enabled, o->enabled) || !strv_equal(back.events, o->events))
		return fault_set(why, -EINVAL, "not written, as it would be read otherwise: %s",
				 path);
	return 0;
}

static int format_override(const struct override *o, char **ret, size_t *ret_size)
{
	FILE *f = open_memstream(ret, ret_size);

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
	return fclose(f) == 0 ? 0 : -ENOMEM;
}

static int write_override(int dir_fd, const char *path, const struct override *o, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = format_override(o, &text, &size);

	if (r >= 0) {
		r = check_text(path, text, size, o, why);
		if (r < 0)
			return r;
		r = io_write_file_at(dir_fd, OVERRIDE_FILE, text, size, 0644);
	}
	return r < 0 ? fault_errno(why, r, "cannot write %s", path) : 0;
}

static int change(const char *config_dir, const char *name,
		  int (*set)(struct override *, const void *), const void *what, struct fault *why)
{
	_cleanup_(override_done) struct override o = {};
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int dir_fd = -EBADF;
	int r;

	*why = (struct fault){};
	r = open_dir(config_dir, name, &dir_fd, why);
	if (r < 0)
		return r;
	path = strf("%s/sessions.d/%s.conf.d/" OVERRIDE_FILE, config_dir, name);
	if (!path)
		return fault_errno(why, -ENOMEM, "cannot keep it");
	r = read_override(dir_fd, path, &o, why);
	if (r < 0)
		return r;
	r = set(&o, what);
	return r < 0 ? fault_errno(why, r, "cannot write %s", path)
		     : write_override(dir_fd, path, &o, why);
}

static int set_events(struct override *o, const void *what)
{
	const struct session_config *config = what;

	strv_free(TAKE_PTR(o->events));
	o->has_events = true;
	return runtime_events(config, &o->events);
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/config-dir.h"

int config_dir_setup(void **state)
{
	struct config_dir *dir = calloc(1, sizeof(*dir));

	assert_non_null(dir);
	(void)snprintf(dir->path, sizeof(dir->path), "/tmp/flyrec-test-config.XXXXXX");
	assert_non_null(mkdtemp(dir->path));
	config_dir_write(dir, "etc/README", "not a configuration file\n");
	*state = dir;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void forget(struct config_dir *dir)
{
	config_free(dir->config);
	free(dir->complaints);
	dir->config = NULL;
	dir->complaints = NULL;
}

int config_dir_teardown(void **state)
{
	struct config_dir *dir = *state;

	forget(dir);
	assert_int_equal(nftw(dir->path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(dir);
	return 0;
}

/* The full path, its directories made */
static char *place(struct config_dir *dir, const char *name)
{
	char *path = NULL;

	assert_true(asprintf(&path, "%s/%s", dir->path, name) > 0);
	for (char *slash = path + strlen(dir->path) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(path, 0755);
		*slash = '/';
	}
	return path;
}

void config_dir_write_bytes(struct config_dir *dir, const char *name, const void *data, size_t size)
{
	_cleanup_free_ char *path = place(dir, name);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

void config_dir_write(struct config_dir *dir, const char *name, const char *text)
{
	config_dir_write_bytes(dir, name, text, strlen(text));
}

void config_dir_link(struct config_dir *dir, const char *name, const char *target)
{
	_cleanup_free_ char *path = place(dir, name);

	assert_int_equal(symlink(target, path), 0);
}

struct collector {
	const struct config_dir *dir;
	FILE *f;
};

static void collect(enum config_severity severity, const char *file, unsigned line,
		    const char *text, void *userdata)
{
	struct collector *collector = userdata;
	size_t n = strlen(collector->dir->path);

	assert_int_equal(strncmp(file, collector->dir->path, n), 0);
	(void)fprintf(collector->f, "%c %s:%u: %s\n", severity == CONFIG_WARNING ? 'w' : 'e',
		      file + n + 1, line, text);
}

int config_dir_load(struct config_dir *dir)
{
	_cleanup_free_ char *etc = NULL, *usr = NULL;
	struct collector collector = {.dir = dir};
	size_t size = 0;
	int r;

	forget(dir);
	assert_true(asprintf(&etc, "%s/etc", dir->path) > 0);
	assert_true(asprintf(&usr, "%s/usr", dir->path) > 0);
	collector.f = open_memstream(&dir->complaints, &size);
	assert_non_null(collector.f);
	r = config_load(etc, usr, collect, &collector, &dir->config, &dir->n_faults);
	assert_int_equal(fclose(collector.f), 0);
	return r;
}

const struct session_config *config_dir_session(const struct config_dir *dir, const char *name)
{
	const struct session_config *session = config_find(dir->config, name);

	if (!session)
		fail_msg("no session %s:\n%s", name, dir->complaints);
	return session;
}

const struct session_config *config_dir_load_session(struct config_dir *dir, const char *text)
{
	config_dir_write(dir, "etc/sessions.d/x.conf", text);
	assert_int_equal(config_dir_load(dir), 0);
	assert_string_equal(dir->complaints, "");
	assert_int_equal(dir->n_faults, 0);
	return config_dir_session(dir, "x");
}

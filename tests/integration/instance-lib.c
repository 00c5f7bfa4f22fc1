/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>

#include <tracefs.h>

#include "instance-lib.h"

static char *instances_before, *dynamic_before;

const char *lib_name(void)
{
	static char name[64];

	if (!name[0]) {
		const char *prefix = getenv("FLYREC_TEST_PREFIX");

		(void)snprintf(name, sizeof(name), "%.40s%d", prefix ? prefix : "t-instance.",
			       (int)getpid());
	}
	return name;
}

struct trace_config lib_config(void)
{
	return (struct trace_config){
		.clock = (char *)"mono",
		.buffer_size = MIB,
		.buffer_percent = 25,
	};
}

/* Instances of our name, and dynamic events that are ours: others may come and go meanwhile. */
static void list_ours(char **ret_instances, char **ret_dynamic)
{
	char **instances = tracefs_instances(NULL);
	char *text = NULL, *save, *line;

	*ret_instances = strdup("");
	for (char **i = instances; i && *i; i++) {
		char *more = NULL;

		if (strcmp(*i, lib_name()) != 0)
			continue;
		assert_true(asprintf(&more, "%s%s\n", *ret_instances, *i) > 0);
		free(*ret_instances);
		*ret_instances = more;
	}
	tracefs_list_free(instances);

	*ret_dynamic = strdup("");
	(void)io_read_file_at(AT_FDCWD, TRACING "/dynamic_events", &text, NULL);
	for (line = strtok_r(text, "\n", &save); text && line; line = strtok_r(NULL, "\n", &save)) {
		char *more = NULL;

		if (!strstr(line, GROUP))
			continue;
		assert_true(asprintf(&more, "%s%s\n", *ret_dynamic, line) > 0);
		free(*ret_dynamic);
		*ret_dynamic = more;
	}
	free(text);
}

int lib_set_up(void **state)
{
	list_ours(&instances_before, &dynamic_before);
	return 0;
}

static void assert_nothing_left(void)
{
	_cleanup_free_ char *instances = NULL, *dynamic = NULL;

	list_ours(&instances, &dynamic);
	assert_string_equal(instances, instances_before);
	assert_string_equal(dynamic, dynamic_before);
}

/* After a failed test too: the next one must find a clean kernel. */
int lib_tear_down(void **state)
{
	_cleanup_free_ char *instances = NULL, *dynamic = NULL;
	const struct trace_config config = lib_config();
	struct instance *instance;
	int clean;

	list_ours(&instances, &dynamic);
	clean = strcmp(instances, instances_before) == 0 && strcmp(dynamic, dynamic_before) == 0;
	if (instance_attach(lib_name(), GROUP, &config, &instance, NULL) >= 0)
		(void)instance_destroy(instance, NULL);
	free(instances_before);
	free(dynamic_before);
	if (!clean)
		print_error("left behind: %s%s", instances, dynamic);
	return clean ? 0 : -1;
}

static char *path_of(const char *file)
{
	char *path;

	assert_true(asprintf(&path, TRACING "/instances/%s/%s", lib_name(), file) > 0);
	return path;
}

void lib_write(const char *file, const char *text, bool truncate)
{
	_cleanup_free_ char *path = path_of(file);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | (truncate ? O_TRUNC : 0));

	assert_true(fd >= 0);
	if (text[0])
		assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
}

void lib_read(const char *file, char **ret)
{
	_cleanup_free_ char *path = path_of(file);

	assert_int_equal(io_read_file_at(AT_FDCWD, path, ret, NULL), 0);
}

void lib_assert_file(const char *file, const char *text)
{
	_cleanup_free_ char *now = NULL;

	lib_read(file, &now);
	if (!strstr(now, text))
		fail_msg("%s says %s, not %s", file, now, text);
}

void lib_assert_has(char **list, size_t i, const char *text)
{
	assert_true((int)i < tracefs_list_size(list));
	assert_string_equal(list[i], text);
}

struct instance *lib_create(const struct trace_config *config)
{
	struct instance *instance = NULL;
	struct fault why = {0};

	if (instance_create(lib_name(), GROUP, config, &instance, &why) < 0)
		fail_msg("%s", why.text);
	return instance;
}

void lib_assert_refused(const struct trace_config *config, int error, const char *text1,
			const char *text2)
{
	struct instance *instance = NULL;
	struct fault why = {0};
	int r = instance_create(lib_name(), GROUP, config, &instance, &why);

	if (r != -error)
		fail_msg("got %d: %s", r, why.text);
	assert_int_equal(why.error, r);
	print_message("           %s\n", why.text);
	if (!strstr(why.text, text1) || !strstr(why.text, text2))
		fail_msg("\"%s\" lacks \"%s\" or \"%s\"", why.text, text1, text2);
	assert_null(instance);
	assert_nothing_left();
}

void lib_destroy(struct instance *instance)
{
	struct fault why = {0};

	if (instance_destroy(instance, &why) < 0)
		fail_msg("%s", why.text);
	assert_nothing_left();
}

void lib_trace(char **ret)
{
	lib_read("trace", ret);
}

int lib_run(const struct CMUnitTest *tests, size_t n)
{
	struct fault why = {0};

	if (geteuid() != 0 || tracefs_usable(&why) < 0) {
		(void)fprintf(stderr, "SKIP: %s\n", why.text[0] ? why.text : "needs root");
		return 77;
	}
	return _cmocka_run_group_tests(lib_name(), tests, n, NULL, NULL) ? 1 : 0;
}

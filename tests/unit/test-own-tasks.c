/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is known of tasks: written in parts and read again, damaged and hostile ones too */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/crc32.h"
#include "basic/macro.h"
#include "formats/own-section.h"
#include "formats/own-tasks.h"

#define ROOM (64 * KIB)

struct heard {
	char text[8192];
	size_t n, n_damaged, damage_at;
};

static int on_task(void *userdata, const struct own_look *look, const struct own_task *task)
{
	struct heard *h = userdata;
	size_t n = strlen(h->text);

	h->n++;
	(void)snprintf(h->text + n, sizeof(h->text) - n,
		       "%s%" PRIu64 "/%u: %d %d %" PRIu64 " %s %s", n ? "\n" : "", look->boot,
		       look->hierarchy, task->pid, task->tgid, task->start, task->name,
		       task->cgroup ? task->cgroup : "-");
	return 0;
}

static void on_damage(void *userdata, size_t at)
{
	struct heard *h = userdata;

	h->n_damaged++;
	h->damage_at = at;
}

static void read_all(const uint8_t *bytes, size_t size, bool big_endian, struct heard *ret)
{
	const struct own_tasks_reader reader = {on_task, on_damage, ret};

	*ret = (struct heard){};
	assert_int_equal(own_tasks_read(bytes, size, big_endian, &reader), 0);
}

struct parts {
	struct own_tasks_writer *writer;
	uint8_t *bytes;
	size_t size;
};

static void begin(struct parts *p, uint64_t boot, uint32_t hierarchy)
{
	const struct own_look look = {boot, hierarchy};

	if (!p->writer)
		p->writer = own_tasks_writer_new();
	assert_non_null(p->writer);
	own_tasks_begin(p->writer, &look, ROOM);
}

static void add(struct parts *p, int32_t pid, int32_t tgid, uint64_t start, const char *name,
		const char *cgroup)
{
	const struct own_task task = {pid, tgid, start, name, cgroup};

	assert_int_equal(own_tasks_add(p->writer, &task), 0);
}

static void end(struct parts *p, bool big_endian)
{
	_cleanup_free_ uint8_t *part = NULL;
	size_t size;

	assert_int_equal(own_tasks_end(p->writer, big_endian, &part, &size), 0);
	assert_int_equal(size % 16, 0);
	p->bytes = realloc(p->bytes, p->size + size + 1);
	assert_non_null(p->bytes);
	if (part)
		memcpy(p->bytes + p->size, part, size);
	p->size += size;
}

static void parts_done(struct parts *p)
{
	own_tasks_writer_free(p->writer);
	free(p->bytes);
}

/* Three parts of which the second needs strings of the first */
static void make(struct parts *p, bool big_endian)
{
	*p = (struct parts){};
	begin(p, 5000, 9);
	add(p, 1, 1, 0, "systemd", "/init.scope");
	add(p, 2, 2, 0, "kthreadd", NULL);
	add(p, 400, 399, 123456, "web", "/a.slice/web.service");
	add(p, 70000, 70000, 17, "web", "/a.slice/web.service");
	end(p, big_endian);
	begin(p, UINT64_MAX, 9);
	add(p, 3, 4194303, UINT64_C(1) << 62, "x", "/a.slice/web.service");
	add(p, 4194304, 1, 0, "", "");
	end(p, big_endian);
	begin(p, 6000, 0);
	add(p, 1, 1, 1, "systemd", "/init.scope");
	end(p, big_endian);
}

#define FIRST                                               \
	"5000/9: 1 1 0 systemd /init.scope\n"               \
	"5000/9: 2 2 0 kthreadd -\n"                        \
	"5000/9: 400 399 123456 web /a.slice/web.service\n" \
	"5000/9: 70000 70000 17 web /a.slice/web.service"
#define SECOND                                                                           \
	"18446744073709551615/9: 3 4194303 4611686018427387904 x /a.slice/web.service\n" \
	"18446744073709551615/9: 4194304 1 0  "
#define THIRD "6000/0: 1 1 1 systemd /init.scope"

static void test_parts(void **state)
{
	for (unsigned big = 0; big < 2; big++) {
		struct heard heard;
		struct parts p;

		make(&p, big);
		read_all(p.bytes, p.size, big, &heard);
		assert_string_equal(heard.text, FIRST "\n" SECOND "\n" THIRD);
		assert_int_equal(heard.n_damaged, 0);
		/* of another byte order nothing makes sense */
		read_all(p.bytes, p.size, !big, &heard);
		assert_int_equal(heard.n, 0);
		assert_int_equal(heard.n_damaged, 1);
		parts_done(&p);
	}
}

/* A thousand tasks of a hundred services are some bytes each */
static void test_size(void **state)
{
	struct parts p = {};
	struct heard heard;

	begin(&p, 1, 0);
	for (int i = 0; i < 1000; i++) {
		char name[16], cgroup[64];

		(void)snprintf(name, sizeof(name), "name%d", i % 200);
		(void)snprintf(cgroup, sizeof(cgroup), "/system.slice/some-name-%d.service",
			       i % 100);
		add(&p, 1000 + 3 * i, 1000 + 3 * i, 100000 + 7 * (uint64_t)i, name, cgroup);
	}
	end(&p, false);
	assert_in_range(p.size, 1000, 1000 * 12);
	read_all(p.bytes, p.size, false, &heard);
	assert_int_equal(heard.n, 1000);
	parts_done(&p);
}

static void test_nothing(void **state)
{
	struct parts p = {};
	struct heard heard;

	begin(&p, 1, 0);
	end(&p, false);
	assert_int_equal(p.size, 0);
	read_all(p.bytes, 0, false, &heard);
	assert_int_equal(heard.n + heard.n_damaged, 0);
	parts_done(&p);
}

static void test_full(void **state)
{
	const struct own_look look = {1, 0};
	struct parts p = {.writer = own_tasks_writer_new()};
	struct heard heard;
	size_t n = 0;
	int r;

	own_tasks_begin(p.writer, &look, 1001);
	do {
		char name[16];
		const struct own_task task = {(int32_t)n + 1, 1, 5, name, "/same"};

		(void)snprintf(name, sizeof(name), "name%zu", n);
		r = own_tasks_add(p.writer, &task);
		n += r == 0;
	} while (r == 0);
	assert_int_equal(r, OWN_TASKS_E_FULL);
	end(&p, false);
	assert_in_range(p.size, 800, 1000);
	read_all(p.bytes, p.size, false, &heard);
	assert_int_equal(heard.n, n);
	/* there is none for a head alone, either */
	own_tasks_begin(p.writer, &look, 20);
	assert_int_equal(own_tasks_add(p.writer, &(struct own_task){1, 1, 1, "", NULL}),
			 OWN_TASKS_E_FULL);
	parts_done(&p);
}

/* What came behind a part that could not be written does without its strings */
static void test_forget(void **state)
{
	struct parts p = {};
	struct heard heard;
	size_t first;

	begin(&p, 1, 0);
	add(&p, 1, 1, 1, "a", "/a");
	end(&p, false);
	first = p.size;
	begin(&p, 2, 0);
	add(&p, 2, 2, 2, "b", "/b");
	end(&p, false);
	p.size = first;
	own_tasks_forget(p.writer);
	begin(&p, 3, 0);
	add(&p, 3, 3, 3, "b", "/a");
	end(&p, false);
	read_all(p.bytes, p.size, false, &heard);
	assert_string_equal(heard.text, "1/0: 1 1 1 a /a\n3/0: 3 3 3 b /a");
	assert_int_equal(heard.n_damaged, 0);
	parts_done(&p);
}

static size_t size_of_part(const struct parts *p, size_t at)
{
	return own_u32(false, p->bytes + at);
}

/* A flipped bit costs its part, and what needs that part's strings; nothing else is heard */
static void test_damage(void **state)
{
	struct parts p;

	make(&p, false);
	for (size_t bit = 0; bit < 8 * p.size; bit++) {
		size_t second = size_of_part(&p, 0), third = second + size_of_part(&p, second);
		bool in_size;
		struct heard heard;

		p.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
		read_all(p.bytes, p.size, false, &heard);
		in_size = bit / 8 < 4 || (bit / 8 >= second && bit / 8 < second + 4) ||
			  (bit / 8 >= third && bit / 8 < third + 4);
		assert_true(heard.n_damaged > 0);
		if (bit / 8 < second && !in_size)
			assert_string_equal(heard.text, "");
		else if (bit / 8 >= second && bit / 8 < third && !in_size)
			assert_string_equal(heard.text, FIRST);
		else if (bit / 8 >= third)
			assert_string_equal(heard.text, FIRST "\n" SECOND);
		p.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	for (size_t size = 0; size < p.size; size++) {
		/* so that a sanitizer sees who reads behind it */
		_cleanup_free_ uint8_t *cut = malloc(size + 1);
		struct heard heard;

		memcpy(cut, p.bytes, size);
		read_all(cut, size, false, &heard);
		assert_true(heard.n < 7);
		assert_true(strncmp(heard.text, FIRST, strlen(heard.text)) == 0 ||
			    strncmp(heard.text, FIRST "\n" SECOND, strlen(heard.text)) == 0);
	}
	parts_done(&p);
}

/* A part that has lost its strings to another is damaged, one that begins anew is not */
static void test_missing_part(void **state)
{
	struct parts p;
	struct heard heard;
	size_t second;

	make(&p, false);
	second = size_of_part(&p, 0);
	read_all(p.bytes + second, p.size - second, false, &heard);
	assert_int_equal(heard.n, 0);
	assert_int_equal(heard.n_damaged, 2);
	own_tasks_forget(p.writer);
	begin(&p, 7000, 0);
	add(&p, 9, 9, 9, "anew", "/b");
	end(&p, false);
	read_all(p.bytes + second, p.size - second, false, &heard);
	assert_string_equal(heard.text, "7000/0: 9 9 9 anew /b");
	parts_done(&p);
}

/* Anything at all behind a right checksum */
static void test_hostile(void **state)
{
	unsigned seed = 1;

	for (unsigned i = 0; i < 20000; i++) {
		struct parts p;
		struct heard heard;
		size_t size;

		make(&p, false);
		size = size_of_part(&p, 0);
		for (unsigned k = 0; k <= i % 4; k++)
			p.bytes[8 + (size_t)rand_r(&seed) % (size - 8)] = (uint8_t)rand_r(&seed);
		own_put_u32(false, p.bytes + 4, crc32_add(0, p.bytes + 8, size - 8));
		read_all(p.bytes, p.size, false, &heard);
		parts_done(&p);
	}
}

static int refuse(void *userdata, const struct own_look *look, const struct own_task *task)
{
	(*(unsigned *)userdata)++;
	return -EINTR;
}

static void test_stop(void **state)
{
	unsigned n = 0;
	const struct own_tasks_reader reader = {.on_task = refuse, .userdata = &n};
	struct parts p;

	make(&p, false);
	assert_int_equal(own_tasks_read(p.bytes, p.size, false, &reader), -EINTR);
	assert_int_equal(n, 1);
	parts_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),	     cmocka_unit_test(test_size),
		cmocka_unit_test(test_nothing),	     cmocka_unit_test(test_full),
		cmocka_unit_test(test_forget),	     cmocka_unit_test(test_damage),
		cmocka_unit_test(test_missing_part), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

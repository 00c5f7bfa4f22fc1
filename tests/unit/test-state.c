/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/macro.h"
#include "basic/strv.h"
#include "daemon/session/state.h"
#include "tests/unit/tmp.h"

static struct state full(void)
{
	static uint64_t published[] = {0, UINT64_MAX};
	static struct ledger_base base[2] = {{1, 2, 3, 4, 1 << 20}, {UINT64_MAX, 0, 5, 6, 0}};
	static char *synthetic[] = {(char *)"lat u64 delta; pid_t pid", (char *)"other int x",
				    NULL};
	static char *watched[] = {(char *)"-oom:mark_victim", (char *)"a:b if c == 1", NULL};

	return (struct state){
		.session = (char *)"sched",
		.instance = (char *)"flyrec.sched",
		.group = (char *)"flyrec_sched",
		.synthetic = synthetic,
		.watched = watched,
		.boot_id = (char *)"0123456789abcdef0123456789abcdef",
		.inode = UINT64_MAX - 1,
		.paused = true,
		.mounted = true,
		.file_id = UINT64_MAX,
		.published = published,
		.n_published = 2,
		.handed_over = true,
		.trace_text = (char *)"Event=sched:sched_switch\ntrace\nClock=mono\n",
		.base = base,
		.n_cpus = 2,
	};
}

static void assert_same(const struct state *a, const struct state *b)
{
	size_t i;

	assert_string_equal(a->session, b->session);
	assert_string_equal(a->instance, b->instance);
	assert_string_equal(a->group, b->group);
	assert_string_equal(a->boot_id, b->boot_id);
	assert_string_equal(a->trace_text, b->trace_text);
	assert_int_equal(a->inode, b->inode);
	assert_int_equal(a->paused, b->paused);
	assert_int_equal(a->mounted, b->mounted);
	assert_int_equal(a->file_id, b->file_id);
	assert_int_equal(a->n_published, b->n_published);
	if (a->n_published > 0)
		assert_memory_equal(a->published, b->published,
				    a->n_published * sizeof(*a->published));
	assert_int_equal(a->handed_over, b->handed_over);
	assert_int_equal(a->n_cpus, b->n_cpus);
	if (a->n_cpus > 0)
		assert_memory_equal(a->base, b->base, a->n_cpus * sizeof(*a->base));
	assert_int_equal(!a->synthetic, !b->synthetic);
	for (i = 0; a->synthetic && a->synthetic[i]; i++)
		assert_string_equal(a->synthetic[i], b->synthetic[i]);
	assert_true(!b->synthetic || !b->synthetic[i]);
	assert_true(strv_equal(a->watched, b->watched));
}

static void test_round_trip(void **state)
{
	struct state written = full();
	struct state *read = NULL;
	struct stat st;
	struct tmp tmp;

	tmp_init(&tmp);
	assert_int_equal(state_read(tmp.fd, &read), -ENOENT);
	assert_int_equal(state_remove(tmp.fd), 0);
	assert_int_equal(state_write(tmp.fd, &written), 0);
	assert_int_equal(state_read(tmp.fd, &read), 0);
	assert_same(&written, read);
	/* What was read can be written again, over what is there; nothing else is left behind */
	assert_int_equal(state_write(tmp.fd, read), 0);
	state_free(read);
	assert_int_equal(state_read(tmp.fd, &read), 0);
	assert_same(&written, read);
	state_free(read);
	assert_int_equal(tmp_count(&tmp), 1);
	assert_int_equal(fstatat(tmp.fd, "state", &st, 0), 0);
	assert_int_equal(st.st_mode & 0137, 0);
	assert_int_equal(state_remove(tmp.fd), 0);
	assert_int_equal(state_read(tmp.fd, &read), -ENOENT);
	tmp_done(&tmp);
}

static void test_least(void **state)
{
	struct state written = full();
	struct state *read = NULL;
	struct tmp tmp;

	written.synthetic = NULL;
	written.watched = NULL;
	written.n_cpus = 0;
	written.handed_over = false;
	written.inode = 0;
	written.trace_text = (char *)"";
	tmp_init(&tmp);
	assert_int_equal(state_write(tmp.fd, &written), 0);
	assert_int_equal(state_read(tmp.fd, &read), 0);
	assert_same(&written, read);
	state_free(read);
	tmp_done(&tmp);
	state_free(NULL);
}

#define HEAD "instance i\ngroup g\nboot-id b\n"

static void test_later_version(void **state)
{
	struct state *read = NULL;
	struct tmp tmp;

	tmp_init(&tmp);
	tmp_write(&tmp, "state", HEAD "instance j\nfrom-a-later-version yes please\ntrace\nx");
	assert_int_equal(state_read(tmp.fd, &read), 0);
	assert_string_equal(read->instance, "j");
	assert_string_equal(read->trace_text, "x");
	assert_int_equal(read->inode, 0);
	state_free(read);
	tmp_done(&tmp);
}

static void test_earlier_version(void **state)
{
	struct state *read = NULL;
	struct tmp tmp;

	tmp_init(&tmp);
	tmp_write(&tmp, "state", HEAD "in-flight 7\nbase 0 1 2 3 4\ntrace\nx");
	assert_int_equal(state_read(tmp.fd, &read), 0);
	assert_int_equal(read->n_cpus, 1);
	assert_int_equal(read->base[0].read_events, 4);
	assert_int_equal(read->base[0].in_flight, 0);
	state_free(read);
	tmp_done(&tmp);
}

static void test_malformed(void **state)
{
	static const char *const texts[] = {
		"\n",
		"trace\n",
		HEAD,
		"instance i\ngroup g\ntrace\n",
		"instance i\nboot-id b\ntrace\n",
		"group g\nboot-id b\ntrace\n",
		HEAD "word\ntrace\n",
		HEAD "trace",
		HEAD "\ntrace\n",
		HEAD "base 1 0 0 0 0\ntrace\n",
		HEAD "base 0 0 0 0 0\nbase 0 0 0 0 0\ntrace\n",
		HEAD "base 0 0 0 0\ntrace\n",
		HEAD "base -1 0 0 0 0\ntrace\n",
		HEAD "base\ntrace\n",
		HEAD "inode twelve\ntrace\n",
		HEAD "inode 12x\ntrace\n",
		HEAD "inode \ntrace\n",
		HEAD "inode -1\ntrace\n",
		HEAD "inode 99999999999999999999\ntrace\n",
		HEAD "handed-over maybe\ntrace\n",
	};
	struct state *read = NULL;
	struct tmp tmp;

	tmp_init(&tmp);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		tmp_write(&tmp, "state", texts[i]);
		if (state_read(tmp.fd, &read) != -EBADMSG)
			fail_msg("\"%s\" is taken", texts[i]);
		assert_null(read);
	}
	/* as a power cut may leave it */
	tmp_write_bytes(&tmp, "state", "\0\0\0\0", 4);
	assert_int_equal(state_read(tmp.fd, &read), -ENOENT);
	assert_int_equal(unlinkat(tmp.fd, "state", 0), 0);
	assert_int_equal(mkdirat(tmp.fd, "state", 0755), 0);
	assert_int_equal(state_read(tmp.fd, &read), -EISDIR);
	tmp_done(&tmp);
}

/* A file cut off anywhere is either refused or a shorter trace text */
static void test_cut(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct state written = full();
	struct tmp tmp;
	size_t size, head;

	tmp_init(&tmp);
	assert_int_equal(state_write(tmp.fd, &written), 0);
	assert_int_equal(io_read_file_at(tmp.fd, "state", &text, &size), 0);
	head = size - strlen(written.trace_text);
	for (size_t n = 0; n < size; n++) {
		struct state *read = NULL;
		int r;

		tmp_write_bytes(&tmp, "state", text, n);
		r = state_read(tmp.fd, &read);
		assert_int_equal(r, n == 0 ? -ENOENT : n < head ? -EBADMSG : 0);
		state_free(read);
	}
	tmp_done(&tmp);
}

/* NUL bytes and the like */
static void test_garbage(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct state written = full();
	struct tmp tmp;
	size_t size;

	tmp_init(&tmp);
	assert_int_equal(state_write(tmp.fd, &written), 0);
	assert_int_equal(io_read_file_at(tmp.fd, "state", &text, &size), 0);
	for (size_t i = 0; i < size; i++) {
		const char bytes[] = {0, '\n', ' ', -1};
		char saved = text[i];

		for (size_t k = 0; k < sizeof(bytes); k++) {
			struct state *read = NULL;

			text[i] = bytes[k];
			tmp_write_bytes(&tmp, "state", text, size);
			if (state_read(tmp.fd, &read) == 0) {
				assert_non_null(read->instance);
				assert_non_null(read->trace_text);
			}
			state_free(read);
		}
		text[i] = saved;
	}
	tmp_done(&tmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_least),
		cmocka_unit_test(test_later_version), cmocka_unit_test(test_earlier_version),
		cmocka_unit_test(test_malformed),     cmocka_unit_test(test_cut),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

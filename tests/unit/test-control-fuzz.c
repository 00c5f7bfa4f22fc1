/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Real calls, cut, changed and mixed, at the control server: no crash, no leak (with the
 * sanitizers), no growth. FLYREC_FUZZ_SECONDS=600 for the long form; --write-seeds=DIR writes the
 * calls as a corpus for tests/fuzz/fuzz-control.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "basic/io.h"
#include "tests/fuzz/control-target.h"

#define CALL_MAX 4096

struct call {
	uint8_t bytes[CALL_MAX];
	size_t size;
};

/* --- marshalling, little endian; see the D-Bus specification */

static void put(struct call *c, const void *bytes, size_t size)
{
	assert_true(c->size + size <= CALL_MAX);
	memcpy(c->bytes + c->size, bytes, size);
	c->size += size;
}

static void align(struct call *c, size_t from, size_t to)
{
	while ((c->size - from) % to != 0)
		put(c, "", 1);
}

static void put_u32(struct call *c, uint32_t n)
{
	uint8_t bytes[] = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), (uint8_t)(n >> 24)};

	put(c, bytes, sizeof(bytes));
}

static void put_string(struct call *c, const char *text)
{
	put_u32(c, (uint32_t)strlen(text));
	put(c, text, strlen(text) + 1);
}

/* @code: 1 path, 2 interface, 3 member, 8 signature */
static void put_field(struct call *c, size_t begin, uint8_t code, const char *text)
{
	const char type = code == 1 ? 'o' : code == 8 ? 'g' : 's';
	uint8_t head[] = {code, 1, (uint8_t)type, 0};

	align(c, begin, 8);
	put(c, head, sizeof(head));
	if (code == 8) {
		uint8_t n = (uint8_t)strlen(text);

		put(c, &n, 1);
		put(c, text, n + 1U);
	} else {
		put_string(c, text);
	}
}

/* @body: of "s", "t" (8 bytes), "b"; "as" is one string */
static void put_body(struct call *c, size_t begin, const char *types, const char *const *texts)
{
	for (; *types; types++) {
		size_t at;

		switch (*types) {
		case 's':
			align(c, begin, 4);
			put_string(c, *texts++);
			break;
		case 't':
			align(c, begin, 8);
			put_u32(c, 1000);
			put_u32(c, 0);
			break;
		case 'b':
			align(c, begin, 4);
			put_u32(c, 0);
			break;
		case 'a':
			align(c, begin, 4);
			at = c->size;
			put_u32(c, 0);
			put_string(c, *texts++);
			c->bytes[at] = (uint8_t)(c->size - at - 4);
			types++;
			break;
		}
	}
}

static void make_call(struct call *c, const char *path, const char *interface, const char *member,
		      const char *types, const char *const *texts)
{
	uint8_t head[] = {'l', 1, 0, 1};
	size_t begin, fields, body;

	c->bytes[0] = 1; /* root, see control_target_feed() */
	c->size = begin = 1;
	put(c, head, sizeof(head));
	put_u32(c, 0);
	put_u32(c, 1);
	put_u32(c, 0);
	fields = c->size;
	put_field(c, begin, 1, path);
	put_field(c, begin, 2, interface);
	put_field(c, begin, 3, member);
	if (*types)
		put_field(c, begin, 8, types);
	c->bytes[begin + 12] = (uint8_t)(c->size - fields);
	c->bytes[begin + 13] = (uint8_t)((c->size - fields) >> 8);
	align(c, begin, 8);
	body = c->size;
	put_body(c, body, types, texts);
	c->bytes[begin + 4] = (uint8_t)(c->size - body);
	c->bytes[begin + 5] = (uint8_t)((c->size - body) >> 8);
}

#define DAEMON	"/org/flyrec/Recorder1"
#define SESSION DAEMON "/session/a"
#define M	"org.flyrec.Recorder1.Manager"
#define S	"org.flyrec.Recorder1.Session"
#define P	"org.freedesktop.DBus.Properties"
#define BUS	"/org/freedesktop/DBus"

static const struct {
	const char *path, *interface, *member, *types;
	const char *texts[3];
} seeds[] = {
	{BUS, "org.freedesktop.DBus", "Hello", "", {}},
	{BUS, "org.freedesktop.DBus", "AddMatch", "s", {"type='signal'"}},
	{BUS, "org.freedesktop.DBus", "RemoveMatch", "s", {"type='signal'"}},
	{BUS, "org.freedesktop.DBus", "GetNameOwner", "s", {"org.flyrec.Recorder1"}},
	{BUS, "org.freedesktop.DBus", "NameHasOwner", "s", {"org.flyrec.Recorder1"}},
	{BUS, "org.freedesktop.DBus", "ListNames", "", {}},
	{BUS, "org.freedesktop.DBus", "GetId", "", {}},
	{DAEMON, "org.freedesktop.DBus.Peer", "Ping", "", {}},
	{DAEMON, "org.freedesktop.DBus.Introspectable", "Introspect", "", {}},
	{DAEMON, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", "", {}},
	{DAEMON, P, "GetAll", "s", {M}},
	{SESSION, P, "GetAll", "s", {S}},
	{SESSION, P, "Get", "ss", {S, "State"}},
	{DAEMON, M, "ListSessions", "", {}},
	{DAEMON, M, "GetSession", "s", {"b-c"}},
	{DAEMON, M, "ListEvents", "", {}},
	{DAEMON, M, "GetBootParameters", "as", {"sched"}},
	{DAEMON, M, "GetEventCost", "", {}},
	{DAEMON, M, "GetStatistics", "s", {"a"}},
	{DAEMON, M, "GetLastHour", "s", {"a"}},
	{DAEMON, M, "ListFiles", "s", {""}},
	{DAEMON, M, "OpenFile", "ss", {"a", "record/current.dat"}},
	{DAEMON, M, "PinFile", "sb", {"/tmp/x/a/record/20260101T000000.000000Z.dat"}},
	{DAEMON, M, "Vacuum", "stt", {""}},
	{DAEMON, M, "SnapshotTogether", "asttsb", {"a", "reason"}},
	{DAEMON, M, "Reload", "", {}},
	{SESSION, S, "Start", "b", {}},
	{SESSION, S, "Stop", "b", {}},
	{SESSION, S, "Pause", "", {}},
	{SESSION, S, "Resume", "", {}},
	{SESSION, S, "Rotate", "", {}},
	{SESSION, S, "Snapshot", "ttsb", {"reason"}},
	{SESSION, S, "SnapshotCoresight", "ttsb", {"reason"}},
	{SESSION, S, "SnapshotLimited", "ttss", {"reason", "h1-20261124T062400.882495Z"}},
	{SESSION, S, "Trigger", "s", {"p99 is bad"}},
	{SESSION, S, "OpenTail", "", {}},
	{SESSION, S, "EnableEvents", "asb", {"sched:sched_wakeup"}},
	{SESSION, S, "DisableEvents", "asb", {"irq"}},
	{SESSION, S, "SetFilter", "ssb", {"sched:sched_switch", "prev_pid == 1"}},
};

static void make_seed(size_t i, struct call *ret)
{
	make_call(ret, seeds[i].path, seeds[i].interface, seeds[i].member, seeds[i].types,
		  seeds[i].texts);
}

/* --- changing */

static uint64_t random_state = 0x9e3779b97f4a7c15;

/* splitmix64: the same sequence each time */
static uint64_t draw(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (z ^ (z >> 31)) % below;
}

static void mutate(struct call *c)
{
	for (uint64_t n = draw(4); n > 0; n--) {
		size_t at = (size_t)draw(c->size), length;

		switch (draw(5)) {
		case 0:
			c->bytes[at] ^= (uint8_t)(1U << draw(8));
			break;
		case 1:
			c->bytes[at] = (uint8_t)draw(256);
			break;
		case 2: /* cut */
			c->size = at + 1;
			break;
		case 3: /* another call behind it */
			if (c->size + 512 < CALL_MAX) {
				struct call other;

				make_seed((size_t)draw(ARRAY_SIZE(seeds)), &other);
				length = MIN(other.size - 1, CALL_MAX - c->size);
				memcpy(c->bytes + c->size, other.bytes + 1, length);
				c->size += length;
			}
			break;
		case 4: /* a piece once more */
			length = (size_t)draw(MIN(c->size - at, CALL_MAX - c->size) + 1);
			memmove(c->bytes + c->size, c->bytes + at, length);
			c->size += length;
			break;
		}
	}
	c->bytes[0] = (uint8_t)draw(4);
}

static size_t resident_pages(void)
{
	_cleanup_free_ char *text = NULL;
	unsigned long total, resident;

	if (io_read_file_at(AT_FDCWD, "/proc/self/statm", &text, NULL) < 0 ||
	    sscanf(text, "%lu %lu", &total, &resident) != 2)
		return 0;
	return resident;
}

static void test_seeds_are_answered(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		const size_t greeting = 46; /* "DATA", "OK" and 32 digits */
		struct call call;
		size_t answered;

		make_seed(i, &call);
		answered = control_target_feed(call.bytes, call.size);
		if (answered < greeting + 16)
			fail_msg("%s is not answered: %zu bytes", seeds[i].member, answered);
	}
}

static void test_mutations(void **state)
{
	const char *wanted = getenv("FLYREC_FUZZ_SECONDS");
	time_t end = time(NULL) + (wanted ? atoi(wanted) : 2);
	size_t n = 0, begin = 0;

	do {
		struct call call;

		make_seed((size_t)draw(ARRAY_SIZE(seeds)), &call);
		mutate(&call);
		(void)control_target_feed(call.bytes, call.size);
		if (++n == 500)
			begin = resident_pages();
	} while (time(NULL) < end || n < 1000);
	print_message("%zu inputs, %zu pages before, %zu after\n", n, begin, resident_pages());
#ifndef __SANITIZE_ADDRESS__ /* which keeps freed memory for a while */
	assert_true(resident_pages() < begin + 4096);
#endif
}

static int tear_down(void **state)
{
	control_target_done();
	return 0;
}

static int write_seeds(const char *dir)
{
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		_cleanup_close_ int fd = -EBADF;
		char path[512];
		struct call call;

		make_seed(i, &call);
		(void)snprintf(path, sizeof(path), "%s/%s", dir, seeds[i].member);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd < 0 || io_write_all(fd, call.bytes, call.size) < 0)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeds_are_answered),
		cmocka_unit_test(test_mutations),
	};
	static const char option[] = "--write-seeds=";

	if (argc > 1 && strncmp(argv[1], option, strlen(option)) == 0)
		return write_seeds(argv[1] + strlen(option));
	return cmocka_run_group_tests(tests, NULL, tear_down);
}

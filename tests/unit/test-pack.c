/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of version 6 → pack → version 7 → unpack → version 6: the same data, read in between by
 * hand */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "ctl/verify.h"
#include "formats/own-section.h"
#include "tests/unit/craft-v7.h"
#include "tests/unit/event-file-add.h"
#include "tests/unit/tmp.h"
#include "writer/pack.h"
#include "writer/unpack.h"

#define PAGE  4096
#define NAMES "1 init\n"

/* What pack_file() syncs is changed behind its back at this call; 0: never */
static unsigned damage_at_sync;
static uint64_t damage_place;

/* The place of the options at each of its syncs */
static uint64_t places[4];
static unsigned n_syncs;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
static uint64_t options_place(int fd);

int __wrap_fdatasync(int fd)
{
	uint8_t byte;

	assert_true(n_syncs < ARRAY_SIZE(places));
	places[n_syncs++] = options_place(fd);
	if (damage_at_sync > 0 && --damage_at_sync == 0) {
		assert_int_equal(io_pread_all(fd, &byte, 1, damage_place), 0);
		byte ^= 0x10;
		assert_int_equal(io_pwrite_all(fd, &byte, 1, damage_place), 0);
	}
	return __real_fdatasync(fd);
}

static int empty_file(void)
{
	int fd = memfd_create("test-pack", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void make_empty(int fd)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
}

static int file_of(const struct craft *c)
{
	int fd = empty_file();

	assert_int_equal(io_pwrite_all(fd, c->bytes, c->size, 0), 0);
	return fd;
}

static struct trace_dat *open_good(int fd)
{
	struct trace_dat *dat = NULL;
	struct fault why = {};

	if (trace_dat_open_fd(fd, "f", &dat, &why) < 0)
		fail_msg("%s", why.text);
	return dat;
}

static void assert_sound(const struct trace_dat *dat)
{
	struct verify_report report;

	assert_int_equal(verify_report_init(&report, "f"), 0);
	assert_int_equal(verify_dat(dat, &report), 0);
	if (!verify_report_ok(&report))
		fail_msg("%s", report.errors[0]);
	verify_report_done(&report);
}

static void same_range(const struct trace_dat *a, const struct trace_dat_extent *x,
		       const struct trace_dat *b, const struct trace_dat_extent *y)
{
	_cleanup_free_ char *p = NULL, *q = NULL;

	assert_int_equal(x->size, y->size);
	assert_int_equal(trace_dat_load(a, x, GIB, &p, NULL), 0);
	assert_int_equal(trace_dat_load(b, y, GIB, &q, NULL), 0);
	assert_memory_equal(p, q, x->size);
}

/* All that both versions have, but the newlines behind the names of tasks */
static void same_content(const struct trace_dat *a, const struct trace_dat *b)
{
	_cleanup_free_ char *clock_a = NULL, *clock_b = NULL;
	size_t k = 0;

	assert_int_equal(a->big_endian, b->big_endian);
	assert_int_equal(a->long_size, b->long_size);
	assert_int_equal(a->page_size, b->page_size);
	assert_int_equal(a->n_cpus, b->n_cpus);
	assert_int_equal(a->n_formats, b->n_formats);
	same_range(a, &(struct trace_dat_extent){0, a->cmdlines.offset - 8}, b,
		   &(struct trace_dat_extent){0, b->cmdlines.offset - 8});
	assert_int_equal(trace_dat_clock(a, &clock_a, NULL), 0);
	assert_int_equal(trace_dat_clock(b, &clock_b, NULL), 0);
	assert_string_equal(clock_a, clock_b);
	for (size_t i = 0; i < a->n_options; i++) {
		const struct trace_dat_option_place *o = &a->options[i];

		if (o->id == TRACE_DAT_OPTION_BUFFER || o->id == TRACE_DAT_OPTION_CPUCOUNT)
			continue;
		while (k < b->n_options && b->options[k].id != o->id)
			k++;
		assert_true(k < b->n_options);
		same_range(a, &o->data, b, &b->options[k++].data);
	}
	assert_int_equal(a->n_buffers, b->n_buffers);
	for (size_t i = 0; i < a->n_buffers; i++) {
		assert_string_equal(a->buffers[i].name, b->buffers[i].name);
		for (unsigned cpu = 0; cpu < a->n_cpus; cpu++) {
			const struct trace_dat_region *x = &a->buffers[i].regions[cpu];
			const struct trace_dat_region *y = &b->buffers[i].regions[cpu];

			same_range(a, &(struct trace_dat_extent){x->offset, x->size}, b,
				   &(struct trace_dat_extent){y->offset, y->size});
		}
	}
}

static void pack(const struct trace_dat *in, int fd, int level, uint32_t chunk,
		 struct pack_result *ret)
{
	const struct pack_options options = {.level = level, .chunk = chunk, .check = true};
	struct fault why = {};

	n_syncs = 0;
	if (pack_file(in, fd, &options, ret, &why) < 0)
		fail_msg("%s", why.text);
}

static void unpack(const struct trace_dat *in, int fd)
{
	const struct unpack_options options = {};
	struct fault why = {};

	if (unpack_file(in, fd, &options, &why) < 0)
		fail_msg("%s", why.text);
}

/* --- by hand, from trace-cmd.dat.v7(5) */

struct bytes {
	uint8_t *at;
	size_t size;
	bool big_endian;
};

static void bytes_done(struct bytes *b)
{
	free(b->at);
}

static void read_bytes(int fd, struct bytes *ret)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	ret->size = (size_t)st.st_size;
	ret->at = malloc(ret->size);
	assert_non_null(ret->at);
	assert_int_equal(io_pread_all(fd, ret->at, ret->size, 0), 0);
	ret->big_endian = ret->at[12];
}

static uint64_t get(const struct bytes *b, size_t at, unsigned n)
{
	uint64_t value = 0;

	assert_true(at + n <= b->size);
	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)b->at[at + (b->big_endian ? n - 1 - i : i)] << (8 * i);
	return value;
}

struct section {
	unsigned id, flags;
	size_t at, size; /* of its content */
};

/* Sections follow each other up to the end. Return: how many. */
static size_t walk(const struct bytes *b, struct section *ret, size_t room, size_t *ret_options)
{
	size_t at = 18, n = 0;

	assert_memory_equal(b->at,
			    "\x17\x08\x44tracing"
			    "7",
			    12);
	at += strlen((char *)b->at + at) + 1;
	at += strlen((char *)b->at + at) + 1;
	*ret_options = get(b, at, 8);
	for (at += 8; at < b->size; at += 16 + ret[n++].size) {
		assert_true(n < room);
		ret[n] = (struct section){(unsigned)get(b, at, 2), (unsigned)get(b, at + 2, 2),
					  at + 16, get(b, at + 8, 8)};
	}
	assert_int_equal(at, b->size);
	return n;
}

static const struct section *section_of(const struct section *s, size_t n, unsigned id)
{
	for (size_t i = 0; i < n; i++)
		if (s[i].id == id)
			return &s[i];
	fail_msg("no section %u", id);
	return NULL;
}

/* Each section is there, flagged as it is, and has a description in that of strings */
static void check_layout(int fd, bool packed)
{
	_cleanup_(bytes_done) struct bytes b = {};
	struct section s[32];
	const struct section *strings, *names;
	size_t options, n;

	read_bytes(fd, &b);
	n = walk(&b, s, ARRAY_SIZE(s), &options);
	for (unsigned id = 16; id <= 21; id++)
		assert_int_equal(section_of(s, n, id)->flags, packed);
	assert_int_equal(section_of(s, n, 3)->flags, packed);
	assert_int_equal(section_of(s, n, 0)->at - 16, options);
	strings = section_of(s, n, 15);
	for (size_t i = 0; i < n; i++) {
		size_t text = get(&b, s[i].at - 12, 4);

		assert_true(text < strings->size);
		assert_true(text == 0 || b.at[strings->at + text - 1] == '\0');
		assert_true(memchr(b.at + strings->at + text, '\0', strings->size - text) != NULL);
	}
	names = section_of(s, n, 21);
	if (packed) {
		assert_int_equal(get(&b, names->at, 4), names->size - 8);
		assert_int_equal(get(&b, names->at + 4, 4), 8 + strlen(NAMES));
	} else {
		assert_int_equal(names->size, 8 + strlen(NAMES));
		assert_memory_equal(b.at + names->at + 8, NAMES, strlen(NAMES));
	}
}

static uint64_t options_place(int fd)
{
	_cleanup_(bytes_done) struct bytes b = {};
	size_t at = 18;

	read_bytes(fd, &b);
	at += strlen((char *)b.at + at) + 1;
	at += strlen((char *)b.at + at) + 1;
	return get(&b, at, 8);
}

/* --- the tests */

static void test_round(void **state)
{
	for (int level = 0; level <= HAVE_ZSTD; level++)
		FOR_EACH_CRAFT(c)
		{
			_cleanup_trace_dat_ struct trace_dat *a = NULL, *b = NULL, *d = NULL;
			_cleanup_close_ int six = -EBADF, seven = empty_file(), back = empty_file();
			struct craft_dat at;
			struct pack_result result = {};
			struct stat st;

			craft_dat(&c, "CPU: 0\n", "second", &at);
			six = file_of(&c);
			a = open_good(six);
			pack(a, seven, level, 2 * PAGE, &result);
			assert_int_equal(fstat(seven, &st), 0);
			assert_int_equal(result.file_bytes, st.st_size);
			assert_int_equal(result.raw_bytes, 4 * PAGE);
			b = open_good(seven);
			assert_int_equal(b->version, 7);
			assert_null(b->damages.lines);
			same_content(a, b);
			assert_sound(b);
			check_layout(seven, level > 0);
			unpack(b, back);
			d = open_good(back);
			assert_int_equal(d->version, 6);
			same_content(a, d);
			assert_int_equal(d->buffers[0].regions[0].entry % 16, 0);
			assert_sound(d);
		}
}

/* Version 7 into version 7, which may be compressed otherwise */
static void test_again(void **state)
{
	for (int level = 0; level <= HAVE_ZSTD; level++)
		for (unsigned zstd = 0; zstd <= HAVE_ZSTD; zstd++)
			FOR_EACH_CRAFT(c)
			{
				_cleanup_trace_dat_ struct trace_dat *a = NULL, *b = NULL;
				_cleanup_close_ int from = -EBADF, to = empty_file();
				struct pack_result result;
				struct craft_v7 at;

				craft_v7(&c, zstd, "CPU: 0\n", &at);
				from = file_of(&c);
				a = open_good(from);
				pack(a, to, level, MIB, &result);
				b = open_good(to);
				assert_null(b->damages.lines);
				same_content(a, b);
				assert_sound(b);
			}
}

#if HAVE_ZSTD
/* Sections of trace-cmd 3.4 go along */
static void test_kept(void **state)
{
	for (int level = 0; level <= 1; level++)
		FOR_EACH_CRAFT(c)
		{
			_cleanup_trace_dat_ struct trace_dat *a = NULL, *b = NULL;
			_cleanup_close_ int from = -EBADF, to = empty_file();
			struct pack_result result;
			struct craft_long at;

			craft_v7_long(&c, &at);
			from = file_of(&c);
			a = open_good(from);
			pack(a, to, level, MIB, &result);
			b = open_good(to);
			assert_null(b->damages.lines);
			assert_int_equal(b->n_kept, 2);
			for (size_t i = 0; i < 2; i++) {
				_cleanup_free_ char *x = NULL, *y = NULL;

				assert_int_equal(a->kept[i].id, b->kept[i].id);
				assert_int_equal(a->kept[i].data.size, b->kept[i].data.size);
				assert_int_equal(trace_dat_load(a, &a->kept[i].data, MIB, &x, NULL),
						 0);
				assert_int_equal(trace_dat_load(b, &b->kept[i].data, MIB, &y, NULL),
						 0);
				assert_memory_equal(x, y, a->kept[i].data.size);
			}
		}
}
#endif

/* Without options, without task names */
static void test_least(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_trace_dat_ struct trace_dat *a = NULL, *b = NULL, *d = NULL;
		_cleanup_close_ int six = -EBADF, seven = empty_file(), back = empty_file();
		struct pack_result result;
		struct craft_dat at;

		craft_dat(&c, NULL, NULL, &at);
		memset(c.bytes + at.cmdlines, '\n', strlen("1 init"));
		six = file_of(&c);
		a = open_good(six);
		a->n_options = 0;
		a->clock.size = 0;
		for (unsigned cpu = 0; cpu < 2; cpu++)
			a->buffers[0].regions[cpu].size = 0;
		pack(a, seven, HAVE_ZSTD, MIB, &result);
		assert_int_equal(result.raw_bytes, 0);
		b = open_good(seven);
		assert_null(b->damages.lines);
		assert_int_equal(b->cmdlines.size, 1);
		unpack(b, back);
		d = open_good(back);
		assert_int_equal(b->n_cpus, 2);
		assert_int_equal(d->n_options, 1); /* the number of CPUs */
		assert_int_equal(d->buffers[0].regions[1].size, 0);
	}
}

#define EVENTS 40000

static const char demo_format[] =
	"name: blob\nID: 4711\n" EVENT_FILE_HEAD_FORMAT
	"\tfield:u64 number;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"%llu\", REC->number\n";

static const struct sections_format formats[] = {{"demo", demo_format}};

struct blob {
	struct event_file_head head;
	uint64_t number;
};

/* A file of some MiB on a disk, which is read by O_DIRECT where that is a real one */
static struct trace_dat *large_file(const struct tmp *tmp)
{
	_cleanup_free_ char *path = strf("%s/large.dat", tmp->path);
	const struct event_file_params params = {
		.path = path,
		.mode = 0600,
		.formats = formats,
		.n_formats = ARRAY_SIZE(formats),
		.clock = "[local]\n",
	};
	_cleanup_(event_file_freep) struct event_file *file = NULL;
	struct trace_dat *dat = NULL;

	assert_non_null(path);
	assert_int_equal(event_file_new(&params, &file, NULL), 0);
	for (uint64_t i = 0; i < EVENTS; i++) {
		const struct blob blob = {.head = {.type = 4711, .pid = 1},
					  .number = i * UINT64_C(0x9e3779b97f4a7c15)};

		assert_int_equal(
			event_file_add(file, i % 4 == 0 ? 2 : 0, 1000 + i, &blob, sizeof(blob)), 0);
	}
	assert_int_equal(event_file_finish(file, NULL, NULL), 0);
	assert_int_equal(trace_dat_open(path, &dat, NULL), 0);
	return dat;
}

#if HAVE_ZSTD
/* What is in it of each chunk, by hand; @b: of @fd */
static void check_index(int fd, const struct trace_dat *dat, uint32_t chunk)
{
	_cleanup_(bytes_done) struct bytes b = {};
	_cleanup_free_ uint8_t *bytes = NULL;
	struct bytes index = {.big_endian = dat->big_endian};
	size_t at = 8, n = 0;

	read_bytes(fd, &b);
	assert_int_equal(own_section_read(dat, OWN_INDEX, &bytes, &index.size, NULL), 0);
	index.at = bytes;
	assert_int_equal(get(&index, 0, 4), dat->n_buffers);
	assert_int_equal(get(&index, 4, 4), 0);
	for (size_t i = 0; i < dat->n_buffers; i++) {
		size_t cpus = get(&index, at, 4);

		at += 8;
		for (unsigned cpu = 0; cpu < dat->n_cpus; cpu++) {
			uint64_t size = dat->buffers[i].regions[cpu].size;

			if (size == 0)
				continue;
			assert_true(cpus-- > 0);
			assert_int_equal(get(&index, at, 4), cpu);
			assert_int_equal(get(&index, at + 4, 4), (size + chunk - 1) / chunk);
			n += get(&index, at + 4, 4);
			at += 8;
		}
		assert_int_equal(cpus, 0);
	}
	assert_int_equal(index.size, at + 24 * n);
	for (size_t i = 0; i < dat->n_buffers; i++)
		for (unsigned cpu = 0; cpu < dat->n_cpus; cpu++) {
			const struct trace_dat_region *region = &dat->buffers[i].regions[cpu];

			for (uint64_t done = 0; done < region->size; done += chunk, at += 24) {
				uint64_t place = get(&index, at + 8, 8), timestamp;

				assert_int_equal(trace_dat_timestamp(dat, region->offset + done,
								     UINT64_MAX, &timestamp, NULL),
						 0);
				assert_int_equal(get(&index, at, 8), timestamp);
				assert_int_equal(get(&b, place, 4), get(&index, at + 16, 4));
				assert_int_equal(get(&b, place + 4, 4), get(&index, at + 20, 4));
				assert_int_equal(get(&b, place + 4, 4),
						 MIN(region->size - done, chunk));
			}
		}
}

static void test_index(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_trace_dat_ struct trace_dat *a = NULL, *b = NULL;
		_cleanup_close_ int six = -EBADF, seven = empty_file();
		struct pack_result result;
		struct craft_dat at;

		craft_dat(&c, NULL, "second", &at);
		six = file_of(&c);
		a = open_good(six);
		pack(a, seven, 1, PAGE, &result);
		b = open_good(seven);
		check_index(seven, b, PAGE);
	}
}
#endif

/* The bytes of a file with an own section in front of the regions, which move. Return: its place.
 */
static size_t craft_own(struct craft *c, const uint8_t *own, size_t size)
{
	struct craft old = {.big_endian = c->big_endian, .commit_size = c->commit_size};
	struct craft_dat at;

	craft_dat(&old, NULL, NULL, &at);
	assert_true(size <= PAGE);
	craft_bytes(c, old.bytes, at.region[0]);
	craft_bytes(c, own, size);
	craft_fill(c, 0, PAGE - size);
	craft_bytes(c, old.bytes + at.region[0], old.size - at.region[0]);
	for (unsigned cpu = 0; cpu < 2; cpu++)
		craft_set(c, at.table + 16 * cpu, 8, at.region[cpu] + PAGE);
	craft_done(&old);
	return at.region[0];
}

static void check_own(const struct trace_dat *dat, bool has_index)
{
	_cleanup_own_section_ struct own_section s = {};

	assert_int_equal(own_section_load(dat, &s, NULL), 0);
	assert_int_equal(s.n, 2 + has_index);
	assert_int_equal(s.entries[0].kind, OWN_FINDINGS);
	assert_int_equal(s.entries[0].size, 5);
	assert_memory_equal(s.entries[0].data, "found", 5);
	assert_int_equal(s.entries[1].kind, 4711);
	assert_memory_equal(s.entries[1].data, "future", 6);
	assert_true(!has_index || (s.entries[2].kind == OWN_INDEX && s.entries[2].size > 3));
}

/* flyrec's own section goes along, but for the index and what is damaged */
static void test_own(void **state)
{
	for (int level = 0; level <= HAVE_ZSTD; level++)
		FOR_EACH_CRAFT(c)
		{
			_cleanup_trace_dat_ struct trace_dat *a = NULL, *b = NULL, *d = NULL;
			_cleanup_close_ int six = -EBADF, seven = empty_file(), back = empty_file();
			struct own_entry entries[] = {
				{.kind = OWN_INDEX, .size = 3, .data = (const uint8_t *)"old"},
				{.kind = OWN_FINDINGS, .size = 5, .data = (const uint8_t *)"found"},
				{.kind = OWN_JOURNAL, .room = 64},
				{.kind = 4711, .size = 6, .data = (const uint8_t *)"future"},
			};
			const struct pack_options packs = {.level = level, .chunk = MIB};
			_cleanup_free_ uint8_t *own = NULL;
			struct pack_result result;
			size_t size, own_at;

			assert_int_equal(own_section_build(entries, ARRAY_SIZE(entries),
							   c.big_endian, &own, &size),
					 0);
			own_at = craft_own(&c, own, size);
			six = file_of(&c);
			a = open_good(six);
			pack(a, seven, level, MIB, &result);
			b = open_good(seven);
			unpack(b, back);
			d = open_good(back);
			same_content(a, d);
			check_own(b, level > 0);
			check_own(d, false);

			/* a byte of what was found */
			c.bytes[own_at + entries[1].place + OWN_ENTRY_HEAD] ^= 1;
			assert_int_equal(io_pwrite_all(six, c.bytes, c.size, 0), 0);
			make_empty(seven);
			n_syncs = 0;
			assert_int_equal(pack_file(a, seven, &packs, &result, NULL), -EBADMSG);
		}
}

/* Chunks of any size: that of a sub-buffer at least, the last one is the rest */
static void test_chunks(void **state)
{
	static const uint32_t sizes[] = {1, PAGE, 3 * PAGE + 17, MIB, UINT32_MAX};
#if HAVE_ZSTD
	static const uint32_t chunks[] = {PAGE, PAGE, 3 * PAGE, MIB, 16 * MIB};
#endif
	_cleanup_trace_dat_ struct trace_dat *a = NULL;
	struct tmp tmp;

	tmp_init(&tmp);
	a = large_file(&tmp);
	assert_true(a->buffers[0].regions[0].size > 100 * PAGE);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_trace_dat_ struct trace_dat *b = NULL, *d = NULL;
		_cleanup_close_ int seven = empty_file(), back = empty_file();
		struct pack_result result;

		pack(a, seven, HAVE_ZSTD, sizes[i], &result);
		assert_int_equal(result.raw_bytes,
				 a->buffers[0].regions[0].size + a->buffers[0].regions[2].size);
		if (HAVE_ZSTD)
			assert_true(result.packed_bytes < result.raw_bytes);
		b = open_good(seven);
		same_content(a, b);
		assert_sound(b);
#if HAVE_ZSTD
		check_index(seven, b, chunks[i]);
#endif
		unpack(b, back);
		d = open_good(back);
		same_content(a, d);
	}
	tmp_done(&tmp);
}

/* What is stopped says of itself that it was not finished */
static void test_cancel(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = -EBADF, to = empty_file();
	const atomic_bool stop = true;
	const struct pack_options options = {.level = HAVE_ZSTD, .chunk = MIB, .cancel = &stop};
	struct craft c = craft_kinds[0];
	struct pack_result result;
	struct craft_dat at;
	struct fault why = {};

	craft_dat(&c, NULL, NULL, &at);
	fd = file_of(&c);
	dat = open_good(fd);
	assert_int_equal(pack_file(dat, to, &options, &result, &why), -ECANCELED);
	assert_int_equal(why.error, -ECANCELED);
	craft_done(&c);
}

/* The first sync is of the data, the second of the place of the options */
static void test_place_is_last(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL, *again = NULL;
	_cleanup_close_ int fd = -EBADF, to = empty_file();
	_cleanup_(bytes_done) struct bytes b = {};
	struct craft c = craft_kinds[0];
	struct section s[32];
	struct pack_result result;
	struct craft_dat at;
	size_t place;

	craft_dat(&c, NULL, NULL, &at);
	fd = file_of(&c);
	dat = open_good(fd);
	pack(dat, to, HAVE_ZSTD, MIB, &result);
	assert_int_equal(n_syncs, 2);
	assert_int_equal(places[0], 0);
	assert_true(places[1] > 0);
	/* as it was at the first one */
	read_bytes(to, &b);
	(void)walk(&b, s, ARRAY_SIZE(s), &place);
	place = s[0].at - 16 - 8;
	memset(b.at + place, 0, 8);
	assert_int_equal(io_pwrite_all(to, b.at, b.size, 0), 0);
	again = open_good(to);
	assert_true(again->damages.n > 0);
	assert_non_null(strstr(again->damages.lines[0], "the file was not finished"));
	craft_done(&c);
}

/* Where a full disk, or one that keeps other bytes, is noticed */
static void test_bad_disk(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = -EBADF, full = open("/dev/full", O_RDWR | O_CLOEXEC);
	const struct pack_options options = {.level = HAVE_ZSTD, .chunk = MIB, .check = true};
	const struct unpack_options unpacks = {};
	struct craft c = craft_kinds[0];
	struct pack_result result;
	struct craft_dat at;
	struct fault why = {};
	struct stat st;

	craft_dat(&c, "CPU: 0\n", NULL, &at);
	fd = file_of(&c);
	dat = open_good(fd);
	assert_true(full >= 0);
	assert_int_equal(pack_file(dat, full, &options, &result, &why), -ENOSPC);
	assert_non_null(strstr(why.text, "cannot write: No space left"));
	assert_int_equal(unpack_file(dat, full, &unpacks, &why), -ENOSPC);

	/* any byte; some mean nothing: descriptions, the version of zstd */
	{
		_cleanup_close_ int to = empty_file();

		pack(dat, to, HAVE_ZSTD, MIB, &result);
		assert_int_equal(fstat(to, &st), 0);
	}
	for (uint64_t at_byte = 0; at_byte < (uint64_t)st.st_size; at_byte++) {
		_cleanup_close_ int to = empty_file();
		int r;

		n_syncs = 0;
		damage_at_sync = 2;
		damage_place = at_byte;
		r = pack_file(dat, to, &options, &result, &why);
		assert_int_equal(damage_at_sync, 0);
		assert_true(r == 0 || why.error == r);
		if (r >= 0) { /* it still has the same content */
			_cleanup_trace_dat_ struct trace_dat *new = open_good(to);

			same_content(dat, new);
		}
	}
	craft_done(&c);
}

#if HAVE_ZSTD
static unsigned told;

static void hear(void *userdata, const char *line)
{
	assert_non_null(strstr(line, "f: offset 0x"));
	told++;
}

/* A chunk that cannot be unpacked: an error, or told and taken by empty sub-buffers */
static void test_damaged(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_trace_dat_ struct trace_dat *dat = NULL, *six = NULL, *seven = NULL;
		_cleanup_close_ int fd = -EBADF, to6 = empty_file(), to7 = empty_file();
		struct pack_options options = {.level = 1, .chunk = MIB, .check = true};
		struct unpack_options unpacks = {};
		struct pack_result result;
		struct craft_v7 at;
		struct fault why = {};

		craft_v7(&c, true, NULL, &at);
		c.bytes[at.area[0] + 12] ^= 1; /* the magic of its first chunk */
		fd = file_of(&c);
		dat = open_good(fd);
		n_syncs = 0;
		assert_int_equal(pack_file(dat, to7, &options, &result, &why), -EBADMSG);
		assert_int_equal(unpack_file(dat, to6, &unpacks, &why), -EBADMSG);
		assert_non_null(strstr(why.text, "wrong magic"));

		make_empty(to6);
		make_empty(to7);
		options.told = unpacks.told = hear;
		told = 0;
		assert_int_equal(pack_file(dat, to7, &options, &result, &why), 0);
		assert_int_equal(told, 1);
		assert_int_equal(unpack_file(dat, to6, &unpacks, &why), 0);
		assert_int_equal(told, 2);
		six = open_good(to6);
		seven = open_good(to7);
		same_content(six, seven);
		for (unsigned version = 6; version <= 7; version++) {
			const struct trace_dat *d = version == 6 ? six : seven;
			const struct trace_dat_region *region = &d->buffers[0].regions[0];
			uint8_t pages[2 * PAGE];
			struct subbuf_info info;

			assert_sound(d);
			assert_int_equal(region->size, sizeof(pages));
			assert_int_equal(
				trace_dat_read(d, pages, sizeof(pages), region->offset, NULL), 0);
			assert_int_equal(subbuf_check(&d->layout, pages, NULL, &info, NULL), 0);
			assert_int_equal(info.events, 0);
			assert_int_equal(info.first_ts, 2000);
			assert_int_equal(subbuf_check(&d->layout, pages + PAGE, NULL, &info, NULL),
					 0);
			assert_int_equal(info.events, 1);
			assert_true(info.header.missed && !info.header.missed_stored);
		}
	}
}

/* The same at the end of a region: never written */
static void test_damaged_end(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL, *six = NULL;
	_cleanup_close_ int fd = -EBADF, to = empty_file();
	const struct unpack_options options = {.told = hear};
	struct craft c = craft_kinds[0];
	struct craft_v7 at;
	struct fault why = {};

	craft_v7(&c, true, NULL, &at);
	c.bytes[at.area[1] + 12] ^= 1;
	fd = file_of(&c);
	dat = open_good(fd);
	assert_int_equal(unpack_file(dat, to, &options, &why), 0);
	six = open_good(to);
	assert_int_equal(six->buffers[0].regions[1].size, PAGE);
	assert_sound(six);
	craft_done(&c);
}
#else
static void test_without_zstd(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = -EBADF, to = empty_file();
	const struct pack_options options = {.level = 1, .chunk = MIB};
	struct craft c = craft_kinds[0];
	struct pack_result result;
	struct craft_dat at;
	struct fault why = {};

	craft_dat(&c, NULL, NULL, &at);
	fd = file_of(&c);
	dat = open_good(fd);
	assert_int_equal(pack_file(dat, to, &options, &result, &why), -EOPNOTSUPP);
	assert_non_null(strstr(why.text, "built without zstd"));
	craft_done(&c);
}
#endif

/* Regions of version 6 that are not as their table says: what is there is taken */
static void test_bad_regions(void **state)
{
	static const struct {
		uint64_t offset, size; /* 0: as it is */
		uint64_t left;
	} cases[] = {
		{0, 100 * PAGE, 3 * PAGE}, /* to the end of the file */
		{0, PAGE + 100, PAGE},	   /* no whole sub-buffers */
		{1000 * PAGE, 0, 0},	   /* behind the end */
		{PAGE / 64, 0, 0},	   /* in the header */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_trace_dat_ struct trace_dat *dat = NULL, *six = NULL;
		_cleanup_close_ int fd = -EBADF, to = empty_file();
		const struct pack_options options = {.chunk = MIB};
		struct pack_result result;
		struct unpack_options unpacks = {};
		struct craft c = craft_kinds[0];
		struct craft_dat at;
		struct fault why = {};

		craft_dat(&c, NULL, NULL, &at);
		if (cases[i].offset)
			craft_set(&c, at.table, 8, cases[i].offset);
		if (cases[i].size)
			craft_set(&c, at.table + 8, 8, cases[i].size);
		fd = file_of(&c);
		dat = open_good(fd);
		assert_int_equal(pack_file(dat, to, &options, &result, &why), -EBADMSG);
		assert_int_equal(unpack_file(dat, to, &unpacks, &why), -EBADMSG);
		make_empty(to);
		unpacks.told = verify_report_found;
		{
			struct verify_report report;

			assert_int_equal(verify_report_init(&report, "f"), 0);
			unpacks.userdata = &report;
			assert_int_equal(unpack_file(dat, to, &unpacks, &why), 0);
			assert_int_equal(report.n_errors, 1);
			verify_report_done(&report);
		}
		six = open_good(to);
		assert_int_equal(six->buffers[0].regions[0].size, cases[i].left);
		assert_int_equal(six->buffers[0].regions[1].size, PAGE);
		craft_done(&c);
	}
}

/* What all regions together have cannot be more than the file */
static void test_overlap(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = -EBADF, to = empty_file();
	const struct unpack_options options = {};
	struct craft c = craft_kinds[0];
	struct craft_dat at;
	struct fault why = {};

	craft_dat(&c, NULL, NULL, &at);
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		craft_set(&c, at.table + 16 * cpu, 8, at.region[0]);
		craft_set(&c, at.table + 16 * cpu + 8, 8, 3 * PAGE);
	}
	fd = file_of(&c);
	dat = open_good(fd);
	assert_int_equal(unpack_file(dat, to, &options, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "cpu 1: the region overlaps others"));
	craft_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_least),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_place_is_last),
		cmocka_unit_test(test_bad_disk),
		cmocka_unit_test(test_bad_regions),
		cmocka_unit_test(test_overlap),
#if HAVE_ZSTD
		cmocka_unit_test(test_kept),
#endif
		cmocka_unit_test(test_own),
#if HAVE_ZSTD
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_damaged_end),
#else
		cmocka_unit_test(test_without_zstd),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

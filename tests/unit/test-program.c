/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "recorder/probe-place.h"
#include "recorder/program.h"
#include "tests/unit/craft-program.h"
#include "tests/unit/tmp.h"

/* tests/tools/probed, which is built beside this */
static char probed[PATH_MAX];

static int find_probed(void **state)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = '\0';
	assert_true(snprintf(probed, sizeof(probed), "%s/../tools/probed", dirname(self)) <
		    (int)sizeof(probed));
	return access(probed, X_OK);
}

static struct program *opened(const char *path)
{
	struct program *p = NULL;
	struct fault why = {};

	if (program_open(path, &p, &why) < 0)
		fail_msg("%s", why.text);
	return p;
}

static void refuses_function(struct program *p, const char *symbol, int error, const char *reason)
{
	uint64_t address = 1, offset = 1;
	struct fault why = {};

	assert_int_equal(program_function(p, symbol, &address, &offset, &why), error);
	if (!strstr(why.text, reason))
		fail_msg("%s: \"%s\", not \"%s\"", symbol, why.text, reason);
	assert_true(address == 1 && offset == 1);
}

/* What the file has at its offset is what the program runs */
static void finds(struct program *p, const char *path, const char *symbol, const void *code)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t address, offset;
	struct fault why = {};
	uint8_t bytes[16];
	struct dl_find_object found;

	if (program_function(p, symbol, &address, &offset, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), (off_t)offset), sizeof(bytes));
	assert_memory_equal(bytes, code, sizeof(bytes));
	assert_int_equal(_dl_find_object((void *)(uintptr_t)code, &found), 0);
	assert_true(address == (uintptr_t)code - found.dlfo_link_map->l_addr);
}

/* --- functions */

static void test_own_functions(void **state)
{
	_cleanup_(program_freep) struct program *p = opened("/proc/self/exe");

	finds(p, "/proc/self/exe", "find_probed", find_probed);
}

/* Stripped, with versions and functions that are chosen at run time */
static void test_library(void **state)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY);
	_cleanup_(program_freep) struct program *p = NULL;
	struct link_map *map;

	assert_non_null(libc);
	assert_int_equal(dlinfo(libc, RTLD_DI_LINKMAP, &map), 0);
	p = opened(map->l_name);
	finds(p, map->l_name, "malloc", dlsym(libc, "malloc"));
	finds(p, map->l_name, "qsort", dlsym(libc, "qsort"));
#if defined(__x86_64__)
	/* the newest of several, and an old one */
	finds(p, map->l_name, "posix_spawn", dlvsym(libc, "posix_spawn", "GLIBC_2.15"));
	finds(p, map->l_name, "posix_spawn@GLIBC_2.2.5",
	      dlvsym(libc, "posix_spawn", "GLIBC_2.2.5"));
	finds(p, map->l_name, "posix_spawn@@GLIBC_2.15", dlvsym(libc, "posix_spawn", "GLIBC_2.15"));
	assert_ptr_not_equal(dlvsym(libc, "posix_spawn", "GLIBC_2.2.5"),
			     dlvsym(libc, "posix_spawn", "GLIBC_2.15"));
	refuses_function(p, "posix_spawn@GLIBC_9", -ENOENT, "no function 'posix_spawn@GLIBC_9'");
	refuses_function(p, "memcpy", -EINVAL, "only chooses a function once");
#endif
	refuses_function(p, "mallox", -ENOENT, "did you mean 'malloc'");
	refuses_function(p, "environ", -EINVAL, "is data, not a function");
	dlclose(libc);
}

static void test_wrong_names(void **state)
{
	_cleanup_(program_freep) struct program *p = opened(probed);

	refuses_function(p, "probed_ad", -ENOENT, "no function 'probed_ad' in ");
	refuses_function(p, "probed_ad", -ENOENT, ", did you mean 'probed_add'?");
	refuses_function(p, "probed_on", -ENOENT, ", did you mean 'probed_one'");
	refuses_function(p, "something_else", -ENOENT, "probed");
	refuses_function(p, "probed_data", -EINVAL, "is data, not a function");
	refuses_function(p, "printf", -ENOENT, "only calls 'printf', give the library");
	refuses_function(p, "probed_chosen", -EINVAL, "(IFUNC)");
	refuses_function(p, "", -ENOENT, "no function ''");
}

/* --- files */

static void refuses_file(const char *path, int error, const char *reason)
{
	struct program *p = NULL;
	struct fault why = {};

	assert_int_equal(program_open(path, &p, &why), error);
	assert_null(p);
	if (!strstr(why.text, reason))
		fail_msg("%s: \"%s\", not \"%s\"", path, why.text, reason);
}

static char *read_probed(size_t *ret_size)
{
	char *bytes = NULL;

	assert_int_equal(io_read_file_at(AT_FDCWD, probed, &bytes, ret_size), 0);
	return bytes;
}

static void test_files(void **state)
{
	_cleanup_(tmp_done) struct tmp tmp = {};
	_cleanup_free_ char *bytes = NULL;
	char path[PATH_MAX];
	size_t size;
	Elf64_Ehdr header;

	tmp_init(&tmp);
	(void)snprintf(path, sizeof(path), "%s/file", tmp.path);
	refuses_file("/no/such/file", -ENOENT, "cannot open /no/such/file");
	refuses_file("/", -ENOEXEC, "not a file");
	assert_int_equal(mkfifoat(tmp.fd, "file", 0600), 0);
	refuses_file(path, -ENOEXEC, "not a file");
	assert_int_equal(unlinkat(tmp.fd, "file", 0), 0);
	tmp_write(&tmp, "file", "#!/bin/sh\n");
	refuses_file(path, -ENOEXEC, "not an ELF file");
	tmp_write(&tmp, "file", "");
	refuses_file(path, -ENOEXEC, "not an ELF file");

	bytes = read_probed(&size);
	tmp_write_bytes(&tmp, "file", bytes, size - 1);
	refuses_file(path, -EBADMSG, "is cut off");
	memcpy(&header, bytes, sizeof(header));
	header.e_type = ET_REL;
	memcpy(bytes, &header, sizeof(header));
	tmp_write_bytes(&tmp, "file", bytes, size);
	refuses_file(path, -ENOEXEC, "neither a program nor a shared library");
	header.e_machine = EM_SPARCV9;
	memcpy(bytes, &header, sizeof(header));
	tmp_write_bytes(&tmp, "file", bytes, size);
	refuses_file(path, -ENOEXEC, "another kind of machine");
}

/* Another name of the same length in its tables */
static void rename_in(char *bytes, size_t size, const char *from, const char *to)
{
	char *end = bytes + size, *at;

	while ((at = memmem(bytes, (size_t)(end - bytes), from, strlen(from) + 1))) {
		memcpy(at, to, strlen(to));
		bytes = at + 1;
	}
}

static void test_several(void **state)
{
	_cleanup_(tmp_done) struct tmp tmp = {};
	_cleanup_(program_freep) struct program *p = NULL;
	_cleanup_free_ char *bytes = NULL;
	char path[PATH_MAX];
	size_t size;

	tmp_init(&tmp);
	(void)snprintf(path, sizeof(path), "%s/file", tmp.path);
	bytes = read_probed(&size);
	rename_in(bytes, size, "probed_one", "probed_two");
	tmp_write_bytes(&tmp, "file", bytes, size);
	p = opened(path);
	refuses_function(p, "probed_two", -ENOTUNIQ, "several functions in ");
}

/* --- USDT probes */

static void refuses_usdt(struct program *p, const char *provider, const char *name,
			 const char *reason)
{
	struct usdt_sites sites = {};
	struct fault why = {};

	assert_int_equal(program_usdt(p, provider, name, &sites, &why), -ENOENT);
	if (!strstr(why.text, reason))
		fail_msg("\"%s\", not \"%s\"", why.text, reason);
	assert_null(sites.list);
}

static void test_usdt(void **state)
{
	_cleanup_(program_freep) struct program *p = opened(probed);
	_cleanup_(usdt_sites_done) struct usdt_sites request = {}, twice = {};
	uint64_t semaphore, address, offset;
	struct fault why = {};

	assert_int_equal(program_usdt(p, "demo", "request", &request, &why), 0);
	assert_int_equal(request.n, 1);
	assert_int_equal(program_function(p, "probed_request", &address, &offset, &why), 0);
	assert_true(request.list[0].address >= address && request.list[0].address < address + 256);
	assert_true(request.list[0].offset - offset == request.list[0].address - address);
	assert_int_equal(program_variable(p, "probed_semaphore", &semaphore, &why), 0);
	assert_true(request.list[0].counter > 0);
	assert_true(request.list[0].counter % 4096 == semaphore % 4096);

	assert_int_equal(program_usdt(p, "demo", "twice", &twice, &why), 0);
	assert_int_equal(twice.n, 2);
	assert_true(twice.list[0].counter == 0 && twice.list[0].offset != twice.list[1].offset);

	refuses_usdt(p, "demos", "request", "has the provider 'demos', did you mean 'demo'?");
	refuses_usdt(p, "demo", "reqest", "no USDT probe 'reqest', did you mean 'request'?");
	refuses_usdt(p, "demo", "nothing_like_it", "no USDT probe 'nothing_like_it'");
	program_free(TAKE_PTR(p));
	p = opened("/bin/true");
	refuses_usdt(p, "demo", "request", "there are no USDT probes in /bin/true");
}

/* --- lines for the kernel */

/* @args: PATH:0x…[(0x…)] is the first word of each line's rest */
static void resolves(enum probe_kind kind, const char *place, const char *arguments,
		     bool with_counter, const char *wanted)
{
	_cleanup_free_ char *text = strf("p:g/x %s:%s%s", probed, place, arguments);
	_cleanup_(probe_lines_done) struct probe_lines lines = {};
	struct fault why = {};
	const char *rest;

	if (probe_place_resolve(kind, text, &lines, &why) < 0)
		fail_msg("%s: %s", text, why.text);
	assert_int_equal(strncmp(lines.lines[0], "p:g/x ", 6), 0);
	rest = lines.lines[0] + 6;
	assert_int_equal(strncmp(rest, probed, strlen(probed)), 0);
	rest += strlen(probed);
	assert_int_equal(strncmp(rest, ":0x", 3), 0);
	rest += 3 + strspn(rest + 3, "0123456789abcdef");
	assert_int_equal(with_counter, *rest == '(');
	if (with_counter)
		rest = strchr(rest, ')') + 1;
	assert_string_equal(rest, wanted);
	assert_non_null(lines.build_id);
	assert_string_equal(strchr(lines.build_id, ' ') + 1, probed);
	assert_int_equal(strchr(lines.build_id, ' ') - lines.build_id, 40);
}

static void refuses(enum probe_kind kind, const char *place, const char *arguments,
		    const char *reason)
{
	_cleanup_free_ char *text = strf("p:g/x %s:%s%s", probed, place, arguments);
	struct probe_lines lines = {};
	struct fault why = {};

	assert_true(probe_place_resolve(kind, text, &lines, &why) < 0);
	if (!strstr(why.text, reason))
		fail_msg("%s: \"%s\", not \"%s\"", text, why.text, reason);
	assert_null(lines.lines);
}

static void test_places(void **state)
{
	_cleanup_(program_freep) struct program *p = opened(probed);
	_cleanup_(probe_lines_done) struct probe_lines lines = {}, kernels = {};
	_cleanup_free_ char *text = strf("p:g/x %s:probed_add+0x1", probed), *wanted = NULL;
	uint64_t address, offset;
	struct fault why = {};

	resolves(PROBE_UPROBE, "probed_add", " a=%di:s32 b=%si:s32", false, " a=%di:s32 b=%si:s32");
	assert_int_equal(program_function(p, "probed_add", &address, &offset, &why), 0);
	wanted = strf("p:g/x %s:0x%lx", probed, (unsigned long)offset + 1);
	assert_int_equal(probe_place_resolve(PROBE_UPROBE, text, &lines, &why), 0);
	assert_string_equal(lines.lines[0], wanted);
	/* the kernel's own, whatever the file is */
	assert_int_equal(
		probe_place_resolve(PROBE_UPROBE, "p:g/x /no/file:0x12(0x34) %di", &kernels, &why),
		0);
	assert_string_equal(kernels.lines[0], "p:g/x /no/file:0x12(0x34) %di");
	assert_null(kernels.build_id);
	refuses(PROBE_UPROBE, "probed_add+x", "", "is not an offset");
	refuses(PROBE_UPROBE, "", "", "is not a place");
}

static void test_usdt_places(void **state)
{
	_cleanup_free_ char *text = strf("p:g/x %s:demo:twice", probed);
	_cleanup_(probe_lines_done) struct probe_lines twice = {};
	struct fault why = {};

	resolves(PROBE_USDT, "demo:none", "", false, "");
	resolves(PROBE_USDT, "demo:constant", "", false, " arg1=\\-5:s32");
	resolves(PROBE_USDT, "demo:constant", " x=$arg1 $arg1", false, " x=\\-5:s32 arg1=\\-5:s32");
	assert_int_equal(probe_place_resolve(PROBE_USDT, text, &twice, &why), 0);
	assert_int_equal(strv_length(twice.lines), 2);
#if defined(__x86_64__)
	resolves(PROBE_USDT, "demo:request", "", true, " arg1=%di:s32 arg2=%si:u64 arg3=%dx:u64");
	resolves(PROBE_USDT, "demo:request", " name=+0($arg3):string n=$arg1 $arg2:x64", true,
		 " name=+0(%dx):string n=%di:s32 arg2=%si:x64");
	resolves(PROBE_USDT, "demo:odd", " $arg1", false, " arg1=%ax:u32");
	refuses(PROBE_USDT, "demo:odd", "", "$arg2 is \"8@(%rax,%rbx,8)\": the kernel cannot read");
	refuses(PROBE_USDT, "demo:odd", " x=$arg3", "$arg3 is \"8f@%xmm0\": ");
#endif
	refuses(PROBE_USDT, "demo:request", " $arg4", "demo:request has no $arg4");
	refuses(PROBE_USDT, "demo:request", " $arg0", "demo:request has no $arg0");
	refuses(PROBE_USDT, "demo:request", " $arg99999999999999999999", "has no $arg");
	refuses(PROBE_USDT, "demo", "", "is not a place");
}

/* --- small ones, of 32 and 64 bits */

#if defined(__x86_64__) || defined(__i386__)
static const struct {
	int class;
	unsigned machine;
	const char *name, *arguments, *fetched;
} small[] = {
	{ELFCLASS32, EM_386, "x86-32", "-4@%eax 4@-8(%ebp) 2@%si -4@$7 4@craft_number",
	 " arg1=%ax:s32 arg2=-8(%bp):u32 arg3=%si:u16 arg4=\\7:s32 arg5=@+0x240:u32"},
#if defined(__x86_64__)
	{ELFCLASS64, EM_X86_64, "x86-64", "-4@%edi 8@-8(%rbp) 8@craft_number(%rip)",
	 " arg1=%di:s32 arg2=-8(%bp):u64 arg3=@+0x240:u64"},
#endif
};

static void craft_small(struct tmp *tmp, size_t i)
{
	_cleanup_close_ int fd =
		openat(tmp->fd, "file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	craft_program(fd, small[i].class, small[i].machine, small[i].arguments);
}

static void is_at(struct program *p, const char *symbol, uint64_t wanted)
{
	uint64_t address, offset;
	struct fault why = {};

	if (program_function(p, symbol, &address, &offset, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(offset, wanted);
	assert_int_equal(address, wanted + CRAFT_PROGRAM_BASE);
}

static void look_into_small(const char *path, size_t i)
{
	_cleanup_free_ char *text = strf("p:g/x %s:craft:request", path), *line = NULL;
	_cleanup_(usdt_sites_done) struct usdt_sites sites = {};
	_cleanup_(probe_lines_done) struct probe_lines lines = {};
	_cleanup_(program_freep) struct program *p = opened(path);
	struct fault why = {};
	uint64_t address;

	assert_int_equal(program_machine(p), small[i].machine);
	assert_string_equal(program_build_id(p), CRAFT_PROGRAM_BUILD_ID);
	is_at(p, "craft_add", CRAFT_PROGRAM_TEXT);
	is_at(p, "craft_both", CRAFT_PROGRAM_NEW);
	is_at(p, "craft_both@@V2", CRAFT_PROGRAM_NEW);
	is_at(p, "craft_both@V1", CRAFT_PROGRAM_OLD);
	refuses_function(p, "craft_both@V3", -ENOENT, "no function 'craft_both@V3'");
	refuses_function(p, "craft_ad", -ENOENT, "did you mean 'craft_add'");
	assert_int_equal(program_variable(p, "craft_number", &address, &why), 0);
	assert_int_equal(address, CRAFT_PROGRAM_BASE + CRAFT_PROGRAM_DATA);
	assert_int_equal(program_usdt(p, "craft", "request", &sites, &why), 0);
	assert_int_equal(sites.n, 1);
	assert_int_equal(sites.list[0].address, CRAFT_PROGRAM_BASE + CRAFT_PROGRAM_PROBE);
	assert_int_equal(sites.list[0].offset, CRAFT_PROGRAM_PROBE);
	assert_int_equal(sites.list[0].counter, CRAFT_PROGRAM_COUNTER);
	assert_string_equal(sites.list[0].arguments, small[i].arguments);

	if (probe_place_resolve(PROBE_USDT, text, &lines, &why) < 0)
		fail_msg("%s", why.text);
	line = strf("p:g/x %s:0x%x(0x%x)%s", path, CRAFT_PROGRAM_PROBE, CRAFT_PROGRAM_COUNTER,
		    small[i].fetched);
	assert_string_equal(lines.lines[0], line);
}

static void test_small(void **state)
{
	_cleanup_(tmp_done) struct tmp tmp = {};
	char path[PATH_MAX];

	tmp_init(&tmp);
	(void)snprintf(path, sizeof(path), "%s/file", tmp.path);
	for (size_t i = 0; i < ARRAY_SIZE(small); i++) {
		craft_small(&tmp, i);
		look_into_small(path, i);
	}
}

/* For tests/fuzz/fuzz-program */
static int write_seeds(const char *dir)
{
	for (size_t i = 0; i < ARRAY_SIZE(small); i++) {
		_cleanup_free_ char *path = strf("%s/%s", dir, small[i].name);
		_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		if (fd < 0)
			return 1;
		craft_program(fd, small[i].class, small[i].machine, small[i].arguments);
	}
	return 0;
}
#endif

/* --- damaged files: an error or another answer, never more */

static void look(const char *path)
{
	_cleanup_(program_freep) struct program *p = NULL;
	_cleanup_(usdt_sites_done) struct usdt_sites sites = {};
	uint64_t address, offset;
	struct fault why;

	if (program_open(path, &p, &why) < 0)
		return;
	(void)program_function(p, "probed_add", &address, &offset, &why);
	(void)program_function(p, "probed_add@V1", &address, &offset, &why);
	(void)program_variable(p, "probed_number", &address, &why);
	(void)program_usdt(p, "demo", "request", &sites, &why);
}

static void test_damaged(void **state)
{
	_cleanup_(tmp_done) struct tmp tmp = {};
	_cleanup_free_ char *bytes = NULL;
	char path[PATH_MAX];
	size_t size;

	tmp_init(&tmp);
	(void)snprintf(path, sizeof(path), "%s/file", tmp.path);
	bytes = read_probed(&size);
	for (size_t n = 0; n < size; n += n < 512 ? 1 : 97) {
		tmp_write_bytes(&tmp, "file", bytes, n);
		look(path);
	}
	for (size_t i = 0; i < size; i += i < 1024 || i + 4096 > size ? 3 : 61) {
		const char kept = bytes[i];

		bytes[i] = (char)(i % 2 ? 0xff : kept + 1);
		tmp_write_bytes(&tmp, "file", bytes, size);
		look(path);
		bytes[i] = kept;
	}
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_functions),
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_wrong_names),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_usdt),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_usdt_places),
		cmocka_unit_test(test_damaged),
#if defined(__x86_64__) || defined(__i386__)
		cmocka_unit_test(test_small),
#endif
	};

#if defined(__x86_64__) || defined(__i386__)
	static const char option[] = "--write-seeds=";

	if (argc > 1 && strncmp(argv[1], option, strlen(option)) == 0)
		return write_seeds(argv[1] + strlen(option));
#endif
	return cmocka_run_group_tests(tests, find_probed, NULL);
}

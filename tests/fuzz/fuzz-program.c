/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz-program - any bytes as a program that is to be probed: its functions, versions, variables,
 * USDT probes and their arguments. libFuzzer target; the corpus is in tests/fuzz/corpus/program,
 * written by tests/unit/test-program --write-seeds=DIR. libelf is a part of what is tested.
 */
#include <string.h>
#include <sys/mman.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "recorder/probe-place.h"
#include "recorder/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each refusal says why */
static void check(int r, const struct fault *why)
{
	if (r < 0 && (why->error == 0 || why->text[0] == '\0'))
		abort();
}

static void look(struct program *p)
{
	static const char *const symbols[] = {
		"craft_add", "craft_both", "craft_both@V1", "craft_both@@V2", "craft_number", "ad",
		""};
	struct usdt_sites sites = {};
	uint64_t address, offset;
	struct fault why = {};

	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		check(program_function(p, symbols[i], &address, &offset, &why), &why);
		check(program_variable(p, symbols[i], &address, &why), &why);
	}
	check(program_usdt(p, "craft", "request", &sites, &why), &why);
	usdt_sites_done(&sites);
	if (strspn(program_build_id(p), "0123456789abcdef") != strlen(program_build_id(p)))
		abort();
}

static void resolve(enum probe_kind kind, const char *path, const char *place)
{
	_cleanup_free_ char *text = strf("p:g/x %s:%s", path, place);
	_cleanup_(probe_lines_done) struct probe_lines lines = {};
	struct fault why = {};

	if (!text)
		abort();
	check(probe_place_resolve(kind, text, &lines, &why), &why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("fuzz-program", MFD_CLOEXEC);
	_cleanup_(program_freep) struct program *p = NULL;
	struct fault why = {};
	char path[32];
	int r;

	if (fd < 0 || io_pwrite_all(fd, data, size, 0) < 0)
		abort();
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = program_open(path, &p, &why);
	check(r, &why);
	if (r < 0)
		return 0;
	look(p);
	resolve(PROBE_UPROBE, path, "craft_add+0x4 x=%ax");
	resolve(PROBE_USDT, path, "craft:request");
	resolve(PROBE_USDT, path, "craft:request $arg1 n=$arg2");
	return 0;
}

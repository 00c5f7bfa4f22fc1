/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz-trace-dat - any bytes as a trace.dat: read the frame, verify all of it, make the report.
 * libFuzzer target; tests/fuzz/corpus/trace-dat has a file of each kind and what was found.
 *
 * The formats' texts go to libtraceevent only if FUZZ_FORMATS is set in the environment: its faults
 * are not ours, and would hide ours.
 */
#include <string.h>
#include <sys/mman.h>

#include "basic/io.h"
#include "basic/macro.h"
#include "ctl/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void verify(struct trace_dat *dat)
{
	struct verify_report report;
	struct json_object *o;

	if (!getenv("FUZZ_FORMATS"))
		dat->n_formats = 0;
	if (verify_report_init(&report, "fuzz") < 0)
		abort();
	if (verify_dat(dat, &report) < 0)
		abort();
	o = verify_report_json(&report);
	if (!o || !json_object_to_json_string(o))
		abort();
	json_object_put(o);
	verify_report_done(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("fuzz-trace-dat", MFD_CLOEXEC);
	struct trace_dat *dat = NULL;
	struct fault why = {};
	int r;

	if (fd < 0 || io_pwrite_all(fd, data, size, 0) < 0)
		abort();
	r = trace_dat_open_fd(fd, "fuzz", &dat, &why);
	if (r < 0 && why.text[0] == '\0')
		abort(); /* each refusal says why */
	if (r >= 0)
		verify(dat);
	trace_dat_free(dat);
	return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz-decode - any bytes as a trace.dat: all its events as text and as JSON, by threads, as export
 * does it. libFuzzer target; the corpus is in tests/fuzz/corpus/decode.
 *
 * The formats are the fuzzer's, too, and libtraceevent is a part of what is tested: what makes it
 * fail is for format_guard() to refuse, and for doc/UPSTREAM.md.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "basic/io.h"
#include "decode/print-all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libtraceevent's parser forgets a token here and there where it gives a format up */
const char *__lsan_default_suppressions(void)
{
	return "leak:libtraceevent\n";
}

static void export_all(const struct trace_dat *dat, enum printer_form form, int null)
{
	struct event_filter filter = {.to = UINT64_MAX};
	struct decoder *decoder;
	struct print_all job;
	struct fault why = {};

	if (decoder_new(dat, &decoder, &why) < 0) {
		if (why.text[0] == '\0')
			abort(); /* each refusal says why */
		return;
	}
	job = (struct print_all){
		.decoder = decoder,
		.filter = &filter,
		.printer.form = form,
		.workers = 2,
		.fd = null,
	};
	if (print_all(&job, &why) < 0 && why.text[0] == '\0')
		abort();
	decoder_free(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	_cleanup_close_ int fd = memfd_create("fuzz-decode", MFD_CLOEXEC);
	struct trace_dat *dat = NULL;
	struct fault why = {};

	if (null < 0 || fd < 0 || io_pwrite_all(fd, data, size, 0) < 0)
		abort();
	if (trace_dat_open_fd(fd, "fuzz", &dat, &why) < 0)
		return 0;
	export_all(dat, PRINTER_TEXT, null);
	export_all(dat, PRINTER_JSON, null);
	trace_dat_free(dat);
	return 0;
}

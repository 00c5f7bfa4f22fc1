/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * graph-dat [--events=N] [--seed=N] [--odd] OUT - make a trace.dat of what the tracers of functions
 * write, for kernels that lack them: functions, functions entered and left (nested, and ending at
 * once), repeats, trace_printk's binary messages, raw data. Formats and symbols are this kernel's.
 * --odd: in the middle there is a message that does not parse.
 */
#include <err.h>
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "tests/unit/craft-formats.h"

#define PAGE	  4096U
#define MAX_DEPTH 12U

static const char *const names[] = {"function",	    "funcgraph_entry", "funcgraph_exit", "bprint",
				    "func_repeats", "raw_data",	       "bputs"};

static const char printk[] = "0xffffffff82000100 : \"number %d string %s pointer %p\\n\"\n"
			     "0xffffffff82000200 : \"long %lx in %ps, %llu%%\"\n"
			     "0xffffffff82000300 : \"put this\\n\"\n"
			     "0xffffffff82000400 : \"odd %d %d %d %d %d %d %d %d %d %d\\n\"\n";

struct maker {
	struct craft page;
	size_t begin;
	uint64_t ts;
	unsigned seed;
	uint64_t symbols[64];
	size_t n_symbols;
	uint64_t stack[MAX_DEPTH];
	unsigned depth;
	unsigned ids[ARRAY_SIZE(names)];
	bool odd; /* in the middle a message that libtraceevent cannot parse */
};

static unsigned any(struct maker *m, unsigned n)
{
	return (unsigned)rand_r(&m->seed) % n;
}

static uint64_t function(struct maker *m)
{
	return any(m, 20) ? m->symbols[any(m, (unsigned)m->n_symbols)] : 0x1234;
}

static void end_page(struct maker *m)
{
	if (m->page.size > m->begin)
		craft_page_end(&m->page, m->begin, PAGE, 0);
}

/* Room for the longest event, in this page or the next */
static void room(struct maker *m)
{
	if (m->page.size == 0 || m->page.size - m->begin > PAGE - 256) {
		end_page(m);
		m->begin = craft_page_begin(&m->page, m->ts);
	}
}

static size_t head(struct maker *m, unsigned kind, unsigned size)
{
	unsigned delta = any(m, 3) ? 100 + any(m, 5000) : any(m, 100000000);

	room(m);
	m->ts += delta;
	craft_head(&m->page, size / 4, delta);
	craft_number(&m->page, 2, m->ids[kind]);
	craft_number(&m->page, 2, 0);
	craft_number(&m->page, 4, 77 + any(m, 8) / 7);
	return m->page.size;
}

static void put_function(struct maker *m)
{
	(void)head(m, 0, 24);
	craft_number(&m->page, 8, function(m));
	craft_number(&m->page, 8, function(m));
}

static void put_entry(struct maker *m)
{
	uint64_t f = function(m);

	(void)head(m, 1, 24);
	craft_number(&m->page, 8, f);
	craft_number(&m->page, 8, m->depth);
	m->stack[m->depth++] = f;
}

static void put_exit(struct maker *m)
{
	static const uint64_t durations[] = {7,	      999,	  15000,     150000,
					     1500000, 1500000000, 1ULL << 50};
	uint64_t start = m->ts;

	m->depth--;
	(void)head(m, 2, 40);
	craft_number(&m->page, 8, m->stack[m->depth]);
	craft_number(&m->page, 8, m->depth);
	craft_number(&m->page, 8, start);
	craft_number(&m->page, 8, start + durations[any(m, ARRAY_SIZE(durations))] + any(m, 100));
}

/* @odd: its arguments are fewer than the format wants */
static void put_bprint(struct maker *m, bool odd)
{
	bool first = any(m, 2);

	/* common, ip, fmt, then the arguments as vbin_printf() packs them */
	(void)head(m, 3, 24 + 24);
	craft_number(&m->page, 8, function(m));
	craft_number(&m->page, 8,
		     odd     ? 0xffffffff82000400
		     : first ? 0xffffffff82000100
			     : 0xffffffff82000200);
	if (first) {
		craft_number(&m->page, 4, any(m, 1000));
		craft_bytes(&m->page, "hi yo\0\0", 8);
		craft_number(&m->page, 8, 0xffff888000000000 + any(m, 1000));
		craft_fill(&m->page, 0, 4);
	} else {
		craft_number(&m->page, 8, any(m, 1000));
		craft_number(&m->page, 8, function(m));
		craft_number(&m->page, 8, any(m, 1000));
	}
}

static void put_repeats(struct maker *m)
{
	(void)head(m, 4, 32);
	craft_number(&m->page, 8, function(m));
	craft_number(&m->page, 8, function(m));
	craft_number(&m->page, 2, any(m, 100));
	craft_number(&m->page, 2, 0);
	craft_number(&m->page, 4, any(m, 100000));
}

static void put_others(struct maker *m)
{
	if (any(m, 2)) {
		(void)head(m, 5, 24);
		craft_number(&m->page, 4, any(m, 256));
		for (unsigned i = 0; i < 12; i++)
			craft_number(&m->page, 1, any(m, 256));
	} else {
		(void)head(m, 6, 24);
		craft_number(&m->page, 8, function(m));
		craft_number(&m->page, 8, any(m, 5) ? 0xffffffff82000300 : 1);
	}
}

static void make(struct maker *m, uint64_t n)
{
	m->ts = 5000000000;
	for (uint64_t i = 0; i < n; i++) {
		unsigned what = any(m, 100);

		if (m->odd && i == n / 2)
			put_bprint(m, true);
		if (what < 40 && m->depth < MAX_DEPTH)
			put_entry(m);
		else if (what < 80 && m->depth > 0)
			put_exit(m);
		else if (what < 90)
			put_function(m);
		else if (what < 94)
			put_bprint(m, false);
		else if (what < 97)
			put_repeats(m);
		else
			put_others(m);
	}
	end_page(m);
}

static char *load_format(struct maker *m, unsigned i)
{
	char path[128], *text, *id;

	(void)snprintf(path, sizeof(path), "/sys/kernel/tracing/events/ftrace/%s/format", names[i]);
	if (io_read_file_at(AT_FDCWD, path, &text, NULL) < 0)
		err(1, "%s", path);
	id = strstr(text, "\nID: ");
	m->ids[i] = id ? (unsigned)atoi(id + 5) : 0;
	return text;
}

static char *load_symbols(struct maker *m)
{
	char *text, *line;

	if (io_read_file_at(AT_FDCWD, "/proc/kallsyms", &text, NULL) < 0)
		err(1, "/proc/kallsyms");
	line = text;
	for (unsigned i = 0; line && m->n_symbols < ARRAY_SIZE(m->symbols); i++) {
		if (i % 200 == 100)
			m->symbols[m->n_symbols++] = strtoull(line, NULL, 16) + i % 3;
		line = strchr(line + 1, '\n');
	}
	return text;
}

int main(int argc, char **argv)
{
	struct maker m = {.page = {.commit_size = 8}, .seed = 1};
	struct craft out = {.commit_size = 8};
	struct craft_format formats[ARRAY_SIZE(names)];
	struct craft_file file = {
		.formats = formats,
		.n_formats = ARRAY_SIZE(names),
		.printk = printk,
		.cmdlines = "77 traced task\n",
		.clock = "[mono]",
		.pages = &m.page,
	};
	const char *path = NULL;
	uint64_t n = 20000;
	int fd;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--events=", 9) == 0)
			n = strtoull(argv[i] + 9, NULL, 10);
		else if (strncmp(argv[i], "--seed=", 7) == 0)
			m.seed = (unsigned)atoi(argv[i] + 7);
		else if (strcmp(argv[i], "--odd") == 0)
			m.odd = true;
		else
			path = argv[i];
	}
	if (!path)
		errx(2, "usage: graph-dat [--events=N] [--seed=N] [--odd] OUT");
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		formats[i] = (struct craft_format){"ftrace", load_format(&m, i)};
	file.kallsyms = load_symbols(&m);
	make(&m, n);
	craft_file(&out, &file);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || io_pwrite_all(fd, out.bytes, out.size, 0) < 0)
		err(1, "%s", path);
	close(fd);
	return 0;
}

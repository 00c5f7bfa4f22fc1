/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * decode-compare [--rounds=N] [--big-endian] [--threads=N] [EVENTS-DIR] - for each event format of
 * a kernel (default /sys/kernel/tracing/events), print records of random numbers by the compiled
 * form and by libtraceevent, and compare. Names the formats that differ, and counts those that are
 * not compiled. Status 1 if any differs.
 *
 * With --threads=N, up to N threads instead print the same records by libtraceevent and its plugins
 * at the same time, with a handle each: all have to print what one alone prints.
 */
#include <err.h>
#include <fcntl.h>
#include <fts.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "basic/io.h"
#include "decode/print/print.h"
#include "decode/printer.h"
#include "tests/unit/craft-formats.h"

#define MAX_FORMATS 20000U

struct collection {
	struct craft_format formats[MAX_FORMATS];
	size_t n;
};

static int by_name(const FTSENT **a, const FTSENT **b)
{
	bool x = strcmp((*a)->fts_name, "ftrace") == 0, y = strcmp((*b)->fts_name, "ftrace") == 0;

	/* ftrace's own first, as in a trace.dat */
	if (x != y)
		return x ? -1 : 1;
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void collect(struct collection *all, char *dir)
{
	char *const roots[] = {dir, NULL};
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	FTSENT *e;

	if (!fts)
		err(1, "%s", dir);
	while ((e = fts_read(fts))) {
		char *text;

		if (e->fts_info != FTS_F || strcmp(e->fts_name, "format") != 0 ||
		    all->n >= MAX_FORMATS)
			continue;
		if (io_read_file_at(AT_FDCWD, e->fts_path, &text, NULL) < 0)
			errx(1, "%s: cannot read", e->fts_path);
		all->formats[all->n].text = text;
		all->formats[all->n++].system = strdup(e->fts_parent->fts_parent->fts_name);
	}
	fts_close(fts);
}

static void print_text(struct printer *p, const struct decode_event *event, struct text *out)
{
	out->size = 0;
	if (printer_put(p, event, true, out) < 0)
		errx(1, "out of memory");
	text_char(out, '\0');
}

/* How many of @rounds records are printed otherwise; shows the first */
static unsigned compare(struct printer *fast, struct printer *slow, struct decode_event *event,
			struct tep_event *format, unsigned rounds, bool big_endian)
{
	static uint8_t record[64 * KIB];
	struct text a = {}, b = {};
	unsigned seed = (unsigned)format->id, bad = 0;

	for (unsigned i = 0; i < rounds; i++) {
		bool hostile = i % 4 == 3;

		event->data = record;
		event->size = craft_record(format, big_endian, hostile, &seed, record);
		print_text(fast, event, &a);
		if (hostile) /* those only have to be survived */
			continue;
		print_text(slow, event, &b);
		if (strcmp(a.bytes, b.bytes) != 0 && bad++ == 0)
			printf("%s:%s: %s\n  compiled:      %s  libtraceevent: %s", format->system,
			       format->name, format->print_fmt.format, a.bytes, b.bytes);
	}
	text_done(&a);
	text_done(&b);
	return bad;
}

/* --- threads */

struct printing {
	const struct decoder *decoder;
	const struct task_name *task;
	unsigned rounds;
	bool big_endian;
	struct printer *printer;
	pthread_t thread;
	uint64_t hash, lines;
};

static void *print_records(void *userdata)
{
	struct printing *p = userdata;
	uint8_t *record = malloc(64 * KIB);
	struct text out = {};

	if (!record)
		errx(1, "out of memory");
	p->hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	for (unsigned round = 0; round < p->rounds; round++)
		for (uint32_t id = 0; id < SUBBUF_EVENT_IDS; id++) {
			struct decode_event event = {
				.ts = 1000,
				.id = id,
				.data = record,
				.task = p->task,
				.big_endian = p->big_endian,
			};
			struct tep_event *format = NULL;
			unsigned seed = id + round * SUBBUF_EVENT_IDS;

			/* those that depend on order are never left to several */
			if (printer_how(p->printer, id, &format) != TEXT_TEP)
				continue;
			event.size = craft_record(format, p->big_endian, false, &seed, record);
			print_text(p->printer, &event, &out);
			for (size_t i = 0; i < out.size; i++)
				p->hash =
					(p->hash ^ (uint8_t)out.bytes[i]) * UINT64_C(0x100000001b3);
			p->lines++;
		}
	text_done(&out);
	free(record);
	return NULL;
}

/* Return: the hash of what they printed, 0: not all the same */
static uint64_t print_by(unsigned n, const struct printing *what, uint64_t *ret_lines)
{
	const struct printer_config config = {.by_libtraceevent = true};
	struct printing *all = calloc(n, sizeof(*all));
	uint64_t hash;

	if (!all)
		errx(1, "out of memory");
	for (unsigned i = 0; i < n; i++) {
		all[i] = *what;
		if (printer_new(what->decoder, &config, &all[i].printer) < 0)
			errx(1, "out of memory");
	}
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&all[i].thread, NULL, print_records, &all[i]) != 0)
			errx(1, "cannot start a thread");
	for (unsigned i = 0; i < n; i++)
		(void)pthread_join(all[i].thread, NULL);
	hash = all[0].hash;
	*ret_lines = all[0].lines;
	for (unsigned i = 0; i < n; i++) {
		if (all[i].hash != all[0].hash || all[i].lines != all[0].lines)
			hash = 0;
		printer_free(all[i].printer);
	}
	free(all);
	return hash;
}

static int compare_threads(const struct printing *what, unsigned most)
{
	uint64_t lines, alone = print_by(1, what, &lines);

	for (unsigned n = 2; n <= most; n *= 2)
		if (print_by(n, what, &lines) != alone) {
			printf("%u threads print otherwise than one\n", n);
			return 1;
		}
	printf("%llu lines: the same by 1 to %u threads\n", (unsigned long long)lines, most);
	return lines == 0;
}

static struct trace_dat *open_formats(const struct collection *all, bool big_endian)
{
	struct craft c = {.big_endian = big_endian, .commit_size = 8};
	struct craft_file file = {.formats = all->formats, .n_formats = all->n};
	int fd = memfd_create("decode-compare", MFD_CLOEXEC);
	_cleanup_free_ char *kallsyms = NULL, *printk = NULL;
	struct trace_dat *dat;
	struct fault why;

	(void)io_read_file_at(AT_FDCWD, "/proc/kallsyms", &kallsyms, NULL);
	(void)io_read_file_at(AT_FDCWD, "/sys/kernel/tracing/printk_formats", &printk, NULL);
	file.kallsyms = kallsyms;
	file.printk = printk;
	craft_file(&c, &file);
	if (fd < 0 || io_pwrite_all(fd, c.bytes, c.size, 0) < 0)
		err(1, "memfd");
	if (trace_dat_open_fd(fd, "formats", &dat, &why) < 0)
		errx(1, "%s", why.text);
	craft_done(&c);
	return dat;
}

int main(int argc, char **argv)
{
	unsigned rounds = 200, threads = 0, n_bad = 0, n_compiled = 0;
	static struct collection all;
	struct printer_config config = {};
	struct printer *fast, *slow;
	struct decoder *decoder;
	struct tasks *tasks;
	struct trace_dat *dat;
	struct fault why;
	char *dir = NULL;
	bool big_endian = false;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--rounds=", 9) == 0)
			rounds = (unsigned)atoi(argv[i] + 9);
		else if (strncmp(argv[i], "--threads=", 10) == 0)
			threads = (unsigned)atoi(argv[i] + 10);
		else if (strcmp(argv[i], "--big-endian") == 0)
			big_endian = true;
		else if (argv[i][0] == '-')
			errx(2, "usage: decode-compare [--rounds=N] [--big-endian] [--threads=N] "
				"[EVENTS-DIR]");
		else
			dir = argv[i];
	}
	collect(&all, dir ? dir : (char *)"/sys/kernel/tracing/events");
	dat = open_formats(&all, big_endian);
	if (decoder_new(dat, &decoder, &why) < 0)
		errx(1, "%s", why.text);
	if (decoder_new_tasks(decoder, &tasks, &why) < 0)
		errx(1, "%s", why.text);
	if (threads)
		return compare_threads(&(struct printing){.decoder = decoder,
							  .task = tasks_find(tasks, 42),
							  .rounds = rounds,
							  .big_endian = big_endian},
				       threads);
	if (printer_new(decoder, &config, &fast) < 0)
		errx(1, "out of memory");
	config.by_libtraceevent = true;
	if (printer_new(decoder, &config, &slow) < 0)
		errx(1, "out of memory");
	for (uint32_t id = 0; id < SUBBUF_EVENT_IDS; id++) {
		struct decode_event event = {.ts = 1000, .id = id, .big_endian = big_endian};
		struct tep_event *format = NULL;
		enum text_how how = printer_how(fast, id, &format);

		if (!format)
			continue;
		n_compiled += how == TEXT_COMPILED;
		if (getenv("DECODE_COMPARE_LIST") && how >= TEXT_TEP)
			printf("not compiled: %s:%s\n", format->system, format->name);
		event.task = tasks_find(tasks, 42);
		/* ours alone: libtraceevent does not know functions that end at once */
		if (strcmp(format->system, "ftrace") == 0 &&
		    strncmp(format->name, "funcgraph_e", 11) == 0)
			continue;
		n_bad += compare(fast, slow, &event, format, rounds, big_endian) > 0;
	}
	printf("%zu formats: %u compiled, %u differ\n", all.n, n_compiled, n_bad);
	printer_free(fast);
	printer_free(slow);
	tasks_free(tasks);
	decoder_free(decoder);
	trace_dat_free(dat);
	for (size_t i = 0; i < all.n; i++) {
		free((char *)all.formats[i].text);
		free((char *)all.formats[i].system);
	}
	return n_bad > 0;
}

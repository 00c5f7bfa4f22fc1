/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * check-markers - are the markers that `markers` wrote in these trace.dat files, each exactly once
 * and in order? Reads the files with libtracecmd, so that no code of flyrec judges itself. Several
 * files are segments of one recording and are taken in the order of their names.
 */
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <trace-cmd.h>

#include "tests/tools/common.h"

#define MAX_CPUS 4096

struct bitset {
	uint64_t *words;
	size_t n;
};

struct cpu {
	struct bitset expected;
	struct bitset seen;
	uint64_t end; /* one more than the largest number expected or seen */
	uint64_t max; /* largest number seen, if found is not 0 */
	uint64_t min; /* smallest */
	uint64_t found;
	uint64_t doubled;
	uint64_t out_of_order;
	uint64_t unexpected; /* not in --expect, or recorded on another CPU */
	uint64_t lost;
	uint64_t lost_at_start;
	uint64_t lost_at_end;
};

struct check {
	struct cpu *cpus;
	bool expect;
	bool allow_lost_at_start;
	bool allow_lost_at_end;
	uint64_t max_lost;
	const char *buffer; /* only of this one; NULL: of all */
	uint64_t gaps;	    /* places where the kernel or the file says that events are missing */
};

static const char help[] =
	"check-markers [--expect=FILE]... [--allow-lost-at-start] [--allow-lost-at-end]\n"
	"              [--max-lost=N] [--buffer=NAME] FILE...\n"
	"--expect: what `markers` printed; without it 0 to the largest number found is expected.\n"
	"--buffer: of a file with several ring buffers only this one.\n"
	"Exit status 0: each marker once and in order; 1: not so; 2: usage.\n";

static void bitset_set(struct bitset *b, uint64_t bit)
{
	size_t word = bit / 64;

	if (word >= b->n) {
		size_t n = MAX(word + 1, b->n * 2);
		uint64_t *words = realloc(b->words, n * sizeof(*words));

		if (!words)
			err(2, "realloc");
		memset(words + b->n, 0, (n - b->n) * sizeof(*words));
		b->words = words;
		b->n = n;
	}
	b->words[word] |= UINT64_C(1) << (bit % 64);
}

static bool bitset_get(const struct bitset *b, uint64_t bit)
{
	return bit / 64 < b->n && b->words[bit / 64] & (UINT64_C(1) << (bit % 64));
}

/* ranges_read callback */
static void on_range(unsigned int cpu, uint64_t first, int64_t last, void *data)
{
	struct check *check = data;

	if (cpu >= MAX_CPUS)
		errx(2, "CPU %u is too large", cpu);
	for (uint64_t seq = first; (int64_t)seq <= last; seq++)
		bitset_set(&check->cpus[cpu].expected, seq);
	check->cpus[cpu].end = MAX(check->cpus[cpu].end, (uint64_t)(last + 1));
}

static void on_marker(struct check *check, unsigned int cpu, uint64_t seq, int on_cpu)
{
	struct cpu *c = &check->cpus[cpu];

	if ((int)cpu != on_cpu || (check->expect && !bitset_get(&c->expected, seq))) {
		c->unexpected++;
		return;
	}
	if (bitset_get(&c->seen, seq)) {
		c->doubled++;
		return;
	}
	if (c->found && seq < c->max)
		c->out_of_order++;
	c->max = c->found ? MAX(c->max, seq) : seq;
	c->min = c->found ? MIN(c->min, seq) : seq;
	c->found++;
	c->end = MAX(c->end, seq + 1);
	bitset_set(&c->seen, seq);
}

static void on_record(struct check *check, const struct tep_record *record,
		      const struct tep_format_field *text, int on_cpu)
{
	const char *data = (const char *)record->data + text->offset;
	char line[128];
	unsigned int cpu;
	uint64_t seq;

	if (record->size <= text->offset)
		return;
	/* the text ends with a NUL, but a damaged file may lack it */
	snprintf(line, sizeof(line), "%.*s", record->size - text->offset, data);
	if (sscanf(line, "flyrec-test cpu=%u seq=%" SCNu64, &cpu, &seq) == 2 && cpu < MAX_CPUS)
		on_marker(check, cpu, seq, on_cpu);
}

static void check_buffer(struct check *check, struct tracecmd_input *in, const char *path)
{
	struct tep_handle *tep = tracecmd_get_tep(in);
	struct tep_event *print = tep_find_event_by_name(tep, "ftrace", "print");
	struct tep_format_field *text = print ? tep_find_field(print, "buf") : NULL;
	int cpus = tep_get_cpus(tep);

	if (!text)
		errx(1, "%s: has no format of ftrace:print", path);
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct tep_record *r;

		for (r = tracecmd_read_cpu_first(in, cpu); r; r = tracecmd_read_data(in, cpu)) {
			if (r->missed_events)
				check->gaps++;
			if (tep_data_type(tep, r) == print->id)
				on_record(check, r, text, cpu);
			tracecmd_free_record(r);
		}
	}
}

static void check_file(struct check *check, const char *path)
{
	struct tracecmd_input *in = tracecmd_open(path, TRACECMD_FL_LOAD_NO_PLUGINS);

	if (!in)
		errx(1, "libtracecmd cannot open %s", path);
	if (!check->buffer)
		check_buffer(check, in, path);
	for (int i = 0; i < tracecmd_buffer_instances(in); i++) {
		struct tracecmd_input *buffer;

		if (check->buffer &&
		    strcmp(check->buffer, tracecmd_buffer_instance_name(in, i)) != 0)
			continue;
		buffer = tracecmd_buffer_instance_handle(in, i);
		if (!buffer)
			errx(1, "%s: libtracecmd cannot open buffer %d", path, i);
		check_buffer(check, buffer, path);
		tracecmd_close(buffer);
	}
	tracecmd_close(in);
}

static void print_gap(unsigned int cpu, uint64_t from, uint64_t to, unsigned int *gaps)
{
	if ((*gaps)++ < 10)
		printf("  cpu=%u lost %" PRIu64 "..%" PRIu64 "\n", cpu, from, to);
}

static void find_lost(struct check *check, unsigned int cpu)
{
	struct cpu *c = &check->cpus[cpu];
	uint64_t begin = 0;
	unsigned int gaps = 0;
	bool in_gap = false;

	for (uint64_t seq = 0; seq < c->end; seq++) {
		bool lost = (!check->expect || bitset_get(&c->expected, seq)) &&
			    !bitset_get(&c->seen, seq);

		if (lost && (!c->found || seq > c->max))
			c->lost_at_end++;
		else if (lost && seq < c->min)
			c->lost_at_start++;
		else if (lost)
			c->lost++;
		if (lost && !in_gap)
			begin = seq;
		else if (!lost && in_gap)
			print_gap(cpu, begin, seq - 1, &gaps);
		in_gap = lost;
	}
	if (in_gap)
		print_gap(cpu, begin, c->end - 1, &gaps);
}

static bool judge(struct check *check)
{
	uint64_t found = 0, lost = 0, wrong = 0;

	for (unsigned int cpu = 0; cpu < MAX_CPUS; cpu++) {
		struct cpu *c = &check->cpus[cpu];

		if (!c->end && !c->unexpected)
			continue;
		find_lost(check, cpu);
		printf("cpu=%u found=%" PRIu64 " lost=%" PRIu64 " lost_at_start=%" PRIu64
		       " lost_at_end=%" PRIu64 " doubled=%" PRIu64 " out_of_order=%" PRIu64
		       " unexpected=%" PRIu64 "\n",
		       cpu, c->found, c->lost, c->lost_at_start, c->lost_at_end, c->doubled,
		       c->out_of_order, c->unexpected);
		found += c->found;
		lost += c->lost + (check->allow_lost_at_start ? 0 : c->lost_at_start) +
			(check->allow_lost_at_end ? 0 : c->lost_at_end);
		wrong += c->doubled + c->out_of_order + c->unexpected;
	}
	printf("total found=%" PRIu64 " lost=%" PRIu64 " wrong=%" PRIu64 " gaps=%" PRIu64 "\n",
	       found, lost, wrong, check->gaps);
	if (!found && !check->expect)
		warnx("no marker found");
	return (found || check->expect) && lost <= check->max_lost && !wrong;
}

/* Of ".20250101T000000.000000Z.finishing" the leading dot does not count */
static const char *sort_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return *name == '.' ? name + 1 : name;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(sort_name(*(char *const *)a), sort_name(*(char *const *)b));
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"expect", required_argument, NULL, 'e'},
						{"allow-lost-at-start", no_argument, NULL, 'S'},
						{"allow-lost-at-end", no_argument, NULL, 'E'},
						{"max-lost", required_argument, NULL, 'm'},
						{"buffer", required_argument, NULL, 'b'},
						{"help", no_argument, NULL, 'h'},
						{}};
	struct check check = {};
	bool good;
	int c;

	check.cpus = calloc(MAX_CPUS, sizeof(*check.cpus));
	if (!check.cpus)
		err(2, "calloc");
	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'e':
			check.expect = true;
			ranges_read(optarg, on_range, &check);
			break;
		case 'S':
			check.allow_lost_at_start = true;
			break;
		case 'E':
			check.allow_lost_at_end = true;
			break;
		case 'b':
			check.buffer = optarg;
			break;
		case 'm':
			check.max_lost = number_parse("max-lost", optarg);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return 2;
		}
	}
	if (optind == argc)
		errx(2, "usage: %s", help);
	qsort(argv + optind, (size_t)(argc - optind), sizeof(*argv), compare_names);
	for (int i = optind; i < argc; i++)
		check_file(&check, argv[i]);
	good = judge(&check);
	for (unsigned int cpu = 0; cpu < MAX_CPUS; cpu++) {
		free(check.cpus[cpu].expected.words);
		free(check.cpus[cpu].seen.words);
	}
	free(check.cpus);
	return good ? 0 : 1;
}

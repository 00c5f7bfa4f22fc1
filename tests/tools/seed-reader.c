/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seed-reader - a reader of trace.dat written from nothing but the text of the manual page
 * trace-cmd.dat(5); each step quotes the sentence it follows. It shares no code or constant with
 * formats/ and writer/, so that a mistake there cannot hide here. With --compare-tracefs each
 * section is compared byte for byte with the kernel file it must come from; with
 * --without-prefix-symbols the symbols with all of /proc/kallsyms but those named __pfx_.
 *
 * Prints one line a section; each fault is a line "FAULT at OFFSET: …" and exit status 1.
 */
#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/tools/seed-input.h"

static const char help[] =
	"seed-reader [--compare-tracefs=INSTANCE] [--tracefs=DIR] [--allow-partial-systems]\n"
	"            [--without-prefix-symbols] FILE\n"
	"Walks every section of a trace.dat by the text of trace-cmd.dat(5).\n"
	"INSTANCE: the one that was recorded, \"/\" for the top level.\n";

static void read_initial(struct reader *r)
{
	char version[16];
	uint8_t endian, long_size;

	/* "The first three bytes contain the magic value: 0x17 0x08 0x44" */
	expect_bytes(r, "\x17\x08\x44", 3);
	/* "The next 7 bytes contain the characters: "tracing"" */
	expect_bytes(r, "tracing", 7);
	/* "a null '\0' terminated string that contains the version of the file" */
	read_string(r, version, sizeof(version));
	if (strcmp(version, "6") != 0) {
		fault(r, 10, "version %s; this text describes 6", version);
		exit(1);
	}
	/* "The next 1 byte contains the flags for the file endianess: 0 = little, 1 = big" */
	read_bytes(r, &endian, 1);
	if (endian > 1)
		fault(r, r->pos - 1, "endianess %u", endian);
	r->big_endian = endian == 1;
	/* "The next byte contains the number of bytes per "long" value: 4 … 8" */
	read_bytes(r, &long_size, 1);
	if (long_size != 4 && long_size != 8)
		fault(r, r->pos - 1, "long size %u", long_size);
	/* "a 32-bit word that defines what the traced host machine page size was" */
	r->page_size = (uint32_t)read_number(r, 4);
	if (!r->page_size || r->page_size & (r->page_size - 1)) {
		fault(r, r->pos - 4, "page size %u", r->page_size);
		exit(1);
	}
	printf("version %s %s-endian long %u page %u\n", version, endian ? "big" : "little",
	       long_size, r->page_size);
}

static void read_page_layout(struct reader *r, uint64_t at, const char *text)
{
	const char *timestamp = strstr(text, "timestamp;"), *data = strstr(text, "char data;");
	unsigned int data_offset, data_size;

	if (!timestamp ||
	    sscanf(timestamp, "timestamp; offset:%" SCNu64, &r->timestamp_offset) != 1)
		fault(r, at, "header_page has no timestamp");
	if (!data || sscanf(data, "char data; offset:%u; size:%u", &data_offset, &data_size) != 2)
		fault(r, at, "header_page has no data");
	else if (data_offset + data_size != r->page_size)
		fault(r, at, "header_page describes a page of %u bytes, the file's page size is %u",
		      data_offset + data_size, r->page_size);
}

static void read_headers(struct reader *r)
{
	_cleanup_free_ char *page = NULL, *event = NULL;
	uint64_t size;

	/* "The next 12 bytes contain the string: "header_page\0"" */
	expect_bytes(r, "header_page", 12);
	/* "The next 8 bytes are a 64-bit word containing the size of the page header information"
	 */
	size = read_number(r, 8);
	/* "the data retrieved from debugfs/tracing/events/header_page" */
	page = read_data(r, size);
	printf("header_page %" PRIu64 "\n", size);
	compare_at(r, r->pos - size, page, size, "%s/events/header_page", r->instance);
	read_page_layout(r, r->pos - size, page);

	/* "The next 13 bytes contain the string: "header_event\0"" */
	expect_bytes(r, "header_event", 13);
	/* "a 64-bit word containing the size of the event header information stored next" */
	size = read_number(r, 8);
	/* "the data retrieved from debugfs/tracing/events/header_event" */
	event = read_data(r, size);
	printf("header_event %" PRIu64 "\n", size);
	compare_at(r, r->pos - size, event, size, "%s/events/header_event", r->instance);
}

/* All events of the system that the kernel has, @n of them were in the file, each a different one
 */
static void check_complete(struct reader *r, const char *system, uint32_t n)
{
	char pattern[PATH_MAX];
	glob_t found = {};

	snprintf(pattern, sizeof(pattern), "%s/events/%s/*/format", r->tracefs, system);
	if (glob(pattern, 0, NULL, &found) != 0 || found.gl_pathc != n)
		fault(r, r->pos, "system %s has %u events in the file, %zu in the kernel", system,
		      n, found.gl_pathc);
	globfree(&found);
}

/* The text of a format file begins with "name: EVENT" */
static bool event_name(const char *format, char name[static 256])
{
	return sscanf(format, "name: %255s", name) == 1;
}

/*
 * The same for the Ftrace events and for each system:
 * "8 bytes for the size of the event format file. The event format file copied from the target
 * machine: debugfs/tracing/events/<system>/<event>/format"
 */
static void read_formats(struct reader *r, const char *system, uint32_t count)
{
	_cleanup_free_ char(*names)[256] = NULL;

	if (count > 65536) {
		fault(r, r->pos - 4, "%u events in system %s", count, system);
		exit(1);
	}
	names = calloc((size_t)count + 1, sizeof(*names));
	if (!names)
		err(2, "calloc");
	for (uint32_t i = 0; i < count; i++) {
		uint64_t size = read_number(r, 8), at = r->pos;
		_cleanup_free_ char *format = read_data(r, size);

		if (!event_name(format, names[i])) {
			fault(r, at, "not an event format");
			continue;
		}
		for (uint32_t j = 0; j < i; j++) {
			if (strcmp(names[i], names[j]) == 0)
				fault(r, at, "event %s:%s for the second time", system, names[i]);
		}
		compare_at(r, at, format, size, "%s/events/%s/%s/format", r->tracefs, system,
			   names[i]);
	}
}

static void read_events(struct reader *r)
{
	uint32_t systems, count;

	/* "a 32-bit word of the number of Ftrace event format files that are stored" */
	count = (uint32_t)read_number(r, 4);
	printf("ftrace events %u\n", count);
	read_formats(r, "ftrace", count);
	if (r->tracefs)
		check_complete(r, "ftrace", count);

	/* "a 32-bit word containing the number of event systems that are stored in the file" */
	systems = (uint32_t)read_number(r, 4);
	printf("systems %u\n", systems);
	while (systems--) {
		char system[256];

		/* "A null-terminated string containing the system name." */
		read_string(r, system, sizeof(system));
		/* "These are the directories in … excluding the ftrace directory." */
		if (strcmp(system, "ftrace") == 0)
			fault(r, r->pos, "ftrace among the systems");
		/* "4 bytes containing a 32-bit word containing the number of events" */
		count = (uint32_t)read_number(r, 4);
		printf("  %s events %u\n", system, count);
		read_formats(r, system, count);
		if (r->tracefs && !r->partial)
			check_complete(r, system, count);
	}
}

/* /proc/kallsyms, but for the symbols of the room in front of functions */
static void compare_symbols(struct reader *r, uint64_t at, const char *data, uint64_t size)
{
	FILE *in = popen("grep -v ' [tTwW] __pfx_' /proc/kallsyms", "re");
	_cleanup_free_ char *text = NULL;
	size_t room = 0;
	ssize_t n = in ? getdelim(&text, &room, '\0', in) : -1;

	if (n < 0 || pclose(in) != 0)
		fault(r, at, "cannot read /proc/kallsyms to compare");
	else if ((uint64_t)n != size || memcmp(text, data, size) != 0)
		fault(r, at,
		      "differs from /proc/kallsyms without __pfx_ (%" PRIu64 " bytes, there %zd)",
		      size, n);
}

static void read_kernel_texts(struct reader *r)
{
	_cleanup_free_ char *kallsyms = NULL, *printk = NULL;
	uint64_t size;

	/* "a 32-bit word containing the size of the data holding the function mappings" */
	size = read_number(r, 4);
	/* "contains the information from the target machine's file: /proc/kallsyms" */
	kallsyms = read_data(r, size);
	printf("kallsyms %" PRIu64 "\n", size);
	if (r->tracefs && r->without_prefix)
		compare_symbols(r, r->pos - size, kallsyms, size);
	else
		compare_at(r, r->pos - size, kallsyms, size, "/proc/kallsyms");

	/* "a 32-bit word containing the size of the data holding the printk formats" */
	size = read_number(r, 4);
	/* "contains the information from debugfs/tracing/printk_formats" */
	printk = read_data(r, size);
	printf("printk_formats %" PRIu64 "\n", size);
	compare_at(r, r->pos - size, printk, size, "%s/printk_formats", r->tracefs);
}

static void read_processes(struct reader *r)
{
	_cleanup_free_ char *data = NULL;
	uint64_t size, tasks = 0;
	char *rest, *line;

	/* "a 64-bit word that holds the size of the data mapping the PID to a process name" */
	size = read_number(r, 8);
	/* "contains the information from debugfs/tracing/saved_cmdlines" */
	data = read_data(r, size);
	if (strlen(data) != size)
		fault(r, r->pos - size + strlen(data), "a NUL among the task names");
	for (rest = data; (line = strsep(&rest, "\n"));) {
		int used = 0;

		if (!*line)
			continue; /* reserved room */
		if (sscanf(line, "%*u%n", &used) < 0 || !used || line[used] != ' ')
			fault(r, r->pos - size + (uint64_t)(line - data), "not \"PID COMM\": %s",
			      line);
		tasks++;
	}
	printf("task names %" PRIu64 " in %" PRIu64 "\n", tasks, size);
}

static void print_option(uint64_t option, const char *data, uint64_t size)
{
	printf("  option %" PRIu64 " size %" PRIu64 " \"", option, size);
	for (uint64_t i = 0; i < MIN(size, 60) && data[i]; i++)
		putchar(data[i] == '\n' ? '|' : data[i] < ' ' || data[i] > '~' ? '?' : data[i]);
	puts("\"");
}

static void read_options(struct reader *r)
{
	while (true) {
		_cleanup_free_ char *data = NULL;
		uint64_t option, size;

		/* "The next 2 bytes are a 16-bit word defining the current option. If the the value
		 * is zero then there are no more options." */
		option = read_number(r, 2);
		if (!option)
			return;
		/* "Otherwise, the next 4 bytes contain a 32-bit word containing the option size."
		 */
		size = read_number(r, 4);
		/* "If the reader does not know how to handle the option it can simply skip it." */
		data = read_data(r, size);
		print_option(option, data, size);
	}
}

struct region {
	uint64_t offset;
	uint64_t size;
};

/* "copied directly from the Ftrace ring buffer": its pages are in the order of time */
static void read_pages(struct reader *r, unsigned int cpu, const struct region *region)
{
	uint64_t last = 0;

	for (uint64_t at = region->offset; at < region->offset + region->size; at += r->page_size) {
		uint64_t timestamp;

		r->pos = at + r->timestamp_offset;
		timestamp = read_number(r, 8);
		if (timestamp < last)
			fault(r, at, "CPU %u: time goes backwards", cpu);
		last = timestamp;
	}
}

static void check_region(struct reader *r, unsigned int cpu, const struct region *regions,
			 uint64_t table_end)
{
	const struct region *region = &regions[cpu];

	printf("  cpu %u offset %" PRIu64 " size %" PRIu64 "\n", cpu, region->offset, region->size);
	if (!region->size)
		return;
	/* "placing the CPU data at a page aligned (target page) position in the file" */
	if (region->offset % r->page_size)
		fault(r, region->offset, "CPU %u: not page aligned", cpu);
	if (region->size % r->page_size)
		fault(r, region->offset, "CPU %u: %" PRIu64 " bytes are not whole pages", cpu,
		      region->size);
	/* "Padding is placed between the header and the CPU data" */
	if (region->offset < table_end)
		fault(r, region->offset, "CPU %u: data within the header", cpu);
	if (region->offset > r->size || region->size > r->size - region->offset) {
		fault(r, region->offset, "CPU %u: data beyond the end of the file", cpu);
		return;
	}
	for (unsigned int i = 0; i < cpu; i++) {
		if (region->offset < regions[i].offset + regions[i].size &&
		    regions[i].offset < region->offset + region->size)
			fault(r, region->offset, "CPU %u: data overlaps that of CPU %u", cpu, i);
	}
	read_pages(r, cpu, region);
}

static void read_flyrecord(struct reader *r, unsigned int cpus)
{
	_cleanup_free_ struct region *regions = calloc((size_t)cpus + 1, sizeof(*regions));
	uint64_t end;

	if (!regions)
		err(2, "calloc");
	/* "For the number of CPUs that were read earlier" */
	for (unsigned int cpu = 0; cpu < cpus; cpu++) {
		/* "a 64-bit word containing the offset into the file that holds the data" */
		regions[cpu].offset = read_number(r, 8);
		/* "a 64-bit word containing the size of the CPU data at that offset" */
		regions[cpu].size = read_number(r, 8);
	}
	end = r->pos;
	printf("flyrecord table %" PRIu64 "..%" PRIu64 "\n", end - 16 * (uint64_t)cpus, end);
	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		check_region(r, cpu, regions, end);
}

static void read_rest(struct reader *r)
{
	char word[11] = "";
	uint64_t at, cpus;

	/* "a 32-bit word defining the number of CPUs that were discovered" */
	cpus = read_number(r, 4);
	printf("cpus %" PRIu64 "\n", cpus);
	if (!cpus || cpus > 65536) {
		fault(r, r->pos - 4, "%" PRIu64 " CPUs", cpus);
		exit(1);
	}
	/* "The next 10 bytes are one of the following: "options  \0" "latency  \0"
	 * "flyrecord\0"" */
	at = r->pos;
	read_bytes(r, word, 10);
	if (memcmp(word, "options  ", 10) == 0) {
		puts("options");
		read_options(r);
		/* "The next 10 bytes after the options are one of the following" */
		at = r->pos;
		read_bytes(r, word, 10);
	}
	if (memcmp(word, "flyrecord", 10) == 0)
		read_flyrecord(r, (unsigned int)cpus);
	else if (memcmp(word, "latency  ", 10) == 0)
		/* "the rest of the file is simply ASCII text" */
		printf("latency text %" PRIu64 "\n", r->size - r->pos);
	else
		fault(r, at, "neither options, latency nor flyrecord");
}

static void open_file(struct reader *r)
{
	struct stat st;

	r->fd = open(r->path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0 || fstat(r->fd, &st) < 0)
		err(2, "Cannot open %s", r->path);
	r->size = (uint64_t)st.st_size;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"compare-tracefs", required_argument, NULL, 'c'},
						{"tracefs", required_argument, NULL, 't'},
						{"allow-partial-systems", no_argument, NULL, 'p'},
						{"without-prefix-symbols", no_argument, NULL, 'x'},
						{"help", no_argument, NULL, 'h'},
						{}};
	const char *tracefs = "/sys/kernel/tracing", *instance = NULL;
	char instance_dir[PATH_MAX];
	struct reader r = {};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'c':
			instance = optarg;
			break;
		case 't':
			tracefs = optarg;
			break;
		case 'p':
			r.partial = true;
			break;
		case 'x':
			r.without_prefix = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return 2;
		}
	}
	if (optind + 1 != argc)
		errx(2, "usage: %s", help);
	if (instance) {
		r.tracefs = tracefs;
		snprintf(instance_dir, sizeof(instance_dir), "%s/%s%s", tracefs,
			 strcmp(instance, "/") == 0 ? "" : "instances/", instance);
		r.instance = instance_dir;
	}
	r.path = argv[optind];
	open_file(&r);
	read_initial(&r);
	read_headers(&r);
	read_events(&r);
	read_kernel_texts(&r);
	read_processes(&r);
	read_rest(&r);
	printf("faults %u\n", r.faults);
	return r.faults ? 1 : 0;
}

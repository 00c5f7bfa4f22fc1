/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libtracecmd-open - open trace.dat files the way any program with libtracecmd does, read all
 * records CPU by CPU and print how many there are: the file as other people's code sees it.
 */
#include <err.h>
#include <inttypes.h>
#include <trace-cmd.h>

#include "basic/macro.h"

/* Return: 0, or 1 if time goes backwards */
static int read_cpu(struct tracecmd_input *in, const char *name, int cpu, uint64_t *total)
{
	uint64_t records = 0, missed = 0, first = 0, last = 0;
	struct tep_record *record;
	int status = 0;

	for (record = tracecmd_read_cpu_first(in, cpu); record;
	     record = tracecmd_read_data(in, cpu)) {
		if (!records++)
			first = record->ts;
		else if (record->ts < last)
			status = 1;
		last = record->ts;
		if (record->missed_events)
			missed++;
		tracecmd_free_record(record);
	}
	printf("%s%scpu=%d records=%" PRIu64 " gaps=%" PRIu64 " first=%" PRIu64 " last=%" PRIu64
	       "\n",
	       name, *name ? ": " : "", cpu, records, missed, first, last);
	if (status)
		warnx("cpu %d: time goes backwards", cpu);
	*total += records;
	return status;
}

static int read_buffer(struct tracecmd_input *in, const char *name, uint64_t *total)
{
	int cpus = tep_get_cpus(tracecmd_get_tep(in)), status = 0;

	for (int cpu = 0; cpu < cpus; cpu++)
		status |= read_cpu(in, name, cpu, total);
	return status;
}

static int read_file(const char *path)
{
	struct tracecmd_input *in = tracecmd_open(path, TRACECMD_FL_LOAD_NO_PLUGINS);
	uint64_t total = 0;
	int status;

	if (!in) {
		warnx("libtracecmd cannot open %s", path);
		return 1;
	}
	status = read_buffer(in, "", &total);
	for (int i = 0; i < tracecmd_buffer_instances(in); i++) {
		struct tracecmd_input *buffer = tracecmd_buffer_instance_handle(in, i);

		if (!buffer) {
			warnx("%s: libtracecmd cannot open buffer %d", path, i);
			status = 1;
			continue;
		}
		status |= read_buffer(buffer, tracecmd_buffer_instance_name(in, i), &total);
		tracecmd_close(buffer);
	}
	printf("total records=%" PRIu64 "\n", total);
	tracecmd_close(in);
	return status;
}

int main(int argc, char **argv)
{
	int status = 0;

	if (argc < 2)
		errx(2, "usage: libtracecmd-open FILE...");
	for (int i = 1; i < argc; i++)
		status |= read_file(argv[i]);
	return status;
}

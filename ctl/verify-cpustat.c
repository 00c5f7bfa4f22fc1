/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/io.h"
#include "ctl/verify.h"
#include "formats/trace-dat.h"

#define MAX_CPUSTAT MIB

/* The number behind a line's key: "\nKEY: N\n" */
static bool find_number(const char *text, const char *key, uint64_t *ret)
{
	size_t length = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, key, length) == 0 && sscanf(p + length, ": %" SCNu64, ret) == 1)
			return true;
	}
	return false;
}

static void compare(struct verify_report *report, uint64_t offset, const struct verify_cpu *cpu,
		    const char *text, const char *key, uint64_t found)
{
	uint64_t said;

	if (find_number(text, key, &said) && said != found)
		verify_report_fault(report, offset,
				    "%s%s%scpu %u: CPUSTAT says \"%s: %" PRIu64
				    "\", the data has %" PRIu64,
				    cpu->buffer[0] ? "buffer " : "", cpu->buffer,
				    cpu->buffer[0] ? " " : "", cpu->cpu, key, said, found);
}

/* Which ring buffer the texts behind this one are of, if it says so: "\nBuffer: NAME\n\n" */
static bool find_buffer(char *text, const char **ret)
{
	char *end;

	if (strncmp(text, TRACE_DAT_BUFFER_STATS, strlen(TRACE_DAT_BUFFER_STATS)) != 0)
		return false;
	*ret = text + strlen(TRACE_DAT_BUFFER_STATS);
	end = strchr(*ret, '\n');
	if (end)
		*end = '\0';
	return true;
}

static struct verify_cpu *find_cpu(const struct verify_report *report, const char *buffer,
				   uint64_t cpu)
{
	for (size_t i = 0; i < report->n_cpus; i++)
		if (report->cpus[i].cpu == cpu && strcmp(report->cpus[i].buffer, buffer) == 0)
			return &report->cpus[i];
	return NULL;
}

/*
 * Has the region grown since the file was opened? A live file may be finished while it is read: its
 * last texts count more than what was there to be read then.
 */
static bool has_grown(const struct trace_dat *dat, const struct verify_report *report,
		      const struct verify_cpu *cpu)
{
	size_t i = (size_t)(cpu - report->cpus);
	const struct trace_dat_region *region =
		&dat->buffers[i / dat->n_cpus].regions[i % dat->n_cpus];
	uint8_t size[8];

	return io_pread_all(dat->fd, size, sizeof(size), region->entry + 8) >= 0 &&
	       trace_dat_u64(dat, size) > region->size;
}

/*
 * When a disk is full at the end of a recording, the data says nothing of what would have followed:
 * events left in the ring buffer, those overwritten before, and those read but not written.
 */
static void count_at_end(struct verify_cpu *cpu, const char *text)
{
	uint64_t left, overrun, read;

	if (!find_number(text, "flyrec left in the ring buffer events", &left))
		return;
	cpu->lost_at_end = left;
	if (find_number(text, "overrun", &overrun) && overrun > cpu->lost_events)
		cpu->lost_at_end += overrun - cpu->lost_events;
	if (find_number(text, "read events", &read) && read > cpu->events)
		cpu->lost_at_end += read - cpu->events;
}

static void check_text(const struct trace_dat *dat, struct verify_report *report, uint64_t offset,
		       const char *buffer, const char *text)
{
	struct verify_cpu *cpu;
	uint64_t number;

	if (!strstr(text, "\nflyrec final: yes\n"))
		return;
	if (!find_number(text, "CPU", &number)) {
		verify_report_fault(report, offset, "CPUSTAT does not say of which CPU");
		return;
	}
	cpu = find_cpu(report, buffer, number);
	if (!cpu) {
		verify_report_fault(report, offset,
				    "CPUSTAT of cpu %" PRIu64 ", which the file lacks", number);
		return;
	}
	if (has_grown(dat, report, cpu))
		return;
	compare(report, offset, cpu, text, "flyrec subbufs", cpu->subbufs);
	compare(report, offset, cpu, text, "flyrec bytes", cpu->subbufs * dat->page_size);
	compare(report, offset, cpu, text, "flyrec lost events", cpu->lost_events);
	count_at_end(cpu, text);
}

int verify_cpustat(const struct trace_dat *dat, struct verify_report *report)
{
	_cleanup_free_ char *current = strdup(""); /* the ring buffer that texts are of */

	for (size_t i = 0; i < dat->n_options && current; i++) {
		const struct trace_dat_option_place *option = &dat->options[i];
		_cleanup_free_ char *text = NULL;
		const char *buffer;
		struct fault why;
		int r;

		if (option->id != TRACE_DAT_OPTION_CPUSTAT)
			continue;
		r = trace_dat_load(dat, &option->data, MAX_CPUSTAT, &text, &why);
		if (r == -ENOMEM)
			return r;
		if (r < 0) {
			verify_report_line(report, why.text);
		} else if (find_buffer(text, &buffer)) {
			free(current);
			current = strdup(buffer);
		} else {
			check_text(dat, report, option->data.offset, current, text);
		}
	}
	return current ? 0 : -ENOMEM;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/strv.h"
#include "ctl/output.h"
#include "ctl/verify.h"

int verify_report_init(struct verify_report *report, const char *path)
{
	*report = (struct verify_report){.path = strdup(path), .shown = escape_text(path, false)};
	if (report->path && report->shown)
		return 0;
	verify_report_done(report);
	return -ENOMEM;
}

void verify_report_done(struct verify_report *report)
{
	for (size_t i = 0; i < report->n_cpus; i++)
		free(report->cpus[i].buffer);
	for (size_t i = 0; i < report->n_errors; i++)
		free(report->errors[i]);
	for (size_t i = 0; i < report->n_programs; i++) {
		free(report->programs[i].build_id);
		free(report->programs[i].path);
	}
	free(report->programs);
	verify_own_done(report);
	free(report->cpus);
	free(report->errors);
	free(report->path);
	free(report->shown);
	*report = (struct verify_report){};
}

void verify_report_line(struct verify_report *report, const char *line)
{
	char *copy;

	if (report->n_errors >= VERIFY_MAX_ERRORS) {
		report->more_errors++;
		return;
	}
	if (!report->errors)
		report->errors = calloc(VERIFY_MAX_ERRORS, sizeof(*report->errors));
	/* names out of a file may hold anything; a terminal must not see it */
	copy = report->errors ? escape_text(line, false) : NULL;
	if (!copy) {
		report->no_memory = true;
		return;
	}
	report->errors[report->n_errors++] = copy;
}

void verify_report_found(void *report, const char *line)
{
	if (line)
		verify_report_line(report, line);
	else
		((struct verify_report *)report)->no_memory = true;
}

void verify_report_fault(struct verify_report *report, uint64_t offset, const char *format, ...)
{
	_cleanup_free_ char *what = NULL, *line = NULL;
	va_list ap;

	if (report->n_errors >= VERIFY_MAX_ERRORS) {
		report->more_errors++;
		return;
	}
	va_start(ap, format);
	if (vasprintf(&what, format, ap) < 0)
		what = NULL;
	va_end(ap);
	if (what)
		line = report->dat
			       ? strf("%s: offset %s: %s", report->path,
				      trace_dat_at(report->dat, offset).text, what)
			       : strf("%s: offset 0x%" PRIx64 ": %s", report->path, offset, what);
	verify_report_found(report, line);
}

bool verify_report_ok(const struct verify_report *report)
{
	return report->n_errors == 0 && !report->no_memory;
}

static void print_file(const struct verify_report *report, FILE *out)
{
	uint64_t subbufs = 0, events = 0, lost = 0, unknown = 0;
	uint64_t faults = report->n_errors + report->more_errors;

	for (size_t i = 0; i < report->n_cpus; i++) {
		subbufs += report->cpus[i].subbufs;
		events += report->cpus[i].events;
		lost += report->cpus[i].lost_events + report->cpus[i].lost_at_end;
		unknown += report->cpus[i].lost_unknown;
	}
	(void)fprintf(out, "%s: ", report->shown);
	if (verify_report_ok(report))
		(void)fprintf(out, "ok");
	else
		(void)fprintf(out, "%" PRIu64 " fault%s", faults, faults == 1 ? "" : "s");
	if (report->version)
		(void)fprintf(out, ", version %u", report->version);
	if (report->n_cpus)
		(void)fprintf(out,
			      ", %" PRIu64 " sub-buffers, %" PRIu64 " events, %" PRIu64 " lost",
			      subbufs, events, lost);
	if (unknown)
		(void)fprintf(out, " and %" PRIu64 " times an unknown number", unknown);
	(void)fprintf(out, "\n");
}

static void print_cpu(const struct verify_report *report, const struct verify_cpu *cpu, FILE *out)
{
	(void)fprintf(out, "%s: ", report->shown);
	if (cpu->buffer[0])
		(void)fprintf(out, "buffer %s ", cpu->buffer);
	(void)fprintf(out, "cpu %u: %" PRIu64 " sub-buffers, %" PRIu64 " events, %" PRIu64 " lost",
		      cpu->cpu, cpu->subbufs, cpu->events, cpu->lost_events + cpu->lost_at_end);
	if (cpu->lost_at_end)
		(void)fprintf(out, ", %" PRIu64 " of them at the end", cpu->lost_at_end);
	if (cpu->lost_unknown)
		(void)fprintf(out, " and %" PRIu64 " times an unknown number", cpu->lost_unknown);
	if (cpu->unwritten)
		(void)fprintf(out, ", %" PRIu64 " unwritten sub-buffers at the end",
			      cpu->unwritten);
	(void)fprintf(out, "\n");
}

static void print_program(const struct verify_report *report, const struct verify_program *program,
			  FILE *out)
{
	_cleanup_free_ char *build_id = escape_text(program->build_id, false);
	_cleanup_free_ char *path = escape_text(program->path, false);

	if (build_id && path)
		(void)fprintf(out, "%s: program %s, build ID %s\n", report->shown, path, build_id);
}

void verify_report_print(const struct verify_report *report, FILE *out)
{
	print_file(report, out);
	for (size_t i = 0; i < report->n_cpus; i++)
		print_cpu(report, &report->cpus[i], out);
	for (size_t i = 0; i < report->n_programs; i++)
		print_program(report, &report->programs[i], out);
	for (size_t i = 0; i < report->n_errors; i++)
		(void)fprintf(out, "%s\n", report->errors[i]);
	if (report->more_errors)
		(void)fprintf(out, "%s: and %" PRIu64 " more faults\n", report->shown,
			      report->more_errors);
}

static void add_count(struct json_object *object, const char *key, uint64_t value)
{
	if (value)
		json_add(object, key, json_number(value));
}

static struct json_object *cpu_json(const struct verify_cpu *cpu)
{
	struct json_object *o = json_object_new_object();

	if (cpu->buffer[0])
		json_add(o, "buffer", json_text(cpu->buffer));
	json_add(o, "cpu", json_number(cpu->cpu));
	json_add(o, "subbufs", json_number(cpu->subbufs));
	json_add(o, "events", json_number(cpu->events));
	json_add(o, "lost_events", json_number(cpu->lost_events));
	add_count(o, "lost_at_end", cpu->lost_at_end);
	add_count(o, "lost_unknown", cpu->lost_unknown);
	add_count(o, "unwritten", cpu->unwritten);
	return o;
}

static struct json_object *programs_json(const struct verify_report *report)
{
	struct json_object *programs = json_object_new_array();

	for (size_t i = 0; i < report->n_programs; i++) {
		struct json_object *o = json_object_new_object();

		json_add(o, "path", json_text(report->programs[i].path));
		json_add(o, "build_id", json_text(report->programs[i].build_id));
		json_append(programs, o);
	}
	return programs;
}

struct json_object *verify_report_json(const struct verify_report *report)
{
	struct json_object *o = json_object_new_object();
	struct json_object *errors = json_object_new_array(), *cpus = json_object_new_array();
	char more[64];

	for (size_t i = 0; i < report->n_errors; i++)
		json_append(errors, json_text(report->errors[i]));
	(void)snprintf(more, sizeof(more), "and %" PRIu64 " more faults", report->more_errors);
	if (report->more_errors)
		json_append(errors, json_text(more));
	for (size_t i = 0; i < report->n_cpus; i++)
		json_append(cpus, cpu_json(&report->cpus[i]));
	json_add(o, "path", json_text(report->path));
	json_add(o, "ok", json_object_new_boolean(verify_report_ok(report)));
	json_add(o, "version", json_number(report->version));
	json_add(o, "errors", errors);
	json_add(o, "cpus", cpus);
	if (report->n_programs > 0)
		json_add(o, "programs", programs_json(report));
	verify_own_json(report, o);
	return o;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Verifying one trace.dat, ours or trace-cmd's: frame, formats, regions, every sub-buffer and every
 * event, and our own loss accounting; what was found, and how it is shown. Memory is bounded
 * whatever the file says; holes are not read; the CPU tables are taken once, so a file that is
 * being written is fine. Owner: the verb; main thread.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "basic/macro.h"
#include "formats/own-clocks.h"
#include "formats/trace-dat-read.h"

#define VERIFY_MAX_ERRORS 1000U /* kept of one file; more are only counted */

struct verify_cpu {
	char *buffer; /* "" the file's own; else the name of a BUFFER option */
	unsigned cpu;
	uint64_t subbufs;   /* those that hold something */
	uint64_t unwritten; /* all zero, at the end of the region: readers see nothing there */
	uint64_t events;
	uint64_t lost_events; /* sum of the numbers the kernel stored */
	uint64_t
		lost_at_end; /* events that follow the last ones here, as flyrec has counted them */
	uint64_t lost_unknown; /* times the kernel said "some" without a number */
};

/* What a snapshot was taken for */
struct verify_cause {
	char *reason, *text;
	uint64_t usec;
};

/* Which build of a program its probes were in */
struct verify_program {
	char *build_id, *path; /* as in the file: to be escaped */
};

struct verify_report {
	char *path, *shown;	     /* shown: escaped */
	const struct trace_dat *dat; /* while it is checked: offsets are of it; or NULL */
	unsigned version;	     /* 0: not even that could be read */
	struct verify_cpu *cpus;
	size_t n_cpus;
	struct own_clocks *clocks; /* out of flyrec's own section; NULL: it has none */
	uint64_t n_tasks;	   /* likewise: how often it says who a task is */
	uint64_t n_sheds;	   /* likewise: how often an event was not recorded for a while */
	struct verify_cause *causes;
	size_t n_causes;
	struct verify_program *programs; /* that were probed */
	size_t n_programs;
	char **findings;    /* what analysis said of a snapshot, each a sentence */
	uint64_t n_journal; /* lines of the system journal */
	char **errors;	    /* one line each: "PATH: offset 0x…: what" */
	size_t n_errors;
	uint64_t more_errors; /* beyond VERIFY_MAX_ERRORS */
	bool no_memory;	      /* an error could not be kept */
};

/**
 * verify_report_init() - nothing found yet
 */
int verify_report_init(struct verify_report *report, const char *path);
void verify_report_done(struct verify_report *report);

/**
 * verify_report_line() - a whole fault line, e.g. a struct fault's text
 */
void verify_report_line(struct verify_report *report, const char *line);

/**
 * verify_report_found() - the same for those who know of no report
 * @line: NULL: there was no memory for it
 */
void verify_report_found(void *report, const char *line);

/**
 * verify_report_fault() - "PATH: offset 0x…: " and the rest from @format
 */
void verify_report_fault(struct verify_report *report, uint64_t offset, const char *format, ...)
	_printf_(3, 4);

bool verify_report_ok(const struct verify_report *report);

/**
 * verify_report_print() - for people: a line for the file, one a CPU, one a fault
 */
void verify_report_print(const struct verify_report *report, FILE *out);

/**
 * verify_report_json() - {"path","ok","version","errors":[…],"cpus":[{"cpu","subbufs","events",
 * "lost_events"}]}; a CPU also has "buffer", "lost_at_end", "lost_unknown", "unwritten" when there
 * is any. A file with readings of clocks has "clock", "boot_id" and "clocks", one that says who
 * its tasks are "tasks", one that says what it was taken for "causes", one that was analysed
 * "findings", one with lines of the journal "journal", one with probes of programs "programs".
 * Return: a new object, NULL without memory.
 */
struct json_object *verify_report_json(const struct verify_report *report);

/**
 * verify_own() - check flyrec's own section, and keep what it says
 * Return: 0 (also with faults, or without one) or -ENOMEM.
 */
int verify_own(const struct trace_dat *dat, struct verify_report *report);

/* The same as JSON, into a file's object */
void verify_own_json(const struct verify_report *report, struct json_object *file);
void verify_own_done(struct verify_report *report);

/**
 * verify_dat() - check all of an opened file
 * @report: gets the CPUs and the faults
 * Return: 0 (also with faults) or -ENOMEM.
 */
int verify_dat(const struct trace_dat *dat, struct verify_report *report);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the formats of others have from who converts, ctl/: options, an input that is open, an
 * output. A folder here for each format has its facts and both ways. Main thread.
 */
#pragma once

#include <signal.h>

#include "basic/out-file.h"
#include "writer/event-file.h"

struct decoder;
struct event_filter;
struct trace_dat;

enum convert_status {
	CONVERT_DONE = 0,   /* also if the reader of a pipe has enough */
	CONVERT_FAILED = 1, /* has been logged */
	CONVERT_USAGE = 2,  /* likewise: an option that makes no sense */
};

/* Options that one format or other takes, as they were given; NULL: not */
struct convert_options {
	const char *clk;	/* --clk= */
	const char *endian;	/* --endian= */
	const char *max_frames; /* --max-frames= */
	const char *sysroot;	/* --sysroot= */
	const char *table;	/* --table= */
	const char *host_name;	/* --host-name= */
	const char *session;	/* --session= */
	char **memory;		/* each --memory= */
	bool strict, tarmac;
};

/*
 * What one host has in a merged file (formats/own-hosts.h), sometimes in several parts. A format
 * that tells hosts apart is run once for each part, the first host's first, into one output.
 */
struct export_part {
	const char *host, *session;
	unsigned index;	 /* of the host */
	uint32_t n_cpus; /* that a host has at most */
	uint64_t error;	 /* nanoseconds that its times may be wrong by; OWN_HOST_ERROR_UNKNOWN */
	void *kept; /* what the format keeps for the next part; NULL at first, freed with free() */
};

/* One export. Borrowed. */
struct export
{
	struct export_part *part; /* NULL: the whole file */
	const struct convert_options *options;
	const char *path; /* --output=, NULL: standard output */
	const struct trace_dat *dat;
	uint64_t frame; /* of dat in its file, as in struct source */
	const struct decoder *decoder;
	const struct event_filter *filter; /* prepared for dat */
	const struct out_file *output;	   /* open, its owner publishes it; NULL: not yet */
	bool *ret_complete;		   /* with output: all is written */
};

/**
 * export_output_open() - --output=, or standard output; logs what is wrong
 */
int export_output_open(const struct export *export, struct out_file *ret);

/**
 * export_output_close() - @r: how the export ended: 0, OUT_FILE_E_PIPE (they have seen enough), or
 * negative errno: then no file is left. Logs only what goes wrong here. Return: CONVERT_DONE or
 * CONVERT_FAILED.
 */
enum convert_status export_output_close(const struct export *export, struct out_file *output,
					int r);

struct event_batches;

/**
 * export_events() - event_batches_run() over the events of a file that are wanted, with who their
 * tasks are
 * @batches: but for its decoder and what its stream takes from @export
 * Return: 0 or negative errno with @why.
 */
int export_events(const struct export *export, struct event_batches *batches, struct fault *why);

struct own_finding;

/**
 * export_findings() - what analysis said of a file, within the times that are wanted; where nobody
 * has analysed it yet, and all of it is exported, what it says now
 * @take: hears of each, the worst first; 0 or negative errno
 * @on_fault: a line about what is damaged and left out, each counted in @n_faults
 * Return: 0 or negative errno with @why.
 */
int export_findings(const struct export *export,
		    int (*take)(void *userdata, const struct own_finding *finding), void *userdata,
		    void (*on_fault)(const char *text), size_t *n_faults, struct fault *why);

/* One import */
struct import {
	const struct convert_options *options;
	const char *name;		   /* of the input, for messages */
	int fd;				   /* read from here: a file, or a pipe that cannot seek */
	struct event_file *file;	   /* import_begin() makes it; freed for you */
	struct out_file out;		   /* its file, if it is a new one, is event_file's */
	const volatile sig_atomic_t *stop; /* or NULL; a signal has asked for it: reads end */
};

/**
 * import_begin() - begin the trace.dat
 * @params: all but path and mode; what it points to must outlive the import
 */
int import_begin(struct import *import, const struct event_file_params *params, struct fault *why);

/**
 * import_finish() - complete the trace.dat and put it where it was asked for
 */
int import_finish(struct import *import, struct event_file_totals *ret, struct fault *why);

/**
 * import_read() - more of the input
 * Return: number of bytes, 0 at its end, or negative errno with @why; -EINTR: asked to stop.
 */
ssize_t import_read(const struct import *import, void *buffer, size_t size, struct fault *why);

/**
 * import_stopped() - for who reads import->fd itself, now and then
 * Return: 0, or -EINTR with @why: asked to stop.
 */
int import_stopped(const struct import *import, struct fault *why);

/* --- the formats. One that configure has left out fails with a word about that. */

/**
 * export_gdb_tfile() - events as frames of a gdb trace file, and a command file beside it
 * Options: --max-frames=. The file of @export may not be open yet.
 */
enum convert_status export_gdb_tfile(const struct export *export);

/**
 * import_gdb_tfile() - the frames of a trace file of gdb as events, see gdb-record.h
 * Options: --endian=. The file is read twice: formats come before events, and which there are only
 * all frames tell.
 */
int import_gdb_tfile(struct import *import, struct fault *why);

/**
 * export_qemu4v() - the lines that import_qemu4v() made events of, in the order of the lines
 * Options: --tarmac. mmiotrace_rw events of a kernel become memory accesses. Memory is bounded by
 * the number of CPUs.
 */
enum convert_status export_qemu4v(const struct export *export);

/**
 * export_perfetto() - a trace for ui.perfetto.dev, see convert/perfetto/export-perfetto.c
 */
enum convert_status export_perfetto(const struct export *export);

/**
 * export_clickhouse() - rows of a table for ClickHouse, see convert/clickhouse/export-clickhouse.c
 * Options: --table=, --host-name=, --session=
 */
enum convert_status export_clickhouse(const struct export *export);

/**
 * import_qemu4v() - text traces of QEMU4V and of the Tarmac family, see qemu4v-event.h
 * Options: --clk=, --strict. Return: 0 or negative errno with file, line and reason in @why. What
 * was malformed, and times that ran backwards, are logged.
 */
int import_qemu4v(struct import *import, struct fault *why);

/* A trace.dat to be in an Arm snapshot: opened when the sinks have been read, which have less of
 * the past */
struct arm_dat {
	int (*open)(void *userdata); /* an fd, which the caller closes; or negative errno, logged */
	void *userdata;
	const char *path; /* for messages */
};

/**
 * arm_save() - an Arm snapshot of this machine's CoreSight trace, or of a tree copied from one
 * @dir: made by this, whole or not at all; logs what is wrong or left out
 * @dat: or NULL
 * Options: --sysroot=, --memory=
 */
enum convert_status arm_save(const struct convert_options *options, const char *dir,
			     const struct arm_dat *dat);

/**
 * export_arm() - the same with a file, or NULL
 */
enum convert_status export_arm(const struct convert_options *options, const char *dir,
			       const char *file);

/**
 * verify_arm() - report all faults of the snapshot in @dir_fd, as "PATH/FILE:LINE: what"
 * @on_fault: @line is NULL where there was no memory for one
 * @ret_version: 1 for "1.0", 0: unknown
 * Its text files are not looked for outside the directory, whatever their names say.
 * Return: 0, also with faults, or -ENOMEM.
 */
int verify_arm(int dir_fd, const char *path, void (*on_fault)(void *userdata, const char *line),
	       void *userdata, unsigned *ret_version);

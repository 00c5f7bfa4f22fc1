/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CoreSight hardware trace of this machine, or of a tree that was copied from one, as an Arm
 * snapshot (formats/arm-snapshot.h). Read are, below a root directory that need not be trusted:
 *
 *	/sys/bus/coresight/devices/etmN/mgmt/, trcidr/, cpu     registers, which core's
 *	…/connections/out:*                                     the way to the sink
 *	…/tmc_etrN/enable_sink, /dev/tmc_etrN                   the sink, and what is in it
 *	/sys/devices/system/cpu/cpuN/regs/…/midr_el1, /proc/cpuinfo    the core's type
 *	/proc/kallsyms, /proc/kcore                             the kernel's text
 *
 * Reading a sink stops it for that time, and takes what is in it. Any thread; reads devices, so it
 * may take a while.
 */
#pragma once

#include "basic/fault.h"
#include "formats/arm-snapshot.h"

/* Memory of the caller's that shall be in the snapshot, e.g. a program's text */
struct coresight_memory {
	uint64_t address;
	int fd;		  /* a regular file; all of it is copied */
	const char *name; /* for messages */
};

struct coresight_request {
	int root_fd;
	int dir_fd;	    /* empty; files are made here */
	const char *ftrace; /* what snapshot.ini shall say of the trace.dat; or NULL */
	const char *description;
	const struct coresight_memory *memory;
	size_t n_memory;
};

/**
 * coresight_collect() - registers, then trace, then memory, then the text files
 * @ret_notes: strv of what is not in it, and why; one line each; also set on failure
 * Files are synced, directories are not. On failure some may be left in dir_fd.
 * Return: 0; -ENODEV: this machine has no CoreSight; -ENODATA: no sink has any trace, and @why
 * names each with its reason; or negative errno with @why set.
 */
int coresight_collect(const struct coresight_request *request, char ***ret_notes,
		      struct fault *why);

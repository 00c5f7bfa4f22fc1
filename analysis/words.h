/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How what analysis finds is shown. Texts are malloc'ed unless it says otherwise, NULL without
 * memory. Any thread.
 */
#pragma once

#include "analysis/sources.h"

/* "12.35ms": four digits, unless there are more seconds */
char *analysis_nsec(uint64_t nsec);

/* Time of day, or as the file's times are shown where they have none */
char *analysis_at(const struct sources_facts *facts, uint64_t ts);

/* For JSON: microseconds since 1970, or of the file's clock; its own units where these are none */
uint64_t analysis_usec(const struct sources_facts *facts, uint64_t ts);

/* Who woke: a task's name, or what it was else; static, or of the task */
const char *analysis_waker(enum span_waker waker, const struct span_task *task);

/* "task", "idle", "irq", "softirq"; NULL: not known */
const char *analysis_waker_kind(enum span_waker waker);

/* "<idle>" for none, "<...>" without a name */
const char *analysis_task(const struct span_task *task);

/* Its name in the file, or that of the number where it is known whose numbers these are */
char *analysis_label(const struct sources_facts *facts, const struct span_label *label);

/* The number of the system call of this name; less than 0: there is none, or it is not known whose
 * numbers these are */
int analysis_call(const struct sources_facts *facts, const char *name);

/* MAJOR:MINOR of what is dev_t in the kernel */
char *analysis_device(uint64_t device);

/* "deadline", "rt 50", "nice 0", "-" */
char *analysis_prio(int32_t prio);

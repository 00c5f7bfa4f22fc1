/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the texts of tracefs, sysfs and procfs files say: pure functions, no files, so that they are
 * tested without root. No owner, any thread. Formats: Documentation/trace/ftrace.rst, events.rst
 * and the files of a running kernel (tests/fixtures/tracefs).
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"
#include "recorder/instance.h"

/**
 * kernel_text_header_page() - events/header_page: how large is a sub-buffer?
 * @ret_subbuf_size: bytes: where "data" begins plus its size
 * Return: 0, -EBADMSG when the field is missing or not sane.
 */
int kernel_text_header_page(const char *text, unsigned *ret_subbuf_size);

/**
 * kernel_text_stats() - per_cpu/cpuN/stats
 * Lines that this kernel lacks stay 0, as do the times of a clock that counts no time.
 * Return: 0, -EBADMSG when not even "entries" is there.
 */
int kernel_text_stats(const char *text, struct cpu_stats *ret);

/**
 * kernel_text_of_stats() - the way back, as trace-cmd's CPUSTAT has it: "CPU: N" first
 * Return: a malloc'ed text, NULL when there is no memory.
 */
char *kernel_text_of_stats(unsigned cpu, const struct cpu_stats *stats);

/**
 * kernel_text_possible_cpus() - /sys/devices/system/cpu/possible, "0-3" or "0,2-5"
 * @ret_n: highest CPU number plus one
 */
int kernel_text_possible_cpus(const char *text, unsigned *ret_n);

/**
 * kernel_text_cpu_list() - "0-3,8" as the kernel's cpumask text: hex words of 32 bits, commas
 * between
 * @list: NULL: all CPUs
 * Return: 0, -EINVAL for a malformed list, -ERANGE for a CPU that is not below @n_cpus, -ENOMEM.
 */
int kernel_text_cpu_list(const char *list, unsigned n_cpus, char **ret_mask);

/**
 * kernel_text_cpumask_equal() - do two cpumask texts mean the same? Leading zeros and commas don't
 * count.
 */
bool kernel_text_cpumask_equal(const char *a, const char *b);

/**
 * kernel_text_has_word() - is @word one of the words (separated by white space) in @text?
 */
bool kernel_text_has_word(const char *text, const char *word);

/**
 * kernel_text_selected() - the word in brackets: "local [mono] boot" says "mono"
 * Return: 0, -EBADMSG when nothing is in brackets, -ENOMEM.
 */
int kernel_text_selected(const char *text, char **ret);

/**
 * kernel_text_error_log_last() - the youngest entry of an error_log in one line
 * @ret: `Field not found in "xx == 3" at character 1`; NULL when the log is empty
 */
int kernel_text_error_log_last(const char *text, char **ret);

/**
 * kernel_text_set_event() - systems of the events that a set_event file lists
 * @list: grown with tracefs_list_add(), each system once; "ftrace" is left out, as are the requests
 *        for modules to come (":mod:")
 */
int kernel_text_set_event(const char *text, char ***list);

/**
 * kernel_text_trigger_systems() - systems of other events that an event trigger mentions
 * enable_event:SYSTEM:EVENT, enable_hist:…, their opposites, and onmatch(SYSTEM.EVENT).
 * @list: as above
 */
int kernel_text_trigger_systems(const char *trigger, char ***list);

/**
 * kernel_text_list_add() - add @n characters of @text to a libtracefs list unless they are in it
 */
int kernel_text_list_add(char ***list, const char *text, size_t n);

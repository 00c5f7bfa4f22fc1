/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the tests of recorder/instance on the real tracefs share. They use instances and groups of
 * their own name only, and compare the kernel's lists before and after each test.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "basic/io.h"
#include "recorder/instance.h"

#define TRACING "/sys/kernel/tracing"
#define GROUP	"flyrec_t_instance"

/* A test's instance; the name is this process's own */
const char *lib_name(void);

/* mono clock, 1 MiB a CPU, nothing traced */
struct trace_config lib_config(void);

/* setup and teardown of each test: nothing of ours may exist afterwards */
int lib_set_up(void **state);
int lib_tear_down(void **state);

/* a file of the test's instance */
void lib_write(const char *file, const char *text, bool truncate);
void lib_read(const char *file, char **ret);
void lib_assert_file(const char *file, const char *text);

/* item @i of a list of libtracefs, e.g. of the systems that instance_systems() gives */
void lib_assert_has(char **list, size_t i, const char *text);

/* instance_create() that must work; or must fail with -@error and all of the texts, and undo itself
 */
struct instance *lib_create(const struct trace_config *config);
void lib_assert_refused(const struct trace_config *config, int error, const char *text1,
			const char *text2);

void lib_destroy(struct instance *instance);

/* everything that is in the ring buffer of all CPUs, as text */
void lib_trace(char **ret);

/* skips the test program (77) without root and tracefs */
int lib_run(const struct CMUnitTest *tests, size_t n);

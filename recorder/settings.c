/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "recorder/kernel-text.h"
#include "recorder/last-boot.h"
#include "recorder/pids.h"
#include "recorder/ring-memory.h"
#include "recorder/settings.h"

struct target {
	const struct tracedir *dir;
	const struct trace_config *config;
	unsigned n_cpus;
	unsigned subbuf_size; /* bytes */
	struct fault *why;
};

/* --- sub-buffers and buffers */

static int apply_subbuf_size(const struct target *t, uint64_t bytes)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)((bytes + KIB - 1) / KIB));
	return tracedir_write(t->dir, "buffer_subbuf_size_kb", text, 0, t->why,
			      "cannot set the sub-buffer size to %s KiB", text);
}

static int check_subbuf_size(const struct target *t, struct changes *changes)
{
	_cleanup_free_ char *text = NULL;
	unsigned now;
	int r;

	r = tracedir_read(t->dir, "events/header_page", &text, t->why);
	if (r < 0)
		return r;
	if (kernel_text_header_page(text, &now) < 0)
		return tracedir_fault(t->dir, "events/header_page", -EBADMSG, t->why,
				      "cannot determine the sub-buffer size");
	if (now == t->subbuf_size)
		return 0;
	r = apply_subbuf_size(t, t->subbuf_size);
	if (r >= 0) {
		changes_add(changes, "the sub-buffer size had been set to %u bytes", now);
		changes->emptied = true;
	}
	return r;
}

static int apply_buffer_size(const struct target *t)
{
	uint64_t size = t->config->buffer_size;
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)MAX((size + KIB - 1) / KIB, 1U));
	return tracedir_write(t->dir, "buffer_size_kb", text, 0, t->why,
			      "cannot set the buffer size to %s KiB per CPU", text);
}

/*
 * The kernel makes the size a multiple of what a sub-buffer holds, and at least two of them. With
 * sizes that differ between CPUs the file reads "X".
 */
static int check_buffer_size(const struct target *t, struct changes *changes)
{
	_cleanup_free_ char *text = NULL;
	uint64_t now, want = t->config->buffer_size;
	int r;

	r = tracedir_read_line(t->dir, "buffer_size_kb", &text, t->why);
	if (r < 0)
		return r;
	now = strtoull(text, NULL, 10) * KIB;
	if (now + KIB > want && now <= want + 2 * (uint64_t)t->subbuf_size + KIB)
		return 0;
	r = apply_buffer_size(t);
	if (r >= 0)
		changes_add(changes, "the buffer size had been set to %s KiB", text);
	return r;
}

/* With fragmented memory there may be no pieces of this size, and enough single pages */
static bool try_subbuf_size(const struct target *t, uint64_t bytes)
{
	if (apply_subbuf_size(t, bytes) < 0)
		return false;
	if (apply_buffer_size(t) >= 0)
		return true;
	(void)apply_subbuf_size(t, (uint64_t)sysconf(_SC_PAGESIZE));
	return false;
}

static int apply_sizes(const struct target *t)
{
	const struct trace_config *config = t->config;
	int r;

	r = ring_memory_check(config->buffer_size, t->n_cpus, t->why);
	if (r < 0)
		return r;
	/* Before the buffer size, while there are few sub-buffers to make anew. */
	if (config->subbuf_size != SUBBUF_SIZE_AUTO)
		r = apply_subbuf_size(t, config->subbuf_size);
	else if (config->auto_subbuf_size && try_subbuf_size(t, config->auto_subbuf_size))
		return 0;
	return r < 0 ? r : apply_buffer_size(t);
}

/* --- clock, watermark, CPUs */

static int apply_clock(const struct target *t)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = tracedir_write(t->dir, "trace_clock", t->config->clock, 0, t->why,
			   "cannot set the clock to %s", t->config->clock);
	if (r == -EINVAL && tracedir_read_line(t->dir, "trace_clock", &text, NULL) >= 0)
		return fault_set(t->why, r,
				 "cannot set the clock to %s: %s/trace_clock: this kernel has %s",
				 t->config->clock, t->dir->path, text);
	return r;
}

static int check_clock(const struct target *t, struct changes *changes)
{
	_cleanup_free_ char *text = NULL, *now = NULL;
	int r;

	r = tracedir_read(t->dir, "trace_clock", &text, t->why);
	if (r < 0)
		return r;
	if (kernel_text_selected(text, &now) >= 0 && strcmp(now, t->config->clock) == 0)
		return 0;
	r = apply_clock(t);
	if (r >= 0) {
		changes_add(changes, "the clock had been set to %s", now ? now : "?");
		changes->emptied = true;
	}
	return r;
}

int settings_keep_clock(const struct tracedir *dir, const struct trace_config *config,
			struct fault *why)
{
	const struct target t = {.dir = dir, .config = config, .why = why};
	struct changes ignored = {0};

	return check_clock(&t, &ignored);
}

static int apply_buffer_percent(const struct target *t)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", t->config->buffer_percent);
	return tracedir_write(t->dir, "buffer_percent", text, 0, t->why,
			      "cannot set buffer_percent to %s", text);
}

static int check_buffer_percent(const struct target *t, struct changes *changes)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = tracedir_read_line(t->dir, "buffer_percent", &text, t->why);
	if (r < 0 || strtoul(text, NULL, 10) == t->config->buffer_percent)
		return r;
	r = apply_buffer_percent(t);
	if (r >= 0)
		changes_add(changes, "buffer_percent had been set to %s", text);
	return r;
}

static int wanted_cpumask(const struct target *t, char **ret)
{
	const char *cpus = t->config->cpus;
	int r;

	r = kernel_text_cpu_list(cpus, t->n_cpus, ret);
	if (r == -ERANGE)
		return fault_set(t->why, r, "CPUs=%s: this machine has CPUs 0 to %u", cpus,
				 t->n_cpus - 1);
	if (r < 0)
		return fault_errno(t->why, r, "CPUs=%s", cpus ? cpus : "");
	return 0;
}

static int write_cpumask(const struct target *t, const char *mask)
{
	return tracedir_write(t->dir, "tracing_cpumask", mask, 0, t->why,
			      "cannot trace CPUs %s (mask %s)",
			      t->config->cpus ? t->config->cpus : "0 and up", mask);
}

static int apply_cpumask(const struct target *t)
{
	_cleanup_free_ char *mask = NULL;
	int r;

	if (!t->config->cpus)
		return 0;
	r = wanted_cpumask(t, &mask);
	return r < 0 ? r : write_cpumask(t, mask);
}

static int check_cpumask(const struct target *t, struct changes *changes)
{
	_cleanup_free_ char *mask = NULL, *now = NULL;
	int r;

	r = wanted_cpumask(t, &mask);
	if (r >= 0)
		r = tracedir_read_line(t->dir, "tracing_cpumask", &now, t->why);
	if (r < 0 || kernel_text_cpumask_equal(mask, now))
		return r;
	r = write_cpumask(t, mask);
	if (r >= 0)
		changes_add(changes, "tracing_cpumask had been set to %s", now);
	return r;
}

/* --- options */

/* "overwrite" and "nooverwrite" are the same option */
static bool same_option(const char *a, const char *b)
{
	a += strncmp(a, "no", 2) == 0 ? 2 : 0;
	b += strncmp(b, "no", 2) == 0 ? 2 : 0;
	return strcmp(a, b) == 0;
}

static int apply_option(const struct target *t, const char *option)
{
	int r;

	r = tracedir_write(t->dir, "trace_options", option, 0, t->why, "cannot set option %s",
			   option);
	if (r == -EINVAL)
		return fault_set(
			t->why, r,
			"cannot set option %s: %s/trace_options: %s: this kernel has no such option%s%s",
			option, t->dir->path, strerror(-r),
			t->config->tracer ? ", nor has tracer " : "",
			t->config->tracer ? t->config->tracer : "");
	return r;
}

/* The i-th option word: event-fork first where pids are traced, so that Option= can take it back */
static const char *option_at(const struct trace_config *config, size_t i)
{
	if (pids_configured(config) && i-- == 0)
		return "event-fork";
	return config->options ? config->options[i] : NULL;
}

static bool overruled(const struct trace_config *config, size_t i)
{
	const char *option = option_at(config, i), *later;

	for (i++; (later = option_at(config, i)); i++)
		if (same_option(option, later))
			return true;
	return false;
}

static int apply_options(const struct target *t)
{
	const char *option;
	int r = 0;

	for (size_t i = 0; r >= 0 && (option = option_at(t->config, i)); i++)
		if (!overruled(t->config, i))
			r = apply_option(t, option);
	return r;
}

static int check_options(const struct target *t, struct changes *changes)
{
	_cleanup_free_ char *text = NULL;
	const char *option;
	int r;

	if (!option_at(t->config, 0))
		return 0;
	r = tracedir_read(t->dir, "trace_options", &text, t->why);
	for (size_t i = 0; r >= 0 && (option = option_at(t->config, i)); i++) {
		if (overruled(t->config, i) || kernel_text_has_word(text, option))
			continue;
		r = apply_option(t, option);
		if (r >= 0)
			changes_add(changes, "the option %s had been undone", option);
	}
	return r;
}

/* --- tracer */

static int write_functions(const struct target *t, const char *file, char **patterns)
{
	_cleanup_close_ int fd = -EBADF;

	/* One open for all: the kernel patches its functions at each close. */
	fd = openat(t->dir->fd, file, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return tracedir_fault(t->dir, file, -errno, t->why, "cannot filter functions");
	for (; *patterns; patterns++) {
		_cleanup_free_ char *line = NULL;
		int r;

		/* Without white space behind it a word is taken as unfinished. */
		line = strf("%s\n", *patterns);
		if (!line)
			return -ENOMEM;
		r = io_write_all(fd, line, strlen(line));
		if (r < 0)
			return tracedir_fault(t->dir, file, r, t->why,
					      "cannot filter functions by %s", *patterns);
	}
	if (close(TAKE_FD(fd)) < 0)
		return tracedir_fault(t->dir, file, -errno, t->why, "cannot filter functions");
	return 0;
}

static int write_tracer(const struct target *t, const char *tracer)
{
	return tracedir_write(t->dir, "current_tracer", tracer, 0, t->why,
			      "cannot set the tracer to %s", tracer);
}

static int apply_tracer(const struct target *t)
{
	const struct trace_config *config = t->config;
	_cleanup_free_ char *text = NULL;
	int r = 0;

	/* Filters first: a moment of all functions would fill the ring buffer. */
	if (config->function_filter)
		r = write_functions(t, "set_ftrace_filter", config->function_filter);
	if (r >= 0 && config->function_notrace)
		r = write_functions(t, "set_ftrace_notrace", config->function_notrace);
	if (r < 0 || !config->tracer)
		return r;
	r = tracedir_read_line(t->dir, "available_tracers", &text, t->why);
	if (r < 0)
		return r;
	if (!kernel_text_has_word(text, config->tracer))
		return fault_set(
			t->why, -EINVAL,
			"cannot set the tracer to %s: %s/available_tracers: this kernel has %s",
			config->tracer, t->dir->path, text);
	return write_tracer(t, config->tracer);
}

static int check_functions(const struct target *t, const char *file, char **patterns,
			   const char *empty, struct changes *changes)
{
	_cleanup_free_ char *text = NULL;
	int r;

	if (!patterns)
		return 0;
	r = tracedir_read(t->dir, file, &text, t->why);
	if (r < 0 || strncmp(text, empty, strlen(empty)) != 0)
		return r;
	r = write_functions(t, file, patterns);
	if (r >= 0)
		changes_add(changes, "%s had been cleared", file);
	return r;
}

static int check_tracer(const struct target *t, struct changes *changes)
{
	const char *want = t->config->tracer ? t->config->tracer : "nop";
	_cleanup_free_ char *now = NULL;
	int r;

	r = check_functions(t, "set_ftrace_filter", t->config->function_filter,
			    "#### all functions enabled ####", changes);
	if (r >= 0)
		r = check_functions(t, "set_ftrace_notrace", t->config->function_notrace,
				    "#### no functions disabled ####", changes);
	if (r >= 0)
		r = tracedir_read_line(t->dir, "current_tracer", &now, t->why);
	if (r < 0 || strcmp(now, want) == 0)
		return r;
	r = write_tracer(t, want);
	if (r >= 0)
		changes_add(changes, "the tracer had been set to %s", now);
	return r;
}

int settings_reset_tracer(const struct tracedir *dir, struct fault *why)
{
	const struct target t = {.dir = dir, .why = why};
	_cleanup_free_ char *now = NULL;
	int r;

	r = tracedir_read_line(dir, "current_tracer", &now, why);
	if (r < 0 || strcmp(now, "nop") == 0)
		return r;
	return write_tracer(&t, "nop");
}

/* --- all */

/* In this order */
static const struct {
	int (*apply)(const struct target *t);
	int (*check)(const struct target *t, struct changes *changes);
} settings[] = {
	{apply_clock, check_clock},	{apply_buffer_percent, check_buffer_percent},
	{apply_cpumask, check_cpumask}, {apply_tracer, check_tracer},
	{apply_options, check_options},
};

int settings_apply(const struct tracedir *dir, const struct trace_config *config, unsigned n_cpus,
		   struct fault *why)
{
	const struct target t = {dir, config, n_cpus, 0, why};
	int r = 0;

	/* What the kernel has laid out in reserved memory stays as it is */
	if (!last_boot_is_kept(dir))
		r = apply_sizes(&t);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(settings); i++)
		r = settings[i].apply(&t);
	return r;
}

int settings_check(const struct tracedir *dir, const struct trace_config *config, unsigned n_cpus,
		   unsigned subbuf_size, struct changes *changes, struct fault *why)
{
	const struct target t = {dir, config, n_cpus, subbuf_size, why};
	int r = 0;

	if (!last_boot_is_kept(dir)) {
		r = check_subbuf_size(&t, changes);
		if (r >= 0)
			r = check_buffer_size(&t, changes);
	}
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(settings); i++)
		r = settings[i].check(&t, changes);
	return r;
}

bool settings_flips_tracing(const struct trace_config *config)
{
	for (size_t i = 0; i < config->n_triggers; i++)
		if (strncmp(config->triggers[i].trigger, "traceo", 6) == 0)
			return true;
	for (char **f = config->function_filter; f && *f; f++)
		if (strstr(*f, ":traceo"))
			return true;
	return false;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "daemon/manager/boot-parameters.h"

#define SUBBUF_HEAD 16U /* bytes of a sub-buffer that are not counted in BufferSize= */
/*
 * Of each CPU: two sub-buffers for reader and rounding, a page for the kernel's description, in
 * which each sub-buffer takes an int
 */
#define PAGES_A_CPU 3U
#define PAGES_ONCE  4U /* what is common to all CPUs, and alignment */

/*
 * Where memory lies is decided anew at each boot, together with the kernel's own place: whole
 * pieces of 2 MiB are found again more often than pages
 */
#define ALIGNMENT "2M"

uint64_t boot_parameters_size(uint64_t buffer_size, unsigned n_cpus, unsigned page_size)
{
	uint64_t data = page_size - SUBBUF_HEAD, pages = (buffer_size + data - 1) / data;
	uint64_t described = (pages * sizeof(int32_t) + page_size - 1) / page_size;
	uint64_t all = (pages + described + PAGES_A_CPU) * n_cpus + PAGES_ONCE;

	return round_up(all * page_size, MIB);
}

static int add(FILE *out, const struct daemon_config *config, const struct session_config *session,
	       unsigned n, uint64_t size)
{
	if (n > BOOT_PARAMETERS_MAX)
		return -E2BIG;
	(void)fprintf(out,
		      "%sreserve_mem=%" PRIu64 "M:" ALIGNMENT
		      ":flyrec%u trace_instance=%s%s^traceoff@flyrec%u",
		      n > 1 ? " " : "", (uint64_t)(size / MIB), n, config->instance_prefix,
		      session->name, n);
	return 0;
}

static int check_names(const struct daemon_config *config, char *const *names, struct fault *why)
{
	STRV_FOREACH (name, names)
		if (!config_find(config, *name))
			return fault_set(why, -ENOENT, "no session %s is configured", *name);
	return 0;
}

int boot_parameters_format(const struct daemon_config *config, char *const *names, unsigned n_cpus,
			   unsigned page_size, char **ret, struct fault *why)
{
	bool all = !names || !*names;
	char *text = NULL;
	unsigned n = 0;
	size_t size;
	FILE *out;
	int r = check_names(config, names, why);

	if (r < 0)
		return r;
	out = open_memstream(&text, &size);
	if (!out)
		return fault_errno(why, -ENOMEM, "cannot compose");
	for (size_t i = 0; i < config->n_sessions && r >= 0; i++) {
		const struct session_config *s = config->sessions[i];

		if (all ? s->enabled && s->trace.persistent : strv_contains(names, s->name))
			r = add(out, config, s, ++n,
				boot_parameters_size(s->trace.buffer_size, n_cpus, page_size));
	}
	if (fclose(out) != 0 && r >= 0)
		r = -ENOMEM;
	if (r == -E2BIG)
		(void)fault_set(why, r, "the kernel keeps no more than %u pieces of memory",
				BOOT_PARAMETERS_MAX);
	else if (r >= 0 && n == 0)
		r = fault_set(why, -ENOENT, "no session has Persistent=yes");
	else if (r < 0)
		(void)fault_errno(why, r, "cannot compose");
	if (r < 0) {
		free(text);
		return r;
	}
	*ret = text;
	return 0;
}

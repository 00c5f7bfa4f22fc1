/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/utsname.h>

#include "basic/parse.h"
#include "basic/strv.h"
#include "config/probe-args.h"
#include "formats/gdb-registers.h"

#define DIGITS	     "0123456789"
#define ARRAY_MAX    64U /* MAX_ARRAY_LEN of kernel/trace/trace_probe.h */
#define MAX_REGISTER 40U

struct expansion {
	FILE *out;
	enum gdb_arch arch;
	const char *machine;
	const struct gdb_general *recorded[MAX_REGISTER];
	size_t n_recorded;
	uint64_t memory; /* bytes so far */
	struct fault *why;
};

static void record_register(struct expansion *x, const struct gdb_general *reg)
{
	for (size_t i = 0; i < x->n_recorded; i++)
		if (x->recorded[i] == reg)
			return;
	if (x->n_recorded < MAX_REGISTER)
		x->recorded[x->n_recorded++] = reg;
	(void)fprintf(x->out, " %s=%%%s:x64", reg->kernel, reg->kernel);
}

static int expand_registers(struct expansion *x, const char *value)
{
	size_t n;
	const struct gdb_general *general = gdb_general_registers(x->arch, &n);

	if (strcmp(value, "all") != 0)
		return fault_set(x->why, -EINVAL, "\"regs=%s\": only regs=all is known", value);
	for (size_t i = 0; i < n; i++)
		if (general[i].kernel)
			record_register(x, &general[i]);
	return 0;
}

static int expand_memory(struct expansion *x, const struct gdb_general *reg, int64_t offset,
			 uint64_t size)
{
	x->memory += size;
	if (size == 0 || x->memory > PROBE_ARGS_MEMORY_MAX)
		return fault_set(x->why, -EINVAL,
				 "stack= and mem= can be 1 to %u bytes together, the kernel takes "
				 "no more",
				 PROBE_ARGS_MEMORY_MAX);
	record_register(x, reg);
	while (size > 0) {
		const uint64_t element = size >= 8 ? 8 : 1, n = MIN(size / element, ARRAY_MAX);

		(void)fprintf(x->out,
			      " mem_%s_%s%" PRId64 "=%+" PRId64 "(%%%s):x%" PRIu64 "[%" PRIu64 "]",
			      reg->kernel, offset < 0 ? "m" : "", offset < 0 ? -offset : offset,
			      offset, reg->kernel, 8 * element, n);
		offset += (int64_t)(n * element);
		size -= n * element;
	}
	return 0;
}

static int expand_stack(struct expansion *x, const char *value)
{
	uint64_t size;

	if (parse_size(value, &size) < 0)
		return fault_set(x->why, -EINVAL, "\"stack=%s\": not a number of bytes", value);
	return expand_memory(x, gdb_general_find(x->arch, "sp", 2), 0, size);
}

/* "%REG:SIZE", "%REG+OFFSET:SIZE", "%REG-OFFSET:SIZE" */
static int expand_mem(struct expansion *x, const char *value)
{
	const size_t n = strcspn(value + 1, "+-:");
	const struct gdb_general *reg = gdb_general_find(x->arch, value + 1, n);
	const char *p = value + 1 + n;
	int64_t offset = 0;
	uint64_t size;
	char *end;

	if (!reg)
		return fault_set(x->why, -EINVAL, "\"mem=%s\": %%%.*s is no register", value,
				 (int)n, value + 1);
	if (*p != ':') {
		offset = strtoll(p + 1, &end, 0);
		if (end == p + 1 || *end != ':' || offset < 0 || offset > INT32_MAX)
			return fault_set(x->why, -EINVAL, "\"mem=%s\": not an offset behind %%%s",
					 value, reg->kernel);
		offset = *p == '-' ? -offset : offset;
		p = end;
	}
	if (parse_size(p + 1, &size) < 0)
		return fault_set(x->why, -EINVAL, "\"mem=%s\": not a number of bytes", value);
	return expand_memory(x, reg, offset, size);
}

/* A shorthand, told from an argument of the kernel's by what no argument can be: 1, 0 none */
static int expand_word(struct expansion *x, const char *word)
{
	const char *value = strchr(word, '=');
	const char *size = strrchr(word, ':');
	int (*expand)(struct expansion * x, const char *value) = NULL;
	int r;

	if (!value)
		return 0;
	value++;
	if (strncmp(word, "regs=", 5) == 0 && !strchr("%$@+-\\" DIGITS, *value))
		expand = expand_registers;
	else if (strncmp(word, "stack=", 6) == 0 && *value && strchr(DIGITS, *value))
		expand = expand_stack;
	else if (strncmp(word, "mem=%", 5) == 0 && size && size[1] && strchr(DIGITS, size[1]))
		expand = expand_mem;
	if (!expand)
		return 0;
	if (x->arch != GDB_X86_64 && x->arch != GDB_AARCH64)
		return fault_set(x->why, -EINVAL,
				 "\"%s\": the registers of this machine (%s) are not known", word,
				 x->machine);
	r = expand(x, value);
	return r < 0 ? r : 1;
}

/* Names that occur twice, which the kernel would refuse */
static int check_names(const char *text, struct fault *why)
{
	_cleanup_free_ char *copy = strdup(text);
	_cleanup_free_ char **words = NULL;
	char *save = NULL;
	size_t n = 0;

	words = calloc(strlen(text) / 2 + 1, sizeof(*words));
	if (!copy || !words)
		return -ENOMEM;
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		char *equals = strchr(w, '=');

		if (!equals)
			continue;
		*equals = '\0';
		for (size_t i = 0; i < n; i++)
			if (strcmp(words[i], w) == 0)
				return fault_set(why, -EINVAL, "there are two arguments %s=", w);
		words[n++] = w;
	}
	return 0;
}

static int expand_words(struct expansion *x, char *copy)
{
	char *save = NULL;
	size_t i = 0;

	for (char *w = strtok_r(copy, " \t", &save); w; w = strtok_r(NULL, " \t", &save), i++) {
		int r = i < 2 ? 0 : expand_word(x, w);

		if (r < 0)
			return r;
		if (r == 0)
			(void)fprintf(x->out, "%s%s", i ? " " : "", w);
	}
	return 0;
}

int probe_args_expand(const char *text, const char *machine, char **ret, struct fault *why)
{
	_cleanup_free_ char *copy = strdup(text), *result = NULL;
	struct expansion x = {.why = why};
	struct utsname name;
	size_t size;
	int r;

	if (!machine && uname(&name) < 0)
		return -errno;
	x.machine = machine ? machine : name.machine;
	x.arch = gdb_arch_of_machine(x.machine);
	x.out = open_memstream(&result, &size);
	if (!copy || !x.out) {
		if (x.out)
			(void)fclose(x.out);
		return -ENOMEM;
	}
	r = expand_words(&x, copy);
	if (fclose(x.out) != 0)
		r = -ENOMEM;
	if (r >= 0)
		r = check_names(result, why);
	if (r >= 0)
		*ret = TAKE_PTR(result);
	return r;
}

int probe_args_name(const char *text, char **ret)
{
	size_t place = strcspn(text, " ");
	const char *name, *provider;
	char *result;

	if (*text != '/') {
		result = strdup(text);
		*ret = result ? result : *ret;
		return result ? 0 : -ENOMEM;
	}
	name = memrchr(text, ':', place);
	provider = name ? memrchr(text, ':', (size_t)(name - text)) : NULL;
	if (!provider)
		return -EINVAL;
	result = strf("p:%.*s %s", (int)(text + place - provider - 1), provider + 1, text);
	if (!result)
		return -ENOMEM;
	for (char *p = result + 2; *p != ' '; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	*ret = result;
	return 0;
}

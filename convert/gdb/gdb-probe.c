/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "convert/gdb/gdb-probe.h"
#include "formats/trace-dat.h"

/* of fields that hold memory, as config/probe-args.c names them: mem_sp_16, mem_di_m8 */
#define MEMORY_PREFIX "mem_"

void gdb_probe_done(struct gdb_probe *probe)
{
	free(probe->system);
	free(probe->name);
	free(probe->path);
	free(probe->arguments);
	*probe = (struct gdb_probe){};
}

/* "PATH:OFFSET", perhaps with "(REF_CTR)" or "%return" behind */
static int parse_place(struct gdb_probe *probe, const char *place, size_t size)
{
	const char *colon = memrchr(place, ':', size);

	if (*place != '/' || !colon || !isdigit((unsigned char)colon[1]))
		return 0; /* a place in the kernel */
	probe->offset = strtoull(colon + 1, NULL, 0);
	probe->path = strndup(place, (size_t)(colon - place));
	return probe->path ? 0 : -ENOMEM;
}

int gdb_probe_parse(const char *line, struct gdb_probe *ret)
{
	_cleanup_(gdb_probe_done) struct gdb_probe probe = {};
	size_t type = strcspn(line, ": \t\n"), n;

	if ((*line != 'p' && *line != 'r') || line[type] != ':')
		return -EINVAL;
	line += type + 1;
	n = strcspn(line, "/ \t");
	if (line[n] != '/')
		return -EINVAL;
	probe.system = strndup(line, n);
	line += n + 1;
	n = strcspn(line, " \t");
	probe.name = strndup(line, n);
	line += n + strspn(line + n, " \t");
	n = strcspn(line, " \t");
	if (!probe.system || !probe.name || parse_place(&probe, line, n) < 0)
		return -ENOMEM;
	probe.arguments = strdup(line + n);
	if (!probe.arguments)
		return -ENOMEM;
	*ret = probe;
	probe = (struct gdb_probe){};
	return 0;
}

static int take_lines(struct gdb_probes *probes, char *text)
{
	char *save = NULL;

	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		int r = array_grow(&probes->list, probes->n, sizeof(*probes->list));

		if (r >= 0)
			r = gdb_probe_parse(l, &probes->list[probes->n]);
		if (r == -ENOMEM)
			return r;
		probes->n += r >= 0;
	}
	return 0;
}

int gdb_probes_read(const struct trace_dat *dat, struct gdb_probes *ret, struct fault *why)
{
	_cleanup_(gdb_probes_done) struct gdb_probes probes = {};
	size_t from = 0;
	int r;

	do {
		_cleanup_free_ char *lines = NULL;

		r = trace_dat_next_note(dat, TRACE_DAT_PROBES, &from, &lines, why);
		if (r > 0 && take_lines(&probes, lines) < 0)
			r = fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	} while (r > 0);
	if (r < 0)
		return r;
	*ret = probes;
	probes = (struct gdb_probes){};
	return 0;
}

void gdb_probes_done(struct gdb_probes *probes)
{
	for (size_t i = 0; i < probes->n; i++)
		gdb_probe_done(&probes->list[i]);
	free(probes->list);
	*probes = (struct gdb_probes){};
}

const struct gdb_probe *gdb_probes_find(const struct gdb_probes *probes, const char *system,
					const char *name)
{
	for (size_t i = 0; i < probes->n; i++)
		if (strcmp(probes->list[i].system, system) == 0 &&
		    strcmp(probes->list[i].name, name) == 0)
			return &probes->list[i];
	return NULL;
}

/* "REG" in a name that config/probe-args.c made */
static struct gdb_argument by_name(enum gdb_arch arch, const char *field)
{
	struct gdb_argument a = {.by_name = true};
	const char *reg, *number;

	a.reg = gdb_general_find(arch, field, strlen(field));
	if (a.reg) {
		a.kind = GDB_ARGUMENT_REGISTER;
		return a;
	}
	if (strncmp(field, MEMORY_PREFIX, strlen(MEMORY_PREFIX)) != 0)
		return (struct gdb_argument){};
	reg = field + strlen(MEMORY_PREFIX);
	number = strchr(reg, '_');
	if (!number)
		return (struct gdb_argument){};
	a.reg = gdb_general_find(arch, reg, (size_t)(number - reg));
	number++;
	a.offset = strtoll(number + (*number == 'm'), NULL, 10);
	if (*number == 'm')
		a.offset = -a.offset;
	number += *number == 'm';
	if (!a.reg || !*number || strlen(number) > 9 || number[strspn(number, "0123456789")])
		return (struct gdb_argument){};
	a.kind = GDB_ARGUMENT_MEMORY;
	return a;
}

/* "%REG", "+OFFSET(%REG)", "-OFFSET(%REG)", "+uOFFSET(%REG)", with ":TYPE" behind */
static struct gdb_argument by_definition(enum gdb_arch arch, const char *text, size_t size)
{
	struct gdb_argument a = {};
	const char *reg = text + 1, *end = text + size;
	char *close;

	if (*text == '%') {
		a.kind = GDB_ARGUMENT_REGISTER;
		a.reg = gdb_general_find(arch, reg, strcspn(reg, ": "));
	} else if (*text == '+' || *text == '-') {
		reg += *reg == 'u';
		a.offset = strtoll(reg, &close, 0);
		if (close > reg && strncmp(close, "(%", 2) == 0) {
			size_t n = strcspn(close + 2, ") ");

			a.kind = GDB_ARGUMENT_MEMORY;
			if (close + 2 + n < end && close[2 + n] == ')')
				a.reg = gdb_general_find(arch, close + 2, n);
		}
		if (*text == '-')
			a.offset = -a.offset;
	}
	return a.reg ? a : (struct gdb_argument){};
}

struct gdb_argument gdb_probe_argument(const struct gdb_probe *probe, enum gdb_arch arch,
				       const char *field)
{
	const size_t length = strlen(field);
	struct gdb_argument named = by_name(arch, field), defined;

	for (const char *p = probe ? probe->arguments : ""; *p;) {
		size_t size;

		p += strspn(p, " \t");
		size = strcspn(p, " \t");
		if (size > length + 1 && memcmp(p, field, length) == 0 && p[length] == '=') {
			defined = by_definition(arch, p + length + 1, size - length - 1);
			/* a name that lies counts for nothing */
			defined.by_name = named.kind == defined.kind && named.reg == defined.reg &&
					  named.offset == defined.offset &&
					  defined.kind != GDB_ARGUMENT_OTHER;
			return defined;
		}
		p += size;
	}
	return probe ? (struct gdb_argument){} : named;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The devices of the CoreSight bus: what is enabled, what leads where, what the registers say.
 * Names are the kernel's or whatever a tree has; they become names of files and sections, so only
 * plain ones are taken.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "recorder/coresight-internal.h"

#define TEXT_MAX    (4 * KIB) /* of an attribute */
#define CPUINFO_MAX (4 * MIB)
#define CPU_MAX	    65535U

static bool is_plain(const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-.";

	return name[0] != '.' && name[0] != '-' && strlen(name) < 64 &&
	       strspn(name, plain) == strlen(name);
}

static int read_text(const struct coresight *c, const char *device, const char *attribute,
		     char **ret)
{
	_cleanup_free_ char *path = NULL;

	path = strf(CORESIGHT_DEVICES "/%s/%s", device, attribute);
	if (!path)
		return -ENOMEM;
	return in_root_read(c->request->root_fd, path, TEXT_MAX, ret);
}

/* "0x28000ea1", also without "0x": sysfs has both, and all are hexadecimal but @decimal */
static int read_number(const struct coresight *c, const char *device, const char *attribute,
		       bool decimal, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	char *end;
	int r = read_text(c, device, attribute, &text);

	if (r < 0)
		return r;
	if (!strchr("0123456789abcdefABCDEF", text[0]) || !text[0])
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &end, decimal ? 10 : 16);
	return errno ? -errno : *end ? -EINVAL : 0;
}

static bool has(const struct coresight *c, const char *device, const char *attribute)
{
	_cleanup_free_ char *text = NULL;

	return read_text(c, device, attribute, &text) >= 0;
}

/* --- sources */

/* The register with the version of the architecture, which is never 0 */
static bool is_version(const struct arm_register_fact *fact)
{
	return strcmp(fact->name, "TRCIDR1") == 0 || strcmp(fact->name, "ETMIDR") == 0;
}

/* What the registers tell: the type with its version */
static void name_type(struct arm_source *source, bool ete)
{
	uint32_t id = 0;

	for (size_t i = 0; i < source->n_registers; i++)
		if (is_version(source->registers[i].fact))
			id = source->registers[i].value;
	/* TRCIDR1 and ETMIDR: [11:8] major, in ETMIDR less one, and 3 for PTM; [7:4] minor */
	if (ete)
		(void)strcpy(source->type, "ETE");
	else if (strcmp(source->kind->type, "ETM4") == 0)
		(void)snprintf(source->type, sizeof(source->type), "ETM4.%u", id >> 4 & 0xf);
	else if (strcmp(source->kind->type, "ETM3") == 0 && (id >> 8 & 0xf) == 3)
		(void)snprintf(source->type, sizeof(source->type), "PFT1.%u", id >> 4 & 0xf);
	else if (strcmp(source->kind->type, "ETM3") == 0)
		(void)snprintf(source->type, sizeof(source->type), "ETM3.%u", id >> 4 & 0xf);
	else
		(void)snprintf(source->type, sizeof(source->type), "%s", source->kind->type);
}

/* DEVARCH.ARCHPART: the same driver and the same directories as ETMv4 */
static bool is_ete(const struct coresight *c, const char *device)
{
	uint64_t devarch;

	return strncmp(device, "ete", 3) == 0 ||
	       (read_number(c, device, "mgmt/trcdevarch", false, &devarch) >= 0 &&
		(devarch & 0xffff) == 0x5a13);
}

/* By what it has, not by its name: names differ between kernels */
static const struct arm_source_kind *find_kind(const struct coresight *c, const char *device)
{
	if (has(c, device, "trcidr/trcidr0"))
		return arm_source_kind(is_ete(c, device) ? "ETE" : "ETM4");
	if (has(c, device, "mgmt/etmidr"))
		return arm_source_kind("ETM3");
	return has(c, device, "mgmt/tcsr") || strncmp(device, "stm", 3) == 0
		       ? arm_source_kind("STM")
		       : NULL;
}

/* STM: a driver that does not show the register still shows the trace ID in it */
static int read_register(const struct coresight *c, const struct arm_source *source,
			 const struct arm_register_fact *fact, uint64_t *ret)
{
	int r = fact->sysfs ? read_number(c, source->name, fact->sysfs, false, ret) : -ENOENT;

	if (r != -ENOENT || strcmp(fact->name, "STMTCSR") != 0)
		return r;
	r = read_number(c, source->name, "traceid", false, ret);
	if (r >= 0)
		*ret = (*ret & 0x7f) << 16;
	return r;
}

/* Return: 1, 0 if a note says why it is left out, or -ENOMEM */
static int read_registers(struct coresight *c, struct arm_source *source)
{
	bool dead = false;

	for (const struct arm_register_fact *f = source->kind->registers; f->name; f++) {
		uint64_t value;
		int r = read_register(c, source, f, &value);

		if (r == -ENOMEM)
			return r;
		if (r < 0 && f->optional)
			continue;
		if (r >= 0 && value > UINT32_MAX)
			r = -ERANGE;
		if (r < 0)
			return coresight_note(c, "%s is left out: %s: %s", source->name,
					      f->sysfs ? f->sysfs : f->name, strerror(-r));
		dead |= value == 0 && is_version(f);
		source->registers[source->n_registers++] =
			(struct arm_register){.fact = f, .value = (uint32_t)value};
	}
	if (!dead)
		return 1;
	/* the kernel asks the CPU itself, and answers 0 if that is not there */
	return coresight_note(c, "%s is left out: its registers read as 0: its CPU is offline",
			      source->name);
}

/* Where the connections of @device lead to, added to @list */
static int follow(const struct coresight *c, const char *device, char ***list)
{
	struct dirent **entries = NULL;
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -EBADF;
	int n, r = 0;

	path = strf(CORESIGHT_DEVICES "/%s/connections", device);
	if (!path)
		return -ENOMEM;
	fd = in_root_open(c->request->root_fd, path, O_RDONLY | O_DIRECTORY);
	n = fd < 0 ? 0 : scandirat(fd, ".", &entries, NULL, versionsort);
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *link = NULL, *target = NULL;

		if (r >= 0 && strncmp(entries[i]->d_name, "out:", 4) == 0) {
			link = strf("%s/%s", path, entries[i]->d_name);
			r = link ? in_root_link(c->request->root_fd, link, &target) : -ENOMEM;
			if (r >= 0 && is_plain(target) && !strv_contains(*list, target))
				r = strv_append(list, target);
			r = r == -ENOMEM ? r : 0;
		}
		free(entries[i]);
	}
	free(entries);
	return r;
}

/* The nearest enabled sink; *ret stays NULL if there is none */
static int find_sink(const struct coresight *c, const char *device, char **ret)
{
	_cleanup_(strv_freep) char **seen = NULL;
	size_t n = 0;
	int r = strv_append(&seen, device);

	/* breadth first; what has been seen is not gone through again, so circles end */
	for (size_t i = 0; r >= 0 && seen[i]; i++) {
		if (strv_contains(c->sinks, seen[i])) {
			*ret = strdup(seen[i]);
			return *ret ? 0 : -ENOMEM;
		}
		if (i < CORESIGHT_DEVICES_MAX)
			r = follow(c, seen[i], &seen);
		n = i + 1;
	}
	if (r < 0 || n > 1 || strv_length(c->sinks) != 1)
		return r;
	/* before Linux 5.9 connections are not shown; with one sink there is nothing to choose */
	*ret = strdup(c->sinks[0]);
	return *ret ? 0 : -ENOMEM;
}

static int read_source(struct coresight *c, struct arm_source *source)
{
	uint64_t cpu = 0;
	int r;

	source->kind = find_kind(c, source->name);
	if (!source->kind)
		return coresight_note(c, "%s is left out: not an ETM, PTM, ETE or STM",
				      source->name);
	source->cpu = -1;
	if (source->kind->of_core) {
		r = read_number(c, source->name, "cpu", true, &cpu);
		if (r < 0 || cpu > CPU_MAX)
			return coresight_note(c, "%s is left out: cpu: %s", source->name,
					      strerror(r < 0 ? -r : ERANGE));
		source->cpu = (int)cpu;
	}
	r = read_registers(c, source);
	if (r <= 0)
		return r;
	name_type(source, strcmp(source->kind->type, "ETE") == 0);
	r = find_sink(c, source->name, &source->buffer);
	if (r >= 0 && !source->buffer)
		return coresight_note(c, "%s is left out: it leads to no sink that is enabled",
				      source->name);
	return r < 0 ? r : 1;
}

static int add_source(struct coresight *c, const char *device)
{
	struct arm_source source = {.name = strdup(device)}, *more;
	int r = source.name ? read_source(c, &source) : -ENOMEM;

	if (r > 0) {
		more = reallocarray(c->snapshot.sources, c->snapshot.n_sources + 1, sizeof(*more));
		if (more) {
			c->snapshot.sources = more;
			more[c->snapshot.n_sources++] = source;
			return 0;
		}
		r = -ENOMEM;
	}
	free(source.name);
	free(source.buffer);
	return r;
}

static int add_sink(struct coresight *c, const char *device)
{
	uint64_t enabled;

	if (read_number(c, device, "enable_sink", true, &enabled) < 0)
		return 0;
	if (enabled)
		return strv_append(&c->sinks, device);
	c->no_sinks = true;
	return 0;
}

static int for_each(struct coresight *c, struct dirent **entries, int n,
		    int (*add)(struct coresight *c, const char *device))
{
	int r = 0;

	for (int i = 0; i < n && r >= 0; i++)
		if (is_plain(entries[i]->d_name))
			r = add(c, entries[i]->d_name);
	return r;
}

static int add_if_source(struct coresight *c, const char *device)
{
	return has(c, device, "enable_source") ? add_source(c, device) : 0;
}

int coresight_read_devices(struct coresight *c, struct fault *why)
{
	_cleanup_close_ int fd =
		in_root_open(c->request->root_fd, CORESIGHT_DEVICES, O_RDONLY | O_DIRECTORY);
	struct dirent **entries = NULL;
	int n, r;

	if (fd == -ENOENT)
		return fault_set(why, -ENODEV, "no CoreSight here: there is no " CORESIGHT_DEVICES);
	n = fd < 0 ? fd : scandirat(fd, ".", &entries, NULL, versionsort);
	if (n < 0)
		return fault_errno(why, fd < 0 ? fd : -errno, CORESIGHT_DEVICES ": cannot read");
	r = for_each(c, entries, n, add_sink);
	if (r >= 0 && c->sinks)
		r = for_each(c, entries, n, add_if_source);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	if (r < 0)
		return fault_errno(why, r, CORESIGHT_DEVICES ": cannot read");
	if (!c->sinks)
		return c->no_sinks
			       ? fault_set(why, -ENODATA,
					   "no sink is enabled: 0 in each enable_sink "
					   "below " CORESIGHT_DEVICES)
			       : fault_set(why, -ENODEV, "no CoreSight sink in " CORESIGHT_DEVICES);
	return 0;
}

/* --- cores */

/* "CPU part : 0xd03" and its like of one processor in /proc/cpuinfo */
static bool cpuinfo_number(const char *block, const char *end, const char *key, uint64_t *ret)
{
	for (const char *p = block; p && p < end; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, key, strlen(key)) == 0 && strchr(" \t:", p[strlen(key)])) {
			p += strcspn(p, ":\n");
			*ret = *p == ':' ? strtoull(p + 1, NULL, 0) : 0;
			return *p == ':';
		}
	}
	return false;
}

/* MIDR as cpuinfo takes it apart */
static bool find_in_cpuinfo(const char *text, unsigned cpu, uint64_t *ret_midr, uint64_t *ret_arch)
{
	for (const char *p = text, *next; p; p = next) {
		uint64_t n, implementer = 0, part = 0;

		next = strstr(p, "\n\n");
		if (next)
			next += 2;
		if (!cpuinfo_number(p, next ? next : p + strlen(p), "processor", &n) || n != cpu)
			continue;
		if (!next)
			next = p + strlen(p);
		if (!cpuinfo_number(p, next, "CPU architecture", ret_arch))
			*ret_arch = 8;
		if (!cpuinfo_number(p, next, "CPU implementer", &implementer) ||
		    !cpuinfo_number(p, next, "CPU part", &part))
			return false;
		*ret_midr = implementer << 24 | (part & 0xfff) << 4;
		return true;
	}
	return false;
}

static const char *core_type(const struct coresight *c, const char *cpuinfo, unsigned cpu)
{
	_cleanup_free_ char *text = NULL;
	uint64_t midr = 0, arch = 8;
	bool known = cpuinfo && find_in_cpuinfo(cpuinfo, cpu, &midr, &arch);
	char path[96];

	(void)snprintf(path, sizeof(path),
		       "/sys/devices/system/cpu/cpu%u/regs/identification/midr_el1", cpu);
	if (!known && in_root_read(c->request->root_fd, path, TEXT_MAX, &text) >= 0)
		midr = strtoull(text, NULL, 16);
	return arm_core_type((uint32_t)midr, arch < 8);
}

int coresight_read_cores(struct coresight *c, struct fault *why)
{
	_cleanup_free_ char *cpuinfo = NULL;
	struct arm_snapshot *s = &c->snapshot;

	/* without it there is midr_el1, and without that the architecture's name */
	if (in_root_read(c->request->root_fd, "/proc/cpuinfo", CPUINFO_MAX, &cpuinfo) < 0)
		cpuinfo = NULL;
	s->cores = calloc(s->n_sources, sizeof(*s->cores));
	if (!s->cores)
		return fault_errno(why, -ENOMEM, "cannot read the cores");
	for (size_t i = 0; i < s->n_sources; i++) {
		bool seen = s->sources[i].cpu < 0;

		for (size_t k = 0; k < s->n_cores && !seen; k++)
			seen = s->cores[k].cpu == (unsigned)s->sources[i].cpu;
		if (seen)
			continue;
		s->cores[s->n_cores].cpu = (unsigned)s->sources[i].cpu;
		s->cores[s->n_cores++].type = core_type(c, cpuinfo, (unsigned)s->sources[i].cpu);
	}
	return 0;
}

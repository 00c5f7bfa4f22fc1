/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/in-root.h"
#include "basic/io.h"
#include "basic/strv.h"
#include "recorder/coresight.h"

#define CORESIGHT_DEVICES     "/sys/bus/coresight/devices"
#define CORESIGHT_DEVICES_MAX 8192U

struct coresight {
	const struct coresight_request *request;
	struct arm_snapshot snapshot;
	char **notes;  /* what is not in the snapshot, a line each */
	char **sinks;  /* names of the enabled ones */
	bool no_sinks; /* there are sinks, but none is enabled */
};

/*
 * --- the devices of the CoreSight bus: what is enabled, what leads where, what the registers say.
 * Names are the kernel's or whatever a tree has; they become names of files and sections, so only
 * plain ones are taken.
 */

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
		if (r < 0 && (f->optional & source->kind->bit))
			continue;
		if (r >= 0 && value > UINT32_MAX)
			r = -ERANGE;
		if (r < 0)
			return strv_appendf(&c->notes, "%s is left out: %s: %s", source->name,
					    f->sysfs ? f->sysfs : f->name, strerror(-r));
		dead |= value == 0 && is_version(f);
		source->registers[source->n_registers++] =
			(struct arm_register){.fact = f, .value = (uint32_t)value};
	}
	if (!dead)
		return 1;
	/* the kernel asks the CPU itself, and answers 0 if that is not there */
	return strv_appendf(&c->notes,
			    "%s is left out: its registers read as 0: its CPU is offline",
			    source->name);
}

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* tmc_etr2 before tmc_etr10 */
static int list_devices(const struct coresight *c, const char *path, char ***ret)
{
	_cleanup_close_ int fd = in_root_open(c->request->root_fd, path, O_RDONLY | O_DIRECTORY);
	int r = fd < 0 ? fd : io_list_at(fd, ".", NULL, ret);

	if (r >= 0)
		qsort(*ret, strv_length(*ret), sizeof(**ret), by_version);
	return r;
}

/* Where the connections of @device lead to, added to @list */
static int follow(const struct coresight *c, const char *device, char ***list)
{
	_cleanup_(strv_freep) char **names = NULL;
	_cleanup_free_ char *path = NULL;
	int r;

	path = strf(CORESIGHT_DEVICES "/%s/connections", device);
	if (!path)
		return -ENOMEM;
	r = list_devices(c, path, &names);
	STRV_FOREACH (name, names) {
		_cleanup_free_ char *link = NULL, *target = NULL;

		if (r == -ENOMEM || strncmp(*name, "out:", 4) != 0)
			continue;
		link = strf("%s/%s", path, *name);
		r = link ? in_root_link(c->request->root_fd, link, &target) : -ENOMEM;
		if (r >= 0 && is_plain(target) && !strv_contains(*list, target))
			r = strv_append(list, target);
	}
	return r == -ENOMEM ? r : 0;
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
		return strv_appendf(&c->notes, "%s is left out: not an ETM, PTM, ETE or STM",
				    source->name);
	source->cpu = -1;
	if (source->kind->of_core) {
		r = read_number(c, source->name, "cpu", true, &cpu);
		if (r < 0 || cpu > CPU_MAX)
			return strv_appendf(&c->notes, "%s is left out: cpu: %s", source->name,
					    strerror(r < 0 ? -r : ERANGE));
		source->cpu = (int)cpu;
	}
	r = read_registers(c, source);
	if (r <= 0)
		return r;
	name_type(source, strcmp(source->kind->type, "ETE") == 0);
	r = find_sink(c, source->name, &source->buffer);
	if (r >= 0 && !source->buffer)
		return strv_appendf(&c->notes,
				    "%s is left out: it leads to no sink that is enabled",
				    source->name);
	return r < 0 ? r : 1;
}

static int add_source(struct coresight *c, const char *device)
{
	struct arm_source source = {.name = strdup(device)};
	struct arm_snapshot *s = &c->snapshot;
	int r = array_grow(&s->sources, s->n_sources, sizeof(source));

	if (r >= 0)
		r = source.name ? read_source(c, &source) : -ENOMEM;
	if (r > 0) {
		s->sources[s->n_sources++] = source;
		return 0;
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

static int coresight_read_devices(struct coresight *c, struct fault *why)
{
	_cleanup_(strv_freep) char **names = NULL;
	int r = list_devices(c, CORESIGHT_DEVICES, &names);

	if (r == -ENOENT)
		return fault_set(why, -ENODEV, "no CoreSight here: there is no " CORESIGHT_DEVICES);
	STRV_FOREACH (name, names)
		if (r >= 0 && is_plain(*name))
			r = add_sink(c, *name);
	STRV_FOREACH (name, names)
		if (r >= 0 && c->sinks && is_plain(*name) && has(c, *name, "enable_source"))
			r = add_source(c, *name);
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

static int coresight_read_cores(struct coresight *c, struct fault *why)
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

/* --- what is in the sinks, and memory that decoders need: the kernel's text */

#define CHUNK	   (1 * MIB)
#define SINK_MAX   (4 * GIB) /* an ETR's size register has no more bits */
#define KERNEL_MAX (1 * GIB) /* of a kernel */
#define PHDRS_MAX  1024U

static int create(int dir_fd, const char *file)
{
	int fd = openat(dir_fd, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);

	return fd < 0 ? -errno : fd;
}

/*
 * From the position of @from up to its end or @size bytes, to a new file, synced. Return: 0, or
 * negative errno of writing. @ret_error: that of reading; @ret_bytes: 0 then.
 */
static int save(const struct coresight *c, int from, uint64_t size, const char *file,
		uint64_t *ret_bytes, int *ret_error, struct fault *why)
{
	_cleanup_close_ int to = create(c->request->dir_fd, file);
	_cleanup_free_ char *chunk = malloc(CHUNK);
	uint64_t copied = 0;
	ssize_t n = 0;
	int r = 0;

	if (to < 0)
		return fault_errno(why, to, "%s: cannot create", file);
	*ret_error = chunk ? 0 : -ENOMEM;
	while (chunk && copied < size && r >= 0) {
		n = TEMP_FAILURE_RETRY(read(from, chunk, MIN(CHUNK, size - copied)));
		if (n <= 0)
			break;
		r = io_write_all(to, chunk, (size_t)n);
		copied += (uint64_t)n;
	}
	if (n < 0)
		*ret_error = -errno;
	else if (r >= 0 && fsync(to) < 0)
		r = -errno;
	*ret_bytes = n < 0 ? 0 : copied;
	return r < 0 ? fault_errno(why, r, "%s: cannot write", file) : 0;
}

/* --- sinks */

static const char *explain(int error)
{
	switch (error) {
	case -EBUSY:
		return "busy: somebody else reads it, or perf uses it";
	case -EINVAL:
		return "nothing to read: it has not been enabled, or only passes trace on";
	case -ENOENT:
		return "it has no device to read from";
	default:
		return strerror(-error);
	}
}

static int open_sink(const struct coresight *c, const char *sink)
{
	char path[96];
	struct stat st;
	int fd;

	(void)snprintf(path, sizeof(path), "/dev/%s", sink);
	/* not blocking: a FIFO in its place must not hang us */
	fd = in_root_open(c->request->root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) >= 0 && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)))
		return fd;
	close(fd);
	return -ENODEV;
}

/* Return: 1, 0 if there is nothing, which a note says, or negative errno of writing */
static int read_sink(struct coresight *c, const char *sink, const char *file, struct fault *why)
{
	_cleanup_close_ int from = open_sink(c, sink);
	uint64_t bytes;
	int error, r;

	if (from < 0)
		return strv_appendf(&c->notes, "%s: %s", sink, explain(from));
	r = save(c, from, SINK_MAX, file, &bytes, &error, why);
	if (r < 0 || bytes > 0)
		return r < 0 ? r : 1;
	(void)unlinkat(c->request->dir_fd, file, 0);
	return strv_appendf(&c->notes, "%s: %s", sink, error < 0 ? explain(error) : "empty");
}

static int add_buffer(struct coresight *c, const char *sink, struct fault *why)
{
	struct arm_buffer buffer = {.name = strdup(sink), .file = strf("%s.bin", sink)};
	struct arm_snapshot *s = &c->snapshot;
	int r = array_grow(&s->buffers, s->n_buffers, sizeof(buffer));

	if (r >= 0)
		r = buffer.name && buffer.file ? read_sink(c, sink, buffer.file, why) : -ENOMEM;
	if (r > 0) {
		s->buffers[s->n_buffers++] = buffer;
		return 0;
	}
	free(buffer.name);
	free(buffer.file);
	return r == -ENOMEM ? fault_errno(why, r, "%s: cannot read", sink) : r;
}

static bool is_used(const struct coresight *c, const char *sink)
{
	for (size_t i = 0; i < c->snapshot.n_sources; i++)
		if (strcmp(c->snapshot.sources[i].buffer, sink) == 0)
			return true;
	return false;
}

static bool has_buffer(const struct coresight *c, const struct arm_source *source)
{
	for (size_t i = 0; i < c->snapshot.n_buffers; i++)
		if (strcmp(c->snapshot.buffers[i].name, source->buffer) == 0)
			return true;
	return false;
}

/* Readers stumble over sources whose buffer is not there */
static void drop_sources(struct coresight *c)
{
	struct arm_snapshot *s = &c->snapshot;
	size_t n = 0;

	for (size_t i = 0; i < s->n_sources; i++) {
		if (has_buffer(c, &s->sources[i])) {
			s->sources[n++] = s->sources[i];
			continue;
		}
		free(s->sources[i].name);
		free(s->sources[i].buffer);
	}
	s->n_sources = n;
}

static int coresight_read_sinks(struct coresight *c, struct fault *why)
{
	char all[sizeof(why->text) - 64] = "";
	int r = 0;

	for (char **sink = c->sinks; *sink && r >= 0; sink++) {
		if (is_used(c, *sink))
			r = add_buffer(c, *sink, why);
		else if (strv_appendf(&c->notes, "%s: no source leads to it", *sink) < 0)
			r = fault_errno(why, -ENOMEM, "%s: cannot read", *sink);
	}
	if (r < 0)
		return r;
	drop_sources(c);
	if (c->snapshot.n_sources > 0)
		return 0;
	for (char **note = c->notes; note && *note; note++) {
		size_t n = strlen(all);

		(void)snprintf(all + n, sizeof(all) - n, "%s%s", n ? "; " : "", *note);
	}
	return fault_set(why, -ENODATA, "no CoreSight trace: %s", all);
}

/* --- memory */

static int add_dump(struct coresight *c, const char *file, uint64_t address, uint64_t length)
{
	struct arm_snapshot *s = &c->snapshot;
	struct arm_dump dump = {.file = strdup(file), .address = address, .length = length};

	if (!dump.file || array_grow(&s->dumps, s->n_dumps, sizeof(dump)) < 0) {
		free(dump.file);
		return -ENOMEM;
	}
	s->dumps[s->n_dumps++] = dump;
	return 0;
}

/* Return: 1 both found, 0 not, negative errno */
static int find_text(const struct coresight *c, uint64_t *ret_start, uint64_t *ret_end)
{
	_cleanup_close_ int fd = in_root_open(c->request->root_fd, "/proc/kallsyms",
					      O_RDONLY | O_NONBLOCK | O_NOCTTY);
	_cleanup_fclose_ FILE *f = NULL;
	uint64_t start = 0, end = 0;
	char line[512];

	if (fd < 0)
		return fd;
	f = fdopen(fd, "r");
	if (!f)
		return -errno;
	TAKE_FD(fd);
	/* modules come last, and may have symbols of that name */
	while ((!start || !end) && fgets(line, sizeof(line), f)) {
		char *rest;
		uint64_t address = strtoull(line, &rest, 16);

		if (rest == line || *rest != ' ' || !rest[1] || rest[2] != ' ')
			continue;
		rest[3 + strcspn(rest + 3, "\t\n")] = '\0';
		if (strcmp(rest + 3, "_stext") == 0)
			start = address;
		else if (strcmp(rest + 3, "_etext") == 0)
			end = address;
	}
	if (ferror(f))
		return -EIO;
	*ret_start = start;
	*ret_end = end;
	return start && end;
}

/* A program header of either class */
static int read_phdr(int fd, bool is_64, uint64_t at, Elf64_Phdr *ret)
{
	Elf32_Phdr p;
	int r;

	if (is_64)
		return io_pread_all(fd, ret, sizeof(*ret), at);
	r = io_pread_all(fd, &p, sizeof(p), at);
	if (r >= 0)
		*ret = (Elf64_Phdr){.p_type = p.p_type,
				    .p_offset = p.p_offset,
				    .p_vaddr = p.p_vaddr,
				    .p_filesz = p.p_filesz};
	return r;
}

/* Where [start, start + size) is in the core file */
static int find_in_core(int fd, uint64_t start, uint64_t size, uint64_t *ret)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr e32;
		Elf64_Ehdr e64;
	} h;
	struct stat st;
	unsigned n;
	bool is_64;
	int r;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	r = io_pread_all(fd, &h, sizeof(h.e32), 0);
	if (r < 0)
		return r;
	/* Arm kernels are little endian but for exotic ones; so are we, else nothing would fit */
	if (memcmp(h.ident, ELFMAG, SELFMAG) != 0 || h.ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	is_64 = h.ident[EI_CLASS] == ELFCLASS64;
	if (is_64)
		r = io_pread_all(fd, &h, sizeof(h.e64), 0);
	else if (h.ident[EI_CLASS] != ELFCLASS32)
		r = -ENOEXEC;
	n = is_64 ? h.e64.e_phnum : h.e32.e_phnum;
	for (unsigned i = 0; r >= 0 && i < MIN(n, PHDRS_MAX); i++) {
		Elf64_Phdr p;

		r = read_phdr(fd, is_64,
			      is_64 ? h.e64.e_phoff + (uint64_t)i * h.e64.e_phentsize
				    : h.e32.e_phoff + (uint64_t)i * h.e32.e_phentsize,
			      &p);
		if (r >= 0 && p.p_type == PT_LOAD && start >= p.p_vaddr && size <= p.p_filesz &&
		    start - p.p_vaddr <= p.p_filesz - size) {
			*ret = p.p_offset + (start - p.p_vaddr);
			return 0;
		}
	}
	return r < 0 ? r : -EADDRNOTAVAIL;
}

/* Return: 0, also if a note says why there is none; negative errno of writing */
static int read_kernel(struct coresight *c, struct fault *why)
{
	_cleanup_close_ int core = -EBADF;
	uint64_t start = 0, end = 0, offset = 0, bytes;
	int r = find_text(c, &start, &end), error;

	if (r <= 0 || end <= start || end - start > KERNEL_MAX)
		return strv_appendf(&c->notes, "the kernel's text is left out: /proc/kallsyms: %s",
				    r < 0 ? strerror(-r) : "no addresses of _stext and _etext");
	core = in_root_open(c->request->root_fd, "/proc/kcore", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	r = core < 0 ? core : find_in_core(core, start, end - start, &offset);
	if (r >= 0 && lseek(core, (off_t)offset, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		return strv_appendf(&c->notes, "the kernel's text is left out: /proc/kcore: %s",
				    r == -EADDRNOTAVAIL ? "it does not have it" : strerror(-r));
	r = save(c, core, end - start, "kernel.bin", &bytes, &error, why);
	if (r < 0)
		return r;
	if (bytes == end - start)
		return add_dump(c, "kernel.bin", start, bytes);
	(void)unlinkat(c->request->dir_fd, "kernel.bin", 0);
	return strv_appendf(&c->notes, "the kernel's text is left out: /proc/kcore: %s",
			    error < 0 ? strerror(-error) : "it ends too early");
}

/* What was asked for by name is not left out */
static int read_given(struct coresight *c, const struct coresight_memory *m, unsigned n,
		      struct fault *why)
{
	uint64_t bytes;
	char file[32];
	int error, r;

	(void)snprintf(file, sizeof(file), "memory%u.bin", n);
	r = save(c, m->fd, UINT64_MAX, file, &bytes, &error, why);
	if (r < 0)
		return r;
	if (error < 0)
		return fault_errno(why, error, "%s: cannot read", m->name);
	if (bytes == 0)
		return fault_set(why, -ENODATA, "%s: is empty", m->name);
	if (m->address + bytes < m->address)
		return fault_set(why, -ERANGE, "%s: reaches beyond the last address", m->name);
	r = add_dump(c, file, m->address, bytes);
	return r < 0 ? fault_errno(why, r, "%s: cannot read", m->name) : 0;
}

static int coresight_read_memory(struct coresight *c, struct fault *why)
{
	int r = 0;

	if (c->snapshot.n_cores == 0)
		return 0; /* nothing that executes: nobody to see it */
	*why = (struct fault){};
	r = read_kernel(c, why);
	if (r < 0 && why->error == 0)
		return fault_errno(why, r, "cannot read the kernel's text");
	for (size_t i = 0; r >= 0 && i < c->request->n_memory; i++)
		r = read_given(c, &c->request->memory[i], (unsigned)i + 1, why);
	return r;
}

/* --- all of it */

struct output {
	int dir_fd;
	struct fault *why;
};

static int write_text(void *userdata, const char *file, const char *text, size_t size)
{
	const struct output *output = userdata;
	_cleanup_close_ int fd = create(output->dir_fd, file);
	int r = fd < 0 ? fd : io_write_all(fd, text, size);

	if (r >= 0 && fsync(fd) < 0)
		r = -errno;
	return r < 0 ? fault_errno(output->why, r, "%s: cannot write", file) : 0;
}

static int collect(struct coresight *c, struct fault *why)
{
	struct output output = {.dir_fd = c->request->dir_fd, .why = why};
	int r;

	/* Registers first: opening a sink stops it, and the sources' state may go with that */
	r = coresight_read_devices(c, why);
	if (r >= 0)
		r = coresight_read_sinks(c, why);
	if (r >= 0)
		r = coresight_read_cores(c, why);
	if (r >= 0)
		r = coresight_read_memory(c, why);
	if (r < 0)
		return r;
	c->snapshot.description = c->request->description;
	c->snapshot.ftrace = c->request->ftrace;
	*why = (struct fault){};
	r = arm_snapshot_encode(&c->snapshot, write_text, &output);
	return r < 0 && why->error == 0 ? fault_errno(why, r, "cannot write the snapshot") : r;
}

int coresight_collect(const struct coresight_request *request, char ***ret_notes, struct fault *why)
{
	struct coresight c = {.request = request};
	int r = collect(&c, why);

	arm_snapshot_done(&c.snapshot);
	strv_free(c.sinks);
	*ret_notes = c.notes;
	return r;
}

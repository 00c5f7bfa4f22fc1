/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is in the sinks, and memory that decoders need: the kernel's text between _stext and _etext.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "recorder/coresight-internal.h"

#define CHUNK	  (1 * MIB)
#define SINK_MAX  (4 * GIB) /* an ETR's size register has no more bits */
#define TEXT_MAX  (1 * GIB) /* of a kernel */
#define PHDRS_MAX 1024U

/* @from: read from here up to its end or @size bytes. Return: 0 or negative errno, of which end is
 * in @ret_writing. */
static int copy(int from, int to, uint64_t size, uint64_t *ret_copied, bool *ret_writing)
{
	_cleanup_free_ char *chunk = malloc(CHUNK);
	uint64_t copied = 0;

	*ret_writing = false;
	if (!chunk)
		return -ENOMEM;
	while (copied < size) {
		ssize_t n = read(from, chunk, MIN(CHUNK, size - copied));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		r = io_write_all(to, chunk, (size_t)n);
		if (r < 0) {
			*ret_writing = true;
			return r;
		}
		copied += (uint64_t)n;
	}
	*ret_copied = copied;
	return 0;
}

static int create(const struct coresight *c, const char *file, struct fault *why)
{
	int fd = openat(c->request->dir_fd, file,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);

	return fd < 0 ? fault_errno(why, -errno, "%s: cannot create", file) : fd;
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
	_cleanup_close_ int from = open_sink(c, sink), to = -EBADF;
	uint64_t bytes = 0;
	bool writing = false;
	int r;

	if (from < 0)
		return coresight_note(c, "%s: %s", sink, explain(from));
	to = create(c, file, why);
	if (to < 0)
		return to;
	r = copy(from, to, SINK_MAX, &bytes, &writing);
	if (r >= 0 && bytes > 0 && fsync(to) < 0) {
		r = -errno;
		writing = true;
	}
	if (writing)
		return fault_errno(why, r, "%s: cannot write", file);
	if (r >= 0 && bytes > 0)
		return 1;
	(void)unlinkat(c->request->dir_fd, file, 0);
	return coresight_note(c, "%s: %s", sink, r < 0 ? explain(r) : "empty");
}

static int add_buffer(struct coresight *c, const char *sink, struct fault *why)
{
	struct arm_buffer buffer = {.name = strdup(sink)}, *more;
	int r = -ENOMEM;

	buffer.file = strf("%s.bin", sink);
	if (buffer.name && buffer.file)
		r = read_sink(c, sink, buffer.file, why);
	if (r > 0) {
		more = reallocarray(c->snapshot.buffers, c->snapshot.n_buffers + 1, sizeof(*more));
		if (more) {
			c->snapshot.buffers = more;
			more[c->snapshot.n_buffers++] = buffer;
			return 0;
		}
		r = -ENOMEM;
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

int coresight_read_sinks(struct coresight *c, struct fault *why)
{
	char all[sizeof(why->text) - 64] = "";
	int r = 0;

	for (char **sink = c->sinks; *sink && r >= 0; sink++) {
		if (is_used(c, *sink))
			r = add_buffer(c, *sink, why);
		else if (coresight_note(c, "%s: no source leads to it", *sink) < 0)
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
	struct arm_dump *more = reallocarray(s->dumps, s->n_dumps + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->dumps = more;
	more[s->n_dumps] = (struct arm_dump){
		.file = strdup(file),
		.address = address,
		.length = length,
	};
	if (!more[s->n_dumps].file)
		return -ENOMEM;
	s->n_dumps++;
	return 0;
}

/* Return: 1 both found, 0 not, negative errno */
static int find_text(const struct coresight *c, uint64_t *ret_start, uint64_t *ret_end)
{
	int fd = in_root_open(c->request->root_fd, "/proc/kallsyms",
			      O_RDONLY | O_NONBLOCK | O_NOCTTY);
	_cleanup_fclose_ FILE *f = NULL;
	uint64_t start = 0, end = 0;
	char line[512];

	if (fd < 0)
		return fd;
	f = fdopen(fd, "r");
	if (!f) {
		int r = -errno;

		close(fd);
		return r;
	}
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
	_cleanup_close_ int core = -EBADF, to = -EBADF;
	uint64_t start = 0, end = 0, offset = 0, bytes = 0;
	bool writing = false;
	int r = find_text(c, &start, &end);

	if (r <= 0 || end <= start || end - start > TEXT_MAX)
		return coresight_note(c, "the kernel's text is left out: /proc/kallsyms: %s",
				      r < 0 ? strerror(-r) : "no addresses of _stext and _etext");
	core = in_root_open(c->request->root_fd, "/proc/kcore", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	r = core < 0 ? core : find_in_core(core, start, end - start, &offset);
	if (r >= 0 && lseek(core, (off_t)offset, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		return coresight_note(c, "the kernel's text is left out: /proc/kcore: %s",
				      r == -EADDRNOTAVAIL ? "it does not have it" : strerror(-r));
	to = create(c, "kernel.bin", why);
	if (to < 0)
		return to;
	r = copy(core, to, end - start, &bytes, &writing);
	if (r >= 0 && bytes == end - start && fsync(to) < 0) {
		r = -errno;
		writing = true;
	}
	if (writing)
		return fault_errno(why, r, "kernel.bin: cannot write");
	if (r >= 0 && bytes == end - start)
		return add_dump(c, "kernel.bin", start, bytes);
	(void)unlinkat(c->request->dir_fd, "kernel.bin", 0);
	return coresight_note(c, "the kernel's text is left out: /proc/kcore: %s",
			      r < 0 ? strerror(-r) : "it ends too early");
}

/* What was asked for by name is not left out */
static int read_given(struct coresight *c, const struct coresight_memory *m, unsigned n,
		      struct fault *why)
{
	_cleanup_close_ int to = -EBADF;
	uint64_t bytes = 0;
	bool writing = false;
	char file[32];
	int r;

	(void)snprintf(file, sizeof(file), "memory%u.bin", n);
	to = create(c, file, why);
	if (to < 0)
		return to;
	r = copy(m->fd, to, UINT64_MAX, &bytes, &writing);
	if (r >= 0 && fsync(to) < 0) {
		r = -errno;
		writing = true;
	}
	if (r < 0)
		return fault_errno(why, r, "%s: cannot %s", writing ? file : m->name,
				   writing ? "write" : "read");
	if (bytes == 0)
		return fault_set(why, -ENODATA, "%s: is empty", m->name);
	if (m->address + bytes < m->address)
		return fault_set(why, -ERANGE, "%s: reaches beyond the last address", m->name);
	r = add_dump(c, file, m->address, bytes);
	return r < 0 ? fault_errno(why, r, "%s: cannot read", m->name) : 0;
}

int coresight_read_memory(struct coresight *c, struct fault *why)
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

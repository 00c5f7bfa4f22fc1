/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "formats/file-kind.h"
#include "formats/trace-dat-cursor.h"
#include "formats/trace-dat-data.h"
#include "formats/trace-dat-read.h"
#include "formats/trace-dat-v7.h"

/* Nothing real comes near these; they bound what a bad file can make us do */
#define MAX_FORMATS	131072U
#define MAX_CPUS	65536U
#define MAX_OPTIONS	1048576U
#define MAX_REGIONS	262144U /* CPUs times buffers */
#define MAX_SYSTEMS	65536U
#define MAX_HEADER_PAGE (64 * KIB)
#define MAX_SUBBUF	(16 * MIB)
#define MAX_NOTE	MIB
#define CLOCK_TEXT_MAX	4096
#define UNAME_MAX	4096

/* --- the sections */

/* Not a trace.dat: what it is, if it is something that people have */
static int refuse_other(struct cursor *c)
{
	uint8_t bytes[FILE_KIND_BYTES];
	size_t n = MIN(cursor_left(c), sizeof(bytes));
	const char *kind;
	int r = io_pread_all(c->dat->fd, bytes, n, c->pos);

	if (r < 0)
		return fault_errno(c->why, r, "%s: cannot read", c->dat->path);
	if (n == 0)
		return fault_set(c->why, -EBADMSG, "%s: empty file", c->dat->path);
	if (n >= TRACE_DAT_MAGIC_SIZE && memcmp(bytes, TRACE_DAT_MAGIC, TRACE_DAT_MAGIC_SIZE) == 0)
		return 0;
	kind = file_kind(bytes, n);
	if (kind)
		return fault_set(c->why, -EBADMSG, "%s: not a trace.dat, but %s", c->dat->path,
				 kind);
	return cursor_broken(c, -EBADMSG, c->pos,
			     n < TRACE_DAT_MAGIC_SIZE ? "too short for a trace.dat"
						      : "not a trace.dat: wrong magic");
}

static void read_version(struct cursor *c)
{
	_cleanup_free_ char *version = NULL;
	const uint64_t start = c->pos;

	c->error = refuse_other(c);
	(void)cursor_get(c, TRACE_DAT_MAGIC_SIZE, "the magic");
	version = cursor_string(c, "the version");
	if (version && strcmp(version, "6") == 0)
		c->dat->version = 6;
	else if (version && strcmp(version, "7") == 0 && start == 0)
		c->dat->version = 7;
	else
		(void)cursor_broken(c, -EOPNOTSUPP, start + TRACE_DAT_MAGIC_SIZE,
				    "a version of trace.dat that is not known");
}

static void read_initial(struct cursor *c)
{
	struct trace_dat *dat = c->dat;
	uint64_t at = c->pos, n;

	n = cursor_number(c, 1, "the byte order");
	if (n > 1)
		(void)cursor_broken(c, -EBADMSG, at, "byte order is %" PRIu64 ", neither 0 nor 1",
				    n);
	dat->big_endian = n;
	at = c->pos;
	n = cursor_number(c, 1, "the long size");
	if (n != 4 && n != 8)
		(void)cursor_broken(c, -EBADMSG, at, "long size is %" PRIu64 ", neither 4 nor 8",
				    n);
	dat->long_size = (unsigned)n;
	dat->page_size_offset = at = c->pos;
	n = cursor_number(c, 4, "the page size");
	if (n < 64 || n > MAX_SUBBUF || (n & (n - 1)))
		(void)cursor_broken(c, -EBADMSG, at, "page size is %" PRIu64 ", which cannot be",
				    n);
	dat->page_size = (uint32_t)n;
	if (dat->version == 7 && !c->error)
		(void)trace_dat_v7_open(c);
}

/* A section of version 7 holds what it should and no more: what follows is of another one */
static void end_section(struct cursor *c, const char *what)
{
	if (c->dat->data && !c->error && !trace_dat_data_begins(c->dat->data, c->pos))
		(void)cursor_broken(c, -EBADMSG, c->pos, "%s do not end where their section does",
				    what);
}

/* "\tfield: TYPE NAME;\toffset:N;\tsize:N;…": find NAME's line, read its numbers */
static int header_page_field(const char *text, const char *name, unsigned *ret_offset,
			     unsigned *ret_size)
{
	const char *p = strstr(text, name);

	if (!p || sscanf(p + strlen(name), " offset:%u; size:%u;", ret_offset, ret_size) != 2)
		return -EBADMSG;
	return 0;
}

static int read_header_page(struct cursor *c)
{
	unsigned ts_offset, ts_size, commit_offset, commit_size, data_offset, data_size;
	struct trace_dat *dat = c->dat;
	_cleanup_free_ char *text = NULL;

	cursor_word(c, TRACE_DAT_HEADER_PAGE, sizeof(TRACE_DAT_HEADER_PAGE));
	dat->header_page = cursor_extent(c, 8, "header_page");
	if (dat->header_page.size == 0)
		return cursor_broken(
			c, -EOPNOTSUPP, dat->header_page.offset,
			"header_page is empty: written on a kernel before 2.6.31, not supported");
	if (dat->header_page.size > MAX_HEADER_PAGE)
		return cursor_broken(c, -EBADMSG, dat->header_page.offset,
				     "header_page is %" PRIu64 " bytes long, which cannot be",
				     dat->header_page.size);
	c->error = trace_dat_load(dat, &dat->header_page, MAX_HEADER_PAGE, &text, c->why);
	if (c->error)
		return c->error;
	if (header_page_field(text, " timestamp;", &ts_offset, &ts_size) < 0 ||
	    header_page_field(text, " commit;", &commit_offset, &commit_size) < 0 ||
	    header_page_field(text, " data;", &data_offset, &data_size) < 0)
		return cursor_broken(c, -EBADMSG, dat->header_page.offset,
				     "header_page does not name timestamp, commit and data");
	if (ts_offset != 0 || ts_size != 8 || commit_offset != 8 || data_size > MAX_SUBBUF ||
	    data_offset > 64 || (commit_size != 4 && commit_size != 8))
		return cursor_broken(c, -EOPNOTSUPP, dat->header_page.offset,
				     "header_page has a shape that is not known");
	dat->header_page_subbuf = data_offset + data_size;
	dat->layout = (struct subbuf_layout){
		.size = dat->page_size,
		.data_offset = data_offset,
		.commit_size = (uint8_t)commit_size,
		.big_endian = dat->big_endian,
	};
	if (!subbuf_layout_valid(&dat->layout))
		return cursor_broken(c, -EBADMSG, dat->header_page.offset,
				     "header_page does not fit a page size of %u", dat->page_size);
	return 0;
}

static void read_formats(struct cursor *c, const char *what)
{
	struct trace_dat *dat = c->dat;
	uint32_t system = (uint32_t)dat->n_systems - 1;

	for (uint64_t n = cursor_count(c, MAX_FORMATS, what); n > 0 && !c->error; n--) {
		if (dat->n_formats >= MAX_FORMATS)
			(void)cursor_broken(c, -EBADMSG, c->pos, "more than %u event formats",
					    MAX_FORMATS);
		if (cursor_grow(c, &dat->formats, dat->n_formats, sizeof(*dat->formats)))
			dat->formats[dat->n_formats++] = (struct trace_dat_format){
				.system = system,
				.text = cursor_extent(c, 8, "an event format"),
			};
	}
}

/* @name is taken over; NULL without memory, or after an error */
static void add_system(struct cursor *c, char *name)
{
	struct trace_dat *dat = c->dat;

	if (!name && !c->error)
		c->error = -ENOMEM;
	if (cursor_grow(c, &dat->systems, dat->n_systems, sizeof(*dat->systems)))
		dat->systems[dat->n_systems++] = name;
	else
		free(name);
}

static void read_event_formats(struct cursor *c)
{
	add_system(c, strdup("ftrace"));
	read_formats(c, "the number of ftrace formats");
	end_section(c, "ftrace's formats");
	for (uint64_t n = cursor_count(c, MAX_SYSTEMS, "the number of event systems");
	     n > 0 && !c->error; n--) {
		add_system(c, cursor_string(c, "the name of an event system"));
		read_formats(c, "the number of formats of a system");
	}
}

/* --- the tables: number of CPUs, options, CPU tables of all buffers */

static void read_options(struct cursor *c)
{
	struct trace_dat *dat = c->dat;

	for (;;) {
		uint64_t at = c->pos, id = cursor_number(c, 2, "the options");
		struct trace_dat_extent data;

		if (id == TRACE_DAT_OPTION_END) {
			dat->options_end = at;
			return;
		}
		if (dat->n_options >= MAX_OPTIONS)
			(void)cursor_broken(c, -EBADMSG, at, "more than %u options", MAX_OPTIONS);
		data = cursor_extent(c, 4, "an option");
		if (cursor_grow(c, &dat->options, dat->n_options, sizeof(*dat->options)))
			dat->options[dat->n_options++] =
				(struct trace_dat_option_place){(uint16_t)id, data};
	}
}

/* "options  "… if there, then "flyrecord"; "latency  " is refused */
static void read_kind(struct cursor *c)
{
	uint64_t at = c->pos;
	const uint8_t *p = cursor_get(c, TRACE_DAT_WORD_SIZE, "the kind of data");

	if (p && memcmp(p, TRACE_DAT_OPTIONS, TRACE_DAT_WORD_SIZE) == 0) {
		read_options(c);
		at = c->pos;
		p = cursor_get(c, TRACE_DAT_WORD_SIZE, "the kind of data");
	}
	if (p && memcmp(p, TRACE_DAT_LATENCY, TRACE_DAT_WORD_SIZE) == 0)
		(void)cursor_broken(
			c, -EOPNOTSUPP, at,
			"holds the text of a latency tracer (\"latency\"), not ring buffer data");
	if (p && memcmp(p, TRACE_DAT_FLYRECORD, TRACE_DAT_WORD_SIZE) != 0)
		(void)cursor_broken(c, -EBADMSG, at,
				    "\"options\", \"latency\" or \"flyrecord\" is expected here");
}

/* At the first entry; @name is taken over; NULL without memory, or after an error */
static void read_table(struct cursor *c, uint64_t start, char *name)
{
	struct trace_dat *dat = c->dat;
	struct trace_dat_buffer *buffer;

	if (!name && !c->error)
		c->error = -ENOMEM;
	if (!cursor_grow(c, &dat->buffers, dat->n_buffers, sizeof(*dat->buffers))) {
		free(name);
		return;
	}
	buffer = &dat->buffers[dat->n_buffers++];
	*buffer = (struct trace_dat_buffer){.name = name};
	if (cursor_left(c) / TRACE_DAT_ENTRY_SIZE < dat->n_cpus) {
		(void)cursor_cut(c, "the CPU table");
		return;
	}
	buffer->regions = calloc(MAX(dat->n_cpus, 1U), sizeof(*buffer->regions));
	if (!buffer->regions)
		c->error = -ENOMEM;
	for (uint32_t i = 0; buffer->regions && i < dat->n_cpus; i++) {
		buffer->regions[i].entry = c->pos;
		buffer->regions[i].offset = cursor_number(c, 8, "the CPU table");
		buffer->regions[i].size = cursor_number(c, 8, "the CPU table");
	}
	buffer->table = (struct trace_dat_extent){start, c->pos - start};
}

static void read_cpus(struct cursor *c, const char *what, const char *is, const char *unit)
{
	uint64_t at = c->pos, n = cursor_number(c, 4, what);

	if (n > MAX_CPUS)
		(void)cursor_broken(c, -EBADMSG, at, "%s%s%" PRIu64 "%s, which cannot be", what, is,
				    n, unit);
	c->dat->n_cpus = (uint32_t)n;
}

/* From option number @from on, which is set behind it; NULL: there is none */
static const struct trace_dat_option_place *next_option(const struct trace_dat *dat,
							enum trace_dat_option id, size_t *from)
{
	while (*from < dat->n_options)
		if (dat->options[(*from)++].id == id)
			return &dat->options[*from - 1];
	return NULL;
}

/* The option may change the number of CPUs; the last one counts, as for trace-cmd */
static void read_cpu_count(struct cursor *c)
{
	const struct trace_dat_option_place *o;
	const uint64_t table = c->pos;

	for (size_t i = 0; (o = next_option(c->dat, TRACE_DAT_OPTION_CPUCOUNT, &i));) {
		if (o->data.size < 4)
			(void)cursor_broken(c, -EBADMSG, o->data.offset,
					    "option CPUCOUNT: it is too short");
		c->pos = o->data.offset;
		read_cpus(c, "option CPUCOUNT", ": ", " CPUs");
	}
	c->pos = table;
}

/* The clock text behind the table: readers warn if it is bad and go on, so do we */
static void read_clock(struct cursor *c)
{
	struct fault *why = c->why;
	struct trace_dat_extent clock;
	size_t first = 0;

	if (c->error || !next_option(c->dat, TRACE_DAT_OPTION_TRACECLOCK, &first))
		return;
	c->why = NULL;
	clock = cursor_extent(c, 8, "the trace clock");
	if (clock.size <= CURSOR_NAME_MAX)
		c->dat->clock = clock;
	c->why = why;
	c->error = 0;
}

/*
 * trace-cmd split, 3.3 for one, writes each of these options twice and leaves the offset of the
 * first zero: who reads such a file finds the buffer by the second.
 */
static void read_buffer(struct cursor *c, const struct trace_dat_extent *option)
{
	_cleanup_free_ char *name = NULL;
	const uint8_t *word;
	uint64_t place;

	if ((c->dat->n_buffers + 1) * MAX(c->dat->n_cpus, 64U) > MAX_REGIONS)
		(void)cursor_broken(c, -EBADMSG, option->offset,
				    "more buffers than make sense: %zu of %u CPUs",
				    c->dat->n_buffers, c->dat->n_cpus);
	if (option->size < 9)
		(void)cursor_broken(c, -EBADMSG, option->offset, "option BUFFER: it is too short");
	c->pos = option->offset;
	place = cursor_number(c, 8, "option BUFFER");
	name = cursor_string(c, "the name of a buffer");
	if (c->pos > option->offset + option->size)
		(void)cursor_broken(c, -EBADMSG, option->offset,
				    "option BUFFER: the name of the buffer does not end in it");
	if (c->error || place == 0)
		return;
	if (place > c->dat->file_size) {
		(void)cursor_broken(c, -EBADMSG, option->offset,
				    "option BUFFER of \"%.64s\": it points to 0x%" PRIx64
				    ", behind the end of the file",
				    name, place);
		return;
	}
	c->pos = place;
	word = cursor_get(c, TRACE_DAT_WORD_SIZE, "the kind of data");
	if (word && memcmp(word, TRACE_DAT_FLYRECORD, TRACE_DAT_WORD_SIZE) != 0)
		(void)cursor_broken(c, -EBADMSG, option->offset,
				    "option BUFFER of \"%.64s\": at 0x%" PRIx64
				    ", where it points, is no \"flyrecord\"",
				    name, place);
	read_table(c, place, TAKE_PTR(name));
}

static void read_tables(struct cursor *c)
{
	const struct trace_dat_option_place *o;
	size_t from = 0;

	c->dat->n_cpus_offset = c->pos;
	read_cpus(c, "the number of CPUs", " is ", "");
	read_kind(c);
	read_cpu_count(c);
	read_table(c, c->pos - TRACE_DAT_WORD_SIZE, strdup(""));
	read_clock(c);
	while (!c->error && (o = next_option(c->dat, TRACE_DAT_OPTION_BUFFER, &from)))
		read_buffer(c, &o->data);
}

static int read_frame(struct cursor *c)
{
	struct trace_dat *dat = c->dat;

	read_version(c);
	read_initial(c);
	(void)read_header_page(c);
	cursor_word(c, TRACE_DAT_HEADER_EVENT, sizeof(TRACE_DAT_HEADER_EVENT));
	dat->header_event = cursor_extent(c, 8, "header_event");
	end_section(c, "headers");
	read_event_formats(c);
	end_section(c, "event formats");
	dat->kallsyms = cursor_extent(c, 4, "kallsyms");
	dat->printk_formats = cursor_extent(c, 4, "printk_formats");
	dat->cmdlines = cursor_extent(c, 8, "the task names");
	read_tables(c);
	return c->error;
}

int trace_dat_open_fd(int fd, const char *path, struct trace_dat **ret, struct fault *why)
{
	return trace_dat_open_frame(fd, path, 0, ret, why);
}

int trace_dat_open_frame(int fd, const char *path, uint64_t at, struct trace_dat **ret,
			 struct fault *why)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_free_ uint8_t *window = NULL;
	struct cursor c;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return fault_errno(why, -errno, "%s: cannot stat", path);
	if (S_ISDIR(st.st_mode))
		return fault_set(why, -EISDIR, "%s: is a directory, not a trace.dat", path);
	if (!S_ISREG(st.st_mode))
		return fault_set(why, -EBADMSG, "%s: not a regular file", path);
	dat = calloc(1, sizeof(*dat));
	window = malloc(CURSOR_WINDOW);
	if (!dat || !window)
		return fault_errno(why, -ENOMEM, "%s: cannot read", path);
	dat->fd = fd;
	dat->file_size = (uint64_t)st.st_size;
	dat->path = strdup(path);
	if (!dat->path)
		return fault_errno(why, -ENOMEM, "%s: cannot read", path);
	dat->damages.path = dat->path;
	c = (struct cursor){.dat = dat, .why = why, .window = window, .pos = at};
	r = read_frame(&c);
	if (r == -ENOMEM)
		return fault_errno(why, r, "%s: cannot read", path);
	if (r < 0)
		return r;
	if (dat->data) /* symbols, mostly, which few ask for */
		trace_dat_data_forget(dat->data);
	*ret = TAKE_PTR(dat);
	return 0;
}

int trace_dat_version(int fd, unsigned *ret)
{
	struct trace_dat dat = {.path = (char *)"", .fd = fd};
	_cleanup_free_ uint8_t *window = malloc(CURSOR_WINDOW);
	struct cursor c = {.dat = &dat, .window = window};
	struct stat st;

	if (!window)
		return -ENOMEM;
	if (fstat(fd, &st) < 0)
		return -errno;
	dat.file_size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	read_version(&c);
	if (c.error)
		return c.error;
	*ret = dat.version;
	return 0;
}

int trace_dat_open(const char *path, struct trace_dat **ret, struct fault *why)
{
	_cleanup_close_ int fd = -EBADF;
	int r;

	fd = io_open_at(AT_FDCWD, path, 0);
	if (fd < 0)
		return fault_errno(why, fd, "%s: cannot open", path);
	r = trace_dat_open_fd(fd, path, ret, why);
	if (r < 0)
		return r;
	(*ret)->own_fd = true;
	fd = -EBADF;
	return 0;
}

struct trace_dat *trace_dat_free(struct trace_dat *dat)
{
	if (!dat)
		return NULL;
	for (size_t i = 0; i < dat->n_systems; i++)
		free(dat->systems[i]);
	for (size_t i = 0; i < dat->n_buffers; i++) {
		free(dat->buffers[i].name);
		free(dat->buffers[i].regions);
	}
	free(dat->systems);
	free(dat->formats);
	free(dat->options);
	free(dat->buffers);
	free(dat->kept);
	free(dat->path);
	damages_done(&dat->damages);
	trace_dat_data_free(dat->data);
	if (dat->own_fd)
		close(dat->fd);
	free(dat);
	return NULL;
}

int trace_dat_read_some(const struct trace_dat *dat, void *bytes, size_t size, uint64_t offset,
			size_t *ret, struct fault *why)
{
	int r;

	if (dat->data)
		return trace_dat_data_read(dat->data, bytes, size, offset, ret, why);
	r = io_pread_all(dat->fd, bytes, size, offset);
	if (r == -ENODATA)
		return fault_set(why, r,
				 "%s: offset 0x%" PRIx64
				 ": the file became shorter while it was read",
				 dat->path, offset);
	if (r < 0)
		return fault_errno(why, r, "%s: offset 0x%" PRIx64 ": cannot read", dat->path,
				   offset);
	*ret = size;
	return 0;
}

int trace_dat_read(const struct trace_dat *dat, void *bytes, size_t size, uint64_t offset,
		   struct fault *why)
{
	size_t n;
	int r = 0;

	for (size_t done = 0; done < size && r >= 0; done += n)
		r = trace_dat_read_some(dat, (char *)bytes + done, size - done, offset + done, &n,
					why);
	return r;
}

int trace_dat_timestamp(const struct trace_dat *dat, uint64_t offset, uint64_t end, uint64_t *ret,
			struct fault *why)
{
	uint64_t begin, behind;
	uint8_t bytes[8];
	int r = -EBADMSG;

	if (dat->data && trace_dat_data_known(dat->data, offset, &begin, &behind, ret) &&
	    begin == offset)
		return 0;
	while (r == -EBADMSG && offset < end) {
		size_t n = 0;

		r = trace_dat_read_some(dat, bytes, sizeof(bytes), offset, &n, why);
		offset += n;
	}
	if (r < 0 && r != -EBADMSG)
		return r;
	*ret = r < 0 ? UINT64_MAX : trace_dat_u64(dat, bytes);
	return 0;
}

/*
 * Where between two sub-buffers of a region to look next: in the middle, or where a chunk begins
 * whose time is known, as long as there is one.
 */
static uint64_t choose_probe(const struct trace_dat *dat, uint64_t region, uint64_t low,
			     uint64_t high)
{
	uint64_t middle = low + (high - low) / 2, begin, end, timestamp;

	if (!dat->data || !trace_dat_data_known(dat->data, region + middle * dat->page_size, &begin,
						&end, &timestamp))
		return middle;
	begin = (begin - region) / dat->page_size;
	end = (end - region) / dat->page_size;
	return begin >= low ? begin : end < high ? end : middle;
}

int trace_dat_search(const struct trace_dat *dat, const struct trace_dat_extent *region,
		     bool (*before)(const void *userdata, uint64_t timestamp), const void *userdata,
		     uint64_t *ret, struct fault *why)
{
	const bool known = dat->data && trace_dat_data_times_wrong(dat->data) == 0;
	uint64_t low = 0, high = region->size / dat->page_size;

	while (low < high) {
		uint64_t probe = choose_probe(dat, region->offset, low, high), timestamp;
		int r = trace_dat_timestamp(dat, region->offset + probe * dat->page_size,
					    region->offset + region->size, &timestamp, why);

		if (r < 0)
			return r;
		if (before(userdata, timestamp))
			low = probe + 1;
		else
			high = probe;
	}
	if (known && trace_dat_data_times_wrong(dat->data) != 0) /* they led astray: without them */
		return trace_dat_search(dat, region, before, userdata, ret, why);
	*ret = low;
	return 0;
}

struct trace_dat_at trace_dat_at(const struct trace_dat *dat, uint64_t offset)
{
	struct data_place place = {.offset = offset};
	struct trace_dat_at at;

	if (dat->data)
		place = trace_dat_data_place(dat->data, offset);
	if (place.packed)
		(void)snprintf(at.text, sizeof(at.text), "0x%" PRIx64 " (unpacked 0x%" PRIx64 ")",
			       place.offset, place.inside);
	else
		(void)snprintf(at.text, sizeof(at.text), "0x%" PRIx64, place.offset);
	return at;
}

int trace_dat_load(const struct trace_dat *dat, const struct trace_dat_extent *extent, uint64_t max,
		   char **ret, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	int r;

	if (extent->size > max)
		return fault_set(why, -EFBIG,
				 "%s: offset %s: %" PRIu64 " bytes are more than the %" PRIu64
				 " that make sense here",
				 dat->path, trace_dat_at(dat, extent->offset).text, extent->size,
				 max);
	text = malloc(extent->size + 1);
	if (!text)
		return fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	r = trace_dat_read(dat, text, extent->size, extent->offset, why);
	if (r < 0)
		return r;
	text[extent->size] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}

int trace_dat_load_option(const struct trace_dat *dat, enum trace_dat_option id, uint64_t max,
			  char **ret, struct fault *why)
{
	size_t first = 0;
	const struct trace_dat_option_place *option = next_option(dat, id, &first);
	int r = option ? trace_dat_load(dat, &option->data, max, ret, why) : 0;

	return option && r >= 0 ? 1 : r;
}

int trace_dat_next_note(const struct trace_dat *dat, const char *words, size_t *from, char **ret,
			struct fault *why)
{
	const struct trace_dat_option_place *option;
	const size_t n = strlen(words);

	while ((option = next_option(dat, TRACE_DAT_OPTION_CPUSTAT, from))) {
		_cleanup_free_ char *text = NULL;
		int r;

		r = trace_dat_load(dat, &option->data, MAX_NOTE, &text, why);
		if (r < 0)
			return r;
		if (strncmp(text, words, n) != 0)
			continue;
		*ret = strdup(text + n);
		return *ret ? 1 : fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	}
	return 0;
}

bool trace_dat_note_number(const char *text, const char *key, uint64_t *ret)
{
	size_t length = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, key, length) == 0 && sscanf(p + length, ": %" SCNu64, ret) == 1)
			return true;
	}
	return false;
}

int trace_dat_from(const struct trace_dat *dat, uint64_t *ret, struct fault *why)
{
	size_t next = 0;
	int found = 0;

	*ret = 0;
	for (;;) {
		_cleanup_free_ char *text = NULL;
		const char *line;
		int r = trace_dat_next_note(dat, "CPU: ", &next, &text, why);

		if (r <= 0)
			return r < 0 ? r : found;
		line = strstr(text, "\n" TRACE_DAT_FROM);
		if (!line)
			continue;
		*ret = MAX(*ret, strtoull(line + strlen("\n" TRACE_DAT_FROM), NULL, 10));
		found = 1;
	}
}

int trace_dat_date(const struct trace_dat *dat, int64_t *ret, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	int r = trace_dat_load_option(dat, TRACE_DAT_OPTION_DATE, 64, &text, why);

	if (r > 0)
		*ret = (int64_t)strtoull(text, NULL, 0);
	return r;
}

int trace_dat_clock(const struct trace_dat *dat, char **ret, struct fault *why)
{
	return trace_dat_load(dat, &dat->clock, CLOCK_TEXT_MAX, ret, why);
}

char *trace_dat_clock_name(const char *text)
{
	const char *begin = strchr(text, '['), *end = begin ? strchr(begin, ']') : NULL;

	return end ? strndup(begin + 1, (size_t)(end - begin - 1)) : strdup("");
}

/* "Linux HOST RELEASE MACHINE" */
int trace_dat_host(const struct trace_dat *dat, char **ret, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	const char *host;
	size_t n;
	int r = trace_dat_load_option(dat, TRACE_DAT_OPTION_UNAME, UNAME_MAX, &text, why);

	if (r < 0)
		return r;
	host = text ? strchr(text, ' ') : NULL;
	n = host ? strcspn(++host, " ") : 0;
	*ret = n > 0 ? strndup(host, n) : strdup("unknown");
	return *ret ? 0 : fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
}

int trace_dat_own_place(const struct trace_dat *dat, uint64_t *place, uint64_t *size)
{
	if (dat->own.size == 0)
		return -ENOENT;
	*place = dat->own.offset;
	*size = dat->own.size;
	return 0;
}

int trace_dat_check_region(const struct trace_dat *dat, const struct trace_dat_buffer *buffer,
			   unsigned cpu, struct fault *why)
{
	const struct trace_dat_region *r = &buffer->regions[cpu];
	const char *what = NULL;

	if (r->size == 0)
		return 0;
	if (r->offset > dat->file_size)
		what = "begins behind the end of the file";
	else if (r->size > dat->file_size - r->offset)
		what = "runs past the end of the file";
	else if (r->offset % dat->page_size)
		what = "is not aligned to the page size";
	else if (r->size % dat->page_size)
		what = "is not a whole number of sub-buffers";
	else if (r->offset < dat->buffers[0].table.offset + dat->buffers[0].table.size)
		what = "overlaps the file's header";
	if (!what)
		return 0;
	return fault_set(
		why, -EBADMSG,
		"%s: offset %s: cpu %u: the region at 0x%" PRIx64 " of %" PRIu64 " bytes %s",
		dat->path, trace_dat_at(dat, r->entry).text, cpu, r->offset, r->size, what);
}

uint16_t trace_dat_u16(const struct trace_dat *dat, const void *bytes)
{
	uint16_t v;

	memcpy(&v, bytes, sizeof(v));
	return dat->big_endian ? be16toh(v) : le16toh(v);
}

uint32_t trace_dat_u32(const struct trace_dat *dat, const void *bytes)
{
	uint32_t v;

	memcpy(&v, bytes, sizeof(v));
	return dat->big_endian ? be32toh(v) : le32toh(v);
}

uint64_t trace_dat_u64(const struct trace_dat *dat, const void *bytes)
{
	uint64_t v;

	memcpy(&v, bytes, sizeof(v));
	return dat->big_endian ? be64toh(v) : le64toh(v);
}

void trace_dat_put(const struct trace_dat *dat, void *bytes, size_t size, uint64_t value)
{
	uint8_t *to = bytes;

	for (size_t i = 0; i < size; i++)
		to[dat->big_endian ? size - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

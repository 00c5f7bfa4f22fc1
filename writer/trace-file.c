/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "formats/trace-dat-read.h"
#include "formats/trace-dat.h"
#include "writer/options.h"
#include "writer/probes.h"
#include "writer/sections.h"
#include "writer/store.h"
#include "writer/trace-file-internal.h"

#define REGION_MIN (4 * MIB)

#define STREAM_BUFFER (64 * KIB) /* a system call costs more than it to fill */

/* fds are -EBADF. NULL: no memory. */
static struct trace_file *trace_file_alloc(unsigned n_cpus)
{
	_cleanup_(trace_file_freep) struct trace_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->fd = file->direct_fd = -EBADF;
	file->n_cpus = n_cpus;
	file->cpustat_at = calloc(n_cpus, sizeof(*file->cpustat_at));
	file->cpustat_room = calloc(n_cpus, sizeof(*file->cpustat_room));
	file->region_at = calloc(n_cpus, sizeof(*file->region_at));
	if (!file->cpustat_at || !file->cpustat_room || !file->region_at)
		return NULL;
	return TAKE_PTR(file);
}

void trace_file_free(struct trace_file *file)
{
	if (!file)
		return;
	if (file->direct_fd != file->fd)
		close_p(&file->direct_fd);
	close_p(&file->fd);
	free(file->cpustat_at);
	free(file->cpustat_room);
	free(file->region_at);
	free(file->live);
	own_tasks_writer_free(file->tasks);
	free(file);
}

/* Does a read of one sub-buffer through O_DIRECT work at the place where data will go? */
static bool direct_works(int fd, uint64_t at, unsigned size)
{
	_cleanup_free_ void *buffer = NULL;

	return posix_memalign(&buffer, (size_t)sysconf(_SC_PAGESIZE), size) == 0 &&
	       pread(fd, buffer, size, (off_t)at) >= 0;
}

/* The second, O_DIRECT descriptor, after a trial. @name: of the file as it is called now. */
static int trace_file_open_direct(struct trace_file *file, int dir_fd, const char *name,
				  enum storage_direct direct, struct fault *why)
{
	_cleanup_close_ int fd = -EBADF;

	file->direct_fd = file->fd;
	if (direct == STORAGE_DIRECT_NO)
		return 0;
	fd = openat(dir_fd, name, O_RDWR | O_DIRECT | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && direct_works(fd, file->region_at[0], file->subbuf_size)) {
		file->direct_fd = TAKE_FD(fd);
		return 0;
	}
	if (direct == STORAGE_DIRECT_YES)
		return fault_set(
			why, -EOPNOTSUPP,
			"Direct=yes, but this file system has no O_DIRECT for %u byte blocks",
			file->subbuf_size);
	return 0;
}

/* --- the first bytes of a file in the making */

/* Names, the CPU count, options, table and clock */
static int put_tables(FILE *out, struct trace_file *file, const struct trace_file_params *params,
		      const struct options *o)
{
	struct sections_places places;
	int r = sections_put_tables(out, "", 0, params->names_room, params->n_cpus, o,
				    params->clock, &places);

	if (r < 0)
		return r;
	file->names_at = places.names_at;
	file->names_room = places.names_room;
	for (unsigned cpu = 0; cpu < params->n_cpus; cpu++) {
		file->cpustat_at[cpu] = places.options_at + o->cpustat_at[cpu];
		file->cpustat_room[cpu] = TRACE_FILE_CPUSTAT_ROOM;
	}
	file->table_at = places.table_at;
	file->live_at = round_up((uint64_t)ftello(out), LIVE_BLOCK_ALIGN);
	return 0;
}

/* Flyrec's own section, which is in this machine's byte order */
static int prepare_own(struct trace_file *file, const struct trace_file_params *params,
		       uint8_t **ret)
{
	struct own_content content = params->own;
	int r;

	file->own_at = file->live_at + 2 * live_block_size(file->n_cpus);
	if (content.clocks) {
		file->clocks = *content.clocks;
		memcpy(file->clocks.boot_id, params->boot_id, sizeof(file->clocks.boot_id));
		content.clocks = &file->clocks;
	}
	r = own_content_build(&content, ret, &file->own_size, &file->own);
	if (file->own.clocks > 0)
		file->own.clocks += file->own_at;
	if (file->own.tasks > 0)
		file->own.tasks += file->own_at;
	if (file->own.shed > 0)
		file->own.shed += file->own_at;
	return r;
}

/* One behind the other: it is known how large they will be */
static int place_dense(struct trace_file *file, const struct trace_file_params *params,
		       struct fault *why)
{
	uint64_t align = MAX((uint64_t)REGION_ALIGN, (uint64_t)params->subbuf_size);
	uint64_t at = round_up(file->own_at + file->own_size, align);

	for (unsigned cpu = 0; cpu < file->n_cpus; cpu++) {
		file->region_at[cpu] = at;
		at = round_up(at + params->rooms[cpu], align);
	}
	file->end = at;
	file->live->phase = LIVE_DENSE;
	file->live->unit = (uint32_t)align;
	return ftruncate(file->fd, (off_t)at) < 0
		       ? fault_errno(why, -errno, "cannot set the file's size")
		       : 0;
}

/* Where the regions go: as far apart as wanted, or as the file system's largest file allows */
static int place_regions(struct trace_file *file, const struct trace_file_params *params,
			 struct fault *why)
{
	uint64_t align = MAX((uint64_t)REGION_ALIGN, (uint64_t)params->subbuf_size);
	uint64_t first = round_up(file->own_at + file->own_size, align);
	uint64_t wanted = MIN(params->max_file_size, (uint64_t)INT64_MAX / 2) + params->slack;
	uint64_t stride = round_up(MAX(wanted, REGION_MIN), align);

	for (;;) {
		uint64_t end;

		errno = EFBIG; /* of numbers that are too large to ask for */
		if (stride < params->slack || stride < REGION_MIN)
			return fault_set(why, -EFBIG,
					 "this file system's largest file is too small for %u CPUs",
					 file->n_cpus);
		if (!__builtin_mul_overflow(stride, file->n_cpus, &end) &&
		    end < INT64_MAX - first && ftruncate(file->fd, (off_t)(first + end)) >= 0) {
			file->end = first + end;
			break;
		}
		if (errno != EFBIG && errno != EINVAL)
			return fault_errno(why, -errno, "cannot set the file's size");
		stride = round_up(stride / 2, align);
	}
	for (unsigned cpu = 0; cpu < file->n_cpus; cpu++)
		file->region_at[cpu] = first + cpu * stride;
	return 0;
}

static int write_offsets(struct trace_file *file)
{
	int r = 0;

	for (unsigned cpu = 0; cpu < file->n_cpus && r >= 0; cpu++)
		r = trace_file_write_offset(file, cpu, file->region_at[cpu]);
	return r;
}

static int fill(struct trace_file *file, const struct trace_file_params *params, struct fault *why)
{
	_cleanup_free_ char *probes = NULL;
	struct options_params wanted = {
		.n_cpus = params->n_cpus,
		.cpustat_room = TRACE_FILE_CPUSTAT_ROOM,
		.clock = params->clock,
		.has_date = params->has_date,
		.date_usec = params->date_usec,
		.trace_id = file->live->trace_id,
		.note = params->note,
		.uname = params->uname,
	};
	_cleanup_(options_done) struct options options = {0};
	_cleanup_free_ char *buffer = malloc(STREAM_BUFFER);
	_cleanup_fclose_ FILE *out = NULL; /* before its buffer */
	_cleanup_free_ uint8_t *own = NULL;
	int r;

	r = probes_read(params->source.tracing_fd, params->source.systems, params->source.build_ids,
			&probes);
	if (r < 0)
		return fault_errno(why, r, "cannot read dynamic_events of tracefs");
	wanted.probes = probes;
	r = options_make(&wanted, &options);
	if (r < 0)
		return r;
	out = sections_open(file->fd);
	if (!out)
		return -errno;
	if (buffer)
		(void)setvbuf(out, buffer, _IOFBF, STREAM_BUFFER);
	r = metadata_write(out, &params->source, params->subbuf_size, params->symbols, why);
	if (r >= 0)
		r = put_tables(out, file, params, &options);
	if (fflush(out) != 0 && r >= 0)
		r = -errno;
	if (r < 0)
		return r;
	r = prepare_own(file, params, &own);
	if (r < 0)
		return r;
	r = params->rooms ? place_dense(file, params, why) : place_regions(file, params, why);
	if (r >= 0)
		r = write_offsets(file);
	if (r >= 0 && own)
		r = io_pwrite_all(file->fd, own, file->own_size, file->own_at);
	return r < 0 ? r : live_block_write(file->fd, file->live_at, file->live);
}

int trace_file_create(int dir_fd, const char *name, const struct trace_file_params *params,
		      struct trace_file **ret, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = trace_file_alloc(params->n_cpus);
	char tmp[STORE_NAME_SIZE + 8];
	int r;

	if (!file)
		return fault_errno(why, -ENOMEM, "cannot create %s", name);
	file->subbuf_size = params->subbuf_size;
	file->has_date = params->has_date;
	file->date_usec = params->date_usec;
	file->live = live_block_new(params->n_cpus, params->boot_id, options_new_trace_id());
	if (!file->live)
		return fault_errno(why, -ENOMEM, "cannot create %s", name);
	file->fd = store_create_new(dir_fd, name);
	if (file->fd < 0)
		return fault_errno(why, file->fd, "cannot create %s", name);
	if (why)
		why->error = 0;
	r = fill(file, params, why);
	store_new_name(name, tmp);
	if (r >= 0)
		r = trace_file_open_direct(file, dir_fd, tmp, params->direct, why);
	if (r < 0) {
		store_drop_new(dir_fd, name);
		return why && why->error ? r : fault_errno(why, r, "cannot create %s", name);
	}
	*ret = TAKE_PTR(file);
	return 0;
}

int trace_file_publish(int dir_fd, const char *name, bool replace, struct fault *why)
{
	int r = store_publish_new(dir_fd, name, replace);

	return r < 0 ? fault_errno(why, r, "cannot rename .%s.new to %s", name, name) : 0;
}

/* --- a file in use */

static bool same_boot_order(const struct trace_dat *dat)
{
	return dat->big_endian == (__BYTE_ORDER == __BIG_ENDIAN) && dat->long_size == sizeof(long);
}

static int take_options(const struct trace_dat *dat, struct trace_file *file, struct fault *why)
{
	unsigned cpu = 0;
	int r;

	for (size_t i = 0; i < dat->n_options; i++) {
		const struct trace_dat_option_place *o = &dat->options[i];

		if (o->id == TRACE_DAT_OPTION_CPUSTAT && cpu < file->n_cpus) {
			file->cpustat_at[cpu] = o->data.offset;
			file->cpustat_room[cpu++] = o->data.size;
		}
	}
	r = trace_dat_date(dat, &file->date_usec, why);
	if (r == -EFBIG)
		return fault_set(why, -EBADMSG, "%s: malformed DATE option", dat->path);
	file->has_date = r > 0;
	return MIN(r, 0);
}

/* A file of an earlier version has no room for it; what cannot be read is left as it is */
static int take_own(const struct trace_dat *dat, struct trace_file *file, struct fault *why)
{
	struct fault ignored;
	int r = own_content_clocks(dat, &file->clocks, &file->own, &ignored);

	return r == -ENOMEM ? fault_errno(why, r, "%s: cannot open", dat->path) : 0;
}

/*
 * The table may be damaged like everything else: what does not look as trace_file_create() makes it
 * must not be written to, or grow to where it says.
 */
static int check_regions(const struct trace_file *file, const char *name, struct fault *why)
{
	bool sparse = file->live->phase == LIVE_SPARSE;
	const uint64_t *at = file->region_at;
	uint64_t stride = file->n_cpus > 1 ? at[1] - at[0] : 0;

	if (at[0] < file->live_at + 2 * live_block_size(file->n_cpus))
		return fault_set(why, -EBADMSG, "%s: regions begin before the header ends", name);
	if (at[0] % file->subbuf_size != 0 || at[0] > INT64_MAX / 2 ||
	    (sparse && (stride > INT64_MAX / 2 / file->n_cpus || stride % file->subbuf_size != 0)))
		return fault_set(why, -EBADMSG, "%s: regions are where none can be", name);
	for (unsigned cpu = 1; cpu < file->n_cpus; cpu++) {
		if (at[cpu] < at[cpu - 1] || (sparse && at[cpu] == at[cpu - 1]))
			return fault_set(why, -EBADMSG, "%s: regions are not in order", name);
		if (sparse && at[cpu] - at[cpu - 1] != stride)
			return fault_set(why, -EBADMSG, "%s: regions are not equally far apart",
					 name);
	}
	return 0;
}

static int take_layout(const struct trace_dat *dat, struct trace_file *file, struct fault *why)
{
	const struct trace_dat_buffer *buffer = &dat->buffers[0];
	int r;

	if (!same_boot_order(dat) || dat->clock.size == 0 || dat->n_cpus == 0)
		return fault_set(why, -EBADMSG,
				 "%s: not recorded by flyrec on this kind of machine", dat->path);
	file->subbuf_size = dat->page_size;
	file->names_at = dat->cmdlines.offset;
	file->names_room = dat->cmdlines.size;
	file->names_used = file->names_room;
	file->table_at = buffer->regions[0].entry;
	file->live_at = live_block_place(dat->clock.offset + dat->clock.size);
	for (unsigned cpu = 0; cpu < file->n_cpus; cpu++)
		file->region_at[cpu] = buffer->regions[cpu].offset;
	r = live_block_read(file->fd, file->live_at, file->n_cpus, &file->live);
	if (r == -ENODATA)
		return fault_set(why, -EBADMSG, "%s: not a live flyrec file", dat->path);
	if (r < 0)
		return fault_errno(why, r, "%s: cannot read the live block", dat->path);
	r = check_regions(file, dat->path, why);
	if (r < 0)
		return r;
	/* Regions of a sparse file are equally far apart: so we know where the last one ends */
	file->end = dat->file_size;
	if (file->live->phase == LIVE_SPARSE && file->n_cpus > 1)
		file->end =
			2 * file->region_at[file->n_cpus - 1] - file->region_at[file->n_cpus - 2];
	r = take_options(dat, file, why);
	return r < 0 ? r : take_own(dat, file, why);
}

/*
 * Cut short from outside: give it its size back, so that readers accept the table again. What had
 * been synced is gone: noted first, or else who is killed here would trust it next time.
 */
static int restore_size(struct trace_file *file, const char *name, struct fault *why)
{
	struct stat st;
	int r;

	if (fstat(file->fd, &st) < 0)
		return fault_errno(why, -errno, "%s: cannot stat", name);
	if ((uint64_t)st.st_size <= file->region_at[0])
		return fault_set(why, -ENODATA, "%s: ends before its data", name);
	file->was_cut = (uint64_t)st.st_size < file->end;
	if (!file->was_cut)
		return 0;
	memset(file->live->synced, 0, file->n_cpus * sizeof(file->live->synced[0]));
	r = live_block_write(file->fd, file->live_at, file->live);
	if (r >= 0 && ftruncate(file->fd, (off_t)file->end) < 0)
		r = errno == EFBIG ? -EBADMSG : -errno; /* so it never had that size */
	return r < 0 ? fault_errno(why, r, "%s: cannot set the file's size", name) : 0;
}

int trace_file_open(int dir_fd, const char *name, enum storage_direct direct,
		    struct trace_file **ret, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct stat st;
	int r;

	fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return fault_errno(why, -errno, "%s: cannot open", name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return fault_set(why, -EBADMSG, "%s: not a regular file", name);
	r = trace_dat_open_fd(fd, name, &dat, why);
	if (r < 0)
		return r;
	if (dat->version != 6)
		return fault_set(why, -EOPNOTSUPP, "%s: version %u, which is not one to write to",
				 name, dat->version);
	file = trace_file_alloc(dat->n_cpus);
	if (!file)
		return fault_errno(why, -ENOMEM, "%s: cannot open", name);
	file->fd = TAKE_FD(fd);
	r = take_layout(dat, file, why);
	if (r >= 0)
		r = restore_size(file, name, why);
	if (r >= 0)
		r = trace_file_open_direct(file, dir_fd, name, direct, why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(file);
	return 0;
}

unsigned trace_file_phase(const struct trace_file *file)
{
	return file->live->phase;
}

unsigned trace_file_n_cpus(const struct trace_file *file)
{
	return file->n_cpus;
}

unsigned trace_file_subbuf_size(const struct trace_file *file)
{
	return file->subbuf_size;
}

uint64_t trace_file_trace_id(const struct trace_file *file)
{
	return file->live->trace_id;
}

const struct live_block *trace_file_live_block(const struct trace_file *file)
{
	return file->live;
}

bool trace_file_was_cut(const struct trace_file *file)
{
	return file->was_cut;
}

uint64_t trace_file_header_size(const struct trace_file *file)
{
	return file->region_at[0];
}

uint64_t trace_file_disk_bytes(const struct trace_file *file)
{
	struct stat st;

	return fstat(file->fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

bool trace_file_is_direct(const struct trace_file *file)
{
	return file->direct_fd != file->fd;
}

static uint64_t region_end(const struct trace_file *file, unsigned cpu)
{
	return cpu + 1 < file->n_cpus ? file->region_at[cpu + 1] : file->end;
}

void trace_file_region(const struct trace_file *file, unsigned cpu, struct trace_file_region *ret)
{
	*ret = (struct trace_file_region){
		.data_fd = file->direct_fd,
		.buffered_fd = file->fd,
		.offset = file->region_at[cpu],
		.room = region_end(file, cpu) - file->region_at[cpu],
		.size_at = trace_dat_size_at(file->table_at, cpu),
	};
	(void)trace_file_read_size(file, cpu, &ret->size);
}

int trace_file_read_size(const struct trace_file *file, unsigned cpu, uint64_t *ret)
{
	return io_pread_all(file->fd, ret, sizeof(*ret), trace_dat_size_at(file->table_at, cpu));
}

/* What lies behind a region's data becomes a hole: preallocation, or data that was cut off */
static int punch_tail(struct trace_file *file, unsigned cpu, uint64_t size)
{
	uint64_t from = file->region_at[cpu] + size;
	uint64_t to = region_end(file, cpu);

	if (from >= to || fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				    (off_t)from, (off_t)(to - from)) >= 0)
		return 0;
	return errno == EOPNOTSUPP ? 0 : -errno;
}

int trace_file_write_offset(struct trace_file *file, unsigned cpu, uint64_t offset)
{
	return io_pwrite_all(file->fd, &offset, sizeof(offset),
			     trace_dat_entry_at(file->table_at, cpu));
}

int trace_file_set_size(struct trace_file *file, unsigned cpu, uint64_t size)
{
	int r = io_pwrite_all(file->fd, &size, sizeof(size),
			      trace_dat_size_at(file->table_at, cpu));

	return r < 0 ? r : punch_tail(file, cpu, size);
}

size_t trace_file_names_room(const struct trace_file *file)
{
	return file->names_room;
}

int trace_file_write_names(struct trace_file *file, const char *text)
{
	size_t used = file->names_room;
	int r;

	while (used > 0 && text[used - 1] == '\n')
		used--;
	used = MIN(used + 1, file->names_room);
	file->names_used = MAX(used, file->names_used); /* also of a write that fails half way */
	r = io_pwrite_all(file->fd, text, file->names_used, file->names_at);
	if (r >= 0)
		file->names_used = used;
	return r;
}

int trace_file_write_cpustat(struct trace_file *file, unsigned cpu, const char *text)
{
	size_t room = file->cpustat_room[cpu];
	_cleanup_free_ char *padded = NULL;

	if (room < 2)
		return 0;
	padded = malloc(room);
	if (!padded)
		return -ENOMEM;
	options_cpustat(padded, room, text);
	return io_pwrite_all(file->fd, padded, room, file->cpustat_at[cpu]);
}

int trace_file_add_clock(struct trace_file *file, const struct own_clock *reading)
{
	uint8_t record[OWN_CLOCKS_RECORD];
	unsigned slot;

	if (file->own.clocks == 0)
		return 0;
	slot = own_clocks_add(&file->clocks, reading);
	own_clocks_put_record(&file->clocks.slots[slot], __BYTE_ORDER == __BIG_ENDIAN, record);
	return io_pwrite_all(file->fd, record, sizeof(record),
			     file->own.clocks + OWN_CLOCKS_HEAD + slot * OWN_CLOCKS_RECORD);
}

/* What the file says already; of what is damaged nothing */
static int read_sheds(const struct trace_file *file, uint8_t *bytes, struct own_sheds *sheds)
{
	const struct own_places *own = &file->own;
	const bool big_endian = __BYTE_ORDER == __BIG_ENDIAN;
	uint8_t head[OWN_ENTRY_HEAD], expected[OWN_ENTRY_HEAD];
	int r = io_pread_all(file->fd, head, sizeof(head), own->shed - OWN_ENTRY_HEAD);
	struct own_entry entry = {
		.kind = OWN_SHED,
		.room = own->shed_room,
		.size = r < 0 ? 0 : own_u32(big_endian, head + 8),
		.data = bytes,
	};

	if (r >= 0 && entry.size <= entry.room)
		r = io_pread_all(file->fd, bytes, entry.size, own->shed);
	if (r < 0 || entry.size > entry.room)
		return r;
	own_section_put_head(&entry, big_endian, expected);
	return memcmp(head, expected, sizeof(head)) == 0
		       ? own_sheds_take(sheds, bytes, entry.size, NULL, NULL)
		       : 0;
}

int trace_file_write_sheds(struct trace_file *file, const struct own_sheds *sheds, uint64_t ended)
{
	_cleanup_own_sheds_ struct own_sheds all = {};
	_cleanup_free_ uint8_t *bytes = NULL;
	_cleanup_free_ char *lines = NULL;
	struct own_entry entry = {.kind = OWN_SHED, .room = file->own.shed_room};
	size_t size;
	int r;

	if (file->own.shed == 0)
		return 0;
	bytes = malloc(OWN_ENTRY_HEAD + (size_t)entry.room);
	r = bytes ? read_sheds(file, bytes + OWN_ENTRY_HEAD, &all) : -ENOMEM;
	if (r >= 0 && ended > 0)
		own_sheds_end(&all, ended);
	if (r >= 0)
		r = own_sheds_add_all(&all, sheds);
	if (r >= 0)
		r = own_sheds_put(&all, entry.room, &lines, &size);
	if (r < 0)
		return r;
	entry.size = (uint32_t)size;
	entry.data = bytes + OWN_ENTRY_HEAD;
	memcpy(bytes + OWN_ENTRY_HEAD, lines, size);
	own_section_put_head(&entry, __BYTE_ORDER == __BIG_ENDIAN, bytes);
	return io_pwrite_all(file->fd, bytes, OWN_ENTRY_HEAD + size,
			     file->own.shed - OWN_ENTRY_HEAD);
}

/* The part first, then how much there is: a reader between them finds what was there before */
static int write_tasks(struct trace_file *file, const uint8_t *part, size_t size)
{
	struct own_places *own = &file->own;
	const struct own_entry entry = {
		.kind = OWN_TASKS,
		.room = own->tasks_room,
		.size = own->tasks_used + (uint32_t)size,
	};
	uint8_t head[OWN_ENTRY_HEAD];
	int r = io_pwrite_all(file->fd, part, size, own->tasks + own->tasks_used);

	if (r < 0)
		return r;
	own_section_put_head(&entry, __BYTE_ORDER == __BIG_ENDIAN, head);
	r = io_pwrite_all(file->fd, head, sizeof(head), own->tasks - OWN_ENTRY_HEAD);
	if (r >= 0)
		own->tasks_used = entry.size;
	return r;
}

int trace_file_write_tasks(struct trace_file *file, struct task_names *names)
{
	uint32_t since = file->tasks_since; /* stays, where nothing could be written */
	_cleanup_free_ uint8_t *part = NULL;
	size_t size;
	int r;

	if (file->own.tasks == 0)
		return 0;
	if (!file->tasks)
		file->tasks = own_tasks_writer_new();
	if (!file->tasks)
		return -ENOMEM;
	r = task_names_put_tasks(names, &since, file->tasks,
				 file->own.tasks_room - file->own.tasks_used, &part, &size);
	if (r < 0)
		return r;
	r = part ? write_tasks(file, part, size) : 0;
	if (r < 0)
		own_tasks_forget(file->tasks);
	else
		file->tasks_since = since;
	return r;
}

uint32_t trace_file_tasks_used(const struct trace_file *file, uint32_t *ret_room)
{
	*ret_room = file->own.tasks_room;
	return file->own.tasks_used;
}

int trace_file_sync(struct trace_file *file)
{
	_cleanup_free_ uint64_t *sizes = calloc(file->n_cpus, sizeof(*sizes));
	int r = 0;

	if (!sizes)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < file->n_cpus && r >= 0; cpu++)
		r = trace_file_read_size(file, cpu, &sizes[cpu]);
	if (r < 0)
		return r;
	if (fdatasync(file->fd) < 0) {
		r = -errno;
		/* Direct writes have told of their errors */
		file->unsure |= !trace_file_is_direct(file);
		return r;
	}
	if (!file->unsure)
		memcpy(file->live->synced, sizes, file->n_cpus * sizeof(*sizes));
	r = live_block_write(file->fd, file->live_at, file->live);
	if (r < 0)
		return r;
	/* Through the page cache: give the memory back, nobody reads a trace twice */
	if (!trace_file_is_direct(file))
		for (unsigned cpu = 0; cpu < file->n_cpus; cpu++)
			(void)posix_fadvise(file->fd, (off_t)file->region_at[cpu],
					    (off_t)sizes[cpu], POSIX_FADV_DONTNEED);
	return 0;
}

void trace_file_share(struct trace_file *file, const struct trace_file *other)
{
	struct stat st;
	uint64_t size;

	if (fstat(file->fd, &st) < 0 || st.st_blksize <= 0 || file->names_at != other->names_at)
		return;
	size = file->names_at - sizeof(uint64_t);
	(void)io_share_range(other->fd, file->fd, 0, size - size % (uint64_t)st.st_blksize);
}

bool trace_file_is_unsure(const struct trace_file *file)
{
	return file->unsure;
}

bool trace_file_take_unsure(struct trace_file *file)
{
	bool r = file->unsure && !file->unsure_taken;

	file->unsure_taken |= r;
	return r;
}

bool trace_file_date(const struct trace_file *file, int64_t *ret)
{
	if (file->has_date)
		*ret = file->date_usec;
	return file->has_date;
}

uint64_t trace_file_first_time(const struct trace_file *file)
{
	uint64_t first = 0;

	if (!file->has_date)
		return 0;
	for (unsigned cpu = 0; cpu < file->n_cpus; cpu++) {
		uint64_t size, timestamp;

		if (trace_file_read_size(file, cpu, &size) < 0 || size == 0 ||
		    io_pread_all(file->fd, &timestamp, sizeof(timestamp), file->region_at[cpu]) < 0)
			continue;
		if (timestamp != 0 && (first == 0 || timestamp < first))
			first = timestamp;
	}
	return first == 0 ? 0 : (uint64_t)((int64_t)(first / NSEC_PER_USEC) + file->date_usec);
}

int trace_file_complete(struct trace_file *file)
{
	int r = 0;

	for (unsigned cpu = 0; cpu < file->n_cpus && r >= 0; cpu++) {
		uint64_t size;

		r = trace_file_read_size(file, cpu, &size);
		if (r >= 0)
			r = punch_tail(file, cpu, size);
	}
	return r < 0 ? r : trace_file_sync(file);
}

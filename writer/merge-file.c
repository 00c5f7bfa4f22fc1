/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "formats/own-section.h"
#include "formats/own-shed.h"
#include "writer/frame.h"
#include "writer/merge-file.h"
#include "writer/merge.h"
#include "writer/options.h"

#define CPU_STATS     "CPU: " /* what a CPU's CPUSTAT text begins with */
#define UNAME_MAX     4096
#define NAME_MAX_SIZE 64

void merge_file_done(struct merge_file *file)
{
	for (size_t i = 0; file->buffers && i < file->dat->n_buffers; i++) {
		free(file->buffers[i].name);
		strv_free(file->buffers[i].cpustats);
		free(file->buffers[i].regions);
	}
	free(file->buffers);
	region_read_free(file->read);
	trace_dat_free(file->dat);
	free(file->ids);
	free(file->host);
	free(file->session);
	free(file->probes);
	free(file->note);
	free(file->uname);
	free(file->pids);
	axis_done(&file->axis);
	*file = (struct merge_file){};
}

/* --- how it is called */

/* As a part of a name: letters, digits and ._- */
static char *plain(const char *text, size_t size)
{
	char *copy = strndup(text, MIN(size, (size_t)NAME_MAX_SIZE));

	for (char *c = copy; c && *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    *c))
			*c = '_';
	return copy;
}

/* STATE/SESSION/record/FILE, or snapshot; else the file's name without ".dat" */
static char *session_of(const char *path)
{
	const char *base = strrchr(path, '/'), *folder, *name;
	size_t n;

	base = base ? base + 1 : path;
	for (folder = base; folder > path && folder[-1] == '/'; folder--)
		;
	n = (size_t)(folder - path);
	if ((n > 7 && strncmp(folder - 7, "/record", 7) == 0) ||
	    (n > 9 && strncmp(folder - 9, "/snapshot", 9) == 0)) {
		const char *end = folder - (folder[-1] == 'd' ? 7 : 9);

		for (name = end; name > path && name[-1] != '/'; name--)
			;
		if (end > name)
			return plain(name, (size_t)(end - name));
	}
	n = strlen(base);
	if (n > 4 && strcmp(base + n - 4, ".dat") == 0)
		n -= 4;
	return n > 0 ? plain(base, n) : strdup("trace");
}

static int name_buffers(struct merge_file *file, const struct merge_input *input, struct fault *why)
{
	const struct trace_dat *dat = file->dat;
	_cleanup_free_ char *host = NULL;
	int r = trace_dat_load_option(dat, TRACE_DAT_OPTION_UNAME, UNAME_MAX, &file->uname, why);

	if (r < 0)
		return r;
	r = input->host ? 0 : trace_dat_host(dat, &host, why);
	if (r < 0)
		return r;
	file->host = plain(input->host ? input->host : host, SIZE_MAX);
	file->session = session_of(input->path);
	if (!file->host || !file->session)
		return -ENOMEM;
	for (size_t i = 0; i < dat->n_buffers; i++) {
		struct merge_buffer *b = &file->buffers[i];
		_cleanup_free_ char *name = plain(dat->buffers[i].name, SIZE_MAX);

		b->name = !name ? NULL : strf("%s:%s", file->host, *name ? name : file->session);
		b->regions = calloc(2 * (size_t)MAX(dat->n_cpus, 1U), sizeof(*b->regions));
		if (!b->name || !b->regions)
			return -ENOMEM;
		b->wanted = i > 0 || dat->n_buffers == 1;
		for (unsigned cpu = 0; cpu < dat->n_cpus; cpu++)
			b->wanted |= dat->buffers[i].regions[cpu].size > 0;
	}
	return 0;
}

/* --- what it says */

/* Which buffer the CPUSTAT texts behind this one are of; -1: the text is something else */
static int stats_begin(const struct trace_dat *dat, const char *text)
{
	const size_t n = strlen(TRACE_DAT_BUFFER_STATS);

	if (strncmp(text, TRACE_DAT_BUFFER_STATS, n) != 0)
		return -1;
	for (size_t i = 1; i < dat->n_buffers; i++) {
		size_t size = strlen(dat->buffers[i].name);

		if (strncmp(text + n, dat->buffers[i].name, size) == 0 && text[n + size] == '\n')
			return (int)i;
	}
	return -1;
}

static int take_note(struct merge_file *file, const char *text, size_t *buffer)
{
	_cleanup_free_ char *line = NULL;
	int begins = stats_begin(file->dat, text);
	char **to;

	if (begins >= 0) {
		*buffer = (size_t)begins;
		return 0;
	}
	line = options_trimmed("", text);
	if (!line)
		return -ENOMEM;
	if (strncmp(text, CPU_STATS, strlen(CPU_STATS)) == 0)
		return strv_append(&file->buffers[*buffer].cpustats, line);
	to = strncmp(text, TRACE_DAT_PROBES, strlen(TRACE_DAT_PROBES)) == 0 ? &file->probes
									    : &file->note;
	if (!*to)
		*to = TAKE_PTR(line);
	return 0;
}

static int read_notes(struct merge_file *file, struct fault *why)
{
	size_t from = 0, buffer = 0;

	for (;;) {
		_cleanup_free_ char *text = NULL;
		int r = trace_dat_next_note(file->dat, "", &from, &text, why);

		if (r > 0)
			r = take_note(file, text, &buffer);
		else
			return r;
		if (r < 0)
			return r;
	}
}

/* What this machine cannot write, and what was merged before */
static int check(const struct trace_dat *dat, struct fault *why)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct fault damage;
	size_t size;
	int r;

	if (dat->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
		return fault_set(why, -EOPNOTSUPP, "%s: its byte order is not that of this machine",
				 dat->path);
	if (dat->n_cpus == 0 || dat->n_buffers == 0)
		return fault_set(why, -EINVAL, "%s: it has no CPUs", dat->path);
	r = own_section_read(dat, OWN_HOSTS, &bytes, &size, &damage);
	if (r == 0)
		return fault_set(why, -EINVAL,
				 "%s: is merged already; merge the files that it was made of",
				 dat->path);
	return r == -ENOENT || r == -EBADMSG ? 0 : fault_set(why, r, "%s", damage.text);
}

int merge_file_open(struct merge_file *file, const struct merge_input *input,
		    struct region_read_told told, struct fault *why)
{
	int r = trace_dat_open_fd(input->fd, input->path, &file->dat, why);

	if (r >= 0)
		r = check(file->dat, why);
	if (r < 0)
		return r;
	file->buffers = calloc(file->dat->n_buffers, sizeof(*file->buffers));
	file->pids = calloc(SUBBUF_MOVE_PIDS / 8, 1);
	file->ids = calloc(1, sizeof(*file->ids));
	file->read = region_read_new(file->dat, told);
	file->first = UINT64_MAX;
	if (!file->buffers || !file->pids || !file->ids || !file->read)
		return fault_errno(why, -ENOMEM, "%s: cannot read", input->path);
	r = axis_read(file->dat, &file->axis, why);
	if (r >= 0 && input->has_tsc_offset)
		r = axis_set_offset(&file->axis, file->dat->n_cpus, input->tsc_offset);
	if (r >= 0)
		r = name_buffers(file, input, why);
	if (r >= 0)
		r = read_notes(file, why);
	return r == -ENOMEM ? fault_errno(why, r, "%s: cannot read", input->path) : r;
}

uint64_t merge_file_time(const struct merge_file *file, uint32_t cpu, uint64_t ts)
{
	const struct time_rate rate = axis_rate(&file->axis, cpu);

	return time_rate_apply(&rate, ts) + file->axis.moved;
}

int merge_file_stats(struct merge_file *file, bool larger)
{
	static const char key[] = "\n" TRACE_DAT_FROM;

	for (size_t i = 0; i < file->dat->n_buffers; i++)
		for (char **text = file->buffers[i].cpustats; text && *text; text++) {
			char *from = strstr(*text, key), *end, *moved;
			unsigned cpu = 0;
			uint64_t time;

			if (larger)
				options_drop_bytes(*text);
			if (!from)
				continue;
			from += strlen(key);
			(void)sscanf(*text, CPU_STATS "%u\n", &cpu);
			time = merge_file_time(file, cpu, strtoull(from, &end, 10));
			moved = strf("%.*s%" PRIu64 "%s", (int)(from - *text), *text, time, end);
			if (!moved)
				return -ENOMEM;
			free(*text);
			*text = moved;
		}
	return 0;
}

/* --- flyrec's own section */

struct own_host merge_file_host(const struct merge_file *file, uint64_t frame)
{
	return (struct own_host){
		.host = file->host,
		.name = file->session,
		.frame = frame,
		.moved = file->axis.moved,
		.error = file->axis.error,
	};
}

static void move_clocks(const struct merge_file *file, const char *clock, struct own_entry *entry,
			uint8_t *bytes)
{
	const bool big = file->dat->big_endian;
	struct own_clocks clocks;

	if (own_clocks_take(entry->data, entry->size, big, &clocks, NULL, NULL) < 0) {
		entry->size = 0;
		return;
	}
	memset(clocks.clock, 0, sizeof(clocks.clock));
	(void)strncat(clocks.clock, clock, sizeof(clocks.clock) - 1);
	for (size_t i = 0; i < OWN_CLOCKS_MAX; i++)
		if (clocks.slots[i].sequence > 0 && !(clocks.slots[i].flags & OWN_CLOCK_NO_TRACE))
			clocks.slots[i].trace = merge_file_time(file, 0, clocks.slots[i].trace);
	own_clocks_put(&clocks, big, bytes);
	entry->data = bytes;
}

static int move_sheds(const struct merge_file *file, struct own_entry *entry, char **ret)
{
	_cleanup_own_sheds_ struct own_sheds sheds = {};
	size_t size = 0;
	int r = own_sheds_take(&sheds, entry->data, entry->size, NULL, NULL);

	for (size_t i = 0; i < sheds.n; i++) {
		sheds.list[i].from = merge_file_time(file, 0, sheds.list[i].from);
		if (sheds.list[i].to != UINT64_MAX)
			sheds.list[i].to = merge_file_time(file, 0, sheds.list[i].to);
	}
	if (r >= 0)
		r = own_sheds_put(&sheds, OWN_SHED_ROOM, ret, &size);
	entry->data = (const uint8_t *)*ret;
	entry->size = r >= 0 ? (uint32_t)size : 0;
	return r;
}

/* Findings have times in their text; they can be had again. Return: how many entries are left. */
static size_t keep_entries(struct own_section *own)
{
	size_t n = 0;

	for (size_t i = 0; i < own->n; i++) {
		struct own_entry *e = &own->entries[i];

		if (e->damaged || e->size == 0 || e->kind == OWN_INDEX || e->kind == OWN_FINDINGS)
			continue;
		own->entries[n] = *e;
		own->entries[n++].room = 0;
	}
	return n;
}

/* There is always one, or a reader would find that of the next frame */
int merge_file_own(const struct merge_file *file, const char *clock, uint8_t **ret,
		   size_t *ret_size, struct fault *why)
{
	_cleanup_own_section_ struct own_section own = {};
	_cleanup_free_ struct own_entry *entries = NULL;
	_cleanup_free_ uint8_t *clocks = malloc(OWN_CLOCKS_SIZE);
	_cleanup_free_ char *sheds = NULL;
	struct fault damage;
	int r = own_section_load(file->dat, &own, &damage);
	size_t n;

	if (r < 0 && r != -ENOENT && r != -EBADMSG)
		return fault_set(why, r, "%s", damage.text);
	n = r < 0 ? 0 : keep_entries(&own);
	entries = calloc(n + 1, sizeof(*entries));
	if (!entries || !clocks)
		return fault_errno(why, -ENOMEM, "cannot write");
	r = 0;
	for (size_t i = 0; i < n && r >= 0; i++) {
		entries[i] = own.entries[i];
		if (entries[i].kind == OWN_CLOCKS)
			move_clocks(file, clock, &entries[i], clocks);
		else if (entries[i].kind == OWN_SHED && !sheds)
			r = move_sheds(file, &entries[i], &sheds);
	}
	if (r >= 0)
		r = own_section_build(entries, n, file->dat->big_endian, ret, ret_size);
	return r < 0 ? fault_errno(why, r, "cannot write flyrec's own section") : 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

#include "basic/io.h"
#include "basic/now.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "engine/boot-note.h"
#include "recorder/kernel-text.h"
#include "writer/store.h"

#define NOTE_FILE     "boot"
#define NOTE_SIZE_MAX (64 * MIB) /* formats of all events take a few */

void boot_note_free(struct boot_note *note)
{
	if (!note)
		return;
	free(note->boot_id);
	free(note->release);
	free(note->version);
	free(note->uname);
	free(note->clock);
	metadata_kept_done(&note->kept);
	free(note);
}

static int parse_line(struct boot_note *note, const char *key, const char *value)
{
	uint64_t n;

	if (strcmp(key, "boot-id") == 0)
		return strv_set(&note->boot_id, value);
	if (strcmp(key, "release") == 0)
		return strv_set(&note->release, value);
	if (strcmp(key, "version") == 0)
		return strv_set(&note->version, value);
	if (strcmp(key, "uname") == 0)
		return strv_set(&note->uname, value);
	if (strcmp(key, "clock") == 0)
		return strv_set(&note->clock, value);
	if (strcmp(key, "noted-usec") == 0)
		return parse_u64(value, &note->noted_usec) < 0 ? -EBADMSG : 0;
	if (strcmp(key, "date-usec") == 0) {
		note->has_date = sscanf(value, "%" SCNd64, &note->date_usec) == 1;
		return note->has_date ? 0 : -EBADMSG;
	}
	if (strcmp(key, "sub-buffer-size") == 0) {
		if (parse_u64(value, &n) < 0 || n > UINT32_MAX)
			return -EBADMSG;
		note->subbuf_size = (unsigned)n;
	}
	return 0; /* of a later version */
}

/* What follows the lines */
static int take_blobs(struct boot_note *note, const char *size, const char *data, const char *end)
{
	struct metadata_kept *kept = &note->kept;
	uint64_t n;

	if (parse_u64(size, &n) < 0 || n > (uint64_t)(end - data))
		return -EBADMSG;
	kept->formats = malloc(n + 1);
	kept->printk = strndup(data + n, (size_t)(end - data) - n);
	if (!kept->formats || !kept->printk)
		return -ENOMEM;
	memcpy(kept->formats, data, n);
	kept->formats_size = n;
	return 0;
}

static int parse(struct boot_note *note, char *text, size_t size)
{
	int r = 0;

	for (char *line = text, *next; r >= 0; line = next) {
		char *end = memchr(line, '\n', (size_t)(text + size - line)), *space;

		if (!end)
			return -EBADMSG;
		*end = '\0';
		next = end + 1;
		space = strchr(line, ' ');
		if (!space)
			return -EBADMSG;
		*space = '\0';
		if (strcmp(line, "formats") == 0)
			return take_blobs(note, space + 1, next, text + size);
		r = parse_line(note, line, space + 1);
	}
	return r;
}

int boot_note_read(int dir_fd, struct boot_note **ret)
{
	_cleanup_(boot_note_freep) struct boot_note *note = calloc(1, sizeof(*note));
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r;

	if (!note)
		return -ENOMEM;
	r = io_read_stored_file_at(dir_fd, NOTE_FILE, NOTE_SIZE_MAX, &text, &size);
	if (r >= 0)
		r = parse(note, text, size);
	if (r < 0)
		return r;
	if (!note->boot_id || !note->release || !note->version || !note->uname || !note->clock ||
	    note->subbuf_size == 0 || note->kept.formats_size == 0)
		return -EBADMSG;
	*ret = TAKE_PTR(note);
	return 0;
}

static int compose(const struct trace_file_params *params, const char *boot_id,
		   const struct metadata_kept *kept, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *clock = NULL;
	struct utsname u;
	char *text = NULL;
	FILE *out;
	int r = uname(&u) < 0 ? -errno : kernel_text_selected(params->clock, &clock);

	if (r < 0)
		return r;
	out = open_memstream(&text, ret_size);
	if (!out)
		return -ENOMEM;
	(void)fprintf(out,
		      "boot-id %s\nrelease %s\nversion %s\nuname %s %s %s %s\nclock %s\n"
		      "noted-usec %" PRIu64 "\nsub-buffer-size %u\n",
		      boot_id, u.release, u.version, u.sysname, u.nodename, u.release, u.machine,
		      clock, now_usec(CLOCK_REALTIME), params->subbuf_size);
	if (params->has_date)
		(void)fprintf(out, "date-usec %" PRId64 "\n", params->date_usec);
	(void)fprintf(out, "formats %zu\n", kept->formats_size);
	(void)fwrite(kept->formats, 1, kept->formats_size, out);
	(void)fputs(kept->printk, out);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	return 0;
}

int boot_note_write(int dir_fd, const struct trace_file_params *params, const char *boot_id,
		    struct fault *why)
{
	struct metadata_kept kept = {0};
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r;

	why->error = 0;
	r = metadata_keep(&params->source, params->subbuf_size, &kept, why);
	if (r >= 0)
		r = compose(params, boot_id, &kept, &text, &size);
	metadata_kept_done(&kept);
	if (r >= 0)
		r = io_write_file_at(dir_fd, NOTE_FILE, text, size, 0640);
	return r < 0 && why->error == 0 ? fault_errno(why, r, "cannot write the file boot") : r;
}

int boot_note_remove(int dir_fd)
{
	return unlinkat(dir_fd, NOTE_FILE, 0) < 0 && errno != ENOENT ? -errno : 0;
}

bool boot_note_same_kernel(const struct boot_note *note)
{
	struct utsname u;

	return uname(&u) >= 0 && strcmp(u.release, note->release) == 0 &&
	       strcmp(u.version, note->version) == 0;
}

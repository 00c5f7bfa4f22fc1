/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "basic/crc32.h"
#include "basic/strv.h"
#include "formats/own-cause.h"
#include "formats/own-section.h"

#define HEAD	    16
#define UNCHECKED   8 /* of the head: size and checksum */
#define ALIGN	    16
#define AT_CHECKSUM 4
#define AT_USEC	    8
#define ID_FIRST    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define ID_ANY	    ID_FIRST "._:-"
#define ID_LINE	    "id: "
#define HOST_MAX    64 /* HOST_NAME_MAX */

int own_cause_put(const struct own_cause *cause, bool big_endian, uint8_t **ret, size_t *ret_size)
{
	size_t reason = strlen(cause->reason) + 1, text = strlen(cause->text) + 1;
	size_t size = round_up(HEAD + reason + text, ALIGN);
	uint8_t *bytes = calloc(1, size);

	if (!bytes)
		return -ENOMEM;
	own_put_u32(big_endian, bytes, (uint32_t)size);
	own_put_u64(big_endian, bytes + AT_USEC, cause->usec);
	memcpy(bytes + HEAD, cause->reason, reason);
	memcpy(bytes + HEAD + reason, cause->text, text);
	own_put_u32(big_endian, bytes + AT_CHECKSUM,
		    crc32_add(0, bytes + UNCHECKED, size - UNCHECKED));
	*ret = bytes;
	*ret_size = size;
	return 0;
}

int own_cause_take(const uint8_t *bytes, size_t size, bool big_endian, size_t *at,
		   struct own_cause *ret)
{
	const uint8_t *head = bytes + *at;
	size_t left = size - *at, reason;
	uint32_t own;

	if (left == 0)
		return 0;
	own = left < HEAD ? 0 : own_u32(big_endian, head);
	if (own <= HEAD || own > left || own % ALIGN != 0) {
		*at = size;
		return -EBADMSG;
	}
	*at += own;
	if (crc32_add(0, head + UNCHECKED, own - UNCHECKED) !=
	    own_u32(big_endian, head + AT_CHECKSUM))
		return -EBADMSG;
	reason = strnlen((const char *)head + HEAD, own - HEAD) + 1;
	if (HEAD + reason >= own || !memchr(head + HEAD + reason, '\0', own - HEAD - reason))
		return -EBADMSG;
	*ret = (struct own_cause){
		.usec = own_u64(big_endian, head + AT_USEC),
		.reason = (const char *)head + HEAD,
		.text = (const char *)head + HEAD + reason,
	};
	return 1;
}

int own_cause_add(const struct trace_dat *dat, const struct own_cause *cause, struct fault *why)
{
	_cleanup_free_ uint8_t *before = NULL, *record = NULL, *all = NULL;
	size_t size = 0, more;
	int r = own_section_read(dat, OWN_CAUSE, &before, &size, why);

	if (r == -ENOENT)
		return fault_set(why, r, "%s: no cause", dat->path);
	if (r < 0)
		return r;
	r = own_cause_put(cause, dat->big_endian, &record, &more);
	all = r < 0 ? NULL : malloc(size + more);
	if (!all)
		return fault_errno(why, -ENOMEM, "%s: cannot add a cause", dat->path);
	memcpy(all, before, size);
	memcpy(all + size, record, more);
	r = own_section_write(dat, OWN_CAUSE, all, size + more, why);
	if (r >= 0 && fdatasync(dat->fd) < 0)
		r = fault_errno(why, -errno, "%s: cannot sync", dat->path);
	return r;
}

/* --- ids */

bool own_id_valid(const char *id)
{
	size_t n = strlen(id);

	return n > 0 && n <= OWN_ID_MAX && strchr(ID_FIRST, id[0]) && strspn(id, ID_ANY) == n;
}

void own_id_make(const char *host, uint64_t usec, char ret[static OWN_ID_MAX + 1])
{
	time_t seconds = (time_t)(usec / USEC_PER_SEC);
	char time[20]; /* more is no time of ours */
	struct tm tm;

	host += strcspn(host, ID_FIRST);
	if (!gmtime_r(&seconds, &tm) || strftime(time, sizeof(time), "%Y%m%dT%H%M%S", &tm) == 0)
		time[0] = '\0';
	(void)snprintf(ret, OWN_ID_MAX + 1, "%.*s-%s.%06uZ", HOST_MAX, *host ? host : "host", time,
		       (unsigned)(usec % USEC_PER_SEC));
	for (char *c = ret; *c; c++)
		if (!strchr(ID_ANY, *c))
			*c = '_';
}

/* Those in the lines of one cause */
static int add_ids(const char *text, char ***list)
{
	int r = 0;

	for (const char *line = text; *line && r >= 0; line += strcspn(line, "\n")) {
		_cleanup_free_ char *id = NULL;

		line += *line == '\n';
		if (strncmp(line, ID_LINE, strlen(ID_LINE)) != 0)
			continue;
		id = strndup(line + strlen(ID_LINE), strcspn(line, "\n") - strlen(ID_LINE));
		if (!id)
			return -ENOMEM;
		if (own_id_valid(id) && !strv_contains(*list, id))
			r = strv_append(list, id);
	}
	return r;
}

int own_cause_ids(const uint8_t *bytes, size_t size, bool big_endian, char ***ret)
{
	_cleanup_(strv_freep) char **list = NULL;
	struct own_cause cause;
	size_t at = 0;
	int taken, r = 0;

	while (r >= 0 && (taken = own_cause_take(bytes, size, big_endian, &at, &cause)) != 0)
		if (taken > 0)
			r = add_ids(cause.text, &list);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(list);
	return 0;
}

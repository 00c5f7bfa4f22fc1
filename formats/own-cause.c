/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/crc32.h"
#include "formats/own-cause.h"
#include "formats/own-section.h"

#define HEAD	    16
#define UNCHECKED   8 /* of the head: size and checksum */
#define ALIGN	    16
#define AT_CHECKSUM 4
#define AT_USEC	    8

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

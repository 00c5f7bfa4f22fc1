/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "recorder/ring-header.h"
#include "recorder/ring-read.h"

/* Return: 1, 0 if there is nothing now, or negative errno */
static int read_one(const struct ring_read *r, char *to, uint64_t *ret_timestamp)
{
	unsigned long commit;
	ssize_t n;

	n = TEMP_FAILURE_RETRY(read(r->fd, to, r->subbuf_size));
	/* ENODEV: a CPU that is possible and was never there has no ring buffer */
	if (n < 0)
		return errno == EAGAIN || errno == ENODEV ? 0 : -errno;
	if (n == 0)
		return 0;
	/* Short only if someone reads byte by byte beside us; the rest may be stale */
	memset(to + n, 0, r->subbuf_size - (size_t)n);
	memcpy(ret_timestamp, to, sizeof(*ret_timestamp));
	memcpy(&commit, to + COMMIT_AT, sizeof(commit));
	return *ret_timestamp != 0 && (commit & COMMIT_MASK) != 0;
}

bool ring_read_missed(const char *subbuf)
{
	unsigned long commit;

	memcpy(&commit, subbuf + COMMIT_AT, sizeof(commit));
	return (commit & MISSED) != 0;
}

int ring_read_fill(struct ring_read *r, char *to, size_t max, size_t *ret_n)
{
	size_t n = 0;
	int one = 0;

	while (n < max && !r->done) {
		uint64_t timestamp = 0;

		one = r->left > 0 ? read_one(r, to + n * r->subbuf_size, &timestamp) : 0;
		r->done = one <= 0;
		if (r->done)
			break;
		r->left--;
		r->done = timestamp > r->stop_nsec;
		n++;
	}
	*ret_n = n;
	return one < 0 ? one : 0;
}

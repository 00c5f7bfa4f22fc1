/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/parse.h"
#include "config/post.h"

#define WORD	 "post="
#define USEC_MAX (36525ULL * 24 * 3600 * USEC_PER_SEC) /* as of PostSec= */

int post_split(const char *text, char **ret_condition, uint64_t *ret_usec, struct fault *why)
{
	const char *last = strrchr(text, ' ');
	uint64_t usec = POST_DEFAULT;
	size_t n = strlen(text);
	char *condition;

	if (last && strncmp(last + 1, WORD, strlen(WORD)) == 0 && !strpbrk(last, "\"'")) {
		if (parse_time(last + 1 + strlen(WORD), &usec) < 0 || usec > USEC_MAX)
			return fault_set(why, -EINVAL, "%s must be a time span, as in " WORD "2s",
					 last + 1);
		n = (size_t)(last - text);
	}
	condition = strndup(text, n);
	if (!condition)
		return -ENOMEM;
	*ret_condition = condition;
	*ret_usec = usec;
	return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#include "basic/strv.h"
#include "formats/trace-dat-damage.h"

#define MAX_LINES 1000U

static int damage_add_line(struct damages *d, const char *line)
{
	if (d->n++ >= MAX_LINES)
		return 0;
	return strv_append(&d->lines, line);
}

int damage_add(struct damages *damages, uint64_t offset, const char *format, ...)
{
	_cleanup_free_ char *line = NULL;
	char text[256];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	line = strf("%s: offset 0x%" PRIx64 ": %s", damages->path, offset, text);
	return line ? damage_add_line(damages, line) : -ENOMEM;
}

int damage_add_fault(struct damages *damages, int error, const struct fault *why)
{
	return error == -EBADMSG || error == -ENODATA || error == -EOPNOTSUPP
		       ? damage_add_line(damages, why->text)
		       : error;
}

void damages_done(struct damages *damages)
{
	strv_free(damages->lines);
	damages->lines = NULL;
}

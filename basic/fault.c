/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "basic/fault.h"

static void _printf_(4, 0)
	set_text(struct fault *fault, int error, bool explain, const char *format, va_list ap)
{
	size_t n;

	if (!fault)
		return;
	(void)vsnprintf(fault->text, sizeof(fault->text), format, ap);
	for (char *c = fault->text; *c; c++)
		if (*c == '\n')
			*c = c[1] ? ' ' : '\0';
	n = strlen(fault->text);
	if (explain)
		(void)snprintf(fault->text + n, sizeof(fault->text) - n, ": %s", strerror(-error));
	fault->error = error;
}

int fault_set(struct fault *fault, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	set_text(fault, error, false, format, ap);
	va_end(ap);
	return error;
}

int fault_errno(struct fault *fault, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	set_text(fault, error, true, format, ap);
	va_end(ap);
	return error;
}

int fault_at(struct fault *fault, int error, const char *path, uint64_t offset, const char *format,
	     ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return fault_set(fault, error, "%s: offset 0x%" PRIx64 ": %s", path, offset, text);
}

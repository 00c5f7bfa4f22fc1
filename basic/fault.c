/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>
#include <string.h>

#include "basic/fault.h"

static void _printf_(3, 0) set_text(struct fault *fault, int error, const char *format, va_list ap)
{
	int saved = error;

	(void)vsnprintf(fault->text, sizeof(fault->text), format, ap);
	for (char *c = fault->text; *c; c++)
		if (*c == '\n')
			*c = c[1] ? ' ' : '\0';
	fault->error = saved;
}

int fault_set(struct fault *fault, int error, const char *format, ...)
{
	va_list ap;

	if (!fault)
		return error;
	va_start(ap, format);
	set_text(fault, error, format, ap);
	va_end(ap);
	return error;
}

int fault_errno(struct fault *fault, int error, const char *format, ...)
{
	va_list ap;
	size_t n;

	if (!fault)
		return error;
	va_start(ap, format);
	set_text(fault, error, format, ap);
	va_end(ap);
	n = strlen(fault->text);
	(void)snprintf(fault->text + n, sizeof(fault->text) - n, ": %s", strerror(-error));
	return error;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Event formats on their way to libtraceevent, which trusts them: a file's text may make it use
 * memory after it was freed ("sizeof"), recurse until the stack is full, or format for hours. Every
 * format passes here before. Nothing is kept; any thread.
 */
#pragma once

#include <stddef.h>

/**
 * format_guard() - make a format safe
 * @text: of one event, NUL-terminated; changed in place: sizeof(TYPE) becomes its number where old
 *	versions of libtraceevent fail; a print format that is refused is cut off, so that
 *	libtraceevent takes it for one it cannot parse and prints the fields; "" if even the
 *	fields are refused
 * @ret_why: why it was cut, a string constant; NULL: it was not
 *
 * No format of a kernel is refused that libtraceevent can parse; the limits are several times what
 * the kernel's formats have.
 */
void format_guard(char *text, const char **ret_why);

/**
 * format_guard_fields() - as format_guard(), and without its print format, for who needs the fields
 */
void format_guard_fields(char *text);

/**
 * format_guard_string() - the same for a format string without its quotes, as trace_printk() has
 * Return: why it is to be refused, NULL: it is not.
 */
const char *format_guard_string(const char *text);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Printing: the other way round than qemu4v.c.
 */
#include <string.h>

#include "basic/macro.h"
#include "convert/qemu4v/qemu4v.h"

#define FIXED_ROOM 256 /* more than everything that has no length of its own */

static inline char *put_text(char *p, const char *text, size_t size)
{
	if (size)
		memcpy(p, text, size);
	return p + size;
}

static inline char *put_string(char *p, const char *text)
{
	return put_text(p, text, strlen(text));
}

static char *put_decimal(char *p, uint64_t value)
{
	char buffer[20], *at = buffer + sizeof(buffer);

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return put_text(p, at, (size_t)(buffer + sizeof(buffer) - at));
}

static inline char *put_zeros(char *p, unsigned n)
{
	memset(p, '0', n);
	return p + n;
}

static inline char *put_hex(char *p, uint64_t value, unsigned n, bool upper)
{
	const char *letters = upper ? "0123456789ABCDEF" : "0123456789abcdef";

	for (unsigned i = n; i-- > 0;)
		*p++ = letters[value >> (4 * MIN(i, 15U)) & 15];
	return p;
}

static char *put_start(char *p, const struct qemu4v_record *r)
{
	p = put_zeros(p, r->form.zeros & 15);
	p = put_decimal(p, r->time);
	*p++ = ' ';
	p = put_string(p, qemu4v_scale_name(r->form.scale));
	*p++ = ' ';
	if (r->form.cpu == QEMU4V_CPU_NONE)
		return p;
	if (r->form.cpu == QEMU4V_CPU_NAME)
		p = put_string(p, "cpu");
	p = put_decimal(p, r->cpu);
	*p++ = ' ';
	return p;
}

static char *put_address(char *p, const struct qemu4v_record *r)
{
	unsigned flags = r->form.flags;

	p = put_hex(p, r->addr, MIN(r->form.addr_digits, 16), flags & QEMU4V_UPPER_ADDR);
	if (r->form.phys_digits == 0)
		return p;
	*p++ = ':';
	p = put_hex(p, r->phys, MIN(r->form.phys_digits, 16), flags & QEMU4V_UPPER_PHYS);
	if (flags & QEMU4V_PHYS_NS)
		p = put_string(p, "_NS");
	else if (flags & QEMU4V_PHYS_S)
		p = put_string(p, "_S");
	return p;
}

static char *put_insn(char *p, const struct qemu4v_record *r)
{
	unsigned flags = r->form.flags;

	p = put_string(p, r->taken ? "IT " : "IS ");
	if (flags & QEMU4V_BRACKET_ADDR) {
		*p++ = '(';
		p = put_hex(p, r->addr, MIN(r->form.addr_digits, 16), flags & QEMU4V_UPPER_ADDR);
		p = put_string(p, ") ");
	} else {
		if (!(flags & QEMU4V_NO_ID)) {
			*p++ = '(';
			p = put_zeros(p, r->form.zeros >> 4);
			p = put_decimal(p, r->id);
			p = put_string(p, ") ");
		}
		p = put_address(p, r);
		*p++ = ' ';
	}
	p = put_hex(p, r->data, MIN(r->bits / 4U, 16U), flags & QEMU4V_UPPER_DATA);
	*p++ = ' ';
	p = put_text(p, r->iset, strnlen(r->iset, sizeof(r->iset)));
	*p++ = ' ';
	p = put_text(p, r->mode, strnlen(r->mode, sizeof(r->mode)));
	if (r->secure == QEMU4V_SECURE)
		p = put_string(p, "_s");
	else if (r->secure == QEMU4V_NON_SECURE)
		p = put_string(p, flags & QEMU4V_SHORT_N ? "_n" : "_ns");
	p = put_string(p, flags & QEMU4V_BARE_COLON ? " :" : " : ");
	return put_text(p, r->text, r->text_size);
}

static char *put_data(char *p, const struct qemu4v_record *r)
{
	unsigned n = MIN(r->form.data_digits, 32), flags = r->form.flags;

	for (unsigned i = n; i-- > 0;) {
		uint64_t word = i < 16 ? r->data : r->data_hi;
		unsigned done = n - i;

		p = put_hex(p, word >> (4 * (i % 16)), 1, flags & QEMU4V_UPPER_DATA);
		if (flags & QEMU4V_TWO_WORDS && done == 16 && i > 0)
			*p++ = ' ';
		else if (flags & QEMU4V_UNDERSCORES && done % 8 == 0 && i > 0)
			*p++ = '_';
	}
	return p;
}

static char *put_mem(char *p, const struct qemu4v_record *r)
{
	*p++ = 'M';
	*p++ = r->write ? 'W' : 'R';
	p = put_decimal(p, r->size);
	p = put_text(p, r->attrib, strnlen(r->attrib, sizeof(r->attrib)));
	*p++ = ' ';
	p = put_address(p, r);
	if (r->aborted)
		p = put_string(p, " (ABORTED)");
	if (r->form.data_digits > 0) {
		*p++ = ' ';
		p = put_data(p, r);
	}
	return p;
}

static char *put_reg(char *p, const struct qemu4v_record *r)
{
	p = put_string(p, "R ");
	p = put_text(p, r->name, r->name_size);
	*p++ = ' ';
	return put_text(p, r->text, r->text_size);
}

size_t qemu4v_print_room(const struct qemu4v_record *r)
{
	return FIXED_ROOM + (size_t)r->name_size + r->text_size;
}

size_t qemu4v_print(const struct qemu4v_record *r, char *out)
{
	char *p = out;

	if (r->kind == QEMU4V_TEXT)
		p = put_text(p, r->text, r->text_size);
	else
		p = put_start(p, r);
	if (r->kind == QEMU4V_INSN)
		p = put_insn(p, r);
	else if (r->kind == QEMU4V_MEM)
		p = put_mem(p, r);
	else if (r->kind == QEMU4V_REG)
		p = put_reg(p, r);
	if (r->form.flags & QEMU4V_CONTINUED)
		return (size_t)(p - out);
	if (r->form.flags & QEMU4V_CR)
		*p++ = '\r';
	if (!(r->form.flags & QEMU4V_NO_NEWLINE))
		*p++ = '\n';
	return (size_t)(p - out);
}

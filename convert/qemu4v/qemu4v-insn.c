/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parsing: the rest of an instruction's line.
 */
#include <string.h>

#include "basic/macro.h"
#include "convert/qemu4v/qemu4v-internal.h"

/* The end of a mode: a blank, or the colon behind it */
static inline size_t mode_size(const struct cursor *c)
{
	const char *p = c->p;

	while (p < c->end && !is_blank(*p) && *p != ':')
		p++;
	return (size_t)(p - c->p);
}

/* MODE, MODE_s, MODE_ns, MODE_n: what stands there else is all mode */
static bool take_mode(struct cursor *c, struct qemu4v_record *r)
{
	size_t size = mode_size(c), n = size;
	const char *mode = c->p;

	r->secure = QEMU4V_SECURE_UNTOLD;
	if (n > 2 && mode[n - 2] == '_' && mode[n - 1] == 's') {
		r->secure = QEMU4V_SECURE;
		n -= 2;
	} else if (n > 3 && memcmp(mode + n - 3, "_ns", 3) == 0) {
		r->secure = QEMU4V_NON_SECURE;
		n -= 3;
	} else if (n > 2 && mode[n - 2] == '_' && mode[n - 1] == 'n') {
		r->secure = QEMU4V_NON_SECURE;
		r->form.flags |= QEMU4V_SHORT_N;
		n -= 2;
	}
	if (n == 0 || n > QEMU4V_MAX_MODE || memchr(mode, '\0', n))
		return false;
	memcpy(r->mode, mode, n);
	c->p += size;
	return true;
}

static inline size_t iset_size(const struct cursor *c)
{
	char first = peek(c);

	if (first == 'T' && (is_word(c, "T16", 3) || is_word(c, "T32", 3)))
		return 3;
	if (first != 'A' && first != 'T' && first != 'X' && first != 'O')
		return 0;
	return c->p + 1 == c->end || is_blank(c->p[1]) ? 1 : 0;
}

/* (ID), or (ADDR) by those who leave the id out, or neither */
static const char *parse_brackets(struct cursor *c, struct qemu4v_record *r, bool *ret_addr)
{
	struct cursor inside;
	unsigned zeros;
	bool upper;

	*ret_addr = false;
	if (!take(c, '(')) {
		r->form.flags |= QEMU4V_NO_ID;
		return NULL;
	}
	inside = *c;
	if (take_decimal(c, &r->id, &zeros) && take(c, ')')) {
		if (zeros > ZEROS_MAX)
			return "instruction: the number in brackets has too many zeros";
		r->form.zeros |= (uint8_t)(zeros << 4);
	} else {
		*c = inside;
		r->id = 0;
	}
	/* it may be an address all the same: what follows will tell */
	if (!take_hex(&inside, &r->addr, &r->form.addr_digits, &upper) || !take(&inside, ')'))
		return c->p[-1] == ')' ? NULL : "instruction: no number in brackets";
	if (c->p != inside.p) { /* not decimal */
		c->p = inside.p;
		r->form.flags |= QEMU4V_BRACKET_ADDR;
	}
	r->form.flags |= upper ? QEMU4V_UPPER_ADDR : 0;
	*ret_addr = true;
	return NULL;
}

static const char *parse_address_and_opcode(struct cursor *c, struct qemu4v_record *r)
{
	struct qemu4v_record brackets = *r; /* in case they had the address */
	bool has_addr, upper;
	const char *why;
	uint8_t n;

	why = parse_brackets(c, &brackets, &has_addr);
	if (why)
		return why;
	skip_blanks(c);
	*r = brackets;
	r->form.flags &= (uint16_t) ~(QEMU4V_UPPER_ADDR | QEMU4V_BRACKET_ADDR);
	if (!qemu4v_take_address(c, r))
		return "instruction: no address";
	skip_blanks(c);
	if (has_addr && iset_size(c) > 0 && r->form.phys_digits == 0) {
		/* IT (ADDR) OPCODE ISET */
		uint64_t opcode = r->addr;

		n = r->form.addr_digits;
		upper = r->form.flags & QEMU4V_UPPER_ADDR;
		*r = brackets;
		r->id = 0;
		r->form.zeros &= 15;
		r->form.flags |= QEMU4V_BRACKET_ADDR;
		r->data = opcode;
	} else {
		if (brackets.form.flags & QEMU4V_BRACKET_ADDR)
			return "instruction: the number in brackets is not decimal";
		if (!take_hex(c, &r->data, &n, &upper) || !at_word_end(c))
			return "instruction: no opcode";
	}
	r->form.flags |= upper ? QEMU4V_UPPER_DATA : 0;
	r->bits = (uint16_t)(n * 4);
	return NULL;
}

const char *qemu4v_parse_insn(struct cursor *c, struct qemu4v_record *r)
{
	const char *why;
	size_t n;

	r->kind = QEMU4V_INSN;
	r->taken = c->p[1] == 'T';
	c->p += 2;
	skip_blanks(c);
	why = parse_address_and_opcode(c, r);
	if (why)
		return why;
	skip_blanks(c);
	n = iset_size(c);
	if (n == 0)
		return "instruction: no instruction set: one of A T X O is wanted";
	memcpy(r->iset, c->p, n);
	c->p += n;
	skip_blanks(c);
	if (!take_mode(c, r))
		return "instruction: no mode, or one that is too long";
	skip_blanks(c);
	if (!take(c, ':'))
		return "instruction: no colon before the disassembly";
	if (c->p == c->end)
		r->form.flags |= QEMU4V_BARE_COLON;
	else if (is_blank(*c->p))
		c->p++;
	r->text = c->p;
	r->text_size = (uint32_t)(c->end - c->p);
	return NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parsing: the line as a whole, memory accesses and register writes; instructions are in
 * qemu4v-insn.c. A line takes some 50 ns: no copies, no tables but that of digits.
 */
#include <errno.h>
#include <string.h>

#include "basic/macro.h"
#include "convert/qemu4v/qemu4v-internal.h"

#define DATA_DIGITS_MAX 32
#define UNDERSCORE_STEP 8

/* clang-format off */
#define D(c, value) [c] = DIGIT | (value)
#define L(c, value) D(c, value), [(c) - 'a' + 'A'] = DIGIT | CAPITAL | (value)
const uint8_t qemu4v_digits[256] = {
	D('0', 0), D('1', 1), D('2', 2), D('3', 3), D('4', 4),
	D('5', 5), D('6', 6), D('7', 7), D('8', 8), D('9', 9),
	L('a', 10), L('b', 11), L('c', 12), L('d', 13), L('e', 14), L('f', 15),
};
#undef D
#undef L
/* clang-format on */

static const char *const scales[_QEMU4V_SCALE_MAX] = {
	[QEMU4V_CLK] = "clk", [QEMU4V_TIC] = "tic", [QEMU4V_CYC] = "cyc", [QEMU4V_CS] = "cs",
	[QEMU4V_PS] = "ps",   [QEMU4V_NS] = "ns",   [QEMU4V_US] = "us",
};

const char *qemu4v_scale_name(enum qemu4v_scale scale)
{
	return scale < _QEMU4V_SCALE_MAX ? scales[scale] : scales[QEMU4V_CLK];
}

/* qemu4v-internal.h says of what */
bool qemu4v_take_address(struct cursor *c, struct qemu4v_record *r)
{
	uint64_t second;
	uint8_t n;
	bool upper;

	if (!take_hex(c, &r->addr, &r->form.addr_digits, &upper))
		return false;
	r->form.flags |= upper ? QEMU4V_UPPER_ADDR : 0;
	if (_likely_(at_word_end(c)))
		return true;
	if (!take(c, ':') || !take_hex(c, &r->phys, &r->form.phys_digits, &upper))
		return false;
	r->form.flags |= upper ? QEMU4V_UPPER_PHYS : 0;
	if (take(c, '_')) {
		r->form.flags |= peek(c) == 'N' ? QEMU4V_PHYS_NS : QEMU4V_PHYS_S;
		(void)take(c, 'N');
		if (!take(c, 'S'))
			return false;
	}
	if (take(c, ',')) {
		if (!take_hex(c, &second, &n, &upper))
			return false;
		if (take(c, '_')) {
			(void)take(c, 'N');
			if (!take(c, 'S'))
				return false;
		}
	}
	return at_word_end(c);
}

/* Up to 32 digits, underscores, and a blank after 16 of them */
static bool take_data(struct cursor *c, struct qemu4v_record *r)
{
	const char *begin = c->p;
	unsigned n = 0, seen = 0;
	uint64_t low = 0, high = 0;

	for (; c->p < c->end; c->p++) {
		uint8_t digit = qemu4v_digits[(uint8_t)*c->p];

		if (_likely_(digit != NO_DIGIT)) {
			high = high << 4 | low >> 60;
			low = low << 4 | (digit & 15);
			seen |= digit;
			n++;
			continue;
		}
		if (*c->p == '_' && c->p > begin)
			r->form.flags |= QEMU4V_UNDERSCORES;
		else if (n == 16 && *c->p == ' ' && c->p + 1 < c->end &&
			 qemu4v_digits[(uint8_t)c->p[1]] != NO_DIGIT)
			r->form.flags |= QEMU4V_TWO_WORDS;
		else
			break;
	}
	if (n == 0 || n > DATA_DIGITS_MAX)
		return false;
	if (n <= UNDERSCORE_STEP) /* they stood elsewhere */
		r->form.flags &= (uint16_t)~QEMU4V_UNDERSCORES;
	r->form.flags |= seen & CAPITAL ? QEMU4V_UPPER_DATA : 0;
	r->form.data_digits = (uint8_t)n;
	r->data = low;
	r->data_hi = high;
	return true;
}

static const char *parse_mem(struct cursor *c, struct qemu4v_record *r)
{
	uint64_t size;
	unsigned zeros;
	size_t n;

	r->kind = QEMU4V_MEM;
	r->write = c->p[1] == 'W';
	c->p += 2;
	if (!take_decimal(c, &size, &zeros) || size == 0 || size > 16 || zeros > 0)
		return "memory access: its size is not 1 to 16";
	r->size = (uint8_t)size;
	n = word_size(c);
	if (n >= sizeof(r->attrib))
		return "memory access: the attribute is too long";
	for (size_t i = 0; i < n; i++, c->p++) {
		if (!is_letter(*c->p))
			return "memory access: an attribute that is no letter";
		r->attrib[i] = *c->p;
	}
	skip_blanks(c);
	if (!qemu4v_take_address(c, r))
		return "memory access: no address";
	skip_blanks(c);
	if (is_word(c, "(ABORTED)", 9)) {
		r->aborted = true;
		c->p += 9;
		skip_blanks(c);
	}
	if (c->p == c->end)
		return r->aborted ? NULL : "memory access: no data";
	if (!take_data(c, r))
		return "memory access: the data is not 1 to 32 hexadecimal digits";
	if (r->form.data_digits > 2 * r->size)
		return "memory access: more data than its size";
	skip_blanks(c);
	return c->p == c->end ? NULL : "memory access: something behind the data";
}

static bool is_value_char(char c)
{
	return qemu4v_digits[(uint8_t)c] != NO_DIGIT || c == '_' || c == ':' || c == '-';
}

/* A word of a value; a later one may be a comment, as cpsr's flags are: "20000000 __C_" */
static bool is_value_word(const char *p, const char *end)
{
	if (*p == '_')
		return false;
	for (; p < end; p++)
		if (!is_value_char(*p))
			return false;
	return true;
}

static bool take_value(struct cursor *c, struct qemu4v_record *r)
{
	struct cursor word = *c;
	unsigned bits = 0;

	for (;;) {
		const char *end = word.p + word_size(&word);

		if (word.p == end || !is_value_word(word.p, end))
			break;
		for (; word.p < end; word.p++) {
			uint8_t digit = qemu4v_digits[(uint8_t)*word.p];

			if (*word.p == '_' || *word.p == ':')
				continue;
			r->data = r->data << 4 | (digit == NO_DIGIT ? 0 : digit & 15);
			bits += 4;
		}
		skip_blanks(&word);
	}
	if (bits == 0 || bits > UINT16_MAX)
		return false;
	r->bits = (uint16_t)bits;
	return true;
}

static const char *parse_reg(struct cursor *c, struct qemu4v_record *r)
{
	struct cursor bank;
	size_t n;

	r->kind = QEMU4V_REG;
	c->p++;
	skip_blanks(c);
	n = word_size(c);
	if (n == 0)
		return "register write: no name";
	r->name = c->p;
	c->p += n;
	r->name_size = (uint32_t)n;
	bank = *c;
	skip_blanks(&bank);
	n = word_size(&bank);
	if (n > 2 && bank.p[0] == '(' && bank.p[n - 1] == ')' && bank.p == c->p + 1) {
		c->p = bank.p + n; /* "R1 (USR)" */
		r->name_size = (uint32_t)(c->p - r->name);
	}
	skip_blanks(c);
	if (!take_value(c, r))
		return "register write: no value";
	r->text = c->p;
	r->text_size = (uint32_t)(c->end - c->p);
	return NULL;
}

/* Operations of the system that Fast Models show as registers, with words as values */
static bool is_operation(const struct cursor *c)
{
	struct cursor rest = {c->p + 1, c->end};

	skip_blanks(&rest);
	return is_word(&rest, "DC", 2) || is_word(&rest, "IC", 2) || is_word(&rest, "TLBI", 4) ||
	       is_word(&rest, "AT", 2);
}

static bool take_scale(struct cursor *c, struct qemu4v_record *r)
{
	size_t n = word_size(c);

	if (n != 2 && n != 3)
		return false;
	for (unsigned i = 0; i < _QEMU4V_SCALE_MAX; i++)
		if (scales[i][0] == c->p[0] && strlen(scales[i]) == n &&
		    memcmp(scales[i], c->p, n) == 0) {
			r->form.scale = (uint8_t)i;
			c->p += n;
			return true;
		}
	return false;
}

/* A CPU may be a number, "cpu" with a number, or not be there. NULL, or why not. */
static const char *parse_cpu(struct cursor *c, struct qemu4v_record *r)
{
	struct cursor at = *c;
	unsigned zeros;
	uint64_t cpu;

	if (at.end - at.p > 3 && memcmp(at.p, "cpu", 3) == 0 && is_decimal(at.p[3])) {
		r->form.cpu = QEMU4V_CPU_NAME;
		at.p += 3;
	} else if (is_decimal(peek(&at))) {
		r->form.cpu = QEMU4V_CPU_NUMBER;
	} else {
		return NULL;
	}
	if (!take_decimal(&at, &cpu, &zeros) || !at_word_end(&at) || cpu > QEMU4V_MAX_CPU || zeros)
		return "the number of the CPU is not 0 to 4095";
	r->cpu = (uint32_t)cpu;
	*c = at;
	skip_blanks(c);
	return NULL;
}

/* Time, scale and CPU. NULL, or why not; a line without any of them is a text */
static const char *parse_start(struct cursor *c, struct qemu4v_record *r)
{
	unsigned zeros;

	skip_blanks(c);
	if (!take_decimal(c, &r->time, &zeros) || !at_word_end(c))
		return "no time";
	if (zeros > ZEROS_MAX)
		return "too many zeros before the time";
	r->form.zeros = (uint8_t)zeros;
	skip_blanks(c);
	if (!take_scale(c, r))
		return "no scale: one of clk tic cyc cs ps ns us is wanted";
	r->has_time = true;
	skip_blanks(c);
	return parse_cpu(c, r);
}

static const char *parse_rest(struct cursor *c, struct qemu4v_record *r)
{
	char first = peek(c), second = c->end - c->p > 1 ? c->p[1] : ' ';

	if (first == 'I' && (second == 'T' || second == 'S') &&
	    (c->end - c->p == 2 || is_blank(c->p[2])))
		return qemu4v_parse_insn(c, r);
	if (first == 'M' && (second == 'R' || second == 'W') && c->end - c->p > 2 &&
	    is_decimal(c->p[2]))
		return parse_mem(c, r);
	if (first == 'R' && is_blank(second) && !is_operation(c))
		return parse_reg(c, r);
	return first ? NULL : "nothing behind the time";
}

/* All of the line as it is; the time and the CPU stay if they are known */
static void make_text(struct qemu4v_record *r, const char *line, size_t size)
{
	const struct qemu4v_record seen = *r;

	*r = (struct qemu4v_record){
		.kind = QEMU4V_TEXT,
		.form = {.flags = seen.form.flags & QEMU4V_CR, .scale = seen.form.scale},
		.time = seen.has_time ? seen.time : 0,
		.has_time = seen.has_time,
		.text = line,
		.text_size = (uint32_t)size,
	};
	if (seen.cpu <= QEMU4V_MAX_CPU && seen.form.cpu != QEMU4V_CPU_NONE) {
		r->cpu = seen.cpu;
		r->form.cpu = seen.form.cpu;
	}
}

int qemu4v_parse(const char *line, size_t size, struct qemu4v_record *ret, const char **ret_why)
{
	struct cursor c = {line, line + size};
	const char *why;

	memset(ret, 0, sizeof(*ret));
	if (size > 0 && line[size - 1] == '\r') {
		ret->form.flags = QEMU4V_CR;
		c.end--;
		size--;
	}
	why = parse_start(&c, ret);
	if (_likely_(!why))
		why = parse_rest(&c, ret);
	if (!why && ret->kind != QEMU4V_TEXT)
		return 0;
	make_text(ret, line, size);
	c = (struct cursor){line, line + size};
	skip_blanks(&c);
	/* nothing at all, or the first line of some traces, "Tarmac Text Rev 3t", is fine */
	if (!why || c.p == c.end || is_word(&c, "Tarmac", 6))
		return 0;
	*ret_why = why;
	return -EBADMSG;
}

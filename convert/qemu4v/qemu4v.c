/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parsing goes through a line, never beyond its end. A line takes some 50 ns: no copies, no tables
 * but that of digits.
 */
#include <errno.h>
#include <string.h>

#include "basic/macro.h"
#include "convert/qemu4v/qemu4v.h"
#include "decode/text.h"

#define HEX_DIGITS_MAX 16
#define ZEROS_MAX      15   /* that the form has room for */
#define CAPITAL	       0x10 /* these two: bits in digits[], beside the value */
#define DIGIT	       0x20
#define NO_DIGIT       0

#define _likely_(x)	__builtin_expect(!!(x), 1)
#define DATA_DIGITS_MAX 32
#define UNDERSCORE_STEP 8

/* clang-format off */
#define D(c, value) [c] = DIGIT | (value)
#define L(c, value) D(c, value), [(c) - 'a' + 'A'] = DIGIT | CAPITAL | (value)
static const uint8_t digits[256] = {
	D('0', 0), D('1', 1), D('2', 2), D('3', 3), D('4', 4),
	D('5', 5), D('6', 6), D('7', 7), D('8', 8), D('9', 9),
	L('a', 10), L('b', 11), L('c', 12), L('d', 13), L('e', 14), L('f', 15),
};
#undef D
#undef L
/* clang-format on */

/* The rest of a line */
struct cursor {
	const char *p, *end;
};

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline bool is_decimal(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline char peek(const struct cursor *c)
{
	return c->p < c->end ? *c->p : '\0';
}

static inline void skip_blanks(struct cursor *c)
{
	while (c->p < c->end && is_blank(*c->p))
		c->p++;
}

/* The end of a word: a blank or the end of the line */
static inline bool at_word_end(const struct cursor *c)
{
	return c->p == c->end || is_blank(*c->p);
}

static inline bool take(struct cursor *c, char wanted)
{
	if (peek(c) != wanted)
		return false;
	c->p++;
	return true;
}

static inline size_t word_size(const struct cursor *c)
{
	const char *p = c->p;

	while (p < c->end && !is_blank(*p))
		p++;
	return (size_t)(p - c->p);
}

static inline bool is_word(const struct cursor *c, const char *word, size_t size)
{
	return (size_t)(c->end - c->p) >= size && memcmp(c->p, word, size) == 0 &&
	       (c->p + size == c->end || is_blank(c->p[size]));
}

/* At least one digit, no overflow. @ret_zeros: how many were not needed */
static inline bool take_decimal(struct cursor *c, uint64_t *ret, unsigned *ret_zeros)
{
	const char *begin = c->p;
	unsigned zeros = 0;
	uint64_t value = 0;

	while (c->p < c->end && *c->p == '0')
		c->p++;
	zeros = (unsigned)(c->p - begin);
	for (; c->p < c->end && is_decimal(*c->p); c->p++) {
		if (!_likely_(value < UINT64_MAX / 10)) {
			uint64_t digit = (uint64_t)(*c->p - '0');

			if (value > (UINT64_MAX - digit) / 10)
				return false;
		}
		value = value * 10 + (uint64_t)(*c->p - '0');
	}
	if (c->p == begin)
		return false;
	*ret = value;
	*ret_zeros = zeros > 0 && value == 0 ? zeros - 1 : zeros;
	return true;
}

/* 1 to 16 digits. @ret_upper: one of them is a capital letter */
static inline bool take_hex(struct cursor *c, uint64_t *ret, uint8_t *ret_digits, bool *ret_upper)
{
	const char *begin = c->p;
	uint64_t value = 0;
	unsigned seen = 0;

	for (; c->p < c->end; c->p++) {
		uint8_t digit = digits[(uint8_t)*c->p];

		if (digit == NO_DIGIT)
			break;
		seen |= digit;
		value = value << 4 | (digit & 15);
	}
	if (c->p == begin || c->p - begin > HEX_DIGITS_MAX)
		return false;
	*ret = value;
	*ret_digits = (uint8_t)(c->p - begin);
	*ret_upper = seen & CAPITAL;
	return true;
}

static const char *const scales[_QEMU4V_SCALE_MAX] = {
	[QEMU4V_CLK] = "clk", [QEMU4V_TIC] = "tic", [QEMU4V_CYC] = "cyc", [QEMU4V_CS] = "cs",
	[QEMU4V_PS] = "ps",   [QEMU4V_NS] = "ns",   [QEMU4V_US] = "us",
};

/* ADDR[:PHYS[_S|_NS][,PHYS…]]: Fast Models give a second address where an instruction crosses a
 * page, which is left out */
static bool take_address(struct cursor *c, struct qemu4v_record *r)
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
		uint8_t digit = digits[(uint8_t)*c->p];

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
			 digits[(uint8_t)c->p[1]] != NO_DIGIT)
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
	if (!take_address(c, r))
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
	return digits[(uint8_t)c] != NO_DIGIT || c == '_' || c == ':' || c == '-';
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
			uint8_t digit = digits[(uint8_t)*word.p];

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
	if (!take_address(c, r))
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

static const char *parse_insn(struct cursor *c, struct qemu4v_record *r)
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
		return parse_insn(c, r);
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

/* --- printing */

/* The last @n digits */
static void put_hex(struct text *out, uint64_t value, unsigned n, bool upper)
{
	const struct text_spec spec = {.conversion = upper ? 'X' : 'x', .zero = true, .width = n};

	if (n > 0)
		text_number(out, &spec, n < 16 ? value & ((UINT64_C(1) << 4 * n) - 1) : value);
}

static void put_start(struct text *out, const struct qemu4v_record *r)
{
	text_fill(out, '0', r->form.zeros & 15);
	text_u64(out, r->time);
	text_char(out, ' ');
	text_string(out, scales[MIN(r->form.scale, _QEMU4V_SCALE_MAX - 1)]);
	text_char(out, ' ');
	if (r->form.cpu == QEMU4V_CPU_NONE)
		return;
	if (r->form.cpu == QEMU4V_CPU_NAME)
		text_string(out, "cpu");
	text_u64(out, r->cpu);
	text_char(out, ' ');
}

static void put_address(struct text *out, const struct qemu4v_record *r)
{
	unsigned flags = r->form.flags;

	put_hex(out, r->addr, MIN(r->form.addr_digits, 16), flags & QEMU4V_UPPER_ADDR);
	if (r->form.phys_digits == 0)
		return;
	text_char(out, ':');
	put_hex(out, r->phys, MIN(r->form.phys_digits, 16), flags & QEMU4V_UPPER_PHYS);
	if (flags & QEMU4V_PHYS_NS)
		text_string(out, "_NS");
	else if (flags & QEMU4V_PHYS_S)
		text_string(out, "_S");
}

static void put_insn(struct text *out, const struct qemu4v_record *r)
{
	unsigned flags = r->form.flags;

	text_string(out, r->taken ? "IT " : "IS ");
	if (flags & QEMU4V_BRACKET_ADDR) {
		text_char(out, '(');
		put_hex(out, r->addr, MIN(r->form.addr_digits, 16), flags & QEMU4V_UPPER_ADDR);
		text_string(out, ") ");
	} else {
		if (!(flags & QEMU4V_NO_ID)) {
			text_char(out, '(');
			text_fill(out, '0', r->form.zeros >> 4);
			text_u64(out, r->id);
			text_string(out, ") ");
		}
		put_address(out, r);
		text_char(out, ' ');
	}
	put_hex(out, r->data, MIN(r->bits / 4U, 16U), flags & QEMU4V_UPPER_DATA);
	text_char(out, ' ');
	text_bytes(out, r->iset, strnlen(r->iset, sizeof(r->iset)));
	text_char(out, ' ');
	text_bytes(out, r->mode, strnlen(r->mode, sizeof(r->mode)));
	if (r->secure == QEMU4V_SECURE)
		text_string(out, "_s");
	else if (r->secure == QEMU4V_NON_SECURE)
		text_string(out, flags & QEMU4V_SHORT_N ? "_n" : "_ns");
	text_string(out, flags & QEMU4V_BARE_COLON ? " :" : " : ");
	text_bytes(out, r->text, r->text_size);
}

static void put_data(struct text *out, const struct qemu4v_record *r)
{
	unsigned n = MIN(r->form.data_digits, DATA_DIGITS_MAX), flags = r->form.flags;

	for (unsigned i = n; i-- > 0;) {
		uint64_t word = i < 16 ? r->data : r->data_hi;
		unsigned done = n - i;

		put_hex(out, word >> (4 * (i % 16)), 1, flags & QEMU4V_UPPER_DATA);
		if (flags & QEMU4V_TWO_WORDS && done == 16 && i > 0)
			text_char(out, ' ');
		else if (flags & QEMU4V_UNDERSCORES && done % UNDERSCORE_STEP == 0 && i > 0)
			text_char(out, '_');
	}
}

static void put_mem(struct text *out, const struct qemu4v_record *r)
{
	text_string(out, r->write ? "MW" : "MR");
	text_u64(out, r->size);
	text_bytes(out, r->attrib, strnlen(r->attrib, sizeof(r->attrib)));
	text_char(out, ' ');
	put_address(out, r);
	if (r->aborted)
		text_string(out, " (ABORTED)");
	if (r->form.data_digits > 0) {
		text_char(out, ' ');
		put_data(out, r);
	}
}

static void put_reg(struct text *out, const struct qemu4v_record *r)
{
	text_string(out, "R ");
	text_bytes(out, r->name, r->name_size);
	text_char(out, ' ');
	text_bytes(out, r->text, r->text_size);
}

void qemu4v_print(const struct qemu4v_record *r, struct text *out)
{
	if (r->kind == QEMU4V_TEXT)
		text_bytes(out, r->text, r->text_size);
	else
		put_start(out, r);
	if (r->kind == QEMU4V_INSN)
		put_insn(out, r);
	else if (r->kind == QEMU4V_MEM)
		put_mem(out, r);
	else if (r->kind == QEMU4V_REG)
		put_reg(out, r);
	if (r->form.flags & QEMU4V_CONTINUED)
		return;
	if (r->form.flags & QEMU4V_CR)
		text_char(out, '\r');
	if (!(r->form.flags & QEMU4V_NO_NEWLINE))
		text_char(out, '\n');
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "recorder/usdt.h"

#define OPERAND_MAX 160

struct operand {
	const char *text; /* with its size, for messages */
	char place[OPERAND_MAX];
	struct fault *why;
};

static int unreadable(const struct operand *o, const char *reason)
{
	return fault_set(o->why, -EOPNOTSUPP, "\"%s\": %s", o->text, reason);
}

/* @end: behind it */
static bool take_number(const char *text, int64_t *ret, const char **end)
{
	char *behind;

	if (!isdigit((unsigned char)text[*text == '-' || *text == '+']))
		return false;
	errno = 0;
	*ret = (int64_t)(*text == '-' ? strtoll(text, &behind, 0)
				      : (long long)strtoull(text, &behind, 0));
	*end = behind;
	return errno == 0;
}

static int put_constant(const struct operand *o, const char *text, struct usdt_argument *ret)
{
	const char *end;
	int64_t value;

	if (!take_number(text, &value, &end) || *end)
		return unreadable(o, "not a constant that is known before the program runs");
	(void)snprintf(ret->fetch, sizeof(ret->fetch), "\\%" PRId64, value);
	return 0;
}

static void put_memory(const char *reg, int64_t offset, struct usdt_argument *ret)
{
	(void)snprintf(ret->fetch, sizeof(ret->fetch), "%+" PRId64 "(%%%s)", offset, reg);
}

/* --- x86: the kernel knows a register by the name of its 16 bits, or as r8 … r15 */

#define X86_NAME_SIZE 4

static bool x86_register(const char *name, size_t n, char *ret)
{
	static const char base[][X86_NAME_SIZE] = {
		"ax", "bx", "cx", "dx", "si", "di", "bp", "sp",
	};
	unsigned number = 0;
	size_t digits = 0;

	if (n > 1 && name[0] == 'r' && isdigit((unsigned char)name[1])) {
		while (1 + digits < n && digits < 2 && isdigit((unsigned char)name[1 + digits]))
			number = 10 * number + (unsigned)(name[1 + digits++] - '0');
		if (number < 8 || number > 15 || n > digits + 2 ||
		    (n == digits + 2 && !strchr("dwb", name[n - 1])))
			return false;
		(void)snprintf(ret, X86_NAME_SIZE, "r%u", number);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(base); i++) {
		const char *b = base[i];
		bool is_wide = n == 3 && strchr("re", name[0]) && memcmp(name + 1, b, 2) == 0;
		bool is_word = n == 2 && memcmp(name, b, 2) == 0;
		bool is_byte = b[1] == 'x' ? n == 2 && name[0] == b[0] && name[1] == 'l'
					   : n == 3 && memcmp(name, b, 2) == 0 && name[2] == 'l';

		if (!is_wide && !is_word && !is_byte)
			continue;
		memcpy(ret, b, X86_NAME_SIZE);
		return true;
	}
	return false;
}

/* "NAME", "NAME+4" and what follows, "(%rip)" or nothing */
static int x86_variable(const struct operand *o, struct usdt_argument *ret)
{
	static const char pc[] = "(%rip)";
	size_t n = strcspn(o->place, "+-(");
	const char *rest = o->place + n;

	if (n == 0 || n >= sizeof(ret->variable) || strchr(o->place, '@'))
		return unreadable(o, "the kernel cannot read that");
	memcpy(ret->variable, o->place, n);
	ret->variable[n] = '\0';
	if (*rest && *rest != '(' && !take_number(rest, &ret->addend, &rest))
		return unreadable(o, "the kernel cannot read that");
	if (*rest && strcmp(rest, pc) != 0)
		return unreadable(o, "the kernel cannot read an element of an array");
	return 0;
}

static int x86_operand(const struct operand *o, struct usdt_argument *ret)
{
	const char *place = o->place, *open, *close;
	char reg[X86_NAME_SIZE];
	int64_t offset = 0;

	if (*place == '$')
		return put_constant(o, place + 1, ret);
	if (*place == '%') {
		if (!x86_register(place + 1, strlen(place + 1), reg))
			return unreadable(o, "the kernel cannot read this register");
		(void)snprintf(ret->fetch, sizeof(ret->fetch), "%%%s", reg);
		return 0;
	}
	if (*place != '(' && !take_number(place, &offset, &place))
		return x86_variable(o, ret);
	open = place;
	close = strchr(open, ')');
	if (*open != '(' || !close || close[1])
		return unreadable(o, "the kernel cannot read that");
	if (memchr(open, ',', (size_t)(close - open)))
		return unreadable(o, "the kernel cannot read an element of an array");
	if (open[1] != '%' || !x86_register(open + 2, (size_t)(close - open - 2), reg))
		return unreadable(o, "the kernel cannot read at this register");
	put_memory(reg, offset, ret);
	return 0;
}

/* --- aarch64 */

#define ARM64_NAME_SIZE 4

static bool arm64_register(const char *name, size_t n, char *ret)
{
	const char *digits = name + 1;

	if (n == 2 && memcmp(name, "sp", 2) == 0) {
		memcpy(ret, "sp", 3);
		return true;
	}
	if ((n != 2 && n != 3) || !strchr("xw", *name) || !isdigit((unsigned char)digits[0]) ||
	    (n == 3 && (digits[0] == '0' || !isdigit((unsigned char)digits[1]))) ||
	    (n == 3 && strncmp(digits, "30", 2) > 0))
		return false;
	(void)snprintf(ret, ARM64_NAME_SIZE, "x%.*s", (int)n - 1, digits);
	return true;
}

/* "[x0]", "[sp, 16]", "[sp,#-8]" */
static int arm64_memory(const struct operand *o, struct usdt_argument *ret)
{
	size_t n = strcspn(o->place + 1, ",]");
	const char *p = o->place + 1 + n;
	char reg[ARM64_NAME_SIZE];
	int64_t offset = 0;

	if (!arm64_register(o->place + 1, n, reg))
		return unreadable(o, "the kernel cannot read at this register");
	if (*p == ',') {
		p += 1 + strspn(p + 1, " ");
		p += *p == '#';
		if (!take_number(p, &offset, &p))
			return unreadable(o, "the kernel cannot read an element of an array");
	}
	if (strcmp(p, "]") != 0)
		return unreadable(o, "the kernel cannot read that");
	put_memory(reg, offset, ret);
	return 0;
}

static int arm64_operand(const struct operand *o, struct usdt_argument *ret)
{
	const char *place = o->place;
	char reg[ARM64_NAME_SIZE];

	if (*place == '[')
		return arm64_memory(o, ret);
	if (strcmp(place, "xzr") == 0 || strcmp(place, "wzr") == 0)
		return put_constant(o, "0", ret);
	if (*place == '#' || *place == '-' || isdigit((unsigned char)*place))
		return put_constant(o, place + (*place == '#'), ret);
	if (!arm64_register(place, strlen(place), reg))
		return unreadable(o, "the kernel cannot read this register");
	(void)snprintf(ret->fetch, sizeof(ret->fetch), "%%%s", reg);
	return 0;
}

/* --- any */

static const char *type_of(int64_t size)
{
	switch (size) {
	case 1:
		return "u8";
	case -1:
		return "s8";
	case 2:
		return "u16";
	case -2:
		return "s16";
	case 4:
		return "u32";
	case -4:
		return "s32";
	case 8:
		return "u64";
	case -8:
		return "s64";
	default:
		return NULL;
	}
}

/* The end of an operand: at white space, but not within "[sp, 16]" */
static const char *operand_end(const char *text)
{
	bool within = false;

	while (*text && (within || *text != ' ')) {
		within = *text == '[' || (within && *text != ']');
		text++;
	}
	return text;
}

/* "-4@PLACE" without what is before the place; older notes have no size */
static int take_size(struct operand *o, const char **place, unsigned machine,
		     struct usdt_argument *ret)
{
	const char *end;
	int64_t size = machine == EM_386 ? 4 : 8;

	if (take_number(*place, &size, &end) && *end == 'f')
		return unreadable(o, "the kernel cannot read floating point numbers");
	if (take_number(*place, &size, &end) && *end == '@')
		*place = end + 1;
	else
		size = machine == EM_386 ? 4 : 8;
	ret->type = type_of(size);
	return ret->type ? 0 : unreadable(o, "the kernel cannot read so many bytes");
}

int usdt_next_argument(const char **text, unsigned machine, struct usdt_argument *ret,
		       struct fault *why)
{
	const char *begin = *text + strspn(*text, " "), *end = operand_end(begin), *place;
	struct operand o = {.why = why};
	char shown[OPERAND_MAX];
	size_t n = (size_t)(end - begin);
	int r;

	*text = end;
	if (n == 0)
		return 0;
	if (n >= sizeof(shown))
		return fault_set(why, -EOPNOTSUPP, "\"%.40s…\": the kernel cannot read that",
				 begin);
	memcpy(shown, begin, n);
	shown[n] = '\0';
	*ret = (struct usdt_argument){};
	o.text = place = shown;
	r = take_size(&o, &place, machine, ret);
	if (r < 0)
		return r;
	(void)snprintf(o.place, sizeof(o.place), "%s", place);
	switch (machine) {
	case EM_X86_64:
	case EM_386:
		r = x86_operand(&o, ret);
		break;
	case EM_AARCH64:
		r = arm64_operand(&o, ret);
		break;
	default:
		r = unreadable(&o, "arguments of programs for this kind of machine are not known");
	}
	return r < 0 ? r : 1;
}

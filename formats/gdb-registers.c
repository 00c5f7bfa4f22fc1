/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "formats/gdb-registers.h"

#define MAX_REGISTERS 4096U
#define MAX_BITS      (64 * 1024U)

#define REG(name, kernel, at)             \
	{                                 \
		name, kernel, at, 8, true \
	}
#define SEGMENT(name, kernel, at)          \
	{                                  \
		name, kernel, at, 4, false \
	}

static const struct gdb_general x86_64[] = {
	REG("rax", "ax", 0),	  REG("rbx", "bx", 8),	    REG("rcx", "cx", 16),
	REG("rdx", "dx", 24),	  REG("rsi", "si", 32),	    REG("rdi", "di", 40),
	REG("rbp", "bp", 48),	  REG("rsp", "sp", 56),	    REG("r8", "r8", 64),
	REG("r9", "r9", 72),	  REG("r10", "r10", 80),    REG("r11", "r11", 88),
	REG("r12", "r12", 96),	  REG("r13", "r13", 104),   REG("r14", "r14", 112),
	REG("r15", "r15", 120),	  REG("rip", "ip", 128),    SEGMENT("eflags", "flags", 136),
	SEGMENT("cs", "cs", 140), SEGMENT("ss", "ss", 144), SEGMENT("ds", NULL, 148),
	SEGMENT("es", NULL, 152), SEGMENT("fs", NULL, 156), SEGMENT("gs", NULL, 160),
};

#define X(n) REG("x" #n, "x" #n, 8 * (n))

/* clang-format off */
static const struct gdb_general aarch64[] = {
	X(0), X(1), X(2), X(3), X(4), X(5), X(6), X(7),
	X(8), X(9), X(10), X(11), X(12), X(13), X(14), X(15),
	X(16), X(17), X(18), X(19), X(20), X(21), X(22), X(23),
	X(24), X(25), X(26), X(27), X(28), X(29), X(30),
	REG("sp", "sp", 248), REG("pc", "pc", 256), SEGMENT("cpsr", "pstate", 264),
};
/* clang-format on */

/* 32 bits each */
static const char *const nios2[] = {
	"zero",	   "at",      "r2",	  "r3",	     "r4",     "r5",	    "r6",
	"r7",	   "r8",      "r9",	  "r10",     "r11",    "r12",	    "r13",
	"r14",	   "r15",     "r16",	  "r17",     "r18",    "r19",	    "r20",
	"r21",	   "r22",     "r23",	  "et",	     "bt",     "gp",	    "sp",
	"fp",	   "ea",      "ba",	  "ra",	     "pc",     "status",    "estatus",
	"bstatus", "ienable", "ipending", "cpuid",   "ctl6",   "exception", "pteaddr",
	"tlbacc",  "tlbmisc", "eccinj",	  "badaddr", "config", "mpubase",   "mpuacc",
};
#define NIOS2_SIZE  (4 * (uint32_t)ARRAY_SIZE(nios2))
#define NIOS2_SMALL (4 * 33U) /* up to pc */

const struct gdb_general *gdb_general_registers(enum gdb_arch arch, size_t *ret_n)
{
	*ret_n = arch == GDB_X86_64    ? ARRAY_SIZE(x86_64)
		 : arch == GDB_AARCH64 ? ARRAY_SIZE(aarch64)
				       : 0;
	return arch == GDB_X86_64 ? x86_64 : aarch64;
}

const struct gdb_general *gdb_general_find(enum gdb_arch arch, const char *kernel, size_t size)
{
	size_t n;
	const struct gdb_general *list = gdb_general_registers(arch, &n);

	for (size_t i = 0; i < n; i++)
		if (list[i].kernel && strlen(list[i].kernel) == size &&
		    memcmp(list[i].kernel, kernel, size) == 0)
			return &list[i];
	return NULL;
}

uint32_t gdb_general_size(enum gdb_arch arch)
{
	size_t n;
	const struct gdb_general *list = gdb_general_registers(arch, &n);

	return n ? list[n - 1].offset + (uint32_t)list[n - 1].size : 0;
}

const struct gdb_general *gdb_general_pc(enum gdb_arch arch)
{
	return gdb_general_find(arch, arch == GDB_X86_64 ? "ip" : "pc", 2);
}

const char *gdb_arch_tdesc(enum gdb_arch arch)
{
	static const char *const texts[] = {
		[GDB_X86_64] = "<architecture>i386:x86-64</architecture>\n",
		[GDB_AARCH64] = "<architecture>aarch64</architecture>\n",
		[GDB_NIOS2] = "<architecture>nios2</architecture>\n",
		[GDB_ARCH_UNKNOWN] = "",
	};

	return texts[arch];
}

enum gdb_arch gdb_arch_of_machine(const char *machine)
{
	if (strcmp(machine, "x86_64") == 0)
		return GDB_X86_64;
	return strcmp(machine, "aarch64") == 0 ? GDB_AARCH64 : GDB_ARCH_UNKNOWN;
}

enum gdb_arch gdb_arch_of_size(uint32_t size)
{
	if (size == gdb_general_size(GDB_X86_64))
		return GDB_X86_64;
	if (size == gdb_general_size(GDB_AARCH64))
		return GDB_AARCH64;
	return size == NIOS2_SIZE || size == NIOS2_SMALL ? GDB_NIOS2 : GDB_ARCH_UNKNOWN;
}

enum gdb_arch gdb_arch_of_tdesc(const char *xml)
{
	static const struct {
		const char *name;
		enum gdb_arch arch;
	} known[] = {
		{"i386:x86-64", GDB_X86_64},
		{"aarch64", GDB_AARCH64},
		{"nios2", GDB_NIOS2},
		{"altera-nios2", GDB_NIOS2},
	};
	static const char tag[] = "<architecture>";
	const char *p = xml ? strstr(xml, tag) : NULL;
	size_t n;

	if (!p)
		return GDB_ARCH_UNKNOWN;
	p += strlen(tag);
	p += strspn(p, " \t\n");
	n = strcspn(p, " \t\n<");
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i].name) == n && memcmp(p, known[i].name, n) == 0)
			return known[i].arch;
	return GDB_ARCH_UNKNOWN;
}

static void set_name(struct gdb_register *reg, const char *name, size_t size)
{
	size = MIN(size, sizeof(reg->name) - 1);
	memset(reg->name, 0, sizeof(reg->name));
	for (size_t i = 0; i < size; i++)
		reg->name[i] = isalnum((unsigned char)name[i]) ? name[i] : '_';
	if (size == 0 || isdigit((unsigned char)*name))
		*reg->name = '_';
}

int gdb_registers_of(enum gdb_arch arch, struct gdb_registers *ret)
{
	size_t n;
	const struct gdb_general *general = gdb_general_registers(arch, &n);
	struct gdb_register *list;

	if (arch == GDB_NIOS2)
		n = ARRAY_SIZE(nios2);
	if (n == 0)
		return -ENOENT;
	list = calloc(n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const char *name = arch == GDB_NIOS2 ? nios2[i] : general[i].name;

		set_name(&list[i], name, strlen(name));
		list[i].offset = arch == GDB_NIOS2 ? 4 * (uint32_t)i : general[i].offset;
		list[i].size = arch == GDB_NIOS2 ? 4 : general[i].size;
	}
	*ret = (struct gdb_registers){list, n, list[n - 1].offset + list[n - 1].size};
	return 0;
}

/* --- target descriptions: what is needed of XML is attributes of one kind of element */

struct found {
	struct gdb_register reg;
	uint32_t number; /* place in the block */
};

/* The value of an attribute in "<reg … NAME="VALUE" …>" */
static const char *attribute(const char *tag, size_t size, const char *name, size_t *ret_size)
{
	const char *p = tag, *end = tag + size;
	size_t length = strlen(name);

	while (p < end) {
		const char *word = p, *value, *quote;
		size_t n;

		while (p < end && *p != '=' && !isspace((unsigned char)*p))
			p++;
		n = (size_t)(p - word);
		while (p < end && (*p == '=' || isspace((unsigned char)*p)))
			p++;
		if (p == end || (*p != '"' && *p != '\''))
			continue;
		value = p + 1;
		quote = memchr(value, *p, (size_t)(end - value));
		if (!quote)
			return NULL;
		if (n == length && memcmp(word, name, n) == 0) {
			*ret_size = (size_t)(quote - value);
			return value;
		}
		p = quote + 1;
		while (p < end && isspace((unsigned char)*p))
			p++;
	}
	return NULL;
}

static bool number_attribute(const char *tag, size_t size, const char *name, uint32_t max,
			     uint32_t *ret)
{
	size_t n;
	const char *value = attribute(tag, size, name, &n);
	uint64_t number = 0;

	if (!value || n == 0 || n > 9)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)value[i]))
			return false;
		number = number * 10 + (uint64_t)(value[i] - '0');
	}
	*ret = (uint32_t)number;
	return number <= max;
}

static bool take_reg(const char *tag, size_t size, uint32_t next, struct found *ret)
{
	size_t n;
	const char *name = attribute(tag, size, "name", &n);
	uint32_t bits;

	if (!name || !number_attribute(tag, size, "bitsize", MAX_BITS, &bits) || bits == 0)
		return false;
	set_name(&ret->reg, name, n);
	ret->reg.size = (bits + 7) / 8;
	if (!number_attribute(tag, size, "regnum", INT32_MAX, &ret->number))
		ret->number = next;
	return true;
}

static int by_number(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static int collect(const char *xml, struct found **ret, size_t *ret_n)
{
	static const char tag[] = "<reg";
	struct found *list = NULL;
	size_t n = 0;
	uint32_t next = 0;

	for (const char *p = strstr(xml, tag); p && n < MAX_REGISTERS; p = strstr(p, tag)) {
		size_t size;

		p += strlen(tag);
		if (!isspace((unsigned char)*p))
			continue;
		p += strspn(p, " \t\n\r");
		size = strcspn(p, ">");
		if (array_grow(&list, n, sizeof(*list)) < 0) {
			free(list);
			return -ENOMEM;
		}
		if (!take_reg(p, size, next, &list[n]))
			continue;
		next = list[n++].number + 1;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

/* Two of one name would be two fields of one name */
static void make_unique(struct gdb_register *list, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(list[i].name, list[k].name) == 0) {
				(void)snprintf(list[i].name, sizeof(list[i].name), "_register%zu",
					       i);
				break;
			}
}

int gdb_registers_from_tdesc(const char *xml, struct gdb_registers *ret)
{
	_cleanup_free_ struct found *found = NULL;
	struct gdb_register *list;
	uint32_t offset = 0;
	size_t n;
	int r;

	r = collect(xml, &found, &n);
	if (r < 0)
		return r;
	if (n == 0)
		return -ENOENT;
	qsort(found, n, sizeof(*found), by_number);
	list = calloc(n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		list[i] = found[i].reg;
		list[i].offset = offset;
		offset += list[i].size;
	}
	make_unique(list, n);
	*ret = (struct gdb_registers){list, n, offset};
	return 0;
}

void gdb_registers_done(struct gdb_registers *registers)
{
	free(registers->list);
	*registers = (struct gdb_registers){};
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/macro.h"
#include "convert/qemu4v/qemu4v-event.h"

#define EVENT_MAX 4072 /* what a sub-buffer of 4096 bytes takes */

/* What all four have in common */
struct start {
	struct event_file_head head;
	uint64_t time;
	uint64_t line;
	struct qemu4v_form form;
};

struct insn {
	struct start start;
	uint64_t id, addr, opcode, phys;
	uint8_t taken, width, secure, unused;
	char iset[4];
	char mode[12];
	uint32_t disasm; /* these: offset in the low half, length in the high half */
};

struct mem {
	struct start start;
	uint64_t addr, phys, data, data_hi;
	uint8_t write, size, aborted, unused;
	char attrib[4];
};

struct reg {
	struct start start;
	uint64_t value;
	uint32_t bits;
	uint32_t name, hex;
	uint32_t unused;
};

struct text {
	struct start start;
	uint32_t text;
	uint32_t unused;
};

_Static_assert(sizeof(struct start) == 32 && sizeof(struct insn) == 88 &&
		       sizeof(struct mem) == 72 && sizeof(struct reg) == 56 &&
		       sizeof(struct text) == 40,
	       "the formats below say so");

#define HEAD(name, id)                                        \
	"name: " name "\nID: " id "\n" EVENT_FILE_HEAD_FORMAT \
	"\tfield:u64 time;\toffset:8;\tsize:8;\tsigned:0;\n"  \
	"\tfield:u64 line;\toffset:16;\tsize:8;\tsigned:0;\n" \
	"\tfield:u64 form;\toffset:24;\tsize:8;\tsigned:0;\n"
#define RW(field) "__print_symbolic(REC->" field ", { 0, \"R\" }, { 1, \"W\" })"

static const char insn_format[] = HEAD(
	"insn",
	"32001") "\tfield:u64 id;\toffset:32;\tsize:8;\tsigned:0;\n"
		 "\tfield:u64 addr;\toffset:40;\tsize:8;\tsigned:0;\n"
		 "\tfield:u64 opcode;\toffset:48;\tsize:8;\tsigned:0;\n"
		 "\tfield:u64 phys;\toffset:56;\tsize:8;\tsigned:0;\n"
		 "\tfield:u8 taken;\toffset:64;\tsize:1;\tsigned:0;\n"
		 "\tfield:u8 width;\toffset:65;\tsize:1;\tsigned:0;\n"
		 "\tfield:u8 secure;\toffset:66;\tsize:1;\tsigned:0;\n"
		 "\tfield:char iset[4];\toffset:68;\tsize:4;\tsigned:0;\n"
		 "\tfield:char mode[12];\toffset:72;\tsize:12;\tsigned:0;\n"
		 "\tfield:__data_loc char[] disasm;\toffset:84;\tsize:4;\tsigned:0;\n"
		 "\nprint fmt: \"%s (%llu) %08llx %04llx %s %s%s : %s\", "
		 "__print_symbolic(REC->taken, { 0, \"IS\" }, { 1, \"IT\" }), REC->id, REC->addr, "
		 "REC->opcode, REC->iset, REC->mode, "
		 "__print_symbolic(REC->secure, { 0, \"_ns\" }, { 1, \"_s\" }, { 2, \"\" }), "
		 "__get_str(disasm)\n";

static const char mem_format[] = HEAD(
	"mem",
	"32002") "\tfield:u64 addr;\toffset:32;\tsize:8;\tsigned:0;\n"
		 "\tfield:u64 phys;\toffset:40;\tsize:8;\tsigned:0;\n"
		 "\tfield:u64 data;\toffset:48;\tsize:8;\tsigned:0;\n"
		 "\tfield:u64 data_hi;\toffset:56;\tsize:8;\tsigned:0;\n"
		 "\tfield:u8 write;\toffset:64;\tsize:1;\tsigned:0;\n"
		 "\tfield:u8 size;\toffset:65;\tsize:1;\tsigned:0;\n"
		 "\tfield:u8 aborted;\toffset:66;\tsize:1;\tsigned:0;\n"
		 "\tfield:char attrib[4];\toffset:68;\tsize:4;\tsigned:0;\n"
		 "\nprint fmt: \"M%s%d%s %08llx data=%llx data_hi=%llx%s\", " RW(
			 "write") ", REC->size, REC->attrib, REC->addr, REC->data, REC->data_hi, "
				  "__print_symbolic(REC->aborted, { 0, \"\" }, { 1, \" (ABORTED)\" })\n";

static const char reg_format[] =
	HEAD("reg", "32003") "\tfield:u64 value;\toffset:32;\tsize:8;\tsigned:0;\n"
			     "\tfield:u32 bits;\toffset:40;\tsize:4;\tsigned:0;\n"
			     "\tfield:__data_loc char[] name;\toffset:44;\tsize:4;\tsigned:0;\n"
			     "\tfield:__data_loc char[] hex;\toffset:48;\tsize:4;\tsigned:0;\n"
			     "\nprint fmt: \"R %s %s\", __get_str(name), __get_str(hex)\n";

static const char text_format[] =
	HEAD("text", "32004") "\tfield:__data_loc char[] text;\toffset:32;\tsize:4;\tsigned:0;\n"
			      "\nprint fmt: \"%s\", __get_str(text)\n";

const char *const qemu4v_event_formats[_QEMU4V_KIND_MAX] = {
	[QEMU4V_TEXT] = text_format,
	[QEMU4V_INSN] = insn_format,
	[QEMU4V_MEM] = mem_format,
	[QEMU4V_REG] = reg_format,
};

/*
 * libkshark (KernelShark) keeps ids in 16 bits with a sign. Earlier files have 60001 and so on:
 * readers go by the formats in the file.
 */
static const struct {
	uint16_t id, size;
} kinds[_QEMU4V_KIND_MAX] = {
	[QEMU4V_INSN] = {32001, sizeof(struct insn)},
	[QEMU4V_MEM] = {32002, sizeof(struct mem)},
	[QEMU4V_REG] = {32003, sizeof(struct reg)},
	[QEMU4V_TEXT] = {32004, sizeof(struct text)},
};

/* --- to an event */

size_t qemu4v_event_size(const struct qemu4v_record *r)
{
	size_t size = kinds[r->kind].size;

	if (r->kind != QEMU4V_MEM)
		size += (size_t)r->text_size + 1;
	if (r->kind == QEMU4V_REG)
		size += (size_t)r->name_size + 1;
	return size <= EVENT_MAX && r->text_size <= QEMU4V_TEXT_MAX ? size : 0;
}

/* Put a text at @at, with its NUL. Return: what says where it is. */
static uint32_t put_text(char *event, size_t at, const char *text, uint32_t size)
{
	if (size)
		memcpy(event + at, text, size);
	event[at + size] = '\0';
	return (size + 1) << 16 | (uint32_t)at;
}

static void write_insn(const struct qemu4v_record *r, const struct start *start, void *out)
{
	struct insn e = {
		.start = *start,
		.id = r->id,
		.addr = r->addr,
		.opcode = r->data,
		.phys = r->phys,
		.taken = r->taken,
		.width = (uint8_t)r->bits,
		.secure = r->secure,
		.disasm = put_text(out, sizeof(e), r->text, r->text_size),
	};

	memcpy(e.iset, r->iset, sizeof(e.iset));
	memcpy(e.mode, r->mode, sizeof(e.mode));
	memcpy(out, &e, sizeof(e));
}

static void write_mem(const struct qemu4v_record *r, const struct start *start, void *out)
{
	struct mem e = {
		.start = *start,
		.addr = r->addr,
		.phys = r->phys,
		.data = r->data,
		.data_hi = r->data_hi,
		.write = r->write,
		.size = r->size,
		.aborted = r->aborted,
	};

	memcpy(e.attrib, r->attrib, sizeof(e.attrib));
	memcpy(out, &e, sizeof(e));
}

static void write_reg(const struct qemu4v_record *r, const struct start *start, void *out)
{
	const struct reg e = {
		.start = *start,
		.value = r->data,
		.bits = r->bits,
		.name = put_text(out, sizeof(e), r->name, r->name_size),
		.hex = put_text(out, sizeof(e) + r->name_size + 1, r->text, r->text_size),
	};

	memcpy(out, &e, sizeof(e));
}

static void write_text(const struct qemu4v_record *r, const struct start *start, void *out)
{
	const struct text e = {
		.start = *start,
		.text = put_text(out, sizeof(e), r->text, r->text_size),
	};

	memcpy(out, &e, sizeof(e));
}

void qemu4v_event_write(const struct qemu4v_record *r, uint64_t line, int32_t pid, void *out)
{
	const struct start start = {
		.head = {.type = kinds[r->kind].id, .pid = pid},
		.time = r->time,
		.line = line,
		.form = r->form,
	};

	if (r->kind == QEMU4V_INSN)
		write_insn(r, &start, out);
	else if (r->kind == QEMU4V_MEM)
		write_mem(r, &start, out);
	else if (r->kind == QEMU4V_REG)
		write_reg(r, &start, out);
	else
		write_text(r, &start, out);
}

/* --- from an event */

static bool get_text(const char *event, size_t size, uint32_t loc, const char **ret,
		     uint32_t *ret_size)
{
	size_t at = loc & UINT16_MAX, n = loc >> 16;

	if (n == 0 || at + n > size || event[at + n - 1] != '\0')
		return false;
	*ret = event + at;
	*ret_size = (uint32_t)n - 1;
	return true;
}

static bool read_insn(const void *data, size_t size, struct qemu4v_record *r)
{
	struct insn e;

	memcpy(&e, data, sizeof(e));
	r->id = e.id;
	r->addr = e.addr;
	r->data = e.opcode;
	r->phys = e.phys;
	r->taken = e.taken;
	r->bits = e.width;
	r->secure = e.secure;
	memcpy(r->iset, e.iset, sizeof(r->iset));
	memcpy(r->mode, e.mode, sizeof(r->mode));
	return get_text(data, size, e.disasm, &r->text, &r->text_size);
}

static bool read_mem(const void *data, struct qemu4v_record *r)
{
	struct mem e;

	memcpy(&e, data, sizeof(e));
	r->addr = e.addr;
	r->phys = e.phys;
	r->data = e.data;
	r->data_hi = e.data_hi;
	r->write = e.write;
	r->size = e.size;
	r->aborted = e.aborted;
	memcpy(r->attrib, e.attrib, sizeof(r->attrib));
	return true;
}

static bool read_reg(const void *data, size_t size, struct qemu4v_record *r)
{
	struct reg e;

	memcpy(&e, data, sizeof(e));
	r->data = e.value;
	r->bits = (uint16_t)MIN(e.bits, (uint32_t)UINT16_MAX);
	return get_text(data, size, e.name, &r->name, &r->name_size) &&
	       get_text(data, size, e.hex, &r->text, &r->text_size);
}

int qemu4v_event_read(enum qemu4v_kind kind, uint32_t cpu, const void *data, size_t size,
		      struct qemu4v_record *ret, uint64_t *ret_line)
{
	struct qemu4v_record r = {.kind = kind, .cpu = cpu, .has_time = true};
	struct start start;
	struct text text;
	bool sound = true;

	if (size < kinds[kind].size)
		return -EBADMSG;
	memcpy(&start, data, sizeof(start));
	r.time = start.time;
	r.form = start.form;
	if (kind == QEMU4V_INSN) {
		sound = read_insn(data, size, &r);
	} else if (kind == QEMU4V_MEM) {
		sound = read_mem(data, &r);
	} else if (kind == QEMU4V_REG) {
		sound = read_reg(data, size, &r);
	} else {
		memcpy(&text, data, sizeof(text));
		sound = get_text(data, size, text.text, &r.text, &r.text_size);
	}
	if (!sound || r.form.scale >= _QEMU4V_SCALE_MAX)
		return -EBADMSG;
	*ret = r;
	*ret_line = start.line;
	return 0;
}

uint64_t qemu4v_event_line(const void *data, size_t size)
{
	struct start start;

	if (size < sizeof(start))
		return 0;
	memcpy(&start, data, sizeof(start));
	return start.line;
}

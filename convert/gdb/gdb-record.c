/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#include "basic/strv.h"
#include "convert/gdb/gdb-record.h"
#include "writer/event-file.h"

const char *const gdb_record_formats[3] = {
	"name: memory\nID: 997\n" EVENT_FILE_HEAD_FORMAT
	"\tfield:u32 frame;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:u64 address;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc u8[] data;\toffset:24;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"frame=%u 0x%llx: %s\", REC->frame, REC->address, "
	"__print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data))\n",
	"name: registers\nID: 998\n" EVENT_FILE_HEAD_FORMAT
	"\tfield:u32 frame;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:u32 from;\toffset:12;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc u8[] data;\toffset:16;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"frame=%u from=%u: %s\", REC->frame, REC->from, "
	"__print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data))\n",
	"name: variable\nID: 999\n" EVENT_FILE_HEAD_FORMAT
	"\tfield:u32 frame;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:u32 number;\toffset:12;\tsize:4;\tsigned:0;\n"
	"\tfield:s64 value;\toffset:16;\tsize:8;\tsigned:1;\n\n"
	"print fmt: \"frame=%u $%u=%lld\", REC->frame, REC->number, REC->value\n",
};

/* A register of its own for what is left of the block, or of all of it */
static int add_rest(struct gdb_registers *registers, uint32_t size, const char *name)
{
	struct gdb_register *rest = reallocarray(registers->list, registers->n + 1, sizeof(*rest));

	if (!rest)
		return -ENOMEM;
	registers->list = rest;
	rest += registers->n++;
	*rest = (struct gdb_register){.offset = registers->size, .size = size - registers->size};
	(void)snprintf(rest->name, sizeof(rest->name), "%s", name);
	registers->size = size;
	return 0;
}

static int find_registers(struct gdb_record *record, const struct gdb_tfile *tfile)
{
	struct gdb_registers *registers = &record->registers;
	int r = -ENOENT;

	record->arch = gdb_arch_of_tdesc(tfile->tdesc);
	if (tfile->tdesc)
		r = gdb_registers_from_tdesc(tfile->tdesc, registers);
	if (r == -ENOENT && record->arch == GDB_ARCH_UNKNOWN)
		record->arch = gdb_arch_of_size(tfile->register_size);
	if (r == -ENOENT)
		r = gdb_registers_of(record->arch, registers);
	if (r == -ENOMEM)
		return r;
	/* what does not fit into an event follows in others */
	record->kept = MIN(tfile->register_size, GDB_RECORD_REGISTERS);
	while (registers->n > 0 && registers->size > record->kept)
		registers->size = registers->list[--registers->n].offset;
	if (registers->n == 0)
		registers->size = 0;
	if (registers->size == record->kept)
		return 0;
	return add_rest(registers, record->kept, registers->n ? "_rest" : "_registers");
}

static bool field_exists(const struct gdb_record *record, const char *name)
{
	static const char *const others[] = {"frame", "tracepoint"};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strcmp(others[i], name) == 0)
			return true;
	for (size_t i = 0; i < record->registers.n; i++)
		if (strcmp(record->registers.list[i].name, name) == 0)
			return true;
	return strncmp(name, "common_", 7) == 0 || strv_contains(record->names, name);
}

/* Letters, digits and '_'; a name that there is already gets '_' behind it */
static int add_name(struct gdb_record *record, const char *name)
{
	_cleanup_free_ char *field = malloc(strlen(name) + 2);
	size_t n = 0;

	if (!field)
		return -ENOMEM;
	if (!*name || isdigit((unsigned char)*name))
		field[n++] = '_';
	for (; *name; name++)
		field[n++] = isalnum((unsigned char)*name) ? *name : '_';
	field[n] = '\0';
	while (field_exists(record, field)) {
		char *more = realloc(field, n + 2);

		if (!more)
			return -ENOMEM;
		field = more;
		field[n++] = '_';
		field[n] = '\0';
	}
	return strv_append(&record->names, field);
}

int gdb_record_new(const struct gdb_tfile *tfile, struct gdb_record **ret)
{
	_cleanup_(gdb_record_freep) struct gdb_record *record = calloc(1, sizeof(*record));
	int r;

	if (!record)
		return -ENOMEM;
	r = find_registers(record, tfile);
	for (size_t i = 0; i < tfile->n_variables && r >= 0; i++)
		r = add_name(record, tfile->variables[i].name);
	if (r >= 0)
		*ret = TAKE_PTR(record);
	return r;
}

struct gdb_record *gdb_record_free(struct gdb_record *record)
{
	if (!record)
		return NULL;
	gdb_registers_done(&record->registers);
	strv_free(record->names);
	free(record);
	return NULL;
}

uint32_t gdb_record_size(const struct gdb_record *record, const struct gdb_shape *shape)
{
	return GDB_RECORD_BLOCK_AT + (shape->has_registers ? record->kept : 0) + 8 * shape->n;
}

/* Of the field of a variable. @buffer: for one that the description lacks */
static const char *variable_name(const struct gdb_record *record, const struct gdb_tfile *tfile,
				 uint32_t number, char buffer[32])
{
	for (size_t i = 0; i < tfile->n_variables; i++)
		if (tfile->variables[i].number == number)
			return record->names[i];
	(void)snprintf(buffer, 32, "_variable%" PRIu32, number);
	return buffer;
}

bool gdb_record_variable(const struct gdb_record *record, const struct gdb_tfile *tfile,
			 const char *field, uint32_t *ret)
{
	for (size_t i = 0; i < tfile->n_variables; i++)
		if (strcmp(record->names[i], field) == 0) {
			*ret = tfile->variables[i].number;
			return true;
		}
	return sscanf(field, "_variable%" SCNu32, ret) == 1;
}

static bool is_number(const struct gdb_register *reg)
{
	return reg->size == 1 || reg->size == 2 || reg->size == 4 || reg->size == 8;
}

void gdb_record_swap(const struct gdb_record *record, uint8_t *block)
{
	for (size_t i = 0; i < record->registers.n; i++) {
		const struct gdb_register *reg = &record->registers.list[i];
		uint8_t *p = block + reg->offset;

		for (uint32_t k = 0; is_number(reg) && k < reg->size / 2; k++)
			SWAP(p[k], p[reg->size - 1 - k]);
	}
}

static void put_registers(const struct gdb_record *record, FILE *fields, FILE *print, FILE *args)
{
	for (size_t i = 0; i < record->registers.n; i++) {
		const struct gdb_register *reg = &record->registers.list[i];
		const uint32_t at = GDB_RECORD_BLOCK_AT + reg->offset;

		if (!is_number(reg)) {
			(void)fprintf(fields,
				      "\tfield:u8 %s[%u];\toffset:%u;\tsize:%u;\tsigned:0;\n",
				      reg->name, reg->size, at, reg->size);
			continue;
		}
		(void)fprintf(fields, "\tfield:u%u %s;\toffset:%u;\tsize:%u;\tsigned:0;\n",
			      8 * reg->size, reg->name, at, reg->size);
		(void)fprintf(print, " %s=0x%%%s", reg->name, reg->size == 8 ? "llx" : "x");
		(void)fprintf(args, ", REC->%s", reg->name);
	}
}

static void put_fields(const struct gdb_record *record, const struct gdb_tfile *tfile,
		       const struct gdb_shape *shape, FILE *fields, FILE *print, FILE *args)
{
	uint32_t at = GDB_RECORD_BLOCK_AT + (shape->has_registers ? record->kept : 0);

	(void)fputs("\tfield:u32 frame;\toffset:8;\tsize:4;\tsigned:0;\n"
		    "\tfield:u32 tracepoint;\toffset:12;\tsize:4;\tsigned:0;\n",
		    fields);
	(void)fputs("frame=%u", print);
	(void)fputs(", REC->frame", args);
	if (shape->has_registers)
		put_registers(record, fields, print, args);
	for (uint32_t i = 0; i < shape->n; i++, at += 8) {
		char buffer[32];
		const char *name = variable_name(record, tfile, shape->variables[i], buffer);

		(void)fprintf(fields, "\tfield:s64 %s;\toffset:%u;\tsize:8;\tsigned:1;\n", name,
			      at);
		(void)fprintf(print, " %s=%%lld", name);
		(void)fprintf(args, ", REC->%s", name);
	}
}

int gdb_record_format(const struct gdb_record *record, const struct gdb_tfile *tfile,
		      const struct gdb_shape *shape, unsigned ordinal, unsigned id, char **ret)
{
	_cleanup_free_ char *fields = NULL, *print = NULL, *args = NULL;
	FILE *files[3];
	char **texts[3] = {&fields, &print, &args};
	size_t sizes[3];
	char more[16] = "";
	int r = 0;

	for (size_t i = 0; i < 3; i++)
		files[i] = open_memstream(texts[i], &sizes[i]);
	if (files[0] && files[1] && files[2])
		put_fields(record, tfile, shape, files[0], files[1], files[2]);
	for (size_t i = 0; i < 3; i++)
		if (!files[i] || fclose(files[i]) != 0)
			r = -ENOMEM;
	if (r < 0)
		return r;
	if (ordinal > 1)
		(void)snprintf(more, sizeof(more), "_%u", ordinal);
	*ret = strf("name: tp%" PRIu32 "%s\nID: %u\n" EVENT_FILE_HEAD_FORMAT
		    "%s\nprint fmt: \"%s\"%s\n",
		    shape->tracepoint, more, id, fields, print, args);
	return *ret ? 0 : -ENOMEM;
}

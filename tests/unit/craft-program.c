/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <gelf.h>
#include <libelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "tests/unit/craft-program.h"

#define MOVED 0x1000 /* by which it has been moved */
#define ALIGN 16

/* Texts of a table, each with its NUL, behind an empty one */
#define SECTION_NAMES                                                                 \
	"\0.text\0.data\0.note.gnu.build-id\0.stapsdt.base\0.note.stapsdt\0.dynsym\0" \
	".dynstr\0.gnu.version\0.gnu.version_d\0.symtab\0.strtab\0.shstrtab"
#define EXPORTED_NAMES "\0craft_both\0craft.so\0V1\0V2"
#define SYMBOL_NAMES   "\0craft_add\0craft_number\0craft_semaphore"

enum {
	TEXT = 1, /* numbers of sections */
	DATA,
	DYNSTR = 7,
	STRTAB = 11,
};

struct crafted {
	Elf *elf;
	int class;
	uint64_t end; /* of what has been placed in the file */
};

static size_t name_at(const char *names, size_t size, const char *name)
{
	const char *at = memmem(names, size, name, strlen(name) + 1);

	assert_non_null(at);
	return (size_t)(at - names);
}

/* At @offset, or behind the last one. @bytes: must stay until the file is written */
static void add_section(struct crafted *c, const char *name, GElf_Shdr header, uint64_t offset,
			const void *bytes, size_t size)
{
	Elf_Scn *section = elf_newscn(c->elf);
	Elf_Data *data = elf_newdata(section);

	assert_non_null(data);
	data->d_buf = (void *)bytes;
	data->d_size = size;
	data->d_align = 1;
	data->d_version = EV_CURRENT;
	data->d_type = ELF_T_BYTE; /* in the byte order of this machine already */
	header.sh_name = (uint32_t)name_at(SECTION_NAMES, sizeof(SECTION_NAMES), name);
	header.sh_offset = offset ? offset : (c->end + ALIGN - 1) / ALIGN * ALIGN;
	header.sh_addr = header.sh_offset + CRAFT_PROGRAM_BASE;
	header.sh_size = size;
	header.sh_addralign = 1;
	c->end = header.sh_offset + size;
	assert_int_equal(gelf_update_shdr(section, &header), 1);
}

static size_t put_address(const struct crafted *c, uint8_t *to, uint64_t address)
{
	uint32_t half = (uint32_t)address;

	if (c->class == ELFCLASS64)
		memcpy(to, &address, sizeof(address));
	else
		memcpy(to, &half, sizeof(half));
	return c->class == ELFCLASS64 ? sizeof(address) : sizeof(half);
}

static size_t put_note(uint8_t *to, const char *name, uint32_t type, const void *bytes, size_t size)
{
	const uint32_t head[] = {(uint32_t)strlen(name) + 1, (uint32_t)size, type};

	memcpy(to, head, sizeof(head));
	memcpy(to + sizeof(head), name, head[0]);
	memcpy(to + sizeof(head) + (head[0] + 3) / 4 * 4, bytes, size);
	return sizeof(head) + (head[0] + 3) / 4 * 4 + (size + 3) / 4 * 4;
}

/* Addresses as they were linked. The base, which was placed last, says by how much they have moved.
 */
static size_t put_probe(const struct crafted *c, uint8_t *to, const char *arguments)
{
	uint8_t bytes[160];
	size_t n = put_address(c, bytes, CRAFT_PROGRAM_BASE + CRAFT_PROGRAM_PROBE - MOVED);

	n += put_address(c, bytes + n, CRAFT_PROGRAM_BASE + c->end - 1 - MOVED);
	n += put_address(c, bytes + n, CRAFT_PROGRAM_BASE + CRAFT_PROGRAM_COUNTER - MOVED);
	n += (size_t)snprintf((char *)bytes + n, sizeof(bytes) - n, "craft%crequest%c%s", 0, 0,
			      arguments) +
	     1;
	assert_true(n < sizeof(bytes));
	return put_note(to, "stapsdt", 3, bytes, n);
}

static size_t put_symbol(const struct crafted *c, uint8_t *to, uint32_t name, unsigned type,
			 uint16_t section, uint64_t offset)
{
	const uint8_t info = GELF_ST_INFO(STB_GLOBAL, type);
	const Elf64_Sym wide = {name, info, 0, section, CRAFT_PROGRAM_BASE + offset, 4};
	const Elf32_Sym narrow = {name, (uint32_t)wide.st_value, 4, info, 0, section};

	if (c->class == ELFCLASS64)
		memcpy(to, &wide, sizeof(wide));
	else
		memcpy(to, &narrow, sizeof(narrow));
	return c->class == ELFCLASS64 ? sizeof(wide) : sizeof(narrow);
}

/* The file itself, V1 and V2 */
static size_t put_versions(uint8_t *to)
{
	static const char *const names[] = {"craft.so", "V1", "V2"};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const Elf64_Verdaux aux = {.vda_name = (uint32_t)name_at(EXPORTED_NAMES,
									 sizeof(EXPORTED_NAMES),
									 names[i])};
		const Elf64_Verdef def = {
			.vd_version = VER_DEF_CURRENT,
			.vd_flags = i == 0 ? VER_FLG_BASE : 0,
			.vd_ndx = (uint16_t)(i + 1),
			.vd_cnt = 1,
			.vd_aux = sizeof(def),
			.vd_next = i + 1 < ARRAY_SIZE(names) ? sizeof(def) + sizeof(aux) : 0,
		};

		memcpy(to + n, &def, sizeof(def));
		memcpy(to + n + sizeof(def), &aux, sizeof(aux));
		n += sizeof(def) + sizeof(aux);
	}
	return n;
}

static void add_exported(struct crafted *c, uint8_t *symbols, uint8_t *definitions)
{
	static const uint16_t versions[] = {0, 0x8002, 3}; /* the first one is hidden */
	const uint32_t name =
		(uint32_t)name_at(EXPORTED_NAMES, sizeof(EXPORTED_NAMES), "craft_both");
	const size_t entry = gelf_fsize(c->elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t n = entry;

	n += put_symbol(c, symbols + n, name, STT_FUNC, TEXT, CRAFT_PROGRAM_OLD);
	n += put_symbol(c, symbols + n, name, STT_FUNC, TEXT, CRAFT_PROGRAM_NEW);
	add_section(c, ".dynsym",
		    (GElf_Shdr){.sh_type = SHT_DYNSYM, .sh_link = DYNSTR, .sh_entsize = entry}, 0,
		    symbols, n);
	add_section(c, ".dynstr", (GElf_Shdr){.sh_type = SHT_STRTAB}, 0, EXPORTED_NAMES,
		    sizeof(EXPORTED_NAMES));
	add_section(c, ".gnu.version", (GElf_Shdr){.sh_type = SHT_GNU_versym, .sh_entsize = 2}, 0,
		    versions, sizeof(versions));
	add_section(c, ".gnu.version_d", (GElf_Shdr){.sh_type = SHT_GNU_verdef, .sh_link = DYNSTR},
		    0, definitions, put_versions(definitions));
}

static void add_symbols(struct crafted *c, uint8_t *symbols)
{
	static const char names[] = SYMBOL_NAMES;
	const size_t entry = gelf_fsize(c->elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t n = entry;

	n += put_symbol(c, symbols + n, (uint32_t)name_at(names, sizeof(names), "craft_add"),
			STT_FUNC, TEXT, CRAFT_PROGRAM_TEXT);
	n += put_symbol(c, symbols + n, (uint32_t)name_at(names, sizeof(names), "craft_number"),
			STT_OBJECT, DATA, CRAFT_PROGRAM_DATA);
	n += put_symbol(c, symbols + n, (uint32_t)name_at(names, sizeof(names), "craft_semaphore"),
			STT_OBJECT, DATA, CRAFT_PROGRAM_COUNTER);
	add_section(c, ".symtab",
		    (GElf_Shdr){.sh_type = SHT_SYMTAB, .sh_link = STRTAB, .sh_entsize = entry}, 0,
		    symbols, n);
	add_section(c, ".strtab", (GElf_Shdr){.sh_type = SHT_STRTAB}, 0, names, sizeof(names));
}

static void add_headers(struct crafted *c, unsigned machine, uint64_t id_at, size_t id_size)
{
	GElf_Ehdr header;
	GElf_Phdr load = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_vaddr = CRAFT_PROGRAM_BASE,
		.p_filesz = c->end,
		.p_memsz = c->end,
		.p_align = 0x1000,
	};
	GElf_Phdr note = {
		.p_type = PT_NOTE,
		.p_offset = id_at,
		.p_vaddr = CRAFT_PROGRAM_BASE + id_at,
		.p_filesz = id_size,
		.p_memsz = id_size,
		.p_align = 4,
	};

	assert_non_null(gelf_newphdr(c->elf, 2));
	assert_int_equal(gelf_update_phdr(c->elf, 0, &load), 1);
	assert_int_equal(gelf_update_phdr(c->elf, 1, &note), 1);
	assert_non_null(gelf_getehdr(c->elf, &header));
	header.e_ident[EI_DATA] =
		__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB;
	header.e_type = ET_DYN;
	header.e_machine = (uint16_t)machine;
	header.e_version = EV_CURRENT;
	header.e_phoff = gelf_fsize(c->elf, ELF_T_EHDR, 1, EV_CURRENT);
	header.e_shoff = (c->end + ALIGN - 1) / ALIGN * ALIGN;
	header.e_shstrndx = STRTAB + 1;
	assert_int_equal(gelf_update_ehdr(c->elf, &header), 1);
}

void craft_program(int fd, int class, unsigned machine, const char *arguments)
{
	static const uint8_t code[0x40], data[16], base[1];
	uint8_t id[64] = {}, sha1[20], probe[256] = {}, symbols[2][4 * sizeof(Elf64_Sym)] = {};
	uint8_t definitions[3 * (sizeof(Elf64_Verdef) + sizeof(Elf64_Verdaux))];
	struct crafted c = {.class = class};
	size_t id_size;
	uint64_t id_at;

	for (uint8_t i = 0; i < sizeof(sha1); i++)
		sha1[i] = i;
	(void)elf_version(EV_CURRENT);
	c.elf = elf_begin(fd, ELF_C_WRITE, NULL);
	assert_non_null(c.elf);
	assert_non_null(gelf_newehdr(c.elf, class));
	(void)elf_flagelf(c.elf, ELF_C_SET, ELF_F_LAYOUT);

	add_section(&c, ".text",
		    (GElf_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR},
		    CRAFT_PROGRAM_TEXT, code, sizeof(code));
	add_section(&c, ".data",
		    (GElf_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_WRITE},
		    CRAFT_PROGRAM_DATA, data, sizeof(data));
	id_size = put_note(id, "GNU", NT_GNU_BUILD_ID, sha1, sizeof(sha1));
	add_section(&c, ".note.gnu.build-id", (GElf_Shdr){.sh_type = SHT_NOTE}, 0, id, id_size);
	id_at = c.end - id_size;
	add_section(&c, ".stapsdt.base", (GElf_Shdr){.sh_type = SHT_PROGBITS}, 0, base,
		    sizeof(base));
	add_section(&c, ".note.stapsdt", (GElf_Shdr){.sh_type = SHT_NOTE}, 0, probe,
		    put_probe(&c, probe, arguments));
	add_exported(&c, symbols[0], definitions);
	add_symbols(&c, symbols[1]);
	add_section(&c, ".shstrtab", (GElf_Shdr){.sh_type = SHT_STRTAB}, 0, SECTION_NAMES,
		    sizeof(SECTION_NAMES));
	add_headers(&c, machine, id_at, id_size);
	assert_true(elf_update(c.elf, ELF_C_WRITE) > 0);
	(void)elf_end(c.elf);
}

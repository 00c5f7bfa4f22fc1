/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/near.h"
#include "basic/strv.h"
#include "recorder/program.h"

/* Far more than browsers with all their symbols have */
#define SYMBOLS_MAX (128 * MIB)
#define STRINGS_MAX (512 * MIB)
#define NOTES_MAX   (16 * MIB)
#define SITES_MAX   1024 /* of one probe: each is an event to the kernel */

#define BUILD_ID_MAX 64 /* bytes; 20 with SHA-1 */

#define NOTE_BUILD_ID "GNU"
#define NOTE_USDT     "stapsdt"
#define USDT_TYPE     3
#define VERSION_MASK \
	0x7fff /* of a symbol's version; the bit above: only for programs linked with it */

struct program {
	char *path;
	int fd;
	Elf *elf;
	GElf_Ehdr header;
	char build_id[2 * BUILD_ID_MAX + 1];
	bool has_symtab; /* else only exported functions are known */
};

void program_free(struct program *program)
{
	if (!program)
		return;
	if (program->elf)
		(void)elf_end(program->elf);
	close_p(&program->fd);
	free(program->path);
	free(program);
}

static int malformed(const struct program *p, const char *what, struct fault *why)
{
	int error = elf_errno();

	return fault_set(why, -EBADMSG, "%s: %s cannot be read: %s", p->path, what,
			 error ? elf_errmsg(error) : "the file is damaged");
}

/* --- opening */

#define NATIVE_DATA (__BYTE_ORDER == __BIG_ENDIAN ? ELFDATA2MSB : ELFDATA2LSB)

static bool is_native(unsigned machine)
{
#if defined(__x86_64__)
	return machine == EM_X86_64 || machine == EM_386;
#elif defined(__i386__)
	return machine == EM_386;
#elif defined(__aarch64__)
	return machine == EM_AARCH64 || machine == EM_ARM;
#elif defined(__arm__)
	return machine == EM_ARM;
#elif defined(__riscv)
	return machine == EM_RISCV;
#elif defined(__s390x__)
	return machine == EM_S390;
#elif defined(__powerpc64__)
	return machine == EM_PPC64;
#else
	return true;
#endif
}

static int check_header(struct program *p, uint64_t size, struct fault *why)
{
	uint64_t sections;

	if (elf_kind(p->elf) != ELF_K_ELF)
		return fault_set(why, -ENOEXEC, "%s is not a program or library (not an ELF file)",
				 p->path);
	if (!gelf_getehdr(p->elf, &p->header))
		return malformed(p, "the ELF header", why);
	if (!is_native(p->header.e_machine) || p->header.e_ident[EI_DATA] != NATIVE_DATA)
		return fault_set(why, -ENOEXEC,
				 "%s is for another kind of machine (ELF machine %u)", p->path,
				 p->header.e_machine);
	if (p->header.e_type != ET_EXEC && p->header.e_type != ET_DYN)
		return fault_set(why, -ENOEXEC,
				 "%s is neither a program nor a shared library (ELF type %u)",
				 p->path, p->header.e_type);
	/* libelf takes one that was cut off for one without sections */
	sections = MAX(p->header.e_shnum, 1U) * (uint64_t)p->header.e_shentsize;
	if (p->header.e_shoff > 0 &&
	    (p->header.e_shoff > size || sections > size - p->header.e_shoff))
		return fault_set(why, -EBADMSG, "%s is cut off: its table of sections is missing",
				 p->path);
	return 0;
}

/* One of the notes in @data whose name and type match, from *@at on: its descriptor */
static bool next_note(Elf_Data *data, const char *name, unsigned type, size_t *at,
		      const uint8_t **ret, size_t *ret_size)
{
	size_t next, name_at, desc_at;
	GElf_Nhdr head;

	while ((next = gelf_getnote(data, *at, &head, &name_at, &desc_at)) > 0) {
		const char *bytes = data->d_buf;

		*at = next;
		if (head.n_type != type || head.n_namesz != strlen(name) + 1 ||
		    memcmp(bytes + name_at, name, head.n_namesz) != 0)
			continue;
		*ret = (const uint8_t *)bytes + desc_at;
		*ret_size = head.n_descsz;
		return true;
	}
	return false;
}

/* By the program headers, which a stripped file has as well; what is damaged is none */
static void read_build_id(struct program *p)
{
	size_t n = 0;

	(void)elf_getphdrnum(p->elf, &n);
	for (size_t i = 0; i < n; i++) {
		const uint8_t *id;
		size_t size, at = 0;
		GElf_Phdr ph;
		Elf_Data *data;

		if (!gelf_getphdr(p->elf, (int)i, &ph) || ph.p_type != PT_NOTE ||
		    ph.p_filesz > NOTES_MAX)
			continue;
		data = elf_getdata_rawchunk(p->elf, (int64_t)ph.p_offset, ph.p_filesz,
					    ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		if (!data || !next_note(data, NOTE_BUILD_ID, NT_GNU_BUILD_ID, &at, &id, &size) ||
		    size > BUILD_ID_MAX)
			continue;
		for (size_t b = 0; b < size; b++)
			(void)snprintf(p->build_id + 2 * b, 3, "%02x", id[b]);
		return;
	}
}

int program_open(const char *path, struct program **ret, struct fault *why)
{
	_cleanup_(program_freep) struct program *p = calloc(1, sizeof(*p));
	struct stat st;
	int r;

	if (!p)
		return fault_errno(why, -ENOMEM, "cannot open %s", path);
	p->fd = io_open_at(AT_FDCWD, path, 0);
	if (p->fd < 0)
		return fault_errno(why, p->fd, "cannot open %s", path);
	p->path = strdup(path);
	if (!p->path)
		return fault_errno(why, -ENOMEM, "cannot open %s", path);
	if (fstat(p->fd, &st) < 0)
		return fault_errno(why, -errno, "cannot open %s", path);
	if (!S_ISREG(st.st_mode))
		return fault_set(why, -ENOEXEC, "%s is not a program or library (not a file)",
				 path);
	(void)elf_version(EV_CURRENT);
	p->elf = elf_begin(p->fd, ELF_C_READ, NULL);
	if (!p->elf)
		return malformed(p, "the ELF header", why);
	r = check_header(p, (uint64_t)st.st_size, why);
	if (r < 0)
		return r;
	read_build_id(p);
	*ret = TAKE_PTR(p);
	return 0;
}

unsigned program_machine(const struct program *program)
{
	return program->header.e_machine;
}

const char *program_build_id(const struct program *program)
{
	return program->build_id;
}

/* --- addresses */

/* @executable: must it be code? */
static int file_offset(const struct program *p, uint64_t address, bool executable, uint64_t *ret)
{
	size_t n = 0;

	(void)elf_getphdrnum(p->elf, &n);
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(p->elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    (executable && !(ph.p_flags & PF_X)) || address < ph.p_vaddr ||
		    address - ph.p_vaddr >= ph.p_filesz)
			continue;
		*ret = address - ph.p_vaddr + ph.p_offset;
		return 0;
	}
	return -ENOENT;
}

/* --- symbols */

/* A table of symbols, and of their versions */
struct table {
	Elf_Data *symbols;
	size_t n;
	size_t strings; /* section */
	Elf_Data *versions, *definitions;
	size_t version_strings;
};

static bool section_header(Elf_Scn *section, GElf_Shdr *ret)
{
	return gelf_getshdr(section, ret) != NULL;
}

/* Of a section that is not larger than it may be; NULL: it cannot be had */
static Elf_Data *section_data(Elf_Scn *section, const GElf_Shdr *header, uint64_t max)
{
	Elf_Data *data;

	if (header->sh_type == SHT_NOBITS || header->sh_size > max)
		return NULL;
	data = elf_getdata(section, NULL);
	return data && data->d_buf ? data : NULL;
}

static void find_versions(const struct program *p, struct table *t)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(p->elf, section))) {
		GElf_Shdr header;

		if (!section_header(section, &header))
			continue;
		if (header.sh_type == SHT_GNU_versym)
			t->versions = section_data(section, &header, SYMBOLS_MAX);
		if (header.sh_type == SHT_GNU_verdef) {
			t->definitions = section_data(section, &header, SYMBOLS_MAX);
			t->version_strings = header.sh_link;
		}
	}
}

/* 1; 0: the file has none; or -EBADMSG */
static int find_table(struct program *p, unsigned type, struct table *ret, struct fault *why)
{
	Elf_Scn *section = NULL, *strings;
	GElf_Shdr header, strings_header;

	while ((section = elf_nextscn(p->elf, section)))
		if (section_header(section, &header) && header.sh_type == type)
			break;
	if (!section)
		return 0;
	strings = elf_getscn(p->elf, header.sh_link);
	if (!strings || !section_header(strings, &strings_header))
		return malformed(p, "the table of symbols", why);
	if (header.sh_size > SYMBOLS_MAX || strings_header.sh_size > STRINGS_MAX)
		return fault_set(why, -EFBIG,
				 "%s: its table of symbols is larger than is read, give an offset "
				 "into the file",
				 p->path);
	*ret = (struct table){.strings = header.sh_link};
	if (header.sh_size == 0) /* as "strip" may leave it */
		return 0;
	ret->symbols = section_data(section, &header, SYMBOLS_MAX);
	if (!ret->symbols || header.sh_entsize == 0)
		return malformed(p, "the table of symbols", why);
	ret->n = ret->symbols->d_size / gelf_fsize(p->elf, ELF_T_SYM, 1, EV_CURRENT);
	if (type == SHT_DYNSYM)
		find_versions(p, ret);
	return 1;
}

static const char *version_name(const struct program *p, const struct table *t, unsigned index)
{
	size_t at = 0, steps = 0;
	GElf_Verdef def;
	GElf_Verdaux aux;

	/* a chain that leads back would have no end */
	while (t->definitions && steps++ < VERSION_MASK &&
	       gelf_getverdef(t->definitions, (int)at, &def)) {
		if (def.vd_ndx == index)
			return gelf_getverdaux(t->definitions, (int)(at + def.vd_aux), &aux)
				       ? elf_strptr(p->elf, t->version_strings, aux.vda_name)
				       : NULL;
		if (def.vd_next == 0)
			return NULL;
		at += def.vd_next;
		if (at > INT32_MAX)
			return NULL;
	}
	return NULL;
}

/* A symbol with its name taken apart: "memcpy@@GLIBC_2.14", or by the table of versions */
struct symbol {
	GElf_Sym elf;
	const char *name;
	size_t name_size;
	const char *version; /* or NULL */
	bool hidden;	     /* of a version for programs linked with it only */
};

static bool get_symbol(const struct program *p, const struct table *t, size_t i, struct symbol *ret)
{
	GElf_Versym version;
	const char *at;

	if (!gelf_getsym(t->symbols, (int)i, &ret->elf))
		return false;
	ret->name = elf_strptr(p->elf, t->strings, ret->elf.st_name);
	if (!ret->name || !*ret->name)
		return false;
	at = strchr(ret->name, '@');
	ret->name_size = at ? (size_t)(at - ret->name) : strlen(ret->name);
	ret->hidden = at && at[1] != '@';
	ret->version = at ? at + 1 + (at[1] == '@') : NULL;
	if (!at && t->versions && gelf_getversym(t->versions, (int)i, &version)) {
		ret->hidden = version & ~VERSION_MASK;
		ret->version = (version & VERSION_MASK) > 1
				       ? version_name(p, t, version & VERSION_MASK)
				       : NULL;
	}
	return true;
}

/* What a search has found, the best of it */
struct search {
	const char *name; /* without its version */
	size_t size;
	const char *version; /* or NULL: any, best the default one */
	bool functions;	     /* else variables */

	unsigned rank; /* 0: nothing */
	struct symbol found;
	uint64_t others; /* another address of the same rank, 0: none */

	bool other_type; /* there is one, but it is no function */
	bool imported;
	bool suggests; /* nothing was found: gather what is near, which takes several times as long
			*/
	struct near_list near;
};

static bool is_wanted_type(const struct search *s, unsigned type)
{
	if (!s->functions)
		return type == STT_OBJECT || type == STT_NOTYPE || type == STT_COMMON;
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

static unsigned rank_of(const struct symbol *symbol)
{
	if (symbol->hidden)
		return 1;
	return GELF_ST_BIND(symbol->elf.st_info) == STB_LOCAL ? 2 : 3;
}

static void consider(struct search *s, const struct symbol *symbol)
{
	unsigned rank = rank_of(symbol);

	if (s->version && !text_equal(s->version, symbol->version))
		return;
	if (symbol->elf.st_shndx == SHN_UNDEF) {
		s->imported = true;
	} else if (!is_wanted_type(s, GELF_ST_TYPE(symbol->elf.st_info))) {
		s->other_type = true;
	} else if (rank > s->rank) {
		s->rank = rank;
		s->found = *symbol;
		s->others = 0;
	} else if (rank == s->rank && symbol->elf.st_value != s->found.elf.st_value) {
		s->others = symbol->elf.st_value;
	}
}

static void suggest(struct search *s, const struct symbol *symbol)
{
	char name[NEAR_LENGTH_MAX + 1];
	size_t clone;

	if (!s->functions || symbol->elf.st_shndx == SHN_UNDEF ||
	    symbol->name_size > NEAR_LENGTH_MAX ||
	    (GELF_ST_TYPE(symbol->elf.st_info) != STT_FUNC &&
	     GELF_ST_TYPE(symbol->elf.st_info) != STT_GNU_IFUNC))
		return;
	(void)snprintf(name, sizeof(name), "%.*s", (int)symbol->name_size, symbol->name);
	/* "parse.part.0", "parse.constprop.0": what the compiler has made of a function */
	clone = strcspn(name, ".");
	if (name[clone] && clone == s->size && memcmp(name, s->name, clone) == 0)
		near_add(&s->near, name, name);
	else
		near_add(&s->near, s->name, name);
}

static int search_table(struct program *p, unsigned type, struct search *s, struct fault *why)
{
	struct table t;
	int r = find_table(p, type, &t, why);

	if (r <= 0)
		return r;
	p->has_symtab |= type == SHT_SYMTAB;
	for (size_t i = 1; i < t.n; i++) {
		struct symbol symbol;

		if (!get_symbol(p, &t, i, &symbol))
			continue;
		if (symbol.name_size == s->size && memcmp(symbol.name, s->name, s->size) == 0)
			consider(s, &symbol);
		else if (s->suggests)
			suggest(s, &symbol);
	}
	return 0;
}

/* Exported ones first: they have versions, and one of the same name that is local is another */
static int search_all(struct program *p, struct search *s, struct fault *why)
{
	int r = search_table(p, SHT_DYNSYM, s, why);

	return r >= 0 && s->rank < 3 ? search_table(p, SHT_SYMTAB, s, why) : r;
}

static int not_found(const struct program *p, const struct search *s, const char *symbol,
		     struct fault *why)
{
	char text[NEAR_TEXT_SIZE];

	if (s->other_type)
		return fault_set(why, -EINVAL, "'%s' in %s is data, not a function", symbol,
				 p->path);
	if (s->imported)
		return fault_set(why, -ENOENT,
				 "%s only calls '%s', give the library that has it (ldd %s)",
				 p->path, symbol, p->path);
	return fault_set(why, -ENOENT, "there is no function '%s' in %s%s%s", symbol, p->path,
			 p->has_symtab ? ""
				       : ", which is stripped: only exported functions are known",
			 near_text(&s->near, text));
}

static int split_symbol(const char *symbol, char **ret_name, struct search *ret)
{
	char *name = strdup(symbol), *at;

	if (!name)
		return -ENOMEM;
	at = strchr(name, '@');
	if (at) {
		*at = '\0';
		ret->version = at + 1 + (at[1] == '@');
	}
	ret->name = *ret_name = name;
	ret->size = strlen(name);
	return 0;
}

int program_function(struct program *p, const char *symbol, uint64_t *ret_address,
		     uint64_t *ret_offset, struct fault *why)
{
	struct search s = {.functions = true};
	_cleanup_free_ char *name = NULL;
	uint64_t offset, address;
	int r = split_symbol(symbol, &name, &s);

	if (r < 0)
		return fault_errno(why, r, "%s", p->path);
	r = search_all(p, &s, why);
	if (r < 0)
		return r;
	if (s.rank == 0) {
		s.suggests = true;
		r = search_all(p, &s, why);
		return r < 0 ? r : not_found(p, &s, symbol, why);
	}
	address = s.found.elf.st_value;
	if (s.others)
		return fault_set(why, -ENOTUNIQ,
				 "several functions in %s are called '%s', at 0x%" PRIx64
				 " and 0x%" PRIx64 " among others: give an offset into the file",
				 p->path, symbol, address, s.others);
	if (GELF_ST_TYPE(s.found.elf.st_info) == STT_GNU_IFUNC)
		return fault_set(
			why, -EINVAL,
			"'%s' in %s only chooses a function once, at the start of a program "
			"(IFUNC): give the one that is chosen",
			symbol, p->path);
	if (file_offset(p, address, true, &offset) < 0)
		return GELF_ST_TYPE(s.found.elf.st_info) == STT_NOTYPE
			       ? fault_set(why, -EINVAL, "'%s' in %s is data, not a function",
					   symbol, p->path)
			       : fault_set(why, -EBADMSG,
					   "%s: the code of '%s' (at 0x%" PRIx64
					   ") is not in the file",
					   p->path, symbol, address);
	*ret_address = address;
	*ret_offset = offset;
	return 0;
}

int program_variable(struct program *p, const char *name, uint64_t *ret_address, struct fault *why)
{
	struct search s = {.name = name, .size = strlen(name)};
	int r = search_all(p, &s, why);

	if (r < 0)
		return r;
	if (s.rank == 0 || s.others)
		return fault_set(why, -ENOENT, "the variable '%s' is not in the symbols of %s",
				 name, p->path);
	*ret_address = s.found.elf.st_value;
	return 0;
}

/* --- USDT */

/* What a note's descriptor has: three addresses and three texts */
struct note {
	uint64_t pc, base, semaphore;
	const char *provider, *name, *arguments;
};

static const char *take_text(const uint8_t *bytes, size_t size, size_t *at)
{
	const char *text = (const char *)bytes + *at;
	size_t n = strnlen(text, size - *at);

	if (*at + n >= size)
		return NULL;
	*at += n + 1;
	return text;
}

static bool parse_note(const struct program *p, const uint8_t *bytes, size_t size, struct note *ret)
{
	uint64_t *const addresses[] = {&ret->pc, &ret->base, &ret->semaphore};
	const size_t width = gelf_getclass(p->elf) == ELFCLASS32 ? 4 : 8;
	size_t at = 3 * width;

	if (size < at)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		uint32_t word;

		if (width == 8) {
			memcpy(addresses[i], bytes + i * width, width);
		} else { /* this machine's byte order, as program_open() sees to */
			memcpy(&word, bytes + i * width, width);
			*addresses[i] = word;
		}
	}
	ret->provider = take_text(bytes, size, &at);
	ret->name = ret->provider ? take_text(bytes, size, &at) : NULL;
	ret->arguments = ret->name ? take_text(bytes, size, &at) : NULL;
	return ret->arguments != NULL;
}

/* The notes and, where the file was moved by prelink, where their base is now */
static int find_notes(struct program *p, Elf_Data **ret, uint64_t *ret_base, struct fault *why)
{
	Elf_Scn *section = NULL;
	size_t names;

	*ret = NULL;
	*ret_base = 0;
	if (elf_getshdrstrndx(p->elf, &names) < 0)
		return malformed(p, "the table of sections", why);
	while ((section = elf_nextscn(p->elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!section_header(section, &header))
			continue;
		name = elf_strptr(p->elf, names, header.sh_name);
		if (text_equal(name, ".stapsdt.base"))
			*ret_base = header.sh_addr;
		if (header.sh_type != SHT_NOTE || !text_equal(name, ".note.stapsdt"))
			continue;
		if (header.sh_size > NOTES_MAX)
			return fault_set(why, -EFBIG, "%s: its notes of USDT probes are too large",
					 p->path);
		*ret = section_data(section, &header, NOTES_MAX);
		if (!*ret)
			return malformed(p, "the notes of USDT probes", why);
	}
	return *ret ? 0 : fault_set(why, -ENOENT, "there are no USDT probes in %s", p->path);
}

static int add_site(struct program *p, const struct note *note, uint64_t base,
		    struct usdt_sites *sites, struct fault *why)
{
	uint64_t moved = base && note->base ? base - note->base : 0;
	struct usdt_site site = {.address = note->pc + moved};

	if (file_offset(p, site.address, true, &site.offset) < 0 ||
	    (note->semaphore && file_offset(p, note->semaphore + moved, false, &site.counter) < 0))
		return fault_set(why, -EBADMSG,
				 "%s: the note of the USDT probe %s:%s leads nowhere", p->path,
				 note->provider, note->name);
	if (sites->n >= SITES_MAX)
		return fault_set(why, -EFBIG,
				 "the USDT probe %s:%s is at more than %u places in %s",
				 note->provider, note->name, SITES_MAX, p->path);
	if (array_grow(&sites->list, sites->n, sizeof(site)) < 0)
		return fault_errno(why, -ENOMEM, "%s", p->path);
	site.arguments = strdup(note->arguments);
	if (!site.arguments)
		return fault_errno(why, -ENOMEM, "%s", p->path);
	sites->list[sites->n++] = site;
	return 0;
}

int program_usdt(struct program *p, const char *provider, const char *name, struct usdt_sites *ret,
		 struct fault *why)
{
	_cleanup_(usdt_sites_done) struct usdt_sites sites = {};
	struct near_list providers = {}, names = {};
	char text[NEAR_TEXT_SIZE];
	bool has_provider = false;
	const uint8_t *bytes;
	size_t size, at = 0;
	uint64_t base;
	Elf_Data *data;
	int r = find_notes(p, &data, &base, why);

	if (r < 0)
		return r;
	while (next_note(data, NOTE_USDT, USDT_TYPE, &at, &bytes, &size)) {
		struct note note;

		if (!parse_note(p, bytes, size, &note))
			return malformed(p, "a note of a USDT probe", why);
		near_add(&providers, provider, note.provider);
		if (strcmp(note.provider, provider) != 0)
			continue;
		has_provider = true;
		near_add(&names, name, note.name);
		if (strcmp(note.name, name) == 0)
			r = add_site(p, &note, base, &sites, why);
		if (r < 0)
			return r;
	}
	if (!has_provider)
		return fault_set(why, -ENOENT, "no USDT probe of %s has the provider '%s'%s",
				 p->path, provider, near_text(&providers, text));
	if (sites.n == 0)
		return fault_set(why, -ENOENT, "provider '%s' in %s has no USDT probe '%s'%s",
				 provider, p->path, name, near_text(&names, text));
	*ret = sites;
	sites = (struct usdt_sites){};
	return 0;
}

void usdt_sites_done(struct usdt_sites *sites)
{
	for (size_t i = 0; i < sites->n; i++)
		free(sites->list[i].arguments);
	free(sites->list);
	*sites = (struct usdt_sites){};
}

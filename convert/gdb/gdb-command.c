/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "basic/io.h"
#include "convert/gdb/gdb-command.h"

#define MAX_SEGMENTS 1024U

/* The address of an offset, by the program headers of a 64-bit file in this machine's byte order */
static int find_address(int fd, uint64_t offset, uint64_t *ret, bool *ret_fixed)
{
	_cleanup_free_ Elf64_Phdr *segments = NULL;
	Elf64_Ehdr head;
	const unsigned char order = __BYTE_ORDER == __BIG_ENDIAN ? ELFDATA2MSB : ELFDATA2LSB;
	int r;

	r = io_pread_all(fd, &head, sizeof(head), 0);
	if (r < 0 || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != order ||
	    head.e_phentsize != sizeof(*segments) || head.e_phnum > MAX_SEGMENTS)
		return -EBADMSG;
	segments = calloc(MAX(head.e_phnum, 1U), sizeof(*segments));
	if (!segments)
		return -ENOMEM;
	if (io_pread_all(fd, segments, head.e_phnum * sizeof(*segments), head.e_phoff) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < head.e_phnum; i++) {
		const Elf64_Phdr *s = &segments[i];

		if (s->p_type != PT_LOAD || offset < s->p_offset ||
		    offset - s->p_offset >= s->p_filesz)
			continue;
		*ret = offset - s->p_offset + s->p_vaddr;
		*ret_fixed = head.e_type == ET_EXEC;
		return 0;
	}
	return -EBADMSG;
}

/*
 * By how much it was moved in memory: what to add to the addresses in the file. @ret_fixed: it can
 * run nowhere else. Return: 0; 1 if the file cannot be read here, so that its segments are assumed
 * to be at their offsets; -EBADMSG if it has no segment at the offset.
 */
static int find_base(const struct gdb_program *program, uint64_t *ret, bool *ret_fixed)
{
	_cleanup_close_ int fd = open(program->path, O_RDONLY | O_CLOEXEC);
	uint64_t address = program->offset;
	bool fixed = false;
	int r = 1;

	if (fd >= 0)
		r = find_address(fd, program->offset, &address, &fixed);
	if (r < 0)
		return r;
	*ret = fixed ? 0 : program->address - address;
	*ret_fixed = fixed;
	return r;
}

/* A word of gdb's command line */
static void put_word(FILE *out, const char *text)
{
	(void)putc('"', out);
	for (; *text; text++) {
		if (strchr("\"\\", *text))
			(void)putc('\\', out);
		(void)putc(*text, out);
	}
	(void)putc('"', out);
}

static void put_program(FILE *out, const struct gdb_program *program, bool first)
{
	uint64_t base = 0;
	bool fixed = false;
	int r = find_base(program, &base, &fixed);

	if (r > 0)
		(void)fprintf(out, "# not readable where this was written: the base is a guess\n");
	if (r < 0) {
		(void)fprintf(out,
			      "# not the program that was traced: no segment at offset 0x%" PRIx64
			      "\n# ",
			      program->offset);
		fixed = true;
	}
	if (first && fixed) {
		(void)fputs("file ", out);
	} else if (first) {
		(void)fputs("exec-file ", out);
		put_word(out, program->path);
		(void)fprintf(out, "\nsymbol-file -o 0x%" PRIx64 " ", base);
	} else {
		(void)fprintf(out, "add-symbol-file -o 0x%" PRIx64 " ", base);
	}
	put_word(out, program->path);
	(void)putc('\n', out);
}

void gdb_command_write(FILE *out, const char *tfile, const struct gdb_program *programs, size_t n)
{
	(void)fputs("# Written by flyrecctl export, see flyrec-gdb(7). Use: gdb -x THIS-FILE\n",
		    out);
	if (!programs)
		(void)fputs("# An imported trace file: load the program first, with gdb's file "
			    "command.\n",
			    out);
	else if (n == 0)
		(void)fputs("# The recording does not tell which program was traced.\n", out);
	for (size_t i = 0; i < n; i++)
		put_program(out, &programs[i], i == 0);
	(void)fprintf(out, "target tfile %s\n", tfile);
}

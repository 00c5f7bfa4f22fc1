/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#include "convert/gdb/gdb-tfile.h"

struct parser {
	struct gdb_tfile *tfile;
	const char *path;
	uint64_t offset; /* of the line */
	void (*on_unknown)(const char *text);
	struct fault *why;
	size_t tdesc_size;
	bool has_size;
};

/* Hexadecimal digits up to @end (or a NUL), which is stepped over */
static bool take_hex(const char **p, char end, uint64_t *ret)
{
	uint64_t value = 0;
	size_t n;

	for (n = 0; isxdigit((unsigned char)**p); n++, (*p)++) {
		int c = tolower((unsigned char)**p);

		value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	if (n == 0 || n > 16 || **p != end)
		return false;
	*p += end != '\0';
	*ret = value;
	return true;
}

/* The text that pairs of hexadecimal digits stand for; NULL: they don't */
static char *hex_text(const char *p)
{
	size_t n = strlen(p);
	char *text = malloc(n / 2 + 1);

	if (!text)
		return NULL;
	for (size_t i = 0; i < n / 2; i++) {
		char digits[3] = {p[2 * i], p[2 * i + 1], '\0'}, *end;

		text[i] = (char)strtoul(digits, &end, 16);
		if (*end || !isxdigit((unsigned char)*digits) || !text[i]) {
			free(text);
			return NULL;
		}
	}
	text[n / 2] = '\0';
	return text;
}

static int unknown(struct parser *p, const char *line)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "%.250s: offset 0x%" PRIx64 ": line not understood, left out: %.100s",
		       p->path, p->offset, line);
	if (p->on_unknown)
		p->on_unknown(text);
	return 0;
}

static int parse_size(struct parser *p, const char *text)
{
	uint64_t size;

	if (!take_hex(&text, '\0', &size) || size > GDB_TFILE_FRAME_MAX)
		return fault_at(p->why, -EBADMSG, p->path, p->offset,
				"not the size of a register block: \"%s\"", text);
	if (p->has_size && size != p->tfile->register_size)
		return fault_at(p->why, -EBADMSG, p->path, p->offset,
				"another size of the register block than before");
	p->has_size = true;
	p->tfile->register_size = (uint32_t)size;
	return 0;
}

/* "NUMBER:INITIAL:BUILTIN:NAME" */
static int parse_variable(struct parser *p, const char *line, const char *text)
{
	struct gdb_tfile *t = p->tfile;
	uint64_t number, initial, builtin;
	char *name;

	if (!take_hex(&text, ':', &number) || !take_hex(&text, ':', &initial) ||
	    !take_hex(&text, ':', &builtin) || number > INT32_MAX)
		return unknown(p, line);
	for (size_t i = 0; i < t->n_variables; i++)
		if (t->variables[i].number == number)
			return unknown(p, line);
	name = hex_text(text);
	if (!name)
		return unknown(p, line);
	if (array_grow(&t->variables, t->n_variables, sizeof(*t->variables)) < 0) {
		free(name);
		return -ENOMEM;
	}
	t->variables[t->n_variables++] =
		(struct gdb_tfile_variable){(uint32_t)number, (int64_t)initial, name};
	return 0;
}

/* "TNUMBER:ADDRESS:…"; the other kinds of lines add to it what we have no use for */
static int parse_tracepoint(struct parser *p, const char *line, const char *text)
{
	struct gdb_tfile *t = p->tfile;
	uint64_t number, address;
	char kind = *text++;

	if (!kind || !strchr("TASZV", kind) || !take_hex(&text, ':', &number) ||
	    !take_hex(&text, ':', &address))
		return unknown(p, line);
	if (kind != 'T')
		return 0;
	if (array_grow(&t->tracepoints, t->n_tracepoints, sizeof(*t->tracepoints)) < 0)
		return -ENOMEM;
	t->tracepoints[t->n_tracepoints++] =
		(struct gdb_tfile_tracepoint){(uint32_t)number, address};
	return 0;
}

static int add_tdesc(struct parser *p, const char *text)
{
	size_t size = strlen(text);
	char *more = realloc(p->tfile->tdesc, p->tdesc_size + size + 2);

	if (!more)
		return -ENOMEM;
	memcpy(more + p->tdesc_size, text, size);
	memcpy(more + p->tdesc_size + size, "\n", 2);
	p->tfile->tdesc = more;
	p->tdesc_size += size + 1;
	return 0;
}

static int parse_line(struct parser *p, const char *line)
{
	if (strncmp(line, "R ", 2) == 0)
		return parse_size(p, line + 2);
	if (strncmp(line, "status ", 7) == 0)
		return 0;
	if (strncmp(line, "tp ", 3) == 0)
		return parse_tracepoint(p, line, line + 3);
	if (strncmp(line, "tsv ", 4) == 0)
		return parse_variable(p, line, line + 4);
	if (strncmp(line, "tdesc ", 6) == 0)
		return add_tdesc(p, line + 6);
	return unknown(p, line);
}

static int take_line(struct parser *p, const char *bytes, size_t size)
{
	struct gdb_tfile *t = p->tfile;

	if (memchr(bytes, '\0', size))
		return fault_at(p->why, -EBADMSG, p->path, p->offset,
				"a zero byte in the description");
	if (array_grow(&t->lines, t->n_lines, sizeof(*t->lines)) < 0)
		return -ENOMEM;
	t->lines[t->n_lines] = strndup(bytes, size);
	if (!t->lines[t->n_lines])
		return -ENOMEM;
	return parse_line(p, t->lines[t->n_lines++]);
}

static int parse(struct parser *p, const char *bytes, size_t size)
{
	size_t at = GDB_TFILE_MAGIC_SIZE;

	for (;;) {
		const size_t room = MIN(size - at, GDB_TFILE_LINE_MAX + 1);
		const char *end = memchr(bytes + at, '\n', room);
		int r;

		p->offset = at;
		if (!end && room == GDB_TFILE_LINE_MAX + 1)
			return fault_at(p->why, -EBADMSG, p->path, at,
					"a line of more than %u bytes", GDB_TFILE_LINE_MAX);
		if (!end)
			return fault_at(p->why, -EBADMSG, p->path, at,
					size == GDB_TFILE_DESCRIPTION_MAX
						? "the description has no end"
						: "the file ends inside the description");
		if (end == bytes + at) {
			p->tfile->frames_at = at + 1;
			break;
		}
		r = take_line(p, bytes + at, (size_t)(end - bytes) - at);
		if (r < 0)
			return r;
		at = (size_t)(end - bytes) + 1;
	}
	if (!p->has_size)
		return fault_at(p->why, -EBADMSG, p->path, at,
				"no line R, which tells the size of a register "
				"block, in the description");
	return 0;
}

int gdb_tfile_parse(const void *bytes, size_t size, const char *path,
		    void (*on_unknown)(const char *text), struct gdb_tfile **ret, struct fault *why)
{
	_cleanup_(gdb_tfile_freep) struct gdb_tfile *tfile = calloc(1, sizeof(*tfile));
	struct parser p = {tfile, path, 0, on_unknown, why, 0, false};
	const size_t known = GDB_TFILE_MAGIC_SIZE - 2; /* up to the version */
	int r;

	if (!tfile)
		return fault_errno(why, -ENOMEM, "%s: cannot read", path);
	if (size < GDB_TFILE_MAGIC_SIZE || memcmp(bytes, GDB_TFILE_MAGIC, known) != 0)
		return fault_at(why, -EBADMSG, path, 0,
				"no trace file of gdb, which begins with 0x7f TRACE0");
	if (memcmp(bytes, GDB_TFILE_MAGIC, GDB_TFILE_MAGIC_SIZE) != 0)
		return fault_at(why, -EBADMSG, path, known,
				"a version of gdb's trace file other than 0");
	r = parse(&p, bytes, size);
	if (r == -ENOMEM)
		return fault_errno(why, r, "%s: cannot read", path);
	if (r >= 0)
		*ret = TAKE_PTR(tfile);
	return r;
}

struct gdb_tfile *gdb_tfile_free(struct gdb_tfile *tfile)
{
	if (!tfile)
		return NULL;
	for (size_t i = 0; i < tfile->n_lines; i++)
		free(tfile->lines[i]);
	for (size_t i = 0; i < tfile->n_variables; i++)
		free(tfile->variables[i].name);
	free(tfile->lines);
	free(tfile->tdesc);
	free(tfile->variables);
	free(tfile->tracepoints);
	free(tfile);
	return NULL;
}

int gdb_tfile_frame(const uint8_t *bytes, uint64_t left, bool big_endian, uint64_t offset,
		    const char *path, struct gdb_tfile_frame *ret, struct fault *why)
{
	uint32_t number, size;

	if (left == 0)
		return 0;
	if (left < 2)
		return fault_at(why, -EBADMSG, path, offset,
				"the file ends inside the head of a frame");
	number = (uint32_t)gdb_tfile_get(bytes, 2, big_endian);
	if (number == 0)
		return 0;
	if (left < GDB_TFILE_HEAD_SIZE)
		return fault_at(why, -EBADMSG, path, offset,
				"the file ends inside the head of a frame");
	if (number > GDB_TFILE_MAX_NUMBER)
		return fault_at(why, -EBADMSG, path, offset,
				"0x%" PRIx32 " is no number of a tracepoint", number);
	size = (uint32_t)gdb_tfile_get(bytes + 2, 4, big_endian);
	if (size > left - GDB_TFILE_HEAD_SIZE)
		return fault_at(why, -EBADMSG, path, offset,
				"a frame of %" PRIu32 " bytes, of which the file has %" PRIu64,
				size, left - GDB_TFILE_HEAD_SIZE);
	if (size > GDB_TFILE_FRAME_MAX)
		return fault_at(why, -EBADMSG, path, offset,
				"a frame of %" PRIu32 " bytes is too large", size);
	*ret = (struct gdb_tfile_frame){offset, number, size};
	return 1;
}

int gdb_tfile_block(const uint8_t *bytes, const struct gdb_tfile_frame *frame,
		    uint32_t register_size, bool big_endian, const char *path, uint32_t *pos,
		    struct gdb_tfile_block *ret, struct fault *why)
{
	const uint32_t left = frame->size - *pos;
	const uint64_t at = frame->offset + GDB_TFILE_HEAD_SIZE + *pos;
	const uint8_t *p = bytes + *pos;
	uint32_t head = 1, size = 0;

	if (left == 0)
		return 0;
	ret->type = (char)*p;
	switch (*p) {
	case 'R':
		size = register_size;
		break;
	case 'M':
		head = GDB_TFILE_MEMORY_SIZE;
		break;
	case 'V':
		head = GDB_TFILE_VARIABLE_SIZE;
		break;
	default:
		return fault_at(why, -EBADMSG, path, at, "a block of unknown type 0x%02x", *p);
	}
	if (left >= head && *p == 'M') {
		ret->address = gdb_tfile_get(p + 1, 8, big_endian);
		size = (uint32_t)gdb_tfile_get(p + 9, 2, big_endian);
	} else if (left >= head && *p == 'V') {
		ret->number = (uint32_t)gdb_tfile_get(p + 1, 4, big_endian);
		ret->value = (int64_t)gdb_tfile_get(p + 5, 8, big_endian);
	}
	if (left < head || left - head < size)
		return fault_at(why, -EBADMSG, path, at, "a block %c that goes on beyond its frame",
				*p);
	ret->data = p + head;
	ret->size = size;
	*pos += head + size;
	return 1;
}

void gdb_tfile_put_hex(FILE *out, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < size; i++)
		(void)fprintf(out, "%02x", p[i]);
}

void gdb_tfile_put_source(FILE *out, uint32_t tracepoint, uint64_t address, const char *type,
			  const char *text)
{
	size_t size = MIN(strlen(text), (size_t)(GDB_TFILE_LINE_MAX - 80) / 2);

	(void)fprintf(out, "tp Z%" PRIx32 ":%" PRIx64 ":%s:0:%zx:", tracepoint, address, type,
		      size);
	gdb_tfile_put_hex(out, text, size);
	(void)putc('\n', out);
}

void gdb_tfile_put_tdesc(FILE *out, const char *xml)
{
	const size_t most = GDB_TFILE_LINE_MAX - strlen("tdesc ");

	while (*xml) {
		size_t line = strcspn(xml, "\n"), n = MIN(line, most);

		(void)fprintf(out, "tdesc %.*s\n", (int)n, xml);
		xml += n + (n == line && xml[n] == '\n');
	}
}

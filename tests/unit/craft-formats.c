/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "basic/io.h"
#include "basic/macro.h"
#include "formats/own-clocks.h"
#include "formats/own-section.h"
#include "tests/unit/craft-formats.h"

#define PAGE 4096

static void sized(struct craft *c, unsigned size_size, const char *text)
{
	text = text ? text : "";
	craft_number(c, size_size, strlen(text));
	craft_bytes(c, text, strlen(text));
}

static size_t same_system(const struct craft_file *file, size_t from)
{
	size_t n = from;

	while (n < file->n_formats &&
	       strcmp(file->formats[n].system, file->formats[from].system) == 0)
		n++;
	return n - from;
}

static void put_formats(struct craft *c, const struct craft_file *file)
{
	size_t i = 0, systems = 0, n;

	if (file->n_formats && strcmp(file->formats[0].system, "ftrace") == 0)
		i = same_system(file, 0);
	craft_number(c, 4, i);
	for (size_t k = 0; k < i; k++)
		sized(c, 8, file->formats[k].text);
	for (size_t k = i; k < file->n_formats; k += same_system(file, k))
		systems++;
	craft_number(c, 4, systems);
	for (; i < file->n_formats; i += n) {
		n = same_system(file, i);
		craft_text(c, file->formats[i].system);
		craft_number(c, 4, n);
		for (size_t k = i; k < i + n; k++)
			sized(c, 8, file->formats[k].text);
	}
}

static void put_header(struct craft *c)
{
	char text[512];

	craft_bytes(c, "\x17\x08\x44tracing", 10);
	craft_text(c, "6");
	craft_number(c, 1, c->big_endian);
	craft_number(c, 1, c->commit_size);
	craft_number(c, 4, PAGE);
	(void)snprintf(text, sizeof(text),
		       "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		       "\tfield: local_t commit;\toffset:8;\tsize:%u;\tsigned:1;\n"
		       "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		       "\tfield: char data;\toffset:%u;\tsize:%u;\tsigned:0;\n",
		       c->commit_size, 8 + c->commit_size, PAGE - 8 - c->commit_size);
	craft_text(c, "header_page");
	sized(c, 8, text);
	craft_text(c, "header_event");
	sized(c, 8, "# compressed entry header\n");
}

static void put_own(struct craft *c, const struct craft_file *file)
{
	uint8_t clocks_bytes[OWN_CLOCKS_SIZE];
	struct own_entry entries[2] = {};
	struct own_clocks clocks;
	uint8_t *bytes;
	size_t size, n = 0;

	if (file->sheds)
		entries[n++] = (struct own_entry){
			.kind = OWN_SHED,
			.size = (uint32_t)strlen(file->sheds),
			.data = (const uint8_t *)file->sheds,
		};
	if (file->boot_id) {
		own_clocks_init(&clocks, "mono", file->boot_id);
		own_clocks_put(&clocks, c->big_endian, clocks_bytes);
		entries[n++] = (struct own_entry){
			.kind = OWN_CLOCKS,
			.size = sizeof(clocks_bytes),
			.data = clocks_bytes,
		};
	}
	if (n == 0)
		return;
	if (own_section_build(entries, n, c->big_endian, &bytes, &size) < 0)
		abort();
	craft_bytes(c, bytes, size);
	craft_fill(c, 0, (PAGE - size % PAGE) % PAGE);
	free(bytes);
}

void craft_file(struct craft *c, const struct craft_file *file)
{
	size_t table;

	put_header(c);
	put_formats(c, file);
	sized(c, 4, file->kallsyms);
	sized(c, 4, file->printk);
	sized(c, 8, file->cmdlines);
	craft_number(c, 4, 1);
	craft_text(c, "options  ");
	if (file->date) {
		craft_number(c, 2, 1);
		sized(c, 4, file->date);
	}
	if (file->clock) {
		craft_number(c, 2, 4);
		sized(c, 4, file->clock);
	}
	if (file->options)
		craft_bytes(c, file->options->bytes, file->options->size);
	craft_number(c, 2, 0);
	craft_text(c, "flyrecord");
	table = c->size;
	craft_fill(c, 0, 16);
	if (file->clock)
		sized(c, 8, file->clock);
	craft_fill(c, 0, (PAGE - c->size % PAGE) % PAGE);
	put_own(c, file);
	craft_set(c, table, 8, c->size);
	if (!file->pages)
		return;
	craft_set(c, table + 8, 8, file->pages->size);
	craft_bytes(c, file->pages->bytes, file->pages->size);
}

static void set(uint8_t *at, bool big_endian, unsigned n, uint64_t value)
{
	for (unsigned i = 0; i < n; i++)
		at[big_endian ? n - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

/*
 * May numbers of this event be widths or counts? Then only small ones are made: libtraceevent reads
 * as far beyond the record as a count says, and gives printf the wrong arguments for a width below
 * zero.
 */
static bool counts(const struct tep_event *event)
{
	if (event->print_fmt.format && strchr(event->print_fmt.format, '*'))
		return true;
	for (const struct tep_print_arg *a = event->print_fmt.args; a; a = a->next)
		if (a->type == TEP_PRINT_HEX || a->type == TEP_PRINT_HEX_STR ||
		    a->type == TEP_PRINT_INT_ARRAY)
			return true;
	return false;
}

/* Small numbers, single bits, and all the others, now and then */
static uint64_t number(unsigned *seed, bool few)
{
	uint64_t any = (uint64_t)rand_r(seed) << 42 ^ (uint64_t)rand_r(seed) << 21 ^
		       (uint64_t)rand_r(seed);

	switch (few ? 0 : rand_r(seed) % 5) {
	case 0:
		return any % 20;
	case 1:
		return UINT64_C(1) << any % 64;
	case 2:
		return any % 100000;
	case 3:
		return -(any % 20);
	default:
		return any;
	}
}

static uint32_t put_dynamic(const struct tep_format_field *field, bool big_endian, uint32_t end,
			    unsigned *seed, uint8_t *record)
{
	uint32_t size = counts(field->event) ? 160 : (uint32_t)rand_r(seed) % 24, from = end;
	bool string = field->flags & TEP_FIELD_IS_STRING;

	if (field->elementsize > 1)
		size -= size % field->elementsize;
	for (uint32_t i = 0; i < size; i++)
		record[end + i] = (uint8_t)(string ? 'a' + rand_r(seed) % 26 : rand_r(seed));
	if (string && size)
		record[end + size - 1] = '\0';
	if (field->flags & TEP_FIELD_IS_RELATIVE)
		from -= (uint32_t)(field->offset + field->size);
	set(record + field->offset, big_endian, 4, (uint64_t)size << 16 | from);
	return end + size;
}

static void put_static(const struct tep_format_field *field, bool big_endian, unsigned *seed,
		       uint8_t *record)
{
	bool few = counts(field->event);
	uint32_t size = (uint32_t)field->size;

	if (field->flags & TEP_FIELD_IS_STRING) {
		for (uint32_t i = 0; i < size; i++)
			record[(uint32_t)field->offset + i] =
				(uint8_t)(rand_r(seed) % 9 ? 'A' + rand_r(seed) % 26 : 0);
	} else if (size == 1 || size == 2 || size == 4 || size == 8) {
		set(record + field->offset, big_endian, size, number(seed, few));
	} else {
		for (uint32_t i = 0; i < size; i++)
			record[(uint32_t)field->offset + i] = (uint8_t)rand_r(seed);
	}
}

uint32_t craft_record(const struct tep_event *event, bool big_endian, bool hostile, unsigned *seed,
		      uint8_t *ret)
{
	uint32_t end = 8;

	memset(ret, 0, 64 * KIB);
	for (const struct tep_format_field *f = event->format.fields; f; f = f->next)
		end = MAX(end, (uint32_t)f->offset + (uint32_t)f->size);
	if (end > 32 * KIB)
		abort();
	for (const struct tep_format_field *f = event->format.fields; f; f = f->next) {
		if (hostile)
			continue;
		if (f->flags & TEP_FIELD_IS_DYNAMIC)
			end = put_dynamic(f, big_endian, end, seed, ret);
		else
			put_static(f, big_endian, seed, ret);
	}
	if (hostile) {
		end = 8 + (uint32_t)rand_r(seed) % (end + 8);
		for (uint32_t i = 0; i < end; i++)
			ret[i] = (uint8_t)(rand_r(seed) % 3 ? rand_r(seed) : 0);
	}
	end = (end + 3) & ~3U;
	set(ret, big_endian, 2, (uint64_t)event->id);
	ret[2] = ret[3] = 0;
	set(ret + 4, big_endian, 4, 42);
	return end;
}

int craft_fd(struct craft *c)
{
	int fd = memfd_create("craft", MFD_CLOEXEC);

	if (fd < 0 || io_pwrite_all(fd, c->bytes, c->size, 0) < 0)
		abort();
	craft_done(c);
	return fd;
}

void craft_open(struct craft *c, int *ret_fd, struct trace_dat **ret_dat,
		struct decoder **ret_decoder)
{
	struct fault why = {};
	int fd = craft_fd(c);

	if (trace_dat_open_fd(fd, "f", ret_dat, &why) < 0 ||
	    decoder_new(*ret_dat, ret_decoder, &why) < 0) {
		(void)fprintf(stderr, "%s\n", why.text);
		abort();
	}
	*ret_fd = fd;
}

void craft_close(int fd, struct trace_dat *dat, struct decoder *decoder)
{
	decoder_free(decoder);
	trace_dat_free(dat);
	close(fd);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "basic/strv.h"
#include "decode/format-guard.h"
#include "decode/symbols.h"

struct entry {
	uint64_t address;
	const char *name;
};

struct table {
	char *text;
	struct entry *list; /* by address; of equal ones, the last line of the text comes first */
	size_t n;	    /* the entry behind the last one has address 0 and no name */
};

struct file_symbols {
	struct table names, strings;
};

static char *skip_blanks(char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

/* "ADDRESS TYPE NAME[\t[MODULE]]", cut off in place. 1, 0 none of use, -EBADMSG */
static int parse_name(char *line, struct entry *ret)
{
	char *p = skip_blanks(line), type;

	if (!isxdigit((unsigned char)*p))
		return -EBADMSG;
	ret->address = strtoull(p, &p, 16);
	p = skip_blanks(p);
	type = *p;
	if (type)
		p = skip_blanks(p + 1);
	if (!*p)
		return -EBADMSG;
	ret->name = p;
	while (*p && !isspace((unsigned char)*p))
		p++;
	*p = '\0';
	/* not the mapping symbols of arm, nor the offsets of x86's per-cpu variables */
	return ret->name[0] != '$' && type != 'A' && type != 'a';
}

/* "0xADDRESS : "STRING\n"", likewise */
static int parse_string(char *line, struct entry *ret)
{
	char *colon = strchr(line, ':'), *string;
	size_t n;

	if (!colon || !colon[1])
		return -EBADMSG;
	string = colon + 2;
	string += *string == '"';
	n = strlen(string);
	if (n > 0 && string[n - 1] == '"')
		string[--n] = '\0';
	if (n >= 2 && strcmp(string + n - 2, "\\n") == 0)
		string[n - 2] = '\0';
	*ret = (struct entry){strtoull(line, NULL, 16), string};
	return 1;
}

/*
 * Same address: the later line first. Names lie in the text in the order of its lines, so that
 * their addresses tell.
 */
static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->name > y->name ? -1 : x->name < y->name;
}

/* Takes @text over in any case */
static int read_table(struct table *t, char *text, int (*parse)(char *line, struct entry *ret))
{
	char *next = NULL;
	int r = 1;

	t->text = text;
	for (char *line = strtok_r(text, "\n", &next); r >= 0; line = strtok_r(NULL, "\n", &next)) {
		if (array_grow(&t->list, t->n, sizeof(*t->list)) < 0)
			return -ENOMEM;
		r = line ? parse(line, &t->list[t->n]) : -ENODATA;
		t->n += r > 0;
	}
	qsort(t->list, t->n, sizeof(*t->list), compare);
	t->list[t->n] = (struct entry){};
	return 0;
}

int file_symbols_new(char *kallsyms, char *printk_formats, struct file_symbols **ret)
{
	struct file_symbols *s = calloc(1, sizeof(*s));
	int r, r2;

	if (!s) {
		free(kallsyms);
		free(printk_formats);
		return -ENOMEM;
	}
	r = read_table(&s->names, kallsyms, parse_name);
	r2 = read_table(&s->strings, printk_formats, parse_string);
	if (r < 0 || r2 < 0) {
		file_symbols_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

struct file_symbols *file_symbols_free(struct file_symbols *symbols)
{
	if (!symbols)
		return NULL;
	free(symbols->names.text);
	free(symbols->names.list);
	free(symbols->strings.text);
	free(symbols->strings.list);
	free(symbols);
	return NULL;
}

/*
 * Which of several names of one address is found depends on the steps of the search. These are
 * those of bsearch(), with libtraceevent's idea of equality: an address belongs to the symbol
 * before it, and to the last one only if it is its beginning.
 */
static const struct entry *find(const struct table *t, uint64_t address)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct entry *e = &t->list[middle];

		if (address == e->address || (address > e->address && address < e[1].address))
			return e;
		if (address < e->address)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

bool symbols_address(const struct file_symbols *symbols, const char *name, uint64_t *ret)
{
	for (size_t i = 0; i < symbols->names.n; i++) {
		if (strcmp(symbols->names.list[i].name, name) == 0) {
			*ret = symbols->names.list[i].address;
			return true;
		}
	}
	return false;
}

const char *symbols_string(const struct file_symbols *symbols, uint64_t address)
{
	const struct entry *e = find(&symbols->strings, address);

	return e && e->address == address ? e->name : NULL;
}

int symbols_give(const struct file_symbols *symbols, struct tep_handle *tep)
{
	for (size_t i = 0; i < symbols->strings.n; i++) {
		const struct entry *e = &symbols->strings.list[i];
		_cleanup_free_ char *quoted = NULL;

		if (format_guard_string(e->name))
			continue; /* it prints the address */
		/* it takes quotes and one "\n" off again */
		quoted = strf("\"%s\\n\"", e->name);
		if (!quoted || tep_register_print_string(tep, quoted, e->address) < 0)
			return -ENOMEM;
	}
	return 0;
}

const char *symbols_find(struct symbols_cache *cache, uint64_t address, uint64_t *ret_start)
{
	size_t i = (address ^ address >> 11 ^ address >> 23) % SYMBOLS_CACHE_SIZE;
	__typeof__(cache->entries[0]) *entry = &cache->entries[i];

	if (entry->address != address || !address) {
		const struct entry *e = find(&cache->symbols->names, address);

		entry->address = address;
		entry->name = e ? e->name : NULL;
		entry->start = e ? e->address : 0;
	}
	if (entry->name)
		*ret_start = entry->start;
	return entry->name;
}

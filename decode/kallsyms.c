/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "decode/kallsyms.h"

struct symbol {
	uint64_t address;
	const char *name;
};

struct kallsyms {
	char *text;
	struct symbol *list; /* by address; of equal ones, the last line of the text comes first */
	size_t n;	     /* the entry behind the last one has address 0 and no name */
};

/* "ADDRESS TYPE NAME[\t[MODULE]]"; @ret->name is cut off in place */
static bool parse_line(char *line, struct symbol *ret, char *ret_type)
{
	char *end, *p;

	while (isspace((unsigned char)*line))
		line++;
	if (!isxdigit((unsigned char)*line))
		return false;
	ret->address = strtoull(line, &end, 16);
	for (p = end; isspace((unsigned char)*p); p++)
		;
	*ret_type = *p;
	if (!*p)
		return false;
	for (p++; isspace((unsigned char)*p); p++)
		;
	if (!*p)
		return false;
	ret->name = p;
	while (*p && !isspace((unsigned char)*p))
		p++;
	*p = '\0';
	return true;
}

/*
 * Same address: the later line first. Names lie in the text in the order of its lines, so that
 * their addresses tell.
 */
static int compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->name > y->name ? -1 : x->name < y->name;
}

int kallsyms_parse(char *text, struct kallsyms **ret)
{
	struct kallsyms *s = calloc(1, sizeof(*s));
	size_t lines = 1;
	char *next = NULL;

	if (!s) {
		free(text);
		return -ENOMEM;
	}
	s->text = text;
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	s->list = malloc((lines + 1) * sizeof(*s->list));
	if (!s->list) {
		kallsyms_free(s);
		return -ENOMEM;
	}
	for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		char type;

		if (!parse_line(line, &s->list[s->n], &type))
			break;
		/* not the mapping symbols of arm, nor the offsets of x86's per-cpu variables */
		if (s->list[s->n].name[0] != '$' && type != 'A' && type != 'a')
			s->n++;
	}
	qsort(s->list, s->n, sizeof(*s->list), compare);
	s->list[s->n] = (struct symbol){};
	*ret = s;
	return 0;
}

struct kallsyms *kallsyms_free(struct kallsyms *symbols)
{
	if (!symbols)
		return NULL;
	free(symbols->text);
	free(symbols->list);
	free(symbols);
	return NULL;
}

/*
 * Which of several names of one address is found depends on the steps of the search. These are
 * those of bsearch(), with libtraceevent's idea of equality: an address belongs to the symbol
 * before it, and to the last one only if it is its beginning.
 */
static const char *find(const struct kallsyms *symbols, uint64_t address, uint64_t *ret_start)
{
	size_t low = 0, high = symbols->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct symbol *s = &symbols->list[middle];

		if (address == s->address || (address > s->address && address < s[1].address)) {
			*ret_start = s->address;
			return s->name;
		}
		if (address < s->address)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

bool kallsyms_address(const struct kallsyms *symbols, const char *name, uint64_t *ret)
{
	for (size_t i = 0; i < symbols->n; i++) {
		if (strcmp(symbols->list[i].name, name) == 0) {
			*ret = symbols->list[i].address;
			return true;
		}
	}
	return false;
}

const char *kallsyms_cache_find(struct kallsyms_cache *cache, uint64_t address, uint64_t *ret_start)
{
	size_t i = (address ^ address >> 11 ^ address >> 23) % KALLSYMS_CACHE_SIZE;

	if (!cache->symbols)
		return NULL;
	if (cache->entries[i].address != address || !address) {
		cache->entries[i].address = address;
		cache->entries[i].name = find(cache->symbols, address, &cache->entries[i].start);
	}
	if (cache->entries[i].name)
		*ret_start = cache->entries[i].start;
	return cache->entries[i].name;
}

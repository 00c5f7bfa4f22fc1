/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "decode/format-guard.h"
#include "decode/printk-formats.h"

struct entry {
	uint64_t address;
	const char *string;
};

struct printk_formats {
	char *text;
	struct entry *list; /* by address */
	size_t n;
};

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static const char *strip(char *string)
{
	size_t n;

	if (*string == '"')
		string++;
	n = strlen(string);
	if (n > 0 && string[n - 1] == '"')
		string[--n] = '\0';
	if (n >= 2 && strcmp(string + n - 2, "\\n") == 0)
		string[n - 2] = '\0';
	return string;
}

int printk_formats_parse(char *text, struct printk_formats **ret)
{
	struct printk_formats *f = calloc(1, sizeof(*f));
	size_t lines = 1;
	char *next = NULL;

	if (!f) {
		free(text);
		return -ENOMEM;
	}
	f->text = text;
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	f->list = malloc(lines * sizeof(*f->list));
	if (!f->list) {
		printk_formats_free(f);
		return -ENOMEM;
	}
	for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		char *colon = strchr(line, ':');

		if (!colon || !colon[1])
			break;
		f->list[f->n++] = (struct entry){strtoull(line, NULL, 16), strip(colon + 2)};
	}
	qsort(f->list, f->n, sizeof(*f->list), compare);
	*ret = f;
	return 0;
}

struct printk_formats *printk_formats_free(struct printk_formats *formats)
{
	if (!formats)
		return NULL;
	free(formats->text);
	free(formats->list);
	free(formats);
	return NULL;
}

const char *printk_formats_find(const struct printk_formats *formats, uint64_t address)
{
	struct entry key = {.address = address};
	const struct entry *found;

	if (!formats || formats->n == 0)
		return NULL;
	found = bsearch(&key, formats->list, formats->n, sizeof(*formats->list), compare);
	return found ? found->string : NULL;
}

int printk_formats_give(const struct printk_formats *formats, struct tep_handle *tep)
{
	for (size_t i = 0; i < formats->n; i++) {
		_cleanup_free_ char *quoted = NULL;

		if (format_guard_string(formats->list[i].string))
			continue; /* it prints the address */
		/* it takes quotes and one "\n" off again */
		if (asprintf(&quoted, "\"%s\\n\"", formats->list[i].string) < 0) {
			quoted = NULL;
			return -ENOMEM;
		}
		if (tep_register_print_string(tep, quoted, formats->list[i].address) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "convert/arm/arm-check-internal.h"

#define QUOTED_MAX 200 /* of a name, in messages */

/* Is this one to be reported? */
static bool count_fault(struct arm_check *check)
{
	if (check->n_faults > ARM_FAULTS_MAX)
		return false;
	if (++check->n_faults <= ARM_FAULTS_MAX)
		return true;
	check->on_fault(check->userdata, check->index.name, 0,
			"too many faults, the rest is left out");
	return false;
}

void arm_check_fault(struct arm_check *check, const char *file, unsigned line, const char *format,
		     ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	if (!count_fault(check))
		return;
	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0) {
		text = NULL;
		check->no_memory = true;
	} else {
		check->on_fault(check->userdata, file, line, text);
	}
	va_end(ap);
}

static void on_syntax(void *userdata, unsigned line, const char *text)
{
	struct arm_check *check = userdata;

	if (count_fault(check))
		check->on_fault(check->userdata, check->reading, line, text);
}

bool arm_check_read(struct arm_check *check, const char *name, struct arm_check_file *ret)
{
	_cleanup_free_ char *data = NULL;
	size_t size;

	if (!*name || check->files->read(check->files->userdata, name, &data, &size) < 0)
		return false;
	check->reading = name;
	check->total += size;
	if (check->total > ARM_TOTAL_MAX) {
		arm_check_fault(check, name, 0, "the files have more than 64 MiB of text");
		return false;
	}
	if (arm_ini_read(data, size, on_syntax, check, &ret->ini) < 0) {
		check->no_memory = true;
		return false;
	}
	ret->name = name;
	ret->there = true;
	return true;
}

bool arm_check_binary(struct arm_check *check, const char *file, unsigned line, const char *name,
		      uint64_t *ret_size)
{
	int r = check->files->size(check->files->userdata, name, ret_size);

	if (r < 0)
		arm_check_fault(check, file, line, "file %.*s: %s", QUOTED_MAX, name, strerror(-r));
	else if (*ret_size == 0)
		arm_check_fault(check, file, line, "file %.*s is empty", QUOTED_MAX, name);
	return r >= 0 && *ret_size > 0;
}

/* "Core Trace-Sources" for "core_trace_sources" */
static bool looks_like(const char *name, const char *known)
{
	bool same = true;

	for (; *name && *known; name++, known++) {
		char c = *name >= 'A' && *name <= 'Z' ? (char)(*name + 'a' - 'A') : *name;

		same = same && c == *name;
		if (c != *known && !(*known == '_' && (c == ' ' || c == '-')))
			return false;
		same = same && c == *known;
	}
	return !*name && !*known && !same;
}

static int by_name(const void *a, const void *b)
{
	const struct arm_ini_key *const *x = a, *const *y = b;
	int r = strcmp((*x)->name, (*y)->name);

	return r ? r : (*x)->line < (*y)->line ? -1 : (*x)->line > (*y)->line;
}

static void find_doubles(struct arm_check *check, const char *file,
			 const struct arm_ini_section *section)
{
	_cleanup_free_ const struct arm_ini_key **keys = NULL;

	if (section->n_keys < 2)
		return;
	keys = calloc(section->n_keys, sizeof(const struct arm_ini_key *));
	if (!keys) {
		check->no_memory = true;
		return;
	}
	for (size_t i = 0; i < section->n_keys; i++)
		keys[i] = &section->keys[i];
	qsort(keys, section->n_keys, sizeof(*keys), by_name);
	for (size_t i = 1; i < section->n_keys && !arm_check_full(check); i++)
		if (strcmp(keys[i - 1]->name, keys[i]->name) == 0)
			arm_check_fault(check, file, keys[i]->line,
					"%.*s is in [%.*s] already, in line %u", QUOTED_MAX,
					keys[i]->name, QUOTED_MAX, section->name,
					keys[i - 1]->line);
}

void arm_check_names(struct arm_check *check, const struct arm_check_file *file,
		     const char *const *known)
{
	for (size_t i = 0; i < file->ini.n_sections && !arm_check_full(check); i++) {
		const struct arm_ini_section *s = &file->ini.sections[i];

		find_doubles(check, file->name, s);
		for (const char *const *k = known; *k; k++) {
			if (looks_like(s->name, *k))
				arm_check_fault(check, file->name, s->line,
						"section [%.*s]: readers look for [%s]", QUOTED_MAX,
						s->name, *k);
			else if (strcmp(s->name, *k) == 0 && arm_ini_section(&file->ini, *k) != s)
				arm_check_fault(check, file->name, s->line,
						"section [%s] is there twice", *k);
		}
	}
}

struct arm_check_device *arm_check_find(struct arm_check *check, const char *name)
{
	for (size_t i = 0; i < check->n_devices; i++)
		if (check->devices[i].name && strcmp(check->devices[i].name, name) == 0)
			return &check->devices[i];
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	const struct arm_ini_key *const *x = a, *const *y = b;
	int r = strcmp((*x)->value, (*y)->value);

	return r ? r : (*x)->line < (*y)->line ? -1 : (*x)->line > (*y)->line;
}

static void find_twice(struct arm_check *check, const struct arm_ini_section *list)
{
	_cleanup_free_ const struct arm_ini_key **keys =
		calloc(list->n_keys, sizeof(const struct arm_ini_key *));

	if (!keys) {
		check->no_memory = true;
		return;
	}
	for (size_t i = 0; i < list->n_keys; i++)
		keys[i] = &list->keys[i];
	qsort(keys, list->n_keys, sizeof(*keys), by_value);
	for (size_t i = 1; i < list->n_keys && !arm_check_full(check); i++)
		if (strcmp(keys[i - 1]->value, keys[i]->value) == 0)
			arm_check_fault(check, check->index.name, keys[i]->line,
					"%.*s is in [device_list] twice", QUOTED_MAX,
					keys[i]->value);
}

static void check_device_list(struct arm_check *check)
{
	const struct arm_ini_section *list = arm_ini_section(&check->index.ini, "device_list");

	if (!list || list->n_keys == 0) {
		arm_check_fault(check, check->index.name, list ? list->line : 0,
				list ? "[device_list] is empty" : "no [device_list] section");
		return;
	}
	if (list->n_keys > ARM_DEVICES_MAX) {
		arm_check_fault(check, check->index.name, list->line,
				"[device_list] has more than %u devices", ARM_DEVICES_MAX);
		return;
	}
	check->devices = calloc(list->n_keys, sizeof(*check->devices));
	if (!check->devices) {
		check->no_memory = true;
		return;
	}
	find_twice(check, list);
	for (size_t i = 0; i < list->n_keys && !arm_check_full(check); i++) {
		struct arm_check_device *d = &check->devices[check->n_devices];
		const struct arm_ini_key *key = &list->keys[i];

		if (arm_check_read(check, key->value, &d->file)) {
			check->n_devices++;
			arm_check_device(check, d);
		} else if (!check->no_memory) {
			arm_check_fault(check, check->index.name, key->line,
					"file %.*s cannot be read", QUOTED_MAX, key->value);
		}
	}
}

/* Return: readers can go on */
static bool check_version(struct arm_check *check, unsigned *ret)
{
	const struct arm_ini_section *s = arm_ini_section(&check->index.ini, "snapshot");
	const struct arm_ini_key *version = arm_ini_key(s, "version");

	if (!version) {
		arm_check_fault(check, check->index.name, s ? s->line : 0,
				s ? "[snapshot] without version=" : "no [snapshot] section");
		return true;
	}
	if (strcmp(version->value, ARM_SNAPSHOT_VERSION) != 0 && strcmp(version->value, "1") != 0) {
		arm_check_fault(check, check->index.name, version->line,
				"version %.*s: only " ARM_SNAPSHOT_VERSION " is known", QUOTED_MAX,
				version->value);
		return false;
	}
	*ret = 1;
	return true;
}

static void check_metadata(struct arm_check *check)
{
	const struct arm_ini_section *s = arm_ini_section(&check->index.ini, "trace");
	const struct arm_ini_key *metadata = arm_ini_key(s, "metadata");
	bool sources = false;

	for (size_t i = 0; i < check->n_devices; i++)
		sources |= check->devices[i].source;
	if (!s && !sources)
		return; /* a debugger's view: no trace in it */
	if (!metadata)
		arm_check_fault(check, check->index.name, s ? s->line : 0,
				s ? "[trace] without metadata="
				  : "no [trace] section, but sources of trace");
	else if (arm_check_read(check, metadata->value, &check->trace))
		arm_check_trace(check);
	else if (!check->no_memory)
		arm_check_fault(check, check->index.name, metadata->line,
				"file %.*s cannot be read", QUOTED_MAX, metadata->value);
}

/* flyrec's own: the trace.dat of the same time */
static void check_ftrace(struct arm_check *check)
{
	const struct arm_ini_key *file =
		arm_ini_key(arm_ini_section(&check->index.ini, "ftrace"), "file");
	uint64_t size;

	if (file)
		(void)arm_check_binary(check, check->index.name, file->line, file->value, &size);
}

static void check_clusters(struct arm_check *check)
{
	const struct arm_ini_section *s = arm_ini_section(&check->index.ini, "clusters");

	for (size_t i = 0; s && i < s->n_keys && !arm_check_full(check); i++) {
		_cleanup_free_ char *list = strdup(s->keys[i].value);
		char *rest = list, *name;

		if (!list) {
			check->no_memory = true;
			return;
		}
		for (unsigned n = 0;
		     n < ARM_DEVICES_MAX && !arm_check_full(check) && (name = strsep(&rest, ","));
		     n++) {
			name += strspn(name, " \t");
			name[strcspn(name, " \t")] = '\0';
			if (!arm_check_find(check, name))
				arm_check_fault(check, check->index.name, s->keys[i].line,
						"no device has the name \"%.*s\"", QUOTED_MAX,
						name);
		}
	}
}

static void done(struct arm_check *check)
{
	for (size_t i = 0; i < check->n_devices; i++)
		arm_ini_done(&check->devices[i].file.ini);
	free(check->devices);
	arm_ini_done(&check->index.ini);
	arm_ini_done(&check->trace.ini);
}

int arm_check(const struct arm_files *files, arm_check_fault_t on_fault, void *userdata,
	      unsigned *ret_version)
{
	static const char *const known[] = {"snapshot", "device_list", "clusters",
					    "trace",	"ftrace",      NULL};
	struct arm_check check = {.files = files, .on_fault = on_fault, .userdata = userdata};

	*ret_version = 0;
	if (arm_check_read(&check, ARM_SNAPSHOT_INI, &check.index)) {
		if (check_version(&check, ret_version)) {
			arm_check_names(&check, &check.index, known);
			check_device_list(&check);
			if (!arm_check_full(&check))
				check_metadata(&check);
			check_clusters(&check);
			check_ftrace(&check);
		}
	} else if (!check.no_memory) {
		arm_check_fault(&check, ARM_SNAPSHOT_INI, 0, "cannot be read");
	}
	done(&check);
	return check.no_memory ? -ENOMEM : 0;
}

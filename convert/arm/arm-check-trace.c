/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The metadata of the trace: which buffer has which source's, which source is which core's.
 */
#include <inttypes.h>
#include <string.h>

#include "convert/arm/arm-check-internal.h"

#define QUOTED_MAX 200
#define FRAME	   16U /* bytes of a CoreSight frame */

static void check_format(struct arm_check *check, const struct arm_ini_section *s, uint64_t size)
{
	const char *file = check->trace.name;
	const struct arm_ini_key *format = arm_ini_key(s, "format");

	if (!format)
		arm_check_fault(check, file, s->line, "[%.*s] without format=", QUOTED_MAX,
				s->name);
	else if (strcmp(format->value, "coresight") != 0 &&
		 strcmp(format->value, "source_data") != 0 &&
		 strcmp(format->value, "dstream_coresight") != 0)
		arm_check_fault(check, file, format->line,
				"unknown format %.*s: coresight and source_data are known",
				QUOTED_MAX, format->value);
	else if (strcmp(format->value, "coresight") == 0 && size % FRAME)
		arm_check_fault(check, file, format->line,
				"%" PRIu64 " bytes are no whole number of %u-byte frames", size,
				FRAME);
}

static void check_buffer(struct arm_check *check, const struct arm_ini_key *list, const char *id)
{
	const struct arm_ini_section *s = arm_ini_section(&check->trace.ini, id);
	const struct arm_ini_key *file = arm_ini_key(s, "file");
	const char *name = check->trace.name;
	uint64_t size = 0;

	if (!s) {
		arm_check_fault(check, name, list->line, "no section [%.*s]", QUOTED_MAX, id);
		return;
	}
	if (strncmp(id, "buffer", 6) != 0)
		arm_check_fault(check, name, s->line,
				"section [%.*s]: readers look for names that begin with \"buffer\"",
				QUOTED_MAX, id);
	if (!arm_ini_key(s, "name"))
		arm_check_fault(check, name, s->line, "[%.*s] without name=", QUOTED_MAX, id);
	if (!file)
		arm_check_fault(check, name, s->line, "[%.*s] without file=", QUOTED_MAX, id);
	else if (strchr(file->value, ','))
		arm_check_fault(check, name, file->line,
				"a list of files: readers take one, join them");
	else if (!arm_check_binary(check, name, file->line, file->value, &size))
		size = 0;
	check_format(check, s, size);
}

/* The value of "buffers=", each id terminated and followed by the next; NULL: none, reported */
static void check_buffers(struct arm_check *check)
{
	const struct arm_ini_section *s = arm_ini_section(&check->trace.ini, "trace_buffers");
	const struct arm_ini_key *list = arm_ini_key(s, "buffers");
	_cleanup_free_ char *ids = NULL;
	char *rest, *id;
	unsigned n = 0;

	if (!list) {
		arm_check_fault(check, check->trace.name, s ? s->line : 0,
				s ? "[trace_buffers] without buffers="
				  : "no [trace_buffers] section");
		return;
	}
	rest = ids = strdup(list->value);
	if (!ids) {
		check->no_memory = true;
		return;
	}
	while (!arm_check_full(check) && (id = strsep(&rest, ",")) && n++ < ARM_DEVICES_MAX) {
		id += strspn(id, " \t");
		id[strcspn(id, " \t")] = '\0';
		check_buffer(check, list, id);
	}
}

static bool is_buffer(struct arm_check *check, const char *name)
{
	for (size_t i = 0; i < check->trace.ini.n_sections; i++) {
		const struct arm_ini_section *s = &check->trace.ini.sections[i];
		const struct arm_ini_key *key = arm_ini_key(s, "name");

		if (strncmp(s->name, "buffer", 6) == 0 && key && strcmp(key->value, name) == 0)
			return true;
	}
	return false;
}

/* "etm0", "etm0(stream:1)", "@address:0x12308000" */
static struct arm_check_device *find_source(struct arm_check *check, const char *text)
{
	size_t n = strcspn(text, "(");

	for (size_t i = 0; i < check->n_devices; i++) {
		struct arm_check_device *d = &check->devices[i];

		if (!d->source)
			continue;
		if (*text == '@'
			    ? d->location && strcmp(d->location, text + 1) == 0
			    : d->name && strlen(d->name) == n && strncmp(d->name, text, n) == 0)
			return d;
	}
	return NULL;
}

static void check_source_buffer(struct arm_check *check, const struct arm_ini_key *key)
{
	struct arm_check_device *source = find_source(check, key->name);

	if (!source)
		arm_check_fault(check, check->trace.name, key->line,
				"no device with class=trace_source has the name \"%.*s\"",
				QUOTED_MAX, key->name);
	else
		source->buffer = key->value;
	if (strchr(key->value, ','))
		arm_check_fault(check, check->trace.name, key->line,
				"a list of buffers: readers take one");
	else if (!is_buffer(check, key->value))
		arm_check_fault(check, check->trace.name, key->line,
				"no buffer has the name \"%.*s\"", QUOTED_MAX, key->value);
}

static void check_core_source(struct arm_check *check, const struct arm_ini_key *key)
{
	struct arm_check_device *source = find_source(check, key->value);
	const struct arm_check_device *core = arm_check_find(check, key->name);

	if (!core || !core->core)
		arm_check_fault(check, check->trace.name, key->line,
				"no device with class=core has the name \"%.*s\"", QUOTED_MAX,
				key->name);
	if (!source)
		arm_check_fault(check, check->trace.name, key->line,
				"no device with class=trace_source has the name \"%.*s\"",
				QUOTED_MAX, key->value);
	else
		source->has_core = true;
}

/* What the sections leave out; their own lack is reported before */
static void check_complete(struct arm_check *check, bool buffers, bool cores)
{
	for (size_t i = 0; i < check->n_devices && !arm_check_full(check); i++) {
		const struct arm_check_device *d = &check->devices[i];

		if (!d->source || !d->name)
			continue;
		if (buffers && !d->buffer)
			arm_check_fault(check, d->file.name, d->line,
					"%.*s is not in [source_buffers] of %.*s", QUOTED_MAX,
					d->name, QUOTED_MAX, check->trace.name);
		if (cores && d->kind && d->kind->of_core && !d->has_core)
			arm_check_fault(check, d->file.name, d->line,
					"%.*s is no core's in [core_trace_sources] of %.*s",
					QUOTED_MAX, d->name, QUOTED_MAX, check->trace.name);
		for (size_t k = 0; d->trace_id && d->buffer && k < i && !arm_check_full(check); k++)
			if (check->devices[k].trace_id == d->trace_id && check->devices[k].name &&
			    check->devices[k].buffer &&
			    strcmp(check->devices[k].buffer, d->buffer) == 0)
				arm_check_fault(check, d->file.name, d->line,
						"%.*s has the trace ID 0x%" PRIx64 ", as %.*s",
						QUOTED_MAX, d->name, d->trace_id, QUOTED_MAX,
						check->devices[k].name);
	}
}

void arm_check_trace(struct arm_check *check)
{
	static const char *const known[] = {"trace_buffers", "core_trace_sources", "source_buffers",
					    NULL};
	const struct arm_ini *ini = &check->trace.ini;
	const struct arm_ini_section *buffers = arm_ini_section(ini, "source_buffers"),
				     *cores = arm_ini_section(ini, "core_trace_sources");
	const char *name = check->trace.name;

	arm_check_names(check, &check->trace, known);
	check_buffers(check);
	if (!buffers)
		arm_check_fault(check, name, 0,
				"no [source_buffers] section, without which readers decode "
				"nothing");
	if (!cores)
		arm_check_fault(check, name, 0, "no [core_trace_sources] section");
	for (size_t i = 0; buffers && i < buffers->n_keys && !arm_check_full(check); i++)
		check_source_buffer(check, &buffers->keys[i]);
	for (size_t i = 0; cores && i < cores->n_keys && !arm_check_full(check); i++)
		check_core_source(check, &cores->keys[i]);
	check_complete(check, buffers, cores);
}

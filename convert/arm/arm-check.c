/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "basic/strv.h"
#include "convert/arm/arm-check.h"
#include "formats/arm-ini.h"
#include "formats/arm-snapshot.h"

#define ARM_DEVICES_MAX 4096U
#define ARM_FAULTS_MAX	1000U	   /* what comes then is left out */
#define ARM_TOTAL_MAX	(64 * MIB) /* of all text files */
#define FRAME		16U	   /* bytes of a CoreSight frame */

struct file {
	const char *name; /* borrowed, from the file that names it */
	struct arm_ini ini;
};

struct device {
	struct file file;
	const char *name, *class, *location; /* or NULL */
	unsigned line;			     /* of the name */
	const struct arm_source_kind *kind;  /* NULL: no source, or an unknown one */
	bool core, source;
	bool has_core;
	const char *buffer; /* from [source_buffers], or NULL */
	uint64_t trace_id;
};

struct arm_check {
	const struct arm_files *files;
	arm_check_fault_t on_fault;
	void *userdata;
	struct file index, trace;
	struct device *devices;
	size_t n_devices;
	const char *reading; /* the file that is being read */
	unsigned n_faults;
	size_t total; /* bytes of text */
	bool no_memory;
};

/* Loops end then */
static bool full(const struct arm_check *check)
{
	return check->no_memory || check->n_faults > ARM_FAULTS_MAX;
}

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

/* A fault; from ARM_FAULTS_MAX on only that there are more */
static _printf_(4, 5) void tell(struct arm_check *check, const char *file, unsigned line,
				const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	if (!count_fault(check))
		return;
	va_start(ap, format);
	text = vstrf(format, ap);
	va_end(ap);
	check->no_memory |= !text;
	if (text)
		check->on_fault(check->userdata, file, line, text);
}

static void on_syntax(void *userdata, unsigned line, const char *text)
{
	struct arm_check *check = userdata;

	if (count_fault(check))
		check->on_fault(check->userdata, check->reading, line, text);
}

/* A text file; what is wrong with its syntax is told. Return: false: it cannot be read. */
static bool read_file(struct arm_check *check, const char *name, struct file *ret)
{
	_cleanup_free_ char *data = NULL;
	size_t size;

	if (!*name || check->files->read(check->files->userdata, name, &data, &size) < 0)
		return false;
	check->reading = name;
	check->total += size;
	if (check->total > ARM_TOTAL_MAX) {
		tell(check, name, 0, "the files have more than 64 MiB of text");
		return false;
	}
	if (arm_ini_read(data, size, on_syntax, check, &ret->ini) < 0) {
		check->no_memory = true;
		return false;
	}
	ret->name = name;
	return true;
}

/* The text file that a key names */
static bool read_named(struct arm_check *check, const struct arm_ini_key *key, struct file *ret)
{
	bool done = read_file(check, key->value, ret);

	if (!done && !check->no_memory)
		tell(check, check->index.name, key->line, "file %.200s cannot be read", key->value);
	return done;
}

/* Is there such a file, with something in it? Else that is told for @file and @line. */
static bool check_binary(struct arm_check *check, const char *file, unsigned line, const char *name,
			 uint64_t *ret_size)
{
	int r = check->files->size(check->files->userdata, name, ret_size);

	if (r < 0)
		tell(check, file, line, "file %.200s: %s", name, strerror(-r));
	else if (*ret_size == 0)
		tell(check, file, line, "file %.200s is empty", name);
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

static int compare_keys(const void *a, const void *b, void *by_value)
{
	const struct arm_ini_key *const *x = a, *const *y = b;
	int r = by_value ? strcmp((*x)->value, (*y)->value) : strcmp((*x)->name, (*y)->name);

	return r ? r : (*x)->line < (*y)->line ? -1 : (*x)->line > (*y)->line;
}

/* NULL without memory, which @check notes */
static const struct arm_ini_key **sorted(struct arm_check *check,
					 const struct arm_ini_section *section, bool by_value)
{
	const struct arm_ini_key **keys =
		calloc(section->n_keys, sizeof(const struct arm_ini_key *));

	if (!keys) {
		check->no_memory = true;
		return NULL;
	}
	for (size_t i = 0; i < section->n_keys; i++)
		keys[i] = &section->keys[i];
	qsort_r(keys, section->n_keys, sizeof(*keys), compare_keys, by_value ? check : NULL);
	return keys;
}

static void find_doubles(struct arm_check *check, const char *file,
			 const struct arm_ini_section *section)
{
	_cleanup_free_ const struct arm_ini_key **keys =
		section->n_keys > 1 ? sorted(check, section, false) : NULL;

	for (size_t i = 1; keys && i < section->n_keys && !full(check); i++)
		if (strcmp(keys[i - 1]->name, keys[i]->name) == 0)
			tell(check, file, keys[i]->line,
			     "%.200s is in [%.200s] already, in line %u", keys[i]->name,
			     section->name, keys[i - 1]->line);
}

/* Keys and sections that are there twice; names that only look like known ones */
static void check_names(struct arm_check *check, const struct file *file, const char *const *known)
{
	for (size_t i = 0; i < file->ini.n_sections && !full(check); i++) {
		const struct arm_ini_section *s = &file->ini.sections[i];

		find_doubles(check, file->name, s);
		for (const char *const *k = known; *k; k++) {
			if (looks_like(s->name, *k))
				tell(check, file->name, s->line,
				     "section [%.200s]: readers look for [%s]", s->name, *k);
			else if (strcmp(s->name, *k) == 0 && arm_ini_section(&file->ini, *k) != s)
				tell(check, file->name, s->line, "section [%s] is there twice", *k);
		}
	}
}

static struct device *find_device(struct arm_check *check, const char *name)
{
	for (size_t i = 0; i < check->n_devices; i++)
		if (check->devices[i].name && strcmp(check->devices[i].name, name) == 0)
			return &check->devices[i];
	return NULL;
}

/* The names between the commas of a value, one by one */
static void each_name(struct arm_check *check, const struct arm_ini_key *list,
		      void (*take)(struct arm_check *check, const struct arm_ini_key *list,
				   const char *name))
{
	_cleanup_free_ char *names = strdup(list->value);
	char *rest = names, *name;

	check->no_memory |= !names;
	for (unsigned n = 0; n < ARM_DEVICES_MAX && !full(check) && (name = strsep(&rest, ","));
	     n++) {
		name += strspn(name, " \t");
		name[strcspn(name, " \t")] = '\0';
		take(check, list, name);
	}
}

/* --- a device's file: [device], [regs], [dump…] */

/* "0x1F", "31", in quotes maybe */
static bool parse_number(const char *text, uint64_t *ret)
{
	char quote = *text == '"' || *text == '\'' ? *text : '\0', *end;
	const char *digits = text + (quote != '\0');

	if (*digits < '0' || *digits > '9')
		return false; /* no blanks and signs */
	errno = 0;
	*ret = strtoull(digits, &end, 0);
	return errno == 0 && (quote ? end[0] == quote && !end[1] : !*end);
}

/* What stands behind a register's name: "(0x3A0)", "(id:77,size:64)", "(size:64)" */
static bool parse_annotation(const char *text, unsigned *ret_bits)
{
	char part[64];

	if (*text++ != '(')
		return false;
	for (;;) {
		size_t n = strcspn(text, ",)");
		uint64_t value;
		char *word = part;

		if (n == 0 || n >= sizeof(part) || !text[n])
			return false;
		(void)snprintf(part, sizeof(part), "%.*s", (int)n, text);
		word += strspn(word, " ");
		if (strncmp(word, "size:", 5) == 0) {
			if (!parse_number(word + 5, &value) || value == 0 || value > 4096)
				return false;
			*ret_bits = (unsigned)value;
		} else if (!parse_number(strncmp(word, "id:", 3) == 0 ? word + 3 : word, &value)) {
			return false;
		}
		text += n + 1;
		if (text[-1] == ')')
			return !*text;
	}
}

static void check_register(struct arm_check *check, const struct device *d,
			   const struct arm_ini_key *key)
{
	size_t n = strcspn(key->name, "(");
	unsigned bits = 32;
	uint64_t value;

	if (key->name[n] && !parse_annotation(key->name + n, &bits))
		tell(check, d->file.name, key->line,
		     "register %.200s: (ID) or (id:ID,size:BITS) is wanted", key->name);
	else if (!parse_number(key->value, &value))
		tell(check, d->file.name, key->line, "register %.200s: \"%.200s\" is no number",
		     key->name, key->value);
	else if (bits < 64 && value >> bits && value >> 32)
		/* many cores' registers are written without their size: 32 bits are meant then */
		tell(check, d->file.name, key->line, "register %.200s: more than %u bits in %.200s",
		     key->name, bits, key->value);
}

static bool is_register(const char *key, const char *name)
{
	size_t n = strcspn(key, " \t(");

	return name && n == strlen(name) && strncmp(key, name, n) == 0;
}

static const struct arm_ini_key *find_register(const struct arm_ini_section *regs,
					       const struct arm_register_fact *fact)
{
	for (size_t i = 0; regs && i < regs->n_keys; i++)
		if (is_register(regs->keys[i].name, fact->name) ||
		    is_register(regs->keys[i].name, fact->alias))
			return &regs->keys[i];
	return NULL;
}

static void check_source(struct arm_check *check, struct device *d, const struct arm_ini_key *type,
			 const struct arm_ini_section *regs)
{
	d->kind = arm_source_kind(type->value);
	if (!d->kind) {
		tell(check, d->file.name, type->line, "unknown type of a trace source: %.200s",
		     type->value);
		return;
	}
	for (const struct arm_register_fact *f = d->kind->registers; f->name; f++) {
		const struct arm_ini_key *key = find_register(regs, f);
		uint64_t value;

		if (!key && !(f->optional & d->kind->bit))
			tell(check, d->file.name, regs ? regs->line : type->line,
			     "no %s, which %s needs", f->name, d->kind->type);
		if (key && strcmp(f->name, d->kind->id) == 0 && parse_number(key->value, &value))
			d->trace_id = value >> d->kind->id_shift & 0x7f;
	}
}

static void check_device_section(struct arm_check *check, struct device *d,
				 const struct arm_ini_section *s)
{
	const struct arm_ini_key *name = arm_ini_key(s, "name"), *class = arm_ini_key(s, "class"),
				 *type = arm_ini_key(s, "type"),
				 *location = arm_ini_key(s, "location");
	const struct device *other;

	if (!name || !*name->value) {
		tell(check, d->file.name, s->line, "[device] without name=");
	} else {
		other = find_device(check, name->value);
		if (other)
			tell(check, d->file.name, name->line, "%.200s has the name \"%.200s\" too",
			     other->file.name, name->value);
		d->name = name->value;
		d->line = name->line;
	}
	d->class = class ? class->value : NULL;
	d->location = location ? location->value : NULL;
	d->core = class && strcmp(class->value, "core") == 0;
	d->source = class && strcmp(class->value, "trace_source") == 0;
	if (!class)
		tell(check, d->file.name, s->line, "[device] without class=");
	if (!d->core && !d->source)
		return; /* others are for information */
	if (!type)
		tell(check, d->file.name, s->line, "[device] without type=");
	else if (d->core && !arm_core_known(type->value))
		tell(check, d->file.name, type->line,
		     "unknown type of a core: %.200s; readers know ARMv8-A, too", type->value);
	else if (d->source)
		check_source(check, d, type, arm_ini_section(&d->file.ini, "regs"));
}

/* A number, 0 if the key is not there. Return: false: neither, which is reported. */
static bool get_number(struct arm_check *check, const char *file, const struct arm_ini_key *key,
		       uint64_t *ret)
{
	*ret = 0;
	if (!key || parse_number(key->value, ret))
		return true;
	tell(check, file, key->line, "%s: \"%.200s\" is no number", key->name, key->value);
	return false;
}

static void check_dump(struct arm_check *check, const char *name, const struct arm_ini_section *s)
{
	static const char *const keys[] = {"file", "address", "length", "offset", "space", NULL};
	const struct arm_ini_key *file = arm_ini_key(s, "file"), *length = arm_ini_key(s, "length"),
				 *offset = arm_ini_key(s, "offset");
	uint64_t address, n = 0, skip = 0, size;

	for (size_t i = 0; i < s->n_keys; i++) {
		const char *const *k = keys;

		while (*k && strcmp(*k, s->keys[i].name) != 0)
			k++;
		if (!*k)
			tell(check, name, s->keys[i].line,
			     "unknown key %.200s, which readers refuse in [dump]", s->keys[i].name);
	}
	if (!arm_ini_key(s, "address"))
		tell(check, name, s->line, "[%.200s] without address=", s->name);
	if (!file)
		tell(check, name, s->line, "[%.200s] without file=", s->name);
	if (!get_number(check, name, arm_ini_key(s, "address"), &address) ||
	    !get_number(check, name, length, &n) || !get_number(check, name, offset, &skip) ||
	    !file || !check_binary(check, name, file->line, file->value, &size))
		return;
	if (skip > size || n > size - skip)
		tell(check, name, length ? length->line : offset->line,
		     "%.200s has only 0x%" PRIx64 " bytes", file->value, size);
}

static void check_device(struct arm_check *check, struct device *d)
{
	static const char *const known[] = {"device", "regs", NULL};
	const struct arm_ini_section *device = arm_ini_section(&d->file.ini, "device"),
				     *regs = arm_ini_section(&d->file.ini, "regs");

	check_names(check, &d->file, known);
	if (device)
		check_device_section(check, d, device);
	else
		tell(check, d->file.name, 0, "no [device] section");
	for (size_t i = 0; regs && i < regs->n_keys && !full(check); i++)
		check_register(check, d, &regs->keys[i]);
	for (size_t i = 0; i < d->file.ini.n_sections && !full(check); i++)
		if (strncmp(d->file.ini.sections[i].name, "dump", 4) == 0)
			check_dump(check, d->file.name, &d->file.ini.sections[i]);
}

/* --- the metadata of the trace: which buffer has which source's, which source is which core's */

static void check_format(struct arm_check *check, const struct arm_ini_section *s, uint64_t size)
{
	const char *file = check->trace.name;
	const struct arm_ini_key *format = arm_ini_key(s, "format");

	if (!format)
		tell(check, file, s->line, "[%.200s] without format=", s->name);
	else if (strcmp(format->value, "coresight") != 0 &&
		 strcmp(format->value, "source_data") != 0 &&
		 strcmp(format->value, "dstream_coresight") != 0)
		tell(check, file, format->line,
		     "unknown format %.200s: coresight and source_data are known", format->value);
	else if (strcmp(format->value, "coresight") == 0 && size % FRAME)
		tell(check, file, format->line,
		     "%" PRIu64 " bytes are no whole number of %u-byte frames", size, FRAME);
}

static void check_buffer(struct arm_check *check, const struct arm_ini_key *list, const char *id)
{
	const struct arm_ini_section *s = arm_ini_section(&check->trace.ini, id);
	const struct arm_ini_key *file = arm_ini_key(s, "file");
	const char *name = check->trace.name;
	uint64_t size = 0;

	if (!s) {
		tell(check, name, list->line, "no section [%.200s]", id);
		return;
	}
	if (strncmp(id, "buffer", 6) != 0)
		tell(check, name, s->line,
		     "section [%.200s]: readers look for names that begin with \"buffer\"", id);
	if (!arm_ini_key(s, "name"))
		tell(check, name, s->line, "[%.200s] without name=", id);
	if (!file)
		tell(check, name, s->line, "[%.200s] without file=", id);
	else if (strchr(file->value, ','))
		tell(check, name, file->line, "a list of files: readers take one, join them");
	else if (!check_binary(check, name, file->line, file->value, &size))
		size = 0;
	check_format(check, s, size);
}

static void check_buffers(struct arm_check *check)
{
	const struct arm_ini_section *s = arm_ini_section(&check->trace.ini, "trace_buffers");
	const struct arm_ini_key *list = arm_ini_key(s, "buffers");

	if (list)
		each_name(check, list, check_buffer);
	else
		tell(check, check->trace.name, s ? s->line : 0,
		     s ? "[trace_buffers] without buffers=" : "no [trace_buffers] section");
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
static struct device *find_source(struct arm_check *check, const char *text)
{
	size_t n = strcspn(text, "(");

	for (size_t i = 0; i < check->n_devices; i++) {
		struct device *d = &check->devices[i];

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
	struct device *source = find_source(check, key->name);

	if (!source)
		tell(check, check->trace.name, key->line,
		     "no device with class=trace_source has the name \"%.200s\"", key->name);
	else
		source->buffer = key->value;
	if (strchr(key->value, ','))
		tell(check, check->trace.name, key->line, "a list of buffers: readers take one");
	else if (!is_buffer(check, key->value))
		tell(check, check->trace.name, key->line, "no buffer has the name \"%.200s\"",
		     key->value);
}

static void check_core_source(struct arm_check *check, const struct arm_ini_key *key)
{
	struct device *source = find_source(check, key->value);
	const struct device *core = find_device(check, key->name);

	if (!core || !core->core)
		tell(check, check->trace.name, key->line,
		     "no device with class=core has the name \"%.200s\"", key->name);
	if (!source)
		tell(check, check->trace.name, key->line,
		     "no device with class=trace_source has the name \"%.200s\"", key->value);
	else
		source->has_core = true;
}

/* What the sections leave out; their own lack is reported before */
static void check_complete(struct arm_check *check, bool buffers, bool cores)
{
	for (size_t i = 0; i < check->n_devices && !full(check); i++) {
		const struct device *d = &check->devices[i];

		if (!d->source || !d->name)
			continue;
		if (buffers && !d->buffer)
			tell(check, d->file.name, d->line,
			     "%.200s is not in [source_buffers] of %.200s", d->name,
			     check->trace.name);
		if (cores && d->kind && d->kind->of_core && !d->has_core)
			tell(check, d->file.name, d->line,
			     "%.200s is no core's in [core_trace_sources] of %.200s", d->name,
			     check->trace.name);
		for (size_t k = 0; d->trace_id && d->buffer && k < i && !full(check); k++)
			if (check->devices[k].trace_id == d->trace_id && check->devices[k].name &&
			    check->devices[k].buffer &&
			    strcmp(check->devices[k].buffer, d->buffer) == 0)
				tell(check, d->file.name, d->line,
				     "%.200s has the trace ID 0x%" PRIx64 ", as %.200s", d->name,
				     d->trace_id, check->devices[k].name);
	}
}

static void check_trace(struct arm_check *check)
{
	static const char *const known[] = {"trace_buffers", "core_trace_sources", "source_buffers",
					    NULL};
	const struct arm_ini *ini = &check->trace.ini;
	const struct arm_ini_section *buffers = arm_ini_section(ini, "source_buffers"),
				     *cores = arm_ini_section(ini, "core_trace_sources");
	const char *name = check->trace.name;

	check_names(check, &check->trace, known);
	check_buffers(check);
	if (!buffers)
		tell(check, name, 0,
		     "no [source_buffers] section, without which readers decode "
		     "nothing");
	if (!cores)
		tell(check, name, 0, "no [core_trace_sources] section");
	for (size_t i = 0; buffers && i < buffers->n_keys && !full(check); i++)
		check_source_buffer(check, &buffers->keys[i]);
	for (size_t i = 0; cores && i < cores->n_keys && !full(check); i++)
		check_core_source(check, &cores->keys[i]);
	check_complete(check, buffers, cores);
}

/* --- snapshot.ini */

static void find_twice(struct arm_check *check, const struct arm_ini_section *list)
{
	_cleanup_free_ const struct arm_ini_key **keys = sorted(check, list, true);

	for (size_t i = 1; keys && i < list->n_keys && !full(check); i++)
		if (strcmp(keys[i - 1]->value, keys[i]->value) == 0)
			tell(check, check->index.name, keys[i]->line,
			     "%.200s is in [device_list] twice", keys[i]->value);
}

static void check_device_list(struct arm_check *check)
{
	const struct arm_ini_section *list = arm_ini_section(&check->index.ini, "device_list");

	if (!list || list->n_keys == 0) {
		tell(check, check->index.name, list ? list->line : 0,
		     list ? "[device_list] is empty" : "no [device_list] section");
		return;
	}
	if (list->n_keys > ARM_DEVICES_MAX) {
		tell(check, check->index.name, list->line, "[device_list] has more than %u devices",
		     ARM_DEVICES_MAX);
		return;
	}
	check->devices = calloc(list->n_keys, sizeof(*check->devices));
	if (!check->devices) {
		check->no_memory = true;
		return;
	}
	find_twice(check, list);
	for (size_t i = 0; i < list->n_keys && !full(check); i++) {
		struct device *d = &check->devices[check->n_devices];
		const struct arm_ini_key *key = &list->keys[i];

		if (read_named(check, key, &d->file)) {
			check->n_devices++;
			check_device(check, d);
		}
	}
}

/* Return: readers can go on */
static bool check_version(struct arm_check *check, unsigned *ret)
{
	const struct arm_ini_section *s = arm_ini_section(&check->index.ini, "snapshot");
	const struct arm_ini_key *version = arm_ini_key(s, "version");

	if (!version) {
		tell(check, check->index.name, s ? s->line : 0,
		     s ? "[snapshot] without version=" : "no [snapshot] section");
		return true;
	}
	if (strcmp(version->value, ARM_SNAPSHOT_VERSION) != 0 && strcmp(version->value, "1") != 0) {
		tell(check, check->index.name, version->line,
		     "version %.200s: only " ARM_SNAPSHOT_VERSION " is known", version->value);
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
		tell(check, check->index.name, s ? s->line : 0,
		     s ? "[trace] without metadata=" : "no [trace] section, but sources of trace");
	else if (read_named(check, metadata, &check->trace))
		check_trace(check);
}

/* flyrec's own: the trace.dat of the same time */
static void check_ftrace(struct arm_check *check)
{
	const struct arm_ini_key *file =
		arm_ini_key(arm_ini_section(&check->index.ini, "ftrace"), "file");
	uint64_t size;

	if (file)
		(void)check_binary(check, check->index.name, file->line, file->value, &size);
}

static void check_cluster(struct arm_check *check, const struct arm_ini_key *list, const char *name)
{
	if (!find_device(check, name))
		tell(check, check->index.name, list->line, "no device has the name \"%.200s\"",
		     name);
}

static void check_clusters(struct arm_check *check)
{
	const struct arm_ini_section *s = arm_ini_section(&check->index.ini, "clusters");

	for (size_t i = 0; s && i < s->n_keys && !full(check); i++)
		each_name(check, &s->keys[i], check_cluster);
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
	if (read_file(&check, ARM_SNAPSHOT_INI, &check.index)) {
		if (check_version(&check, ret_version)) {
			check_names(&check, &check.index, known);
			check_device_list(&check);
			if (!full(&check))
				check_metadata(&check);
			check_clusters(&check);
			check_ftrace(&check);
		}
	} else if (!check.no_memory) {
		tell(&check, ARM_SNAPSHOT_INI, 0, "cannot be read");
	}
	done(&check);
	return check.no_memory ? -ENOMEM : 0;
}

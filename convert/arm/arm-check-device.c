/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A device's file: [device], [regs], [dump…].
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "convert/arm/arm-check-internal.h"

#define QUOTED_MAX 200

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

static void check_register(struct arm_check *check, const struct arm_check_device *d,
			   const struct arm_ini_key *key)
{
	size_t n = strcspn(key->name, "(");
	unsigned bits = 32;
	uint64_t value;

	if (key->name[n] && !parse_annotation(key->name + n, &bits))
		arm_check_fault(check, d->file.name, key->line,
				"register %.*s: (ID) or (id:ID,size:BITS) is wanted", QUOTED_MAX,
				key->name);
	else if (!parse_number(key->value, &value))
		arm_check_fault(check, d->file.name, key->line,
				"register %.*s: \"%.*s\" is no number", QUOTED_MAX, key->name,
				QUOTED_MAX, key->value);
	else if (bits < 64 && value >> bits && value >> 32)
		/* many cores' registers are written without their size: 32 bits are meant then */
		arm_check_fault(check, d->file.name, key->line,
				"register %.*s: more than %u bits in %.*s", QUOTED_MAX, key->name,
				bits, QUOTED_MAX, key->value);
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

static void check_source(struct arm_check *check, struct arm_check_device *d,
			 const struct arm_ini_key *type, const struct arm_ini_section *regs)
{
	d->kind = arm_source_kind(type->value);
	if (!d->kind) {
		arm_check_fault(check, d->file.name, type->line,
				"unknown type of a trace source: %.*s", QUOTED_MAX, type->value);
		return;
	}
	for (const struct arm_register_fact *f = d->kind->registers; f->name; f++) {
		const struct arm_ini_key *key = find_register(regs, f);
		uint64_t value;

		if (!key && !f->optional)
			arm_check_fault(check, d->file.name, regs ? regs->line : type->line,
					"no %s, which %s needs", f->name, d->kind->type);
		if (key && strcmp(f->name, d->kind->id) == 0 && parse_number(key->value, &value))
			d->trace_id = value >> d->kind->id_shift & 0x7f;
	}
}

static void check_device_section(struct arm_check *check, struct arm_check_device *d,
				 const struct arm_ini_section *s)
{
	const struct arm_ini_key *name = arm_ini_key(s, "name"), *class = arm_ini_key(s, "class"),
				 *type = arm_ini_key(s, "type"),
				 *location = arm_ini_key(s, "location");
	const struct arm_check_device *other;

	if (!name || !*name->value) {
		arm_check_fault(check, d->file.name, s->line, "[device] without name=");
	} else {
		other = arm_check_find(check, name->value);
		if (other)
			arm_check_fault(check, d->file.name, name->line,
					"%.*s has the name \"%.*s\" too", QUOTED_MAX,
					other->file.name, QUOTED_MAX, name->value);
		d->name = name->value;
		d->line = name->line;
	}
	d->class = class ? class->value : NULL;
	d->location = location ? location->value : NULL;
	d->core = class && strcmp(class->value, "core") == 0;
	d->source = class && strcmp(class->value, "trace_source") == 0;
	if (!class)
		arm_check_fault(check, d->file.name, s->line, "[device] without class=");
	if (!d->core && !d->source)
		return; /* others are for information */
	if (!type)
		arm_check_fault(check, d->file.name, s->line, "[device] without type=");
	else if (d->core && !arm_core_known(type->value))
		arm_check_fault(check, d->file.name, type->line,
				"unknown type of a core: %.*s; readers know ARMv8-A, too",
				QUOTED_MAX, type->value);
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
	arm_check_fault(check, file, key->line, "%s: \"%.*s\" is no number", key->name, QUOTED_MAX,
			key->value);
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
			arm_check_fault(check, name, s->keys[i].line,
					"unknown key %.*s, which readers refuse in [dump]",
					QUOTED_MAX, s->keys[i].name);
	}
	if (!arm_ini_key(s, "address"))
		arm_check_fault(check, name, s->line, "[%.*s] without address=", QUOTED_MAX,
				s->name);
	if (!file)
		arm_check_fault(check, name, s->line, "[%.*s] without file=", QUOTED_MAX, s->name);
	if (!get_number(check, name, arm_ini_key(s, "address"), &address) ||
	    !get_number(check, name, length, &n) || !get_number(check, name, offset, &skip) ||
	    !file || !arm_check_binary(check, name, file->line, file->value, &size))
		return;
	if (skip > size || n > size - skip)
		arm_check_fault(check, name, length ? length->line : offset->line,
				"%.*s has only 0x%" PRIx64 " bytes", QUOTED_MAX, file->value, size);
}

void arm_check_device(struct arm_check *check, struct arm_check_device *d)
{
	static const char *const known[] = {"device", "regs", NULL};
	const struct arm_ini_section *device = arm_ini_section(&d->file.ini, "device"),
				     *regs = arm_ini_section(&d->file.ini, "regs");

	arm_check_names(check, &d->file, known);
	if (device)
		check_device_section(check, d, device);
	else
		arm_check_fault(check, d->file.name, 0, "no [device] section");
	for (size_t i = 0; regs && i < regs->n_keys && !arm_check_full(check); i++)
		check_register(check, d, &regs->keys[i]);
	for (size_t i = 0; i < d->file.ini.n_sections && !arm_check_full(check); i++)
		if (strncmp(d->file.ini.sections[i].name, "dump", 4) == 0)
			check_dump(check, d->file.name, &d->file.ini.sections[i]);
}

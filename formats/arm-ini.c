/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "formats/arm-ini.h"

struct reader {
	arm_ini_fault_t on_fault;
	void *userdata;
	struct arm_ini ini;
	bool crlf; /* has been reported */
	bool skip; /* below a header that could not be read */
	bool no_memory;
};

static void fault(struct reader *r, unsigned line, const char *text)
{
	r->on_fault(r->userdata, line, text);
}

static char *strip(char *text)
{
	size_t n;

	text += strspn(text, " \t");
	for (n = strlen(text); n > 0 && strchr(" \t", text[n - 1]); n--)
		;
	text[n] = '\0';
	return text;
}

static void begin_section(struct reader *r, unsigned line, char *text)
{
	char *end = strchr(text, ']');

	r->skip = true;
	if (!end || end[1]) {
		fault(r, line, "a section header must end in ']'");
		return;
	}
	*end = '\0';
	text = strip(text + 1);
	if (!*text) {
		fault(r, line, "a section without a name");
		return;
	}
	if (array_grow(&r->ini.sections, r->ini.n_sections, sizeof(*r->ini.sections)) < 0) {
		r->no_memory = true;
		return;
	}
	r->ini.sections[r->ini.n_sections++] = (struct arm_ini_section){.line = line, .name = text};
	r->skip = false;
}

static void assign(struct reader *r, unsigned line, char *text)
{
	struct arm_ini_section *section;
	char *equals = strchr(text, '=');

	if (!equals || equals == text) {
		fault(r, line, equals ? "missing key before '='" : "missing '='");
		return;
	}
	if (r->skip)
		return;
	if (r->ini.n_sections == 0) {
		fault(r, line, "a key before the first [section]");
		return;
	}
	section = &r->ini.sections[r->ini.n_sections - 1];
	if (array_grow(&section->keys, section->n_keys, sizeof(*section->keys)) < 0) {
		r->no_memory = true;
		return;
	}
	*equals = '\0';
	section->keys[section->n_keys++] = (struct arm_ini_key){
		.line = line,
		.name = strip(text),
		.value = strip(equals + 1),
	};
}

static void take_line(struct reader *r, unsigned line, char *text, size_t size)
{
	if (size > 0 && text[size - 1] == '\r') {
		if (!r->crlf)
			fault(r, line, "the line ends in CR LF, which readers do not take");
		r->crlf = true;
		text[--size] = '\0';
	}
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] < ' ' && text[i] != '\t') {
			fault(r, line, "a control character: this is not a text file");
			return;
		}
	text[strcspn(text, ";#")] = '\0';
	text = strip(text);
	if (*text == '[')
		begin_section(r, line, text);
	else if (*text)
		assign(r, line, text);
}

int arm_ini_read(const char *data, size_t size, arm_ini_fault_t on_fault, void *userdata,
		 struct arm_ini *ret)
{
	struct reader r = {.on_fault = on_fault, .userdata = userdata};
	unsigned line = 0;

	if (size > ARM_INI_SIZE_MAX) {
		fault(&r, 0, "far too large for such a file");
		size = 0;
	}
	r.ini.text = malloc(size + 1);
	if (!r.ini.text)
		return -ENOMEM;
	memcpy(r.ini.text, data, size);
	r.ini.text[size] = '\0';
	for (char *p = r.ini.text, *end; p < r.ini.text + size; p = end + 1) {
		end = memchr(p, '\n', (size_t)(r.ini.text + size - p));
		if (!end)
			end = r.ini.text + size;
		*end = '\0';
		if (++line > ARM_INI_LINES_MAX) {
			fault(&r, line, "far too many lines for such a file");
			break;
		}
		take_line(&r, line, p, (size_t)(end - p));
	}
	if (r.no_memory) {
		arm_ini_done(&r.ini);
		return -ENOMEM;
	}
	*ret = r.ini;
	return 0;
}

void arm_ini_done(struct arm_ini *ini)
{
	for (size_t i = 0; i < ini->n_sections; i++)
		free(ini->sections[i].keys);
	free(ini->sections);
	free(ini->text);
	*ini = (struct arm_ini){};
}

const struct arm_ini_section *arm_ini_section(const struct arm_ini *ini, const char *name)
{
	for (size_t i = 0; i < ini->n_sections; i++)
		if (strcmp(ini->sections[i].name, name) == 0)
			return &ini->sections[i];
	return NULL;
}

const struct arm_ini_key *arm_ini_key(const struct arm_ini_section *section, const char *name)
{
	for (size_t i = 0; section && i < section->n_keys; i++)
		if (strcmp(section->keys[i].name, name) == 0)
			return &section->keys[i];
	return NULL;
}

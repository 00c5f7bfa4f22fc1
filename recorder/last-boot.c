/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "recorder/last-boot.h"

#define INFO_FILE   "last_boot_info"
#define KERNEL_NAME "[kernel]"
#define KERNEL_HALF (UINT64_C(1) << 63) /* where kernels live, on every 64-bit machine */

bool last_boot_is_kept(const struct tracedir *dir)
{
	return tracedir_exists(dir, INFO_FILE);
}

void last_boot_done(struct last_boot *boot)
{
	for (size_t i = 0; i < boot->n_modules; i++)
		free(boot->modules[i].name);
	free(boot->modules);
	*boot = (struct last_boot){0};
}

static const char *next_line(const char *line)
{
	line = strchrnul(line, '\n');
	return line + (*line == '\n');
}

/* --- last_boot_info */

static int add_module(struct last_boot *boot, const char *name, size_t size, uint64_t text)
{
	struct last_boot_module *more;
	char *copy = strndup(name, size);

	more = copy ? reallocarray(boot->modules, boot->n_modules + 1, sizeof(*more)) : NULL;
	if (!more) {
		free(copy);
		return -ENOMEM;
	}
	boot->modules = more;
	more[boot->n_modules++] = (struct last_boot_module){copy, text};
	return 0;
}

/* "ADDRESS\tNAME"; *known: it says something */
static int take_address(struct last_boot *boot, const char *line, bool *known)
{
	char *end;
	uint64_t address = strtoull(line, &end, 16);
	size_t size;

	if (end == line || (*end != '\t' && *end != ' '))
		return 0;
	end += strspn(end, "\t ");
	size = strcspn(end, "\n\t ");
	if (size != strlen(KERNEL_NAME) || memcmp(end, KERNEL_NAME, size) != 0)
		return size > 0 ? add_module(boot, end, size, address) : 0;
	/* 0: there was no boot before. Some kernels tell how far it was moved: from where, only
	 * they know. */
	*known = boot->tells_current = true;
	boot->text = address;
	boot->has_text = boot->has_kernel = address >= KERNEL_HALF;
	return 0;
}

int last_boot_parse(const char *text, struct last_boot *ret)
{
	struct last_boot boot = {0};
	bool known = false;
	int r = 0;

	for (const char *line = text; *line && r >= 0; line = next_line(line)) {
		if (strncmp(line, "# Current", 9) == 0) {
			boot.current = boot.tells_current = known = true;
		} else if (sscanf(line, "text delta: %" SCNd64, &boot.text_delta) == 1) {
			boot.has_kernel = known = true;
		} else if (sscanf(line, "data delta: %" SCNd64, &boot.data_delta) != 1) {
			r = take_address(&boot, line, &known);
		}
	}
	if (r >= 0 && !known)
		r = -EBADMSG;
	if (r < 0) {
		last_boot_done(&boot);
		return r;
	}
	*ret = boot;
	return 0;
}

int last_boot_read(const struct tracedir *dir, struct last_boot *ret, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = tracedir_read(dir, INFO_FILE, &text, why);
	if (r < 0)
		return r;
	r = last_boot_parse(text, ret);
	return r < 0 ? tracedir_fault(dir, INFO_FILE, r, why, "cannot understand it") : 0;
}

/* --- symbols */

/* "ADDRESS TYPE NAME[\t[MODULE]]" */
struct symbol {
	uint64_t address;
	char type;
	const char *rest; /* from " TYPE" on */
	size_t rest_size; /* with the newline */
	const char *name, *module;
	size_t name_size, module_size; /* 0: of the kernel itself */
};

static bool parse_symbol(const char *line, struct symbol *ret)
{
	struct symbol s = {0};
	const char *end = next_line(line);
	char *p;

	s.address = strtoull(line, &p, 16);
	if (p == line || p[0] != ' ' || !p[1] || p[2] != ' ')
		return false;
	s.rest = p;
	s.rest_size = (size_t)(end - p);
	s.type = p[1];
	s.name = p + 3;
	s.name_size = strcspn(s.name, "\t\n");
	s.module = s.name + s.name_size;
	if (*s.module == '\t' && s.module[1] == '[') {
		s.module += 2;
		s.module_size = strcspn(s.module, "]\n");
	}
	*ret = s;
	return true;
}

static bool is_named(const struct symbol *s, const char *name)
{
	return s->module_size == 0 && s->name_size == strlen(name) &&
	       memcmp(s->name, name, s->name_size) == 0;
}

/* What has to be added to addresses of now */
struct moved {
	uint64_t text_now, end_now; /* of the kernel's image */
	uint64_t text, data;
	struct {
		const char *name;
		uint64_t by;
	} * modules;
	size_t n_modules;
};

static bool find_image(const char *kallsyms, uint64_t *ret_text, uint64_t *ret_end)
{
	uint64_t text = 0, end = 0;

	for (const char *line = kallsyms; *line && !(text && end); line = next_line(line)) {
		struct symbol s;

		if (!parse_symbol(line, &s))
			continue;
		if (is_named(&s, "_text"))
			text = s.address;
		else if (is_named(&s, "_end"))
			end = s.address;
	}
	*ret_text = text;
	*ret_end = end;
	return text != 0 && end > text;
}

/* "NAME SIZE USES BY STATE 0xADDRESS" of /proc/modules; 0: not loaded now */
static uint64_t module_now(const char *modules, const char *name)
{
	size_t size = strlen(name);

	for (const char *line = modules; *line; line = next_line(line)) {
		const char *address;

		if (strncmp(line, name, size) != 0 || line[size] != ' ')
			continue;
		address = memmem(line, strcspn(line, "\n"), " 0x", 3);
		return address ? strtoull(address + 1, NULL, 16) : 0;
	}
	return 0;
}

static int find_moves(const struct last_boot *boot, const char *modules, struct moved *m)
{
	m->text = boot->has_text ? boot->text - m->text_now : -(uint64_t)boot->text_delta;
	m->data = boot->has_text ? m->text : -(uint64_t)boot->data_delta;
	m->modules = calloc(boot->n_modules + 1, sizeof(*m->modules));
	if (!m->modules)
		return -ENOMEM;
	for (size_t i = 0; i < boot->n_modules; i++) {
		uint64_t now = module_now(modules, boot->modules[i].name);

		if (now == 0)
			continue;
		m->modules[m->n_modules].name = boot->modules[i].name;
		m->modules[m->n_modules++].by = boot->modules[i].text - now;
	}
	return 0;
}

static bool is_code(char type)
{
	return strchr("tTwW", type) != NULL;
}

/* False: where it was is not known */
static bool move(const struct moved *m, const struct symbol *s, uint64_t *ret)
{
	if (s->module_size == 0) {
		*ret = s->address;
		if (s->address >= m->text_now && s->address <= m->end_now)
			*ret += is_code(s->type) ? m->text : m->data;
		else if (s->address >= KERNEL_HALF)
			return false;
		return true; /* offsets of per-CPU variables: they stay */
	}
	for (size_t i = 0; is_code(s->type) && i < m->n_modules; i++) {
		const char *name = m->modules[i].name;

		if (strlen(name) != s->module_size || memcmp(name, s->module, s->module_size) != 0)
			continue;
		*ret = s->address + m->modules[i].by;
		return true;
	}
	return false;
}

int last_boot_symbols(const struct last_boot *boot, const char *kallsyms, const char *modules,
		      char **ret, unsigned *ret_modules)
{
	struct moved m = {0};
	char *text = malloc(strlen(kallsyms) + 17), *to = text;
	bool known = boot->has_kernel && find_image(kallsyms, &m.text_now, &m.end_now);
	int r = text ? 0 : -ENOMEM;

	if (r >= 0 && known)
		r = find_moves(boot, modules, &m);
	if (r < 0) {
		free(text);
		return r;
	}
	for (const char *line = kallsyms; known && *line; line = next_line(line)) {
		struct symbol s;
		uint64_t address;

		if (!parse_symbol(line, &s) || !move(&m, &s, &address))
			continue;
		/* As many digits as the kernel prints: the text does not become longer */
		to += sprintf(to, "%0*" PRIx64, (int)(s.rest - line), address);
		to = mempcpy(to, s.rest, s.rest_size);
	}
	*to = '\0';
	if (ret_modules)
		*ret_modules = (unsigned)m.n_modules;
	free(m.modules);
	*ret = text;
	return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "recorder/probe-place.h"
#include "recorder/program.h"
#include "recorder/usdt.h"

#define USDT_ARGUMENT "$arg"
#define ARGUMENTS_MAX 64U /* of a USDT probe; systemtap's macros make 12 at most */

/* "p:GROUP/NAME PATH:A[:B] ARGUMENTS", taken apart */
struct definition {
	char *copy;
	const char *head, *path, *arguments; /* "" */
	char *where;			     /* behind the path: SYMBOL+OFFSET, or PROVIDER */
	const char *name;		     /* of a USDT probe */
};

static void definition_done(struct definition *d)
{
	free(d->copy);
}

static int malformed(const char *place, struct fault *why)
{
	return fault_set(why, -EINVAL, "\"%s\" is not a place in a program", place);
}

static char *cut_last(char *text, char at)
{
	char *found = strrchr(text, at);

	if (found)
		*found++ = '\0';
	return found;
}

static int split(enum probe_kind kind, const char *text, struct definition *ret, struct fault *why)
{
	char *copy = ret->copy = strdup(text), *place, *end, *last;

	if (!copy)
		return fault_errno(why, -ENOMEM, "cannot look up a probe");
	ret->head = copy;
	place = strchr(copy, ' ');
	if (!place)
		return malformed(text, why);
	*place++ = '\0';
	end = strchr(place, ' ');
	if (end)
		*end++ = '\0';
	ret->arguments = end ? end : "";
	ret->path = place;
	last = cut_last(place, ':');
	if (kind == PROBE_USDT) {
		ret->name = last;
		last = last ? cut_last(place, ':') : NULL;
	}
	ret->where = last;
	return last && *last && *place == '/' ? 0 : malformed(place, why);
}

static int add_line(const struct definition *d, uint64_t offset, uint64_t counter,
		    const char *arguments, struct probe_lines *ret, struct fault *why)
{
	char suffix[32] = "";
	int r;

	if (counter > 0)
		(void)snprintf(suffix, sizeof(suffix), "(0x%" PRIx64 ")", counter);
	r = strv_appendf(&ret->lines, "%s %s:0x%" PRIx64 "%s%s%s", d->head, d->path, offset, suffix,
			 *arguments ? " " : "", arguments);
	return r < 0 ? fault_errno(why, r, "cannot look up a probe") : 0;
}

/* --- Uprobe= */

static int resolve_symbol(const struct definition *d, struct program *program,
			  struct probe_lines *ret, struct fault *why)
{
	char *plus = strchr(d->where, '+'), *end = NULL;
	uint64_t address, offset, more = 0;
	int r;

	if (plus) {
		*plus++ = '\0';
		more = strtoull(plus, &end, 0);
		if (*end || !isdigit((unsigned char)*plus))
			return fault_set(why, -EINVAL, "\"+%s\" is not an offset into a function",
					 plus);
	}
	r = program_function(program, d->where, &address, &offset, why);
	return r < 0 ? r : add_line(d, offset + more, 0, d->arguments, ret, why);
}

/* --- Usdt= */

/* One place of a probe, and what is written of it */
struct site {
	const struct definition *definition;
	struct program *program;
	const struct usdt_site *usdt;
	FILE *out;
	char *types; /* of the fields, which are the same at each place: "s32 u64 " */
	struct fault *why;
};

/* A variable is found where the kernel takes the file to be: as far from the probe as in the file
 */
static int place_variable(const struct site *site, struct usdt_argument *argument)
{
	uint64_t address, base = site->usdt->address - site->usdt->offset;
	int r = program_variable(site->program, argument->variable, &address, site->why);

	if (r < 0)
		return r;
	address += (uint64_t)argument->addend;
	if (address < base)
		return fault_set(site->why, -EOPNOTSUPP, "the variable '%s' is before the code",
				 argument->variable);
	(void)snprintf(argument->fetch, sizeof(argument->fetch), "@+0x%" PRIx64, address - base);
	return 0;
}

/* Of number @n, from 1 on: 1; 0: there are fewer */
static int read_argument(const struct site *site, unsigned long n, struct usdt_argument *ret)
{
	const char *text = site->usdt->arguments;
	struct fault why;
	int r = 0;

	for (unsigned long i = 1; i <= n; i++) {
		r = usdt_next_argument(&text, program_machine(site->program), ret, &why);
		if (r == 0)
			return 0;
	}
	if (r < 0)
		return fault_set(site->why, r, "$arg%lu is %s", n, why.text);
	if (ret->variable[0])
		r = place_variable(site, ret);
	return r < 0 ? r : 1;
}

static int put_field(struct site *site, const char *type)
{
	_cleanup_free_ char *before = site->types;

	(void)fprintf(site->out, ":%s", type);
	site->types = strf("%s%s ", before ? before : "", type);
	return site->types ? 0 : fault_errno(site->why, -ENOMEM, "cannot look up a probe");
}

static int put_all(struct site *site)
{
	int r = 1;

	for (unsigned long n = 1; r > 0; n++) {
		struct usdt_argument a;

		r = read_argument(site, n, &a);
		if (r <= 0)
			return r;
		if (n > ARGUMENTS_MAX)
			return fault_set(site->why, -EFBIG,
					 "the USDT probe %s:%s has more than %u arguments",
					 site->definition->where, site->definition->name,
					 ARGUMENTS_MAX);
		(void)fprintf(site->out, "%sarg%lu=%s", n > 1 ? " " : "", n, a.fetch);
		if (put_field(site, a.type) < 0)
			return -ENOMEM;
	}
	return r;
}

/* "$arg2" that is a field by itself has the type that it has in the program */
static int put_one(struct site *site, const char *text, const char **end)
{
	const struct definition *d = site->definition;
	struct usdt_argument a;
	char *behind;
	unsigned long n = strtoul(text + strlen(USDT_ARGUMENT), &behind, 10);
	bool nameless = text == d->arguments || text[-1] == ' ';
	int r = n > 0 && n <= ARGUMENTS_MAX ? read_argument(site, n, &a) : 0;

	if (r < 0)
		return r;
	if (r == 0)
		return fault_set(site->why, -EINVAL,
				 "the USDT probe %s:%s has no $arg%lu, its arguments are \"%s\"",
				 d->where, d->name, n, site->usdt->arguments);
	if (nameless)
		(void)fprintf(site->out, "arg%lu=", n);
	(void)fputs(a.fetch, site->out);
	*end = behind;
	return (!*behind || *behind == ' ') && (nameless || text[-1] == '=')
		       ? put_field(site, a.type)
		       : 0;
}

static int put_chosen(struct site *site)
{
	const char *p = site->definition->arguments;
	int r = 0;

	while (*p && r >= 0) {
		if (strncmp(p, USDT_ARGUMENT, strlen(USDT_ARGUMENT)) == 0 &&
		    isdigit((unsigned char)p[strlen(USDT_ARGUMENT)]))
			r = put_one(site, p, &p);
		else
			(void)fputc(*p++, site->out);
	}
	return r;
}

static int add_site(struct site *site, struct probe_lines *ret)
{
	const struct definition *d = site->definition;
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r;

	site->out = open_memstream(&text, &size);
	if (!site->out)
		return fault_errno(site->why, -ENOMEM, "cannot look up a probe");
	r = *d->arguments ? put_chosen(site) : put_all(site);
	if (fclose(site->out) != 0)
		return fault_errno(site->why, -ENOMEM, "cannot look up a probe");
	return r < 0 ? r
		     : add_line(d, site->usdt->offset, site->usdt->counter, text, ret, site->why);
}

static int resolve_usdt(const struct definition *d, struct program *program,
			struct probe_lines *ret, struct fault *why)
{
	_cleanup_(usdt_sites_done) struct usdt_sites sites = {};
	_cleanup_free_ char *types = NULL;
	int r = program_usdt(program, d->where, d->name, &sites, why);

	for (size_t i = 0; r >= 0 && i < sites.n; i++) {
		struct site site = {d, program, &sites.list[i], .why = why};

		r = add_site(&site, ret);
		if (r >= 0 && i > 0 && !text_equal(types, site.types))
			r = fault_set(why, -EOPNOTSUPP,
				      "the USDT probe %s:%s has other types of arguments at other "
				      "places of %s: give a type with each, as in x=$arg1:u64",
				      d->where, d->name, d->path);
		free(types);
		types = site.types;
	}
	return r;
}

/* --- either */

static int look_up(enum probe_kind kind, const struct definition *d, struct probe_lines *ret,
		   struct fault *why)
{
	_cleanup_(program_freep) struct program *program = NULL;
	bool by_name = kind == PROBE_USDT || !isdigit((unsigned char)*d->where);
	int r = program_open(d->path, &program, by_name ? why : NULL);

	if (r == -EACCES && by_name) {
		struct fault inner = why ? *why : (struct fault){};

		return fault_set(
			why, r,
			"%s; flyrecd can read programs below /usr, others if it knows them "
			"when it starts: restart it",
			inner.text);
	}
	if (r < 0 && by_name)
		return r;
	if (r >= 0 && *program_build_id(program)) {
		ret->build_id = strf("%s %s", program_build_id(program), d->path);
		if (!ret->build_id)
			return fault_errno(why, -ENOMEM, "cannot look up a probe");
	}
	if (kind == PROBE_USDT)
		return resolve_usdt(d, program, ret, why);
	return by_name ? resolve_symbol(d, program, ret, why) : 0;
}

int probe_place_resolve(enum probe_kind kind, const char *definition, struct probe_lines *ret,
			struct fault *why)
{
	_cleanup_(definition_done) struct definition d = {};
	_cleanup_(probe_lines_done) struct probe_lines lines = {};
	int r = split(kind, definition, &d, why);

	if (r >= 0)
		r = look_up(kind, &d, &lines, why);
	if (r >= 0 && !lines.lines && strv_append(&lines.lines, definition) < 0)
		r = fault_errno(why, -ENOMEM, "cannot look up a probe");
	if (r < 0)
		return r;
	*ret = lines;
	lines = (struct probe_lines){};
	return 0;
}

void probe_lines_done(struct probe_lines *lines)
{
	strv_free(lines->lines);
	free(lines->build_id);
}

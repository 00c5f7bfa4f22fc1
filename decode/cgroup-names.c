/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "basic/strv.h"
#include "decode/cgroup-names.h"

#define UNIT_NAME_MAX 255
#define UNIT_CHARS    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:-_.\\@"
#define ID_SIZE	      64U /* of containers */
#define INIT_SCOPE    "init.scope"

/* Between two slashes */
struct part {
	const char *text;
	size_t size;
};

/* The next one, or false */
static bool next_part(const char **at, struct part *ret)
{
	*at += strspn(*at, "/");
	*ret = (struct part){*at, strcspn(*at, "/")};
	*at += ret->size;
	return ret->size > 0;
}

static bool has_suffix(const struct part *part, const char *suffix)
{
	size_t n = strlen(suffix);

	return part->size > n && memcmp(part->text + part->size - n, suffix, n) == 0;
}

/* Its name without the "_" that systemd puts before one that the kernel has for itself */
static struct part unescape(struct part part)
{
	if (part.size > 1 && *part.text == '_')
		return (struct part){part.text + 1, part.size - 1};
	return part;
}

/* As unit_name_is_valid(): neither a template nor one without a name */
static bool is_name(const struct part *part)
{
	const char *at = memchr(part->text, '@', part->size);
	const char *dot = memrchr(part->text, '.', part->size);

	return part->size <= UNIT_NAME_MAX && strspn(part->text, UNIT_CHARS) >= part->size && dot &&
	       dot > part->text && at != part->text && (!at || at + 1 < dot);
}

static bool is_slice(const struct part *part)
{
	return has_suffix(part, ".slice") && is_name(part);
}

/* Of the kinds that have processes */
static bool is_unit(const struct part *part)
{
	static const char *const kinds[] = {".service", ".scope", ".socket", ".mount", ".swap"};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (has_suffix(part, kinds[i]))
			return is_name(part);
	return false;
}

static bool is_user_manager(const struct part *part)
{
	return strncmp(part->text, "user@", 5) == 0 && has_suffix(part, ".service");
}

/*
 * Behind slices. In a container that has a systemd its hierarchy begins anywhere: what is neither
 * slice nor unit is passed over.
 */
static bool find_unit(const char **at, struct part *slice, struct part *ret)
{
	struct part part;

	while (next_part(at, &part)) {
		part = unescape(part);
		if (is_slice(&part)) {
			*slice = part;
		} else if (is_unit(&part)) {
			*ret = part;
			return true;
		}
	}
	return false;
}

/* Likewise, but nothing may be between */
static bool find_user_unit(const char *at, struct part *slice, struct part *ret)
{
	struct part part, inner = *slice;

	while (next_part(&at, &part)) {
		part = unescape(part);
		if (!is_slice(&part))
			break;
		inner = part;
	}
	if (part.size == 0 || !is_unit(&part) ||
	    (part.size == strlen(INIT_SCOPE) && memcmp(part.text, INIT_SCOPE, part.size) == 0))
		return false;
	*slice = inner;
	*ret = part;
	return true;
}

/* "ID", "docker-ID.scope", "POD.slice:cri-containerd:ID" …; not whoever watches over one */
static bool is_container(const struct part *part, struct part *ret)
{
	static const char watcher[] = "conmon";
	size_t size = part->size, n = strlen(watcher);
	const char *id;

	if (has_suffix(part, ".scope"))
		size -= strlen(".scope");
	if (size < ID_SIZE)
		return false;
	id = part->text + size - ID_SIZE;
	for (size_t i = 0; i < ID_SIZE; i++)
		if (!isdigit((unsigned char)id[i]) && !(id[i] >= 'a' && id[i] <= 'f'))
			return false;
	if (id > part->text && id[-1] != '-' && id[-1] != ':')
		return false;
	if ((size_t)(id - part->text) > n && memcmp(id - 1 - n, watcher, n) == 0)
		return false;
	*ret = (struct part){id, ID_SIZE};
	return true;
}

static int copy(const struct part *part, char **ret)
{
	if (part->size == 0)
		return 0;
	*ret = strndup(part->text, part->size);
	return *ret ? 0 : -ENOMEM;
}

int cgroup_names_parse(const char *path, struct cgroup_names *ret)
{
	struct part unit = {}, manager = {}, slice = {}, container = {}, part;
	struct cgroup_names names = {};
	const char *at = path;

	if (find_unit(&at, &slice, &unit) && is_user_manager(&unit)) {
		manager = unit;
		(void)find_user_unit(at, &slice, &unit);
	}
	for (at = path; next_part(&at, &part);)
		(void)is_container(&part, &container);
	if (copy(&unit, &names.unit) < 0 || copy(&manager, &names.manager) < 0 ||
	    copy(&slice, &names.slice) < 0 || copy(&container, &names.container) < 0) {
		cgroup_names_done(&names);
		return -ENOMEM;
	}
	*ret = names;
	return 0;
}

void cgroup_names_done(struct cgroup_names *names)
{
	free(names->unit);
	free(names->manager);
	free(names->slice);
	free(names->container);
	*names = (struct cgroup_names){};
}

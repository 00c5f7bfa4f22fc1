/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "formats/trace-dat.h"
#include "writer/probes.h"

/* "p:GROUP/NAME …", "r16:GROUP/NAME …": is GROUP one of @systems */
static bool of_systems(const char *line, char *const *systems)
{
	size_t type = strcspn(line, ": \t"), group;

	if ((*line != 'p' && *line != 'r') || line[type] != ':')
		return false;
	line += type + 1;
	group = strcspn(line, "/ \t");
	if (line[group] != '/')
		return false;
	for (; *systems; systems++)
		if (strlen(*systems) == group && memcmp(*systems, line, group) == 0)
			return true;
	return false;
}

static int append(char **text, const char *line)
{
	char *more;

	more = strf("%s%s\n", *text ? *text : TRACE_DAT_PROBES, line);
	if (!more)
		return -ENOMEM;
	free(*text);
	*text = more;
	return 0;
}

int probes_read(int tracing_fd, char *const *systems, char *const *build_ids, char **ret)
{
	_cleanup_free_ char *lines = NULL, *text = NULL;
	char *save = NULL;
	int r;

	r = io_read_file_at(tracing_fd, "dynamic_events", &lines, NULL);
	if (r < 0 && r != -ENOENT && r != -EACCES && r != -EPERM) /* a trace without is still one */
		return r;
	if (lines && systems)
		for (char *l = strtok_r(lines, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
			if (of_systems(l, systems) && append(&text, l) < 0)
				return -ENOMEM;
	for (char *const *b = build_ids; text && b && *b; b++) {
		_cleanup_free_ char *line = strf(TRACE_DAT_BUILD_ID "%s", *b);

		if (!line || append(&text, line) < 0)
			return -ENOMEM;
	}
	*ret = TAKE_PTR(text);
	return 0;
}

static bool has_line(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, line, n) == 0 && p[n] == '\n')
			return true;
	}
	return false;
}

int probes_merge(const struct trace_dat *dat, char **text, struct fault *why)
{
	size_t from = 0;
	int r;

	for (;;) {
		_cleanup_free_ char *lines = NULL;
		char *save = NULL;

		r = trace_dat_next_note(dat, TRACE_DAT_PROBES, &from, &lines, why);
		if (r <= 0)
			return r;
		for (char *l = strtok_r(lines, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
			if (!has_line(*text, l) && append(text, l) < 0)
				return fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	}
}

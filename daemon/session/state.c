/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/io.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "daemon/session/state.h"

#define STATE_FILE     "state"
#define STATE_SIZE_MAX (16 * MIB) /* far more than 8192 CPUs and thousands of events take */
#define TRACE_LINE     "trace\n"

void state_free(struct state *state)
{
	if (!state)
		return;
	free(state->session);
	free(state->instance);
	free(state->group);
	free(state->boot_id);
	free(state->trace_text);
	free(state->base);
	free(state->published);
	strv_free(state->synthetic);
	strv_free(state->build_ids);
	strv_free(state->watched);
	free(state);
}

static int add_base(struct state *state, const char *value)
{
	struct ledger_base b = {}, *p;
	unsigned cpu;
	int n;

	/* in_flight is not in those of earlier versions */
	n = sscanf(value, "%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &cpu,
		   &b.overrun, &b.commit_overrun, &b.dropped_events, &b.read_events, &b.in_flight);
	if (n < 5 || cpu != state->n_cpus)
		return -EBADMSG;
	p = reallocarray(state->base, cpu + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p[cpu] = b;
	state->base = p;
	state->n_cpus = cpu + 1;
	return 0;
}

static int add_published(struct state *state, const char *value)
{
	uint64_t *p = reallocarray(state->published, state->n_published + 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	state->published = p;
	return parse_u64(value, &p[state->n_published++]) < 0 ? -EBADMSG : 0;
}

static int parse_line(struct state *state, const char *key, const char *value)
{
	if (strcmp(key, "session") == 0)
		return strv_set(&state->session, value);
	if (strcmp(key, "instance") == 0)
		return strv_set(&state->instance, value);
	if (strcmp(key, "group") == 0)
		return strv_set(&state->group, value);
	if (strcmp(key, "boot-id") == 0)
		return strv_set(&state->boot_id, value);
	if (strcmp(key, "synthetic") == 0)
		return strv_append(&state->synthetic, value);
	if (strcmp(key, "watched") == 0)
		return strv_append(&state->watched, value);
	if (strcmp(key, "build-id") == 0)
		return strv_append(&state->build_ids, value);
	if (strcmp(key, "base") == 0)
		return add_base(state, value);
	if (strcmp(key, "inode") == 0)
		return parse_u64(value, &state->inode) < 0 ? -EBADMSG : 0;
	if (strcmp(key, "handed-over") == 0)
		return parse_bool(value, &state->handed_over) < 0 ? -EBADMSG : 0;
	if (strcmp(key, "published") == 0)
		return add_published(state, value);
	if (strcmp(key, "file-id") == 0)
		return parse_u64(value, &state->file_id) < 0 ? -EBADMSG : 0;
	if (strcmp(key, "mounted") == 0)
		return parse_bool(value, &state->mounted) < 0 ? -EBADMSG : 0;
	if (strcmp(key, "paused") == 0)
		return parse_bool(value, &state->paused) < 0 ? -EBADMSG : 0;
	if (strcmp(key, "mode-flight") == 0)
		return parse_bool(value, &state->flight) < 0 ? -EBADMSG : 0;
	return 0; /* of a later version */
}

int state_read(int dir_fd, struct state **ret)
{
	_cleanup_(state_freep) struct state *state = calloc(1, sizeof(*state));
	_cleanup_free_ char *text = NULL;
	char *line, *next;
	int r;

	if (!state)
		return -ENOMEM;
	r = io_read_stored_file_at(dir_fd, STATE_FILE, STATE_SIZE_MAX, &text, NULL);
	for (line = text; r >= 0 && *line; line = next) {
		char *end = strchr(line, '\n'), *space;

		if (!end)
			return -EBADMSG;
		if (strncmp(line, TRACE_LINE, strlen(TRACE_LINE)) == 0) {
			r = strv_set(&state->trace_text, end + 1);
			break;
		}
		*end = '\0';
		next = end + 1;
		space = strchr(line, ' ');
		if (!space)
			return -EBADMSG;
		*space = '\0';
		r = parse_line(state, line, space + 1);
	}
	if (r < 0)
		return r;
	if (!*text) /* of before a power cut */
		return -ENOENT;
	if (!state->instance || !state->group || !state->boot_id || !state->trace_text)
		return -EBADMSG;
	*ret = TAKE_PTR(state);
	return 0;
}

int state_format(const struct state *state, char **ret)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	if (state->session)
		(void)fprintf(out, "session %s\n", state->session);
	(void)fprintf(out,
		      "instance %s\ngroup %s\nboot-id %s\ninode %" PRIu64
		      "\nhanded-over %s\nmode-flight %s\npaused %s\n",
		      state->instance, state->group, state->boot_id, state->inode,
		      state->handed_over ? "yes" : "no", state->flight ? "yes" : "no",
		      state->paused ? "yes" : "no");
	STRV_FOREACH (s, state->synthetic)
		(void)fprintf(out, "synthetic %s\n", *s);
	STRV_FOREACH (s, state->build_ids)
		(void)fprintf(out, "build-id %s\n", *s);
	STRV_FOREACH (s, state->watched)
		(void)fprintf(out, "watched %s\n", *s);
	for (unsigned cpu = 0; cpu < state->n_cpus; cpu++) {
		const struct ledger_base *b = &state->base[cpu];

		(void)fprintf(out,
			      "base %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			      "\n",
			      cpu, b->overrun, b->commit_overrun, b->dropped_events, b->read_events,
			      b->in_flight);
	}
	if (state->mounted)
		(void)fputs("mounted yes\n", out);
	if (state->n_published > 0)
		(void)fprintf(out, "file-id %" PRIu64 "\n", state->file_id);
	for (unsigned cpu = 0; cpu < state->n_published; cpu++)
		(void)fprintf(out, "published %" PRIu64 "\n", state->published[cpu]);
	(void)fprintf(out, TRACE_LINE "%s", state->trace_text);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	return 0;
}

int state_write(int dir_fd, const struct state *state)
{
	_cleanup_free_ char *text = NULL;
	int r = state_format(state, &text);

	return r < 0 ? r : io_replace_file_at(dir_fd, STATE_FILE, text, strlen(text), 0640);
}

int state_write_text(int dir_fd, const char *text)
{
	return io_write_file_at(dir_fd, STATE_FILE, text, strlen(text), 0640);
}

int state_remove(int dir_fd)
{
	return unlinkat(dir_fd, STATE_FILE, 0) < 0 && errno != ENOENT ? -errno : 0;
}

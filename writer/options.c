/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>

#include "basic/now.h"
#include "basic/strv.h"
#include "formats/trace-dat.h"
#include "writer/options.h"

void options_done(struct options *o)
{
	free(o->data);
	free(o->cpustat_at);
	free(o->buffer_at);
	*o = (struct options){0};
}

void options_cpustat(char *ret, size_t room, const char *text)
{
	size_t size = MIN(strlen(text), room - 1);

	memcpy(ret, text, size);
	memset(ret + size, ' ', room - size);
	if (size + 2 <= room)
		ret[room - 2] = '\n';
	ret[room - 1] = '\0';
}

void options_cpustat_final(char *ret, size_t room, unsigned cpu, const struct options_count *count)
{
	char text[640];

	(void)snprintf(text, sizeof(text),
		       "CPU: %u\nentries: %" PRIu64 "\noverrun: %" PRIu64
		       "\ncommit overrun: 0\nflyrec subbufs: %" PRIu64 "\nflyrec bytes: %" PRIu64
		       "\nflyrec lost events: %" PRIu64 "\nflyrec losses of unknown size: %" PRIu64
		       "\n",
		       cpu, count->events, count->lost, count->subbufs, count->bytes, count->lost,
		       count->unknown_losses);
	if (count->from_nsec > 0)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
			       TRACE_DAT_FROM "%" PRIu64 "\n", count->from_nsec);
	(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "flyrec final: yes\n");
	options_cpustat(ret, room, text);
}

uint64_t options_new_trace_id(void)
{
	uint64_t id;

	return getrandom(&id, sizeof(id), GRND_NONBLOCK) == sizeof(id) ? id
								       : now_nsec(CLOCK_REALTIME);
}

static void put_option(FILE *out, uint16_t id, const void *data, size_t size)
{
	uint32_t n = (uint32_t)size;

	(void)fwrite(&id, sizeof(id), 1, out);
	(void)fwrite(&n, sizeof(n), 1, out);
	(void)fwrite(data, 1, size, out);
}

static void put_text(FILE *out, uint16_t id, const char *text)
{
	put_option(out, id, text, strlen(text) + 1);
}

static int put_cpustats(FILE *out, struct options *o, const struct options_params *params)
{
	_cleanup_free_ char *text = malloc(MAX(params->cpustat_room, (size_t)1));

	if (!text)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < params->n_cpus && params->cpustat_room > 0; cpu++) {
		char line[32];

		(void)snprintf(line, sizeof(line), "CPU: %u\n", cpu);
		options_cpustat(text, params->cpustat_room, line);
		put_option(out, TRACE_DAT_OPTION_CPUSTAT, text, params->cpustat_room);
		o->cpustat_at[cpu] = (size_t)ftell(out) - params->cpustat_room;
	}
	return 0;
}

/* Its statistics, with the words that trace-cmd puts before those of an instance; where it is */
static int put_buffer(FILE *out, const struct options_buffer *buffer, size_t *ret_at)
{
	_cleanup_free_ char *text = NULL, *place = NULL;
	size_t name_size = strlen(buffer->name) + 1;

	text = strf(TRACE_DAT_BUFFER_STATS "%s\n\n", buffer->name);
	if (!text)
		return -ENOMEM;
	place = calloc(1, sizeof(uint64_t) + name_size);
	if (!place)
		return -ENOMEM;
	put_text(out, TRACE_DAT_OPTION_CPUSTAT, text);
	for (char *const *cpu = buffer->cpustats; cpu && *cpu; cpu++)
		put_text(out, TRACE_DAT_OPTION_CPUSTAT, *cpu);
	memcpy(place + sizeof(uint64_t), buffer->name, name_size);
	put_option(out, TRACE_DAT_OPTION_BUFFER, place, sizeof(uint64_t) + name_size);
	*ret_at = (size_t)ftell(out) - sizeof(uint64_t) - name_size;
	return 0;
}

static void put_uname(FILE *out, const char *given)
{
	struct utsname u;
	char text[sizeof(u) + 4];

	if (given) {
		put_text(out, TRACE_DAT_OPTION_UNAME, given);
	} else if (uname(&u) >= 0) {
		(void)snprintf(text, sizeof(text), "%s %s %s %s", u.sysname, u.nodename, u.release,
			       u.machine);
		put_text(out, TRACE_DAT_OPTION_UNAME, text);
	}
}

char *options_trimmed(const char *words, const char *text)
{
	size_t size = strlen(text);

	while (size > 0 && strchr(" \n", text[size - 1]))
		size--;
	return strf("%s%.*s\n", words, (int)size, text);
}

void options_drop_bytes(char *text)
{
	static const char key[] = "\nflyrec bytes: ";
	char *line = strstr(text, key), *end = line ? strchr(line + 1, '\n') : NULL;

	if (end)
		memmove(line, end, strlen(end) + 1);
}

int options_make(const struct options_params *params, struct options *o)
{
	uint32_t n_cpus = params->n_cpus;
	uint16_t end = TRACE_DAT_OPTION_END;
	char date[32];
	FILE *out;
	int r;

	*o = (struct options){
		.cpustat_at = calloc(n_cpus, sizeof(*o->cpustat_at)),
		.buffer_at = calloc(params->n_buffers + 1, sizeof(*o->buffer_at)),
	};
	out = open_memstream(&o->data, &o->size);
	if (!out || !o->cpustat_at || !o->buffer_at) {
		if (out)
			(void)fclose(out);
		options_done(o);
		return -ENOMEM;
	}
	(void)fwrite(TRACE_DAT_OPTIONS, 1, TRACE_DAT_WORD_SIZE, out);
	if (params->has_date) {
		(void)snprintf(date, sizeof(date), "0x%" PRIx64, (uint64_t)params->date_usec);
		put_text(out, TRACE_DAT_OPTION_DATE, date);
	}
	r = put_cpustats(out, o, params);
	for (size_t i = 0; i < params->n_buffers && r >= 0; i++)
		r = put_buffer(out, &params->buffers[i], &o->buffer_at[i]);
	if (params->probes)
		put_text(out, TRACE_DAT_OPTION_CPUSTAT, params->probes);
	if (params->note)
		put_text(out, TRACE_DAT_OPTION_CPUSTAT, params->note);
	put_text(out, TRACE_DAT_OPTION_TRACECLOCK, params->clock);
	put_uname(out, params->uname);
	put_text(out, TRACE_DAT_OPTION_VERSION, PACKAGE_STRING);
	put_option(out, TRACE_DAT_OPTION_CPUCOUNT, &n_cpus, sizeof(n_cpus));
	put_option(out, TRACE_DAT_OPTION_TRACEID, &params->trace_id, sizeof(params->trace_id));
	(void)fwrite(&end, sizeof(end), 1, out);
	(void)fwrite(TRACE_DAT_FLYRECORD, 1, TRACE_DAT_WORD_SIZE, out);
	if (fclose(out) != 0)
		r = -ENOMEM;
	if (r < 0)
		options_done(o);
	return r;
}

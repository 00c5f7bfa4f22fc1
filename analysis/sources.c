/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "analysis/journal-lines.h"
#include "analysis/sources.h"
#include "basic/strv.h"
#include "decode/event-stream.h"
#include "decode/symbols.h"
#include "formats/own-section.h"

struct file {
	struct file *next;	       /* of those whose time has come */
	size_t source;		       /* which one it is */
	const struct decoder *decoder; /* NULL: not open */
	struct event_filter filter;
	struct event_stream *stream;
	struct spans_file *spans;
	struct tasks *tasks;
	struct who_file who;
	bool told; /* on_open() was called */
	struct count {
		uint64_t events, bytes;
	} * counts;	      /* by id */
	uint64_t first, last; /* times of its first sub-buffer and of its last event */
	uint64_t bytes;
	struct source_clock clock;
	uint64_t peek;	 /* of the event that comes next */
	uint64_t *after; /* by CPU: what others have up to then; NULL: they have nothing of it */
	uint32_t n_after;
	struct own_sheds sheds; /* times as decoder_time() */
};

struct sources {
	struct sources_config config;
	struct sources_facts *facts;
	struct source_set *set, *own_set; /* own_set: made here */
	size_t n;
	struct file *files; /* by their first times */
	size_t n_begun;
	struct file *open;
	struct file *current;	/* whose events come next; NULL: to be chosen */
	uint64_t from;		/* by config.last */
	uint64_t done, bytes;	/* of files that are done with, of all */
	struct own_sheds sheds; /* of files that have begun */
	uint64_t at;		/* spans know of those that ended before */
};

static void close_file(struct sources *s, struct file *file)
{
	file->spans = spans_file_free(file->spans);
	file->tasks = tasks_free(file->tasks);
	who_file_done(&file->who);
	free(file->counts);
	file->counts = NULL;
	file->stream = event_stream_free(file->stream);
	if (file->told && s->config.on_close)
		s->config.on_close(s->config.userdata, file->source);
	file->told = false;
	if (file->decoder)
		source_set_close(s->set, file->source);
	file->decoder = NULL;
}

static const char *name_of(const struct sources *s, const struct file *file)
{
	return source_set_source(s->set, file->source)->name;
}

/* --- when they begin and end */

static int check_clock(const struct sources *s, const struct file *file,
		       const struct decoder *decoder, struct fault *why)
{
	const struct decoder_facts *facts = decoder_facts(decoder);

	if (facts->in_usecs == s->facts->in_usecs && facts->has_date == s->facts->has_date)
		return 0;
	return fault_set(why, -EINVAL, "%s: its clock is not that of %s", name_of(s, file),
			 name_of(s, s->files));
}

/* Symbols take time to read */
static unsigned machine_of(const struct decoder *decoder)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	const struct file_symbols *symbols;
	uint64_t address;
	size_t i = 0;

	while (i < dat->n_systems && strcmp(dat->systems[i], "raw_syscalls") != 0)
		i++;
	if (i == dat->n_systems)
		return MACHINE_UNKNOWN;
	symbols = decoder_symbols(decoder);

	if (!symbols)
		return MACHINE_UNKNOWN; /* no memory: numbers instead of names */
	if (symbols_address(symbols, "__x64_sys_read", &address))
		return MACHINE_X86_64;
	return symbols_address(symbols, "__arm64_sys_read", &address) ? MACHINE_ARM64
								      : MACHINE_UNKNOWN;
}

/* Of equal ones the first given */
static int by_first(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->source < y->source ? -1 : x->source > y->source;
}

/* As a filter would understand it */
static int look_up_time(const struct sources *s, const struct decoder *decoder, struct fault *why)
{
	struct event_filter filter = {.since = *s->config.at};
	int r = event_filter_prepare(&filter, decoder, why);

	s->facts->at = filter.from;
	return r;
}

static int learn_facts(struct sources *s, const struct decoder *decoder, struct fault *why)
{
	s->facts->in_usecs = decoder_facts(decoder)->in_usecs;
	s->facts->has_date = decoder_facts(decoder)->has_date;
	if (s->config.machine)
		s->facts->machine = machine_of(decoder);
	return s->config.at ? look_up_time(s, decoder, why) : 0;
}

static int add_journal(struct sources *s, const struct decoder *decoder, struct fault *why)
{
	struct fault damage;
	int r = 0;

	if (s->config.journal)
		r = journal_lines_add(s->config.journal, decoder_dat(decoder), &damage);
	if (r == -ENOMEM)
		return fault_errno(why, r, "cannot analyze");
	if (r < 0 && s->config.on_fault)
		s->config.on_fault(damage.text);
	s->facts->n_faults += r < 0;
	return 0;
}

int sources_read_sheds(const struct decoder *decoder, struct own_sheds *ret, struct fault *why)
{
	_cleanup_own_sheds_ struct own_sheds sheds = {};
	_cleanup_free_ uint8_t *bytes = NULL;
	struct fault damage;
	size_t size;
	int r = own_section_read(decoder_dat(decoder), OWN_SHED, &bytes, &size, &damage);

	if (r == -ENOENT || r == -EBADMSG)
		return 0;
	if (r >= 0)
		r = own_sheds_take(&sheds, bytes, size, NULL, NULL);
	for (size_t i = 0; i < sheds.n && r >= 0; i++) {
		const struct own_shed *shed = &sheds.list[i];

		r = own_sheds_add(ret, shed->event, decoder_time(decoder, shed->from),
				  shed->to == UINT64_MAX ? shed->to
							 : decoder_time(decoder, shed->to));
	}
	return r < 0 ? fault_errno(why, r, "cannot analyze") : 0;
}

/* Does it share its recording with another one? Then ends are to be known. */
static bool is_part(const struct sources *s, size_t source)
{
	const unsigned recording = source_set_source(s->set, source)->recording;

	for (size_t i = 0; recording && i < source_set_size(s->set); i++)
		if (i != source && source_set_source(s->set, i)->recording == recording)
			return true;
	return false;
}

static int look_at(struct sources *s, struct file *file, struct fault *why)
{
	const bool part = is_part(s, file->source);
	const struct source_look *look;
	const struct decoder *decoder;
	int r = source_set_open(s->set, file->source, &decoder, why);

	if (r < 0)
		return r;
	r = source_set_look(s->set, file->source, part || s->config.last > 0, &look, why);
	if (r >= 0)
		r = add_journal(s, decoder, why);
	if (r >= 0 && s->config.spans)
		r = sources_read_sheds(decoder, &file->sheds, why);
	if (r >= 0 && file == s->files)
		r = learn_facts(s, decoder, why);
	if (r >= 0)
		r = check_clock(s, file, decoder, why);
	source_set_close(s->set, file->source);
	if (r < 0)
		return r;
	file->first = look->first;
	file->last = look->last;
	file->bytes = look->bytes;
	file->clock = look->clock;
	s->bytes += look->bytes;
	if (!part)
		return 0;
	file->after = calloc(2 * (size_t)MAX(look->n_cpus, 1U), sizeof(*file->after));
	if (!file->after)
		return fault_errno(why, -ENOMEM, "%s: cannot read", name_of(s, file));
	file->n_after = look->n_cpus;
	memcpy(file->after + file->n_after, look->ends, look->n_cpus * sizeof(*look->ends));
	return 0;
}

/* What to add to a time by @other for the same moment by @clock: what was recorded by one clock may
 * have different dates */
static uint64_t shift_between(const struct source_clock *other, const struct source_clock *clock)
{
	static const uint8_t unknown[16];

	if (memcmp(clock->boot_id, unknown, sizeof(unknown)) == 0 ||
	    memcmp(clock->boot_id, other->boot_id, sizeof(unknown)) != 0 ||
	    strncmp(clock->name, other->name, sizeof(clock->name)) != 0)
		return 0;
	return (uint64_t)clock->offset - (uint64_t)other->offset;
}

/* Up to when those that begin before it have each CPU; the times of its own ends lie behind these
 */
static void set_after(struct sources *s, size_t at)
{
	struct file *file = &s->files[at];

	for (size_t i = 0; file->after && i < at; i++) {
		const struct file *other = &s->files[i];
		const uint64_t shift = shift_between(&other->clock, &file->clock);

		if (!other->after || source_set_source(s->set, other->source)->recording !=
					     source_set_source(s->set, file->source)->recording)
			continue;
		for (uint32_t cpu = 0; cpu < MIN(file->n_after, other->n_after); cpu++) {
			const uint64_t end = other->after[other->n_after + cpu];

			if (end > 0)
				file->after[cpu] = MAX(file->after[cpu], end + shift);
		}
	}
}

static bool is_of_host(const struct sources *s, size_t source)
{
	return !s->config.host ||
	       text_equal(source_set_source(s->set, source)->host, s->config.host);
}

/* What all have to agree in, and the order of several */
static int look_at_all(struct sources *s, struct fault *why)
{
	uint64_t end = 0;

	for (size_t i = 0; i < source_set_size(s->set); i++)
		if (is_of_host(s, i))
			s->files[s->n++].source = i;
	for (size_t i = 0; i < s->n; i++) {
		int r = look_at(s, &s->files[i], why);

		if (r < 0)
			return r;
		end = MAX(end, s->files[i].last);
	}
	if (s->config.journal)
		journal_lines_sort(s->config.journal);
	if (s->config.last > 0)
		s->from = end - MIN(end, s->config.last);
	s->from = MAX(s->from, s->config.from);
	qsort(s->files, s->n, sizeof(*s->files), by_first);
	for (size_t i = 0; i < s->n; i++)
		set_after(s, i);
	return 0;
}

/* --- their events */

static int add_who(struct sources *s, struct file *file, struct fault *why)
{
	struct fault damage;
	int r = who_add_file(s->config.who, file->decoder, &file->who, &damage, why);

	if (r < 0)
		return r;
	if (damage.text[0] && s->config.on_fault)
		s->config.on_fault(damage.text);
	s->facts->n_faults += damage.text[0] != '\0';
	if (file->who.says)
		return 0;
	s->facts->n_silent++;
	return event_filter_has_places(s->config.filter)
		       ? fault_set(why, -EINVAL, "%s: does not say which units its tasks belong to",
				   name_of(s, file))
		       : 0;
}

static int begin_spans(struct sources *s, struct file *file, struct fault *why)
{
	uint64_t from;
	int r = trace_dat_from(decoder_dat(file->decoder), &from, why);

	if (r < 0)
		return r;
	r = spans_file_new(s->config.spans, file->decoder, &file->spans, why);
	if (r < 0)
		return r;
	if (from > 0)
		spans_file_from(file->spans, decoder_time(file->decoder, from));
	return 0;
}

/* All of it is in files before */
static bool is_known(const struct file *file)
{
	if (!file->after)
		return false;
	for (uint32_t cpu = 0; cpu < file->n_after; cpu++)
		if (file->after[file->n_after + cpu] > file->after[cpu])
			return false;
	return true;
}

/* Nothing is read of what cannot be wanted */
static void narrow(const struct sources *s, struct file *file)
{
	uint64_t least = file->after ? UINT64_MAX : 0;

	file->filter.from = MAX(file->filter.from, s->from);
	if (s->config.to > 0)
		file->filter.to = MIN(file->filter.to, s->config.to);
	for (uint32_t cpu = 0; cpu < file->n_after; cpu++)
		least = MIN(least, file->after[cpu]);
	if (decoder_dat(file->decoder)->n_buffers == 1)
		file->filter.from = MAX(file->filter.from, least);
}

static int begin_file(struct sources *s, struct fault *why)
{
	struct file *file = &s->files[s->n_begun++];
	struct event_stream_config config = {
		.filter = &file->filter,
		.no_tasks = true,
		.memory = s->config.memory,
		.on_fault = s->config.on_fault,
	};
	int r;

	/* of those that another file knew of it may know the end */
	if (own_sheds_add_all(&s->sheds, &file->sheds) < 0)
		return fault_errno(why, -ENOMEM, "cannot analyze");
	if (file->first == UINT64_MAX || is_known(file) ||
	    (s->config.to > 0 && file->first > s->config.to) ||
	    (file->last > 0 && file->last < s->from)) {
		s->done += file->bytes;
		return 0;
	}
	r = source_set_open(s->set, file->source, &file->decoder, why);
	if (r < 0)
		return r;
	file->filter = *s->config.filter;
	file->filter.units = file->filter.containers = NULL;
	r = event_filter_prepare(&file->filter, file->decoder, why);
	narrow(s, file);
	if (r >= 0)
		r = event_stream_new(file->decoder, &config, &file->stream, why);
	if (r >= 0 && s->config.who)
		r = add_who(s, file, why);
	if (r >= 0 && s->config.tasks)
		r = decoder_new_tasks(file->decoder, &file->tasks, why);
	if (r >= 0 && s->config.spans)
		r = begin_spans(s, file, why);
	if (r >= 0 && s->config.on_open) {
		r = s->config.on_open(s->config.userdata, file->source, file->decoder, why);
		file->told = r >= 0;
	}
	if (r < 0)
		return r;
	if (s->config.on_count) {
		file->counts = calloc(SUBBUF_EVENT_IDS, sizeof(*file->counts));
		if (!file->counts)
			return fault_errno(why, -ENOMEM, "cannot analyze");
	}
	file->next = s->open;
	s->open = file;
	return 0;
}

/* Ids differ from file to file, names do not */
static int tell_counts(const struct sources *s, const struct file *file, struct fault *why)
{
	const struct trace_dat *dat = decoder_dat(file->decoder);
	int r = 0;

	for (uint32_t id = 0; id < SUBBUF_EVENT_IDS && r >= 0; id++) {
		const struct count *count = &file->counts[id];
		_cleanup_free_ char *name = NULL;
		int32_t format = decoder_find(file->decoder, id);

		if (count->events == 0)
			continue;
		if (format < 0)
			name = strf("%u", id);
		else
			name = strf("%s:%s", dat->systems[dat->formats[format].system],
				    decoder_name(file->decoder, (size_t)format));
		r = name ? s->config.on_count(s->config.userdata, name, count->events, count->bytes)
			 : -ENOMEM;
	}
	return r < 0 ? fault_errno(why, r, "cannot analyze") : 0;
}

static int end_file(struct sources *s, struct file *file, struct fault *why)
{
	int r = file->spans ? spans_file_learn(s->config.spans, file->spans, why) : 0;

	if (r >= 0 && file->counts)
		r = tell_counts(s, file, why);
	s->facts->n_faults += event_stream_faults(file->stream);
	s->done += file->bytes;
	LIST_REMOVE(s->open, file);
	close_file(s, file);
	return r;
}

/* The open file whose next event comes first; those that have none any more are closed */
static int find_best(struct sources *s, struct file **ret, struct fault *why)
{
	struct file *best = NULL, *next;

	for (struct file *file = s->open; file; file = next) {
		int r = event_peek(file->stream, &file->peek, why);

		next = file->next;
		if (r == 0 || (r > 0 && file->peek > file->filter.to))
			r = end_file(s, file, why);
		else if (r > 0 && (!best || file->peek < best->peek))
			best = file;
		if (r < 0)
			return r;
	}
	*ret = best;
	return 0;
}

/* All events before @now have been taken. Return: when the next of what was shed comes back. */
static uint64_t pass_sheds(struct sources *s, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < s->sheds.n; i++) {
		const struct own_shed *shed = &s->sheds.list[i];

		if (shed->to >= now)
			next = MIN(next, shed->to);
		else if (shed->to >= s->at)
			spans_not_recorded(s->config.spans, shed->event);
	}
	s->at = now;
	return next;
}

/* Of what came back behind the last event, or never did */
static int end_sheds(const struct sources *s)
{
	const struct spans_totals *totals = s->config.spans ? spans_totals(s->config.spans) : NULL;
	int r = 0;

	for (size_t i = 0; i < s->sheds.n && r >= 0; i++) {
		const struct own_shed *shed = &s->sheds.list[i];

		if (shed->from > totals->to || shed->to < totals->from || totals->events == 0)
			continue;
		if (shed->to >= s->at)
			spans_not_recorded(s->config.spans, shed->event);
		if (s->config.sheds)
			r = own_sheds_add(s->config.sheds, shed->event,
					  MAX(shed->from, totals->from), MIN(shed->to, totals->to));
	}
	return r;
}

/* Whose events come next, as long as no other file has any before them: 1, 0 no more */
static int choose_file(struct sources *s, struct fault *why)
{
	for (;;) {
		uint64_t until = UINT64_MAX;
		struct file *best;
		int r = find_best(s, &best, why);

		if (r < 0)
			return r;
		if (s->n_begun < s->n)
			until = s->files[s->n_begun].first;
		if (!best && s->n_begun == s->n)
			return 0;
		if (!best || until <= best->peek) {
			r = begin_file(s, why);
			if (r < 0)
				return r;
			continue;
		}
		until = MIN(until, pass_sheds(s, best->peek));
		for (const struct file *file = s->open; file; file = file->next)
			if (file != best)
				until = MIN(until, file->peek);
		event_stream_until(best->stream, until);
		s->current = best;
		return 1;
	}
}

struct decode_event source_run_event(const struct source_run *run, size_t i)
{
	struct decode_event event = {
		.ts = run->events.events[i].ts,
		.data = run->events.events[i].data,
		.size = run->events.events[i].size,
		.cpu = run->events.cpu,
		.buffer = run->events.buffer,
	};

	decoder_identify(run->decoder, &event);
	return event;
}

static int learn_who(struct who *who, const struct file *file, const struct source_run *run)
{
	for (size_t i = 0; i < run->events.n; i++) {
		struct decode_event event;

		if (!file->who.learns[event_run_id(&run->events, i)])
			continue;
		event = source_run_event(run, i);
		if (who_learn_event(who, &file->who, &event) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool is_wanted(const struct who *who, const struct decode_event *event)
{
	const struct task_who *of = who_find(who, event->pid, event->ts);

	return of && of->place && of->place->wanted;
}

/* @by: events are counted of the units only that it wants; NULL: all */
static void count_run(const struct file *file, const struct source_run *run, const struct who *by)
{
	for (size_t i = 0; i < run->events.n; i++) {
		struct count *count = &file->counts[event_run_id(&run->events, i)];

		if (by) {
			const struct decode_event event = source_run_event(run, i);

			if (!is_wanted(by, &event))
				continue;
		}
		count->events++;
		count->bytes += run->events.events[i].size;
	}
}

/* What no file before had: false if nothing is left */
static bool leave_out(const struct file *file, struct event_run *run)
{
	const uint64_t after = file->after && run->buffer == 0 ? file->after[run->cpu] : 0;

	while (after > 0 && run->n > 0 && run->events->ts <= after) {
		if (--run->n > 0)
			run->offset += (uint64_t)(run->events[1].data - run->events[0].data);
		run->events++;
		run->missed = 0;
	}
	return run->n > 0;
}

static int take(struct sources *s, struct file *file, struct source_run *run)
{
	struct who *who = s->config.who;
	const struct who *by = event_filter_has_places(s->config.filter) ? who : NULL;
	int r = who && (s->config.spans || file->counts) ? learn_who(who, file, run) : 0;

	if (r >= 0 && file->counts)
		count_run(file, run, by);
	if (r >= 0 && s->config.on_events)
		s->config.on_events(s->config.userdata, &run->events);
	if (r >= 0 && file->spans)
		r = spans_run(s->config.spans, file->spans, &run->events);
	return r;
}

int sources_next(struct sources *sources, struct source_run *ret, struct fault *why)
{
	struct sources *s = sources;
	struct file *file;
	int r;

	for (;;) {
		r = s->current ? 1 : choose_file(s, why);
		if (r == 0 && end_sheds(s) < 0)
			return fault_errno(why, -ENOMEM, "cannot analyze");
		if (r <= 0)
			return r;
		file = s->current;
		*ret = (struct source_run){
			.source = file->source,
			.decoder = file->decoder,
			.tasks = file->tasks,
			.who = s->config.who ? &file->who : NULL,
		};
		r = event_stream_run(file->stream, &ret->events, why);
		if (r < 0)
			return r;
		if (r == 0) {
			event_stream_until(file->stream, UINT64_MAX);
			s->current = NULL;
		} else if (leave_out(file, &ret->events)) {
			break;
		}
	}
	r = take(s, file, ret);
	return r < 0 ? fault_errno(why, r, "cannot analyze") : 1;
}

uint64_t sources_bytes(const struct sources *sources)
{
	return sources->bytes;
}

uint64_t sources_done(const struct sources *sources)
{
	uint64_t done = sources->done;

	for (const struct file *file = sources->open; file; file = file->next)
		done += file->bytes - MIN(file->bytes, event_stream_left(file->stream));
	return done;
}

int sources_new(const struct sources_config *config, struct sources_facts *facts,
		struct sources **ret, struct fault *why)
{
	_cleanup_(sources_freep) struct sources *s = calloc(1, sizeof(*s));
	int r = s ? 0 : -ENOMEM;

	*facts = (struct sources_facts){};
	if (r >= 0 && !config->set)
		r = source_set_new(config->sources, config->n, &s->own_set);
	if (r < 0)
		return fault_errno(why, r, "cannot analyze");
	s->config = *config;
	s->facts = facts;
	s->set = config->set ? config->set : s->own_set;
	source_set_fresh(s->set);
	s->files = calloc(MAX(source_set_size(s->set), (size_t)1), sizeof(*s->files));
	if (!s->files)
		return fault_errno(why, -ENOMEM, "cannot analyze");
	r = look_at_all(s, why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

struct sources *sources_free(struct sources *sources)
{
	if (!sources)
		return NULL;
	for (size_t i = 0; sources->files && i < sources->n; i++) {
		close_file(sources, &sources->files[i]);
		free(sources->files[i].after);
		own_sheds_done(&sources->files[i].sheds);
	}
	free(sources->files);
	own_sheds_done(&sources->sheds);
	source_set_free(sources->own_set);
	free(sources);
	return NULL;
}

int sources_run(const struct sources_config *config, struct sources_facts *ret, struct fault *why)
{
	_cleanup_(sources_freep) struct sources *sources = NULL;
	struct source_run run;
	int r = sources_new(config, ret, &sources, why);

	while (r >= 0 && (r = sources_next(sources, &run, why)) > 0)
		;
	return MIN(r, 0);
}

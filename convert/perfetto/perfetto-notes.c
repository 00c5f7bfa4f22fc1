/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "convert/perfetto/perfetto-notes.h"
#include "convert/perfetto/perfetto-proto.h"
#include "convert/perfetto/perfetto-wire.h"
#include "decode/event-filter.h"
#include "formats/own-cause.h"
#include "formats/own-clocks.h"
#include "formats/own-findings.h"
#include "formats/own-hosts.h"
#include "formats/own-journal.h"
#include "formats/own-section.h"

#define UNAME_MAX 4096U

static void tell(struct perfetto_notes *notes, const char *line)
{
	notes->n_faults++;
	notes->on_fault(line);
}

/* A part of flyrec's own section */
static void tell_damaged(struct perfetto_notes *notes, const char *what)
{
	char line[512];

	(void)snprintf(line, sizeof(line), "%.300s: %s is damaged", notes->export->dat->path, what);
	tell(notes, line);
}

static void end_packet(struct text *out, size_t packet)
{
	wire_number(out, PACKET_SEQUENCE, PERFETTO_SEQUENCE);
	wire_end(out, packet);
}

/* --- tracks */

void perfetto_track(struct text *out, uint64_t uuid, uint64_t parent, const char *name,
		    bool counter)
{
	size_t packet = wire_begin(out, PERFETTO_PACKET);
	size_t track = wire_begin(out, PACKET_TRACK_DESCRIPTOR);

	wire_number(out, TRACK_UUID, uuid);
	wire_string(out, TRACK_NAME, name);
	if (parent)
		wire_number(out, TRACK_PARENT, parent);
	if (counter) {
		size_t begin = wire_begin(out, TRACK_COUNTER);

		wire_number(out, COUNTER_UNIT, PERFETTO_UNIT_COUNT);
		wire_end(out, begin);
	}
	wire_end(out, track);
	end_packet(out, packet);
}

/* Return: of the event, for end_event() */
static size_t begin_event(struct text *out, uint64_t uuid, uint64_t boot, unsigned type,
			  size_t *ret_packet)
{
	size_t event;

	*ret_packet = wire_begin(out, PERFETTO_PACKET);
	wire_number(out, PACKET_TIMESTAMP, boot);
	event = wire_begin(out, PACKET_TRACK_EVENT);
	wire_number(out, TRACK_EVENT_TYPE, type);
	wire_number(out, TRACK_EVENT_UUID, uuid);
	return event;
}

static void end_event(struct text *out, size_t event, size_t packet)
{
	wire_end(out, event);
	end_packet(out, packet);
}

void perfetto_counter(struct text *out, uint64_t uuid, uint64_t boot, uint64_t value)
{
	size_t packet, event = begin_event(out, uuid, boot, TRACK_EVENT_IS_COUNTER, &packet);

	wire_number(out, TRACK_EVENT_COUNTER, value);
	end_event(out, event, packet);
}

static void annotate(struct text *out, const char *name, const char *text)
{
	size_t begin;

	if (!*text)
		return;
	begin = wire_begin(out, TRACK_EVENT_ANNOTATION);
	wire_string(out, ANNOTATION_NAME, name);
	wire_string(out, ANNOTATION_STRING, text);
	wire_end(out, begin);
}

static void annotate_number(struct text *out, const char *name, uint64_t value)
{
	size_t begin = wire_begin(out, TRACK_EVENT_ANNOTATION);

	wire_string(out, ANNOTATION_NAME, name);
	wire_number(out, ANNOTATION_UINT, value);
	wire_end(out, begin);
}

/* --- clocks */

static void put_clock(struct text *out, enum perfetto_clock id, uint64_t nsec)
{
	size_t clock = wire_begin(out, CLOCKS_CLOCK);

	wire_number(out, CLOCK_ID, id);
	wire_number(out, CLOCK_TIMESTAMP, nsec);
	wire_end(out, clock);
}

/* The first packet of all */
static void put_clocks(struct text *out, const struct own_clock *reading, uint64_t boot, bool mono,
		       bool first)
{
	size_t packet = wire_begin(out, PERFETTO_PACKET);
	size_t clocks = wire_begin(out, PACKET_CLOCK_SNAPSHOT);

	put_clock(out, CLOCK_IS_BOOTTIME, boot);
	if (mono)
		put_clock(out, CLOCK_IS_MONOTONIC, reading->trace);
	if (reading->mono_raw)
		put_clock(out, CLOCK_IS_MONOTONIC_RAW, reading->mono_raw);
	if (reading->realtime)
		put_clock(out, CLOCK_IS_REALTIME, reading->realtime);
	wire_number(out, CLOCKS_PRIMARY, CLOCK_IS_BOOTTIME);
	wire_end(out, clocks);
	if (first) {
		wire_number(out, PACKET_SEQUENCE_FLAGS, PERFETTO_STATE_CLEARED);
		wire_number(out, PACKET_FIRST_ON_SEQUENCE, true);
	}
	end_packet(out, packet);
}

/* A file without readings: its clock passes for the time since boot */
static void put_no_readings(struct perfetto_notes *notes, struct text *out)
{
	const struct decoder_facts *facts = decoder_facts(notes->export->decoder);
	const struct own_clock reading = {
		.realtime = facts->has_date && facts->in_usecs
				    ? NSEC_PER_SEC + (uint64_t)facts->offset
				    : 0,
	};

	notes->to_boot = -(uint64_t)facts->offset;
	put_clocks(out, &reading, NSEC_PER_SEC, false, true);
}

/*
 * Events have one distance to the time since boot: clocks drift from each other, and order and
 * durations are what a trace is for. So have all readings, which also tell when the wall clock was
 * set.
 */
static int put_readings(struct perfetto_notes *notes, struct text *out, struct fault *why)
{
	const struct decoder *decoder = notes->export->decoder;
	const struct trace_dat *dat = notes->export->dat;
	_cleanup_free_ struct own_clocks *own = malloc(sizeof(*own));
	_cleanup_free_ uint8_t *bytes = NULL;
	const struct own_clock *list[OWN_CLOCKS_MAX];
	bool any = false;
	size_t size, n;
	int r;

	if (!own)
		return fault_errno(why, -ENOMEM, "%s: cannot export", dat->path);
	r = own_section_read(dat, OWN_CLOCKS, &bytes, &size, why);
	if (r < 0 && r != -ENOENT && r != -EBADMSG)
		return r;
	if (r == -EBADMSG)
		tell(notes, why->text);
	if (r < 0 || !decoder_facts(decoder)->in_usecs ||
	    own_clocks_take(bytes, size, dat->big_endian, own, NULL, NULL) < 0) {
		put_no_readings(notes, out);
		return 0;
	}
	n = own_clocks_list(own, list);
	for (size_t i = 0; i < n; i++) {
		uint64_t shown = decoder_time(decoder, list[i]->trace);

		if (list[i]->flags & OWN_CLOCK_NO_TRACE)
			continue;
		if (!any)
			notes->to_boot = list[i]->boot - shown;
		put_clocks(out, list[i], shown + notes->to_boot, strcmp(own->clock, "mono") == 0,
			   !any);
		any = true;
	}
	if (!any)
		put_no_readings(notes, out);
	return 0;
}

/* Names and symbols from here on are another host's, times are the first one's */
static void put_next_part(struct perfetto_notes *notes, struct text *out)
{
	const struct perfetto_kept *kept = notes->export->part->kept;
	size_t packet = wire_begin(out, PERFETTO_PACKET);

	notes->to_boot = kept->to_boot;
	wire_number(out, PACKET_SEQUENCE_FLAGS, PERFETTO_STATE_CLEARED);
	end_packet(out, packet);
}

/* --- the machine, whose version tells what the states of tasks mean */

static int put_system(const struct perfetto_notes *notes, struct text *out, struct fault *why)
{
	const struct trace_dat *dat = notes->export->dat;
	_cleanup_free_ char *text = NULL;
	const char *words[4] = {};
	size_t packet, system, utsname;
	char *left;
	int r = trace_dat_load_option(dat, TRACE_DAT_OPTION_UNAME, UNAME_MAX, &text, why);

	if (r < 0)
		return r;
	left = text;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = strsep(&left, " ");
	packet = wire_begin(out, PERFETTO_PACKET);
	system = wire_begin(out, PACKET_SYSTEM_INFO);
	if (words[3]) {
		utsname = wire_begin(out, SYSTEM_UTSNAME);
		wire_string(out, UTSNAME_SYSNAME, words[0]);
		wire_string(out, UTSNAME_RELEASE, words[2]);
		wire_string(out, UTSNAME_MACHINE, words[3]);
		wire_end(out, utsname);
	}
	wire_number(out, SYSTEM_CPUS, dat->n_cpus);
	wire_end(out, system);
	end_packet(out, packet);
	return 0;
}

/* --- losses in all */

static const struct {
	const char *line; /* of a CPUSTAT text */
	enum perfetto_stats field;
} counts[] = {
	{"entries", STATS_CPU_ENTRIES},
	{"overrun", STATS_CPU_OVERRUN},
	{"commit overrun", STATS_CPU_COMMIT_OVERRUN},
	{"bytes", STATS_CPU_BYTES},
	{"dropped events", STATS_CPU_DROPPED},
	{"read events", STATS_CPU_READ},
};

/* The sums over all ring buffers of a CPU, which Perfetto does not tell apart */
static int sum_stats(const struct trace_dat *dat, uint64_t (*sums)[ARRAY_SIZE(counts)],
		     struct fault *why)
{
	size_t next = 0;

	for (;;) {
		_cleanup_free_ char *text = NULL;
		uint64_t cpu, value;
		int r = trace_dat_next_note(dat, "CPU", &next, &text, why);

		if (r <= 0)
			return r;
		if (sscanf(text, ": %" SCNu64, &cpu) != 1 || cpu >= dat->n_cpus)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
			if (trace_dat_note_number(text, counts[i].line, &value))
				sums[cpu][i] += value;
	}
}

static void put_stats(const struct perfetto_notes *notes,
		      const uint64_t (*sums)[ARRAY_SIZE(counts)], unsigned phase, struct text *out)
{
	const struct trace_dat *dat = notes->export->dat;
	size_t packet = wire_begin(out, PERFETTO_PACKET);
	size_t stats = wire_begin(out, PACKET_FTRACE_STATS);

	wire_number(out, STATS_PHASE, phase);
	for (uint32_t cpu = 0; cpu < dat->n_cpus; cpu++) {
		size_t begin = wire_begin(out, STATS_CPU);

		wire_number(out, STATS_CPU_CPU, cpu + notes->cpus);
		for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
			wire_number(out, counts[i].field, phase == STATS_END ? sums[cpu][i] : 0);
		wire_end(out, begin);
	}
	if (phase == STATS_START)
		wire_number(out, STATS_PRESERVED, true);
	wire_end(out, stats);
	end_packet(out, packet);
}

/* Of a snapshot: some CPUs begin earlier, and what comes before has no picture of all */
static int put_from(const struct perfetto_notes *notes, struct text *out, struct fault *why)
{
	const struct trace_dat *dat = notes->export->dat;
	uint64_t from;
	int r = trace_dat_from(dat, &from, why);

	from = decoder_time(notes->export->decoder, from) + notes->to_boot;
	for (uint32_t cpu = 0; r > 0 && cpu < dat->n_cpus; cpu++) {
		size_t packet = wire_begin(out, PERFETTO_PACKET);
		size_t bundle = wire_begin(out, PACKET_FTRACE_EVENTS);

		wire_number(out, BUNDLE_CPU, cpu + notes->cpus);
		wire_number(out, BUNDLE_PREVIOUS_END, from);
		wire_end(out, bundle);
		end_packet(out, packet);
	}
	return MIN(r, 0);
}

static int put_losses(const struct perfetto_notes *notes, struct text *out, struct fault *why)
{
	const struct trace_dat *dat = notes->export->dat;
	_cleanup_free_ uint64_t(*sums)[ARRAY_SIZE(counts)] =
		calloc(MAX(dat->n_cpus, 1U), sizeof(*sums));
	int r;

	if (!sums)
		return fault_errno(why, -ENOMEM, "%s: cannot export", dat->path);
	r = sum_stats(dat, sums, why);
	if (r < 0)
		return r;
	put_stats(notes, sums, STATS_START, out);
	put_stats(notes, sums, STATS_END, out);
	return put_from(notes, out, why);
}

/* --- flyrec's own section, on tracks of its own */

static bool is_wanted(const struct perfetto_notes *notes, uint64_t from, uint64_t to)
{
	return to >= notes->export->filter->from && from <= notes->export->filter->to;
}

static void put_finding(const struct perfetto_notes *notes, const struct own_finding *finding,
			size_t i, struct text *out)
{
	const bool usecs = decoder_facts(notes->export->decoder)->in_usecs;
	const uint64_t from = usecs ? finding->start_usec * NSEC_PER_USEC : finding->start_usec;
	const uint64_t to = from + finding->duration_nsec,
		       uuid = notes->tracks + PERFETTO_TRACK + 1 + i;
	const bool instant = from == to;
	size_t packet, event;

	if (!is_wanted(notes, from, to))
		return;
	/* One each: slices of one track would have to be in each other */
	perfetto_track(out, uuid, notes->tracks + PERFETTO_TRACK, "findings", false);
	event = begin_event(out, uuid, from + notes->to_boot,
			    instant ? TRACK_EVENT_INSTANT : TRACK_EVENT_SLICE_BEGIN, &packet);
	wire_string(out, TRACK_EVENT_CATEGORY, finding->rule);
	wire_string(out, TRACK_EVENT_NAME, finding->text);
	annotate(out, "task", finding->task);
	if (finding->pid)
		annotate_number(out, "pid", finding->pid);
	annotate(out, "unit", finding->unit);
	annotate_number(out, "score", finding->score);
	end_event(out, event, packet);
	if (instant)
		return;
	event = begin_event(out, uuid, to + notes->to_boot, TRACK_EVENT_SLICE_END, &packet);
	end_event(out, event, packet);
}

/* Of export_findings() */
struct findings_to {
	const struct perfetto_notes *notes;
	struct text *out;
	size_t n;
};

static int take_finding(void *userdata, const struct own_finding *finding)
{
	struct findings_to *to = userdata;

	put_finding(to->notes, finding, to->n++, to->out);
	return 0;
}

static void put_causes(struct perfetto_notes *notes, uint8_t *bytes, size_t size, struct text *out)
{
	const struct decoder_facts *facts = decoder_facts(notes->export->decoder);
	struct own_cause cause;
	size_t at = 0, packet, event;
	int r;

	while ((r = own_cause_take(bytes, size, notes->export->dat->big_endian, &at, &cause)) !=
	       0) {
		uint64_t ts = cause.usec * NSEC_PER_USEC;

		if (r < 0)
			tell_damaged(notes, "what the snapshot was taken for");
		if (r < 0 || !facts->has_date || !facts->in_usecs || !is_wanted(notes, ts, ts))
			continue;
		event = begin_event(out, notes->tracks + PERFETTO_TRACK, ts + notes->to_boot,
				    TRACK_EVENT_INSTANT, &packet);
		wire_string(out, TRACK_EVENT_CATEGORY, "cause");
		wire_string(out, TRACK_EVENT_NAME, cause.reason);
		annotate(out, "text", cause.text);
		end_event(out, event, packet);
	}
}

static int put_line(const struct perfetto_notes *notes, const struct own_journal_line *line,
		    struct text *out)
{
	_cleanup_free_ char *pid = line->pid > 0 ? strf("[%" PRIu32 "]", line->pid) : strdup("");
	_cleanup_free_ char *name = pid ? strf("%s%s: %s%s", line->identifier, pid, line->message,
					       line->cut ? "..." : "")
					: NULL;
	const uint64_t ts = line->usec * NSEC_PER_USEC;
	size_t packet, event;

	if (!name)
		return -ENOMEM;
	event = begin_event(out, notes->tracks + PERFETTO_JOURNAL, ts + notes->to_boot,
			    TRACK_EVENT_INSTANT, &packet);
	wire_string(out, TRACK_EVENT_CATEGORY, "journal");
	wire_string(out, TRACK_EVENT_NAME, name);
	annotate_number(out, "priority", line->priority);
	annotate(out, "unit", line->unit);
	end_event(out, event, packet);
	return 0;
}

static void put_journal(struct perfetto_notes *notes, uint8_t *bytes, size_t size, struct text *out)
{
	const struct decoder_facts *facts = decoder_facts(notes->export->decoder);
	struct own_journal_head head;
	struct own_journal_line line;
	bool any = false;
	size_t at = 0;
	int r = own_journal_take_head((char *)bytes, size, &at, &head);

	while (r > 0 && (r = own_journal_take((char *)bytes, size, &at, &line)) > 0) {
		const uint64_t ts = line.usec * NSEC_PER_USEC;

		if (!facts->has_date || !facts->in_usecs || !is_wanted(notes, ts, ts))
			continue;
		if (!any)
			perfetto_track(out, notes->tracks + PERFETTO_JOURNAL,
				       notes->tracks + PERFETTO_TRACK, "journal", false);
		any = true;
		if (put_line(notes, &line, out) < 0) {
			out->no_memory = true;
			return;
		}
	}
	if (r < 0)
		tell_damaged(notes, "the journal");
}

/* Each kind of the section that is shown, in a row, beside findings */
static const struct {
	enum own_kind kind;
	void (*put)(struct perfetto_notes *notes, uint8_t *bytes, size_t size, struct text *out);
} own_kinds[] = {
	{OWN_CAUSE, put_causes},
	{OWN_JOURNAL, put_journal},
};

/* Of one of several hosts with its name, and how far its times may be wrong beside those of others
 */
static void put_track(const struct perfetto_notes *notes, struct text *out)
{
	const struct export_part *part = notes->export->part;
	char name[512] = "flyrec";

	if (part && part->error == OWN_HOST_ERROR_UNKNOWN)
		(void)snprintf(name, sizeof(name),
			       "flyrec %.255s, its clock may be wrong by any time", part->host);
	else if (part)
		(void)snprintf(name, sizeof(name),
			       "flyrec %.255s, its clock may be wrong by %" PRIu64 " ns",
			       part->host, part->error);
	perfetto_track(out, notes->tracks + PERFETTO_TRACK, 0, name, false);
}

static int put_own(struct perfetto_notes *notes, struct text *out, struct fault *why)
{
	struct findings_to to = {.notes = notes, .out = out};

	put_track(notes, out);
	for (size_t i = 0; i < ARRAY_SIZE(own_kinds); i++) {
		_cleanup_free_ uint8_t *bytes = NULL;
		size_t size = 0;
		int r = own_section_read(notes->export->dat, own_kinds[i].kind, &bytes, &size, why);

		if (r == -EBADMSG)
			tell(notes, why->text);
		else if (r >= 0)
			own_kinds[i].put(notes, bytes, size, out);
		else if (r != -ENOENT)
			return r;
	}
	return export_findings(notes->export, take_finding, &to, notes->on_fault, &notes->n_faults,
			       why);
}

int perfetto_notes_begin(struct perfetto_notes *notes, struct text *out, struct fault *why)
{
	struct export_part *part = notes->export->part;
	int r = 0;

	if (part && part->kept) {
		put_next_part(notes, out);
	} else {
		r = put_readings(notes, out, why);
		if (r >= 0)
			r = put_system(notes, out, why);
	}
	if (r >= 0)
		r = put_losses(notes, out, why);
	if (r >= 0)
		r = put_own(notes, out, why);
	return r;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "decode/event-batches.h"
#include "decode/print-all.h"

#define BATCH_EVENTS 2048U

struct run {
	const struct print_all *job;
	struct event_days days;
	struct printer *ordered; /* of the worker whose turn it is */
};

/* Of a worker */
struct maker {
	struct run *run;
	struct printer *printer;
};

static int begin(void *userdata, struct text *out, struct fault *why)
{
	const struct run *run = userdata;

	(void)why;
	if (run->job->printer.form == PRINTER_TEXT)
		text_printf(out, "cpus=%u\n", decoder_dat(run->job->decoder)->n_cpus);
	return 0;
}

static int on_event(void *userdata, struct decode_event *event, struct text *out)
{
	struct run *run = userdata;

	(void)out;
	event->new_day = event_days_changed(&run->days, event->ts);
	return 0;
}

static int maker_new(void *userdata, void **ret)
{
	struct run *run = userdata;
	struct maker *maker = calloc(1, sizeof(*maker));

	if (!maker)
		return -ENOMEM;
	maker->run = run;
	*ret = maker;
	return printer_new(run->job->decoder, &run->job->printer, &maker->printer);
}

static void maker_free(void *userdata)
{
	struct maker *maker = userdata;

	if (maker)
		printer_free(maker->printer);
	free(maker);
}

static int make(void *userdata, const struct decode_event *events, size_t n,
		const struct event_turn *turn, struct text *out)
{
	struct maker *maker = userdata;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		r = printer_put(maker->printer, &events[i], false, out);
		if (r == PRINTER_E_ORDER) {
			event_turn_wait(turn);
			r = printer_put(maker->run->ordered, &events[i], true, out);
		}
	}
	return r;
}

int print_all(struct print_all *job, struct fault *why)
{
	const bool text = job->printer.form == PRINTER_TEXT;
	struct run run = {.job = job};
	struct event_batches batches = {
		.decoder = job->decoder,
		.stream = {.filter = job->filter, .pair_leaves = text, .on_fault = job->on_fault},
		.batch = BATCH_EVENTS,
		.workers = job->workers,
		.fd = job->fd,
		.userdata = &run,
		.begin = begin,
		.on_event = on_event,
		.maker_new = maker_new,
		.maker_free = maker_free,
		.make = make,
	};
	int r = 0;

	event_days_init(&run.days, text ? job->printer.time.mode : EVENT_TIME_EPOCH, false);
	if (!text || event_filter_has_places(job->filter))
		r = who_new(job->filter->units, job->filter->containers, true, &batches.stream.who);
	if (r >= 0)
		r = printer_new(job->decoder, &job->printer, &run.ordered);
	if (r < 0)
		(void)fault_errno(why, r, "%s: cannot export", decoder_dat(job->decoder)->path);
	if (r >= 0)
		r = event_batches_run(&batches, why);
	job->n_faults += batches.n_faults;
	printer_free(run.ordered);
	who_free(batches.stream.who);
	return r;
}

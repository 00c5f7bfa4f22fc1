/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <event-parse.h>
#include <inttypes.h>
#include <string.h>

#include "basic/log.h"
#include "convert/convert.h"
#include "convert/qemu4v/qemu4v-event.h"
#include "decode/filter.h"
#include "decode/format-guard.h"
#include "decode/region.h"

#define BLOCK_SIZE   (256 * KIB)
#define BLOCKS_TOTAL (64 * MIB) /* for all CPUs */
#define OUT_SIZE     (256 * KIB)
#define FORMAT_MAX   (64 * KIB)
#define MMIO_READ    1 /* enum mm_io_opcode of include/linux/mmiotrace.h */
#define MMIO_WRITE   2

/* What an event id means here: NONE, MMIO, or FIRST_KIND + enum qemu4v_kind */
enum { NONE, MMIO, FIRST_KIND };

/* Where a field of a kernel's event is */
struct place {
	unsigned offset, size;
};

/* One CPU of one ring buffer, at its next event */
struct source {
	struct export_region region;
	struct merge_block *block;
	size_t next_subbuf; /* in the block */
	struct subbuf_iter iter;
	bool inside; /* a sub-buffer */
	struct decode_event event;
	uint64_t key; /* line of the event; of a kernel's, its time */
};

struct job {
	const struct export *export;
	int fd;
	uint8_t *meaning; /* [SUBBUF_EVENT_IDS] */
	struct place phys, value, opcode, width;
	struct source *sources;
	size_t n_sources;
	struct source **heap; /* those that have an event, the next line on top */
	size_t n_heap;
	char *out;
	size_t used, room;
	bool any;      /* a line was written */
	bool imported; /* the file has the events of an import */
	size_t n_faults;
};

static void job_done(struct job *job)
{
	for (size_t i = 0; i < job->n_sources; i++)
		merge_block_unref(job->sources[i].block);
	free(job->sources);
	free(job->heap);
	free(job->meaning);
	free(job->out);
}

/* --- formats */

/* Where the number in the line "ID: N" begins */
static const char *id_of(const char *format)
{
	const char *id = strstr(format, "\nID: ");

	return id ? id + strlen("\nID: ") : format;
}

/* By all of the format but its id, which was another one in earlier versions */
static enum qemu4v_kind kind_of(const char *text)
{
	const char *id = id_of(text);

	for (unsigned k = 0; k < _QEMU4V_KIND_MAX; k++) {
		const char *ours = qemu4v_event_formats[k], *our_id = id_of(ours);

		if (id - text == our_id - ours && memcmp(text, ours, (size_t)(id - text)) == 0 &&
		    strcmp(id + strspn(id, "0123456789"), our_id + strspn(our_id, "0123456789")) ==
			    0)
			return k;
	}
	return _QEMU4V_KIND_MAX;
}

static int find_place(struct tep_event *event, const char *name, struct place *ret)
{
	struct tep_format_field *field = tep_find_field(event, name);

	if (!field || (field->size != 1 && field->size != 4 && field->size != 8))
		return -EBADMSG;
	*ret = (struct place){(unsigned)field->offset, (unsigned)field->size};
	return 0;
}

/* The layout of mmiotrace_rw depends on the kernel */
static int learn_mmio(struct job *job, char *text, uint32_t *ret_id)
{
	const struct trace_dat *dat = job->export->dat;
	struct tep_handle *tep = tep_alloc();
	struct tep_event *event = NULL;
	int r = 0;

	if (!tep)
		return -ENOMEM;
	tep_set_file_bigendian(tep, dat->big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(tep, (int)dat->long_size);
	tep_set_loglevel(TEP_LOG_NONE);
	format_guard_fields(text);
	if (tep_parse_format(tep, &event, text, strlen(text), "ftrace") != 0 || !event)
		r = -EBADMSG;
	if (r >= 0)
		r = find_place(event, "phys", &job->phys);
	if (r >= 0)
		r = find_place(event, "value", &job->value);
	if (r >= 0)
		r = find_place(event, "opcode", &job->opcode);
	if (r >= 0)
		r = find_place(event, "width", &job->width);
	if (r >= 0 && (unsigned)event->id >= SUBBUF_EVENT_IDS)
		r = -EBADMSG;
	if (r >= 0)
		*ret_id = (uint32_t)event->id;
	tep_free(tep);
	return r;
}

static int learn_format(struct job *job, size_t i, struct fault *why)
{
	const struct trace_dat *dat = job->export->dat;
	const char *system = dat->systems[dat->formats[i].system];
	_cleanup_free_ char *text = NULL;
	enum qemu4v_kind kind;
	uint32_t id;
	int r;

	if (strcmp(system, "ftrace") == 0 &&
	    strcmp(decoder_name(job->export->decoder, i), "mmiotrace_rw") == 0) {
		r = trace_dat_load(dat, &dat->formats[i].text, FORMAT_MAX, &text, why);
		if (r < 0)
			return r;
		r = learn_mmio(job, text, &id);
		if (r < 0)
			return fault_errno(why, r, "%s: ftrace:mmiotrace_rw: format not understood",
					   dat->path);
		job->meaning[id] = MMIO;
	}
	if (strcmp(system, QEMU4V_SYSTEM) != 0)
		return 0;
	r = trace_dat_load(dat, &dat->formats[i].text, FORMAT_MAX, &text, why);
	if (r < 0)
		return r;
	kind = kind_of(text);
	if (kind == _QEMU4V_KIND_MAX || dat->big_endian != (__BYTE_ORDER == __BIG_ENDIAN))
		return fault_set(why, -EOPNOTSUPP,
				 "%s: " QEMU4V_SYSTEM ":%s was made by another version of flyrec, "
				 "or on a machine of another byte order",
				 dat->path, decoder_name(job->export->decoder, i));
	id = (uint32_t)strtoul(id_of(text), NULL, 10);
	if (id >= SUBBUF_EVENT_IDS)
		return 0;
	job->meaning[id] = (uint8_t)(FIRST_KIND + kind);
	job->imported |= kind == QEMU4V_INSN;
	return 0;
}

static int learn_formats(struct job *job, struct fault *why)
{
	const struct trace_dat *dat = job->export->dat;

	job->meaning = calloc(SUBBUF_EVENT_IDS, 1);
	if (!job->meaning)
		return fault_errno(why, -ENOMEM, "%s: cannot export", dat->path);
	for (size_t i = 0; i < dat->n_formats; i++) {
		int r = learn_format(job, i, why);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Any kernel's file has the format of mmiotrace: only an import may be empty */
static int refuse_nothing(const struct job *job, struct fault *why)
{
	if (job->any || job->imported)
		return 0;
	return fault_set(why, -ENODATA,
			 "%s: has no events of qemu4v, nor of mmiotrace: nothing to export",
			 job->export->dat->path);
}

/* --- events in order */

static bool is_before(const struct source *a, const struct source *b)
{
	return a->key != b->key ? a->key < b->key : a < b;
}

/* The source at @i may be later than those below it now */
static void sink(struct job *job, size_t i)
{
	for (;;) {
		size_t least = i;

		for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < job->n_heap; k++)
			if (is_before(job->heap[k], job->heap[least]))
				least = k;
		if (least == i)
			return;
		SWAP(job->heap[i], job->heap[least]);
		i = least;
	}
}

static void note_fault(struct job *job, uint64_t offset, const struct subbuf_fault *fault)
{
	char text[128];

	job->n_faults++;
	log_error("%s: offset 0x%" PRIx64 ": %s: the rest of this sub-buffer is left out",
		  job->export->dat->path, offset + fault->offset,
		  subbuf_fault_text(fault, text, sizeof(text)));
}

/* Begin the next sub-buffer. 1, 0 at the end of the region, or negative. */
static int next_subbuf(struct job *job, struct source *s, struct fault *why)
{
	const struct trace_dat *dat = job->export->dat;
	struct subbuf_fault fault;
	int r;

	for (;;) {
		uint64_t offset;

		if (!s->block || s->next_subbuf + dat->page_size > s->block->size) {
			merge_block_unref(s->block);
			s->block = NULL;
			s->next_subbuf = 0;
			r = export_region_read(&s->region, &s->block, why);
			if (r <= 0)
				return r;
		}
		offset = s->block->offset + s->next_subbuf;
		r = subbuf_iter_init(&dat->layout, s->block->bytes + s->next_subbuf, &s->iter,
				     &fault);
		s->next_subbuf += dat->page_size;
		if (r == 0)
			return 1;
		if (r < 0)
			note_fault(job, offset, &fault);
	}
}

/* Is this event wanted? Sets its key. */
static bool take_event(struct job *job, struct source *s, const struct subbuf_event *event)
{
	const struct export *export = job->export;
	uint8_t meaning;

	s->event.ts = decoder_time(export->decoder, event->ts);
	s->event.data = event->data;
	s->event.size = event->size;
	meaning = job->meaning[trace_dat_u16(export->dat, event->data)];
	if (meaning == NONE || !export_filter_wants(export->filter, export->decoder, &s->event))
		return false;
	s->key = meaning == MMIO ? s->event.ts : qemu4v_event_line(event->data, event->size);
	return true;
}

/* 1, 0 at the end, or negative */
static int next_event(struct job *job, struct source *s, struct fault *why)
{
	struct subbuf_event event;
	struct subbuf_fault fault;
	int r;

	for (;;) {
		if (!s->inside) {
			r = next_subbuf(job, s, why);
			if (r <= 0)
				return r;
			s->inside = true;
		}
		r = subbuf_iter_next(&s->iter, &event, &fault);
		if (r > 0 && take_event(job, s, &event))
			return 1;
		if (r < 0)
			note_fault(job,
				   s->block->offset + s->next_subbuf - job->export->dat->page_size,
				   &fault);
		if (r <= 0)
			s->inside = false;
	}
}

static int add_source(struct job *job, uint32_t buffer, uint32_t cpu, size_t block,
		      struct fault *why)
{
	const struct export *export = job->export;
	const struct trace_dat_region *region = &export->dat->buffers[buffer].regions[cpu];
	struct source *s = &job->sources[job->n_sources];
	struct fault broken;
	int r = 0;

	if ((export->filter->has_cpus && !cpu_list_has(&export->filter->cpus, cpu)) ||
	    region->size == 0)
		return 0;
	if (trace_dat_check_region(export->dat, &export->dat->buffers[buffer], cpu, &broken) < 0) {
		job->n_faults++;
		log_error("%s", broken.text);
		return 0;
	}
	job->n_sources++;
	export_region_init(&s->region, export->dat, region, block);
	if (export->filter->from > 0)
		r = export_region_seek(&s->region, export->decoder, export->filter->from, why);
	s->event.cpu = cpu;
	s->event.buffer = buffer;
	if (r >= 0)
		r = next_event(job, s, why);
	if (r > 0)
		job->heap[job->n_heap++] = s;
	return r;
}

static int add_sources(struct job *job, struct fault *why)
{
	const struct trace_dat *dat = job->export->dat;
	size_t most = MAX(dat->n_buffers * dat->n_cpus, (size_t)1);
	size_t block = MAX(MIN(BLOCK_SIZE, BLOCKS_TOTAL / most), (uint64_t)dat->page_size);
	int r = 0;

	job->sources = calloc(most, sizeof(*job->sources));
	job->heap = calloc(most, sizeof(struct source *));
	if (!job->sources || !job->heap)
		return fault_errno(why, -ENOMEM, "%s: cannot export", dat->path);
	for (uint32_t b = 0; b < dat->n_buffers && r >= 0; b++)
		for (uint32_t cpu = 0; cpu < dat->n_cpus && r >= 0; cpu++)
			r = add_source(job, b, cpu, block, why);
	for (size_t i = job->n_heap / 2; i-- > 0;)
		sink(job, i);
	return r;
}

/* --- lines */

static int flush(struct job *job, struct fault *why)
{
	int r = out_file_write(job->fd, job->out, job->used, why);

	job->used = 0;
	return r;
}

static uint64_t get(const struct job *job, const struct decode_event *event, struct place place)
{
	const struct trace_dat *dat = job->export->dat;

	if (place.offset + place.size > event->size)
		return 0;
	if (place.size == 8)
		return trace_dat_u64(dat, event->data + place.offset);
	return place.size == 4 ? trace_dat_u32(dat, event->data + place.offset)
			       : event->data[place.offset];
}

/* A memory access by its physical address. false: probing, or nothing known */
static bool read_mmio(const struct job *job, const struct decode_event *event,
		      struct qemu4v_record *ret)
{
	uint64_t opcode = get(job, event, job->opcode), width = get(job, event, job->width);

	if ((opcode != MMIO_READ && opcode != MMIO_WRITE) || width == 0 || width > 8)
		return false;
	*ret = (struct qemu4v_record){
		.kind = QEMU4V_MEM,
		.time = event->ts,
		.cpu = event->cpu,
		.write = opcode == MMIO_WRITE,
		.size = (uint8_t)width,
		.addr = get(job, event, job->phys),
		.data = get(job, event, job->value),
		.form = {.scale = QEMU4V_NS, .data_digits = (uint8_t)(2 * width)},
	};
	ret->form.addr_digits = ret->addr > UINT32_MAX ? 16 : 8;
	return true;
}

static int write_event(struct job *job, const struct source *s, struct fault *why)
{
	const struct trace_dat *dat = job->export->dat;
	unsigned meaning = job->meaning[trace_dat_u16(dat, s->event.data)];
	struct qemu4v_record record;
	uint64_t line;
	int r = 0;

	if (meaning == MMIO) {
		if (!read_mmio(job, &s->event, &record))
			return 0;
	} else {
		if (qemu4v_event_read(meaning - FIRST_KIND, s->event.cpu, s->event.data,
				      s->event.size, &record, &line) < 0) {
			job->n_faults++;
			log_error("%s: offset 0x%" PRIx64 ": not an event of qemu4v, left out",
				  dat->path,
				  s->block->offset + (uint64_t)(s->event.data - s->block->bytes));
			return 0;
		}
	}
	if (job->export->options->tarmac)
		record.form.cpu = dat->n_cpus > 1 ? QEMU4V_CPU_NAME : QEMU4V_CPU_NONE;
	if (qemu4v_print_room(&record) > job->room - job->used)
		r = flush(job, why);
	if (r == 0)
		job->used += qemu4v_print(&record, job->out + job->used);
	job->any = true;
	return r;
}

static int write_all(struct job *job, struct fault *why)
{
	int r = 0;

	while (job->n_heap > 0 && r == 0) {
		struct source *first = job->heap[0];

		r = write_event(job, first, why);
		if (r != 0)
			return r;
		r = next_event(job, first, why);
		if (r < 0)
			return r;
		if (r == 0)
			job->heap[0] = job->heap[--job->n_heap];
		r = 0;
		sink(job, 0);
	}
	r = refuse_nothing(job, why);
	return r < 0 ? r : flush(job, why);
}

static int run(struct job *job, struct fault *why)
{
	int r = add_sources(job, why);

	job->room = OUT_SIZE;
	job->out = malloc(job->room);
	if (r >= 0 && !job->out)
		r = fault_errno(why, -ENOMEM, "cannot write");
	return r < 0 ? r : write_all(job, why);
}

enum convert_status export_qemu4v(const struct export *export)
{
	struct job job = {.export = export};
	enum convert_status status = CONVERT_FAILED;
	struct out_file output;
	struct fault why;
	int r = learn_formats(&job, &why);

	if (r < 0) {
		log_error("%s", why.text);
	} else if (export_output_open(export, &output) >= 0) {
		job.fd = output.fd;
		r = run(&job, &why);
		if (r < 0)
			log_error("%s", why.text);
		status = export_output_close(export, &output, r);
		if (job.n_faults && r != OUT_FILE_E_PIPE)
			status = CONVERT_FAILED;
	}
	job_done(&job);
	return status;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/log.h"
#include "convert/convert.h"
#include "convert/qemu4v/qemu4v-event.h"
#include "decode/event-stream.h"
#include "decode/text.h"

#define OUT_SIZE   (256 * KIB)
#define FORMAT_MAX (64 * KIB)
#define MMIO_READ  1 /* enum mm_io_opcode of include/linux/mmiotrace.h */
#define MMIO_WRITE 2

/* What an event id means here: NONE, MMIO, or FIRST_KIND + enum qemu4v_kind */
enum { NONE, MMIO, FIRST_KIND };

struct job {
	const struct export *export;
	int fd;
	uint8_t *meaning; /* [SUBBUF_EVENT_IDS] */
	const struct field *phys, *value, *opcode, *width;
	struct event_stream *stream;
	struct text out;
	bool any;      /* a line was written */
	bool imported; /* the file has the events of an import */
	size_t n_faults;
};

static void job_done(struct job *job)
{
	event_stream_free(job->stream);
	free(job->meaning);
	text_done(&job->out);
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

static int find_field(const struct job *job, size_t format, const char *name,
		      const struct field **ret)
{
	*ret = decoder_field(job->export->decoder, format, name);
	return *ret && ((*ret)->size == 1 || (*ret)->size == 4 || (*ret)->size == 8) ? 0 : -EBADMSG;
}

/* The layout of mmiotrace_rw depends on the kernel */
static int learn_mmio(struct job *job, size_t format, uint32_t *ret_id)
{
	int r = find_field(job, format, "phys", &job->phys);

	if (r >= 0)
		r = find_field(job, format, "value", &job->value);
	if (r >= 0)
		r = find_field(job, format, "opcode", &job->opcode);
	if (r >= 0)
		r = find_field(job, format, "width", &job->width);
	if (r >= 0)
		*ret_id = decoder_format_id(job->export->decoder, format);
	return r < 0 ? r : *ret_id < SUBBUF_EVENT_IDS ? 0 : -EBADMSG;
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
		r = learn_mmio(job, i, &id);
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

/* --- events in order: by the lines they came from; a kernel's own by their time */

static bool key_of(void *userdata, const struct decode_event *event, uint64_t *ret)
{
	const struct job *job = userdata;
	uint8_t meaning = job->meaning[event->id];

	if (meaning == NONE)
		return false;
	*ret = meaning == MMIO ? event->ts : qemu4v_event_line(event->data, event->size);
	return true;
}

static void on_fault(const char *text)
{
	log_error("%s: the rest of this sub-buffer is left out", text);
}

static int open_stream(struct job *job, struct fault *why)
{
	const struct event_stream_config config = {
		.filter = job->export->filter,
		.no_tasks = true,
		.on_fault = on_fault,
	};
	int r = event_stream_new(job->export->decoder, &config, &job->stream, why);

	if (r >= 0)
		event_stream_order(job->stream, key_of, job);
	return r;
}

/* --- lines */

static int flush(struct job *job, struct fault *why)
{
	int r = job->out.no_memory ? fault_errno(why, -ENOMEM, "cannot write")
				   : out_file_write(job->fd, job->out.bytes, job->out.size, why);

	job->out.size = 0;
	return r;
}

/* A memory access by its physical address. false: probing, or nothing known */
static bool read_mmio(const struct job *job, const struct decode_event *event,
		      struct qemu4v_record *ret)
{
	uint64_t opcode = field_number(job->opcode, event);
	uint64_t width = field_number(job->width, event);

	if ((opcode != MMIO_READ && opcode != MMIO_WRITE) || width == 0 || width > 8)
		return false;
	*ret = (struct qemu4v_record){
		.kind = QEMU4V_MEM,
		.time = event->ts,
		.cpu = event->cpu,
		.write = opcode == MMIO_WRITE,
		.size = (uint8_t)width,
		.addr = field_number(job->phys, event),
		.data = field_number(job->value, event),
		.form = {.scale = QEMU4V_NS, .data_digits = (uint8_t)(2 * width)},
	};
	ret->form.addr_digits = ret->addr > UINT32_MAX ? 16 : 8;
	return true;
}

static int write_event(struct job *job, const struct decode_event *event, struct fault *why)
{
	const struct trace_dat *dat = job->export->dat;
	unsigned meaning = job->meaning[event->id];
	struct qemu4v_record record;
	uint64_t line;

	if (meaning == MMIO) {
		if (!read_mmio(job, event, &record))
			return 0;
	} else if (qemu4v_event_read(meaning - FIRST_KIND, event->cpu, event->data, event->size,
				     &record, &line) < 0) {
		job->n_faults++;
		log_error("%s: offset %s: not an event of qemu4v, left out", dat->path,
			  trace_dat_at(dat, event->offset).text);
		return 0;
	}
	if (job->export->options->tarmac)
		record.form.cpu = dat->n_cpus > 1 ? QEMU4V_CPU_NAME : QEMU4V_CPU_NONE;
	qemu4v_print(&record, &job->out);
	job->any = true;
	return job->out.size < OUT_SIZE && !job->out.no_memory ? 0 : flush(job, why);
}

static int write_all(struct job *job, struct fault *why)
{
	struct decode_event event;
	int r;

	while ((r = event_next(job->stream, &event, why)) > 0) {
		r = write_event(job, &event, why);
		if (r != 0)
			return r;
	}
	if (r >= 0)
		r = refuse_nothing(job, why);
	return r < 0 ? r : flush(job, why);
}

static int run(struct job *job, struct fault *why)
{
	int r = open_stream(job, why);

	if (r >= 0)
		r = write_all(job, why);
	if (job->stream)
		job->n_faults += event_stream_faults(job->stream);
	return r;
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "basic/strv.h"
#include "convert/perfetto/perfetto-plan.h"
#include "convert/perfetto/perfetto-proto.h"
#include "convert/perfetto/perfetto-wire.h"
#include "decode/event-header.h"

/*
 * What Perfetto's trace processor makes tracks, slices, counters and states of on a machine that is
 * no phone; of all other events it shows the fields, and of those that are described here it shows
 * all of them, also those that it has no message for. Numbers are those of protos/perfetto/trace/
 * ftrace/. "[]": each number of an array; "()": the address of a function; "*": of a string; "@": a
 * task;
 * "^": a CPU.
 */
static const struct known {
	const char *system, *name;
	uint32_t number;
	const char *fields;
} known[] = {
	/* clang-format off */
	{"ftrace", "print", 3, "ip=1 buf=2"},
	{"ftrace", "funcgraph_entry", 437, "depth=1 func=2()"},
	{"ftrace", "funcgraph_exit", 438, "calltime=1 depth=2 func=3() overrun=4 rettime=5"},
	{"sched", "sched_process_free", 240, "comm=1 pid=2@ prio=3"},
	{"task", "task_newtask", 235, "pid=1@ comm=2 clone_flags=3 oom_score_adj=4"},
	{"task", "task_rename", 236, "pid=1@ oldcomm=2 newcomm=3 oom_score_adj=4"},
	{"signal", "signal_deliver", 324, "code=1 sa_flags=2 sig=3"},
	{"signal", "signal_generate", 325, "code=1 comm=2 group=3 pid=4@ result=5 sig=6"},
	{"oom", "oom_score_adj_update", 326, "comm=1 oom_score_adj=2 pid=3@"},
	{"oom", "mark_victim", 334, "pid=1@"},
	{"raw_syscalls", "sys_enter", 329, "id=1 args=2[]"},
	{"raw_syscalls", "sys_exit", 330, "id=1 ret=2"},
	{"irq", "irq_handler_entry", 36, "irq=1 name=2"},
	{"irq", "irq_handler_exit", 37, "irq=1 ret=2"},
	{"irq", "softirq_entry", 24, "vec=1"},
	{"irq", "softirq_exit", 25, "vec=1"},
	{"irq_vectors", "local_timer_entry", 559, "vector=1"},
	{"irq_vectors", "local_timer_exit", 560, "vector=1"},
	{"timer", "hrtimer_expire_entry", 553, "hrtimer=1 now=2 function=3()"},
	{"timer", "hrtimer_expire_exit", 554, "hrtimer=1"},
	{"workqueue", "workqueue_execute_start", 58, "work=1 function=2()"},
	{"workqueue", "workqueue_execute_end", 57, "work=1 function=2()"},
	{"block", "block_io_start", 546,
	 "dev=1 sector=2 nr_sector=3 bytes=4 ioprio=5 rwbs=6 comm=7 cmd=8"},
	{"block", "block_io_done", 547,
	 "dev=1 sector=2 nr_sector=3 bytes=4 ioprio=5 rwbs=6 comm=7 cmd=8"},
	{"kmem", "rss_stat", 313, "member=1 size=2 curr=3 mm_id=4"},
	{"vmscan", "mm_vmscan_direct_reclaim_begin", 46, "order=1 may_writepage=2 gfp_flags=3"},
	{"vmscan", "mm_vmscan_direct_reclaim_end", 47, "nr_reclaimed=1"},
	{"vmscan", "mm_shrink_slab_start", 443,
	 "cache_items=1 delta=2 gfp_flags=3 lru_pgs=4 nr_objects_to_shrink=5 pgs_scanned=6 shr=7 "
	 "shrink=8() total_scan=9 nid=10 priority=11"},
	{"vmscan", "mm_shrink_slab_end", 444,
	 "new_scan=1 retval=2 shr=3 shrink=4 total_scan=5 unused_scan=6 nid=7"},
	{"net", "netif_receive_skb", 360, "len=1 name=2 skbaddr=3"},
	{"net", "net_dev_xmit", 361, "len=1 name=2 rc=3 skbaddr=4"},
	{"net", "napi_gro_receive_entry", 365,
	 "data_len=1 gso_size=2 gso_type=3 hash=4 ip_summed=5 l4_hash=6 len=7 mac_header=8 "
	 "mac_header_valid=9 name=10 napi_id=11 nr_frags=12 protocol=13 queue_mapping=14 "
	 "skbaddr=15 truesize=16 vlan_proto=17 vlan_tagged=18 vlan_tci=19"},
	{"net", "napi_gro_receive_exit", 366, "ret=1"},
	{"power", "cpu_frequency", 11, "state=1 cpu_id=2^"},
	{"power", "cpu_frequency_limits", 12, "min_freq=1 max_freq=2 cpu_id=3^"},
	{"power", "cpu_idle", 13, "state=1 cpu_id=2^"},
	{"power", "clock_enable", 14, "name=1 state=2 cpu_id=3^"},
	{"power", "clock_disable", 15, "name=1 state=2 cpu_id=3^"},
	{"power", "clock_set_rate", 16, "name=1 state=2 cpu_id=3^"},
	{"power", "suspend_resume", 113, "action=1* val=2 start=3"},
	{"power", "wakeup_source_activate", 404, "name=1 state=2"},
	{"power", "wakeup_source_deactivate", 405, "name=1 state=2"},
	{"power", "device_pm_callback_start", 504, "device=1 driver=2 parent=3 pm_ops=4 event=5"},
	{"power", "device_pm_callback_end", 505, "device=1 driver=2 error=3"},
	{"rpm", "rpm_status", 489, "name=1 status=2"},
	{"thermal", "thermal_temperature", 341, "id=1 temp=2 temp_prev=3 thermal_zone=4"},
	{"thermal", "cdev_update", 342, "target=1 type=2"},
	{"cpuhp", "cpuhp_enter", 345, "cpu=1^ fun=2 idx=3 target=4"},
	{"cpuhp", "cpuhp_multi_enter", 344, "cpu=1^ fun=2 idx=3 target=4"},
	{"cpuhp", "cpuhp_exit", 343, "cpu=1^ idx=2 ret=3 state=4"},
	/* clang-format on */
};

/* Without which they are no such events; in the order of their enums */
static const struct {
	const char *name;
	enum perfetto_kind kind;
	const char *fields[4];
} columns[] = {
	{"sched_switch", PERFETTO_SWITCH, {"prev_state", "next_comm", "next_pid", "next_prio"}},
	{"sched_waking", PERFETTO_WAKING, {"comm", "pid", "prio", "target_cpu"}},
};

struct perfetto_plan *perfetto_plan_free(struct perfetto_plan *plan)
{
	if (plan)
		free(plan->fields);
	free(plan);
	return NULL;
}

static struct perfetto_plan *plan_new(enum perfetto_kind kind, const char *name, uint32_t number,
				      size_t n)
{
	struct perfetto_plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		return NULL;
	*plan = (struct perfetto_plan){.kind = kind, .name = name, .number = number};
	plan->fields = calloc(n + 1, sizeof(*plan->fields));
	return plan->fields ? plan : perfetto_plan_free(plan);
}

static struct perfetto_field *add_field(const struct decoder *decoder, struct perfetto_plan *plan,
					const struct field *field, uint32_t number)
{
	struct perfetto_field *f = &plan->fields[plan->n++];

	field_value_init(&f->value, plan->name, decoder_dat(decoder)->long_size, field);
	f->number = number;
	return f;
}

/* --- what Perfetto knows */

static int plan_columns(const struct decoder *decoder, size_t format, size_t row,
			struct perfetto_plan **ret)
{
	struct perfetto_plan *plan =
		plan_new(columns[row].kind, columns[row].name, 0, ARRAY_SIZE(columns[row].fields));

	for (size_t i = 0; plan && i < ARRAY_SIZE(columns[row].fields); i++) {
		const struct field *field = decoder_field(decoder, format, columns[row].fields[i]);
		bool comm = ends_with(columns[row].fields[i], "comm");

		if (!field || add_field(decoder, plan, field, 0)->value.kind !=
				      (comm ? VALUE_STRING : VALUE_NUMBER)) {
			perfetto_plan_free(plan);
			return 0;
		}
	}
	*ret = plan;
	return plan ? 0 : -ENOMEM;
}

/* Is a field what its message takes? Its form is set */
static bool set_form(struct perfetto_field *f, const char *suffix)
{
	enum field_value_kind kind = f->value.kind;

	switch (*suffix) {
	case '[':
		f->form = FORM_REPEATED;
		return kind == VALUE_NUMBERS;
	case '(':
		f->form = FORM_FUNCTION;
		return kind == VALUE_NUMBER;
	case '*':
		f->form = FORM_POINTED;
		return kind == VALUE_NUMBER;
	case '@':
		f->form = FORM_PID;
		return kind == VALUE_NUMBER;
	case '^':
		f->form = FORM_CPU;
		return kind == VALUE_NUMBER;
	default:
		return kind == VALUE_NUMBER || kind == VALUE_BOOL || kind == VALUE_STRING;
	}
}

static int plan_known(const struct decoder *decoder, size_t format, const struct known *row,
		      struct perfetto_plan **ret)
{
	struct perfetto_plan *plan =
		plan_new(PERFETTO_TYPED, row->name, row->number, strlen(row->fields) / 2);
	char name[64], *suffix;

	for (const char *p = row->fields; plan && *p; p += strspn(p, " ")) {
		size_t size = strcspn(p, "=");
		const struct field *field;
		uint32_t number;

		(void)snprintf(name, sizeof(name), "%.*s", (int)size, p);
		number = (uint32_t)strtoul(p + size + 1, &suffix, 10);
		p = suffix + strcspn(suffix, " ");
		field = decoder_field(decoder, format, name);
		if (field && !set_form(add_field(decoder, plan, field, number), suffix))
			plan->n--;
	}
	*ret = plan;
	return plan ? 0 : -ENOMEM;
}

int perfetto_plan_typed(const struct decoder *decoder, size_t format, struct perfetto_plan **ret)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	const char *system = dat->systems[dat->formats[format].system];
	const char *name = decoder_name(decoder, format);

	*ret = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (strcmp(system, "sched") == 0 && strcmp(name, columns[i].name) == 0)
			return plan_columns(decoder, format, i, ret);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(system, known[i].system) == 0 && strcmp(name, known[i].name) == 0)
			return plan_known(decoder, format, &known[i], ret);
	return 0;
}

/* --- any other */

static bool has_symbol(const struct perfetto_field *f)
{
	return f->value.address && f->value.kind == VALUE_NUMBER;
}

int perfetto_plan_any(const struct decoder *decoder, int32_t format, uint32_t id,
		      uint32_t described, struct perfetto_plan **ret)
{
	const bool buffers = decoder_dat(decoder)->n_buffers > 1;
	const struct field *fields = NULL;
	struct perfetto_plan *plan;
	uint32_t next;
	size_t n = 0;

	if (format >= 0)
		fields = decoder_fields(decoder, (size_t)format, &n);
	if (!fields)
		n = 0;
	plan = plan_new(PERFETTO_DESCRIBED, fields ? decoder_name(decoder, (size_t)format) : NULL,
			EVENT_DESCRIBED + described + id, n);
	if (!plan)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		(void)add_field(decoder, plan, &fields[i], (uint32_t)i + 1);
	next = (uint32_t)n + 1;
	if (fields && event_header_is(fields, n))
		plan->header = next++;
	if (buffers)
		plan->buffer = next++;
	if (!fields || next - 1 > PERFETTO_FIELDS_MAX)
		plan->kind = PERFETTO_NAMED;
	/* as far as there is room for them */
	for (size_t i = 0; i < n && next <= PERFETTO_FIELDS_MAX; i++)
		if (has_symbol(&plan->fields[i]))
			plan->fields[i].symbol = next++;
	*ret = plan;
	return 0;
}

static void describe(struct text *out, const char *name, const char *more, uint32_t number,
		     enum perfetto_type type)
{
	size_t field = wire_begin(out, DESCRIPTOR_FIELD);
	size_t begin = wire_begin(out, DESCRIPTOR_FIELD_NAME);

	text_string(out, name);
	text_string(out, more);
	wire_end(out, begin);
	wire_number(out, DESCRIPTOR_FIELD_NUMBER, number);
	wire_number(out, DESCRIPTOR_FIELD_LABEL, PERFETTO_LABEL_OPTIONAL);
	wire_number(out, DESCRIPTOR_FIELD_TYPE, type);
	wire_end(out, field);
}

static enum perfetto_type type_of(const struct field_value *value)
{
	if (value->kind == VALUE_BOOL)
		return TYPE_BOOL;
	if (value->kind != VALUE_NUMBER)
		return TYPE_STRING;
	if (value->at.size == 8)
		return value->at.is_signed ? TYPE_INT64 : TYPE_UINT64;
	return value->at.is_signed ? TYPE_INT32 : TYPE_UINT32;
}

void perfetto_plan_descriptor(const struct perfetto_plan *plan, uint32_t cpu, struct text *out)
{
	size_t packet = wire_begin(out, PERFETTO_PACKET);
	size_t bundle = wire_begin(out, PACKET_FTRACE_EVENTS), at, event;

	wire_number(out, BUNDLE_CPU, cpu);
	at = wire_begin(out, BUNDLE_GENERIC_DESCRIPTOR);
	wire_number(out, DESCRIPTOR_FIELD_ID, plan->number);
	event = wire_begin(out, DESCRIPTOR_EVENT);
	wire_string(out, DESCRIPTOR_NAME, plan->name);
	for (size_t i = 0; i < plan->n; i++) {
		const struct perfetto_field *f = &plan->fields[i];

		describe(out, f->value.at.name, "", f->number, type_of(&f->value));
		if (f->symbol)
			describe(out, f->value.at.name, "_symbol", f->symbol, TYPE_STRING);
	}
	if (plan->header)
		describe(out, "eventheader", "", plan->header, TYPE_STRING);
	if (plan->buffer)
		describe(out, "ring_buffer", "", plan->buffer, TYPE_STRING);
	wire_end(out, event);
	wire_end(out, at);
	wire_end(out, bundle);
	wire_number(out, PACKET_SEQUENCE, PERFETTO_SEQUENCE);
	wire_end(out, packet);
}

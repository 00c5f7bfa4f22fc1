/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "convert/gdb/gdb-plan.h"
#include "convert/gdb/gdb-tfile.h"
#include "formats/trace-dat.h"

#define COMM_SIZE 16U
#define OWN_ALIGN 16U

enum step_kind {
	STEP_REGISTER, /* into the register block */
	STEP_MEMORY,   /* at a register and an offset */
	STEP_OWN,      /* at an address of our own; its variable has it */
	STEP_NUMBER,
};

struct step {
	enum step_kind kind;
	struct field place;
	uint32_t variable;	       /* 0: none */
	const struct gdb_general *reg; /* REGISTER; MEMORY: whose value is the address */
	struct field base;	       /* MEMORY: where that value is */
	int64_t add;
};

/* Of every frame */
enum {
	COMMON_TS,
	COMMON_CPU,
	COMMON_PID,
	COMMON_LOST,
	COMMON_COMM,
	N_COMMON,
};

static const char *const common_names[N_COMMON] = {"ts", "cpu", "pid", "lost", "comm"};

struct gdb_plan {
	struct gdb_planner *planner;
	const struct gdb_probe *probe;
	bool has_address, has_registers;
	struct field address;
	const struct gdb_general *pc;
	struct step *steps;
	size_t n_steps;
};

/* --- names of variables */

/* What "$NAME" means to gdb already */
static bool name_taken(enum gdb_arch arch, const char *name)
{
	static const char *const others[] = {
		"pc",	      "sp",	    "fp",	  "ps",		"eax",	 "ebx",
		"ecx",	      "edx",	    "esi",	  "edi",	"ebp",	 "esp",
		"al",	      "bl",	    "cl",	  "dl",		"sil",	 "dil",
		"bpl",	      "spl",	    "ah",	  "bh",		"ch",	 "dh",
		"_",	      "__",	    "lr",	  "tpnum",	"bpnum", "trace_frame",
		"tracepoint", "trace_line", "trace_func", "trace_file",
	};
	size_t n;
	const struct gdb_general *general = gdb_general_registers(arch, &n);

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strcmp(others[i], name) == 0)
			return true;
	for (size_t i = 0; i < N_COMMON; i++)
		if (strcmp(common_names[i], name) == 0)
			return true;
	for (size_t i = 0; i < n; i++)
		if (strcmp(general[i].name, name) == 0 ||
		    (general[i].kernel && strcmp(general[i].kernel, name) == 0))
			return true;
	return false;
}

/* Return: the variable's number, 0 without memory */
static uint32_t variable(struct gdb_variables *variables, const char *name)
{
	for (size_t i = 0; i < variables->n; i++)
		if (strcmp(variables->names[i], name) == 0)
			return (uint32_t)i + 1;
	if (strv_append(&variables->names, name) < 0)
		return 0;
	return (uint32_t)++variables->n;
}

static uint32_t field_variable(struct gdb_planner *planner, const char *field)
{
	_cleanup_free_ char *other = NULL;

	if (!name_taken(planner->arch, field))
		return variable(&planner->variables, field);
	other = strf("%s_", field);
	return other ? variable(&planner->variables, other) : 0;
}

/* --- the planner */

static int read_machine(struct gdb_planner *planner, const struct trace_dat *dat, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	int r = trace_dat_load_option(dat, TRACE_DAT_OPTION_UNAME, 4 * KIB, &text, why);
	const char *machine = r > 0 ? strrchr(text, ' ') : NULL;

	if (machine)
		planner->arch = gdb_arch_of_machine(machine + 1);
	return r;
}

int gdb_planner_new(const struct decoder *decoder, struct gdb_planner **ret, struct fault *why)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	_cleanup_(gdb_planner_freep) struct gdb_planner *planner = calloc(1, sizeof(*planner));
	int r;

	if (!planner)
		return fault_errno(why, -ENOMEM, "%s: cannot export", dat->path);
	planner->decoder = decoder;
	planner->arch = GDB_X86_64;
	planner->big_endian = dat->big_endian;
	for (size_t i = 0; i < N_COMMON; i++)
		if (variable(&planner->variables, common_names[i]) == 0)
			return fault_errno(why, -ENOMEM, "%s: cannot export", dat->path);
	r = read_machine(planner, dat, why);
	if (r >= 0)
		r = gdb_probes_read(dat, &planner->probes, why);
	if (r >= 0)
		*ret = TAKE_PTR(planner);
	return r;
}

struct gdb_planner *gdb_planner_free(struct gdb_planner *planner)
{
	if (!planner)
		return NULL;
	gdb_probes_done(&planner->probes);
	strv_free(planner->variables.names);
	free(planner);
	return NULL;
}

/* --- the plan of a kind of event */

static struct step *find_register(struct gdb_plan *plan, const struct gdb_general *reg)
{
	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].kind == STEP_REGISTER && plan->steps[i].reg == reg)
			return &plan->steps[i];
	return NULL;
}

/* The field that says where a probe is: there and not in a variable */
static bool take_address(struct gdb_plan *plan, const struct field *field)
{
	if (strcmp(field->name, "__probe_ip") != 0 && strcmp(field->name, "__probe_ret_ip") != 0)
		return false;
	plan->address = *field;
	plan->has_address = field->size == 8;
	return plan->has_address;
}

static bool is_number(const struct field *field)
{
	return !field->is_array && !field->is_string && !field->is_dynamic &&
	       (field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8);
}

/* Memory whose address follows from a register that is recorded too */
static void plan_memory(struct gdb_plan *plan, const struct gdb_argument *argument,
			struct step *step)
{
	const struct step *base = find_register(plan, argument->reg);

	if (!base)
		return;
	step->kind = STEP_MEMORY;
	step->reg = argument->reg;
	step->base = base->place;
	step->add = argument->offset;
}

static int add_step(struct gdb_plan *plan, const struct step *step)
{
	struct step *last = plan->n_steps ? &plan->steps[plan->n_steps - 1] : NULL;

	/* parts of one piece of memory, which a probe reads in arrays of 64 */
	if (last && last->kind == STEP_MEMORY && step->kind == STEP_MEMORY && !last->variable &&
	    !step->variable && !last->place.is_dynamic && !step->place.is_dynamic &&
	    last->reg == step->reg && last->add + last->place.size == step->add &&
	    last->place.offset + last->place.size == step->place.offset &&
	    last->place.size + step->place.size <= UINT16_MAX) {
		last->place.size += step->place.size;
		return 0;
	}
	if (array_grow(&plan->steps, plan->n_steps, sizeof(*plan->steps)) < 0)
		return -ENOMEM;
	plan->steps[plan->n_steps++] = *step;
	return 0;
}

static int plan_field(struct gdb_plan *plan, const struct field *field)
{
	struct gdb_planner *planner = plan->planner;
	const struct gdb_argument argument =
		plan->has_address ? gdb_probe_argument(plan->probe, planner->arch, field->name)
				  : (struct gdb_argument){};
	struct step step = {.kind = is_number(field) ? STEP_NUMBER : STEP_OWN, .place = *field};
	int r;

	if (take_address(plan, field))
		return 0;
	if (argument.kind == GDB_ARGUMENT_REGISTER && step.kind == STEP_NUMBER &&
	    field->size == 8 && !find_register(plan, argument.reg)) {
		const struct step reg = {
			.kind = STEP_REGISTER, .place = step.place, .reg = argument.reg};

		r = add_step(plan, &reg);
		if (r < 0 || argument.by_name)
			return r;
	}
	if (argument.kind == GDB_ARGUMENT_MEMORY && step.kind == STEP_NUMBER) {
		struct step memory = step;

		plan_memory(plan, &argument, &memory);
		r = memory.kind == STEP_MEMORY ? add_step(plan, &memory) : 0;
		if (r < 0)
			return r;
	} else if (argument.kind == GDB_ARGUMENT_MEMORY) {
		plan_memory(plan, &argument, &step);
	}
	if (step.kind != STEP_MEMORY || !argument.by_name) {
		step.variable = field_variable(planner, field->name);
		if (step.variable == 0)
			return -ENOMEM;
	}
	return add_step(plan, &step);
}

/* Registers must come first: memory refers to them */
static bool comes_first(struct gdb_plan *plan, const struct field *field)
{
	const struct gdb_argument argument =
		gdb_probe_argument(plan->probe, plan->planner->arch, field->name);

	return strncmp(field->name, "__probe_", 8) == 0 || argument.kind == GDB_ARGUMENT_REGISTER;
}

static bool all_registers(struct gdb_plan *plan)
{
	size_t n;
	const struct gdb_general *general = gdb_general_registers(plan->planner->arch, &n);

	for (size_t i = 0; i < n; i++)
		if (general[i].needed && &general[i] != plan->pc &&
		    !find_register(plan, &general[i]))
			return false;
	return n > 0 && plan->has_address;
}

int gdb_plan_new(struct gdb_planner *planner, size_t format, struct gdb_plan **ret)
{
	_cleanup_(gdb_plan_freep) struct gdb_plan *plan = calloc(1, sizeof(*plan));
	const struct trace_dat *dat = decoder_dat(planner->decoder);
	const char *system = dat->systems[dat->formats[format].system];
	size_t n = 0;
	const struct field *fields = decoder_fields(planner->decoder, format, &n);
	int r = 0;

	if (!plan)
		return -ENOMEM;
	plan->planner = planner;
	plan->pc = gdb_general_pc(planner->arch);
	plan->probe =
		gdb_probes_find(&planner->probes, system, decoder_name(planner->decoder, format));
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < n && r >= 0; i++)
			if (comes_first(plan, &fields[i]) == (pass == 0))
				r = plan_field(plan, &fields[i]);
	if (r < 0)
		return r;
	plan->has_registers = all_registers(plan);
	*ret = TAKE_PTR(plan);
	return fields ? 0 : -EOPNOTSUPP;
}

struct gdb_plan *gdb_plan_free(struct gdb_plan *plan)
{
	if (!plan)
		return NULL;
	free(plan->steps);
	free(plan);
	return NULL;
}

const struct gdb_probe *gdb_plan_probe(const struct gdb_plan *plan)
{
	return plan->probe;
}

uint64_t gdb_plan_address(const struct gdb_plan *plan, const struct decode_event *event)
{
	/* gdb takes tracepoints of one address for one: the id, where no program can be */
	return plan->has_address ? field_number(&plan->address, event) : event->id;
}

/* --- frames */

/* The bytes that a step copies; those beyond the end of the event don't exist */
static const uint8_t *step_bytes(const struct step *step, const struct decode_event *event,
				 uint32_t *ret_size)
{
	const uint8_t *bytes = field_bytes(&step->place, event, ret_size);

	*ret_size = MIN(*ret_size, (uint32_t)UINT16_MAX);
	return bytes;
}

size_t gdb_plan_frame_size(const struct gdb_plan *plan, const struct decode_event *event)
{
	size_t size = GDB_TFILE_HEAD_SIZE + N_COMMON * GDB_TFILE_VARIABLE_SIZE +
		      GDB_TFILE_MEMORY_SIZE + COMM_SIZE;
	uint32_t n;

	if (plan->has_registers)
		size += 1 + gdb_general_size(plan->planner->arch);
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct step *step = &plan->steps[i];

		if (step->variable)
			size += GDB_TFILE_VARIABLE_SIZE;
		if (step->kind == STEP_MEMORY || step->kind == STEP_OWN) {
			(void)step_bytes(step, event, &n);
			size += GDB_TFILE_MEMORY_SIZE + n;
		}
	}
	return size;
}

static uint8_t *put_registers(const struct gdb_plan *plan, const struct decode_event *event,
			      uint8_t *p)
{
	const bool big = plan->planner->big_endian;
	const uint32_t size = gdb_general_size(plan->planner->arch);

	*p++ = 'R';
	memset(p, 0, size);
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct step *step = &plan->steps[i];

		if (step->kind == STEP_REGISTER)
			gdb_tfile_set(p + step->reg->offset, step->reg->size, big,
				      field_number(&step->place, event));
	}
	/* the instruction pointer that a handler sees may be behind the breakpoint */
	gdb_tfile_set(p + plan->pc->offset, plan->pc->size, big,
		      field_number(&plan->address, event));
	return p + size;
}

static uint8_t *put_step(const struct gdb_plan *plan, const struct step *step,
			 const struct decode_event *event, uint64_t *own, uint8_t *p)
{
	const bool big = plan->planner->big_endian;
	uint64_t value = 0;

	if (step->kind == STEP_NUMBER) {
		value = (uint64_t)field_signed(&step->place, event);
	} else if (step->kind != STEP_REGISTER) {
		const uint8_t *bytes;
		uint32_t n;

		bytes = step_bytes(step, event, &n);
		if (step->kind == STEP_MEMORY) {
			value = field_number(&step->base, event) + (uint64_t)step->add;
		} else {
			value = *own;
			*own += round_up(MAX(n, 1U), OWN_ALIGN);
		}
		p = gdb_tfile_put_memory(p, big, value, bytes, (uint16_t)n);
	}
	return step->variable ? gdb_tfile_put_variable(p, big, step->variable, value) : p;
}

void gdb_plan_put(const struct gdb_plan *plan, const struct decode_event *event,
		  uint32_t tracepoint, size_t size, uint8_t *p)
{
	const bool big = plan->planner->big_endian;
	uint64_t own = GDB_PLAN_OWN_ADDRESS;
	const uint64_t common[N_COMMON] = {
		[COMMON_TS] = event->ts,
		[COMMON_CPU] = event->cpu,
		[COMMON_PID] = (uint64_t)(int64_t)event->pid,
		[COMMON_LOST] = (uint64_t)event->missed,
		[COMMON_COMM] = own,
	};
	char comm[COMM_SIZE] = {0};

	p = gdb_tfile_put_frame(p, big, tracepoint, (uint32_t)(size - GDB_TFILE_HEAD_SIZE));
	if (plan->has_registers)
		p = put_registers(plan, event, p);
	memcpy(comm, event->task->text, MIN(event->task->size, COMM_SIZE - 1));
	p = gdb_tfile_put_memory(p, big, own, comm, COMM_SIZE);
	own += COMM_SIZE;
	for (uint32_t i = 0; i < N_COMMON; i++)
		p = gdb_tfile_put_variable(p, big, i + 1, common[i]);
	for (size_t i = 0; i < plan->n_steps; i++)
		p = put_step(plan, &plan->steps[i], event, &own, p);
}

void gdb_plan_collects(const struct gdb_plan *plan, FILE *out, uint32_t tracepoint,
		       uint64_t address)
{
	char *const *names = plan->planner->variables.names;
	char line[160];

	if (plan->has_registers)
		gdb_tfile_put_source(out, tracepoint, address, "cmd", "collect $regs");
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct step *step = &plan->steps[i];

		if (step->kind != STEP_MEMORY || !plan->has_registers || step->place.is_dynamic)
			continue;
		(void)snprintf(line, sizeof(line),
			       "collect *(unsigned char *)($%s + %" PRId64 ")@%" PRIu32,
			       step->reg->name, step->add, step->place.size);
		gdb_tfile_put_source(out, tracepoint, address, "cmd", line);
	}
	for (size_t i = 0; i < N_COMMON + plan->n_steps; i++) {
		const uint32_t variable =
			i < N_COMMON ? (uint32_t)i + 1 : plan->steps[i - N_COMMON].variable;

		if (variable == 0)
			continue;
		(void)snprintf(line, sizeof(line), "collect $%.100s", names[variable - 1]);
		gdb_tfile_put_source(out, tracepoint, address, "cmd", line);
	}
}

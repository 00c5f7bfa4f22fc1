/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "formats/arm-snapshot.h"

#define ETM4 1U
#define ETE  2U

/* clang-format off */
/*
 * What the document asks for, and, of ETE, which is newer than it, what OpenCSD reads; few ETEs have
 * a TRCAUTHSTATUS that can be read. sysfs names of the kernel's coresight-etm4x-sysfs.c
 */
static const struct arm_register_fact etm4_registers[] = {
	{ "TRCCONFIGR", 0x004, .sysfs = "mgmt/trcconfig" },
	{ "TRCTRACEIDR", 0x010, .sysfs = "mgmt/trctraceid" },
	{ "TRCAUTHSTATUS", 0x3ee, .optional = ETE, .sysfs = "mgmt/trcauthstatus" },
	{ "TRCDEVARCH", 0x3ef, .optional = ETM4, .sysfs = "mgmt/trcdevarch" },
	{ "TRCIDR0", 0x078, .sysfs = "trcidr/trcidr0" },
	{ "TRCIDR1", 0x079, .sysfs = "trcidr/trcidr1" },
	{ "TRCIDR2", 0x07a, .sysfs = "trcidr/trcidr2" },
	{ "TRCIDR8", 0x060, .sysfs = "trcidr/trcidr8" },
	{ "TRCIDR9", 0x061, .optional = ETE, .sysfs = "trcidr/trcidr9" },
	{ "TRCIDR10", 0x062, .optional = ETE, .sysfs = "trcidr/trcidr10" },
	{ "TRCIDR11", 0x063, .optional = ETE, .sysfs = "trcidr/trcidr11" },
	{ "TRCIDR12", 0x064, .optional = ETE, .sysfs = "trcidr/trcidr12" },
	{ "TRCIDR13", 0x065, .optional = ETE, .sysfs = "trcidr/trcidr13" },
	{},
};

/* coresight-etm3x-sysfs.c */
static const struct arm_register_fact etm3_registers[] = {
	{ "ETMCR", 0x000, .sysfs = "mgmt/etmcr" },
	{ "ETMIDR", 0x079, .sysfs = "mgmt/etmidr" },
	{ "ETMCCER", 0x07a, .sysfs = "mgmt/etmccer" },
	{ "ETMTRACEIDR", 0x080, .sysfs = "mgmt/etmtraceidr" },
	{},
};

/* coresight-stm.c */
static const struct arm_register_fact stm_registers[] = {
	{ "STMTCSR", 0x3a0, .sysfs = "mgmt/tcsr" },
	{},
};

/* Linux has no driver for it */
static const struct arm_register_fact itm_registers[] = {
	{ "ITM_CTRL", 0x3a0, .alias = "CONTROL_REGISTER" },
	{},
};

static const struct arm_source_kind kinds[] = {
	{ "ETM4", true, "TRCTRACEIDR", 0, etm4_registers, ETM4 },
	{ "ETE", true, "TRCTRACEIDR", 0, etm4_registers, ETE },
	{ "ETM3", true, "ETMTRACEIDR", 0, etm3_registers },
	{ "PTM1", true, "ETMTRACEIDR", 0, etm3_registers },
	{ "PFT1", true, "ETMTRACEIDR", 0, etm3_registers },
	{ "STM", false, "STMTCSR", 16, stm_registers },
	{ "ITM", false, "ITM_CTRL", 16, itm_registers },
};

/* OpenCSD's trc_core_arch_map.cpp; part: in MIDR, of those that its version 1.3 knows already */
static const struct {
	const char *type;
	unsigned part;
} cores[] = {
	{ "Cortex-A5", 0xc05 }, { "Cortex-A7", 0xc07 }, { "Cortex-A8", 0xc08 }, { "Cortex-A9", 0xc09 },
	{ "Cortex-A12", 0xc0d }, { "Cortex-A15", 0xc0f }, { "Cortex-A17", 0xc0e },
	{ "Cortex-A32", 0xd01 }, { "Cortex-A35", 0xd04 }, { "Cortex-A53", 0xd03 },
	{ "Cortex-A55", 0xd05 }, { "Cortex-A57", 0xd07 }, { "Cortex-A65", 0xd06 },
	{ "Cortex-A72", 0xd08 }, { "Cortex-A73", 0xd09 }, { "Cortex-A75", 0xd0a },
	{ "Cortex-A76", 0xd0b }, { "Cortex-A77", 0xd0d }, { "Cortex-A78", 0 },
	{ "Cortex-R4", 0 }, { "Cortex-R5", 0 }, { "Cortex-R7", 0 }, { "Cortex-R8", 0 },
	{ "Cortex-R52", 0 },
	{ "Cortex-M0", 0 }, { "Cortex-M0+", 0 }, { "Cortex-M3", 0 }, { "Cortex-M4", 0 },
	{ "Cortex-M23", 0 }, { "Cortex-M33", 0 },
};
/* clang-format on */

const struct arm_source_kind *arm_source_kind(const char *type)
{
	size_t n = strcspn(type, ".");

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].type) == n && strncmp(kinds[i].type, type, n) == 0)
			return &kinds[i];
	return NULL;
}

/* "ARMv7-A", "ARMv8.3-R" */
static bool is_architecture(const char *type)
{
	if (strncmp(type, "ARMv", 4) != 0 || type[4] < '7' || type[4] > '9')
		return false;
	type += 5;
	if (type[0] == '.' && type[1] >= '0' && type[1] <= '9')
		type += 2;
	return type[0] == '-' && type[1] && strchr("ARM", type[1]) && !type[2];
}

bool arm_core_known(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(cores); i++)
		if (strcmp(cores[i].type, type) == 0)
			return true;
	return is_architecture(type) || strncmp(type, "ARM-AA64", 8) == 0 ||
	       strncmp(type, "ARM-aa64", 8) == 0;
}

const char *arm_core_type(uint32_t midr, bool v7)
{
	unsigned implementer = midr >> 24, part = midr >> 4 & 0xfff;

	for (size_t i = 0; implementer == 0x41 && i < ARRAY_SIZE(cores); i++)
		if (cores[i].part && cores[i].part == part)
			return cores[i].type;
	return v7 ? "ARMv7-A" : "ARMv8-A";
}

void arm_snapshot_done(struct arm_snapshot *s)
{
	for (size_t i = 0; i < s->n_sources; i++) {
		free(s->sources[i].name);
		free(s->sources[i].buffer);
	}
	for (size_t i = 0; i < s->n_buffers; i++) {
		free(s->buffers[i].name);
		free(s->buffers[i].file);
	}
	for (size_t i = 0; i < s->n_dumps; i++)
		free(s->dumps[i].file);
	free(s->cores);
	free(s->sources);
	free(s->buffers);
	free(s->dumps);
	*s = (struct arm_snapshot){};
}

/* --- encoding */

static void put_core(const struct arm_snapshot *s, size_t i, FILE *out)
{
	(void)fprintf(out, "[device]\nname=cpu_%u\nclass=core\ntype=%s\n", s->cores[i].cpu,
		      s->cores[i].type);
	for (size_t k = 0; k < s->n_dumps; k++)
		(void)fprintf(out,
			      "\n[dump%zu]\nfile=%s\naddress=0x%" PRIX64 "\nlength=0x%" PRIX64 "\n",
			      k + 1, s->dumps[k].file, s->dumps[k].address, s->dumps[k].length);
}

static void put_source(const struct arm_snapshot *s, size_t i, FILE *out)
{
	const struct arm_source *source = &s->sources[i];

	(void)fprintf(out, "[device]\nname=%s\nclass=trace_source\ntype=%s\n\n[regs]\n",
		      source->name, source->type);
	for (size_t k = 0; k < source->n_registers; k++)
		(void)fprintf(out, "%s(0x%03X)=0x%08" PRIX32 "\n", source->registers[k].fact->name,
			      source->registers[k].fact->id, source->registers[k].value);
}

static void put_trace(const struct arm_snapshot *s, size_t unused, FILE *out)
{
	(void)fprintf(out, "[trace_buffers]\nbuffers=");
	for (size_t i = 0; i < s->n_buffers; i++)
		(void)fprintf(out, "%sbuffer%zu", i ? "," : "", i);
	(void)fprintf(out, "\n");
	for (size_t i = 0; i < s->n_buffers; i++)
		(void)fprintf(out, "\n[buffer%zu]\nname=%s\nfile=%s\nformat=coresight\n", i,
			      s->buffers[i].name, s->buffers[i].file);
	(void)fprintf(out, "\n[source_buffers]\n");
	for (size_t i = 0; i < s->n_sources; i++)
		(void)fprintf(out, "%s=%s\n", s->sources[i].name, s->sources[i].buffer);
	(void)fprintf(out, "\n[core_trace_sources]\n");
	for (size_t i = 0; i < s->n_sources; i++)
		if (s->sources[i].cpu >= 0)
			(void)fprintf(out, "cpu_%d=%s\n", s->sources[i].cpu, s->sources[i].name);
}

static void put_index(const struct arm_snapshot *s, size_t unused, FILE *out)
{
	size_t n = 0;

	(void)fprintf(out, "[snapshot]\nversion=" ARM_SNAPSHOT_VERSION "\n");
	if (s->description)
		(void)fprintf(out, "description=%s\n", s->description);
	(void)fprintf(out, "\n[device_list]\n");
	for (size_t i = 0; i < s->n_cores; i++)
		(void)fprintf(out, "device%zu=cpu_%u.ini\n", n++, s->cores[i].cpu);
	for (size_t i = 0; i < s->n_sources; i++)
		(void)fprintf(out, "device%zu=%s.ini\n", n++, s->sources[i].name);
	(void)fprintf(out, "\n[trace]\nmetadata=" ARM_TRACE_INI "\n");
	if (s->ftrace)
		(void)fprintf(out, "\n[ftrace]\nfile=%s\n", s->ftrace);
}

struct encoder {
	const struct arm_snapshot *snapshot;
	arm_emit_t emit;
	void *userdata;
};

/* @name: malloc'ed, freed here; NULL: no memory */
static int encode(const struct encoder *e, char *name,
		  void (*put)(const struct arm_snapshot *s, size_t i, FILE *out), size_t i)
{
	_cleanup_free_ char *own = name, *text = NULL;
	size_t size;
	FILE *out = name ? open_memstream(&text, &size) : NULL;

	if (!out)
		return -ENOMEM;
	put(e->snapshot, i, out);
	return fclose(out) == 0 ? e->emit(e->userdata, own, text, size) : -ENOMEM;
}

int arm_snapshot_encode(const struct arm_snapshot *s, arm_emit_t emit, void *userdata)
{
	const struct encoder e = {s, emit, userdata};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < s->n_cores; i++)
		r = encode(&e, strf("cpu_%u.ini", s->cores[i].cpu), put_core, i);
	for (size_t i = 0; r >= 0 && i < s->n_sources; i++)
		r = encode(&e, strf("%s.ini", s->sources[i].name), put_source, i);
	if (r >= 0)
		r = encode(&e, strdup(ARM_TRACE_INI), put_trace, 0);
	return r < 0 ? r : encode(&e, strdup(ARM_SNAPSHOT_INI), put_index, 0);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <syslog.h>

#include "basic/near.h"
#include "config/config-keys.h"
#include "config/config-trace.h"
#include "config/config.h"

/* Choices, and what they are in the code, are read and written as int */
_Static_assert(sizeof(enum session_mode) == sizeof(int), "value_choice");
_Static_assert(sizeof(enum storage_direct) == sizeof(int), "value_choice");
_Static_assert(sizeof(enum storage_compress) == sizeof(int), "value_choice");
_Static_assert(sizeof(enum storage_drain) == sizeof(int), "value_choice");

/* clang-format off */
static const struct choice modes[] = {
	{ "record", SESSION_RECORD }, { "flight", SESSION_FLIGHT }, {},
};

static const struct choice directs[] = {
	{ "auto", STORAGE_DIRECT_AUTO },
	{ "yes", STORAGE_DIRECT_YES }, { "true", STORAGE_DIRECT_YES },
	{ "on", STORAGE_DIRECT_YES }, { "1", STORAGE_DIRECT_YES },
	{ "no", STORAGE_DIRECT_NO }, { "false", STORAGE_DIRECT_NO },
	{ "off", STORAGE_DIRECT_NO }, { "0", STORAGE_DIRECT_NO },
	{},
};

static const struct choice compressions[] = {
	{ "no", STORAGE_COMPRESS_NO }, { "zstd", STORAGE_COMPRESS_ZSTD }, {},
};

static const struct choice drains[] = {
	{ "auto", STORAGE_DRAIN_AUTO }, { "splice", STORAGE_DRAIN_SPLICE },
	{ "read", STORAGE_DRAIN_READ }, {},
};

static const struct choice subbuf_sizes[] = {
	{ "auto", SUBBUF_SIZE_AUTO }, {},
};

static const struct choice methods[] = {
	{ "auto", 0 }, { "mapped", 1 }, { "swap", 2 }, { "drain", 3 }, {},
};

/* trace_clocks[] of kernel/trace/trace.c, and the architectures' own */
static const struct choice clocks[] = {
	{ "local", 0 }, { "global", 1 }, { "counter", 2 }, { "uptime", 3 }, { "perf", 4 },
	{ "mono", 5 }, { "mono_raw", 6 }, { "boot", 7 }, { "tai", 8 }, { "x86-tsc", 9 },
	{ "ppc-tb", 10 }, { "s390-tod", 11 }, {},
};

static const struct choice log_levels[] = {
	{ "error", LOG_ERR }, { "err", LOG_ERR }, { "3", LOG_ERR },
	{ "warning", LOG_WARNING }, { "4", LOG_WARNING },
	{ "notice", LOG_NOTICE }, { "5", LOG_NOTICE },
	{ "info", LOG_INFO }, { "6", LOG_INFO },
	{ "debug", LOG_DEBUG }, { "7", LOG_DEBUG },
	{},
};

/* clang-format on */

/* A hundred years: still far from where times added to a clock would overflow */
#define TIME_MAX (36525ULL * 24 * 3600 * USEC_PER_SEC)
/* The largest file offset there is */
#define SIZE_LIMIT ((uint64_t)INT64_MAX)
/* Shorter flush and sync intervals would be busy loops */
#define INTERVAL_MIN (10 * 1000ULL)

#define D	       CONFIG_FILE_DAEMON
#define S	       CONFIG_FILE_SESSION
#define BOTH	       (CONFIG_FILE_DAEMON | CONFIG_FILE_SESSION)
#define DAEMON(field)  offsetof(struct daemon_config, field)
#define SESSION(field) offsetof(struct session_config, field)

/* clang-format off */
const struct config_key config_keys[] = {
	{ "Daemon", "Workers", D, &value_unsigned, DAEMON(workers), "0", 0, 256 },
	{ "Daemon", "LogLevel", D, &value_choice, DAEMON(log_level), "info", .choices = log_levels },
	{ "Daemon", "AdminGroup", D, &value_string, DAEMON(admin_group), .check = check_group_name },
	{ "Daemon", "InstancePrefix", D, &value_string, DAEMON(instance_prefix), "flyrec.",
	  .check = check_instance_prefix },

	{ "Session", "Description", S, &value_string, SESSION(description) },
	{ "Session", "Mode", S, &value_choice, SESSION(mode), "record", .choices = modes },
	{ "Session", "Enabled", S, &value_bool, SESSION(enabled), "yes" },

	{ "Trace", "Event", S, &value_events, SESSION(trace) },
	{ "Trace", "EventTrigger", S, &value_triggers, SESSION(trace) },
	{ "Trace", "Tracer", S, &value_string, SESSION(trace.tracer), .check = check_tracer },
	{ "Trace", "FunctionFilter", S, &value_words, SESSION(trace.function_filter),
	  .check = check_function },
	{ "Trace", "FunctionNotrace", S, &value_words, SESSION(trace.function_notrace),
	  .check = check_function },
	{ "Trace", "Kprobe", S, &value_lines, SESSION(trace.kprobes), .check = check_probe },
	{ "Trace", "Uprobe", S, &value_lines, SESSION(uprobes), .check = check_uprobe },
	{ "Trace", "Usdt", S, &value_lines, SESSION(usdts), .check = check_usdt },
	{ "Trace", "SyntheticEvent", S, &value_lines, SESSION(trace.synthetic_events),
	  .check = check_synthetic },
	{ "Trace", "Clock", S, &value_word, SESSION(trace.clock), .choices = clocks },
	{ "Trace", "BufferSize", S, &value_size, SESSION(trace.buffer_size), "4M", 8 * KIB, TIB },
	{ "Trace", "SubBufferSize", S, &value_size, SESSION(trace.subbuf_size), "auto", 4 * KIB, 8 * MIB,
	  .choices = subbuf_sizes, .check = check_power_of_two },
	{ "Trace", "BufferPercent", S, &value_percent, SESSION(trace.buffer_percent), "25" },
	{ "Trace", "CPUs", S, &value_cpus, SESSION(trace.cpus) },
	{ "Trace", "Pid", S, &value_pids, SESSION(trace) },
	{ "Trace", "Unit", S, &value_words, SESSION(trace.units), .check = check_unit },
	{ "Trace", "Option", S, &value_words, SESSION(trace.options), .check = check_option },
	{ "Trace", "MaxOverhead", S, &value_share, SESSION(max_overhead), "0" },
	{ "Trace", "Shed", S, &value_words, SESSION(shed), .check = check_shed },
	{ "Trace", "Persistent", S, &value_bool, SESSION(trace.persistent), "no" },

	{ "Storage", "MaxUse", BOTH, &value_size_auto, SESSION(storage.max_use), NULL, MIB, SIZE_LIMIT },
	{ "Storage", "KeepFree", BOTH, &value_size_auto, SESSION(storage.keep_free), NULL, 0, SIZE_LIMIT },
	{ "Storage", "MaxFileSize", BOTH, &value_size_auto, SESSION(storage.max_file_size), NULL, 64 * KIB,
	  SIZE_LIMIT },
	{ "Storage", "MaxFileSec", BOTH, &value_time, SESSION(storage.max_file_usec), "1d", 0, TIME_MAX },
	{ "Storage", "MaxFiles", BOTH, &value_u64, SESSION(storage.max_files), "100", 0, INT_MAX },
	{ "Storage", "MaxRetentionSec", BOTH, &value_time, SESSION(storage.max_retention_usec), "0", 0,
	  TIME_MAX },
	{ "Storage", "SyncIntervalSec", BOTH, &value_time, SESSION(storage.sync_interval_usec), "30s",
	  INTERVAL_MIN, TIME_MAX },
	{ "Storage", "FlushSec", BOTH, &value_time, SESSION(storage.flush_usec), "5s", INTERVAL_MIN,
	  TIME_MAX },
	{ "Storage", "Direct", BOTH, &value_choice, SESSION(storage.direct), "auto", .choices = directs },
	{ "Storage", "Drain", BOTH, &value_choice, SESSION(storage.drain), "auto", .choices = drains },
	{ "Storage", "Compress", BOTH, &value_choice, SESSION(storage.compress), "no",
	  .choices = compressions },

	{ "Snapshot", "Last", BOTH, &value_time, SESSION(snapshot.last_usec), "0", 0, TIME_MAX },
	{ "Snapshot", "PostSec", BOTH, &value_time, SESSION(snapshot.post_usec), "0", 0, TIME_MAX },
	{ "Snapshot", "OnSignal", BOTH, &value_bool, SESSION(snapshot.on_signal), "yes" },
	{ "Snapshot", "OnPressure", BOTH, &value_lines, SESSION(snapshot.on_pressure),
	  .check = check_pressure },
	{ "Snapshot", "OnEvent", BOTH, &value_lines, SESSION(snapshot.on_event), .check = check_event },
	{ "Snapshot", "OnUnitFailed", BOTH, &value_patterns, SESSION(snapshot.on_unit_failed),
	  .check = check_unit_glob },
	{ "Snapshot", "OnLatency", BOTH, &value_lines, SESSION(snapshot.on_latency),
	  .check = check_latency },
	{ "Snapshot", "OnJournal", BOTH, &value_lines, SESSION(snapshot.on_journal),
	  .check = check_journal },
	{ "Snapshot", "Burst", BOTH, &value_unsigned, SESSION(snapshot.burst), "5", 0, INT_MAX },
	{ "Snapshot", "IntervalSec", BOTH, &value_time, SESSION(snapshot.interval_usec), "1min", 0,
	  TIME_MAX },
	{ "Snapshot", "PeerMaxSec", BOTH, &value_time, SESSION(snapshot.peer_max_usec), "2min", 0, TIME_MAX },
	{ "Snapshot", "Method", BOTH, &value_word, SESSION(snapshot.method), "auto", .choices = methods },
	{ "Snapshot", "Memory", BOTH, &value_size, SESSION(snapshot.memory), "64M", MIB, TIB },
	{ "Snapshot", "MaxUse", BOTH, &value_size_auto, SESSION(snapshot.max_use), NULL, MIB, SIZE_LIMIT },
	{ "Snapshot", "MaxFiles", BOTH, &value_u64, SESSION(snapshot.max_files), "100", 0, INT_MAX },
	{ "Snapshot", "MaxRetentionSec", BOTH, &value_time, SESSION(snapshot.max_retention_usec), "0", 0,
	  TIME_MAX },
	{ "Snapshot", "Coresight", BOTH, &value_bool, SESSION(snapshot.coresight), "no" },
	{ "Snapshot", "Analyze", BOTH, &value_bool, SESSION(snapshot.analyze), "yes" },
	{ "Snapshot", "Journal", BOTH, &value_bool, SESSION(snapshot.journal), "no" },
};
/* clang-format on */

const size_t config_n_keys = ARRAY_SIZE(config_keys);

/* clang-format off */
/* What is in the table but not yet in this build; value NULL: whatever it is set to */
static const struct {
	const char *section, *name, *value;
} unsupported[] = {
#if !HAVE_ZSTD
	{ "Storage", "Compress", "zstd" },
#endif
	{},
};
/* clang-format on */

static bool prints_as(const struct config_key *key, const void *object, const char *value)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0, n = strlen(key->name);
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return false;
	key->kind->print(key, object, f);
	if (fclose(f) != 0 || size < n + 2)
		return false;
	text[size - 1] = '\0'; /* the newline */
	return strcmp(text + n + 1, value) == 0;
}

bool config_key_unsupported(const struct config_key *key, const void *object)
{
	for (size_t i = 0; unsupported[i].section; i++)
		if (strcmp(unsupported[i].section, key->section) == 0 &&
		    strcmp(unsupported[i].name, key->name) == 0)
			return !unsupported[i].value ||
			       prints_as(key, object, unsupported[i].value);
	return false;
}

const struct config_key *config_key_find(enum config_file_kind file, const char *section,
					 const char *name)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if ((config_keys[i].files & file) && strcmp(config_keys[i].section, section) == 0 &&
		    strcmp(config_keys[i].name, name) == 0)
			return &config_keys[i];
	return NULL;
}

bool config_section_known(enum config_file_kind file, const char *section)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if ((config_keys[i].files & file) && strcmp(config_keys[i].section, section) == 0)
			return true;
	return false;
}

/* --- what might have been meant */

void config_explain_key(enum config_file_kind file, const char *section, const char *name,
			struct fault *ret)
{
	const char *near = NULL, *elsewhere = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (!(key->files & file))
			continue;
		if (strcmp(key->section, section) != 0) {
			if (!elsewhere && strcmp(key->name, name) == 0)
				elsewhere = key->section;
		} else if (near_better(name, key->name, &best)) {
			near = key->name;
		}
	}
	if (elsewhere)
		(void)value_refuse(ret, "unknown key '%s' in [%s], it belongs in [%s]", name,
				   section, elsewhere);
	else if (near)
		(void)value_refuse(ret, "unknown key '%s' in [%s], did you mean '%s'?", name,
				   section, near);
	else
		(void)value_refuse(ret, "unknown key '%s' in [%s]", name, section);
}

void config_explain_section(enum config_file_kind file, const char *section, struct fault *ret)
{
	const char *near = NULL;
	size_t best = SIZE_MAX;

	if (config_section_known(file ^ BOTH, section)) {
		(void)value_refuse(ret, "unknown section [%s], it belongs in %s", section,
				   file == D ? "a session's file" : "flyrecd.conf");
		return;
	}
	for (size_t i = 0; i < config_n_keys; i++)
		if ((config_keys[i].files & file) &&
		    near_better(section, config_keys[i].section, &best))
			near = config_keys[i].section;
	if (near)
		(void)value_refuse(ret, "unknown section [%s], did you mean [%s]?", section, near);
	else
		(void)value_refuse(ret, "unknown section [%s]", section);
}

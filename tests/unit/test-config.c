/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/config: values, canonical texts, the examples and the man pages */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <syslog.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "config/config-keys.h"
#include "config/config-session.h"
#include "config/config-trace.h"
#include "config/latency-kernel.h"
#include "config/latency.h"
#include "tests/unit/config-dir.h"

#define TRACES "[Trace]\nOption=stacktrace\n"

static void test_defaults(void **state)
{
	const struct session_config *s = config_dir_load_session(*state, TRACES);
	struct config_dir *dir = *state;

	assert_int_equal(dir->config->workers, 0);
	assert_int_equal(dir->config->log_level, LOG_INFO);
	assert_null(dir->config->admin_group);
	assert_string_equal(dir->config->instance_prefix, "flyrec.");
	assert_null(s->description);
	assert_int_equal(s->mode, SESSION_RECORD);
	assert_true(s->enabled);
	assert_string_equal(s->trace.clock, "mono");
	assert_null(s->trace.tracer);
	assert_null(s->trace.cpus);
	assert_int_equal(s->trace.buffer_size, 4 * MIB);
	assert_int_equal(s->trace.subbuf_size, SUBBUF_SIZE_AUTO);
	assert_non_null(strstr(s->text, "\nSubBufferSize=auto\n"));
	assert_int_equal(s->trace.buffer_percent, 25);
	assert_true(s->storage.max_use == STORAGE_DEFAULT);
	assert_true(s->storage.keep_free == STORAGE_DEFAULT);
	assert_true(s->storage.max_file_size == STORAGE_DEFAULT);
	assert_int_equal(s->storage.max_file_usec, 86400 * USEC_PER_SEC);
	assert_int_equal(s->storage.max_files, 100);
	assert_int_equal(s->storage.max_retention_usec, 0);
	assert_int_equal(s->storage.sync_interval_usec, 30 * USEC_PER_SEC);
	assert_int_equal(s->storage.flush_usec, 5 * USEC_PER_SEC);
	assert_int_equal(s->storage.direct, STORAGE_DIRECT_AUTO);
	assert_int_equal(s->storage.compress, STORAGE_COMPRESS_NO);
	assert_true(s->snapshot.on_signal);
	assert_int_equal(s->snapshot.burst, SNAPSHOT_BURST);
	assert_int_equal(s->snapshot.interval_usec, SNAPSHOT_INTERVAL_USEC);
	assert_string_equal(s->snapshot.method, "auto");
	assert_int_equal(s->snapshot.memory, 64 * MIB);
	assert_true(s->snapshot.max_use == STORAGE_DEFAULT);
}

static void test_trace_values(void **state)
{
	const struct trace_config *t =
		&config_dir_load_session(
			 *state, "[Trace]\n"
				 "Event=sched:sched_switch\n"
				 "Event = syscalls:sys_enter_openat   if  flags & 0x40 && \\\n"
				 "    filename ~ \"a  b\"\n"
				 "Event=-irq\n"
				 "EventTrigger=sched:sched_process_exit  stacktrace:5  if pid > 1\n"
				 "EventTrigger=-a-b:c.0 traceoff\n"
				 "Tracer=function\n"
				 "FunctionFilter=vfs_*  :mod:ext4\nFunctionFilter=ksys_read\n"
				 "FunctionNotrace=*lock*\n"
				 "Kprobe=p:open  do_sys_openat2\tfile=+0(%si):ustring\n"
				 "Kprobe=r16:open_ret do_sys_openat2 $retval\n"
				 "Uprobe=p:readline /bin/bash:0x4245 %ax\n"
				 "Uprobe=r:ret /lib/libc.so.6:memcpy@@GLIBC_2.14 $retval\n"
				 "Usdt=/lib/libc.so.6:libc:memory-heap  n=$arg1\n"
				 "Usdt=p:jump /lib/libc.so.6:libc:setjmp mem=%sp:8\n"
				 "SyntheticEvent=lat u64 delta; pid_t pid; char comm[16];\n"
				 "Clock=x86-tsc\nBufferSize=1.5M\nSubBufferSize=16K\n"
				 "BufferPercent=50%\nCPUs=8,2-3\nCPUs=0-1\nPid=30 4\nPid=4\n"
				 "Unit=a.service b-c.scope\nOption=overwrite nooverwrite\n"
				 "Option=overwrite\n")
			 ->trace;

	assert_int_equal(t->n_events, 3);
	assert_string_equal(t->events[0].system, "sched");
	assert_string_equal(t->events[0].name, "sched_switch");
	assert_null(t->events[0].filter);
	assert_false(t->events[0].optional);
	assert_string_equal(t->events[1].name, "sys_enter_openat");
	assert_string_equal(t->events[1].filter, "flags & 0x40 && filename ~ \"a  b\"");
	assert_string_equal(t->events[2].system, "irq");
	assert_null(t->events[2].name);
	assert_true(t->events[2].optional);
	assert_int_equal(t->n_triggers, 2);
	assert_string_equal(t->triggers[0].name, "sched_process_exit");
	assert_string_equal(t->triggers[0].trigger, "stacktrace:5 if pid > 1");
	assert_true(t->triggers[1].optional);
	assert_string_equal(t->triggers[1].system, "a-b");
	assert_string_equal(t->triggers[1].name, "c.0");
	assert_string_equal(t->tracer, "function");
	assert_string_equal(t->function_filter[0], "vfs_*");
	assert_string_equal(t->function_filter[1], ":mod:ext4");
	assert_string_equal(t->function_filter[2], "ksys_read");
	assert_null(t->function_filter[3]);
	assert_string_equal(t->function_notrace[0], "*lock*");
	assert_string_equal(t->kprobes[0], "p:open do_sys_openat2 file=+0(%si):ustring");
	assert_string_equal(t->kprobes[1], "r16:open_ret do_sys_openat2 $retval");
	assert_string_equal(t->uprobes[0], "p:readline /bin/bash:0x4245 %ax");
	assert_string_equal(t->uprobes[1], "r:ret /lib/libc.so.6:memcpy@@GLIBC_2.14 $retval");
	assert_string_equal(t->usdts[0],
			    "p:libc_memory_heap /lib/libc.so.6:libc:memory-heap n=$arg1");
	assert_string_equal(t->usdts[1], "p:jump /lib/libc.so.6:libc:setjmp sp=%sp:x64 "
					 "mem_sp_0=+0(%sp):x64[1]");
	assert_string_equal(t->synthetic_events[0], "lat u64 delta; pid_t pid; char comm[16];");
	assert_string_equal(t->clock, "x86-tsc");
	assert_int_equal(t->buffer_size, 1536 * KIB);
	assert_int_equal(t->subbuf_size, 16 * KIB);
	assert_int_equal(t->buffer_percent, 50);
	assert_string_equal(t->cpus, "0-3,8");
	assert_int_equal(t->n_pids, 2);
	assert_int_equal(t->pids[0], 4);
	assert_int_equal(t->pids[1], 30);
	assert_string_equal(t->units[1], "b-c.scope");
	/* the last of contradicting words counts */
	assert_string_equal(t->options[0], "nooverwrite");
	assert_string_equal(t->options[1], "overwrite");
	assert_null(t->options[2]);
}

/* post= is of each pattern of its line */
static void test_post_of_patterns(void **state)
{
	const struct session_config *s = config_dir_load_session(
		*state, "[Trace]\nEvent=a:b\n[Snapshot]\n"
			"OnUnitFailed=a.service\tb*.service   post=2s\nOnUnitFailed=c.mount\n");
	char **list = s->snapshot.on_unit_failed;

	assert_int_equal(strv_length(list), 3);
	assert_string_equal(list[0], "a.service post=2s");
	assert_string_equal(list[1], "b*.service post=2s");
	assert_string_equal(list[2], "c.mount");
}

static void test_resets(void **state)
{
	const struct session_config *s = config_dir_load_session(
		*state, "[Session]\nDescription=a\nDescription=\nEnabled=no\nEnabled=\n"
			"[Trace]\nEvent=a:b\nEventTrigger=a:b traceon\nKprobe=p:a b\nPid=1\n"
			"CPUs=0\nBufferSize=8M\nClock=boot\nUnit=a.service\nTracer=function\n"
			"Event=\nEventTrigger=\nKprobe=\nPid=\nCPUs=\nBufferSize=\nClock=\n"
			"Unit=\nTracer=\nEvent=c:d\n"
			"[Storage]\nMaxUse=1G\nMaxUse=\nMaxFiles=3\nMaxFiles=\n"
			"[Snapshot]\nOnEvent=a:b\nOnPressure=io some 1s 2s\n"
			"OnUnitFailed=a.service\nOnEvent=\nOnPressure=\nOnUnitFailed=\n"
			"OnEvent=c:d if e\nOnEvent=-f:g\n");
	const struct trace_config *t = &s->trace;

	assert_int_equal(strv_length(s->snapshot.on_event), 2);
	assert_string_equal(s->snapshot.on_event[0], "c:d if e");
	assert_string_equal(s->snapshot.on_event[1], "-f:g");
	assert_null(s->snapshot.on_pressure);
	assert_null(s->snapshot.on_unit_failed);
	assert_null(s->description);
	assert_true(s->enabled);
	assert_int_equal(t->n_events, 1);
	assert_string_equal(t->events[0].system, "c");
	assert_int_equal(t->n_triggers, 0);
	assert_null(t->kprobes);
	assert_int_equal(t->n_pids, 0);
	assert_null(t->cpus);
	assert_int_equal(t->buffer_size, 4 * MIB);
	assert_string_equal(t->clock, "mono");
	assert_null(t->units);
	assert_null(t->tracer);
	assert_true(s->storage.max_use == STORAGE_DEFAULT);
	assert_int_equal(s->storage.max_files, 100);
}

static void test_repeats(void **state)
{
	const struct session_config *s = config_dir_load_session(
		*state, "[Trace]\nEvent=a:b if x\nEvent=a\nEvent=a:b if y\nEvent=-a\n"
			"EventTrigger=a:b traceon\nEventTrigger=a:b  traceon\nTracer=nop\n"
			"Kprobe=p:a  b\nKprobe=p:a b\n"
			"[Storage]\nMaxUse=1G\nMaxFileSize=2G\n");

	/* one filter an event: the later line counts, in the earlier one's place */
	assert_int_equal(s->trace.n_events, 2);
	assert_string_equal(s->trace.events[0].filter, "y");
	assert_true(s->trace.events[1].optional);
	assert_int_equal(s->trace.n_triggers, 1);
	assert_null(s->trace.kprobes[1]);
	assert_null(s->trace.tracer);
	assert_int_equal(s->storage.max_file_size, GIB);
}

/* --- canonical texts */

static void test_texts(void **state)
{
	_cleanup_free_ char *text = NULL, *trace_text = NULL;
	const struct session_config *s;

	s = config_dir_load_session(
		*state, "[Trace]\nEvent=a:b if x == 1\nBufferSize=4M\n[Storage]\nMaxFileSec=1h\n");
	text = strdup(s->text);
	trace_text = strdup(s->trace_text);
	/* comments, spacing, order of sections, units, defaults do not matter */
	s = config_dir_load_session(
		*state,
		"[Storage]\nMaxFileSec=60min\nFlushSec=5\n# x\n[Trace]\n Event = a:b   if \\\n"
		"  x ==  1\nBufferSize=4096K\n[Session]\nEnabled=yes\nMode=record\n"
		"[Snapshot]\nMethod=auto\n");
	assert_string_equal(s->text, text);
	assert_string_equal(s->trace_text, trace_text);
	/* elsewhere than in [Trace]: another session, the same instance */
	s = config_dir_load_session(*state,
				    "[Trace]\nEvent=a:b if x == 1\n[Storage]\nMaxFileSec=2h\n");
	assert_string_not_equal(s->text, text);
	assert_string_equal(s->trace_text, trace_text);
	s = config_dir_load_session(*state,
				    "[Trace]\nEvent=a:b if x == 2\n[Storage]\nMaxFileSec=1h\n");
	assert_string_not_equal(s->text, text);
	assert_string_not_equal(s->trace_text, trace_text);
}

/* For each key a value that is not its default; "" for those this build lacks */
static const char *other_value(const struct config_key *key)
{
	/* clang-format off */
	static const char *const values[][2] = {
		{ "Description", "a b" },	  { "Mode", "" },
		{ "Enabled", "no" },		  { "Event", "-a:b if x" },
		{ "EventTrigger", "-a:b traceon" }, { "Tracer", "function" },
		{ "FunctionFilter", "a" },	  { "FunctionNotrace", "a" },
		{ "Kprobe", "p:a b" },		  { "Uprobe", "p:c /b:1" },
		{ "Usdt", "/b:p:x" },
		{ "SyntheticEvent", "a u64 b" },  { "Clock", "boot" },
		{ "BufferSize", "8192" },	  { "SubBufferSize", "8192" },
		{ "BufferPercent", "0" },	  { "CPUs", "0" },
		{ "Pid", "1" },			  { "Unit", "a.service" },
		{ "Option", "raw" },		  { "Persistent", "yes" },
		{ "MaxOverhead", "1.50%" },	  { "Shed", "a:b" },
		{ "MaxUse", "1073741824" },
		{ "KeepFree", "0" },		  { "MaxFileSize", "1048576" },
		{ "MaxFileSec", "1us" },	  { "MaxFiles", "1" },
		{ "MaxRetentionSec", "1us" },	  { "SyncIntervalSec", "10000us" },
		{ "FlushSec", "10000us" },	  { "Direct", "no" },
		{ "Compress", HAVE_ZSTD ? "zstd" : "" },
		{ "Drain", "read" },
		{ "Last", "1us" },		  { "PostSec", "1us" },
		{ "OnSignal", "no" },		  { "OnPressure", "io some 1s 2s unit=a.service" },
		{ "OnEvent", "-a:b if x" },	  { "OnUnitFailed", "*.service post=1s" },
		{ "OnLatency", "irq 1ms" },
		{ "OnJournal", "PRIORITY=2 + UNIT=a.service" },
		{ "Burst", "0" },		  { "IntervalSec", "0us" },
		{ "Method", "drain" },		  { "Memory", "1048576" },
		{ "Coresight", "yes" },		  { "Analyze", "no" },
		{ "Journal", "yes" },		  { "PeerMaxSec", "1us" },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (strcmp(values[i][0], key->name) == 0)
			return values[i][1];
	fail_msg("[%s] %s: the test has no value for this key", key->section, key->name);
	return NULL;
}

/* What OnLatency= takes is traced, where it is not anyway, and said */
static void test_latency_events(void **state)
{
	const struct session_config *s = config_dir_load_session(
		*state, "[Trace]\nEvent=irq\nEvent=e:f if id == 7\n"
			"[Snapshot]\nOnLatency=softirq 1ms\nOnLatency=blocked 2s\n"
			"OnLatency=syscall fsync 1s task=a\nOnLatency=syscall fsync 2s\n"
			"OnLatency=syscall read 1s\nOnLatency=a:b irq:c key=d 1s\n"
			"OnLatency=e:f e:f key=d 1s\n");
	static const char *const added[] = {"sched:sched_switch", "sched:sched_waking",
					    "raw_syscalls:sys_enter", "raw_syscalls:sys_exit",
					    "a:b"};
	char filter[64];

	assert_int_equal(strv_length(s->snapshot.latency_events), ARRAY_SIZE(added));
	for (size_t i = 0; i < ARRAY_SIZE(added); i++)
		assert_string_equal(s->snapshot.latency_events[i], added[i]);
	assert_int_equal(s->trace.n_events, 2 + ARRAY_SIZE(added));
	/* only those calls; a filter of the session's own stays */
	(void)snprintf(filter, sizeof(filter), "id == %d || id == %d", SYS_fsync, SYS_read);
	assert_string_equal(event_find(&s->trace, "raw_syscalls", "sys_enter")->filter, filter);
	assert_string_equal(event_find(&s->trace, "raw_syscalls", "sys_exit")->filter, filter);
	assert_string_equal(event_find(&s->trace, "e", "f")->filter, "id == 7");
	assert_non_null(strstr(s->trace_text, "Event=sched:sched_switch\n"));
}

/* With way=kernel the kernel's own event of it is recorded instead, each condition's once */
static void test_kernel_latencies(void **state)
{
	const struct session_config *s = config_dir_load_session(
		*state, "[Trace]\nEvent=irq\nEvent=sched:sched_waking if pid > 7\n[Snapshot]\n"
			"OnLatency=runqueue 20ms task=a* way=kernel\nOnLatency=irq 1ms way=user\n"
			"OnLatency=runqueue 20ms task=a* way=kernel\n"
			"OnLatency=syscall read 1us task=b way=kernel post=1s\n");

	assert_null(s->snapshot.latency_events);
	assert_int_equal(s->trace.n_events, 2);
	assert_int_equal(strv_length(s->trace.synthetic_events), 2);
	assert_string_equal(s->trace.synthetic_events[0],
			    "+lat1 u64 nsec; pid_t pid; char comm[16]; pid_t waker; unsigned char "
			    "flags if nsec >= 20000000 && comm ~ \"a*\"");
	assert_string_equal(s->trace.synthetic_events[1],
			    "+lat2 u64 nsec; pid_t pid if nsec >= 1000 && COMM ~ \"b\"");
}

/* A histogram with the beginning of each wait comes before those that refer to it */
static void test_kernel_triggers(void **state)
{
	static const char *const texts[] = {
		"syscall read 1ms way=kernel", "a:b c:d key=e,f 1ms way=kernel",
		"runqueue 1ms way=kernel",     "blocked 1ms way=kernel",
		"irq 1ms way=kernel",	       "softirq 1ms way=kernel",
		"block 1ms dev=8:1 way=kernel"};
	const struct latency_kernel kernel = {"EVENT", 3, 4096};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct trace_trigger triggers[LATENCY_KERNEL_TRIGGERS];
		struct latency_config latency;
		struct fault why;
		int n;

		assert_int_equal(latency_parse(texts[i], true, &latency, &why), 0);
		n = latency_kernel_triggers(&latency, &kernel, triggers);
		assert_in_range(n, 2, LATENCY_KERNEL_TRIGGERS);
		for (int t = 0; t < n; t++) {
			assert_null(strchr(triggers[t].trigger, '%'));
			/* each "$NAME3" is a "NAME3=" of this trigger or of one before */
			for (char *p = strchr(triggers[t].trigger, '$'); p;
			     p = strchr(p + 1, '$')) {
				_cleanup_free_ char *set =
					strf("%.*s=", (int)strcspn(p + 1, ",):"), p + 1);
				bool found = false;

				for (int k = 0; k <= t; k++)
					found |= strstr(triggers[k].trigger, set) != NULL;
				assert_true(found);
			}
		}
		if (i == 1)
			assert_string_equal(
				triggers[1].trigger,
				"hist:keys=e,f:e_took3=common_timestamp-$e_at3:size=16384:onmatch("
				"a.b).trace(EVENT,$e_took3)");
		if (i == 6)
			assert_string_equal(triggers[0].trigger,
					    "hist:keys=dev,sector:r_at3=common_timestamp:size="
					    "16384 if dev == 8388609");
		for (int t = 0; t < n; t++)
			trigger_done(&triggers[t]);
		latency_done(&latency);
	}
}

/* Each key alone changes the text, reads back from it, and is copied */
static void test_every_key(void **state)
{
	_cleanup_free_ char *plain = strdup(config_dir_load_session(*state, TRACES)->text);

	for (size_t i = 0; i < config_n_keys; i++) {
		_cleanup_(session_config_freep) struct session_config *copy = NULL;
		_cleanup_free_ char *text = NULL, *line = NULL, *canonical = NULL;
		const struct config_key *key = &config_keys[i];
		const struct session_config *s;

		if (!(key->files & CONFIG_FILE_SESSION) || !*other_value(key))
			continue;
		assert_true(asprintf(&line, "\n%s=%s\n", key->name, other_value(key)) > 0);
		assert_true(asprintf(&text, TRACES "[%s]%s", key->section, line) > 0);
		s = config_dir_load_session(*state, text);
		assert_string_not_equal(s->text, plain);
		assert_non_null(strstr(s->text, line));
		assert_int_equal(session_config_copy(s, &copy), 0);
		canonical = strdup(s->text);
		assert_string_equal(config_dir_load_session(*state, canonical)->text, canonical);

		/* the copy outlived the original */
		assert_string_equal(copy->name, "x");
		assert_string_equal(copy->text, canonical);
		assert_int_equal(session_config_finish(&(struct config_reader){}, "x", copy), 0);
		assert_string_equal(copy->text, canonical);
	}
}

/* --- what is shipped */

static char *read_source(const char *name)
{
	_cleanup_free_ char *path = NULL;
	char *text = NULL;

	assert_true(asprintf(&path, "%s/%s", SOURCE_DIR, name) > 0);
	assert_int_equal(io_read_file_at(AT_FDCWD, path, &text, NULL), 0);
	return text;
}

static void test_examples(void **state)
{
	_cleanup_free_ char *daemon = read_source("doc/examples/flyrecd.conf");
	_cleanup_free_ char *sched = read_source("doc/examples/sched.conf");
	struct config_dir *dir = *state;
	_cleanup_free_ char *plain = NULL;

	plain = strdup(config_dir_load_session(dir, sched)->text);
	assert_non_null(strstr(plain, "\nEvent=sched:sched_switch\n"));
	/* commented out or not, the example of flyrecd.conf shows the defaults */
	for (char *p = daemon; *p; p++)
		if ((p == daemon || p[-1] == '\n') && *p == '#' && p[1] >= 'A' && p[1] <= 'Z' &&
		    strcspn(p, "=") < strcspn(p, " \n"))
			*p = ' ';
	config_dir_write(dir, "etc/flyrecd.conf", daemon);
	assert_string_equal(config_dir_load_session(dir, sched)->text, plain);
	for (size_t i = 0; i < config_n_keys; i++) {
		_cleanup_free_ char *line = NULL;

		if (!(config_keys[i].files & CONFIG_FILE_DAEMON) ||
		    config_key_unsupported(&config_keys[i], config_find(dir->config, "x")))
			continue;
		assert_true(asprintf(&line, "\n %s=", config_keys[i].name) > 0);
		if (!strstr(daemon, line))
			fail_msg("doc/examples/flyrecd.conf lacks %s=", config_keys[i].name);
	}
}

/* [SECTION]'s part of a man page */
static char *section_of(const char *page, const char *name)
{
	_cleanup_free_ char *head = NULL;
	const char *from, *to;

	assert_true(asprintf(&head, "\n.Sh %s SECTION\n", name) > 0);
	for (char *p = head + strlen("\n.Sh "); *p != ' '; p++)
		*p = (char)toupper((unsigned char)*p);
	from = strstr(page, head);
	if (!from)
		return strdup("");
	to = strstr(from + 1, "\n.Sh ");
	return strndup(from, to ? (size_t)(to - from) : strlen(from));
}

/* A key's part of that, from its first form to the first of the next key */
static char *entry_of(const char *section, const char *key)
{
	_cleanup_free_ char *item = NULL;
	const char *from, *to;

	assert_true(asprintf(&item, "\n.It Cm %s Ns = Ns ", key) > 0);
	from = strstr(section, item);
	if (!from)
		return NULL;
	for (to = from; to && strncmp(to, item, strlen(item)) == 0;)
		to = strstr(to + 1, "\n.It ");
	return strndup(from, to ? (size_t)(to - from) : strlen(from));
}

/* Each key has its entry, in its section, with its default and an example */
static void test_man_pages(void **state)
{
	_cleanup_free_ char *session_page = read_source("man/flyrec.session.5");
	_cleanup_free_ char *daemon_page = read_source("man/flyrecd.conf.5");

	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		const char *page = key->files & CONFIG_FILE_SESSION ? session_page : daemon_page;
		_cleanup_free_ char *section = section_of(page, key->section);
		_cleanup_free_ char *entry = entry_of(section, key->name), *example = NULL;
		const char *fallback;

		if (!entry)
			fail_msg("[%s] %s is in no man page", key->section, key->name);
		fallback = strstr(entry, "\nDefaults to");
		if (!fallback || (key->fallback && !strstr(fallback, key->fallback)))
			fail_msg("[%s] %s: the default is %s", key->section, key->name,
				 key->fallback ? key->fallback : "nothing, say so");
		assert_true(asprintf(&example, "%s=", key->name) > 0);
		if (!strstr(entry, example))
			fail_msg("[%s] %s: no example", key->section, key->name);
		if (key->files & CONFIG_FILE_DAEMON) {
			_cleanup_free_ char *part = section_of(daemon_page, key->section);

			assert_non_null(strstr(part, key->name));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_defaults, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_trace_values, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_post_of_patterns, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test(test_kernel_triggers),
		cmocka_unit_test_setup_teardown(test_kernel_latencies, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_latency_events, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_resets, config_dir_setup, config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_repeats, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_texts, config_dir_setup, config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_every_key, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_examples, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test(test_man_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

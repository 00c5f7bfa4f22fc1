/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/config: malformed sessions, and the exact complaint about each */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/config-dir.h"

#define TRACES "[Trace]\nOption=stacktrace\n"

struct fault_case {
	const char *text; /* of the file, after TRACES: line 3 is its first */
	const char *complaints;
};

#define E(line, text) "e etc/sessions.d/x.conf:" #line ": " text "\n"
#define W(line, text) "w etc/sessions.d/x.conf:" #line ": " text "\n"

/* clang-format off */
static const struct fault_case fault_cases[] = {
	/* syntax */
	{ "nothing", E(3, "missing '='") },
	{ "=x", E(3, "missing key before '='") },
	{ "[Storage", E(3, "a section header must end in ']'") },
	/* unknown */
	{ "Evnt=a:b", W(3, "unknown key 'Evnt' in [Trace], did you mean 'Event'?") },
	{ "event=a:b", W(3, "unknown key 'event' in [Trace], did you mean 'Event'?") },
	{ "MaxUse=1G", W(3, "unknown key 'MaxUse' in [Trace], it belongs in [Storage]") },
	{ "Wibble=1", W(3, "unknown key 'Wibble' in [Trace]") },
	{ "X-Wibble=1\n[X-Other]\nfoo=bar", "" },
	{ "[Strage]\nfoo=bar", W(3, "unknown section [Strage], did you mean [Storage]?") },
	{ "[Wibble]\nfoo=bar", W(3, "unknown section [Wibble]") },
	{ "[Daemon]\nWorkers=1", W(3, "unknown section [Daemon], it belongs in flyrecd.conf") },
	/* [Session] */
	{ "[Session]\nMode=Record", E(4, "Mode=Record: must be one of record, flight") },
	{ "[Session]\nEnabled=maybe", E(4, "Enabled=maybe: not a boolean, yes or no") },
	/* events */
	{ "Event=sched:", E(3, "Event=sched:: not an event name after sched:") },
	{ "Event=:a", E(3, "Event=:a: not an event, SYSTEM:NAME or SYSTEM") },
	{ "Event=-", E(3, "Event=-: not an event, SYSTEM:NAME or SYSTEM") },
	{ "Event=a/b", E(3, "Event=a/b: not an event, SYSTEM:NAME or SYSTEM") },
	{ "Event=..:a", E(3, "Event=..:a: not an event, SYSTEM:NAME or SYSTEM") },
	{ "Event=a:b:c", E(3, "Event=a:b:c: not an event name after a:") },
	{ "Event=a:*", E(3, "Event=a:*: no wildcards here; SYSTEM alone means all its events") },
	{ "Event=a:b foo", E(3, "Event=a:b foo: only \" if FILTER\" can follow the event") },
	{ "Event=a:b iffy", E(3, "Event=a:b iffy: only \" if FILTER\" can follow the event") },
	{ "Event=a:b if", E(3, "Event=a:b if: a filter is missing after \"if\"") },
	{ "Event=a:b if 0", E(3, "Event=a:b if 0: the filter 0 means no filter, leave it out") },
	{ "Event=a if x", E(3, "Event=a if x: a filter needs one event, SYSTEM:NAME if FILTER") },
	{ "EventTrigger=a:b", E(3, "EventTrigger=a:b: a trigger is missing after the event") },
	{ "EventTrigger=a traceon",
	  E(3, "EventTrigger=a traceon: a trigger needs one event, SYSTEM:NAME TRIGGER") },
	{ "EventTrigger=a:b !traceon",
	  E(3, "EventTrigger=a:b !traceon: \"!\" would remove a trigger") },
	/* probes */
	{ "Kprobe=x:a b", E(3, "Kprobe=x:a b: must begin with p:NAME or r:NAME") },
	{ "Kprobe=p vfs_open",
	  E(3, "Kprobe=p vfs_open: must begin with p:NAME or r:NAME, the probe needs a name") },
	{ "Kprobe=p", E(3, "Kprobe=p: must begin with p:NAME or r:NAME, the probe needs a name") },
	{ "Kprobe=p10:a b", E(3, "Kprobe=p10:a b: MAXACTIVE is for return probes, r1…:NAME") },
	{ "Kprobe=p:g/a b", E(3, "Kprobe=p:g/a b: the group is always flyrec_ and the session's "
				 "name, give only the probe's name") },
	{ "Kprobe=p:g.a b", E(3, "Kprobe=p:g.a b: the group is always flyrec_ and the session's "
				 "name, give only the probe's name") },
	{ "Kprobe=p: b", E(3, "Kprobe=p: b: not a name for a probe after ':'") },
	{ "Kprobe=p:1a b", E(3, "Kprobe=p:1a b: not a name for a probe after ':'") },
	{ "Kprobe=p:a-b c", E(3, "Kprobe=p:a-b c: not a name for a probe after ':'") },
	{ "Kprobe=p:a", E(3, "Kprobe=p:a: where to put the probe is missing after its name") },
	{ "Kprobe=p:a b #c", E(3, "Kprobe=p:a b #c: the kernel would ignore everything after '#'") },
	{ "Kprobe=p:a b\nKprobe=r:a b", E(4, "Kprobe=r:a b: there is another probe of this name") },
	{ "Kprobe=p:a b\nUprobe=p:a /b:1",
	  E(4, "Uprobe=p:a /b:1: there is another probe of this name") },
	{ "Uprobe=r1:a /b:1", E(3, "Uprobe=r1:a /b:1: MAXACTIVE is for kprobes") },
	{ "Uprobe=p:a /b:1 regs=most",
	  E(3, "Uprobe=p:a /b:1 regs=most: \"regs=most\": only regs=all is known") },
	{ "Uprobe=p:a /b:1 regs=all stack=2K mem=%sp:513",
	  E(3, "Uprobe=p:a /b:1 regs=all stack=2K mem=%sp:513: stack= and mem= can be 1 to 2560 "
	       "bytes together, the kernel takes no more") },
	{ "Uprobe=p:a b:1",
	  E(3, "Uprobe=p:a b:1: the file must be an absolute path, as in /bin/bash:readline") },
#define NO_PLACE                                                                   \
	"a function or an offset into the file is missing, as in /bin/bash:readline or " \
	"/bin/bash:0x4245"
	{ "Uprobe=p:a /b", E(3, "Uprobe=p:a /b: " NO_PLACE) },
	{ "Uprobe=p:a /b: x", E(3, "Uprobe=p:a /b: x: " NO_PLACE) },
	{ "Uprobe=p:a /b:n::f(int)",
	  E(3, "Uprobe=p:a /b:n::f(int): not the name of a function after ':'; of C++ and Rust, "
	       "give the name as nm(1) prints it") },
	{ "Uprobe=p:a /b:f+", E(3, "Uprobe=p:a /b:f+: not an offset after '+', as in main+8 or "
				   "main+0x8") },
	{ "Uprobe=p:a /b:f+x", E(3, "Uprobe=p:a /b:f+x: not an offset after '+', as in main+8 or "
				    "main+0x8") },
	{ "Uprobe=r:a /b:f+8", E(3, "Uprobe=r:a /b:f+8: a return probe is of a function as a whole, "
				    "leave out '+'") },
#define NO_USDT "must be PATH:PROVIDER:PROBE, as in /usr/lib64/libstdc++.so.6:libstdcxx:throw"
	{ "Usdt=/b", E(3, "Usdt=/b: " NO_USDT) },
	{ "Usdt=/b:p", E(3, "Usdt=/b:p: " NO_USDT) },
	{ "Usdt=p:x /b:p", E(3, "Usdt=p:x /b:p: " NO_USDT) },
	{ "Usdt=p:x /b:p: y", E(3, "Usdt=p:x /b:p: y: " NO_USDT) },
	{ "Usdt=b:p:x", E(3, "Usdt=b:p:x: the file must be an absolute path, as in "
			     "/usr/lib64/libstdc++.so.6:libstdcxx:throw") },
	{ "Usdt=r:a /b:p:x",
	  E(3, "Usdt=r:a /b:p:x: a USDT probe does not return, it can only be p:NAME") },
	{ "Usdt=/b:p:x\nUsdt=/c:p:x", E(4, "Usdt=/c:p:x: there is another probe of this name") },
	{ "Usdt=/b:p:x\nUprobe=p:p_x /b:f",
	  E(4, "Uprobe=p:p_x /b:f: there is another probe of this name") },
	{ "Usdt=/b:p:x regs=most",
	  E(3, "Usdt=/b:p:x regs=most: \"regs=most\": only regs=all is known") },
	{ "SyntheticEvent=!a u64 b",
	  E(3, "SyntheticEvent=!a u64 b: \"!\" would remove an event") },
	{ "SyntheticEvent=a", E(3, "SyntheticEvent=a: a field is missing, as in NAME TYPE FIELD") },
	{ "SyntheticEvent=a u64",
	  E(3, "SyntheticEvent=a u64: not a field, must be TYPE FIELD; TYPE FIELD; …") },
	{ "SyntheticEvent=a u64 b;;",
	  E(3, "SyntheticEvent=a u64 b;;: not a field, must be TYPE FIELD; TYPE FIELD; …") },
	{ "SyntheticEvent=a u64 b]", E(3, "SyntheticEvent=a u64 b]: ']' without '['") },
	{ "SyntheticEvent=1 u64 b", E(3, "SyntheticEvent=1 u64 b: must begin with the event's name, "
					 "as in NAME TYPE FIELD") },
	/* words */
	{ "Tracer=a b", E(3, "Tracer=a b: not the name of a tracer") },
	{ "FunctionFilter=a !b", E(3, "FunctionFilter=a !b: \"!\" would remove a filter") },
	{ "Option=a b/c", E(3, "Option=a b/c: not a word of trace_options, as in stacktrace or "
			       "nooverwrite") },
	{ "Clock=utc", E(3, "Clock=utc: must be one of local, global, counter, uptime, perf, mono, "
			    "mono_raw, boot, tai, x86-tsc, ppc-tb, s390-tod") },
	{ "Unit=a", E(3, "Unit=a: must be the full name of a unit with processes, as in "
			 "NAME.service, NAME.scope or NAME.slice") },
	{ "Unit=a.timer", E(3, "Unit=a.timer: must be the full name of a unit with processes, as in "
			       "NAME.service, NAME.scope or NAME.slice") },
	{ "Unit=a@.service",
	  E(3, "Unit=a@.service: a template is no unit, give NAME@INSTANCE.service") },
	{ "Unit=a/b.service", E(3, "Unit=a/b.service: not the name of a unit") },
	/* numbers */
	{ "BufferSize=4MB",
	  E(3, "BufferSize=4MB: not a size, a number of bytes or with K, M, G or T") },
	{ "BufferSize=1", E(3, "BufferSize=1: too small, must be at least 8192 bytes") },
	{ "BufferSize=0", E(3, "BufferSize=0: too small, must be at least 8192 bytes") },
	{ "BufferSize=2T", E(3, "BufferSize=2T: too large, must be at most 1099511627776 bytes") },
	{ "BufferSize=99999999999T",
	  E(3, "BufferSize=99999999999T: too large, must be at most 1099511627776 bytes") },
	{ "SubBufferSize=large", E(3, "SubBufferSize=large: not a size, a number of bytes or with K, "
				      "M, G or T, nor auto") },
	{ "SubBufferSize=5K", E(3, "SubBufferSize=5K: must be a power of two, as in 4K or 16K") },
	{ "BufferPercent=101", E(3, "BufferPercent=101: out of range, must be 0 to 100") },
	{ "BufferPercent=half", E(3, "BufferPercent=half: not a percentage") },
	{ "MaxOverhead=half", E(3, "MaxOverhead=half: not a percentage") },
	{ "MaxOverhead=100.01%", E(3, "MaxOverhead=100.01%: out of range, must be 0 to 100") },
	{ "MaxOverhead=1.005", E(3, "MaxOverhead=1.005: not a percentage, with two places behind the "
				    "point at most") },
	{ "Shed=-a:b", E(3, "Shed=-a:b: must be SYSTEM:NAME, or a SYSTEM, without \"-\"") },
	{ "CPUs=3-1", E(3, "CPUs=3-1: not a list of CPUs, as in 0-3,8") },
	{ "CPUs=9000", E(3, "CPUs=9000: a CPU number is out of range, must be 0 to 8191") },
	{ "Pid=0", E(3, "Pid=0: out of range, must be 1 to 4194303") },
	{ "Pid=1 4194304", E(3, "Pid=1 4194304: out of range, must be 1 to 4194303") },
	{ "Pid=init", E(3, "Pid=init: not a process number") },
	{ "[Storage]\nMaxUse=0", E(4, "MaxUse=0: too small, must be at least 1048576 bytes") },
	{ "[Storage]\nMaxFiles=-1", E(4, "MaxFiles=-1: not a number") },
	{ "[Storage]\nMaxFiles=99999999999",
	  E(4, "MaxFiles=99999999999: out of range, must be 0 to 2147483647") },
	{ "[Storage]\nMaxFileSec=1 hour ago",
	  E(4, "MaxFileSec=1 hour ago: not a time span, a number of seconds or with us, ms, s, min, "
	       "h, d or w") },
	{ "[Storage]\nMaxRetentionSec=101y",
	  E(4, "MaxRetentionSec=101y: too long, must be at most 3155760000s") },
	{ "[Storage]\nFlushSec=0", E(4, "FlushSec=0: too short, must be at least 10ms") },
	{ "[Storage]\nSyncIntervalSec=1ms",
	  E(4, "SyncIntervalSec=1ms: too short, must be at least 10ms") },
	{ "[Storage]\nDirect=maybe", E(4, "Direct=maybe: must be one of auto, yes, no") },
	{ "[Storage]\nDrain=pipe", E(4, "Drain=pipe: must be one of auto, splice, read") },
	{ "[Storage]\nCompress=yes", E(4, "Compress=yes: must be one of no, zstd") },
#if !HAVE_ZSTD
	{ "[Storage]\nCompress=zstd", E(4, "Compress=zstd is not supported by this build") },
#endif
	/* [Snapshot] */
	{ "[Snapshot]\nMethod=magic",
	  E(4, "Method=magic: must be one of auto, mapped, swap, drain") },
	{ "[Snapshot]\nOnPressure=memory some 150ms",
	  E(4, "OnPressure=memory some 150ms: must be RESOURCE some|full STALL WINDOW "
	       "[unit=NAME] [post=TIME], as in memory some 150ms 1s") },
	{ "[Snapshot]\nOnPressure=disk some 150ms 1s",
	  E(4, "OnPressure=disk some 150ms 1s: the resource must be one of memory, cpu, io") },
	{ "[Snapshot]\nOnPressure=io some 1s 2s uint=a.service",
	  E(4, "OnPressure=io some 1s 2s uint=a.service: after the window can only come unit=NAME, "
	       "then post=TIME, not uint=a.service") },
	{ "[Snapshot]\nOnPressure=io some 1s 2s post=1s unit=a.service",
	  E(4, "OnPressure=io some 1s 2s post=1s unit=a.service: must be RESOURCE some|full STALL "
	       "WINDOW [unit=NAME] [post=TIME], as in memory some 150ms 1s") },
	{ "[Snapshot]\nOnPressure=io some 1s 2s unit=",
	  E(4, "OnPressure=io some 1s 2s unit=: not the name of a unit after unit=") },
	{ "[Snapshot]\nOnPressure=io some 1s 2s unit=nginx",
	  E(4, "OnPressure=io some 1s 2s unit=nginx: must be the full name of a unit with processes, "
	       "as in NAME.service, NAME.scope or NAME.slice") },
	{ "[Snapshot]\nOnPressure=io some 1s 2s post=soon",
	  E(4, "OnPressure=io some 1s 2s post=soon: post=soon must be a time span, as in post=2s") },
	{ "[Snapshot]\nOnPressure=io much 150ms 1s",
	  E(4, "OnPressure=io much 150ms 1s: after the resource must come some or full") },
	{ "[Snapshot]\nOnPressure=cpu full 150ms 1s",
	  E(4, "OnPressure=cpu full 150ms 1s: cpu full never happens to a whole machine, use cpu "
	       "some") },
	{ "[Snapshot]\nOnPressure=io some 150 1 s",
	  E(4, "OnPressure=io some 150 1 s: after the window can only come unit=NAME, then post=TIME, "
	       "not s") },
	{ "[Snapshot]\nOnPressure=io some x 1s",
	  E(4, "OnPressure=io some x 1s: STALL and WINDOW must be time spans, as in 150ms 1s") },
	{ "[Snapshot]\nOnPressure=io some 1ms 100ms",
	  E(4, "OnPressure=io some 1ms 100ms: the window must be 500ms to 10s") },
	{ "[Snapshot]\nOnPressure=io some 2s 1s",
	  E(4, "OnPressure=io some 2s 1s: the stall time must be more than 0 and at most the "
	       "window") },
	{ "[Snapshot]\nOnEvent=oom", E(4, "OnEvent=oom: must be one event, SYSTEM:NAME") },
	{ "[Snapshot]\nOnUnitFailed=a/b", E(4, "OnUnitFailed=a/b: not the name of a unit, or a "
					       "pattern of names as in *.service") },
	{ "[Snapshot]\nOnLatency=runqeue 20ms",
	  E(4, "OnLatency=runqeue 20ms: must begin with runqueue, blocked, irq, softirq, block, "
	       "syscall, or an event SYSTEM:NAME, did you mean 'runqueue'?") },
	{ "[Snapshot]\nOnLatency=irq 0",
	  E(4, "OnLatency=irq 0: the time must be at least 1us") },
	{ "[Snapshot]\nOnLatency=block", E(4, "OnLatency=block: a time is missing, as in 20ms") },
	{ "[Snapshot]\nOnLatency=block 1s way=up",
	  E(4, "OnLatency=block 1s way=up: way=up: must be kernel or user") },
	{ "[Snapshot]\nOnLatency=block 1s way=user way=kernel",
	  E(4, "OnLatency=block 1s way=user way=kernel: way= is there twice") },
	{ "[Snapshot]\nOnLatency=a:b a:b key=c 1ms way=kernel",
	  E(4, "OnLatency=a:b a:b key=c 1ms way=kernel: way=kernel takes two different events; "
	       "way=user also takes one event twice") },
	{ "[Snapshot]\nOnLatency=runqueue 1ms task=\"a way=kernel",
	  E(4, "OnLatency=runqueue 1ms task=\"a way=kernel: way=kernel: task=\"a must have no "
	       "quotation mark and no backslash; way=user takes them") },
	{ "[Snapshot]\nOnLatency=a:b a:c 1ms",
	  E(4, "OnLatency=a:b a:c 1ms: key=FIELD is missing: the field by which two events belong "
	       "together") },
	{ "[Snapshot]\nOnLatency=runqueue 1ms unit=a/b",
	  E(4, "OnLatency=runqueue 1ms unit=a/b: not the name of a unit, or a pattern of names as in "
	       "*.service") },
	{ "Event=sched:sched_waking if pid > 7\n[Snapshot]\nOnLatency=runqueue 1ms",
	  E(1, "OnLatency=runqueue 1ms: needs every sched:sched_waking, Event= has it with a filter: "
	       "leave that out") },
	{ "Clock=counter\n[Snapshot]\nOnLatency=irq 1ms",
	  E(1, "OnLatency=, here or in flyrecd.conf, cannot be combined with Clock=counter, which counts "
	       "no time") },
	{ "Event=irq:irq_handler_entry if irq == 5\n[Snapshot]\nOnLatency=irq 1ms task=a",
	  E(1, "OnLatency=irq 1ms task=a: needs every irq:irq_handler_entry, Event= has it with a "
	       "filter: leave that out") },
	/* a clock that counts no time has no last seconds */
	{ "Clock=counter\n[Snapshot]\nLast=30s",
	  E(1, "Last=, here or in flyrecd.conf, cannot be combined with Clock=counter, which counts no "
	       "time: give Last=0") },
	{ "Clock=uptime\nPersistent=yes\n[Snapshot]\nLast=1us",
	  E(1, "Last=, here or in flyrecd.conf, cannot be combined with Clock=uptime, which counts no "
	       "time: give Last=0") },
	{ "Clock=counter\n[Snapshot]\nLast=30s\nLast=0\nPostSec=2s", "" },
	{ "Clock=perf\n[Snapshot]\nLast=30s", "" },
	/* not yet */
	{ "[Trace]\nPersistent=on", "" },
	{ "[Trace]\nPersistent=no", "" },
	{ "[Storage]\nFormat=6", W(4, "unknown key 'Format' in [Storage]") },
	{ "[Snapshot]\nCoresight=1", "" },
	{ "[Snapshot]\nAnalyze=maybe", E(4, "Analyze=maybe: not a boolean, yes or no") },
	{ "[Snapshot]\nCoresight=maybe", E(4, "Coresight=maybe: not a boolean, yes or no") },
	{ "[Snapshot]\nOnPressure=memory some 150ms 1s\nOnPressure=cpu some 1s 2s", "" },
	{ "[Snapshot]\nOnEvent=oom:mark_victim\nOnEvent=-a:b if c == 1", "" },
	{ "[Snapshot]\nOnEvent=a:b if", E(4, "OnEvent=a:b if: a filter is missing after \"if\"") },
	{ "[Snapshot]\nOnEvent=a:*",
	  E(4, "OnEvent=a:*: no wildcards here; SYSTEM alone means all its events") },
	{ "[Snapshot]\nOnUnitFailed=*.service a@*.service", "" },
	{ "[Snapshot]\nOnUnitFailed=*.service a@*.service post=5s", "" },
	{ "[Snapshot]\nOnLatency=runqueue 20ms task=a post=5s", "" },
	{ "[Snapshot]\nOnLatency=runqueue 20ms post=soon",
	  E(4, "OnLatency=runqueue 20ms post=soon: post=soon must be a time span, as in post=2s") },
	{ "[Snapshot]\nOnUnitFailed=a.service post=-1",
	  E(4, "OnUnitFailed=a.service post=-1: post=-1 must be a time span, as in post=2s") },
	{ "[Snapshot]\nOnUnitFailed=post=5s",
	  E(4, "OnUnitFailed=post=5s: not the name of a unit, or a pattern of names as in "
	       "*.service") },
	{ "[Snapshot]\nOnPressure=cpu full 1s 2s unit=a.service post=1min", "" },
	{ "[Snapshot]\nOnEvent=a:b if c == 1 post=500ms\nOnEvent=c:d post=0", "" },
	{ "[Snapshot]\nOnEvent=a:b post=2000y",
	  E(4, "OnEvent=a:b post=2000y: post=2000y must be a time span, as in post=2s") },
	{ "[Snapshot]\nJournal=perhaps", E(4, "Journal=perhaps: not a boolean, yes or no") },
	{ "[Snapshot]\nOnJournal=MESSAGE_ID=fc2e22bc6ee647b6b90729ab34a250b1 + PRIORITY=2 _COMM='a b'",
	  "" },
	{ "[Snapshot]\nOnJournal=\"MESSAGE=it's * \" + X_1=\"", E(4, "OnJournal=\"MESSAGE=it's * \" + X_1=\": "
								   "a quote is not closed") },
	{ "[Snapshot]\nOnJournal=PRIORITY=2 post=5s", "" },
	{ "[Snapshot]\nOnJournal=Out of memory",
	  E(4, "OnJournal=Out of memory: \"Out\" must be FIELD=VALUE, as in PRIORITY=3; a value with "
	       "blanks is quoted, as in \"MESSAGE=Out of memory\"") },
	{ "[Snapshot]\nOnJournal=/usr/sbin/sshd",
	  E(4, "OnJournal=/usr/sbin/sshd: must be FIELD=VALUE; for a program, _EXE=/usr/sbin/sshd") },
	{ "[Snapshot]\nOnJournal=Priority=3",
	  E(4, "OnJournal=Priority=3: Priority is no field, their names are all capitals, as in "
	       "_SYSTEMD_UNIT") },
	{ "[Snapshot]\nOnJournal=__CURSOR=3",
	  E(4, "OnJournal=__CURSOR=3: __CURSOR is where an entry is, not a field of it, and cannot be "
	       "matched") },
	{ "[Snapshot]\nOnJournal=A-B=3",
	  E(4, "OnJournal=A-B=3: \"A-B\" is no field: a name is capitals, digits and '_', at most 64 of "
	       "them, and does not begin with a digit") },
	{ "[Snapshot]\nOnJournal=PRIORITY=", E(4, "OnJournal=PRIORITY=: the value after PRIORITY= is "
						  "missing") },
	{ "[Snapshot]\nOnJournal=PRIORITY=err",
	  E(4, "OnJournal=PRIORITY=err: PRIORITY is 0 to 7, as in PRIORITY=3 for errors; give one term "
	       "for each that is wanted") },
	{ "[Snapshot]\nOnJournal=MESSAGE_ID=fc2e22bc-6ee6-47b6-b907-29ab34a250b1",
	  E(4, "OnJournal=MESSAGE_ID=fc2e22bc-6ee6-47b6-b907-29ab34a250b1: MESSAGE_ID is 32 digits 0-9 "
	       "and a-f without '-', as in MESSAGE_ID=fc2e22bc6ee647b6b90729ab34a250b1") },
	{ "[Snapshot]\nOnJournal=_SYSTEMD_UNIT=*.service",
	  E(4, "OnJournal=_SYSTEMD_UNIT=*.service: _SYSTEMD_UNIT=*.service: not the name of a unit; the "
	       "journal has no patterns, only whole values") },
	{ "[Snapshot]\nOnJournal=PRIORITY=1 +",
	  E(4, "OnJournal=PRIORITY=1 +: '+' must stand between two terms") },
	{ "[Snapshot]\nOnJournal=+ PRIORITY=1",
	  E(4, "OnJournal=+ PRIORITY=1: '+' must stand between two terms") },
	{ "[Snapshot]\nOnJournal=PRIORITY=1 + + PRIORITY=2",
	  E(4, "OnJournal=PRIORITY=1 + + PRIORITY=2: '+' must stand between two terms") },
	{ "EventTrigger=a:b snapshot:1 if x > 3",
	  E(1, "EventTrigger=a:b snapshot:1 if x > 3 cannot be combined with Mode=record: the kernel "
	       "would take away what is not recorded yet") },
	{ "EventTrigger=a:b hist:keys=c:onmax(d).snapshot()",
	  E(1, "EventTrigger=a:b hist:keys=c:onmax(d).snapshot() cannot be combined with Mode=record: "
	       "the kernel would take away what is not recorded yet") },
	{ "EventTrigger=a:b snapshot\n[Session]\nMode=flight", "" },
	{ "EventTrigger=a:b snapshots", "" },
	/* all of them, each at its line; a continued value at its key's */
	{ "Pid=x\nWibble=1\n\nClock=\\\n # why\n y\nPid=0\n",
	  E(3, "Pid=x: not a process number")
	  W(4, "unknown key 'Wibble' in [Trace]")
	  E(6, "Clock=y: must be one of local, global, counter, uptime, perf, mono, mono_raw, "
	       "boot, tai, x86-tsc, ppc-tb, s390-tod")
	  E(9, "Pid=0: out of range, must be 1 to 4194303") },
};
/* clang-format on */

static void test_faults(void **state)
{
	struct config_dir *dir = *state;

	/* beside it a session without fault, which stays */
	config_dir_write(dir, "etc/sessions.d/good.conf", TRACES);
	for (size_t i = 0; i < ARRAY_SIZE(fault_cases); i++) {
		_cleanup_free_ char *text = NULL;
		unsigned n = 0;

		assert_true(asprintf(&text, TRACES "%s\n", fault_cases[i].text) > 0);
		config_dir_write(dir, "etc/sessions.d/x.conf", text);
		assert_int_equal(config_dir_load(dir), 0);
		assert_string_equal(dir->complaints, fault_cases[i].complaints);
		for (const char *p = dir->complaints; (p = strchr(p, '\n')); p++)
			n++;
		assert_int_equal(dir->n_faults, n);
		assert_non_null(config_find(dir->config, "good"));
		/* an error leaves the session out, a warning does not */
		if (strncmp(dir->complaints, "e ", 2) == 0)
			assert_null(config_find(dir->config, "x"));
		else
			assert_non_null(config_find(dir->config, "x"));
	}
}

/* One that flyrecd.conf sets counts as one's own */
static void test_last_of_all(void **state)
{
	struct config_dir *dir = *state;

	config_dir_write(dir, "etc/flyrecd.conf", "[Snapshot]\nLast=30s\n");
	config_dir_write(dir, "etc/sessions.d/good.conf",
			 TRACES "Clock=x86-tsc\n[Snapshot]\nLast=0\n");
	config_dir_write(dir, "etc/sessions.d/x.conf", TRACES "Clock=x86-tsc\n");
	assert_int_equal(config_dir_load(dir), 0);
	assert_string_equal(
		dir->complaints,
		E(1, "Last=, here or in flyrecd.conf, cannot be combined with Clock=x86-tsc, "
		     "which counts no time: give Last=0"));
	assert_non_null(config_find(dir->config, "good"));
	assert_null(config_find(dir->config, "x"));
}

static void test_traces_nothing(void **state)
{
	static const char *const nothing[] = {"",
					      "[Trace]\n",
					      "[Trace]\nClock=boot\n",
					      "[Trace]\nSyntheticEvent=a u64 b\n",
					      "[Trace]\nEvent=a:b\nEvent=\n",
					      "[Trace]\nTracer=nop\n"};
	static const char *const something[] = {
		"[Trace]\nEvent=a:b\n",	   "[Trace]\nTracer=function\n",
		"[Trace]\nKprobe=p:a b\n", "[Trace]\nUprobe=p:a /b:1\n",
		"[Trace]\nUsdt=/b:p:x\n",  "[Trace]\nEventTrigger=a:b stacktrace\n"};
	struct config_dir *dir = *state;

	for (size_t i = 0; i < ARRAY_SIZE(nothing); i++) {
		config_dir_write(dir, "etc/sessions.d/x.conf", nothing[i]);
		assert_int_equal(config_dir_load(dir), 0);
		assert_string_equal(
			dir->complaints,
			E(1, "this session traces nothing: [Trace] needs an Event=, "
			     "EventTrigger=, Tracer=, Kprobe=, Uprobe=, Usdt= or Option="));
		assert_null(config_find(dir->config, "x"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(something); i++)
		(void)config_dir_load_session(dir, something[i]);
}

/* A filter as long as the kernel takes is fine, one byte more is not */
static void test_long_filter(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_free_ char *filter = malloc(page + 1), *text = NULL, *longer = NULL;
	struct config_dir *dir = *state;

	memset(filter, 'x', page);
	filter[page] = '\0';
	assert_true(asprintf(&text, "[Trace]\nEvent=a:b if %s\n", filter + 1) > 0);
	assert_int_equal(strlen(config_dir_load_session(dir, text)->trace.events[0].filter),
			 page - 1);
	assert_true(asprintf(&longer, "[Trace]\nEvent=a:b if %s\n", filter) > 0);
	config_dir_write(dir, "etc/sessions.d/x.conf", longer);
	assert_int_equal(config_dir_load(dir), 0);
	assert_null(config_find(dir->config, "x"));
	assert_int_equal(dir->n_faults, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_faults, config_dir_setup, config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_last_of_all, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_traces_nothing, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_long_filter, config_dir_setup,
						config_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

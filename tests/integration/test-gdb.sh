#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# flyrecctl export --format=gdb-tfile: what gdb shows of a recorded uprobe is what trace-cmd report
# prints, and what gdb and gdbserver collect from the same program themselves.
# time-limit: 300
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command gcc gdb gdbserver nm setarch trace-cmd
need_format gdb
[ -e "$TRACEFS/uprobe_events" ] || skip "this kernel has no uprobes"
cd "$T"
gcc -g -O1 -fno-omit-frame-pointer -fpie -pie -o demo "$SRC/tests/integration/gdb-demo.c"
leaf=0x$(nm demo | awk '$3 == "leaf" { print $1 }')
# the same stack wherever it runs, so that two runs can be compared
run=(setarch -R env -i PATH=/bin "$T/demo")
"${run[@]}" 1 >/dev/null || skip "cannot run a program without address randomisation"

gdb_batch() {
	gdb -nx -batch -ex 'set width 0' -ex 'set height 0' "$@" 2>gdb.err || fail "gdb: $(cat gdb.err)"
}

export_tfile() {
	"$FLYRECCTL" export --format=gdb-tfile "$@" 2>export.err || fail "export $*: $(cat export.err)"
}

# record NAME COUNT [SNAPSHOT]: the session's segment as NAME.dat; before that a snapshot
record() {
	local segments
	flyrecd_start
	"${run[@]}" "$2" >/dev/null
	[ -z "${3:-}" ] || ctl snapshot gdb "--output=$3" >/dev/null ||
		fail "snapshot"
	flyrecd_stop
	segments=("$STATE/gdb/record"/2*.dat)
	mv "${segments[-1]}" "$1.dat"
	rm -f "$STATE"/gdb/record/2*.dat
}

session gdb <<-EOF
	[Trace]
	Uprobe=p:leaf $T/demo:$leaf regs=all stack=2048 mem=%di:24 id=+0(%di):s32 name=+16(%di):string k=%si:s64
	BufferSize=16M
	SubBufferSize=16K
EOF
record small 3 snapshot.dat
verify small.dat

echo "== what gdb shows"
export_tfile -o small.tf small.dat
[ -s small.tf.gdb ] || fail "no command file"
for i in 0 1 2 3 4; do
	echo "tfind $i"
	# shellcheck disable=SC2016 # for gdb
	printf '%s\n' 'bt' 'print *r' 'print k' 'up' 'info locals' 'up' 'info locals' 'down' 'down'
done >look.gdb
gdb_batch -x small.tf.gdb -ex tstatus -ex 'info tracepoints' -x look.gdb >shown
grep -q '^Collected 5 trace frames' shown || fail "tstatus: $(cat shown)"
grep -q 'tracepoint already hit 5 times' shown || fail "info tracepoints"
for level in '#0 *leaf (r=' '#1 .* in middle (r=' '#2 .* in main ('; do
	[ "$(grep -c "^$level" shown)" -ge 5 ] || fail "bt: no $level: $(cat shown)"
done
[ "$(grep -c 'id = 3, price = 1.25, name = "alpha' shown)" -ge 3 ] || fail "print *r: $(cat shown)"
[ "$(grep -c '^second = {id = 7, price = 2.5, name = "bravo' shown)" = 5 ] || fail "info locals of main"
[ "$(grep -c '^total = ' shown)" = 5 ] || fail "info locals of middle"
grep '^k = ' shown | tr -d 'k= ' | tr -d '\n' | grep -qx 01201 || fail "info locals: k"
# the program's own sum: what middle() has added up before each call
grep '^total = ' shown | sed 's/total = //' | tr '\n' ' ' | grep -qx '0 0 3 0 9 ' || fail "total"

export_tfile -o snapshot.tf snapshot.dat
sed 's/snapshot.tf/small.tf/' snapshot.tf.gdb | cmp - small.tf.gdb || fail "a snapshot without the probes"
cmp snapshot.tf small.tf || fail "of a snapshot came something else"

echo "== two processes at different addresses"
cp small.dat one.dat
flyrecd_start
./demo 2 >/dev/null
setarch -R ./demo 2 >/dev/null &
fixed=$!
wait "$fixed"
flyrecd_stop
segments=("$STATE/gdb/record"/2*.dat)
export_tfile -o two.tf "${segments[-1]}"
rm -f "$STATE"/gdb/record/2*.dat
if grep -q 'at several addresses' export.err; then # they may be the same by chance
	gdb_batch -x two.tf.gdb -ex 'info tracepoints' >two.shown
	grep -q '^2 .*tracepoint' two.shown || fail "two tracepoints: $(cat two.shown)"
fi

echo "== variables and registers against trace-cmd report"
cat >values.gdb <<-'END'
	python
	for i in range(5):
	    gdb.execute("tfind %d" % i, to_string=True)
	    regs = ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"]
	    line = ["%s=0x%x" % (r, int(gdb.parse_and_eval("(unsigned long)$r" + r))) for r in regs]
	    line += ["r%d=0x%x" % (r, int(gdb.parse_and_eval("(unsigned long)$r%d" % r))) for r in range(8, 16)]
	    line += ["ip=0x%x" % int(gdb.parse_and_eval("(unsigned long)$rip"))]
	    line += ["%s=0x%x" % (n, int(gdb.parse_and_eval("(unsigned int)$" + g))) for n, g in
	        [("flags", "eflags"), ("cs", "cs"), ("ss", "ss")]]
	    var = lambda name: int(gdb.parse_and_eval("$" + name))
	    text = lambda name: gdb.parse_and_eval("(char *)$" + name).string()
	    sp = gdb.parse_and_eval("(unsigned long *)$sp")
	    line += ["mem_sp_0={%s}" % ",".join("0x%x" % int(sp[n]) for n in range(64))]
	    line += ["id=%d" % var("id"), 'name="%s"' % text("name"), "k=%d" % var("k")]
	    ts = (var("ts") + 500) // 1000
	    print("%s-%d [%03d] %d.%06d: %s" % (text("comm"), var("pid"), var("cpu"), ts // 1000000, ts % 1000000, " ".join(line)))
	end
END
gdb_batch -x small.tf.gdb -x values.gdb | grep 'ax=0x' >gdb.values
trace-cmd report small.dat | grep ': leaf:' |
	sed -E 's/^ *//; s/ +\[/ [/; s/\] +/] /; s/: leaf: +\([0-9a-f]+\)/:/; s/ mem_sp_512=.* id=/ id=/' |
	# libtraceevent prints these arrays as zeros: they are compared with the JSON below
	sed -E 's/ mem_sp_0=\{[^}]*\}//' >report.values
sed -E 's/ mem_sp_0=\{[^}]*\}//' gdb.values >gdb.plain
sed -E 's/ id=[^ ]* name=.*//' report.values >report.regs
sed -E 's/ id=[^ ]* name=.*//' gdb.plain >gdb.regs
cmp report.regs gdb.regs || fail "registers: $(diff report.regs gdb.regs | head -n 4)"
trace-cmd report small.dat | grep ': leaf:' | grep -oE 'id=-?[0-9]+ name="[a-z]*" k=-?[0-9]+' >report.vars
grep -oE 'id=-?[0-9]+ name="[a-z]*" k=-?[0-9]+' gdb.values >gdb.vars
cmp report.vars gdb.vars || fail "variables: $(diff report.vars gdb.vars)"
[ "$(wc -l <gdb.vars)" = 5 ] || fail "variables of $(wc -l <gdb.vars) frames"
"$FLYRECCTL" export --format=json small.dat >small.json
python3 - <<-'END' || fail "memory is not what the recording has"
	import json, re
	lines = [json.loads(l) for l in open("small.json")]
	shown = [re.search(r"mem_sp_0=\{([^}]*)\}", l).group(1) for l in open("gdb.values")]
	assert len(lines) == len(shown) == 5
	for event, text in zip(lines, shown):
	    fields = event.get("fields", event)
	    data = bytes(fields["mem_sp_0"]) # the JSON has the bytes, as libtraceevent takes it
	    words = [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data), 8)]
	    assert [int(w, 16) for w in text.split(",")] == words, (text, words)
	    assert len(words) == 64 and any(words)
END

echo "== the same program under gdbserver"
cat >live.gdb <<-END
	set remotetimeout 20
	set sysroot
	target remote | exec gdbserver --once --wrapper env -i PATH=/bin -- - $T/demo 3
	break main
	continue
	tvariable \$trace_timestamp
	trace leaf
	actions
	collect \$regs
	collect \$trace_timestamp
	collect *r
	collect *(unsigned char *)\$rsp@512
	end
	tstart
	tbreak exit
	continue
	tstop
	tsave live.tf
	kill
END
gdb_batch -x live.gdb "$T/demo" >live.log
[ -s live.tf ] || fail "gdbserver: $(cat live.log gdb.err)"
base=$(awk '/symbol-file/ { print $3 }' small.tf.gdb)
printf '%s\n' "exec-file $T/demo" "symbol-file -o $base $T/demo" "target tfile live.tf" >live.tf.gdb
# shellcheck disable=SC2016 # for gdb
for i in 0 1 2 3 4; do
	printf '%s\n' "tfind $i" 'info registers rax rbx rcx rdx rsi rdi rbp rsp' \
		'info registers r8 r9 r10 r11 r12 r13 r14 r15 rip eflags cs ss' \
		'print *r' 'print k' 'bt' 'x/16gx $sp' 'up' 'info locals' 'up' 'info locals'
done >compare.gdb
for f in small live; do
	gdb_batch -x "$f.tf.gdb" -x compare.gdb | grep -v -i tracepoint >"$f.shown"
	[ "$(grep -c '^rip ' "$f.shown")" = 5 ] || fail "$f: $(cat "$f.shown" gdb.err)"
done
cmp small.shown live.shown || fail "gdbserver's: $(diff small.shown live.shown | head -n 10)"

echo "== tracepoints that are no probes"
session gdb <<-EOF
	[Trace]
	Event=sched:sched_process_exec
	Event=sched:sched_wakeup_new
EOF
record plain 1
export_tfile -o plain.tf plain.dat
cat >plain.gdb <<-'END'
	python
	n = 0
	while n < 400:
	    if "Found trace frame" not in gdb.execute("tfind %d" % n, to_string=True):
	        break
	    n += 1
	    value = lambda name: gdb.parse_and_eval("$" + name)
	    if value("old_pid").type.code == gdb.TYPE_CODE_VOID:
	        continue  # another kind of event
	    name = gdb.parse_and_eval("(char *)$filename").string()
	    print("filename=%s pid=%d old_pid=%d" % (name, int(value("pid_")), int(value("old_pid"))))
	end
END
gdb_batch -x plain.tf.gdb -x plain.gdb >plain.shown
trace-cmd report plain.dat | grep -o 'filename=.*' | sed -n 1,200p >plain.report
[ -s plain.report ] || fail "no exec was recorded"
grep '^filename=' plain.shown | head -n 100 >plain.execs
[ -s plain.execs ] || fail "gdb has no exec"
head -n "$(wc -l <plain.execs)" plain.report | cmp - plain.execs ||
	fail "fields of a tracepoint: $(diff plain.execs plain.report | head -n 5)"
gdb_batch -x plain.tf.gdb -ex 'tfind 0' -ex 'info registers' >plain.regs
grep -q '^rsp *<unavailable>' plain.regs || fail "registers out of nowhere: $(cat plain.regs)"

echo "== limits and filters"
session gdb <<-EOF
	[Trace]
	Uprobe=p:leaf $T/demo:$leaf regs=all stack=512
	BufferSize=128M
	SubBufferSize=16K
EOF
record large 100000
export_tfile -o large.tf large.dat
grep -q 'only the first 20000 events' export.err || fail "max-frames: $(cat export.err)"
prints '^Collected 20000 ' gdb_batch -x large.tf.gdb -ex tstatus || fail "20000 frames"
begin=${EPOCHREALTIME/./}
export_tfile --max-frames=0 -o large.tf large.dat
took=$((${EPOCHREALTIME/./} - begin))
echo "100002 frames, $(stat -c %s large.tf) bytes: $((took / 1000)) ms"
[ "$took" -lt 5000000 ] || fail "export took $took us" # goal: a second; this machine may be busy
prints '^Collected 100002 ' gdb_batch -x large.tf.gdb -ex tstatus || fail "all frames"
export_tfile --max-frames=7 --event='*:leaf' -o seven.tf large.dat
prints '^Collected 7 ' gdb_batch -x seven.tf.gdb -ex tstatus || fail "7 frames"
export_tfile --pid=1 -o none.tf large.dat
prints '^Collected 0 ' gdb_batch -x none.tf.gdb -ex tstatus || fail "no frames"

echo "== the examples of flyrec-gdb(7)"
mkdir bin
printf '#!/bin/sh\nexec "%s" "$@"\n' "$FLYRECCTL" >bin/flyrecctl
printf '#!/bin/sh\nexec "%s" -nx "$@"\n' "$(command -v gdb)" >bin/gdb
chmod +x bin/*
cp small.dat demo.dat
n=0
while read -r line; do
	PATH=$T/bin:$PATH bash -o pipefail -c "$line" >example.out 2>example.err </dev/null ||
		fail "flyrec-gdb(7): $line: $(cat example.err)"
	! grep -i -e error -e cannot example.err || fail "flyrec-gdb(7): $line: $(cat example.err)"
	[ -s example.out ] || case $line in *' -o '*) ;; *) fail "flyrec-gdb(7): $line: nothing" ;; esac
	n=$((n + 1))
done < <(sed -n -e '/^\.EX/,/^\.EE/{s/\\-/-/g;/^flyrecctl \|^gdb \|^trace-cmd /p}' "$SRC/man/flyrec-gdb.7" | sed "s,/tmp/,$T/,g")
[ "$n" -ge 8 ] || fail "only $n examples in flyrec-gdb(7)"
# the session that the page shows, with this program
sed -n '/^\[Trace\]/,/^\.EE/{/^\.EE/d;p}' "$SRC/man/flyrec-gdb.7" |
	sed "s,/usr/bin/demo,$T/demo," | session gdb
"$FLYRECD" "--config-dir=$CONFIG" --check-config || fail "the session of flyrec-gdb(7)"

echo "== what goes wrong"
refused() {
	local want=$1 text=$2 status=0
	shift 2
	"$FLYRECCTL" export --format=gdb-tfile "$@" 2>err || status=$?
	[ "$status" = "$want" ] || fail "$*: status $status: $(cat err)"
	grep -q -e "$text" err || fail "$*: $(cat err)"
}
refused 2 'max-frames' --max-frames=many -o x.tf small.dat
refused 2 'output= is missing' small.dat
refused 1 'no format of an event' --event=no:such -o x.tf small.dat
refused 1 'cannot create' -o missing/x.tf small.dat
head -c 100000 small.dat >cut.dat
refused 1 'cut.dat' -o x.tf cut.dat
mkdir x.tf.gdb
refused 1 'x.tf.gdb' -o x.tf small.dat
rmdir x.tf.gdb
left=(x.tf* .x.tf*)
[ ${#left[@]} = 0 ] || fail "left: ${left[*]}"
session gdb <<-EOF
	[Trace]
	Uprobe=p:leaf $T/demo:$leaf regs=all stack=64K
EOF
! "$FLYRECD" "--config-dir=$CONFIG" --check-config 2>err || fail "stack=64K"
grep -q 'gdb.conf:2: .*stack= and mem= can be' err || fail "check-config: $(cat err)"

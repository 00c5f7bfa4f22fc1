#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 120
# beside: yes
#
# CoreSight trace beside snapshots, on a machine that tests/tools/coresight-tree makes out of
# tests/fixtures/arm-snapshot: by export, by the daemon, and what retention does with it; whole or
# not at all. The examples of flyrec-coresight(7) work.
. "$(dirname "$0")/lib.sh"
need_format arm
FIXTURE=$SRC/tests/fixtures/arm-snapshot
TREE=$T/tree
"$SRC/tests/tools/coresight-tree" "$FIXTURE" "$TREE"
DEVICES=$TREE/sys/bus/coresight/devices

export_tree() { # DIR [ARGUMENT...]
	local dir=$1
	shift
	"$FLYRECCTL" export --format=arm-snapshot "--sysroot=$TREE" -o "$dir" "$@" >"$T/out" 2>"$T/err"
}

refused() { # STATUS TEXT DIR [ARGUMENT...]: with one line that says so, and nothing left behind
	local status=0 expected=$1 text=$2
	shift 2
	export_tree "$@" || status=$?
	[ "$status" = "$expected" ] || fail "status $status, not $expected: $(cat "$T/err")"
	grep -qF -- "$text" "$T/err" || fail "not \"$text\" but: $(cat "$T/err")"
	[ "$(wc -l <"$T/err")" = 1 ] || fail "more than a line: $(cat "$T/err")"
	nothing_left
}

nothing_left() {
	local left=("$T"/.*.new "$T"/refused*)
	[ ${#left[@]} = 0 ] || fail "left behind: ${left[*]}"
}

# --- export
export_tree "$T/whole" || fail "$(cat "$T/err")"
[ ! -s "$T/err" ] || fail "left out: $(cat "$T/err")"
verify "$T/whole"
verify "$T/whole/snapshot.ini"
cmp "$T/whole/tmc_etb0.bin" "$FIXTURE/cores.bin"
cmp "$T/whole/tmc_etb1.bin" "$FIXTURE/stm.bin"
cmp "$T/whole/kernel.bin" "$FIXTURE/kernel_dump.bin"
grep -qx 'type=Cortex-A57' "$T/whole/cpu_1.ini" || fail "cpu_1.ini: $(cat "$T/whole/cpu_1.ini")"
grep -q '^TRCIDR1(0x079)=0x4100F403$' "$T/whole/etm0.ini" || fail "etm0.ini: $(cat "$T/whole/etm0.ini")"
"$FLYRECCTL" --json verify "$T/whole" >"$T/json"
grep -qF '"ok":true,"version":1,"errors":[],"cpus":[]' "$T/json" || fail "$(cat "$T/json")"
echo bytes >"$T/text.bin"
export_tree "$T/memory" --memory=0x400000="$T/text.bin" --memory=8192="$T/text.bin" || fail "$(cat "$T/err")"
verify "$T/memory"
grep -A3 '^\[dump2\]' "$T/memory/cpu_0.ini" | tr '\n' ' ' |
	grep -q 'file=memory1.bin address=0x400000 length=0x6' || fail "$(cat "$T/memory/cpu_0.ini")"

refused 1 "$T/whole: cannot create: File exists" "$T/whole"
refused 1 "/none/x: cannot create: No such file" "$T/none/x"
refused 1 "text.bin: offset 0x0: too short for a trace.dat" "$T/refused" "$T/text.bin"
refused 1 "none.bin: cannot open: No such file" "$T/refused" --memory="1=$T/none.bin"
refused 1 "$TREE: is no regular file" "$T/refused" --memory="1=$TREE"
refused 2 'ADDRESS=FILE is wanted: "x=y"' "$T/refused" --memory=x=y
refused 2 "takes no such option" "$T/refused" --cpu=0
refused 1 "/none: cannot open: No such file" "$T/refused" "--sysroot=$T/none"
mkdir "$T/bare"
refused 1 "no CoreSight here: there is no /sys/bus/coresight/devices" "$T/refused" "--sysroot=$T/bare"
for id in 0 1; do
	echo 0 >"$DEVICES/tmc_etb$id/enable_sink"
done
refused 1 "no sink is enabled" "$T/refused"
for id in 0 1; do
	echo 1 >"$DEVICES/tmc_etb$id/enable_sink"
done

# one sink is empty: the other one is saved, and that is said
: >"$TREE/dev/tmc_etb1"
export_tree "$T/half" || fail "$(cat "$T/err")"
grep -q 'tmc_etb1: empty' "$T/err" || fail "$(cat "$T/err")"
verify "$T/half"
cp "$FIXTURE/stm.bin" "$TREE/dev/tmc_etb1"

# a disk that is full
if [ "$(id -u)" = 0 ]; then
	mkfs_mount tmpfs 64k "$T/small"
	head -c 1M /dev/zero >"$T/large"
	mv "$TREE/dev/tmc_etb0" "$T/etb0"
	cp "$T/large" "$TREE/dev/tmc_etb0"
	refused 1 "tmc_etb0.bin: cannot write: No space left on device" "$T/small/x"
	left=("$T/small"/.[!.]* "$T/small"/*)
	[ ${#left[@]} = 0 ] || fail "left on the full disk: ${left[*]}"
	mv "$T/etb0" "$TREE/dev/tmc_etb0"
fi

# verify: a directory with both kinds, and half-made ones
mkdir -p "$T/mixed/.half.new"
cp -r "$T/whole" "$T/mixed/bad"
sed -i 's/ETM4.0/ETM9/' "$T/mixed/bad/etm0.ini"
cp "$T/whole/snapshot.ini" "$T/mixed/.half.new"
cp "$T/text.bin" "$T/mixed/x.dat"
! "$FLYRECCTL" verify "$T/mixed" >"$T/out" 2>"$T/err" || fail "verify finds no fault"
grep -q "2 of 2 files are faulty" "$T/err" || fail "$(cat "$T/err")"
grep -qF "$T/mixed/bad/etm0.ini:4: unknown type of a trace source: ETM9" "$T/out" || fail "$(cat "$T/out")"
grep -q '/x.dat: ' "$T/out" || fail "x.dat is not checked: $(cat "$T/out")"
# text files outside of it are not read
cp -r "$T/whole" "$T/leading"
ln -sf /etc/passwd "$T/leading/cpu_0.ini"
sed -i 's,etm1.ini,../../../../../etc/passwd,' "$T/leading/snapshot.ini"
"$FLYRECCTL" verify "$T/leading" >"$T/out" 2>&1 || true
! grep -q root: "$T/out" || fail "verify tells what is in other files: $(cat "$T/out")"
grep -q "file cpu_0.ini cannot be read" "$T/out" || fail "$(cat "$T/out")"

# --- the daemon
need_tracefs
session sched <<-EOF
	[Trace]
	Event=sched:sched_switch
	[Storage]
	FlushSec=100ms
	KeepFree=0
	[Snapshot]
	Coresight=yes
	MaxFiles=4
EOF
session other <<-EOF
	[Trace]
	Event=sched:sched_switch
	[Storage]
	FlushSec=100ms
	KeepFree=0
EOF
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$T/no-bus
FLYREC_SYSROOT=$TREE flyrecd_start
sleep 0.5

path=$(ctl snapshot sched) || fail "no snapshot"
dir=${path%.dat}.coresight
[ -d "$dir" ] || fail "no $dir: $(tail -n 5 "$FLYRECD_LOG")"
verify "$STATE/sched/snapshot"
grep -qx "file=../$(basename "$path")" "$dir/snapshot.ini" || fail "$(cat "$dir/snapshot.ini")"
cmp "$dir/tmc_etb0.bin" "$FIXTURE/cores.bin"
[ "$(stat -c %a "$dir")" = 750 ] || fail "mode of $dir: $(stat -c %a "$dir")"

# asked for, where the configuration does not
path=$(ctl snapshot other) || fail "no snapshot"
[ ! -e "${path%.dat}.coresight" ] || fail "CoreSight without being asked"
ctl snapshot other --coresight >"$T/out" || fail "snapshot --coresight"
[ "$(sed -n 2p "$T/out")" = "$(sed -n '1s/\.dat$/.coresight/p' "$T/out")" ] || fail "$(cat "$T/out")"
verify "$(sed -n 2p "$T/out")"
ctl --json snapshot other --coresight >"$T/out" || fail "snapshot --coresight --json"
grep -q '"coresight":".*\.coresight"' "$T/out" || fail "$(cat "$T/out")"
ctl snapshot other "--coresight=$T/both" "--sysroot=$TREE" >"$T/out" 2>"$T/err" || fail "$(cat "$T/err")"
verify "$T/both"
trace-cmd report "$T/both/trace.dat" >"$T/report" 2>/dev/null
grep -q sched_switch "$T/report" || fail "no events in $T/both/trace.dat"
status=0
ctl snapshot other --sysroot=/ >/dev/null 2>"$T/err" || status=$?
[ "$status" = 2 ] || fail "snapshot --sysroot= alone: $status"
! ctl snapshot none "--coresight=$T/refused" "--sysroot=$TREE" >/dev/null 2>"$T/err" || fail "session none"
nothing_left

# retention: with its snapshot
for _ in 1 2 3 4 5; do
	ctl snapshot sched >/dev/null
done
dats=("$STATE"/sched/snapshot/*.dat) dirs=("$STATE"/sched/snapshot/*.coresight)
[ "${#dats[@]} ${#dirs[@]}" = "4 4" ] ||
	fail "${#dats[@]} snapshots, ${#dirs[@]} of CoreSight"
for dir in "${dirs[@]}"; do
	[ -e "${dir%.coresight}.dat" ] || fail "$dir is left alone"
done
verify "$STATE/sched/snapshot"

# the sinks go away: snapshots are made all the same, said once; asked for, it is a failure
mv "$TREE/sys/bus/coresight" "$T/bus"
log_mark
ctl snapshot sched >"$T/out" || fail "no snapshot without CoreSight"
must_log "snapshot without CoreSight: no CoreSight here"
ctl snapshot sched >/dev/null || fail "no snapshot without CoreSight"
logged_once "snapshot without CoreSight" || fail "not said once"
! ctl snapshot other --coresight >"$T/out" 2>"$T/err" || fail "--coresight without CoreSight"
grep -q '\.dat$' "$T/out" || fail "no path of the snapshot: $(cat "$T/out")"
grep -q 'without CoreSight: no CoreSight here' "$T/err" || fail "$(cat "$T/err")"
mv "$T/bus" "$TREE/sys/bus/coresight"

# what a kill left half-made is gone at the next start
flyrecd_stop
half=$STATE/sched/snapshot/.20260101T000000.000000Z-control.coresight.1a2.new
mkdir "$half"
touch "$half/trace.ini"
FLYREC_SYSROOT=$TREE flyrecd_start
[ ! -e "$half" ] || fail "left from an earlier run: $half"
sleep 0.5

# --- the page's examples
mkdir "$T/bin"
cat >"$T/bin/flyrecctl" <<-EOF
	#!/bin/sh
	case "\$*" in
	*--sysroot*) ;;
	*--format=arm-snapshot* | *--coresight=*) set -- "\$@" "--sysroot=$TREE" ;;
	esac
	exec "$FLYRECCTL" "--runtime-dir=$RUNTIME" "\$@"
EOF
chmod +x "$T/bin/flyrecctl"
rm -rf "$T/both"
cp -r "$TREE" "$T/board"
ctl cat sched current.dat -o "$T/now.dat"
sed -n -e '/^\.EX/,/^\.EE/{/^\./d;s/\\-/-/g;p}' "$SRC/man/flyrec-coresight.7" |
	sed -e "s,/tmp/,$T/,g" -e "s,/sys/bus/,$TREE&,g" -e 's/tmc_etr0/tmc_etb0/' >"$T/examples"
n=0
while read -r line; do
	case $line in
	flyrecctl\ * | echo\ *) ;;
	trc_pkt_lister\ *) command -v trc_pkt_lister >/dev/null || continue ;;
	*) continue ;;
	esac
	PATH=$T/bin:$PATH bash -o pipefail -c "$line" >"$T/out" 2>"$T/err" </dev/null ||
		fail "flyrec-coresight(7): $line: $(cat "$T/err")"
	n=$((n + 1))
done <"$T/examples"
[ $n -ge 8 ] || fail "only $n examples in flyrec-coresight(7)"
verify "$T/hang" "$T/both" "$T/saved"
! command -v trc_pkt_lister >/dev/null || grep -q '^Idx' "$T/hang.txt" || fail "nothing decoded"
flyrecd_stop
no_damage

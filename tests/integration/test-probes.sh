#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# Uprobe= and Usdt= by name: events arrive with the values that the program had, files say which build
# it was, also after the program has been replaced, and what is wrong is told with what would be right.
# time-limit: 120
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command gcc jq readelf strip
[ -e "$TRACEFS/uprobe_events" ] || skip "this kernel has no uprobes"
case $(uname -m) in
x86_64) first=%di second=%si ;;
aarch64) first=%x0 second=%x1 ;;
*) skip "the registers of this machine are not known here" ;;
esac
cp "$TOOLS/probed" "$T/probed"
id=$(readelf -n "$T/probed" | awk '/Build ID:/ { print $3 }')
[ -n "$id" ] || fail "no build ID"

# events EVENT FIELD...: values of its fields in the files of session "named", an event a line
events() {
	local event=$1
	shift
	"$FLYRECCTL" export --format=json -o - "$STATE/named/record/"2*.dat |
		jq -r --arg event "$event" --args 'select(.event == $event) |
			[.fields[$ARGS.positional[]]] | map(tostring) | join(" ")' "$@"
}
expect() { # WHAT, then on standard input what it is
	events "${@:2}" >"$T/got"
	cat >"$T/wanted"
	cmp -s "$T/got" "$T/wanted" || fail "$1: $(diff "$T/wanted" "$T/got" | head -n 5)"
}
named() {
	session named <<-END
		[Trace]
		$1
	END
}

echo "== functions and USDT probes"
named "Uprobe=p:add $T/probed:probed_add a=$first:s32 b=$second:s32
Uprobe=r:added $T/probed:probed_add sum=\$retval:s32
Uprobe=p:later $T/probed:probed_add+0x0
Usdt=$T/probed:demo:request number=\$arg1 bytes=\$arg2 name=+0(\$arg3):string
Usdt=p:both $T/probed:demo:twice
Usdt=$T/probed:demo:constant"
"$FLYRECD" "--config-dir=$CONFIG" --check-config || fail "--check-config"
flyrecd_start
[ "$("$T/probed" 3)" = 3 ] || fail "the semaphore of demo:request is down"
ctl verify "$STATE/named/record/current.dat" >"$T/verify"
grep -q ": program $T/probed, build ID $id$" "$T/verify" || fail "verify: $(cat "$T/verify")"
flyrecd_stop
[ "$("$T/probed" 3)" = 0 ] || fail "the semaphore of demo:request is still up"
verify "$STATE/named/record/"2*.dat
printf '%s\n' '0 100' '1 100' '2 100' | expect arguments add a b
printf '%s\n' 100 101 102 | expect 'a return value' added sum
printf '%s\n' '-1 4294967296 alpha' '0 4294967297 bravo' '1 4294967298 charlie' |
	expect 'a USDT probe' demo_request number bytes name
printf '%s\n' 0 0 1 1 2 2 | expect 'a USDT probe at two places' both arg1
printf '%s\n' -5 -5 -5 | expect 'a constant' demo_constant arg1
"$FLYRECCTL" verify --json "$STATE/named/record/"2*.dat >"$T/json" || fail "verify --json"
jq -e --arg id "$id" --arg path "$T/probed" \
	'.files[0].programs == [{path: $path, build_id: $id}]' "$T/json" >/dev/null ||
	fail "verify --json: $(cat "$T/json")"
rm -rf "$STATE/named"

if [ "$(uname -m)" = x86_64 ]; then
	echo "== variables"
	named "Usdt=$T/probed:demo:variable"
	flyrecd_start
	"$T/probed" 2 >/dev/null
	flyrecd_stop
	printf '%s\n' '-7 33' '-7 33' | expect variables demo_variable arg1 arg2
	rm -rf "$STATE/named"
fi

echo "== a program at fixed addresses"
gcc -std=gnu11 -O1 -no-pie -o "$T/fixed" "$SRC/tests/tools/probed.c"
readelf -h "$T/fixed" | grep -q 'Type: *EXEC' || fail "not at fixed addresses"
named "Uprobe=p:add $T/fixed:probed_add a=$first:s32 b=$second:s32
Usdt=$T/fixed:demo:request number=\$arg1 bytes=\$arg2 name=+0(\$arg3):string"
flyrecd_start
[ "$("$T/fixed" 2)" = 2 ] || fail "the semaphore of demo:request is down"
flyrecd_stop
printf '%s\n' '0 100' '1 100' | expect arguments add a b
printf '%s\n' '-1 4294967296 alpha' '0 4294967297 bravo' | expect 'a USDT probe' demo_request number bytes name
rm -rf "$STATE/named"

echo "== a stripped library"
libc=$(ldd "$T/probed" | awk '/libc.so/ { print $3 }')
named "Uprobe=p:left $libc:exit status=$first:s32"
flyrecd_start
"$T/probed" 2 >/dev/null
flyrecd_stop
"$FLYRECCTL" export --format=text -o - "$STATE/named/record/"2*.dat >"$T/text"
[ "$(grep -cE '^ *probed-[0-9]+ .* left: .* status=0$' "$T/text")" = 1 ] ||
	fail "exit: $(head -n 3 "$T/text")"
rm -rf "$STATE/named"

echo "== the program is replaced while the daemon is away"
named "Uprobe=p:add $T/probed:probed_add a=$first:s32"
flyrecd_start
"$T/probed" 1 >/dev/null
flyrecd_hand_over
ln "$T/probed" "$T/old"
cp "$TOOLS/probed" "$T/probed.new"
note=$(readelf -S -W "$T/probed" | sed -nE 's/^.* \.note\.gnu\.build-id +NOTE +[0-9a-f]+ ([0-9a-f]+) .*/\1/p')
printf x | dd of="$T/probed.new" bs=1 conv=notrunc status=none seek=$((16#$note + 16))
mv "$T/probed.new" "$T/probed"
[ "$(readelf -n "$T/probed" | awk '/Build ID:/ { print $3 }')" != "$id" ] || fail "the same build ID"
flyrecd_start
ctl rotate named >/dev/null || fail "rotate"
"$T/old" 1 >/dev/null
flyrecd_stop
files=("$STATE/named/record/"2*.dat)
[ ${#files[@]} = 2 ] || fail "not two files: ${files[*]}"
for file in "${files[@]}"; do
	prints ": program $T/probed, build ID $id$" "$FLYRECCTL" verify "$file" ||
		fail "another build than was probed: $(cat "$T/printed")"
done
rm -rf "$STATE/named"
cp "$TOOLS/probed" "$T/probed"

echo "== marks of applications"
printf '[Trace]\nEvent=sched:sched_process_exit\n' | session named
flyrecd_start
marker=$(ctl --json status named | jq -r '.sessions[0].trace_marker')
[ "$marker" = "$(instance named)/trace_marker" ] || fail "trace_marker: $marker"
prints -x " *Marker: $marker" ctl status named || fail "status: $(cat "$T/printed")"
echo "request 4711" >"$marker"
ctl stop named
[ -z "$(ctl --json status named | jq -r '.sessions[0].trace_marker')" ] || fail "a marker of a stopped session"
flyrecd_stop
"$FLYRECCTL" export --format=text -o - "$STATE/named/record/"2*.dat >"$T/text"
grep -q ' print: .*request 4711' "$T/text" || fail "no mark: $(cat "$T/text")"
rm -rf "$STATE/named"

echo "== what is wrong"
# wrong KEY=VALUE PATTERN: by --check-config with file and line, and the session fails at its start
wrong() {
	local status=0
	named "$1"
	"$FLYRECD" "--config-dir=$CONFIG" --check-config 2>"$T/err" || status=$?
	[ "$status" = 1 ] || fail "--check-config: status $status: $1"
	grep -qE "^$CONFIG/sessions.d/named.conf:2: ${1%%=*}=.*$2" "$T/err" ||
		fail "--check-config: \"$(cat "$T/err")\" does not say $2: $1"
	: >"$FLYRECD_LOG"
	flyrecd_start
	grep -qE "named: session failed: ${1%%=*}=.*$2" "$FLYRECD_LOG" ||
		fail "\"$(cat "$FLYRECD_LOG")\" does not say $2: $1"
	[ ! -e "$(instance named)" ] || fail "an instance: $1"
	flyrecd_stop
}
strip -o "$T/stripped" "$T/probed"
echo 'exit 0' >"$T/script"
head -c 4000 "$T/probed" >"$T/truncated"
wrong "Uprobe=p:x $T/probed:probed_ad" "no function 'probed_ad' in .*did you mean 'probed_add'"
wrong "Uprobe=p:x $T/probed:probed_data" "is data, not a function"
wrong "Uprobe=p:x $T/probed:printf" "only calls 'printf', give the library"
wrong "Uprobe=p:x $T/probed:probed_chosen" "only chooses a function once"
wrong "Uprobe=p:x $T/stripped:probed_add" "which is stripped: only exported functions are known"
wrong "Uprobe=p:x $T/script:main" "not a program or library"
wrong "Uprobe=p:x $T/truncated:main" "is cut off"
wrong "Uprobe=p:x $T/none:main" "cannot open $T/none: No such file"
wrong "Usdt=$T/probed:dem:request" "the provider 'dem', did you mean 'demo'"
wrong "Usdt=$T/probed:demo:reqest" "no USDT probe 'reqest', did you mean 'request'"
wrong "Usdt=$T/script:demo:request" "not a program or library"
wrong "Usdt=/bin/true:demo:request" "there are no USDT probes in /bin/true"
wrong "Usdt=$T/probed:demo:request \$arg7" "demo:request has no \\\$arg7"
[ "$(uname -m)" != x86_64 ] ||
	wrong "Usdt=$T/probed:demo:odd" "an element of an array"
# what a session does not have, or does not start, is nobody's fault
named "Uprobe=p:x $T/none:main
Uprobe=
Event=sched:sched_process_exit"
"$FLYRECD" "--config-dir=$CONFIG" --check-config || fail "--check-config of what was reset"
printf '[Session]\nEnabled=no\n[Trace]\nUprobe=p:x %s:main\n' "$T/none" | session named
"$FLYRECD" "--config-dir=$CONFIG" --check-config || fail "--check-config of a disabled session"

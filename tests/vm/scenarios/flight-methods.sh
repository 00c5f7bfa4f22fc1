#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Snapshots of a flight session by each method of this kernel: all of them hold the whole history up to
# their trigger without a gap, also where the one before has emptied the ring buffer, and where
# somebody's snapshot trigger has swapped it.
# machines: debian12
# also: debian13
# time-limit: 240
. "$(dirname "$0")/../guest.sh"
# shellcheck source=tests/integration/flight-lib.sh
. /job/tests/integration/flight-lib.sh
export BUFFER=256K

method() {
	ctl --json status f | jq -r '.sessions[0].method'
}

# change_to METHOD
change_to() {
	flight "Method=$1"
	systemctl reload flyrecd || fail "reload: $(flyrecd_log | tail -n 3)"
	[ "$(method)" = "$1" ] || fail "method $(method), not $1"
}

# The second ring buffer, which takes its memory, as long as nothing was swapped into it
spare_is() { # allocated|freed
	grep -qF "Snapshot is $1" "$(instance f)/snapshot" ||
		fail "method $(method): not $1: $(head -n 5 "$(instance f)/snapshot")"
}

# gap_free FILE [OPTION]
gap_free() {
	markers_are "$1" --expect="$T/burst" --expect="$T/expect" --allow-lost-at-start ${2:+"$2"} "$1"
	echo "$1: $(tail -n 1 "$T/check")"
}

flight Method=auto
flyrecd_start
case $(uname -r) in
6.1.*) auto=swap ;;
*) auto=mapped ;;
esac
[ "$(method)" = "$auto" ] || fail "method $(method), not $auto"
# Made at the start, or by a reload, not when a snapshot is wanted
case $auto in
swap) spare_is allocated ;;
mapped)
	spare_is freed
	change_to swap
	spare_is allocated
	flight Method=auto
	systemctl reload flyrecd
	[ "$(method)" = mapped ] || fail "method $(method), not mapped"
	spare_is freed
	;;
esac
"$TOOLS/markers" "--instance=${PREFIX}f" --count=8000 >"$T/burst"
wrapped || fail "the ring buffer is not full: $(cat "$(instance f)/per_cpu/cpu0/stats")"
markers_start f 500 "--continue=$T/burst"

# two within a second
take
take

# Somebody's snapshot trigger: the ring buffer can no longer be mapped, and it is swapped behind us
trigger=$(instance f)/events/sched/sched_process_exit/trigger
echo 'snapshot if pid == 1' >"$trigger"
echo 1 >"$(instance f)/snapshot"
sleep 0.3
take
[ "$(method)" = swap ] || fail "method $(method) beside a snapshot trigger"
[ $auto = swap ] || must_log "cannot map CPU.*Device or resource busy.*going on with method swap"
echo 1 >"$(instance f)/snapshot"
echo '!snapshot if pid == 1' >"$trigger"

# ten and more, whatever the method; what was taken is kept
change_to swap
for _ in $(seq 1 "${LONG:+5}2"); do
	take
done
change_to drain
spare_is freed
take
take
if [ $auto = mapped ]; then
	change_to mapped
	take
	change_to swap
else
	flight Method=mapped
	log_mark
	systemctl reload flyrecd
	must_log "Method=mapped: cannot map trace_pipe_raw.*going on with method drain"
fi
[ "$(cat "$(instance f)/tracing_on")" = 1 ] || fail "tracing is off"
markers_stop
take
flyrecd_stop

verify "${SNAPSHOTS[@]}"
for i in 1 2 $((${#SNAPSHOTS[@]} - 2)); do
	gap_free "${SNAPSHOTS[i]}" --allow-lost-at-end
done
gap_free "${SNAPSHOTS[-1]}"
# flyrec bytes of each CPU, in what trace-cmd prints
whole "${SNAPSHOTS[1]}"
whole "${SNAPSHOTS[-1]}"

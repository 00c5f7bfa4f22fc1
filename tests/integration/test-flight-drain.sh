#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 200
#
# Method=drain, for kernels that can do no better: what a snapshot takes out of the kernel is kept,
# so that the next one has the whole history again. (Method=swap needs another kernel: tests/vm.)
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/flight-lib.sh"
need_tracefs
need_tool check-markers
need_command trace-cmd numfmt jq

state_on ext4 4G
flight Method=drain
flyrecd_start
[ "$(ctl --json status f | jq -r '.sessions[0].method')" = drain ] || fail "method: $(ctl status f)"
markers_start f 100000
wait_for 60 wrapped || fail "too few markers"
take
sleep 0.2
take
for _ in 1 2 3 4 5; do
	sleep 0.5
	take
done
markers_stop
take
markers_are "the end" --expect="$T/expect" --allow-lost-at-start "${SNAPSHOTS[-1]}"
EXPECT=$T/expect good "${SNAPSHOTS[@]}"
for f in "${SNAPSHOTS[@]}"; do
	whole "$f"
done
first=$(range "${SNAPSHOTS[0]}" | awk 'NR == 1 { print $3 }')
[ "$first" -gt "$(range "${SNAPSHOTS[1]}" | awk 'NR == 1 { print $2 }')" ] ||
	fail "the second snapshot has lost its history to the first"
# a part of the history costs the next one nothing
path=$(ctl snapshot f --last=3s)
good "$path"
path=$(ctl snapshot f)
EXPECT=$T/expect good "$path"
whole "$path"

# no more disk than twice the ring buffers is used for it, however many snapshots there were
carries=()
for fd in "/proc/$FLYRECD_PID/fd"/*; do
	[[ $(readlink "$fd") != */f/snapshot/*deleted* ]] || carries+=("$fd")
done
[ ${#carries[@]} = 1 ] || fail "${#carries[@]} carries"
used=$(($(stat -L -c %b "${carries[0]}") * 512))
most=$((4 * 1024 * 1024 * $(nproc) * 9 / 4))
[ "$used" -le "$most" ] || fail "the carry takes $used bytes, not $most"

# A full disk: said before anything is taken out of the kernel
flyrecd_stop
rm -rf "$STATE"
flyrecd_start
"$TOOLS/markers" "--instance=${PREFIX}f" --count=5000 >"$T/expect"
fallocate -l "$(df --output=avail -B1 "$T/ext4" | tail -n 1)" "$T/ext4/filler" 2>/dev/null || true
dd if=/dev/zero of="$T/ext4/filler2" bs=4k 2>/dev/null || true
if ctl snapshot f 2>"$T/err"; then fail "a snapshot on a full disk"; fi
grep -q "No space left" "$T/err" || fail "$(cat "$T/err")"
nothing_half
rm -f "$T"/ext4/filler*
path=$(ctl snapshot f)
markers_are "$path" --expect="$T/expect" "$path"
flyrecd_stop

# Methods that this kernel has not are refused by name
if [ ! -e "$TRACEFS/snapshot" ]; then
	flight Method=swap
	log_mark
	flyrecd_start
	must_log "session failed: .*Method=swap: this kernel has no snapshot files"
	[ ! -d "$(instance f)" ] || fail "a failed session leaves its instance"
	flyrecd_stop
fi

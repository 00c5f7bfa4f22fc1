#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 200
#
# Drain=: which way is used; what is recorded is the same either way, over rotations, a full disk, a
# change of the way, a hand-over, and with all CPUs' data going through one worker.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
need_command jq
need_tool check-markers
EVENT=oom:mark_victim # of which there are none: markers only
need_event "$EVENT"

is_drained_by() {
	[ "$(ctl --json status s | jq -r '.sessions[0].drain')" = "$1" ]
}

echo "== which way"
# DRAIN SUBBUFFER BUFFER PERCENT WAY
while read -r drain subbuf buffer percent way; do
	[ "$subbuf" = 4K ] || [ -e "$TRACEFS/buffer_subbuf_size_kb" ] || continue
	session s <<-END
		[Trace]
		Event=$EVENT
		BufferSize=$buffer
		BufferPercent=$percent
		$([ ! -e "$TRACEFS/buffer_subbuf_size_kb" ] || echo "SubBufferSize=$subbuf")
		[Storage]
		$([ "$drain" = - ] || echo "Drain=$drain")
	END
	flyrecd_start
	is_drained_by "$way" ||
		fail "Drain=$drain, $subbuf of $buffer, $percent %: $(ctl status s | grep Buffer:)"
	prints "Buffer: .* for each CPU, in sub-buffers of .*, drained by $way" ctl status s
	flyrecd_stop
done <<-END
	- 4K 4M 25 read
	splice 4K 4M 25 splice
	- 16K 4M 25 splice
	read 16K 4M 25 read
	read 4K 4M 0 splice
	- 4K 256K 25 splice
	read 4K 256K 25 splice
END
session s <<-END
	[Session]
	Mode=flight
	[Trace]
	Event=$EVENT
END
flyrecd_start
is_drained_by "" || fail "a flight session drains: $(ctl status s)"
flyrecd_stop

storage_with() { # DRAIN LINE...
	BUFFER=$'16M\nBufferPercent=2' storage "Drain=$1" MaxUse=200M KeepFree=0 FlushSec=200ms "${@:2}"
}

echo "Workers=1" | daemon_config
state_on ext4 400M

echo "== the way changes, and so do files and processes"
forget
storage_with splice MaxFileSize=16M
flyrecd_start_stored
markers_begin --rate=150000
for way in read splice read splice; do
	sleep 0.5
	storage_with $way MaxFileSize=16M
	kill -HUP "$FLYRECD_PID"
	wait_for 10 is_drained_by $way || fail "not by $way"
	sleep 0.5
	flyrecd_hand_over
	must_log "s: continuing record/current.dat"
done
markers_end
flyrecd_stop
! grep 'may be lost\|Failed\|cannot' "$FLYRECD_LOG" || fail "something went wrong"
[ "$(find "$(REC)" -name '2*.dat' | wc -l)" -ge 3 ] || fail "no rotation: a poor test"
all_right "changes"

for way in splice read; do
	echo "== Drain=$way: a full disk"
	forget
	: >"$FLYRECD_LOG"
	log_mark
	storage_with $way MaxFileSize=64M
	flyrecd_start_stored
	write_markers 1000
	dd if=/dev/zero of="$T/ext4/other" bs=64K status=none 2>/dev/null || true
	dd if=/dev/zero of="$T/ext4/other.rest" bs=4K status=none 2>/dev/null || true
	write_markers 100000
	must_log "s: cannot write to .*No space left"
	rm "$T/ext4/other" "$T/ext4/other.rest"
	must_log "s: writing again"
	write_markers 20000
	flyrecd_stop
	all_right "a full disk, $way"
done

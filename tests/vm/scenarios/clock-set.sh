#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The wall clock is set a day forward, then a day back, while a session records whose segments go after
# an hour: none goes, each segment has the day that it was recorded on in its name and its times,
# timers go on, and nothing is lost.
# also: debian13
# time-limit: 300
. "$(dirname "$0")/../guest.sh"
. "$(dirname "$0")/disk-lib.sh"
. "$(dirname "$0")/clock-lib.sh"
uptime_sec() { cut -d. -f1 /proc/uptime; }
booted=$(($(date +%s) - $(uptime_sec)))
set_right() {
	date --utc --set="@$((booted + $(uptime_sec)))" >/dev/null
}
at_end set_right
set_clock() { # HOW: until the session has begun its next segment over it
	local inode
	inode=$(stat -c %i "$STATE/a/record/current.dat")
	date --utc --set="$1" >/dev/null
	wait_for 30 is_another_file a "$inode" || fail "no new segment although the clock was set"
}

# Room for all of them: a header takes 10 MiB here
recorder a MaxRetentionSec=1h MaxUse=1G
flyrecd_start

# collect LAST: the segments since the last time, LAST at the end, into T/all under names that tell the
# order in which they were recorded
collect() {
	local file
	for file in "$STATE"/a/record/2*.dat; do
		[[ " ${SEGMENTS[*]} $1 " == *" $file "* ]] || keep "$file"
	done
	keep "$1"
}
keep() { # FILE
	SEGMENTS+=("$1")
	cp "$1" "$T/all/${#SEGMENTS[@]}.dat"
}
SEGMENTS=()
mkdir "$T/all"

# day NUMBER: markers on this day, and a segment that ends with them
day() {
	local file last
	begin_count a "$1" --rate=200
	grows a
	end_count a
	file=$("$FLYRECCTL" rotate a) || fail "rotate"
	collect "$file"
	[[ $(basename "$file") == $(date --utc +%Y%m%d)T* ]] || fail "day $1: $(basename "$file") on $(date --utc)"
	last=$(trace-cmd report "$file" 2>/dev/null | tail -n 1 | sed -nE 's/.* ([0-9]+)\.[0-9]+: .*/\1/p')
	if [ $(($(date +%s) - last)) -gt 60 ] || [ "$last" -gt "$(date +%s)" ]; then
		fail "day $1: the last event is of $(date --utc --date="@$last"), and it is $(date --utc)"
	fi
	# Retention has looked at the rotation
	for file in "${SEGMENTS[@]}"; do
		[ -e "$file" ] || fail "day $1: $(basename "$file") is gone"
	done
}
day 1
set_clock '+1 day'
must_log 'the clock was set forward by 86[34]'
day 2
flyrecd_kill
set_clock '-1 day'
must_log 'the clock was set back by 86[34]'
day 3
flyrecd_stop
verify "$T/all"
markers_are a "--expect=$T/a.1" "--expect=$T/a.2" "--expect=$T/a.3" "$T"/all/*.dat

# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A task of late.service, "victim", that wants CPU 0 each 5 ms, and "fifo-hog", which keeps it from that by its
# real-time priority. For tests of waits with units, and for benchmarks.

# late_start: the task, until late_stop or the end of the test
late_start() {
	local unified own
	unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	own=$(awk '$3 == "cgroup" && $4 ~ /name=systemd/ { print $2; exit }' /proc/mounts)
	LATE_GROUP=${own:-$unified}/${PREFIX//./_}.slice
	at_end late_remove
	mkdir -p "$LATE_GROUP/late.service" 2>/dev/null || skip "no control groups that may be changed"
	background late_victim
	LATE_PID=$!
	wait_for 10 grep -q "^$LATE_PID\$" "$LATE_GROUP/late.service/cgroup.procs" || fail "no task in late.service"
}

late_victim() {
	echo "$BASHPID" >"$LATE_GROUP/late.service/cgroup.procs"
	exec "$TOOLS/incident" victim 0 3600000 1
}

late_remove() {
	[ ! -d "$LATE_GROUP" ] || find "$LATE_GROUP" -depth -type d -exec rmdir {} +
}

late_stop() {
	kill "$LATE_PID"
	wait "$LATE_PID" || true
}

# late_hog MILLISECONDS: of CPU time that it takes
late_hog() {
	"$TOOLS/incident" hog 0 "$1"
}

# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# autogroup_off: not in effect until the script ends that calls it. sched_autogroup schedules all tasks of a
# terminal session as one. On 6.18, where such a group was busy on each CPU, kernel threads that
# were ready to run (a loop device's, below the disk of a test) got none for up to 0.7 s, and ring buffers
# ran over: in six of nineteen runs of test-markers.sh with it, in none of twelve without.
autogroup_off() {
	local file=/proc/sys/kernel/sched_autogroup_enabled
	[ "$(cat "$file" 2>/dev/null)" = 1 ] && echo 0 2>/dev/null >"$file" || return 0
	# shellcheck disable=SC2064 # of now
	trap "[ \$BASHPID != $$ ] || echo 1 >$file" EXIT
}

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
#
# On a terminal of 80 columns and 30 lines no verb waits for a key, tables fit, names are whole; a
# pager is there for what has more lines than the screen. Elsewhere nothing is shortened.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command tmux less
need_event sched:sched_switch

LONG='A description that is as long as those that people write when they have all the time of the world'
for name in a-long-name fl; do
	session $name <<-EOF
		[Session]
		Description=$LONG
		$([ $name = fl ] && echo Mode=flight)
		[Trace]
		Event=sched:sched_switch
		BufferSize=256K
	EOF
done
flyrecd_start
sleep 1
ctl snapshot --reason=a-reason-that-is-a-long-word >"$T/paths" || fail "no snapshots"

TMUX_SOCKET=$T/tmux
tmux_ask() {
	env -u TMUX LC_ALL=C.UTF-8 TERM=screen tmux -S "$TMUX_SOCKET" -f /dev/null "$@"
}
end_tmux() {
	[ ! -S "$TMUX_SOCKET" ] || tmux_ask kill-server
	rm -f "$TMUX_SOCKET"
}
at_end end_tmux
done_there() {
	[ -s "$T/status" ]
}
# start COLUMNS LINES WORD...: flyrecctl on such a terminal
start() {
	local columns=$1 lines=$2
	shift 2
	rm -f "$T/status"
	{
		printf '%q ' "$FLYRECCTL" "--runtime-dir=$RUNTIME" "$@"
		# shellcheck disable=SC2016 # for the shell there
		printf '; echo $? >%q; sleep 60\n' "$T/status"
	} >"$T/command"
	tmux_ask new-session -d -x "$columns" -y "$lines" \
		"env -u PAGER -u LESS -u COLUMNS -u LINES TERM=screen LC_ALL=C.UTF-8 bash $T/command"
}
stop() {
	tmux_ask kill-server
	rm -f "$TMUX_SOCKET"
}
# screen STATUS COLUMNS LINES WORD...: what it shows when flyrecctl has ended, in $T/screen
screen() {
	local wanted=$1
	shift
	start "$@"
	if ! wait_for 10 done_there; then
		tmux_ask capture-pane -p >"$T/screen"
		fail "$* waits for a key: $(cat "$T/screen")"
	fi
	tmux_ask capture-pane -p >"$T/screen"
	[ "$(cat "$T/status")" = "$wanted" ] || fail "status $(cat "$T/status") of $*: $(cat "$T/screen")"
	stop
}

file=$(head -n 1 "$T/paths")
echo '    1 clk cpu0 IT (1) 00000000 00000000 T thread : nop' >"$T/tarmac"
while read -r line; do
	# shellcheck disable=SC2086 # words
	screen 0 80 30 $line
done <<-EOF
	status
	status fl
	status --graph
	status a-long-name
	list
	list fl
	stats
	stats fl
	metrics
	tail -n 5 a-long-name
	snapshot fl
	snapshot --json fl
	rotate
	cat -o $T/copy.dat a-long-name $file
	export --format=json -o $T/json $file
	export --format=text -o $T/text $file
	import --format=qemu4v -o $T/imported.dat $T/tarmac
	pause fl
	resume fl
	event-enable fl sched:sched_wakeup
	event-disable fl sched:sched_wakeup
	filter fl sched:sched_switch prev_pid!=0
	pin $file
	unpin $file
	verify $file
	stop fl
	start fl
	reload
	vacuum --older-than=1h
	--help
	--version
	snapshot --help
	export --help
EOF
screen 2 80 30 nothing

# --- tables fit, and names are whole
screen 0 80 30 status
grep -q '^a-long-name  record  recording' "$T/screen" || fail "$(cat "$T/screen")"
[ "$(grep -c 'A desc' "$T/screen")" = 2 ] || fail "descriptions: $(cat "$T/screen")"
[ "$(grep -c 'A descr…$' "$T/screen")" = 2 ] || fail "no ellipsis: $(cat "$T/screen")"
[ "$(grep -c . "$T/screen")" -le 4 ] || fail "lines are broken: $(cat "$T/screen")"
screen 0 44 30 status --graph fl
grep -qE '^events {30}' "$T/screen" || fail "the graph does not fit: $(cat "$T/screen")"
grep -qE '^ {7}1h ago {21}now$' "$T/screen" || fail "the graph does not fit: $(cat "$T/screen")"
screen 0 240 30 status
[ "$(grep -c 'all the time of the world$' "$T/screen")" = 2 ] || fail "shortened without need: $(cat "$T/screen")"
screen 0 120 30 list
grep -q '…[^ ]*a-long-word.dat  ' "$T/screen" || fail "paths keep their ends: $(cat "$T/screen")"
ctl status >"$T/plain"
[ "$(grep -c 'all the time of the world$' "$T/plain")" = 2 ] || fail "shortened in a pipe: $(cat "$T/plain")"
prints -F "$file" ctl list || fail "paths in a pipe"

# --- more lines than the screen has: a pager, which a key ends
start 80 5 status a-long-name
pager_waits() {
	tmux_ask capture-pane -p | grep -q '^:'
}
wait_for 10 pager_waits || fail "no pager for a screen of 5 lines: $(tmux_ask capture-pane -p)"
! done_there || fail "the pager did not wait"
tmux_ask send-keys q
wait_for 10 done_there || fail "the pager does not end"
[ "$(cat "$T/status")" = 0 ] || fail "status $(cat "$T/status")"
stop
screen 0 80 5 --no-pager status a-long-name
flyrecd_stop

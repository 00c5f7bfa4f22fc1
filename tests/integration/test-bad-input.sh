#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# Bad configuration, missing rights, foreign and damaged files: each gets one clear line that names file
# and reason, nothing recorded is deleted, and the daemon and its other sessions run on.
# time-limit: 240
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command setpriv unshare mount trace-cmd
getent passwd nobody >/dev/null || skip "needs the user nobody"

# quiet NAME: a session that records next to nothing
quiet() {
	session "$1" <<-EOF
		[Trace]
		Event=sched:sched_process_fork if parent_pid == 1
		BufferSize=8K
		[Storage]
		MaxFileSize=4M
		MaxUse=64M
		FlushSec=300s
	EOF
}

# one_line SESSION TEXT: what the log says of it at warning or worse is one line that has TEXT
one_line() {
	must_log "^flyrecd: $1: .*$2"
	[ "$(tail -n "+$((LOG_MARK + 1))" "$FLYRECD_LOG" | grep -c "^flyrecd: $1: .*\(failed\|cannot\|damaged\)")" -le 1 ] ||
		fail "more than one line about $1: $(grep "^flyrecd: $1: " "$FLYRECD_LOG")"
}

good_runs() {
	kill -0 "$FLYRECD_PID" 2>/dev/null || fail "flyrecd has ended: $(tail -n 3 "$FLYRECD_LOG")"
	[ "$(cat "$(instance good)/tracing_on")" = 1 ] || fail "the good session does not trace"
	[ -e "$STATE/good/record/current.dat" ] || fail "the good session has no file"
}

# refuses STATUS TEXT COMMAND...: ends so, with one line on standard error that has TEXT
refuses() {
	local wanted=$1 text=$2 status=0
	shift 2
	timeout 20 "$@" >"$T/out" 2>"$T/err" || status=$?
	[ "$status" = "$wanted" ] || fail "status $status, not $wanted: $* $(cat "$T/err")"
	grep -q -- "$text" "$T/err" || fail "not said: $text: $(cat "$T/err")"
	# a machine without the user that the package makes: an information, before it
	sed -i '/^flyrecd: there is no user flyrecd: /d' "$T/err"
	[ "$(wc -l <"$T/err")" = 1 ] || fail "more than one line: $(cat "$T/err")"
	cat "$T/err"
}

echo "== configuration"
quiet good
quiet lines
echo 'FlushSec=eight' >>"$CONFIG/sessions.d/lines.conf"
echo '[Trace]' >"$CONFIG/sessions.d/empty.conf"
head -c 300 /dev/urandom >"$CONFIG/sessions.d/noise.conf"
session event <<<$'[Trace]\nEvent=sched:no_such_event'
session system <<<$'[Trace]\nEvent=nosystem'
session filter <<<$'[Trace]\nEvent=sched:sched_switch if no_field == 1'
session syntax <<<$'[Trace]\nEvent=sched:sched_switch if next_pid =='
session trigger <<<$'[Trace]\nEventTrigger=sched:sched_switch explode'
session clock <<<$'[Trace]\nEvent=sched\nClock=s390-tod'
session uprobe <<<$'[Trace]\nUprobe=p:x /no/such/file:0x1000'
session huge <<<$'[Trace]\nEvent=sched\nBufferSize=1T'
flyrecd_command
status=0
"$FLYRECD" --config-dir="$CONFIG" --check-config 2>"$T/err" || status=$?
[ "$status" = 1 ] || fail "--check-config says $status"
grep -q "^$CONFIG/sessions.d/lines.conf:8: .*eight" "$T/err" || fail "--check-config: $(cat "$T/err")"
log_mark
flyrecd_start
good_runs
must_log "$CONFIG/sessions.d/lines.conf:[0-9]*: .*eight"
must_log "$CONFIG/sessions.d/empty.conf:.*"
must_log "$CONFIG/sessions.d/noise.conf:.*"
one_line event 'session failed: .*no_such_event'
one_line system 'session failed: .*nosystem'
one_line filter 'session failed: .*sched_switch/filter: .*Field not found'
one_line syntax 'session failed: .*sched_switch/filter: '
one_line trigger 'session failed: .*sched_switch/trigger: '
one_line clock 'session failed: .*trace_clock: '
one_line uprobe 'session failed: .*/no/such/file'
one_line huge 'session failed: .*BufferSize=.*: more than half'
for name in lines empty noise event system filter syntax trigger clock uprobe huge; do
	[ ! -e "$(instance $name)" ] || fail "the failed session $name left an instance"
done
grep -h 'session failed' "$FLYRECD_LOG"
rm "$CONFIG/sessions.d"/{empty,noise,event,system,filter,syntax,trigger,clock,uprobe,huge}.conf
log_mark
kill -HUP "$FLYRECD_PID"
must_log 'the configuration has errors: going on with the old one'
good_runs
rm "$CONFIG/sessions.d/lines.conf"
log_mark
kill -HUP "$FLYRECD_PID"
must_log 'configuration reloaded'
good_runs
flyrecd_stop

echo "== the whole daemon"
chmod 755 "$T"
cp "$FLYRECD" "$T/flyrecd"
mkdir "$T/nobody"
chown nobody "$T/nobody"
as_nobody=(setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups)
command=("$T/flyrecd" "--config-dir=$CONFIG" "--runtime-dir=$RUNTIME")
refuses 1 'cannot trace: no permission for .*tracing' "${as_nobody[@]}" "${command[@]}" --state-dir="$T/nobody"
# In a mount namespace of its own, and without the right to mount it again
# without_tracefs COMMAND-OF-MOUNT COMMAND...
without_tracefs() {
	# shellcheck disable=SC2016 # for the inner shell
	refuses 1 "$1" unshare --mount sh -c 'umount -l /sys/kernel/debug 2>/dev/null
		eval "$1"; shift
		exec setpriv --bounding-set=-sys_admin "$@"' sh "${@:2}" "${command[@]}" --state-dir="$STATE"
}
without_tracefs 'cannot trace: no tracefs is mounted' 'umount -l /sys/kernel/tracing'
without_tracefs 'cannot trace: /sys/kernel/tracing/instances does not exist' \
	'mount -t tmpfs none /sys/kernel/tracing'
refuses 1 "state directory $T/nobody belongs to user $(id -u nobody)" "${command[@]}" --state-dir="$T/nobody"
mkdir -m 0770 "$T/shared"
refuses 1 "state directory $T/shared can be written by others (mode 0770)" "${command[@]}" --state-dir="$T/shared"
refuses 1 "cannot .*state directory $T/nobody/x" "${command[@]}" --state-dir="$T/nobody/x/y/z"
refuses 1 "cannot .*state directory /dev/null" "${command[@]}" --state-dir=/dev/null
refuses 2 "no-such-option" "$FLYRECD" --no-such-option

# Nobody else may hold the lock that the next process needs, also where it could be read before
chmod 0640 "$STATE/.lock"
flyrecd_start
[ "$(stat -c %a "$STATE/.lock")" = 600 ] || fail "$STATE/.lock: $(stat -c %A "$STATE/.lock")"
flyrecd_stop

echo "== the directory of one session"
for name in readonly foreign shared file; do
	quiet $name
done
mkdir -m 0770 "$STATE/shared"
mkdir -p "$STATE/readonly/record" "$STATE/foreign/record"
mount --bind "$STATE/readonly" "$STATE/readonly"
MOUNTS+=("$STATE/readonly")
mount -o remount,bind,ro "$STATE/readonly"
chown nobody "$STATE/foreign"
echo text >"$STATE/file"
log_mark
flyrecd_start
good_runs
one_line readonly 'session failed: .*readonly.*Read-only file system'
one_line foreign "session failed: .*foreign.* belongs to user $(id -u nobody)"
one_line shared 'session failed: .*/shared: directory shared can be written by others (mode 0770)'
one_line file 'session failed: .*/file: .*Not a directory'
flyrecd_stop
[ "$(cat "$STATE/file")" = text ] || fail "a file in the way was changed"
grep -h 'session failed' <(tail -n "+$((LOG_MARK + 1))" "$FLYRECD_LOG")
rm "$STATE/file" "$CONFIG/sessions.d"/{readonly,foreign,shared,file}.conf

echo "== something else is called current.dat"
for name in text symlink dangling fifo directory socket device zero; do
	quiet $name
	mkdir -p "$STATE/$name/record"
done
echo "my notes" >"$STATE/text/record/current.dat"
echo "precious" >"$T/precious"
ln -s "$T/precious" "$STATE/symlink/record/current.dat"
ln -s "$T/nowhere" "$STATE/dangling/record/current.dat"
mkfifo "$STATE/fifo/record/current.dat"
mkdir "$STATE/directory/record/current.dat"
touch "$STATE/directory/record/current.dat/inside"
mknod "$STATE/device/record/current.dat" c 1 5
head -c 10000000 /dev/zero >"$STATE/zero/record/current.dat"
background "$TOOLS/notify-listen" "$STATE/socket/record/current.dat" "$T/unused"
wait_for 5 test -S "$STATE/socket/record/current.dat" || fail "notify-listen does not start"
log_mark
flyrecd_start
good_runs
for name in text symlink dangling fifo directory socket device zero; do
	one_line $name 'record/current.dat is damaged (.*), renamed to .*damaged'
	[ "$(stat -c %F "$STATE/$name/record/current.dat")" = "regular file" ] ||
		fail "$name: no current.dat of our own"
done
grep -h 'renamed to' <(tail -n "+$((LOG_MARK + 1))" "$FLYRECD_LOG")
[ "$(cat "$STATE"/text/record/*.damaged)" = "my notes" ] || fail "a foreign file was changed"
[ "$(cat "$T/precious")" = precious ] || fail "a symlink was followed and its target changed"
[ ! -e "$T/nowhere" ] || fail "a symlink was followed and its target made"
[ -e "$(echo "$STATE"/directory/record/*.damaged/inside)" ] || fail "a directory was emptied"
[ -p "$(echo "$STATE"/fifo/record/*.damaged)" ] || fail "a FIFO is gone"
flyrecd_stop
rm "$CONFIG/sessions.d"/{text,symlink,dangling,fifo,directory,socket,device,zero}.conf

echo "== current.dat cut at many places"
session src <<-EOF
	[Trace]
	Event=raw_syscalls:sys_enter if $LOAD_FILTER
	BufferSize=2M
	[Storage]
	MaxFileSize=8M
	MaxUse=64M
	FlushSec=200ms
EOF
flyrecd_start
load_start --count=12000
wait "$LOAD_PID"
sleep 1 # so that all of it is in the file
flyrecd_kill
rmdir "$(instance src)" "$(instance good)" || fail "cannot remove the instances left behind"
rm -r "$STATE/good/state" "$CONFIG/sessions.d/src.conf"
src=$T/src.dat
cp --sparse=always "$STATE/src/record/current.dat" "$src"
# offset and size of each CPU's region
mapfile -t regions < <(trace-cmd dump --flyrecord "$src" 2>/dev/null |
	sed -nE 's/^[[:space:]]*([0-9]+) +([0-9]+)[[:space:]].*/\1 \2/p')
[ ${#regions[@]} -ge 1 ] || fail "cannot see the regions: $(trace-cmd dump --flyrecord "$src" 2>&1 | tail -n 5)"
read -r first size <<<"${regions[0]}"
read -r last last_size <<<"${regions[-1]}"
echo "regions: ${regions[*]/%/;}"
[ "$size" -gt 40000 ] || fail "too little was recorded: $size"

# whole CPU LENGTH: bytes of whole sub-buffers that a file cut there still has of a CPU
whole() {
	local offset bytes
	read -r offset bytes <<<"${regions[$1]}"
	if [ "$2" -le "$offset" ]; then bytes=0; elif [ "$2" -lt $((offset + bytes)) ]; then
		bytes=$((($2 - offset) / 4096 * 4096))
	fi
	echo "$bytes"
}

lengths=(0 1 2 3 9 10 11 12 13 14 15 17 18 19 29 30 31 37 38 39 100 1000)
for _ in $(seq 25); do # the sections
	lengths+=($((RANDOM * 32768 % first + RANDOM % 1000)))
done
for i in $(seq 12); do # options, CPU table, live block
	lengths+=($((first - i * 1361)) $((first - i)))
done
lengths+=("$first" $((first + 1)))
for i in $(seq 15); do # sub-buffers and holes
	lengths+=($((first + i * 4096 - 1)) $((first + i * 4096)) $((first + i * 4096 + i))
		$((first + size * i / 15)) $((last + last_size * i / 15 + i)))
done
lengths+=($((first + size)) $((first + size + 1)) $((first + size + 1000000)) "$last"
	$((last + 1)) $((last + last_size)) $((last + last_size + 1)) $(($(stat -c %s "$src") - 1)))

# has_all_data LENGTH: of the sub-buffer that is cut there, by the size in its head; a full one ends in
# padding where the next event did not fit
has_all_data() {
	local at=$(($1 / 4096 * 4096)) size
	size=$(od -An -tu4 -j $((at + 8)) -N 4 "$src")
	[ $(($1 - at)) -ge $((16 + (size & 0xfffff))) ] || [ $(($1 - at)) -gt 3900 ]
}

# judge NAME LENGTH
judge() {
	local dir=$STATE/$1/record files damaged cpu n whole=0
	files=("$dir"/2*.dat)
	damaged=("$dir"/current.dat-*.damaged)
	for cpu in "${!regions[@]}"; do
		whole=$((whole + $(whole "$cpu" "$2")))
	done
	if [ ${#files[@]} = 0 ]; then
		[ "$whole" = 0 ] || fail "cut at $2: $whole bytes of data were not kept as a segment"
		[ ${#damaged[@]} = 1 ] || [ "$2" -ge "$first" ] || fail "cut at $2: the file is gone: $(ls -lA "$dir")"
		[ ${#damaged[@]} = 0 ] || cmp -n "$2" "$src" "${damaged[0]}" || fail "cut at $2: the file was changed"
		[ ${#damaged[@]} = 0 ] || n_damaged=$((n_damaged + 1))
		return
	fi
	verify "${files[0]}"
	n=$(sed -nE '1s/.* ([0-9]+) sub-buffers.*/\1/p' "$T/verify")
	# one more if the cut took nothing but the unused end of it
	[ $((n * 4096)) = "$whole" ] || { [ $((n * 4096)) = $((whole + 4096)) ] && has_all_data "$2"; } ||
		fail "cut at $2: $n sub-buffers, not $((whole / 4096))"
	n_whole=$((n_whole + 1))
}

# in_batches MAKE JUDGE VALUE...: sessions with a file each that MAKE made; some at a time
in_batches() {
	local make=$1 judge=$2 batch i
	shift 2
	n_damaged=0 n_whole=0
	while [ $# -gt 0 ]; do
		batch=("${@:1:40}")
		shift ${#batch[@]}
		for i in "${!batch[@]}"; do
			quiet "x$i"
			mkdir -p "$STATE/x$i/record"
			cp --sparse=always "$src" "$STATE/x$i/record/current.dat"
			$make "$STATE/x$i/record/current.dat" "${batch[i]}"
		done
		log_mark
		flyrecd_start
		good_runs
		for i in "${!batch[@]}"; do
			must_log "^flyrecd: x$i: record/current.dat .*renamed to\|^flyrecd: x$i: finished the segment\|^flyrecd: x$i: recording"
			[ ! -e "$STATE/x$i/record/current.dat" ] || [ -e "$(instance "x$i")" ] ||
				fail "x$i (${batch[i]}) does not record: $(grep "^flyrecd: x$i:" "$FLYRECD_LOG" | tail -n 1)"
		done
		! logged 'session failed' || fail "$(grep 'session failed' "$FLYRECD_LOG" | tail -n 1)"
		flyrecd_stop
		for i in "${!batch[@]}"; do
			$judge "x$i" "${batch[i]}"
		done
		rm -r "$STATE"/x* "$CONFIG/sessions.d"/x*.conf
	done
}

cut_at() {
	truncate -s "$2" "$1"
}
in_batches cut_at judge "${lengths[@]}"
echo "${#lengths[@]} lengths: $n_whole became segments, $n_damaged were renamed"
[ "$n_whole" -gt 50 ] || fail "too few became segments"
[ "$n_damaged" -gt 50 ] || fail "too few were renamed"

echo "== current.dat with changed bytes"
# overwrite FILE OFFSET: with noise
overwrite() {
	head -c 64 /dev/urandom | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
# It is there, as a segment or set aside
judge_changed() {
	local files=("$STATE/$1/record"/2*.dat "$STATE/$1/record"/*.damaged)
	[ ${#files[@]} -ge 1 ] || fail "changed at $2: the file is gone: $(ls -lA "$STATE/$1/record")"
	case ${files[0]} in *.damaged) n_damaged=$((n_damaged + 1)) ;; *) n_whole=$((n_whole + 1)) ;; esac
	"$FLYRECCTL" verify "${files[0]}" >/dev/null 2>&1 || [ $? = 1 ] || fail "changed at $2: verify crashes"
}
offsets=(0 3 10 13 14 20 40)
for i in $(seq 12); do
	offsets+=($((RANDOM * 32768 % first)) $((first - i * 701)) $((first + size * i / 12 - 4096))
		$((last + last_size * i / 12 - 4096)))
done
offsets+=($((first + size - 4096)) $((last + last_size - 4096)))
in_batches overwrite judge_changed "${offsets[@]}"
echo "${#offsets[@]} changes: $n_whole became segments, $n_damaged were renamed"

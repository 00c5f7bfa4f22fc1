# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scenarios about disks share; read after guest.sh. A session NAME has STATE/NAME as a file
# system of its own, on the device mapper's device flyrec-NAME, so that it can be made to fail.

LAST_SECTOR=0
declare -A SECTORS OFFSETS

# table NAME linear|error_writes|drop_writes: from now on the disk is like this; bad SECTOR: 4 KiB
# from there on can be neither read nor written
table() {
	local rest="$DATA_DISK ${OFFSETS[$1]}"
	case $2 in
	linear) set -- "$1" "0 ${SECTORS[$1]} linear $rest" ;;
	bad)
		set -- "$1" "0 $3 linear $rest" "$3 8 error" \
			"$(($3 + 8)) $((SECTORS[$1] - $3 - 8)) linear $DATA_DISK $((OFFSETS[$1] + $3 + 8))"
		;;
	*) set -- "$1" "0 ${SECTORS[$1]} flakey $rest 0 3600 1 $2" ;;
	esac
	dmsetup suspend --noflush --nolockfs "flyrec-$1"
	printf '%s\n' "${@:2}" | dmsetup load "flyrec-$1"
	dmsetup resume "flyrec-$1"
}

# disk NAME ext4|xfs MIB [MKFS-OPTION...]: made and mounted at STATE/NAME until the end
disk() {
	local name=$1 fs=$2
	SECTORS[$name]=$(($3 * 2048)) OFFSETS[$name]=$LAST_SECTOR
	LAST_SECTOR=$((LAST_SECTOR + SECTORS[$name]))
	shift 3
	[ "$LAST_SECTOR" -le "$(blockdev --getsz "$DATA_DISK")" ] || skip "the data disk is too small"
	dmsetup create "flyrec-$name" --table "0 ${SECTORS[$name]} linear $DATA_DISK ${OFFSETS[$name]}" ||
		skip "no device mapper"
	at_end remove_disk "$name"
	# What an earlier scenario left is no reason to ask
	case $fs in
	xfs) set -- -f "$@" ;;
	ext4) set -- -F "$@" ;;
	esac
	"mkfs.$fs" -q "$@" "/dev/mapper/flyrec-$name" >/dev/null 2>"$T/mkfs.log" || fail "mkfs.$fs: $(cat "$T/mkfs.log")"
	mkdir -p "$STATE/$name"
	mount "/dev/mapper/flyrec-$name" "$STATE/$name" || skip "cannot mount $fs"
}

remove_disk() { # NAME
	systemctl stop flyrecd
	dmsetup resume "flyrec-$1"
	! mountpoint -q "$STATE/$1" || umount "$STATE/$1"
	dmsetup remove --retry "flyrec-$1"
}

# recorder NAME [LINE-OF-STORAGE...]: a session of markers only; BUFFER: per CPU
recorder() {
	session "$1" <<-EOF
		[Trace]
		Event=oom:mark_victim
		BufferSize=${BUFFER:-4M}
		[Storage]
		FlushSec=200ms
		SyncIntervalSec=500ms
		KeepFree=0
		MaxUse=64M
		$(printf '%s\n' "${@:2}")
	EOF
}

# count NAME PHASE [OPTION...]: markers, after those of the phases before, kept in T/NAME.PHASE
declare -A LAST_PHASE
count() {
	begin_count "$@"
	wait "$!" || fail "markers of $1"
}

# begin_count NAME PHASE [OPTION...]: the same in the background, until end_count
declare -A COUNTING
begin_count() {
	local name=$1 phase=$2
	shift 2
	[ -z "${LAST_PHASE[$name]:-}" ] || set -- "--continue=${LAST_PHASE[$name]}" "$@"
	LAST_PHASE[$name]=$T/$name.$phase
	background "$TOOLS/markers" "--instance=flyrec.$name" "$@" >"$T/$name.$phase"
	COUNTING[$name]=$!
}

end_count() { # NAME
	kill -TERM "${COUNTING[$1]}"
	wait "${COUNTING[$1]}" || fail "markers of $1"
}

status_of() { # NAME: its failure or trouble, "" if none
	"$FLYRECCTL" --json status "$1" | jq -r '.sessions[0].failure'
}

status_says() { # NAME TEXT
	[[ $(status_of "$1") == *$2* ]]
}

must_say() { # NAME TEXT SECONDS
	wait_for "$3" status_says "$1" "$2" || fail "$1: status says \"$(status_of "$1")\", not \"$2\""
}

must_be_well() { # NAME SECONDS
	# shellcheck disable=SC2317 # called by wait_for
	is_well() { [ -z "$(status_of "$1")" ]; }
	wait_for "$2" is_well "$1" || fail "$1: status still says \"$(status_of "$1")\""
}

# once TEXT...: each of them was logged once and not again and again
once() {
	local text
	for text; do
		[ "$(times_logged "$text")" = 1 ] || fail "logged $(times_logged "$text") times: $text"
	done
}

times_logged() { # TEXT
	flyrecd_log | grep -c -e "$1"
}

is_alive() {
	[ "$(property MainPID)" = "$FLYRECD_PID" ] || fail "flyrecd has ended: $(flyrecd_log | tail -n 5)"
}

recorded() { # NAME: bytes
	"$FLYRECCTL" --json status "$1" | jq '.sessions[0].bytes_recorded'
}

grows() { # NAME: more is recorded within 30 s
	local before
	before=$(recorded "$1")
	# shellcheck disable=SC2317 # called by wait_for
	has_grown() {
		[ "$(recorded "$1")" -gt "$2" ]
	}
	wait_for 30 has_grown "$1" "$before" || fail "$1 stands still"
}

# note_counters NAME: before the session ends: what was lost, as its loss accounting has it
note_counters() {
	"$FLYRECCTL" --json stats "$1" >"$T/$1.stats" || fail "stats"
	"$FLYRECCTL" --json status "$1" >"$T/$1.status" || fail "status"
	[ "$(jq '.sessions[0].not_written' "$T/$1.status")" = \
		"$(jq '[.sessions[0].cpus[].not_written] | add' "$T/$1.stats")" ] ||
		fail "$1: status and stats differ: $(cat "$T/$1.status" "$T/$1.stats")"
}

# accounted NAME: after a stop: of the markers of all phases those that are not in the files are those
# that were counted as lost, CPU by CPU; each of the others is there once and in order
accounted() {
	local name=$1 cpu missing overrun not_written
	# shellcheck disable=SC2046 # words
	markers_are "$name" $(printf -- '--expect=%s ' "$T/$name".[0-9]*) --max-lost=100000000 \
		"$STATE/$name"/record/2*.dat
	verify "$STATE/$name"
	for cpu in 0 1; do
		missing=$(sed -n "s/^cpu=$cpu .* lost=\([0-9]*\) lost_at_start=\([0-9]*\) lost_at_end=\([0-9]*\) .*/\1 + \2 + \3/p" "$T/check")
		missing=$((missing))
		read -r overrun not_written < <(jq -r ".sessions[0].cpus[$cpu] | \"\(.overrun) \(.not_written)\"" "$T/$name.stats")
		echo "$name, CPU $cpu: $missing missing, $overrun overwritten, $not_written sub-buffers not written"
		# a sub-buffer holds at most 4080 bytes of events of at least 36
		if [ "$missing" -lt "$overrun" ] || [ "$missing" -gt $((overrun + not_written * 113)) ]; then
			fail "wrong data: $name, CPU $cpu: $missing markers are missing, $overrun and $not_written sub-buffers are accounted for"
		fi
		[ "$missing" -gt "$overrun" ] || [ "$not_written" = 0 ] ||
			fail "wrong data: $name, CPU $cpu: nothing is missing, $not_written sub-buffers are accounted for"
	done
}

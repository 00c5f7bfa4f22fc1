#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 900
# tests: all
# beside: yes
#
# SIGKILL and power loss (file system shutdown) at each step of rotation and finishing, and while the
# next process puts right what the one before left. Nothing is lost that was synced before a power
# loss, and nothing at all over SIGKILL with the fds kept; nothing but whole segments remains. xfs is
# test-finish-crash-xfs.sh's.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
need_tool check-markers
need_command xfs_io

COLLAPSE="compact-begun compact-gap compact-collapsed compact-table"
ROTATE="rotate-created rotate-linked rotate-swapped finish-begin"
END="finish-rename finish-renamed"
faulty_flyrecd

# points FS: the places that a rotation comes by there
points() {
	case $1 in
	btrfs) echo "$ROTATE compact-begun compact-cloned $END" ;;
	tmpfs) echo "$ROTATE compact-begun $END" ;;
	*) echo "$ROTATE $COLLAPSE $END" ;;
	esac
}

all_points=$(grep -rhoE 'fault_point\("(rotate|finish|compact)-[a-z-]+"' "$SRC/daemon" "$SRC/engine" "$SRC/writer" "$SRC/recorder" | cut -d'"' -f2 | sort -u)
for point in $all_points; do
	# cut-rename is test-snapshot-range.sh's
	case " $ROTATE $COLLAPSE $END compact-cloned finish-hidden cut-rename " in
	*" $point "*) ;;
	*) fail "fault point $point is not tested here" ;;
	esac
done

at_fault() {
	wait_for 60 flyrecd_stopped_itself || {
		ls -las "$(REC)"
		for task in "/proc/$FLYRECD_PID/task"/*; do
			grep -h 'Name:\|State:\|SigPnd\|ShdPnd' "$task/status"
			cat "$task/stack"
		done
		fail "$1: flyrecd did not come there"
	}
}

# SIGKILL in a rotation at each point, at its first and its second passing, while markers go on
kill_rotating() { # FS
	local point count
	rotated_to_fault() {
		! flyrecd_stopped_itself || return 0
		kill -USR2 "$FLYRECD_PID"
		sleep 0.2
		return 1
	}
	storage FlushSec=200ms SyncIntervalSec=500ms MaxUse=4G MaxFiles=0 KeepFree=0
	flyrecd_start_stored
	markers_begin --rate=5000
	for point in $(points "$1"); do
		for count in 1 2; do
			echo "$point:$count" >"$T/fault"
			flyrecd_hand_over
			# two signals may make one rotation
			wait_for 60 rotated_to_fault || at_fault "$1, $point:$count"
			: >"$T/fault"
			flyrecd_kill
		done
	done
	sleep 0.5
	markers_end
	flyrecd_stop
	all_right "$1, SIGKILL in rotations"
	forget
}

# SIGKILL while stopping; then while the next one, and the one after it, put that right
kill_stopping() { # FS
	local point
	for point in finish-begin finish-hidden $(points "$1" | tr ' ' '\n' | grep -v rotate); do
		storage FlushSec=200ms MaxUse=4G KeepFree=0
		echo "$point" >"$T/fault"
		flyrecd_start
		write_markers 5000
		kill -TERM "$FLYRECD_PID"
		at_fault "$1, stop at $point"
		flyrecd_kill
		: >"$T/fault"
		flyrecd_start
		write_markers 1000
		flyrecd_stop
		all_right "$1, SIGKILL while stopping at $point"
	done
	forget
}

# A segment in which only one CPU has data has no gap to close: try with the next one
rotate_to_fault() { # WHAT
	local try
	for try in 1 2 3 4 5; do
		write_markers 5000
		kill -USR2 "$FLYRECD_PID"
		! wait_for 8 flyrecd_stopped_itself || return 0
		echo "$1: not at try $try"
	done
	at_fault "$1"
}

# What a kill in the middle of a collapse left is killed again at each step of being put right
kill_recovering() { # FS
	local point came=0
	for point in $COLLAPSE $END; do
		storage FlushSec=200ms MaxUse=4G KeepFree=0
		echo compact-gap >"$T/fault"
		flyrecd_start
		rotate_to_fault "$1, compact-gap"
		echo "$point" >"$T/fault"
		flyrecd_kill
		flyrecd_command
		"${FLYRECD_COMMAND[@]}" 2>>"$FLYRECD_LOG" &
		FLYRECD_PID=$!
		CHILDREN+=("$FLYRECD_PID")
		# resuming does not come by each of them again
		if wait_for 2 flyrecd_stopped_itself; then
			came=$((came + 1))
		else
			echo "$1: putting right does not come by $point"
		fi
		kill -KILL "$FLYRECD_PID"
		wait "$FLYRECD_PID" || true
		: >"$T/fault"
		flyrecd_start
		flyrecd_stop
		all_right "$1, SIGKILL while putting right at $point"
	done
	[ "$came" -ge 5 ] || fail "$1: putting right came by $came of its points only"
	forget
}

# remount: the disk as a power cut at the shutdown leaves it
remount() { # FS
	mount_anew "$1" "$T/mnt"
}

# shut_down FLUSH: -f writes the log before, as an orderly part of a power loss would not
shut_down() {
	xfs_io -x -c "shutdown $1" "$T/mnt" || skip "cannot shut a file system down"
}

# Markers that a sync has seen, then the power goes at a point of the rotation
power_at() { # FS FLUSH POINT...
	local fs=$1 flush=$2 point
	shift 2
	for point; do
		storage FlushSec=100ms SyncIntervalSec=100ms MaxUse=4G KeepFree=0
		echo "$point" >"$T/fault"
		flyrecd_start
		write_markers 5000
		sleep 0.7
		kill -USR2 "$FLYRECD_PID"
		at_fault "$fs, $point"
		shut_down "$flush"
		flyrecd_kill
		remount "$fs"
		: >"$T/fault"
		flyrecd_start
		write_markers 1000
		flyrecd_stop
		all_right "$fs, power lost at $point (shutdown $flush)"
	done
	forget
}

# At any moment of it; and without a fault point, while more is being recorded, which may be lost
power_somewhere() { # FS TIMES
	local i
	for ((i = 0; i < $2; i++)); do
		storage FlushSec=100ms SyncIntervalSec=100ms MaxUse=4G KeepFree=0
		flyrecd_start
		write_markers 5000
		sleep 0.7
		background "$TOOLS/storm" --duration=30 >/dev/null
		kill -USR2 "$FLYRECD_PID"
		sleep "0.$(printf %03d $((RANDOM % 150)))"
		shut_down "$([ $((i % 2)) = 0 ] || echo -f)"
		kill -TERM $!
		wait $! || true
		flyrecd_kill
		remount "$1"
		flyrecd_start
		flyrecd_stop
		verify "$(REC)"
		all_right_but_damaged "$1, power lost somewhere"
	done
	forget
}

# What was not synced may have become *.damaged; markers may not be lost by that
all_right_but_damaged() {
	local damaged
	damaged=$(find "$(REC)" -name '*.damaged')
	[ -z "$damaged" ] || echo "$1: $damaged"
	find "$(REC)" -name '*.damaged' -delete
	all_right "$@"
}

# bigalloc: an ext4 that collapses in steps of 64 KiB only
thorough && all=" btrfs tmpfs bigalloc" || all=
for fs in ${FS:-ext4$all}; do
	command -v "mkfs.$fs" >/dev/null || [ "$fs" = tmpfs ] || [ "$fs" = bigalloc ] || continue
	echo "== $fs"
	case $fs in
	bigalloc) mkfs_mount ext4 600M "$T/mnt" -O bigalloc -C 65536 ;;
	*) mkfs_mount "$fs" 600M "$T/mnt" ;;
	esac
	STATE=$T/mnt/state
	if [ -z "${ONLY_POWER:-}" ]; then
		kill_rotating "$fs"
		kill_stopping "$fs"
		case $fs in ext4 | xfs) kill_recovering "$fs" ;; esac
	fi
	case $fs in
	ext4 | xfs)
		# shellcheck disable=SC2046 # words
		power_at "$fs" "" $(points "$fs")
		# shellcheck disable=SC2046
		power_at "$fs" -f $(points "$fs")
		EVENT=raw_syscalls power_somewhere "$fs" "${TIMES:-$(thorough && echo 10 || echo 3)}"
		;;
	esac
	umount "$T/mnt"
	unset 'MOUNTS[-1]'
done

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# An orderly reboot finishes the segment, with all markers, before flyrecd starts again; which it does
# early in the next boot, before what a machine is there for has begun.
# only: long
# time-limit: 600
# shellcheck source=tests/vm/outside.sh
. "$SRC/tests/vm/outside.sh"
set +e

cat >"$T/run" <<'EOS'
. /job/tests/vm/guest.sh
first_boot() {
	reset
	session boot <<-EOT
		[Trace]
		Event=sched:sched_process_exec
		BufferSize=1M
	EOT
	# What the shutdown has left, seen before the next flyrecd touches it
	cat >/etc/systemd/system/vm-before.service <<-EOT
		[Unit]
		DefaultDependencies=no
		After=systemd-remount-fs.service
		Before=flyrecd.service
		[Service]
		Type=oneshot
		ExecStart=/bin/sh -c 'ls -A $STATE/boot/record >/run/vm-before'
		[Install]
		WantedBy=sysinit.target
	EOT
	systemctl enable --quiet vm-before.service flyrecd.service
	flyrecd_start
	markers_start boot 300
	sleep 1
	markers_stop
	trap - EXIT INT TERM # the end of this process is not that of the recording
	say "recorded, rebooting"
	systemctl reboot
	sleep 300 # ended by that
}

second_boot() {
	local left started reached
	wait_for 60 is_active || fail "not started in the boot: $(systemctl status flyrecd)"
	left=$(cat /run/vm-before)
	[[ $left =~ ^2[0-9T.]*Z\.dat$ ]] || fail "not one finished segment after the reboot, but: ${left//$'\n'/ }"
	verify "$STATE/boot/record/$left"
	markers_check boot
	started=$(systemctl show --property=InactiveExitTimestampMonotonic --value flyrecd)
	reached=$(systemctl show --property=ActiveEnterTimestampMonotonic --value sysinit.target)
	echo "flyrecd was started $((started / 1000)) ms after the kernel, sysinit.target reached after" \
		"$((reached / 1000)) ms"
	[ "$started" -lt "$reached" ] || fail "flyrecd was started after $started us, sysinit.target reached after $reached us"
}

if [ ! -e /root/rebooted ]; then
	touch /root/rebooted
	first_boot
	exit 1
fi
say "booted again"
second_boot
EOS

for machine in ${LONG:+debian12} debian13; do
	REBOOT=1 vm_start "$machine" "$T/$machine" "$T/run" systemd.show_status=yes
	status=0
	vm_wait 560 || status=$?
	cat "$T/$machine/out/log"
	cp "$T/$machine/out/journal" "$LOGS/vm-reboot-$machine.journal"
	cp "$T/$machine/console" "$LOGS/vm-reboot-$machine.console"
	[ "$status" = 0 ] || fail "$machine: $(sed -n 's/^FAIL: //p' "$T/$machine/out/log" | tail -n 1) ($status)"
done

# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What a flyrecd that was taken over can do, for tests that have read lib.sh; in a machine with a
# systemd of its own, where "inside COMMAND..." runs a command and ROOT is its root directory.
#
#	confined_prepare   # what it must not get at, and tests/tools/taken-over.c in flyrecd
#	…                  # start flyrecd
#	confined_check

confined_prepare() {
	local unit=$ROOT/etc/systemd/system
	mkdir -p "$ROOT/etc/ssh" "$ROOT/srv" "$unit/flyrecd.service.d" "$ROOT/usr/local/lib"
	cp "$TOOLS/taken-over.so" "$ROOT/usr/local/lib/"
	printf '[Service]\nEnvironment=LD_PRELOAD=/usr/local/lib/taken-over.so\n' \
		>"$unit/flyrecd.service.d/taken-over.conf"
	printf '[Service]\nExecStart=/bin/true\nRemainAfterExit=yes\n' >"$unit/taken.service"
	printf '[Socket]\nListenStream=/run/root-only\nSocketMode=0600\nAccept=yes\n' >"$unit/root-only.socket"
	printf '[Service]\nExecStart=/bin/true\n' >"$unit/root-only@.service"
	# root's, without a capability, by which flyrecd would be kept from it
	printf '[Service]\nExecStart=/bin/sleep infinity\nCapabilityBoundingSet=\n' >"$unit/victim.service"
}

confined_secrets() {
	# shellcheck disable=SC2016 # for the shell there
	inside sh -c 'umask 077; systemctl daemon-reload && systemctl start root-only.socket victim.service &&
		systemctl show --property=MainPID --value victim >/var/lib/flyrec/victim &&
		for file in /etc/ssh/ssh_host_test_key /etc/test-secret /srv/secret /root/secret /home/secret \
			/run/secret; do echo secret >$file || exit; done
		[ -s /etc/shadow ] && { [ -s /etc/gshadow ] || echo root:::>/etc/gshadow; }' || fail "cannot make secrets"
}

confined_check() {
	local allowed
	wait_for 20 inside test -s /var/lib/flyrec/taken-over || fail "flyrecd was not taken over: a poor test"
	inside cat /var/lib/flyrec/taken-over >"$T/taken-over"
	cat "$T/taken-over"
	[ "$(grep -cE '^(allowed|refused) ' "$T/taken-over")" -ge 40 ] || fail "hardly anything was tried"
	# Its own, and nothing else
	allowed=$(sed -n 's/^allowed //p' "$T/taken-over" | sort | tr '\n' ';')
	[ "$allowed" = "read /etc/group;read /proc/self/status;write /run/flyrec/x;write /var/lib/flyrec/x;" ] ||
		fail "a flyrecd that was taken over may: $allowed"
	[ "$(inside systemctl is-active taken.service)" = inactive ] || fail "it has started a unit"
	# It would work for root; else this test proves nothing
	inside systemctl start taken.service || fail "a poor test"
	inside sh -c 'rm -f /etc/ssh/ssh_host_test_key /etc/test-secret /srv/secret /root/secret /home/secret
		rm -f /run/secret /var/lib/flyrec/victim /var/lib/flyrec/taken-over
		systemctl stop taken.service victim.service root-only.socket'
}

# exposure UNIT...: by systemd-analyze security, at most 1.3, of flyrecd.service (adjtimex) 1.6
confined_exposure() {
	local unit exposure limit
	for unit in "$@"; do
		inside systemd-analyze security --no-pager "$unit" >"$T/security" || true
		exposure=$(sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p' "$T/security")
		echo "$unit: $exposure"
		limit=1.3
		[ "$unit" != flyrecd.service ] || limit=1.6
		awk -v x="$exposure" -v limit=$limit 'BEGIN { exit !(x != "" && x <= limit) }' ||
			fail "exposure of $unit: $exposure: $(grep '✗' "$T/security")"
	done
}

# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A container with a systemd of its own on this machine's kernel, for tests that have read lib.sh:
#
#	container_start flyrecd   # installs flyrec there, boots with that unit enabled
#	guest systemctl status flyrecd
#	container_stop
#
# NSPAWN_OPTIONS, NSPAWN_BINDS, NSPAWN_NETWORK, if set before: further options, and others than the two directories, and
# no network. A test that has several containers changes CONTAINER, the directory of the one that is meant, GUEST_PID
# and NSPAWN; one that needs more packages adds them to CONTAINER_PACKAGES, with a name of its own in CONTAINER_TREE.
#
# It shares the kernel's tracefs, mounted in it by its own systemd; $CONFIG is its /etc/flyrec and
# $STATE its /var/lib/flyrec. /proc/sys and the rest of /sys are read-only there. It needs neither
# systemd nor a container manager on the machine itself; on a machine with the old cgroup hierarchies
# it sees the unified one alone.
#
# The tree below it is made once of Debian packages and kept in $FLYREC_TEST_CACHE
# (/var/cache/flyrec-test), under a name made of what it is made of.

no_sanitizers "the container does not have their libraries, and the units' sandboxes no room for them"
# shellcheck source=tests/tools/debian-tree.sh
. "$SRC/tests/tools/debian-tree.sh"
CONTAINER=$T GUEST_PID='' NSPAWN='' CGROUP='' NSPAWN_OPTIONS=() NSPAWN_NETWORK=(--private-network)
NSPAWN_BINDS=("--bind=$CONFIG:/etc/flyrec" "--bind=$STATE:/var/lib/flyrec")

# what flyrecd and flyrecctl are linked with, beside systemd and the bus itself
CONTAINER_PACKAGES=systemd,dbus,systemd-sysv,libelf1,libtracefs1,libsqlite3-0,libedit2,libtraceevent1,libtraceevent1-plugin,libjson-c5
CONTAINER_TREE=container

# Would change the machine, or waits for what a container does not have
CONTAINER_MASKED='systemd-sysctl.service systemd-modules-load.service systemd-binfmt.service
	systemd-random-seed.service systemd-remount-fs.service systemd-update-utmp.service
	systemd-logind.service systemd-networkd.service systemd-resolved.service getty.target
	e2scrub_reap.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer'

make_tree() { # SUITE DIRECTORY
	local unit
	debian_make "$1" minbase "$CONTAINER_PACKAGES" "$2"
	for unit in $CONTAINER_MASKED; do
		ln -sf /dev/null "$2/etc/systemd/system/$unit"
	done
	: >"$2/etc/machine-id"
}

# container_tree: makes it if need be; its path is in TREE
container_tree() {
	need_command mmdebstrap systemd-nspawn nsenter unshare
	[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || skip "needs debian-archive-keyring"
	# shellcheck source=/dev/null
	. /etc/os-release
	[ "${ID:-}" = debian ] || skip "makes its container of Debian's packages"
	debian_cached "$CONTAINER_TREE-$VERSION_CODENAME" "$CONTAINER_PACKAGES $CONTAINER_MASKED" \
		make_tree "$VERSION_CODENAME"
	TREE=$CACHED
}

# A cgroup of its own, as nspawn puts its container below the one it is in
container_cgroup() {
	local root
	[ -z "$CGROUP" ] || return 0
	root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$root" ] || skip "no cgroup2 is mounted"
	CGROUP=$root/flyrec-${PREFIX%.}
	mkdir "$CGROUP" 2>/dev/null || skip "cannot make cgroups here"
	at_end remove_cgroup
}

remove_cgroup() {
	[ ! -d "$CGROUP" ] || find "$CGROUP" -depth -type d -exec rmdir {} +
}

nspawn() {
	local group=$CGROUP
	[ "$CONTAINER" = "$T" ] || group+=/${CONTAINER##*/}
	mkdir -p "$group"
	echo "$BASHPID" >"$group/cgroup.procs"
	# shellcheck disable=SC2016 # expanded by the inner shell
	exec unshare --mount --propagation private bash -c '
		mount -t tmpfs tmpfs /run || exit
		if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
			umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit
		fi
		exec systemd-nspawn "$@"' nspawn --quiet --boot --directory="$CONTAINER/root" --register=no --keep-unit \
		--console=pipe --capability=all \
		--system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self" \
		"${NSPAWN_NETWORK[@]}" "${NSPAWN_BINDS[@]}" "${NSPAWN_OPTIONS[@]}"
}

guest() {
	nsenter --target "$GUEST_PID" --mount --uts --ipc --net --pid env -i \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_COLORS=0 SYSTEMD_PAGER=cat "$@"
}

# nspawn has another child before the one that becomes the container's first process
guest_is_up() {
	GUEST_PID=$(ps -o pid= --ppid "$NSPAWN" | head -n 1 | tr -d ' ')
	ended "$NSPAWN" || { [ -n "$GUEST_PID" ] && guest systemctl is-system-running 2>/dev/null |
		grep -qE 'running|degraded'; }
}

# container_make: all but flyrec, not booted yet
container_make() {
	container_tree
	container_cgroup
	mkdir -p "$CONTAINER"/{upper,work,root} "$STATE" "$CONFIG/sessions.d"
	daemon_config </dev/null
	mount -t overlay -o "lowerdir=$TREE,upperdir=$CONTAINER/upper,workdir=$CONTAINER/work" overlay "$CONTAINER/root" ||
		skip "cannot mount an overlay"
	MOUNTS+=("$CONTAINER/root")
}

# container_start [UNIT...]: with flyrec installed, these units enabled; waits until all is up
container_start() {
	container_make
	make -C "$BUILD" --no-print-directory -s install "DESTDIR=$CONTAINER/root" >"$T/install.log" 2>&1 ||
		fail "make install: $(tail -n 5 "$T/install.log")"
	# Debian's bus does not look below /usr/local
	mkdir -p "$CONTAINER/root/etc/dbus-1/system.d"
	cp "$SRC/systemd/org.flyrec.Recorder1.conf" "$CONTAINER/root/etc/dbus-1/system.d/"
	[ $# = 0 ] || systemctl --quiet --root="$CONTAINER/root" enable "$@" || fail "cannot enable $*"
	container_boot
}

container_boot() {
	background nspawn >"$CONTAINER/console" 2>&1 </dev/null
	NSPAWN=$!
	wait_for 30 guest_is_up || fail "systemd does not come up: $(tail -n 5 "$CONTAINER/console")"
	! ended "$NSPAWN" || fail "systemd-nspawn: $(tail -n 5 "$CONTAINER/console")"
	# some versions of nspawn hide it, a machine does not
	! guest mountpoint -q /proc/kallsyms ||
		guest sh -c 'umount /proc/kallsyms && systemctl try-restart flyrecd'
}

container_stop() {
	kill -TERM "$NSPAWN"
	wait_for 30 ended "$NSPAWN" || fail "the container does not stop"
	wait "$NSPAWN" || fail "systemd-nspawn ended with status $?"
}

# has_capability STATUS-FILE NUMBER: in the bounding set of that process
has_capability() {
	local set
	set=$(sed -n 's/^CapBnd:[[:space:]]*//p' "$1")
	[ $((0x$set >> $2 & 1)) = 1 ]
}

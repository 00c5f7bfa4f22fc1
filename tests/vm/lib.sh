# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Virtual machines for tests: QEMU, kernels and systems are trees of Debian packages that are made
# once (see debian-tree.sh), so that nothing of them is installed on the machine. What the trees
# hold is read here; what happens in a machine is in guest.sh.
#
#	machines   debian12    Linux 6.1, systemd 252
#	           debian13    Linux 6.12, systemd 257
#	           backports   Debian 13 with the kernel of its backports
#	           built       Debian 13 with its Linux 6.12 built anew with what no kernel of Debian
#	                       has: the timerlat tracer and user_events. That takes an hour of CPU time
#
# A machine has its root file system (each boot begins with what the image holds), a disk "data"
# (scratch unless DATA names a file) and runs one script as a job.
#
# Set for those who read this: VM (directory of this boot's files), SRC, BUILD.

# shellcheck source=tests/tools/debian-tree.sh
. "$SRC/tests/tools/debian-tree.sh"
# shellcheck source=tests/tools/package.sh
. "$SRC/tests/tools/package.sh"

VM_PACKAGES=systemd,systemd-sysv,udev,dbus,trace-cmd,procps,kmod,dmsetup,xfsprogs,e2fsprogs,util-linux
VM_PACKAGES+=,util-linux-extra,libelf1,rtla,libtracefs1,libtraceevent1,libtraceevent1-plugin,libtracecmd1,libjson-c5,libsqlite3-0,libedit2,jq,strace,attr
# Units that take time, of no use in a machine that lives for minutes
VM_MASKED='apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer
	e2scrub_reap.service getty@tty1.service serial-getty@ttyS0.service systemd-timesyncd.service
	systemd-pstore.service systemd-binfmt.service modprobe@drm.service modprobe@fuse.service
	modprobe@configfs.service systemd-random-seed.service ldconfig.service
	systemd-hwdb-update.service systemd-journal-catalog-update.service logrotate.timer
	systemd-logind.service systemd-user-sessions.service systemd-remount-fs.service
	systemd-udev-load-credentials.service systemd-ask-password-console.path
	systemd-ask-password-wall.path systemd-tmpfiles-clean.timer dev-hugepages.mount dev-mqueue.mount
	run-lock.mount tmp.mount xfs_scrub_all.timer proc-sys-fs-binfmt_misc.automount'
# Modules for devices that no such machine has
VM_NO_MODULES='drivers/gpu drivers/infiniband drivers/net drivers/media drivers/usb drivers/comedi
	drivers/hid drivers/iio net sound fs/nfs fs/nfsd fs/smb fs/cifs fs/ceph fs/ocfs2 fs/gfs2
	drivers/staging drivers/scsi drivers/hv drivers/iommu drivers/accel drivers/crypto drivers/ata'

vm_cached() { # NAME COMMAND ARGUMENT...
	debian_cached "$1" "$VM_PACKAGES $VM_MASKED $VM_NO_MODULES" "${@:2}"
}

vm_make_qemu() { # DIRECTORY
	# 7.2, Debian 12's, ends guests whose kernel patches its text
	debian_make trixie minbase qemu-system-x86 "$1"
}

vm_make_kernel() { # SUITE PACKAGE DIRECTORY: vmlinuz, and modules/ below the release's name
	local tree=$3.tree modules release
	debian_make "$1" extract "$2" "$tree"
	modules=$(find "$tree/lib/modules" "$tree/usr/lib/modules" -mindepth 1 -maxdepth 1 -type d \
		2>/dev/null | head -n 1)
	release=${modules##*/}
	mkdir -p "$3/modules"
	find "$tree" -name "vmlinuz*" -type f -exec mv {} "$3/vmlinuz" \;
	mv "$modules" "$3/modules/"
	# shellcheck disable=SC2086 # a list
	(cd "$3/modules/$release/kernel" && rm -rf $VM_NO_MODULES)
	rm -f "$3/modules/$release/System.map"
	rm -rf --one-file-system "$tree"
}

vm_make_built_kernel() { # SUITE VERSION DIRECTORY: as vm_make_kernel, from Debian's source
	local tree=$3.tree
	# in the tree. In here, so that the kernel is made anew when this changes
	# shellcheck disable=SC2317,SC2329 # called in there
	build() {
		cd /usr/src && tar -xf linux-source-"$1".tar.xz && cd linux-source-"$1" || return
		xz -dc ../linux-config-"$1"/config.amd64_none_cloud-amd64.xz >.config
		scripts/config -e OSNOISE_TRACER -e TIMERLAT_TRACER -e USER_EVENTS -e VIRTIO_BLK -e DEBUG_INFO_NONE \
			-d DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT -d DEBUG_INFO_BTF -d MODULE_SIG -d SECURITY_LOCKDOWN_LSM \
			-d SYSTEM_TRUSTED_KEYRING --set-str SYSTEM_TRUSTED_KEYS "" --set-str SYSTEM_REVOCATION_KEYS ""
		printf '%s 0 0\n' Module xfs dm_mod loop overlay >loaded
		make -s olddefconfig && make -s LSMOD="$PWD/loaded" localmodconfig </dev/null &&
			[ "$(grep -cE '^CONFIG_(TIMERLAT_TRACER|USER_EVENTS)=y' .config)" = 2 ] && nice make -s -j"$(nproc)" &&
			make -s INSTALL_MOD_PATH=/built modules_install && cp arch/x86/boot/bzImage /built/vmlinuz
	}
	debian_make "$1" minbase "build-essential,bc,bison,flex,kmod,libelf-dev,libssl-dev,python3,xz-utils,zstd,linux-source-$2,linux-config-$2" \
		"$tree"
	mkdir -p "$tree/built" "$3"
	chroot "$tree" bash -c "$(declare -f build); build $2" >"$tree.log" 2>&1 ||
		fail "cannot build Linux $2: $(tail -n 5 "$tree.log")"
	mv "$tree/built/vmlinuz" "$tree/built/lib/modules" "$3/"
	rm -f "$3"/modules/*/{build,source} "$tree.log"
	rm -rf --one-file-system "$tree"
}

vm_make_system() { # SUITE DIRECTORY
	local unit
	debian_make "$1" minbase "$VM_PACKAGES" "$2"
	for unit in $VM_MASKED; do
		ln -sf /dev/null "$2/etc/systemd/system/$unit"
	done
	# A daemon-reload runs all of them, which takes a second where a CPU is emulated
	mkdir -p "$2/etc/systemd/system-generators"
	for unit in "$2/usr/lib/systemd/system-generators/"* "$2/lib/systemd/system-generators/"*; do
		ln -sf /dev/null "$2/etc/systemd/system-generators/$(basename "$unit")"
	done
	# Of the devices there are at a boot only the disks matter
	echo virtio_blk >"$2/etc/modules-load.d/vm.conf"
	mkdir -p "$2/etc/systemd/system/systemd-udev-trigger.service.d"
	printf '[Service]\nExecStart=\nExecStart=-udevadm trigger --action=add --subsystem-match=block\n' \
		>"$2/etc/systemd/system/systemd-udev-trigger.service.d/vm.conf"
	echo vm >"$2/etc/hostname"
	: >"$2/etc/fstab"
	echo 0123456789abcdef0123456789abcdef >"$2/etc/machine-id"
	chroot "$2" passwd --quiet --delete root
	touch -r "$2/usr" "$2/etc/.updated" "$2/var/.updated"
}

# The unit that runs the job, and a target that comes after all of a usual boot
vm_add_job_unit() { # TREE
	mkdir -p "$1/job" "$1/usr/local/sbin" "$1/etc/systemd/system/serial-getty@ttyS0.service.d"
	cat >"$1/usr/local/sbin/vm-job" <<-'EOS'
		#!/bin/sh
		# "job": a tar file; "out": a raw disk that gets a tar file of /job/out
		disks=/dev/disk/by-id
		until [ -e $disks/virtio-job ] && [ -e $disks/virtio-out ]; do sleep 0.1; done
		mkdir -p /job && cd /job && tar -xf $disks/virtio-job && mkdir -p out || poweroff -ff
		bash ./run >out/log 2>&1
		echo $? >out/status
		journalctl --sync
		journalctl --boot --no-pager >out/journal 2>&1
		dmesg >out/dmesg
		tar -cf $disks/virtio-out -C /job out && sync
		poweroff -ff
	EOS
	chmod +x "$1/usr/local/sbin/vm-job"
	cat >"$1/etc/systemd/system/vm-job.service" <<-'EOS'
		[Unit]
		Description=Run the Test's Job
		After=multi-user.target
		[Service]
		# exec: the system counts as running while it is under way
		Type=exec
		ExecStart=/usr/local/sbin/vm-job
		OOMScoreAdjust=-1000
		TasksMax=infinity
	EOS
	cat >"$1/etc/systemd/system/vm-job.target" <<-'EOS'
		[Unit]
		Requires=multi-user.target
		After=multi-user.target
		Wants=vm-job.service
		AllowIsolate=yes
	EOS
	printf '[Service]\nExecStart=\nExecStart=-/sbin/agetty --autologin root --noclear %%I vt220\n' \
		>"$1/etc/systemd/system/serial-getty@ttyS0.service.d/autologin.conf"
}

# vm_make_image SYSTEM KERNEL PACKAGE FILE: with flyrec installed from the package
vm_make_image() {
	local system=$1 kernel=$2 package=$3 file=$4 work release made=
	work=$file.work
	release=$(basename "$kernel"/modules/*)
	mkdir -p "$work"/{upper,work,root}
	mount -t overlay -o "lowerdir=$system,upperdir=$work/upper,workdir=$work/work" overlay \
		"$work/root" || skip "cannot mount an overlay"
	if mkdir -p "$work/root/usr/lib/modules" && vm_add_job_unit "$work/root" &&
		cp -a "$kernel/modules/$release" "$work/root/usr/lib/modules/" &&
		chroot "$work/root" depmod "$release" &&
		cp "$package" "$work/root/root/flyrec.deb" &&
		chroot "$work/root" dpkg --install /root/flyrec.deb >"$file.log" 2>&1 &&
		# else dbus, which is not root, reads no policy again
		chmod 0755 "$work/root" &&
		# Without checksums of metadata, which take their time where a CPU is emulated
		mke2fs -q -t ext4 -O ^metadata_csum -E lazy_itable_init=1,lazy_journal_init=1,nodiscard \
			-m 0 -L root -d "$work/root" "$file" 1400M >>"$file.log" 2>&1; then
		made=1
	fi
	umount "$work/root"
	rm -rf --one-file-system "$work"
	[ -n "$made" ] || fail "cannot make $file: $(tail -n 5 "$file.log")"
	rm -f "$file.log"
}

# vm_package: its path is in PACKAGE
vm_package() {
	PACKAGE=${FLYREC_VM_PACKAGE:-}
	[ -n "$PACKAGE" ] || package_make
}

# vm_image MACHINE SYSTEM: its path is in IMAGE; made if the package is newer, or if there is none under
# a name made of what it is made of. Two boots of a machine may begin at once.
vm_image() {
	local key
	key=$({ basename -a "$2" "$KERNEL" && declare -f vm_make_image vm_add_job_unit; } | sha256sum |
		cut -c 1-12)
	IMAGE=$BUILD/vm-$1-$key.img
	exec 9>"$BUILD/vm-image.lock"
	flock 9
	if [ ! -e "$IMAGE" ] || [ "$PACKAGE" -nt "$IMAGE" ]; then
		rm -f "$BUILD/vm-$1"*.img{,.new}
		vm_make_image "$2" "$KERNEL" "$PACKAGE" "$IMAGE.new"
		mv "$IMAGE.new" "$IMAGE"
	fi
	exec 9>&-
}

# vm_trees MACHINE: KERNEL, SYSTEM, QEMU
vm_trees() {
	local suite=trixie tree
	case $1 in
	debian12) suite=bookworm && vm_cached "kernel-$1" vm_make_kernel bookworm linux-image-cloud-amd64 ;;
	debian13) vm_cached "kernel-$1" vm_make_kernel trixie linux-image-cloud-amd64 ;;
	backports)
		vm_cached "kernel-$1" vm_make_kernel trixie-backports \
			linux-image-cloud-amd64/trixie-backports
		;;
	built) vm_cached "kernel-$1" vm_make_built_kernel trixie 6.12 ;;
	*) fail "no machine $1: debian12, debian13, backports and built there are" ;;
	esac
	KERNEL=$CACHED
	vm_cached "system-$suite" vm_make_system "$suite"
	SYSTEM=$CACHED
	vm_cached qemu vm_make_qemu
	tree=$CACHED
	QEMU=("$tree/lib64/ld-linux-x86-64.so.2" --library-path "$tree/usr/lib/x86_64-linux-gnu"
		"$tree/usr/bin/qemu-system-x86_64" -L "$tree/usr/share/qemu" -L "$tree/usr/share/seabios")
}

# vm_prepare MACHINE: these and IMAGE; needs PACKAGE
vm_prepare() {
	vm_trees "$1"
	vm_image "$1" "$SYSTEM"
}

# vm_start MACHINE DIRECTORY RUN [APPEND...]: boots in the background, to run RUN, a script whose lines
# may use what guest.sh has; APPEND goes to the kernel's command line. What comes out is in
# DIRECTORY: console, and after vm_wait out/ with log, status, journal. For the machine itself:
# CPUS (2), MEMORY (1024 MiB), NICE (0), LEAPS=1 (time goes on at once when nothing happens), DATA (file of the data disk, else 4 GiB of nothing),
# REBOOT=1 (a reboot, which otherwise ends the machine, boots again).
vm_start() {
	local dir=$2 data=${DATA:-$2/data.img} reboot=shutdown time=(-accel "tcg,thread=multi") on=()
	VM=$dir
	vm_prepare "$1"
	rm -rf "$dir/out"
	mkdir -p "$dir"/job/{tests/vm,tests/integration,build/tests/tools,basic}
	cp "$SRC/basic/log.h" "$dir/job/basic/"
	cp -a "$SRC/tests/integration/"{lib.sh,flight-lib.sh,confined-lib.sh,leftovers} "$dir/job/tests/integration/"
	cp -a "$SRC/tests/vm/"{guest.sh,scenarios,outside} "$dir/job/tests/vm/"
	find "$BUILD/tests/tools" -maxdepth 1 -type f -executable \
		-exec cp -t "$dir/job/build/tests/tools" {} +
	cp "$3" "$dir/job/run"
	tar -cf "$dir/job.tar" -C "$dir/job" .
	rm -rf "$dir/job"
	truncate -s %1M "$dir/job.tar"
	rm -f "$dir/out.raw"
	truncate -s 256M "$dir/out.raw"
	[ -e "$data" ] || truncate -s 4G "$data"
	[ -z "${REBOOT:-}" ] || reboot=reset
	# Eight nanoseconds an instruction, about as fast as they are emulated. On one CPU: at each leap one
	# thread wakes another, which takes more than twice as long from one CPU to another.
	[ -z "${LEAPS:-}" ] || {
		time=(-accel "tcg,thread=single" -icount "shift=3,sleep=off" -rtc clock=vm)
		on=(taskset -c "$(($(nproc) - 1))")
	}
	: >"$dir/console"
	# Nehalem: what the newest processor can do more costs a fifth more time where it is emulated, and
	# 64 of them never got anywhere. rdrand: or the kernel keeps a CPU busy until it finds its times
	# random. clearcpuid: no pages cleared by an instruction that repeats itself.
	"${on[@]}" nice -n "${NICE:-0}" "${QEMU[@]}" -machine q35 "${time[@]}" -cpu Nehalem,+rdrand -smp "${CPUS:-2}" -m "${MEMORY:-1024}" \
		-nodefaults -no-user-config -display none -serial "${CONSOLE:-file:$dir/console}" \
		-action "reboot=$reboot" \
		-drive "if=none,id=r,format=raw,file=$IMAGE,snapshot=on,cache=unsafe" \
		-device nvme,drive=r,serial=root \
		-drive "if=none,id=j,format=raw,file=$dir/job.tar,readonly=on" \
		-device virtio-blk-pci,drive=j,serial=job \
		-drive "if=none,id=o,format=raw,file=$dir/out.raw,cache=unsafe" \
		-device virtio-blk-pci,drive=o,serial=out \
		-drive "if=none,id=d,format=raw,file=$data,cache=writeback" \
		-device virtio-blk-pci,drive=d,serial=data \
		-kernel "$KERNEL/vmlinuz" -append "root=/dev/nvme0n1 rw rootwait console=ttyS0 quiet \
panic=${PANIC:--1} mitigations=off init_on_alloc=0 clearcpuid=112 audit=0 systemd.unit=${UNIT:-vm-job.target} ${*:4}" 2>"$dir/qemu.log" &
	VM_PID=$!
}

# vm_wait SECONDS: until the machine is off, which it is by then; unpacks out/. Status: the job's.
vm_wait() {
	local end=$((SECONDS + $1))
	while kill -0 "$VM_PID" 2>/dev/null; do
		[ $SECONDS -lt $end ] || { kill -KILL "$VM_PID" && break; }
		sleep 0.1
		# QEMU does not see it after a sleep
		! grep -aq 'reboot: Power down' "$VM/console" || [ $end -le $((SECONDS + 3)) ] || end=$((SECONDS + 3))
	done
	wait "$VM_PID" 2>/dev/null
	VM_PID=
	tar -xf "$VM/out.raw" -C "$VM" 2>/dev/null
	[ ! -r "$VM/out/status" ] || return "$(cat "$VM/out/status")"
	return 125
}

# vm_cut: the power is cut
vm_cut() {
	kill -KILL "$VM_PID"
	wait "$VM_PID" 2>/dev/null
	VM_PID=
}

# vm_said SECONDS PATTERN: wait for a line of the console
vm_said() {
	local end=$((SECONDS + $1))
	until grep -aqE "$2" "$VM/console"; do
		kill -0 "$VM_PID" 2>/dev/null || return 1
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

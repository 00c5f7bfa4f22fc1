#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 150
#
# The image of a virtual machine of tests/vm is made once, also by two that begin at once, and again
# after a change of what it is made of; then the older one is removed, other machines' are not. Without
# a machine: what makes trees and images is replaced.
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2034 # for vm/lib.sh
BUILD=$T PACKAGE=$T/flyrec.deb
# shellcheck source=tests/vm/lib.sh
. "$SRC/tests/vm/lib.sh"

DEBIAN=1 LINUX=1
vm_cached() { # NAME COMMAND...
	case $1 in
	system-*) CACHED=$T/$1-$DEBIAN ;;
	kernel-*) CACHED=$T/$1-$LINUX ;;
	*) CACHED=$T/$1 ;;
	esac
}

vm_make_image() { # SYSTEM KERNEL PACKAGE FILE
	sleep 0.3
	echo "$*" >"$4"
	echo "$4" >>"$T/made"
}

# image_of MACHINE COUNT WHEN: so many were made by now, and this is the machine's only one
image_of() {
	local images
	vm_prepare "$1"
	[ "$(wc -l <"$T/made")" = "$2" ] || fail "$3: $(wc -l <"$T/made") images made, not $2"
	images=("$T/vm-$1"*.img)
	[ "${images[*]}" = "$IMAGE" ] || fail "$3: $IMAGE expected: ${images[*]}"
}

touch "$PACKAGE"
background vm_prepare debian12
image_of debian12 1 "two at once"
wait $!
image_of debian12 1 "nothing has changed"
image_of debian13 2 "another machine"
DEBIAN=2
image_of debian12 3 "other packages"
LINUX=2
image_of debian12 4 "another kernel"
eval "$(declare -f vm_add_job_unit | sed 's/multi-user/basic/')"
image_of debian12 5 "another unit"
DEBIAN=1 LINUX=1
image_of debian13 6 "another unit, the other machine"
touch -d 'now + 1 hour' "$PACKAGE"
image_of debian13 7 "a newer package"

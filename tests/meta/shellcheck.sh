#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# No shell script of the tree gives shellcheck reason to complain.
set -eu
cd "$(dirname "$0")/../.."
command -v shellcheck >/dev/null || {
	echo "SKIP: needs shellcheck"
	exit 77
}
scripts=$(find . -type d \( -name .git -o -name 'build*' -o -name autom4te.cache \) -prune -o \
	-type f -exec grep -lE -m 1 '^(#!/bin/(ba)?sh|# shellcheck shell=)' {} + |
	grep -vE '^\./(configure|config\.status|.*\.in|.*~)$')
[ "$(echo "$scripts" | wc -l)" -ge 10 ] || {
	echo "FAIL: found too few scripts"
	exit 1
}
echo "$scripts" | xargs -P "$(nproc)" -n 8 shellcheck || {
	echo "FAIL: shellcheck has complaints"
	exit 1
}

#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# All C files are as .clang-format says; `tests/meta/format.sh --fix` makes them so. Versions of
# clang-format differ, so only Debian 12's 14 counts.
set -eu
cd "$(dirname "$0")/../.."
format=clang-format-14
command -v "$format" >/dev/null || {
	echo "SKIP: needs $format"
	exit 77
}
folders='basic formats recorder writer daemon ctl tests bench'
files=$(for folder in $folders; do
	[ ! -d "$folder" ] || find "$folder" -name '*.[ch]'
done)
if [ "${1:-}" = --fix ]; then
	# shellcheck disable=SC2086 # no blanks in our file names
	$format -i $files
	exit
fi
status=0
for file in $files; do
	$format "$file" | diff -u --label "$file" --label "$file (formatted)" "$file" - || status=1
done
[ $status = 0 ] || echo "FAIL: run tests/meta/format.sh --fix"
exit $status

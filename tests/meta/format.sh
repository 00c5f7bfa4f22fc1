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
files=$(find basic formats decode analysis query recorder writer engine config convert fleet daemon ctl tests bench -name '*.[ch]')
if [ "${1:-}" = --fix ]; then
	# shellcheck disable=SC2086 # no blanks in our file names
	$format -i $files
	exit
fi
# shellcheck disable=SC2086
printf '%s\n' $files | xargs -P 2 -n 32 "$format" --dry-run --Werror || {
	echo "FAIL: run tests/meta/format.sh --fix"
	exit 1
}

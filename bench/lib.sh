# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# For the benchmarks: options and, where tests/integration/lib.sh is not used, a place for files.
src=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # an option of most
build=$src/build
words=()

# usage: the comment at the head of the script
usage() {
	awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"
	exit 2
}

# options NAME... -- WORD...: of the words --NAME=VALUE sets $NAME, where NAME ends in "?" --NAME sets
# it to "yes"; $words is what is no option
options() {
	local names=" $*" word name
	names="${names%% -- *} "
	while [ "$1" != -- ]; do shift; done
	shift
	for word in "$@"; do
		name=${word#--}
		if [[ $word == --*=* && $names == *" ${name%%=*} "* ]]; then
			printf -v "${name%%=*}" %s "${name#*=}"
		elif [[ $word == --* && $names == *" $name? "* ]]; then
			printf -v "$name" yes
		elif [[ $word == -* ]]; then
			usage
		else
			words+=("$word")
		fi
	done
}

# place DIRECTORY: $dir in it, removed in the end, with $instance if one was made
place() {
	dir=$(mktemp -d "$1/flyrec-bench.XXXXXX")
	instance=/sys/kernel/tracing/instances/bench.$$
	trap 'rm -rf "$dir"; [ ! -d "$instance" ] || rmdir "$instance"' EXIT
}

# record FILE TRACE-CMD-ARGUMENT...: with trace-cmd, in $instance
record() {
	local file=$1
	shift
	mkdir "$instance"
	"$src/tests/tools/peer-trace-cmd" record --file-version 6 -o "$file" -B "${instance##*/}" \
		"$@" >"$dir/log" 2>&1 || {
		cat "$dir/log" >&2
		exit 1
	}
	rmdir "$instance" 2>/dev/null || true
}

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# flyrecd and flyrecctl, built without flags of the user's own, are position independent, have all
# their tables read-only when main() begins, a stack protector and the C library's checked calls.
set -eu
cd "$(dirname "$0")/../.."
build=${FLYREC_BUILD:-build}

skip() {
	echo "SKIP: $1"
	exit 77
}

command -v readelf >/dev/null || skip "needs readelf"
[ -x "$build/flyrecd" ] || skip "nothing is built in $build"
! grep -qE '^(SAN_CFLAGS|FUZZ_CFLAGS) = .*-fsanitize' "$build/Makefile" || skip "built with sanitizers"
! grep -qE "^ac_cv_env_(CFLAGS|LDFLAGS)_set=set" "$build/config.log" || skip "built with other flags"

tmp=$(mktemp)
status=0
fail() {
	echo "FAIL: $1"
	status=1
}

for program in "$build/flyrecd" "$build/flyrecctl" "$build/flyrec-announce" "$build/flyrec-follow" "$build/flyrec-fleet"; do
	[ -x "$program" ] || continue # without mosquitto
	readelf --wide --file-header --program-headers --dynamic "$program" >"$tmp"
	grep -qE 'Type: +DYN' "$tmp" || fail "$program is not position independent"
	grep -q 'GNU_RELRO' "$tmp" || fail "$program has no RELRO"
	grep -qE '\(FLAGS\).*BIND_NOW|\(BIND_NOW\)|\(FLAGS_1\).*NOW' "$tmp" || fail "$program binds lazily"
	! grep -qE 'GNU_STACK.* RWE ' "$tmp" || fail "the stack of $program can be executed"
	readelf --wide --dyn-syms "$program" >"$tmp"
	grep -q ' __stack_chk_fail@' "$tmp" || fail "$program has no stack protector"
	n=$(grep -cE ' UND __[a-z]*_chk@' "$tmp" || true)
	[ "$n" -ge 5 ] || fail "$program has $n checked calls"
done
rm -f "$tmp"
exit $status

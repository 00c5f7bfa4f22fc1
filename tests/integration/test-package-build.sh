#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 1200
# beside: idle
#
# The Debian package: built twice it is the same, has debug symbols, and lintian has nothing to say.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/tools/package.sh"
need_command dh dpkg-buildpackage lintian

package_make
DEB_BUILD_OPTIONS=nocheck "$SRC/packaging/make-deb" "$PACKAGE_TAR" "$T/again" >"$T/again.log" 2>&1 ||
	fail "make-deb: $(tail -n 20 "$T/again.log")"
cmp "$PACKAGE" "$T/again/$(basename "$PACKAGE")" || fail "the second build gives another package"
for symbols in "$PACKAGE_DIR"/flyrec-dbgsym_*.deb; do
	dpkg-deb --contents "$symbols" >"$T/symbols"
	[ "$(grep -c '\.debug$' "$T/symbols")" -ge 2 ] || fail "no debug symbols of flyrecd and flyrecctl: $(cat "$T/symbols")"
	cmp "$symbols" "$T/again/$(basename "$symbols")" || fail "the second build gives other debug symbols"
done
[ -s "$T/symbols" ] || fail "no package of debug symbols"
lintian --allow-root --display-info --fail-on error,warning,info "$PACKAGE_DIR"/*.changes >"$T/lintian" 2>&1 ||
	fail "lintian: $(head -n 5 "$T/lintian")"

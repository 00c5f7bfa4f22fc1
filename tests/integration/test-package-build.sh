#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 1200
# tests: all
# beside: idle
#
# The Debian package: built twice it is the same, also the tar file it is made of, in another time zone and
# with another umask; it has debug symbols, and lintian has nothing to say, also of the source package.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/tools/package.sh"
need_command dh dpkg-buildpackage lintian

package_make
again() {
	umask 027
	export TZ=Pacific/Kiritimati LC_ALL=C.UTF-8
	make -C "$BUILD" --no-print-directory -s dist && mv "$BUILD"/flyrec-*.tar.xz "$T" &&
		DEB_BUILD_OPTIONS=nocheck "$SRC/packaging/make-deb" "$T"/flyrec-*.tar.xz "$T/again"
}
(again) >"$T/again.log" 2>&1 || fail "make-deb: $(tail -n 20 "$T/again.log")"
cmp "$PACKAGE_TAR" "$T"/flyrec-*.tar.xz || fail "the second tar file is another one"
cmp "$PACKAGE" "$T/again/$(basename "$PACKAGE")" || fail "the second build gives another package"
for symbols in "$PACKAGE_DIR"/flyrec-dbgsym_*.deb; do
	dpkg-deb --contents "$symbols" >"$T/symbols"
	[ "$(grep -c '\.debug$' "$T/symbols")" -ge 2 ] || fail "no debug symbols of flyrecd and flyrecctl: $(cat "$T/symbols")"
	cmp "$symbols" "$T/again/$(basename "$symbols")" || fail "the second build gives other debug symbols"
done
[ -s "$T/symbols" ] || fail "no package of debug symbols"
mkdir "$T/source"
tar -C "$T/source" -xf "$PACKAGE_TAR"
(cd "$T/source" && dpkg-source --build flyrec-* >"$T/source.log" 2>&1) || fail "dpkg-source: $(tail -n 5 "$T/source.log")"
lintian --allow-root --display-info --fail-on error,warning,info "$PACKAGE_DIR"/*.changes "$T"/source/*.dsc \
	>"$T/lintian" 2>&1 ||
	fail "lintian: $(head -n 5 "$T/lintian")"

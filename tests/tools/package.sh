# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The release's tar file and the Debian packages of this tree, made once for all tests that want them;
# for scripts that have SRC, BUILD and fail.

package_is_old() {
	[ ! -e "$PACKAGE" ] || [ -n "$(cd "$SRC" && find Makefile.am configure.ac m4 analysis basic cockpit config convert ctl daemon decode doc engine \
		fleet formats page query recorder writer systemd sessions man completion debian packaging -newer "$PACKAGE")" ]
}

# Not with the time that others leave: they may be waiting for it
package_build() {
	renice --priority 0 --pid "$BASHPID" >/dev/null
	rm -rf "$PACKAGE_DIR"
	mkdir -p "$PACKAGE_DIR"
	make -C "$BUILD" --no-print-directory -s dist && mv "$BUILD"/flyrec-*.tar.xz "$PACKAGE_DIR" &&
		DEB_BUILD_OPTIONS=nocheck "$SRC/packaging/make-deb" "$PACKAGE_DIR"/flyrec-*.tar.xz "$PACKAGE_DIR"
}

# package_make: in PACKAGE_DIR, made anew if anything they are made of is newer; the tar file is in
# PACKAGE_TAR, the package in PACKAGE. Others may want them at the same time.
package_make() {
	PACKAGE_DIR=$BUILD/package
	exec 9>"$BUILD/package.lock"
	flock 9
	PACKAGE=$(echo "$PACKAGE_DIR"/flyrec_*.deb)
	! package_is_old || (package_build) >"$BUILD/package.log" 2>&1 9>&- ||
		fail "cannot make the package: $(tail -n 20 "$BUILD/package.log")"
	exec 9>&-
	PACKAGE=$(echo "$PACKAGE_DIR"/flyrec_*.deb)
	# shellcheck disable=SC2034 # for those who read this
	PACKAGE_TAR=$(echo "$PACKAGE_DIR"/flyrec-*.tar.xz)
}

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 1200
# tests: all
# beside: idle
#
# The RPM spec builds of the release's tar file, and its package has the files of the Debian one, with
# the same modes; each unit that can be enabled is named to systemd's scriptlets. Installs nothing.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/tools/package.sh"
need_command rpmbuild rpm dh dpkg-buildpackage

# systemd-rpm-macros, as far as the spec uses them; Debian has none
cat >"$T/macros" <<'EOF'
%_unitdir /usr/lib/systemd/system
%systemd_requires Requires: systemd
%systemd_post() echo post %{*}
%systemd_preun() echo preun %{*}
%systemd_postun_with_restart() echo restart %{*}
EOF

package_make
rpmbuild -tb --nodeps --load="$T/macros" --define "_topdir $T/rpm" --define "_tmppath $T" \
	"$PACKAGE_TAR" >"$T/rpm.log" 2>&1 || fail "rpmbuild: $(tail -n 20 "$T/rpm.log")"
! grep -iE '^warning|[^-]warning:' "$T/rpm.log" || fail "rpmbuild warns"
rpms=("$T"/rpm/RPMS/*/flyrec-[0-9]*.rpm "$T"/rpm/RPMS/noarch/cockpit-flyrec-[0-9]*.rpm
	"$T"/rpm/RPMS/*/flyrec-fleet-[0-9]*.rpm)
[ ${#rpms[@]} = 3 ] || fail "RPM packages: ${rpms[*]}"

# normal: "MODE PATH" of what is not each distribution's own: where /lib is, which of the manual
# pages and documents are compressed, licenses and changelogs, links by build id
normal() {
	sed -E 's, \.?/(usr/)?lib/, /usr/lib/,; s, \./, /,; s,\.gz$,,' |
		grep -vE ' /usr/(share/(licenses|lintian)|lib/(\.build-id|debug))(/|$)' |
		grep -vE ' /usr/share/doc/[a-z-]+/(changelog|changelog\.Debian|copyright|NEWS)$' | sort
}

same_files() { # DEB RPM LEAST
	dpkg-deb --fsys-tarfile "$1" | tar -tv | awk '!/^d/ { print $1, $6 }' | normal >"$T/files.deb"
	rpm -qp --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' "$2" | grep -v '^d' | normal >"$T/files.rpm"
	[ "$(wc -l <"$T/files.deb")" -ge "$3" ] || fail "hardly any files: $(cat "$T/files.deb")"
	diff "$T/files.deb" "$T/files.rpm" >"$T/diff" || fail "< only in .deb, > only in .rpm: $(cat "$T/diff")"
}
same_files "$PACKAGE" "${rpms[0]}" 30
same_files "$PACKAGE_DIR"/cockpit-flyrec_*.deb "${rpms[1]}" 4
same_files "$PACKAGE_DIR"/flyrec-fleet_*.deb "${rpms[2]}" 8

# --- directories that are there to be filled
for dir in /etc/flyrec/sessions.d /etc/flyrec/flyrecd.conf.d; do
	rpm -qp --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' "${rpms[0]}" |
		grep -qx "drwxr-xr-x $dir" || fail "the package lacks $dir"
done

# --- units: those that can be enabled are known to systemd's macros, the service hands over
for i in 0 2; do
	rpm -qp --scripts "${rpms[i]}"
done >"$T/scripts"
dpkg-deb --extract "$PACKAGE" "$T/files"
dpkg-deb --extract "$PACKAGE_DIR"/flyrec-fleet_*.deb "$T/files"
n=0
for file in "$T"/files/{usr/,}lib/systemd/system/*; do
	grep -qx '\[Install\]' "$file" || continue
	for when in post preun; do
		grep -qE "^echo $when .*\b$(basename "$file")( |$)" "$T/scripts" ||
			fail "%$when does not know $(basename "$file"): $(cat "$T/scripts")"
	done
	n=$((n + 1))
done
[ $n -ge 4 ] || fail "$n units"
grep -qE '^echo preun .*\.socket flyrecd\.service$' "$T/scripts" ||
	fail "a socket or timer would start the service again: $(grep '^echo preun' "$T/scripts")"
grep -qx 'echo restart flyrecd.service' "$T/scripts" || fail "an upgrade does not restart"

# --- what it says of itself
version=$(dpkg-deb --field "$PACKAGE" Version)
[ "$(rpm -qp --queryformat '%{VERSION}' "${rpms[0]}")" = "$version" ] ||
	fail "the spec's version is not $version"

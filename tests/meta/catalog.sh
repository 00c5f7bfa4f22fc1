#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Each message id of basic/log.h is explained once in systemd/flyrec.catalog, and no other one is;
# journalctl understands the file.
set -eu
cd "$(dirname "$0")/../.."

ids=$(sed -nE 's/^#define MESSAGE_[A-Z_]+[[:space:]]+"([0-9a-f]{32})"$/\1/p' basic/log.h | sort)
[ "$(echo "$ids" | wc -l)" = "$(grep -c '^#define MESSAGE_' basic/log.h)" ] || {
	echo "FAIL: an id in basic/log.h that is not 32 hexadecimal digits"
	exit 1
}
diff <(echo "$ids") <(sed -n 's/^-- //p' systemd/flyrec.catalog | sort) || {
	echo "FAIL: < is not in systemd/flyrec.catalog, > is not in basic/log.h"
	exit 1
}
for id in $ids; do
	# header lines, an empty line, text
	sed -n "/^-- $id\$/,/^-- /p" systemd/flyrec.catalog | awk '
		/^Subject: / { subject = 1 } /^Documentation: man:/ { manual = 1 } /^$/ { body = 1 }
		body && !/^--/ { words += NF } END { exit !(subject && manual && words >= 20) }' || {
		echo "FAIL: $id: no Subject:, no Documentation: or hardly any text"
		exit 1
	}
done

command -v journalctl >/dev/null || exit 0
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/usr/lib/systemd/catalog" "$root/var/lib/systemd/catalog"
cp systemd/flyrec.catalog "$root/usr/lib/systemd/catalog"
journalctl --root="$root" --update-catalog
known=$(journalctl --root="$root" --list-catalog | wc -l)
[ "$known" = "$(echo "$ids" | wc -l)" ] || {
	echo "FAIL: journalctl knows $known of them"
	exit 1
}

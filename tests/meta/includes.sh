#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Includes point one way: basic <- formats <- {decode, recorder, writer} <- daemon; convert sees basic,
# formats, decode and writer, and for Arm snapshots how recorder collects CoreSight trace: flyrecctl
# does that without a daemon, too. ctl sees what converts and what decodes.
# Checks the checker first, on a tree with one fault of each kind.
set -eu

allowed() { # FOLDER: what its files may include
	case $1 in
	basic) echo basic ;;
	formats) echo basic formats ;;
	recorder) echo basic formats recorder ;;
	writer) echo basic formats writer ;;
	engine) echo basic formats recorder writer engine ;;
	config) echo basic formats config recorder/trace-config.h recorder/probe-args.h writer/storage-config.h ;;
	daemon) echo basic formats decode recorder writer engine config daemon ;;
	convert) echo basic formats decode writer convert ;;
	ctl) echo basic formats decode writer convert ctl ;;
	esac
}

check() { # TREE: prints FILE:LINE:TEXT for each include that points the wrong way
	local folder file line text target
	for folder in basic formats recorder writer engine config daemon convert ctl; do
		[ -d "$1/$folder" ] || continue
		while IFS=: read -r file line text; do
			target=${text#*\"} target=${target%%\"*}
			[[ $file != convert/arm/* || $target != recorder/coresight.h ]] || continue
			[[ $target != */* || " $(allowed $folder) " != *" $target "* ]] || continue
			[[ " $(allowed $folder) " == *" ${target%%/*} "* && $target == */* ]] ||
				echo "$file:$line:$text"
		done < <(cd "$1" && grep -rnE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$folder")
	done
}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree"/{basic,formats,recorder,writer,engine,config,daemon,convert,ctl}
bad=('basic formats/a.h' 'formats writer/a.h' 'recorder writer/a.h' 'writer recorder/a.h'
	'writer daemon/a.h' 'daemon ctl/a.h' 'convert ctl/a.h' 'convert recorder/coresight.h' 'ctl recorder/a.h'
	'engine daemon/a.h' 'engine config/a.h' 'config engine/a.h' 'config recorder/instance.h'
	'ctl daemon/a.h' 'basic io.h')
for pair in "${bad[@]}"; do
	echo "#include \"${pair#* }\"" >>"$tree/${pair% *}/a.c"
done
printf '#include "basic/a.h"\n#include "recorder/a.h"\n#include "writer/a.h"\n' >"$tree/daemon/good.c"
printf '#include "recorder/trace-config.h"\n#include "formats/a.h"\n' >"$tree/config/good.c"
found=$(check "$tree" | wc -l)
[ "$found" = "${#bad[@]}" ] || {
	echo "FAIL: the check itself finds $found of ${#bad[@]} faults"
	exit 1
}

faults=$(check "$(dirname "$0")/../..")
[ -z "$faults" ] || {
	echo "$faults"
	echo "FAIL: includes that point the wrong way"
	exit 1
}

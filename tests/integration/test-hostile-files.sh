#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: idle
# Names and files that others made: escape sequences and newlines in task names, print formats no
# kernel has, inputs without an end. What reads a file has no rights, what is written is its owner's.
# time-limit: 600
. "$(dirname "$0")/lib.sh"
need_command script setpriv strace
need_format gdb
need_format qemu4v
need_format arm
SEED=$SRC/tests/fuzz/corpus/decode/little-64
WHOLE=$SRC/tests/fuzz/whole-program
umask 022

# evil PRINTFMT: $T/evil.dat has it in the last of its formats
evil() {
	"$WHOLE" --print-format="$1" "$SEED" "$T/evil.dat"
}

# in_seconds N COMMAND...: ends by itself, with 0 or 1
in_seconds() {
	local status=0
	timeout "$1" "${@:2}" || status=$?
	[ "$status" -le 1 ] || fail "${*:2}: status $status"
}

# --- print formats: refused with a line that names the event, the rest is exported
for format in '"%d", sizeof(REC->prev_pid)' '"%999999999d", REC->prev_pid' '"%.999999999d", REC->prev_pid' \
	"\"%d\", $(printf '(%.0s' {1..2000})"; do
	evil "$format"
	for verb in 'export --format=text' 'export --format=json' verify; do
		# shellcheck disable=SC2086 # words
		in_seconds 10 "$FLYRECCTL" $verb "$T/evil.dat" >"$T/out" 2>"$T/err"
		[ -s "$T/out" ] || fail "$verb: nothing of a file with the format $format"
		[ "$verb" = verify ] || grep -q "evil.dat: sched:sched_switch: print format with" "$T/err" ||
			fail "$verb: does not name the event with the format ${format:0:40}: $(cat "$T/err")"
	done
done
evil '"prev_pid=%d", REC->prev_pid'
"$FLYRECCTL" export --format=text "$T/evil.dat" >"$T/out" 2>"$T/err"
[ ! -s "$T/err" ] || fail "a usual format: $(cat "$T/err")"

# --- what reads has no rights, whichever process it is
# confined UID COMMAND...: once it begins to read
confined() {
	local uid=$1 pid reader state=''
	FLYREC_FAULT_POINT=file-confined "${@:2}" >"$T/out" 2>"$T/err" &
	pid=$!
	CHILDREN+=("$pid")
	for _ in {1..200}; do
		for reader in $(pgrep -P "$pid" || true) "$pid"; do
			state=$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$reader/status")
			[ "$state" != T ] || break 2
		done
		sleep 0.05
	done
	[ "$state" = T ] || fail "${*:2}: does not come to the point where it has no rights: $(cat "$T/err")"
	sed -n 's/^Uid:\t\([0-9]*\)\t.*/uid \1/p; /^NoNewPrivs:\|^Seccomp:/p' "/proc/$reader/status" >"$T/rights"
	printf '%s\n' "uid $uid" $'NoNewPrivs:\t1' $'Seccomp:\t2' | diff - "$T/rights" >&2 || fail "${*:2}: rights"
	! sed -n 's/^Groups:\t *//p' "/proc/$reader/status" | grep -qv '^0*$' || [ "$uid" = 0 ] ||
		fail "${*:2}: groups"
	kill -CONT "$reader"
	wait "$pid" || [ $? = 1 ] || fail "${*:2}: $(cat "$T/err")"
}

if ! nm -D "$FLYRECCTL" | grep -q __asan_init; then # a sanitizer needs rights of its own
	confined 65534 "$FLYRECCTL" verify "$SEED"
	confined 65534 "$FLYRECCTL" export --format=text "$SEED"
	confined 65534 "$FLYRECCTL" export --format=json -o "$T/confined.json" "$SEED"
	[ -s "$T/confined.json" ] || fail "export -o has made nothing"
	confined 65534 "$FLYRECCTL" convert --compress=zstd -o "$T/confined-7.dat" "$SEED"
	[ -s "$T/confined-7.dat" ] || fail "convert has made nothing"
	confined 0 "$FLYRECCTL" verify "$SRC/tests/fixtures/arm-snapshot"
	confined 0 "$FLYRECCTL" import --format=qemu4v -o "$T/confined.dat" "$SRC/tests/fuzz/corpus/qemu4v/seed"
	[ -s "$T/confined.dat" ] || fail "import has made nothing"
	cp "$SEED" "$T/mine.dat"
	chmod 0644 "$T/mine.dat"
	chmod 0755 "$T"
	setpriv --reuid=1234 --regid=1234 --clear-groups "$FLYRECCTL" verify "$T/mine.dat" >/dev/null ||
		[ $? = 1 ] || fail "verify as another user"
	# it opens nothing of the file's choice afterwards
	strace -f -o "$T/strace" "$FLYRECCTL" verify "$SEED" >/dev/null || true
	sed '1,/seccomp(SECCOMP_SET_MODE_FILTER, 0x*[0-9a-f]*, {/d' "$T/strace" | grep 'open.* = [0-9]' >&2 &&
		fail "a file was opened by a process without rights"
fi

# --- names: on a terminal nothing that it obeys, elsewhere nothing that forges a line
name=$(printf '\033]0;PWN\007\n1')
evil "\"$name\", REC->prev_pid"
python3 - "$SEED" "$T/names.dat" <<-'EOF'
	import sys
	data = open(sys.argv[1], "rb").read()
	open(sys.argv[2], "wb").write(data.replace(b"name\0", b"n\x1b[e\0").replace(b"words\0", b"w\nrds\0"))
EOF
cmp -s "$SEED" "$T/names.dat" && fail "the seed has no such string"
"$FLYRECCTL" export --format=text "$T/names.dat" >"$T/piped" 2>"$T/err"
grep -q $'n\033\[e|w\\\\nrds' "$T/piped" || fail "in a pipe: $(grep -a hello: "$T/piped" | head -n 1)"
[ "$(wc -l <"$T/piped")" = "$("$FLYRECCTL" export --format=text "$SEED" 2>/dev/null | wc -l)" ] ||
	fail "a newline in a string has made a line"
"$FLYRECCTL" export --format=text --raw "$T/names.dat" 2>/dev/null | grep -q '^rds' || fail "--raw escapes"
"$FLYRECCTL" export --format=text --raw=no "$T/names.dat" 2>/dev/null | grep -q $'\033' && fail "--raw=no does not escape"
script -qec "stty -opost; '$FLYRECCTL' export --format=text '$T/names.dat' 2>/dev/null" "$T/terminal" >/dev/null </dev/null ||
	[ $? = 1 ]
grep -qF 'n\x1b[e|w\nrds' "$T/terminal" || fail "on a terminal: $(grep -a hello: "$T/terminal" | head -n 1)"
tail -n +2 "$T/terminal" | head -n -1 | grep -q $'\033' && fail "an escape sequence reaches the terminal"

# files' own names, in all that verify, export and import say
bad=$T/$(printf 'a\033[31m\nb.dat: ok')
cp "$SEED" "$bad"
"$FLYRECCTL" verify "$bad" >"$T/out" 2>"$T/err" || [ $? = 1 ]
grep -q $'\033' "$T/out" "$T/err" && fail "verify prints a file's name raw"
grep -q '^b.dat' "$T/out" && fail "a file's name has made a line"
printf 'nothing' >"$bad"
for verb in 'export --format=text' "convert -o $T/none" "import --format=gdb-tfile -o $T/none"; do
	# shellcheck disable=SC2086 # words
	"$FLYRECCTL" $verb "$bad" 2>"$T/err" && fail "$verb: accepts it"
	[ "$(wc -l <"$T/err")" = 1 ] || fail "$verb: more than a line: $(cat "$T/err")"
	grep -q $'\033' "$T/err" && fail "$verb: prints a file's name raw"
done

# --- no end
for input in /dev/zero /dev/tty0; do
	for format in gdb-tfile qemu4v; do
		[ ! -e "$input" ] || in_seconds 10 "$FLYRECCTL" import --format="$format" -o "$T/none" "$input" 2>/dev/null
	done
done
head -c 256M /dev/zero | (
	in_seconds 20 "$FLYRECCTL" import --format=gdb-tfile -o "$T/none" - 2>"$T/err"
	[ "$(wc -c | tr -d ' ')" -gt 200000000 ] || fail "import has read it all"
)
in_seconds 10 "$FLYRECCTL" export --format=text - </dev/zero >/dev/null 2>&1
[ ! -e "$T/none" ] || fail "a file was made of nothing"
mkdir "$T/arm"
{
	printf '[snapshot]\nversion=1.0\n[device_list]\n'
	for i in {1..4090}; do echo "d$i=d.ini"; done
	printf '[trace]\nmetadata=t.ini\n'
} >"$T/arm/snapshot.ini"
printf '[device]\nname=a\nclass=trace_source\ntype=ETM4\n[regs]\nTRCTRACEIDR=0x10\n' >"$T/arm/d.ini"
printf '[source_buffers]\na=b\n' >"$T/arm/t.ini"
in_seconds 5 "$FLYRECCTL" verify "$T/arm" >"$T/out" 2>&1
[ "$(wc -l <"$T/out")" -le 1010 ] || fail "$(wc -l <"$T/out") lines about a small snapshot"

# --- outputs are for their owner
"$FLYRECCTL" export --format=text -o "$T/o1" "$SEED" 2>/dev/null || true
"$FLYRECCTL" import --format=qemu4v -o "$T/o2" "$SRC/tests/fuzz/corpus/qemu4v/seed" 2>/dev/null
"$FLYRECCTL" convert --version=7 -o "$T/o3" "$SEED" 2>/dev/null
for file in "$T/o1" "$T/o2" "$T/o3"; do
	[ "$(stat -c %a "$file")" = 600 ] || fail "$file: $(stat -c %A "$file")"
done

# --- and whatever else changed files do
"$WHOLE" --runs=20 --seed="$RANDOM" --keep="$T" "$FLYRECCTL" >"$T/out" || fail "whole-program: $(cat "$T/out")"

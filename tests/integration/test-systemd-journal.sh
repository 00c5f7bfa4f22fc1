#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 400
#
# The system journal, of a real journald in a container: entries that match are triggers, at once and
# over rotation, vacuum and a journal that moves from /run to the disk; lines of the journal are in
# snapshots, the same as journalctl says of that time; hostile lines, more than there is room for, and
# damaged files cost nobody anything.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/integration/container.sh"
need_tracefs
need_event sched:sched_switch
need_command ps trace-cmd python3

COREDUMP=fc2e22bc6ee647b6b90729ab34a250b1

# has_snapshots NUMBER [SESSION]: by entries of the journal; they are in SNAPSHOTS then
has_snapshots() {
	# shellcheck disable=SC2206 # a pattern
	SNAPSHOTS=("$STATE/${2:-lines}"/snapshot/*-journal.dat)
	[ ${#SNAPSHOTS[@]} -ge "$1" ]
}

log() {
	guest journalctl --quiet --sync
	guest journalctl --quiet --unit=flyrecd --output=cat
}

# must_have NUMBER WHAT: snapshots of session lines, the last one in LAST; the next trigger does not join it
must_have() {
	wait_for 30 has_snapshots "$1" || fail "$2: ${#SNAPSHOTS[@]} snapshots instead of $1: $(log | tail -n 5)"
	LAST=${SNAPSHOTS[-1]}
	sleep 1.1
}

ctl() {
	guest env PATH=/usr/local/bin:/usr/bin:/bin flyrecctl "$@"
}

status_has() { # SESSION PATTERN
	ctl status "$1" | grep -q -- "$2"
}

armed() {
	status_has lines "journal MESSAGE_ID=$COREDUMP: armed"
}

# say FIELD=VALUE...: as one entry
say() {
	printf '%s\n' "$@" | guest logger --journald
}

# lines_are PATH: those in the file are those of journalctl for its time, the newest as far as there is
# room; how many there are, and how many were left out, is in N and LEFT
lines_are() {
	has_lines() { "$FLYRECCTL" verify --json "$1" | grep -q '"journal":'; }
	wait_for 60 has_lines "$1" || fail "no lines of the journal in $1: $(log | tail -n 5)"
	"$FLYRECCTL" verify "$1" >/dev/null || fail "verify: $1"
	"$FLYRECCTL" --json analyze "$1" >"$T/analysis"
	guest journalctl --quiet --sync
	guest journalctl --quiet --output=json --all >"$T/all.json"
	python3 "$T/compare.py" "$T/analysis" "$T/all.json" "$1" >"$T/counts" ||
		fail "the lines of $1 are not the journal's: $(log | tail -n 5)"
	read -r N LEFT <"$T/counts"
	echo "${1##*/}: $N lines are journalctl's, $LEFT left out"
}

cat >"$T/compare.py" <<'END'
import json, re, sys

def shown(value):  # as basic/escape.h and the file have it
    if value is None:
        return ""
    raw = bytes(value) if isinstance(value, list) else value.encode()
    end = len(raw)
    if end > 2000:
        end = 2000
        while end > 1996 and raw[end] & 0xC0 == 0x80:
            end -= 1
    raw, out = raw[:end], ""
    while raw:
        try:
            good, bad, rest = raw.decode(), b"", b""
        except UnicodeDecodeError as e:
            good, bad, rest = raw[:e.start].decode(), raw[e.start:e.start + 1], raw[e.start + 1:]
        for c in good:
            if c == "\t":
                out += " "
            elif c in "\n\r":
                out += {"\n": "\\n", "\r": "\\r"}[c]
            elif ord(c) < 32 or 127 <= ord(c) < 160:
                out += "".join("\\x%02x" % b for b in c.encode())
            else:
                out += c
        out += "".join("\\x%02x" % b for b in bad)
        raw = rest
    return out

def first(value):  # of a field that is there more than once
    return value[0] if isinstance(value, list) and value and not isinstance(value[0], int) else value

analysis = json.load(open(sys.argv[1]))
data = open(sys.argv[3], "rb").read()
head = re.search(rb"(\d{16})\t(\d{16})\t(\d+)\n\d{16}\t", data)
begin, end, left = (int(n) for n in head.groups())
wanted = []
for row in open(sys.argv[2]):
    e = {k: first(v) for k, v in json.loads(row).items()}
    usec = int(e["__REALTIME_TIMESTAMP"])
    if begin <= usec <= end:
        wanted.append((usec, int(e.get("PRIORITY", 6)), int(e.get("_PID", e.get("SYSLOG_PID", 0))),
                       shown(e.get("SYSLOG_IDENTIFIER", e.get("_COMM"))), e.get("_SYSTEMD_UNIT"),
                       shown(e.get("MESSAGE"))))
have = [(l["time_usec"], l["priority"], l["pid"], l["identifier"], l["unit"], l["message"])
        for l in analysis["journal"]]
wanted.sort(key=lambda e: e[0])
if left != analysis["journal_left_out"] or len(wanted) - left != len(have):
    sys.exit("%d of %d lines, %d left out" % (len(have), len(wanted), left))
for a, b in zip(wanted[left:], have):
    if a != b:
        sys.exit("journalctl: %r\nthe file:   %r" % (a, b))
if begin > analysis["from_usec"] or end < analysis["to_usec"]:
    sys.exit("lines from %d to %d, events from %d to %d" %
             (begin, end, analysis["from_usec"], analysis["to_usec"]))
print(len(have), left)
END

session lines <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_switch
	Event=sched:sched_waking
	BufferSize=4M
	[Snapshot]
	Journal=yes
	OnJournal=MESSAGE_ID=$COREDUMP
	OnJournal="MESSAGE=the first words" PRIORITY=2 PRIORITY=3
	Burst=40
EOF
session unread <<-EOF
	[Trace]
	Event=sched:sched_process_exec
	[Snapshot]
	OnJournal=FLYREC_TEST=flood
	Burst=2
EOF
session recorded <<-EOF
	[Trace]
	Event=sched:sched_switch
	[Snapshot]
	Analyze=no
	Journal=yes
EOF
container_start flyrecd.service
mkdir -p "$T/root/var/log/journal" "$T/root/etc/systemd/journald.conf.d"
printf '[Journal]\nRateLimitBurst=0\nSystemMaxUse=64M\nSystemMaxFileSize=8M\n' \
	>"$T/root/etc/systemd/journald.conf.d/test.conf"
guest systemctl restart systemd-journald
guest journalctl --quiet --flush
guest systemctl restart flyrecd
wait_for 20 armed || fail "not armed: $(ctl status lines)"

# --- a core dump, as systemd-coredump says it; what lacks a term is none
say "MESSAGE=no core" "MESSAGE_ID=0123456789abcdef0123456789abcdef"
say "MESSAGE=the first words" "PRIORITY=4"
say "MESSAGE=Process 4711 (sleep) of user 0 dumped core." "MESSAGE_ID=$COREDUMP" "PRIORITY=2" \
	"COREDUMP_PID=4711" "SYSLOG_IDENTIFIER=systemd-coredump"
must_have 1 "a core dump"
trace-cmd report --stat "$LAST" >"$T/stat" 2>/dev/null
grep -qx 'reason: journal' "$T/stat" || fail "the file does not say why: $(tail -n 12 "$T/stat")"
dumped='systemd-coredump\[[0-9]+\]: Process 4711 \(sleep\) of user 0 dumped core\.'
grep -qE "^journal: $dumped\$" "$T/stat" || fail "the file does not have the line: $(tail -n 12 "$T/stat")"
log >"$T/journal"
grep -qE "lines: OnJournal=MESSAGE_ID=$COREDUMP triggered, $dumped, taking snapshot" "$T/journal" ||
	fail "the log does not say what triggered: $(tail -n 5 "$T/journal")"
lines_are "$LAST"
[ "$LEFT" = 0 ] || fail "$LEFT lines left out"
prints 'Process 4711 (sleep) of user 0 dumped core' "$FLYRECCTL" analyze "$LAST" ||
	fail "analyze does not show the line"
"$FLYRECCTL" export --format=html -o "$T/page.html" "$LAST" || fail "export"
grep -q 'Process 4711 (sleep) of user 0 dumped core' "$T/page.html" || fail "the page does not have the line"

# --- two terms of one field; lines are beside the waits of their time, as those of journald itself
say "MESSAGE=the first words" "PRIORITY=3"
must_have 2 "two terms of one field"
lines_are "$LAST"
prints '^journal: .*: the first words$' "$FLYRECCTL" why --top=0 systemd-journal "$LAST" ||
	fail "why does not show the line"
"$FLYRECCTL" --json why --top=0 systemd-journal "$LAST" >"$T/why"
python3 - "$T/why" "$T/analysis" <<-'EOF' || fail "why --json"
	import json, sys
	lines = json.load(open(sys.argv[2]))["journal"]
	near = 0
	for wait in json.load(open(sys.argv[1]))["waits"]:
	    begin = wait["start_usec"] - 100000
	    end = wait["start_usec"] + wait["duration_nsec"] / 1000 + 100000
	    wanted = [l for l in lines if begin + 1 < l["time_usec"] < end - 1]
	    some = [l for l in lines if begin - 1 <= l["time_usec"] <= end + 1]
	    assert all(l in wait["journal"] for l in wanted), (wait, wanted)
	    assert all(l in some for l in wait["journal"]), (wait, some)
	    near += len(wanted)
	assert near > 0, "no wait with a line"
EOF

# --- cut out of segments, without an analysis
path=$(ctl snapshot --reason=x-2 recorded)
lines_are "$STATE/recorded/snapshot/${path##*/}"
! log | grep "analy.*${path##*/}\|${path##*/}.*analy" || fail "analysed all the same"

# --- rotated, vacuumed, and journald anew
guest journalctl --rotate
say "MESSAGE=the first words" "PRIORITY=2"
must_have 3 "after a rotation"
guest journalctl --quiet --rotate --vacuum-time=1s
say "MESSAGE=the first words" "PRIORITY=2"
must_have 4 "after a vacuum"
guest systemctl restart systemd-journald
say "MESSAGE=the first words" "PRIORITY=2"
must_have 5 "after a restart of journald"

# --- a reload keeps its place; after a restart what was before is no news
say "MESSAGE=before a reload" "MESSAGE_ID=$COREDUMP"
guest systemctl reload flyrecd
must_have 6 "before a reload"
guest systemctl restart flyrecd
wait_for 20 armed || fail "not armed after a restart"
say "MESSAGE=after" "MESSAGE_ID=$COREDUMP"
must_have 7 "after a restart of flyrecd"
! has_snapshots 8 || fail "a snapshot for nothing: ${SNAPSHOTS[*]}"

# --- hostile, binary and long: as journalctl has them, and cut where it is said
cat >"$T/root/var/tmp/hostile.pl" <<-'EOF'
	use Socket;
	socket(S, PF_UNIX, SOCK_DGRAM, 0) or die;
	connect(S, sockaddr_un("/run/systemd/journal/socket")) or die;
	for my $text ("\e[31mred\e[0m", "two\nlines\tand a tab", "\xff\xfe\x00\x01binary",
	              "\xe2\x80\xae\xc3\xa4\xc2\x85", "x" x 3000, ("y" x 1999) . "\xc3\xa4z",
	              "1\t0\t0\t0\tid\tunit\tforged\n") {
		my $entry = "PRIORITY=5\nSYSLOG_IDENTIFIER=id\e[1m\nMESSAGE\n" . pack("Q<", length $text) .
			"$text\n";
		syswrite(S, $entry) == length $entry or die;
	}
EOF
guest perl /var/tmp/hostile.pl || fail "cannot write to the journal"
say "MESSAGE=hostile" "MESSAGE_ID=$COREDUMP"
must_have 8 "with hostile lines"
lines_are "$LAST"
"$FLYRECCTL" --json analyze "$LAST" | python3 -c '
import json, sys
lines = json.load(sys.stdin)["journal"]
cut = sorted(len(l["message"]) for l in lines if l["cut"])
assert cut == [1999, 2000], cut
assert [l for l in lines if l["message"] == "\\xff\\xfe\\x00\\x01binary"], "no binary line"' ||
	fail "hostile lines"
"$FLYRECCTL" analyze "$LAST" >"$T/text"
! grep "$(printf '\033')" "$T/text" || fail "an escape sequence on the terminal"

# --- a flood: the newest lines are there, the rest is counted; Burst= holds, and takes nothing from others
python3 -c '
for i in range(6000):
    print("line %06d %s" % (i, "x" * 80))' >"$T/root/var/tmp/flood"
guest sh -c 'systemd-cat --identifier=flood </var/tmp/flood'
guest journalctl --quiet --sync
say "MESSAGE=flood" "MESSAGE_ID=$COREDUMP"
must_have 9 "a flood"
lines_are "$LAST"
[ $((N > 1000 && LEFT > 100)) = 1 ] || fail "of a flood $N lines, $LEFT left out"
prints "$LEFT older ones left out" "$FLYRECCTL" analyze "$LAST" || fail "analyze does not say that $LEFT are left out: $(cat "$T/printed")"
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	say "MESSAGE=flood $i" "FLYREC_TEST=flood"
done
flooded() { status_has unread 'journal FLYREC_TEST=flood: armed; 2 taken, 10 suppressed'; }
wait_for 20 flooded || fail "of 12 entries two should be taken: $(ctl status unread)"
wait_for 30 has_snapshots 2 unread || fail "of a flood ${#SNAPSHOTS[@]} snapshots"
! "$FLYRECCTL" verify --json "${SNAPSHOTS[0]}" | grep '"journal":' || fail "without Journal=yes it has lines"
prints '"journal":null' "$FLYRECCTL" --json analyze "${SNAPSHOTS[0]}" || fail "analyze of one without"

# --- a damaged file of the journal: the sound ones are read
guest journalctl --rotate
for file in "$T"/root/var/log/journal/*/system@*.journal; do
	python3 - "$file" <<-'EOF'
		import os, sys
		size = os.path.getsize(sys.argv[1])
		with open(sys.argv[1], "r+b") as f:
		    for at in range(4096, size - 64, 8192):
		        f.seek(at)
		        f.write(os.urandom(64))
	EOF
done
say "MESSAGE=damaged" "MESSAGE_ID=$COREDUMP"
must_have 10 "with damaged files"
wait_for 60 has_lines "$LAST" || fail "no lines beside damaged files: $(log | tail -n 5)"
"$FLYRECCTL" verify "$LAST" >/dev/null || fail "verify"
"$FLYRECCTL" --json analyze "$LAST" | grep -q '"message":"damaged"' || fail "the line of a sound file is not there"

# --- nothing was refused by the sandbox, which hides a journal in /run; that takes the drop-in
log >"$T/journal"
! grep -E 'denied|not permitted|SYS|fault' "$T/journal" || fail "the sandbox is too narrow"
guest systemctl stop flyrecd
rm -rf "${T:?}/root/var/log/journal"
guest systemctl restart systemd-journald
guest systemctl start flyrecd
hidden() { status_has lines 'hidden by the unit.s sandbox, see OnJournal= in flyrec.session(5)'; }
wait_for 20 hidden || fail "a journal that cannot be seen: $(ctl status lines)"
path=$(ctl snapshot --reason=x-1 lines) || fail "no snapshot without a journal"
said() { log | grep -q "${path##*/} has no lines of the journal: there is no journal in"; }
wait_for 40 said || fail "does not say that there is no journal: $(log | tail -n 4)"
mkdir -p "$T/root/etc/systemd/system/flyrecd.service.d"
cp "$SRC/systemd/journal.conf" "$T/root/etc/systemd/system/flyrecd.service.d/"
guest systemctl daemon-reload
guest systemctl restart flyrecd
wait_for 20 armed || fail "not armed with the drop-in: $(ctl status lines)"
say "MESSAGE=in /run" "MESSAGE_ID=$COREDUMP"
must_have 11 "a journal in /run"
lines_are "$LAST"

# --- journald moves its journal to the disk, writing all entries again: these are no news
mkdir "$T/root/var/log/journal"
guest systemctl restart flyrecd
wait_for 20 armed || fail "not armed with an empty journal beside: $(ctl status lines)"
say "MESSAGE=before the move" "MESSAGE_ID=$COREDUMP"
must_have 12 "beside an empty journal"
guest systemctl restart systemd-journald
guest journalctl --quiet --flush
guest journalctl --quiet --file='/var/log/journal/*/system.journal' >"$T/journal"
grep -q 'before the move' "$T/journal" || fail "the journal has not moved"
say "MESSAGE=after the move" "MESSAGE_ID=$COREDUMP"
must_have 13 "after the move"
! has_snapshots 14 || fail "an entry that was written again is news: ${SNAPSHOTS[*]}"

# --- the first session that wants the journal comes with a reload: flyrecd has given up the right to it
guest systemctl stop flyrecd
rm "$CONFIG"/sessions.d/{unread,recorded}.conf
session lines <<-EOF
	[Trace]
	Event=sched:sched_process_exec
EOF
guest systemctl start flyrecd
session lines <<-EOF
	[Trace]
	Event=sched:sched_process_exec
	[Snapshot]
	OnJournal=MESSAGE_ID=$COREDUMP
EOF
guest systemctl reload flyrecd
# 444: landlock_create_ruleset(2), which tells its version
if python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(444, 0, 0, 1) < 2)'; then
	refused() { status_has lines 'no snapshot on journal .*started without a session that reads the journal.*restart it'; }
	wait_for 20 refused || fail "does not say what to do: $(ctl status lines)"
fi
guest systemctl restart flyrecd
wait_for 20 armed || fail "not armed after a restart: $(ctl status lines)"
guest systemctl stop flyrecd
container_stop

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# flyrecctl import --format=gdb-tfile: registers, memory and variables in trace-cmd report are those
# that gdb shows of the same file, of files that gdb saved; Nios II and big endian; bad files.
# time-limit: 120
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_command gcc gdb gdbserver python3 trace-cmd
need_format gdb
cd "$T"

import_tfile() {
	"$FLYRECCTL" import --format=gdb-tfile "$@" 2>import.err || fail "import $*: $(cat import.err)"
}

# what gdb has of each frame: all integer registers, all memory blocks of the report, all variables
cat >frames.gdb <<-'END'
	python
	import re
	memory = {}
	for line in open("report.txt"):
	    m = re.search(r" memory: +frame=(\d+) 0x([0-9a-f]+): (.*)", line)
	    if m:
	        memory.setdefault(int(m.group(1)), []).append((int(m.group(2), 16), m.group(3)))
	for line in open("report.txt"):
	    m = re.search(r" (tp\d+)[_\d]*: +frame=(\d+) (.*)", line)
	    if not m:
	        continue
	    frame = int(m.group(2))
	    out = gdb.execute("tfind %d" % frame, to_string=True)
	    assert "tracepoint" in out, out
	    fields = []
	    for word in m.group(3).split():
	        name, value = word.split("=")
	        how = "x" if value.startswith("0x") else "d"
	        mine = gdb.execute("output/%s $%s" % (how, name), to_string=True)
	        fields.append("%s=%s" % (name, mine))
	    print("%s frame=%d %s" % (m.group(1), frame, " ".join(fields)))
	    for address, text in memory.get(frame, []):
	        data = gdb.selected_inferior().read_memory(address, len(text.split())).tobytes()
	        print("memory frame=%d 0x%x: %s" % (frame, address, " ".join("%02x" % b for b in data)))
	end
END

# same FILE.tf FRAMES: report and gdb agree, and so they do after export
same() {
	import_tfile -o import.dat "$1"
	verify import.dat
	trace-cmd report import.dat >report.txt || fail "report of $1"
	sed -nE 's/^.*: (tp[0-9]+)[_0-9]*: +(frame=.*)/\1 \2/p; s/^.*: memory: +(frame=.*)/memory \1/p' report.txt >report.values
	gdb -nx -batch -ex 'set width 0' -ex 'set height 0' -ex "target tfile $1" -x frames.gdb >gdb.out 2>gdb.err ||
		fail "gdb: $(cat gdb.err)"
	grep -E '^(tp[0-9]+|memory) frame=' gdb.out >gdb.values || fail "gdb: $(cat gdb.out gdb.err)"
	cmp report.values gdb.values || fail "$1: $(diff report.values gdb.values | cut -c1-200 | head -n 6)"
	[ "$(grep -c '^tp' report.values)" = "$2" ] || fail "$1: not $2 frames"
	grep -q '^memory' report.values || fail "$1: no memory"
	"$FLYRECCTL" export --format=gdb-tfile -o again.tf import.dat 2>export.err ||
		fail "export of an import: $(cat export.err)"
	gdb -nx -batch -ex 'set width 0' -ex 'set height 0' -x again.tf.gdb -x frames.gdb >gdb.out 2>gdb.err ||
		fail "gdb: $(cat gdb.err)"
	grep -E '^(tp[0-9]+|memory) frame=' gdb.out | cmp - gdb.values || fail "$1: not the same after export"
	gdb -nx -batch -ex "target tfile $1" -ex tstatus -ex 'info tracepoints' >before 2>&1
	gdb -nx -batch -ex "target tfile again.tf" -ex tstatus -ex 'info tracepoints' >after 2>&1
	cmp before after || fail "$1: $(diff before after)"
	echo "$1: $2 frames"
}

echo "== a file that gdb saves now"
gcc -g -O1 -fno-omit-frame-pointer -o demo "$SRC/tests/integration/gdb-demo.c"
cat >live.gdb <<-END
	set remotetimeout 20
	set sysroot
	target remote | exec gdbserver --once - $T/demo 40
	break main
	continue
	tvariable \$trace_timestamp
	tvariable \$hits = 5
	trace leaf
	actions
	collect \$regs, \$trace_timestamp, *r
	collect *(unsigned char *)\$rsp@512
	teval \$hits = \$hits + 1
	collect \$hits
	end
	trace middle
	actions
	collect n, \$hits
	end
	tstart
	tbreak exit
	continue
	tstop
	tsave live.tf
	kill
END
gdb -nx -batch -x live.gdb demo >live.log 2>&1 || fail "gdbserver: $(cat live.log)"
[ -s live.tf ] || fail "gdbserver: $(cat live.log)"
same live.tf 44
trace-cmd report -F 'tfile/tp2: rsi == 1' import.dat | grep -c "tp2:" | grep -qx 2 || fail "a filter by register"
trace-cmd report -F 'tfile/tp2: hits == 7' import.dat | grep -c "tp2:" | grep -qx 1 || fail "a filter by variable"
import_tfile -o piped.dat - <live.tf
trace-cmd report piped.dat | cmp - report.txt || fail "standard input"
# shellcheck disable=SC2002 # it must be a pipe
cat live.tf | "$FLYRECCTL" import --format=gdb-tfile -o - - | cat >piped.dat || fail "pipes"
trace-cmd report piped.dat | cmp - report.txt || fail "pipes"

echo "== a file that gdb saved elsewhere"
real=$SRC/../shared/data/gdb-tfile/gs_gdb.tf
if [ -e "$real" ]; then
	cp "$real" real.tf
	same real.tf 5
	while read -r _ values; do
		# those that gdb printed when it was saved
		for word in $values; do
			case $word in
			r[a-ds][xi]=0x* | rip=0x*) grep -q " $word " report.txt || fail "$word is not in the report" ;;
			esac
		done
	done <"$real.txt"
else
	echo "(not here: $real)"
fi

echo "== Nios II, either byte order"
cat >nios2.py <<-'END'
	import struct, sys
	order, tdesc, name = sys.argv[1], sys.argv[2], sys.argv[3]
	e = ">" if order == "big" else "<"
	regs = ["zero", "at"] + ["r%d" % i for i in range(2, 24)] + ["et", "bt", "gp", "sp", "fp", "ea", "ba", "ra", "pc"]
	regs += ["status", "estatus", "bstatus", "ienable", "ipending", "cpuid", "ctl6", "exception", "pteaddr", "tlbacc",
	    "tlbmisc", "eccinj", "badaddr", "config", "mpubase", "mpuacc"]
	head = b"\x7fTRACE0\nR %x\nstatus 0;tstop::0;tframes:3;tcreated:3\ntsv 1:0:0:%s\ntp T1:1000:E:0:0\n" % (4 * len(regs), b"count".hex().encode())
	if tdesc == "tdesc":
	    xml = ["<target><architecture>nios2</architecture><feature name='org.gnu.gdb.nios2.cpu'>"]
	    xml += ["<reg name='%s' bitsize='32'/>" % r for r in regs] + ["</feature></target>"]
	    head += b"".join(b"tdesc " + l.encode() + b"\n" for l in xml)
	out = head + b"\n"
	for frame in range(3):
	    blocks = b"R" + b"".join(struct.pack(e + "I", 0x01000000 * frame + i) for i in range(len(regs)))
	    blocks += b"V" + struct.pack(e + "Iq", 1, -5 - frame)
	    blocks += b"M" + struct.pack(e + "QH", 0x123456789a, 4) + b"\x11\x22\x33\x44"
	    out += struct.pack(e + "hI", 1, len(blocks)) + blocks
	open(name, "wb").write(out + b"\0\0")
END
for order in little big; do
	for tdesc in tdesc none; do
		python3 nios2.py $order $tdesc nios2.tr
		for option in "--endian=$order" --no-pager; do # the second: any, the order is guessed
			import_tfile "$option" -o nios2.dat nios2.tr
			trace-cmd report nios2.dat >nios2.txt
			grep -q 'tp1: *frame=2 zero=0x2000000 at=0x2000001 .* sp=0x200001b .* ra=0x200001f pc=0x2000020 status=0x2000021 .* mpuacc=0x2000030 count=-7$' nios2.txt ||
				fail "$order $tdesc: $(cat nios2.txt)"
			[ "$(grep -c 'memory: *frame=[012] 0x123456789a: 11 22 33 44' nios2.txt)" = 3 ] || fail "$order: memory"
		done
		"$FLYRECCTL" export --format=gdb-tfile -o again.tr nios2.dat
		cmp <(head -c "$(stat -c %s nios2.tr)" again.tr) nios2.tr || fail "$order $tdesc: export"
	done
done
! "$FLYRECCTL" import --format=gdb-tfile --endian=little -o x.dat nios2.tr 2>err || fail "a wrong byte order"
grep -q 'offset 0x' err || fail "a wrong byte order: $(cat err)"

echo "== bad files"
head='\x7fTRACE0\n'
bad() {
	local text=$1 status=0
	printf '%b' "$2" >bad.tf
	"$FLYRECCTL" import --format=gdb-tfile -o x.dat bad.tf 2>err || status=$?
	[ "$status" = 1 ] || fail "$text: status $status"
	[ "$(wc -l <err)" = 1 ] || fail "$text: $(cat err)"
	grep -q -e "bad.tf: offset .*$text" err || fail "not \"$text\": $(cat err)"
	[ ! -e x.dat ] || fail "$text: a file is left"
}
bad 'no trace file of gdb' ''
bad 'no trace file of gdb' 'ELF'
bad 'a version of gdb' '\x7fTRACE1\nR 8\n\n'
bad 'ends inside the description' "${head}R 8\n"
bad 'no line R' "${head}status 0\n\n"
bad 'not the size of a register block' "${head}R 8x\n\n"
bad 'another size' "${head}R 8\nR 9\n\n"
bad 'a zero byte' "${head}R 8\nst\0atus\n\n"
bad '0x8: a line of more than 999 bytes' "${head}$(printf '%01000d' 0)\n\n"
bad '0xd: the file ends inside the head' "${head}R 8\n\n\1"
bad '0xd: the file ends inside the head' "${head}R 8\n\n\1\0\1"
bad '0xd: a frame of 9 bytes, of which the file has 2' "${head}R 8\n\n\1\0\11\0\0\0R1"
bad '0xd: 0xffff is no number' "${head}R 8\n\n\xff\xff\1\0\0\0R"
bad '0x13: a block of unknown type 0x58' "${head}R 8\n\n\1\0\1\0\0\0X"
bad '0x13: a block R that goes on' "${head}R 8\n\n\1\0\3\0\0\0R12"
bad '0x13: a block V that goes on' "${head}R 8\n\n\1\0\3\0\0\0V12"
bad '0x13: a block M that goes on' "${head}R 8\n\n\1\0\14\0\0\0M12345678\2\0x"
left=(.x.dat* x.dat*)
[ ${#left[@]} = 0 ] || fail "left: ${left[*]}"
printf '%b' "${head}R 8\nwhat is this\ntsv junk\n\n\1\0\11\0\0\0R12345678" >odd.tf
import_tfile -o odd.dat odd.tf
[ "$(grep -c 'line not understood' import.err)" = 2 ] || fail "lines not known: $(cat import.err)"
prints 'tp1:' trace-cmd report odd.dat || fail "no frame behind lines not known"
for options in '--endian=middle -o x.dat odd.tf' '-o x.dat missing.tf' '-o missing/x odd.tf' '-o odd.tf odd.tf'; do
	status=0
	# shellcheck disable=SC2086 # words
	"$FLYRECCTL" import --format=gdb-tfile $options 2>err || status=$?
	[ "$status" = 1 ] || fail "$options: status $status"
	[ -s err ] || fail "$options: no word"
done

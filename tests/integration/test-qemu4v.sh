#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# flyrecctl import and export --format=qemu4v: text traces become events that trace-cmd shows and
# filters, and the same text again; bad input; the examples of flyrec-qemu4v(7). With the traces
# beside the source tree: instructions and memory accesses are what Arm's own parser finds in them.
# time-limit: 300
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_command trace-cmd python3
need_format qemu4v
cd "$T"
fixtures=$SRC/tests/fixtures/qemu4v
shared=$SRC/../shared/data/tarmac

import() {
	"$FLYRECCTL" import --format=qemu4v "$@"
}

export_() {
	"$FLYRECCTL" export --format=qemu4v "$@"
}

# same FILE: the text is the same again, the trace.dat is sound, trace-cmd shows each line
same() {
	import -o same.dat "$1" 2>import.err || fail "$1: $(cat import.err)"
	verify same.dat
	export_ -o same.txt same.dat || fail "$1: export"
	cmp same.txt "$1" || fail "$1: is not the same again"
	trace-cmd report same.dat >report.txt 2>report.err || fail "$1: trace-cmd: $(cat report.err)"
	[ ! -s report.err ] || fail "$1: trace-cmd: $(cat report.err)"
	[ "$(grep -cE ' (insn|mem|reg|text): ' report.txt)" = "$(grep -c '' "$1")" ] ||
		fail "$1: $(wc -l <report.txt) lines in the report, $(grep -c '' "$1") in the text"
}

# refused PATTERN COMMAND...: exit status 1, one line on stderr, no file
refused() {
	local pattern=$1 status=0
	shift
	rm -f bad.dat
	"$@" >out 2>err || status=$?
	[ $status = 1 ] || fail "$*: exit status $status"
	grep -qE "$pattern" err || fail "$*: $(cat err)"
	[ "$(wc -l <err)" = 1 ] || fail "$*: more than a line: $(cat err)"
	[ ! -e bad.dat ] || fail "$*: left a file"
	no_leftovers "$*"
}

no_leftovers() { # WHAT: no file under a temporary name
	local hidden=(.[!.]*)
	[ ${#hidden[@]} = 0 ] || fail "$1: left ${hidden[*]}"
}

echo "== ids: those of the first version are read, and KernelShark can show those of now"
gzip -dc "$fixtures/ids-60001.dat.gz" >old.dat
"$FLYRECCTL" verify old.dat >/dev/null || fail "old.dat: verify"
export_ old.dat | cmp - "$fixtures/dialects.txt" || fail "old.dat: export"
import -o ids.dat "$fixtures/dialects.txt" 2>/dev/null
for id in $(strings ids.dat | sed -n 's/^ID: //p'); do
	[ "$id" -le 32767 ] || fail "event id $id is too large for KernelShark"
done
echo "== own corpus"
for file in "$fixtures"/*.txt; do
	same "$file"
	echo "$(basename "$file"): $(wc -l <"$file") lines"
done
import --strict -o strict.dat "$fixtures/seed.txt" 2>err || fail "strict: $(cat err)"
[ ! -s err ] || fail "strict: $(cat err)"

echo "== any lines of the grammar, CPUs in turn"
python3 - >grammar.txt <<-'END'
	import random
	r = random.Random(4711)
	def hex_(n):
	    s = '%0*x' % (n, r.getrandbits(4 * n))
	    return s.upper() if r.random() < 0.2 else s
	time = 0
	for i in range(60000):
	    time += r.choice((0, 0, 1, 1, 2, 1000000))
	    kind = r.random()
	    if kind < 0.5:
	        print(time, 'clk', r.choice((0, 1, 2, 17)), r.choice(('IT', 'IT', 'IS')), '(%d)' % i,
	              hex_(r.choice((8, 16))), hex_(r.choice((4, 8, 16))), r.choice('ATX'),
	              r.choice('svc irq fiq usr mon sys abt und'.split()) + r.choice(('_s', '_ns', '')),
	              ':', r.choice(('nop', 'lui t0,0x%x' % i, 'mov   r1, r2 ; a comment')))
	    elif kind < 0.8:
	        size = r.choice((1, 2, 4, 8, 16))
	        print(time, 'clk', 'M%s%d%s' % (r.choice('RW'), size, r.choice(('', 'X', 'T'))),
	              hex_(r.choice((8, 16))), hex_(2 * size))
	    else:
	        print(time, 'clk', 'R', r.choice(('r8', 't0', 'sp_usr', 'v1')), hex_(r.choice((2, 8, 16, 32))))
END
same grammar.txt
cp same.dat grammar.dat
export_ --tarmac same.dat >tarmac.txt
! grep -vE '^[0-9]+ clk cpu(0|1|2|17) ' tarmac.txt || fail "--tarmac: a line without its CPU"
[ "$(wc -l <tarmac.txt)" = 60000 ] || fail "--tarmac: lines"
sed -E 's/ cpu[0-9]+//' tarmac.txt >tarmac.plain
sed -E 's/^([0-9]+ clk) [0-9]+ I/\1 I/' grammar.txt | cmp - tarmac.plain || fail "--tarmac: other lines"

echo "== standard input and output, pipes"
import -o - - <"$fixtures/seed.txt" >piped.dat || fail "import to standard output"
# shellcheck disable=SC2094 # nobody writes to it
import -o - - <"$fixtures/seed.txt" | export_ - | cmp - "$fixtures/seed.txt" || fail "pipes"
export_ - <piped.dat | cmp - "$fixtures/seed.txt" || fail "standard input that is a file"
import -o /dev/stdout "$fixtures/seed.txt" | cmp -n 10 - piped.dat || fail "/dev/stdout"
export_ same.dat | head -n 1 >/dev/null || fail "a reader who has enough"
printf '1 clk R r0 00000001' >cut.txt
same cut.txt
printf '1 clk R r0 00000001\r\n2 clk R r0 00000002\r\n' >crlf.txt
same crlf.txt
: >empty.txt
import -o empty.dat empty.txt || fail "an empty file"
[ -z "$(export_ empty.dat)" ] || fail "an empty file is not empty"
python3 -c 'print("1 clk SIGNAL: " + "x" * 65000); print("2 clk R z0 " + "0" * 9000)' >long.txt
import -o long.dat long.txt || fail "long lines"
export_ long.dat | cmp - long.txt || fail "long lines are not the same again"

echo "== the report, filters"
import -o seed.dat "$fixtures/seed.txt"
hits() { # FILTER: how many events of seed.dat it lets through
	trace-cmd report -F "$1" seed.dat 2>/dev/null | grep -c '\[0' || true
}
for expected in 'insn:taken == 0=1' 'insn:mode == "svc"=2' 'insn:addr >= 0x8 && addr < 0x10=3' \
	'insn:disasm =~ "^lui"=1' 'insn:iset == "T"=1' 'insn:secure == 1=3' 'insn:width == 16=1' \
	'mem:write == 1 && size == 4=1' 'mem:attrib == "X"=1' 'mem:data == 0xdeadbeef=1' \
	'reg:name == "r8"=1' 'reg:value > 0x10000=2' 'reg:bits == 64=1'; do
	[ "$(hits "${expected%=*}")" = "${expected##*=}" ] ||
		fail "${expected%=*}: $(hits "${expected%=*}") events"
done
# the index of the instruction is the time that is shown; --clk= says otherwise
prints ' 0\.000014: reg: ' trace-cmd report seed.dat || fail "a clk is not a microsecond"
import --clk=10ns -o clk.dat "$fixtures/seed.txt"
prints ' 0\.000000140: reg: ' trace-cmd report -t clk.dat || fail "--clk=10ns"
printf '5 us R r0 1\n6000 ns R r0 2\n7000000 ps R r0 3\n8 clk R r0 4\n' >scales.txt
import -o scales.dat scales.txt
[ "$(trace-cmd report scales.dat | sed -n 's/.* 0\.00000\(.\): .*/\1/p' | tr -d '\n')" = 5678 ] ||
	fail "scales: $(trace-cmd report scales.dat)"
"$FLYRECCTL" export --format=json --event=qemu4v:mem seed.dat |
	python3 -c 'import json,sys; e=[json.loads(l)["fields"] for l in sys.stdin]
assert len(e) == 4 and e[1]["addr"] == 0x103fc4 and e[1]["data"] == 0x10400000000000, e' ||
	fail "JSON"
[ "$(export_ --event=mem seed.dat | grep -c ' M[RW]')" = 4 ] || fail "export --event"
[ "$(export_ --cpu=1 seed.dat)" = "$(tail -n 3 "$fixtures/seed.txt" | head -n 2)" ] ||
	fail "export --cpu"

echo "== malformed lines"
printf '1 clk R r0 00000001\nhello\n3 clk MR4 zz 0\n2 clk R r0 00000002\n' >odd.txt
import -o odd.dat odd.txt 2>err || fail "malformed lines: $(cat err)"
grep -q 'odd.txt: 2 of 4 lines malformed.*line 2: no time' err || fail "malformed: $(cat err)"
grep -q 'odd.txt: the time runs backwards in 1 of 4 lines.*line 4' err || fail "backwards: $(cat err)"
export_ odd.dat | cmp - odd.txt || fail "malformed lines are lost"
[ "$(trace-cmd report odd.dat | grep -c 'text: ')" = 2 ] || fail "malformed lines are no texts"
refused 'odd.txt: line 2: no time' import --strict -o bad.dat odd.txt

echo "== bad input"
printf '1 clk R r0 00000001\n2 clk R r\0 00000002\n' >nul.txt
refused 'nul.txt: line 2: a NUL byte' import -o bad.dat nul.txt
python3 -c 'print("1 clk R r0 1"); print("2 clk " + "x" * 65536)' >huge.txt
refused 'huge.txt: line 2: .*65536' import -o bad.dat huge.txt
python3 -c 'print("1 clk R r0 1\n2 clk " + "x" * 3000000, end="")' >huge.txt
refused 'huge.txt: line 2: .*65536' import -o bad.dat huge.txt
refused 'nothing: ' import -o bad.dat nothing
refused 'cannot create' import -o nowhere/bad.dat odd.txt
refused 'is the file to import' import -o odd.txt odd.txt
refused 'Is a directory' import -o . odd.txt
refused 'clk' import --clk=soon -o bad.dat odd.txt
refused 'clk' import --clk=0ns -o bad.dat odd.txt
refused 'odd.txt: ' export_ -o bad.dat odd.txt
cp odd.dat keep.dat
refused 'NUL' import -o keep.dat nul.txt
cmp odd.dat keep.dat || fail "a failed import has changed the file that was there"
for wrong in "import --format=qemu4v odd.txt" "import --format=tarot -o bad.dat odd.txt" \
	"import -o bad.dat odd.txt" "import --format=qemu4v -o bad.dat" \
	"export --format=text --tarmac odd.dat" "export --format=qemu4v --strict odd.dat"; do
	status=0
	# shellcheck disable=SC2086 # words
	"$FLYRECCTL" $wrong >/dev/null 2>err || status=$?
	[ $status = 2 ] || fail "$wrong: exit status $status"
done
# a disk that is full, a signal: nothing is left
if [ -w /dev/full ]; then
	refused 'No space left' import -o /dev/full odd.txt
	refused 'No space left' export_ -o /dev/full odd.dat
fi
limited() {
	(
		trap '' XFSZ
		ulimit -f 64
		"$@"
	)
}
refused 'bad.dat: cannot write: File too large' limited import -o bad.dat grammar.txt
refused 'File too large' limited export_ -o bad.dat grammar.dat
mkfifo fifo
"$FLYRECCTL" import --format=qemu4v -o bad.dat fifo 2>/dev/null &
pid=$!
exec 3>fifo
cat grammar.txt >&3
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
exec 3>&-
[ $status = 143 ] || fail "SIGTERM: exit status $status"
[ ! -e bad.dat ] || fail "SIGTERM left a file"
no_leftovers SIGTERM

echo "== a cut trace.dat"
size=$(stat -c %s grammar.dat)
for part in 3 20 40 60 80 99; do
	head -c $((size * part / 100)) grammar.dat >part.dat
	status=0
	export_ -o part.txt part.dat 2>err || status=$?
	[[ $status = 1 && -s err ]] || fail "$part % of a file: exit status $status: $(cat err)"
done
ASAN_OPTIONS=detect_leaks=0 "$TOOLS/graph-dat" other.dat 2>err || fail "graph-dat: $(cat err)"
refused 'nothing to export' export_ -o bad.dat other.dat

# a build with sanitizers needs terabytes of addresses
if (ulimit -v 60000 && "$FLYRECCTL" --version) >/dev/null 2>&1; then
	echo "== memory"
	for _ in 1 2 3 4 5 6 7 8; do cat grammar.txt; done | (
		ulimit -v 60000
		import -o large.dat - 2>/dev/null
	) || fail "480,000 lines need more than 60 MB"
fi

echo "== examples of flyrec-qemu4v(7)"
cp "$fixtures/dialects.txt" boot.tarmac
cp "$fixtures/seed.txt" run.txt
mkdir bin
ln -s "$FLYRECCTL" bin/flyrecctl
n=0
while read -r line; do
	PATH=$T/bin:$PATH bash -o pipefail -c "$line" >out 2>err </dev/null ||
		fail "flyrec-qemu4v(7): $line: $(cat err)"
	[ -s out ] || [[ $line == *" -o "* || $line == *">"* ]] || fail "flyrec-qemu4v(7): $line: prints nothing"
	n=$((n + 1))
done < <(sed -n -e '/^\.EX/,/^\.EE/{' -e 's/\\-/-/g;s/\\(aq/'"'"'/g;s/\\e/\\/g' \
	-e '/^\(flyrecctl\|trace-cmd\|zcat\|gzip\) /p' -e '}' "$SRC/man/flyrec-qemu4v.7")
[ $n -ge 6 ] || fail "only $n examples in flyrec-qemu4v(7)"

[ -d "$shared" ] || skip "no traces of Arm's in $shared: compared with own ones only"
echo "== Arm's traces, against Arm's own parser"
for trace in "$shared"/*.tarmac; do
	name=$(basename "$trace" .tarmac)
	same "$trace"
	python3 - same.json "$shared/$name.parsertest.txt" <(
		"$FLYRECCTL" export --format=json same.dat
	) <<-'END' || fail "$name: not what Arm's parser finds"
		import json, re, sys
		isets = {'A': 'ARM', 'T': 'Thumb', 'O': 'A64'}
		ours, theirs = [], []
		for line in open(sys.argv[3]):
		    e = json.loads(line)
		    f = e['fields']
		    if e['event'] == 'insn':
		        ours.append('* InstructionEvent time=%d effect=%s pc=%x iset=%s width=%d instruction=%x '
		                    'disassembly="%s"' % (f['time'], 'executed' if f['taken'] else 'ccfail', f['addr'],
		                    isets[f['iset']], f['width'], f['opcode'], f['disasm']))
		    elif e['event'] == 'mem' and not f['aborted']:
		        ours.append('* MemoryEvent time=%d read=%s known=true addr=%x size=%d contents=%x' %
		                    (f['time'], 'false' if f['write'] else 'true', f['addr'], f['size'], f['data']))
		for line in open(sys.argv[2]):
		    if re.match(r'\* (Instruction|Memory)Event ', line):
		        theirs.append(line.rstrip('\n'))
		if ours != theirs:
		    for a, b in zip(ours, theirs):
		        if a != b:
		            sys.exit('%s\n%s' % (a, b))
		    sys.exit('%d and %d events' % (len(ours), len(theirs)))
		print('%d instructions and accesses are the same' % len(ours))
	END
done

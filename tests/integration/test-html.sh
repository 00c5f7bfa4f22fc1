#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 240
#
# flyrecctl export --format=html in a headless browser: what it draws is what the JSON export says, also of
# wake-ups, and of two hosts; click, zoom, move, search, sort, findings, colours, paper; names of tasks that are markup are shown and not run; nothing is
# loaded and nothing complained of; in a sandboxed frame; without JavaScript; size; 200,000 items are drawn again
# within 100 ms.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd python3 chromium taskset
need_event sched:sched_switch sched:sched_waking irq:softirq_entry oom:mark_victim
export PYTHONPATH=$SRC/tests/tools PYTHONDONTWRITEBYTECODE=1 T
cd "$T"
name=${PREFIX}h
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')

# task NAME CODE: in a task of this name, on the CPU
cat >task.py <<-'END'
	import os, sys, time
	name, cpu, code = sys.argv[1:]
	open("/proc/self/comm", "w").write(name)
	os.sched_setaffinity(0, {int(cpu)})
	def spin(seconds):
	    end = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) + seconds
	    while time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) < end:
	        pass
	# until both are there, without sleeping
	def meet():
	    open(name, "w")
	    while not (os.path.exists("drawn-a") and os.path.exists("drawn-b")):
	        pass
	exec(code)
END
# turns.py CPU N: talk-a and talk-b wake each other so often
cat >turns.py <<-'END'
	import os, sys
	os.sched_setaffinity(0, {int(sys.argv[1])})
	there, back = os.pipe(), os.pipe()
	child = os.fork()
	open("/proc/self/comm", "w").write("talk-a" if child else "talk-b")
	for _ in range(int(sys.argv[2])):
	    if child:
	        os.write(there[1], b".")
	        os.read(back[0], 1)
	    else:
	        os.read(there[0], 1)
	        os.write(back[1], b".")
	if child:
	    os.wait()
END
cat >work <<-'END'
	#!/bin/bash
	task() { python3 task.py "$1" "$cpu" "$2"; }
	task drawn-a 'meet(); spin(0.3)' &
	task drawn-b 'meet(); spin(0.3)' &
	task '<script>x()' 'for i in range(9): spin(0.003); time.sleep(0.003)' &
	task '</script><b>' 'for i in range(9): spin(0.003); time.sleep(0.003)' &
	task '<!--<script>' 'for i in range(9): spin(0.003); time.sleep(0.003)' &
	task '"><img src=x>' 'for i in range(9): spin(0.003); time.sleep(0.003)' &
	task $'\e[1m\xff&amp;' 'for i in range(9): spin(0.003); time.sleep(0.003)' &
	wait
	python3 turns.py "$cpu" 50
END
export cpu
peer_record one.dat "$name" -b 20000 -e sched -e irq -e block -- bash ./work

page() { # DAT HTML [OPTION...]
	local dat=$1 html=$2
	shift 2
	"$FLYRECCTL" export --format=html -o "$html" "$@" "$dat" >out 2>err || fail "export $dat: $(cat err)"
	[ ! -s err ] || fail "export $dat says: $(cat err)"
	[ "$(stat -c %s "$html")" -le 3000000 ] || fail "$html has $(stat -c %s "$html") bytes"
}

page one.dat one.html
"$FLYRECCTL" export --format=json one.dat >one.json
"$FLYRECCTL" analyze --json --top=20 one.dat >analyze.json
"$FLYRECCTL" view --json --top=50 runqueue one.dat >runqueue.json

echo "== nothing but itself, and markup that fits"
python3 - <<-'END' || fail "the page's markup"
	import html.parser
	void, scripts, stack = {"meta", "link"}, 0, []
	class Parser(html.parser.HTMLParser):
	    def handle_starttag(self, tag, attrs):
	        global scripts
	        assert tag != "img" and tag != "b" or stack[-1] in ("p", "li"), (tag, stack)
	        scripts += tag == "script"
	        for name, value in attrs:
	            assert not name.startswith("on") and name != "style", (tag, attrs)
	            assert name not in ("src", "href") or value.startswith("#") or value == "data:,", (tag, attrs)
	        if tag not in void:
	            stack.append(tag)
	    def handle_endtag(self, tag):
	        assert stack.pop() == tag, tag
	text = open("one.html", encoding="utf-8").read()
	Parser(convert_charrefs=True).feed(text)
	assert stack == [] and scripts == 3, (stack, scripts)
	assert "://" not in text.replace("://\"", ""), "an address"
END

echo "== in the browser"
python3 - <<-'END' || fail "wrong data: the page does not show what it should"
	import collections, html, json
	from browser import Browser

	first, runs, on, last = None, collections.defaultdict(list), {}, 0
	for line in open("one.json", errors="surrogateescape"):
	    e = json.loads(line)
	    first = first or e["ts"]
	    last = e["ts"]
	    assert "lost_before" not in e, "lost events: no check"
	    if e["event"] == "sched_switch":
	        f = e["fields"]
	        if e["cpu"] in on:
	            runs[e["cpu"]].append((on[e["cpu"]][0], e["ts"] - first, on[e["cpu"]][1]))
	        on[e["cpu"]] = e["ts"] - first, f["next_pid"]
	names, wakes = {}, []
	for line in open("one.json", errors="surrogateescape"):
	    e = json.loads(line)
	    if e["event"] == "sched_waking":
	        wakes.append((e["ts"] - first, e["pid"], e["fields"]["pid"]))
	    if e["event"] == "sched_switch":
	        names[e["fields"]["next_pid"]] = e["fields"]["next_comm"]
	        names[e["fields"]["prev_pid"]] = e["fields"]["prev_comm"]
	findings = json.load(open("analyze.json", errors="surrogateescape"))["findings"]
	rows = json.load(open("runqueue.json", errors="surrogateescape"))["rows"]
	drawn = {n: pid for pid, n in names.items() if n.startswith("drawn-")}
	assert len(drawn) == 2, drawn
	# it may have begun on another one
	cpu = max(runs, key=lambda c: sum(end - begin for begin, end, pid in runs[c] if pid == drawn["drawn-a"]))

	# the colour that most of a line of pixels has: there are also names and arrows
	PIXEL = """(x, y, n) => {
	    const data = document.getElementById('canvas').getContext('2d').getImageData(x, y, n, 1).data, counts = {};
	    for (let i = 0; i < data.length; i += 4) {
	        const key = data.slice(i, i + 3).join();
	        counts[key] = (counts[key] || 0) + 1;
	    }
	    return Object.keys(counts).sort((a, b) => counts[b] - counts[a])[0];
	}"""

	with Browser() as b:
	    b.open("one.html", "document.body?.dataset.ready == 'yes'")
	    b.frames()
	    width = b.js("document.getElementById('canvas').clientWidth")
	    labels = lambda: b.js("[...document.querySelectorAll('#timeline .labels div')].map(e => e.textContent)")
	    window = lambda: [float(v) for v in b.js("(d => [d.from, d.to])(document.getElementById('canvas').dataset)")]
	    middle = lambda n: 18 + 20 * n + 12  # of a CPU's or task's band, in pixels
	    pixel = lambda x, y, n=1: b.js(f"({PIXEL})({int(x)}, {int(y)}, {int(n)})")

	    # all of it
	    t0, t1 = window()
	    assert t0 == 0 and abs(t1 - (last - first)) < 2, (t0, t1, last - first)

	    # search, and zoom to where the two take turns: each pixel of the CPU has the colour of who ran
	    b.type("#search", "drawn-")
	    shown = labels()
	    assert {f"{n} {pid}" for n, pid in drawn.items()} <= {s.split(" \u2192 ")[-1] for s in shown}, shown
	    assert not any("script" in s for s in shown), shown
	    row_of = {pid: next(i for i, s in enumerate(shown) if s.endswith(f"{n} {pid}")) for n, pid in drawn.items()}
	    cpu_row = shown.index(f"CPU {cpu}")
	    longer = {pid: [r for r in runs[cpu] if r[2] == pid and r[1] - r[0] > 5e5] for pid in row_of}
	    second = [r for r in runs[cpu] if r[2] == drawn["drawn-b"]]
	    # meanwhile the other one waits: it never sleeps
	    longer[drawn["drawn-a"]] = [r for r in longer[drawn["drawn-a"]] if second[0][1] <= r[0] and r[1] <= second[-1][0]]
	    pair = min(((r, q) for r in longer[drawn["drawn-a"]] for q in longer[drawn["drawn-b"]]),
	        key=lambda p: max(p[0][1], p[1][1]) - min(p[0][0], p[1][0]))
	    at = (min(pair[0][0], pair[1][0]) + max(pair[0][1], pair[1][1])) / 2
	    while window()[1] - window()[0] > 40e6:
	        t0, t1 = window()
	        b.wheel("#canvas", (at - t0) / (t1 - t0) * width, 100, -300)
	        b.until(f"(d => d.to - d.from < {(t1 - t0) * 0.9})(document.getElementById('canvas').dataset)")
	    t0, t1 = window()
	    scale = width / (t1 - t0)
	    checked = collections.Counter()
	    whose = {}
	    for begin, end, pid in runs[cpu]:
	        x0, x1 = (begin - t0) * scale, (end - t0) * scale
	        if x0 < 0 or x1 > width or x1 - x0 < 6:
	            continue
	        x, n = x0 + 1, x1 - x0 - 2
	        colour = pixel(x, middle(cpu_row) - 4, n)
	        if pid == 0:
	            assert colour not in whose.values(), (begin, colour)
	            continue
	        assert whose.setdefault(names[pid], colour) == colour, (names[pid], colour, whose)
	        checked["task"] += 1
	        if pid in row_of:
	            assert pixel(x, middle(row_of[pid]) - 10, n) == colour, \
	                (begin, pid, colour, pixel(x, middle(row_of[pid]) - 10, n), "another colour in its own row")
	            other = next(p for p in row_of if p != pid)
	            assert pixel(x, middle(row_of[other]) - 10, n) != colour, "both run"
	            checked[pid] += 1
	    assert all(checked[pid] for pid in row_of), (checked, pair, window())
	    assert len(set(whose[n] for n in drawn)) == 2, whose

	    # click: in words
	    run = pair[0]
	    b.click("#canvas", ((run[0] + run[1]) / 2 - t0) * scale, middle(cpu_row))
	    text = b.js("document.getElementById('detail').textContent")
	    assert f"drawn-a {drawn['drawn-a']}" in text and f"ran on CPU {cpu}" in text, text
	    # a wait: who ran meanwhile, by whom it was woken
	    b.click("#canvas", ((run[0] + run[1]) / 2 - t0) * scale, middle(row_of[drawn["drawn-b"]]))
	    text = b.js("document.getElementById('detail').textContent")
	    assert "waited for a CPU" in text and f"drawn-a {drawn['drawn-a']}" in text, text

	    # keys and mouse
	    b.js("document.getElementById('canvas').focus()")
	    t0, t1 = window()
	    b.key("+")
	    assert abs((window()[1] - window()[0]) * 2 / (t1 - t0) - 1) < 0.01, "+ does not zoom"
	    b.key("-")
	    b.key("ArrowRight")
	    assert abs(window()[0] - t0 - (t1 - t0) / 5) < 2, (window(), t0, t1)
	    t0, t1 = window()
	    b.drag("#canvas", 500, 400, 60)
	    assert abs(window()[0] - t0 - 100 * (t1 - t0) / width) < (t1 - t0) / width * 2, "dragging does not move"
	    before = window()
	    b.wheel("#canvas", 500, 60, -300, ctrl=False)
	    assert window() == before, "the wheel alone, which scrolls the page, zooms"
	    b.key("0")
	    assert window()[0] == 0, window()

	    # wake-ups: an arrow crosses from row to row where one task woke the other, and nowhere else
	    b.type("#search", "talk-")
	    talk = {pid: next(i for i, s in enumerate(labels()) if s.endswith(f"{n} {pid}"))
	        for pid, n in names.items() if n.startswith("talk-")}
	    assert len(talk) == 2 and abs(talk[min(talk)] - talk[max(talk)]) == 1, (talk, labels())
	    between = [ts for ts, by, pid in wakes if {by, pid} == set(talk)]
	    assert len(between) >= 40, len(between)
	    at = between[len(between) // 2]
	    inside = lambda: [ts for ts in between if window()[0] <= ts <= window()[1]]
	    while len(inside()) > 12:
	        t0, t1 = window()
	        b.wheel("#canvas", (at - t0) / (t1 - t0) * width, 100, -300)
	        b.until(f"(d => d.to - d.from < {(t1 - t0) * 0.9})(document.getElementById('canvas').dataset)")
	    t0, t1 = window()
	    dark = b.js(f"""(y => {{
	        const data = document.getElementById('canvas').getContext('2d').getImageData(0, y, {width}, 1).data;
	        const text = getComputedStyle(document.body).color.match(/[0-9]+/g).map(Number), xs = [];
	        const lightness = (p, i) => p[i] + p[i + 1] + p[i + 2];
	        const all = Array.from({{length: {width}}}, (_, x) => lightness(data, 4 * x));
	        const paper = all.slice().sort((a, b) => a - b)[{width} >> 1];
	        all.forEach((l, x) => Math.abs(l - paper) > 0.3 * Math.abs(lightness(text, 0) - paper) && xs.push(x));
	        return xs;
	    }})({18 + 20 * (1 + min(talk.values())) - 1})""")
	    arrows = [(ts - t0) / (t1 - t0) * width for ts in inside()]
	    assert arrows and all(any(abs(x + 0.5 - a) <= 1.5 for x in dark) for a in arrows if 2 < a < width - 2), \
	        (dark, arrows)
	    assert all(any(abs(x + 0.5 - a) <= 4 for a in arrows) for x in dark if 2 < x < width - 2), (dark, arrows)
	    b.js("document.getElementById('canvas').focus()")
	    b.key("0")

	    # findings: each has its window drawn; n goes there
	    cards = b.js("[...document.querySelectorAll('#findings ol > li')].map(e => e.querySelector('p').textContent)")
	    assert len(cards) == len(findings), (len(cards), len(findings))
	    for card, finding in zip(cards, findings):
	        assert finding["text"] in card, (card, finding["text"])
	    assert b.js("document.querySelectorAll('#findings canvas').length") == len(cards)
	    b.key("n")
	    t0, t1 = window()
	    f = findings[0]
	    begin = f["start_usec"] * 1000 - first
	    assert t0 <= begin + 1000 and begin + f["duration_nsec"] <= t1 + 1000, (t0, t1, begin, f)
	    assert t1 - t0 < 4 * f["duration_nsec"] + 3e6, (t0, t1, f)
	    if f["pid"]:
	        assert any(s.endswith(f" {f['pid']}") for s in labels()), (labels(), f)

	    # the table of waits for a CPU is that of view, also sorted
	    heads = "[...document.querySelectorAll('h3')].find(e => e.textContent.startsWith('runqueue:')).nextElementSibling"
	    tasks = lambda: b.js(f"[...{heads}.querySelectorAll('tbody tr')].map(e => e.cells[0].textContent)")
	    pids = lambda: b.js(f"[...{heads}.querySelectorAll('tbody tr')].map(e => Number(e.cells[1].textContent))")
	    assert pids() == [r["pid"] for r in rows], (pids(), rows)
	    for cell, r in zip(tasks(), rows):
	        assert cell == r["task"] or not r["task"].isprintable(), (cell, r)
	    column = f"[...{heads}.querySelectorAll('th')].findIndex(e => e.textContent == 'COUNT')"
	    count = lambda: b.js(f"(n => [...{heads}.querySelectorAll('tbody tr')].map(e => Number(e.cells[n].textContent)))({column})")
	    b.js(f"[...{heads}.querySelectorAll('th')].find(e => e.textContent == 'COUNT').id = 'by'")
	    b.click("#by button")
	    assert count() == sorted((r["count"] for r in rows), reverse=True), count()
	    b.click("#by button")
	    assert count() == sorted(r["count"] for r in rows), count()

	    # hostile names
	    assert b.js("document.querySelectorAll('script').length") == 3
	    assert b.js("document.querySelectorAll('img').length") == 0
	    for hostile in "<script>x()", "</script><b>", "<!--<script>", "\"><img src=x>":
	        b.type("#search", hostile)
	        assert any(hostile in s for s in labels()), (hostile, labels())

	    # colours and paper
	    b.type("#search", "")
	    before = pixel(3, 1)
	    b.js("[...document.querySelectorAll('button')].find(e => e.textContent == 'Light/dark').id = 'theme'")
	    b.click("#theme")
	    assert pixel(3, 1) != before, "the other colours are the same"
	    assert b.js("getComputedStyle(document.body).backgroundColor") == "rgb(23, 25, 28)"
	    assert len(b.call("Page.printToPDF", printBackground=True)["data"]) > 20000
	    assert b.js("document.documentElement.dataset.theme") == "dark", "printing changes the colours for good"
	    assert b.requests == [r for r in b.requests if r.startswith("file:///") and r.endswith("/one.html")], b.requests
	    assert not b.complaints, b.complaints

	    # in a frame as Cockpit's
	    open("frame.html", "w").write("<iframe sandbox='allow-scripts' src='one.html' width=1200 height=800></iframe>")
	    b.open("frame.html")
	    world = b.frame()
	    b.until("document.body?.dataset.ready == 'yes'", contextId=world)
	    assert b.js("document.querySelectorAll('#findings canvas').length", contextId=world) == len(cards)
	    assert not b.complaints, b.complaints

	    # without JavaScript
	    b.call("Emulation.setScriptExecutionDisabled", value=True)
	    b.open("one.html")
	    text = b.html()
	    assert "<canvas" not in text and "<noscript>" in text
	    assert html.escape(findings[0]["text"], quote=False) in text.replace("&quot;", "\""), findings[0]["text"]
	    assert text.count("<table") > 5
	    assert not b.complaints, b.complaints
END

echo "== 200,000 items"
peer_record many.dat "$name" -b 60000 -e sched:sched_switch -e sched:sched_waking -- python3 turns.py "$cpu" 60000
page many.dat many.html
python3 - <<-'END' || fail "200,000 items"
	import json, statistics
	from browser import Browser
	with Browser(wait=60) as b:
	    b.open("many.html", "document.body?.dataset.ready == 'yes'")
	    facts = json.loads(b.js("document.getElementById('facts').textContent"))
	    assert facts["items"] >= 200000, facts["items"]
	    took = lambda: float(b.js("document.getElementById('canvas').dataset.ms"))
	    b.js("document.getElementById('canvas').focus()")
	    b.frames()
	    all, zoomed = [], []
	    for _ in range(9):
	        b.key("0")
	        all.append(took())
	        b.key("+")
	        zoomed.append(took())
	    print(f"{facts['items']} items: all of them drawn in {statistics.median(all):.1f} ms,"
	        f" half of them in {statistics.median(zoomed):.1f} ms (medians of 9)")
	    assert statistics.median(all) <= 100 and statistics.median(zoomed) <= 100, (all, zoomed)
	    assert not b.complaints, b.complaints
END

echo "== two hosts"
peer_record first.dat "$name" --date -e sched -- python3 task.py drawn-c "$cpu" 'spin(0.1)'
peer_record second.dat "$name" --date -e sched -- python3 turns.py "$cpu" 50
"$FLYRECCTL" merge -o two.dat first=first.dat second=second.dat >out 2>&1 || fail "merge: $(cat out)"
page two.dat two.html
"$FLYRECCTL" analyze --json --top=20 two.dat >two.json
python3 - <<-'END' || fail "wrong data: a page of two hosts"
	import json
	from browser import Browser
	hosts = json.load(open("two.json", errors="surrogateescape"))["hosts"]
	assert [h["host"] for h in hosts] == ["first", "second"], hosts
	with Browser(wait=60) as b:
	    b.open("two.html", "document.body?.dataset.ready == 'yes'")
	    b.frames()
	    heads = b.js("[...document.querySelectorAll('h1')].map(e => e.textContent)")
	    assert heads == ["first: two.dat", "second: two.dat"], heads
	    assert b.js("document.body.innerText").count("Its clock may be wrong by") == 2
	    for i, host in enumerate(hosts):
	        suffix = "-2" if i else ""
	        found = b.js(f"[...document.querySelectorAll('#findings{suffix} ol > li > p')].map(e => e.textContent)")
	        wanted = host["result"]["findings"]
	        assert len(found) == len(wanted), (host["host"], found)
	        assert all(f["text"] in text for f, text in zip(wanted, found)), (host["host"], found)
	        events = f": {host['result']['events']} events, "
	        assert events in b.js(f"document.querySelectorAll('header')[{i}].textContent"), events
	    # each time line is its own: tasks of one are not in the other, and zooming one leaves the other
	    labels = lambda id: b.js(f"[...document.querySelectorAll('#timeline{id} .labels div')].map(e => e.textContent)")
	    for id, there in ("", "drawn-c"), ("-2", "talk-a"):
	        b.type("#search" + id, there)
	        assert any(there in s for s in labels(id)), (there, labels(id))
	    b.type("#search-2", "drawn-")
	    assert not any("drawn-" in s for s in labels("-2")), labels("-2")
	    window = lambda id: b.js(f"(d => [d.from, d.to])(document.getElementById('canvas{id}').dataset)")
	    before = window("")
	    b.js("document.getElementById('canvas-2').focus()")
	    whole = window("-2")
	    b.key("+")
	    assert window("-2") != whole and window("") == before, (window("-2"), whole, window(""), before)
	    assert not b.complaints, b.complaints
END

echo "== nothing in it"
peer_record empty.dat "$name" -e oom:mark_victim -- true
page empty.dat empty.html
python3 - <<-'END' || fail "a recording without events"
	from browser import Browser
	with Browser() as b:
	    b.open("empty.html", "document.body?.dataset.ready == 'yes'")
	    assert "Nothing stands out" in b.js("document.body.innerText")
	    b.js("document.getElementById('canvas').focus()")
	    for key in "+-0np":
	        b.key(key)
	    assert not b.complaints, b.complaints
END

echo "== options, and what is refused"
page one.dat last.html --last=100ms
python3 - <<-'END' || fail "--last="
	import json, re
	length = lambda name: json.loads(re.search(r"id=facts type=\"application/json\">(.*?)</script>", open(name).read())[1])["length"]
	assert 50e6 < length("last.html") <= 100e6 < length("one.html"), length("last.html")
END
"$FLYRECCTL" export --format=html one.dat >standard.html || fail "to standard output"
cmp one.html standard.html || fail "standard output gets another page"
for wrong in --last=soon --event=sched --pid=1 --cpu=0; do
	status=0
	"$FLYRECCTL" export --format=html "$wrong" -o wrong.html one.dat 2>err || status=$?
	{ [ "$status" = 2 ] && [ ! -e wrong.html ]; } || fail "$wrong: status $status, not 2: $(cat err)"
done

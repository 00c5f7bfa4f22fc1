#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 300
# beside: yes
#
# The Cockpit page, as installed, in cockpit-ws on loopback and a headless browser; in a tree of this Debian's
# packages, in the long form on Debian 12 also of 13's: sessions with rate and cost, a snapshot by its button, its
# report in a frame that gets at nothing outside, its download, stop and start; names that are markup; what others
# change is shown, by signals; a flyrecd and a bus that end and come back; the rights of strangers, members and
# administrators.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/control-lib.sh"
# shellcheck source=tests/tools/debian-tree.sh
. "$SRC/tests/tools/debian-tree.sh"
need_tracefs
need_command chromium python3 mmdebstrap unshare dbus-daemon busctl
need_event sched:sched_switch sched:sched_waking
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || skip "needs debian-archive-keyring"
no_sanitizers "their libraries are not in the trees"
# shellcheck source=/dev/null
. /etc/os-release
case ${ID:-}:${VERSION_ID:-} in
debian:12)
	SUITES=bookworm
	! thorough || SUITES+=' trixie' # what was built here runs there, too
	;;
debian:13) SUITES=trixie ;;
*) skip "for Debian 12 and 13" ;;
esac
export PYTHONPATH=$SRC/tests/tools PYTHONDONTWRITEBYTECODE=1 T
cd "$T"
chmod 755 "$T"

# flyrecctl's
LIBRARIES=libelf1,libtraceevent1-plugin,libtracefs1,libjson-c5,libsqlite3-0,libedit2,libsystemd0,libseccomp2,libzstd1

# enter SUITE: the root is from now on a tree of it, with the page and flyrecctl
enter() {
	ROOT=$T/$1
	debian_cached "cockpit-$1" "" debian_make "$1" minbase \
		"cockpit-ws,cockpit-bridge,cockpit-system,sudo,$LIBRARIES"
	mkdir "$ROOT" "$ROOT".{upper,work}
	mount -t overlay -o "lowerdir=$CACHED,upperdir=$ROOT.upper,workdir=$ROOT.work" overlay "$ROOT" ||
		skip "cannot mount an overlay"
	MOUNTS=("$ROOT" "${MOUNTS[@]}")
	mkdir -p "$ROOT$T"
	for path in "$T" /dev /proc; do
		mount --bind "$path" "$ROOT$path"
		MOUNTS=("$ROOT$path" "${MOUNTS[@]}")
	done
	make -C "$BUILD" -s --no-print-directory install-dist_cockpitDATA "DESTDIR=$ROOT" datadir=/usr/share >make.log 2>&1 ||
		fail "make install: $(cat make.log)"
	cp "$FLYRECCTL" "$ROOT/usr/bin/flyrecctl.real"
	printf '#!/bin/sh\nexec flyrecctl.real "--runtime-dir=%s" "$@"\n' "$RUNTIME" >"$ROOT/usr/bin/flyrecctl"
	chmod +x "$ROOT/usr/bin/flyrecctl"
	cp group "$ROOT/etc/group"
	# the superuser bridge is to find this test's bus
	printf '%s\n' 'nobody ALL=(ALL) NOPASSWD: ALL' 'Defaults env_keep += "DBUS_SYSTEM_BUS_ADDRESS"' \
		>"$ROOT/etc/sudoers.d/test"
	echo "== $(chroot "$ROOT" dpkg-query --show cockpit-ws)"
}

# A bridge ends after its cockpit-ws
trees_are_left() {
	! readlink /proc/[0-9]*/root 2>/dev/null | grep -q "^$T/"
}
at_end wait_for 10 trees_are_left

WS=
ws_stop() {
	[ -n "$WS" ] || return 0
	kill "$WS"
	wait "$WS" || true
	WS=
}

# cockpit_ws USER GROUP [SUPERUSER]: in WS, on a free port; the bridge is this user's. It has one session:
# a new one for each login.
cockpit_ws() {
	local bridge=$T/bridge.$1.${3:-}
	# it would start a session bus and an ssh-agent, and leave them behind
	cat >"$bridge" <<-END
		#!/bin/sh
		export HOME=$T/home XDG_RUNTIME_DIR=$T/home DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent SSH_AUTH_SOCK=/nonexistent
		exec setpriv --reuid=$1 --regid=nogroup --groups=$2 cockpit-bridge
	END
	chmod +x "$bridge"
	mkdir -p home
	ws_stop
	background chroot "$ROOT" env LC_ALL=C.UTF-8 "XDG_CONFIG_DIRS=$T/none" ${3:+"COCKPIT_SUPERUSER=${3:-}"} \
		/usr/lib/cockpit/cockpit-ws --no-tls "--local-session=$bridge" --port 0 --address 127.0.0.1 >>ws.log 2>&1
	WS=$!
}

private_groups daemon
for name in kept flight; do
	session $name <<-EOF
		[Session]
		Description=<img src=x onerror=alert(1)>
		Mode=${name/kept/record}
		[Trace]
		Event=sched:sched_switch
		BufferSize=1M
		[Storage]
		FlushSec=200ms
	EOF
done
# nothing but the victim can be in its findings
session victim <<-EOF
	[Trace]
	Event=sched:sched_switch if prev_comm ~ "*img src*"
	Event=sched:sched_waking if comm ~ "*img src*"
	BufferSize=1M
	[Storage]
	FlushSec=200ms
EOF
export HOSTILE='<img src=x>'
ln -s "$TOOLS/waits" "$HOSTILE"

cat >browse.py <<-'END'
	import base64, filecmp, json, os, re, subprocess, sys, time
	from browser import Browser

	HOSTILE = os.environ["HOSTILE"]
	SESSIONS = "/org/flyrec/Recorder1/session/"

	def ask(what):
	    """The test does it, and answers with a line"""
	    print(what, flush=True)
	    return sys.stdin.readline().strip()

	def ctl(*words):
	    return subprocess.run([os.environ["FLYRECCTL"], "--runtime-dir=" + os.environ["RUNTIME"], *words], check=True,
	        stdout=subprocess.PIPE, text=True).stdout.strip()

	def port_of(pid):
	    end = time.monotonic() + 20
	    while time.monotonic() < end:
	        for line in open("/proc/net/tcp"):
	            word = line.split()
	            if word[3] == "0A":
	                try:
	                    if f"socket:[{word[9]}]" in [os.readlink(fd.path) for fd in os.scandir(f"/proc/{pid}/fd")]:
	                        return int(word[1].split(":")[1], 16)
	                except FileNotFoundError:
	                    pass  # it is being started
	        time.sleep(0.02)
	    raise TimeoutError("cockpit-ws does not listen")

	class Page(Browser):
	    def log_in(self, *who):
	        self.at = f"http://127.0.0.1:{port_of(ask(' '.join(['log-in', *who])))}/"
	        self.call("Page.navigate", url=self.at + "cockpit/@localhost/flyrec/index.html")
	        self.until("document.body?.dataset.ready == 'yes'")

	    def until(self, expression, **more):
	        try:
	            return super().until(expression, **more)
	        except TimeoutError as e:
	            raise TimeoutError(f"{expression}: {self.problem()}, {self.complaints}") from e

	    def rows(self, id):
	        return self.js(f"Object.fromEntries([...document.getElementById('{id}').rows].map(r => "
	            "[r.dataset.key, [...r.cells].map(c => c.textContent)]))")

	    def until_rows(self, id, condition):
	        end = time.monotonic() + self.wait
	        while not condition(rows := self.rows(id)):
	            assert time.monotonic() < end, (rows, self.problem(), self.complaints)
	            time.sleep(0.02)
	        return rows

	    def press(self, key):
	        # as it may be another one after a refresh
	        button = f"button[data-key={json.dumps(key)}]"
	        self.until(f"document.querySelector({json.dumps(button)})?.disabled === false")
	        self.click(button)

	    def problem(self):
	        return self.js("(p => p.hidden ? '' : p.textContent)(document.getElementById('problem'))")

	    def until_problem(self, pattern):
	        self.until(f"(p => !p.hidden && {pattern}.test(p.textContent))(document.getElementById('problem'))")

	    def check(self):
	        outside = [r for r in self.requests if not r.startswith((self.at, "data:"))]
	        assert not outside, outside
	        bad = [c for c in self.complaints if "fonts/" not in c]
	        assert not bad, bad
	        assert self.js("document.querySelectorAll('img').length") == 0
	        self.requests.clear()
	        self.complaints.clear()

	def session(name):
	    return next(s for s in json.loads(ctl("--json", "status"))["sessions"] if s["name"] == name)

	with Page(wait=60) as b:
	    b.log_in("root", "root")
	    sessions = b.until_rows("sessions", lambda rows: len(rows) == 3)
	    assert set(sessions) == {"kept", "flight", "victim"}, sessions
	    assert {row[1] for row in sessions.values()} == {"recording"}, (sessions, b.problem())
	    assert b.rows("snapshots") == {}
	    b.js("window.made = 0; (dbus => { cockpit.dbus = (...args) => { made++; return dbus(...args); }; })(cockpit.dbus)")
	    # a rate takes two looks
	    b.until_rows("sessions", lambda rows: re.match(r"[1-9][0-9.,]* events/s$", rows["flight"][3]))
	    b.until_rows("sessions", lambda rows: re.match(r"[1-9][0-9.,]* [kM]?B/s$", rows["kept"][3]))
	    b.until_rows("sessions", lambda rows: re.match(r"[1-9][0-9.]* (s|min)$", rows["kept"][2]))
	    b.click("#measure")
	    # what an event costs cannot be measured on a busy machine
	    b.until_rows("sessions", lambda rows:
	        re.match(r"([0-9.]+% of the machine, )?[1-9][0-9.,]* events/s$", rows["kept"][6]))

	    b.press("Snapshot " + SESSIONS + "victim")
	    path, row = next(iter(b.until_rows("snapshots", lambda rows: HOSTILE in str(rows)).items()))
	    assert os.path.getsize(path) > 0 and path.endswith("-control.dat"), path
	    assert row[1:3] == ["victim", "control"], row
	    assert row[4] == json.loads(ctl("--json", "list", "victim"))["files"][-1]["finding"], row

	    b.press("open " + path)
	    b.until("document.querySelector('iframe') !== null")
	    assert b.js("document.querySelector('iframe').sandbox.value") == "allow-scripts"
	    end = time.monotonic() + b.wait
	    while True:
	        try:
	            world = b.frame()
	            if b.js("document.body?.dataset.ready == 'yes'", contextId=world):
	                break
	        except (RuntimeError, KeyError):
	            pass  # another document has come meanwhile
	        assert time.monotonic() < end, b.complaints
	        time.sleep(0.02)
	    assert b.js("document.querySelectorAll('#timeline canvas').length", contextId=world) == 2
	    assert HOSTILE in b.js("document.querySelector('#findings').textContent", contextId=world)
	    assert b.js("document.querySelectorAll('img').length", contextId=world) == 0
	    assert b.js("window.origin", contextId=world) == "null", "the frame has an origin"
	    open("page.png", "wb").write(base64.b64decode(b.call("Page.captureScreenshot")["data"]))
	    b.press("close")
	    assert b.js("document.querySelector('iframe')") is None

	    got = os.path.abspath("downloads")
	    os.mkdir(got)
	    b.call("Page.setDownloadBehavior", behavior="allow", downloadPath=got)
	    b.press("download " + path)
	    copy, end = os.path.join(got, os.path.basename(path)), time.monotonic() + b.wait
	    # Chromium makes an empty file of that name first
	    while not os.path.exists(copy) or os.path.getsize(copy) != os.path.getsize(path):
	        assert time.monotonic() < end, {name: os.path.getsize(os.path.join(got, name)) for name in os.listdir(got)}
	        time.sleep(0.02)
	    assert filecmp.cmp(path, copy, shallow=False), "another file"
	    os.remove(copy)
	    os.rmdir(got)

	    # who stops a flight session is asked, as that loses what the ring buffers hold
	    for name, asked in ("kept", []), ("flight", ["a dialog: Stop flight"]):
	        b.press("Stop " + SESSIONS + name)
	        b.until_rows("sessions", lambda rows: rows[name][1] == "stopped")
	        assert session(name)["state"] == "stopped"
	        assert [c.partition("?")[0] for c in b.complaints] == asked, b.complaints
	        b.complaints.clear()
	        b.press("Start " + SESSIONS + name)
	        b.until_rows("sessions", lambda rows: rows[name][1] == "recording")
	        assert session(name)["state"] == "recording"

	    # when it is known what the login may do there is another connection, and that stays
	    b.until(f"performance.now() > {b.js('performance.now()') + 5000}")
	    assert b.js("made") <= 1, b.js("made")

	    # what others do: signals tell, no question that is asked each two seconds
	    b.js("""window.later = window.setTimeout;
	        window.setTimeout = (f, time) => f === refresh && time === REFRESH ? 0 : later(f, time)""")
	    b.until("busy === null")
	    b.js("clearTimeout(timer)")
	    ctl("pause", "kept")
	    b.until_rows("sessions", lambda rows: rows["kept"][1] == "paused")
	    ctl("resume", "kept")
	    b.until_rows("sessions", lambda rows: rows["kept"][1] == "recording")
	    other = ctl("snapshot", "flight", "--reason=other")
	    assert b.until_rows("snapshots", lambda rows: other in rows)[other][1:3] == ["flight", "other"]
	    ask("add")
	    b.until_rows("sessions", lambda rows: HOSTILE in rows.get("extra", ["", ""])[1])
	    ask("remove")
	    b.until_rows("sessions", lambda rows: "extra" not in rows)
	    b.js("window.setTimeout = window.later; refresh()")
	    ask("down")
	    b.until_problem("/^flyrecd is not running$/")
	    assert b.rows("sessions") == b.rows("snapshots") == {}
	    ask("up")
	    b.until_rows("sessions", lambda rows: "kept" in rows)
	    b.until_rows("snapshots", lambda rows: path in rows)
	    assert b.problem() == ""
	    ask("bus")
	    if sys.argv[1] == "bookworm":
	        b.until_rows("sessions", lambda rows: "kept" in rows)
	        assert b.problem() == ""
	    else: # the bridge written in Python keeps the connection that has ended: it says so, or answers nothing
	        b.until_problem("/not connected|does not answer/")
	        assert b.rows("sessions") == b.rows("snapshots") == {}
	    b.check()

	    # a member may look and take snapshots
	    b.log_in("daemon", "flyrec")
	    n = len(b.rows("snapshots"))
	    b.press("Snapshot " + SESSIONS + "victim")
	    b.until_rows("snapshots", lambda rows: len(rows) == n + 1)
	    b.press("Stop " + SESSIONS + "kept")
	    b.until_problem("/needs root or .*administrative access/")
	    assert session("kept")["state"] == "recording"
	    ctl("pause", "kept")
	    b.until_rows("sessions", lambda rows: rows["kept"][1] == "paused")
	    assert "needs root" in b.problem(), "the refusal did not stay"
	    ctl("resume", "kept")
	    b.check()

	    b.log_in("nobody", "nogroup")
	    b.until_problem("/root.*group flyrec.*administrative access/")
	    assert b.rows("sessions") == b.rows("snapshots") == {}
	    b.check()

	    # with administrative access he is root
	    b.log_in("nobody", "nogroup", "sudo")
	    b.until_rows("sessions", lambda rows: "kept" in rows)
	    b.press("Stop " + SESSIONS + "kept")
	    b.until_rows("sessions", lambda rows: rows["kept"][1] == "stopped")
	    assert b.problem() == ""
	    b.check()

	    # in Cockpit's menu, and opened from there
	    b.call("Page.navigate", url=b.at)
	    b.until("[...document.querySelectorAll('a[href]')].some(a => a.textContent.includes('Flight recorder'))")
	    b.js("[...document.querySelectorAll('a[href]')].find(a => a.textContent.includes('Flight recorder')).click()")
	    b.until("document.querySelector('iframe[name$=\"/flyrec\"]')?.contentDocument?.body?.dataset.ready == 'yes'")
END

bus_start() {
	private_system_bus unshare --mount --propagation=slave "$T/private"
	BUS_PID=$!
	flyrecd_start
	bus_has_name
}

# page_of SUITE
page_of() {
	local wish
	enter "$1"
	bus_start
	"./$HOSTILE" blocked 300000 300000 2 >/dev/null
	mkfifo wishes answers
	# the browser would end with the bus
	FLYRECCTL=$FLYRECCTL RUNTIME=$RUNTIME DBUS_SYSTEM_BUS_ADDRESS=unix:path=$T/no-bus \
		python3 browse.py "$1" <answers >wishes 2>browser.log &
	BROWSE=$!
	exec 8>answers 9<wishes
	while read -r wish <&9; do
		case $wish in
		log-in*)
			# shellcheck disable=SC2086 # words
			cockpit_ws ${wish#log-in }
			wish=$WS
			;;
		add)
			printf '[Trace]\nEvent=sched:sched_switch if %s\n' "$HOSTILE" | session extra
			ctl reload >out 2>&1 || true
			;;
		remove)
			rm "$CONFIG/sessions.d/extra.conf"
			ctl reload >out 2>&1 || fail "reload: $(cat out)"
			;;
		down) flyrecd_stop ;;
		up)
			flyrecd_start
			bus_has_name
			;;
		bus)
			flyrecd_stop
			kill "$BUS_PID"
			wait "$BUS_PID" || true
			rm -f bus
			bus_start
			;;
		*) fail "$wish?" ;;
		esac
		echo "$wish" >&8
	done
	exec 8>&- 9<&-
	# of cockpit-ws only a wrong run is of interest, such as the one of twelve in which it closed the connection
	wait "$BROWSE" || fail "the page: $(tail -n 20 ws.log) $(tail -n 5 browser.log)"
	rm wishes answers
	ws_stop
	flyrecd_stop
	rm -r "$STATE"
}

for suite in $SUITES; do
	page_of "$suite"
done

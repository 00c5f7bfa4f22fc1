# SPDX-License-Identifier: LGPL-2.1-or-later
"""A headless Chromium for tests, by the DevTools protocol over a pipe: pages are shown, clicked and typed into, and
whatever they ask of a network, or complain of, is noted."""
import fcntl, json, os, select, shutil, signal, tempfile, time

PROGRAMS = "chromium", "chromium-browser", "google-chrome"
QUIET = """--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update
    --disable-sync --disable-default-apps --disable-extensions --disable-dev-shm-usage --force-device-scale-factor=1
    --disable-features=IsolateSandboxedIframes,DialMediaRouteProvider --window-size=1400,1000 --remote-debugging-pipe
    about:blank""".split()


class Browser:
    def __init__(self, wait=30):
        self.wait = wait
        self.home = tempfile.mkdtemp(prefix="browser.", dir=os.environ.get("T"))
        program = next(filter(None, map(shutil.which, PROGRAMS)))
        ends = [*os.pipe(), *os.pipe()]
        # beyond 4: the browser wants its own as 3 and 4
        down, self.to, self.back, up = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 5) for end in ends]
        for end in ends:
            os.close(end)
        log = os.path.join(self.home, "log")
        self.pid = os.posix_spawn(program, [program, "--user-data-dir=" + self.home, *QUIET],
            {**os.environ, "HOME": self.home, "XDG_CONFIG_HOME": self.home, "XDG_CACHE_HOME": self.home},
            file_actions=[(os.POSIX_SPAWN_DUP2, down, 3), (os.POSIX_SPAWN_DUP2, up, 4),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT, 0o600), (os.POSIX_SPAWN_DUP2, 1, 2)],
            setpgroup=0)
        os.close(down)
        os.close(up)
        self.buffer = b""
        self.last = 0
        self.session = None
        self.events = []    # since a page was opened
        self.requests = []  # addresses that were asked for
        self.complaints = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network", "DOM":
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        for _ in range(50):  # its last processes may still write there
            shutil.rmtree(self.home, ignore_errors=True)
            if not os.path.exists(self.home):
                break
            time.sleep(0.1)

    def message(self, end):
        while b"\0" not in self.buffer:
            if not select.select([self.back], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.back, 1 << 16)
            if not data:
                raise EOFError("the browser has ended")
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def note(self, event):
        params, method = event.get("params", {}), event.get("method")
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded" and "willReadFrequently" not in params["entry"]["text"]:  # that is the test
            self.complaints.append(params["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append("a dialog: " + params["message"])
            self.last += 1
            self.send("Page.handleJavaScriptDialog", {"accept": True})
        else:
            self.events.append(event)

    def send(self, method, params):
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]

    def call(self, method, **params):
        self.last += 1
        mine = self.last
        self.send(method, params)
        end = time.monotonic() + self.wait
        while True:
            message = self.message(end)
            if message.get("id") == mine:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def js(self, expression, **more):
        """The value of an expression, or of a promise's result, in the page"""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, **more)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, expression, **more):
        end = time.monotonic() + self.wait
        while not (value := self.js(expression, **more)):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.02)
        return value

    def open(self, path, ready=None):
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        end = time.monotonic() + self.wait
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.note(self.message(end))
        if ready:
            self.until(ready)

    def html(self):
        """As it is now, also where no script may run"""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        return self.call("DOM.getOuterHTML", nodeId=root)["outerHTML"]

    def frame(self):
        """Number of the world in the first frame of the page"""
        tree = self.call("Page.getFrameTree")["frameTree"]
        frame = tree["childFrames"][0]["frame"]["id"]
        return self.call("Page.createIsolatedWorld", frameId=frame)["executionContextId"]

    def frames(self):
        """What has been asked for so far has been painted"""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def where(self, selector):
        box = self.js("(e => { e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            f" return [r.x, r.y, r.width, r.height]; }})(document.querySelector({json.dumps(selector)}))")
        return box

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector, x=None, y=None, times=1):
        """In its middle, or so many pixels from its corner"""
        box = self.where(selector)
        x = box[0] + (box[2] / 2 if x is None else x)
        y = box[1] + (box[3] / 2 if y is None else y)
        for n in range(1, times + 1):
            self.mouse("mousePressed", x, y, button="left", clickCount=n)
            self.mouse("mouseReleased", x, y, button="left", clickCount=n)
        self.frames()

    def drag(self, selector, x0, x1, y):
        box = self.where(selector)
        self.mouse("mousePressed", box[0] + x0, box[1] + y, button="left", clickCount=1)
        for n in range(1, 6):
            self.mouse("mouseMoved", box[0] + x0 + (x1 - x0) * n / 5, box[1] + y, button="left", buttons=1)
        self.mouse("mouseReleased", box[0] + x1, box[1] + y, button="left", clickCount=1)
        self.frames()

    def wheel(self, selector, x, y, by, ctrl=True):
        box = self.where(selector)
        self.mouse("mouseWheel", box[0] + x, box[1] + y, deltaX=0, deltaY=by, modifiers=2 if ctrl else 0)
        self.frames()

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frames()

    def type(self, selector, text):
        self.js(f"(e => {{ e.focus(); e.select(); }})(document.querySelector({json.dumps(selector)}))")
        self.call("Input.insertText", text=text)
        self.frames()

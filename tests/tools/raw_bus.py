#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A D-Bus client that does what libsystemd would not: for tests of flyrecd against hostile clients.

As a program:

    raw_bus.py [--as=UID[:GID[,GROUP...]]] [--bus] SOCKET VERB [ARGUMENT...]

SOCKET is flyrecd's control socket or, with --bus, the socket of a bus daemon (then calls go to
org.flyrec.Recorder1). --as takes on a user, a group and supplementary groups before it connects.
Each verb prints what happened, one line a thing, and ends with 0 unless it could not do its work.
Verbs that hold something do so for SECONDS or, if that is "-", until the end of standard input.

    call INTERFACE MEMBER [TYPES [ARGUMENT...]]
                                 "ok", the answer's size and descriptors, or "error NAME: TEXT"; TYPES of s o b u t
    descriptors MESSAGES [N]     each message has N descriptors that its header does not tell of
    declared N                   a call whose header does tell of N descriptors
    signal N                     a signal to flyrecd alone with N declared descriptors
    pile N                       N descriptors with the bytes of one unfinished message, then hangs up
    linger HOW SECONDS           passes a socket whose close() waits for SECONDS ("-": 60); HOW: call,
                                 signal, greeting, oob (alone, as urgent data), unread (not read by then)
    unread CONNECTIONS CALLS MEMBER [ARGUMENT] SECONDS
                                 calls MEMBER of the manager again and again, reads nothing
    hold CONNECTIONS WHAT SECONDS
                                 WHAT: nothing, greeting (no BEGIN), hello (greeted), part (of a message),
                                 refused (a call, its answer read)
    flood CALLS MEMBER [ARGUMENT]
                                 calls that want no answer, as fast as it goes
    connect SECONDS              connects and hangs up, as fast as it goes

As a module (PYTHONPATH=tests/tools): Client, message(), marshal(), lingering_socket(), become().
"""
import array
import os
import resource
import select
import socket
import struct
import sys
import time

NAME = "org.flyrec.Recorder1"
PATH = "/org/flyrec/Recorder1"
MANAGER = NAME + ".Manager"
SESSION = NAME + ".Session"
CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
NO_REPLY = 1


def pad(data, to):
    return data + b"\0" * (-len(data) % to)


def marshal(types, *values):
    """A body, little endian, of basic types only"""
    data = b""
    for kind, value in zip(types, values):
        if kind in "so":
            text = value.encode() if isinstance(value, str) else value
            data = pad(data, 4) + struct.pack("<I", len(text)) + text + b"\0"
        elif kind in "bu":
            data = pad(data, 4) + struct.pack("<I", int(value))
        elif kind == "t":
            data = pad(data, 8) + struct.pack("<Q", int(value))
        else:
            raise ValueError("no such type here: " + kind)
    return data


def message(serial, interface, member, types="", body=b"", path=PATH, destination=None, kind=CALL,
            flags=0, n_fds=None):
    """A whole message; n_fds: what its header says of descriptors"""
    fields = b""
    for code, form, value in ((1, "o", path), (2, "s", interface), (3, "s", member),
                              (6, "s", destination), (8, "g", types or None), (9, "u", n_fds)):
        if value is None:
            continue
        fields = pad(fields, 8) + bytes([code, 1]) + form.encode() + b"\0"
        if form == "g":
            fields += bytes([len(value)]) + value.encode() + b"\0"
        else:
            fields = pad(fields, 4) + marshal(form, value)
    head = struct.pack("<BBBBIII", ord("l"), kind, flags, 1, len(body), serial, len(fields))
    return pad(head + fields, 8) + body


def become(whom):
    """UID[:GID[,GROUP...]]"""
    uid, _, groups = whom.partition(":")
    groups = [int(g) for g in groups.split(",") if g] or [int(uid)]
    os.setgroups(groups[1:])
    os.setresgid(groups[0], groups[0], groups[0])
    os.setresuid(int(uid), int(uid), int(uid))


def lingering_socket(seconds):
    """A TCP socket whose last close() waits for that long: nobody reads what it has to send"""
    listener = socket.create_server(("127.0.0.1", 0))
    ours = socket.socket()  # create_connection() would load modules that another user may not read
    ours.connect(listener.getsockname())
    other, _ = listener.accept()
    ours.setblocking(False)
    try:
        while True:
            ours.send(b"x" * 65536)
    except BlockingIOError:
        pass
    ours.setblocking(True)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, int(seconds)))
    return ours, (listener, other)  # which are to stay open


class Client:
    """A connection. Before greet() nothing has been sent."""

    def __init__(self, path, bus=False, greet=True, timeout=60):
        self.bus = bus
        self.serial = 0
        self.data = b""
        self.fds = []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        if greet:
            self.greet()

    def greet(self, begin=True):
        uid = b"" if not self.bus else b" " + str(os.getuid()).encode().hex().encode()
        self.socket.sendall(b"\0AUTH EXTERNAL" + uid + b"\r\n" + (b"" if uid else b"DATA\r\n"))
        while b"OK" not in self.data or not self.data.endswith(b"\r\n"):
            self.fill()
        self.data = b""
        self.socket.sendall(b"NEGOTIATE_UNIX_FD\r\n")
        while not self.data.endswith(b"\r\n"):
            self.fill()
        self.data = b""
        if not begin:
            return
        self.socket.sendall(b"BEGIN\r\n")
        if self.bus:
            self.call("org.freedesktop.DBus", "Hello", path="/org/freedesktop/DBus",
                      destination="org.freedesktop.DBus")

    def fill(self):
        data, ancillary, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(4 * 64))
        for level, kind, what in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds = array.array("i")
                fds.frombytes(what[:len(what) // 4 * 4])
                self.fds += fds
        if not data:
            raise EOFError("hung up")
        self.data += data

    def make(self, interface, member, types="", *values, **more):
        self.serial += 1
        more.setdefault("destination", NAME if self.bus else None)
        return message(self.serial, interface, member, types, marshal(types, *values), **more)

    def send(self, data, fds=(), flags=0):
        """All of it; the descriptors go with the first byte"""
        if fds:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
            data = data[self.socket.sendmsg([data], rights, flags):]
        self.socket.sendall(data)

    def receive(self):
        """The next message: kind, fields, body"""
        while len(self.data) < 16:
            self.fill()
        body, _, fields = struct.unpack("<4xIII", self.data[:16])
        begin = 16 + (fields + 7) // 8 * 8
        while len(self.data) < begin + body:
            self.fill()
        whole, self.data = self.data[:begin + body], self.data[begin + body:]
        return whole[1], whole[16:16 + fields], whole[begin:]

    def answer(self):
        while True:
            kind, fields, body = self.receive()
            if kind in (RETURN, ERROR):
                return kind, fields, body

    def call(self, interface, member, types="", *values, **more):
        self.send(self.make(interface, member, types, *values, **more))
        return self.answer()

    def close(self):
        self.socket.close()


def error_of(fields, body):
    at = fields.find(b"\x04\x01s\0")
    size = struct.unpack("<I", fields[at + 4:at + 8])[0]
    text = body[4:4 + struct.unpack("<I", body[:4])[0]] if body else b""
    return f"{fields[at + 8:at + 8 + size].decode()}: {text.decode()}"


def say(*what):
    print(*what, flush=True)


def tell(answer, fds=()):
    kind, fields, body = answer
    if kind == RETURN:
        say("ok", len(body), *([f"{len(fds)} descriptors"] if fds else []))
    else:
        say("error", error_of(fields, body))


def wait(seconds):
    """So long, or until nobody holds our standard input any more"""
    if seconds == "-":
        sys.stdin.read()
    else:
        select.select([], [], [], float(seconds))


def more_files():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Verbs:
    def __init__(self, path, bus):
        self.path, self.bus = path, bus

    def client(self, **more):
        return Client(self.path, self.bus, **more)

    def call(self, interface, member, types="", *values):
        client = self.client()
        tell(client.call(interface, member, types, *values), client.fds)

    def descriptors(self, n, each="16"):
        read, _ = os.pipe()
        client, sent = self.client(), 0
        try:
            for sent in range(int(n)):
                client.send(client.make(MANAGER, "GetSession", "s", "x"), [read] * int(each))
            sent = int(n)
        except OSError as error:
            say("refused after", sent, error.strerror)
            return
        say("sent", sent)

    def declared(self, n):
        client = self.client()
        read, _ = os.pipe()
        client.send(client.make(MANAGER, "GetSession", "s", "x", n_fds=int(n)), [read] * int(n))
        tell(client.answer())

    def signal(self, n):
        client = self.client()
        read, _ = os.pipe()
        client.send(client.make(MANAGER, "Made", kind=SIGNAL, n_fds=int(n)), [read] * int(n))
        tell(client.call(MANAGER, "GetSession", "s", "x"))

    def pile(self, n):
        read, _ = os.pipe()
        client = self.client()
        data = client.make(MANAGER, "GetSession", "s", "a" * 60000)
        client.send(data[:16])
        sent = 0
        try:
            while sent < int(n):
                client.send(data[16 + sent // 16:17 + sent // 16], [read] * 16)
                sent += 16
        except OSError as error:
            say("refused after", sent, error.strerror)
            return
        say("piled up", sent)

    def linger(self, how, seconds):
        passed, keep = lingering_socket(60 if seconds == "-" else seconds)
        client = self.client(greet=how != "greeting")
        data = client.make(MANAGER, "GetSession", "s", "x", n_fds=1,
                           kind=SIGNAL if how == "signal" else CALL)
        try:
            if how == "greeting":
                client.send(b"\0AUTH EXTERNAL\r\n", [passed.fileno()])
            elif how == "oob":
                client.send(data[:1], [passed.fileno()], socket.MSG_OOB)
                client.send(data)
            elif how == "unread":
                # the first is what it is cut off for, the second is not read any more
                client.send(b"x" * 16)
                client.send(data, [passed.fileno()])
            else:
                client.send(data, [passed.fileno()])
            say("sent")
        except OSError as error:
            say("refused", error.strerror)
        passed.close()
        wait(seconds)
        del keep

    def unread(self, connections, calls, member, *argument):
        more_files()
        clients, sent = [self.client() for _ in range(int(connections))], 0
        *argument, seconds = argument
        arguments = ("s", *argument) if argument else ()
        for client in clients:
            client.socket.setblocking(False)
        for _ in range(int(calls)):
            for client in clients:
                try:
                    client.send(client.make(MANAGER, member, *arguments))
                    sent += 1
                except (BlockingIOError, ConnectionError):
                    pass
        say("sent", sent)
        wait(seconds)

    def hold(self, connections, what, seconds):
        more_files()
        clients, held = [], 0
        for _ in range(int(connections)):
            try:
                client = self.client(greet=what not in ("nothing", "greeting"))
                if what == "greeting":
                    client.greet(begin=False)
                elif what == "part":
                    client.send(client.make(MANAGER, "ListSessions")[:20])
                elif what == "refused":
                    client.call(MANAGER, "ListSessions")
                clients.append(client)
            except (EOFError, OSError):
                pass
        # who is refused only later
        time.sleep(0.2)
        for client in clients:
            client.socket.setblocking(False)
            try:
                held += client.data != b"" or client.socket.recv(1, socket.MSG_PEEK) != b""
            except BlockingIOError:
                held += 1
            except OSError:
                pass
        say("connected", held)
        wait(seconds)

    def flood(self, calls, member, argument=None):
        client = self.client()
        arguments = ("s", argument) if argument is not None else ()
        for _ in range(int(calls)):
            client.send(client.make(MANAGER, member, *arguments, flags=NO_REPLY))
        say("sent", calls)

    def connect(self, seconds):
        end, n = time.monotonic() + float(seconds), 0
        while time.monotonic() < end:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(self.path)
                n += 1
        say("connected", n)


def main(arguments):
    bus = False
    while arguments and arguments[0].startswith("--"):
        option = arguments.pop(0)
        if option == "--bus":
            bus = True
        elif option.startswith("--as="):
            become(option[len("--as="):])
        else:
            print(__doc__.strip())
            return option != "--help"
    if len(arguments) < 2 or arguments[1].startswith("_") or not hasattr(Verbs, arguments[1]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    getattr(Verbs(arguments[0], bus), arguments[1])(*arguments[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What the proof programs share: a server of the binary, sockets that hide nothing, frames of HTTP/2, and the table."""

import argparse
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SYNAPSE = 'xmlns="http://ws.apache.org/ns/synapse"'


def arguments(about, **options):
    """`--bin` and `--long`, and whole-number options with their defaults."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--bin", default=os.environ.get("PENSTOCK", f"{ROOT}/target/debug/penstock"))
    parser.add_argument("--long", action="store_true", help="the long form")
    for name, default in options.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


class Table:
    """Rows of what was tried, expected and seen. Only wrong rows are printed one by one when there are many."""

    def __init__(self, title):
        self.title, self.rows, self.lock = title, [], threading.Lock()

    def row(self, group, name, good, expected, seen):
        with self.lock:
            self.rows.append((group, name, bool(good), str(expected), str(seen)))

    def finish(self):
        """Prints the table and ends the program, with status 1 when a row is wrong."""
        groups = {}
        for group, _, good, _, _ in self.rows:
            right, total = groups.get(group, (0, 0))
            groups[group] = (right + good, total + 1)
        print(f"\n{self.title}")
        for group, (right, total) in groups.items():
            print(f"  {'ok   ' if right == total else 'WRONG'}  {group:<34} {right}/{total}")
        shown = [row for row in self.rows if not row[2] or len(self.rows) <= 30]
        for group, name, good, expected, seen in shown:
            print(f"  {'ok   ' if good else 'WRONG'}  {group}: {name}: expected {expected}; {seen}")
        wrong = sum(not good for _, _, good, _, _ in self.rows)
        print(f"  {len(self.rows)} rows, {wrong} wrong")
        sys.stdout.flush()
        os._exit(1 if wrong or not self.rows else 0)


class Server:
    """The binary, serving a folder of artifacts on free ports."""

    def __init__(self, binary, artifacts, toml="", extra=()):
        self.folder = tempfile.mkdtemp(prefix="penstock-proof-")
        self.artifacts = os.path.join(self.folder, "artifacts")
        os.makedirs(self.artifacts)
        for name, text in artifacts.items():
            self.write(name, text)
        config = os.path.join(self.folder, "penstock.toml")
        ports = "listener.http_port = 0\nlistener.https_port = 0\nadmin.port = 0\n"
        with open(config, "w") as out:
            out.write(ports + toml)
        self.log_path = os.path.join(self.folder, "log")
        self.command = [binary, "run", self.artifacts, *extra, "--config", config]
        self.start()

    def start(self):
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(self.command, stderr=log, stdout=log, cwd=self.folder)
        self.port = self.port_after(r"^  HTTP +http://localhost:(\d+)")
        self.admin = self.port_after(r"health +http://localhost:(\d+)")

    def restart_after_kill(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def write(self, name, text):
        path = os.path.join(self.artifacts, name)
        with open(path + "~", "w") as out:
            out.write(text)
        os.rename(path + "~", path)

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def port_after(self, pattern):
        end = time.time() + 30
        while time.time() < end and self.process.poll() is None:
            found = re.search(pattern, self.log(), re.M)
            if found:
                return int(found.group(1))
            time.sleep(0.02)
        raise SystemExit(f"the server does not start:\n{self.log()}")

    def metric(self, name):
        text = get(self.admin, "/metric-service/metrics")[2].decode()
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M))

    def rss_mb(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def is_running(self):
        return self.process.poll() is None

    def stop(self):
        if self.is_running():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


# Below the ports that the kernel gives to clients.
MANAGEMENT_OFFSETS = range(13560, 14560, 10)


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def management_offset():
    """An offset with which the ports of `penstock manage` are free."""
    ports = (9443, 8280, 8243)
    return next(offset for offset in MANAGEMENT_OFFSETS if all(is_free(port + offset) for port in ports))


def connect(port, timeout=10):
    sock = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Broken(Exception):
    """A response that did not arrive whole."""


class Reader:
    """Responses of HTTP/1.1 from a socket, or requests at a backend."""

    def __init__(self, sock):
        self.sock, self.buffer = sock, b""

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise Broken("end of the connection" if self.buffer else "closed without a byte")
        self.buffer += data

    def exactly(self, count):
        while len(self.buffer) < count:
            self.more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def until(self, mark):
        while mark not in self.buffer:
            self.more()
        taken, self.buffer = self.buffer.split(mark, 1)
        return taken

    def head(self):
        first, *lines = self.until(b"\r\n\r\n").split(b"\r\n")
        return first, [tuple(part.strip() for part in line.partition(b":")[::2]) for line in lines]

    def body(self, fields, until_close=False):
        named = {name.lower(): value for name, value in fields}
        if named.get(b"transfer-encoding", b"").lower() == b"chunked":
            body = b""
            while size := int(self.until(b"\r\n").split(b";")[0], 16):
                body += self.exactly(size)
                self.exactly(2)
            while self.until(b"\r\n"):
                pass
            return body
        if b"content-length" in named:
            return self.exactly(int(named[b"content-length"]))
        if not until_close:
            return b""
        while True:
            try:
                self.more()
            except Broken:
                return self.buffer

    def response(self, method="GET"):
        """Status, fields and body of the next final response."""
        while True:
            first, fields = self.head()
            status = int(first.split(b" ")[1])
            if status >= 200:
                break
        bodiless = method == "HEAD" or status in (204, 304)
        return status, fields, b"" if bodiless else self.body(fields, until_close=True)


def get(port, path, fields="", timeout=10):
    with connect(port, timeout) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\n{fields}Connection: close\r\n\r\n".encode())
        return Reader(sock).response()


# HTTP/2, as far as frames go.
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A field that does not enter the table of HPACK; shorter than 127 bytes each."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def block(path, method=b"GET"):
    fields = [(b":method", method), (b":scheme", b"http"), (b":path", path.encode()), (b":authority", b"h")]
    return b"".join(literal(name, value) for name, value in fields)


class Http2:
    """A client of HTTP/2 that sends one request after another."""

    def __init__(self, port, timeout=10, settings=b""):
        self.sock = connect(port, timeout)
        self.reader = Reader(self.sock)
        self.next_stream = 1
        self.goaway = None
        # What may still be sent on the connection, and what a new stream may send (RFC 9113 §6.9).
        self.window, self.stream_window = 65535, 65535
        self.sock.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))

    def read(self):
        head = self.reader.exactly(9)
        length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream, payload = int.from_bytes(head[5:], "big"), self.reader.exactly(length)
        if kind == SETTINGS and not flags & 1:
            for at in range(0, length, 6):
                name, value = struct.unpack(">HI", payload[at : at + 6])
                if name == 4:
                    self.stream_window = value
            self.sock.sendall(frame(SETTINGS, 1))
        if kind == WINDOW and stream == 0:
            self.window += int.from_bytes(payload, "big")
        if kind == PING and not flags & 1:
            self.sock.sendall(frame(PING, 1, 0, payload))
        if kind == DATA and payload:
            grow = struct.pack(">I", len(payload))
            self.sock.sendall(frame(WINDOW, 0, 0, grow) + frame(WINDOW, 0, stream, grow))
        if kind == GOAWAY:
            self.goaway = (int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:8], "big"))
        return kind, flags, stream, payload

    def request(self, path, method=b"GET", body=b""):
        """Whether the status is 200, and the body."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.sock.sendall(frame(HEADERS, 4 if body else 5, stream, block(path, method)))
        if body and stream == 1:
            # The server's SETTINGS say how much a stream may send.
            while self.read()[0] != SETTINGS:
                pass
        left, sent = self.stream_window, 0
        while sent < len(body):
            size = min(16384, left, self.window, len(body) - sent)
            if size <= 0:
                kind, _, of, payload = self.read()
                left += int.from_bytes(payload, "big") if kind == WINDOW and of == stream else 0
                continue
            self.sock.sendall(frame(DATA, sent + size == len(body), stream, body[sent : sent + size]))
            left, self.window, sent = left - size, self.window - size, sent + size
        good, received = False, b""
        while True:
            kind, flags, of, payload = self.read()
            if self.goaway and stream > self.goaway[0]:
                raise Broken("not accepted any more")
            if of != stream:
                continue
            if kind == HEADERS and not received:
                # `:status: 200` is entry 8 of the static table.
                good = payload[:1] == b"\x88"
            elif kind == DATA:
                received += payload
            elif kind == RESET:
                raise Broken(f"the stream was reset: {payload.hex()}")
            if kind in (HEADERS, DATA) and flags & 1:
                return good, received

    def close(self):
        self.sock.close()


def serve_backend(handle):
    """A backend: `handle(socket)` for every connection, each on its thread. Returns its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)

    def run(sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            handle(sock)
        except (OSError, Broken, ValueError):
            pass
        sock.close()

    def accept():
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=run, args=(sock,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def echo(sock):
    """Answers every request with its body, or `ok`."""
    reader = Reader(sock)
    while True:
        _, fields = reader.head()
        body = reader.body(fields) or b"ok"
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def together(*works):
    """Runs works on threads and waits for all."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

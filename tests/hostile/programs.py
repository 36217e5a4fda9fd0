"""The programs that are attacked: started in a process group of their own, with a mark in their environment."""

import contextlib
import json
import os
import queue
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from measure import Stopwatch, alive

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CLIENTS = {
    "rust": [str(ROOT / "target/release/hostile-victim")],
    "python": [str(ROOT / "target/venv/bin/python"), str(HERE / "victims/victim.py")],
    "node": ["node", str(HERE / "victims/victim.mjs")],
    "swift": [str(HERE / "victims/swift/run")],
}
"""Those that keep and print nothing of what they get."""
MARK = "TRICORN_HOSTILE"
START = 30.0
END = 5.0
"""Seconds that a victim has to start and to end."""
REVISION = "2025-11-25"
ALL = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}}


def usual(lang: str) -> dict[str, list[str]]:
    """The programs of a language as they are in this repository."""
    return {
        "server": [str(ROOT / f"examples/everything/{lang}/run")],
        "client": CLIENTS.get(lang, []),
        "peer": [str(ROOT / "examples/everything/rust/run")],
    }


class Gone(Exception):
    """The victim did not start, or has ended."""


class Program:
    """A process with what it writes read at once, so that no pipe is ever full."""

    def __init__(self, words: list[str], env: dict[str, str], mark: str, pipes: bool) -> None:
        self.errors: list[bytes] = []
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
            stdout=subprocess.PIPE if pipes else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **env, MARK: mark},
            start_new_session=True,
        )
        self.pid = self.process.pid
        self.lock = threading.Lock()

    def follow(self, stream: Any, hear: Any) -> None:
        def read() -> None:
            with contextlib.suppress(ValueError, OSError):
                for line in stream:
                    hear(line)

        threading.Thread(target=read, daemon=True).start()

    def hear_error(self, line: bytes) -> None:
        self.errors.append(line[:400])
        del self.errors[:-20]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None and alive(self.pid)

    def write(self, data: bytes, limit: float = 10.0) -> bool:
        """Writes to standard input; a victim that does not read is no reason to wait for ever."""
        assert self.process.stdin
        handle = self.process.stdin.fileno()
        end = Stopwatch(limit)
        os.set_blocking(handle, False)
        view = memoryview(data)
        with self.lock:
            while view:
                if not select.select([], [handle], [], end.left)[1]:
                    return False
                try:
                    view = view[os.write(handle, view[: 1 << 20]) :]
                except BlockingIOError:
                    continue
                except OSError:
                    return False
        return True

    def stop(self, ask: bool) -> bool:
        """Ends it; true if it went by itself within its time when it was asked to."""
        went = True
        if self.process.poll() is None:
            with contextlib.suppress(OSError):
                if self.process.stdin:
                    self.process.stdin.close()
                elif ask:
                    self.process.send_signal(signal.SIGTERM)
            if ask:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(END)
            went = self.process.poll() is not None
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        return went


class Good:
    """The good client of an HTTP server, a process of its own."""

    def __init__(self, host: str, port: int, tls: bool, token: str, mark: str) -> None:
        words = [sys.executable, "-S", "-E", str(HERE / "good.py"), host, str(port), "tls" if tls else "clear"]
        words += [token] if token else []
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, env={**os.environ, MARK: mark}, start_new_session=True
        )

    def byte(self) -> None:
        assert self.process.stdin
        self.process.stdin.write(b".")
        self.process.stdin.flush()

    def start(self) -> None:
        self.byte()

    def end(self) -> dict[str, Any]:
        self.byte()
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class HttpServer(Program):
    """A server over HTTP."""

    def __init__(self, words: list[str], env: dict[str, str], mark: str) -> None:
        super().__init__([*words, "--http", "127.0.0.1:0"], env, mark, False)
        assert self.process.stderr
        ready: queue.Queue[str] = queue.Queue()

        def hear(line: bytes) -> None:
            self.hear_error(line)
            if line.startswith(b"ready "):
                ready.put(line.split()[1].decode())

        self.follow(self.process.stderr, hear)
        try:
            url = ready.get(timeout=START)
        except queue.Empty:
            self.stop(False)
            raise Gone(f"the server did not listen: {b''.join(self.errors)[-400:]!r}") from None
        match = re.match(r"http(s?)://([^/:]+):(\d+)", url)
        assert match
        self.tls, self.host, self.port = bool(match[1]), match[2], int(match[3])
        self.token = env.get("HOSTILE_TOKEN", "")
        self.good = Good(self.host, self.port, self.tls, self.token, mark)

    def stop(self, ask: bool) -> bool:
        if hasattr(self, "good"):
            self.good.stop()
        return super().stop(ask)


class StdioServer(Program):
    """A server on standard streams, with a session of a handshake revision open."""

    good = None

    def __init__(self, words: list[str], env: dict[str, str], mark: str) -> None:
        super().__init__([*words, "--stdio"], env, mark, True)
        self.waiting: dict[Any, queue.Queue[dict[str, Any]]] = {}
        self.asked: queue.Queue[dict[str, Any]] = queue.Queue()
        self.lines = 0
        self.number = 0
        self.follow(self.process.stderr, self.hear_error)
        self.follow(self.process.stdout, self.hear)
        revision = env.get("HOSTILE_REVISION", REVISION)
        params = {"protocolVersion": revision, "capabilities": ALL, "clientInfo": {"name": "h", "version": "1"}}
        if self.ask("initialize", params, START) is None:
            self.stop(False)
            raise Gone(f"the server did not start: {b''.join(self.errors)[-400:]!r}")
        self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def hear(self, line: bytes) -> None:
        self.lines += 1
        try:
            message = json.loads(line)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        if "method" in message and "id" in message:
            if self.asked.qsize() < 1000:
                self.asked.put(message)
        elif isinstance(message.get("id"), (str, int)) and (who := self.waiting.pop(message["id"], None)):
            who.put(message)

    def expect(self, number: Any) -> queue.Queue[dict[str, Any]]:
        self.waiting[number] = answers = queue.Queue()
        return answers

    def ask(self, method: str, params: dict[str, Any], limit: float) -> dict[str, Any] | None:
        self.number += 1
        number = f"ask-{self.number}"
        answers = self.expect(number)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        if not self.write(json.dumps(message).encode() + b"\n", limit):
            return None
        try:
            return answers.get(timeout=limit)
        except queue.Empty:
            return None

    def call(self, limit: float) -> bool:
        """A good call."""
        answer = self.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}}, limit)
        return answer is not None and "result" in answer


class Client(Program):
    """A program whose clients do what lines say; its client 2 has a good server."""

    def __init__(self, words: list[str], env: dict[str, str], mark: str, url: str) -> None:
        super().__init__(words, env, mark, True)
        self.waiting: dict[int, queue.Queue[dict[str, Any]]] = {}
        self.number = 0
        self.stray = 0
        """Answers that nobody waits for."""
        self.numbers = threading.Lock()
        self.url = url
        self.follow(self.process.stderr, self.hear_error)
        self.follow(self.process.stdout, self.hear)
        answer = self.do(START, do="connect", client=2, target={"url": url}, options={})
        if answer is None or "result" not in answer:
            self.stop(False)
            raise Gone(f"the client did not connect: {answer} {b''.join(self.errors)[-400:]!r}")
        self.good = Caller(self)

    def hear(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if "progress" in message:
            return
        if who := self.waiting.pop(message.get("id"), None):
            who.put(message)
        else:
            self.stray += 1

    def start(self, **command: Any) -> tuple[int, queue.Queue[dict[str, Any]]]:
        """Sends a command, whose answer comes later."""
        with self.numbers:
            self.number += 1
            number = self.number
        answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.waiting[number] = answers
        self.write(json.dumps({"id": number, **command}).encode() + b"\n")
        return number, answers

    def do(self, limit: float, **command: Any) -> dict[str, Any] | None:
        answers = self.start(**command)[1]
        try:
            return answers.get(timeout=limit)
        except queue.Empty:
            return None

    def call(self, limit: float) -> bool:
        """A good call."""
        answer = self.do(limit, do="call_tool", client=2, name="echo", arguments={"text": "x"})
        return answer is not None and "result" in answer


class Caller:
    """The good client of a client: calls a good server every 50 ms in the same process."""

    PAUSE = 0.05
    LIMIT = 10.0

    def __init__(self, client: Client) -> None:
        self.client = client
        self.over = threading.Event()
        self.said: dict[str, Any] = {}
        self.thread: threading.Thread | None = None

    def run(self) -> None:
        count, wait, failed = 0, 0.0, 0
        while not self.over.is_set():
            start = time.monotonic()
            ok = self.client.call(self.LIMIT)
            took = time.monotonic() - start
            count, wait, failed = count + 1, max(wait, took), failed + (not ok)
            self.over.wait(max(0.0, self.PAUSE - took))
        self.said = {"count": count, "wait": wait, "failed": failed}

    def start(self) -> None:
        self.over.clear()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def end(self) -> dict[str, Any]:
        assert self.thread
        self.over.set()
        self.thread.join()
        return self.said

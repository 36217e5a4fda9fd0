"""The Windows programs, run by wine: a server over stdio and HTTP, and a client that starts servers.

`smoke.py FOLDER WINE`: the folder of `example-everything.exe` and `case-runner.exe`, and the program that starts them,
whose environment says which prefix it uses. One line for each test, and a last one `N passed, M failed, K skipped`.
"""

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

LIMIT = 60.0
"""Seconds for an answer: wine starts a process in a tenth of one, on a machine that does nothing else."""
END = 15.0
"""Seconds for processes to be gone."""
SLOW = 120_000
"""Milliseconds of a call that nobody waits for."""
REVISION = "2025-11-25"

Json = dict[str, Any]


class UnexpectedError(Exception):
    """Something is not as it should be."""


def check(holds: bool, what: object) -> None:
    if not holds:
        raise UnexpectedError(str(what))


class Setting:
    """The programs, under names of their own in a folder of their own, by which their processes are known."""

    def __init__(self, programs: Path, wine: str) -> None:
        self.wine = wine
        self.folder = Path(tempfile.mkdtemp(prefix="windows-smoke-"))
        for name, program in [("everything", "example-everything"), ("sleeper", "example-everything")]:
            (self.folder / f"{name}.exe").symlink_to(programs / f"{program}.exe")
        # A program finds its neighbours without PATH, too.
        (self.folder / "client").mkdir()
        (self.folder / "client/runner.exe").symlink_to(programs / "case-runner.exe")
        self.script("wrapped", '@"%~dp0everything.exe" %*')
        # npm puts a script for other systems beside each of its programs.
        (self.folder / "wrapped").write_text("#!/bin/sh\nexit 1\n")
        self.script(
            "parent",
            '@start /b "" "%~dp0sleeper.exe" --http 127.0.0.1:0 <nul >nul 2>nul',
            '@"%~dp0everything.exe" %*',
        )

    def script(self, name: str, *lines: str) -> None:
        (self.folder / f"{name}.cmd").write_bytes("".join(f"{line}\r\n" for line in lines).encode())

    def windows(self, name: str) -> str:
        """A path as Windows programs have it."""
        return "Z:" + str(self.folder / name).replace("/", "\\")

    def start(self, name: str, *args: str) -> "Program":
        return Program([self.wine, str(self.folder / name), *args], {"WINEPATH": self.windows("")})

    def processes(self, *names: str) -> dict[int, str]:
        """The command lines of the programs that run; of all of this folder where no name is given."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if self.folder.name in line and (not names or any(f"{name}.exe" in line for name in names)):
                    found[int(entry.name)] = line
        return found

    def wait(self, there: bool, *names: str) -> None:
        """Until some such process is there, or none."""
        end = time.monotonic() + (LIMIT if there else END)
        while bool(found := self.processes(*names)) is not there:
            if time.monotonic() > end:
                raise UnexpectedError(
                    f"still there: {list(found.values())}" if found else f"none of {names} has started"
                )
            time.sleep(0.02)

    def gone(self, *names: str) -> None:
        self.wait(False, *names)

    def target(self, command: str) -> Json:
        return {"command": command, "args": ["--stdio"]}

    def remove(self) -> None:
        """Ends what a test has left behind, too."""
        for number in self.processes():
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


class Program:
    """A Windows program with pipes, whose lines are read at once."""

    def __init__(self, words: list[str], env: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **env})
        self.said: queue.Queue[bytes] = queue.Queue()
        self.errors: queue.Queue[bytes] = queue.Queue()
        self.last: list[bytes] = []
        """Lines of standard error that nobody else has taken."""
        for stream, lines in [(self.process.stdout, self.said), (self.process.stderr, self.errors)]:
            threading.Thread(target=self.read, args=(stream, lines), daemon=True).start()

    def read(self, stream: IO[bytes], lines: "queue.Queue[bytes]") -> None:
        with contextlib.suppress(ValueError, OSError):
            for line in stream:
                lines.put(line)
        lines.put(b"")

    def line(self, lines: "queue.Queue[bytes]", limit: float = LIMIT) -> bytes:
        """The next line; empty at the end."""
        try:
            return lines.get(timeout=limit)
        except queue.Empty:
            raise UnexpectedError(f"no line within {limit:.0f} s; standard error: {self.rest()!r}") from None

    def rest(self) -> bytes:
        with contextlib.suppress(queue.Empty):
            while True:
                self.last.append(self.errors.get_nowait())
        return b"".join(self.last)[-500:]

    def write(self, message: Json, end: bytes = b"\n") -> None:
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(message, ensure_ascii=False).encode() + end)
            self.process.stdin.flush()
        except OSError as error:
            raise UnexpectedError(f"cannot write: {error}; standard error: {self.rest()!r}") from None

    def message(self) -> Json:
        """The next line of standard output, which has to be a JSON object, without a carriage return."""
        line = self.line(self.said)
        if not line.endswith(b"}\n"):
            raise UnexpectedError(f"no message: {line!r}; standard error: {self.rest()!r}")
        found: Json = json.loads(line)
        return found

    def end(self, limit: float = END) -> int:
        """Closes standard input; the exit status."""
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise UnexpectedError(f"it does not end; standard error: {self.rest()!r}") from None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Peer:
    """A client of a server over stdio, as simple as can be."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.number = 0

    def ask(self, method: str, params: Json, end: bytes = b"\n") -> Json:
        self.number += 1
        self.program.write({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}, end)
        while True:
            message = self.program.message()
            if message.get("id") == self.number and "method" not in message:
                return message

    def initialize(self) -> Json:
        answer = self.ask("initialize", INITIALIZE)
        self.program.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer


INITIALIZE = {
    "protocolVersion": REVISION,
    "capabilities": {},
    "clientInfo": {"name": "smoke", "version": "1"},
}


class Runner:
    """The case runner, whose clients do what lines say."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.number = 0
        self.answers: dict[int, Json] = {}

    def start(self, do: str, **members: object) -> int:
        self.number += 1
        self.program.write({"id": self.number, "do": do, "client": 1, **members})
        return self.number

    def wait(self, number: int) -> Json:
        while number not in self.answers:
            message = self.program.message()
            if "progress" not in message:
                self.answers[message["id"]] = message
        return self.answers.pop(number)

    def connect(self, target: Json) -> None:
        self.do("connect", target=target, options={})

    def do(self, do: str, **members: object) -> Any:
        """The result."""
        answer = self.wait(self.start(do, **members))
        check("result" in answer, f"{do}: {answer}")
        return answer["result"]

    def fail(self, do: str, **members: object) -> Any:
        """The error."""
        answer = self.wait(self.start(do, **members))
        check("error" in answer, f"{do} gives no error: {answer}")
        return answer["error"]

    def echo(self, text: str) -> None:
        answer = self.do("call_tool", name="echo", arguments={"text": text})
        check(answer["text"] == text, answer)

    def slow(self) -> Any:
        return self.do("call_tool", name="test_metrics")["structured"]["slow"]


@contextlib.contextmanager
def runner(setting: Setting) -> Iterator[Runner]:
    with setting.start("client/runner.exe") as program:
        yield Runner(program)


@contextlib.contextmanager
def http_server(setting: Setting) -> Iterator[str]:
    with setting.start("everything.exe", "--http", "127.0.0.1:0") as program:
        while not (line := program.line(program.errors)).startswith(b"ready "):
            check(line != b"", "the server ends before it is ready")
            program.last.append(line)
        yield line.split()[1].decode()


def answered(setting: Setting) -> None:
    """A server over stdio answers, and ends at the end of its input."""
    with setting.start("everything.exe", "--stdio") as program:
        peer = Peer(program)
        result = peer.initialize()["result"]
        check(result["serverInfo"]["name"] == "everything", result)
        names = [tool["name"] for tool in peer.ask("tools/list", {})["result"]["tools"]]
        check("echo" in names and "slow" in names, names)
        for text in ["hello", "gr\u00fc\u00dfe \u20ac \U0001f600", "x" * 1_000_000]:
            answer = peer.ask("tools/call", {"name": "echo", "arguments": {"text": text}})
            check(answer["result"]["content"] == [{"type": "text", "text": text}], str(answer)[:300])
        code = peer.ask("unknown/method", {})["error"]["code"]
        check(code == -32601, code)
        status = program.end()
        check(status == 0, f"exit status {status}")
        check(program.line(program.said) == b"", "something more on standard output")
    setting.gone()


def carriage_returns(setting: Setting) -> None:
    """A server over stdio takes lines that end as a Windows program ends them."""
    with setting.start("everything.exe", "--stdio") as program:
        peer = Peer(program)
        peer.initialize()
        check("result" in peer.ask("ping", {}, b"\r\n"), "no result")
        check(program.end() == 0, "exit status")


def printed(setting: Setting) -> None:
    """A tool that prints does not write into the protocol."""
    with setting.start("everything.exe", "--stdio") as program:
        peer = Peer(program)
        peer.initialize()
        answer = peer.ask("tools/call", {"name": "print", "arguments": {"text": "printed by a tool"}})
        check(answer["result"]["content"][0]["text"] == "printed", answer)
        while b"printed by a tool" not in (line := program.line(program.errors)):
            check(line != b"", "it is not on standard error")
        check(program.end() == 0, "exit status")


def post(url: str, message: Json, headers: dict[str, str]) -> tuple[Json, dict[str, str]]:
    """The answer to a message over HTTP, be it a body or an event, and the headers."""
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(url, json.dumps(message).encode(), {**usual, **headers})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=LIMIT) as response:
        found = {name.lower(): value for name, value in response.headers.items()}
        body = response.read().decode()
    if found.get("content-type", "").startswith("text/event-stream"):
        events = [line[5:].strip() for line in body.splitlines() if line.startswith("data:")]
        body = next((event for event in events if event and "result" in json.loads(event)), "")
    return (json.loads(body) if body else {}), found


def over_http(setting: Setting) -> None:
    """A server over HTTP answers a program of another system, and refuses another host's name."""
    with http_server(setting) as url:
        answer, headers = post(url, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}, {})
        check(answer["result"]["serverInfo"]["name"] == "everything", answer)
        session = {"Mcp-Session-Id": headers["mcp-session-id"], "MCP-Protocol-Version": REVISION}
        post(url, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
        call = {"name": "add", "arguments": {"a": 1, "b": 2}}
        answer, _ = post(url, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}, session)
        check(answer["result"]["structuredContent"] == {"result": 3}, answer)
        try:
            post(url, {"jsonrpc": "2.0", "id": 3, "method": "ping"}, {**session, "Host": "example.com"})
            raise UnexpectedError("another host is let in")
        except urllib.error.HTTPError as error:
            check(error.code in (403, 421), error.code)
    setting.gone()


def client_over_http(setting: Setting) -> None:
    """A client calls over HTTP, has a call that takes too long, and closes."""
    with http_server(setting) as url, runner(setting) as run:
        run.connect({"url": url})
        run.echo("over HTTP")
        error = run.fail("call_tool", name="slow", arguments={"ms": SLOW}, timeout=0.5)
        check(error["kind"] == "timeout", error)
        run.echo("again")
        run.do("close")
        check(run.program.end() == 0, "exit status")
    setting.gone()


def client_over_stdio(setting: Setting) -> None:
    """A client starts a server, calls it, gives up a call by its time and one by hand, and closes."""
    with runner(setting) as run:
        run.connect(setting.target(setting.windows("everything.exe")))
        check("echo" in [tool["name"] for tool in run.do("list_tools")], "no such tool")
        for text in ["hello", "gr\u00fc\u00dfe", "x" * 1_000_000]:
            run.echo(text)
        error = run.fail("call_tool", name="slow", arguments={"ms": SLOW}, timeout=0.5)
        check(error["kind"] == "timeout", error)
        call = run.start("call_tool", name="slow", arguments={"ms": SLOW})
        end = time.monotonic() + LIMIT
        while run.slow()["started"] < 2:
            check(time.monotonic() < end, "the call does not arrive")
        run.do("cancel", call=call)
        check(run.wait(call)["error"]["kind"] == "cancelled_here", "the call was not given up")
        while (slow := run.slow())["running"] > 0:
            check(time.monotonic() < end, slow)
        check(slow["cancelled"] == 2, slow)
        run.do("close")
        setting.gone("everything")
        check(run.program.end() == 0, "exit status")
    setting.gone()


def by_name(setting: Setting) -> None:
    """A command without its ending is found in the folders of PATH."""
    for name in ["everything", "wrapped"]:
        with runner(setting) as run:
            run.connect(setting.target(name))
            run.echo(name)
            run.do("close")
            setting.gone("everything")
    setting.gone()


def own_environment(setting: Setting) -> None:
    """A command is found by the PATH that it is given, in whatever case, and needs nothing else of the environment."""
    with runner(setting) as run:
        folder = setting.folder / "apart"
        folder.mkdir()
        (folder / "apart.exe").symlink_to((setting.folder / "everything.exe").readlink())
        error = run.fail("connect", target=setting.target("apart"), options={})
        check("apart" in error["message"], error)
        target = {**setting.target("apart"), "env": {"Path": setting.windows("apart")}}
        run.do("connect", target=target, options={"inherit_env": False})
        run.echo("apart")
        run.do("close")
        setting.gone("apart")
    setting.gone()


def by_script(setting: Setting) -> None:
    """A command that is a batch file passes its words on, with blanks in them."""
    with runner(setting) as run:
        folder = setting.folder / "with blanks"
        folder.mkdir(exist_ok=True)
        (folder / "everything.exe").symlink_to((setting.folder / "everything.exe").readlink())
        shutil.copy(setting.folder / "wrapped.cmd", folder / "wrapped.cmd")
        for path in ["wrapped.cmd", "with blanks\\wrapped.cmd", "with blanks\\everything.exe"]:
            run.connect(setting.target(setting.windows(path)))
            run.echo(path)
            run.do("close")
            setting.gone("everything")
    setting.gone()


def not_there(setting: Setting) -> None:
    """A command that is not there is an error that names it."""
    with runner(setting) as run:
        error = run.fail("connect", target=setting.target("no-such-server"), options={})
        check("no-such-server" in error["message"] and "PATH" in error["message"], error)


def grandchildren(setting: Setting) -> None:
    """A process that the server has started is gone when the client is closed."""
    with runner(setting) as run:
        run.connect(setting.target(setting.windows("parent.cmd")))
        setting.wait(True, "sleeper")
        run.echo("with a sleeper")
        run.do("close")
        setting.gone("everything", "sleeper")
    setting.gone()


def client_ends(setting: Setting) -> None:
    """A client that ends takes its servers with it."""
    with runner(setting) as run:
        run.connect(setting.target(setting.windows("parent.cmd")))
        setting.wait(True, "sleeper")
        check(run.program.end() == 0, "exit status")
    setting.gone()


def client_killed(setting: Setting) -> None:
    """A client that is killed takes its servers with it, and theirs."""
    with runner(setting) as run:
        run.connect(setting.target(setting.windows("parent.cmd")))
        setting.wait(True, "sleeper")
        run.program.process.kill()
        setting.gone()


TESTS: list[Callable[[Setting], None]] = [
    answered,
    carriage_returns,
    printed,
    over_http,
    client_over_stdio,
    client_over_http,
    by_name,
    own_environment,
    by_script,
    not_there,
    grandchildren,
    client_ends,
    client_killed,
]


def one(test: Callable[[Setting], None], programs: Path, wine: str) -> bool:
    assert test.__doc__
    name = f"{test.__name__}: {test.__doc__.strip()}"
    setting = Setting(programs, wine)
    began = time.monotonic()
    try:
        test(setting)
    except UnexpectedError as error:
        print(f"not ok {name} - {error}", flush=True)
        return False
    except (AssertionError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        traceback.print_exc()
        print(f"not ok {name} - {type(error).__name__}: {error}", flush=True)
        return False
    finally:
        setting.remove()
    print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
    return True


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    programs, wine = Path(sys.argv[1]).resolve(), sys.argv[2]
    chosen = [test for test in TESTS if not sys.argv[3:] or test.__name__ in sys.argv[3:]]
    passed = sum(one(test, programs, wine) for test in chosen)
    print(f"{passed} passed, {len(chosen) - passed} failed, 0 skipped", flush=True)
    return int(passed < len(chosen))


if __name__ == "__main__":
    sys.exit(main())

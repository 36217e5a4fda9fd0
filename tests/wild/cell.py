"""One cell: a client, a server between which every byte is written down, and what is left when both have ended.

cell.py PLAN, a JSON object:

- `cell`: the name, which every process that it starts has in its environment
- `client`: the command line of the client, which gets the plan of drivers/README as its last argument
- `server`: the command line of the server
- `transport`: `stdio` or `http`; over HTTP the server is started here, on `--http 127.0.0.1:0` or on the port `{port}`
- `ready`, `url`: for HTTP servers of others, the text of their output that says that they listen, and where
- `touch`: a file that is changed while streams are open, at which the server reloads itself
- `joined`: bytes that the server writes to standard output within some milliseconds arrive in one piece
- `interop`: whether the client is one of tests/interop/ours, which take steps
- `limit`: seconds
- `log`: where both sides are written down
- everything else is for the client

A client asks for things by lines of its own: `{"ask": "restart"}` ends the HTTP server and starts it again,
`{"ask": "kill"}` kills the server on standard streams; both are answered by a line.

Prints one line for each check, `{"check", "ok", "note"}`, and the last `{"revision"}`.
"""

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MARK = "TRICORN_WILD_CELL"
LEFT = 20.0
"""Seconds that processes have to end after their client."""
ANSWERS = {"name": "Ada", "username": "ada", "email": "ada@example.com", "random": "ada", "projectName": "wild"}
"""The user's answers: all that the forms of the list ask for. The model says `heard <the question>`."""
START = 60.0
STOP = 20.0
"""Seconds for the end of a server; calls that run have ten of them."""
LATE = f"the server did not end in {STOP:.0f} s"


def say(check: str, ok: bool | None, note: str = "") -> None:
    print(json.dumps({"check": check, "ok": ok, "note": note[:600]}, ensure_ascii=False), flush=True)


class Log:
    """Both sides of a conversation, each piece with the time and its direction."""

    def __init__(self, path: str) -> None:
        self.file = Path(path).open("ab")  # noqa: SIM115
        self.start = time.monotonic()

    def add(self, way: str, piece: bytes) -> None:
        head = f"\n[{time.monotonic() - self.start:8.3f}] {way} "
        self.file.write(head.encode() + piece[:100_000])
        self.file.flush()


class Relay:
    """A TCP port before the server that writes down what passes. It takes part in nothing."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.to: tuple[str, int] = ("", 0)
        self.open: set[asyncio.StreamWriter] = set()
        self.count = 0

    async def start(self) -> int:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return server.sockets[0].getsockname()[1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count += 1
        number = self.count
        try:
            there, away = await asyncio.open_connection(*self.to)
        except OSError as error:
            self.log.add(f"{number} relay:", str(error).encode())
            writer.close()
            return
        both = {writer, away}
        self.open |= both
        ways = [self.copy(reader, away, f"{number} client:"), self.copy(there, writer, f"{number} server:")]
        await asyncio.gather(*ways)
        for end in both:
            end.close()
        self.open -= both

    async def copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, way: str) -> None:
        with contextlib.suppress(OSError):
            while piece := await source.read(65536):
                self.log.add(way, piece)
                target.write(piece)
                await target.drain()
        with contextlib.suppress(OSError, RuntimeError):
            if target.can_write_eof():
                target.write_eof()


def write(plan: dict[str, Any], text: str) -> None:
    """The file that a server watches."""
    Path(plan["touch"]).write_text(text)


class Served:
    """The server's process over HTTP."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.port = 0
        self.process: Any = None
        self.reading: Any = None
        self.again = asyncio.Event()
        """Set when it listens once more."""

    async def start(self) -> str:
        words = list(self.plan["server"])
        theirs = "ready" in self.plan
        if theirs:
            if not self.port:
                with socket.create_server(("127.0.0.1", 0)) as free:
                    self.port = free.getsockname()[1]
            words = [word.replace("{port}", str(self.port)) for word in words]
        else:
            words += ["--http", f"127.0.0.1:{self.port}"]
        env = {**os.environ, "PORT": str(self.port), **self.plan.get("server_env", {})}
        env = {name: value.replace("{port}", str(self.port)) for name, value in env.items()}
        pipe, out = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
        null = asyncio.subprocess.DEVNULL
        self.process = await asyncio.create_subprocess_exec(
            *words, stdin=null, stdout=pipe, stderr=out, env=env, limit=1 << 22, start_new_session=True
        )
        said = b""
        async with asyncio.timeout(START):
            while line := await self.process.stdout.readline():
                said += line
                if theirs and re.search(self.plan["ready"].encode(), line):
                    url = self.plan["url"].replace("{port}", str(self.port))
                    break
                if not theirs and line.startswith(b"ready "):
                    url = line.split()[1].decode()
                    break
            else:
                raise RuntimeError(f"the server ended before it listened: {said.decode(errors='replace')[-600:]}")
        self.reading = asyncio.create_task(self.read())
        host = re.match(r"http://([^/:]+):(\d+)", url)
        assert host
        self.port = int(host[2])
        return url

    async def read(self) -> None:
        output = self.process.stdout
        while not output.at_eof():
            # A line that is too long says nothing of that.
            with contextlib.suppress(ValueError):
                if re.search(self.plan.get("ready", "^ready ").encode(), await output.readline()):
                    self.again.set()

    async def reload(self) -> bool:
        """Changes the file that it watches, and waits until it listens again."""
        self.again.clear()
        write(self.plan, "changed = True\n")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP):
                return await self.again.wait()
        return False

    async def stop(self) -> int | None:
        if self.process is None or self.process.returncode is not None:
            return self.process and self.process.returncode
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP):
                return await self.process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            return None


def marked(cell: str) -> list[int]:
    """The processes that this cell has started, without this one."""
    wanted = f"{MARK}={cell}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def left_over(cell: str) -> list[str]:
    """Ends the processes that live on after the time that they had; returns their command lines."""
    end = time.monotonic() + LEFT
    for pid in marked(cell):
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(pid)
            select.select([handle], [], [], max(0.0, end - time.monotonic()))
            os.close(handle)
    names = []
    for pid in marked(cell):
        with contextlib.suppress(OSError):
            names.append((Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:120])
            os.kill(pid, signal.SIGKILL)
    return names


def revision(log: str) -> str | None:
    """The revision of the last conversation: what a handshake came to, or what the requests name."""
    text = Path(log).read_text(errors="replace") if Path(log).exists() else ""
    pieces = re.split(r"\n\[ *\d+\.\d+\] (?:\d+ )?(client|server|relay): ", text)
    date = r'\\?"\s*:\s*\\?"(\d{4}-\d\d-\d\d)'
    named = r"(?i:mcp-protocol-version: )(\d{4}-\d\d-\d\d)|io\.modelcontextprotocol/protocolVersion" + date
    last = None
    for side, piece in zip(pieces[1::2], pieces[2::2]):
        if side == "server":
            last = (re.findall('"protocolVersion' + date, piece) or [last])[-1]
        elif "server/discover" not in piece:
            # Of a client that asks which revisions there are, nobody knows yet which it takes.
            last = ([a or b for a, b in re.findall(named, piece)] or [last])[-1]
    return last


def served_by(log: str) -> int:
    """The process of the server on standard streams."""
    return int(Path(log + ".pid").read_text())


def forget(log: str) -> None:
    Path(log + ".pid").unlink(missing_ok=True)


def last_words(path: str) -> list[str]:
    return Path(path).read_text(errors="replace").strip().splitlines()[-3:]


def steps_of(plan: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [{"do": "tools"}]
    for call in plan["calls"]:
        step = {"do": "call", "name": call["name"], "arguments": call.get("arguments", {})}
        steps.append({**step, "progress": True} if call.get("progress") else step)
        if call.get("many"):
            steps += [{**step, "do": "many"}, {**step, "do": "cancel"}]
    steps += [{"do": what, "first": True} for what in ("resources", "prompts") if plan.get(what)]
    good = [call for call in plan["calls"] if not call.get("error")]
    last = "restart" if plan["transport"] == "http" else "killed"
    if good and last not in plan["without"]:
        # What is called often has no effect that lasts.
        steady = good[0] if last == "restart" else next((call for call in good if call.get("many")), good[0])
        steps.append({"do": last, "name": steady["name"], "arguments": steady.get("arguments", {})})
    return steps


NAMES = {"many": "50 at once", "cancel": "cancel", "restart": "restart", "killed": "killed"}
"""The checks of these steps."""


def shown(result: dict[str, Any]) -> str:
    return json.dumps(result, ensure_ascii=False)


def judge(plan: dict[str, Any], said: dict[str, Any]) -> None:
    """The report of one of tests/interop/ours, as checks."""
    say("connect", True)
    for step, got in zip(steps_of(plan), said["steps"]):
        result = got.get("result") or {}
        if "name" in step:
            call = next(
                c for c in plan["calls"] if c["name"] == step["name"] and c.get("arguments", {}) == step["arguments"]
            )
        if step["do"] in NAMES:
            all_of_them = result.get("all", [result])
            wrong = [one for one in all_of_them if one.get("error") or call.get("has", "") not in shown(one)]
            ok = "error" not in got and not wrong
            say(NAMES[step["do"]], ok, "" if ok else str(got.get("error", wrong[:1])))
        elif step["do"] == "call":
            text = shown(result) + str(got.get("error", ""))
            wrong = bool(result.get("error", "error" in got))
            ok = wrong == call.get("error", False) and call.get("has", "") in text
            say(("error " if call.get("error") else "call ") + call["name"], ok, "" if ok else text)
            if call.get("progress"):
                heard = [done for done, _ in result.get("progress", [])]
                say("progress", bool(heard) and heard == sorted(set(heard)), str(heard))
        elif step["do"] == "tools":
            missing = [t for t in plan.get("tools", []) if t not in result.get("names", [])]
            say("list", "error" not in got and not missing, str(got.get("error", missing or "")))
        else:
            say(step["do"], "error" not in got, str(got.get("error", "")))


def ends(plan: dict[str, Any], code: int | None, note: str) -> None:
    """No stream of a client keeps a server of ours, or one that ours is mounted in, from its end."""
    if plan.get("as_is") is False or "ready" not in plan:
        say("stop with open streams", code is not None, note if code is not None else LATE)


async def reload(served: Served, count: int) -> None:
    """A server that watches its sources starts anew while clients hold streams."""
    start = time.monotonic()
    ok = await served.reload()
    note = f"{count} connections were open, {time.monotonic() - start:.1f} s"
    say("reload with open streams", ok, note if ok else f"it did not listen again in {STOP:.0f} s")


async def play(plan: dict[str, Any]) -> None:
    log = Log(plan["log"])
    relay, served = Relay(log), Served(plan)
    passed = {name: value for name, value in plan.items() if name not in ("client", "server", "log")}
    loose = contextlib.AsyncExitStack()
    async with loose:
        if plan.get("touch"):
            write(plan, "")
        tee = [sys.executable, str(HERE / "tee.py"), *(["--joined"] if plan.get("joined") else []), plan["log"]]
        if plan["transport"] == "http":
            url = await served.start()
            loose.push_async_callback(served.stop)
            relay.to = ("127.0.0.1", served.port)
            port = await relay.start()
            passed["target"] = re.sub(r"//[^/]+", f"//127.0.0.1:{port}", url)
        else:
            ours = [] if plan.get("as_is") else ["--stdio"]
            passed["target"] = [*tee, *plan["server"], *ours]
        passed["user"] = ANSWERS
        if plan.get("bridge"):
            words = [word.replace("{url}", str(passed["target"])) for word in plan["bridge"]]
            passed["target"] = [*tee, *words]
        if plan.get("interop"):
            answers = {"elicitation": ANSWERS, "roots": []}
            passed = {
                "target": passed["target"],
                "sse": False,
                "revision": None,
                "answers": answers,
                "steps": steps_of(plan),
            }
        pipe = asyncio.subprocess.PIPE
        env = {**os.environ, **({} if plan["transport"] == "http" else plan.get("server_env", {}))}
        errors = Path(plan["log"]).with_suffix(".stderr").open("wb")
        client = await asyncio.create_subprocess_exec(
            *plan["client"],
            json.dumps(passed),
            stdin=pipe,
            stdout=pipe,
            stderr=errors,
            limit=1 << 24,
            env=env,
            start_new_session=True,
        )
        assert client.stdin
        assert client.stdout
        try:
            async with asyncio.timeout(plan["limit"]):
                while line := await client.stdout.readline():
                    if not line.startswith(b"{"):
                        continue
                    said = json.loads(line)
                    if said.get("ask") == "restart":
                        if plan.get("touch"):
                            await reload(served, len(relay.open) // 2)
                        count, start = len(relay.open) // 2, time.monotonic()
                        code = await served.stop()
                        ends(plan, code, f"{count} connections were open, {time.monotonic() - start:.1f} s")
                        await served.start()
                        client.stdin.write(b"restarted\n")
                    elif said.get("ask") == "kill":
                        os.kill(served_by(plan["log"]), signal.SIGKILL)
                        client.stdin.write(b"killed\n")
                    elif plan.get("interop"):
                        judge(plan, said)
                    else:
                        print(line.decode().strip(), flush=True)
                code = await client.wait()
            if code != 0:
                tail = last_words(errors.name)
                say("end", False, f"the client ended with {code}: {' / '.join(tail)}")
        except TimeoutError:
            say("end", False, f"no end after {plan['limit']} s")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(client.pid, signal.SIGKILL)
        if plan["transport"] == "http":
            code = await served.stop()
            say("stop", code is not None, "" if code is not None else LATE)
    forget(plan["log"])
    left = left_over(plan["cell"])
    say("nothing left", not left, ", ".join(left))
    print(json.dumps({"revision": revision(plan["log"])}), flush=True)


def main() -> None:
    plan = json.loads(sys.argv[1])
    os.environ[MARK] = plan["cell"]
    Path(plan["log"]).unlink(missing_ok=True)
    try:
        asyncio.run(play(plan))
    except (OSError, RuntimeError, TimeoutError, ValueError) as error:
        say("start", False, f"{type(error).__name__}: {error}")
        left_over(plan["cell"])


main()

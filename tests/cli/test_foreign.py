"""Tests of `tricorn list` and `tricorn call` against servers that others wrote, those of `foreign/servers.toml`.

`TRICORN_COMMAND` is the command, else that of target/release. `registries.py` installs the servers.
"""

import contextlib
import json
import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import registries
from registries import SERVERS, Json

COMMAND = shlex.split(os.environ.get("TRICORN_COMMAND", str(Path(__file__).parents[2] / "target/release/tricorn")))
AT_ONCE = int(os.environ.get("FOREIGN_AT_ONCE", "3"))
"""Servers that are asked together."""
LIMIT = 120
"""Seconds for a command, which gives up by itself after 60 without an answer."""
LISTENS = 60.0
"""Seconds for a server to listen."""
LEAVES = 10.0
"""Seconds for the last processes of a server to end."""
MARK = "TRICORN_FOREIGN"
"""Variable in the environment of a command, and of all that it starts."""
HEADINGS = {
    "Tools": "tools",
    "Resources": "resources",
    "Resource templates": "resourceTemplates",
    "Prompts": "prompts",
}

CALLS = [(name, n) for name, server in SERVERS.items() for n in range(len(server["calls"]))]


class Run(NamedTuple):
    """A command that has ended."""

    words: list[str]
    status: int
    stdout: str
    stderr: str
    left: list[str]
    """Processes that it has left behind."""

    def __str__(self) -> str:
        return f"{shlex.join(self.words)}: status {self.status}\n{self.stdout}\n{self.stderr}"


class Played(NamedTuple):
    """Commands against a server."""

    json: Run
    text: Run
    calls: list[tuple[Run, Run]]
    """Each call as JSON and as text."""


INSTALLED: dict[str, Future[None]] = {}
PLAYED: dict[str, Future[Played]] = {}


@pytest.fixture(scope="module", autouse=True)
def _started(request: pytest.FixtureRequest) -> Iterator[None]:
    """Starts what the tests that were chosen ask for: most of the time it waits."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path]
    names = dict.fromkeys(str(item.callspec.params["name"]) for item in items if hasattr(item, "callspec"))
    wanted = [name for name in names if registries.missing(SERVERS[name]["registry"]) is None]
    with ThreadPoolExecutor(len(registries.NEEDED)) as installers, ThreadPoolExecutor(AT_ONCE) as players:
        for registry in dict.fromkeys(SERVERS[name]["registry"] for name in wanted):
            INSTALLED[registry] = installers.submit(registries.install, registry)
        for name in wanted:
            PLAYED[name] = players.submit(play, SERVERS[name])
        yield
        players.shutdown(cancel_futures=True)


def played(name: str) -> Played:
    """Commands against a server, once they have ended."""
    if name not in PLAYED:
        registry = SERVERS[name]["registry"]
        pytest.skip(f"there is no {registries.missing(registry)}, which servers of {registry} need")
    return PLAYED[name].result()


def play(server: Json) -> Played:
    """Lists a server and calls its tools."""
    INSTALLED[server["registry"]].result()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        for file, text in server.get("files", {}).items():
            (work / file).parent.mkdir(parents=True, exist_ok=True)
            (work / file).write_text(text, "utf-8")
        places = {"bin": str(registries.programs(server)), "work": str(work)}
        with serving(server, places) if server["transport"] == "http" else contextlib.nullcontext() as url:

            def ask(command: str, *words: str) -> Run:
                if url is not None:
                    return run([command, url, *words], work)
                env = [word for name, value in env_of(server, places).items() for word in ("--env", f"{name}={value}")]
                return run([command, *env, *words, "--", *filled(server["start"], places)], work)

            def both(call: Json) -> tuple[Run, Run]:
                words = filled(call["words"], places)
                return ask("call", *words, "--json"), ask("call", *words)

            return Played(ask("list", "--json"), ask("list"), [both(call) for call in server["calls"]])


def filled(words: list[str], places: dict[str, str]) -> list[str]:
    """Words with the places that they name."""
    return [re.sub(r"\{(bin|work|port)\}", lambda found: places[found[1]], word) for word in words]


def env_of(server: Json, places: dict[str, str]) -> dict[str, str]:
    """Variables of a server, whose home is its own folder."""
    given: dict[str, str] = server.get("env", {})
    return {"HOME": places["work"], **dict(zip(given, filled([*given.values()], places)))}


def run(words: list[str], work: Path) -> Run:
    """Runs the command, and sees that nothing is left of it."""
    mark = secrets.token_hex(8)
    env = {**os.environ, MARK: mark, "COLUMNS": "80"}
    try:
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT,
            check=False,
        )
    finally:
        left = ended_at_last(mark)
    return Run(words, done.returncode, done.stdout, done.stderr, left)


def marked(mark: str) -> dict[int, str]:
    """Processes with the mark in their environment: their ids and command lines. Only Linux knows them."""
    found: dict[int, str] = {}
    for place in Path("/proc").glob("[0-9]*") if sys.platform == "linux" else ():
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in (place / "environ").read_bytes():
                words = (place / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(place.name)] = words.decode(errors="replace").strip()
    return found


def ended_at_last(mark: str) -> list[str]:
    """Waits for all processes with the mark to end, and ends those that do not."""
    until = time.monotonic() + LEAVES
    while (left := marked(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    for process in left:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
    return [f"{process} {words}" for process, words in left.items()]


@contextlib.contextmanager
def serving(server: Json, places: dict[str, str]) -> Iterator[str]:
    """Starts a server over HTTP, gives its URL, and ends it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    places["port"] = str(port)
    log = Path(places["work"], "server.log")
    mark = secrets.token_hex(8)
    with log.open("wb") as output:
        process = subprocess.Popen(
            filled(server["start"], places),
            cwd=places["work"],
            env={**os.environ, **env_of(server, places), MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        until = time.monotonic() + LISTENS
        while not listens(port):
            said = log.read_text("utf-8", "replace")[-2000:]
            assert process.poll() is None, f"{server['name']} ended with {process.returncode}: {said}"
            assert time.monotonic() < until, f"{server['name']} does not listen: {said}"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}{server['path']}"
    finally:
        process.terminate()
        # A server may wait for streams that are open, which is its own affair.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LEAVES)
        process.kill()
        process.wait()
        ended_at_last(mark)


def listens(port: int) -> bool:
    """True if somebody answers at the port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.mark.parametrize("name", SERVERS)
def test_the_list_as_json(name: str) -> None:
    done = played(name).json
    assert done.status == 0, done
    listed: Json = json.loads(done.stdout)
    assert listed["transport"] == SERVERS[name]["transport"]
    names = [tool["name"] for tool in listed["tools"]]
    assert set(SERVERS[name]["tools"]) <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", SERVERS)
def test_the_list(name: str) -> None:
    as_json, done = played(name)[:2]
    assert done.status == 0, done
    listed: Json = json.loads(as_json.stdout)
    first, *lines = done.stdout.splitlines()
    server = listed["server"]
    assert first.startswith(f"{server['name']} {server['version']}".strip())
    assert first.endswith(f"  {listed['transport']}, {listed['revision']}")
    # All else at the beginning of a line would be no part of the answer.
    headings = [line for line in lines if line and not line.startswith("  ")]
    counts = {said: listed.get(member) for said, member in HEADINGS.items()}
    assert headings == [f"{said} ({len(found)})" for said, found in counts.items() if found]
    for tool in listed["tools"]:
        assert any(re.match(rf"  {re.escape(tool['name'])}( |$)", line) for line in lines), tool["name"]


@pytest.mark.parametrize(("name", "n"), CALLS)
def test_a_call(name: str, n: int) -> None:
    call = SERVERS[name]["calls"][n]
    as_json, as_text = played(name).calls[n]
    assert as_json.status == as_text.status == call["status"], as_text
    if call["status"] == 2:
        assert as_json.stdout == as_text.stdout == ""
        assert call["has"] in as_text.stderr
        return
    result: Json = json.loads(as_json.stdout)
    assert result.get("isError", False) == (call["status"] == 1)
    if call["status"] == 1:
        assert as_text.stdout == ""
        error = as_text.stderr.rpartition(f"error: {call['words'][0]} failed:")[2]
        assert call["has"] in error, as_text
        return
    assert call["has"] in as_text.stdout
    if all(block["type"] == "text" for block in result["content"]):
        assert as_text.stdout == shown(result)


def shown(result: Json) -> str:
    """The answer that people get of a result in texts: each on lines of its own, or the data that the only one is."""
    texts = [block["text"] for block in result["content"]]
    data = result.get("structuredContent")
    if len(texts) == 1 and isinstance(data, dict):
        with contextlib.suppress(ValueError):
            if json.loads(texts[0]) == data:
                return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return "".join(text if text.endswith("\n") else text + "\n" for text in texts)


@pytest.mark.parametrize("name", SERVERS)
def test_no_process_is_left(name: str) -> None:
    done = played(name)
    for one in [done.json, done.text, *(one for pair in done.calls for one in pair)]:
        assert one.left == [], one


def test_each_registry_and_transport_has_servers() -> None:
    def count(member: str, value: Any) -> int:
        return sum(server[member] == value for server in SERVERS.values())

    assert len(SERVERS) >= 10
    assert all(count("registry", registry) >= 2 for registry in registries.NEEDED)
    assert count("transport", "http") >= 3


def test_the_guide_has_each_server() -> None:
    page = (Path(__file__).parents[2] / "docs/guides/command.md").read_text("utf-8")
    for server in SERVERS.values():
        package, _, version = server["package"].replace("==", "@").rpartition("@")
        row = next((line for line in page.splitlines() if line.startswith(f"| `{package}` |")), "")
        assert f"| {version} |" in row, server["package"]
        assert {"stdio": "standard streams", "http": "HTTP"}[server["transport"]] in row, server["name"]

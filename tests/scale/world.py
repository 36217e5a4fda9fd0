"""A store, several processes of a fixture server and nginx in front of them, all on this machine and for one test."""

import asyncio
import contextlib
import getpass
import importlib
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).resolve().parent
TREE = HERE.parent.parent
PAGE = TREE / "docs/guides/many-machines.md"
LANGS = ("rust", "python", "node", "swift")
LIMIT = 20.0
"""Seconds for whatever has to happen."""
PROMPT = 5.0
"""Seconds for an answer that must not wait for a store or a process that is gone."""
START = 60.0
ANSWERED_BY, SETTINGS = "x-answered-by", "x-settings"
FRONT = "front"
"""The balancer, in place of the number of a process."""
Place = int | str
SHARED, NOTHING, ALONE, DOCUMENTS, POSTGRES = "store", "nothing", "alone", "documents", "postgres"
"""Processes with a store; processes without one; one process under the names of all; a store of the program, in SQLite
or in PostgreSQL."""
Json = dict[str, Any]


class Unfit(Exception):  # noqa: N818 - what is wrong is the machine
    """A program is missing or does not start."""


def program(names: list[str], unpacked: str, built: Path) -> str:
    """The first of these programs that is on the path, or the one that `cargo xtask setup` gets."""
    own = built / unpacked
    for found in (*map(shutil.which, names), str(own) if own.is_file() else None):
        if found:
            return found
    raise Unfit(f"none of {', '.join(names)}: install Debian's package, or run cargo xtask setup")


def raise_limit() -> int:
    """Raises the number of files that this process and its children may have open. Returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 20_000 if hard == resource.RLIM_INFINITY else min(hard, 20_000)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted) if soft != resource.RLIM_INFINITY else wanted


FIRST, LAST, BLOCK = 20_000, 32_000, 16
"""Ports that no kernel gives out by itself, and how many of them are for one world."""


def reserve() -> tuple[list[int], socket.socket]:
    """Ports that are free, for as long as the socket is open: many of us start at once, and beside other servers."""
    blocks = list(range(FIRST, LAST, BLOCK))
    random.shuffle(blocks)
    for first in blocks:
        lock = socket.socket(socket.AF_UNIX)
        try:
            # A name that the kernel forgets with its socket.
            lock.bind(f"\0tricorn-scale-{first}")
            for port in range(first, first + BLOCK):
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            lock.close()
            continue
        return list(range(first, first + BLOCK)), lock
    raise Unfit("no ports are free")


async def until(what: str, holds: Callable[[], Awaitable[Any]], limit: float = LIMIT) -> Any:
    """Asks until the answer is true: for things that nothing announces. `what` is the end of the complaint."""
    last: Any = None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit):
            while not (last := await holds()):  # noqa: ASYNC110 - nothing announces it
                await asyncio.sleep(0.01)
            return last
    raise AssertionError(f"in {limit:g} s never: {what} (last: {last!r})")


class Program:
    """A process in a group of its own. What it writes on standard error is read at once, and its end is kept."""

    def __init__(self, name: str, words: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
        self.name, self.words, self.folder = name, words, folder
        self.environment = {**os.environ, **(environment or {})}
        self.process: asyncio.subprocess.Process | None = None
        self.lines: list[str] = []
        self.ready = asyncio.Event()
        self.reader: asyncio.Task[None] | None = None

    async def spawn(self) -> None:
        self.ready.clear()
        self.process = await asyncio.create_subprocess_exec(
            *self.words,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.reader = asyncio.create_task(self.read(self.process))

    async def read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr
        while line := await process.stderr.readline():
            text = line.decode(errors="replace").rstrip()
            self.lines.append(text[:400])
            del self.lines[:-60]
            if text.startswith("ready "):
                self.ready.set()
        self.ready.set()

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def signal(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def terminate(self) -> None:
        """Asks it to end."""
        self.signal(signal.SIGTERM)

    def said(self) -> str:
        return "\n".join(f"    {self.name}: {line}" for line in self.lines[-12:])

    async def kill(self) -> None:
        """Ends it at once, as a machine does that loses power."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()
        if self.reader:
            self.reader.cancel()
            await asyncio.wait({self.reader})
        # The transport of a pipe that was not read to its end stays open otherwise.
        self.process._transport.close()  # type: ignore[attr-defined]
        self.process = None

    async def ended(self, limit: float = LIMIT) -> int:
        assert self.process
        try:
            return await asyncio.wait_for(self.process.wait(), limit)
        except TimeoutError:
            raise AssertionError(
                f"{self.name} has not ended {limit:g} s after it was asked to\n{self.said()}"
            ) from None


async def connects(port: int) -> bool:
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return True
    return False


class Store(Program):
    """A Redis or Valkey of this test's own, which keeps nothing on disk."""

    def __init__(self, built: Path, folder: Path, port: int, name: str = "store") -> None:
        where = program(["valkey-server", "redis-server"], "target/valkey/valkey-server", built)
        own = ["--save", "", "--appendonly", "no", "--daemonize", "no", "--bind", "127.0.0.1", "--port", str(port)]
        super().__init__(name, [where, *own], folder)
        self.port = port

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def start(self) -> None:
        await self.spawn()

        async def answers() -> bool:
            if not self.alive:
                raise Unfit(f"the store has ended\n{self.said()}")
            with contextlib.suppress(OSError, EOFError):
                return await self.do("PING") == "PONG"
            return False

        await until("the store answers", answers)

    async def do(self, *words: str | int) -> Any:
        """One command, on a connection of its own."""
        reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", self.port), PROMPT)
        try:
            parts = [str(word).encode() for word in words]
            head = b"*%d\r\n" % len(parts)
            writer.write(head + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            return await asyncio.wait_for(self.value(reader), PROMPT)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def value(self, reader: asyncio.StreamReader) -> Any:
        line = (await reader.readuntil(b"\r\n"))[:-2].decode()
        kind, rest = line[0], line[1:]
        match kind:
            case "+":
                return rest
            case "-":
                raise AssertionError(f"the store says {rest}")
            case ":":
                return int(rest)
            case "$":
                if rest == "-1":
                    return None
                return (await reader.readexactly(int(rest) + 2))[:-2].decode(errors="replace")
            case "*":
                return [await self.value(reader) for _ in range(int(rest))]
        raise AssertionError(f"the store says {line!r}")

    async def keys(self) -> list[str]:
        cursor, found = "0", []
        while True:
            cursor, keys = await self.do("SCAN", cursor, "COUNT", 1000)
            found += keys
            if cursor == "0":
                return sorted(set(found))

    async def info(self, name: str) -> int:
        """A figure of INFO."""
        match = re.search(rf"^{name}:(\d+)", await self.do("INFO"), re.MULTILINE)
        assert match, name
        return int(match[1])


class Sentinel(Store):
    """A sentinel that watches a store as `main`. It waits for a minute before it takes another master by itself."""

    PATIENT = 60_000
    """Milliseconds after which a master that does not answer is down."""

    def __init__(self, built: Path, folder: Path, port: int, watched: int) -> None:
        super().__init__(built, folder, port, "sentinel")
        file = folder / "sentinel.conf"
        lines = (
            *(f"port {port}", "bind 127.0.0.1", f"dir {folder}", f"sentinel monitor main 127.0.0.1 {watched} 1"),
            *(f"sentinel down-after-milliseconds main {self.PATIENT}", "sentinel failover-timeout main 3000"),
        )
        file.write_text("".join(f"{line}\n" for line in lines))
        self.words = [self.words[0], str(file), "--sentinel"]

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.port}/main"

    async def start(self) -> None:
        await super().start()
        # It takes no replica of which it has heard nothing for 5 s, and does nothing for 30 s after it was late by 2 s.
        with contextlib.suppress(AssertionError):
            await self.do("SENTINEL", "DEBUG", "INFO-PERIOD", 1000, "TILT-TRIGGER", 20_000)

    async def master(self) -> int:
        """The port of the master."""
        return int((await self.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"))[1])

    async def patience(self, milliseconds: int) -> None:
        await self.do("SENTINEL", "SET", "main", "down-after-milliseconds", milliseconds)


class Pair:
    """A master and its replica, and a sentinel. `world.store` is always the master."""

    def __init__(self, world: "World", ports: tuple[int, int]) -> None:
        self.world = world
        folders = [world.folder / name for name in ("replica", "sentinel")]
        for folder in folders:
            folder.mkdir()
        self.spare = Store(world.built, folders[0], ports[0], "store 2")
        self.sentinel = Sentinel(world.built, folders[1], ports[1], world.store.port)

    async def start(self) -> None:
        await self.spare.start()
        for store in (self.world.store, self.spare):
            await store.do("CONFIG", "SET", "repl-diskless-sync-delay", 0)
        await self.spare.do("REPLICAOF", "127.0.0.1", self.world.store.port)
        await self.sentinel.start()
        await self.in_step()

    async def in_step(self) -> None:
        """Waits until the replica follows, and the sentinel knows it."""

        async def follows() -> bool:
            role = await self.spare.do("ROLE")
            known = await self.sentinel.do("SENTINEL", "REPLICAS", "main")
            flags = [dict(zip(one[::2], one[1::2], strict=True)) for one in known]
            is_known = any(one["port"] == str(self.spare.port) and one["flags"] == "slave" for one in flags)
            return is_known and role[0] == "slave" and role[2] == self.world.store.port and role[3] == "connected"

        await until("the replica follows its master, and the sentinel knows it", follows, 2 * LIMIT)

    async def cut(self) -> None:
        """Lets the replica follow no more: a failover loses what is written from now on."""
        await self.spare.do("CONFIG", "SET", "masterauth", "none-that-the-master-knows")
        await self.spare.do("CLIENT", "KILL", "TYPE", "master")

    async def fail_over(self, how: signal.Signals) -> None:
        """Kills or stops the master, and waits until its replica has taken its place."""
        old, new = self.world.store, self.spare
        # Much less than two of its questions, and it takes the replica for gone, too, on a busy machine.
        await self.sentinel.patience(2000)
        old.signal(how)

        async def is_master() -> bool:
            return await self.sentinel.master() == new.port and (await new.do("ROLE"))[0] == "master"

        await until("the replica is the master", is_master, 2 * LIMIT)
        self.world.store, self.spare = new, old
        await new.do("CONFIG", "SET", "masterauth", "")
        await self.sentinel.patience(self.sentinel.PATIENT)

    async def heal(self) -> None:
        """Brings the master of before back. It still takes itself for one, until the sentinel makes it a replica."""
        if self.spare.process and self.spare.alive:
            with contextlib.suppress(ProcessLookupError):
                self.spare.signal(signal.SIGCONT)
        if not self.spare.alive:
            await self.spare.kill()
            await self.spare.start()


class Wire:
    """A way from one process to the store that can be cut, or be slow: `delay` is in seconds, each way."""

    def __init__(self, store: int) -> None:
        self.store, self.port = store, 0
        self.delay = 0.0
        self.held = asyncio.Event()
        self.held.set()
        self.server: asyncio.Server | None = None
        self.writers: set[asyncio.StreamWriter] = set()
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.store)
        except OSError:
            writer.close()
            return
        self.writers |= {writer, to_writer}
        for one, other in ((reader, to_writer), (to_reader, writer)):
            task = asyncio.create_task(self.pass_on(one, other))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self.held.wait()
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(data)
                await writer.drain()
        writer.close()
        self.writers.discard(writer)

    def hold(self) -> None:
        """Lets nothing through, and closes nothing: a cable that was pulled."""
        self.held.clear()

    async def cut(self) -> None:
        """Closes the connections, and refuses new ones."""
        if self.server:
            self.server.close()
            self.server = None
        for writer in list(self.writers):
            writer.close()
        for task in list(self.tasks):
            task.cancel()
        if self.tasks:
            await asyncio.wait(set(self.tasks))
        self.writers.clear()

    async def heal(self) -> None:
        self.held.set()
        if self.server is None:
            await self.start()


class Process(Program):
    """One process of the fixture server, at a port that it keeps when it is started again."""

    def __init__(self, number: int, words: list[str], folder: Path, port: int, environment: dict[str, str]) -> None:
        super().__init__(f"process {number}", [*words, "--http", f"127.0.0.1:{port}"], folder, environment)
        self.number, self.port = number, port
        self.url = f"http://127.0.0.1:{port}/mcp"

    async def start(self) -> None:
        await self.spawn()
        try:
            await asyncio.wait_for(self.ready.wait(), START)
        except TimeoutError:
            raise Unfit(f"{self.name} says no `ready <url>`\n{self.said()}") from None
        if not any(line.startswith("ready ") for line in self.lines):
            raise Unfit(f"{self.name} did not start\n{self.said()}")


class Front(Program):
    """nginx, with the settings that the page shows."""

    def __init__(self, built: Path, folder: Path, port: int, processes: list[Process]) -> None:
        names = ["nginx", "/usr/sbin/nginx"]
        where = program(names, "target/nginx/usr/sbin/nginx", built)
        words = [where, "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
        super().__init__("nginx", words, folder)
        self.port, self.processes, self.settings = port, processes, 0
        self.url = f"http://127.0.0.1:{port}/mcp"

    def write(self, down: tuple[int, ...] = ()) -> None:
        """Writes its settings; processes that are `down` get no requests."""
        shown = re.search(r"```nginx\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
        assert shown, f"{PAGE.name} shows no settings of nginx"
        marks = {process: " down" if process.number in down else "" for process in self.processes}
        servers = "\n".join(f"    server 127.0.0.1:{process.port}\\1{mark};" for process, mark in marks.items())
        site = shown[1]
        self.settings += 1
        added = f"add_header {ANSWERED_BY} $upstream_addr always; add_header {SETTINGS} {self.settings} always;"
        for pattern, ours in (
            (r"(?:    server 10\.0\.0\.\d:8000(.*);\n)+", servers + "\n"),
            (r"listen 443 ssl;", f"listen 127.0.0.1:{self.port}; {added}"),
            (r"location /mcp ", r"location ~ ^/(mcp|sse|messages) "),
        ):
            site, count = re.subn(pattern, ours, site)
            assert count == 1, f"{PAGE.name}: expected {pattern!r} once in the settings of nginx"
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"    {kind}_temp_path {self.folder}/{kind};\n" for kind in kinds)
        # A master, because one process alone does not take new settings well.
        user = f"user {getpass.getuser()};\n" if os.geteuid() == 0 else ""
        text = f"daemon off;\nworker_processes 1;\n{user}pid {self.folder}/pid;\n"
        text += f"events {{ worker_connections {raise_limit() // 2}; }}\n"
        text += f"http {{\n    access_log off;\n{temporary}{site}}}\n"
        (self.folder / "nginx.conf").write_text(text)

    async def start(self) -> None:
        self.write()
        await self.spawn()

        async def listens() -> bool:
            if not self.alive:
                raise Unfit(f"nginx has ended\n{self.said()}")
            return await connects(self.port)

        await until("nginx listens", listens)

    async def reload(self, http: httpx.AsyncClient, down: tuple[int, ...] = ()) -> None:
        """Takes processes out of its turn, as an orchestrator does that looks at readiness. What runs goes on."""
        self.write(down)
        self.signal(signal.SIGHUP)

        async def new() -> bool:
            with contextlib.suppress(httpx.HTTPError):
                seen = (await http.get(self.url)).headers.get(SETTINGS)
                # A worker of before that takes requests has no words about its end in its title.
                return seen == str(self.settings) and self.workers().count("nginx: worker process") == 1
            return False

        await until("nginx has its new settings", new)

    def children(self) -> list[int]:
        assert self.process
        return [
            int(pid) for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        ]

    def workers(self) -> list[str]:
        titles = []
        for child in self.children():
            with contextlib.suppress(OSError):
                titles.append(Path(f"/proc/{child}/cmdline").read_text().strip("\0 "))
        return titles


def new_http() -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    times = httpx.Timeout(60.0, connect=10.0, read=None)
    return httpx.AsyncClient(verify=False, trust_env=False, limits=limits, timeout=times)


class World:
    """All programs of a test."""

    def __init__(self, lang: str, built: Path, sharing: str = SHARED) -> None:
        self.lang, self.built, self.sharing = lang, built, sharing
        self.folder = Path(tempfile.mkdtemp(prefix="tricorn-scale-"))
        self.processes: list[Process] = []
        self.wires: list[Wire] = []
        self.open: set[Any] = set()
        """Responses that are read."""
        self.http = new_http()
        self.store: Store
        self.pair: Pair | None = None
        self.postgres: Any = None
        self.front: Front
        self.lock: socket.socket | None = None

    async def start(
        self,
        count: int = 2,
        wired: bool = False,
        program: list[str] | None = None,
        paired: bool = False,
        **settings: str,
    ) -> "World":
        """Starts everything.

        `wired`: processes have wires to the store. `program`: words in place of the fixture, the first one in the tree
        that was built. `paired`: the store has a replica, and a sentinel that the processes ask for the master.
        `settings`: the fixture's, without `EVERYTHING_`.
        """
        words = program or [f"examples/everything/{self.lang}/run"]
        words = [str(self.built / words[0]), *words[1:]]
        ports, self.lock = reserve()
        self.store = Store(self.built, self.folder, ports[0])
        await self.store.start()
        if paired:
            self.pair = Pair(self, (ports[-1], ports[-2]))
            await self.pair.start()
        environment = {f"EVERYTHING_{name}": value for name, value in settings.items()}
        for number, port in enumerate(ports[2 : count + 2]):
            url = self.pair.sentinel.url if self.pair else self.store.url
            if wired:
                self.wires.append(Wire(self.store.port))
                await self.wires[-1].start()
                url = self.wires[-1].url
            own = {**environment, "TRICORN_STORE": url if self.sharing == SHARED else ""}
            if self.sharing == DOCUMENTS:
                own["EVERYTHING_DOCUMENTS"] = str(self.folder / "documents.db")
            if self.sharing == POSTGRES:
                own["EVERYTHING_DOCUMENTS"] = await self.database()
            self.processes.append(Process(number, words, self.folder, port, own))
        if self.sharing == ALONE:
            self.processes = self.processes[:1] * count
        await asyncio.gather(*(process.start() for process in self.distinct))
        self.front = Front(self.built, self.folder, ports[1], self.distinct)
        await self.front.start()
        return self

    async def database(self) -> str:
        """The address of a PostgreSQL of this test's own, which is started once."""
        if self.postgres is None:
            sys.path.append(str(TREE / "bindings-python/tests"))
            module = importlib.import_module("postgres")
            try:
                self.postgres = module.Postgres()
                await asyncio.to_thread(self.postgres.start)
            except module.Unfit as why:
                raise Unfit(str(why)) from None
        return str(self.postgres.address())

    @property
    def distinct(self) -> list[Process]:
        """Each process once."""
        return list(dict.fromkeys(self.processes))

    def url(self, at: Place) -> str:
        return self.front.url if isinstance(at, str) else self.processes[at].url

    def who(self, at: Place, headers: httpx.Headers | None = None) -> str:
        """The process that answered, for complaints."""
        if not isinstance(at, str):
            return f"process {at}"
        answered = (headers or {}).get(ANSWERED_BY, "").split(",")[-1].strip()
        for process in self.processes:
            if answered.endswith(f":{process.port}"):
                return f"process {process.number} behind nginx"
        return f"nginx ({answered or 'nobody behind it'})"

    async def stop(self) -> None:
        for one in list(self.open):
            await one.close()
        await self.http.aclose()
        programs: list[Program] = [*self.distinct]
        programs += [one for one in (getattr(self, "front", None), getattr(self, "store", None)) if one]
        programs += [self.pair.spare, self.pair.sentinel] if self.pair else []
        await asyncio.gather(*(one.kill() for one in programs))
        for wire in self.wires:
            await wire.cut()
        if self.postgres:
            await asyncio.to_thread(self.postgres.stop)
        if self.lock:
            self.lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def said(self) -> str:
        """The last lines of all programs."""
        programs: list[Program] = [*self.distinct, self.front, self.store]
        programs += [self.pair.spare, self.pair.sentinel] if self.pair else []
        return "\n".join(text for text in (one.said() for one in programs) if text)

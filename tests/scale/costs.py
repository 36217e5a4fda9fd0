"""Costs of a store: CPU time of calls, memory of idle sessions, and whether two processes do the work of two.

`costs.py [cpu | memory | scaling]` prints a Markdown table. Linux with two cores or more.
"""

import argparse
import asyncio
import json
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean, median

from wire import ALL, BOTH, LEGACY, META, MODERN
from world import TREE, Json, Process, Program, Store, World, reserve, until

PROGRAM = "target/release/example-everything"
CORES = sorted(os.sched_getaffinity(0))[:2]
FLIGHT = 32
WARM = 2000
"""Sessions before those that are measured."""
CLIENT = {"name": "scale", "version": "1"}
AIMS = {LEGACY: "≤ 1.6", MODERN: "≤ 1.02"}


def post(method: str, params: Json, number: int | None = 1, session: str = "") -> bytes:
    """A request with this id, or a notification. Of 2026-07-28 where no session is named."""
    headers = {"host": "127.0.0.1", "content-type": "application/json", "accept": BOTH}
    if session:
        headers |= {"mcp-session-id": session, "mcp-protocol-version": LEGACY}
    elif method != "initialize":
        headers |= {"mcp-protocol-version": MODERN, "mcp-method": method, "mcp-name": params["name"]}
        envelope = {"protocolVersion": MODERN, "clientInfo": CLIENT, "clientCapabilities": {}}
        params = {**params, "_meta": {META + name: value for name, value in envelope.items()}}
    body = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {})
    content = json.dumps(body).encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}content-length: {len(content)}\r\n\r\n".encode() + content


class Line:
    """A connection that is kept, with a session of its own or another's where the revision has sessions."""

    def __init__(self, process: Process, revision: str, session: str = "") -> None:
        self.socket = socket.create_connection(("127.0.0.1", process.port), timeout=20)
        self.session = session or (self.open() if revision == LEGACY else "")
        # As long as all that follow.
        self.number = 1_000_000
        text = post("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}}, self.number, self.session)
        self.head, self.tail = text.split(b"%d" % self.number)

    def send(self) -> None:
        self.number += 1
        self.socket.sendall(b"%s%d%s" % (self.head, self.number, self.tail))

    def read(self) -> bytes:
        """Reads a response, which has to be a result or empty. Returns it with its head."""
        data, end, size = b"", -1, 0
        while end < 0 or len(data) < end + 4 + size:
            more = self.socket.recv(65536)
            assert more, f"the server closed a connection after {data!r}"
            data += more
            if end < 0 and (end := data.find(b"\r\n\r\n")) >= 0:
                at = data.find(b"content-length:", 0, end)
                size = int(data[at + 15 :].split(b"\r\n", 1)[0]) if at > 0 else 0
        assert data.startswith(b"HTTP/1.1 20"), data
        assert not size or b'"result":' in data, data
        return data

    def ask(self, text: bytes) -> bytes:
        self.socket.sendall(text)
        return self.read()

    def open(self) -> str:
        """Opens a session, and returns its id."""
        params = {"protocolVersion": LEGACY, "capabilities": ALL, "clientInfo": CLIENT}
        session = self.ask(post("initialize", params)).split(b"mcp-session-id: ")[1].split(b"\r\n")[0].decode()
        self.ask(post("notifications/initialized", {}, None, session))
        return session


def call(lines: list[Line], count: int) -> None:
    """Makes this many calls, one in flight on each line."""
    for line in lines:
        line.send()
    for turn in range(count):
        line = lines[turn % len(lines)]
        line.read()
        if turn < count - len(lines):
            line.send()


def measured(programs: list[Program], work: Callable[[], None], count: int) -> list[float]:
    """Gives the CPU time of a call in each of these programs, in µs, by an exact clock; last, the calls in a second."""
    clocks = [(~program.process.pid << 3) | 2 for program in programs]
    before, began = [time.clock_gettime_ns(clock) for clock in clocks], time.perf_counter()
    work()
    rate = count / (time.perf_counter() - began)
    return [*((time.clock_gettime_ns(clock) - start) / count / 1000 for clock, start in zip(clocks, before)), rate]


def resident(program: Program) -> int:
    """Resident memory in bytes, once it stays what it is."""
    seen: list[int] = []
    while len(seen) < 60 and (len(seen) < 10 or len(set(seen[-6:])) > 1):
        time.sleep(0.25)
        seen.append(int(Path(f"/proc/{program.process.pid}/status").read_text().split("VmRSS:")[1].split()[0]) * 1024)
    return seen[-1]


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def middle(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


class Bench(World):
    """A store, and processes with it and without."""

    async def begin(self, options: argparse.Namespace) -> None:
        self.options, (self.ports, self.lock) = options, reserve()
        self.store = Store(TREE, self.folder, self.ports.pop())
        await self.store.start()

    def keep_to(self, *cores: int) -> None:
        """The clients and the store run on these cores."""
        for thread in [*os.listdir(f"/proc/{self.store.process.pid}/task"), *os.listdir("/proc/self/task")]:
            os.sched_setaffinity(int(thread), cores)

    async def process(self, cores: list[int], database: int | None) -> Process:
        """Starts a process on these cores. Processes with the same database of the store share their sessions."""
        url = "" if database is None else f"{self.store.url}/{database}"
        environment = {"TRICORN_STORE": url, "EVERYTHING_MAX_SESSIONS": "1000000"}
        words, port = [str(TREE / self.options.program)], self.ports.pop()
        process = Process(len(self.processes), words, self.folder, port, environment)
        self.processes.append(process)
        # Inherited, and as many workers.
        os.sched_setaffinity(0, cores)
        await process.start()
        os.sched_setaffinity(0, CORES)
        if database is not None:
            await until("a key in the store", lambda: self.has(database))
        return process

    async def has(self, database: int) -> bool:
        return f"db{database}:" in await self.store.do("INFO", "keyspace")


async def cpu(bench: Bench) -> None:
    """Cost of a call in a process without the store and in one with it, on one core and in turns."""
    cores = CORES if bench.options.anywhere else CORES[:1]
    pair = [await bench.process(cores, database) for database in (None, 0)]
    bench.keep_to(*(CORES if bench.options.anywhere else CORES[1:]))
    count, cells = bench.options.calls, [(revision, flight) for revision in AIMS for flight in (1, FLIGHT)]
    lines = {(cell, one): [Line(one, cell[0]) for _ in range(cell[1])] for cell in cells for one in pair}
    found: dict[tuple[str, int], list[tuple[float, ...]]] = {cell: [] for cell in cells}
    for turn in range(bench.options.rounds + 1):
        for cell in cells:
            order = pair if turn % 2 else pair[::-1]
            took = {one: measured([one, bench.store], partial(call, lines[cell, one], count), count) for one in order}
            found[cell].append((took[pair[0]][0], *took[pair[1]][:2]))
    for (revision, flight), (_, *figures) in found.items():
        ratios = [after / before for before, after, _ in figures]
        without, shares, store = (median(column) for column in zip(*figures))
        parts = f"µs: {without:.1f} without, {shares:.1f} with; of the store {store:.1f}"
        row(f"{revision}, {flight} in flight: CPU time with the store / without", middle(ratios), AIMS[revision], parts)


async def memory(bench: Bench) -> None:
    """Size of idle sessions in the store, in a process, and in another one that was asked in each of them."""
    count, took = bench.options.sessions, []
    alone, shares, other = [await bench.process(CORES, database) for database in (None, 0, 0)]
    for process in (alone, shares):
        line = Line(process, LEGACY)
        names = [line.open() for _ in range(WARM)]
        used, before = await bench.store.info("used_memory"), resident(process)
        names += [line.open() for _ in range(count)]
        used, after = await bench.store.info("used_memory") - used, resident(process)
        took.append(after - before)
    keys = [key for key in await bench.store.keys() if ":session:" in key]
    assert len(keys) == len(names) + 1, f"{len(keys)} of {len(names)} sessions are in the store"
    usage = mean([await bench.store.do("MEMORY", "USAGE", key, "SAMPLES", 0) for key in keys[:200]])
    line = Line(other, MODERN)
    for turn, name in enumerate(names):
        before = resident(other) if turn == WARM else before
        line.ask(post("ping", {}, session=name))
    took.append(resident(other) - before)
    without, with_store, copy = (size / count / 1024 for size in took)
    row("KB of an idle session in the store", f"{used / count / 1024:.2f}", "≤ 1.5", f"its key: {usage / 1024:.2f}")
    parts = f"{without:.2f} without, {with_store:.2f} with; of a copy in another process {copy:.2f}"
    row("KB that the store adds to an idle session in its process", f"{with_store - without:.2f}", "≤ 2", parts)


async def scaling(bench: Bench) -> None:
    """Cost of a call in one of two processes, each on a core, beside that in a process that shares with none."""
    places = ((CORES[:1], 0), (CORES[1:], 0), (CORES[1:], 1))
    first, second, stranger = [await bench.process(*place) for place in places]
    count, figures = bench.options.calls, []
    one, strange = [[Line(process, LEGACY) for _ in range(FLIGHT)] for process in (first, stranger)]
    # Each session is used at both processes.
    two = [Line(second, LEGACY, line.session) for line in one]
    beside = {"nothing": strange, "all": two}

    def bursts(others: list[Line]) -> None:
        for lines in [one, others] * (count // FLIGHT):
            call(lines, FLIGHT)

    for turn in range(bench.options.rounds + 1):
        bench.keep_to(CORES[1])
        order = sorted(beside, reverse=turn % 2 == 0)
        took = {shared: measured([first, bench.store], partial(bursts, beside[shared]), count) for shared in order}
        single = measured([], partial(call, one, count), count)[-1]
        bench.keep_to(*CORES)
        double = measured([], partial(call, [line for both in zip(one, two) for line in both], count), count)[-1]
        figures.append((took["nothing"][0], took["all"][0], took["all"][1] / 2, single, double))
    _, *figures = figures
    alone, paired, store, single, double = (median(column) for column in zip(*figures))
    parts = f"µs: {alone:.1f} beside a stranger, {paired:.1f} beside the other; of the store {store:.1f}"
    row("two processes / one, by CPU time", middle([2 * figure[0] / figure[1] for figure in figures]), "≥ 1.7", parts)
    parts = f"calls in a second: {single:.0f}, {double:.0f}; store and clients are on the same two cores"
    row("two processes / one, by the clock", middle([figure[4] / figure[3] for figure in figures]), "", parts)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=["cpu", "memory", "scaling"], help="default: all")
    parser.add_argument("--program", default=PROGRAM, help="another one with the tool `add`, for `cpu` (%(default)s)")
    parser.add_argument("--anywhere", action="store_true", help="`cpu` with all on two cores, not each process on one")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--calls", type=int, default=4000, help="of a round, a multiple of 32 (%(default)s)")
    parser.add_argument("--sessions", type=int, default=20_000)
    options = parser.parse_args()
    print("| figure | median (least to most) | aim | parts |\n|---|---|---|---|")
    for part in [part for part in (cpu, memory, scaling) if options.part in (None, part.__name__)]:
        bench = Bench("rust", TREE)
        try:
            await bench.begin(options)
            await part(bench)
        finally:
            await bench.stop()


if __name__ == "__main__":
    asyncio.run(main())

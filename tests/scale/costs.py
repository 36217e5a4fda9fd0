"""Costs of a store: CPU time of calls, memory of idle sessions, and whether two processes do the work of two.

`costs.py [CPU] [MEMORY] [SCALING]`: these parts, or all. Prints a Markdown table. Linux.
"""

import argparse
import asyncio
import json
import os
import shutil
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from wire import ALL, BOTH, LEGACY, META, MODERN
from world import TREE, Json, Process, Store, raise_limit, reserve

CPU, MEMORY, SCALING = "cpu", "memory", "scaling"
PROGRAM = "target/release/example-everything"
IN_FLIGHT = (1, 32)
WARM = 2000
"""Calls, or sessions, before anything is measured."""
CLIENT = {"name": "scale", "version": "1"}
AIMS = {LEGACY: 1.6, MODERN: 1.02}
IN_STORE, IN_PROCESS, TWICE = 1.5, 2.0, 1.7
"""Aims: KB of a session, and what two processes do in place of one."""


class Line:
    """A connection that is kept. With a session it calls in that, else with 2026-07-28."""

    def __init__(self, port: int, session: str | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = 1_000_000
        params: Json = {"name": "add", "arguments": {"a": 2, "b": 3}}
        more = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "add"}
        if session:
            more = in_session(session)
        else:
            envelope = {"protocolVersion": MODERN, "clientInfo": CLIENT, "clientCapabilities": {}}
            params["_meta"] = {META + name: value for name, value in envelope.items()}
        text = self.text(request("tools/call", params, self.number), **more)
        # The number is as long each time.
        self.head, self.tail = text.split(b"%d" % self.number)

    @staticmethod
    def text(body: Json, **more: str) -> bytes:
        content = json.dumps(body).encode()
        headers = {"host": "127.0.0.1", "content-type": "application/json", "accept": BOTH, **more}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"POST /mcp HTTP/1.1\r\n{lines}content-length: {len(content)}\r\n\r\n".encode() + content

    def send(self) -> None:
        self.number += 1
        self.socket.sendall(b"%s%d%s" % (self.head, self.number, self.tail))

    def read(self) -> bytes:
        """Reads a response, which is a result or nothing."""
        data = self.socket.recv(65536)
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self.more()
        head = data[:end].lower()
        at = head.find(b"content-length:")
        size = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at > 0 else 0
        while len(data) < end + 4 + size:
            data += self.more()
        assert data.startswith(b"HTTP/1.1 20"), data[:600]
        assert not size or b'"result":' in data, data[:600]
        return data

    def more(self) -> bytes:
        data = self.socket.recv(65536)
        assert data, "the server closed a connection"
        return data

    def ask(self, body: Json, **more: str) -> bytes:
        self.socket.sendall(self.text(body, **more))
        return self.read()

    def open(self) -> str:
        """Opens a session, and returns its id."""
        params = {"protocolVersion": LEGACY, "capabilities": ALL, "clientInfo": CLIENT}
        head = self.ask(request("initialize", params)).split(b"\r\n\r\n")[0].decode()
        session = next(line.split(": ")[1] for line in head.split("\r\n") if line.lower().startswith("mcp-session-id"))
        self.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}, **in_session(session))
        return session


def request(method: str, params: Json, number: int = 1) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def in_session(session: str) -> dict[str, str]:
    return {"mcp-session-id": session, "mcp-protocol-version": LEGACY}


def call(lines: list[Line], count: int) -> None:
    """Makes this many calls, one in flight on each line."""
    for line in lines:
        line.send()
    for turn in range(count):
        line = lines[turn % len(lines)]
        line.read()
        if turn < count - len(lines):
            line.send()


def cpu(pid: int) -> int:
    """CPU time of a process with all of its threads, in ns: `utime` and `stime`, but exact."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def bind(pid: int, cores: set[int]) -> None:
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), cores)


def resident(pid: int) -> int:
    """Resident memory in bytes, as soon as it stays what it is."""
    seen: list[int] = []
    while len(seen) < 60:
        text = Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1]
        seen.append(int(text.split()[0]) * 1024)
        if len(seen) >= 10 and len(set(seen[-6:])) == 1:
            break
        time.sleep(0.25)
    return seen[-1]


def middle(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


class Bench:
    """A store, processes with it or without, and the rows that were measured."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = Path(tempfile.mkdtemp(prefix="tricorn-costs-"))
        self.ports, self.lock = reserve()
        self.store = Store(TREE, self.folder, self.ports.pop())
        self.processes: list[Process] = []
        self.rows: list[tuple[str, str, str]] = []

    async def process(self, shares: bool, core: int | None = None) -> Process:
        environment = {"TRICORN_STORE": self.store.url if shares else "", "EVERYTHING_MAX_SESSIONS": "1000000"}
        words = [str(TREE / self.options.program)]
        process = Process(len(self.processes), words, self.folder, self.ports.pop(), environment)
        self.processes.append(process)
        cores = os.sched_getaffinity(0)
        try:
            # A child has the cores of its parent, and a worker for each.
            os.sched_setaffinity(0, cores if core is None else {core})
            await process.start()
        finally:
            os.sched_setaffinity(0, cores)
        deadline = time.monotonic() + 10
        while shares and not any(":node:" in key for key in await self.store.keys()):
            assert time.monotonic() < deadline, f"it has put nothing into the store\n{process.said()}"
            await asyncio.sleep(0.05)
        return process

    def row(self, what: str, value: str, aim: str = "") -> None:
        self.rows.append((what, value, aim))

    async def stop(self) -> None:
        for program in [*self.processes, self.store]:
            await program.kill()
        self.processes = []
        self.lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def pid(program: Process | Store) -> int:
    assert program.process
    return program.process.pid


def measured(programs: list[Process | Store], work: Callable[[], None], count: int) -> list[float]:
    """CPU time of these programs for a call, in µs."""
    before = [cpu(pid(one)) for one in programs]
    work()
    return [(cpu(pid(one)) - start) / count / 1000 for one, start in zip(programs, before)]


async def calls(bench: Bench) -> None:
    """Measures what a call costs one process without the store and one with it, in turns."""
    without, shares = await bench.process(False), await bench.process(True)
    count, found = bench.options.calls, {}
    for revision in (LEGACY, MODERN):
        for flight in IN_FLIGHT:
            sides = []
            for process in (without, shares):
                lines = [Line(process.port) for _ in range(flight)]
                if revision == LEGACY:
                    lines = [Line(process.port, line.open()) for line in lines]
                call(lines, WARM)
                sides.append((process, lines))
            found[revision, flight] = (sides, [])
    for turn in range(bench.options.rounds):
        for sides, figures in found.values():
            row = {}
            for process, lines in sides if turn % 2 == 0 else sides[::-1]:
                row[process] = measured([process, bench.store], lambda lines=lines: call(lines, count), count)
            figures.append((row[without][0], *row[shares]))
    for (revision, flight), (_, figures) in found.items():
        one, two, store = (statistics.median(column) for column in zip(*figures))
        ratio = middle([after / before for before, after, _ in figures])
        bench.row(f"{revision}, {flight} in flight: with the store / without", ratio, f"≤ {AIMS[revision]}")
        bench.row("– µs of the process without, with; of the store", f"{one:.1f}, {two:.1f}; {store:.1f}")


async def sessions(bench: Bench) -> None:
    """Measures what idle sessions take in the store and in processes."""
    count, took = bench.options.sessions, {}
    alone, shares, other = [await bench.process(shared) for shared in (False, True, True)]

    def grows(process: Process, work: Callable[[Line], None]) -> float:
        line = Line(process.port)
        before = resident(pid(process))
        work(line)
        return (resident(pid(process)) - before) / count / 1024

    for process in (alone, shares):
        line = Line(process.port)
        names = [line.open() for _ in range(WARM)]
        used = await bench.store.info("used_memory")
        took[process] = grows(process, lambda line: names.extend(line.open() for _ in range(count)))
        used = await bench.store.info("used_memory") - used
    keys = [key for key in await bench.store.keys() if ":session:" in key]
    assert len(keys) == count + WARM, f"{len(keys)} sessions are in the store"
    alike = [await bench.store.do("MEMORY", "USAGE", key, "SAMPLES", 0) for key in keys[:200]]
    # The other process has a copy of each session that it was asked in.
    ping = request("ping", {})
    line = Line(other.port)
    for name in names[:WARM]:
        line.ask(ping, **in_session(name))
    copy = grows(other, lambda line: [line.ask(ping, **in_session(name)) for name in names[WARM:]])
    bench.row("an idle session in the store, KB", f"{used / count / 1024:.2f}", f"≤ {IN_STORE}")
    bench.row("– `MEMORY USAGE` of its key, KB", f"{statistics.mean(alike) / 1024:.2f}")
    more = took[shares] - took[alone]
    bench.row("an idle session in its process: with the store − without, KB", f"{more:.2f}", f"≤ {IN_PROCESS}")
    bench.row("– KB without, with", f"{took[alone]:.2f}, {took[shares]:.2f}")
    bench.row("– KB of a copy in another process", f"{copy:.2f}")


async def scaling(bench: Bench) -> None:
    """Measures one process on a core, and two on a core each, with as many calls in flight for each of them."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    pair = [await bench.process(True, core) for core in cores]
    flight, count, wall, cost = IN_FLIGHT[-1], bench.options.calls * 4, ([], []), ([], [])
    opener = Line(pair[0].port)
    names = [opener.open() for _ in range(flight)]
    # Each session is used at both processes.
    lines = [[Line(process.port, name) for process in pair[:used] for name in names] for used in (1, 2)]
    lines[1] = [line for both in zip(lines[1][:flight], lines[1][flight:]) for line in both]
    around = []
    for turn in range(bench.options.rounds + 1):
        for used in (0, 1) if turn % 2 == 0 else (1, 0):
            # With one process the other core is for the store and the clients; with two all share both.
            for other in (pid(bench.store), os.getpid()):
                bind(other, set(cores[1:]) if used == 0 else set(cores))
            began, own = time.perf_counter(), time.process_time_ns()
            spent = measured([*pair[: used + 1], bench.store], lambda used=used: call(lines[used], count), count)
            if turn:
                wall[used].append(count / (time.perf_counter() - began))
                cost[used].append(sum(spent[:-1]))
                around.append((spent[-1], (time.process_time_ns() - own) / count / 1000))
    bind(os.getpid(), set(cores))
    ratios = [two / one for one, two in zip(*wall)]
    by_cpu = [2 * one / two for one, two in zip(*cost)]
    bench.row("two processes / one, calls for a CPU second × cores", middle(by_cpu), f"≥ {TWICE}")
    one, two = map(statistics.median, cost)
    bench.row("– µs of a call: one process, two", f"{one:.1f}, {two:.1f}")
    bench.row("– µs of a call: store, clients", ", ".join(f"{statistics.median(part):.1f}" for part in zip(*around)))
    bench.row("two processes / one, calls in a second, clients and store on the same two cores", middle(ratios))
    bench.row("– calls in a second: one, two", ", ".join(f"{statistics.median(some):.0f}" for some in wall))


async def main() -> None:
    parts = {CPU: calls, MEMORY: sessions, SCALING: scaling}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=[], help=f"of {', '.join(parts)}")
    parser.add_argument("--program", default=PROGRAM, help="server with the tool `add`, in the tree (%(default)s)")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--calls", type=int, default=4000, help="calls of a round (%(default)s)")
    parser.add_argument("--sessions", type=int, default=20_000)
    options = parser.parse_args()
    raise_limit()
    rows: list[tuple[str, str, str]] = []
    for part in options.parts or parts:
        bench = Bench(options)
        try:
            await bench.store.start()
            await parts[part](bench)
            rows += bench.rows
        finally:
            await bench.stop()
    print("| figure | median (least to most) | aim |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    asyncio.run(main())

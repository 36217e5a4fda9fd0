"""Ten thousand sockets of a thousand clients, and one client that floods: what the others see of it. See README.md."""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent / "soak"), str(HERE.parent / "hostile")]
sys.dont_write_bytecode = True

from crowd import Plan  # noqa: E402
from flood import WANTED  # noqa: E402
from measure import anonymous, cpu, descriptors  # noqa: E402
from programs import MARK, Gone, HttpServer, usual  # noqa: E402
from sampler import LANGS, MIB, Sampler, columns, end_politely, raise_limit, say, sweep  # noqa: E402

HOSTILE = "127.66.6.6"
RATIO = 3.0
"""Greatest factor by which a flood may slow down the slowest hundredth of others' calls."""
ROOM = 1000
"""Sockets that the server may have besides those of the crowd."""
SPARE = 500
"""Descriptors of a process besides its sockets."""
FULL = 0.7
"""The part of all CPUs from which on quiet is not quiet."""
Json = dict[str, Any]


class Unfit(Exception):  # noqa: N818 - what is wrong is the machine
    """The machine cannot have so many sockets."""


def check(given: argparse.Namespace) -> int:
    """Raises the limits. Says how many files a process may open."""

    def setting(name: str) -> int:
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(Path("/proc/sys", name).read_text().split()[-1])
        return sys.maxsize

    sockets = given.clients * given.sockets
    # Of its limit the server leaves a sixteenth to the program.
    needed = (sockets + ROOM) * 16 // 15 + SPARE
    files = raise_limit(max(needed, 32_768))
    if files < needed:
        raise Unfit(f"a process may open {files} files (RLIMIT_NOFILE, fs.nr_open), {needed} are needed")
    # Both ends are here.
    ends = 2 * (sockets + files)
    for name, needed, what in (
        ("fs/file-max", ends, "open files"),
        ("net/netfilter/nf_conntrack_max", ends, "connections that are tracked"),
        ("net/ipv4/tcp_max_orphans", ROOM, "sockets without a process"),
    ):
        if (most := setting(name)) < needed:
            raise Unfit(f"{name.replace('/', '.')} is {most}, {needed} {what} are needed")
    if (most := setting("net/core/somaxconn")) < 128:
        raise Unfit(f"net.core.somaxconn is {most}, 128 are needed")
    return files


def prefer() -> None:
    """Raises the priority of the process that measures, where that is allowed."""
    with contextlib.suppress(OSError):
        os.nice(-10)


class Process:
    """A crowd, or the flood: told what to do by lines, and says lines of JSON."""

    def __init__(self, words: list[str], mark: str, measures: bool) -> None:
        environment = {**os.environ, MARK: mark, "PYTHONDONTWRITEBYTECODE": "1"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-B", *words],
            stdin=pipe,
            stdout=pipe,
            env=environment,
            preexec_fn=prefer if measures else None,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def tell(self, word: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{word}\n".encode())
        self.process.stdin.flush()

    def hear(self) -> Json:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise Gone(f"{self.process.args[-2]} ended with {self.process.wait()}")  # type: ignore[index]
        return json.loads(line)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def part(values: list[float], share: float) -> float:
    """Returns the quantile `share` of ordered values; 0 without values."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def gather(said: list[Json], name: str) -> Json:
    """A phase, as all processes saw it."""
    phases = [phase for one in said for phase in one["phases"] if phase["name"] == name]
    waits = sorted(wait for phase in phases for wait in phase["waits"])
    lags = sorted(lag for phase in phases for lag in phase["lags"])
    errors: dict[str, int] = {}
    for phase in phases:
        for why, count in phase["errors"].items():
            errors[why] = errors.get(why, 0) + count
    return {
        "calls": len(lags),
        "answers": len(waits),
        "p50": round(part(waits, 0.5), 5),
        "p99": round(part(waits, 0.99), 5),
        "max": round(part(waits, 1.0), 5),
        "lag_p99": round(part(lags, 0.99), 5),
        "lag_max": round(part(lags, 1.0), 5),
        "load_cpu": round(sum(phase["used"] for phase in phases), 2),
        "errors": errors,
    }


def play(lang: str, given: argparse.Namespace, files: int) -> Json:
    """One server: quiet, under the flood, and afterwards."""
    sockets = given.clients * given.sockets
    environment = {"EVERYTHING_MAX_CONNECTIONS": str(sockets + ROOM)}
    server = HttpServer(usual(lang)["server"], environment, given.mark)
    crowds: list[Process] = []
    flood: Process | None = None
    line: Json = {"lang": lang, "clients": given.clients, "sockets": sockets}
    try:
        each = given.clients // given.processes
        for n in range(given.processes):
            first = n * each
            count = given.clients - first if n == given.processes - 1 else each
            plan = Plan(
                server.host, server.port, first, count, given.sockets, given.pause, given.opens / given.processes
            )
            crowds.append(Process([str(HERE / "crowd.py"), json.dumps(asdict(plan))], given.mark, True))
        say(f"{lang}: {sockets} sockets of {given.clients} clients")
        told = [one.hear() for one in crowds]
        line["open"] = sum(one["open"] for one in told)
        if line["open"] < sockets * 0.99:
            errors = [one["errors"] for one in told]
            raise Unfit(f"the server has {line['open']} of {sockets} sockets (EVERYTHING_MAX_CONNECTIONS): {errors}")

        def phase(name: str, seconds: float) -> None:
            say(f"{lang}: {name}")
            for one in crowds:
                one.tell(name)
            before = cpu(server.pid)
            with Sampler(server.pid) as sampler:
                time.sleep(seconds)
            line[f"{name}_server"] = {
                "cpu": round(cpu(server.pid) - before, 2),
                "memory": anonymous(server.pid),
                "descriptors": descriptors(server.pid),
                "most_memory": sampler.memory,
                "most_descriptors": sampler.descriptors,
            }

        phase("settling", 3.0)
        phase("quiet", given.seconds)
        words = [str(HERE / "flood.py"), server.host, str(server.port), HOSTILE, str(files - SPARE), given.flood]
        flood = Process(words, given.mark, False)
        phase("flood", given.seconds)
        flood.tell("end")
        line["hostile"] = flood.hear()
        flood.stop()
        phase("after", given.seconds / 2)
        for one in crowds:
            one.tell("end")
        said = [one.hear() for one in crowds]
        for name in ("quiet", "flood", "after"):
            line[name] = gather(said, name)
    finally:
        for one in [*crowds, *([flood] if flood else [])]:
            one.stop()
        line["alive"] = server.alive
        line["ended"] = server.stop(True)
    quiet, under = line["quiet"], line["flood"]
    line["ratio"] = round(under["p99"] / max(quiet["p99"], 1e-6), 2)
    busy = (quiet["load_cpu"] + line["quiet_server"]["cpu"]) / given.seconds / (os.cpu_count() or 1)
    line["quiet_busy"] = round(busy, 3)
    why = []
    if line["ratio"] > RATIO:
        why.append(f"p99 is {line['ratio']} times the quiet one")
    for name in ("quiet", "flood", "after"):
        if line[name]["errors"]:
            why.append(f"{name}: {line[name]['errors']}")
    if busy > FULL:
        why.append(f"quiet takes {busy:.0%} of the machine: the pause is too short")
    if not line["alive"] or not line["ended"]:
        why.append("the server ended" if not line["alive"] else "the server did not end when it was asked to")
    return line | {"ok": not why, "why": "; ".join(why)}


def table(lines: list[Json]) -> str:
    """Returns the table that people read: milliseconds and MiB."""
    times = ["p50", "p99", "max"]
    rows = [["server", "phase", "answers", *times, "errors", "CPU", "MiB", "descriptors", "lag p99", "lag max"]]
    for line in lines:
        for name in ("quiet", "flood", "after"):
            if name not in line:
                continue
            seen, server = line[name], line[f"{name}_server"]
            waits = [f"{seen[what] * 1000:.2f}" for what in times]
            lags = [f"{seen[what] * 1000:.2f}" for what in ("lag_p99", "lag_max")]
            cpus = f"{server['cpu']:.1f} s, clients {seen['load_cpu']:.1f} s"
            have = [f"{server['most_memory'] / MIB:.1f}", str(server["most_descriptors"])]
            errors = str(sum(seen["errors"].values()))
            rows.append([line["lang"], name, str(seen["answers"]), *waits, errors, cpus, *have, *lags])
    return columns(rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lang", action="append", choices=LANGS, help="may be repeated; all of them by default")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--sockets", type=int, default=10, help="of each client")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds between two calls of a client")
    parser.add_argument("--opens", type=float, default=800.0, help="sockets that are opened in a second")
    parser.add_argument("--seconds", type=float, default=15.0, help="of quiet, and of the flood")
    parser.add_argument("--processes", type=int, default=2, help="of the crowd")
    parser.add_argument("--flood", choices=["all", *WANTED], default="all", help="sockets of one kind alone")
    parser.add_argument("--strict", action="store_true", help=f"fail if p99 is over {RATIO:.0f} times the quiet one")
    parser.add_argument("--out", type=Path, help="JSON lines, in place of standard output")
    given = parser.parse_args()
    given.mark = f"crowd-{os.getpid()}"
    return given


def main() -> int:
    given = arguments()
    end_politely()
    try:
        files = check(given)
    except Unfit as error:
        say(f"error: this machine cannot: {error}")
        return 2
    lines: list[Json] = []
    left: list[str] = []
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(given.out.open("w")) if given.out else sys.stdout
        # Not even an interrupted run leaves something running.
        stack.callback(lambda: left.extend(sweep(given.mark)))
        for lang in given.lang or LANGS:
            try:
                line = play(lang, given, files)
            except (Gone, Unfit, OSError) as error:
                line = {"lang": lang, "ok": False, "why": str(error)}
            lines.append(line)
            print(json.dumps(line), file=out, flush=True)
    print(table(lines))
    for line in lines:
        if "ratio" in line:
            word = "within" if line["ratio"] <= RATIO else "NOT within"
            print(
                f"{line['lang']}: a flood by one client leaves another's p99 at {line['ratio']:.2f} times its quiet"
                f" value, {word} {RATIO:.0f} times; the hostile one had {line['hostile']['most']} sockets,"
                f" {line['hostile']['answers']} answers"
            )
        if line["why"]:
            print(f"{line['lang']}: {line['why']}")
    for name in left:
        print(f"left running: {name}")
    ran = all("ratio" in line for line in lines) and not left
    return 0 if ran and (not given.strict or all(line["ok"] for line in lines)) else 1


if __name__ == "__main__":
    sys.exit(main())

"""A long mixed load for the programs of each language, and what is left of it. See README.md."""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "hostile"))
sys.dont_write_bytecode = True

import clients  # noqa: E402
import pipe  # noqa: E402
from attack import ServerAttack  # noqa: E402
from load import Plan  # noqa: E402
from measure import Stopwatch, anonymous, children, cpu, descriptors, threads  # noqa: E402
from programs import MARK, ROOT, Client, Gone, HttpServer, usual  # noqa: E402
from sampler import LANGS, MIB, Sampler, columns, end_politely, raise_limit, say, sweep  # noqa: E402

SHARE, MEMORY, FEW = 0.05, 4 * MIB, 2
"""The limits: parts of what was there before, or so many bytes, descriptors and threads."""
SETTLE = 60.0
"""Seconds that a program has to become what it was."""
HOUR, MANY = 3600.0, 1_000_000
SECONDS = 45.0
FOR_EVER = 12 * HOUR
FILES = 20_000
ENVIRONMENT = {"EVERYTHING_SESSION_IDLE_TIMEOUT": "3", "EVERYTHING_TASKS": "2"}
"""Sessions and tasks end soon, so that what is left of them is seen."""
PARTS = {("server", "http"): 0.6, ("server", "stdio"): 0.2, ("client", "all"): 0.2}
"""The shares of calls and time."""
Json = dict[str, Any]


@dataclass
class Figures:
    """A program at rest."""

    memory: int
    descriptors: int
    threads: int
    children: int

    @classmethod
    def of(cls, pid: int) -> "Figures":
        return cls(anonymous(pid), descriptors(pid), threads(pid), len(children(pid)))

    def broken(self, before: "Figures") -> list[str]:
        """The limits that it is over."""
        why = []
        if (more := self.memory - before.memory) > max(MEMORY, before.memory * SHARE):
            why.append(f"{more / MIB:.1f} MiB more")
        return why + self.but_memory(before)

    def but_memory(self, before: "Figures") -> list[str]:
        """The limits besides that of memory."""
        why = []
        for name in ("descriptors", "threads", "children"):
            now, then = getattr(self, name), getattr(before, name)
            # Fewer threads are none that leaked: a pool, as Dispatch's, ends those that had nothing to do.
            if (now - then if name == "threads" else abs(now - then)) > max(FEW, then * SHARE):
                why.append(f"{now} {name}, {then} before")
        return why


class Victim:
    """A program under load: how it is loaded, and what it says of itself."""

    def __init__(self, program: Any, given: argparse.Namespace) -> None:
        self.program, self.given = program, given

    @property
    def pid(self) -> int:
        return self.program.pid

    def load(self, phase: str, calls: int, seconds: float) -> Json:
        raise NotImplementedError

    def gauges(self) -> Json | None:
        """Returns the program's own counts; `None` when it does not answer."""
        raise NotImplementedError

    def busy(self) -> list[str]:
        """Returns what is left of connections and calls that have gone."""
        gauges = self.gauges()
        if gauges is None:
            return ["it does not answer"]
        server = gauges.get("server", {})
        # The question for the gauges is a connection and a request itself.
        over = dict.fromkeys(("sessions", "streams", "listeners", "tasks", "bridge_queued", "bridge_ops"), 0)
        over |= {"in_flight": 1, "connections": 1, "bridge_calls": 1, "running": 0}
        have = {**server, "running": gauges.get("slow", {}).get("running", 0)}
        # A binding serves by an operation that goes on.
        over["bridge_ops"] = 2
        return [f"{have[name]} {name}" for name, most in over.items() if have.get(name, 0) > most]

    def begin(self) -> Figures:
        """Waits until it is at rest, and its memory moves no more."""
        end = Stopwatch(SETTLE)
        last, used, calm = anonymous(self.pid), cpu(self.pid), 0
        while not end.over and calm < 3:
            time.sleep(1.0)
            now, spent = anonymous(self.pid), cpu(self.pid)
            still = abs(now - last) < MIB // 4 and spent - used < 0.1
            calm = calm + 1 if still and not self.busy() else 0
            last, used = now, cpu(self.pid)
        return Figures.of(self.pid)

    def end(self, before: Figures) -> tuple[Figures, list[str]]:
        """Waits until it is as it was."""
        end = Stopwatch(SETTLE)
        while True:
            now = Figures.of(self.pid)
            why = [*now.broken(before), *self.busy()]
            if not why or end.over or not self.program.alive:
                return now, why
            time.sleep(1.0)


class Http(Victim):
    def load(self, phase: str, calls: int, seconds: float) -> Json:
        given = self.given
        workers = []
        for worker in range(given.processes):
            plan = Plan(
                host=self.program.host,
                port=self.program.port,
                seed=given.seed,
                worker=worker,
                clients=given.clients,
                calls=-(-calls // given.processes),
                seconds=seconds,
                phase=phase,
            )
            words = [sys.executable, str(HERE / "load.py"), json.dumps(asdict(plan))]
            environment = {**os.environ, MARK: given.mark, "PYTHONDONTWRITEBYTECODE": "1"}
            workers.append(subprocess.Popen(words, stdout=subprocess.PIPE, env=environment))
        all_of: Json = {"calls": 0, "failed": 0, "failures": [], "kinds": {}, "seconds": 0.0, "cpu": 0.0}
        for worker in workers:
            try:
                said = worker.communicate(timeout=seconds + 120.0)[0]
                facts = json.loads(said)
            except (subprocess.TimeoutExpired, ValueError):
                worker.kill()
                worker.wait()
                facts = {"calls": 0, "failed": 1, "failures": ["a load ended without a word"], "kinds": {}}
            for name in ("calls", "failed", "failures", "cpu"):
                all_of[name] += facts.get(name, 0)
            all_of["seconds"] = max(all_of["seconds"], facts.get("seconds", 0.0))
            for name, count in facts["kinds"].items():
                all_of["kinds"][name] = all_of["kinds"].get(name, 0) + count
        return all_of

    def gauges(self) -> Json | None:
        attack = ServerAttack(self.program, "http")
        said = attack.post(attack.call("test_metrics", b"{}"), attack.modern("tools/call", "test_metrics"))
        attack.close()
        with contextlib.suppress(KeyError, TypeError, ValueError, IndexError):
            return json.loads(said.json["result"]["content"][0]["text"]) if said else None
        return None


class Stdio(Victim):
    def load(self, phase: str, calls: int, seconds: float) -> Json:
        return pipe.Load(self.program, self.given.seed, phase, calls, seconds).run()

    def gauges(self) -> Json | None:
        said = self.program.ask("tools/call", {"name": "test_metrics", "arguments": {}}, 10.0)
        with contextlib.suppress(KeyError, TypeError, ValueError, IndexError):
            return json.loads(said["result"]["content"][0]["text"])
        return None


class Calling(Victim):
    def load(self, phase: str, calls: int, seconds: float) -> Json:
        return clients.Load(self.program, self.given.seed, phase, calls, seconds).run()

    def gauges(self) -> Json | None:
        return {} if self.program.call(10.0) else None


def start(side: str, transport: str, words: dict[str, list[str]], given: argparse.Namespace) -> tuple[Victim, Any]:
    """The program under load, and the good server that a client has."""
    if side == "client":
        peer = HttpServer(words["peer"], {}, given.mark)
        try:
            # Unlike the victims of hostile servers these pass on what they get.
            url = f"http://{peer.host}:{peer.port}/mcp"
            return Calling(Client(words["client"], {}, given.mark, url), given), peer
        except Gone:
            peer.stop(False)
            raise
    if transport == "http":
        return Http(HttpServer(words["server"], ENVIRONMENT, given.mark), given), None
    return Stdio(pipe.Pipe(words["server"], ENVIRONMENT, given.mark), given), None


def soak(lang: str, side: str, transport: str, given: argparse.Namespace, calls: int, seconds: float) -> Json:
    """One program: a warm-up, a measurement, the load, and another measurement; again where memory alone has grown."""
    words = usual(lang) | {"client": [str(ROOT / f"tests/cases/runners/{lang}/run")]}
    line: Json = {"lang": lang, "side": side, "transport": transport, "seed": given.seed}
    victim, peer = start(side, transport, words, given)
    try:
        say(f"{lang} {side} {transport}: warming up")
        warm = victim.load("w", calls, given.warm or max(5.0, min(30.0, seconds / 2)))
        failed, failures = warm["failed"], warm["failures"]
        # A heap that finds its size late grows once, a leak with every load.
        for phase in ("s", "again"):
            before = victim.begin()
            say(f"{lang} {side} {transport}: load, after {warm['calls']} calls of the same kinds")
            used = cpu(victim.pid)
            with Sampler(victim.pid) as sampler:
                facts = victim.load(phase, calls, seconds)
            used = cpu(victim.pid) - used
            say(f"{lang} {side} {transport}: {facts['calls']} calls, {facts['failed']} failed; waiting for rest")
            begin = time.monotonic()
            after, why = victim.end(before)
            rest = time.monotonic() - begin
            failed, failures = failed + facts["failed"], [*failures, *facts["failures"]]
            if failed or not why or after.but_memory(before) or victim.busy():
                break
            say(f"{lang} {side} {transport}: {'; '.join(why)}")
        gauges = victim.gauges()
        if failed:
            why.append(f"{failed} failures")
        if not victim.program.alive:
            why.append(f"ended with {victim.program.process.poll()}")
        if not victim.program.stop(True):
            why.append("did not end within 5 s when it was asked to")
        return line | {
            "calls": facts["calls"],
            "warm_calls": warm["calls"],
            "seconds": round(facts["seconds"], 2),
            "rate": round(facts["calls"] / max(0.001, facts["seconds"])),
            "cpu": round(used, 2),
            "load_cpu": round(facts.get("cpu", 0.0), 2),
            "before": asdict(before),
            "after": asdict(after),
            "peak": sampler.memory,
            "rest": round(rest, 1),
            "gauges": gauges,
            "kinds": facts["kinds"],
            "failed": failed,
            "failures": failures[:20],
            "again": phase == "again",
            "ok": not why,
            "why": "; ".join(why),
        }
    finally:
        victim.program.stop(False)
        if peer is not None:
            peer.stop(False)


def table(lines: list[Json]) -> str:
    """Returns the table that people read."""
    head = ["program", "calls", "seconds", "calls/s", "MiB", "descriptors", "threads", "rest", "verdict"]
    rows = [head]
    for line in lines:
        name = f"{line['lang']} {line['side']} {line['transport']}"
        if "before" not in line:
            rows.append([name, *["-"] * 7, line["why"]])
            continue
        before, after = line["before"], line["after"]
        memory = f"{before['memory'] / MIB:.1f} -> {after['memory'] / MIB:.1f} (most {line['peak'] / MIB:.1f})"
        pairs = [f"{before[what]} -> {after[what]}" for what in ("descriptors", "threads")]
        figures = [str(line["calls"]), f"{line['seconds']:.1f}", str(line["rate"]), memory, *pairs, f"{line['rest']} s"]
        rows.append([name, *figures, "ok" if line["ok"] else line["why"]])
    return columns(rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lang", action="append", choices=LANGS, help="may be repeated; all of them by default")
    parser.add_argument("--side", choices=["server", "client"])
    parser.add_argument("--transport", choices=["http", "stdio"], help="of servers")
    parser.add_argument("--seconds", type=float, help=f"of load for a language in all, {SECONDS:.0f} by default")
    parser.add_argument("--calls", type=int, help="for a language in all: the load ends with the last of them")
    parser.add_argument("--hour", action="store_true", help=f"{MANY} calls, for an hour at most")
    parser.add_argument("--warm", type=float, help="seconds of each load before the first measurement")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2, help="of the load over HTTP")
    parser.add_argument("--clients", type=int, default=16, help="of each such process")
    parser.add_argument("--out", type=Path, help="JSON lines, in place of standard output")
    given = parser.parse_args()
    given.mark = f"soak-{os.getpid()}"
    if given.hour:
        given.calls = given.calls or MANY
        given.seconds = given.seconds or HOUR
    elif given.calls is None:
        given.seconds = given.seconds or SECONDS
    given.calls = given.calls or sys.maxsize // 2
    given.seconds = given.seconds or FOR_EVER
    return given


def main() -> int:
    given = arguments()
    end_politely()
    raise_limit(FILES)
    chosen = {
        (side, transport): share
        for (side, transport), share in PARTS.items()
        if given.side in (None, side) and (given.transport in (None, transport) or transport == "all")
    }
    whole = sum(chosen.values())
    lines: list[Json] = []
    left: list[str] = []
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(given.out.open("w")) if given.out else sys.stdout
        # Not even an interrupted run leaves something running.
        stack.callback(lambda: left.extend(sweep(given.mark)))
        for lang in given.lang or LANGS:
            for (side, transport), share in chosen.items():
                calls, seconds = int(given.calls * share / whole), given.seconds * share / whole
                try:
                    line = soak(lang, side, transport, given, calls, seconds)
                except (Gone, OSError) as error:
                    line = {"lang": lang, "side": side, "transport": transport, "ok": False}
                    line["why"] = f"no program: {error}"
                lines.append(line)
                print(json.dumps(line), file=out, flush=True)
                for failure in line.get("failures", []):
                    say(f"  {failure}")
    print(table(lines))
    good = sum(line["ok"] for line in lines)
    print(f"{good} of {len(lines)} as they were before")
    for name in left:
        print(f"left running: {name}")
    return 0 if good == len(lines) and not left else 1


if __name__ == "__main__":
    sys.exit(main())

"""Sends hostile input to the programs of one language, and writes down what it costs them. See README.md."""

import argparse
import contextlib
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import rows  # noqa: E402
from attack import ClientAttack, ServerAttack  # noqa: E402
from measure import (  # noqa: E402
    Stopwatch,
    cpu,
    descriptors,
    forget_peak,
    marked,
    peak,
    rss,
)
from programs import MARK, Client, Gone, HttpServer, StdioServer, usual  # noqa: E402
from registry import CLIENT, HTTP, ROWS, SERVER, Row  # noqa: E402

rows.load()
MIB = 1 << 20
CPU, PEAK, WAIT = 0.3, 64 * MIB, 1.0
"""The limits: seconds, bytes above the level before, seconds of a good client."""
SLACK, SHARE = 4 * MIB, 0.05
QUIET, SETTLE, BUSY = 0.1, 3.0, 10.0
STILL = 1.0
"""Seconds: a look at whether the victim is idle, the time for memory to come back, the longest wait for idleness, and the time
after which memory that did not move is taken for kept."""
LOOSE = 8
"""Descriptors that may be more than before."""


class Bench:
    """The victims of one language, each started when it is needed and used again while it is well."""

    def __init__(self, words: dict[str, list[str]], mark: str) -> None:
        self.words, self.mark = words, mark
        self.victims: dict[tuple[Any, ...], Any] = {}
        self.units: dict[int, float] = {}
        self.peer: HttpServer | None = None
        self.complaints: list[str] = []

    def key(self, row: Row) -> tuple[Any, ...]:
        return (row.side, row.transport if row.side == SERVER else "", *sorted(row.env.items()))

    def victim(self, row: Row) -> Any:
        key = self.key(row)
        have = self.victims.get(key)
        if have is not None and have.alive:
            return have
        if have is not None:
            self.drop(row)
        env = {"EVERYTHING_TASKS": "60", "EVERYTHING_SSE": "yes", **row.env}
        if row.side == CLIENT:
            if self.peer is None or not self.peer.alive:
                self.peer = HttpServer(self.words["peer"], {}, self.mark)
            url = f"http://{self.peer.host}:{self.peer.port}/mcp"
            made: Any = Client(self.words["client"], row.env, self.mark, url)
        else:
            made = (HttpServer if row.transport == HTTP else StdioServer)(self.words["server"], env, self.mark)
        self.victims[key] = made
        self.warm(made, row)
        return made

    def warm(self, victim: Any, row: Row) -> None:
        """Warms the victim up: what is done for the first time is not the attacker's doing."""
        if isinstance(victim, Client):
            for transport in ("stdio", HTTP):
                for size in (1, 3, 3):
                    self.warm_client(ClientAttack(victim, transport), size * MIB)
        else:
            attack = ServerAttack(victim, row.transport)
            for _ in range(20):
                attack.say(attack.call("echo", b'{"text":"x"}'), name="echo")
            for size in (1, 3, 3):
                attack.say(attack.call("echo", b'{"text":"%s"}' % (b"x" * (size * MIB))), name="echo")
            if attack.http:
                self.warm_sockets(attack)
            attack.close()
        if victim.good is None:
            return
        # A good call's own cost is taken off; it is the mean of many.
        self.idle(victim, 2.0)
        before = cpu(victim.pid)
        if isinstance(victim, Client):
            count = sum(victim.call(2.0) for _ in range(40))
        else:
            from good import Good as Quick

            quick = Quick(victim.host, victim.port, victim.tls, victim.token)
            count = sum(quick.call() for _ in range(40))
            quick.close()
        self.units[victim.pid] = (cpu(victim.pid) - before) / max(1, count)

    def warm_client(self, attack: ClientAttack, size: int) -> None:
        """A good server: a hundred tools, an answer that is checked, a question with a form, and a long text."""
        checked = b'{"type":"object","properties":{"a":{"type":"string","pattern":"^[a-z]+$"}}}'
        form = b'{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}}}'
        tool = b'{"name":"t%d","description":"' + b"d" * 2000 + b'","inputSchema":{"type":"object"},"outputSchema":%s}'

        def answer(x: Any) -> None:
            asked = b'{"message":"?","requestedSchema":%s}' % form
            x.say(b'{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":%s}' % asked)
            x.done(b'{"content":[{"type":"text","text":"%s"}],"structuredContent":{"a":"b"}}' % (b"x" * size))

        tools = b",".join(tool % (n, checked) for n in range(100))
        attack.play(
            {"tools/list": b'{"tools":[%s]}' % tools, "tools/call": answer},
            answers={"elicitation": {"action": "decline"}},
        )
        attack.do("list_tools")
        attack.do("call_tool", name="t1", arguments={}, timeout=3)
        attack.close()
        attack.end_server()

    def warm_sockets(self, attack: ServerAttack) -> None:
        """The load of a good day: some sessions, and two hundred clients at once."""
        for _ in range(3):
            session = attack.session()
            session.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
            session.delete()
        body = attack.call("echo", b'{"text":"x"}')
        sockets = [attack.connect() for _ in range(200)]
        for sock in sockets:
            sock.send(attack.head(len(body), attack.modern("tools/call", "echo")) + body)
        for sock in sockets:
            sock.answer(2.0)

    def idle(self, victim: Any, limit: float) -> bool:
        """Waits until the victim does nothing but answer the good client."""
        end = Stopwatch(limit)
        unit = self.units.get(victim.pid, 0.0)
        before = cpu(victim.pid)
        while not end.over:
            time.sleep(QUIET)
            now = cpu(victim.pid)
            if now - before <= 0.02 + 4 * unit or not victim.alive:
                return True
            before = now
        return False

    def drop(self, row: Row) -> None:
        victim = self.victims.pop(self.key(row), None)
        if victim is not None:
            victim.stop(False)

    def close(self) -> None:
        for key, victim in self.victims.items():
            if not victim.stop(True):
                self.complaints.append(f"{'.'.join(map(str, key))}: did not end within 5 s when it was asked to")
        if self.peer is not None:
            self.peer.stop(True)
        end = Stopwatch(3.0)
        while (left := marked(f"{MARK}={self.mark}")) and not end.over:
            time.sleep(0.05)
        for pid in left:
            with contextlib.suppress(OSError):
                name = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:120]
                self.complaints.append(f"left running: {name}")
                os.kill(pid, signal.SIGKILL)


def play(bench: Bench, row: Row) -> dict[str, Any]:
    """Plays a row and judges it."""
    victim = bench.victim(row)
    pid = victim.pid
    attack: Any = (ClientAttack if row.side == CLIENT else ServerAttack)(victim, row.transport)
    bench.idle(victim, 3.0)
    before_fds = descriptors(pid)
    memory = rss(pid)
    forget_peak(pid)
    used = cpu(pid)
    said: dict[str, Any] = {"count": 0, "wait": None, "failed": 0}
    if victim.good:
        victim.good.start()
    why: list[str] = []
    trouble: list[str] = []

    def run() -> None:
        try:
            row.play(attack, *row.args)
        except Exception as error:  # noqa: BLE001 - a mistake of a row is told, and the next one played
            trouble.append(f"the row failed: {type(error).__name__}: {error}")
            if os.environ.get("HOSTILE_TRACE"):
                traceback.print_exc()

    thread = threading.Thread(target=run, daemon=True)
    start = time.monotonic()
    thread.start()
    thread.join(40.0)
    if thread.is_alive():
        trouble.append("the row did not end")
    if row.side == CLIENT:
        attack.close()
        left = attack.left_over()
        attack.end_server()
        if left and victim.alive:
            why.append("its server was left running")
            for one in left:
                with contextlib.suppress(OSError):
                    os.kill(one, signal.SIGKILL)
    else:
        attack.close()
    if not bench.idle(victim, BUSY):
        why.append(f"still busy after {BUSY:.0f} s")
    took = time.monotonic() - start
    if victim.good:
        said = victim.good.end()
    unit = bench.units.get(pid, 0.0)
    spent = max(0.0, cpu(pid) - used - unit * said["count"])
    most = max(0, peak(pid) - memory)
    well = (
        victim.alive and victim.call(5.0) if not isinstance(victim, HttpServer) else victim.alive and fresh(victim, row)
    )
    if row.side == CLIENT and well:
        # A client is let go at the latest when there is another one of that number.
        again = victim.do(5.0, do="connect", client=1, target={"url": victim.url}, options={})
        well = again is not None and "result" in again and victim.do(5.0, do="close", client=1) is not None
    kept = rss(pid) - memory
    allowed = max(SLACK, int(memory * SHARE))
    end, still = Stopwatch(SETTLE), Stopwatch(STILL)
    while (kept > allowed or descriptors(pid) > before_fds + LOOSE) and not end.over and victim.alive:
        time.sleep(0.05)
        now = rss(pid) - memory
        if now < kept or descriptors(pid) > before_fds + LOOSE:
            still = Stopwatch(STILL)
        kept = now
        if still.over:
            break
    fds = descriptors(pid) - before_fds
    if not well:
        why.append("does not answer any more" if victim.alive else f"ended with {victim.process.poll()}")
    if spent > CPU:
        why.append(f"{spent:.2f} s of CPU")
    if most > PEAK:
        why.append(f"{most / MIB:.0f} MiB at most")
    if well and kept > allowed:
        why.append(f"{kept / MIB:.0f} MiB not given back")
    if well and fds > LOOSE:
        why.append(f"{fds} descriptors left")
    if row.answer and said["wait"] is not None and said["wait"] >= WAIT:
        why.append(f"a good client waited {said['wait']:.1f} s")
    if row.answer and said["failed"]:
        why.append(f"{said['failed']} of {said['count']} good calls failed")
    if attack.note:
        why.append(attack.note)
    why += trouble
    if row.alone or not well or kept > allowed or fds > LOOSE or thread.is_alive():
        bench.drop(row)
    return {
        "name": row.name,
        "side": row.side,
        "transport": row.transport,
        "source": row.source,
        "sent": attack.sent,
        "cpu": round(spent, 3),
        "peak": most,
        "left": kept,
        "fds": fds,
        "wait": None if said["wait"] is None else round(said["wait"], 3),
        "alive": well,
        "took": round(took, 2),
        "ok": not why,
        "why": "; ".join(why),
    }


def fresh(server: HttpServer, row: Row) -> bool:
    """A good call on a new connection; where there is no token for one, any answer will do."""
    from good import Good as Quick

    quick = Quick(server.host, server.port, server.tls, server.token)
    try:
        return quick.call() or (not row.answer and quick.answered)
    finally:
        quick.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lang", default="rust")
    parser.add_argument("--victim-json", help="command lines: server, client, peer")
    parser.add_argument("--out", type=Path, help="JSON lines, written as each row ends")
    parser.add_argument("--only", action="append", default=[], help="rows whose name has this; may be repeated")
    parser.add_argument("--side", choices=[SERVER, CLIENT])
    parser.add_argument("--core", action="store_true", help="the quick subset")
    parser.add_argument("--list", action="store_true", help="print the rows")
    given = parser.parse_args()
    chosen = [
        row
        for row in ROWS
        if (not given.only or any(part in row.name for part in given.only))
        and (not given.core or row.core)
        and (not given.side or row.side == given.side)
    ]
    if given.list:
        for row in chosen:
            print(f"{row.side:6} {row.transport:5} {'core' if row.core else '    '} {row.name:44} {row.source}")
        print(f"{len(chosen)} rows")
        return 0
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 1 << 16) if hard > 0 else 1 << 16, hard))
    words = usual(given.lang) | (json.loads(given.victim_json) if given.victim_json else {})
    bench = Bench(words, f"{given.lang}-{os.getpid()}")
    out = given.out.open("w") if given.out else None
    bad = 0
    # Rows of one victim come one after the other.
    chosen.sort(key=lambda row: bench.key(row))
    try:
        for row in chosen:
            try:
                line = play(bench, row)
            except Gone as error:
                line = {"name": row.name, "side": row.side, "transport": row.transport, "source": row.source}
                line |= {"sent": 0, "cpu": 0, "peak": 0, "left": 0, "fds": 0, "wait": None, "alive": False, "took": 0}
                line |= {"ok": False, "why": f"no victim: {error}"}
            line = {"lang": given.lang, **line}
            bad += not line["ok"]
            if out:
                out.write(json.dumps(line) + "\n")
                out.flush()
            wait = "-" if line["wait"] is None else f"{line['wait']:.2f}"
            print(
                f"{'ok  ' if line['ok'] else 'FAIL'} {line['side']:6} {line['name']:44} {line['sent']:>9} B"
                f" {line['cpu']:6.2f} s {line['peak'] / MIB:6.1f} MiB {line['left'] / MIB:6.1f} left"
                f" wait {wait:>5} took {line['took']:5.1f}  {line['why']}",
                flush=True,
            )
    finally:
        bench.close()
        for complaint in bench.complaints:
            print(f"FAIL {complaint}", flush=True)
        if out:
            for complaint in bench.complaints:
                out.write(json.dumps({"lang": given.lang, "name": "end", "ok": False, "why": complaint}) + "\n")
            out.close()
    print(f"{given.lang}: {len(chosen)} rows, {bad + len(bench.complaints)} over a limit")
    return 1 if bad or bench.complaints else 0


if __name__ == "__main__":
    sys.exit(main())

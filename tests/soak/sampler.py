"""Helpers of both harnesses for processes, besides starting them."""

import contextlib
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

from measure import Stopwatch, anonymous, descriptors, marked
from programs import MARK

LANGS = ["rust", "python", "node", "swift"]
MIB = 1 << 20


class Sampler:
    """The most memory and descriptors of a process while something runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.memory = self.descriptors = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        while not self.over.wait(0.5):
            self.memory = max(self.memory, anonymous(self.pid))
            self.descriptors = max(self.descriptors, descriptors(self.pid))

    def __enter__(self) -> "Sampler":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def sweep(mark: str) -> list[str]:
    """Ends what was left running, and names it."""
    end = Stopwatch(3.0)
    while (left := marked(f"{MARK}={mark}")) and not end.over:
        time.sleep(0.05)
    names = []
    for pid in left:
        with contextlib.suppress(OSError):
            names.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:120])
            os.kill(pid, signal.SIGKILL)
    return names


def end_politely() -> None:
    """Lets whoever ends this process end what it has started, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def raise_limit(wanted: int) -> int:
    """Lets this process and those that it starts open so many files, or as many as the system allows. Says how many."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = int(Path("/proc/sys/fs/nr_open").read_text())
    wanted = min(wanted, most)
    if 0 <= hard < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
            return wanted
        wanted = hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def columns(rows: list[list[str]]) -> str:
    """A table, whose last column is as wide as it is."""
    wide = [max(len(row[n]) for row in rows) for n in range(len(rows[0]) - 1)]
    return "\n".join("  ".join([*(cell.ljust(w) for cell, w in zip(row, wide)), row[-1]]) for row in rows)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

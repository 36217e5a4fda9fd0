"""Figures of a process, read from /proc."""

import contextlib
import os
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on, which is the first; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def alive(pid: int) -> bool:
    fields = stat(pid)
    return bool(fields) and fields[0] not in "ZX"


def cpu(pid: int) -> float:
    """Seconds of CPU so far, finer than the clock's ticks where the kernel tells each thread's."""
    fields = stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS if fields else 0.0


def rss(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def status(pid: int, field: str) -> int:
    """A number of /proc/PID/status, 0 when the process is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1])
    return 0


def anonymous(pid: int) -> int:
    """Resident memory that no file is behind."""
    return status(pid, "RssAnon") * 1024


def threads(pid: int) -> int:
    return status(pid, "Threads")


def forget_peak(pid: int) -> None:
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak(pid: int) -> int:
    """The most memory that was resident since `forget_peak`."""
    return status(pid, "VmHWM") * 1024


def descriptors(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def children(pid: int) -> list[int]:
    """The processes below this one."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := stat(int(entry.name))) and fields[0] not in "ZX":
            below.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        for child in below.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def marked(mark: str) -> list[int]:
    """The processes that have this in their environment, without this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


class Stopwatch:
    """A deadline, for bounded waits."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self.end - time.monotonic())

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.end

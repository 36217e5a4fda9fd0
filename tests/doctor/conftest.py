"""Runs the tests of this folder several at a time, as most of them wait; nothing that they start outlives them."""

import asyncio
import ctypes
import inspect
import os
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

AT_ONCE = int(os.environ.get("ZOO_AT_ONCE", "8"))
"""Tests that run together. They wait most of the time: two cores are enough for eight."""
LEAVES = 5.0
"""Seconds for the last processes to end."""
ADOPT = 36
"""PR_SET_CHILD_SUBREAPER of Linux."""
# A server that nobody ends, as its test was killed, ends itself.
os.environ.setdefault("ZOO_SECONDS", "170")

POOL = ThreadPoolExecutor(AT_ONCE)
RUNNING: dict[str, Future[None]] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The filters of warnings are the process's, not a thread's: all tests here have the same.
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    if sys.platform == "linux":
        # Processes whose parents have ended become children of this one, which sees them at the end.
        ctypes.CDLL(None).prctl(ADOPT, 1, 0, 0, 0)
    for item in session.items:
        if item.path.parent == Path(__file__).parent and isinstance(item, pytest.Function):
            given = item.callspec.params if hasattr(item, "callspec") else {}
            RUNNING[item.nodeid] = POOL.submit(run, item.obj, dict(given))


def run(test: Callable[..., Any], given: dict[str, Any]) -> None:
    """Runs a test, which takes its parameters and `tmp_path`, and no other fixture."""
    with tempfile.TemporaryDirectory() as folder:
        if "tmp_path" in inspect.signature(test).parameters:
            given["tmp_path"] = Path(folder)
        outcome = test(**given)
        if inspect.iscoroutine(outcome):
            asyncio.run(outcome)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    running = RUNNING.get(pyfuncitem.nodeid)
    if running is None:
        return None
    running.result()
    return True


def pytest_sessionfinish(session: pytest.Session) -> None:
    # Without Linux nothing is known of processes, and tests end by their own limits.
    POOL.shutdown(wait=sys.platform != "linux", cancel_futures=True)
    is_over = all(running.done() for running in RUNNING.values())
    left = [*ended_at_last(LEAVES if is_over else 0)]
    while not all(running.done() for running in RUNNING.values()):
        # Tests of a run that was interrupted wait for servers, which are ended here.
        left += ended_at_last(0.1)
    if is_over and left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter: Any = session.config.pluginmanager.getplugin("terminalreporter")
        for process in left:
            reporter.write_line(f"\nERROR tests/doctor: the process {process} was left behind")


def children() -> Iterator[int]:
    """The children of this process that have not ended."""
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = place.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid() and state not in "ZX":
            yield int(place.parent.name)


def ended_at_last(seconds: float) -> Iterator[str]:
    """Waits for all children to end, and ends those that do not: their ids and command lines."""
    if sys.platform != "linux":
        return
    for child in [*children()]:
        try:
            watched = os.pidfd_open(child)
        except ProcessLookupError:
            continue
        try:
            if not select.select([watched], [], [], seconds)[0]:
                words = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ")
                os.kill(child, signal.SIGKILL)
                yield f"{child} {words.decode(errors='replace').strip()}"
        except (OSError, ValueError):
            continue
        finally:
            os.close(watched)

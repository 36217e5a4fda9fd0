"""A program on standard streams whose input and output are written down: tee.py [--joined] LOG COMMAND...

The program's id is in LOG.pid. Joined bytes are all that it writes within JOINED seconds, passed on in one piece.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

START = time.monotonic()
JOINED = 0.05


def read(source: int, joined: bool) -> bytes:
    if joined:
        select.select([source], [], [])
        time.sleep(JOINED)
    return os.read(source, 65536)


def copy(source: int, target: int, log: int, way: bytes, joined: bool = False) -> None:
    fresh = True
    with contextlib.suppress(OSError):
        while piece := read(source, joined):
            head = b"" if not fresh else b"\n[%8.3f] %s " % (time.monotonic() - START, way)
            os.write(log, head + piece)
            fresh = piece.endswith(b"\n")
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(target, rest) :]
    with contextlib.suppress(OSError):
        os.close(target)


def main(words: list[str]) -> int:
    joined = words[0] == "--joined"
    path, *command = words[joined:]
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    # Clients that give their servers little of the environment take the mark of the cell away, too.
    env = {**os.environ, "TRICORN_WILD_CELL": Path(path).name.removesuffix(".log")}
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    Path(path + ".pid").write_text(str(child.pid))
    assert child.stdin
    assert child.stdout
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    signal.signal(signal.SIGINT, lambda *_: child.send_signal(signal.SIGINT))
    threading.Thread(target=copy, args=(0, child.stdin.fileno(), log, b"client:"), daemon=True).start()
    copy(child.stdout.fileno(), 1, log, b"server:", joined)
    return child.wait()


status = main(sys.argv[1:])
os._exit(status if status >= 0 else 128 - status)

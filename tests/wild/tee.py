"""A program on standard streams whose input and output are written down: tee.py LOG COMMAND...; its id: LOG.pid."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

START = time.monotonic()


def copy(source: int, target: int, log: int, way: bytes) -> None:
    fresh = True
    with contextlib.suppress(OSError):
        while piece := os.read(source, 65536):
            head = b"" if not fresh else b"\n[%8.3f] %s " % (time.monotonic() - START, way)
            os.write(log, head + piece)
            fresh = piece.endswith(b"\n")
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(target, rest) :]
    with contextlib.suppress(OSError):
        os.close(target)


def main() -> int:
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    Path(sys.argv[1] + ".pid").write_text(str(child.pid))
    assert child.stdin
    assert child.stdout
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    signal.signal(signal.SIGINT, lambda *_: child.send_signal(signal.SIGINT))
    threading.Thread(target=copy, args=(0, child.stdin.fileno(), log, b"client:"), daemon=True).start()
    copy(child.stdout.fileno(), 1, log, b"server:")
    return child.wait()


status = main()
os._exit(status if status >= 0 else 128 - status)

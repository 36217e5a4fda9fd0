"""The command `tricorn`: a script of the wheel, and `python -m tricorn`."""

from __future__ import annotations

import signal
import sys

from . import _core


def main() -> int:
    """Runs the command with the process's arguments; returns the status to end the process with."""
    # Until the command listens, Ctrl-C ends the process as it ends any other program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.command(sys.argv[1:], sys.executable or None)


if __name__ == "__main__":
    sys.exit(main())

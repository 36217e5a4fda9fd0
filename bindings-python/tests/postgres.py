"""A PostgreSQL of the tests' own: that of the machine, or the one that `cargo xtask setup` unpacks."""

from __future__ import annotations

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TREE = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
NONE = "no PostgreSQL: install Debian's package, or run cargo xtask setup"


class Unfit(Exception):  # noqa: N818 - what is wrong is the machine
    """There is no PostgreSQL, or it does not start."""


def folders(tree: Path) -> list[str]:
    """Folders of its programs; Debian has them beside the path, since there may be several versions."""
    by_version = sorted((int(re.findall(r"\d+", one)[0]), one) for one in glob.glob("/usr/lib/postgresql/*/bin"))
    installed = [one for _, one in by_version]
    found = [*reversed(installed), f"{tree}/target/postgres/bin"]
    on_path = shutil.which("initdb")
    return [*([str(Path(on_path).resolve().parent)] if on_path else []), *found]


class Postgres:
    """A server with a socket in a folder of its own, which keeps nothing after `stop`."""

    def __init__(self, tree: Path = TREE) -> None:
        found = [] if sys.platform == "win32" else [one for one in folders(tree) if Path(one, "postgres").is_file()]
        if not found:
            raise Unfit(NONE)
        self.programs = found[0]
        self.folder = Path(tempfile.mkdtemp(prefix="tricorn-postgres-"))
        self.data, self.log = self.folder / "data", self.folder / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self.who: dict[str, Any] = {}
        if os.geteuid() == 0:  # it refuses to run as root
            import pwd

            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self.who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        # The libraries of an unpacked one are below it. Its messages are read by the tests, in no other language.
        libraries = ":".join(glob.glob(f"{tree}/target/postgres/usr/lib/*-linux-*"))
        own = {"LD_LIBRARY_PATH": libraries} if self.programs.startswith(str(tree)) else {}
        self.environment = {**os.environ, **own, "LC_ALL": "C", "HOME": str(self.folder)}

    def address(self, database: str = "postgres") -> str:
        return f"postgresql:///{database}?host={self.folder}&user=postgres"

    def run(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            try:
                return subprocess.Popen(
                    [f"{self.programs}/{name}", *words],
                    cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.who,
                )  # fmt: skip
            except OSError as why:  # such as a folder that `nobody` may not enter
                raise Unfit(f"PostgreSQL cannot be started: {why}") from None

    def start(self) -> None:
        """Starts it, also again after it was stopped."""
        if not self.data.exists():
            made = self.run(
                "initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
            )
            if made.wait(PATIENCE):
                raise Unfit(f"PostgreSQL has made no database: {self.said()}")
        words = {"listen_addresses": "", "unix_socket_directories": str(self.folder), "fsync": "off", "jit": "off"}
        settings = [word for name, value in words.items() for word in ("-c", f"{name}={value}")]
        self.process = self.run("postgres", "-D", str(self.data), *settings)
        end = time.monotonic() + PATIENCE
        while self.run("pg_isready", "-q", "-h", str(self.folder)).wait(PATIENCE):
            if self.process.poll() is not None or time.monotonic() > end:
                raise Unfit(f"PostgreSQL does not start: {self.said()}")
            time.sleep(0.02)

    def end(self) -> None:
        """Ends it at once, as a machine does that loses power."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(PATIENCE)
            self.process = None

    def stop(self) -> None:
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def said(self) -> str:
        """The last lines that it wrote."""
        return " / ".join(self.log.read_text(errors="replace").splitlines()[-3:])

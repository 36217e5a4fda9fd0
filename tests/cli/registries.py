"""Installs the servers of `foreign/servers.toml` into `target/foreign`, those of a registry in one go."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # a dependency of pytest there

Json = dict[str, Any]

HERE = Path(__file__).parent
FOREIGN = HERE.parents[1] / "target/foreign"
SERVERS: dict[str, Json] = {
    server["name"]: server for server in tomllib.loads((HERE / "foreign/servers.toml").read_text("utf-8"))["server"]
}
NEEDED = {"npm": ["node", "npm"], "pypi": [], "go": ["go"]}
"""Programs that an installation needs; pip belongs to the Python that runs the tests."""
LIMIT = 15 * 60
"""Seconds that a registry may take."""
QUIET = {"update_notifier": "false", "loglevel": "error", "audit": "false", "fund": "false"}


def missing(registry: str) -> str | None:
    """A program that the servers of a registry need and this machine does not have."""
    return next((program for program in NEEDED[registry] if shutil.which(program) is None), None)


def programs(server: Json) -> Path:
    """The folder of a server's programs."""
    registry: str = server["registry"]
    if registry == "go":
        return FOREIGN / "go" / re.sub(r"[^\w.-]", "-", server["package"])
    return FOREIGN / registry / ("node_modules/.bin" if registry == "npm" else "bin")


def install(registry: str) -> None:
    """Installs all servers of a registry, unless the same ones are there."""
    servers = [server for server in SERVERS.values() if server["registry"] == registry]
    packages = sorted({server["package"] for server in servers})
    stamp = FOREIGN / f"{registry}.stamp"
    now = "\n".join([platform.machine(), sys.version, *packages])
    there = all(programs(server).is_dir() for server in servers)
    if there and stamp.is_file() and stamp.read_text("utf-8") == now:
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(FOREIGN / registry, ignore_errors=True)
    (FOREIGN / registry).mkdir(parents=True)
    INSTALLERS[registry](packages)
    stamp.write_text(now, "utf-8")


def npm(packages: Sequence[str]) -> None:
    env = {f"npm_config_{name}": value for name, value in QUIET.items()}
    folder = str(FOREIGN / "npm")
    made(["npm", "install", "--no-save", "--no-package-lock", "--prefix", folder, *packages], **env)


def pypi(packages: Sequence[str]) -> None:
    # The pip of these tests installs into the other environment: to give that one its own takes longer than the rest.
    folder = FOREIGN / "pypi"
    made([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python")]
    made([*pip, "install", "--quiet", "--disable-pip-version-check", *packages])


def go(packages: Sequence[str]) -> None:
    # Each module is built with the versions that its makers chose.
    for package in packages:
        made(["go", "install", package], GOBIN=str(programs({"registry": "go", "package": package})))


INSTALLERS: dict[str, Callable[[Sequence[str]], None]] = {"npm": npm, "pypi": pypi, "go": go}


def made(words: list[str], **env: str) -> None:
    """Runs an installer up to its end."""
    done = subprocess.run(
        words,
        cwd=FOREIGN,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=LIMIT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: status {done.returncode}\n{done.stdout[-2000:]}")

"""Installs the wheel of a folder as a user does, from an index on loopback, and runs the first program of the README.

    python3 tests/packages/python.py target/dist

The environment is new, its HOME is empty, and no Rust is on its path. Python 3.10 or newer, its standard library.
"""

import argparse
import contextlib
import functools
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

SERVER = '''\
from tricorn import Server

app = Server("demo")


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if __name__ == "__main__":
    app.run()
'''
CALL = """\
import asyncio
import importlib.metadata
import pathlib
import sys

import tricorn

here = pathlib.Path(tricorn.__file__)
assert "site-packages" in here.parts, here
assert (here.parent / "py.typed").is_file()
facts = importlib.metadata.metadata("tricorn")
assert facts["License-Expression"] == "MIT OR Apache-2.0", facts
assert {"LICENSE-APACHE", "LICENSE-MIT"} <= set(facts.get_all("License-File")), facts
assert sorted(facts.get_all("Provides-Extra")) == ["otel", "pydantic"], facts


async def main():
    async with tricorn.connect([sys.executable, "server.py"]) as client:
        print((await client.call_tool("add", {"a": 1, "b": 2})).text)


asyncio.run(main())
"""
EXPECTED = {"msgspec", "tricorn"}
"""The distributions that an installation has."""
IN_WHEEL = ("py.typed", "licenses/LICENSE-APACHE", "licenses/LICENSE-MIT", "sboms/")


def path_without_rust() -> str:
    """The directories of PATH in which there is no cargo."""
    places = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(
        place for place in places if not any(Path(place, name).exists() for name in ("cargo", "rustc"))
    )


def index(wheel: Path, place: Path) -> None:
    """A simple index with the wheel, and with what it depends on as this machine's own index has it."""
    (place / "tricorn").mkdir(parents=True)
    shutil.copy(wheel, place / "tricorn")
    others = place / "msgspec"
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    subprocess.run([*words, "--dest", str(others), "msgspec>=0.19"], check=True)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Lists folders as a simple index is listed."""

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def served(place: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(place))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path, help="folder with the wheel")
    wheels = sorted(parser.parse_args().dist.rglob("tricorn-*.whl"))
    if len(wheels) != 1:
        parser.error(f"one wheel is expected, found {[str(wheel) for wheel in wheels]}")
    (wheel,) = wheels
    names = zipfile.ZipFile(wheel).namelist()
    # Those of the crates inside come with the packing of what is published.
    parts = [*IN_WHEEL, *(["licenses/THIRD-PARTY-LICENSES.txt"] if "manylinux_2_17" in wheel.name else [])]
    missing = [part for part in parts if not any(part in name for name in names)]
    assert not missing, f"the wheel has no {missing}: {names}"
    with tempfile.TemporaryDirectory(prefix="tricorn-package-") as folder:
        work = Path(folder)
        index(wheel, work / "simple")
        home = work / "home"
        home.mkdir()
        env = {
            "HOME": str(home),
            "PATH": path_without_rust(),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_CONFIG_FILE": os.devnull,
        }
        (work / "server.py").write_text(SERVER)
        (work / "call.py").write_text(CALL)
        python = str(work / "venv" / "bin" / "python")
        venv.create(work / "venv", with_pip=True)
        run = functools.partial(subprocess.run, cwd=work, env=env, check=True, text=True, stdout=subprocess.PIPE)
        with served(work / "simple") as url:
            start = time.monotonic()
            run([python, "-m", "pip", "install", "--quiet", "--index-url", url, "tricorn"])
            answer = run([python, "call.py"]).stdout.strip()
            took = time.monotonic() - start
        assert answer == "3", answer
        command = str(work / "venv" / "bin" / "tricorn")
        for words in ([command], [python, "-m", "tricorn"]):
            called = run([*words, "call", "server.py", "add", "a=1", "b=2"]).stdout
            assert called == "3\n", called
        listed = run([python, "-m", "pip", "list", "--format=freeze"]).stdout.split()
        found = {line.split("==")[0].lower() for line in listed} - {"pip", "setuptools", "wheel"}
        assert found == EXPECTED, found
        size = wheel.stat().st_size
        print(f"{wheel.name}: {size / 1e6:.1f} MB, installed and called in {took:.1f} s, {len(found)} distributions")


if __name__ == "__main__":
    main()

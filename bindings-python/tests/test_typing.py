"""Types: strict checkers find nothing, in the package and in programs that use it; the stub is the module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
    from typing import Annotated

    from msgspec import Meta

    from tricorn import Client, Context, Image, Server, CallToolResult, connect

    app = Server("demo", page_size=10, title="Demo")


    @app.tool
    async def add(a: int, b: int = 1, *, ctx: Context) -> int:
        ctx.progress(1, 2, "half")
        return a + b


    @app.tool(title="Picture", run_in_thread=False)
    def picture(n: Annotated[int, Meta(ge=0)]) -> Image:
        return Image(bytes(n))


    async def main() -> int:
        total: int = await add(1, ctx=...)  # type: ignore[arg-type]
        picture("x")  # type: ignore[arg-type]
        async with connect("python x.py", revision="2025-11-25") as client:
            result: CallToolResult = await client.call_tool("add", {"a": total}, timeout=None)
        with Client({"url": "https://example.com"}) as sync:
            return result.to(int) + sync.call_tool("add").to(int)


    Server("x", page_sizes=1)  # type: ignore[call-arg]
    app.tool(titel="x")  # type: ignore[call-overload]
    app.run(http="127.0.0.1:8000", allowed_hosts=["example.com"])
"""


def check(*command: str | Path) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def write(folder: Path, first_line: str) -> Path:
    path = folder / "program.py"
    path.write_text(first_line + textwrap.dedent(PROGRAM), encoding="utf-8")
    return path


def test_the_stub_is_the_compiled_module() -> None:
    check(sys.executable, "-m", "mypy.stubtest", "tricorn._core", "--mypy-config-file", "pyproject.toml")


def test_programs_are_typed_for_mypy(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    check(sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", path)


def test_programs_are_typed_for_pyright(tmp_path: Path) -> None:
    places = (ROOT / "target/tools/node_modules/.bin", Path(sys.executable).parent)
    pyright = shutil.which("pyright", path=os.pathsep.join(map(str, places)))
    if pyright is None:
        pytest.skip("pyright is not installed: cargo xtask setup gets it")
    path = write(tmp_path, "# pyright: strict, reportUnnecessaryTypeIgnoreComment=true")
    check(pyright, "--pythonpath", sys.executable, path)

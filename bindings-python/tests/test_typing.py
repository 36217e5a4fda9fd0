"""Types: strict checkers find nothing, in the package and in programs that use it; the stub is the module."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
    from typing import Annotated

    from msgspec import Meta

    from tricorn import Client, Context, Image, Server, ToolResult, connect

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
            result: ToolResult = await client.call_tool("add", {"a": total}, timeout=None)
        with Client({"url": "https://example.com"}) as sync:
            return result.to(int) + sync.call_tool("add").to(int)


    Server("x", page_sizes=1)  # type: ignore[call-arg]
    app.tool(titel="x")  # type: ignore[call-overload]
    app.run(http="127.0.0.1:8000", allowed_hosts=["example.com"])
"""


def check(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_strict() -> None:
    check("mypy", "--strict")


def test_the_stub_is_the_compiled_module() -> None:
    check("mypy.stubtest", "tricorn._core", "--mypy-config-file", "pyproject.toml")


def test_pyright_strict() -> None:
    check("pyright", "--pythonpath", sys.executable)


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_programs_are_typed(checker: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    text = textwrap.dedent(PROGRAM)
    if checker == "mypy":
        path.write_text(text)
        check("mypy", "--strict", "--warn-unused-ignores", "--config-file", "pyproject.toml", str(path))
    else:
        path.write_text("# pyright: strict, reportUnnecessaryTypeIgnoreComment=true\n" + text)
        check("pyright", "--pythonpath", sys.executable, str(path))


def test_ruff() -> None:
    check("ruff", "check")
    check("ruff", "format", "--check")

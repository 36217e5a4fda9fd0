"""FastMCP on the command line: a process for each question."""

import asyncio
import contextlib
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from checks import USER, Session, main, text_of

PROGRAM = str(Path(sys.executable).with_name("fastmcp"))


class Theirs(Session):
    answers = ("elicitation",)

    def __init__(self, server: str) -> None:
        self.server = server

    async def ask(self, what: str, *words: str) -> Any:
        pipe = asyncio.subprocess.PIPE
        command = [PROGRAM, what, self.server, *words, "--json", "--auth", "none"]
        env = {**os.environ, "PYTHONUTF8": "1", "NO_COLOR": "1"}
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
        try:
            # It asks its user for each member of a form by itself, and takes a line for each.
            out, errors = await process.communicate(f"{USER['email']}\n{USER['email']}\n".encode())
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        said = out.decode()
        # The questions stand before the answer.
        start = re.search(r"[\[{]\n", said)
        if start is None:
            raise RuntimeError((said + errors.decode())[-400:])
        return json.loads(said[start.start() :])

    async def tools(self) -> list[str]:
        return [tool["name"] for tool in (await self.ask("list"))["tools"]]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        result = await self.ask("call", name, "--input-json", json.dumps(arguments))
        return result["is_error"], text_of(result["content"])

    async def read(self, uri: str) -> str:
        return text_of(await self.ask("call", uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        said = await self.ask("call", name, "--prompt", "--input-json", json.dumps(arguments))
        return text_of([message["content"] for message in said["messages"]])


def config(target: list[str]) -> str:
    """A file with the server, as hosts have it."""
    servers = {"ours": {"command": target[0], "args": target[1:], "env": dict(os.environ)}}
    file = Path("mcp.json").resolve()
    file.write_text(json.dumps({"mcpServers": servers}))
    return str(file)


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    it = Theirs(target if isinstance(target, str) else config(target))
    await it.tools()
    yield it


main(connect)

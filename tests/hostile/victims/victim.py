"""A client program that does what each line says, as tests/cases/runners do, and keeps nothing of what it gets.

One JSON command a line on standard input, one line for each on standard output: `{"id", "result": {}}` or
`{"id", "error": {"kind", "message"}}`.
"""

import asyncio
import json
import sys
import threading
import warnings
from typing import Any

import tricorn

warnings.filterwarnings("ignore", ".*MCP .* deprecates", DeprecationWarning)
clients: dict[int, tricorn.AsyncClient] = {}
running: set[asyncio.Task[None]] = set()


def handlers(answers: dict[str, Any]) -> dict[str, Any]:
    functions = {
        "sampling": lambda params: answers["sampling"],
        "elicitation": lambda message, schema: answers["elicitation"],
    }
    return {name: functions.get(name, value) for name, value in answers.items()}


async def perform(command: dict[str, Any]) -> None:
    what, key = command["do"], command["client"]
    if what == "connect":
        options = {**command["options"], **handlers(command.get("answers", {}))}
        if (auth := options.pop("auth", None)) is not None:
            options["auth"] = tricorn.ClientAuth(**auth)
        clients[key] = await tricorn.connect(command["target"], on_notification=lambda *_: None, **options)
        return
    if what == "close":
        if (client := clients.pop(key, None)) is not None:
            await client.close()
        return
    client = clients[key]
    if what == "list_tools":
        await client.list_tools()
    elif what == "call_tool":
        given = {name: command[name] for name in ("timeout",) if name in command}
        await client.call_tool(command["name"], command.get("arguments"), **given)
    elif what == "ping":
        await client.ping()
    elif what == "list":
        await (client.list_resources() if command["what"] == "resources" else client.list_resource_templates())
    elif what == "read_resource":
        await client.read_resource(command["uri"])
    elif what == "get_prompt":
        await client.get_prompt(command["name"], command.get("arguments"))
    elif what == "complete":
        await client.complete(command["prompt"], command["argument"], command["value"])
    else:
        raise ValueError(what)


async def answer(command: dict[str, Any]) -> None:
    said: dict[str, Any] = {"id": command["id"], "result": {}}
    try:
        await perform(command)
    except BaseException as error:  # noqa: BLE001 - whatever comes is reported
        said = {"id": command["id"], "error": {"kind": type(error).__name__, "message": str(error)[:300]}}
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


async def main() -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def take(line: str) -> None:
        task = asyncio.ensure_future(answer(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(take, line)
        loop.call_soon_threadsafe(done.set_result, None)

    threading.Thread(target=read, daemon=True).start()
    await done
    await asyncio.gather(*(client.close() for client in clients.values()))


asyncio.run(main())

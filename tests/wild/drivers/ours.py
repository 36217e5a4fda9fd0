"""Our client in Python against a server of others: the calls of its entry, by checks.py's words."""

import asyncio
from typing import Any

from checks import check, expect, kill, model, plan, restart, say, why

from tricorn import AsyncClient, Error, connect

SOON = 30.0
"""Seconds in which a call to a server that is gone has to end."""


async def call(client: AsyncClient, what: dict[str, Any]) -> None:
    try:
        result = await client.call_tool(what["name"], what.get("arguments", {}))
        said = (result.is_error, str(result.raw))
    except Exception as error:
        if not what.get("error"):
            raise
        said = (True, str(error))
    expect(said[0] == what.get("error", False) and what.get("has", "") in said[1], said)


async def many(client: AsyncClient, what: dict[str, Any]) -> None:
    await asyncio.gather(*(call(client, what) for _ in range(50)))


async def cancel(client: AsyncClient, what: dict[str, Any]) -> None:
    """A call that is given up at once, and the next one."""
    task = asyncio.ensure_future(client.call_tool(what["name"], what.get("arguments", {})))
    await asyncio.wait([task], timeout=0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await call(client, what)


async def progress(client: AsyncClient, what: dict[str, Any]) -> str:
    heard: list[float] = []
    await client.call_tool(
        what["name"], what.get("arguments", {}), on_progress=lambda report: heard.append(report.progress)
    )
    expect(heard and heard == sorted(set(heard)), heard)
    return f"{len(heard)} reports"


def opened(asked: dict[str, Any]) -> AsyncClient:
    def elicitation() -> dict[str, Any]:
        return asked["user"]

    def sampling(params: dict[str, Any]) -> str:
        content: Any = params["messages"][-1]["content"]
        return model((content[0] if isinstance(content, list) else content)["text"])

    return connect(asked["target"], elicitation=elicitation, sampling=sampling)


async def killed(client: AsyncClient, asked: dict[str, Any], what: dict[str, Any]) -> str:
    """Between two calls the server is killed: it is started again, or the client says at once that it is gone."""
    await kill()
    gone = ""
    for _ in range(2):
        try:
            await asyncio.wait_for(call(client, what), SOON)
        except TimeoutError:
            raise
        except Error as error:
            gone = why(error)
        else:
            return f"started again {gone}"
    async with opened(asked) as fresh:
        await call(fresh, what)
    return f"a new connection: {gone}"


async def ask(client: AsyncClient, asked: dict[str, Any]) -> None:
    async def tools() -> str:
        names = [tool.name for tool in await client.list_tools()]
        missing = [name for name in asked["tools"] if name not in names]
        expect(names and not missing, (missing, names))
        return f"{len(names)} tools"

    async def resources() -> str:
        listed = await client.list_resources()
        for resource in listed[:1]:
            expect((await client.read_resource(resource.uri)).contents, resource)
        return f"{len(listed)} resources"

    async def prompts() -> str:
        listed = await client.list_prompts()
        whole = [prompt for prompt in listed if not any(a.required for a in prompt.arguments or [])]
        for prompt in whole[:1]:
            expect((await client.get_prompt(prompt.name)).messages, prompt)
        return f"{len(listed)} prompts"

    await check("list", tools())
    for what in asked["calls"]:
        await check(("error " if what.get("error") else "call ") + what["name"], call(client, what))
    for what in asked["calls"]:
        if what.get("many"):
            await check("50 at once", many(client, what))
            await check("cancel", cancel(client, what))
        if what.get("progress"):
            await check("progress", progress(client, what))
    if asked["resources"]:
        await check("resources", resources())
    if asked["prompts"]:
        await check("prompts", prompts())


async def main() -> None:
    asked = plan()
    target = asked["target"]
    first = next((what for what in asked["calls"] if not what.get("error")), None)
    stage = "connect"
    try:
        async with opened(asked) as client:
            say("connect", True)
            stage = "close"
            await ask(client, asked)
            if isinstance(target, str) and first and "restart" not in asked["without"]:
                await restart()
                await check("restart", call(client, first))
            if isinstance(target, list) and first and "killed" not in asked["without"]:
                steady = next((what for what in asked["calls"] if what.get("many")), first)
                await check("killed", killed(client, asked, steady))
        say("close", True)
    except Exception as error:  # noqa: BLE001
        say(stage, False, why(error))


asyncio.run(main())

"""Our client in Python: client.py PLAN."""

import asyncio
import json
import sys
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

from tricorn import AsyncClient, AsyncListening, Error, Progress, ResourceUpdated, ToolsListChanged, connect

warnings.filterwarnings("ignore", ".*MCP .* deprecates", DeprecationWarning)  # it works on, and is tested
Step = dict[str, Any]
WAIT = 10
"""Seconds for what a server sends by itself."""


class Heard:
    """Messages that the server sent by itself."""

    def __init__(self) -> None:
        self.uris: list[str] = []
        self.logs: list[Any] = []
        self._more = asyncio.Event()

    def updated(self, uri: str) -> None:
        self.uris.append(uri)
        self._more.set()

    def logged(self, _level: str, _logger: str | None, data: Any) -> None:
        self.logs.append(data)
        self._more.set()

    async def wait(self, what: list[Any], count: int) -> list[Any]:
        async def enough() -> None:
            while len(what) < count:
                self._more.clear()
                await self._more.wait()

        await asyncio.wait_for(enough(), WAIT)
        return what


class Changes:
    """Subscriptions, and the changes that came."""

    listening: AsyncListening

    def __init__(self) -> None:
        self.all: list[str] = []

    async def listen(self, client: AsyncClient, step: Step) -> dict[str, Any]:
        listening = client.listen(tools=step.get("tools", False), uris=step.get("uris", ()))
        self.listening = await listening.__aenter__()
        return {"tools": listening.honoured.tools, "uris": list(listening.honoured.uris)}

    async def wait(self, count: int) -> dict[str, Any]:
        while len(self.all) < count:
            match await self.listening.next(WAIT):
                case ResourceUpdated(uri):
                    self.all.append(uri)
                case ToolsListChanged():
                    self.all.append("tools")
                case other:
                    raise ValueError(other)
        return {"changes": list(self.all)}


async def cached(client: AsyncClient, step: Step) -> dict[str, Any]:
    raw, hits = {}, 0
    for _ in range(2):
        hits = client.metrics()["cache"]["hits"]
        raw = (await (client.read_resource(step["uri"]) if "uri" in step else client.list_tools_page())).raw
    kept = client.metrics()["cache"]["hits"] > hits
    return {"ttlMs": raw.get("ttlMs"), "cacheScope": raw.get("cacheScope"), "kept": kept}


async def run_task(client: AsyncClient, step: Step) -> dict[str, Any]:
    task = await client.call_tool_task(step["name"], step["arguments"])
    result = await task.result()
    created: Any = task.created
    return {"created": created["task"]["status"], "error": result.is_error, "text": result.text}


async def call(client: AsyncClient, step: Step) -> dict[str, Any]:
    reports: list[list[float | None]] = []

    def on_progress(progress: Progress) -> None:
        reports.append([progress.progress, progress.total])

    listener = on_progress if step.get("progress") else None
    result = await client.call_tool(step["name"], step["arguments"], on_progress=listener)
    blocks: list[dict[str, Any]] = result.raw["content"]
    return {
        "error": result.is_error,
        "text": blocks[0].get("text", "") if blocks else "",
        "types": [block["type"] for block in blocks],
        "structured": result.structured,
        "progress": reports,
    }


async def perform(client: AsyncClient, heard: Heard, changes: Changes, step: Step) -> dict[str, Any]:
    match step["do"]:
        case "tools":
            return {"names": [tool.name for tool in await client.list_tools()]}
        case "resources":
            return {"names": [resource.uri for resource in await client.list_resources()]}
        case "templates":
            return {"names": [template.uri_template for template in await client.list_resource_templates()]}
        case "prompts":
            return {"names": [prompt.name for prompt in await client.list_prompts()]}
        case "call":
            return await call(client, step)
        case "read":
            contents: list[dict[str, Any]] = (await client.read_resource(step["uri"])).raw["contents"]
            return contents[0]
        case "prompt":
            raw: dict[str, Any] = (await client.get_prompt(step["name"], step["arguments"])).raw
            message = raw["messages"][0]
            return {"role": message["role"], "text": message["content"].get("text")}
        case "complete":
            found = await client.complete(step["prompt"], step["argument"], step["value"])
            return {"values": list(found.values)}
        case "subscribe":
            await client.subscribe(step["uri"])
        case "unsubscribe":
            await client.unsubscribe(step["uri"])
        case "level":
            await client.set_log_level(step["level"])
        case "updated":
            return {"uris": await heard.wait(heard.uris, step["count"])}
        case "logs":
            return {"logs": await heard.wait(heard.logs, step["count"])}
        case "listen":
            return await changes.listen(client, step)
        case "changes":
            return await changes.wait(step["count"])
        case "unlisten":
            changes.listening.close()
        case "cached":
            return await cached(client, step)
        case "task":
            return await run_task(client, step)
        case other:
            raise ValueError(other)
    return {}


def sampling(params: dict[str, Any]) -> str:
    content: Any = params["messages"][-1]["content"]
    return f"heard {(content[0] if isinstance(content, list) else content)['text']}"


async def attempt(step: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    try:
        return {"result": await step}
    except (Error, TimeoutError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


async def main(plan: dict[str, Any]) -> None:
    heard, changes, answers = Heard(), Changes(), plan["answers"]
    elicitation: Callable[..., Any] = lambda: answers["elicitation"]  # noqa: E731
    async with connect(
        plan["target"],
        revision=plan["revision"],
        sampling=sampling,
        elicitation=elicitation,
        roots=answers["roots"],
        on_log=heard.logged,
        on_resource_updated=heard.updated,
        tasks=plan["revision"] is None,  # of older revisions they are another thing
    ) as client:
        said = [await attempt(perform(client, heard, changes, step)) for step in plan["steps"]]
        print(json.dumps({"protocolVersion": client.protocol_version, "steps": said}))


asyncio.run(main(json.loads(sys.argv[1])))

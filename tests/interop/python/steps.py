"""Code that the clients on both versions of the official Python SDK share: the steps of a plan, and what is heard."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

WAIT = 10
"""Seconds for what a server sends by itself."""


def wire(result: Any) -> dict[str, Any]:
    """A result as it is on the wire: the versions differ in the names of attributes."""
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def environment() -> dict[str, str]:
    return dict(os.environ)


class Heard:
    """Messages that the server sent by itself."""

    def __init__(self) -> None:
        self.uris: list[str] = []
        self.logs: list[Any] = []
        self._more = asyncio.Event()

    def updated(self, uri: str) -> None:
        self.uris.append(uri)
        self._more.set()

    def logged(self, data: Any) -> None:
        self.logs.append(data)
        self._more.set()

    async def wait(self, what: list[Any], count: int) -> list[Any]:
        async with asyncio.timeout(WAIT):
            while len(what) < count:
                self._more.clear()
                await self._more.wait()
        return what


class Player:
    """Plays a plan. `client` has the methods that both versions share; `uri` makes what they take for a URI."""

    def __init__(self, client: Any, heard: Heard, uri: Callable[[str], Any], prompt: Callable[[str], Any]) -> None:
        self.client, self.heard, self.uri, self.prompt = client, heard, uri, prompt

    async def play(self, plan: dict[str, Any], revision: str) -> None:
        said = [await self.attempt(step) for step in plan["steps"]]
        print(json.dumps({"protocolVersion": revision, "steps": said}), flush=True)

    async def attempt(self, step: dict[str, Any]) -> dict[str, Any]:
        try:
            do: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] = getattr(self, "do_" + step["do"])
            return {"result": await do(step)}
        except Exception as error:  # noqa: BLE001 - whatever it is, the step has failed
            return {"error": f"{type(error).__name__}: {error}"}

    async def names(self, lists: Any, member: str, name: str) -> dict[str, Any]:
        names, cursor = [], None
        while True:
            page = wire(await self.page(lists, cursor))
            names += [entry[name] for entry in page[member]]
            cursor = page.get("nextCursor")
            if cursor is None:
                return {"names": names}

    async def page(self, lists: Any, cursor: str | None) -> Any:
        return await (lists() if cursor is None else lists(cursor=cursor))

    async def do_tools(self, _: dict[str, Any]) -> dict[str, Any]:
        return await self.names(self.client.list_tools, "tools", "name")

    async def do_resources(self, _: dict[str, Any]) -> dict[str, Any]:
        return await self.names(self.client.list_resources, "resources", "uri")

    async def do_templates(self, _: dict[str, Any]) -> dict[str, Any]:
        return await self.names(self.client.list_resource_templates, "resourceTemplates", "uriTemplate")

    async def do_prompts(self, _: dict[str, Any]) -> dict[str, Any]:
        return await self.names(self.client.list_prompts, "prompts", "name")

    async def do_call(self, step: dict[str, Any]) -> dict[str, Any]:
        progress: list[list[float | None]] = []

        async def on_progress(done: float, total: float | None, _message: str | None) -> None:
            progress.append([done, total])

        asked = on_progress if step.get("progress") else None
        result = wire(await self.client.call_tool(step["name"], step["arguments"], progress_callback=asked))
        blocks = result["content"]
        return {
            "error": result.get("isError", False),
            "text": blocks[0].get("text", "") if blocks else "",
            "types": [block["type"] for block in blocks],
            "structured": result.get("structuredContent"),
            "progress": progress,
        }

    async def do_read(self, step: dict[str, Any]) -> dict[str, Any]:
        return wire(await self.client.read_resource(self.uri(step["uri"])))["contents"][0]

    async def do_prompt(self, step: dict[str, Any]) -> dict[str, Any]:
        message = wire(await self.client.get_prompt(step["name"], step["arguments"]))["messages"][0]
        return {"role": message["role"], "text": message["content"].get("text")}

    async def do_complete(self, step: dict[str, Any]) -> dict[str, Any]:
        argument = {"name": step["argument"], "value": step["value"]}
        result = wire(await self.client.complete(self.prompt(step["prompt"]), argument))
        return {"values": result["completion"]["values"]}

    async def do_subscribe(self, step: dict[str, Any]) -> dict[str, Any]:
        await self.client.subscribe_resource(self.uri(step["uri"]))
        return {}

    async def do_unsubscribe(self, step: dict[str, Any]) -> dict[str, Any]:
        await self.client.unsubscribe_resource(self.uri(step["uri"]))
        return {}

    async def do_level(self, step: dict[str, Any]) -> dict[str, Any]:
        await self.client.set_logging_level(step["level"])
        return {}

    async def do_updated(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"uris": await self.heard.wait(self.heard.uris, step["count"])}

    async def do_logs(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"logs": await self.heard.wait(self.heard.logs, step["count"])}


def said_to_model(params: Any) -> str:
    """Returns the answer of the model of these tests: that it heard the question."""
    message = wire(params)["messages"][-1]["content"]
    return f"heard {(message[0] if isinstance(message, list) else message)['text']}"

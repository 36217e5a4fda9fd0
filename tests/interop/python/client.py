"""A client on the official Python SDK: client.py PLAN."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.subscriptions import ResourceUpdated, Subscription, ToolsListChanged
from steps import WAIT, Heard, Player, environment, said_to_model, wire


def target(plan: dict[str, Any]) -> Any:
    where = plan["target"]
    if isinstance(where, str):
        return sse_client(where) if plan.get("sse") else where
    return StdioServerParameters(command=where[0], args=where[1:], env=environment())


class Newest(Player):
    """With what the older version knows nothing of."""

    stream: Subscription

    def __init__(self, *members: Any) -> None:
        super().__init__(*members)
        self.listening = AsyncExitStack()
        self.changes: list[str] = []

    async def do_listen(self, step: dict[str, Any]) -> dict[str, Any]:
        stream = self.client.listen(
            tools_list_changed=step.get("tools", False), resource_subscriptions=step.get("uris", ())
        )
        self.stream = await self.listening.enter_async_context(stream)
        honoured = self.stream.honored
        return {"tools": bool(honoured.tools_list_changed), "uris": honoured.resource_subscriptions or []}

    async def do_changes(self, step: dict[str, Any]) -> dict[str, Any]:
        async with asyncio.timeout(WAIT):
            while len(self.changes) < step["count"]:
                match await anext(self.stream):
                    case ResourceUpdated(uri):
                        self.changes.append(uri)
                    case ToolsListChanged():
                        self.changes.append("tools")
        return {"changes": list(self.changes)}

    async def do_unlisten(self, _: dict[str, Any]) -> dict[str, Any]:
        await self.listening.aclose()
        return {}

    async def do_cached(self, step: dict[str, Any]) -> dict[str, Any]:
        session, sent = self.client.session, 0
        send = session.send_request

        async def counted(*request: Any, **options: Any) -> Any:
            nonlocal sent
            sent += 1
            return await send(*request, **options)

        session.send_request = counted
        try:
            await self.cacheable(step)
            before, result = sent, await self.cacheable(step)
        finally:
            session.send_request = send
        return {"ttlMs": result.ttl_ms, "cacheScope": result.cache_scope, "kept": sent == before}

    async def cacheable(self, step: dict[str, Any]) -> Any:
        return await (self.client.read_resource(step["uri"]) if "uri" in step else self.client.list_tools())


async def main(plan: dict[str, Any]) -> None:
    heard, answers = Heard(), plan["answers"]

    async def sampling(_: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        content = types.TextContent(type="text", text=said_to_model(params))
        return types.CreateMessageResult(role="assistant", content=content, model="interop")

    async def elicitation(_: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content=answers["elicitation"])

    async def roots(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in answers["roots"]]})

    async def logging(params: types.LoggingMessageNotificationParams) -> None:
        heard.logged(params.data)

    async def message(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.updated(wire(message)["params"]["uri"])

    revision = plan["revision"]
    client = Client(
        target(plan),
        mode="auto" if revision is None else "legacy" if revision < "2026" else revision,
        read_timeout_seconds=30,
        sampling_callback=sampling,
        elicitation_callback=elicitation,
        list_roots_callback=roots,
        logging_callback=logging,
        message_handler=message,
    )
    async with client:
        prompt = lambda name: types.PromptReference(type="ref/prompt", name=name)  # noqa: E731
        await Newest(client, heard, str, prompt).play(plan, client.protocol_version)


asyncio.run(main(json.loads(sys.argv[1])))

"""A client on the official Python SDK before 2.0: client1.py PLAN."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl
from steps import Heard, Player, environment, said_to_model


def transport(plan: dict[str, Any]) -> Any:
    where = plan["target"]
    if isinstance(where, str):
        return sse_client(where) if plan.get("sse") else streamable_http_client(where)
    return stdio_client(StdioServerParameters(command=where[0], args=where[1:], env=environment()))


class Paging(Player):
    async def page(self, lists: Any, cursor: str | None) -> Any:
        return await lists(params=None if cursor is None else types.PaginatedRequestParams(cursor=cursor))


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
        if isinstance(message, types.ServerNotification) and isinstance(
            message.root, types.ResourceUpdatedNotification
        ):
            heard.updated(str(message.root.params.uri))

    async with AsyncExitStack() as stack:
        read, write, *_ = await stack.enter_async_context(transport(plan))
        session = ClientSession(
            read,
            write,
            read_timeout_seconds=timedelta(seconds=30),
            sampling_callback=sampling,
            elicitation_callback=elicitation,
            list_roots_callback=roots,
            logging_callback=logging,
            message_handler=message,
        )
        await stack.enter_async_context(session)
        revision = str((await session.initialize()).protocolVersion)
        prompt = lambda name: types.PromptReference(type="ref/prompt", name=name)  # noqa: E731
        await Paging(session, heard, AnyUrl, prompt).play(plan, revision)


asyncio.run(main(json.loads(sys.argv[1])))

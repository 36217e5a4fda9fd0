"""A client on the official Python SDK: client.py PLAN."""

import asyncio
import json
import sys
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from steps import Heard, Player, environment, said_to_model, wire


def target(plan: dict[str, Any]) -> Any:
    where = plan["target"]
    if isinstance(where, str):
        return sse_client(where) if plan.get("sse") else where
    return StdioServerParameters(command=where[0], args=where[1:], env=environment())


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
        await Player(client, heard, str, prompt).play(plan, client.protocol_version)


asyncio.run(main(json.loads(sys.argv[1])))

"""Sampling: a tool has the client's model write something."""

import asyncio
from typing import Any

from tricorn import Context, CreateMessageResult, RpcError, Server, assistant, connect, user

app = Server("sampling")


@app.tool
async def summarize(text: str, ctx: Context) -> str:
    """Sum up a text"""
    ctx.require("sampling")
    result = await ctx.sample(f"Sum up: {text}", 50, system_prompt="Be brief.")
    return f"{result.text} ({result.model}, {result.stop_reason})"


@app.tool
async def translate(text: str, ctx: Context) -> str:
    """Sum up a text in French"""
    conversation = [user(f"Sum up: {text}"), assistant("A fox jumps."), user("And in French?")]
    return (await ctx.sample(conversation, 20)).text


def model(params: dict[str, Any]) -> CreateMessageResult:
    """Stands for a real model, which the user lets answer."""
    asked = params["messages"][-1]["content"]["text"]
    print(f"model: {asked} (at most {params['maxTokens']} tokens)")
    if "secret" in asked:
        raise RpcError(-1, "the user said no")
    return CreateMessageResult("Un renard saute." if "French" in asked else "A fox jumps.", model="tiny-1")


async def main() -> None:
    async with connect(app, revision="2025-11-25", sampling=model) as client:
        result = await client.call_tool("summarize", {"text": "The quick brown fox jumps."})
        print("summary:", result.text)
        result = await client.call_tool("translate", {"text": "The quick brown fox jumps."})
        print("translation:", result.text)
        result = await client.call_tool("summarize", {"text": "secret"})
        print("refused:", result.text)

    async with connect(app, revision="2025-11-25") as client:
        try:
            await client.call_tool("summarize", {"text": "x"})
        except RpcError as error:
            print(f"no model: error {error.code}, {error.message}")


asyncio.run(main())

"""Prompts: texts and conversations that the user picks."""

import asyncio
from typing import Literal

from tricorn import (
    EmbeddedResource,
    GetPromptResult,
    Image,
    Message,
    ResourceContents,
    RpcError,
    Server,
    Text,
    assistant,
    connect,
    user,
)

app = Server("prompts")


@app.prompt
def standup() -> str:
    """Begin the day"""
    return "What did you do yesterday?"


@app.prompt
def review(code: str, tone: Literal["kindly", "strictly"] = "kindly") -> str:
    """Review code

    Args:
        code: What to review
    """
    return f"Review this {tone}: {code}"


@app.prompt
def explain(uri: str) -> list[Message]:
    """Explain a text"""
    contents = ResourceContents(uri, "text/plain", text="Turn it off and on again.")
    return [user(EmbeddedResource(contents)), user("Explain the text above.")]


@app.prompt
def caption() -> list[Message]:
    """Show how pictures are described"""
    return [user(Image(b"\x89PNG", "image/png")), assistant("A dot.")]


async def main() -> None:
    async with connect(app) as client:
        for prompt in await client.list_prompts():
            arguments = [f"{a.name} (required)" if a.required else a.name for a in prompt.arguments]
            print(f"{prompt.name}: {', '.join(arguments) or '-'}")

        show("standup", await client.get_prompt("standup"))
        show("review", await client.get_prompt("review", {"code": "x = 1", "tone": "strictly"}))
        try:
            await client.get_prompt("review")
        except RpcError as error:
            print(f"review: error {error.code}, {error.message}")
        show("explain", await client.get_prompt("explain", {"uri": "file:///radio.txt"}))
        show("caption", await client.get_prompt("caption"))


def show(name: str, result: GetPromptResult) -> None:
    for message in result.messages:
        match message.content:
            case Text(text):
                print(f'{name}: {message.role} text "{text}"')
            case Image():
                print(f"{name}: {message.role} image {message.content.mime_type}")
            case EmbeddedResource(resource):
                print(f"{name}: {message.role} resource {resource.uri}")
            case _:
                print(f"{name}: {message.role} something else")


asyncio.run(main())

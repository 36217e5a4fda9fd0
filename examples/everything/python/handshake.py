"""Resources, prompts, completion and questions to the client, as the official suite asks for them."""

import asyncio
import json
from base64 import b64decode
from typing import Any, TypedDict

from tricorn import (
    Content,
    Context,
    Elicited,
    EmbeddedResource,
    Image,
    Message,
    ResourceContents,
    Server,
    Text,
    user,
)

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"username": {"type": "string"}, "email": {"type": "string", "format": "email"}},
    "required": ["username", "email"],
}
DEFAULTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
TITLED = [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}]
OPTIONS = ["option1", "option2", "option3"]
ENUMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}


class Word(TypedDict):
    word: str


def add_features(app: Server, cached: bool) -> None:
    """Everything of this file; `cached`: one resource says how long it keeps."""
    resources(app, {"cache": {"ttl": 5, "scope": "public"}} if cached else {})
    prompts(app)
    questions(app)


def resources(app: Server, own: dict[str, Any]) -> None:
    static = "This is the content of the static text resource."
    app.add_resource(
        "test://static-text", static, name="static-text", mime_type="text/plain", description="A text", **own
    )
    app.add_resource("test://static-binary", PNG, name="static-binary", mime_type="image/png", description="An image")

    async def watched() -> str:
        return "This resource can be watched."

    async def several() -> list[ResourceContents]:
        return [
            ResourceContents("test://several/1", text="one"),
            ResourceContents("test://several/2", "text/markdown", text="two"),
        ]

    async def word(ctx: Context) -> str:
        answer = await ctx.elicit("Which word?", Word)
        return answer.action if answer.content is None else f"the word is {answer.content['word']}"

    async def template(id: str) -> dict[str, Any]:  # noqa: A002 - the variable's name
        return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}

    app.add_resource("test://watched-resource", watched, name="watched-resource", mime_type="text/plain")
    app.add_resource("test://several", several, description="Two texts at once")
    app.add_resource("ask://word", word, mime_type="text/plain")
    app.add_resource("test://template/{id}/data", template, mime_type="application/json")


def prompts(app: Server) -> None:
    async def simple() -> str:
        """Say one thing."""
        return "This is a simple prompt for testing."

    async def two(arg1: str, arg2: str) -> str:
        """Say two things.

        Args:
            arg1: The first
            arg2: The second
        """
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    async def embedded(resourceUri: str) -> list[Message]:  # noqa: N803 - the suite's name
        """Embed a resource.

        Args:
            resourceUri: Whose contents to embed
        """
        text = "Embedded resource content for testing."
        return [
            user(EmbeddedResource(ResourceContents(resourceUri, "text/plain", text=text))),
            user("Please process the embedded resource above."),
        ]

    async def image() -> list[Content]:
        """Show an image."""
        return [Image(PNG), Text("Please analyze the image above.")]

    app.add_prompt(simple, name="test_simple_prompt")
    app.add_prompt(two, name="test_prompt_with_arguments", complete={"arg1": ["paris", "park", "party", "test"]})
    app.add_prompt(embedded, name="test_prompt_with_embedded_resource")
    app.add_prompt(image, name="test_prompt_with_image")


def questions(app: Server) -> None:
    async def sampling(prompt: str, ctx: Context) -> str:
        """Ask the client's model."""
        return f"LLM response: {(await ctx.sample(prompt, 100)).text}"

    async def elicitation(message: str, ctx: Context) -> str:
        """Ask the user."""
        return said(await ctx.elicit(message, FORM))

    async def reconnection(ctx: Context) -> str:
        """End the stream before the answer."""
        ctx.close_stream()
        await asyncio.sleep(0.1)
        return "Reconnection test completed successfully"

    async def defaults(ctx: Context) -> str:
        """Ask the user, with defaults."""
        return said(await ctx.elicit("Please review these", DEFAULTS))

    async def enums(ctx: Context) -> str:
        """Let the user choose."""
        return said(await ctx.elicit("Please choose", ENUMS))

    app.add_tool(sampling, name="test_sampling")
    app.add_tool(elicitation, name="test_elicitation")
    app.add_tool(reconnection, name="test_reconnection")
    app.add_tool(defaults, name="test_elicitation_sep1034_defaults")
    app.add_tool(enums, name="test_elicitation_sep1330_enums")


def said(answer: Elicited[dict[str, Any]]) -> str:
    return f"User response: action={answer.action}, content={json.dumps(answer.content or {}, separators=(',', ':'))}"

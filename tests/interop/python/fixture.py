"""What both servers on the official Python SDK offer."""

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel


class Weather(BaseModel):
    city: str
    temperature: float
    conditions: str


class Person(BaseModel):
    username: str
    email: str


def offer(server: Any, types: Any, Context: Any, ToolError: Any, as_uri: Callable[[str], Any]) -> dict[str, list[Any]]:  # noqa: N803
    """Adds everything that both versions have words for. Returns the sessions that are subscribed, by URI.

    `types`, `Context` and `ToolError` are the version's own; `as_uri` makes what it takes for a URI.
    """
    subscribed: dict[str, list[Any]] = {}

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool(structured_output=False)
    def echo(text: str) -> str:
        """Return the text unchanged."""
        return text

    @server.tool()
    def structured(city: str) -> Weather:
        """A weather report."""
        return Weather(city=city, temperature=22.5, conditions="sunny")

    @server.tool(structured_output=False)
    def fail(kind: str) -> str:
        """Fail when asked to."""
        if kind == "tool":
            raise ToolError("the tool says no")
        return "no failure"

    @server.tool(structured_output=False)
    async def test_tool_with_progress(ctx: Context) -> str:
        """Report progress three times."""
        for progress in (0, 50, 100):
            await ctx.report_progress(progress, 100)
            await asyncio.sleep(0.05)
        return "Tool with progress executed successfully"

    @server.tool(structured_output=False)
    async def test_tool_with_logging(ctx: Context) -> str:
        """Log three messages."""
        for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.log("info", message)
        return "Tool with logging executed successfully"

    @server.tool(structured_output=False)
    async def test_sampling(prompt: str, ctx: Context) -> str:
        """Ask the client's model."""
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
        answer = await ctx.request_context.session.create_message([message], max_tokens=100)
        return f"LLM response: {answer.content.text}"

    @server.tool(structured_output=False)
    async def test_elicitation(message: str, ctx: Context) -> str:
        """Ask the user."""
        answer = await ctx.elicit(message, Person)
        content = answer.data.model_dump_json() if answer.action == "accept" else "{}"
        return f"User response: action={answer.action}, content={content}"

    @server.tool(structured_output=False)
    async def roots(ctx: Context) -> str:
        """Return the URIs of the client's roots."""
        answer = await ctx.request_context.session.list_roots()
        return " ".join(str(root.uri) for root in answer.roots)

    @server.tool(structured_output=False)
    async def touch(uri: str) -> str:
        """Say that a resource has changed."""
        for session in subscribed.get(uri, []):
            await session.send_resource_updated(as_uri(uri))
        return f"touched {uri}"

    @server.resource("test://static-text", mime_type="text/plain")
    def text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def binary() -> bytes:
        return b"\x89PNG"

    @server.resource("test://watched-resource", mime_type="text/plain")
    def watched() -> str:
        return "This resource can be watched."

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> dict[str, Any]:  # noqa: A002 - the variable's name
        return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """Say two things."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.completion()
    async def complete(_ref: Any, argument: Any, _context: Any) -> types.Completion:
        words = ("paris", "park", "party", "test") if argument.name == "arg1" else ()
        return types.Completion(values=[word for word in words if word.startswith(argument.value)])

    return subscribed

"""Features of both servers on the official Python SDK."""

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


def is_asking(answer: Any) -> bool:
    return getattr(answer, "result_type", None) == "input_required"


class Once:
    """Features of a version without the newest revision: answers come while a call runs."""

    def rerun(self, _ctx: Any, _method: str, _params: dict[str, Any]) -> Any:
        """The answer to a question, or what the call returns to have it asked; None: it can be asked at once."""

    async def changed(self, _ctx: Any, _uri: str) -> None:
        """Tells those who listen that a resource has changed."""


def offer(
    server: Any,
    types: Any,
    Context: Any,  # noqa: N803
    ToolError: Any,  # noqa: N803
    as_uri: Callable[[str], Any],
    newest: Once = Once(),  # noqa: B008
) -> dict[str, list[Any]]:
    """Adds everything that both versions have words for. Returns the sessions that are subscribed, by URI.

    `types`, `Context` and `ToolError` are the version's own; `as_uri` makes what it takes for a URI; `newest` is what
    the newest revision does in another way.
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
    async def test_sampling(prompt: str, ctx: Context) -> Any:
        """Ask the client's model."""
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
        question = {"messages": [message.model_dump(mode="json", exclude_none=True)], "maxTokens": 100}
        answer = newest.rerun(ctx, "sampling/createMessage", question)
        if answer is None:
            answer = await ctx.request_context.session.create_message([message], max_tokens=100)
        return answer if is_asking(answer) else f"LLM response: {answer.content.text}"

    @server.tool(structured_output=False)
    async def test_elicitation(message: str, ctx: Context) -> Any:
        """Ask the user."""
        question = {"mode": "form", "message": message, "requestedSchema": Person.model_json_schema()}
        answer = newest.rerun(ctx, "elicitation/create", question)
        if answer is None:
            answer = await ctx.elicit(message, Person)
        elif is_asking(answer):
            return answer
        given = answer.data if hasattr(answer, "data") else Person.model_validate(answer.content)
        return f"User response: action={answer.action}, content={given.model_dump_json()}"

    @server.tool(structured_output=False)
    async def roots(ctx: Context) -> Any:
        """Return the URIs of the client's roots."""
        answer = newest.rerun(ctx, "roots/list", {})
        if answer is None:
            answer = await ctx.request_context.session.list_roots()
        return answer if is_asking(answer) else " ".join(str(root.uri) for root in answer.roots)

    @server.tool(structured_output=False)
    async def touch(uri: str, ctx: Context) -> str:
        """Say that a resource has changed."""
        for session in subscribed.get(uri, []):
            await session.send_resource_updated(as_uri(uri))
        await newest.changed(ctx, uri)
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

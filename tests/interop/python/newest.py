"""Features of a server on the official Python SDK in the newest revision alone."""

from typing import Annotated, Any

import mcp_types as types
from fixture import Once
from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

QUESTIONS = (("First?", "a"), ("Second?", "b"), ("Third?", "c"))


def asked(message: str, name: str) -> types.ElicitRequest:
    form = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=form))


def is_newest(ctx: Context) -> bool:
    return (ctx.protocol_version or "") >= "2026"


class Again(Once):
    """Questions are what a call returns; with the answers it is made again."""

    def rerun(self, ctx: Context, method: str, params: dict[str, Any]) -> Any:
        if not is_newest(ctx):
            return None
        if ctx.input_responses:
            return ctx.input_responses["answer"]
        question = {"method": method, "params": params}
        return types.InputRequiredResult.model_validate({"inputRequests": {"answer": question}})

    async def changed(self, ctx: Context, uri: str) -> None:
        await ctx.notify_resource_updated(uri)


def offer(server: MCPServer) -> None:
    @server.tool(structured_output=False)
    async def three_questions(ctx: Context) -> Any:
        """Ask three things, one after the other."""
        given = ctx.request_state.split(" ") if ctx.request_state else []
        if ctx.input_responses:
            answer = ctx.input_responses["answer"]
            given.append(str((answer.content or {})[QUESTIONS[len(given)][1]]))
        if len(given) == len(QUESTIONS):
            return " ".join(given)
        question = asked(*QUESTIONS[len(given)])
        return types.InputRequiredResult(input_requests={"answer": question}, request_state=" ".join(given))

    @server.tool(structured_output=False)
    async def two_questions(ctx: Context) -> Any:
        """Ask two things at once."""
        if not ctx.input_responses:
            questions = {name: asked(message, name) for message, name in (("Left?", "left"), ("Right?", "right"))}
            return types.InputRequiredResult(input_requests=questions)
        return " ".join(str((ctx.input_responses[name].content or {})[name]) for name in ("left", "right"))

    @server.tool(structured_output=False)
    async def test_x_mcp_header(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "none",
    ) -> str:
        """Return the region, which also travels as a header."""
        return f"region: {region}"

    @server.tool(structured_output=False)
    async def test_trigger_tool_change(ctx: Context) -> str:
        """Say that the list of tools has changed."""
        await ctx.notify_tools_changed()
        return "The list of tools has changed"

    @server.prompt()
    async def test_input_required_result_prompt(ctx: Context) -> Any:
        """Ask before it is made."""
        if not ctx.input_responses:
            question = asked("In which context?", "context")
            return types.InputRequiredResult(input_requests={"user_context": question})
        answer = ctx.input_responses["user_context"]
        return f"Context: {(answer.content or {})['context']}"

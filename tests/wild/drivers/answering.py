"""Answers to the questions of servers: by the types of PyPI `mcp`, in both generations, and as FastMCP has it."""

from typing import Any

from checks import USER, model
from mcp.types import CreateMessageResult, ElicitResult, TextContent

BOTH = ("elicitation", "sampling")


async def elicitation(_context: Any, _params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=dict(USER))


async def sampling(_context: Any, params: Any) -> CreateMessageResult:
    text = TextContent(type="text", text=model(params.messages[-1].content.text))
    return CreateMessageResult(role="assistant", content=text, model="none")


async def fast_elicitation(_message: str, _form: Any, _params: Any, _context: Any) -> dict[str, Any]:
    return dict(USER)


async def fast_sampling(messages: list[Any], _params: Any, _context: Any) -> str:
    return model(messages[-1].content.text)


FAST: dict[str, Any] = {"elicitation_handler": fast_elicitation, "sampling_handler": fast_sampling}

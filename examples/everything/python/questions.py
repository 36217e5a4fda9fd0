"""Tools that ask their user, in straight lines: what becomes of that in which revision is not theirs to know."""

import itertools
import json
from typing import TypedDict

from tricorn import Context, Question, Server


class Left(TypedDict):
    left: str


class Right(TypedDict):
    right: str


class Confirmation(TypedDict):
    confirm: bool


def add_questions(app: Server) -> None:
    """Everything of this file."""
    counter = itertools.count(1)

    async def three_questions(ctx: Context) -> str:
        """Ask three things, one after the other."""
        given: list[str] = []
        for message, name in (("First?", "a"), ("Second?", "b"), ("Third?", "c")):
            form = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
            answer = await ctx.elicit(message, form)
            if answer.content is None:
                return f"{message}: {answer.action}"
            given.append(answer.content[name])
        return " ".join(given)

    async def two_questions(ctx: Context) -> str:
        """Ask two things at once."""
        left, right = await ctx.ask_all((Question.elicit("Left?", Left), Question.elicit("Right?", Right)))
        if left.content is None or right.content is None:
            return f"{left.action} {right.action}"
        return f"{left.content['left']} {right.content['right']}"

    async def step_once(ctx: Context) -> str:
        """Do something once, then ask."""
        number = await ctx.step("reserve", lambda: next(counter))
        answer = await ctx.elicit("Confirm?", Confirmation)
        said = answer.action if answer.content is None else json.dumps(answer.content["confirm"])
        return f"reservation {number}: {said}"

    app.add_tool(three_questions)
    app.add_tool(two_questions)
    app.add_tool(step_once)

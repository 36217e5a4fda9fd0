"""Tools that run as tasks: by the extension of 2026-07-28 where the client declares it, in 2025-11-25 where it asks."""

import asyncio
import json
from typing import TypedDict

from tricorn import Context, Question, RpcError, Server, ToolError


class Name(TypedDict):
    name: str


class Confirmation(TypedDict):
    confirm: bool


def add_tasks(app: Server) -> None:
    """Everything of this file."""

    async def greet(name: str) -> str:
        """Greet someone, at once"""
        return f"Hello, {name}!"

    async def slow_compute(seconds: float = 0, label: str = "") -> str:
        """Compute for some seconds"""
        await asyncio.sleep(seconds)
        return f"computed {label} in {seconds:g} s"

    async def failing_job() -> str:
        """Work for a second and fail"""
        await asyncio.sleep(1)
        raise ToolError("the job failed")

    async def protocol_error_job() -> str:
        """End with a JSON-RPC error"""
        raise RpcError(-32603, "the job broke")

    async def confirm_delete(filename: str, ctx: Context) -> str:
        """Ask before something is deleted"""
        answer = await ctx.elicit(f"Delete {filename}?", Confirmation)
        sure = answer.content is not None and answer.content["confirm"]
        return f"{'deleted' if sure else 'kept'} {filename}"

    async def multi_input(ctx: Context) -> str:
        """Ask two things at once"""
        left, right = await ctx.ask_all((Question.elicit("Left?", Name), Question.elicit("Right?", Confirmation)))
        if left.content is None or right.content is None:
            return f"{left.action} {right.action}"
        return f"{left.content['name']} {json.dumps(right.content['confirm'])}"

    async def test_tool_with_task(ctx: Context) -> str:
        """Ask, then go on as a task"""
        answer = await ctx.elicit("What is your name?", Name)
        ctx.run_as_task()
        await asyncio.sleep(0.1)
        return f"Hello, {answer.content['name'] if answer.content else ''}!"

    app.add_tool(greet)
    app.add_tool(slow_compute, task_support="optional")
    for tool in (failing_job, protocol_error_job, confirm_delete, multi_input):
        app.add_tool(tool, task_support="required")
    app.add_tool(test_tool_with_task)

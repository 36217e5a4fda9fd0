"""Tracing: which trace a request belongs to, on both sides."""

import asyncio
from typing import Any

from tricorn import Context, RequestContext, Server, TraceContext, connect

app = Server("tracing")


def tell(who: str, ctx: RequestContext) -> None:
    trace = ctx.trace_context
    if trace is None:
        print(f"{who}: no trace")
    else:
        baggage = f"baggage {trace.baggage}" if trace.baggage else "no baggage"
        print(f"{who}: span {trace.parent_id} of trace {trace.trace_id}, {baggage}")


@app.tool
async def work(ctx: Context) -> str:
    """Does something for a trace"""
    tell("tool", ctx)
    return (await ctx.sample("And you?", 9)).text


def model(_: dict[str, Any], ctx: RequestContext) -> str:
    tell("model", ctx)
    return "Fine."


def current() -> TraceContext:
    """What your tracing system says is current."""
    return TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", baggage="tenant=7")


async def main() -> None:
    async with connect(app, sampling=model, trace_context=current) as client:
        await client.call_tool("work")
        other = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
        await client.call_tool("work", trace_context=other)

    async with connect(app, sampling=model) as client:
        print("malformed:")
        await client.call_tool("work", meta={"traceparent": "who knows"})


asyncio.run(main())

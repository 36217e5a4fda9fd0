"""A server of older revisions without sessions: `stateless.py --http HOST:PORT`. Needs the package `tricorn`."""

import asyncio
import sys

from tricorn import Context, Server

app = Server("stateless")


@app.tool
def echo(text: str) -> str:
    """Return the text unchanged."""
    return text


@app.tool
async def ask(ctx: Context) -> str:
    """Ask the user."""
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return str((await ctx.elicit("What is your name?", form)).content)


@app.tool
def count(to: int, ctx: Context) -> str:
    """Report each number up to this one."""
    for n in range(1, to + 1):
        ctx.progress(n, to)
    return f"counted to {to}"


def ready(url: str) -> None:
    print("ready", url, file=sys.stderr, flush=True)


host, port = sys.argv[2].rsplit(":", 1)
asyncio.run(app.serve_http(host=host, port=int(port), stateless=True, on_listening=ready))

"""Middleware: what stands around every request, of a server and of a client."""

import asyncio
import logging

from tricorn import Context, Next, Request, RequestContext, RpcError, Server, connect
from tricorn.middleware import Result, concurrency_limit, rate_limit, timing
from tricorn.middleware import logging as logged

app = Server("signed")
app.middleware(timing())  # the first one is the outermost


@app.middleware
async def sign_in(request: Request, context: Context, call_next: Next) -> Result:
    """Refuses whoever does not say who they are, and tells the others' names to what comes after"""
    user = request.params.get("_meta", {}).get("com.example/user")
    if user is None:
        raise RpcError(-32001, "who are you?")
    context.values["user"] = user
    print(f"> {request.method} of {user}")
    result = await call_next(request, context)
    print(f"< {request.method}")
    return result


@app.middleware
async def tidy(request: Request, context: Context, call_next: Next) -> Result:
    """Changes parameters on their way"""
    if request.method == "tools/call":
        request.params["arguments"]["name"] = request.params["arguments"]["name"].strip()
    return await call_next(request, context)


@app.tool
def greet(name: str, ctx: Context) -> str:
    """Greet somebody"""
    return f"Hello {name}, from {ctx.values['user']}!"


async def sign(request: Request, context: RequestContext, call_next: Next) -> Result:
    """A client's: signs whatever it sends"""
    meta = request.params.get("_meta", {})
    request.params["_meta"] = {**meta, "com.example/user": "Ada"}
    return await call_next(request, context)


limited = Server("limited")
limited.middleware(rate_limit(1 / 3600, burst=2))
go = asyncio.Event()


@limited.tool
async def wait() -> str:
    """Wait for the green light"""
    await go.wait()
    return "done"


class Records(logging.Handler):
    """What the built-in logging wrote"""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        request = record.__dict__["request"]
        outcome = "failed" if "error" in request else "ok"
        self.written.append(f"{request['method']} {request.get('name', '')} {outcome}")


async def main() -> None:
    async with connect(app, middleware=[sign]) as client:
        print("greet:", (await client.call_tool("greet", {"name": " Bob "})).text)

    records = Records()
    logging.getLogger("tricorn").addHandler(records)
    logging.getLogger("tricorn").setLevel(logging.INFO)
    logging.getLogger("tricorn").propagate = False
    async with connect(app, middleware=[logged()]) as client:
        try:
            await client.call_tool("greet", {"name": "Bob"})
        except RpcError as error:
            print(f"unsigned: error {error.code}, {error.message}")
    print("logged:", ", ".join(records.written))
    calls = app.metrics()["timing"]["tools/call"]
    print(f"timing: {calls['count']} calls, {calls['failed']} failed")

    # One at a time, nobody waits. The limit is the client's own: the second is not even sent.
    async with connect(limited, middleware=[concurrency_limit(1, max_waiting=0)]) as client:
        both = {asyncio.create_task(client.call_tool("wait")) for _ in range(2)}
        refused, running = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        print("one too many: error", getattr(refused.pop().exception(), "code", None))
        go.set()
        print("the other:", (await running.pop()).text)
        print("once more:", (await client.call_tool("wait")).text)
        try:
            await client.call_tool("wait")
        except RpcError as error:
            print(f"too often: error {error.code}, again in {round(error.data['retryAfter'] / 60)} minutes")


asyncio.run(main())

"""CPU of a call over the built-in connections, over httpx, and of httpx alone.

python benches/http-transport/measure.py URL
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from tricorn import connect

WARM_UP, MEASURED = 0.3, 1.0
"""Seconds of calls, not a number of them: a call over httpx takes over ten times as long as one over the built-in
connections, and the whole has to end on any machine."""
ROUNDS = 5

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bare", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "accept-encoding": "identity",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "echo",
}
PARAMS = {"_meta": META, "name": "echo", "arguments": {"text": "hello"}}
BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": PARAMS}).encode()


async def measure(call: Callable[[], Awaitable[object]]) -> float:
    await calls(call, WARM_UP)
    before = time.process_time()
    count = await calls(call, MEASURED)
    return (time.process_time() - before) / count * 1e6


async def calls(call: Callable[[], Awaitable[object]], seconds: float) -> int:
    """Calls one after the other for so long; how many there were."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        await call()
        count += 1
    return count


async def client(url: str, **options: Any) -> float:
    async with connect(url, **options) as connected:
        return await measure(lambda: connected.call_tool("echo", {"text": "hello"}))


async def bare(url: str, http: httpx.AsyncClient) -> None:
    (await http.post(url, content=BODY, headers=HEADERS)).raise_for_status()


async def main(url: str) -> None:
    async with httpx.AsyncClient() as http:
        rounds: dict[str, Callable[[], Awaitable[float]]] = {
            "built-in": lambda: client(url),
            "over httpx": lambda: client(url, http_transport=http),
            "httpx alone": lambda: measure(lambda: bare(url, http)),
        }
        took: dict[str, list[float]] = {name: [] for name in rounds}
        for _ in range(ROUNDS):
            for name, run in rounds.items():
                took[name].append(await run())
    for name, all_of_them in took.items():
        print(f"python, {name}: {statistics.median(all_of_them):.0f} µs of CPU a call")


asyncio.run(main(sys.argv[1]))

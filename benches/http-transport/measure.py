"""CPU of a call over the built-in connections and over httpx: python benches/http-transport/measure.py URL."""

import asyncio
import statistics
import sys
import time
from typing import Any

import httpx
from tricorn import connect

CALLS = 3000
ROUNDS = 5


async def measure(url: str, **options: Any) -> float:
    async with connect(url, **options) as client:
        for _ in range(300):
            await client.call_tool("echo", {"text": "hello"})
        before = time.process_time()
        for _ in range(CALLS):
            await client.call_tool("echo", {"text": "hello"})
        return (time.process_time() - before) / CALLS * 1e6


async def main(url: str) -> None:
    own: list[float] = []
    over: list[float] = []
    async with httpx.AsyncClient() as http:
        for _ in range(ROUNDS):
            own.append(await measure(url))
            over.append(await measure(url, http_transport=http))
    a, b = statistics.median(own), statistics.median(over)
    print(f"python: {a:.0f} µs of CPU a call, over httpx {b:.0f} µs: {b / a:.1f} times")
    print(f"python: {await bare(url):.0f} µs of CPU for httpx alone")


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bare", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "echo",
}


async def bare(url: str) -> float:
    """The same requests without a client."""
    params = {"_meta": META, "name": "echo", "arguments": {"text": "hello"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with httpx.AsyncClient() as http:
        before = time.process_time()
        for _ in range(CALLS):
            (await http.post(url, json=message, headers=HEADERS)).raise_for_status()
        return (time.process_time() - before) / CALLS * 1e6


asyncio.run(main(sys.argv[1]))

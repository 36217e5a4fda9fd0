"""The benchmark client: READY, a line on standard input, N checked calls, DONE."""

import asyncio
import os
import sys

from tricorn import AsyncClient, connect

ENV = os.environ
SCENARIO, TOOLS = ENV["BENCH_SCENARIO"], int(ENV["BENCH_TOOLS"])
LENGTH = {"echo-1k": 1 << 10, "echo-64k": 1 << 16, "echo-1m": 1 << 20}.get(SCENARIO, 0)
UNIT = 'The quick brown fox jumps over the lazy dog; "quoted" text, caf\u00e9 cr\u00e8me.\n'


def sample(length: int) -> str:
    text = UNIT * (length // len(UNIT.encode()))
    return text + "x" * (length - len(text.encode()))


TEXT = sample(LENGTH)


async def one(client: AsyncClient, number: int) -> bool:
    if SCENARIO == "list":
        return len(await client.list_tools()) == TOOLS
    if LENGTH:
        return (await client.call_tool("echo", {"text": TEXT})).text == TEXT
    return (await client.call_tool("add", {"a": number, "b": 7})).structured == {"sum": number + 7}


async def phase(client: AsyncClient, calls: int) -> tuple[int, int]:
    numbers = iter(range(calls))
    good = bad = 0

    async def worker() -> None:
        nonlocal good, bad
        for number in numbers:
            try:
                right = await one(client, number)
            except Exception as error:  # noqa: BLE001 - counted as a wrong answer
                print(repr(error), file=sys.stderr)
                right = False
            if right:
                good += 1
            else:
                bad += 1

    await asyncio.gather(*(worker() for _ in range(int(ENV["BENCH_CONCURRENCY"]))))
    return good, bad


async def main() -> None:
    target = ENV["BENCH_URL"] if ENV["BENCH_TRANSPORT"] == "http" else ENV["BENCH_SERVER_CMD"]
    async with connect(target, revision=ENV["BENCH_PROTO"]) as client:
        await phase(client, int(ENV["BENCH_WARMUP"]))
        print("READY tricorn-python", client.protocol_version, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        good, bad = await phase(client, int(ENV["BENCH_N"]))
        print("DONE", good, bad, flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())

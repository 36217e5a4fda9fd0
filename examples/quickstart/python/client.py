"""client.py TARGET [--revision R]: calls `add` of a command or URL and prints what was agreed, as one line of JSON."""

import asyncio
import json
import sys
import time

from tricorn import connect


async def main(target: str, _flag: str = "--revision", revision: str | None = None) -> None:
    async with connect(target, revision=revision) as client:
        await client.call_tool("add", {"a": 1, "b": 2})
        before = time.perf_counter()
        result = await client.call_tool("add", {"a": 1, "b": 2})
        ms = (time.perf_counter() - before) * 1000
        report = {
            "protocolVersion": client.protocol_version,
            "era": client.era,
            "transport": client.transport,
            "result": json.loads(result.text),
            "ms": round(ms, 3),
        }
    print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))

"""The server of the checks alone: plain.py --stdio | --http HOST:PORT."""

import asyncio
import sys

from tools import address, app


async def serve() -> None:
    async with app.listen(*address(), allowed_hosts=["*"]) as url:
        print(f"ready {url}", file=sys.stderr, flush=True)
        await asyncio.Event().wait()


if "--http" in sys.argv:
    asyncio.run(serve())
else:
    app.run()

"""Progress and cancellation: how far a call is, and that nobody wants its answer any more."""

import asyncio

from tricorn import Context, Progress, Server, connect

app = Server("printer")
started = asyncio.Event()
stopped = asyncio.Event()


@app.tool(name="print")
async def print_pages(pages: int, ctx: Context) -> str:
    """Print some pages"""
    for page in range(1, pages + 1):
        ctx.progress(page, pages, f"page {page}")
    return f"printed {pages} pages"


@app.tool
async def watch() -> str:
    """Watch the printer for ever"""
    started.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        print("server: stopped")
        stopped.set()
        raise
    return "never"


def show(progress: Progress) -> None:
    print(f"{progress.progress:g} of {progress.total:g}: {progress.message}")


async def main() -> None:
    async with connect(app) as client:
        result = await client.call_tool("print", {"pages": 3}, on_progress=show)
        print("print:", result.text)

        call = asyncio.create_task(client.call_tool("watch"))
        await started.wait()
        call.cancel()
        await stopped.wait()
        print("call: cancelled" if (await asyncio.wait([call])) and call.cancelled() else "call: answered")

        stopped.clear()
        try:
            await client.call_tool("watch", timeout=0.2)
        except TimeoutError:  # tricorn's is one, too
            await stopped.wait()
            print("call: no answer in time")


asyncio.run(main())

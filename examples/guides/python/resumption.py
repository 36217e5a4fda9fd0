"""Resumption: a stream ends early, and nothing is lost."""

import asyncio

from tricorn import Context, Progress, Server, connect

app = Server("long")


@app.tool
async def work(ctx: Context) -> str:
    """Work long, without a connection all the time"""
    ctx.progress(1, 2, "on the first stream")
    ctx.close_stream()
    ctx.progress(2, 2, "after the client came back")
    return "all there"


def show(progress: Progress) -> None:
    print(f"{progress.progress:g} of {progress.total:g}: {progress.message}")


async def main() -> None:
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(app.serve_http(port=0, sse_retry=0.1, on_listening=listening.set_result))
    async with connect(await listening, revision="2025-11-25") as client:
        result = await client.call_tool("work", on_progress=show)
        print("result:", result.text)
    app.close()
    await serving


asyncio.run(main())

"""Tasks: tool calls that go on after their answer."""

import asyncio

from tricorn import Context, Server, UnsupportedError, connect

app = Server("bakery", tasks=True)
step = asyncio.Semaphore(0)


@app.tool(task_support="optional")
async def bake(what: str, ctx: Context) -> str:
    """Bake something"""
    ctx.set_status("kneading")
    await step.acquire()
    ctx.set_status("in the oven")
    await step.acquire()
    return f"one {what}"


@app.tool(task_support="required")
async def cater() -> str:
    """Food for everybody, which takes days"""
    return "a feast"


@app.tool
async def price() -> str:
    """What it costs"""
    return "3 euros"


async def main() -> None:
    async with connect(app, revision="2025-11-25") as client:
        for tool in await client.list_tools():
            print(f"{tool.name}: {tool.task_support}")

        task = await client.call_tool_task("bake", {"what": "cake"}, ttl=600)
        print("task:", (await task.status()).status)
        async for now in task.changes():
            if now.status_message and not now.is_over:
                print(f"{now.status}: {now.status_message}")
                step.release()
        print("over:", (await task.status()).status)
        # The id is all it takes to come back.
        print("result:", (await client.task(task.id).result()).text)

        print("cater:", (await client.call_tool("cater")).text)

        other = await client.call_tool_task("bake", {"what": "bread"})
        print("cancelled:", (await other.cancel()).status)
        print("all:", ", ".join([one.status for one in await client.list_tasks()]))

        try:
            await client.call_tool("price", task=True)
        except UnsupportedError:
            print("price: not as a task")

    async with connect(app, revision="2026-07-28", tasks=True) as client:
        print("2026-07-28:", (await client.call_tool("cater")).text)


asyncio.run(main())

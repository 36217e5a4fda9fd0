"""A shared cache: clients of several programs keep answers in one store, and what has changed is dropped for all."""

import asyncio

from tricorn import AsyncClient, ResourceUpdated, Server, connect

app = Server("prices", cache={"read": {"ttl": 3600, "scope": "public"}})
looked_up = 0


@app.resource("price://apple")
def apple() -> str:
    """What an apple costs"""
    global looked_up
    looked_up += 1
    return f"look-up {looked_up}"


class Store:
    """A store; with `redis.asyncio` its methods are `mget(keys)`, `set(key, text, ex=ttl)` and `delete(key)`."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def get(self, keys: list[str]) -> list[str | None]:
        return [self.kept.get(key) for key in keys]

    async def set(self, key: str, text: str, ttl: int) -> None:
        self.kept[key] = text

    async def delete(self, key: str) -> None:
        self.kept.pop(key, None)


async def price(client: AsyncClient) -> str:
    return (await client.read_resource("price://apple")).text


async def main() -> None:
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(app.serve_http(port=0, on_listening=listening.set_result))
    url, store = await listening, Store()

    # Each would be in a program of its own, with a store that both reach.
    async with connect(url, cache={"store": store}) as one, connect(url, cache={"store": store}) as another:
        print("one program:", await price(one))
        print("another:", await price(another))
        usage = another.metrics()["cache"]
        print(f"hits {usage['hits']}, failures {usage['failures']}")

        # What one of them hears of is dropped for all.
        async with one.listen(uris=["price://apple"]) as changes:
            app.resource_updated("price://apple")
            async for change in changes:
                if isinstance(change, ResourceUpdated):
                    print("changed:", change.uri)
                    break
        print("one program:", await price(one))
        print("another:", await price(another))

    marks = [key for key in store.kept if ":resources/read:mark:" in key]
    answers = [text for text in store.kept.values() if "look-up 2" in text]
    print("the store has marks and one answer:", str(len(marks) > 0 and len(answers) == 1).lower())
    app.close()
    await serving


asyncio.run(main())

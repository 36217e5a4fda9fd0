"""Tools: a server that has some, and a client that calls them."""

import asyncio
from base64 import b64decode
from dataclasses import dataclass

from tricorn import (
    Audio,
    Content,
    EmbeddedResource,
    Image,
    ResourceContents,
    ResourceLink,
    RpcError,
    Server,
    Text,
    ToolAnnotations,
    ToolError,
    connect,
)

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
WAV = b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=")

app = Server("tools")


@dataclass
class Weather:
    city: str
    celsius: float


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers"""
    return a + b


@app.tool
def divide(a: float, b: float) -> float:
    """Divide one number by another

    Args:
        a: The dividend
        b: The divisor
    """
    if b == 0:
        raise ToolError("cannot divide by zero")
    return a / b


@app.tool(annotations=ToolAnnotations(read_only_hint=True))
def weather(city: str) -> Weather:
    """Today's weather"""
    return Weather(city, 22.5)


@app.tool
def picture() -> Image:
    """Draw a dot"""
    return Image(PNG, "image/png")


@app.tool
def sound() -> Audio:
    """Record silence"""
    return Audio(WAV, "audio/wav")


@app.tool
def manual() -> EmbeddedResource:
    """The manual"""
    return EmbeddedResource(ResourceContents("manual://radio", "text/plain", text="Turn it off and on again."))


@app.tool
def report() -> list[Content]:
    """A text with a picture"""
    return [Text("This is the dot."), Image(PNG), ResourceLink("manual://radio", "manual")]


async def main() -> None:
    async with connect(app) as client:
        for tool in await client.list_tools():
            print(f"{tool.name}: {tool.description}")

        total = await client.call_tool("add", {"a": 1, "b": 2})
        print("add:", total.to(int))

        today = (await client.call_tool("weather", {"city": "Rome"})).to(Weather)
        print(f"weather: {today.celsius} °C in {today.city}")

        failed = await client.call_tool("divide", {"a": 1, "b": 0})
        print(f"divide: is_error={str(failed.is_error).lower()}, {failed.text}")
        wrong = await client.call_tool("divide", {"a": "one", "b": 2})
        print(f"divide: is_error={str(wrong.is_error).lower()}, {wrong.text}")
        try:
            await client.call_tool("multiply")
        except RpcError as error:
            print("multiply: error", error.code)

        for name in ("picture", "sound", "manual", "report"):
            for block in (await client.call_tool(name)).content:
                match block:
                    case Text():
                        print(f"{name}: text {block.text}")
                    case Image():
                        print(f"{name}: image {block.mime_type}")
                    case Audio():
                        print(f"{name}: audio {block.mime_type}")
                    case EmbeddedResource():
                        print(f"{name}: resource {block.resource.text}")
                    case ResourceLink():
                        print(f"{name}: resource_link {block.uri}")
                    case _:
                        print(f"{name}: a block that this version does not know")


asyncio.run(main())

"""MCP Apps: a tool with a user interface, a host that shows it, and a client that shows none."""

import asyncio
from typing import Any

from tricorn import AsyncClient, Context, Server, connect
from tricorn.apps import (
    UI_EXTENSION,
    ResourceUi,
    ToolUi,
    UiCsp,
    UiPermissions,
    add_ui_resource,
    callable_by_app,
    supports_ui,
    tool_ui,
    ui_client_settings,
    ui_extension,
    visible_to_model,
)

MAP = "ui://weather/map"

app = Server("weather", extensions=[ui_extension()])


@app.tool(meta=ToolUi(MAP).meta())
def forecast(city: str, ctx: Context) -> str:
    """The weather of the coming days"""
    if supports_ui(ctx):
        return f"{city}: sunny. The map is on the screen."
    return f"{city}: sunny from Monday to Sunday, 21 to 25 degrees."


@app.tool(meta=ToolUi(MAP, visibility=("app",)).meta())
def refresh(city: str) -> str:
    """What it is like now, for the map"""
    return f"{city}: 22 degrees"


@app.tool(meta=ToolUi(MAP, visibility=("model",)).meta())
def alerts() -> str:
    """Warnings of storms"""
    return "none"


add_ui_resource(
    app,
    MAP,
    "<h1>Weather</h1>",
    ResourceUi(UiCsp(connect_domains=("https://tiles.example.com",)), UiPermissions(geolocation=True)),
)


async def host(client: AsyncClient) -> None:
    tools = await client.list_tools()
    print("the model may call:", ", ".join(tool.name for tool in tools if visible_to_model(tool)))
    print("the page may call:", ", ".join(tool.name for tool in tools if callable_by_app(tool)))
    called = tools[0]  # by the model
    print(f"{called.name}:", (await client.call_tool(called.name, {"city": "Rome"})).text)
    ui = tool_ui(called)
    if ui is not None and ui.resource_uri is not None:
        await show(client, ui.resource_uri)


async def show(client: AsyncClient, uri: str) -> None:
    # In a sandboxed frame, which may do what the contents ask for and the host allows.
    page = (await client.read_resource(uri)).contents[0]
    print(f"page: {page.uri}, {page.mime_type}, {page.text}")
    wanted: dict[str, Any] = (page.meta or {})["ui"]
    print("requests:", ", ".join(wanted["csp"]["connectDomains"]))
    print("permissions:", ", ".join(wanted["permissions"]))
    # What the page calls goes through the host.
    print("refresh:", (await client.call_tool("refresh", {"city": "Rome"})).text)


async def main() -> None:
    print("with user interfaces")
    async with connect(app, extensions={UI_EXTENSION: ui_client_settings()}) as client:
        await host(client)
    print("without")
    async with connect(app) as client:
        print("forecast:", (await client.call_tool("forecast", {"city": "Rome"})).text)


asyncio.run(main())

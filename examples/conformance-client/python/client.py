"""The conformance suite's client: does what the scenario named in the environment asks for."""

import asyncio
import json
import os
import sys
from typing import Any

from login import login

from tricorn import AsyncClient, ClientOptions, Tool, connect

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
REVISION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
EVERYTHING: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {}}


async def offered(client: AsyncClient) -> list[Tool]:
    """The tools; some of the suite's servers have none."""
    return await client.list_tools() if "tools" in client.capabilities else []


async def only_list(client: AsyncClient) -> None:
    await offered(client)


async def add_numbers(client: AsyncClient) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 2, "b": 3})


async def call_every_tool(client: AsyncClient) -> None:
    for tool in await offered(client):
        await client.call_tool(tool.name, sample(tool.input_schema))


async def listed_calls(client: AsyncClient) -> None:
    await client.list_tools()
    for call in CONTEXT["toolCalls"]:
        await client.call_tool(call["name"], call.get("arguments"))


async def echo_schema(client: AsyncClient) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


def sample(schema: dict[str, Any]) -> dict[str, Any]:
    """The least arguments a simple schema accepts."""
    values: dict[str, Any] = {
        "string": "text",
        "integer": 1,
        "number": 1.5,
        "boolean": True,
        "array": [],
        "object": {},
        "null": None,
    }
    properties = schema.get("properties", {})
    return {name: values.get(properties.get(name, {}).get("type"), "text") for name in schema.get("required", [])}


async def reconnect(client: AsyncClient) -> None:
    """A call whose stream the server closes before it answers."""
    await client.call_tool("test_reconnection")


async def elicitation_defaults(client: AsyncClient) -> None:
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults")


async def rounds(client: AsyncClient) -> None:
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}")


async def call_test_tool(client: AsyncClient) -> None:
    await client.list_tools()
    await client.call_tool("test-tool")


def fill_in(_message: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A user who confirms what is to be confirmed, and else leaves the form as it is."""
    if SCENARIO == "sep-2322-client-request-state":
        return {"confirmed": True}
    properties: dict[str, dict[str, Any]] = schema["properties"]
    return {name: field["default"] for name, field in properties.items() if "default" in field}


async def every_method(client: AsyncClient) -> None:
    await call_every_tool(client)
    if "resources" in client.capabilities:
        async for resource in client.resources():
            await client.read_resource(resource.uri)
    if "prompts" in client.capabilities:
        async for prompt in client.prompts():
            arguments = {argument.name: "text" for argument in prompt.arguments if argument.required}
            await client.get_prompt(prompt.name, arguments)


SCENARIOS = {
    "initialize": only_list,
    "tools_call": add_numbers,
    "request-metadata": call_every_tool,
    "http-standard-headers": every_method,
    "http-custom-headers": listed_calls,
    "http-invalid-tool-headers": call_every_tool,
    "json-schema-2020-12-preservation": echo_schema,
    "json-schema-ref-no-deref": only_list,
    "sse-retry": reconnect,
    "elicitation-sep1034-client-defaults": elicitation_defaults,
    "sep-2322-client-request-state": rounds,
}


async def main(url: str) -> None:
    is_protected = SCENARIO.startswith("auth/")
    run = call_test_tool if is_protected else SCENARIOS.get(SCENARIO)
    if run is None:
        sys.exit(f"scenario {SCENARIO!r} is not supported yet")
    capabilities: dict[str, Any] = EVERYTHING if SCENARIO == "request-metadata" else {}
    options: ClientOptions = {"revision": REVISION, "capabilities": capabilities, "elicitation": fill_in}
    if is_protected:
        options["auth"] = login(SCENARIO, CONTEXT)
    async with connect(url, **options) as client:
        await run(client)


asyncio.run(main(sys.argv[1]))

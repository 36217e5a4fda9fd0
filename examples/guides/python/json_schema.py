"""JSON Schema: given as it is, and checked as it says."""

import asyncio
from typing import Any

from tricorn import MisuseError, Server, connect

app = Server("schemas", on_error=lambda error, name: None)

CONTACT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"number": {"type": "string", "minLength": 3}},
    "properties": {"by": {"enum": ["phone", "mail"]}, "phone": {"$ref": "#/$defs/number"}, "mail": {"type": "string"}},
    "required": ["by"],
    "if": {"properties": {"by": {"const": "phone"}}},
    "then": {"required": ["phone"]},
    "else": {"required": ["mail"]},
}
PAIR: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
}
NUMBER: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
OUTSIDE: dict[str, Any] = {"type": "object", "properties": {"home": {"$ref": "https://example.com/address.json"}}}


@app.tool(input_schema=CONTACT)
def contact(by: str, phone: str = "", mail: str = "") -> str:
    """Call or write"""
    return f"called {phone}" if by == "phone" else f"wrote to {mail}"


@app.tool(input_schema=PAIR)
def pair(pair: list[Any]) -> str:
    """Take a pair, as draft-07 describes it"""
    return "ok"


@app.tool(output_schema=NUMBER)
def broken() -> dict[str, Any]:
    """Break a promise"""
    return {"n": "not a number"}


async def main() -> None:
    async with connect(app) as client:
        schema = (await client.list_tools())[0].input_schema
        print(f"listed: {schema['$schema']},", ", ".join(key for key in ("$defs", "if") if key in schema))

        print("contact:", (await client.call_tool("contact", {"by": "phone", "phone": "555-0100"})).text)
        for name, arguments in (("contact", {"by": "phone"}), ("pair", {"pair": ["a", "b"]}), ("broken", {})):
            result = await client.call_tool(name, arguments)
            print(f"{name}: is_error={str(result.is_error).lower()}, {result.text}")

    try:
        app.add_tool(broken, name="outside", input_schema=OUTSIDE)
    except MisuseError as error:
        print("refused:", error.message)


asyncio.run(main())

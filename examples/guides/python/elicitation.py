"""Elicitation: a tool asks the user, by a form or a page."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from tricorn import Context, Server, UrlElicitation, UrlElicitationRequiredError, connect

app = Server("restaurant")


@dataclass
class Booking:
    name: str
    seats: int = 2
    meal: Literal["fish", "vegetables"] = "fish"


@app.tool
async def book(ctx: Context) -> str:
    """Book a table"""
    answer = await ctx.elicit("A table?", Booking)
    if answer.content is None:
        return answer.action + "d"
    booking = answer.content
    return f"{booking.seats} for {booking.name}, {booking.meal}"


@app.tool
async def sign_in(ctx: Context) -> str:
    """Sign in at a page that the client does not see"""
    answer = await ctx.elicit_url("Please sign in", "https://example.com/login?id=7", "7")
    ctx.elicitation_complete("7")  # as a rule later, when the page says so
    return answer.action


@app.tool
async def pay() -> str:
    """Needs a visit before it can even begin"""
    raise UrlElicitationRequiredError(UrlElicitation("Please pay", "https://example.com/pay", "8"))


answers: list[Any] = [{"name": "Ada"}, "decline", {"name": "Ada", "seats": "many"}]


def fill_in(message: str, schema: dict[str, Any]) -> Any:
    """Stands for a dialog."""
    answer = answers.pop(0)
    if answer != "decline":
        fields: list[str] = []
        for name, field in schema["properties"].items():
            choices = f" {'|'.join(field['enum'])}" if "enum" in field else ""
            default = f" ({field['default']})" if "default" in field else ""
            fields.append(name + choices + default)
        print(f"asked: {message} {', '.join(fields)}")
    return answer


def visit(_message: str, url: str) -> bool:
    """Shows the address and asks whether to go there."""
    print("visit:", url)
    return True


async def main() -> None:
    completed: asyncio.Queue[str] = asyncio.Queue()

    def heard(method: str, params: dict[str, Any]) -> None:
        if method == "notifications/elicitation/complete":
            completed.put_nowait(params["elicitationId"])

    async with connect(
        app, revision="2025-11-25", elicitation=fill_in, elicitation_url=visit, on_notification=heard
    ) as client:
        print("book:", (await client.call_tool("book")).text)
        print("book:", (await client.call_tool("book")).text)
        if (await client.call_tool("book")).is_error:
            print("book: the answer did not fit")
        print("sign_in:", (await client.call_tool("sign_in")).text)
        print("complete:", await completed.get())
        try:
            await client.call_tool("pay")
        except UrlElicitationRequiredError as error:
            print(f"pay: error {error.code}, {error.elicitations[0].url}")
        app.elicitation_complete("8")  # the page was visited
        print("complete:", await completed.get())


asyncio.run(main())

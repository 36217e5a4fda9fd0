"""Completion: how the value of an argument may go on."""

import asyncio
from collections.abc import Mapping
from typing import Literal

from tricorn import Completion, Server, connect

app = Server("completion")
CITIES = {"france": ["paris", "pau", "lyon"], "england": ["plymouth", "london"]}


# A list completes by itself what begins like the value; the choices of `tone` do, too.
@app.prompt(complete={"language": ["python", "pypy", "rust"]})
def review(code: str, language: str, tone: Literal["kindly", "strictly"] = "kindly") -> str:
    """Review code"""
    return f"Review this {language} {tone}: {code}"


def cities(value: str, arguments: Mapping[str, str]) -> list[str]:
    """What is known already decides what is suggested."""
    return [city for city in CITIES.get(arguments.get("country", ""), []) if city.startswith(value)]


@app.resource("weather://{country}/{city}", complete={"country": list(CITIES), "city": cities})
def weather(country: str, city: str) -> str:
    """The weather of a city"""
    return f"Rain in {city}, {country}"


def numbers(value: str) -> Completion:
    """Too many: the first hundred are sent."""
    found = [str(n) for n in range(1000) if str(n).startswith(value)]
    return Completion(found, total=len(found))


@app.prompt(complete={"number": numbers})
def count(number: str) -> str:
    """Count to a number"""
    return f"Count to {number}."


async def main() -> None:
    async with connect(app) as client:
        found = await client.complete("review", "language", "py")
        print('language "py":', ", ".join(found.values))
        found = await client.complete("review", "tone", "")
        print('tone "":', ", ".join(found.values))
        for country in CITIES:
            found = await client.complete("weather://{country}/{city}", "city", "p", {"country": country})
            print(f'city "p" in {country}:', ", ".join(found.values))
        found = await client.complete("count", "number", "1")
        print(f'number "1": {len(found.values)} of {found.total}, more: {str(found.has_more).lower()}')


asyncio.run(main())

"""The rows: each is one hostile input, a function that plays it, registered under a name."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SERVER, CLIENT = "server", "client"
STDIO, HTTP = "stdio", "http"


@dataclass(frozen=True)
class Row:
    """One input, for one kind of victim over one transport."""

    name: str
    side: str
    transport: str
    source: str
    play: Callable[..., Any]
    args: tuple[Any, ...] = ()
    core: bool = False
    env: dict[str, str] = field(default_factory=dict, hash=False)
    """The environment of the victim, for fixtures that are set up in another way."""
    alone: bool = False
    """The victim is started for this row and ended after it."""
    answer: bool = True
    """A good client's longest wait counts."""


ROWS: list[Row] = []


def row(
    name: str, side: str, source: str, *args: Any, on: str = "both", core: str | bool = False, **more: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function, over both transports unless it says otherwise. `core`: the transport of the quick subset."""

    def add(play: Callable[..., Any]) -> Callable[..., Any]:
        for transport in (STDIO, HTTP) if on == "both" else (on,):
            quick = core is True or core == transport
            ROWS.append(Row(f"{name}.{transport}", side, transport, source, play, args, quick, **more))
        return play

    return add


def server(name: str, source: str, *args: Any, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An input for a server."""
    return row(name, SERVER, source, *args, **more)


def client(name: str, source: str, *args: Any, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An input for a client."""
    return row(name, CLIENT, source, *args, **more)

"""Code that the servers on both versions of the official Python SDK share: listening, and an event store."""

import itertools
import socket
import sys
from collections import deque
from typing import Any

import uvicorn

RETRY = 1000
"""Milliseconds after which a client that lost a stream asks for the rest: the server has noticed by then."""


class Events:
    """The newest thousand events of all sessions, with the methods of the SDKs' `EventStore`."""

    def __init__(self, message: Any) -> None:
        self._message = message
        self._numbers = itertools.count(1)
        self._events: deque[tuple[int, str, Any]] = deque(maxlen=1000)

    async def store_event(self, stream_id: str, message: Any) -> str:
        number = next(self._numbers)
        self._events.append((number, stream_id, message))
        return str(number)

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        last = int(last_event_id)
        stream = next((stream for number, stream, _ in self._events if number == last), None)
        for number, whose, message in list(self._events):
            if whose == stream and number > last and message is not None:
                await send_callback(self._message(message, str(number)))
        return stream


class Announcing(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"ready http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)


def listen(app: Any, sse: Any, address: str) -> None:
    """Serves Streamable HTTP, with the routes of HTTP+SSE beside it."""
    host, port = address.rsplit(":", 1)
    app.router.routes.extend(sse.routes)
    Announcing(uvicorn.Config(app, host=host, port=int(port), log_level="warning")).run()

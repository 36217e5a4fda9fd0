"""Many servers as one: connected at once, listed together, each thing under a name of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from .. import _core
from ..bridge.errors import error_of
from ..bridge.host import Host
from ..bridge.local_server import LocalServer
from ..call.context import Level, RequestContext
from ..call.options import RequestOptions
from ..call.request_options import written
from ..errors import Error, MisuseError
from ..json import checks
from ..json.decoding import decode
from ..json.deprecation import deprecated
from ..json.options import options_text
from ..model.definitions import Definition, Kind
from ..model.results import CallToolResult, Page
from .client import AsyncClient
from .connection import Connection
from .features import AsyncFeatures, Features
from .options import GroupOptions, Handlers
from .requests import PROMPTS, RESOURCE_TEMPLATES, RESOURCES, TOOLS, Listing, Request
from .settings import Given, Target, introduce, resolve
from .sync import Client, the_background
from .tasks import AsyncTaskHandle, TaskHandle

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")
Servers = str | os.PathLike[str] | Mapping[str, Any]
"""The path of an `mcp.json`, what such a file holds, `{"mcpServers": {...}}`, or targets as `connect` takes them, by
name."""

_ROOTS = ("mcpServers", "servers", "mcp", "mcp.servers", "context_servers")
"""Keys under which hosts keep their servers."""
_ENTRY = frozenset(("command", "url", "serverUrl", "httpUrl", "transport", "file", "text", "type"))
"""Keys of a single target, which a table of targets has not."""

_LISTS: dict[str, tuple[Kind, Listing[Any]]] = {
    "tools/list": ("tool", TOOLS),
    "resources/list": ("resource", RESOURCES),
    "resources/templates/list": ("resource_template", RESOURCE_TEMPLATES),
    "prompts/list": ("prompt", PROMPTS),
}
_NAMED: dict[str, tuple[Kind, str]] = {
    "prompts/get": ("prompt", "name"),
    "resources/read": ("resource", "uri"),
    "resources/subscribe": ("resource", "uri"),
    "resources/unsubscribe": ("resource", "uri"),
}


def connect_many(servers: Servers, **options: Unpack[GroupOptions]) -> AsyncClientGroup:
    """A client of many servers: `async with connect_many("mcp.json") as group: ...`.

    A server that fails is among `group.failures` and stops nothing.
    """
    introduce(options, sys._getframe(1).f_globals)
    return AsyncClientGroup(servers, **options)


class _Member(AsyncClient):
    """The client of one server of a group, which connects it."""

    def __init__(self, group: AsyncClientGroup, name: str, given: Given) -> None:
        self._group = group
        self._name = name
        self._prepare(group._host, (), given)

    async def connect(self) -> Self:
        await self._group.reconnect(self._name)
        return self

    async def close(self) -> None:
        if self._info is not None:
            self._info = None
            await self._host.wait(self._core.close)

    def _event(self, name: str, params: bytes) -> None:
        if name == "stderr" and "on_stderr" not in self._callbacks:
            with suppress(OSError, ValueError):  # it is closed
                sys.stderr.write(f"{decode(params)['line']}\n")
            return
        if name != "closed" or (self._info is not None and self._group._closing is None):
            super()._event(name, params)

    def _refuse(self) -> None:
        raise self._group.failures.get(self._name) or MisuseError(f"{self._name} is not connected")


def is_config(servers: Mapping[str, Any]) -> bool:
    """Returns True for what a host's configuration file holds, False for targets by name."""
    roots = (servers.get(name) for name in _ROOTS)
    return any(isinstance(root, Mapping) and not (_ENTRY & root.keys()) for root in roots)


class AsyncClientGroup(Connection, AsyncFeatures):
    """Several servers as one client: what they list comes under names that are unique in the group.

    A name that several servers have gets the server's name before it, `files_read`. Every entry says its `server`;
    `group["files"]` is the client of one server.
    """

    def __init__(self, servers: Servers, **options: Unpack[GroupOptions]) -> None:
        introduce(options, sys._getframe(1).f_globals)
        if "server" in options:
            raise MisuseError('group options: the option "server" is for clients of one server')
        self._given = given = Given("group", options, GroupOptions)
        self._for_server: Callable[[str], Handlers] | None = checks.called(
            "for_server", given.settings.pop("for_server", None)
        )
        by_name: Mapping[str, Target] = {}
        others: object = servers
        if isinstance(servers, Mapping) and not is_config(servers):
            by_name, others = cast("Mapping[str, Target]", servers), []
        elif isinstance(servers, os.PathLike):
            others = os.fspath(servers)
        if "on_stderr" in given.callbacks or self._for_server is not None:
            # Where one server's standard error may be heard, that of all is read here.
            if isinstance(others, str):
                others = {"file": others, "stderr": "event"}
            elif isinstance(others, Mapping):
                others = {"stderr": "event", **others}
        host = Host(False, RequestContext, given.on_error)
        self._begin(host, [target for target in by_name.values() if isinstance(target, LocalServer)])
        text = given.text(self._host)
        given.auth = given.http_transport = None  # their functions are the host's from now on
        self._core = _core.ClientGroup(self._host.bridge, options_text(others), text)
        self._clients: dict[str, _Member] = {}
        for name in self._core.names():
            self._seat(name, partial(self._core.client, name))
        for name, target in by_name.items():
            self._seat(name, self._adding(name, target))

    def _adding(self, name: str, target: Target) -> Callable[[int], _core.Client]:
        if isinstance(target, LocalServer):
            return lambda source: self._core.add_server(name, source, target._core)
        where = options_text(resolve(target, None, self._hears(name)))
        return lambda source: self._core.add(name, source, where)

    def _given_for(self, name: str) -> Given:
        return self._given if self._for_server is None else self._given.plus("for_server", dict(self._for_server(name)))

    def _hears(self, name: str) -> bool:
        return "on_stderr" in self._given_for(name).callbacks

    def _seat(self, name: str, make: Callable[[int], _core.Client | None]) -> _Member:
        given = self._given_for(name)
        member = _Member(self, name, given)
        core = make(self._host.source(member._event))
        if core is None:
            raise MisuseError(f"the group has no server {name!r}")
        member._offer(core, given)
        self._clients[name] = member
        return member

    @property
    def _native(self) -> _core.ClientGroup:
        return self._core

    def _opened(self, agreed: dict[str, Any]) -> None:
        for name, info in agreed["servers"].items():
            self._clients[name]._info = info

    # -- the servers

    @property
    def names(self) -> list[str]:
        """The servers' names in their order."""
        return self._core.names()

    @property
    def failures(self) -> dict[str, Error]:
        """Errors of the servers that are not connected, by name."""
        failures = {name: _error(raw) for name, raw in decode(self._core.failures()).items()}
        for name, error in failures.items():
            if name in self._clients:
                self._clients[name]._failed(error)
        return failures

    def __getitem__(self, name: str) -> AsyncClient:
        """The client of one server. Closing it leaves the others alone; `connect` connects it anew."""
        try:
            return self._clients[name]
        except KeyError:
            raise MisuseError(f"the group has no server {name!r}; there are {', '.join(self._clients)}") from None

    async def add(self, name: str, target: Target) -> AsyncClient:
        """Adds a server and connects it."""
        self._seat(name, self._adding(name, target))
        if isinstance(target, LocalServer):
            self._borrow(target)
        return await self.reconnect(name)

    async def remove(self, name: str) -> bool:
        """Takes a server out of the group and ends its connection; False when there is none."""
        member = self._clients.pop(name, None)
        if member is not None:
            member._info = None
        return cast(bool, decode(await self._host.wait(lambda op: self._core.remove(op, name))))

    async def reconnect(self, name: str) -> AsyncClient:
        """Connects a server anew."""
        member = self[name]
        try:
            member._info = decode(await self._host.wait(lambda op: self._core.reconnect(op, name)))
        except Error as error:
            member._failed(error)
            raise
        return member

    # -- requests

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[RequestOptions]
    ) -> CallToolResult:
        """Calls the tool of this public name, as `AsyncClient.call_tool`."""
        client, own = await self._route("tool", name)
        return await client.call_tool(own, arguments, **options)

    async def call_tool_task(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        ttl: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncTaskHandle:
        """As `AsyncClient.call_tool_task`."""
        client, own = await self._route("tool", name)
        return await client.call_tool_task(own, arguments, ttl, **options)

    @deprecated("MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry")
    async def set_log_level(self, level: Level, **options: Unpack[RequestOptions]) -> None:
        """Wants log messages of this level and more severe ones of all servers that log, now and later."""
        written("logging/setLevel", options)
        answer = await self._host.wait(lambda op: self._core.set_log_level(op, level))
        self._warn("logging/setLevel", answer)

    async def ping(self, **options: Unpack[RequestOptions]) -> None:
        """Asks all servers that are connected for a sign of life."""
        clients = [client for client in self._clients.values() if client._info is not None]
        await asyncio.gather(*(client.ping(**options) for client in clients))

    async def _route(self, kind: Kind, name: str) -> tuple[AsyncClient, str]:
        found = decode(await self._host.wait(lambda op: self._core.route(op, kind, name)))
        return self[found["server"]], found["name"]

    async def _do(self, request: Request[T], options: RequestOptions) -> T:
        method, params = request.method, request.params or {}
        if method in _LISTS:
            entries = await self._list(method, options)
            return cast(T, Page(entries, {_LISTS[method][1].member: [entry.raw for entry in entries]}))
        if method == "completion/complete":
            ref: Mapping[str, Any] = params["ref"]
            kind: Kind = "prompt" if ref.get("type") == "ref/prompt" else "resource_template"
            key = "name" if kind == "prompt" else "uri"
            client, own = await self._route(kind, ref[key])
            params = {**params, "ref": {**ref, key: own}}
        elif method in _NAMED:
            kind, key = _NAMED[method]
            client, own = await self._route(kind, params[key])
            params = {**params, key: own}
        else:
            raise MisuseError(f'{method}: ask one of the servers, as in group["{next(iter(self._clients), "name")}"]')
        return await client._do(Request(method, params, request.read), options)

    async def _list(self, method: str, options: RequestOptions) -> list[Definition]:
        kind, listing = _LISTS[method]
        settings = written(method, options)
        answer = await self._host.wait(lambda op: self._core.listing(op, kind, settings))
        self._warn(method, answer)
        found: list[Definition] = []
        for entry in decode(answer)["entries"]:
            raw: dict[str, Any] = entry["definition"]
            if kind in ("tool", "prompt"):
                raw["name"] = entry["name"]
            definition: Definition = listing.cls(raw)
            definition.server = entry["server"]
            found.append(definition)
        return found

    def _warn(self, method: str, answer: bytes) -> None:
        for name, raw in decode(answer)["failures"].items():
            self._host.warn(f"{method} of {name}: {_error(raw)}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(self._clients)}>"


def _error(raw: dict[str, Any]) -> Error:
    data = None if raw.get("data") is None else msgspec.json.encode(raw["data"])
    return error_of(raw["kind"], raw["message"], raw.get("code"), data)


class ClientGroup(Features):
    """Several servers as one client, for code without asyncio: `with ClientGroup("mcp.json") as group: ...`.

    As `AsyncClientGroup`; callbacks are called in a thread of the library's own, `on_progress` too.
    """

    def __init__(self, servers: Servers, **options: Unpack[GroupOptions]) -> None:
        introduce(options, sys._getframe(1).f_globals)
        self._async = AsyncClientGroup(servers, **options)

    def connect(self) -> Self:
        """Connects to all servers; those that cannot be are among `failures`."""
        for peer in self._async._peers:
            peer._host.must_not_block()
        the_background().open(self, self._async.connect())
        return self

    def close(self) -> None:
        """Ends all connections."""
        background = the_background()
        background.clients.discard(self)
        background.run(self._async.close())

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def names(self) -> list[str]:
        """The servers' names in their order."""
        return self._async.names

    @property
    def failures(self) -> dict[str, Error]:
        """Errors of the servers that are not connected, by name."""
        return self._async.failures

    def __getitem__(self, name: str) -> Client:
        """The client of one server. Closing it leaves the others alone; `connect` connects it anew."""
        return Client.of(self._async[name])

    def add(self, name: str, target: Target) -> Client:
        """Adds a server and connects it."""
        the_background().run(self._async.add(name, target))
        return self[name]

    def remove(self, name: str) -> bool:
        """Takes a server out of the group and ends its connection; False when there is none."""
        return the_background().run(self._async.remove(name))

    def reconnect(self, name: str) -> Client:
        """Connects a server anew."""
        the_background().run(self._async.reconnect(name))
        return self[name]

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[RequestOptions]
    ) -> CallToolResult:
        """Calls the tool of this public name, as `Client.call_tool`."""
        return the_background().run(self._async.call_tool(name, arguments, **options))

    def call_tool_task(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        ttl: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> TaskHandle:
        """As `Client.call_tool_task`."""
        client, own = the_background().run(self._async._route("tool", name))
        return Client.of(client).call_tool_task(own, arguments, ttl, **options)

    @deprecated("MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry")
    def set_log_level(self, level: Level, **options: Unpack[RequestOptions]) -> None:
        """Wants log messages of this level and more severe ones of all servers that log, now and later."""
        the_background().run(self._async.set_log_level(level, **options))

    def ping(self, **options: Unpack[RequestOptions]) -> None:
        """Asks all servers that are connected for a sign of life."""
        the_background().run(self._async.ping(**options))

    def _do(self, request: Request[T], options: RequestOptions) -> T:
        return the_background().run(self._async._do(request, options))

    def __repr__(self) -> str:
        return repr(self._async).replace("AsyncClient", "Client")

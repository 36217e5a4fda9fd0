"""Features that a server offers: tools, resources, prompts, completion; added before it serves or while it does."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from .. import _core
from ..bridge.host import Handler, Host
from ..bridge.local_server import LocalServer
from ..call.handler import Subject, handler, hook, hook_handler
from ..call.request_options import notified
from ..call.signature import Signature, unwrapped
from ..errors import MisuseError
from ..json import checks
from ..json.deprecation import deprecated
from ..json.encoding import encode
from ..json.options import options_text
from ..model.definitions import Kind
from ..model.options import CacheHints
from . import completion, sources
from .context import Context
from .engine import Engine
from .extension import Extension, register
from .registry import Offering

F = TypeVar("F", bound=Callable[..., Any])
W = TypeVar("W", bound=Callable[[Context], Awaitable[str | None] | str | None])


def _whose(host: Host, function: Callable[[Context], Awaitable[str | None] | str | None]) -> Handler:
    """The entry of the handler table for what says whose a request is."""
    given: object = function
    if isinstance(given, type) or not callable(given):
        raise MisuseError(f"principal: expected a function of a context, got {checks.shown(given)}")
    try:
        with suppress(ValueError):  # of what is not written in Python, which may not say
            inspect.signature(function).bind(None)
    except TypeError:
        raise MisuseError(f"principal: {function!r} is called with (context)") from None

    def call(context: Context) -> Awaitable[str | None] | str | None:
        return function(context)

    def answer(key: int, value: object) -> None:
        if not (value is None or isinstance(value, str)):
            raise TypeError(f"principal: expected a str or None, got {type(value).__qualname__}")
        host.bridge.result(key, encode({"principal": value}))

    is_async = inspect.iscoroutinefunction(unwrapped(function))
    signature = Signature(call, is_async, "context", [], False, None, Any)
    return handler(host, Subject("the principal", ""), signature, lambda: lambda _: {}, answer, None)


class Offer(Offering, LocalServer):
    """The half of a server that says what there is."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], list[int]] = {}

    @property
    def _engine(self) -> Engine:
        """That of this process."""
        raise NotImplementedError

    @property
    def _core(self) -> _core.Server:
        return self._engine.core

    def add_file(
        self,
        path: str | os.PathLike[str],
        uri: str,
        *,
        max_bytes: int | None = None,
        cache: CacheHints | None = None,
        scopes: Sequence[str] = (),
    ) -> None:
        """Adds a file as a resource, read when it is asked for.

        Files of more than `max_bytes`, 2 MiB, are refused. `cache` is how long what is in it keeps, and for whom.
        `scopes` are what a caller's access token needs, over HTTP.
        """
        limits = {"max_bytes": max_bytes, "cache": cache}
        self._add_files(path, uri, scopes, {"directory": False, **limits})

    def add_directory(
        self,
        path: str | os.PathLike[str],
        uri: str,
        *,
        hidden: bool = False,
        max_files: int | None = None,
        max_bytes: int | None = None,
        cache: CacheHints | None = None,
        scopes: Sequence[str] = (),
    ) -> None:
        """Adds the files of a directory, and of those in it, as resources: `uri` with their path behind it.

        They are listed and read as they are when they are asked for. Nothing outside of the directory can be read,
        by `..` or by a symbolic link; files whose names begin with a dot only if `hidden`. At most `max_files`,
        10,000, are listed, and files of more than `max_bytes`, 2 MiB, are refused. The directory is removed, hidden and
        shown as a resource, by its `uri`: `remove_resource(uri)`, `set_enabled("resource", uri, False)`. `cache` is how
        long what is in the files keeps, and for whom; `scopes` are what a caller's access token needs, over HTTP, to
        see and read them.
        """
        limits = {"hidden": hidden, "max_files": max_files, "max_bytes": max_bytes, "cache": cache}
        self._add_files(path, uri, scopes, {"directory": True, **limits})

    def _add_files(
        self, path: str | os.PathLike[str], uri: str, scopes: Sequence[str], options: dict[str, Any]
    ) -> None:
        checks.texts("scopes", scopes)
        options["scopes"] = list(scopes)
        self._engine.add_files(uri, options_text({"path": os.fspath(path), "uri": uri, **options}))

    def add_extension(self, extension: Extension) -> None:
        """Offers an extension of the protocol; connections that are open do not learn of it.

        `MisuseError` names what is wrong with it, or taken.
        """
        register(extension, self._host, self._threads, self._engine.add_extension)

    def notify(self, method: str, params: Mapping[str, Any] | None = None, key: str | None = None) -> None:
        """Sends a notification of an extension to the clients that asked for it.

        Those are the ones with `true` in its member of their filter, and those with `key` in that. Clients of older
        revisions, which cannot ask, hear of it when they declare the extension. `MisuseError` when no extension has it.
        """
        self._core.notify(method, notified(method, params), key)

    def elicitation_complete(self, elicitation_id: str) -> None:
        """Tells the client that what its user did at a page is done (2025-11-25).

        It is the client that was asked under this id, by `ctx.elicit_url` or `UrlElicitationRequiredError`, also after
        the call. Of one client the last 256 visits are known; nothing happens with others.
        """
        self._core.elicitation_complete(elicitation_id)

    def resource_updated(self, uri: str) -> None:
        """Tells clients of a changed resource: those that subscribed or listen to it, or to what it is a part of."""
        self._core.resource_updated(uri)

    def set_enabled(self, kind: Kind, name: str, enabled: bool) -> bool:
        """Shows or hides something from all clients: what is hidden is not listed and cannot be used.

        `name` is the name, URI or URI template; of a directory its URI, as a resource. False: nothing changed.
        `ctx.set_enabled` does it for one client.
        """
        return self._engine.set_enabled(kind, name, enabled)

    def set_source(
        self,
        kind: Kind,
        list: Callable[..., Any] | None = None,  # noqa: A002 - the natural word here
        get: Callable[..., Any] | None = None,
    ) -> None:
        """Adds functions that list and get what is not registered: entries of a database, or of another server.

        `list(cursor)` gives the schema's objects (or `Tool`, `Resource`, ... of a client), alone or with the next
        cursor: `(entries, next_cursor)`. `get` is `(name, arguments)` for tools and prompts, `(uri)` for resources, and
        answers as their functions do. An error of a peer is passed on as it is, so this is a proxy:

            app.set_source("tool", list=client.list_tools_page, get=client.call_tool)
        """
        numbers = [
            None if function is None else self._host.add(make(self._host, kind, function, self._threads))
            for make, function in ((sources.lister, list), (sources.getter, get))
        ]
        self._engine.set_source(kind, *numbers)
        self._replace(("source", kind), [number for number in numbers if number is not None])

    def list_changed(self, kind: Kind) -> None:
        """Tells clients that the list of a source has changed; of what is registered they are told anyway."""
        self._core.list_changed(kind)

    def on_complete(self, function: F, /) -> F:
        """Completes the arguments that have no `complete` of their own: `@app.on_complete`.

        The function takes `(ref, argument, value, arguments)`, or the first few of them: the schema's PromptReference
        or ResourceTemplateReference, the argument's name, its value so far, and those that are filled in already. It
        gives the values, or a `Completion`.
        """
        self._hook("complete", completion.fallback(self._host, function, self._threads))
        return function

    def on_subscribe(self, function: F, /) -> F:
        """Hears `(uri, subscribed)` of clients that subscribe or listen to a resource, and of the end of that.

        `@app.on_subscribe`. An exception refuses it. `resource_updated` tells those clients.
        """
        bridge = self._host.bridge
        entry = hook_handler(
            self._host,
            Subject("the subscription", "", told=True),
            hook(function, 2, "on_subscribe"),
            lambda params: (params["uri"], params["subscribed"]),
            lambda key, _: bridge.result(key, b"{}"),
            self._threads,
        )
        self._hook("subscribe", entry)
        return function

    def principal(self, function: W, /) -> W:
        """Says whose a request is, where users are known by something else than `auth`: `@app.principal`.

            @app.principal
            def user(ctx: Context) -> str | None:
                return ctx.request.headers.get("x-user")

        In 2026-07-28 the state between rounds of questions, and over HTTP a task, belong to who that is, and are
        refused to all others. None: nobody's in particular, and anybody of whom this says the same may go on. It is
        called inside of all middleware, whose `values` it sees, of requests that may ask or are about tasks; neither it
        nor middleware may ask the client then. A plain function runs on the event loop and must not block. When it
        fails, the request does. Without it: `ctx.principal`, else the issuer and subject of a JSON Web Token in
        `Authorization`, which is not verified here, else that header as it is.
        """
        self._hook("principal", _whose(self._host, function))
        return function

    @deprecated("MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration")
    def on_roots_changed(self, function: F, /) -> F:
        """Hears that a client's roots have changed: `@app.on_roots_changed`.

        The function may take a `Context`, which belongs to no request and can ask for them: `await ctx.list_roots()`.
        """
        bridge = self._host.bridge
        entry = hook_handler(
            self._host,
            Subject("what hears of roots", ""),
            hook(function, 0, "on_roots_changed"),
            lambda _: (),
            lambda key, _: bridge.result(key, b"{}"),
            self._threads,
        )
        self._hook("roots_changed", entry)
        return function

    def _hook(self, name: str, entry: Handler) -> None:
        number = self._host.add(entry)
        self._engine.set_hook(name, number)
        self._replace(("hook", name), [number])

    def _replace(self, what: tuple[str, str], numbers: list[int]) -> None:
        for number in self._numbers.pop(what, ()):
            self._host.drop(number)
        if numbers:
            self._numbers[what] = numbers

    def _tell(self, kind: Kind, name: str, definition: str, options: str, number: int) -> None:
        self._engine.add(kind, name, definition, options, number)

    def _keep(self, kind: Kind, name: str, numbers: list[int]) -> None:
        # Calls of what this replaces may be on their way: the engine says when there are none any more.
        self._numbers[kind, name] = numbers

    def _remove(self, kind: Kind, name: str) -> bool:
        removed = self._engine.remove(kind, name)
        if removed:
            self._replace((kind, name), [])
        return removed

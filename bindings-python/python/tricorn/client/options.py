"""Options of a client, and the targets that it connects to."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypedDict, cast

from .. import _core
from ..bridge.host import Host, OnError
from ..bridge.local_server import LocalServer
from ..call.context import RequestContext
from ..call.middleware import Around, Builtin
from ..call.request_options import limit
from ..errors import MisuseError
from ..json import checks
from ..json.checks import called, known_options
from ..json.deprecation import warn_options
from ..json.options import options_text
from ..model.options import Identity, TaskOptions, caller, switched
from ..model.trace import TraceSource, source_of
from .handlers import CALLBACKS, QUESTIONS, Handlers, of_policy

if TYPE_CHECKING:
    from ..model.store_options import StoreOptions
    from .auth import ClientAuth
    from .cache_store import CacheStore
    from .http_transport import HttpTransport, HttpxClient, HttpxTransport

Target = str | LocalServer | Mapping[str, Any] | Sequence[str] | os.PathLike[str]
"""A URL, a command line, a server of this process, `{"url": ...}`, `{"command": ..., "args": ...}`, a list of
arguments, the path of a host's `mcp.json`, what such a file holds, `{"mcpServers": {...}}`, or a cassette,
`"replay:FILE"` or `"replay:FILE?strict"`."""


class ClientCache(TypedDict, total=False):
    """Options of a client's cache of its server's answers, which keeps them as long as they say (2026-07-28)."""

    enabled: bool
    """Caches answers; True."""
    max_entries: int
    """Answers that are kept; 1,000. Those that were used longest ago make room."""
    max_bytes: int
    """Bytes of them; 16 MiB."""
    stale_on_error: bool
    """Gives the last answer when the server cannot be asked, although it is no longer fresh, with `tricorn/stale` in
    its `_meta`; no."""
    shared: bool
    """Keeps them together with other clients of this process that do: of one HTTP server, and private answers only
    under the same authorization; no."""
    scope: str
    """The authorization under which private answers are kept, such as a user's id, where that is not what the HTTP
    headers and the address say."""
    store: CacheStore | str | StoreOptions
    """Keeps them in a Redis or Valkey at this URL, or in a store of your own, which other processes may share: of
    HTTP servers, what is private only under the same authorization. What other servers say is kept in the client's
    memory."""


class SharedOptions(Identity, Handlers, total=False):
    """Options of a client, or of every client of a group; times in seconds."""

    name: str | None
    """The name that the server is told; that of the package, or the file, that makes the client."""
    version: str | None
    """That package's version."""
    revision: str | None
    """Speak this protocol revision only, such as `"2025-11-25"`; by default the newest both know."""
    request_timeout: float | None
    """Without answer or progress; 60. None or 0: no limit."""
    probe_timeout: float | None
    """For finding out which revisions an old server speaks; 5."""
    max_message_bytes: int | None
    """Longest message accepted, in bytes; 32 MiB."""
    max_nesting: int | None
    """Deepest JSON accepted; 128."""
    max_decoded_bytes: int | None
    """Memory that a message's values may take once decoded, in bytes and by estimate; 64 MiB."""
    max_memory: int | None
    """Bytes that the whole process keeps for its peers at most, such as long messages until they are read; a quarter of
    the memory of the machine or its control group. The last client or server that says it decides for all."""
    max_in_flight: int | None
    """Requests awaited at once, further ones wait their turn; 256."""
    headers: Mapping[str, str] | None
    """HTTP headers sent with every request; none."""
    proxy: str | None
    """The proxy for all that is asked over HTTP, logins included: a URL with `http://` or `socks5://`; empty for none.
    By default `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say it."""
    ca: str | None
    """Authorities whose certificates are trusted besides those of this machine, which `SSL_CERT_FILE`, `SSL_CERT_DIR`
    and `NODE_EXTRA_CA_CERTS` may name: PEM, or the path of a file with that; none."""
    cert: str | None
    """The client's own certificate: PEM, or the path of a file with that; none."""
    key: str | None
    """The private key that it belongs to: PEM, or the path of a file with that; by default it is in `cert`."""
    http_transport: HttpTransport | HttpxClient | HttpxTransport | None
    """Carries all HTTP of this client, logins included, in place of connections of its own: an `HttpTransport`, an
    `httpx.AsyncClient`, an `httpx.AsyncBaseTransport`, or a `tricorn.testing.ASGITransport`, for an application of this
    process. It stays open when the client is closed. `proxy`, `ca`, `cert` and `key` beside it are a `MisuseError`, and
    what it raises is a `TransportError`. Default: connections of its own."""
    auth: ClientAuth | bool | None
    """Authorization at a protected server, over HTTP; True, as `ClientAuth()`, finds out everything. No."""
    shutdown_grace: float | None
    """Seconds a child process has to end by itself; 2."""
    ping_interval: float | None
    """Seconds without a message of the server after which it is asked for a sign of life; 0, which is never."""
    ping_timeout: float | None
    """Seconds after which a server that does not answer that is taken for lost, and the connection ends; 20."""
    tasks: TaskOptions | bool | None
    """Runs `sampling` and `elicitation` as tasks, where the server wants that (2025-11-25, experimental). In 2026-07-28
    it declares the extension `io.modelcontextprotocol/tasks`: the server may answer calls of tools with tasks, which
    are followed to their end. No."""
    cache: ClientCache | bool | None
    """The cache of the server's answers, of those that say they may be kept. False: nothing."""
    extensions: Mapping[str, Mapping[str, Any]] | None
    """Extensions of the protocol to declare, each with its settings: `{"com.example/search": {}}`; none."""
    validate_output: bool | None
    """Checks a tool's structured content against the output schema that this client has listed; what does
    not fit is a `PeerMisbehavedError`; True."""
    record: str | None
    """Records everything that passes as a cassette, in this file, which is replaced; nothing. `"replay:FILE"` is a
    target that plays it."""
    redact: bool | None
    """Leaves secrets out of what is recorded: values of headers, of the target's environment and query, of `auth`, of
    members and variables that are named like secrets, and texts that look like them; True."""
    restart: bool | None
    """Restarts a program that has ended unasked, when it is needed, in revisions without sessions, at
    most five times within a minute; in others the client ends with it; True."""
    inherit_env: bool | Sequence[str] | None
    """The part of this program's environment that a started program gets, besides the `env` of its target: all of it
    (True), a short list of what programs need, in which no secret is (False), or that list and these names; True."""
    variables: Mapping[str, str] | None
    """Values of the placeholders of an `mcp.json`, by the text between their braces: `{"input:key": "..."}`; they
    come before the environment; nothing."""
    capabilities: Mapping[str, Any] | None
    """Further capabilities that the client declares, such as `{"experimental": {}}`; none."""
    trace_context: TraceSource | None
    """Called where a request is made, for the trace that it belongs to; None is no trace. Default: what the first of
    `middleware` says that has a method `trace_context`, such as `tricorn.otel.Telemetry`; else nothing."""
    middleware: Sequence[Around[RequestContext] | Builtin] | None
    """Middleware around every request that is sent, the first outermost; none. See `Server.middleware`."""
    on_error: OnError | None
    """Called with what a handler or a callback raised, and its name; by default the logger `tricorn` gets it."""


class ClientOptions(SharedOptions, total=False):
    """Options of a client; times in seconds."""

    server: str | None
    """The server to use of an `mcp.json` with several."""


def introduce(options: SharedOptions, module: Mapping[str, Any]) -> None:
    """Fills in name and version of the program that `module` belongs to."""
    if "name" not in options or "version" not in options:
        name, version = caller(module, "version" not in options)
        options.setdefault("name", name)
        options.setdefault("version", version)


class Given:
    """A client's options, sorted by who needs them."""

    def __init__(self, what: str, options: Mapping[str, Any], known: type) -> None:
        known_options(f"{what} options", options, known)
        self.settings: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
        if "request_timeout" in options:
            self.settings["request_timeout"] = limit(options["request_timeout"]) or 0
        switched(self.settings)
        take = self.settings.pop
        if (policy := take("policy", None)) is not None:
            self.settings = {**of_policy(policy), **self.settings}
            take = self.settings.pop
        warn_options(self.settings)
        self.auth: object = take("auth", None)
        self.http_transport: object = take("http_transport", None)
        self.callbacks = {name: called(name, take(name)) for name in CALLBACKS if name in self.settings}
        self.questions = {name: take(name) for name in QUESTIONS if name in self.settings}
        self.middleware: object = take("middleware", ())
        self.trace = source_of(called("trace_context", take("trace_context", None)), self.middleware)
        self.on_error: OnError | None = called("on_error", take("on_error", None))

    def text(self, host: Host) -> str:
        """The settings as the engine takes them; functions among them get their places in the table of `host`."""
        all_of_them: dict[str, Any] = {**self.settings}
        given: object = all_of_them.get("cache")
        if given is not None and not isinstance(given, bool):
            from .cache_store import kept

            all_of_them["cache"] = kept(host, given, ClientCache)
        if self.http_transport is not None:
            from .http_transport import place

            all_of_them["http_transport"] = place(host, self.http_transport)
        if self.auth:
            from .auth import settings

            all_of_them["auth"] = settings(host, self.auth)
        return options_text(all_of_them)

    def plus(self, what: str, more: Mapping[str, Any]) -> Given:
        """The same with other callbacks and answers in place."""
        added = Given(what, more, Handlers)
        both = Given(what, {}, Handlers)
        both.callbacks = {**self.callbacks, **added.callbacks}
        both.questions = {**self.questions, **added.questions}
        both.middleware, both.trace = self.middleware, self.trace
        return both


def _python(target: object) -> list[str] | None:
    """The words of a command that begins with a Python file which the system cannot run by itself: `./weather.py`."""
    words: list[str]
    if isinstance(target, str):
        # The engine says again what is wrong with it, for which UnicodeEncodeError has no words.
        with suppress(MisuseError, UnicodeEncodeError):
            words = [target] if os.path.isfile(target) else _core.split_command(target)
            return _run_by_python(words)
        return None
    if isinstance(target, os.PathLike):
        return _run_by_python([os.fsdecode(cast("os.PathLike[str]", target))])
    if isinstance(target, Sequence) and not isinstance(target, bytes):
        return _run_by_python([*cast("Sequence[str]", target)])
    return None


def _run_by_python(words: list[str]) -> list[str] | None:
    if not words or not os.path.normcase(words[0]).endswith(".py") or not os.path.isfile(words[0]):
        return None
    # On Windows every file counts as a program, and this is none.
    return None if sys.platform != "win32" and os.access(words[0], os.X_OK) else [sys.executable, *words]


def resolve(target: Target, which: str | None, heard: bool) -> dict[str, Any]:
    """Returns the target that the engine connects to, for everything but a server of this process.

    `which` names a server of a configuration; `heard`: somebody listens to the program's stderr.
    """
    where: dict[str, Any]
    if (program := _python(target)) is not None:
        target = program
    if isinstance(target, os.PathLike):
        path = os.fsdecode(target)
        if not path.isprintable() and any("\ud800" <= c <= "\udfff" for c in path):
            raise MisuseError(f"cannot connect to {target!r}: the path is not UTF-8")
        where = {"file": path}
    elif isinstance(target, str):
        where = {"text": target}
    elif isinstance(target, Mapping):
        where = dict(target)
        if "mcpServers" in where and not isinstance(where["mcpServers"], Mapping):
            raise MisuseError(f'target "mcpServers": expected an object, got {checks.type_of(where["mcpServers"])}')
    elif isinstance(target, LocalServer) or not isinstance(target, Sequence) or isinstance(target, bytes) or not target:  # pyright: ignore[reportUnnecessaryIsInstance]
        got = "bytes" if isinstance(target, bytes) else repr(target)
        raise MisuseError(f"cannot connect to {got}: expected a URL, a path, a command line or an object")
    else:
        command, *arguments = target
        where = {"command": command, "args": arguments}
    if which is not None:
        where["server"] = which
    if heard and "url" not in where:
        where.setdefault("stderr", "event")
    return where

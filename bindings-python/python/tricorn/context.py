"""What a handler may know, do and ask while it runs: the optional `Context` parameter of every handler."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent import futures
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

import msgspec

from .content import Implementation, member
from .errors import CancelledError, ClosedError, Error, MisuseError
from .host import NO_STATE

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .ask import CreateMessageResult, Elicited, Form, Root
    from .host import Host
    from .prompts import Message, Said
    from .requests import RequestOptions
    from .session import Session

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    State = TypeVarWithDefault("State", default=Any)
else:
    State = TypeVar("State")
T = TypeVar("T")
Kind = Literal["tool", "resource", "resource_template", "prompt"]
CURRENT: contextvars.ContextVar[tuple[Host, int]] = contextvars.ContextVar("tricorn.call")
"""The call whose handler runs here."""

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class RequestInfo:
    """The request a handler answers, the same in every protocol revision. `raw` is everything the engine knows."""

    __slots__ = ("raw",)

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    @property
    def id(self) -> str | int:
        """The JSON-RPC id."""
        return self.raw["requestId"]  # type: ignore[no-any-return]

    @property
    def method(self) -> str:
        """The JSON-RPC method."""
        return self.raw["method"]  # type: ignore[no-any-return]

    @property
    def protocol_version(self) -> str:
        """The protocol revision this request is served by, such as `"2025-11-25"`."""
        return self.raw["protocolVersion"]  # type: ignore[no-any-return]

    @property
    def era(self) -> Literal["legacy", "modern"]:
        """`"legacy"` for revisions with sessions, `"modern"` for stateless ones."""
        return self.raw["era"]  # type: ignore[no-any-return]

    @property
    def client_info(self) -> Implementation | None:
        """What the client calls itself; no proof of anything."""
        info = self.raw.get("clientInfo")
        return member("clientInfo", info, Implementation)

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """What the client said it can do."""
        return self.raw.get("clientCapabilities") or {}

    @property
    def progress_token(self) -> str | int | None:
        """Present when the client wants progress notifications."""
        return self.raw.get("progressToken")

    @property
    def log_level(self) -> str | None:
        """The least severe level of log messages the client wants."""
        return self.raw.get("logLevel")

    @property
    def meta(self) -> dict[str, Any]:
        """The request's `_meta`."""
        return self.raw.get("meta") or {}

    @property
    def task_id(self) -> str | None:
        """The task that the request runs as (2025-11-25)."""
        return self.raw.get("taskId")

    @property
    def transport(self) -> Literal["stdio", "http", "memory"]:
        """How the request came."""
        return self.raw["transport"]  # type: ignore[no-any-return]

    @property
    def session_id(self) -> str | None:
        """The session of a legacy HTTP connection."""
        return self.raw.get("sessionId")

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP headers of the request, names in lower case, repeated ones joined; empty for other transports."""
        headers: dict[str, str] = {}
        pairs: list[tuple[str, str]] = self.raw.get("headers") or []
        for name, value in pairs:
            key = name.lower()
            headers[key] = f"{headers[key]}, {value}" if key in headers else value
        return headers

    def __repr__(self) -> str:
        return f"RequestInfo({self.raw!r})"


class RequestContext:
    """The request that a function works on: all that a client's handlers and middleware get, and the base of `Context`.

    What is no coroutine may be called from any thread. After the function has returned it does nothing.
    """

    __slots__ = ("_host", "_key", "_request", "_values")

    def __init__(self, host: Host, key: int) -> None:
        self._host = host
        self._key = key
        self._request: RequestInfo | None = None
        self._values: dict[Any, Any] | None = None

    @classmethod
    def current(cls) -> Self:
        """The context of the call whose handler runs here, for functions that are not handed one."""
        host, key = CURRENT.get(None) or (None, 0)
        if host is None:
            raise MisuseError(f"there is no call: {cls.__name__}.current() works in handlers and what they call")
        if Context in cls.__mro__ and not host.serves:
            raise MisuseError(
                "this is a client's handler, which has no client to talk to: use RequestContext.current()"
            )
        return cls(host, key)

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> bool:
        """Tells the peer how far the call is, if it asked; False when the call is over.

        `progress` must grow with every report; any unit will do, `total` in the same one.
        """
        return self._host.bridge.progress(self._key, progress, total, message)

    @property
    def cancelled(self) -> bool:
        """True when the peer no longer wants the answer; asynchronous functions are cancelled as well."""
        return self._key in self._host.cancelled

    @property
    def request(self) -> RequestInfo:
        """What the call came with; ask while the handler still runs."""
        if self._request is None:
            text = self._host.bridge.context(self._key)
            if text is None:
                raise MisuseError("the call is over: read ctx.request while the handler still runs")
            self._request = RequestInfo(msgspec.json.decode(text))
        return self._request

    @property
    def values(self) -> dict[Any, Any]:
        """Whatever the middleware and the handler of this one request want to tell each other; empty at first."""
        if self._values is None:
            self._values = self._shared(self._key)
        return self._values

    def _shared(self, key: int) -> dict[Any, Any]:
        host = self._host
        known = host.values.get(key)
        if known is not None:
            return known
        text = host.bridge.context(key)
        if text is None:
            raise MisuseError("the call is over: read ctx.values while the handler still runs")
        through: int | None = msgspec.json.decode(text, type=_Through).through
        # Called once for each key while its function runs, whose end frees the entry.
        return host.values.setdefault(key, {} if through is None else self._shared(through))

    def wait(self, question: Awaitable[T]) -> T:
        """Waits in a worker thread for what `elicit` and the like return: `ctx.wait(ctx.elicit("Sure?"))`.

        When the call is cancelled meanwhile, it raises `CancelledError`.
        """
        host = self._host
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            _discard(question)
            raise MisuseError("ctx.wait would block the event loop: use await here")
        call = cast("Callable[[futures.Future[T]], T] | None", getattr(host.running.get(self._key), "wait", None))
        if host.loop is None or call is None:
            _discard(question)
            raise ClosedError("the call is over, or does not run in a worker thread")
        future = asyncio.run_coroutine_threadsafe(_awaited(question), host.loop)
        try:
            return call(future)
        except futures.CancelledError:
            raise CancelledError("the client no longer wants the answer") from None


class Context(RequestContext, Generic[State]):
    """The call that a server's handler works on; ask for it with a parameter annotated `Context`.

    What asks the client something is awaited on the server's event loop; a plain function, which runs in a worker
    thread, says `ctx.wait(ctx.elicit(...))`. A handler that is cancelled takes its questions back. `Context[AppState]`
    says what `ctx.state` is.
    """

    __slots__ = ()

    @property
    def state(self) -> State:
        """What the server's `lifespan` yielded, or its `state`."""
        state = self._host.state
        if state is NO_STATE:
            raise MisuseError("the server has no state: give it one with Server(lifespan=...) or Server(state=...)")
        return cast(State, state)

    def log(self, level: Level, data: Any, logger: str | None = None) -> bool:
        """Sends the client a log message; False when its level filters the message out.

        `data` is any value that JSON has; of anything else its text is sent.
        """
        return self._host.bridge.log(self._key, level, logger, _loggable(data))

    def set_status(self, message: str) -> bool:
        """Says what the call is doing, for who looks at its task; False when the call is over."""
        return self._host.bridge.set_status(self._key, message)

    def require(self, capability: str) -> None:
        """Refuses the call when the client did not declare a capability, like `"sampling"` or `"elicitation.url"`.

        The error (an `RpcError`) is the one the protocol prescribes; let it pass.
        """
        self._host.bridge.require(self._key, capability)

    @property
    def session(self) -> Session:
        """What this client's session has besides, to add tools, resources and prompts for it alone."""
        from .session import Session

        return Session(self._host, self._key)

    def set_enabled(self, kind: Kind, name: str, enabled: bool) -> bool:
        """Shows or hides something from this client alone, for as long as its session lasts.

        `name` is the name, URI or URI template. False: nothing changed. Revisions without sessions raise
        `UnsupportedError`.
        """
        try:
            return self._host.bridge.set_enabled(self._key, kind, name, enabled)
        except Error as error:
            error.asked = (self._host, self._key)
            raise

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> bool:
        """Sends the client a notification as part of this call; False when the call is over."""
        return self._host.bridge.notify(self._key, method, None if params is None else _encode(params))

    def close_stream(self) -> bool:
        """Ends the event stream that the answer goes on, to free its connection while a long call runs.

        The client asks for the rest after the server's `sse_retry`; what is sent meanwhile is kept for it. Where a
        client would not come back, or there is no such stream, nothing happens. False: the call is over.
        """
        return self._host.bridge.close_stream(self._key)

    # -- questions

    async def ask(
        self, method: str, params: Mapping[str, Any] | None = None, **options: Unpack[RequestOptions]
    ) -> dict[str, Any]:
        """Sends the client any request as part of this call; the result object as it is on the wire.

        The client has all the time it needs unless `timeout` is given. Errors: `RpcError` is the client's own,
        `UnsupportedError` names a capability that it does not declare; nothing was sent then. A handler that lets these
        pass answers with the client's error, or fails with the message.
        """
        return await self._ask(method, params, options, _decoded)

    async def _ask(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        options: RequestOptions,
        read: Callable[[bytes], T],
    ) -> T:
        from .requests import progress_of, with_meta, written

        host, key = self._host, self._key
        settings, text = written(method, options), with_meta(params, options)
        progress = progress_of(options, host)
        try:
            return read(await host.wait(lambda op: host.bridge.ask(key, op, method, text, settings), progress))
        except Error as error:
            error.asked = (host, key)
            raise

    @overload
    async def elicit(
        self, message: str, schema: Mapping[str, Any], **options: Unpack[RequestOptions]
    ) -> Elicited[dict[str, Any]]: ...

    @overload
    async def elicit(self, message: str, schema: Form[T], **options: Unpack[RequestOptions]) -> Elicited[T]: ...

    @overload
    async def elicit(self, message: str, schema: type[T], **options: Unpack[RequestOptions]) -> Elicited[T]: ...

    @overload
    async def elicit(self, message: str, schema: Any = None, **options: Unpack[RequestOptions]) -> Elicited[Any]: ...

    async def elicit(self, message: str, schema: Any = None, **options: Unpack[RequestOptions]) -> Elicited[Any]:
        """Asks the user to fill in a form; `answer.content` is a value of the type that `schema` is.

        `schema` is a type with flat fields (a dataclass, TypedDict, msgspec or pydantic model), a type of one value
        (`int`, `Literal["red", "blue"]`, `list[Literal[...]]`), a JSON Schema, or None for a mere yes or no; a `Form`
        is made of the same and checked before anybody is asked.
        """
        from .ask import Form

        asked = Form.of(schema)
        params = {"mode": "form", "message": message, "requestedSchema": asked.schema}
        return await self._ask("elicitation/create", params, options, asked.answer)

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str, **options: Unpack[RequestOptions]
    ) -> Elicited[None]:
        """Asks the user to visit a page, for what must not pass through the client, such as a password.

        `accepted` means that the user agreed to go there. Say with `elicitation_complete` when the visit is over.
        """
        from .ask import Form

        params = {"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id}
        return await self._ask("elicitation/create", params, options, Form.of(None).answer)

    def elicitation_complete(self, elicitation_id: str) -> bool:
        """Tells the client that what the user did at a page is done; False when the call is over."""
        return self.notify("notifications/elicitation/complete", {"elicitationId": elicitation_id})

    async def sample(
        self,
        messages: Said | Message | Sequence[Said | Message | CreateMessageResult],
        max_tokens: int,
        *,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        model_preferences: Mapping[str, Any] | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **options: Unpack[RequestOptions],
    ) -> CreateMessageResult:
        """Asks the client's model to go on: after a text, or after the messages of `user(...)` and `assistant(...)`.

        What an earlier call returned is a message, too. `result.text` is what the model wrote. `tools` are the schema's
        Tool objects, for clients with `sampling.tools`.
        """
        from .ask import CreateMessageResult
        from .prompts import messages as several

        given = {
            "messages": several(messages),
            "maxTokens": max_tokens,
            "systemPrompt": system_prompt,
            "temperature": temperature,
            "stopSequences": stop_sequences,
            "modelPreferences": model_preferences,
            "includeContext": include_context,
            "tools": tools,
            "toolChoice": tool_choice,
            "metadata": metadata,
        }
        params = {key: value for key, value in given.items() if value is not None}
        return await self._ask("sampling/createMessage", params, options, CreateMessageResult.from_wire)

    async def list_roots(self, **options: Unpack[RequestOptions]) -> list[Root]:
        """The folders and files that the client lets this server work on."""
        from .ask import read_roots

        return await self._ask("roots/list", None, options, read_roots)


class _Through(msgspec.Struct):
    through: int | None = None


def _decoded(answer: bytes) -> dict[str, Any]:
    return cast("dict[str, Any]", msgspec.json.decode(answer))


async def _awaited(question: Awaitable[T]) -> T:
    return await question


def _discard(question: Any) -> None:
    close = getattr(question, "close", None)
    if close is not None:
        close()


def _encode(value: Any) -> bytes:
    from .handler import encode

    return encode(value)


def _loggable(data: Any) -> bytes:
    try:
        return _encode(data)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(str(data).encode("utf-8", "replace").decode())

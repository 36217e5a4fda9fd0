"""Middleware around every request: of a server, those that its handlers answer; of a client, those that it sends."""

from __future__ import annotations

import contextvars
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar, cast

import msgspec

from ..bridge.host import Handler, Host
from ..errors import Error, MisuseError
from ..json import checks
from ..json.decoding import decode, decoded
from ..json.encoding import encode
from ..json.options import options_text
from ..model.trace import told
from ..model.wire_result import WireResult
from .context import RequestContext
from .handler import Answer, Subject, handler
from .signature import Signature, unwrapped

C = TypeVar("C", bound=RequestContext, contravariant=True)
Result = dict[str, Any]
"""The result object as it is on the wire, such as `{"content": [...]}` of tools/call."""


class Request:
    """A request on its way: its JSON-RPC `method`, and `params`, an object that may be changed or replaced.

    The method says what the request is; another one here makes no difference.
    """

    __slots__ = ("_params", "_wire", "method")

    def __init__(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.method = method
        self._params: dict[str, Any] | None = {} if params is None else dict(params)
        self._wire = b"{}"

    @classmethod
    def from_wire(cls, method: str, params: bytes) -> Request:
        """Makes a request of parameters that came as JSON text; empty for none."""
        self = cls.__new__(cls)
        self.method = method
        self._params = None
        self._wire = params
        return self

    @property
    def params(self) -> dict[str, Any]:
        """The parameters; empty when there are none."""
        if self._params is None:
            self._params = cast("dict[str, Any]", decode(self._wire or b"null") or {})
        return self._params

    @params.setter
    def params(self, params: Mapping[str, Any]) -> None:
        self._params = dict(params)

    def to_wire(self) -> bytes | None:
        """The parameters as they go on; None for those that came, which nobody looked at."""
        if self._params is None or not (self._params or self._wire):
            return None
        return encode(self._params)

    def __repr__(self) -> str:
        return f"Request({self.method!r}, {self.params!r})"


class Next(Protocol):
    """Lets a request go on: `result = await call_next(request, context)`.

    It may be called again, to try once more, or not at all. Errors are those that the request ends with. Cancelling the
    wait, say by a timeout, cancels what runs.
    """

    def __call__(self, request: Request, context: RequestContext, /) -> Awaitable[Result]:
        """Waits for the result object."""
        ...


class Around(Protocol[C]):
    """Middleware as a function: `async def timing(request: Request, context: Context, call_next: Next) -> Result`."""

    def __call__(self, request: Request, context: C, call_next: Next, /) -> Awaitable[Result] | Result:
        """Handles one request; what it returns is the result."""
        ...


class Builtin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A middleware of the engine: `logging`, `timing`, `rate_limit` and `concurrency_limit` of this module make it."""

    kind: str
    per_second: float | None = None
    burst: int | None = None
    per_session: bool = False
    max: int | None = None
    max_waiting: int | None = None


Middleware = Around[RequestContext] | Builtin


def logging() -> Builtin:
    """Writes each request with its time and outcome to the logger `tricorn`.

    The level is INFO, for those that ended with an error WARNING. A record's attribute `request` holds the facts:
    `{"method", "name"?, "seconds", "error"?, "cancelled"}`.
    """
    return Builtin("logging")


def timing() -> Builtin:
    """Counts requests and their times: `metrics()["timing"]` is `{method: {count, failed, seconds, longest}}`."""
    return Builtin("timing")


def rate_limit(per_second: float, burst: int | None = None, per_session: bool = False) -> Builtin:
    """Refuses requests above a rate with a JSON-RPC error.

    `burst` may come at once, as many as `per_second` when it is not given. `per_session`: each client has a rate of its
    own: each legacy HTTP session, else each principal, and over standard streams and in memory each connection.
    Requests over HTTP that have neither session nor principal share one.
    """
    return Builtin("rate_limit", per_second=per_second, burst=burst, per_session=per_session)


def concurrency_limit(max: int, max_waiting: int | None = None) -> Builtin:  # noqa: A002 - the option's name
    """Lets `max` requests run at once; further ones wait their turn, at most `max_waiting`, and are refused then."""
    return Builtin("concurrency_limit", max=max, max_waiting=max_waiting)


class Wrapped(Protocol):
    """The native server or client that middleware is put around."""

    def add_middleware(self, handler: int) -> None:
        """A function's place in the handler table."""

    def add_builtin(self, options: str) -> None:
        """One of the engine's."""


def wrap(core: Wrapped, host: Host, middleware: object) -> None:
    """Puts one middleware around the requests of a server or client."""
    if isinstance(middleware, Builtin):
        core.add_builtin(options_text(middleware))
    else:
        core.add_middleware(host.add(_entry(host, middleware)))


def wrap_all(core: Wrapped, host: Host, middleware: object) -> None:
    """Puts several around, the first outermost."""
    if isinstance(middleware, (str, Builtin)) or callable(middleware) or not isinstance(middleware, Iterable):
        raise MisuseError(f"middleware: expected a list, got {checks.shown(middleware)}")
    for one in cast("Iterable[object]", middleware):
        wrap(core, host, one)


class _Wire(msgspec.Struct):
    method: str
    params: msgspec.Raw = msgspec.Raw(b"")


def _entry(host: Host, middleware: object) -> Handler:
    """The entry of the handler table for a function."""
    function = middleware
    if isinstance(function, type) or not callable(function):
        raise MisuseError(
            f"middleware: expected a function (request, context, call_next), got {checks.shown(function)}"
        )
    target = unwrapped(function)
    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError:
        raise MisuseError(f"middleware: {function!r} is called with (request, context, call_next)") from None
    name = getattr(target, "__qualname__", type(function).__name__)

    def call(request: Request, context: RequestContext) -> Any:
        return cast("Callable[..., Any]", function)(request, context, _go_on)

    wire = msgspec.json.Decoder(_Wire)

    def read(raw: bytes) -> dict[str, Any]:
        told = decoded(wire.decode, raw)
        return {"request": Request.from_wire(told.method, b"" if told.params == b"null" else bytes(told.params))}

    signature = Signature(call, inspect.iscoroutinefunction(target), "context", [], False, None, Any)
    subject = Subject("middleware", name.rpartition(">.")[2], around=True, to_caller=not host.serves)
    # Plain functions stay on the loop: in a worker thread they would wait for handlers that need one, too.
    return handler(host, subject, signature, lambda: read, _answering(host, subject), None)


async def _go_on(request: Request, context: RequestContext, /) -> Result:
    host, key = context._host, context._key
    params = request.to_wire()
    trace = "" if context._trace is None else json.dumps(told(context._trace))
    try:
        if key in host.values:  # until the call is over
            host.contexts[key] = contextvars.copy_context()
        answer = await host.wait(lambda op: host.bridge.next(key, op, params, trace))
    except Error as error:
        error.asked = (host, key)
        raise
    return cast(Result, decode(answer))


def _answering(host: Host, subject: Subject) -> Answer:
    def answer(key: int, value: Any) -> object:
        if isinstance(value, WireResult):
            return host.bridge.result(key, value.to_wire())
        if isinstance(value, Mapping):
            return host.bridge.result(key, encode(value))
        shown = json.dumps(value) if value is None else type(value).__qualname__
        raise TypeError(f"{subject}: expected a result object, such as what call_next gives, got {shown}")

    return answer

"""Options of one request: of a client's, and of a handler's questions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from ..bridge.host import Host
from ..errors import PeerMisbehavedError
from ..json import checks
from ..json.decoding import decoded
from ..json.encoding import encode_params
from ..json.options import options_text
from ..model.content import Progress
from ..model.trace import TraceLike, TraceSource, told
from .options import CacheMode, OnProgress, RawRequestOptions, RequestOptions

if TYPE_CHECKING:
    from ..model.questions import Question

_OPTIONS = frozenset((*RequestOptions.__annotations__, *RawRequestOptions.__annotations__))


def limit(seconds: float | None) -> float | None:
    """A time limit as the engine takes it: None for no limit, however that was said."""
    return None if seconds is None or seconds == 0 or seconds == math.inf else seconds


def request_options(
    timeout: float | UnsetType | None = UNSET,
    max_timeout: float | None = None,
    on_progress: OnProgress | None = None,
    idempotent: bool | None = False,
    task: float | bool | None = False,
    until_over: bool = False,
    cache: CacheMode | None = None,
    any_result: bool | None = False,
    trace_context: TraceLike | None = None,
    follows: int | None = None,
) -> str:
    """The options of one request for the engine; empty when there are none."""
    options: dict[str, Any] = {}
    if timeout is not UNSET:
        options["timeout"] = limit(timeout)
    if limit(max_timeout) is not None:
        options["max_timeout"] = max_timeout
    if on_progress is not None:
        options["progress"] = True
    if idempotent:
        options["idempotent"] = True
    if task is True:
        options["task"] = {}
    elif task is not False and task is not None:
        checks.finite("task", task)
        options["task"] = {"ttl": round(task * 1000)}
    if until_over:
        options["wait"] = True
    if cache is not None:
        options["cache"] = cache
    if any_result:
        options["any_result"] = True
    if trace_context is not None:
        options["trace_context"] = told(trace_context)
    if follows is not None:
        options["follow"] = follows
    return options_text(options) if options else ""


def written(
    method: str,
    options: RequestOptions | RawRequestOptions,
    until_over: bool = False,
    follows: int | None = None,
) -> str:
    """The options of one request for the engine, as `request_options`; an unknown one is refused."""
    if not options and not until_over and follows is None:
        return ""
    if unknown := options.keys() - _OPTIONS:
        raise TypeError(f"{method}: no option {min(unknown)!r}; there are {', '.join(RequestOptions.__annotations__)}")
    return request_options(
        options.get("timeout", UNSET),
        options.get("max_timeout"),
        options.get("on_progress"),
        options.get("idempotent", False),
        options.get("task", False),
        until_over,
        options.get("cache"),
        cast("RawRequestOptions", options).get("any_result", False),
        options.get("trace_context"),
        follows,
    )


Asked = tuple[str, msgspec.Raw]
"""A question's method and its parameters, which are JSON text already."""


def as_asked(questions: Sequence[Question[Any]], options: RequestOptions) -> list[Asked]:
    """Several questions as they are sent. `MisuseError` naming what is no JSON, as for each of them alone."""
    texts = [(one.method, with_meta(one.method, one.params, options)) for one in questions]
    return [(method, msgspec.Raw(text or b"{}")) for method, text in texts]


def together_with(settings: str, questions: Sequence[Asked], judged: bool = False) -> str:
    """The options of one of several questions, of which none is sent when one cannot be.

    `judged`: a library judges what its answer holds, and the engine does not.
    """
    if judged:
        given: dict[str, Any] = json.loads(settings) if settings else {}
        settings = options_text({**given, "judged": True})
    if len(questions) < 2:
        return settings
    members: dict[str, Any] = json.loads(settings) if settings else {}
    return options_text({**members, "together": questions})


def with_meta(method: str, params: Mapping[str, Any] | None, options: RequestOptions) -> bytes | None:
    """The parameters of a request as JSON text, with the `_meta` that its options give."""
    if params is not None:
        checks.mapping(f"{method}: parameters", params)
    meta = options.get("meta")
    if meta is not None:
        checks.mapping(f"{method}: meta", meta)
        own: Any = {} if params is None or params.get("_meta") is None else params["_meta"]
        checks.mapping(f"{method}: _meta", own)
        params = {**(params or {}), "_meta": {**own, **meta}}
    return None if params is None else encode_params(method, params)


def notified(method: str, params: Mapping[str, Any] | None) -> bytes | None:
    """The parameters of a notification as JSON text."""
    checks.text("notify: method", method)
    if params is None:
        return None
    checks.mapping(f"{method}: parameters", params)
    return encode_params(method, params)


def progress_of(options: RequestOptions, host: Host) -> Callable[[bytes], None] | None:
    """Returns the receiver of the progress that the options ask for, on the event loop of `host`."""
    callback = options.get("on_progress")
    if callback is None:
        return None
    return progress_sink(lambda progress: host.tell("on_progress", callback, progress))


def progress_sink(sink: OnProgress) -> Callable[[bytes], None]:
    """Returns the function that decodes progress for a callback."""
    decoder = msgspec.json.Decoder(Progress)

    def hear(params: bytes) -> None:
        try:
            progress = decoded(decoder.decode, params)
        except (msgspec.ValidationError, PeerMisbehavedError):  # the request goes on all the same
            return None
        return cast(None, sink(progress))

    return hear


def joined(options: str, source: TraceSource, host: Host) -> str:
    """A request's options with the trace that it belongs to, unless they say one."""
    if '"trace_context"' in options:
        return options
    try:
        trace = source()
        added = None if trace is None else told(trace)
    except Exception as error:  # noqa: BLE001 - a request does not fail for want of its trace
        host.report(error, "trace_context")
        return options
    if not added:
        return options
    return json.dumps({**(json.loads(options) if options else {}), "trace_context": added})

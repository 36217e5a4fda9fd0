"""From a Python function to an entry of the handler table: decode, run, answer."""

from __future__ import annotations

import contextvars
import inspect
import json
import typing
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..bridge.errors import members
from ..bridge.host import Handler, Host, raised
from ..bridge.threads import PATIENCE, Job, ThreadCall, Threads
from ..errors import (
    INVALID_PARAMS,
    CancelledError,
    Error,
    MisuseError,
    PeerMisbehavedError,
    RpcError,
    TimeoutError,  # noqa: A004 - this package's
    ToolError,
    UnsupportedError,
    unicode,
)
from ..json import checks
from ..json.decoding import decode as decode_any
from ..json.encoding import encode
from ..json.judge import ArgumentError
from ..model.input_required import InputRequired
from .context import CURRENT, RequestContext
from .signature import Decode, Signature, hints, is_context, unwrapped

if TYPE_CHECKING:
    from concurrent import futures

Answer = Callable[[int, Any], object]

INTERNAL_ERROR = -32603


class Subject(NamedTuple):
    """The subject of a handler, for messages and for how mistakes are answered."""

    word: str
    name: str
    for_model: bool = False
    """Bad arguments are told to the model, in a failed result; else they are a protocol error."""
    passes_on: bool = False
    """Errors that another peer sent are passed on as they are: a proxy's."""
    around: bool = False
    """Middleware: errors of the request itself are passed on as they are."""
    told: bool = False
    """It hears of something, which it does also when nobody waits for that any more."""
    to_caller: bool = False
    """Exceptions reach who called or connected in this process."""

    def __str__(self) -> str:
        return f"{self.word} {json.dumps(self.name, ensure_ascii=False)}" if self.name else self.word


_CAUSES = 64
"""Number of exceptions examined to find what has led to one."""


def _refusal(error: UnsupportedError, call: object) -> Error | None:
    """The refused question of this call that an exception is about, which may be another one's words for it."""
    found: BaseException | None = error
    for _ in range(_CAUSES):
        if found is None:
            break
        if isinstance(found, UnsupportedError) and found.asked == call:
            return found
        by_cause = found.__suppress_context__ or found.__cause__ is not None
        found = found.__cause__ if by_cause else found.__context__
    return None


def failing(host: Host, subject: Subject) -> Callable[[int, BaseException], None]:
    """Returns the function that turns a handler's exception into the call's answer, whatever the exception is."""
    bridge = host.bridge

    def failed(key: int, error: BaseException) -> None:
        try:
            failure = or_asked(key, error)
            if failure is None:
                return
            told = failure if subject.to_caller else _told(failure)
            if answered(key, told):
                if told is not failure and _others(failure, told):
                    report(key, failure)
                return
            error = failure
            # The peer sees the type only: a message may hold secrets, and `on_error` gets all of it.
            hidden = unicode(f"{subject} failed: {type(error).__name__}")
            if isinstance(error, UnsupportedError) and not (error.by_engine or subject.around):
                # The engine knows whether a question of this call was refused, which this may be about.
                wanted = bridge.error(key, hidden, None, None, error.kind)
            else:
                wanted = bridge.failed(key, hidden)
        except Exception as wrong:  # noqa: BLE001 - a text that cannot be read, or data that is no JSON
            unsent(key, error, wrong)
            return
        if isinstance(error, CancelledError) and not wanted:
            return  # nothing failed: the peer no longer wants the answer
        if is_reported(error):
            report(key, error)
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            host.quit(error)

    def or_asked(key: int, error: BaseException) -> BaseException | None:
        required = None if isinstance(error, Error) else InputRequired.of(error)
        if required is None or required.by_engine:
            return error
        try:
            bridge.input_required(key, encode(required.to_wire()))
            return None
        except Exception as wrong:  # noqa: BLE001 - a question or a state that is no JSON
            return wrong

    def answered(key: int, error: BaseException) -> bool:
        if subject.to_caller and isinstance(error, Exception):
            bridge.error(key, unicode(f"{subject} failed: {type(error).__name__}"), None, raised(error), "misuse")
            return True
        own = isinstance(error, Error) and error.asked == (host, key)
        if own and isinstance(error, RpcError) and error.is_answer and not subject.passes_on:
            # It is about the question, and not about the request that is answered here.
            error = ToolError(f"the question was answered with error {error.code}: {error.message}")
        if isinstance(error, ToolError):
            text = unicode(str(error))
            if subject.around and RequestContext(host, key).request.method == "tools/call":
                bridge.result(key, encode({"content": [{"type": "text", "text": text}], "isError": True}))
            else:
                bridge.failed(key, text)
            return True
        if isinstance(error, UnsupportedError) and (refused := _refusal(error, (host, key))) is not None:
            bridge.error(key, unicode(error.message), None, None, error.kind, refused.refusal)
            return True
        if own and isinstance(error, Error) and subject.around and not isinstance(error, RpcError):
            bridge.error(key, unicode(error.message), None, None, error.kind)
            return True
        if own and isinstance(error, (UnsupportedError, TimeoutError, PeerMisbehavedError)):
            bridge.failed(key, unicode(error.message))
            return True
        if isinstance(error, RpcError) and (own or subject.passes_on or not error.received):
            data = None if error.data is None else encode(error.data)
            bridge.error(key, unicode(error.message), error.code, data)
            return True
        return False

    def unsent(key: int, error: BaseException, wrong: Exception) -> None:
        what = type(error).__name__
        bridge.error(key, unicode(f"{subject} failed: its {what} cannot be sent"), INTERNAL_ERROR)
        told = MisuseError(f"{subject}: its {what} cannot be sent: {type(wrong).__name__}: {_text(wrong)}")
        told.__cause__ = wrong
        report(key, told)

    def report(key: int, error: BaseException) -> None:
        # A run that came to a question ends there, whatever it ends with.
        if key in host.asked:
            return
        try:
            host.report(error, subject.name or subject.word, subject)
        except (SystemExit, KeyboardInterrupt) as second:
            host.quit(second)
        except BaseException:  # noqa: BLE001 - it is logged; the handler's thread or task must go on
            pass

    return failed


def is_reported(error: BaseException) -> bool:
    """Returns True for what is a failure, and not an ending: also an exception that is no `Exception`, such as a panic
    in Rust."""
    if isinstance(error, Exception):
        return True
    return not isinstance(error, (SystemExit, KeyboardInterrupt, GeneratorExit, InputRequired)) and not (
        _is_cancellation(error)
    )


def _told(error: BaseException) -> BaseException:
    """The exception of a group that is an answer, if there is one, or if all of them tell the model; else the group."""
    answers = [one for one in _alone(error) if _is_answer(one)]
    if len(answers) == 1 or (answers and all(isinstance(one, ToolError) for one in answers)):
        return answers[0]
    return error


def _others(group: BaseException, told: BaseException) -> bool:
    """Returns True when there are failures in a group beside what is told."""
    return any(one is not told and not _is_answer(one) and is_reported(one) for one in _alone(group))


def _is_answer(error: BaseException) -> bool:
    return isinstance(error, ToolError) or (isinstance(error, RpcError) and not error.received)


_EXAMINED = 1000
"""Exceptions of a group that are looked at."""


def _alone(error: BaseException) -> list[BaseException]:
    """The exceptions in a group, and in groups in it; of none the exception itself."""
    waiting, alone = [error], list[BaseException]()
    for _ in range(_EXAMINED):
        if not waiting:
            break
        one = waiting.pop()
        inside = members(one)
        waiting.extend(reversed(inside))
        if not inside:
            alone.append(one)
    return alone


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - it is the user's class
        return "(its text cannot be read)"


def _is_cancellation(error: BaseException) -> bool:
    """True if it is the error with which a cancelled task ends."""
    from asyncio import CancelledError as Cancelled

    return isinstance(error, Cancelled)


def _finish(steps: Iterable[futures.Future[None]]) -> None:
    """Waits for steps in a worker thread."""
    from concurrent.futures import wait

    wait(steps)


def or_required(value: Any) -> Any:
    """Returns the value of a function, or raises it if it is an `InputRequired`, which may be returned as well as
    raised."""
    if isinstance(value, InputRequired):
        raise value
    return value


def handler(
    host: Host,
    subject: Subject,
    signature: Signature,
    make: Callable[[], Decode],
    answer: Answer,
    threads: Threads | None,
) -> Handler:
    """The entry of the handler table. `make` builds the decoder, which is put off until the first call."""
    call, context = signature.call, signature.context
    bridge = host.bridge
    new_context = host.new_context
    failed = failing(host, subject)
    name = subject.name or subject.word
    is_around = subject.around

    decode: Decode

    def first(raw: bytes) -> dict[str, Any]:
        nonlocal decode
        decode = make()
        return decode(raw)

    decode = first

    def refuse(key: int, error: BaseException) -> None:
        if isinstance(error, ArgumentError) and subject.for_model:
            bridge.failed(key, unicode(str(error)))
        elif isinstance(error, ArgumentError):
            bridge.error(key, unicode(str(error)), INVALID_PARAMS)
        else:
            failed(key, error)  # a user's own validator, or arguments the function does not take

    async def wait(value: Awaitable[Any], key: int) -> None:
        CURRENT.set((host, key))
        try:
            result = or_required(await value)
            if host.steps:
                await settled(key)
            answer(key, result)
        except GeneratorExit:
            bridge.error(key, "the server stopped")
            raise
        except BaseException as error:
            if _is_cancellation(error):
                failed(key, error)  # nobody listens when the client cancelled; an error when the handler did it itself
                raise
            try:
                if host.steps:
                    await settled(key, error)
            finally:
                failed(key, error)
        finally:
            host.done(key)

    async def settled(key: int, error: BaseException | None = None) -> None:
        import asyncio

        await asyncio.gather(*map(asyncio.wrap_future, host.unfinished(key, error)))

    def run(arguments: dict[str, Any], key: int) -> None:
        CURRENT.set((host, key))
        try:
            value = call(**arguments)
            if not hasattr(value, "__await__"):
                value = or_required(value)
                if host.steps and threads is not None:
                    _finish(host.unfinished(key))
                answer(key, value)
                host.done(key)
                return
        except BaseException as error:  # noqa: BLE001 - all of them are answered
            if host.steps and threads is not None:
                _finish(host.unfinished(key, error))
            failed(key, error)
            host.done(key)
            return
        if host.loop is not None:  # a plain function that hands back a coroutine; this may be a worker thread
            context = contextvars.copy_context()
            host.loop.call_soon_threadsafe(lambda: host.spawn(key, wait(value, key), name), context=context)

    def asynchronous(raw: bytes, key: int) -> None:
        try:
            arguments = decode(raw)
            if context is not None:
                arguments[context] = new_context(host, key)
            if is_around or host.values:
                host.share(key)
            coroutine = call(**arguments)
        except BaseException as error:  # noqa: BLE001 - all of them are answered
            refuse(key, error)
            host.done(key)
        else:
            if key in host.contexts:
                host.context_of(key).run(host.spawn, key, wait(coroutine, key), name)
            else:
                host.spawn(key, wait(coroutine, key), name)

    def plain(raw: bytes, key: int) -> None:
        try:
            arguments = decode(raw)
        except BaseException as error:  # noqa: BLE001 - all of them are answered
            refuse(key, error)
            host.done(key)
            return
        if context is not None:
            arguments[context] = new_context(host, key)
        run(arguments, key)

    def inline(raw: bytes, key: int) -> None:
        if is_around or host.values:
            host.share(key)
        host.first_step = key
        try:
            host.context_of(key).run(plain, raw, key)
        finally:
            host.first_step = None

    def threaded(raw: bytes, key: int) -> None:
        assert threads is not None
        state = ThreadCall(subject.told)
        if is_around or host.values:
            host.share(key)
        host.running[key] = state
        job = threads.submit(host.context_of(key), lambda: host.done(key) if state.cancelled else plain(raw, key))
        state.give_up = partial(threads.give_up, job)
        if not job.is_started and host.loop is not None and threads.is_full:
            host.loop.call_later(PATIENCE, late, state, job, key)

    def late(state: ThreadCall, job: Job, key: int) -> None:
        if job.is_started or state.cancelled or host.running.get(key) is not state:
            return
        state.cancelled = True  # it does not begin any more
        host.running.pop(key, None)
        limit = 0 if threads is None else threads.limit
        text = f"{subject}: no thread was free for {PATIENCE:.0f} s: plain functions have {limit} (max_threads)"
        bridge.error(key, unicode(text), INTERNAL_ERROR)
        host.report(MisuseError(text), name, subject)

    if signature.is_async:
        return asynchronous
    return inline if threads is None else threaded


def hook(function: Callable[..., Any], most: int, what: str, of_client: bool = False) -> Signature:
    """The signature of a function that takes up to `most` values in order, as many as it has parameters for.

    One annotated with a context receives the call's; a client's function gets no `Context`. The entry of the table is
    `hook_handler`.
    """
    if not callable(function):
        raise MisuseError(f"{what}: expected a function, got {checks.shown(function)}")
    target = unwrapped(function)
    try:
        known = hints(function, target)
    except Exception:  # noqa: BLE001 - of all annotations only `Context` counts here
        known = dict(getattr(target, "__annotations__", {}))
    context: str | None = None
    takes, needs = 0, 0
    for name, parameter in inspect.signature(function).parameters.items():
        hint = known.get(name, parameter.annotation)
        word = hint.rpartition(".")[2].partition(" ")[0].partition("[")[0] if isinstance(hint, str) else None
        if is_context(hint) or word in ("Context", "RequestContext"):
            if of_client and (word == "Context" or is_context(hint, serves=True)):
                raise MisuseError(f"{what}: {function!r} wants a Context; a client's functions get a RequestContext")
            context = name
        elif parameter.kind is parameter.VAR_POSITIONAL:
            takes = most
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            takes += 1
            needs += parameter.default is parameter.empty
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            needs = most + 1
    if needs > most:
        raise MisuseError(f"{what}: {function!r} is given {most} values at most, in order, and needs others")
    takes = min(takes, most)

    def call(*, values: tuple[Any, ...], **context: Any) -> Any:
        return function(*values[:takes], **context)

    asynchronous = inspect.iscoroutinefunction(target)
    return Signature(call, asynchronous, context, [], False, None, typing.Any)


def hook_handler(
    host: Host,
    subject: Subject,
    signature: Signature,
    values: Callable[[dict[str, Any]], tuple[Any, ...]],
    answer: Answer,
    threads: Threads | None,
) -> Handler:
    """The entry of the handler table for a `hook`; `values` picks them from the parameters of the request."""

    def decode(raw: bytes) -> dict[str, Any]:
        return {"values": values(cast("dict[str, Any]", decode_any(raw)))}

    return handler(host, subject, signature, lambda: decode, answer, threads)

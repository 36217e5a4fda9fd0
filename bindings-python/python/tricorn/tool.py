"""From a Python function to an entry of the handler table: decode, run, answer."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from .content import BLOCKS, CallToolResult, Text
from .context import Context
from .errors import RpcError, ToolError
from .host import Handler, Host, ThreadCall, Threads
from .schema import ArgumentError, Decode, Returns, Signature, encode_hook

log = logging.getLogger("tricorn")

encode = msgspec.json.Encoder(enc_hook=encode_hook).encode
Answer = Callable[[int, Any], object]
OnError = Callable[[Exception, str], object]

_NOTHING = b'{"content":[]}'
_SPECIAL = frozenset((CallToolResult, *BLOCKS))


def answering(host: Host, returns: Returns, declared: bool) -> Answer:
    """What turns a function's value into the call's answer; `declared` means that there is an output schema."""
    bridge = host.bridge

    def anything(key: int, value: object) -> object:
        kind = type(value)
        if kind is CallToolResult:
            return bridge.result(key, cast(CallToolResult, value).to_wire())
        if kind in _SPECIAL:
            return bridge.result(key, encode({"content": [value]}))
        if kind in (list, tuple):
            items = cast("list[object]", value)
            if any(type(item) in _SPECIAL for item in items):
                blocks = [Text(item) if isinstance(item, str) else item for item in items]
                return bridge.result(key, encode({"content": blocks}))
        if not declared:
            if value is None:
                return bridge.result(key, _NOTHING)
            if isinstance(value, str):
                return bridge.text(key, value)
        return bridge.value(key, encode(value))

    def plain(key: int, value: Any) -> object:
        if type(value) in _SPECIAL:
            return anything(key, value)
        return bridge.value(key, encode(value))

    def text(key: int, value: Any) -> object:
        if type(value) is str:
            return bridge.text(key, value)
        return anything(key, value)

    def whole(key: int, value: Any) -> object:
        if type(value) is dict:
            return bridge.result(key, encode(value))
        return anything(key, value)

    if returns == "result":
        return whole
    if returns == "value" and declared:
        return plain
    return text if returns == "text" and not declared else anything


def log_error(error: Exception, tool: str) -> None:
    """What becomes of a handler's exception unless the server has an `on_error`."""
    log.error("tool %r failed", tool, exc_info=error)


def failing(host: Host, name: str, on_error: OnError) -> Callable[[int, BaseException], None]:
    """What turns a function's exception into the call's answer."""
    bridge = host.bridge

    def failed(key: int, error: BaseException) -> None:
        if isinstance(error, ToolError):
            bridge.failed(key, str(error))
            return
        if isinstance(error, RpcError) and not error.received:
            data = None if error.data is None else encode(error.data)
            bridge.error(key, error.message, error.code, data)
            return
        # The model sees the type only: a message may hold secrets, and `on_error` gets all of it.
        bridge.failed(key, f'tool "{name}" failed: {type(error).__name__}')
        if isinstance(error, Exception):
            try:
                on_error(error, name)
            except BaseException as second:  # the handler's thread or task must go on
                error = second
                log.error("on_error failed for tool %r", name, exc_info=second)
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            host.quit(error)

    return failed


def handler(
    host: Host,
    name: str,
    signature: Signature,
    make: Callable[[], Decode],
    answer: Answer,
    threads: Threads | None,
    on_error: OnError,
) -> Handler:
    """The entry of the handler table. `make` builds the decoder, which is put off until the first call."""
    call, context = signature.call, signature.context
    bridge = host.bridge
    failed = failing(host, name, on_error)

    decode: Decode

    def first(raw: bytes) -> dict[str, Any]:
        nonlocal decode
        decode = make()
        return decode(raw)

    decode = first

    def refuse(key: int, error: BaseException) -> None:
        if isinstance(error, ArgumentError):
            bridge.failed(key, str(error))
        else:
            failed(key, error)  # a user's own validator, or arguments the function does not take

    async def wait(value: Awaitable[Any], key: int) -> None:
        try:
            answer(key, await value)
        except asyncio.CancelledError as error:
            failed(key, error)  # nobody listens when the client cancelled; an error when the handler did it itself
            raise
        except GeneratorExit:
            bridge.error(key, "the server stopped")
            raise
        except BaseException as error:  # noqa: BLE001 - all of them are answered
            failed(key, error)
        finally:
            host.done(key)

    def run(arguments: dict[str, Any], key: int) -> None:
        try:
            value = call(**arguments)
            if not hasattr(value, "__await__"):
                answer(key, value)
                host.done(key)
                return
        except BaseException as error:  # noqa: BLE001 - all of them are answered
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
                arguments[context] = Context(host, key)
            coroutine = call(**arguments)
        except BaseException as error:  # noqa: BLE001 - all of them are answered
            refuse(key, error)
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
            arguments[context] = Context(host, key)
        run(arguments, key)

    def inline(raw: bytes, key: int) -> None:
        contextvars.copy_context().run(plain, raw, key)

    def threaded(raw: bytes, key: int) -> None:
        assert threads is not None
        state = ThreadCall()
        host.running[key] = state
        threads.submit(contextvars.copy_context(), lambda: host.done(key) if state.cancelled else plain(raw, key))

    if signature.is_async:
        return asynchronous
    return inline if threads is None else threaded

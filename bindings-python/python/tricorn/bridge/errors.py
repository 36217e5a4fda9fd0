"""Exceptions for the errors of the engine."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from ..errors import (
    RESOURCE_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    AuthError,
    CancelledError,
    ClosedError,
    Error,
    MisuseError,
    PeerMisbehavedError,
    ResourceNotFoundError,
    RpcError,
    TimeoutError,  # noqa: A004 - this package's
    TransportError,
    UnsupportedError,
    _rebuild,
)
from ..json.decoding import decode
from ..model.input_required import InputRequired, UrlElicitationRequiredError

KINDS: dict[str, type[Error]] = {
    cls.kind: cls
    for cls in (
        RpcError,
        PeerMisbehavedError,
        UnsupportedError,
        TimeoutError,
        CancelledError,
        ClosedError,
        TransportError,
        AuthError,
        MisuseError,
    )
}


_BY_CODE: dict[int | None, type[RpcError]] = {
    RESOURCE_NOT_FOUND: ResourceNotFoundError,
    URL_ELICITATION_REQUIRED: UrlElicitationRequiredError,
}


def error_of(kind: str, message: str, code: int | None, data: bytes | None) -> Error:
    """The exception for an error of the engine."""
    cls = KINDS.get(kind, Error)
    if cls is RpcError:
        cls = _BY_CODE.get(code, cls)
    return _rebuild(cls, message, code, None if data is None else _read(data))


def _read(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except Exception:  # noqa: BLE001 - whoever waits for the answer gets the error, whatever its data are
        try:
            return decode(data)
        except Exception:  # noqa: BLE001 - as above
            return None


def from_core(kind: str, message: str, code: int | None, data: bytes | None) -> Error | InputRequired:
    """The exception for an error of the engine; called by the native module, without raising it."""
    if kind != InputRequired.kind:
        error = error_of(kind, message, code, data)
        error.by_engine = True
        return error
    required = InputRequired()
    required.by_engine = True
    return required


def members(error: BaseException) -> list[BaseException]:
    """The exceptions of a group, as an `asyncio.TaskGroup` raises it."""
    inside: object = getattr(error, "exceptions", None)
    found = cast("tuple[object, ...]", inside) if isinstance(inside, tuple) else ()
    return [one for one in found if isinstance(one, BaseException)]

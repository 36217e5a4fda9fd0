"""Exceptions: one class per kind, usable like the builtin ones they resemble."""

from __future__ import annotations

import asyncio
import builtins
import copy
import decimal
import pickle

import pytest

import tricorn
from tricorn.bridge.errors import KINDS, from_core
from tricorn.errors import RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_has_its_class(kind: str) -> None:
    error = from_core(kind, "what happened", -32000, b'{"a":1}')
    assert type(error) is KINDS[kind]
    assert isinstance(error, tricorn.Error)
    assert (error.kind, error.message, error.code, error.data) == (kind, "what happened", -32000, {"a": 1})
    assert str(error).startswith("what happened")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert (twin.message, twin.code, twin.data) == (error.message, error.code, error.data)


def test_unknown_kinds_are_errors_all_the_same() -> None:
    assert type(from_core("new_kind", "x", None, None)) is tricorn.Error


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (rb'{"a":"x\ud800y","b":"\ud83d\ude00"}', {"a": "x\ufffdy", "b": "\U0001f600"}),
        (rb'["\\ud800"]', ["\\ud800"]),
        (b"[", None),
        (b"\xff", None),
        (b"1" * 10_000, decimal.Decimal("1" * 10_000)),
        (b"[" * 100_000 + b"]" * 100_000, None),
    ],
)
def test_data_never_cost_the_error(data: bytes, read: object) -> None:
    for code in (1, RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED):
        error = from_core("rpc", "m", code, data)
        assert isinstance(error, tricorn.RpcError)
        assert (error.code, error.message, error.data) == (code, "m", read)


@pytest.mark.parametrize("data", [None, b"{}", b"[1]", b'{"elicitations":[{"mode":"url"}]}', b'{"elicitations":5}'])
def test_pages_that_a_peer_does_not_name(data: bytes | None) -> None:
    error = from_core("rpc", "m", URL_ELICITATION_REQUIRED, data)
    assert isinstance(error, tricorn.UrlElicitationRequiredError)
    with pytest.raises(tricorn.PeerMisbehavedError, match=r"the pages of error -32042 cannot be read"):
        _ = error.elicitations


def test_builtin_relatives() -> None:
    assert issubclass(tricorn.TimeoutError, builtins.TimeoutError)
    assert issubclass(tricorn.TransportError, OSError)
    assert not issubclass(tricorn.CancelledError, asyncio.CancelledError)


def test_a_broken_call_into_the_engine_raises() -> None:
    with pytest.raises(tricorn.MisuseError, match="name"):
        tricorn._core.Server(tricorn._core.Bridge(), 1, "{}")
    with pytest.raises(TypeError, match="bytes or str"):
        tricorn._core.Bridge().value(1, 5)  # type: ignore[arg-type]
    assert tricorn._core.Bridge().value(1, b"5") is False


def test_a_panic_is_an_ordinary_error() -> None:
    with pytest.raises(tricorn.Error, match="on purpose"):
        tricorn._core.Bridge().panic("on purpose")

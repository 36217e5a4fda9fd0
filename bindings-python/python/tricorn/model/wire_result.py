"""Results as they are on the wire: the base of what calls answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..errors import PeerMisbehavedError
from ..json.decoding import decode
from ..json.encoding import encode

if TYPE_CHECKING:
    from typing_extensions import Self


class WireResult:
    """A result as it is on the wire: parsed when first looked at, passed on without loss."""

    __slots__ = ("_raw", "_wire")
    method = ""

    _raw: dict[str, Any] | None
    _wire: bytes | None

    @classmethod
    def from_wire(cls, wire: bytes) -> Self:
        """The result a peer sent, as JSON text."""
        self = cls.__new__(cls)
        self._raw = None
        self._wire = wire
        return self

    def to_wire(self) -> bytes:
        """The result as JSON text; what was received is passed on unchanged."""
        if self._wire is not None:
            return self._wire
        return encode(self._raw)

    @property
    def raw(self) -> dict[str, Any]:
        """The result object exactly as it is on the wire."""
        if self._raw is None:
            raw = decode(self._wire or b"null")
            if not isinstance(raw, dict):
                raise PeerMisbehavedError(f"the result of {self.method} is not an object")
            self._raw = cast("dict[str, Any]", raw)
        return self._raw

    @property
    def meta(self) -> dict[str, Any]:
        """The result's `_meta`."""
        return self.raw.get("_meta") or {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WireResult) and type(other) is type(self) and other.raw == self.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"

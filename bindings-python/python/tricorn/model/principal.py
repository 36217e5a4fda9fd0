"""The sender of a request to a protected server."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from ..errors import MisuseError
from ..json import checks
from ..json.encoding import encode


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Principal:
    """The sender of a request, as its access token says: `ctx.principal`, and what a `verifier` gives.

    Sessions, tasks and the state between rounds of questions belong to issuer and subject: a new token of the same
    subject, with other scopes, is the same principal. Its `repr` is without `claims`. What is wrong with an argument is
    a `MisuseError` naming it.
    """

    subject: str
    """The token's `sub`: a user, or a client that acts for itself. Where a token has none it is the client's id. Its
    issuer gives the name to nobody else."""
    issuer: str | None
    """The issuer of the token (`iss`)."""
    client_id: str | None
    """The client that the token was issued to."""
    scopes: list[str] = field(hash=False)
    """The scopes that the token was granted; `has_scope` knows what follows from them, too."""
    claims: dict[str, Any] = field(hash=False)
    """All that the token or its introspection says. The token itself is not in it."""
    expires_at: int | float | None
    """The time at which the token expires, in seconds since 1970. None: nobody says so."""
    _implied: tuple[str, ...]

    def __init__(
        self,
        subject: str,
        *,
        issuer: str | None = None,
        client_id: str | None = None,
        scopes: Collection[str] = (),
        claims: Mapping[str, Any] | None = None,
        expires_at: int | float | datetime | None = None,
    ) -> None:
        """`scopes`: one text for each. `claims`: JSON. `expires_at`: a `datetime` needs a timezone."""
        _named("subject", subject)
        for name, value in (("issuer", issuer), ("client_id", client_id)):
            if value is not None:
                _named(name, value)
        self._set(subject, issuer, client_id, _listed(scopes), _read(claims), _seconds(expires_at), ())

    def _set(self, *values: object) -> None:
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    def has_scope(self, scope: str) -> bool:
        """Returns True when a scope was granted, or follows from one that was (`scope_implies`)."""
        return scope in self.scopes or scope in self._implied

    def __rich_repr__(self) -> Any:
        return shown(self, ("subject", "issuer", "client_id", "scopes", "expires_at"))

    def __repr__(self) -> str:
        return written(self)

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Principal:
        """As the engine tells of it, with what its scopes imply."""
        self = cls.__new__(cls)
        names = ("subject", "issuer", "clientId", "scopes", "claims", "expiresAt")
        self._set(*(raw[name] for name in names), tuple(raw["impliedScopes"]))
        return self

    def to_wire(self) -> dict[str, Any]:
        """As the engine takes it."""
        names = ("subject", "issuer", "clientId", "scopes", "claims", "expiresAt")
        return {name: getattr(self, slot) for name, slot in zip(names, self.__slots__, strict=False)}


def _named(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise MisuseError(f"Principal: {name}: expected a string, got {checks.type_of(value)}")
    if not value:
        raise MisuseError(
            f"Principal: {name}: expected a string that is not empty: it tells one principal from another"
        )


def _listed(scopes: object) -> list[str]:
    if isinstance(scopes, str):
        raise MisuseError("Principal: scopes: expected a list of strings, got a string: split it")
    checks.scopes("Principal: scopes", scopes)
    return list(cast("Collection[str]", scopes))


def _read(claims: object) -> dict[str, Any]:
    if claims is None:
        return {}
    if not isinstance(claims, Mapping):
        got = checks.type_of(claims)
        raise MisuseError(f"Principal: claims: expected an object, got {got}; give the token's decoded payload")
    read = dict(cast("Mapping[object, object]", claims))
    if odd := [key for key in read if not isinstance(key, str)]:
        got = type(odd[0]).__qualname__
        raise MisuseError(f"Principal: claims: expected names that are text, got a {got}; give str() of it")
    try:
        encode(read)
    except Exception as error:
        why = f"Principal: claims: {error}; leave out, or convert, what is no JSON"
        raise MisuseError(why) from error
    return cast("dict[str, Any]", read)


def _seconds(expires_at: object) -> int | float | None:
    if isinstance(expires_at, datetime):
        if expires_at.utcoffset() is None:
            why = "expected seconds since 1970, or a datetime with a timezone, got one without"
            raise MisuseError(f"Principal: expires_at: {why}; give .replace(tzinfo=timezone.utc) of it, if it is UTC")
        return expires_at.timestamp()
    is_number = isinstance(expires_at, (int, float)) and not isinstance(expires_at, bool)
    if expires_at is not None and not (is_number and math.isfinite(cast("float", expires_at))):
        got = repr(expires_at) if is_number else checks.type_of(expires_at)
        why = 'expected seconds since 1970, such as the token\'s "exp", or a date'
        raise MisuseError(f"Principal: expires_at: {why}, got {got}")
    return cast("int | float | None", expires_at)


def shown(struct: object, names: Sequence[str]) -> list[tuple[str, object]]:
    """These members of a struct, where something is said: what may be secret is in no `repr`."""
    members = [(name, getattr(struct, name)) for name in names]
    return [(name, value) for name, value in members if value not in (None, (), [])]


def written(struct: Any) -> str:
    """The `repr` with the members that `__rich_repr__` gives."""
    return f"{type(struct).__name__}({', '.join(f'{name}={value!r}' for name, value in struct.__rich_repr__())})"

"""Who sent a request to a protected server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from . import checks

_WIRE = {"client_id": "clientId", "expires_at": "expiresAt", "implied": "impliedScopes"}


class Principal(msgspec.Struct, frozen=True, omit_defaults=True, rename=_WIRE):
    """Who sent a request, as its access token says: `ctx.principal`, and what a `verifier` gives.

    Sessions, tasks and the state between rounds of questions belong to issuer and subject: a new token of the same
    subject, with other scopes, is the same principal. Its `repr` is without `claims`.
    """

    subject: str
    """The token's `sub`: a user, or a client that acts for itself. Its issuer gives the name to nobody else."""
    issuer: str | None = None
    """Who issued the token (`iss`)."""
    client_id: str | None = None
    """The client that the token was issued to."""
    scopes: Sequence[str] = ()
    """What the token was granted; `has_scope` knows what follows from it, too."""
    claims: dict[str, Any] = {}
    """All that the token or its introspection says. The token itself is not in it."""
    expires_at: int | float | None = None
    """When the token expires, in seconds since 1970. None: nobody says so."""
    implied: Sequence[str] = ()
    """What the granted scopes imply besides themselves, by the server's `scope_implies`; not a verifier's business."""

    def __post_init__(self) -> None:
        checks.text("Principal: subject", self.subject)
        checks.texts("Principal: scopes", self.scopes)
        if self.expires_at is not None:
            checks.number("Principal: expires_at", self.expires_at)

    def has_scope(self, scope: str) -> bool:
        """Whether a scope was granted, or follows from one that was (`scope_implies`)."""
        return scope in self.scopes or scope in self.implied

    def __rich_repr__(self) -> Any:
        return shown(self, ("subject", "issuer", "client_id", "scopes", "expires_at"))

    def __repr__(self) -> str:
        return written(self)


def shown(struct: msgspec.Struct, names: Sequence[str]) -> list[tuple[str, object]]:
    """These members of a struct, where something is said: what may be secret is in no `repr`."""
    members = [(name, getattr(struct, name)) for name in names]
    return [(name, value) for name, value in members if value not in (None, (), [])]


def written(struct: Any) -> str:
    """The `repr` with the members that `__rich_repr__` gives."""
    return f"{type(struct).__name__}({', '.join(f'{name}={value!r}' for name, value in struct.__rich_repr__())})"

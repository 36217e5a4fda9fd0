"""Steps of a login, which errors tell of."""

from __future__ import annotations

import msgspec


class AuthStep(msgspec.Struct, frozen=True):
    """One step of a login: what was asked, answered and decided. There are no secrets in it."""

    step: str
    """The step's subject: `"resource metadata"`, `"authorization server metadata"`, `"registration"`, `"token"`, ..."""
    decision: str
    """The outcome: what was decided."""
    url: str | None = None
    """The URL that was asked, without what may be secret in it; None of a step that asks nobody."""
    status: int | None = None
    """The HTTP status, if there was an answer."""

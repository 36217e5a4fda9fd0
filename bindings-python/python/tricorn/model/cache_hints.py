"""Lifetime and audience of answers that clients cache."""

from __future__ import annotations

from typing import Literal, TypedDict


class CacheHints(TypedDict, total=False):
    """Lifetime and audience of cached answers (2026-07-28). One that is left out comes from the general option."""

    ttl: float
    """Seconds for which it keeps after it was received; 0, which is not at all."""
    scope: Literal["public", "private"]
    """The audience: `"public"` is everybody, also under other authorization; `"private"`."""

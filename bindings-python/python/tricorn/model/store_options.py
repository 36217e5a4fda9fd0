"""Options of a store that several processes share."""

from __future__ import annotations

from typing import Any, TypedDict, cast


class _StoreUrl(TypedDict):
    url: str
    """`redis://` or with TLS `rediss://`, then `user:password@host:6379/0`, all but the host optional;
    `redis+cluster://host:6379,host:6379`; `redis+sentinel://host:26379,host:26379/service/0`, with
    `?sentinel_user=…&sentinel_password=…` where the sentinels want a login of their own; `rediss+cluster://` and
    `rediss+sentinel://`; `unix:///path?db=0&user=…&pass=…`. Special characters of a password are percent-encoded."""


class StoreOptions(_StoreUrl, total=False):
    """A store that several processes share: Redis 6.2 or later, or Valkey."""

    prefix: str
    """First part of every key, 1 to 64 letters, digits or `-_.:`; `tricorn`."""
    secret: str
    """Secret of at least 32 bytes, the same in all processes, that seals a server's keys of request states, a client's
    answers, and logins, which need one; the others are not sealed."""


def is_shared(store: object) -> bool:
    """True for a store that the engine knows: a URL, or options."""
    if isinstance(store, str):
        return True
    return type(store) is dict and "url" in cast("dict[str, Any]", store)

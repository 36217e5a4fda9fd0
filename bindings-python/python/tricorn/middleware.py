"""Middleware around every request: of a server, those that its handlers answer; of a client, those that it sends."""

from __future__ import annotations

from .call.middleware import (
    Around,
    Builtin,
    Middleware,
    Next,
    Request,
    Result,
    concurrency_limit,
    logging,
    rate_limit,
    timing,
)

__all__ = [
    "Around",
    "Builtin",
    "Middleware",
    "Next",
    "Request",
    "Result",
    "concurrency_limit",
    "logging",
    "rate_limit",
    "timing",
]

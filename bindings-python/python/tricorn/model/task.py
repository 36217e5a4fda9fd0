"""State of a task, as its server tells it."""

from __future__ import annotations

from typing import Any, Literal, cast

from ..errors import PeerMisbehavedError
from .content import member

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]

POLL_INTERVAL = 1.0
"""Seconds between two looks, unless the server says otherwise."""


class Task:
    """The state of a task, as the server tells it. `raw` is everything it said."""

    __slots__ = ("raw",)

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    @property
    def id(self) -> str:
        """The id to ask for it by."""
        value = self.raw.get("taskId")
        if not isinstance(value, str):
            raise PeerMisbehavedError("Task.taskId: expected a string")
        return value

    @property
    def status(self) -> TaskStatus:
        """`"working"`, `"input_required"` while it asks its client, then `"completed"`, `"failed"` or `"cancelled"`."""
        return cast(TaskStatus, self.raw.get("status"))

    @property
    def status_message(self) -> str | None:
        """A message for people: what it is doing, or why it failed."""
        return self.raw.get("statusMessage")

    @property
    def is_over(self) -> bool:
        """True when it is completed, failed or cancelled."""
        return self.status in ("completed", "failed", "cancelled")

    @property
    def created_at(self) -> str:
        """The time of its creation (ISO 8601)."""
        return cast(str, self.raw.get("createdAt"))

    @property
    def last_updated_at(self) -> str:
        """The time when its status last changed (ISO 8601)."""
        return cast(str, self.raw.get("lastUpdatedAt"))

    @property
    def ttl(self) -> float | None:
        """Seconds that it lives from its creation; None for ever."""
        value = member("Task.ttl", self.raw.get("ttl"), float)
        return None if value is None else value / 1000

    @property
    def poll_interval(self) -> float:
        """Seconds to wait between two looks."""
        value = member("Task.pollInterval", self.raw.get("pollInterval"), float)
        return POLL_INTERVAL if value is None else value / 1000

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and other.raw == self.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Task({self.raw!r})"

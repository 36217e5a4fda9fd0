"""Options that servers and clients have in common, and the identity that is theirs by default."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from .content import Icon


class Identity(TypedDict, total=False):
    """The identity that a server or client presents to the other side; what is not given is not told."""

    title: str | None
    """The name to show to people."""
    description: str | None
    """A description of its purpose, in a sentence or two."""
    website_url: str | None
    """The URL of a page to read more."""
    icons: Sequence[Icon | Mapping[str, Any]] | None
    """Images for user interfaces, such as `Icon("https://example.com/i.png", "image/png", ["48x48"])`."""


class TaskOptions(TypedDict, total=False):
    """Bounds of the tasks that a server, or a client, runs; times in seconds."""

    max_tasks: int
    """Kept of all sessions; 1,000. The longest finished make room."""
    max_session_tasks: int
    """Kept of one session; 250."""
    max_task_bytes: int
    """Bytes of all results kept; 16 MiB."""
    task_ttl: float
    """Lifetime of a task when its request does not say; 3600."""
    max_task_ttl: float
    """The longest that a task lives, whatever its request says; 86400."""
    task_poll_interval: float
    """Interval at which a client should look; 1."""


def switched(settings: dict[str, Any]) -> None:
    """Writes the option `tasks` as the engine takes it, where it is just switched on or off."""
    if isinstance(settings.get("tasks"), bool):
        settings["tasks"] = {} if settings["tasks"] else None


def caller(module: Mapping[str, Any], version: bool) -> tuple[str, str]:
    """Name and version of the package, or else the file, that a module belongs to."""
    package = str(module.get("__package__") or module.get("__name__") or "").partition(".")[0]
    if package in ("", "__main__"):
        stem = os.path.splitext(os.path.basename(str(module.get("__file__") or "server")))[0]
        return stem, str(module.get("__version__", "0.0.0"))
    known = getattr(sys.modules.get(package), "__version__", None)
    if known is None and version:
        from importlib import metadata  # slow to import, so only for packages that do not say

        try:
            known = metadata.version(package)
        except metadata.PackageNotFoundError:
            known = None
    return package, str(known or "0.0.0")

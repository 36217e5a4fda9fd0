"""Options as the engine takes them."""

from __future__ import annotations

from typing import Any, cast

from .encoding import encode_exact


def options_text(options: object) -> str:
    """Options as JSON text for the engine. `MisuseError` names a number or text that JSON does not have."""
    return encode_exact(options).decode()


def switched(settings: dict[str, Any]) -> None:
    """Writes the option `tasks` as the engine takes it, where it is just switched on or off."""
    if isinstance(settings.get("tasks"), bool):
        settings["tasks"] = {} if settings["tasks"] else None


def is_shared(store: object) -> bool:
    """True for a store that the engine knows: a URL, or options."""
    if isinstance(store, str):
        return True
    return type(store) is dict and "url" in cast("dict[str, Any]", store)

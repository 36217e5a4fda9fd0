"""Options as the engine takes them."""

from __future__ import annotations

from .encoding import encode_exact


def options_text(options: object) -> str:
    """Options as JSON text for the engine. `MisuseError` names a number or text that JSON does not have."""
    return encode_exact(options).decode()

"""Name and version that a server or a client has by default."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any


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

"""The rows by theme; each module registers its own."""

import importlib
import pkgutil


def load() -> None:
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")

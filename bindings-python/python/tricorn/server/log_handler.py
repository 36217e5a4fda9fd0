"""The standard library's logging, sent to the client of the call in which it happens."""

from __future__ import annotations

import logging

from ..call.context import CURRENT, Level
from ..json.deprecation import deprecated
from .context import Context

_LEVELS: tuple[tuple[int, Level], ...] = (
    (logging.CRITICAL, "critical"),
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO, "info"),
)


def _level(number: int) -> Level:
    for least, name in _LEVELS:
        if number >= least:
            return name
    return "debug"


@deprecated("MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry")
class LogHandler(logging.Handler):
    """Sends log records of a handler to its client: `logging.getLogger("myserver").addHandler(LogHandler())`.

    The client decides which levels it wants. It gets the message and the logger's name, no tracebacks; a formatter
    that you set has the say instead. What is logged outside of calls, and what this package logs itself, is left to
    other handlers.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Sends one record, if a call runs here."""
        call = CURRENT.get(None)
        if call is None or not call[0].serves or record.name.partition(".")[0] == "tricorn":
            return
        try:
            text = record.getMessage() if self.formatter is None else self.format(record)
            Context(*call).log(_level(record.levelno), text, record.name)
        except Exception:  # noqa: BLE001 - as every logging handler
            self.handleError(record)

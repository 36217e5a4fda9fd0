"""Facts about a request, the same in every protocol revision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .content import Implementation, member
from .trace import TraceContext, trace_of

if TYPE_CHECKING:
    from .principal import Principal


class RequestInfo:
    """The request a handler answers, the same in every protocol revision. `raw` is everything the engine knows."""

    __slots__ = ("raw",)

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    @property
    def id(self) -> str | int:
        """The JSON-RPC id."""
        return self.raw["requestId"]  # type: ignore[no-any-return]

    @property
    def method(self) -> str:
        """The JSON-RPC method."""
        return self.raw["method"]  # type: ignore[no-any-return]

    @property
    def protocol_version(self) -> str:
        """The protocol revision this request is served by, such as `"2025-11-25"`."""
        return self.raw["protocolVersion"]  # type: ignore[no-any-return]

    @property
    def era(self) -> Literal["legacy", "modern"]:
        """`"legacy"` for revisions with sessions, `"modern"` for stateless ones."""
        return self.raw["era"]  # type: ignore[no-any-return]

    @property
    def client_info(self) -> Implementation | None:
        """The name and version that the client gives for itself; no proof of anything."""
        info = self.raw.get("clientInfo")
        return member("clientInfo", info, Implementation)

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """The capabilities that the client declared."""
        return self.raw.get("clientCapabilities") or {}

    @property
    def progress_token(self) -> str | int | None:
        """Present when the client wants progress notifications."""
        return self.raw.get("progressToken")

    @property
    def log_level(self) -> str | None:
        """The least severe level of log messages the client wants."""
        return self.raw.get("logLevel")

    @property
    def meta(self) -> dict[str, Any]:
        """The request's `_meta`."""
        return self.raw.get("meta") or {}

    @property
    def trace_context(self) -> TraceContext | None:
        """The trace that the request belongs to, as its `_meta` says it, or middleware."""
        return trace_of(self.raw)

    @property
    def task_id(self) -> str | None:
        """The task that the request has run as from its beginning."""
        return self.raw.get("taskId")

    @property
    def transport(self) -> Literal["stdio", "http", "memory"]:
        """The transport that the request came over."""
        return self.raw["transport"]  # type: ignore[no-any-return]

    @property
    def session_id(self) -> str | None:
        """The session of a legacy HTTP connection."""
        return self.raw.get("sessionId")

    @property
    def principal(self) -> Principal | None:
        """The principal that sent it, as the server's option `auth` has found out. None: nobody was asked, as on
        standard streams."""
        raw = self.raw.get("principal")
        if raw is None:
            return None
        from .principal import Principal

        return Principal.from_wire(raw)

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP headers of the request, names in lower case, repeated ones joined; empty for other transports."""
        headers: dict[str, str] = {}
        pairs: list[tuple[str, str]] = self.raw.get("headers") or []
        for name, value in pairs:
            key = name.lower()
            headers[key] = f"{headers[key]}, {value}" if key in headers else value
        return headers

    def __repr__(self) -> str:
        raw = self.raw if self.principal is None else {**self.raw, "principal": self.principal}
        return f"RequestInfo({raw!r})"

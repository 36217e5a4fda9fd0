"""What a handler may know and do while it runs: the optional `Context` parameter of every tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from .content import Implementation
from .errors import MisuseError

if TYPE_CHECKING:
    from .host import Host

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


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
        """What the client calls itself; no proof of anything."""
        info = self.raw.get("clientInfo")
        return None if info is None else msgspec.convert(info, Implementation)

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """What the client said it can do."""
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
    def transport(self) -> Literal["stdio", "http", "memory"]:
        """How the request came."""
        return self.raw["transport"]  # type: ignore[no-any-return]

    @property
    def session_id(self) -> str | None:
        """The session of a legacy HTTP connection."""
        return self.raw.get("sessionId")

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
        return f"RequestInfo({self.raw!r})"


class Context:
    """The call a handler works on; ask for it with a parameter annotated `Context`.

    Every method may be called from any thread. After the handler has returned they do nothing.
    """

    __slots__ = ("_host", "_key", "_request")

    def __init__(self, host: Host, key: int) -> None:
        self._host = host
        self._key = key
        self._request: RequestInfo | None = None

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> bool:
        """Tells the client how far the call is, if it asked; False when the call is over.

        `progress` must grow with every report; any unit will do, `total` in the same one.
        """
        return self._host.bridge.progress(self._key, progress, total, message)

    def log(self, level: Level, data: Any, logger: str | None = None) -> bool:
        """Sends the client a log message: any JSON value as `data`; False when its level filters the message out."""
        return self._host.bridge.log(self._key, level, logger, msgspec.json.encode(data))

    @property
    def cancelled(self) -> bool:
        """True when the client no longer wants the answer; asynchronous handlers are cancelled as well."""
        return self._key in self._host.cancelled

    @property
    def request(self) -> RequestInfo:
        """The request: revision, client, headers, `_meta`. Look at it before the handler returns."""
        if self._request is None:
            text = self._host.bridge.context(self._key)
            if text is None:
                raise MisuseError("the call is over: read ctx.request while the handler still runs")
            self._request = RequestInfo(msgspec.json.decode(text))
        return self._request

    def require(self, capability: str) -> None:
        """Refuses the call when the client did not declare a capability, like `"sampling"` or `"elicitation.url"`.

        The error (an `RpcError`) is the one the protocol prescribes; let it pass.
        """
        self._host.bridge.require(self._key, capability)

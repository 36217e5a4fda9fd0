"""Options of a server, and of its HTTP endpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ..model.cache_hints import CacheHints
from ..model.options import Identity, TaskOptions
from ..model.store_options import StoreOptions

if TYPE_CHECKING:
    from .auth import ServerAuth
    from .document_store import DocumentStore, DocumentStoreOptions


class ServerCache(CacheHints, total=False):
    """Lifetime and audience of a server's answers in caches: `ttl` and `scope` for everything, others for a part.

    Contents, and a list of which a function gives a part, may depend on who asks: they are private unless `scope`
    is given for them.
    """

    discover: CacheHints
    """`server/discover`."""
    tools: CacheHints
    """The list of tools."""
    prompts: CacheHints
    """The list of prompts."""
    resources: CacheHints
    """The list of resources."""
    resource_templates: CacheHints
    """The list of resource templates."""
    read: CacheHints
    """Contents of resources, where neither the resource nor the result says it."""


class ServerOptions(Identity, total=False):
    """Options of a server; sizes in bytes, every limit has a safe default."""

    instructions: str | None
    """Instructions for the model about this server; none."""
    revision: str | None
    """Speaks only this revision, such as `"2025-11-25"`, or only those with handshakes (`"legacy"`) or without
    (`"modern"`); all of them."""
    auth: ServerAuth | None
    """Validation of access tokens over HTTP, such as `ServerAuth(issuer=..., resource=...)`; it asks for none."""
    page_size: int | None
    """Entries on one page of a list; 250."""
    max_message_bytes: int | None
    """Longest message accepted; 4 MiB."""
    max_nesting: int | None
    """Deepest JSON accepted; 128."""
    max_decoded_bytes: int | None
    """Memory that a message's values may take once decoded, in bytes and by estimate; 64 MiB."""
    max_memory: int | None
    """Bytes that the whole process keeps for its peers at most: long bodies and what is in them, events for clients
    that lose a stream, notifications for slow readers. One client has at most as much as is left for others; beyond
    that new work is refused (503). A quarter of the memory of the machine or its control group. The server that is
    made last decides."""
    max_in_flight: int | None
    """Requests of one connection worked on at once; 256."""
    max_queued_notifications: int | None
    """Notifications waiting for a slow subscriber; 256."""
    max_listeners: int | None
    """Listen streams (`subscriptions/listen`) of one connection; 64. Over HTTP each is a request of its own."""
    ping_interval: float | None
    """Seconds without a message of a legacy client after which it is asked for a sign of life; 0, which is never."""
    ping_timeout: float | None
    """Seconds after which a client that does not answer that is taken for lost, and its session ends; 20."""
    capabilities: Sequence[Literal["completions", "prompts", "resources"]] | Mapping[str, Mapping[str, Any]] | None
    """Capabilities declared to clients besides those of what is registered; none. Names: though there is none of it
    yet, because what a client was not told of as it connected it never asks for. A mapping can also declare
    `experimental` and capabilities unknown to this library: `{"prompts": {}, "experimental": {"ours": {}}}`."""
    tasks: TaskOptions | bool | None
    """Runs tool calls as tasks, where client and tool want that: in 2025-11-25 (experimental), and in 2026-07-28 by the
    extension `io.modelcontextprotocol/tasks`; no."""
    request_state_keys: Sequence[str] | None
    """Secrets of at least 32 bytes that seal what a request of revision 2026-07-28 has to remember between two rounds
    of questions (`requestState`); a secret of this process alone. The first one seals, all of them open, so that they
    can be changed one after the other. Servers that answer the same clients need the same. An empty list is refused: it
    is a setting that has got lost."""
    request_state_ttl: float | None
    """Seconds for which such a state holds: as long as a user may take to answer; 600."""
    max_request_state_bytes: int | None
    """The longest such state, which holds the answers so far; 16 KiB."""
    store: str | StoreOptions | DocumentStore | DocumentStoreOptions | None
    """The store that makes one server of several processes, which need the same name and the same store: a URL such as
    `redis://host:6379`, `StoreOptions`, or a `DocumentStore` of your own, alone or as
    `{"documents": store, "prefix": "shop"}`; that of the environment variable `TRICORN_STORE`, and without one each
    process is a server of its own."""
    cache: ServerCache | None
    """Lifetime and audience of answers in clients' caches, such as `{"ttl": 60, "tools": {"scope": "public"}}`; they
    are not to be cached."""


class HttpOptions(TypedDict, total=False):
    """Options of an HTTP endpoint; times in seconds."""

    path: str | None
    """The path of the endpoint on the port that is listened on; `/mcp`."""
    cert: str | None
    """The certificate of the server that listens on a port, and those between it and its authority, as PEM or as
    the path of a file with that, which is read again when it changes. Clients speak https then. None."""
    key: str | None
    """The private key of `cert`, in the same way; it may be in `cert`."""
    access_log: bool | None
    """A line on standard error for each request to a port, when its answer is over, in the Common Log Format with the
    milliseconds that it took; without queries, headers and bodies. No."""
    allowed_hosts: Sequence[str] | None
    """Values of the Host header accepted; by default the loopback names of the port."""
    allowed_origins: Sequence[str] | None
    """Values of the Origin header accepted; by default those of the loopback names."""
    max_sessions: int | None
    """Legacy sessions kept; 10,000, then an idle one of whoever has the most goes."""
    session_idle_timeout: float | None
    """After which an idle legacy session goes; 1800."""
    drain_timeout: float | None
    """Time in which requests are answered after SIGTERM or `drain`, on a port or socket: no connection is taken then,
    and streams that wait for news end. Calls that are left are cancelled; 5, and 0 cancels at once."""
    keep_alive_interval: float | None
    """Between two keep-alive comments on a silent stream; 15."""
    max_events: int | None
    """Events of one session kept for clients that lose a stream; 256, and 0 for none."""
    max_event_bytes: int | None
    """Bytes of them; 1 MiB."""
    sse_retry: float | None
    """After which a client that lost a stream asks for the rest; 1."""
    stateless: bool | None
    """Serves clients of the handshake revisions without sessions, so that any of several processes can
    answer each request; what needs a session then fails with an error that says so. No."""
    sse: bool | None
    """Serves the oldest transport, HTTP+SSE, too; no.

    Deprecated: MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP.
    """
    sse_path: str | None
    """The path of its stream on the port that is listened on; `/sse`.

    Deprecated: MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP.
    """
    sse_message_path: str | None
    """The path to which its messages are posted, on the port that is listened on; `/messages`.

    Deprecated: MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP.
    """
    max_connections: int | None
    """Sockets at once, and stateless requests at work at once; 4096."""
    trusted_proxies: Sequence[str] | None
    """Proxies whose X-Forwarded-For or Forwarded says where a request comes from, by which sockets, streams and
    sessions are counted: addresses, or networks as `10.0.0.0/8`; none, so that all behind a proxy count as one."""

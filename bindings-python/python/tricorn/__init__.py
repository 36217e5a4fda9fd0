"""Tricorn: the Model Context Protocol, client and server, every revision, one engine.

    from tricorn import Server

    app = Server("demo")

    @app.tool
    def add(a: int, b: int) -> int:
        "Add two numbers."
        return a + b

    @app.resource("notes://{number}")
    def note(number: int) -> str:
        return f"Note {number}"

    @app.prompt
    def review(code: str) -> str:
        return f"Please review this: {code}"

    app.run()

`Server` makes servers; `connect` (asyncio) and `Client` (synchronous) make clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import is_safe_icon, version
from .ask import CreateMessageResult, Elicited, Form, ListRootsResult, Root
from .completion import Completion
from .content import (
    Annotations,
    Audio,
    CallToolResult,
    Content,
    EmbeddedResource,
    Icon,
    Image,
    Implementation,
    Page,
    Progress,
    ResourceContents,
    ResourceLink,
    Text,
    Tool,
    ToolAnnotations,
)
from .context import Context, RequestContext
from .errors import (
    AuthError,
    CancelledError,
    ClosedError,
    Error,
    InputRequired,
    MisuseError,
    PeerMisbehavedError,
    ResourceNotFoundError,
    RpcError,
    TimeoutError,  # noqa: A004 - it is the builtin one too
    ToolError,
    TransportError,
    UnsupportedError,
    UrlElicitation,
    UrlElicitationRequiredError,
)
from .extension import Extension
from .info import RequestInfo
from .logs import LogHandler
from .middleware import Next, Request
from .prompts import GetPromptResult, Message, Prompt, PromptArgument, PromptOptions, assistant, user
from .question import Question
from .resources import CacheHints, ReadResourceResult, Resource, ResourceOptions, ResourceTemplate
from .server import HttpOptions, Server, ServerCache, ServerOptions, TaskOptions
from .tool import ToolOptions
from .trace import TraceContext

if TYPE_CHECKING:
    from .cache_store import CacheStore
    from .client import AsyncClient, ClientCache, ClientOptions, connect
    from .client_auth import AuthStep, ClientAuth, Identity, Wanted
    from .group import AsyncClientGroup, ClientGroup, GroupOptions, connect_many
    from .handlers import Handlers
    from .http_transport import HttpRequest, HttpResponse, HttpTransport
    from .listening import (
        AsyncListening,
        Change,
        ExtensionNotification,
        Honoured,
        PromptsListChanged,
        ResourcesListChanged,
        ResourceUpdated,
        TaskChanged,
        ToolsListChanged,
    )
    from .principal import Principal
    from .requests import RequestOptions
    from .server_auth import Introspection, ServerAuth
    from .sync import Client, Listening
    from .tasks import AsyncTaskHandle, Task, TaskHandle
    from .token_store import FileStore, TokenKey, TokenStore

__version__ = version()

__all__ = [
    "Annotations",
    "AsyncClient",
    "AsyncClientGroup",
    "AsyncListening",
    "Audio",
    "AuthError",
    "AuthStep",
    "CacheHints",
    "CacheStore",
    "CallToolResult",
    "CancelledError",
    "Change",
    "Client",
    "ClientAuth",
    "ClientCache",
    "ClientGroup",
    "ClientOptions",
    "ClosedError",
    "Completion",
    "Content",
    "Context",
    "CreateMessageResult",
    "Elicited",
    "EmbeddedResource",
    "Error",
    "Extension",
    "ExtensionNotification",
    "FileStore",
    "Form",
    "GetPromptResult",
    "GroupOptions",
    "Handlers",
    "Honoured",
    "HttpOptions",
    "HttpRequest",
    "HttpResponse",
    "HttpTransport",
    "Icon",
    "Identity",
    "Image",
    "Implementation",
    "InputRequired",
    "Introspection",
    "ListRootsResult",
    "Listening",
    "LogHandler",
    "Message",
    "MisuseError",
    "Next",
    "Page",
    "PeerMisbehavedError",
    "Principal",
    "Progress",
    "Prompt",
    "PromptArgument",
    "PromptOptions",
    "PromptsListChanged",
    "Question",
    "ReadResourceResult",
    "Request",
    "RequestContext",
    "RequestInfo",
    "RequestOptions",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceNotFoundError",
    "ResourceOptions",
    "ResourceTemplate",
    "ResourceUpdated",
    "ResourcesListChanged",
    "Root",
    "RpcError",
    "Server",
    "ServerAuth",
    "ServerCache",
    "ServerOptions",
    "AsyncTaskHandle",
    "Task",
    "TaskChanged",
    "TaskHandle",
    "TaskOptions",
    "Text",
    "TimeoutError",
    "TokenKey",
    "TokenStore",
    "Tool",
    "ToolAnnotations",
    "ToolError",
    "ToolOptions",
    "ToolsListChanged",
    "TraceContext",
    "TransportError",
    "UnsupportedError",
    "UrlElicitation",
    "UrlElicitationRequiredError",
    "Wanted",
    "assistant",
    "connect",
    "connect_many",
    "is_safe_icon",
    "user",
    "__version__",
]

_LATER = {
    "AsyncClient": "client",
    "AuthStep": "client_auth",
    "CacheStore": "cache_store",
    "ClientAuth": "client_auth",
    "FileStore": "token_store",
    "Identity": "client_auth",
    "Introspection": "server_auth",
    "Principal": "principal",
    "ServerAuth": "server_auth",
    "TokenKey": "token_store",
    "TokenStore": "token_store",
    "Wanted": "client_auth",
    "Client": "sync",
    "ClientCache": "client",
    "ClientOptions": "client",
    "RequestOptions": "requests",
    "AsyncClientGroup": "group",
    "AsyncTaskHandle": "tasks",
    "ClientGroup": "group",
    "GroupOptions": "group",
    "Handlers": "handlers",
    "HttpRequest": "http_transport",
    "HttpResponse": "http_transport",
    "HttpTransport": "http_transport",
    "AsyncListening": "listening",
    "Change": "listening",
    "ExtensionNotification": "listening",
    "Honoured": "listening",
    "Listening": "sync",
    "PromptsListChanged": "listening",
    "ResourceUpdated": "listening",
    "TaskChanged": "listening",
    "ResourcesListChanged": "listening",
    "ToolsListChanged": "listening",
    "Task": "tasks",
    "TaskHandle": "tasks",
    "connect": "client",
    "connect_many": "group",
}


def __getattr__(name: str) -> Any:
    # Most servers never are a client, nor protected: they do not pay for importing that.
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value

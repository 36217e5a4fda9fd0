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

if TYPE_CHECKING:
    from .ask import CreateMessageResult, Elicited, Form, ListRootsResult, Root
    from .cache_store import CacheStore
    from .client import AsyncClient, ClientCache, ClientOptions, connect
    from .client_auth import AuthStep, ClientAuth, Identity, Wanted
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
    from .document_store import Document, DocumentStore, DocumentStoreOptions, DocumentWrite
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
    from .group import AsyncClientGroup, ClientGroup, GroupOptions, connect_many
    from .handlers import Handlers
    from .http_transport import HttpRequest, HttpResponse, HttpTransport
    from .info import RequestInfo
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
    from .logs import LogHandler
    from .middleware import Next, Request
    from .principal import Principal
    from .prompts import GetPromptResult, Message, Prompt, PromptArgument, PromptOptions, assistant, user
    from .question import Question
    from .requests import RequestOptions
    from .resources import CacheHints, ReadResourceResult, Resource, ResourceOptions, ResourceTemplate
    from .server import HttpOptions, Server, ServerCache, ServerOptions, TaskOptions
    from .server_auth import Introspection, ServerAuth
    from .store_options import StoreOptions
    from .sync import Client, Listening
    from .tasks import AsyncTaskHandle, Task, TaskHandle
    from .token_store import FileStore, TokenKey, TokenStore
    from .tool import ToolOptions
    from .trace import TraceContext

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
    "Document",
    "DocumentStore",
    "DocumentStoreOptions",
    "DocumentWrite",
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
    "StoreOptions",
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

_NAMES = {
    "ask": ("CreateMessageResult", "Elicited", "Form", "ListRootsResult", "Root"),
    "cache_store": ("CacheStore",),
    "client": ("AsyncClient", "ClientCache", "ClientOptions", "connect"),
    "client_auth": ("AuthStep", "ClientAuth", "Identity", "Wanted"),
    "completion": ("Completion",),
    "content": (
        "Annotations",
        "Audio",
        "CallToolResult",
        "Content",
        "EmbeddedResource",
        "Icon",
        "Image",
        "Implementation",
        "Page",
        "Progress",
        "ResourceContents",
        "ResourceLink",
        "Text",
        "Tool",
        "ToolAnnotations",
    ),
    "context": ("Context", "RequestContext"),
    "document_store": ("Document", "DocumentStore", "DocumentStoreOptions", "DocumentWrite"),
    "errors": (
        "AuthError",
        "CancelledError",
        "ClosedError",
        "Error",
        "InputRequired",
        "MisuseError",
        "PeerMisbehavedError",
        "ResourceNotFoundError",
        "RpcError",
        "TimeoutError",
        "ToolError",
        "TransportError",
        "UnsupportedError",
        "UrlElicitation",
        "UrlElicitationRequiredError",
    ),
    "extension": ("Extension",),
    "group": ("AsyncClientGroup", "ClientGroup", "GroupOptions", "connect_many"),
    "handlers": ("Handlers",),
    "http_transport": ("HttpRequest", "HttpResponse", "HttpTransport"),
    "info": ("RequestInfo",),
    "listening": (
        "AsyncListening",
        "Change",
        "ExtensionNotification",
        "Honoured",
        "PromptsListChanged",
        "ResourcesListChanged",
        "ResourceUpdated",
        "TaskChanged",
        "ToolsListChanged",
    ),
    "logs": ("LogHandler",),
    "middleware": ("Next", "Request"),
    "principal": ("Principal",),
    "prompts": ("GetPromptResult", "Message", "Prompt", "PromptArgument", "PromptOptions", "assistant", "user"),
    "question": ("Question",),
    "requests": ("RequestOptions",),
    "resources": ("CacheHints", "ReadResourceResult", "Resource", "ResourceOptions", "ResourceTemplate"),
    "server": ("HttpOptions", "Server", "ServerCache", "ServerOptions", "TaskOptions"),
    "server_auth": ("Introspection", "ServerAuth"),
    "store_options": ("StoreOptions",),
    "sync": ("Client", "Listening"),
    "tasks": ("AsyncTaskHandle", "Task", "TaskHandle"),
    "token_store": ("FileStore", "TokenKey", "TokenStore"),
    "tool": ("ToolOptions",),
    "trace": ("TraceContext",),
}
"""The public names by their modules, none of which is imported before one of its names is asked for."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:  # where type checkers see it, they take any name for one that is there

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in _NAMES:
            return import_module(f".{name}", __name__)
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_NAMES})

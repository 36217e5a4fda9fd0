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
    from .call.context import RequestContext
    from .call.options import RequestOptions
    from .client.auth import ClientAuth, Identity, Wanted
    from .client.cache_store import CacheStore
    from .client.client import AsyncClient, connect
    from .client.group import AsyncClientGroup, ClientGroup, connect_many
    from .client.http_transport import HttpRequest, HttpResponse, HttpTransport
    from .client.listening import (
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
    from .client.options import ClientCache, ClientOptions, GroupOptions, Handlers
    from .client.sync import Client, Listening
    from .client.tasks import AsyncTaskHandle, TaskHandle
    from .client.token_store import FileStore, TokenKey, TokenStore
    from .errors import (
        AuthError,
        CancelledError,
        ClosedError,
        Error,
        MisuseError,
        PeerMisbehavedError,
        ResourceNotFoundError,
        RpcError,
        TimeoutError,  # noqa: A004 - it is the builtin one too
        ToolError,
        TransportError,
        UnsupportedError,
    )
    from .errors.auth_step import AuthStep
    from .middleware import Next, Request
    from .model.content import (
        Annotations,
        Audio,
        Content,
        EmbeddedResource,
        Icon,
        Image,
        Implementation,
        Progress,
        ResourceContents,
        ResourceLink,
        Text,
        ToolAnnotations,
    )
    from .model.definitions import Prompt, PromptArgument, Resource, ResourceTemplate, Tool
    from .model.forms import Form
    from .model.input_required import InputRequired, UrlElicitation, UrlElicitationRequiredError
    from .model.messages import CreateMessageResult, Message, assistant, user
    from .model.options import CacheHints, StoreOptions, TaskOptions
    from .model.principal import Principal
    from .model.questions import Question
    from .model.request_info import RequestInfo
    from .model.results import (
        CallToolResult,
        Completion,
        Elicited,
        GetPromptResult,
        ListRootsResult,
        Page,
        ReadResourceResult,
        Root,
    )
    from .model.task import Task
    from .model.trace import TraceContext
    from .server.auth import Introspection, ServerAuth
    from .server.context import Context
    from .server.definition_options import PromptOptions, ResourceOptions, ToolOptions
    from .server.document_store import Document, DocumentStore, DocumentStoreOptions, DocumentWrite
    from .server.extension import Extension
    from .server.log_handler import LogHandler
    from .server.options import HttpOptions, ServerCache, ServerOptions
    from .server.server import Server

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
    "call.context": ("RequestContext",),
    "call.options": ("RequestOptions",),
    "client.auth": ("ClientAuth", "Identity", "Wanted"),
    "client.cache_store": ("CacheStore",),
    "client.client": ("AsyncClient", "connect"),
    "client.group": ("AsyncClientGroup", "ClientGroup", "connect_many"),
    "client.http_transport": ("HttpRequest", "HttpResponse", "HttpTransport"),
    "client.listening": (
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
    "client.options": ("ClientCache", "ClientOptions", "GroupOptions", "Handlers"),
    "client.sync": ("Client", "Listening"),
    "client.tasks": ("AsyncTaskHandle", "TaskHandle"),
    "client.token_store": ("FileStore", "TokenKey", "TokenStore"),
    "errors": (
        "AuthError",
        "CancelledError",
        "ClosedError",
        "Error",
        "MisuseError",
        "PeerMisbehavedError",
        "ResourceNotFoundError",
        "RpcError",
        "TimeoutError",
        "ToolError",
        "TransportError",
        "UnsupportedError",
    ),
    "errors.auth_step": ("AuthStep",),
    "middleware": ("Next", "Request"),
    "model.content": (
        "Annotations",
        "Audio",
        "Content",
        "EmbeddedResource",
        "Icon",
        "Image",
        "Implementation",
        "Progress",
        "ResourceContents",
        "ResourceLink",
        "Text",
        "ToolAnnotations",
    ),
    "model.definitions": ("Tool", "Prompt", "PromptArgument", "Resource", "ResourceTemplate"),
    "model.forms": ("Form",),
    "model.input_required": ("InputRequired", "UrlElicitation", "UrlElicitationRequiredError"),
    "model.messages": ("CreateMessageResult", "Message", "assistant", "user"),
    "model.options": ("CacheHints", "StoreOptions", "TaskOptions"),
    "model.principal": ("Principal",),
    "model.questions": ("Question",),
    "model.request_info": ("RequestInfo",),
    "model.results": (
        "Elicited",
        "ListRootsResult",
        "Root",
        "Completion",
        "CallToolResult",
        "Page",
        "GetPromptResult",
        "ReadResourceResult",
    ),
    "model.task": ("Task",),
    "model.trace": ("TraceContext",),
    "server.auth": ("Introspection", "ServerAuth"),
    "server.context": ("Context",),
    "server.definition_options": ("PromptOptions", "ResourceOptions", "ToolOptions"),
    "server.document_store": ("Document", "DocumentStore", "DocumentStoreOptions", "DocumentWrite"),
    "server.extension": ("Extension",),
    "server.log_handler": ("LogHandler",),
    "server.options": ("HttpOptions", "ServerCache", "ServerOptions"),
    "server.server": ("Server",),
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
        return sorted({*globals(), *__all__, *(name for name in _NAMES if "." not in name)})

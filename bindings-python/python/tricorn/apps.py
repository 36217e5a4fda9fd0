"""MCP Apps, the extension `io.modelcontextprotocol/ui`: tools with a user interface of their own, shown by the host.

    from tricorn import Context, Server, apps

    app = Server("weather", extensions=[apps.ui_extension()])

    @app.tool(meta=apps.ToolUi("ui://weather/map").meta())
    def forecast(city: str, ctx: Context) -> str:
        "The weather of the coming days."
        return "Sunny." if apps.supports_ui(ctx) else "Sunny on all days from Monday to Sunday, 21 to 25 degrees."

    apps.add_ui_resource(app, "ui://weather/map", html)

What a tool answers has to make sense without its user interface, too: not every client shows one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from .content import ResourceContents, Tool
from .context import Context
from .errors import MisuseError
from .extension import Extension
from .resources import ReadResourceResult
from .server import Server

UI_EXTENSION = "io.modelcontextprotocol/ui"
"""The extension's identifier."""
UI_MIME_TYPE = "text/html;profile=mcp-app"
"""The MIME type of a user interface."""

_RESOURCE_URI = "ui/resourceUri"

Visibility = Literal["model", "app"]
"""Who may call a tool: the model, the user interface."""
_EVERYBODY: tuple[Visibility, ...] = ("model", "app")


def ui_extension() -> Extension:
    """The extension, for a server: `Server(..., extensions=[ui_extension()])`."""
    return Extension(UI_EXTENSION)


def ui_client_settings(mime_types: Sequence[str] = (UI_MIME_TYPE,)) -> dict[str, Any]:
    """What a client that shows user interfaces declares: `extensions={UI_EXTENSION: ui_client_settings()}`."""
    return {"mimeTypes": list(mime_types)}


def supports_ui(ctx: Context[Any], mime_type: str = UI_MIME_TYPE) -> bool:
    """Whether the client of this request shows user interfaces of this MIME type."""
    settings = ctx.extension(UI_EXTENSION)
    types: Any = None if settings is None else settings.get("mimeTypes")
    return isinstance(types, list) and mime_type in types


class ToolUi(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The user interface of a tool: `_meta.ui` of its definition."""

    resource_uri: str | None = None
    """Where it is, a `ui://` URI; None: the tool has none, and only `visibility` counts."""
    visibility: tuple[Visibility, ...] = _EVERYBODY
    """Who may call the tool; both. Clients keep tools without `"model"` from the model."""

    def __post_init__(self) -> None:
        if self.resource_uri is not None and not self.resource_uri.startswith("ui://"):
            raise MisuseError(f"resource_uri: expected a URI that begins with ui://, got {self.resource_uri!r}")
        if isinstance(self.visibility, str) or any(one not in ("model", "app") for one in self.visibility):
            raise MisuseError(f'visibility: expected some of "model" and "app", got {self.visibility!r}')

    def meta(self) -> dict[str, Any]:
        """The tool's `_meta`: `@app.tool(meta=ToolUi("ui://weather/map").meta())`."""
        return {"ui": msgspec.to_builtins(self)}


class UiCsp(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which origins a user interface may use; all that is not named is blocked by the host."""

    connect_domains: tuple[str, ...] = ()
    """Of requests."""
    resource_domains: tuple[str, ...] = ()
    """Of images, scripts, styles, fonts and media."""
    frame_domains: tuple[str, ...] = ()
    """Of frames."""
    base_uri_domains: tuple[str, ...] = ()
    """Of base URIs."""


class UiPermissions(msgspec.Struct, frozen=True):
    """What a user interface would like to use; the host may refuse."""

    camera: bool = False
    microphone: bool = False
    geolocation: bool = False
    clipboard_write: bool = False


class ResourceUi(msgspec.Struct, frozen=True):
    """How a host is to show a user interface: `_meta.ui` of a resource's contents."""

    csp: UiCsp | None = None
    """The origins it may use; none."""
    permissions: UiPermissions | None = None
    """What it would like to use; nothing."""
    domain: str | None = None
    """The origin that it is to have, as the host names them; one of its own."""
    prefers_border: bool | None = None
    """Whether a border around it is wanted; as the host likes."""

    def meta(self) -> dict[str, Any]:
        """The `_meta` of the resource's contents."""
        ui: dict[str, Any] = {}
        if self.csp is not None:
            ui["csp"] = msgspec.to_builtins(self.csp)
        if self.permissions is not None:
            names = {"clipboard_write": "clipboardWrite"}
            wanted: dict[str, bool] = msgspec.structs.asdict(self.permissions)
            ui["permissions"] = {names.get(name, name): {} for name, yes in wanted.items() if yes}
        if self.domain is not None:
            ui["domain"] = self.domain
        if self.prefers_border is not None:
            ui["prefersBorder"] = self.prefers_border
        return {"ui": ui}


def add_ui_resource(
    server: Server,
    uri: str,
    html: str | Callable[[], str],
    ui: ResourceUi | None = None,
    **options: Any,
) -> None:
    """Offers a user interface: HTML, or a function that makes it when it is read.

    `options` are those of a resource, such as `title`. A plain function runs in a worker thread.
    """
    if not uri.startswith("ui://"):
        raise MisuseError(f"uri: expected a URI that begins with ui://, got {uri!r}")
    meta = ui.meta() if ui is not None else None

    def read() -> ReadResourceResult:
        text = html() if callable(html) else html
        return ReadResourceResult([ResourceContents(uri, UI_MIME_TYPE, text=text, meta=meta)])

    given: Any = {"name": uri.removeprefix("ui://"), **options, "mime_type": UI_MIME_TYPE}
    server.add_resource(uri, read, **given)


def tool_ui(tool: Tool) -> ToolUi | None:
    """The user interface that a listed tool has, also under its former name `ui/resourceUri`.

    None for none, or for what is no such thing.
    """
    meta: Mapping[str, Any] = tool.raw.get("_meta") or {}
    ui: Any = meta.get("ui", {})
    visibility = _visibility(tool)
    if not isinstance(ui, dict) or visibility is None:
        return None
    uri: Any = cast("dict[str, Any]", ui).get("resourceUri", meta.get(_RESOURCE_URI))
    if uri is None:
        return ToolUi(None, visibility) if "ui" in meta else None
    return ToolUi(uri, visibility) if isinstance(uri, str) and uri.startswith("ui://") else None


def _visibility(tool: Tool) -> tuple[Visibility, ...] | None:
    """Who may call it, as far as we know them; None when what it says is no list."""
    meta: Mapping[str, Any] = tool.raw.get("_meta") or {}
    ui: Any = meta.get("ui")
    given: Any = cast("dict[str, Any]", ui).get("visibility", _EVERYBODY) if isinstance(ui, dict) else _EVERYBODY
    if not isinstance(given, (list, tuple)):
        return None
    return tuple(one for one in cast("list[Visibility]", given) if one in _EVERYBODY)


def visible_to_model(tool: Tool) -> bool:
    """Whether a host may tell the model of this tool. Not when its visibility is no list."""
    return "model" in (_visibility(tool) or ())


def callable_by_app(tool: Tool) -> bool:
    """Whether a host may let a user interface call this tool. Not when its visibility is no list."""
    return "app" in (_visibility(tool) or ())

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

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from .call.signature import hints, unwrapped
from .errors import MisuseError
from .json import checks
from .model.content import ResourceContents
from .model.definitions import Tool
from .model.input_required import InputRequired
from .server.context import Context
from .server.extension import Extension
from .server.registry import Offering

UI_EXTENSION = "io.modelcontextprotocol/ui"
"""The extension's identifier."""
UI_MIME_TYPE = "text/html;profile=mcp-app"
"""The MIME type of a user interface."""

_RESOURCE_URI = "ui/resourceUri"

Visibility = Literal["model", "app"]
"""A caller of a tool: the model, or the user interface."""
_EVERYBODY: tuple[Visibility, ...] = ("model", "app")


def ui_extension() -> Extension:
    """The extension, for a server: `Server(..., extensions=[ui_extension()])`."""
    return Extension(UI_EXTENSION)


def ui_client_settings(mime_types: Sequence[str] = (UI_MIME_TYPE,)) -> dict[str, Any]:
    """Returns the settings of a client that shows user interfaces.

    It declares them as `extensions={UI_EXTENSION: ui_client_settings()}`. `MisuseError` for no MIME type.
    """
    if not _is_texts(mime_types) or not mime_types:
        raise MisuseError(f"mime_types: expected a list of at least one MIME type, got {checks.shown(mime_types)}")
    return {"mimeTypes": list(mime_types)}


def supports_ui(ctx: Context[Any], mime_type: str = UI_MIME_TYPE) -> bool:
    """Returns True when the client of this request shows user interfaces of this MIME type."""
    settings = ctx.extension(UI_EXTENSION)
    types: Any = None if settings is None else settings.get("mimeTypes")
    return isinstance(types, list) and mime_type in types


class ToolUi(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The user interface of a tool: `_meta.ui` of its definition."""

    resource_uri: str | None = None
    """The address of the user interface, a `ui://` URI; None: the tool has none, and only `visibility` counts."""
    visibility: tuple[Visibility, ...] = _EVERYBODY
    """The callers that may use the tool; both. Clients keep tools without `"model"` from the model."""

    def __post_init__(self) -> None:
        if self.resource_uri is not None and not self.resource_uri.startswith("ui://"):
            raise MisuseError(f"resource_uri: expected a URI that begins with ui://, got {self.resource_uri!r}")
        if isinstance(self.visibility, str) or any(one not in ("model", "app") for one in self.visibility):
            raise MisuseError(f'visibility: expected some of "model" and "app", got {self.visibility!r}')

    def meta(self) -> dict[str, Any]:
        """The tool's `_meta`: `@app.tool(meta=ToolUi("ui://weather/map").meta())`."""
        return {"ui": msgspec.to_builtins(self)}


class UiCsp(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The origins that a user interface may use; all that is not named is blocked by the host."""

    connect_domains: tuple[str, ...] = ()
    """Origins of requests."""
    resource_domains: tuple[str, ...] = ()
    """Origins of images, scripts, styles, fonts and media."""
    frame_domains: tuple[str, ...] = ()
    """Origins of frames."""
    base_uri_domains: tuple[str, ...] = ()
    """Origins of base URIs."""

    def __post_init__(self) -> None:
        for name, origins in msgspec.structs.asdict(self).items():
            if not _is_texts(origins):
                raise MisuseError(f"{name}: expected a list of origins, which are text, got {checks.shown(origins)}")


class UiPermissions(msgspec.Struct, frozen=True):
    """Permissions that a user interface would like to have; the host may refuse."""

    camera: bool = False
    microphone: bool = False
    geolocation: bool = False
    clipboard_write: bool = False

    def __post_init__(self) -> None:
        for name, wanted in msgspec.structs.asdict(self).items():
            _check_type(name, wanted, bool, "True or False")


class ResourceUi(msgspec.Struct, frozen=True):
    """Display settings of a user interface for the host: `_meta.ui` of a resource's contents."""

    csp: UiCsp | None = None
    """The origins it may use; none."""
    permissions: UiPermissions | None = None
    """The permissions it would like to have; none."""
    domain: str | None = None
    """The origin that it is to have, as the host names them; one of its own."""
    prefers_border: bool | None = None
    """True for a border around it, False for none; as the host likes."""

    def __post_init__(self) -> None:
        for name, kind, expected in (
            ("csp", UiCsp, "a UiCsp"),
            ("permissions", UiPermissions, "a UiPermissions"),
            ("domain", str, "text"),
            ("prefers_border", bool, "True or False"),
        ):
            if (value := getattr(self, name)) is not None:
                _check_type(name, value, kind, f"{expected}, or None")

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
    server: Offering,
    uri: str,
    html: str | bytes | Callable[..., str | bytes | Awaitable[str | bytes]],
    ui: ResourceUi | None = None,
    **options: Any,
) -> None:
    """Offers a user interface: HTML as text or bytes, or a function that makes it when it is read.

    The function is one as `Server.resource` takes it: plain, in a worker thread, or `async def`; a parameter annotated
    `Context` receives the call's context; the variables of a URI with `{...}`, a template, are its parameters. `server`
    may be one session, too, `ctx.session`. `options` are those of a resource, such as `title`.
    """
    if not isinstance(uri, str) or not uri.startswith("ui://"):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MisuseError(f"uri: expected a URI that begins with ui://, got {uri!r}")
    if ui is not None:
        _check_type("ui", ui, ResourceUi, "a ResourceUi, or None")
    meta = ui.meta() if ui is not None else None

    def contents(page: object) -> object:
        if isinstance(page, InputRequired):
            return page
        if isinstance(page, str):
            return ResourceContents(mime_type=UI_MIME_TYPE, text=page, meta=meta)
        if isinstance(page, (bytes, bytearray, memoryview)):
            return ResourceContents(mime_type=UI_MIME_TYPE, blob=bytes(cast(bytes, page)), meta=meta)
        raise MisuseError(f"user interface {uri!r}: expected HTML, text or bytes, got {checks.shown(page)}")

    given: Any = {"name": uri.removeprefix("ui://"), **options, "mime_type": UI_MIME_TYPE}
    if callable(html):
        server.add_resource(uri, _making(html, contents), **given)
        return
    fixed = contents(html)

    def read(**_variables: object) -> object:
        return fixed

    server.add_resource(uri, read if "{" in uri else fixed, **given)


def _making(function: Callable[..., Any], contents: Callable[[object], object]) -> Callable[..., Any]:
    """The function with its signature as it is, and contents instead of HTML."""
    target = unwrapped(function)

    async def later(page: Awaitable[object]) -> object:
        return contents(await page)

    def plain(*values: Any, **named: Any) -> object:
        page: object = function(*values, **named)
        return later(cast("Awaitable[object]", page)) if isinstance(page, Awaitable) else contents(page)

    async def asynchronous(*values: Any, **named: Any) -> object:
        return contents(await function(*values, **named))

    made: Any = asynchronous if inspect.iscoroutinefunction(target) else plain
    made = functools.wraps(function)(made)
    # Those of a method, a partial function or an object that is called are elsewhere, or not there yet.
    made.__annotations__ = {**hints(function, target), "return": object}
    return cast("Callable[..., Any]", made)


def _is_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in cast("list[object]", value))


def _check_type(name: str, value: object, kind: type, expected: str) -> None:
    if not isinstance(value, kind):
        raise MisuseError(f"{name}: expected {expected}, got {checks.shown(value)}")


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
    """Returns the callers that may use the tool, those we know; None when its visibility is no list."""
    meta: Mapping[str, Any] = tool.raw.get("_meta") or {}
    ui: Any = meta.get("ui")
    given: Any = cast("dict[str, Any]", ui).get("visibility", _EVERYBODY) if isinstance(ui, dict) else _EVERYBODY
    if not isinstance(given, (list, tuple)):
        return None
    return tuple(one for one in cast("list[Visibility]", given) if one in _EVERYBODY)


def visible_to_model(tool: Tool) -> bool:
    """Returns True when a host may tell the model of this tool; False when its visibility is no list."""
    return "model" in (_visibility(tool) or ())


def callable_by_app(tool: Tool) -> bool:
    """Returns True when a host may let a user interface call this tool; False when its visibility is no list."""
    return "app" in (_visibility(tool) or ())

"""Resources: what a handler's value becomes, and what a client reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, cast

import msgspec

from .completion import Complete
from .content import Annotations, Definition, Icon, ResourceContents, WireResult, member
from .encoding import encode
from .errors import MisuseError, unicode
from .handler import Answer
from .host import Host
from .schema import Signature

Json = dict[str, Any]


class CacheHints(TypedDict, total=False):
    """Lifetime and audience of cached answers (2026-07-28). What is not given is taken from the more general option."""

    ttl: float
    """Seconds for which it keeps after it was received; 0, which is not at all."""
    scope: Literal["public", "private"]
    """The audience: `"public"` is everybody, also under other authorization; `"private"`."""


class ResourceOptions(TypedDict, total=False):
    """Options of a resource or a resource template; everything not given is read off the function."""

    name: str | None
    """A name for programs; the function's name, of a plain value the URI."""
    title: str | None
    """The name to show to people; none."""
    description: str | None
    """A description for the model; the function's docstring."""
    mime_type: str | None
    """The MIME type of what it holds; none, and that of JSON for a value that is neither text nor bytes."""
    size: int | None
    """Size of a resource in bytes; none."""
    annotations: Annotations | Mapping[str, Any] | None
    """The audience and the importance, such as `Annotations(priority=1)`; none."""
    icons: Sequence[Icon | Mapping[str, Any]] | None
    """Images for user interfaces; none."""
    meta: Mapping[str, Any] | None
    """The definition's `_meta`; none."""
    scopes: Sequence[str] | None
    """The scopes that the caller's access token needs for it over HTTP, besides the server's `required_scopes`; it is
    listed to those who have them. None."""
    enabled: bool | None
    """False hides it until `set_enabled` shows it. True."""
    replace: bool | None
    """True puts it in the place of what has this URI, if there is something.

    It is hidden when that was, unless `enabled` is given. False.
    """
    cache: CacheHints | None
    """Lifetime and audience of what is read, in a cache, such as `{"ttl": 60}`; what the server's option `cache`
    says."""
    complete: Mapping[str, Complete] | None
    """Completion of a template's variables, by name: a function of the value so far, or a list of all values."""
    run_in_thread: bool | None
    """For plain functions; False runs them on the event loop, which is faster but must never block. True."""


class Resource(Definition):
    """A resource as a server lists it. `raw` is the definition without any loss."""

    __slots__ = ()

    @property
    def uri(self) -> str:
        """The URI to read it by."""
        return self._text("uri")

    @property
    def mime_type(self) -> str | None:
        """The MIME type of what it holds."""
        return self.raw.get("mimeType")

    @property
    def size(self) -> int | None:
        """The size of its contents in bytes."""
        return member("Resource.size", self.raw.get("size"), int)

    @property
    def annotations(self) -> Annotations | None:
        """Its audience, its importance, and the time of its last change."""
        return member("Resource.annotations", self.raw.get("annotations"), Annotations)


class ResourceTemplate(Definition):
    """A URI template as a server lists it. `raw` is the definition without any loss."""

    __slots__ = ()

    @property
    def uri_template(self) -> str:
        """The template of the URIs (RFC 6570)."""
        return self._text("uriTemplate")

    @property
    def mime_type(self) -> str | None:
        """The MIME type of all resources that match."""
        return self.raw.get("mimeType")

    @property
    def annotations(self) -> Annotations | None:
        """Their audience and their importance."""
        return member("ResourceTemplate.annotations", self.raw.get("annotations"), Annotations)


class ReadResourceResult(WireResult):
    """The contents of a resource.

    A client receives it, and a handler may return one to set everything itself, or to pass on another server's result
    without loss.
    """

    __slots__ = ()
    method = "resources/read"

    def __init__(
        self,
        contents: str | bytes | ResourceContents | Sequence[ResourceContents],
        *,
        meta: dict[str, Any] | None = None,
    ) -> None:
        several = [contents] if isinstance(contents, (str, bytes, ResourceContents)) else contents
        raw: dict[str, Any] = {"contents": [msgspec.to_builtins(_contents(item)) for item in several]}
        if meta is not None:
            raw["_meta"] = meta
        self._raw = raw
        self._wire = None

    @property
    def contents(self) -> list[ResourceContents]:
        """The contents; several for what has parts, such as the files of a folder."""
        return member("the result of resources/read", self.raw.get("contents"), list[ResourceContents]) or []

    @property
    def text(self) -> str:
        """All texts joined by line breaks."""
        return "\n".join(item.text for item in self.contents if item.text is not None)

    @property
    def blob(self) -> bytes | None:
        """The first bytes; None when there is only text."""
        return next((item.blob for item in self.contents if item.blob is not None), None)


def _contents(value: object) -> object:
    if isinstance(value, str):
        return ResourceContents(text=value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ResourceContents(blob=bytes(cast(bytes, value)))
    return value


def answering(host: Host, typed: bool = False, write: Callable[[Any], bytes] = encode) -> Answer:
    """Returns the function that makes the answer to resources/read of a value; `typed`: it is declared to be a whole
    result.

    `write` makes the text of what is neither text, bytes nor contents.
    """
    bridge = host.bridge
    raw = (bytes, bytearray, memoryview)

    def answer(key: int, value: Any) -> object:
        if isinstance(value, str):
            return bridge.text(key, unicode(value))
        if isinstance(value, ReadResourceResult):
            return bridge.result(key, value.to_wire())
        if isinstance(value, (ResourceContents, *raw)):
            return bridge.result(key, encode({"contents": [_contents(cast(object, value))]}))
        if isinstance(value, (list, tuple)):
            items = cast("Sequence[object]", value)
            if any(isinstance(item, (ResourceContents, *raw)) for item in items):
                return bridge.result(key, encode({"contents": [_contents(item) for item in items]}))
        if typed and isinstance(value, dict):
            return bridge.result(key, encode(value))
        # The engine's affair: contents that are dictionaries, or any JSON value.
        is_contents = isinstance(value, dict) and "contents" in value
        return bridge.value(key, encode(value) if is_contents else write(value))

    return answer


_EXPLODED = re.compile(r"[{,+#./;?&](\w+)\*")
_VARIABLE = r"[\w.%]+(?:\*|:\d+)?"
_EXPRESSION = re.compile(rf"\{{[+#./;?&]?({_VARIABLE}(?:,{_VARIABLE})*)\}}")


def is_template(uri: str) -> bool:
    """True for a URI with variables that can be read; of one with other braces the engine says what is wrong."""
    return "{" in uri and re.search("[{}]", _EXPRESSION.sub("", uri)) is None


def check_parameters(uri: str, signature: Signature) -> None:
    """Raises unless the function takes what the URI gives: its variables, or of a plain resource at most `uri`."""
    takes = {parameter.name for parameter in signature.parameters}
    if is_template(uri):
        names = {part.rstrip("*").partition(":")[0] for found in _EXPRESSION.findall(uri) for part in found.split(",")}
        if (missing := sorted(names - takes)) and not signature.open:
            raise MisuseError(f"resource template {uri!r}: the function has no parameter {missing[0]!r}")
        for name in _EXPLODED.findall(uri):
            hint = next((parameter.type for parameter in signature.parameters if parameter.name == name), list)
            if hint in (str, int, float, bool, bytes):
                raise MisuseError(
                    f"resource template {uri!r}: the variable {name!r} with an asterisk is a list: "
                    f"{name}: list[{hint.__name__}]"
                )
    elif "{" not in uri and (strange := sorted(takes - {"uri"})):
        raise MisuseError(
            f"resource {uri!r}: the function's parameter {strange[0]!r} is no variable of the URI, which has none"
        )


def define(
    kind: Literal["resource", "resource_template"],
    uri: str,
    function: Callable[..., Any] | None,
    description: str | None,
    options: ResourceOptions,
) -> Json:
    """The schema's Resource or ResourceTemplate object."""
    name = options.get("name") or (uri if function is None else getattr(function, "__name__", "<lambda>"))
    if name == "<lambda>":
        name = uri
    if kind == "resource_template" and "size" in options:
        raise MisuseError(f'resource template "{uri}": the option "size" is for resources')
    values = {
        "uri" if kind == "resource" else "uriTemplate": uri,
        "name": name,
        "title": options.get("title"),
        "description": options.get("description", description),
        "mimeType": options.get("mime_type"),
        "size": options.get("size"),
        "annotations": options.get("annotations"),
        "icons": options.get("icons"),
        "_meta": options.get("meta"),
    }
    return {key: value for key, value in values.items() if value is not None}

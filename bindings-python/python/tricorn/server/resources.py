"""Resources: options, definitions, and what a handler's value becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, cast

from ..bridge.host import Host
from ..call.handler import Answer
from ..call.signature import Signature
from ..errors import MisuseError, unicode
from ..json.encoding import encode
from ..model.content import Annotations, Icon, ResourceContents
from ..model.options import CacheHints
from ..model.results import ReadResourceResult, contents_of
from .completion import Complete

Json = dict[str, Any]


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
            return bridge.result(key, encode({"contents": [contents_of(cast(object, value))]}))
        if isinstance(value, (list, tuple)):
            items = cast("Sequence[object]", value)
            if any(isinstance(item, (ResourceContents, *raw)) for item in items):
                return bridge.result(key, encode({"contents": [contents_of(item) for item in items]}))
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

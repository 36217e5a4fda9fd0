"""Resources: options, definitions, and what a handler's value becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from ..bridge.host import Host
from ..call.handler import Answer
from ..call.signature import Signature
from ..errors import MisuseError, unicode
from ..json.encoding import encode
from ..model.content import Audio, EmbeddedResource, Image, ResourceContents, Text
from ..model.results import ReadResourceResult, contents_of
from .definition_options import ResourceOptions

Json = dict[str, Any]


def answering(host: Host, typed: bool = False, write: Callable[[Any], bytes] = encode) -> Answer:
    """Returns the function that makes the answer to resources/read of a value; `typed`: it is declared to be a whole
    result.

    `write` makes the text of what is neither text, bytes, a content block of them nor contents.
    """
    bridge = host.bridge
    contents = (ResourceContents, Text, Image, Audio, EmbeddedResource, bytes, bytearray, memoryview)

    def answer(key: int, value: Any) -> object:
        if isinstance(value, str):
            return bridge.text(key, unicode(value))
        if isinstance(value, ReadResourceResult):
            return bridge.result(key, value.to_wire())
        if isinstance(value, contents):
            return bridge.result(key, encode({"contents": [contents_of(cast(object, value))]}))
        if isinstance(value, (list, tuple)):
            items = cast("Sequence[object]", value)
            if any(isinstance(item, contents) for item in items):
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

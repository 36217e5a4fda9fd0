"""Tools, resources and prompts as a server lists them."""

from __future__ import annotations

import json
from typing import Any, Literal, cast

import msgspec

from ..errors import PeerMisbehavedError
from .content import Annotations, Icon, ToolAnnotations, member

Kind = Literal["tool", "resource", "resource_template", "prompt"]


TaskSupport = Literal["forbidden", "optional", "required"]


class Definition:
    """Something as a server lists it. `raw` is the definition without any loss."""

    __slots__ = ("raw", "server")

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.server: str | None = None
        """The name of the server of a group that has it."""

    @property
    def name(self) -> str:
        """The name to use it by, or, of a resource, a name for programs."""
        return self._text("name")

    @property
    def title(self) -> str:
        """The name to show to people."""
        return cast(str, self.raw.get("title") or self.name)

    def _text(self, key: str) -> str:
        value = self.raw.get(key)
        if not isinstance(value, str):
            raise PeerMisbehavedError(f"{type(self).__name__}.{key}: expected a string, got {json.dumps(value)[:80]}")
        return value

    @property
    def description(self) -> str | None:
        """A description for the model."""
        return self.raw.get("description")

    @property
    def icons(self) -> list[Icon]:
        """Images for user interfaces."""
        return member(f"{type(self).__name__}.icons", self.raw.get("icons"), list[Icon]) or []

    @property
    def meta(self) -> dict[str, Any]:
        """The definition's `_meta`."""
        return self.raw.get("_meta") or {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Definition) and type(other) is type(self) and other.raw == self.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"


class Tool(Definition):
    """A tool as a server lists it. `raw` is the definition without any loss."""

    __slots__ = ()

    @property
    def title(self) -> str:
        """The name to show to people."""
        annotations = self.annotations
        return cast(str, self.raw.get("title") or (annotations and annotations.title) or self.name)

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        schema = self.raw.get("inputSchema")
        if not isinstance(schema, dict):
            raise PeerMisbehavedError(f"Tool.inputSchema: expected an object, got {json.dumps(schema)[:80]}")
        return cast("dict[str, Any]", schema)

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """JSON Schema of the structured content."""
        return self.raw.get("outputSchema")

    @property
    def task_support(self) -> TaskSupport:
        """Support for calls as a task: `"forbidden"`, `"optional"` or `"required"`."""
        execution = cast("dict[str, Any]", self.raw.get("execution") or {})
        return cast(Any, execution.get("taskSupport") or "forbidden")  # type: ignore[no-any-return]

    @property
    def annotations(self) -> ToolAnnotations | None:
        """Hints about its behaviour."""
        return member("Tool.annotations", self.raw.get("annotations"), ToolAnnotations)


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


class PromptArgument(msgspec.Struct, omit_defaults=True):
    """An argument of a prompt; its value is text."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False


class Prompt(Definition):
    """A prompt as a server lists it. `raw` is the definition without any loss."""

    __slots__ = ()

    @property
    def arguments(self) -> list[PromptArgument]:
        """The arguments that may or must be filled in."""
        return member("Prompt.arguments", self.raw.get("arguments"), list[PromptArgument]) or []

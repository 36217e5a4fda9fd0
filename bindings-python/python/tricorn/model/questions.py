"""Questions to a client as values: for `ctx.ask_all`, and for handlers that keep their rounds themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, overload

from ..json.checks import known_options
from ..json.deprecation import deprecated

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .forms import Form
    from .messages import CreateMessageResult, Message, Said
    from .results import Elicited, ListRootsResult

T = TypeVar("T")
Answer = TypeVar("Answer", covariant=True)


class SamplingOptions(TypedDict, total=False):
    """Options of a model besides its messages; those not given are not sent."""

    system_prompt: str | None
    """The system prompt for the model."""
    temperature: float | None
    """The sampling temperature: higher values give more random output."""
    stop_sequences: Sequence[str] | None
    """Texts that end it."""
    model_preferences: Mapping[str, Any] | None
    """The schema's ModelPreferences."""
    include_context: Literal["none", "thisServer", "allServers"] | None
    """Context of its own that the client adds."""
    tools: Sequence[Mapping[str, Any]] | None
    """The schema's Tool objects, for clients with `sampling.tools`."""
    tool_choice: Mapping[str, Any] | None
    """The schema's ToolChoice."""
    metadata: Mapping[str, Any] | None
    """For the provider of the model."""


_SAMPLING = {
    "system_prompt": "systemPrompt",
    "temperature": "temperature",
    "stop_sequences": "stopSequences",
    "model_preferences": "modelPreferences",
    "include_context": "includeContext",
    "tools": "tools",
    "tool_choice": "toolChoice",
    "metadata": "metadata",
}


class Question(Generic[Answer]):
    """A question to the client as a value, for `ctx.ask_all` and `InputRequired`.

    `Question.elicit`, `elicit_url`, `sample` and `list_roots` make one of what the context's functions take; nobody is
    asked by that. The answer in `ask_all` is what those functions return.
    """

    __slots__ = ("judged", "method", "params", "read")

    def __init__(
        self, method: str, params: Mapping[str, Any] | None, read: Callable[[bytes], Answer], judged: bool = False
    ) -> None:
        self.method = method
        self.params = params
        self.judged = judged
        """True when `read` judges what a form's answer holds, and the engine need not."""
        self.read = read
        """Reads the result as it is on the wire."""

    @overload
    @staticmethod
    def elicit(message: str, schema: Mapping[str, Any]) -> Question[Elicited[dict[str, Any]]]: ...

    @overload
    @staticmethod
    def elicit(message: str, schema: Form[T]) -> Question[Elicited[T]]: ...

    @overload
    @staticmethod
    def elicit(message: str, schema: type[T]) -> Question[Elicited[T]]: ...

    @overload
    @staticmethod
    def elicit(message: str, schema: Any = None) -> Question[Elicited[Any]]: ...

    @staticmethod
    def elicit(message: str, schema: Any = None) -> Question[Elicited[Any]]:
        """A form for the user, as `ctx.elicit` takes it."""
        from .forms import Form

        asked = Form.of(schema)
        return Question(
            "elicitation/create",
            {"mode": "form", "message": message, "requestedSchema": asked.schema},
            asked.answer,
            asked.judged,
        )

    @staticmethod
    def elicit_url(message: str, url: str, elicitation_id: str) -> Question[Elicited[None]]:
        """A page for the user to visit, as `ctx.elicit_url` takes it."""
        from .forms import Form

        params = {"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id}
        return Question("elicitation/create", params, Form.of(None).answer)

    @staticmethod
    @deprecated("MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider")
    def sample(
        messages: Said | Message | Sequence[Said | Message | CreateMessageResult],
        max_tokens: int,
        **options: Unpack[SamplingOptions],
    ) -> Question[CreateMessageResult]:
        """Messages for the client's model to go on after, as `ctx.sample` takes them."""
        from .messages import CreateMessageResult
        from .messages import messages as several

        known_options("Question.sample", options, SamplingOptions)
        given = {_SAMPLING[name]: value for name, value in options.items() if value is not None}
        params = {"messages": several(messages), "maxTokens": max_tokens, **given}
        return Question("sampling/createMessage", params, CreateMessageResult.from_wire)

    @staticmethod
    @deprecated("MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration")
    def list_roots() -> Question[ListRootsResult]:
        """Makes the question for the roots that the client lets the server work on, as `ctx.list_roots` gives them."""
        from .results import ListRootsResult

        return Question("roots/list", None, ListRootsResult.from_wire)

    def to_wire(self) -> dict[str, Any]:
        """The schema's InputRequest."""
        return {"method": self.method} if self.params is None else {"method": self.method, "params": self.params}

    def __repr__(self) -> str:
        return f"Question({self.method!r}, {self.params!r})"

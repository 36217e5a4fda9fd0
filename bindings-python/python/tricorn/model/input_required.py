"""Questions instead of an answer: what a handler raises when its client, or the user there, has to act first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from .. import _core
from ..errors import URL_ELICITATION_REQUIRED, PeerMisbehavedError, RpcError
from ..json.encoding import encode

if TYPE_CHECKING:
    from .questions import Question


class UrlElicitation(msgspec.Struct, rename={"elicitation_id": "elicitationId"}, tag_field="mode", tag="url"):
    """A page the user has to visit before a request can be served; the id names the visit."""

    message: str
    url: str
    elicitation_id: str


class UrlElicitationRequiredError(RpcError):
    """The user has to visit pages first: `raise UrlElicitationRequiredError(UrlElicitation("Sign in", url, "1"))`.

    For clients that declare `elicitation.url`. In revision 2025-11-25 the client gets this error (-32042), shows the
    pages, and sends its request again when they are done. In 2026-07-28 each page is a question of the call, and the
    handler runs again, more and more seldom, until it no longer raises; a user who declines ends it (-32603). Older
    clients, and those that cannot visit pages, get -32603 with the message, in 2026-07-28 -32021. `MisuseError` without
    a page, or when the URL of one is neither http nor https.
    """

    def __init__(self, *elicitations: UrlElicitation, message: str = "the user has to visit a page first") -> None:
        pages = encode(elicitations)
        _core.check_pages(pages)
        data = {"elicitations": msgspec.json.decode(pages)}
        super().__init__(URL_ELICITATION_REQUIRED, message, data)

    @property
    def elicitations(self) -> list[UrlElicitation]:
        """The pages."""
        try:
            return msgspec.convert(self.data["elicitations"], list[UrlElicitation])
        except (TypeError, KeyError, msgspec.ValidationError) as error:
            raise PeerMisbehavedError(f"the pages of error {self.code} cannot be read: {error}") from None


class InputRequired(BaseException):
    """Instead of an answer: what the client has to answer first. The handler then runs again.

    In revision 2026-07-28 `ctx.elicit` and the like raise it at a question that has no answer yet (specification,
    "Multi Round-Trip Requests"). Let it pass: it is no `Exception`, as `asyncio.CancelledError` is none. The client is
    asked whatever becomes of it, and `on_error` hears of no failure.

    A handler that keeps its rounds itself raises or returns one of its own, in any revision:

        @app.tool
        async def greet(ctx: Context) -> str | InputRequired:
            match ctx.input_responses.get("name"):
                case {"action": "accept", "content": {"value": str(name)}}:
                    return f"Hello, {name}!"
            return InputRequired({"name": Question.elicit("Your name?", str)})

    `questions` are asked under their keys, at once; `ctx.input_responses` are their answers. `state` is any JSON, which
    `ctx.request_state` gives back, and which the client can neither read nor change; None for none. Without questions
    the client comes back a little later. Neither of them, a capability that the client does not declare, or a request
    other than `tools/call`, `prompts/get` and `resources/read`, answers with an error. So does the 32nd run where the
    revision is an older one.
    """

    kind = "input_required"
    by_engine = False
    """True for what ends a run at a question of `ctx.elicit` and the like."""

    def __init__(self, questions: Mapping[str, Question[Any]] | None = None, *, state: Any = None) -> None:
        super().__init__(questions)
        self.questions: dict[str, Question[Any]] = dict(questions or {})
        self.state = state

    @classmethod
    def of(cls, error: BaseException) -> InputRequired | None:
        """Returns the questions of a handler that ended like this; also from a group, as an `asyncio.TaskGroup` raises
        it."""
        if isinstance(error, cls):
            return error
        inside: object = getattr(error, "exceptions", None)
        if not isinstance(inside, (list, tuple)):
            return None
        members = [one for one in cast("Sequence[object]", inside) if isinstance(one, BaseException)]
        found = [one for inner in members if (one := cls.of(inner)) is not None]
        return next((one for one in found if not one.by_engine), found[0] if found else None)

    def to_wire(self) -> dict[str, Any]:
        """As the engine takes it."""
        wire: dict[str, Any] = {"inputRequests": {key: one.to_wire() for key, one in self.questions.items()}}
        return wire if self.state is None else {**wire, "state": self.state}

    def __str__(self) -> str:
        if self.by_engine or not self.questions:
            return "the client is asked, and the handler runs again with its answer"
        return f"the client is asked: {', '.join(self.questions)}"

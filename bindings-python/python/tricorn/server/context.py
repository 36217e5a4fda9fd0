"""The running call as its handler sees it: the optional `Context` parameter of every handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

import msgspec

from ..bridge.host import AROUND, NO_STATE
from ..call.context import Level, RequestContext
from ..errors import Error, MisuseError, unicode
from ..json import checks
from ..json.decoding import decode
from ..json.deprecation import deprecated
from ..json.encoding import encode
from ..model.definitions import Kind
from ..model.input_required import InputRequired

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault
    from typing_extensions import Unpack

    from ..call.options import RequestOptions
    from ..call.request_options import Asked
    from ..model.forms import Form
    from ..model.messages import CreateMessageResult, Message, Said
    from ..model.principal import Principal
    from ..model.questions import Question
    from ..model.results import Elicited, ListRootsResult
    from .session import Session

    State = TypeVarWithDefault("State", default=Any)
else:
    State = TypeVar("State")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
Plain = TypeVar("Plain", bound="bool | int | float | str | list[Any] | dict[str, Any] | None")


class Context(RequestContext, Generic[State]):
    """The call that a server's handler works on; ask for it with a parameter annotated `Context`.

    What asks the client something is awaited on the server's event loop; a plain function, which runs in a worker
    thread, says `ctx.wait(ctx.elicit(...))`. A handler that is cancelled takes its questions back. `Context[AppState]`
    says what `ctx.state` is.
    """

    __slots__ = ()
    _serves = True

    @property
    def state(self) -> State:
        """The value that the server's `lifespan` yielded, or its `state`."""
        state = self._host.state
        if state is NO_STATE:
            raise MisuseError("the server has no state: give it one with Server(lifespan=...) or Server(state=...)")
        return cast(State, state)

    @property
    def host(self) -> MutableMapping[str, Any] | None:
        """The ASGI scope that the request came with, of a mounted server: `ctx.host["user"]`, `ctx.host["state"]`.

        It is the very mapping that the framework and its middleware have written into, and of this request alone. None
        elsewhere, and when the exchange is over.
        """
        _ = self.request
        return AROUND.get(self._origin)

    @property
    def principal(self) -> Principal | None:
        """The principal that sent the request, as the server's option `auth` says. None: nobody was asked, as on
        standard streams."""
        return self.request.principal

    @deprecated("MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry")
    def log(self, level: Level, data: Any, logger: str | None = None) -> bool:
        """Sends the client a log message; False when its level filters the message out.

        `data` is any value that JSON has; of anything else its text is sent.
        """
        checks.text("log: level", level)
        if logger is not None:
            checks.text("log: logger", logger)
            logger = unicode(logger)
        return self._host.bridge.log(self._key, level, logger, _loggable(data))

    def set_status(self, message: str) -> bool:
        """Says what the call is doing, for who looks at its task; False when the call is over."""
        checks.text("set_status: message", message)
        return self._host.bridge.set_status(self._key, unicode(message))

    def run_as_task(self) -> bool:
        """Goes on as a task (revision 2026-07-28, extension `io.modelcontextprotocol/tasks`); says whether it does.

        The client is answered with the task at once, may go away, and comes back for the result; what is asked from now
        on waits in the task until then. False: the client does not declare the extension, or the server has no tasks
        (option `tasks`), and nothing has changed. A tool that is always to do so says `task_support`.

        Errors: `RpcError`, too many tasks are being worked on; `MisuseError`, questions of the call wait for their
        answers; `CancelledError`, the call is over.
        """
        return self._host.bridge.run_as_task(self._key)

    def require(self, capability: str) -> None:
        """Refuses the call when the client did not declare a capability, like `"sampling"` or `"elicitation.url"`.

        The error (an `RpcError`) is the one the protocol prescribes; let it pass.
        """
        checks.text("require: capability", capability)
        self._host.bridge.require(self._key, capability)

    @property
    def session(self) -> Session:
        """The session of this client, to add tools, resources and prompts for it alone."""
        from .session import Session

        return Session(self._host, self._key)

    def set_enabled(self, kind: Kind, name: str, enabled: bool) -> bool:
        """Shows or hides something from this client alone, for as long as its session lasts.

        `name` is the name, URI or URI template; of a directory its URI, as a resource. False: nothing changed.
        Revisions without sessions raise `UnsupportedError`.
        """
        return self.session.set_enabled(kind, name, enabled)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> bool:
        """Sends the client a notification as part of this call; False when the call is over."""
        from ..call.request_options import notified

        return self._host.bridge.notify(self._key, method, notified(method, params))

    def close_stream(self) -> bool:
        """Ends the event stream that the answer goes on, to free its connection while a long call runs.

        The client asks for the rest after the server's `sse_retry`; what is sent meanwhile is kept for it. Where a
        client would not come back, or there is no such stream, nothing happens. False: the call is over.
        """
        return self._host.bridge.close_stream(self._key)

    # -- questions

    async def ask(
        self, method: str, params: Mapping[str, Any] | None = None, **options: Unpack[RequestOptions]
    ) -> dict[str, Any]:
        """Sends the client any request as part of this call; the result object as it is on the wire.

        The client has all the time it needs unless `timeout` is given. Errors: `RpcError` is the client's own,
        `UnsupportedError` names a capability that it does not declare; nothing was sent then. A handler that lets these
        pass fails with their message: a tool with a result that the model reads (`isError`).

        In revision 2026-07-28 only what is a question can be asked: `elicitation/create`, `sampling/createMessage`,
        `roots/list`. It ends the run as `elicit` does.
        """
        from ..model.questions import Question

        return await self._ask(Question(method, params, _decoded), options)

    async def _ask(self, question: Question[T], options: RequestOptions, together: Sequence[Asked] = ()) -> T:
        from ..call.request_options import progress_of, together_with, with_meta, written

        host, key, method = self._host, self._key, question.method
        settings = together_with(written(method, options), together, question.judged)
        text = with_meta(method, question.params, options)
        progress = progress_of(options, host)
        try:
            return question.read(await host.wait(lambda op: host.bridge.ask(key, op, method, text, settings), progress))
        except Error as error:
            error.asked = (host, key)
            raise
        except InputRequired:
            host.ends_at_question(key)
            raise

    @overload
    async def elicit(
        self, message: str, schema: Mapping[str, Any], **options: Unpack[RequestOptions]
    ) -> Elicited[dict[str, Any]]: ...

    @overload
    async def elicit(self, message: str, schema: Form[T], **options: Unpack[RequestOptions]) -> Elicited[T]: ...

    @overload
    async def elicit(self, message: str, schema: type[T], **options: Unpack[RequestOptions]) -> Elicited[T]: ...

    @overload
    async def elicit(self, message: str, schema: Any = None, **options: Unpack[RequestOptions]) -> Elicited[Any]: ...

    async def elicit(self, message: str, schema: Any = None, **options: Unpack[RequestOptions]) -> Elicited[Any]:
        """Asks the user to fill in a form. Code before it runs again in revision 2026-07-28: see `step`.

        `answer.content` is a value of the type that `schema` is: a type with flat fields (a dataclass, TypedDict,
        msgspec or pydantic model), a type of one value (`int`, `Literal["red", "blue"]`, `list[Literal[...]]`), a JSON
        Schema, or None for a mere yes or no; a `Form` is made of the same and checked before anybody is asked.

        In that revision a question without an answer ends the run of the handler, by an `InputRequired` that
        `except Exception` lets pass; the handler runs again with the answer, and has to come to the same questions
        (specification, "Multi Round-Trip Requests").
        """
        from ..model.questions import Question

        return await self._ask(Question.elicit(message, schema), options)

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str, **options: Unpack[RequestOptions]
    ) -> Elicited[None]:
        """Asks the user to visit a page. Code before it runs again in revision 2026-07-28: see `elicit`, `step`.

        It is for what must not pass through the client, such as a password. `accepted` means that the user agreed to go
        there. Say with `elicitation_complete` when the visit is over.
        """
        from ..model.questions import Question

        return await self._ask(Question.elicit_url(message, url, elicitation_id), options)

    def elicitation_complete(self, elicitation_id: str) -> bool:
        """Tells the client that what the user did at a page is done; False when the call is over.

        After it, the server's `elicitation_complete` tells it.
        """
        return self.notify("notifications/elicitation/complete", {"elicitationId": elicitation_id})

    @deprecated("MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider")
    async def sample(
        self,
        messages: Said | Message | Sequence[Said | Message | CreateMessageResult],
        max_tokens: int,
        *,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        model_preferences: Mapping[str, Any] | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **options: Unpack[RequestOptions],
    ) -> CreateMessageResult:
        """Asks the client's model. Code before it runs again in revision 2026-07-28: see `elicit`, `step`.

        The model goes on after a text, or after the messages of `user(...)` and `assistant(...)`; what an earlier call
        returned is a message, too. `result.text` is what it wrote. `tools` are the schema's Tool objects, for clients
        with `sampling.tools`.
        """
        from ..model.questions import Question

        question = Question.sample(
            messages,
            max_tokens,
            system_prompt=system_prompt,
            temperature=temperature,
            stop_sequences=stop_sequences,
            model_preferences=model_preferences,
            include_context=include_context,
            tools=tools,
            tool_choice=tool_choice,
            metadata=metadata,
        )
        return await self._ask(question, options)

    @deprecated("MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration")
    async def list_roots(self, **options: Unpack[RequestOptions]) -> ListRootsResult:
        """The roots that the client gives. Code before it runs again in revision 2026-07-28: see `elicit`, `step`.

        They are the folders and files that it lets this server work on.
        """
        from ..model.questions import Question

        return await self._ask(Question.list_roots(), options)

    @overload
    async def ask_all(  # type: ignore[overload-overlap]
        self, questions: tuple[Question[A]], **options: Unpack[RequestOptions]
    ) -> tuple[A]: ...

    @overload
    async def ask_all(  # type: ignore[overload-overlap]
        self, questions: tuple[Question[A], Question[B]], **options: Unpack[RequestOptions]
    ) -> tuple[A, B]: ...

    @overload
    async def ask_all(  # type: ignore[overload-overlap]
        self, questions: tuple[Question[A], Question[B], Question[C]], **options: Unpack[RequestOptions]
    ) -> tuple[A, B, C]: ...

    @overload
    async def ask_all(  # type: ignore[overload-overlap]
        self, questions: tuple[Question[A], Question[B], Question[C], Question[D]], **options: Unpack[RequestOptions]
    ) -> tuple[A, B, C, D]: ...

    @overload
    async def ask_all(self, questions: Iterable[Question[T]], **options: Unpack[RequestOptions]) -> list[T]: ...

    async def ask_all(self, questions: Iterable[Question[Any]], **options: Unpack[RequestOptions]) -> Any:
        """Asks several questions at once: in 2026-07-28 in one round; code before it runs again there: see `step`.

            name, roots = await ctx.ask_all((Question.elicit("Your name?", str), Question.list_roots()))

        The answers come in the order of the questions, each as its single call gives it: in a list, or in a tuple for
        a tuple of questions, which type checkers know one by one. `options` are each question's. Errors: those of the
        first question that has one; the others are taken back.
        """
        from ..call.steps import ask_all

        return await ask_all(self._ask, questions, options)

    # -- rounds

    @overload
    async def step(self, name: str, function: Callable[[], object], *, type: type[T]) -> T: ...

    @overload
    async def step(self, name: str, function: Callable[[], Awaitable[Plain]]) -> Plain: ...

    @overload
    async def step(self, name: str, function: Callable[[], Plain]) -> Plain: ...

    @overload
    async def step(self, name: str, function: Callable[[], object]) -> Any: ...

    async def step(self, name: str, function: Callable[[], object], *, type: Any = None) -> Any:  # noqa: A002
        """Calls a function, plain or async, once for this request, and gives its result in every run of the handler.

        It is for what must not happen again when the handler runs again after a question (revision 2026-07-28, "Multi
        Round-Trip Requests"):

            order = await ctx.step("order", lambda: shop.reserve(item))
            answer = await ctx.elicit(f"Buy {order['name']}?", bool)

        The result is encoded as a tool's is, and travels to the client and back in the sealed `requestState`, so it has
        to be small (`max_request_state_bytes`). It comes back as plain JSON, also in the first run, or as a value of
        `type` (a dataclass, TypedDict, msgspec or pydantic model). A function that raises has not done the step: it is
        called again in the next run. One that is at work when a question ends the run is waited for. `MisuseError`: two
        steps of one name in one run, or a result that is no JSON.
        """
        from ..call.steps import step

        checks.text("step: name", name)
        return await step(self, name, function, type)

    def _is_step(self, question: object) -> bool:
        return getattr(question, "cr_code", None) is Context.step.__code__

    @property
    def input_responses(self) -> dict[str, Any]:
        """Answers to the questions of an `InputRequired`, by its keys: results as the client sent them, unchecked.

        Empty in the first run. An answer may be missing, or be anything: ask again then.
        """
        return cast("dict[str, Any]", self._input()["inputResponses"])

    @property
    def request_state(self) -> Any:
        """The `state` of the `InputRequired` that the last run ended with; None in the first run."""
        return self._input().get("state")

    def _input(self) -> dict[str, Any]:
        text = self._host.bridge.input(self._key)
        if text is None:
            raise MisuseError("the call is over: read its answers while the handler still runs")
        return _decoded(text)


def _decoded(answer: bytes) -> dict[str, Any]:
    return cast("dict[str, Any]", decode(answer))


def _loggable(data: Any) -> bytes:
    try:
        return encode(data)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(unicode(str(data)))

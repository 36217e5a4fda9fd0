"""Subscriptions of a client to the changes at its server, in every revision."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

import msgspec

from ..bridge.host import Waiter, looked_at
from ..call.request_options import limit
from ..errors import ClosedError, MisuseError, TimeoutError  # noqa: A004 - it is the builtin one too
from ..json import checks
from ..json.decoding import decode
from ..json.encoding import encode
from ..model.definitions import Resource
from ..model.task import Task

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._core import Client
    from ..bridge.host import Host
    from ..bridge.local_server import LocalServer

W = TypeVar("W", bound=Waiter)


class Known(Protocol):
    """A task of which the id is known: a `Task`, a `TaskHandle`, an `AsyncTaskHandle`."""

    @property
    def id(self) -> str:
        """The id to ask for it by."""
        ...


Wanted = bool | list[str]
"""Notifications of an extension that are wanted: all of them, or those about these keys."""


class ToolsListChanged(msgspec.Struct, frozen=True):
    """The list of tools has changed."""

    method: ClassVar[str] = "notifications/tools/list_changed"
    """The notification that says it."""


class PromptsListChanged(msgspec.Struct, frozen=True):
    """The list of prompts has changed."""

    method: ClassVar[str] = "notifications/prompts/list_changed"
    """The notification that says it."""


class ResourcesListChanged(msgspec.Struct, frozen=True):
    """The lists of resources and resource templates have changed."""

    method: ClassVar[str] = "notifications/resources/list_changed"
    """The notification that says it."""


class ResourceUpdated(msgspec.Struct, frozen=True):
    """The resource with this URI has changed."""

    method: ClassVar[str] = "notifications/resources/updated"
    """The notification that says it."""
    uri: str


class TaskChanged(msgspec.Struct, frozen=True):
    """A task has changed, of which the last is there; its `raw` also has `result`, `error` or `inputRequests`."""

    method: ClassVar[str] = "notifications/tasks"
    """The notification that says it."""
    task: Task


class ExtensionNotification(msgspec.Struct, frozen=True):
    """A notification of an extension that the client declares.

    After the stream broke off and was opened again, the server's acknowledgement is one, too
    (`notifications/subscriptions/acknowledged`): others, and changes of tasks, may have been missed.
    """

    method: str
    """The notification's method."""
    params: dict[str, Any]


Change = (
    ToolsListChanged | PromptsListChanged | ResourcesListChanged | ResourceUpdated | TaskChanged | ExtensionNotification
)
"""A change at the server."""

_LISTS: dict[str, Change] = {
    change.method: change for change in (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged())
}


class Honoured(msgspec.Struct, frozen=True):
    """The changes that a server reports, of all that was asked for."""

    tools: bool = msgspec.field(default=False, name="toolsListChanged")
    """Changes of the list of tools."""
    prompts: bool = msgspec.field(default=False, name="promptsListChanged")
    """Changes of the list of prompts."""
    resources: bool = msgspec.field(default=False, name="resourcesListChanged")
    """Changes of the lists of resources and resource templates."""
    uris: tuple[str, ...] = msgspec.field(default=(), name="resourceSubscriptions")
    """Changes of the resources with these URIs, and of what is a part of them."""
    tasks: tuple[str, ...] = msgspec.field(default=(), name="taskIds")
    """Changes of the tasks with these ids."""
    extensions: dict[str, Wanted] = msgspec.field(default_factory=dict[str, Wanted])
    """Changes that extensions report: by the member of the filter True, or keys."""


def _is_wanted(given: object) -> bool:
    texts = cast("list[object]", given) if isinstance(given, list) else None
    return isinstance(given, bool) or (texts is not None and all(isinstance(key, str) for key in texts))


def wanted(
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Iterable[str | Resource],
    extensions: Mapping[str, Wanted] | None,
    tasks: Iterable[str | Known],
) -> str:
    """Returns the subscription filter as the engine takes it."""
    for name, value in (("tools", tools), ("prompts", prompts), ("resources", resources)):
        if not isinstance(cast(object, value), bool):
            raise MisuseError(f"listen: {name}: expected a boolean, got {checks.shown(value)}")
    if isinstance(uris, (str, bytes, Mapping, Resource)) or not isinstance(cast(object, uris), Iterable):
        raise MisuseError(f"listen: uris: expected a list of URIs, got {checks.shown(cast('object', uris))}")
    of = tuple(one.uri if isinstance(one, Resource) else one for one in uris)
    for one in of:
        if not isinstance(cast(object, one), str):
            raise MisuseError(f"listen: uris: expected a string, got {checks.shown(one)}")
    filter_: dict[str, Any] = msgspec.to_builtins(Honoured(tools, prompts, resources, of, _ids(tasks)))
    del filter_["extensions"]
    if extensions is not None and not isinstance(cast(object, extensions), Mapping):
        why = f'expected an object, such as {{"com.example/queries": true}}, got {checks.type_of(extensions)}'
        raise MisuseError(f"listen: extensions: {why}")
    for member, of_member in (extensions or {}).items():
        if member in _OWN:
            own = "tools, prompts, resources, uris or tasks"
            raise MisuseError(f'listen: extensions: "{member}" is the protocol\'s: say {own}')
        if _is_wanted(of_member):
            filter_[member] = of_member
        else:
            why = f"expected true or a list of keys, which are text, got {checks.shown(of_member)}"
            raise MisuseError(f'listen: extensions: "{member}": {why}')
    return encode(filter_).decode()


def _ids(tasks: Iterable[str | Known]) -> tuple[str, ...]:
    if isinstance(tasks, (str, bytes, Mapping)) or not isinstance(cast(object, tasks), Iterable):
        raise MisuseError(f"listen: tasks: expected a list of ids, got {checks.shown(cast('object', tasks))}")
    given = tuple(tasks)
    ids = tuple(one if isinstance(one, str) else getattr(one, "id", None) for one in given)
    for one, of in zip(ids, given, strict=True):
        if not isinstance(one, str):
            raise MisuseError(f"listen: tasks: expected a task's id, got {checks.shown(of)}")
    return cast("tuple[str, ...]", ids)


_OWN = frozenset(("toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions", "taskIds"))


def _honoured(answer: bytes) -> Honoured:
    told: dict[str, Any] = decode(answer)
    others = {member: told.pop(member) for member in list(told) if member not in _OWN}
    return msgspec.convert({**told, "extensions": others}, Honoured)


def late() -> TimeoutError:
    """Nothing has changed for so long."""
    return TimeoutError("nothing has changed in this time")


class ListeningClient(Protocol):
    """A client that listens to its server."""

    _core: Client
    _host: Host
    _peers: list[LocalServer]

    def _check(self) -> None:
        """Raises what keeps it from listening, such as that it is not connected."""


class Listener(Generic[W]):
    """Base of both kinds of listening. `W` waits for the next change, and goes on to when nobody waits for it."""

    def __init__(self, client: ListeningClient, filter: str) -> None:  # noqa: A002 - its name
        self._client = client
        self._filter = filter
        self._lock = threading.Lock()
        self._number: int | None = None
        self._honoured: Honoured | None = None
        self._waits: tuple[int, W] | None = None
        self._over = False

    @property
    def honoured(self) -> Honoured:
        """The changes that the server reports, which may be fewer than those asked for.

        It leaves out resources that it does not know.
        """
        if self._honoured is None:
            raise MisuseError("this does not listen yet: use `with client.listen(...) as changes`")
        return self._honoured

    def close(self) -> None:
        """No longer listens, which the server is told; whoever waits for a change hears of the end."""
        with self._lock:
            self._over = True
            number, waits, self._waits = self._number, self._waits, None
        if number is None:
            return
        self._client._core.end_listening(number)
        if waits is not None:
            op, waiter = waits
            # What waits has a hold on the stream, too.
            self._client._host.forget(op)
            if not waiter.done():
                with suppress(RuntimeError):  # of a loop that was closed: nobody waits there any more
                    waiter.set_result(b"null")

    def _begin(self) -> None:
        if self._number is not None or self._over:
            raise MisuseError("this has listened before, or was closed: call `listen` again")
        self._client._check()

    def _open(self, op: int) -> None:
        self._number = op
        self._client._core.listen(op, op, self._filter)

    def _opened(self, answer: bytes) -> None:
        self._honoured = _honoured(answer)
        if self._over:  # closed while it was opened
            self.close()

    def _waiter(self, make: Callable[[], W]) -> W | None:
        """Returns the waiter for the next change: the same until that came, so that giving up on it loses no change.

        None when there is nothing more to come.
        """
        with self._lock:
            if self._over:
                return None
            number = self._number
            if self._honoured is None or number is None:
                raise MisuseError("this does not listen yet: use `with client.listen(...) as changes`")
            if self._waits is None:
                try:
                    self._waits = self._ask(make(), number)
                except BaseException:
                    self._over = True
                    raise
            return self._waits[1]

    def _ask(self, waiter: W, number: int) -> tuple[int, W]:
        client = self._client
        client._check()
        op = client._host.begin(waiter)
        try:
            client._core.next_change(op, number)
        except BaseException:
            client._host.forget(op)
            raise
        return op, waiter

    def _take(self, waiter: W) -> bool:
        """Returns True when nobody else has taken the change that this waiter is for."""
        with self._lock:
            if self._waits is None or self._waits[1] is not waiter:
                return False
            self._client._host.forget(self._waits[0])
            self._waits = None
            return True

    def _change(self, answer: bytes) -> Change | None:
        told: Any = decode(answer)
        if told is None:
            self.close()
            return None
        if told["method"] == TaskChanged.method:
            return TaskChanged(Task(told["params"]))
        if "params" in told:
            return ExtensionNotification(told["method"], told["params"])
        return _LISTS.get(told["method"]) or ResourceUpdated(told["uri"])

    def __repr__(self) -> str:
        state = "over" if self._over else "new" if self._honoured is None else repr(self._honoured)
        return f"<{type(self).__name__} {state}>"


class AsyncListening(Listener["asyncio.Future[bytes]"]):
    """The changes that a client listens to, in the order in which they came.

        async with client.listen(tools=True) as changes:
            async for change in changes:
                ...

    What is not taken yet is there once, however often it changed. Leaving the block ends it at the server, and so does
    `close`, on the event loop. The loop ends when the server has ended it in order. When the connection broke off the
    client listens again, and since something may have been missed everything that is listened to is said to have
    changed, once. `ClosedError` when the connection ends for good, and why it could not be listened again; after that,
    nothing comes.
    """

    async def next(self, timeout: float | None = None) -> Change | None:
        """The next change; None after the last one. `TimeoutError` when there is none for `timeout` seconds.

        Nothing is lost with that, nor when the task that waits is cancelled. None or 0: no limit.
        """
        loop, host = asyncio.get_running_loop(), self._client._host
        if host.loop is not None and host.loop is not loop:
            raise MisuseError("this object belongs to another event loop")
        seconds = limit(timeout)
        until = None if seconds is None else loop.time() + seconds
        while (waiter := self._waiter(self._future)) is not None:
            if waiter.get_loop() is not loop:  # that one ended while something was waited for
                self.close()
                raise ClosedError("the event loop ended before a change came")
            if not waiter.done():
                await asyncio.wait((waiter,), timeout=None if until is None else max(0.0, until - loop.time()))
            if not waiter.done():
                raise late()
            if self._take(waiter):
                try:
                    answer = waiter.result()
                except BaseException:
                    self.close()
                    raise
                return self._change(answer)
        return None

    @staticmethod
    def _future() -> asyncio.Future[bytes]:
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        # It may fail when nobody waits.
        future.add_done_callback(looked_at)
        return future

    async def __aenter__(self) -> Self:
        self._begin()
        try:
            self._opened(await self._client._host.wait(self._open))
        except BaseException:
            self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        change = await self.next()
        if change is None:
            raise StopAsyncIteration
        return change

"""Tasks: calls that go on after their answer, of 2025-11-25 (experimental) and, in the same words, of 2026-07-28."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from typing import TYPE_CHECKING, Any, cast

from ..call.options import RequestOptions
from ..errors import PeerMisbehavedError
from ..json import checks
from ..json.decoding import decode
from ..model.results import CallToolResult
from ..model.task import Task
from .requests import AsyncSender, Request, Sender, called_with

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _read(answer: bytes) -> Task:
    return Task(cast("dict[str, Any]", decode(answer)))


class Created:
    """The task that a call became. `raw` is everything that the server answered."""

    def __init__(self, wire: bytes) -> None:
        self.raw: dict[str, Any] = decode(wire)
        task: Any = self.raw.get("task")
        if not isinstance(task, dict):
            raise PeerMisbehavedError("tools/call: the server did not make a task of it")
        self.id = Task(cast("dict[str, Any]", task)).id


def create(name: str, arguments: Mapping[str, Any] | None, ttl: float | None) -> Request[Created]:
    """Calls a tool as a task, whose state is the answer."""
    checks.finite("ttl", ttl)
    task = {} if ttl is None else {"ttl": round(ttl * 1000)}
    params = {**called_with("call_tool_task", name, arguments), "task": task}
    return Request("tools/call", params, Created, becomes_task=True)


def _get(task: str) -> Request[Task]:
    return Request("tasks/get", {"taskId": task}, _read)


def _over(task: str) -> Request[Task]:
    return Request("tasks/get", {"taskId": task}, _read, until_over=True)


def _next(task: str, number: int) -> Request[Task]:
    return Request("tasks/get", {"taskId": task}, _read, follows=number)


def _cancel(task: str) -> Request[Task]:
    return Request("tasks/cancel", {"taskId": task}, _read)


def _result(task: str) -> Request[CallToolResult]:
    return Request("tasks/result", {"taskId": task}, CallToolResult.from_wire, until_over=True)


class _Handle:
    __slots__ = ("created", "id")

    def __init__(self, id: str, created: dict[str, Any] | None) -> None:  # noqa: A002 - its name
        self.id = id
        """`client.task(id)` comes back to it with this, for as long as the session lives. In 2026-07-28 it outlives the
        connection over HTTP, and any other client of the same user can come back to it."""
        self.created = created
        """The server's answer to the call, as it came: a CreateTaskResult, whose `_meta` may have something for
        the model meanwhile (`io.modelcontextprotocol/model-immediate-response`). None of what `client.task` gives."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


class AsyncTaskHandle(_Handle):
    """A tool's call that goes on at the server. Letting go of this does not end it; `cancel` does."""

    __slots__ = ("_client",)

    def __init__(self, client: AsyncSender, id: str, created: dict[str, Any] | None = None) -> None:  # noqa: A002 - its name
        super().__init__(id, created)
        self._client = client

    async def status(self, **options: Unpack[RequestOptions]) -> Task:
        """Returns its state. `RpcError` (-32602) when it is gone."""
        return await self._client._do(_get(self.id), options)

    async def changes(self, **options: Unpack[RequestOptions]) -> AsyncGenerator[Task]:
        """Yields its state now and whenever that changed, until it is over: `async for task in handle.changes()`.

        It looks as often as the server says, and at once when the server tells of a change; its questions are answered
        meanwhile. Options are for each look.
        """
        number = self._client._number()
        try:
            over = False
            while not over:
                task = await self._client._do(_next(self.id, number), options)
                over = task.is_over
                yield task
        finally:
            self._client._leave(number)

    async def wait(self, **options: Unpack[RequestOptions]) -> Task:
        """Waits until it is over, however it ends, and answers its questions meanwhile.

        It looks as often as the server says, and at once when the server tells of a change. Options are for each look.
        """
        return await self._client._do(_over(self.id), options)

    async def result(self, **options: Unpack[RequestOptions]) -> CallToolResult:
        """Waits for the tool's result, without a time limit unless `timeout` is given; `RpcError` when it has none.

        A connection that breaks off meanwhile is nothing to the task. Cancelling the wait does not cancel the task.
        """
        return await self._client._do(_result(self.id), options)

    async def cancel(self, **options: Unpack[RequestOptions]) -> Task:
        """Ends it. `RpcError` (-32602) when it is over already, but in 2026-07-28, where it stays as it is."""
        return await self._client._do(_cancel(self.id), options)


class TaskHandle(_Handle):
    """A tool's call that goes on at the server. Letting go of this does not end it; `cancel` does."""

    __slots__ = ("_client",)

    def __init__(self, client: Sender, id: str, created: dict[str, Any] | None = None) -> None:  # noqa: A002 - its name
        super().__init__(id, created)
        self._client = client

    def status(self, **options: Unpack[RequestOptions]) -> Task:
        """Returns its state. `RpcError` (-32602) when it is gone."""
        return self._client._do(_get(self.id), options)

    def changes(self, **options: Unpack[RequestOptions]) -> Generator[Task]:
        """Yields its state now and whenever that changed, until it is over: `for task in handle.changes()`.

        It looks as often as the server says, and at once when the server tells of a change; its questions are answered
        meanwhile. Options are for each look.
        """
        number = self._client._number()
        try:
            over = False
            while not over:
                task = self._client._do(_next(self.id, number), options)
                over = task.is_over
                yield task
        finally:
            self._client._leave(number)

    def wait(self, **options: Unpack[RequestOptions]) -> Task:
        """Waits until it is over, however it ends, and answers its questions meanwhile.

        It looks as often as the server says, and at once when the server tells of a change. Options are for each look.
        """
        return self._client._do(_over(self.id), options)

    def result(self, **options: Unpack[RequestOptions]) -> CallToolResult:
        """Waits for the tool's result, without a time limit unless `timeout` is given; `RpcError` when it has none."""
        return self._client._do(_result(self.id), options)

    def cancel(self, **options: Unpack[RequestOptions]) -> Task:
        """Ends it. `RpcError` (-32602) when it is over already, but in 2026-07-28, where it stays as it is."""
        return self._client._do(_cancel(self.id), options)

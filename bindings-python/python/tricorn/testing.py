"""For tests: clients without processes or sockets, HTTP with a port or without, cassettes of servers, and stores."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from .client.asgi_transport import ASGITransport
from .client.client import AsyncClient
from .client.options import ClientOptions
from .client.settings import Target, introduce
from .client.sync import Client
from .errors import MisuseError
from .model.results import CallToolResult
from .server.options import HttpOptions
from .server.server import Server

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .server.document_store import DocumentStore

__all__ = ["ASGITransport", "Cassette", "call", "cassette", "check_document_store", "connect", "serving"]


def connect(server: Server, /, **options: Unpack[ClientOptions]) -> AsyncClient:
    """A client in memory: `async with testing.connect(app) as client: ...`; `revision="..."` picks a revision."""
    introduce(options, sys._getframe(1).f_globals)
    return AsyncClient(server, **options)


def call(
    server: Server, name: str, arguments: Mapping[str, Any] | None = None, /, **options: Unpack[ClientOptions]
) -> CallToolResult:
    """One tool call from a plain test function: `assert testing.call(app, "add", {"a": 1, "b": 2}).text == "3"`."""
    with Client(server, **options) as client:
        return client.call_tool(name, arguments)


class Cassette:
    """A client that records its server the first time and plays the recording afterwards; made by `cassette`."""

    __slots__ = ("_client", "_given", "_part", "_path", "_strict", "_target")

    def __init__(
        self, path: str, target: Target, mode: Literal["auto", "record", "replay"], strict: bool, given: ClientOptions
    ) -> None:
        if mode not in ("auto", "record", "replay"):
            raise MisuseError(f'cassette: mode: expected "auto", "record" or "replay", got {mode!r}')
        records = mode == "record" or (mode == "auto" and not os.path.exists(path))
        self._path, self._target, self._strict, self._given = path, target, strict, given
        self._part = f"{path}.part" if records else None
        self._client: AsyncClient | Client | None = None

    def _arguments(self) -> tuple[Target, ClientOptions]:
        if self._part is None:
            return f"replay:{self._path}" + ("?strict" if self._strict else ""), self._given
        if folder := os.path.dirname(self._path):
            os.makedirs(folder, exist_ok=True)
        return self._target, {**self._given, "record": self._part}

    def _finish(self, failed: bool) -> None:
        if self._part is None:
            return
        if failed:
            with suppress(FileNotFoundError):
                os.unlink(self._part)
        else:
            os.replace(self._part, self._path)

    async def __aenter__(self) -> AsyncClient:
        target, options = self._arguments()
        client = AsyncClient(target, **options)
        try:
            await client.__aenter__()
        except BaseException:
            self._finish(True)
            raise
        self._client = client
        return client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        failed = True
        try:
            if isinstance(client, AsyncClient):
                await client.__aexit__(kind, error, trace)
            failed = kind is not None
        finally:
            self._finish(failed)

    def __enter__(self) -> Client:
        target, options = self._arguments()
        client = Client(target, **options)
        try:
            client.__enter__()
        except BaseException:
            self._finish(True)
            raise
        self._client = client
        return client

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        failed = True
        try:
            if isinstance(client, Client):
                client.__exit__(kind, error, trace)
            failed = kind is not None
        finally:
            self._finish(failed)


def cassette(
    file: str | os.PathLike[str],
    target: Target,
    /,
    *,
    mode: Literal["auto", "record", "replay"] = "auto",
    strict: bool = False,
    **options: Unpack[ClientOptions],
) -> Cassette:
    """A client for a test, `with` or `async with`: `async with cassette("a.jsonl", "uvx weather") as client: ...`.

    If `file` is missing, `target` is connected to and recorded there, without secrets; a test that fails leaves no
    file. A file that is there is played, and `target` is not touched. `mode="record"` records anew, `"replay"` never
    records. `strict` plays each answer once, and only for the request that was recorded; otherwise the best match
    answers.

    Errors: `MisuseError` for a file that is no cassette, or that `mode="replay"` does not find.
    """
    introduce(options, sys._getframe(1).f_globals)
    return Cassette(os.fsdecode(file), target, mode, strict, options)


@asynccontextmanager
async def serving(server: Server, **options: Unpack[HttpOptions]) -> AsyncGenerator[str]:
    """Serves HTTP on a free loopback port and yields the URL."""
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(server.serve_http(port=0, on_listening=url.set_result, **options))
    try:
        task.add_done_callback(lambda _: url.done() or url.cancel())
        try:
            address = await url
        except asyncio.CancelledError:
            if task.done():
                task.result()  # it could not listen, and knows why
            raise
        yield address
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def check_document_store(store: DocumentStore, /) -> None:
    """Tries a server's store of your own: each rule, also with many writers at once, then what a server does with it.

        async def test_the_store() -> None:
            await testing.check_document_store(SqliteStore("documents.db"))

    It takes some seconds. The keys begin with `tricorn-check:` and a random part; what is left of them ends after two
    minutes. `MisuseError` names each rule that the store breaks, a line for each; its cause is what was raised first.
    """
    failed: list[Exception] = []
    server = Server("check", "0", store=store, on_error=lambda error, _: failed.append(error))
    user = server._engine.attach()
    try:
        await server._host.wait(server._core.check_store)
    except MisuseError as error:
        raise error from (failed[0] if failed else None)
    finally:
        try:
            await server._release(user)
        finally:
            server.close()

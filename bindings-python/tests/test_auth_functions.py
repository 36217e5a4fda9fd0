"""Functions of a login: they are kept as long as their client needs them, and no longer."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import gc
import weakref
from typing import Any

import pytest

from tricorn import (
    AuthError,
    Client,
    ClientAuth,
    Context,
    Principal,
    Server,
    ServerAuth,
    TokenKey,
    connect,
    connect_many,
)
from tricorn.bridge.callouts import kind_of

from .authorization_server import AuthorizationServer, Visitor, serving


@pytest.fixture
def app(authority: AuthorizationServer) -> Server:
    """A server that knows one token by heart, besides those of the authorization server."""

    def verify(token: str) -> Principal | None:
        return Principal("ada") if token == "token-ada" else authority.tokens.get(token)

    app = Server("notes", auth=ServerAuth(verifier=verify, authorization_servers=[authority.url]))

    @app.tool
    def who(ctx: Context) -> str:
        return str(ctx.principal and ctx.principal.subject)

    return app


class LibraryError(Exception):
    """An error of a library that says no more than this."""


class GroupError(Exception):
    """As an `ExceptionGroup`, which Python 3.10 does not have."""

    def __init__(self, *exceptions: Exception) -> None:
        super().__init__()
        self.exceptions = exceptions


def hidden(reason: Exception) -> LibraryError:
    """As httpcore raises what the system said: hidden from tracebacks."""
    try:
        try:
            raise reason
        except type(reason):
            raise LibraryError from None
    except LibraryError as error:
        return error


def because_of(cause: Exception) -> LibraryError:
    """As httpx raises what httpcore did."""
    error = LibraryError()
    error.__cause__ = cause
    error.__suppress_context__ = True
    return error


def in_circles() -> LibraryError:
    error = LibraryError()
    error.__cause__ = because_of(error)
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (because_of(hidden(ConnectionRefusedError())), "transport"),
        (because_of(hidden(builtins.TimeoutError())), "timeout"),
        (because_of(hidden(KeyError())), "auth"),
        (hidden(FileNotFoundError()), "auth"),  # `from None` of the function itself: it knows better
        (GroupError(KeyError(), GroupError(because_of(ConnectionResetError()))), "transport"),
        (GroupError(KeyError(), PermissionError()), "auth"),
        (because_of(GroupError(builtins.TimeoutError())), "timeout"),
        (in_circles(), "auth"),
    ],
)
def test_what_an_exception_means(error: Exception, kind: str) -> None:
    assert kind_of(error) == kind


class Known:
    """A function, and a store, that can be referred to weakly."""

    def __init__(self, said: str) -> None:
        self.said = said

    def __call__(self) -> str:
        return self.said

    def load(self, key: TokenKey) -> str | None:
        return None

    def find(self, server: str) -> list[tuple[str, str]]:
        return []

    def save(self, key: TokenKey, login: str) -> None:
        pass

    def remove(self, key: TokenKey) -> None:
        pass


def with_known(name: str, visitor: Visitor) -> tuple[ClientAuth, weakref.ref[Known]]:
    """A login with a function as this option, or a store."""
    known = Known("proof" if name == "assertion" else "token-ada" if name == "token" else "code=1&state=1")
    others: dict[str, dict[str, Any]] = {
        "token": {},
        "assertion": {"grant": "jwt_bearer", "client_id": "robot"},
        "browser": {"login_timeout": 0.1},
        "callback": {"redirect_uri": "https://app.example/back", "browser": lambda _: None},
        "store": {"browser": visitor.browse},
    }
    return ClientAuth(**{"store": "memory", **others[name], name: known}), weakref.ref(known)


async def gone(known: weakref.ref[Any]) -> bool:
    for _ in range(10):
        gc.collect()
        if known() is None:
            return True
        await asyncio.sleep(0)
    return False


@pytest.mark.parametrize("name", ["token", "assertion", "browser", "callback", "store"])
@pytest.mark.parametrize("several", [False, True])
async def test_functions_go_with_their_client(app: Server, visitor: Visitor, name: str, several: bool) -> None:
    async with serving(app) as url:
        auth, known = with_known(name, visitor)
        client: Any = connect_many({"one": url}, auth=auth) if several else connect(url, auth=auth)
        del auth
        assert known() is not None
        with contextlib.suppress(AuthError):
            async with client:
                assert known() is not None
        # Nobody needs them any more, although the client is still there.
        assert await gone(known)
        del client


async def test_functions_of_a_synchronous_client(app: Server, visitor: Visitor) -> None:
    def use(url: str) -> tuple[Client, weakref.ref[Known]]:
        auth, known = with_known("token", visitor)
        with Client(url, auth=auth) as client:
            assert client.call_tool("who").text == "ada"
        return client, known

    async with serving(app) as url:
        client, known = await asyncio.to_thread(use, url)
        assert await gone(known)
        assert "closed" in repr(client)


async def test_functions_of_a_client_that_was_never_connected(visitor: Visitor) -> None:
    auth, known = with_known("token", visitor)
    client = connect("https://mcp.example.com/mcp", auth=auth)
    del auth
    assert known() is not None
    del client
    assert await gone(known)

"""Clients that log in: at a server of ours, whose authorization server is a small one of the tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tricorn import (
    AsyncClient,
    AuthError,
    Client,
    ClientAuth,
    Context,
    Error,
    FileStore,
    Identity,
    MisuseError,
    Principal,
    RequestContext,
    Server,
    ServerAuth,
    TimeoutError,  # noqa: A004 - this package's
    TransportError,
    Wanted,
    connect,
    connect_many,
)

from .authorization_server import AuthorizationServer, Visitor, serving

Auth = Callable[..., ClientAuth]


@pytest.fixture
def app(authority: AuthorizationServer) -> Server:
    app = Server("notes", auth=ServerAuth(issuer=authority.url, required_scopes=["read"]))

    @app.tool
    def who(ctx: Context) -> str:
        assert ctx.principal is not None
        return f"{ctx.principal.subject} {' '.join(ctx.principal.scopes)}"

    @app.tool(scopes=["write"])
    def add(ctx: Context) -> str:
        return who(ctx)

    return app


@pytest.fixture
def login(visitor: Visitor) -> Auth:
    """A user's login that leaves nothing behind."""
    return lambda **options: ClientAuth(**{"browser": visitor.browse, "store": "memory", **options})


async def text(client: AsyncClient, name: str = "who") -> str:
    return (await asyncio.wait_for(client.call_tool(name), 30)).text


def with_context(ctx: RequestContext) -> str:
    """There is no request whose context it could get."""
    return str(ctx)


# -- what is said


SECRETS = ["s3cret", "s3cret-key", "s3cret-token", "s3cret-assertion", "s3cret-idp", "s3cret-id-token"]


def test_secrets_are_in_no_repr() -> None:
    identity = Identity("https://s3cret:s3cret@idp.example/t?key=s3cret#s3cret", "app", "s3cret-id-token", "s3cret-idp")
    auth = ClientAuth(
        client_id="c",
        client_secret="s3cret",
        private_key="s3cret-key",
        token="s3cret-token",
        assertion="s3cret-assertion",
        identity=identity,
        scopes=["read"],
    )
    expected = "ClientAuth(client_id='c', scopes=['read'], identity=Identity(token_endpoint='https://idp.example/t',"
    assert repr(auth) == f"{expected} client_id='app'))"
    assert not any(secret in f"{auth!r} {auth} {list(auth.__rich_repr__())}" for secret in SECRETS)


@pytest.mark.parametrize(
    ("auth", "names"),
    [
        ("token", "auth: expected a ClientAuth or True, got a str"),
        (ClientAuth(scopes="read write"), "auth: scopes: expected a list of strings"),
        (ClientAuth(issuer="http://example.com"), '"issuer": expected an https URL'),
        (ClientAuth(client_secret="s3cret"), '"client_id"'),
        (ClientAuth(redirect_uri="http://127.0.0.1:1/"), '"redirect_uri" and "callback" go together'),
        (ClientAuth(callback=lambda: ""), '"redirect_uri" and "callback" go together'),
        (ClientAuth(browser="firefox"), "browser: expected a function"),  # type: ignore[arg-type]
        (ClientAuth(token=lambda one, two: ""), "token: .* is given 1 values at most"),
        (ClientAuth(login_timeout=float("inf")), r"auth.login_timeout: expected a finite number"),
        (ClientAuth(login_timeout="5"), "auth: login_timeout: expected a number of seconds, got a string"),  # type: ignore[arg-type]
        (ClientAuth(login_timeout=-1), "login_timeout.*: expected seconds of at least 0"),
        (ClientAuth(scopes=["read write"]), r'auth: scopes: .*"read write": split it'),
        (ClientAuth(grant="password"), r'^auth: grant: expected one of .*, got "password"$'),  # type: ignore[arg-type]
        (ClientAuth(client_id=7), "auth: client_id: expected a string, got a number"),  # type: ignore[arg-type]
        (ClientAuth(client_id="c", private_key=b"s3cret"), r"auth: private_key: .* got bytes; give its \.decode"),  # type: ignore[arg-type]
        (ClientAuth(token=b"s3cret"), "auth: token: expected a string or a function, got bytes"),  # type: ignore[arg-type]
        (ClientAuth(identity={"token": "s3cret"}), "auth: identity: expected an Identity, got an object"),  # type: ignore[arg-type]
        (ClientAuth(identity=Identity("https://a.example", "c", b"s3cret")), "auth: identity.token: expected a string"),  # type: ignore[arg-type]
        (ClientAuth(redirect_port=70000), "auth: redirect_port: expected a port, 0 to 65535"),
        (ClientAuth(no_browser="yes"), "auth: no_browser: expected a boolean"),  # type: ignore[arg-type]
        (ClientAuth(token=with_context), "token: .* wants a context"),
        (ClientAuth(grant="password"), "password"),  # type: ignore[arg-type]
        (ClientAuth(store="nowhere"), '"store": expected "memory", "file", "keychain" or a store\'s URL'),  # type: ignore[arg-type]
        (ClientAuth(store={}), "store.*expected .*, got an object without the method .load"),  # type: ignore[arg-type]
        (ClientAuth.client_credentials("c", ""), None),
    ],
)
def test_what_is_wrong_is_named(auth: Any, names: str | None) -> None:
    if names is None:
        connect("http://127.0.0.1:1/mcp", auth=auth)
        return
    with pytest.raises(MisuseError, match=names) as raised:
        connect("http://127.0.0.1:1/mcp", auth=auth)
    assert "s3cret" not in str(raised.value)


def test_none_is_no_authorization() -> None:
    for auth in (False, None):
        assert connect("http://127.0.0.1:1/mcp", auth=auth).auth_trace() == []  # type: ignore[arg-type]
    assert connect("http://127.0.0.1:1/mcp", auth=True).auth_trace() == []


# -- a user's login


async def test_a_user_logs_in(app: Server, authority: AuthorizationServer, visitor: Visitor, login: Auth) -> None:
    async with serving(app) as url, connect(url, auth=login(), name="reader") as client:
        assert await text(client) == "ada read"
        assert await text(client) == "ada read"
        steps = client.auth_trace()
    assert [form["grant_type"] for form in authority.forms] == ["authorization_code"]
    assert (len(visitor.visited), authority.authorized[0]["resource"]) == (1, url)
    assert authority.registered[0]["client_name"] == "reader"
    named = [step.step for step in steps]
    assert (named[:2], named[-1]) == (["challenge", "resource metadata"], "token")
    assert (steps[0].status, steps[1].status) == (401, 200)
    assert str(steps[0].url).startswith(url.removesuffix("/mcp"))
    assert steps[-1].decision == "a token"
    code = authority.forms[0]["code"]
    assert not any(secret in json.dumps([step.decision for step in steps]) for secret in (code, "refresh-1"))


async def test_the_browser_comes_back_elsewhere(app: Server, authority: AuthorizationServer) -> None:
    came: asyncio.Queue[str] = asyncio.Queue()

    async def browser(url: str) -> str:
        query = dict(part.split("=", 1) for part in url.partition("?")[2].split("&"))
        await came.put(f"https://app.example/back?code=nonsense&state={query['state']}&iss={authority.url}#part")
        return "ignored"

    async def callback(redirect_uri: str) -> str:
        assert redirect_uri == "https://app.example/back"
        return await came.get()

    async with serving(app) as url:
        for function in (callback, came.get):
            auth = ClientAuth(
                browser=browser, redirect_uri="https://app.example/back", callback=function, store="memory"
            )
            # The code is nobody's: that it was sent shows that the browser's answer has come.
            with pytest.raises(AuthError, match="invalid_grant"):
                await connect(url, auth=auth)
    assert [form["code"] for form in authority.forms] == ["nonsense", "nonsense"]
    assert authority.forms[0]["redirect_uri"] == "https://app.example/back"


async def test_a_browser_that_fails(app: Server, authority: AuthorizationServer, login: Auth) -> None:
    heard: list[tuple[str, Exception]] = []

    def browser(url: str) -> None:
        raise ValueError("no display")

    async with serving(app) as url:
        client = connect(url, auth=login(browser=browser), on_error=lambda error, name: heard.append((name, error)))
        with pytest.raises(AuthError, match='"browser": ValueError'):
            await client
        assert client.auth_trace()[-1].step == "login in the browser"
    assert [(name, str(error)) for name, error in heard] == [("browser", "no display")]
    assert authority.forms == []


async def test_nobody_logs_in(app: Server, login: Auth) -> None:
    cancelled = asyncio.Event()

    async def callback() -> str:
        try:
            return await asyncio.Event().wait() or ""  # type: ignore[func-returns-value]
        finally:
            cancelled.set()

    async with serving(app) as url:
        auth = login(
            browser=lambda url: None, login_timeout=0.1, redirect_uri="http://127.0.0.1:1/back", callback=callback
        )
        with pytest.raises(AuthError, match=r"nobody has logged in within 0\.1 s"):
            await connect(url, auth=auth)
        await asyncio.wait_for(cancelled.wait(), 30)


async def test_scopes_grow_where_a_call_needs_more(app: Server, authority: AuthorizationServer, login: Auth) -> None:
    async with serving(app) as url, connect(url, auth=login()) as client:
        assert [tool.name for tool in await client.list_tools()] == ["who"]
        assert await text(client, "add") == "ada read write"
        assert {tool.name for tool in await client.list_tools()} == {"who", "add"}
    assert authority.scopes_asked() == [{"read"}, {"read", "write"}]


async def test_a_token_is_renewed_before_it_ends(app: Server, authority: AuthorizationServer, login: Auth) -> None:
    authority.short = 1
    async with serving(app) as url, connect(url, auth=login()) as client:
        assert await asyncio.gather(*(text(client) for _ in range(20))) == ["ada read"] * 20
        assert authority.grants() == ["authorization_code", "refresh_token"]


async def test_a_token_that_is_refused_is_renewed_once(
    authority: AuthorizationServer, visitor: Visitor, login: Auth
) -> None:
    auth = ServerAuth(verifier=authority.tokens.get, authorization_servers=[authority.url], required_scopes=["read"])
    app = Server("notes", auth=auth)

    @app.tool
    async def who(ctx: Context) -> str:
        return str(ctx.principal and ctx.principal.subject)

    async with serving(app) as url, connect(url, auth=login()) as client:
        assert await text(client) == "ada"
        authority.tokens.clear()
        results = await asyncio.gather(*(client.call_tool("who", idempotent=True) for _ in range(20)))
        assert [result.text for result in results] == ["ada"] * 20
    assert authority.grants() == ["authorization_code", "refresh_token"]
    assert len(visitor.visited) == 1


# -- other grants


async def test_a_program_as_itself(app: Server, authority: AuthorizationServer) -> None:
    authority.subject = "robot"
    async with serving(app) as url:
        auth = ClientAuth.client_credentials("robot", "hush")
        auth.store = "memory"
        async with connect(url, auth=auth) as client:
            assert await text(client) == "robot read"
        wrong = ClientAuth(grant="client_credentials", client_id="robot", client_secret="no", store="memory")
        with pytest.raises(AuthError, match="invalid_client") as raised:
            await connect(url, auth=wrong)
        assert "hush" not in str(raised.value)
    assert authority.registered == []


async def test_a_workload(app: Server, authority: AuthorizationServer) -> None:
    wanted: list[Wanted] = []

    def assertion(own: Wanted) -> str:
        wanted.append(own)
        return "proof"

    async with serving(app) as url:
        auth = ClientAuth.workload("robot", assertion)
        auth.store = "memory"
        async with connect(url, auth=auth) as client:
            assert await text(client) == "ada read"
    assert wanted == [Wanted(authority.url, url)]
    assert authority.forms[0]["assertion"] == "proof"


async def test_an_identity_provider_answers_for_the_user(app: Server, authority: AuthorizationServer) -> None:
    async def assertion() -> str:
        return "ada"

    async with serving(app) as url:
        for identity, given in (
            (Identity(f"{authority.url}/token", "sso", "ada"), None),
            (Identity(f"{authority.url}/token", "sso"), assertion),
        ):
            auth = ClientAuth.identity_assertion(identity, "robot", "hush")
            auth.store, auth.assertion = "memory", given
            async with connect(url, auth=auth) as client:
                assert await text(client) == "ada read"
    assert [form.get("subject_token") for form in authority.forms[::2]] == ["ada", "ada"]
    assert authority.forms[1]["assertion"] == "proof of ada"


# -- tokens of the program's own


@pytest.fixture
def simple() -> Server:
    """A server that knows its tokens by heart."""

    def verify(token: str) -> Principal | None:
        return Principal(token.removeprefix("token-")) if token.startswith("token-") else None

    app = Server("simple", auth=ServerAuth(verifier=verify, authorization_servers=["https://login.example.com"]))

    @app.tool
    def who(ctx: Context) -> str:
        return str(ctx.principal and ctx.principal.subject)

    return app


async def test_tokens_that_are_there_already(simple: Server) -> None:
    async with serving(simple) as url:
        async with connect(url, auth=ClientAuth.bearer("token-ada")) as client:
            assert await text(client) == "ada"
        with pytest.raises(AuthError):
            await connect(url, auth=ClientAuth.bearer("wrong"))


async def test_a_function_gives_tokens(simple: Server) -> None:
    tokens = ["token-old", "wrong", "token-bob"]
    asked: list[Wanted] = []

    def plain(wanted: Wanted) -> str:
        asked.append(wanted)
        return tokens.pop()

    async def asynchronous() -> str:
        return "token-eve"

    async with serving(simple) as url:
        async with connect(url, auth=ClientAuth.bearer(plain)) as client:
            assert await text(client) == "bob"
        # One that is refused is asked for again.
        async with connect(url, auth=ClientAuth.bearer(plain)) as client:
            assert await text(client) == "old"
        assert asked == [Wanted("", url)] * 3
        async with connect(url, auth=ClientAuth(token=asynchronous)) as client:
            assert await text(client) == "eve"


class LibraryError(Exception):
    """An error of a library that says no more than this."""


def caused_by(cause: Exception) -> Exception:
    error = LibraryError("s3cret")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("raised", "kind", "said", "is_heard"),
    [
        (AuthError("the vault is sealed"), AuthError, "the vault is sealed", False),
        (KeyError("s3cret"), AuthError, '"token": KeyError', True),
        (caused_by(ConnectionRefusedError()), TransportError, '"token": LibraryError', True),
        (caused_by(TimeoutError("late")), TimeoutError, '"token": LibraryError', True),
        (asyncio.TimeoutError(), TimeoutError, "Timeout", True),
        (TransportError("nobody there"), TransportError, "nobody there", False),
    ],
)
async def test_a_function_that_raises(
    simple: Server, raised: Exception, kind: type[Error], said: str, is_heard: bool
) -> None:
    heard: list[Exception] = []

    def token() -> str:
        raise raised

    async with serving(simple) as url:
        with pytest.raises(kind, match=said) as error:
            await connect(url, auth=ClientAuth(token=token), on_error=lambda error, _: heard.append(error))
    assert type(error.value) is kind
    assert "s3cret" not in str(error.value)
    assert [type(one) for one in heard] == ([type(raised)] if is_heard else [])


@pytest.mark.parametrize("name", ["assertion", "browser", "callback"])
@pytest.mark.parametrize(
    ("raised", "said", "is_heard"),
    [
        (TransportError("nobody there"), "nobody there", False),
        (TimeoutError("late"), "late", False),
        (ConnectionRefusedError("s3cret"), "ConnectionRefusedError", True),
        (MisuseError("wrong"), "wrong", True),
        (KeyError("s3cret"), "KeyError", True),
    ],
)
async def test_what_ends_a_login_is_of_authorization(
    app: Server, name: str, raised: Exception, said: str, is_heard: bool
) -> None:
    heard: list[tuple[str, type[Exception]]] = []

    def fails() -> str:
        raise raised

    if name == "assertion":
        auth = ClientAuth.workload("c", fails)
    elif name == "browser":
        auth = ClientAuth(browser=fails, client_id="c")
    else:
        back = "https://app.example/back"
        auth = ClientAuth(callback=fails, redirect_uri=back, browser=lambda _: None, client_id="c")
    auth.store = "memory"
    async with serving(app) as url:
        with pytest.raises(AuthError, match=f'"{name}": .*{said}') as error:
            await connect(url, auth=auth, on_error=lambda error, name: heard.append((name, type(error))))
    assert type(error.value) is AuthError
    assert "s3cret" not in str(error.value)
    assert str(error.value).startswith("authorization: ")
    assert heard == ([(name, type(raised))] if is_heard else [])


async def test_an_error_has_the_steps_that_led_to_it(app: Server, authority: AuthorizationServer, login: Auth) -> None:
    def browser(url: str) -> None:
        raise AuthError("no display")

    auth = login(browser=browser)
    async with serving(app) as url:
        with pytest.raises(AuthError) as raised:
            await connect(url, auth=auth)
        named = [step.step for step in raised.value.auth_trace]
        assert (named[:2], named[-1]) == (["challenge", "resource metadata"], "login in the browser")
        assert "no display" in raised.value.auth_trace[-1].decision

        def synchronous() -> AuthError:
            with pytest.raises(AuthError) as raised, Client(url, auth=auth):
                raise AssertionError("it is connected")
            return raised.value

        assert [step.step for step in (await asyncio.to_thread(synchronous)).auth_trace] == named
        async with connect_many({"one": url}, auth=auth) as group:
            assert [step.step for step in group.failures["one"].auth_trace] == named
            with pytest.raises(AuthError) as raised:
                await group.reconnect("one")
            assert [step.step for step in raised.value.auth_trace] == named * 2
    with pytest.raises(TransportError) as other:
        await connect(url)
    assert other.value.auth_trace == ()


@pytest.mark.parametrize("given", [None, b"token-ada", 7])
async def test_a_function_that_gives_no_text(simple: Server, given: Any) -> None:
    heard: list[Exception] = []
    async with serving(simple) as url:
        with pytest.raises(MisuseError, match="token: expected a string, got "):
            await connect(url, auth=ClientAuth(token=lambda: given), on_error=lambda error, _: heard.append(error))
    assert len(heard) == 1


# -- clients of all kinds


async def test_a_synchronous_client(app: Server, login: Auth) -> None:
    def use(url: str) -> tuple[str, str]:
        with Client(url, auth=login()) as client:
            return client.call_tool("who").text, client.auth_trace()[-1].decision

    async with serving(app) as url:
        assert await asyncio.to_thread(use, url) == ("ada read", "a token")


async def test_the_clients_of_a_group_share_what_is_said(app: Server, simple: Server, login: Auth) -> None:
    async with serving(app) as one, connect_many({"one": one, "two": f"{one}?again"}, auth=login()) as group:
        assert group.failures == {}
        assert (await group.call_tool("one_who")).text == "ada read"
        assert group["one"].auth_trace()[-1].decision == "a token"
    own = ClientAuth.bearer(lambda: "token-eve")
    async with serving(simple) as url, connect_many({"three": url}, auth=own) as group:
        assert (await group.call_tool("who")).text == "eve"


async def test_logins_in_files_outlive_the_program(
    app: Server, authority: AuthorizationServer, visitor: Visitor, login: Auth, tmp_path: Path
) -> None:
    async with serving(app) as url:
        for directory in (tmp_path / "logins", str(tmp_path / "logins")):
            async with connect(url, auth=login(store=FileStore(directory))) as client:
                assert await text(client) == "ada read"
    assert (len(visitor.visited), len(authority.forms)) == (1, 1)
    kept = [path for path in (tmp_path / "logins").rglob("*") if path.is_file()]
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept)

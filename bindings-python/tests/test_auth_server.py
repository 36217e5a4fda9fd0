"""Servers that ask for tokens: whose they are, what they open, and what is said to those who have none."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import json
import socket
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tricorn import (
    AuthError,
    ClientAuth,
    ClosedError,
    Context,
    Introspection,
    MisuseError,
    Principal,
    RpcError,
    Server,
    ServerAuth,
    connect,
    testing,
)

from .authorization_server import AuthorizationServer, Visitor, serving, signed
from .conftest import INITIALIZE
from .test_asgi import Exchange, post

LOGIN = ["https://login.example.com"]
RESOURCE = "https://mcp.example.com/tools"
WELL_KNOWN = "/.well-known/oauth-protected-resource"


def send(url: str, token: str | None = None) -> tuple[int, str, Any]:
    """Status, challenge and body of a request over HTTP."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, json.dumps(INITIALIZE).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, "", response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers.get("WWW-Authenticate", ""), error.read().decode()


def fetched(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as response:
        return json.load(response)


def protected(verifier: Callable[..., Any], **options: Any) -> Server:
    return Server("notes", auth=ServerAuth(verifier=verifier, authorization_servers=LOGIN, **options))


def with_context(token: str, ctx: Context) -> None:
    """There is no request whose context it could get."""


def reads(token: str) -> Principal:
    """A token is its subject and its scopes."""
    subject, _, scopes = token.partition("-")
    return Principal(subject, scopes=scopes.split("-") if scopes else [])


# -- what is said


def test_secrets_are_in_no_repr() -> None:
    asked = Introspection("https://login.example.com/introspect?key=s3cret", "server", "s3cret")
    auth = ServerAuth(introspection=asked, resource=RESOURCE)
    assert repr(auth) == f"ServerAuth(introspection=Introspection(client_id='server'), resource='{RESOURCE}')"
    principal = Principal("ada", scopes=["read"], claims={"email": "s3cret"}, expires_at=7)
    assert repr(principal) == "Principal(subject='ada', scopes=['read'], expires_at=7)"
    assert "s3cret" not in f"{list(principal.__rich_repr__())} {list(auth.__rich_repr__())}"


@pytest.mark.parametrize(
    ("auth", "names"),
    [
        ({"issuer": "https://login.example.com"}, "auth: expected a ServerAuth, got an object"),
        (ServerAuth(), 'expected one of "issuer", "introspection" and "verifier"'),
        (ServerAuth(issuer="https://a.example", verifier=reads), 'expected one of "issuer"'),
        (ServerAuth(verifier="reads"), "verifier: expected a function"),  # type: ignore[arg-type]
        (ServerAuth(issuer="https://a.example", required_scopes="read"), "auth: required_scopes: expected a list"),
        (ServerAuth(issuer="https://a.example", scope_implies={"a": "b"}), "auth: scope_implies: a: expected a list"),
        (ServerAuth(issuer="https://a.example", timeout=float("nan")), r"auth.timeout: expected a finite number"),
        (
            ServerAuth(issuer="https://a.example", timeout="10"),  # type: ignore[arg-type]
            "auth: timeout: expected a number of seconds, got a string",
        ),  # type: ignore[arg-type]
        (ServerAuth(issuer="https://a.example", scope_implies={"a": ["b c"]}), 'scope_implies: a: .*"b c": split it'),
        (ServerAuth(issuer="https://a.example", scope_implies=["a"]), "scope_implies: expected an object, got a list"),  # type: ignore[arg-type]
        (ServerAuth(issuer=b"https://a.example"), r"auth: issuer: expected a string, got bytes; give its \.decode"),  # type: ignore[arg-type]
        (
            ServerAuth(introspection={"url": "https://a"}),
            "auth: introspection: expected an Introspection, got an object",
        ),  # type: ignore[arg-type]
        (
            ServerAuth(introspection=Introspection("https://a.example", "c", b"s3cret")),  # type: ignore[arg-type]
            "auth: introspection.client_secret: expected a string, got bytes",
        ),
        (ServerAuth(verifier=with_context), "verifier: .* wants a context"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_named(auth: Any, names: str) -> None:
    with pytest.raises(MisuseError, match=names) as raised:
        Server("notes", auth=auth)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("auth", "names"),
    [
        (ServerAuth(issuer="http://login.example.com", resource=RESOURCE), '"issuer"'),
        (ServerAuth(issuer="https://a.example", resource="mcp.example.com"), '"resource"'),
        (ServerAuth(verifier=reads, resource=RESOURCE), '"authorization_servers"'),
        (ServerAuth(issuer="https://a.example", resource=RESOURCE, timeout=0), '"timeout"'),
        (
            ServerAuth(issuer="https://a.example", resource=RESOURCE, required_scopes=["a b"]),
            '"required_scopes": "a b" is no scope',
        ),
        (
            ServerAuth(issuer="https://a.example", resource=RESOURCE, scopes_supported=[""]),
            '"scopes_supported": "" is no scope',
        ),
    ],
)
async def test_what_is_wrong_is_named_when_it_serves(auth: ServerAuth, names: str) -> None:
    with pytest.raises(MisuseError, match=names):
        await Server("notes", auth=auth).serve_http(port=0)
    with pytest.raises(MisuseError, match=names):
        Server("notes", auth=auth).asgi()


@pytest.mark.parametrize("scopes", ["read", {"read": 1}, [1], 7])
def test_scopes_are_lists(app: Server, scopes: Any) -> None:
    for add in (
        lambda: app.add_tool(lambda: "", name="t", scopes=scopes),
        lambda: app.add_resource("a:b", "", scopes=scopes),
        lambda: app.add_prompt(reads, scopes=scopes),
        lambda: Principal("ada", scopes=scopes),
    ):
        with pytest.raises(MisuseError, match=r"scopes.*: expected a (list of )?string"):
            add()


# -- whose a token is


async def test_what_an_issuer_has_signed(authority: AuthorizationServer) -> None:
    app = Server("notes", auth=ServerAuth(issuer=authority.url, required_scopes=["read"], resource_name="Notes"))
    principals: list[Principal | None] = []

    @app.tool
    async def who(ctx: Context) -> None:
        principals.append(ctx.principal)

    async with serving(app) as url:
        now = int(time.time())
        claims = {"iss": authority.url, "aud": url, "sub": "ada", "scope": "read", "exp": now + 60, "client_id": "c"}
        for revision in ("2025-11-25", "2026-07-28"):
            async with connect(url, auth=ClientAuth.bearer(signed(claims)), revision=revision) as client:
                await client.call_tool("who")
        for wrong in ({"aud": "https://other.example"}, {"iss": "https://other.example"}, {"exp": now - 600}):
            status, challenge, body = await asyncio.to_thread(send, url, signed({**claims, **wrong}))
            assert (status, 'error="invalid_token"' in challenge) == (401, True)
            assert "other.example" not in body
        status, challenge, _ = await asyncio.to_thread(send, url, signed({**claims, "scope": "write"}))
        assert (status, 'error="insufficient_scope"' in challenge, 'scope="read write"' in challenge) == (
            403,
            True,
            True,
        )
        status, challenge, _ = await asyncio.to_thread(send, url)
        origin = url.removesuffix("/mcp")
        assert (status, f'resource_metadata="{origin}{WELL_KNOWN}/mcp"' in challenge) == (401, True)
        metadata = await asyncio.to_thread(fetched, f"{origin}{WELL_KNOWN}/mcp")
    assert metadata["resource"] == url
    assert (metadata["authorization_servers"], metadata["resource_name"]) == ([authority.url], "Notes")
    for principal in principals:
        assert principal is not None
        assert (principal.subject, principal.issuer, principal.client_id) == ("ada", authority.url, "c")
        assert (principal.scopes, principal.expires_at) == (["read"], now + 60)
        assert principal.claims == claims
    assert len(principals) == 2


async def test_the_authorization_server_is_asked(authority: AuthorizationServer) -> None:
    auth = ServerAuth(
        introspection=Introspection(f"{authority.url}/introspect", "server", "shh"),
        authorization_servers=[authority.url],
    )
    app = Server("notes", auth=auth)

    @app.tool
    async def who(ctx: Context) -> str:
        return str(ctx.principal and ctx.principal.subject)

    async with serving(app) as url:
        authority.audience = url
        async with connect(url, auth=ClientAuth.bearer("opaque")) as client:
            assert (await client.call_tool("who")).text == "ada"
        with pytest.raises(AuthError):
            await connect(url, auth=ClientAuth.bearer("other"))
    assert {form["token"] for form in authority.introspected} == {"opaque", "other"}
    assert authority.introspected[0]["authorization"].startswith("Basic ")


class LibraryError(Exception):
    """An error of a library that says no more than this."""


def because_of(cause: Exception) -> None:
    try:
        raise cause
    except type(cause) as error:
        raise LibraryError("s3cret") from error


def raising(error: Exception) -> Callable[[str], None]:
    def verify(_: str) -> None:
        raise error

    return verify


@pytest.mark.parametrize(
    ("verify", "status", "heard"),
    [
        (lambda _: None, 401, None),
        (raising(AuthError("s3cret")), 401, None),
        (raising(PermissionError("s3cret")), 401, PermissionError),
        (raising(LibraryError("s3cret")), 401, LibraryError),
        (lambda _: because_of(KeyError("s3cret")), 401, LibraryError),
        (lambda _: because_of(ConnectionRefusedError("s3cret")), 503, LibraryError),
        (raising(ConnectionResetError("s3cret")), 503, ConnectionResetError),
        (raising(TimeoutError("s3cret")), 503, TimeoutError),
        (raising(ClosedError("s3cret")), 503, None),
        (lambda _: {"subject": "ada"}, 401, MisuseError),
        (lambda _: True, 401, MisuseError),
        (lambda _: Principal(7), 401, MisuseError),  # type: ignore[arg-type]
        (lambda _: Principal("ada", claims={"now": object()}), 401, MisuseError),
        (lambda _: Principal("ada", expires_at=1), 401, None),
        (lambda _: Principal("ada", expires_at=time.time() + 60.5), 200, None),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_says_whose_it_is(
    verify: Callable[[str], Any], status: int, heard: type[Exception] | None, is_async: bool
) -> None:
    async def awaited(token: str) -> Any:
        return verify(token)

    app = protected(awaited if is_async else verify)
    errors: list[tuple[str, Exception]] = []
    app._host.on_error = lambda error, name: errors.append((name, error))
    async with serving(app) as url:
        got, challenge, body = await asyncio.to_thread(send, url, "token")
    assert got == status, body
    assert ("invalid_token" in challenge) == (status == 401)
    assert "s3cret" not in challenge + body
    assert [(name, type(error)) for name, error in errors] == ([] if heard is None else [("verifier", heard)])


async def test_a_function_that_takes_too_long() -> None:
    cancelled = asyncio.Event()

    async def verify(_: str) -> Principal:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Principal("ada")

    async with serving(protected(verify, timeout=0.1)) as url:
        assert (await asyncio.to_thread(send, url, "token"))[0] == 503
        await asyncio.wait_for(cancelled.wait(), 30)


async def test_other_transports_ask_nobody() -> None:
    app = protected(reads)

    @app.tool(scopes=["write"])
    async def who(ctx: Context) -> bool:
        return ctx.principal is None

    async with testing.connect(app) as client:
        assert (await client.call_tool("who")).text == "true"


async def test_the_function_goes_with_its_server() -> None:
    class Verify:
        def __call__(self, token: str) -> Principal:
            return reads(token)

    verify = Verify()
    known = weakref.ref(verify)
    app = protected(verify)
    del verify
    async with serving(app) as url:
        assert (await asyncio.to_thread(send, url, "ada"))[0] == 200
    assert known() is not None
    del app
    for _ in range(10):
        gc.collect()
        await asyncio.sleep(0)
    assert known() is None


# -- what a token opens


def offering(app: Server) -> Server:
    @app.tool(scopes=["write"])
    async def add(ctx: Context) -> str:
        return str(ctx.principal and ctx.principal.has_scope("write"))

    @app.tool
    async def grow(ctx: Context) -> None:
        ctx.session.add_tool(lambda: "grown", name="grown", scopes=["write"])

    app.add_resource("notes://secret", "secret", scopes=["write"])
    app.add_resource("notes://{number}", lambda number: number, scopes=["write"])
    app.add_prompt(lambda: "secret", name="secret", scopes=["write"])
    return app


async def listed(url: str, token: str) -> tuple[list[str], ...]:
    async with connect(url, auth=ClientAuth.bearer(token), revision="2025-11-25") as client:
        await client.call_tool("grow")
        return (
            sorted(tool.name for tool in await client.list_tools()),
            [resource.uri for resource in await client.list_resources()],
            [template.uri_template for template in await client.list_resource_templates()],
            [prompt.name for prompt in await client.list_prompts()],
        )


async def test_lists_show_what_the_caller_may_use() -> None:
    app = offering(protected(reads, scope_implies={"admin": ["write"]}))
    everything = (["add", "grow", "grown"], ["notes://secret"], ["notes://{number}"], ["secret"])
    async with serving(app) as url:
        assert await listed(url, "ada-read") == (["grow"], [], [], [])
        assert await listed(url, "bob-write") == everything
        assert await listed(url, "eve-admin") == everything


async def test_what_needs_more_is_refused() -> None:
    app = offering(protected(reads, required_scopes=["read"], scope_implies={"admin": ["read", "write"]}))
    async with serving(app) as url:
        async with connect(url, auth=ClientAuth.bearer("ada-read")) as client:
            for use in (
                client.call_tool("add"),
                client.read_resource("notes://secret"),
                client.read_resource("notes://7"),
                client.get_prompt("secret"),
            ):
                with pytest.raises((AuthError, RpcError), match="scope"):
                    await use
        async with connect(url, auth=ClientAuth.bearer("eve-admin")) as client:
            assert (await client.call_tool("add")).text == "True"
            assert (await client.read_resource("notes://7")).contents[0].text == "7"
        with pytest.raises(AuthError, match="read"):
            await connect(url, auth=ClientAuth.bearer("bob-write"))


def test_a_principal() -> None:
    claims = {"email": "ada@example.com", "groups": ["a", {"b": None}]}
    principal = Principal("ada", issuer="https://login.example.com", client_id="c", scopes={"a"}, claims=claims)
    assert [principal.has_scope(scope) for scope in "ab"] == [True, False]
    same = Principal("ada", issuer="https://login.example.com", client_id="c", scopes=("a",), claims=claims)
    assert (principal, hash(principal)) == (same, hash(same))
    assert principal != Principal("ada", scopes=["a"], claims=claims)
    claims.clear()
    assert principal.claims["email"] == "ada@example.com"
    with pytest.raises(dataclasses.FrozenInstanceError):
        principal.subject = "eve"  # type: ignore[misc]
    with pytest.raises(TypeError, match="implied"):
        Principal("ada", implied=["admin"])  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "expires_at",
    [7, 7.0, datetime.fromtimestamp(7, timezone.utc), datetime.fromtimestamp(7, timezone(timedelta(hours=2)))],
)
def test_when_a_token_expires(expires_at: Any) -> None:
    assert Principal("ada", expires_at=expires_at).expires_at == 7


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"subject": 7}, "subject: expected a string, got a number"),
        ({"subject": None}, "subject: expected a string, got null"),
        ({"subject": ""}, "subject: expected a string that is not empty"),
        ({"issuer": 7}, "issuer: expected a string, got a number"),
        ({"client_id": b"c"}, "client_id: expected a string, got bytes"),
        ({"scopes": "read write"}, r"scopes: expected a list of strings, got a string: split it"),
        ({"scopes": None}, "scopes: expected a list of strings, got null"),
        ({"scopes": [1]}, "scopes: expected a list of strings"),
        ({"scopes": ["read write"]}, r'scopes: expected one scope in each string, got "read write": split it'),
        ({"claims": "s3cret"}, "claims: expected an object, got a string; give the token's decoded payload"),
        ({"claims": {7: "s3cret"}}, "claims: expected names that are text, got a int"),
        ({"claims": {"a": object()}}, "claims: object cannot be written as JSON; leave out"),
        ({"claims": {"a": [float("nan")]}}, r"claims: a\[0\]: expected a finite number"),
        ({"expires_at": datetime(2030, 1, 1)}, r"expires_at: .* got one without; give \.replace\(tzinfo"),
        ({"expires_at": "2030-01-01"}, "expires_at: expected seconds since 1970.*, got a str"),
        ({"expires_at": True}, "expires_at: expected seconds since 1970.*, got a bool"),
        ({"expires_at": float("inf")}, "expires_at: expected seconds since 1970.*, got inf"),
    ],
)
def test_what_is_wrong_with_a_principal_is_named(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(MisuseError, match=f"^Principal: {why}") as raised:
        Principal(**{"subject": "ada", **wrong})
    assert "s3cret" not in str(raised.value)


# -- mounted


async def get(app: Any, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    exchange = Exchange(app, method, headers, path=path)
    status, got = await exchange.start()
    return status, got, await exchange.rest()


async def test_a_mounted_server() -> None:
    server = protected(reads, resource=RESOURCE, required_scopes=["read"])
    app = server.asgi()
    status, headers, _ = await post(app, INITIALIZE)
    assert (status, f"{WELL_KNOWN}/tools" in headers["www-authenticate"]) == (401, True)
    assert (await post(app, INITIALIZE, authorization="Bearer ada-read"))[0] == 200
    metadata = app.metadata
    assert metadata is not None
    assert (metadata.path, json.loads(metadata.text)["resource"]) == (f"{WELL_KNOWN}/tools", RESOURCE)
    # The server itself where its path reaches it, and the application for it wherever that is.
    for where, path in ((app, metadata.path), (metadata, "/"), (metadata, metadata.path)):
        status, headers, body = await get(where, path, origin="https://page.example")
        assert (status, body.decode()) == (200, metadata.text)
        assert headers["content-type"] == "application/json"
        assert headers["access-control-allow-origin"] == "*"
    assert (await get(metadata, "/", "DELETE"))[0] == 405
    await app.close()


async def test_a_body_without_a_token_is_not_waited_for() -> None:
    app = protected(reads, resource=RESOURCE).asgi()
    for shown in ({}, {"authorization": "Basic YTpi"}):
        # Nothing of the body ever comes.
        waiting = Exchange(app, "POST", shown, coming=False)
        assert (await waiting.start())[0] == 401
        await waiting.rest()
    await app.close()


async def test_a_server_that_asks_nobody_has_no_metadata() -> None:
    assert Server("open").asgi().metadata is None


async def test_mounted_in_a_framework(authority: AuthorizationServer) -> None:
    applications = pytest.importorskip("starlette.applications")
    routing = pytest.importorskip("starlette.routing")
    uvicorn = pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/tools/"
        server = Server("notes", auth=ServerAuth(issuer=authority.url, resource=url, required_scopes=["read"]))

        @server.tool
        async def who(ctx: Context) -> str:
            return str(ctx.principal and ctx.principal.subject)

        mcp = server.asgi()
        assert mcp.metadata is not None
        routes = [routing.Route(mcp.metadata.path, mcp.metadata), routing.Mount("/tools", mcp)]
        app = applications.Starlette(routes=routes)
        web = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning", ws="none"))
        web.capture_signals = contextlib.nullcontext  # the test owns the signals
        task = asyncio.create_task(web.serve(sockets=[listening]))
        try:
            async with connect(url, auth=ClientAuth(browser=Visitor().browse, store="memory")) as client:
                assert (await client.call_tool("who")).text == "ada"
                assert client.auth_trace()[1].url == url.removesuffix("/tools/") + mcp.metadata.path
        finally:
            web.should_exit = True
            await asyncio.wait_for(task, 20)
    assert authority.authorized[0]["resource"] == url

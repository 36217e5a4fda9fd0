"""Hostile HTTP servers: heads, bodies, event streams, redirects, authorization."""

import gzip
import json
import time
import zlib
from typing import Any

from registry import client

MIB = 1 << 20
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def result(x: Any) -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}' % json.dumps(x.id).encode()


def raw(attack: Any, make: Any, end: bool = True) -> None:
    """Answers a call with bytes."""

    def answer(x: Any) -> None:
        x.raw(make(x))
        if end:
            x.wire.close()

    attack.answer_call(answer)


RAW: dict[str, tuple[Any, str, bool]] = {
    "headers-many": (
        lambda x: OK + b"".join(b"X-%d: y\r\n" % n for n in range(100_000)) + b"\r\n",
        "issue 22: header floods",
        True,
    ),
    "header-long": (lambda x: OK + b"X: " + b"y" * (3 * MIB) + b"\r\n\r\n", "CVE class: long heads", False),
    "head-never-ends": (lambda x: OK + b"X: y\r\n" * 300_000, "issue 22: never-ending headers", True),
    "informational": (lambda x: b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000, "issue 22: 1xx floods", False),
    "early-hints": (
        lambda x: b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 50_000,
        "issue 22: 1xx floods",
        False,
    ),
    "status-line-long": (lambda x: b"HTTP/1.1 200 " + b"O" * (2 * MIB) + b"\r\n\r\n", "CVE class: long heads", False),
    "status-junk": (lambda x: b"HTTP/1.1 999999 X\r\n\r\n", "CVE class: heads", False),
    "no-http": (lambda x: b"SSH-2.0-x\r\n" * 1000, "CVE class: other protocols", False),
    "set-cookies": (
        lambda x: OK + b"Set-Cookie: a=b\r\n" * 500 + b"Content-Length: %d\r\n\r\n" % len(result(x)) + result(x),
        "CVE class: cookies",
        False,
    ),
    "session-long": (
        lambda x: (
            OK + b"Mcp-Session-Id: " + b"s" * 30_000 + b"\r\nContent-Length: %d\r\n\r\n" % len(result(x)) + result(x)
        ),
        "issue 22: sessions",
        False,
    ),
    "length-huge": (lambda x: OK + b"Content-Length: 9223372036854775807\r\n\r\n{", "CVE class: lengths", False),
    "lengths-two": (
        lambda x: OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}{}{}",
        "CVE class: lengths",
        False,
    ),
    "chunk-bad": (lambda x: OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nxx\r\n", "issue 22: bad chunking", False),
    "chunk-huge": (
        lambda x: OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "issue 22: bad chunking",
        False,
    ),
    "chunk-one-byte": (
        lambda x: OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 600_000 + b"0\r\n\r\n",
        "CVE class: chunks",
        False,
    ),
    "chunk-extensions": (
        lambda x: OK + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * (2 * MIB) + b"\r\n \r\n0\r\n\r\n",
        "CVE class: chunks",
        False,
    ),
    "chunk-trailers": (
        lambda x: OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 200_000 + b"\r\n",
        "CVE class: chunks",
        False,
    ),
    "body-4m-junk": (lambda x: OK + b"Connection: close\r\n\r\n" + b"x" * (4 * MIB - 200), "a long body", False),
    "gzip-bomb": (
        lambda x: (lambda b: OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(b) + b)(bomb()),
        "issue 22: gzip bombs",
        True,
    ),
    "gzip-many": (
        lambda x: OK + b"Content-Encoding: " + b"gzip, " * 1000 + b"gzip\r\nContent-Length: 4\r\n\r\nxxxx",
        "CVE class: decompression",
        False,
    ),
    "type-html": (
        lambda x: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + b"<p>" * MIB,
        "issue 22: wrong content types",
        False,
    ),
    "type-long": (
        lambda x: (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json" + b";a=b" * 15_000 + b"\r\nContent-Length: 2\r\n\r\n{}"
        ),
        "issue 22: wrong content types",
        False,
    ),
    "error-body-4m": (
        lambda x: b"HTTP/1.1 500 No\r\nConnection: close\r\n\r\n" + b"e" * (4 * MIB - 200),
        "issue 22: errors",
        False,
    ),
    "sse-line-endless": (
        lambda x: SSE + b"Connection: close\r\n\r\ndata: " + b"x" * (4 * MIB - 200),
        "issue 22: SSE lines without end",
        True,
    ),
    "sse-data-lines": (lambda x: SSE + b"Connection: close\r\n\r\n" + b"data: x\n" * 400_000, "issue 22: SSE", False),
    "sse-empty-data": (
        lambda x: SSE + b"Connection: close\r\n\r\n" + b"data\n" * 700_000 + b"\n",
        "issue 22: SSE",
        False,
    ),
    "sse-events-empty": (lambda x: SSE + b"Connection: close\r\n\r\n" + b"data:\n\n" * 500_000, "issue 22: SSE", False),
    "sse-comments": (
        lambda x: SSE + b"Connection: close\r\n\r\n" + b":\n\n" * 1_000_000,
        "issue 22: SSE comments",
        False,
    ),
    "sse-comment-long": (
        lambda x: SSE + b"Connection: close\r\n\r\n:" + b"c" * (4 * MIB - 200),
        "HO-14: comments count as bytes",
        False,
    ),
    "sse-newlines": (lambda x: SSE + b"Connection: close\r\n\r\n" + b"\r\n" * 2_000_000, "issue 22: SSE", False),
    "sse-fields": (
        lambda x: SSE + b"Connection: close\r\n\r\n" + b"".join(b"f%d: x\n" % n for n in range(300_000)),
        "issue 22: SSE fields",
        False,
    ),
    "sse-ids": (
        lambda x: SSE + b"Connection: close\r\n\r\n" + b"".join(b"id: %d\ndata:\n\n" % n for n in range(150_000)),
        "issue 22: SSE fields",
        False,
    ),
    "sse-id-long": (
        lambda x: SSE + b"Connection: close\r\n\r\nid: " + b"i" * (2 * MIB) + b"\ndata: {}\n\n",
        "issue 22: SSE fields",
        False,
    ),
    "sse-retry-huge": (
        lambda x: SSE + b"Connection: close\r\n\r\nretry: " + b"9" * 100_000 + b"\n\n",
        "issue 22: SSE fields",
        False,
    ),
    "sse-bom": (
        lambda x: SSE + b"Connection: close\r\n\r\n" + b"\xef\xbb\xbf" * 100_000 + b"data: {}\n\n",
        "HO-14",
        False,
    ),
    "sse-not-utf8": (
        lambda x: SSE + b"Connection: close\r\n\r\n" + b"data: \xff\xfe\xfd\n\n" * 100_000,
        "issue 22: invalid UTF-8",
        False,
    ),
    "sse-nul-id": (
        lambda x: SSE + b"Connection: close\r\n\r\n" + b"id: \0\ndata: {}\n\n" * 100_000,
        "issue 22: SSE fields",
        False,
    ),
}


def bomb() -> bytes:
    """Sixty megabytes of a result in sixty kilobytes."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    out = squeeze.compress(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"')
    for _ in range(60):
        out += squeeze.compress(b"x" * MIB)
    return out + squeeze.compress(b'"}]}}') + squeeze.flush()


for _name, (_make, _source, _core) in RAW.items():
    client(f"http-{_name}", _source, _make, on="http", core=_core)(raw)


@client("http-slow-head", "issue 22: slow answers", on="http")
def slow_head(attack: Any) -> None:
    def answer(x: Any) -> None:
        for piece in (b"HTTP/1.1 ", b"200 ", b"OK\r\n"):
            x.raw(piece)
            time.sleep(0.2)

    attack.answer_call(answer)


@client("http-body-one-byte", "issue 22: slow answers", on="http")
def one_byte(attack: Any) -> None:
    def answer(x: Any) -> None:
        body = result(x) + b" " * 4000
        x.raw(OK + b"Content-Length: %d\r\n\r\n" % len(body))
        for n in range(len(body)):
            x.raw(body[n : n + 1])

    attack.answer_call(answer)


@client("http-retry-zero", "HO-14: retry: 0", on="http")
def retry(attack: Any) -> None:
    gets = []

    def get(x: Any) -> None:
        gets.append(1)
        x.begin()
        x.raw(b"id: 1\nretry: 0\ndata:\n\n")
        x.wire.close()

    def answer(x: Any) -> None:
        x.begin()
        x.raw(b"id: 1\nretry: 0\ndata:\n\n")
        x.wire.close()

    attack.script["GET"] = get
    attack.answer_call(answer)
    if len(gets) > 60:
        attack.note = f"{len(gets)} GETs in 3 s"


@client("http-get-stream-closes", "CVE class: reconnects", on="http")
def closes(attack: Any) -> None:
    attack.script["GET"] = lambda x: x.wire.close()
    attack.play()
    attack.do("ping")
    time.sleep(1.0)


@client("http-get-stream-flood", "issue 22: list_changed floods", on="http", core=True)
def stream_flood(attack: Any) -> None:
    def get(x: Any) -> None:
        x.begin()
        x.raw(b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n' * 10_000)

    attack.script["GET"] = get
    attack.play()
    attack.wait_for(lambda: attack.sent > 500_000, 3.0)
    attack.do("ping")


@client("http-redirect-loop", "issue 22: redirect loops", on="http", core=True)
def redirects(attack: Any) -> None:
    attack.answer_call(lambda x: x.status("307 Temporary Redirect", f"Location: {attack.url}\r\n"))


@client("http-redirect-chain", "issue 22: redirect loops", on="http")
def chain(attack: Any) -> None:
    count = 0

    def answer(x: Any) -> None:
        nonlocal count
        count += 1
        x.status("302 Found", f"Location: {attack.url}?n={count}\r\n")

    attack.script["GET"] = answer
    attack.answer_call(answer)


@client("http-redirect-long", "issue 22: redirect loops", on="http")
def long_redirect(attack: Any) -> None:
    attack.answer_call(lambda x: x.status("308 Permanent Redirect", "Location: http://" + "a" * 60_000 + "\r\n"))


@client("http-404-loop", "CVE class: sessions that are forgotten", on="http")
def forgotten(attack: Any) -> None:
    attack.script["initialize"] = lambda x: x.done(attack.usual(x.message), headers="Mcp-Session-Id: s\r\n")
    attack.answer_call(lambda x: x.status("404 Not Found"))


@client("http-429-loop", "CVE class: retries", on="http")
def busy(attack: Any) -> None:
    attack.answer_call(lambda x: x.status("429 Too Many Requests", "Retry-After: 0\r\n"))


@client("http-503-loop", "CVE class: retries", on="http")
def unavailable(attack: Any) -> None:
    attack.answer_call(lambda x: x.status("503 Service Unavailable", "Retry-After: 0\r\n"))


def challenged(attack: Any, header: str, auth: Any = None, script: Any = None, limit: float = 6.0) -> None:
    """Every request is answered with 401, and what is fetched then with the script."""
    attack.script.update(script or {})
    attack.script["initialize"] = lambda x: x.status(
        "401 Unauthorized", header.replace("{url}", attack.url.removesuffix("/mcp"))
    )
    quiet = attack.note
    options = {
        "auth": {"grant": "client_credentials", "client_id": "c", "client_secret": "s"} if auth is None else auth
    }
    attack.connect(limit, **options)
    if limit < 2:
        # Silence that the client waits out has its own, longer limit; it costs nothing, and `close` does not wait for it.
        attack.note = quiet


CHALLENGES: dict[str, tuple[str, bool]] = {
    "many": ("WWW-Authenticate: Bearer realm=x\r\n" * 90, False),
    "flood": ("WWW-Authenticate: Bearer realm=x\r\n" * 5000, True),
    "long": ("WWW-Authenticate: Bearer " + ", ".join(f'a{n}="b"' for n in range(5000)) + "\r\n", False),
    "quotes": ('WWW-Authenticate: Bearer realm="' + "\\" * 60_000 + "\r\n", False),
    "commas": ("WWW-Authenticate: " + "," * 60_000 + "\r\n", False),
    "schemes": ("WWW-Authenticate: " + ", ".join(f"S{n} a=b" for n in range(5000)) + "\r\n", False),
    "scopes": ('WWW-Authenticate: Bearer scope="' + " ".join(f"s{n}" for n in range(8000)) + '"\r\n', False),
    "metadata-elsewhere": ('WWW-Authenticate: Bearer resource_metadata="http://' + "a" * 30_000 + '"\r\n', False),
}
for _name, (_header, _core) in CHALLENGES.items():
    client(f"challenge-{_name}", "issue 22: WWW-Authenticate", _header, on="http", core=_core)(challenged)
POINTED = 'WWW-Authenticate: Bearer resource_metadata="{url}/meta"\r\n'


def silent(x: Any) -> None:
    """No answer."""


def meta(attack: Any, make: Any) -> None:
    challenged(attack, POINTED, None, {"GET /meta": make}, 1.5 if make is silent else 6.0)


def document(attack: Any) -> dict[str, Any]:
    return {"resource": attack.url, "authorization_servers": [attack.url.removesuffix("/mcp")]}


def send_json(value: Any) -> Any:
    def send(x: Any) -> None:
        made = value(x.attack) if callable(value) else value
        x.status(
            "200 OK",
            "Content-Type: application/json\r\n",
            made if isinstance(made, bytes) else json.dumps(made).encode(),
        )

    return send


DOCUMENTS: dict[str, tuple[Any, bool]] = {
    "huge": (send_json(lambda a: {**document(a), "x": "y" * (MIB - 500)}), True),
    "ones": (send_json(b'{"resource":"x","authorization_servers":[' + b"1," * (MIB // 2 - 100) + b"1]}"), False),
    "members": (send_json(lambda a: {**document(a), **{f"m{n}": 0 for n in range(80_000)}}), False),
    "deep": (send_json(b"[" * (MIB - 100)), False),
    "servers": (
        send_json(
            lambda a: {
                **document(a),
                "authorization_servers": [f"http://127.0.0.1:{a.port}/{n}" for n in range(25_000)],
            }
        ),
        True,
    ),
    "scopes": (send_json(lambda a: {**document(a), "scopes_supported": [f"s{n}" for n in range(90_000)]}), False),
    "endless": (lambda x: [x.raw(OK + b"Connection: close\r\n\r\n" + b" " * (3 * MIB)), x.wire.close()], False),
    "redirect-loop": (lambda x: x.status("302 Found", "Location: /meta\r\n"), False),
    "gzip": (
        lambda x: x.raw(
            (lambda b: OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(b) + b)(
                gzip.compress(b" " * (64 * MIB), 9)
            )
        ),
        False,
    ),
    "never": (silent, False),
}
for _name, (_make, _core) in DOCUMENTS.items():
    client(f"metadata-{_name}", "issue 22: metadata documents", _make, on="http", core=_core)(meta)


def issuer(attack: Any, make: Any, token: Any = None) -> None:
    """A right pointer to an authorization server that is hostile itself."""
    attack.script["GET /.well-known/oauth-authorization-server"] = make
    attack.script["POST /token"] = token
    challenged(attack, POINTED, None, {"GET /meta": send_json(document)}, 1.5 if token is silent else 6.0)


def server_metadata(attack: Any) -> dict[str, Any]:
    base = attack.url.removesuffix("/mcp")
    return {
        "issuer": base,
        "authorization_endpoint": f"{base}/authorize",
        "token_endpoint": f"{base}/token",
        "response_types_supported": ["code"],
        "grant_types_supported": ["client_credentials"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
    }


ISSUERS: dict[str, tuple[Any, Any, bool]] = {
    "huge": (send_json(lambda a: {**server_metadata(a), "x": "y" * (4 * MIB - 500)}), None, False),
    "lists": (
        send_json(lambda a: {**server_metadata(a), "scopes_supported": [f"s{n}" for n in range(90_000)]}),
        None,
        False,
    ),
    "token-huge": (
        send_json(server_metadata),
        send_json({"access_token": "t" * (MIB - 200), "token_type": "Bearer", "expires_in": 1}),
        False,
    ),
    "token-loop": (
        send_json(server_metadata),
        send_json({"access_token": "t", "token_type": "Bearer", "expires_in": 0}),
        True,
    ),
    "token-scopes": (
        send_json(server_metadata),
        send_json({"access_token": "t", "token_type": "Bearer", "scope": "s " * 500_000}),
        False,
    ),
    "token-ones": (
        send_json(server_metadata),
        send_json(b'{"access_token":"t","token_type":"Bearer","x":[' + b"1," * (MIB // 2 - 100) + b"1]}"),
        False,
    ),
    "token-never": (send_json(server_metadata), silent, False),
    "token-error-huge": (
        send_json(server_metadata),
        lambda x: x.status(
            "400 No",
            "Content-Type: application/json\r\n",
            json.dumps({"error": "e" * (MIB // 3), "error_description": "d" * (MIB // 3)}).encode(),
        ),
        False,
    ),
}
for _name, (_make, _token, _core) in ISSUERS.items():
    client(f"issuer-{_name}", "issue 22: metadata documents, tokens", _make, _token, on="http", core=_core)(issuer)


@client("challenge-loop", "issue 22: 401 loops", on="http")
def loop(attack: Any) -> None:
    attack.answer_call(lambda x: x.status("401 Unauthorized", "WWW-Authenticate: Bearer\r\n"))


@client("challenge-403-loop", "issue 22: step-up loops", on="http")
def step_up(attack: Any) -> None:
    count = 0

    def answer(x: Any) -> None:
        nonlocal count
        count += 1
        x.status("403 Forbidden", f'WWW-Authenticate: Bearer error="insufficient_scope", scope="s{count}"\r\n')

    attack.answer_call(answer, auth={"grant": "client_credentials", "client_id": "c", "client_secret": "s"})

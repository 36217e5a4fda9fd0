"""Tokens for a protected server."""

import base64
import json
from typing import Any

from registry import server

TOKEN = "opaque-token-of-ada"
AUTH = {
    "verifier": {
        TOKEN: {"subject": "ada", "issuer": "https://login.example.com", "client_id": "app", "scopes": ["mcp"]}
    },
    "authorization_servers": ["https://login.example.com"],
    "required_scopes": ["mcp"],
}
OPAQUE = {"EVERYTHING_AUTH": json.dumps(AUTH), "HOSTILE_TOKEN": TOKEN}


def part(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def bearer(attack: Any, value: str) -> None:
    attack.post(attack.call("echo", b'{"text":"x"}'), {**attack.modern("tools/call", "echo"), "Authorization": value})


VALUES: dict[str, tuple[str, bool]] = {
    "long": ("Bearer " + "x" * 60_000, True),
    "longer": ("Bearer " + "x" * 2_000_000, False),
    "spaces": ("Bearer" + " " * 60_000 + "x", False),
    "dots": ("Bearer " + "." * 60_000, False),
    "jwt-header-deep": ("Bearer " + part(b"[" * 10_000) + ".e30.x", False),
    "jwt-header-ones": ("Bearer " + part(b'{"alg":[' + b"1," * 5_000 + b"1]}") + ".e30.x", False),
    "jwt-claims-members": (
        "Bearer " + part({"alg": "ES256", "kid": "one"}) + "." + part({f"c{n}": 0 for n in range(900)}) + ".eA",
        False,
    ),
    "jwt-number": ("Bearer " + part({"alg": "ES256"}) + "." + part(b'{"exp":' + b"9" * 9000 + b"}") + ".eA", False),
    "jwe-p2c": (
        "Bearer " + part({"alg": "PBES2-HS256+A128KW", "p2c": 2**31, "p2s": "x", "enc": "A128GCM"}) + ".e.e.e.e",
        False,
    ),
    "jwe-zip": ("Bearer " + part({"alg": "dir", "enc": "A128GCM", "zip": "DEF"}) + ".e.e.e.e", False),
    "jwt-crit": ("Bearer " + part({"alg": "ES256", "crit": ["x"] * 2000}) + ".e30.x", False),
    "jwt-jku": ("Bearer " + part({"alg": "ES256", "jku": "http://127.0.0.1:1/" + "j" * 5000}) + ".e30.x", False),
    "basic": ("Basic " + "QUFB" * 15_000, False),
    "dpop": ("DPoP " + "x" * 60_000, False),
    "commas": ("Bearer a" + ",b" * 30_000, False),
}
for _name, (_value, _core) in VALUES.items():
    server(f"token-{_name}", "CVE class: tokens", _value, on="http", env=OPAQUE, core=_core)(bearer)


@server("token-random", "HO-7d: random tokens", on="http", env=OPAQUE, core=True)
def random(attack: Any) -> None:
    sock = attack.connect()
    body = attack.call("echo", b'{"text":"x"}')
    for number in range(800):
        if (
            attack.post(body, {**attack.modern("tools/call", "echo"), "Authorization": f"Bearer r{number}"}, sock=sock)
            is None
        ):
            sock = attack.connect()


@server("token-random-sockets", "HO-7d: random tokens", on="http", env=OPAQUE)
def sockets(attack: Any) -> None:
    body = attack.call("echo", b'{"text":"x"}')
    socks = [attack.connect() for _ in range(400)]
    for number, sock in enumerate(socks):
        sock.send(
            attack.head(len(body), {**attack.modern("tools/call", "echo"), "Authorization": f"Bearer s{number}"}) + body
        )
    for sock in socks:
        sock.answer(2.0)


@server("token-none-big-body", "HO-3: bodies of nobody", on="http", env=OPAQUE)
def nobody(attack: Any) -> None:
    attack.post(b"[" + b"1," * 2_000_000 + b"1]", {**attack.modern("ping"), "Authorization": None})


@server("token-twice", "CVE class: two tokens", on="http", env=OPAQUE)
def twice(attack: Any) -> None:
    attack.post(
        attack.call("echo", b'{"text":"x"}'),
        attack.modern("tools/call", "echo"),
        extra=b"Authorization: Bearer x\r\n" * 50,
    )


ISSUER = {"EVERYTHING_AUTH": json.dumps({"issuer": "http://127.0.0.1:9/", "required_scopes": ["mcp"], "timeout": 1})}


@server("jwt-unknown-keys", "CVE class: fetches for unknown keys", on="http", env=ISSUER, answer=False, core=True)
def unknown_keys(attack: Any) -> None:
    claims = part({"iss": "http://127.0.0.1:9/", "sub": "x", "exp": 4102444800})
    sock = attack.connect()
    for number in range(300):
        token = part({"alg": "ES256", "typ": "at+jwt", "kid": f"k{number}"}) + f".{claims}." + part(b"\1" * 64)
        body = attack.call("echo", b'{"text":"x"}')
        if (
            attack.post(body, {**attack.modern("tools/call", "echo"), "Authorization": f"Bearer {token}"}, sock=sock)
            is None
        ):
            sock = attack.connect()

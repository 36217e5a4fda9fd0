"""Lines on standard input that are long, broken, in pieces, or no text."""

import time
from typing import Any

from registry import server

MIB = 1 << 20
CALL = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def lines(attack: Any, make: Any) -> None:
    attack.raw(make())
    attack.settle()


LINES: dict[str, tuple[Any, str, bool]] = {
    "endless": (lambda: b"x" * (4 * MIB) + b"\n", "issue 22: very long lines", False),
    "over-the-limit": (
        lambda: b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (4 * MIB - 100) + b'"}\n',
        "issue 22: very long lines",
        False,
    ),
    "empty": (lambda: b"\n" * (2 * MIB), "issue 22: lines", True),
    "carriage-returns": (lambda: b"\r\n" * MIB, "issue 22: lines", False),
    "bare-returns": (lambda: b"\r" * MIB + b"\n", "issue 22: lines", False),
    "blanks": (lambda: (b" " * 100 + b"\n") * 20_000, "issue 22: lines", False),
    "nuls": (lambda: (b"\0" * 100 + b"\n") * 20_000, "issue 22: NULs", False),
    "not-utf8": (lambda: b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}\n' * 20_000, "issue 22: invalid UTF-8", False),
    "cut-utf8": (lambda: b'{"jsonrpc":"2.0","id":1,"method":"\xf0\x9f"}\n' * 20_000, "issue 22: invalid UTF-8", False),
    "bom": (lambda: b"\xef\xbb\xbf" + (CALL + b"\n") * 2_000, "issue 22: BOM", False),
    "boms": (lambda: (b"\xef\xbb\xbf" + CALL + b"\n") * 4_000, "issue 22: BOM", False),
    "utf16": (lambda: CALL.decode().encode("utf-16") * 4_000 + b"\n", "issue 22: encodings", False),
    "not-json": (lambda: b"hello\n" * 20_000, "issue 22: lines", False),
    "open-braces": (lambda: b"{\n" * 20_000, "issue 22: lines", False),
    "numbers": (lambda: b"1\n" * 20_000, "issue 22: lines", False),
    "open-texts": (lambda: b'{"jsonrpc":"2.0","id":1,"method":"\n' * 20_000, "issue 22: lines", False),
    "arrays": (lambda: b"[]\n" * 20_000, "issue 22: batches", False),
    "batches": (lambda: (b"[" + b",".join([CALL] * 50) + b"]\n") * 400, "issue 22: batches", False),
    "http": (lambda: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 2_000, "other protocols", False),
    "headers-of-lsp": (lambda: b"Content-Length: 40\r\n\r\n" + CALL * 1_000 + b"\n", "other protocols", False),
}
for _name, (_make, _source, _core) in LINES.items():
    server(f"line-{_name}", _source, _make, on="stdio", core=_core)(lines)


@server("line-one-byte-pieces", "issue 22: lines in one-byte pieces", on="stdio", core=True)
def pieces(attack: Any) -> None:
    for n in range(3000):
        attack.raw((b'{"jsonrpc":"2.0","method":"%s"}\n' % (b"x" * 2969))[n : n + 1])
    attack.settle()


@server("line-slow", "issue 22: slow lines", on="stdio")
def slow(attack: Any) -> None:
    for piece in (b'{"jsonrpc"', b':"2.0","method"', b':"x"}', b"\n"):
        attack.raw(piece)
        time.sleep(0.1)
    attack.settle()


@server("line-batch-2025-03-26", "HO-3: batches", on="stdio", core=True, env={"HOSTILE_REVISION": "2025-03-26"})
def batch(attack: Any) -> None:
    attack.line(b"[" + b",".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % n for n in range(5_000)) + b"]")
    attack.settle()


@server("line-batch-ones-2025-03-26", "HO-3: batches", on="stdio", env={"HOSTILE_REVISION": "2025-03-26"})
def ones(attack: Any) -> None:
    attack.line(b"[" + b"1," * (2 * MIB - 10) + b"1]")
    attack.settle()


@server("batch-2025-03-26", "HO-3: batches", on="http")
def batch_http(attack: Any) -> None:
    session = attack.session("2025-03-26")
    session.post(b"[" + b",".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % n for n in range(200)) + b"]")
    session.post(b"[" + b"1," * (MIB // 2) + b"1]")
    session.post(b"[" + b"{}," * (MIB // 3) + b"{}]")
    session.post(b"[" * 1000 + b"]" * 1000)

"""Request heads: long, many, contradictory, slow."""

from typing import Any

from registry import server

KIB = 1 << 10
MIB = 1 << 20
BODY = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def head(attack: Any, extra: bytes, **more: Any) -> None:
    """A call with these lines more in its head."""
    body = attack.call("echo", b'{"text":"x"}')
    attack.post(body, attack.modern("tools/call", "echo"), extra=extra, **more)


def set_header(attack: Any, name: str, value: str) -> None:
    body = attack.call("echo", b'{"text":"x"}')
    attack.post(body, {**attack.modern("tools/call", "echo"), name: value})


EXTRA: dict[str, tuple[bytes, str, bool]] = {
    "many-headers": (b"".join(b"X-%d: y\r\n" % n for n in range(3000)), "CVE class: header floods", False),
    "hundred-headers": (b"".join(b"X-%d: y\r\n" % n for n in range(120)), "CVE class: header floods", False),
    "same-header": (b"X-Same: y\r\n" * 5000, "CVE class: header floods", False),
    "long-header": (b"X-Long: " + b"y" * (60 * KIB) + b"\r\n", "CVE class: long heads", False),
    "longer-header": (b"X-Long: " + b"y" * (4 * MIB - KIB) + b"\r\n", "CVE class: long heads", False),
    "long-name": (b"X" * (50 * KIB) + b": y\r\n", "CVE class: long heads", False),
    "folded": (b"X-Folded: a\r\n" + b" b\r\n" * 5000, "RFC 9112 5.2", False),
    "two-lengths": (b"Content-Length: 3\r\n", "CVE class: smuggling", True),
    "two-same-lengths": (b"Content-Length: 5\r\nContent-Length: 5\r\n", "CVE class: smuggling", False),
    "length-and-chunked": (b"Transfer-Encoding: chunked\r\n", "CVE class: smuggling", False),
    "te-twice": (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "HO-14; smuggling", False),
    "te-gzip": (b"Transfer-Encoding: gzip, chunked\r\n", "HO-14", False),
    "te-obscured": (b"Transfer-Encoding:\x0bchunked\r\n", "CVE class: smuggling", False),
    "space-before-colon": (b"Content-Length : 10\r\n", "CVE class: smuggling", False),
    "bare-lf": (b"X-A: b\nX-C: d\n", "CVE class: smuggling", False),
    "bare-cr": (b"X-A: b\rContent-Length: 9\r\n", "CVE class: smuggling", False),
    "nul-in-header": (b"X-A: b\0c\r\n", "CVE class: smuggling", False),
    "two-hosts": (b"Host: evil.example\r\n", "RFC 9112 3.2", False),
    "cookies": (b"Cookie: " + b"a=b; " * 12_000 + b"\r\n", "CVE class: cookie parsing", False),
    "forwarded": (b"X-Forwarded-For: " + b"10.0.0.1, " * 6000 + b"\r\n", "CVE class: proxy lists", False),
    "connection-list": (b"Connection: " + b"a, " * 20_000 + b"\r\n", "CVE class: header lists", False),
    "expect": (b"Expect: 100-continue\r\n", "RFC 9110 10.1.1", False),
    "upgrade": (
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "CVE class: h2c",
        False,
    ),
}
for _name, (_extra, _source, _core) in EXTRA.items():
    server(f"head-{_name}", _source, _extra, on="http", core=_core)(head)

SET: dict[str, tuple[str, str, str, bool]] = {
    "accept-many": (
        "Accept",
        "application/json, " + "a/b;q=0.1, " * 5000 + "text/event-stream",
        "issue 22: Accept lists",
        True,
    ),
    "accept-parameters": (
        "Accept",
        "application/json, text/event-stream" + ';a="b"' * 9000,
        "issue 22: Accept lists",
        False,
    ),
    "accept-quotes": (
        "Accept",
        "application/json, text/event-stream;a=" + '"' + "\\" * 60_000,
        "CVE-2022 class: header ReDoS",
        False,
    ),
    "accept-spaces": (
        "Accept",
        "application/json, text/event-stream" + " " * 60_000 + "x",
        "CVE class: header ReDoS",
        False,
    ),
    "accept-encoding": ("Accept-Encoding", "gzip;q=0.1, " * 5000, "CVE class: header lists", False),
    "content-type": ("Content-Type", "application/json" + "; charset=utf-8" * 4000, "CVE class: header ReDoS", False),
    "content-encoding": ("Content-Encoding", "gzip, " * 10_000 + "gzip", "HO-14", False),
    "mcp-name-mark": ("Mcp-Name", "=?base64?" + "QUFB" * 15_000 + "?=", "issue 22: header marks", True),
    "mcp-name-nested-marks": ("Mcp-Name", "=?base64?" * 6000, "issue 22: header marks", False),
    "mcp-param-many": ("Mcp-Param-Region", "r" * 60_000, "issue 22: headers", False),
    "version-long": ("MCP-Protocol-Version", "2" * 60_000, "issue 22: headers", False),
    "origin-long": ("Origin", "http://" + "a." * 30_000 + "example", "issue 22: headers", False),
    "origin-brackets": ("Origin", "http://" + "[" * 60_000, "CVE class: URL parsing", False),
    "host-long": ("Host", "a" * 60_000, "CVE class: long heads", False),
    "session-long": ("Mcp-Session-Id", "s" * 60_000, "issue 22: headers", False),
    "traceparent": ("traceparent", "00-" + "f" * 60_000, "CVE class: tracing headers", False),
    "tracestate": ("tracestate", "a=b," * 15_000, "CVE class: tracing headers", False),
    "baggage": ("baggage", "a=b," * 15_000, "CVE class: tracing headers", False),
}
for _name, (_header, _value, _source, _core) in SET.items():
    server(f"head-{_name}", _source, _header, _value, on="http", core=_core)(set_header)


@server("head-many-params", "issue 22: headers", on="http")
def params(attack: Any) -> None:
    head(attack, b"".join(b"Mcp-Param-%d: =?base64?QUFB?=\r\n" % n for n in range(90)))


@server("head-thousand-bad", "CVE class: work for errors", on="http", core=True)
def thousand_bad(attack: Any) -> None:
    for _ in range(300):
        sock = attack.connect()
        sock.send(b"GARBAGE \x01\x02\r\n\r\n")
        sock.answer(1.0)
        sock.close()


@server("target-absolute", "HO-14, RFC 9112 3.2.2", on="http")
def absolute(attack: Any) -> None:
    head(attack, b"", target="http://evil.example/mcp")


@server("target-long", "CVE class: long targets", on="http")
def long_target(attack: Any) -> None:
    head(attack, b"", target="/mcp?" + "a=b&" * 15_000)


@server("target-4m", "CVE class: long targets", on="http")
def longest_target(attack: Any) -> None:
    head(attack, b"", target="/" + "a" * (4 * MIB - KIB))


@server("target-percent", "CVE class: decoding", on="http")
def percent(attack: Any) -> None:
    head(attack, b"", target="/mcp" + "%2e%2e%2f" * 6000)


@server("verb-long", "CVE class: long heads", on="http")
def verb(attack: Any) -> None:
    head(attack, b"", verb="P" * 60_000)


@server("version-2", "CVE class: HTTP/2 preface on HTTP/1", on="http")
def preface(attack: Any) -> None:
    sock = attack.connect()
    sock.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" * 1000)
    sock.answer(2.0)


@server("tls-hello", "CVE class: other protocols", on="http")
def tls(attack: Any) -> None:
    sock = attack.connect()
    sock.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500))
    sock.answer(2.0)


def chunks(attack: Any, body: bytes, half: bool = False) -> None:
    sock = attack.connect()
    sock.send(attack.head(None, {**attack.modern("ping"), "Transfer-Encoding": "chunked"}) + body)
    if half:
        sock.half_close()
    sock.answer(3.0)


CHUNKS: dict[str, tuple[bytes, bool]] = {
    "negative": (b"-1\r\n" + BODY + b"\r\n0\r\n\r\n", False),
    "overflow": (b"f" * 17 + b"\r\n" + BODY, False),
    "huge-size": (b"7fffffffffffffff\r\n" + BODY, False),
    "zeros": (b"0" * (64 * KIB) + b"1\r\nx\r\n0\r\n\r\n", False),
    "long-extension": (b"1;" + b"x" * (2 * MIB) + b"\r\nx\r\n0\r\n\r\n", True),
    "many-extensions": (b"1;a=b\r\nx\r\n" * 200_000, False),
    "one-byte": (b"1\r\n \r\n" * 600_000 + b"0\r\n\r\n", False),
    "trailers": (b"1\r\n1\r\n0\r\n" + b"X-T: y\r\n" * 100_000 + b"\r\n", False),
    "long-trailer": (b"1\r\n1\r\n0\r\nX-T: " + b"y" * (2 * MIB) + b"\r\n\r\n", False),
    "no-size": (b"\r\n" * 100_000, False),
    "bare-lf": (b"2a\n" + BODY + b"\n0\n\n", False),
    "junk-size": (b"zz\r\nxx\r\n", False),
}
for _name, (_body, _core) in CHUNKS.items():
    server(f"chunk-{_name}", "CVE class: chunked coding", _body, on="http", core=_core)(chunks)


def encoded(attack: Any, coding: str, data: bytes) -> None:
    attack.post(data, {**attack.modern("ping"), "Content-Encoding": coding})


def squeezed() -> bytes:
    import gzip

    return gzip.compress(b"[" + b"1," * (32 * MIB) + b"1]", 9)[: 4 * MIB]


@server("body-gzip-bomb", "CVE class: decompression", on="http")
def gzip_bomb(attack: Any) -> None:
    encoded(attack, "gzip", squeezed())


@server("body-length-lies", "CVE class: lengths", on="http")
def lies(attack: Any) -> None:
    for length in ("-1", "+5", "0x10", "1e3", "99999999999999999999999", "4194305", "9007199254740993", " ", "5,5"):
        sock = attack.connect()
        sock.send(attack.head(None, {"Content-Length": length}) + BODY)
        sock.answer(0.5)
        sock.close()


@server("body-pipelined", "CVE class: pipelining", on="http")
def pipelined(attack: Any) -> None:
    body = attack.call("echo", b'{"text":"x"}')
    one = attack.head(len(body), attack.modern("tools/call", "echo")) + body
    sock = attack.connect()
    sock.send(one * 300)
    for _ in range(300):
        if sock.answer(2.0) is None:
            break


@server("body-pipelined-unread", "CVE class: pipelining, stalled reader", on="http")
def pipelined_unread(attack: Any) -> None:
    body = attack.call("echo", b'{"text":"%s"}' % (b"x" * 3000))
    one = attack.head(len(body), attack.modern("tools/call", "echo")) + body
    sock = attack.connect()
    sock.send(one * 800, 2.0)
    attack.hold(0.5)


@server("options-flood", "CVE class: preflights", on="http")
def options(attack: Any) -> None:
    sock = attack.connect()
    for _ in range(200):
        headers = {
            "Origin": "http://evil.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "a," * 1000,
        }
        sock.send(attack.head(None, headers, verb="OPTIONS"))
        if sock.answer(1.0) is None:
            sock = attack.connect()


@server("verbs-odd", "CVE class: methods", on="http")
def verbs(attack: Any) -> None:
    for verb in ("GET", "PUT", "HEAD", "TRACE", "CONNECT", "PATCH", "PROPFIND", "DELETE", "QUERY", "get", "\x7f"):
        sock = attack.connect()
        sock.send(attack.head(0, {}, verb=verb))
        sock.answer(0.5)
        sock.close()

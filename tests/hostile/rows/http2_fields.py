"""HTTP/2: fields, the table that they are in, and requests that two readers take for two."""

from collections.abc import Callable
from typing import Any

from frames import CONTINUATION, DATA, END_STREAM, HEADERS, STREAMS, Fields, block, body, frame, head, integer, literal
from http2 import Http2, answered, ended, expect, over_tls, sound

KIB = 1 << 10


# -- fields, and the table that they are in


def fields_of(attack: Any, more: bytes, count: int) -> None:
    """Requests with these fields at the end of their heads, on as many connections as it needs."""
    conn = Http2(attack)
    for _ in range(count):
        if conn.over:
            if attack.end.over or len(attack.sockets) > 20:
                break
            conn = Http2(attack)
        number = conn.next()
        conn.follow(number)
        conn.send(head(number, block(conn.fields({}, method=b"GET")) + more, end=True))
        if number % STREAMS == STREAMS - 1:
            conn.wait(number)
    sound(attack, conn)


REFER = b"\xbe"
"""The newest field of the table."""
LONG = literal(b"x", b"y" * 4000, 0x40)
"""A field that just fits into the table."""

FIELDS: dict[str, tuple[bytes, int, str, bool]] = {
    "hpack-bomb": (LONG + REFER * 11_000, 20, "CVE-2016-6581: HPACK bomb", True),
    "hpack-bomb-below": (LONG + REFER * 14, 600, "CVE-2016-6581 class: below the limit", False),
    "hpack-evict": (literal(b"x", b"", 0x40) * 3000, 150, "CVE class: HPACK", False),
    "hpack-huffman": (b"\0\x01x" + integer(15_000, 7, 0x80) + b"\0" * 15_000, 200, "CVE class: HPACK", False),
    "zero-length": (b"\0\0\0" * 5000, 200, "CVE-2019-9516", False),
    "zero-length-values": (literal(b"x", b"") * 1700, 600, "CVE-2019-9516", False),
    "zero-length-huffman": (b"\0\x80\x80" * 5000, 200, "CVE-2019-9516", False),
    "many-fields": (b"".join(literal(b"x%d" % n, b"y") for n in range(1700)), 150, "CVE class: header floods", False),
    "long-field": (literal(b"x", b"y" * (60 * KIB)), 60, "CVE class: long heads", False),
    "longer-field": (literal(b"x", b"y" * (250 * KIB)), 10, "CVE class: long heads", False),
    "cookies": (literal(b"cookie", b"a=b", 0x40) + REFER * 1400, 600, "CVE class: cookie crumbs", False),
    "never-indexed": (literal(b"x", b"y" * 20, 0x10) * 300, 300, "RFC 7541 6.2.3", False),
}
for _name, (_more, _count, _source, _core) in FIELDS.items():
    over_tls(_name, _source, _more, _count, core=_core)(fields_of)

UNREADABLE: dict[str, bytes] = {
    "an integer without end": b"\x7f" + b"\xff" * 200 + b"\x7f",
    "a string of 2 GiB": b"\0\x01x" + integer((1 << 31) - 1, 7),
    "an entry that is not there": b"\xff\xff\x7f",
    "the entry 0": b"\x80",
    "the end of a string": b"\0\x01x\x84\xff\xff\xff\xff",
    "a table's size behind a field": literal(b"x", b"y") + b"\x20",
    "a table larger than it may be": integer(4097, 5, 0x20) + b"\x82",
}


@over_tls("hpack-wrong", "RFC 7541 2.3.3, 4.2, 5.1, 5.2")
def unreadable(attack: Any) -> None:
    """The table is that of all requests: what cannot be read ends them all."""
    for what, more in UNREADABLE.items():
        conn = Http2(attack)
        fields = block(conn.fields({}, method=b"GET"))
        conn.send(head(conn.next(), more + fields if what.startswith("a table larger") else fields + more, end=True))
        ended(attack, conn, what)


@over_tls("hpack-resize", "CVE class: HPACK, RFC 7541 4.2")
def resize(attack: Any) -> None:
    conn = Http2(attack)
    sizes = (b"\x20" + integer(4096, 5, 0x20)) * 4000
    for _ in range(200):
        number = conn.next()
        if not conn.send(head(number, sizes + block(conn.fields({}, method=b"GET")), end=True)) or conn.over:
            break
    sound(attack, conn)


def held(attack: Any, more: bytes, connections: int) -> None:
    """Heads whose bodies never come, a hundred on each connection."""
    conns = []
    for _ in range(connections):
        conn = Http2(attack)
        fields = conn.fields(attack.modern("tools/call", "echo"), 30_000)
        conn.send(b"".join(head(conn.next(), block(fields) + more) for _ in range(STREAMS)), 2.0)
        conns.append(conn)
    attack.hold(0.5)
    for conn in conns:
        conn.take(0)


HELD: dict[str, tuple[bytes, int, bool]] = {
    "bomb": (LONG + REFER * 14, 8, False),
    "cookies": (literal(b"cookie", b"a=b", 0x40) + REFER * 1400, 20, True),
    "names": (b"".join(literal(b"x%d" % n, b"") for n in range(1500)), 3, False),
    "short": (b"", 40, False),
}
for _name, (_more, _connections, _core) in HELD.items():
    over_tls(f"held-{_name}", "CVE class: small heads, large tables", _more, _connections, core=_core)(held)


@over_tls("held-in-the-making", "CVE-2024-27316 class: heads in the making")
def in_the_making(attack: Any) -> None:
    for _ in range(60):
        conn = Http2(attack)
        number = conn.next()
        some = literal(b"x", b"y" * 1000) * 15
        whole = frame(HEADERS, END_STREAM, number, block(conn.fields({}, method=b"GET")) + some[:12_000])
        conn.send(whole + frame(CONTINUATION, 0, number, some) * 3)
    attack.hold(0.5)


# -- requests that two readers take for two


def each(
    attack: Any, cases: dict[str, Any], make: Callable[[Http2, int, Any], bytes], good: Callable[[Any], bool]
) -> None:
    """Each on a stream of its own, and on another connection where the last one was ended."""
    conn = Http2(attack)
    told = []
    for what, case in cases.items():
        if conn.over:
            conn = Http2(attack)
        number = conn.next()
        stream = conn.follow(number)
        conn.send(make(conn, number, case))
        conn.wait(number, limit=2.0)
        if not (good(stream) or (good is refused and conn.over)):
            told.append(f"{what}: {stream}")
    expect(attack, not told, "; ".join(told))
    if not conn.over:
        answered(attack, conn)


def refused(stream: Any) -> bool:
    return stream.refused


def taken(stream: Any) -> bool:
    return stream.answered


def echo(conn: Http2, number: int, change: Callable[[Fields], Fields]) -> bytes:
    """A good call whose fields are changed."""
    text = conn.attack.call("echo", b'{"text":"x"}')
    fields = conn.fields(conn.attack.modern("tools/call", "echo"), len(text))
    return head(number, change(fields)) + body(number, text)


def more(*fields: tuple[bytes, bytes]) -> Callable[[Fields], Fields]:
    return lambda have: [*have, *fields]


def before(*fields: tuple[bytes, bytes]) -> Callable[[Fields], Fields]:
    return lambda have: [*fields, *have]


def put(name: bytes, value: bytes) -> Callable[[Fields], Fields]:
    return lambda have: [(n, value if n == name else v) for n, v in have]


def without(*names: bytes) -> Callable[[Fields], Fields]:
    return lambda have: [(n, v) for n, v in have if n not in names]


PSEUDO: dict[str, Callable[[Fields], Fields]] = {
    "no method": without(b":method"),
    "no scheme": without(b":scheme"),
    "no path": without(b":path"),
    "no pseudo fields": without(b":method", b":scheme", b":path", b":authority"),
    "an empty path": put(b":path", b""),
    "an empty method": put(b":method", b""),
    "a path with a line": put(b":path", b"/mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
    "a path with a space": put(b":path", b"/mcp HTTP/1.1"),
    "a path without a slash": put(b":path", b"mcp"),
    "a path that is a URL": put(b":path", b"http://evil.example/mcp"),
    "a method with a space": put(b":method", b"POST /mcp HTTP/1.1\r\nx: "),
    "a method of nothing": put(b":method", b"\0"),
    "two methods": before((b":method", b"GET")),
    "two paths": before((b":path", b"/other")),
    "two schemes": before((b":scheme", b"http")),
    "two authorities": before((b":authority", b"evil.example")),
    "a late pseudo field": lambda have: [*have[1:], have[0]],
    "a second, late path": more((b":path", b"/other")),
    "an unknown pseudo field": before((b":unknown", b"x")),
    "a status": before((b":status", b"200")),
    "a protocol": before((b":protocol", b"websocket")),
    "a scheme with a path": put(b":scheme", b"https://evil.example/"),
    "an upper case pseudo field": lambda have: [(b":Method", b"POST"), *have[1:]],
}


@over_tls("malformed-pseudo-fields", "CVE class: smuggling, RFC 9113 8.3")
def pseudo(attack: Any) -> None:
    each(attack, PSEUDO, echo, refused)


PLAIN: dict[str, Callable[[Fields], Fields]] = {
    "upper case": more((b"X-Upper", b"y")),
    "an upper case length": more((b"Content-Length", b"1")),
    "connection": more((b"connection", b"close")),
    "connection of another": more((b"connection", b"mcp-method")),
    "keep-alive": more((b"keep-alive", b"timeout=5")),
    "proxy-connection": more((b"proxy-connection", b"keep-alive")),
    "transfer-encoding": more((b"transfer-encoding", b"chunked")),
    "upgrade": more((b"upgrade", b"h2c")),
    "te: gzip": more((b"te", b"gzip")),
    "te: trailers and chunked": more((b"te", b"trailers, chunked")),
    "a line in a value": more((b"x", b"y\r\ntransfer-encoding: chunked")),
    "a line feed in a value": more((b"x", b"y\nz: 1")),
    "a carriage return in a value": more((b"x", b"y\rz: 1")),
    "nothing in a value": more((b"x", b"y\0z")),
    "a space in a name": more((b"x y", b"z")),
    "a colon in a name": more((b"x:y", b"z")),
    "a colon behind a name": more((b"content-length:", b"1")),
    "a line in a name": more((b"x\r\ny", b"z")),
    "nothing in a name": more((b"x\0", b"z")),
    "a byte beyond ASCII in a name": more((b"x\xff", b"z")),
    "no name": more((b"", b"z")),
}


@over_tls("malformed-fields", "CVE class: smuggling, RFC 9113 8.2")
def plain(attack: Any) -> None:
    each(attack, PLAIN, echo, refused)


FINE: dict[str, Callable[[Fields], Fields]] = {
    "as it is": lambda have: have,
    "te: trailers": more((b"te", b"trailers")),
    "no length": without(b"content-length"),
    "bytes beyond ASCII in a value": more((b"x", b"\xc3\xbc")),
    "an empty value": more((b"x", b"")),
    "cookies in crumbs": more((b"cookie", b"a=b"), (b"cookie", b"c=d")),
    "expect": more((b"expect", b"100-continue")),
    "priority": more((b"priority", b"u=1, i")),
    "a host besides": lambda have: [*have, (b"host", dict(have)[b":authority"])],
    "a host instead": lambda have: [*without(b":authority")(have), (b"host", dict(have)[b":authority"])],
    "another order": lambda have: [*reversed(have[:4]), *reversed(have[4:])],
}


@over_tls("fields-that-are-fine", "RFC 9113 8.2 and 8.3")
def fine(attack: Any) -> None:
    each(attack, FINE, echo, taken)


def with_length(conn: Http2, number: int, case: tuple[list[bytes], bytes, bool]) -> bytes:
    lengths, text, bare = case
    fields = conn.fields(conn.attack.modern("tools/call", "echo"))
    fields += [(b"content-length", length) for length in lengths]
    return head(number, fields, end=bare) + (b"" if bare else body(number, text))


@over_tls("malformed-lengths", "CVE class: smuggling, RFC 9113 8.1.1")
def lengths(attack: Any) -> None:
    text = attack.call("echo", b'{"text":"x"}')
    size = len(text)
    smuggled = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}"
    cases = {
        "too long": ([b"%d" % (size + 1)], text, False),
        "too short": ([b"%d" % (size - 1)], text, False),
        "nothing promised": ([b"0"], text, False),
        "another request behind": ([b"%d" % size], text + smuggled, False),
        "nothing came": ([b"%d" % size], b"", True),
        "two": ([b"%d" % size, b"%d" % (size + 1)], text, False),
        "two in one": ([b"%d, %d" % (size, size + 1)], text, False),
        "below zero": ([b"-1"], text, False),
        "with a sign": ([b"+%d" % size], text, False),
        "beyond 64 bits": ([b"18446744073709551617"], text, False),
        "of letters": ([b"0x%x" % size], text, False),
        "of nothing": ([b""], text, False),
    }
    each(attack, cases, with_length, refused)


@over_tls("malformed-trailers", "CVE class: smuggling, RFC 9113 8.1")
def trailers(attack: Any) -> None:
    text = attack.call("echo", b'{"text":"x"}')

    def make(conn: Http2, number: int, rest: Callable[[int], bytes]) -> bytes:
        fields = conn.fields(attack.modern("tools/call", "echo"))
        return head(number, fields) + body(number, text, end=False) + rest(number)

    cases: dict[str, Callable[[int], bytes]] = {
        "a connection": lambda n: head(n, [(b"connection", b"close")], end=True),
        "upper case": lambda n: head(n, [(b"X-Upper", b"y")], end=True),
        "without an end": lambda n: head(n, [(b"x", b"y")]),
        "data behind": lambda n: head(n, [(b"x", b"y")]) + frame(DATA, END_STREAM, n, b"x"),
    }
    each(attack, cases, make, refused)
    good: dict[str, Callable[[int], bytes]] = {
        "some": lambda n: head(n, [(b"x", b"y")], end=True),
        "nothing": lambda n: head(n, [], end=True),
    }
    each(attack, good, make, taken)
    conn = Http2(attack)
    for _ in range(50):
        conn.send(make(conn, conn.next(), lambda n: head(n, [(b"x", b"y" * 60_000)], end=True)), 1.0)
    sound(attack, conn)


@over_tls("methods-odd", "CVE class: methods, RFC 9113 8.5")
def methods(attack: Any) -> None:
    names = (b"GET", b"HEAD", b"PUT", b"TRACE", b"PATCH", b"PROPFIND", b"PRI", b"QUERY", b"get", b"P" * 20_000)
    cases: dict[str, Callable[[Fields], Fields]] = {name.decode()[:20]: put(b":method", name) for name in names}
    cases["CONNECT"] = lambda _: [(b":method", b"CONNECT"), (b":authority", b"127.0.0.1:22")]
    cases["CONNECT with all"] = put(b":method", b"CONNECT")
    cases["CONNECT of a WebSocket"] = lambda have: [(b":protocol", b"websocket"), *put(b":method", b"CONNECT")(have)]
    each(attack, cases, echo, refused)


def foreign(attack: Any, cases: dict[str, Callable[[Fields], Fields]]) -> None:
    """As a page whose name leads here would ask: what is not for us is forbidden."""
    each(attack, cases, echo, lambda stream: stream.status == 403)


@over_tls("authority-foreign", "CVE class: DNS rebinding, RFC 9113 8.3.1", core=True)
def authority(attack: Any) -> None:
    here = attack.host.encode()
    port = b":%d" % attack.server.port
    names = [b"evil.example", b"evil.example" + port, b"localhost.evil.example" + port, b"127.0.0.1.evil.example"]
    names += [b"169.254.169.254", b"0.0.0.0" + port, b"[::ffff:169.254.169.254]" + port]
    cases: dict[str, Callable[[Fields], Fields]] = {name.decode(): put(b":authority", name) for name in names}
    cases["a good host besides"] = lambda have: [*put(b":authority", b"evil.example")(have), (b"host", here)]
    cases["a host instead"] = lambda have: [*without(b":authority")(have), (b"host", b"evil.example")]
    foreign(attack, cases)


@over_tls("authority-odd", "CVE class: URL parsing, RFC 9113 8.3.1")
def odd(attack: Any) -> None:
    """These are nobody's name, or that of two."""
    here = attack.host.encode()
    names = [here + b"@evil.example", b"evil.example@" + here, here + b"/", b"", here + b"#x", here + b" ", b"[" * 200]
    names += [here + b"," + here, here + b"\r\nx: y", b"a" * 20_000, b"127.0.0.1:99999999", b"evil.example:443"]
    cases: dict[str, Callable[[Fields], Fields]] = {repr(name)[:40]: put(b":authority", name) for name in names}
    cases["two hosts"] = lambda have: [*without(b":authority")(have), (b"host", here), (b"host", b"evil.example")]
    cases["no authority and no host"] = without(b":authority")
    each(attack, cases, echo, refused)


@over_tls("origin-foreign", "CVE class: DNS rebinding")
def origin(attack: Any) -> None:
    cases = {name: more((b"origin", name.encode())) for name in ("https://evil.example", "null", "http://[", "")}
    foreign(attack, cases)

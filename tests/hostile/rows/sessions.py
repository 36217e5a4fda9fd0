"""Sessions and streams of the handshake revisions over HTTP, and of the oldest transport."""

from typing import Any

from registry import server


def initialize(attack: Any, number: int = 0) -> bytes:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}}
    import json

    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params}).encode()


@server("sessions-1000", "HO-7c: many sessions", on="http", core=True)
def many(attack: Any) -> None:
    sock = attack.connect()
    body = initialize(attack)
    for _ in range(1000):
        if attack.post(body, sock=sock) is None:
            sock = attack.connect()


@server("sessions-big-facts", "HO-6: capabilities", on="http")
def facts(attack: Any) -> None:
    able = {"experimental": {f"x{n}": {"y": "z" * 100} for n in range(400)}}
    for _ in range(60):
        attack.session(capabilities=able)


@server("sessions-huge-info", "HO-6: capabilities", on="http")
def info(attack: Any) -> None:
    body = initialize(attack).replace(b'"h"', b'"%s"' % (b"h" * 3_000_000))
    attack.post(body)


@server("sessions-guesses", "issue 22: session-id guesses", on="http")
def guesses(attack: Any) -> None:
    sock = attack.connect()
    for number in range(1000):
        headers = {"Mcp-Session-Id": f"{number:032x}", "MCP-Protocol-Version": "2025-11-25"}
        if attack.post(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', headers, sock=sock) is None:
            sock = attack.connect()


@server("sessions-get-flood", "HO-4: GET streams", on="http", core=True)
def gets(attack: Any) -> None:
    for _ in range(30):
        session = attack.session()
        for _ in range(16):
            session.stream()
    attack.hold(0.5)


@server("sessions-get-same", "HO-4: GET streams of one session", on="http")
def same(attack: Any) -> None:
    session = attack.session()
    for _ in range(300):
        session.stream()
    attack.hold(0.3)


@server("sessions-delete-churn", "CVE class: churn", on="http")
def churn(attack: Any) -> None:
    for _ in range(150):
        attack.session().delete()


@server("sessions-last-event-id", "issue 22: Last-Event-ID", on="http")
def last_event(attack: Any) -> None:
    session = attack.session()
    junk = [
        "0",
        "-1",
        "9" * 5000,
        "x" * 60_000,
        "a-" * 20_000,
        "\x7f",
        "1_1_1",
        " ",
        "18446744073709551616",
        "%00",
        "é",
    ]
    for one in junk * 5:
        sock = session.stream(**{"Last-Event-ID": one})
        sock.head(0.3)
        sock.close()


@server("sessions-initialize-again", "issue 22: sessions", on="http")
def again(attack: Any) -> None:
    session = attack.session()
    for _ in range(200):
        session.post(initialize(attack))


@server("sessions-kept-events", "HO-6: events of idle sessions", on="http")
def events(attack: Any) -> None:
    call = b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"},"_meta":{"progressToken":1}}}'
    for _ in range(20):
        session = attack.session()
        session.start(call % (b"x" * 150_000)).close(reset=True)


@server("sessions-hung-up-calls", "HO-6: calls whose client hung up", on="http")
def hung_up(attack: Any) -> None:
    session = attack.session()
    call = b'{"jsonrpc":"2.0","id":"%d","method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"}}}'
    for number in range(100):
        session.start(call % (number, b"x" * 30_000)).close()


@server("sessions-in-flight", "HO-7: requests in flight", on="http", core=True)
def in_flight(attack: Any) -> None:
    session = attack.session()
    call = b'{"jsonrpc":"2.0","id":"%d","method":"tools/call","params":{"name":"slow","arguments":{"ms":2000}}}'
    for number in range(400):
        session.start(call % number)
    attack.hold(0.5)


@server("sessions-version-junk", "issue 22: headers", on="http")
def versions(attack: Any) -> None:
    sock = attack.connect()
    for one in ("", "0", "2025-13-45", "9999-99-99", "2024-11-05, 2025-11-25", "a" * 30_000):
        for _ in range(20):
            if (
                attack.post(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"MCP-Protocol-Version": one}, sock=sock)
                is None
            ):
                sock = attack.connect()


@server("sse-streams", "HO-4: the oldest transport", on="http")
def oldest(attack: Any) -> None:
    for _ in range(400):
        sock = attack.connect()
        sock.send(attack.head(None, {"Accept": "text/event-stream"}, verb="GET", target="/sse"))
    attack.hold(0.5)


@server("sse-post-guesses", "issue 22: session-id guesses", on="http")
def oldest_guesses(attack: Any) -> None:
    sock = attack.connect()
    for number in range(500):
        if (
            attack.post(
                b'{"jsonrpc":"2.0","id":1,"method":"ping"}', target=f"/messages?session_id={number:032x}", sock=sock
            )
            is None
        ):
            sock = attack.connect()


@server("sse-never-read", "HO-4: stalled readers of the oldest transport", on="http")
def never_read(attack: Any) -> None:
    stream = attack.connect()
    stream.send(attack.head(None, {"Accept": "text/event-stream"}, verb="GET", target="/sse"))
    stream.head(2.0)
    event = stream.until(b"\n\n", 2.0) or b""
    there = next((line[6:].decode().strip() for line in event.split(b"\n") if line.startswith(b"data: ")), "/messages")
    target = there[there.index("/", 8) :] if there.startswith("http") else there
    sock = attack.connect()
    attack.post(initialize(attack), target=target, sock=sock)
    attack.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', target=target, sock=sock)
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"}}}'
    for number in range(1, 30):
        if attack.post(call % (number, b"x" * 100_000), target=target, sock=sock, limit=1.0) is None:
            break
    attack.hold(0.3)


@server("sessions-tasks", "HO-7a: tasks", on="http", core=True)
def tasks(attack: Any) -> None:
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow_compute","arguments":{"seconds":3},"task":{"ttl":4000}}}'
    for _ in range(4):
        session = attack.session()
        for number in range(1, 251):
            if session.post(call % number, 2.0) is None:
                break
        session.delete()


@server("sessions-2026-tasks", "HO-7a: tasks", on="http")
def modern_tasks(attack: Any) -> None:
    import json

    from attack import META

    meta = {**META, "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    params = {"_meta": meta, "name": "slow_compute", "arguments": {"seconds": 2}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    sock = attack.connect()
    for _ in range(800):
        if attack.post(body, attack.modern("tools/call", "slow_compute"), sock=sock) is None:
            sock = attack.connect()

"""JSON that expands when it is decoded, or that is slow to read. Sent to servers; clients get the same as results."""

from collections.abc import Callable
from typing import Any

from registry import client, server

MIB = 1 << 20
MOST = 4 * MIB - 2048
"""Just below the longest message that a server takes, with room for what is around it."""


def filled(unit: bytes, start: bytes, end: bytes, size: int = MOST) -> bytes:
    """A list of as many of these as fit, with commas."""
    count = (size - len(start) - len(end) + 1) // (len(unit) + 1)
    return start + (unit + b",") * (count - 1) + unit + end


def members(size: int = MOST, long: bool = False) -> bytes:
    out, total, number = [], 2, 0
    while total < size:
        one = b'"%x":%d' % (number, 0) if not long else b'"%x":"xxxxxxxx"' % number
        out.append(one)
        total += len(one) + 1
        number += 1
    return b"{" + b",".join(out[:-1]) + b"}"


def nested(opening: bytes, closing: bytes, depth: int) -> bytes:
    return opening * depth + b"1" + closing * depth


VALUES: dict[str, tuple[Callable[[], bytes], str, bool]] = {
    "ones": (lambda: filled(b"1", b"[", b"]"), "HO-3", True),
    "empty-arrays": (lambda: filled(b"[]", b"[", b"]"), "HO-3", False),
    "empty-objects": (lambda: filled(b"{}", b"[", b"]"), "HO-3", False),
    "small-objects": (lambda: filled(b'{"a":0}', b"[", b"]"), "HO-3", False),
    "short-texts": (lambda: filled(b'"a"', b"[", b"]"), "HO-3 sibling", False),
    "empty-texts": (lambda: filled(b'""', b"[", b"]"), "HO-3 sibling", False),
    "nulls": (lambda: filled(b"null", b"[", b"]"), "HO-3 sibling", False),
    "floats": (lambda: filled(b"1.5", b"[", b"]"), "HO-3 sibling", False),
    "exponents": (lambda: filled(b"1e9", b"[", b"]"), "HO-3 sibling", False),
    "big-integers": (lambda: filled(b"99999999999999999999", b"[", b"]"), "CVE class: numbers without a bound", False),
    "members": (lambda: members(), "HO-3 sibling", True),
    "members-1m": (lambda: members(MIB, True), "HO-3 sibling", False),
    "same-key": (lambda: filled(b'"a":1', b"{", b"}"), "CVE class: duplicate keys", False),
    "number-4m": (lambda: b"1" * MOST, "HO-14; CVE-2020-10735 class", False),
    "number-5000": (lambda: b"7" * 5000, "HO-14; CVE-2020-10735 class", False),
    "numbers-4000": (lambda: filled(b"3" * 4000, b"[", b"]"), "CVE-2020-10735 class", False),
    "fraction-4m": (lambda: b"0." + b"1" * (MOST - 2), "CVE-2020-10735 class", False),
    "exponent-huge": (lambda: b"1e" + b"9" * 1000, "HO-14", False),
    "exponent-1e400": (lambda: b"1e400", "HO-14", False),
    "exponent-minus": (lambda: b"1e-999999999", "HO-14", False),
    "deep-arrays": (lambda: nested(b"[", b"]", MOST // 2 - 1), "CVE class: recursion", True),
    "deep-objects": (lambda: nested(b'{"a":', b"}", MOST // 6 - 1), "CVE class: recursion", False),
    "deep-120-wide": (lambda: filled(nested(b"[", b"]", 100), b"[", b"]"), "HO-3 sibling", False),
    "never-closed": (lambda: b"[" * MOST, "CVE class: recursion", False),
    "escapes": (lambda: b'"' + b"\\u0041" * (MOST // 6 - 1) + b'"', "JSON bomb", False),
    "newline-escapes": (lambda: b'"' + b"\\n" * (MOST // 2 - 1) + b'"', "JSON bomb", False),
    "surrogates": (lambda: b'"' + b"\\ud83d\\ude00" * (MOST // 12 - 1) + b'"', "JSON bomb", False),
    "lone-surrogates": (lambda: b'"' + b"\\ud800" * (MOST // 6 - 1) + b'"', "JSON bomb", False),
    "wide-letters": (lambda: b'"' + "\U0001f600".encode() * (MOST // 4 - 1) + b'"', "JSON bomb", False),
    "controls": (lambda: b'"' + b"\\u0001" * (MOST // 6 - 1) + b'"', "JSON bomb", False),
    "spaces": (lambda: b" " * MOST + b"1", "JSON bomb", False),
    "zeros": (lambda: b"[" + b"0," * (MOST // 2) + b"0]", "HO-3", False),
}
BOTH = {"ones", "members", "deep-arrays", "small-objects", "number-4m", "escapes"}
TO_CLIENT = [
    "ones",
    "empty-arrays",
    "small-objects",
    "short-texts",
    "members",
    "number-4m",
    "number-5000",
    "deep-arrays",
    "escapes",
    "lone-surrogates",
    "exponent-huge",
    "same-key",
    "wide-letters",
]


def as_argument(attack: Any, make: Callable[[], bytes]) -> None:
    attack.say(attack.call("any_value", b'{"value":%s}' % make()), name="any_value")


def as_result(attack: Any, make: Callable[[], bytes]) -> None:
    attack.answer_call(b'{"content":[],"structuredContent":{"value":%s}}' % make())


for _name, (_make, _source, _core) in VALUES.items():
    _on = "both" if _name in BOTH else ("http" if sum(map(ord, _name)) % 2 else "stdio")
    server(f"json-{_name}", _source, _make, on=_on, core="http" if _core and _on == "both" else _core)(as_argument)
    if _name in TO_CLIENT:
        client(
            f"result-{_name}",
            _source,
            _make,
            on="both" if _name == "ones" else _on if _on != "both" else "stdio",
            core=_core and "stdio",
        )(as_result)


@server("json-batch-ones", "HO-3", on="both")
def batch_ones(attack: Any) -> None:
    attack.say(filled(b"1", b"[", b"]"))


@server("json-batch-empty", "HO-3", on="both")
def batch_empty(attack: Any) -> None:
    attack.say(filled(b"{}", b"[", b"]"))


@server("json-four-at-once", "HO-3", on="http", core=True)
def four(attack: Any) -> None:
    body = filled(b"1", b"[", b"]", MIB - 1024)
    sockets = [attack.connect() for _ in range(4)]
    for sock in sockets:
        sock.send(attack.head(len(body), attack.modern("tools/call", "echo")) + body)
    for sock in sockets:
        sock.answer()


@server("json-id-long", "JSON bomb", on="both")
def long_id(attack: Any) -> None:
    attack.say(attack.request("tools/list", b"{}", "x" * (2 * MIB)), "tools/list")


@server("json-id-number-long", "JSON bomb", on="both")
def long_number(attack: Any) -> None:
    message = attack.request("tools/list", b"{}", 77).replace(b'"id":77', b'"id":' + b"7" * MIB)
    attack.say(message, "tools/list")


@server("json-method-long", "JSON bomb", on="both")
def long_method(attack: Any) -> None:
    attack.say(attack.request("x" * (2 * MIB)), "x")


@server("json-name-long", "JSON bomb", on="both")
def long_name(attack: Any) -> None:
    attack.say(attack.call("x" * (3 * MIB), b"{}"), name="x")


@server("json-token-long", "JSON bomb: progress token", on="both")
def long_token(attack: Any) -> None:
    meta = b'{"_meta":{"progressToken":"%s"},"name":"count","arguments":{"to":50}}' % (b"t" * 65536)
    if attack.http:
        session = attack.session()
        session.post(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % meta)
    else:
        attack.say(attack.request("tools/call", meta))


@server("json-meta-huge", "JSON bomb: _meta", on="both")
def huge_meta(attack: Any) -> None:
    meta = b'{"_meta":%s,"name":"echo","arguments":{"text":"x"}}' % members(2 * MIB)
    if attack.http:
        session = attack.session()
        session.post(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % meta)
    else:
        attack.say(attack.request("tools/call", meta))


@server("json-error-answer", "HO-3 sibling: arrays in an error", on="both")
def error_answer(attack: Any) -> None:
    body = b'{"jsonrpc":"2.0","id":"none","error":{"code":1,"message":"x","data":%s}}' % filled(b"1", b"[", b"]")
    if attack.http:
        attack.session().post(body)
    else:
        attack.say(body)


@server("json-notification", "HO-3 sibling: arrays in a notification", on="both")
def notification(attack: Any) -> None:
    body = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":%s}}' % filled(b"1", b"[", b"]")
    if attack.http:
        attack.session().post(body)
    else:
        attack.say(body)


@server("json-trailing", "JSON bomb: text behind the value", on="both")
def trailing(attack: Any) -> None:
    attack.say(attack.request("tools/list") + b"x" * (3 * MIB), "tools/list")


@server("json-unknown-members", "JSON bomb", on="both")
def unknown_members(attack: Any) -> None:
    message = attack.request("tools/list")
    attack.say(message[:-1] + b',"more":' + members(2 * MIB) + b"}", "tools/list")


@client("error-data-ones", "HO-3 sibling: arrays in an error", on="both")
def error_data(attack: Any) -> None:
    def answer(x: Any) -> None:
        x.done(b'{"code":-1,"message":"no","data":%s}' % filled(b"1", b"[", b"]"), b"error")

    attack.answer_call(answer)


@client("notification-ones", "HO-3 sibling: arrays in a notification", on="both")
def notified(attack: Any) -> None:
    def answer(x: Any) -> None:
        x.say(
            b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%s}}'
            % filled(b"1", b"[", b"]")
        )
        x.done(b'{"content":[]}')

    attack.answer_call(answer)


@client("line-of-array", "HO-3", on="both")
def line_of_array(attack: Any) -> None:
    def answer(x: Any) -> None:
        x.say(filled(b"1", b"[", b"]"))
        x.done(b'{"content":[]}')

    attack.answer_call(answer)


@client("error-message-escapes", "HO-14: escape sequences in an exception", on="both")
def message_escapes(attack: Any) -> None:
    attack.answer_call({"error!": {"code": -1, "message": "\x1b[2J" * 50_000}})


@client("instructions-huge", "JSON bomb", on="both")
def instructions(attack: Any) -> None:
    attack.play(
        {
            "initialize": b'{"protocolVersion":"2025-11-25","capabilities":%s,"serverInfo":{"name":"x","version":"1"},"instructions":"%s"}'
            % (members(MIB), b"x" * MIB)
        }
    )

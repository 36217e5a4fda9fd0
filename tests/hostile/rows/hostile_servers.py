"""Servers that never stop: lists, notifications, questions, lines, errors."""

import json
from typing import Any

from registry import client

MIB = 1 << 20


@client("tools-many", "issue 22: lists", on="both", core="stdio")
def many_tools(attack: Any) -> None:
    attack.list_tools(
        b"[" + b",".join(b'{"name":"t%d","inputSchema":{"type":"object"}}' % n for n in range(20_000)) + b"]"
    )


@client("tools-huge-descriptions", "issue 22: lists", on="both")
def descriptions(attack: Any) -> None:
    one = b'{"name":"t%d","description":"' + b"d" * 100_000 + b'","inputSchema":{"type":"object"}}'
    attack.list_tools(b"[" + b",".join(one % n for n in range(30)) + b"]")


@client("tools-same-name", "issue 22: lists", on="both")
def same_name(attack: Any) -> None:
    attack.list_tools(
        b"["
        + b",".join([b'{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}'] * 10_000)
        + b"]"
    )


@client("tools-junk-members", "issue 22: lists", on="both")
def junk(attack: Any) -> None:
    attack.list_tools(
        b"[" + b",".join([b"1", b"null", b'{"name":7}', b"[]", b'{"name":"x","inputSchema":[]}'] * 20_000) + b"]"
    )


@client("pages-endless", "HO-6: pages of one listing", on="both", core="stdio")
def endless(attack: Any) -> None:
    count = 0

    def page(x: Any) -> None:
        nonlocal count
        count += 1
        tools = b",".join(b'{"name":"t%d-%d","inputSchema":{"type":"object"}}' % (count, n) for n in range(10))
        if attack.sent > 2 * MIB:
            x.done(b'{"tools":[]}')
        else:
            x.done(b'{"tools":[%s],"nextCursor":"c%d"}' % (tools, count))

    attack.play({"tools/list": page})
    attack.do("list_tools", 10.0)


@client("pages-empty", "HO-6: pages of one listing", on="both")
def empty(attack: Any) -> None:
    count = 0

    def page(x: Any) -> None:
        nonlocal count
        count += 1
        x.done(b'{"tools":[]}' if count > 3000 else b'{"tools":[],"nextCursor":"c%d"}' % count)

    attack.play({"tools/list": page})
    attack.do("list_tools", 10.0)


@client("pages-loop", "issue 22: cursor loops", on="both", core="http")
def loop(attack: Any) -> None:
    attack.play({"tools/list": b'{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"again"}'})
    attack.do("list_tools", 10.0)


@client("pages-loop-of-three", "issue 22: cursor loops", on="both")
def three(attack: Any) -> None:
    count = 0

    def page(x: Any) -> None:
        nonlocal count
        count += 1
        x.done(b'{"tools":[],"nextCursor":"c%d"}' % (count % 3) if attack.sent < MIB else b'{"tools":[]}')

    attack.play({"tools/list": page})
    attack.do("list_tools", 10.0)


@client("pages-long-cursor", "issue 22: cursors", on="both")
def long_cursor(attack: Any) -> None:
    count = 0

    def page(x: Any) -> None:
        nonlocal count
        count += 1
        x.done(b'{"tools":[]}' if count > 3 else b'{"tools":[],"nextCursor":"%d%s"}' % (count, b"c" * MIB))

    attack.play({"tools/list": page})
    attack.do("list_tools", 10.0)


def flood(attack: Any, make: Any, count: int, answers: Any = None) -> None:
    """Many messages in the middle of a call."""

    def answer(x: Any) -> None:
        x.many([make(number) for number in range(count)])
        x.done(b'{"content":[]}')

    attack.answer_call(answer, answers=answers or {})
    attack.do("ping", 5.0)


ASKED = {
    "sampling": {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"},
    "elicitation": {"action": "decline"},
    "roots": [{"uri": "file:///one"}],
}
FLOODS: dict[str, tuple[Any, int, str, str]] = {
    "list-changed": (
        lambda n: b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
        10_000,
        "issue 22: list_changed floods",
        "stdio",
    ),
    "logs": (
        lambda n: b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x%d"}}' % n,
        8_000,
        "issue 22: log floods",
        "",
    ),
    "progress": (
        lambda n: b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}' % n,
        10_000,
        "issue 22: progress floods",
        "",
    ),
    "cancelled": (
        lambda n: b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}' % n,
        10_000,
        "issue 22: cancelled floods",
        "",
    ),
    "updated": (
        lambda n: b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://%d"}}' % n,
        8_000,
        "issue 22: notification floods",
        "",
    ),
    "unknown": (
        lambda n: b'{"jsonrpc":"2.0","method":"notifications/x%d"}' % n,
        10_000,
        "issue 22: notification floods",
        "",
    ),
    "responses": (
        lambda n: b'{"jsonrpc":"2.0","id":%d,"result":{}}' % (n + 500),
        15_000,
        "issue 22: answers to ids never asked",
        "stdio",
    ),
    "errors": (
        lambda n: b'{"jsonrpc":"2.0","id":"%d","error":{"code":1,"message":"m"}}' % n,
        15_000,
        "issue 22: answers to ids never asked",
        "",
    ),
    "null-ids": (
        lambda n: b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m%d"}}' % n,
        15_000,
        "issue 22: answers to ids never asked",
        "",
    ),
    "pings": (lambda n: b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % n, 1_000, "issue 22: ping floods", ""),
    "requests-unknown": (
        lambda n: b'{"jsonrpc":"2.0","id":%d,"method":"x%d"}' % (n, n),
        1_000,
        "issue 22: requests to the client",
        "",
    ),
    "roots": (
        lambda n: b'{"jsonrpc":"2.0","id":%d,"method":"roots/list"}' % n,
        1_000,
        "issue 22: requests to the client",
        "",
    ),
    "sampling": (
        lambda n: (
            b'{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":9}}'
            % n
        ),
        1_000,
        "issue 22: requests to the client",
        "http",
    ),
    "elicitation": (
        lambda n: (
            b'{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}'
            % n
        ),
        1_000,
        "issue 22: requests to the client",
        "",
    ),
    "not-json": (lambda n: b"garbage %d" % n, 10_000, "issue 22: lines that are no messages", ""),
    "empty-lines": (lambda n: b"", 200_000, "issue 22: lines that are no messages", ""),
    "not-utf8": (lambda n: b'{"jsonrpc":"2.0","method":"\xff\xfe"}', 10_000, "issue 22: invalid UTF-8", ""),
    "nuls": (lambda n: b"\0" * 50, 10_000, "issue 22: NULs", ""),
    "bom": (lambda n: b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"x"}', 10_000, "HO-14: BOM", ""),
    "version-1": (lambda n: b'{"jsonrpc":"1.0","id":%d,"result":{}}' % n, 10_000, "HO-14", ""),
    "batches": (lambda n: b'[{"jsonrpc":"2.0","method":"notifications/x"}]', 10_000, "issue 22: batches", ""),
}
for _name, (_make, _count, _source, _core) in FLOODS.items():
    client(
        f"flood-{_name}",
        _source,
        _make,
        _count,
        ASKED if _name in ("roots", "sampling", "elicitation") else None,
        on="both",
        core=_core,
    )(flood)


@client("answer-twice", "issue 22: duplicate answers", on="both")
def twice(attack: Any) -> None:
    def answer(x: Any) -> None:
        one = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}' % json.dumps(x.id).encode()
        x.many([one] * 5000)
        x.wire.close() if attack.http else None

    attack.answer_call(answer)


@client("answer-never", "issue 22: silence", on="both")
def never(attack: Any) -> None:
    attack.answer_call(lambda x: None)


@client("answer-id-long", "issue 22: ids", on="both")
def long_id(attack: Any) -> None:
    def answer(x: Any) -> None:
        x.say(b'{"jsonrpc":"2.0","id":"%s","method":"ping"}' % (b"i" * (2 * MIB)))
        x.done(b'{"content":[]}')

    attack.answer_call(answer)


@client("answer-bad", "HO-14: answers that are none", on="both")
def bad(attack: Any) -> None:
    for one in (
        b"\xef\xbb\xbf{}",
        b"[]",
        b"7",
        b'{"content":{}}',
        b'{"content":[{"type":"text"}]}',
        b'{"content":[[]]}',
        b"null",
    ):
        attack.answer_call(one)
        attack.close()


@client("answer-line-endless", "issue 22: very long lines", on="stdio")
def endless_line(attack: Any) -> None:
    attack.answer_call(lambda x: x.raw(b'{"jsonrpc":"2.0","id":' + b"1" * (4 * MIB - 100)))


@client("answer-in-one-byte-pieces", "issue 22: lines in pieces", on="stdio", core=True)
def pieces(attack: Any) -> None:
    def answer(x: Any) -> None:
        whole = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' % (
            json.dumps(x.id).encode(),
            b"x" * 3000,
        )
        for n in range(len(whole)):
            x.raw(whole[n : n + 1])

    attack.answer_call(answer)


@client("blocks-many", "issue 22: huge results", on="both", core="http")
def blocks(attack: Any) -> None:
    attack.answer_call(b'{"content":[' + b",".join([b'{"type":"text","text":"x"}'] * 50_000) + b"]}")


@client("text-4m", "issue 22: huge results", on="both")
def large(attack: Any) -> None:
    attack.answer_call(b'{"content":[{"type":"text","text":"%s"}]}' % (b"x" * (4 * MIB - 200)))


@client("image-4m", "issue 22: huge results", on="both")
def image(attack: Any) -> None:
    attack.answer_call(b'{"content":[{"type":"image","mimeType":"image/png","data":"%s"}]}' % (b"QUFB" * (MIB - 200)))


@client("structured-unlisted", "issue 22: huge results", on="stdio")
def structured(attack: Any) -> None:
    attack.answer_call(b'{"content":[],"structuredContent":{"a":[%s]}}' % b",".join([b'{"b":1}'] * 100_000))


@client("stderr-flood", "issue 22: stderr floods", on="stdio")
def stderr(attack: Any) -> None:
    import os

    def answer(x: Any) -> None:
        handle = attack.errors_of[-1]
        sent = 0
        os.set_blocking(handle, False)
        import select

        data = b"x" * 199 + b"\n"
        while sent < 4 * MIB and select.select([], [handle], [], 2.0)[1]:
            sent += os.write(handle, data * 300)
        attack.sent += sent
        x.done(b'{"content":[]}')

    attack.answer_call(answer)


@client("stderr-line-endless", "issue 22: stderr floods", on="stdio")
def stderr_line(attack: Any) -> None:
    import os
    import select

    def answer(x: Any) -> None:
        handle = attack.errors_of[-1]
        sent = 0
        os.set_blocking(handle, False)
        while sent < 4 * MIB and select.select([], [handle], [], 2.0)[1]:
            sent += os.write(handle, b"\x1b[31m" * 12_000)
        attack.sent += sent
        x.done(b'{"content":[]}')

    attack.answer_call(answer)


@client("stdout-closed", "issue 22: stdout closed", on="stdio", core=True)
def closed(attack: Any) -> None:
    attack.answer_call(lambda x: x.wire.close())
    attack.do("ping", 5.0)


@client("dies-again-and-again", "CVE class: restart loops", on="stdio")
def dies(attack: Any) -> None:
    attack.script["start"] = lambda wire: wire.close() if len(attack.wires) > 1 else None
    attack.answer_call(lambda x: x.wire.close(), revision="2026-07-28")
    for _ in range(8):
        attack.do("call_tool", 5.0, name="t", timeout=2)


@client("handshake-silent", "issue 22: silence", on="both")
def silent(attack: Any) -> None:
    attack.script["initialize"] = lambda x: None
    attack.script["server/discover"] = lambda x: None
    attack.connect(6.0, request_timeout=1, probe_timeout=0.5)


@client("handshake-flood", "issue 22: notification floods", on="stdio")
def handshake_flood(attack: Any) -> None:
    def answer(x: Any) -> None:
        x.many([b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'] * 8000)
        x.done(attack.usual(x.message))

    attack.play({"initialize": answer})


@client("handshake-version-junk", "issue 22: handshakes", on="both")
def versions(attack: Any) -> None:
    for one in (b'""', b"7", b'"' + b"9" * 100_000 + b'"', b"null", b'["2025-11-25"]'):
        attack.play(
            {"initialize": b'{"protocolVersion":%s,"capabilities":{},"serverInfo":{"name":"x","version":"1"}}' % one}
        )
        attack.close()


@client("discover-versions", "issue 22: handshakes", on="both")
def discover(attack: Any) -> None:
    versions = [f"20{n:02}-01-01" for n in range(100)] * 2000 + ["2026-07-28"]
    attack.script["server/discover"] = {
        "supportedVersions": versions,
        "capabilities": {},
        "ttlMs": 0,
        "cacheScope": "private",
        "resultType": "complete",
    }
    attack.connect(revision="2026-07-28")


@client("rounds-endless", "issue 22: elicitation answers", on="both")
def rounds(attack: Any) -> None:
    question = b'{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}}}}'
    attack.play({"tools/call": question}, revision="2026-07-28", answers={"elicitation": {"action": "decline"}})
    attack.do("call_tool", 6.0, name="t", timeout=3)


@client("rounds-many-questions", "issue 22: elicitation answers", on="both")
def questions(attack: Any) -> None:
    one = b'"q%d":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}}'
    question = b'{"resultType":"input_required","requestState":"s","inputRequests":{%s}}' % b",".join(
        one % n for n in range(3000)
    )
    attack.play({"tools/call": question}, revision="2026-07-28", answers={"elicitation": {"action": "decline"}})
    attack.do("call_tool", 6.0, name="t", timeout=3)


@client("templates-thousand-variables", "issue 22: URI templates", on="both", core="stdio")
def templates(attack: Any) -> None:
    template = "test://" + "".join("{v%d}" % n for n in range(5000))
    attack.play(
        {
            "resources/templates/list": json.dumps(
                {"resourceTemplates": [{"name": "x", "uriTemplate": template}] * 20}
            ).encode()
        }
    )
    attack.do("list", what="resource_templates")


@client("templates-many", "issue 22: URI templates", on="stdio")
def many_templates(attack: Any) -> None:
    one = b'{"name":"x%d","uriTemplate":"test://{a}{b}{c}{+d}{?e*,f*}{#g}"}'
    attack.play({"resources/templates/list": b'{"resourceTemplates":[%s]}' % b",".join(one % n for n in range(20_000))})
    attack.do("list", what="resource_templates")


@client("resources-many", "issue 22: lists", on="stdio")
def resources(attack: Any) -> None:
    attack.play(
        {
            "resources/list": b'{"resources":[%s]}'
            % b",".join(b'{"uri":"test://%d","name":"n"}' % n for n in range(30_000))
        }
    )
    attack.do("list", what="resources")


@client("resource-contents-many", "issue 22: huge results", on="stdio")
def contents(attack: Any) -> None:
    attack.play({"resources/read": b'{"contents":[%s]}' % b",".join([b'{"uri":"test://x","text":"y"}'] * 40_000)})
    attack.do("read_resource", uri="test://x")


@client("prompt-messages-many", "issue 22: huge results", on="stdio")
def messages(attack: Any) -> None:
    attack.play(
        {
            "prompts/get": b'{"messages":[%s]}'
            % b",".join([b'{"role":"user","content":{"type":"text","text":"x"}}'] * 30_000)
        }
    )
    attack.do("get_prompt", name="p")


@client("completion-values", "issue 22: completions", on="stdio")
def values(attack: Any) -> None:
    attack.play({"completion/complete": b'{"completion":{"values":[%s]}}' % b",".join([b'"v"'] * 500_000)})
    attack.do("complete", prompt="p", argument="a", value="x")


@client("sampling-messages", "issue 22: requests to the client", on="stdio")
def sampling(attack: Any) -> None:
    one = b'{"role":"user","content":{"type":"text","text":"x"}}'

    def answer(x: Any) -> None:
        x.say(
            b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[%s]}}'
            % b",".join([one] * 30_000)
        )
        x.done(b'{"content":[]}')

    attack.answer_call(answer, answers=ASKED)

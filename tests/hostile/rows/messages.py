"""Messages that are right by themselves and too many, or too large where nobody expects it."""

from typing import Any

from registry import server


def fill(attack: Any, make: Any, count: int) -> None:
    """Many messages: in one write on a pipe, one after the other in a session over HTTP."""
    if attack.http:
        session = attack.session()
        if b'"slow"' in make(0):
            for number in range(200):
                session.start(make(number))
            attack.hold(0.5)
            return
        for number in range(min(count, 400)):
            if session.post(make(number), 3.0) is None:
                session.sock = attack.connect()
        return
    attack.raw(b"\n".join(make(number) for number in range(count)) + b"\n")
    attack.settle()


MANY: dict[str, tuple[Any, int, str, bool]] = {
    "cancelled": (
        lambda n: b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"x"}}' % n,
        20_000,
        "issue 22: cancelled floods",
        True,
    ),
    "progress": (
        lambda n: b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}' % n,
        20_000,
        "issue 22: progress floods",
        False,
    ),
    "notifications": (
        lambda n: b'{"jsonrpc":"2.0","method":"notifications/x%d"}' % n,
        20_000,
        "issue 22: notification floods",
        False,
    ),
    "initialized": (
        lambda n: b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        20_000,
        "issue 22: notification floods",
        False,
    ),
    "roots-changed": (
        lambda n: b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
        20_000,
        "issue 22: notification floods",
        False,
    ),
    "responses": (
        lambda n: b'{"jsonrpc":"2.0","id":%d,"result":{}}' % n,
        20_000,
        "issue 22: answers to nothing",
        False,
    ),
    "errors": (
        lambda n: b'{"jsonrpc":"2.0","id":"%d","error":{"code":1,"message":"x"}}' % n,
        20_000,
        "issue 22: answers to nothing",
        False,
    ),
    "unknown": (
        lambda n: b'{"jsonrpc":"2.0","id":%d,"method":"x%d"}' % (n, n),
        4_000,
        "issue 22: unknown methods",
        True,
    ),
    "ping": (lambda n: b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % n, 4_000, "issue 22: pings", False),
    "bad": (lambda n: b'{"jsonrpc":"2.0","id":%d,"method":7}' % n, 4_000, "issue 22: work for errors", False),
    "same-id": (lambda n: b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 4_000, "issue 22: ids", False),
    "log-level": (
        lambda n: b'{"jsonrpc":"2.0","id":%d,"method":"logging/setLevel","params":{"level":"%s"}}' % (n, b"x" * 500),
        2_000,
        "issue 22: log levels",
        False,
    ),
    "tools-list": (
        lambda n: b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}' % n,
        200,
        "small questions, long answers",
        False,
    ),
    "subscribe": (
        lambda n: b'{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"test://%d"}}' % (n, n),
        3_000,
        "HO-6: subscriptions",
        False,
    ),
    "subscribe-long": (
        lambda n: (
            b'{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"test://%s/%d"}}'
            % (n, b"u" * 8000, n)
        ),
        400,
        "HO-6: subscriptions",
        False,
    ),
    "calls-slow": (
        lambda n: (
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow","arguments":{"ms":300}}}' % n
        ),
        600,
        "HO-7: in flight",
        True,
    ),
    "calls-echo": (
        lambda n: (
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}' % n
        ),
        400,
        "issue 22: calls",
        False,
    ),
    "calls-cancelled": (
        lambda n: (
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow","arguments":{"ms":5000}}}' % n
            if n % 2 == 0
            else b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}' % (n - 1)
        ),
        1_000,
        "HO-13: cancelled calls",
        False,
    ),
    "calls-unknown": (
        lambda n: b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"nope%d"}}' % (n, n),
        2_000,
        "issue 22: work for errors",
        False,
    ),
}
for _name, (_make, _count, _source, _core) in MANY.items():
    server(f"many-{_name}", _source, _make, _count, on="both", core="stdio" if _core else False)(fill)

ONE: dict[str, tuple[str, Any, str | None, str, bool]] = {
    "cursor-long": ("tools/list", lambda: {"cursor": "c" * 3_000_000}, None, "issue 22: cursors", False),
    "cursor-base64": ("tools/list", lambda: {"cursor": "QUFB" * 700_000}, None, "issue 22: cursors", False),
    "cursor-braces": ("resources/list", lambda: {"cursor": "e30" + "{" * 500_000}, None, "issue 22: cursors", False),
    "complete-long": (
        "completion/complete",
        lambda: {
            "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": "p" * 3_500_000},
        },
        None,
        "issue 22: completions",
        True,
    ),
    "complete-context": (
        "completion/complete",
        lambda: {
            "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": "p"},
            "context": {"arguments": {f"a{n}": "x" for n in range(100_000)}},
        },
        None,
        "issue 22: completions",
        False,
    ),
    "complete-template": (
        "completion/complete",
        lambda: {
            "ref": {"type": "ref/resource", "uri": "test://template/" + "{id}" * 500_000},
            "argument": {"name": "id", "value": "x"},
        },
        None,
        "issue 22: completions",
        False,
    ),
    "prompt-arguments": (
        "prompts/get",
        lambda: {"name": "test_prompt_with_arguments", "arguments": {f"a{n}": "x" for n in range(100_000)}},
        "test_prompt_with_arguments",
        "issue 22: prompts",
        False,
    ),
    "prompt-long": (
        "prompts/get",
        lambda: {"name": "test_prompt_with_arguments", "arguments": {"arg1": "x" * 3_000_000, "arg2": ""}},
        "test_prompt_with_arguments",
        "issue 22: prompts",
        False,
    ),
    "level-long": ("logging/setLevel", lambda: {"level": "d" * 3_500_000}, None, "issue 22: log levels", False),
    "task-get-long": ("tasks/get", lambda: {"taskId": "t" * 3_500_000}, None, "issue 22: tasks", False),
    "task-cancel-junk": ("tasks/cancel", lambda: {"taskId": ["x"] * 100_000}, None, "issue 22: tasks", False),
    "task-update": (
        "tasks/update",
        lambda: {"taskId": "t", "inputResponses": {f"k{n}": {} for n in range(100_000)}},
        None,
        "issue 22: tasks",
        False,
    ),
    "listen-all": (
        "subscriptions/listen",
        lambda: {"notifications": {"resourceSubscriptions": ["u"] * 400_000}},
        None,
        "issue 22: subscriptions",
        True,
    ),
    "request-state": (
        "tools/call",
        lambda: {"name": "test_input_required_result_request_state", "arguments": {}, "requestState": "A" * 3_000_000},
        "test_input_required_result_request_state",
        "issue 22: request states",
        False,
    ),
    "input-responses": (
        "tools/call",
        lambda: {
            "name": "two_questions",
            "arguments": {},
            "inputResponses": {f"k{n}": {"action": "accept", "content": {"left": "x"}} for n in range(50_000)},
        },
        "two_questions",
        "issue 22: elicitation answers",
        False,
    ),
    "arguments-wrong": (
        "tools/call",
        lambda: {"name": "add", "arguments": {f"x{n}": n for n in range(150_000)}},
        "add",
        "HO-1 sibling: validation of inputs",
        True,
    ),
    "arguments-wrong-array": (
        "tools/call",
        lambda: {"name": "draft7", "arguments": {"pair": ["abcdef"] * 300_000}},
        "draft7",
        "HO-1 sibling: validation of inputs",
        False,
    ),
    "arguments-echo-extra": (
        "tools/call",
        lambda: {"name": "echo", "arguments": {"text": "x", **{f"x{n}": 0 for n in range(150_000)}}},
        "echo",
        "HO-1 sibling: validation of inputs",
        False,
    ),
    "arguments-2020": (
        "tools/call",
        lambda: {"name": "json_schema_2020_12_tool", "arguments": {f"x{n}": 0 for n in range(150_000)}},
        "json_schema_2020_12_tool",
        "HO-1 sibling: validation of inputs",
        False,
    ),
    "count": ("tools/call", lambda: {"name": "count", "arguments": {"to": 500}}, "count", "issue 22: progress", False),
    "echo-4m": (
        "tools/call",
        lambda: {"name": "echo", "arguments": {"text": "x" * 4_000_000}},
        "echo",
        "a long text",
        True,
    ),
    "print-1m": (
        "tools/call",
        lambda: {"name": "print", "arguments": {"text": "x\n" * 50_000}},
        "print",
        "HO-8: standard output",
        False,
    ),
}
for _name, (_method, _params, _tool, _source, _core) in ONE.items():

    def _play(attack: Any, method: str, params: Any, tool: str | None) -> None:
        attack.tell(method, params(), tool, 1.0 if "listen" in method else 8.0)

    server(f"one-{_name}", _source, _method, _params, _tool, on="both", core="http" if _core else False)(_play)


@server("one-progress-count", "HO-13: a loop that only reports progress", on="both")
def progress(attack: Any) -> None:
    message = b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"count","arguments":{"to":5000}}}'
    if attack.http:
        attack.session().post(message % b"1")
    else:
        attack.say(message % b'"c"')


@server("answers-elicitation-huge", "issue 22: elicitation answers", on="both", core="stdio")
def elicitation(attack: Any) -> None:
    content = b'{"username":"%s","email":"a@b.example",%s}' % (
        b"x" * 500_000,
        b",".join(b'"k%d":"v"' % n for n in range(100_000)),
    )
    ask(
        attack,
        b'{"name":"test_elicitation","arguments":{"message":"Who?"}}',
        b'{"action":"accept","content":%s}' % content,
    )


@server("answers-sampling-huge", "issue 22: sampling answers", on="both")
def sampling(attack: Any) -> None:
    blocks = b",".join([b'{"type":"text","text":"x"}'] * 100_000)
    answer = b'{"role":"assistant","model":"m","content":[%s]}' % blocks
    ask(attack, b'{"name":"test_sampling","arguments":{"prompt":"Hi"}}', answer)


@server("answers-roots-huge", "issue 22: roots", on="both")
def roots(attack: Any) -> None:
    many = b",".join(b'{"uri":"file:///%d"}' % n for n in range(100_000))
    ask(attack, b'{"name":"roots","arguments":{}}', b'{"roots":[%s]}' % many)


@server("answers-twice", "issue 22: answers", on="both")
def twice(attack: Any) -> None:
    ask(
        attack,
        b'{"name":"test_sampling","arguments":{"prompt":"Hi"}}',
        b'{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}',
        200,
    )


@server("questions-never-answered", "issue 22: questions kept", on="both")
def unanswered(attack: Any) -> None:
    call = b'{"jsonrpc":"2.0","id":"q%d","method":"tools/call","params":{"name":"test_elicitation","arguments":{"message":"%s"}}}'
    if attack.http:
        session = attack.session()
        for number in range(200):
            session.start(call % (number, b"m" * 5000))
        attack.hold(0.3)
        session.delete()
        return
    attack.raw(b"".join(call % (number, b"m" * 5000) + b"\n" for number in range(200)))
    attack.settle()
    attack.raw(
        b"".join(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q%d"}}\n' % n
            for n in range(200)
        )
    )
    attack.settle()


def ask(attack: Any, params: bytes, answer: bytes, times: int = 1) -> None:
    """Calls a tool that asks, and answers as the row says."""
    import json
    import queue

    call = b'{"jsonrpc":"2.0","id":"ask","method":"tools/call","params":%s}' % params
    if attack.http:
        session = attack.session()
        sock = session.start(call)
        if sock.head(3.0) is None:
            return
        while (event := sock.until(b"\n\n", 3.0)) is not None:
            data = next((line[6:] for line in event.split(b"\n") if line.startswith(b"data: {")), None)
            if data is None:
                continue
            asked = json.loads(data)
            if "method" in asked and "id" in asked:
                for _ in range(times):
                    session.post(b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(asked["id"]).encode(), answer))
            elif "method" not in asked:
                return
        return
    done = attack.pipe.expect("ask")
    attack.line(call)
    try:
        asked = attack.pipe.asked.get(timeout=3.0)
        for _ in range(times):
            attack.line(b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(asked["id"]).encode(), answer))
        done.get(timeout=8.0)
    except queue.Empty:
        return

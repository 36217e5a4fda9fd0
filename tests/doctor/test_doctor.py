"""Tests of `tricorn doctor` with the zoo: each fault is found, and nothing in a good server.

`TRICORN_COMMAND` is the command, `TRICORN_EVERYTHING` the fixture server; else they are those of target/release.
"""

import contextlib
import json
import os
import shlex
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import zoo

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # a dependency of pytest there

Json = dict[str, Any]

ZOO = Path(__file__).with_name("zoo.py")
BUILT = Path(__file__).parents[2] / "target/release"
COMMAND = shlex.split(os.environ.get("TRICORN_COMMAND", str(BUILT / "tricorn")))
EVERYTHING = os.environ.get("TRICORN_EVERYTHING", str(BUILT / "example-everything"))
FAULTS: dict[str, Json] = {
    fault["name"]: fault for fault in tomllib.loads(ZOO.with_name("faults.toml").read_text("utf-8"))["fault"]
}
LIMIT = 150
"""Seconds for an examination: one takes ten, and of a server that is silent thirty."""


def transports(name: str) -> list[str]:
    """The transports over which a fault is there."""
    return ["stdio"] if name in zoo.STDIO else ["http"] if name in zoo.HTTP else ["stdio", "http"]


CASES = [(name, transport) for name in ["good", *zoo.FAULTS] for transport in transports(name)]
REVISIONS = [*zoo.LEGACY, zoo.MODERN, "legacy", "modern"]


def doctor(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    env = {**os.environ, "TRICORN_CLIENT_SECRET": "zoo-secret"}
    return subprocess.run(
        [*COMMAND, "doctor", *words], capture_output=True, encoding="utf-8", timeout=LIMIT, env=env, check=False
    )


def examine(name: str, transport: str, *words: str) -> tuple[int, Json]:
    """The status and the report of a server of the zoo."""
    server = [sys.executable, str(ZOO), name]
    if transport == "stdio":
        run = doctor("--json", *words, "--", *server)
    else:
        client = ["--client", "zoo"] if name in zoo.AUTH else []
        run = doctor("--json", *client, "--http", "--", *server, "--http", "0")
    assert run.stdout, run.stderr
    return run.returncode, json.loads(run.stdout)


def named(report: Json) -> dict[str, Json]:
    """The findings by their names."""
    return {finding["name"]: finding for finding in report["findings"]}


@pytest.mark.parametrize(("name", "transport"), CASES)
def test_the_fault_is_found_and_no_other_error(name: str, transport: str) -> None:
    status, report = examine(name, transport)
    found = named(report)
    if name == "good":
        assert (status, found, report["score"]) == (0, {}, 100)
        return
    assert name in found, report
    for member in ("severity", "wrong", "fix"):
        assert found[name][member] == FAULTS[name][member]
    assert found[name]["evidence"]
    errors = {other for other, finding in found.items() if finding["severity"] == "error"}
    assert errors == ({name} if FAULTS[name]["severity"] == "error" else set()), report
    unreached = name in ("no-start", "dies-early")
    assert status == (3 if unreached else 1 if errors else 0)
    score = 0 if report["failure"] else max(0, 100 - 20 * report["errors"] - 5 * report["warnings"])
    assert report["score"] == score


def test_a_score_is_demanded() -> None:
    server = ["--", sys.executable, str(ZOO), "no-description"]
    assert doctor("--fail-under", "95", *server).returncode == 0
    assert doctor("--fail-under", "96", *server).returncode == 1


def test_hosts_are_chosen() -> None:
    run = doctor("--json", "--profile", "openai,claude", "--", sys.executable, str(ZOO), "array-no-items")
    assert (run.returncode, json.loads(run.stdout)["findings"]) == (0, [])
    run = doctor("--json", "--profile", "vscode", "--", sys.executable, str(ZOO), "array-no-items")
    assert (run.returncode, [*named(json.loads(run.stdout))]) == (1, ["array-no-items"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_one_revision_alone(revision: str) -> None:
    status, report = examine("good", "stdio", "--revision", revision)
    assert (status, report["findings"]) == (0, [])
    if revision[0] == "2":
        assert report["revisions"] == [revision]
    status, report = examine("twin-names", "stdio", "--revision", revision)
    assert (status, [*named(report)]) == (1, ["twin-names"])


def test_junit(tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    assert doctor("--junit", str(file), "--", sys.executable, str(ZOO), "twin-names").returncode == 1
    suite = ET.parse(file).getroot()[0]
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["twin-names"]
    assert len(suite) > 40


def test_tools_that_change_something_are_called_only_if_asked() -> None:
    server = ["--", sys.executable, str(ZOO), "good"]
    assert json.loads(doctor("--json", *server).stdout)["skipped"] != []
    assert json.loads(doctor("--json", "--call", *server).stdout)["skipped"] == []


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["no-such-file.py"], 2, "there is no file"),
        (["--revision", "1999-01-01", "--", "cat"], 2, "expected one of"),
        (["http://127.0.0.1:9/mcp"], 3, "cannot connect"),
        (["--fail-under", "101", "--", "cat"], 2, "101"),
        (["--client", "zoo", "--http=http://127.0.0.1:9/mcp", "http://127.0.0.1:9/mcp"], 2, "is not started here"),
    ],
)
def test_misuse(words: list[str], status: int, said: str) -> None:
    run = doctor(*words)
    assert (run.returncode, said in run.stderr) == (status, True), run.stderr


def test_what_a_server_says_obeys_no_terminal(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text("import sys\nprint('\\x1b[2J\\x1b]0;owned', file=sys.stderr)\nsys.exit(3)\n")
    run = doctor("--", sys.executable, str(server))
    assert run.returncode == 3
    assert "dies-early" in run.stdout
    assert "\x1b" not in run.stdout + run.stderr


SERVER = """
import json, os, sys, time
for line in sys.stdin:
    message = {} if line.startswith("{bad") else json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    answer = {"error": {"code": -32601, "message": "Method not found"}}
    if method == "initialize":
        known = params["protocolVersion"] >= "2024"
        answer = {"result": {"protocolVersion": params["protocolVersion"] if known else "2025-11-25",
                             "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}
    elif method == "ping":
        answer = {"result": {}}
    elif method == "tools/list":
        answer = {"result": {"tools": []}}
    elif method == "tools/call":
        answer = {"error": {"code": -32602, "message": "Unknown tool"}}
    MORE
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""
"""A server without tools, to which something is added."""


def small(folder: Path, more: str) -> list[str]:
    """The command of a server that does this before it answers."""
    file = folder / "server.py"
    file.write_text(SERVER.replace("MORE", more))
    return [sys.executable, str(file), "--api-key", "canary-of-arguments"]


def test_a_slow_server_has_no_other_finding(tmp_path: Path) -> None:
    server = small(tmp_path, "if method != 'initialize': time.sleep(3.3)")
    run = doctor("--json", "--revision", "legacy", "--", *server)
    assert (run.returncode, [*named(json.loads(run.stdout))]) == (0, []), run.stdout


@pytest.mark.parametrize(
    ("more", "name", "evidence"),
    [
        ("if method == 'tools/list': continue", "tools-lie", "no answer"),
        ("if method == 'tools/call': sys.exit(3)", "dies", "exit status: 3"),
        (
            "if method == 'tools/list': answer = {'result': {'tools': [{'name': 'late', 'description': 'Late.',"
            " 'inputSchema': {'type': 'object', 'properties': {}, 'additionalProperties': False},"
            " 'annotations': {'readOnlyHint': True}}]}}\n"
            "    if params.get('name') == 'late':\n"
            "        print(json.dumps({'jsonrpc': '2.0', 'id': message.pop('id'), 'result': {'content': []}}))\n"
            "        told = {'progressToken': params['_meta']['progressToken'], 'progress': 1}\n"
            "        told = {'jsonrpc': '2.0', 'method': 'notifications/progress', 'params': told}\n"
            "        print(json.dumps(told), flush=True)",
            "progress-back",
            "late: progress after its answer",
        ),
        (
            "if method == 'tools/list': answer = {'result': {'tools': [{'name': 'other', 'description': 'Other.',"
            " 'inputSchema': {'type': 'object', 'properties': {}, 'additionalProperties': False},"
            " 'annotations': {'readOnlyHint': True}}]}}\n"
            "    if params.get('name') == 'other':\n"
            "        told = {'jsonrpc': '2.0', 'method': 'notifications/progress',"
            " 'params': {'progressToken': 'of-nobody', 'progress': 1}}\n"
            "        print(json.dumps(told), flush=True)\n"
            "        answer = {'result': {'content': []}}",
            "progress-back",
            'other: under the token "of-nobody"',
        ),
        ("if method == 'ping': answer = {'error': {'code': -32601, 'message': 'no'}}", "ping-silent", "-32601"),
        ("if method == 'ping': answer = {}", "result-and-error", '"jsonrpc":"2.0"'),
        ("if 'id' in message: sys.stdout.buffer.write(bytes([0xEF, 0xBB, 0xBF]))", "not-utf8", "a byte order mark"),
        (
            "if method == 'initialize': answer['result']['capabilities']['prompts'] = {}",
            "lists-lie",
            "prompts/list: the error",
        ),
    ],
)
def test_what_is_not_answered_is_said(tmp_path: Path, more: str, name: str, evidence: str) -> None:
    run = doctor("--json", "--revision", "legacy", "--", *small(tmp_path, more))
    found = named(json.loads(run.stdout))
    assert (run.returncode, [*found]) == (1, [name]), run.stdout
    assert evidence in found[name]["evidence"][0]


WORD: Json = {"type": "string", "description": "A word."}


def tool(name: str = "extra", words: str = "Does nothing.", **arguments: Json) -> Json:
    """A tool with these arguments."""
    schema = {"type": "object", "properties": arguments, "required": [*arguments], "additionalProperties": False}
    return {"name": name, "description": words, "inputSchema": schema}


@pytest.mark.parametrize(
    ("tools", "name", "evidence"),
    [
        ([tool(words="long " * 2000)], "too-big", "extra: 9 KiB"),
        ([tool(f"tool_{at}", words="long " * 800) for at in range(20)], "too-big", "20 tools of"),
        ([tool(a={"type": "string"})], "no-description", 'the argument "a" of "extra"'),
        ([tool("n" * 51)], "host-name", "more than 50 characters"),
        (
            [{**tool(), "inputSchema": {"type": "object", "properties": {"a": WORD}, "required": ["a"]}}],
            "not-strict",
            "additionalProperties",
        ),
        (
            [tool(a={"type": "array", "description": "A list.", "items": {"anyOf": [{"type": "string"}]}})],
            "gemini-keyword",
            "anyOf",
        ),
    ],
    ids=["a-tool", "all-tools", "argument", "long-name", "additional", "items"],
)
def test_definitions_that_models_stumble_over(tmp_path: Path, tools: list[Json], name: str, evidence: str) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(tools))
    more = f"if method == 'tools/list': answer = {{'result': {{'tools': json.load(open({str(file)!r}))}}}}"
    run = doctor("--json", "--revision", "legacy", "--", *small(tmp_path, more))
    found = named(json.loads(run.stdout))
    assert (run.returncode, [*found]) == (0, [name]), run.stdout
    assert evidence in found[name]["evidence"][0]


def test_secrets_that_were_given_are_not_shown(tmp_path: Path) -> None:
    more = "if method == 'tools/list': print(os.environ['A'], sys.argv, file=sys.stderr); sys.exit(3)"
    file = tmp_path / "report.xml"
    for words in ([], ["--json"]):
        run = doctor(*words, "--junit", str(file), "--env", "A=canary-of-environment", "--", *small(tmp_path, more))
        assert "dies" in run.stdout
        assert "canary" not in run.stdout + run.stderr + file.read_text()


def test_a_server_that_is_not_there_has_a_report(tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    run = doctor("--json", "--junit", str(file), "http://127.0.0.1:9/mcp?token=canary")
    assert run.returncode == 3
    assert "cannot connect" in json.loads(run.stdout)["failure"]
    assert [case.get("name") for case in ET.parse(file).getroot()[0]] == ["examination"]
    assert "canary" not in run.stdout + run.stderr + file.read_text()


def test_a_large_answer_is_no_noise(tmp_path: Path) -> None:
    more = "if method == 'tools/call': answer['error']['message'] = 'x' * (9 << 20)"
    report = json.loads(doctor("--json", "--revision", "legacy", "--", *small(tmp_path, more)).stdout)
    assert (report["findings"], "bytes" in report["skipped"][0]["why"]) == ([], True)


@contextlib.contextmanager
def serving(status: int, body: bytes | Callable[[], bytes], **headers: str) -> Iterator[str]:
    """A server that answers everything so."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"] or 0))
            content = body if isinstance(body, bytes) else body()
            self.send_response(status)
            for name, value in {"content-length": str(len(content)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.do_POST()

        def do_OPTIONS(self) -> None:
            self.do_POST()

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "headers", "said"),
    [
        (
            200,
            b"<html>\x1b[2J",
            {"content_type": "text/html"},
            "200, text/html: <html>\\u{1b}[2J; is it the URL of a web",
        ),
        (404, b"", {}, "404; is it another path, such as /mcp?"),
        (
            307,
            b"",
            {"location": "http://a.example/x?token=canary"},
            "it redirects to http://a.example/x: give that URL",
        ),
        (500, b"oops", {}, "500: oops"),
    ],
)
def test_what_is_at_a_url_is_said(status: int, body: bytes, headers: dict[str, str], said: str) -> None:
    with serving(status, body, **headers) as url:
        run = doctor(url)
    assert (run.returncode, said in run.stderr) == (3, True), run.stderr


@pytest.mark.parametrize(
    ("headers", "severity"),
    [({"www_authenticate": "Bearer"}, "warning"), ({"www_authenticate": 'Bearer resource_metadata="URL"'}, "error")],
)
def test_a_document_that_is_missing_is_said(tmp_path: Path, headers: dict[str, str], severity: str) -> None:
    with serving(404, b"") as nothing:
        given = {name: value.replace("URL", nothing) for name, value in headers.items()}
        file = tmp_path / "report.xml"
        with serving(401, b"", **given) as url:
            run = doctor("--json", "--junit", str(file), url)
    report = json.loads(run.stdout)
    assert {name: finding["severity"] for name, finding in named(report).items()} == {"no-metadata": severity}
    assert run.returncode == (1 if severity == "error" else 4)
    assert "a login is needed" in report["failure"]
    assert [case.get("name") for case in ET.parse(file).getroot()[0] if case.find("error") is not None] == [
        "examination"
    ]


def test_an_authorization_server_without_its_document_is_said() -> None:
    document: Json = {}
    with contextlib.ExitStack() as stack:
        nothing = stack.enter_context(serving(404, b""))
        metadata = stack.enter_context(serving(200, lambda: json.dumps(document).encode()))
        challenge = f'Bearer resource_metadata="{metadata}"'
        url = stack.enter_context(serving(401, b"", www_authenticate=challenge))
        document.update(resource=url, authorization_servers=[nothing])
        run = doctor("--json", url)
    found = named(json.loads(run.stdout))
    assert (run.returncode, [*found]) == (1, ["no-metadata"]), run.stdout
    places = found["no-metadata"]["evidence"][0]
    assert places.count("HTTP status 404") == 3
    assert "/.well-known/oauth-authorization-server/mcp: " in places


def test_the_url_of_a_server_is_found_among_others(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "import http.server, sys\n"
        f"sys.path.insert(0, {str(ZOO.parent)!r})\n"
        "import zoo\n"
        "server = zoo.Server(0, zoo.Handler)\n"
        "print('Manual: https://manual.example/mcp', file=sys.stderr)\n"
        "print(f'running on {server.origin} (Ctrl+C to quit)', file=sys.stderr, flush=True)\n"
        "server.serve_forever()\n"
    )
    run = doctor("--json", "--http", "--", sys.executable, str(server))
    report = json.loads(run.stdout)
    assert (run.returncode, report["findings"], report["revisions"]) == (0, [], REVISIONS[:5])


@pytest.mark.parametrize(("name", "status"), [("good", 4), ("no-challenge", 1)])
def test_a_login_that_is_needed(name: str, status: int) -> None:
    run = doctor("--http", "--json", "--", sys.executable, str(ZOO), name, "--http", "0", "--auth")
    report = json.loads(run.stdout)
    assert (run.returncode, "--client" in run.stderr) == (status, True), run.stderr
    assert [*named(report)] == ([] if name == "good" else [name])
    assert report["skipped"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_fixture_server(transport: str) -> None:
    if not Path(EVERYTHING).is_file():
        pytest.skip(f"TRICORN_EVERYTHING: {EVERYTHING} is not there")
    words = ["--http", "127.0.0.1:0"] if transport == "http" else []
    # One of its tools has allOf at the top, as the conformance suite wants it.
    hosts = ["--profile", "openai,openai-strict,gemini,vscode"]
    run = doctor(*hosts, *(["--http"] if words else []), "--json", "--", EVERYTHING, *words)
    assert (run.returncode, json.loads(run.stdout)["errors"]) == (0, 0), run.stdout

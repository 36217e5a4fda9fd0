"""Tests of `tricorn doctor` with the zoo: each fault is found, and nothing in a good server.

`TRICORN_COMMAND` is the command; `TRICORN_EVERYTHING`, if it is there, the fixture server.
"""

import functools
import json
import os
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import zoo

Json = dict[str, Any]

COMMAND = shlex.split(os.environ.get("TRICORN_COMMAND", ""))
EVERYTHING = os.environ.get("TRICORN_EVERYTHING")
ZOO = Path(__file__).with_name("zoo.py")
tomllib = pytest.importorskip("tomllib")
FAULTS: dict[str, Json] = {
    fault["name"]: fault for fault in tomllib.loads(ZOO.with_name("faults.toml").read_text("utf-8"))["fault"]
}
AT_ONCE = 5
"""Servers that are examined together: most of the time is waiting."""

pytestmark = pytest.mark.skipif(not COMMAND, reason="TRICORN_COMMAND names no command")


def transports(name: str) -> list[str]:
    """The transports over which a fault is there."""
    return ["stdio"] if name in zoo.STDIO else ["http"] if name in zoo.HTTP else ["stdio", "http"]


CASES = [(name, transport) for name in ["good", *zoo.FAULTS] for transport in transports(name)]


REVISIONS = [*zoo.LEGACY, zoo.MODERN, "legacy", "modern"]


def doctor(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    env = {**os.environ, "TRICORN_CLIENT_SECRET": "zoo-secret"}
    return subprocess.run(
        [*COMMAND, "doctor", *words], capture_output=True, encoding="utf-8", timeout=150, env=env, check=False
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


@functools.cache
def examined() -> dict[tuple[str, ...], Future[tuple[int, Json]]]:
    """All examinations, several at a time."""
    pool = ThreadPoolExecutor(AT_ONCE)
    alone = [(name, "stdio", "--revision", revision) for revision in REVISIONS for name in ("good", "twin-names")]
    return {case: pool.submit(examine, *case) for case in [*CASES, *alone]}


def named(report: Json) -> dict[str, Json]:
    """The findings by their names."""
    return {finding["name"]: finding for finding in report["findings"]}


@pytest.mark.parametrize(("name", "transport"), CASES)
def test_the_fault_is_found_and_no_other_error(name: str, transport: str) -> None:
    status, report = examined()[name, transport].result(150)
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
    assert report["score"] == max(0, 100 - 20 * report["errors"] - 5 * report["warnings"])


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
    status, report = examined()["good", "stdio", "--revision", revision].result(150)
    assert (status, report["findings"]) == (0, [])
    if revision[0] == "2":
        assert report["revisions"] == [revision]
    status, report = examined()["twin-names", "stdio", "--revision", revision].result(150)
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


@pytest.mark.parametrize(("name", "status"), [("good", 4), ("no-challenge", 1)])
def test_a_login_that_is_needed(name: str, status: int) -> None:
    run = doctor("--http", "--json", "--", sys.executable, str(ZOO), name, "--http", "0", "--auth")
    report = json.loads(run.stdout)
    assert (run.returncode, "--client" in run.stderr) == (status, True), run.stderr
    assert [*named(report)] == ([] if name == "good" else [name])
    assert report["skipped"]


@pytest.mark.skipif(EVERYTHING is None, reason="TRICORN_EVERYTHING names no server")
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_fixture_server(transport: str) -> None:
    words = ["--http", "127.0.0.1:0"] if transport == "http" else []
    # One of its tools has allOf at the top, as the conformance suite wants it.
    hosts = ["--profile", "openai,openai-strict,gemini,vscode"]
    run = doctor(*hosts, *(["--http"] if words else []), "--json", "--", str(EVERYTHING), *words)
    assert (run.returncode, json.loads(run.stdout)["errors"]) == (0, 0), run.stdout

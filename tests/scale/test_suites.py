"""Suites that know one URL, against processes behind nginx: the official one, and ours (transcripts, cases, attacks).

Each has the figures that it has with one process, but for `EXCEPTIONS`. `as_one.py` starts the processes, and looks
like one fixture server to our suites.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from world import ALONE, HERE, LIMIT, NOTHING, Program, Unfit

pytestmark = pytest.mark.slow

COUNTS = (2, 4)
SUITE_LIMIT = 240.0
AT_ONCE = 3
"""Scenarios of extensions that run side by side: most of their time they wait."""
ENVELOPE = "wire-schema-valid"
"""Shows that a message was well-formed, and nothing of what a scenario is about."""

EXCEPTIONS: dict[str, dict[str, str]] = {
    "transcripts": {
        "http 2026-07-28 2026-07-28/extension": "announcements of extensions reach the clients of one process",
    },
    "bad-input": {
        "http * bad/duplicate-ids-http": "a process knows the ids of the requests that it works on itself",
    },
    "cases": {
        "http rounds what is done once, *": "the fixture counts its reservations in the process",
    },
    "cuts": {
        "http cuts HTTP+SSE: *": "sessions over HTTP+SSE are in one process",
    },
    "attacks": {
        "auth HTTP+SSE: another's session": "sessions over HTTP+SSE are in one process",
        "auth a reliable server: keys that are known do while they are away": "each process gets the keys itself",
        "auth tokens: another host": "processes behind a balancer are told their URL, as mounted ones are",
        "auth tokens: two Authorization headers": "nginx refuses them before any process sees them",
    },
}
"""By suite, patterns of what may fail with several processes, each with its reason."""
WORDS = {suite: [suite, "--transport", "http"] for suite in EXCEPTIONS} | {"attacks": ["attacks", "--mount", "none"]}

Figures = dict[str, str]
"""By name, what a suite says of each of its parts; empty: it passed."""


class Place:
    """The programs, and one server or several of them as one."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self.lang, self.built = config.getoption("--lang"), Path(config.getoption("--built"))
        self.sharing, self.folder = config.getoption("--sharing"), folder
        # Files that a killed program leaves go with the folder of the test.
        self.environment = {**os.environ, "TMPDIR": str(folder)}

    def server(self, count: int) -> list[str]:
        """The words that start it. One process is there without a store, and without nginx."""
        if count == 1:
            return [str(self.built / f"examples/everything/{self.lang}/run")]
        alone = self.sharing == ALONE
        words = [sys.executable, str(HERE / "as_one.py"), "--lang", self.lang, "--built", str(self.built)]
        sharing = ["--sharing", NOTHING] if alone or self.sharing == NOTHING else []
        return [*words, "--processes", "1" if alone else str(count), *sharing]

    @asynccontextmanager
    async def serving(self, count: int, **settings: str) -> AsyncIterator[str]:
        """The URL of it."""
        words = [*self.server(count), "--http", "127.0.0.1:0"]
        server = Program("the server", words, self.folder, {**self.environment, **settings})
        await server.spawn()
        try:
            await asyncio.wait_for(server.ready.wait(), LIMIT * 3)
            urls = [line.removeprefix("ready ") for line in server.lines if line.startswith("ready ")]
            if not urls:
                raise Unfit(f"it did not start\n{server.said()}")
            yield urls[0]
            server.terminate()
            assert await server.ended() == 0
        finally:
            await server.kill()

    async def run(self, words: list[str]) -> tuple[int, str]:
        """The status of a program, and what it printed."""
        # It ends what it has started when it ends in order.
        program = await asyncio.create_subprocess_exec(
            *words, cwd=self.built, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            out, _ = await asyncio.wait_for(program.communicate(), SUITE_LIMIT)
        except TimeoutError:
            program.kill()
            out, _ = await program.communicate()
            raise AssertionError(f"{words} did not end in {SUITE_LIMIT:g} s\n{out.decode()[-2000:]}") from None
        assert program.returncode is not None
        return program.returncode, out.decode(errors="replace")


@pytest.fixture
def place(pytestconfig: pytest.Config, tmp_path: Path) -> Place:
    return Place(pytestconfig, tmp_path)


KNOWN: dict[tuple[str, str], Figures] = {}
"""Figures with one process, by suite and language."""


# ---- ours


async def ours(place: Place, suite: str, count: int) -> Figures:
    program = place.built / "target/release/contract"
    if not program.is_file():
        pytest.fail("contract is not built: cargo xtask setup")
    server = " ".join(place.server(count))
    words = [str(program), *WORDS[suite], "--lang", place.lang, "--verbose", "--server", server]
    _, text = await place.run(words)
    figures: Figures = {}
    for line in text.splitlines():
        match = re.fullmatch(rf"(ok|not ok|skip) {place.lang} (.*?)(?: - (.*))?", line)
        if match:
            figures[match[2]] = "" if match[1] == "ok" else f"{match[1]}: {match[3]}"
    last = text.splitlines()[-1] if text else ""
    assert re.fullmatch(r"\d+ passed, \d+ failed, \d+ skipped", last), text[-2000:]
    assert sum(map(int, re.findall(r"\d+", last))) == len(figures), f"names that are not unique: {last}"
    return figures


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("suite", EXCEPTIONS)
async def test_our_suite(place: Place, suite: str, count: int) -> None:
    alone = KNOWN.get((suite, place.lang)) or await ours(place, suite, 1)
    KNOWN[suite, place.lang] = alone
    several = await ours(place, suite, count)
    assert several.keys() == alone.keys()
    failed = [name for name, said in alone.items() if said.startswith("not ok")]
    assert not failed, "with one process, too"
    assert sum(said == "" for said in alone.values()) > len(alone) / 2, "most of it was not exercised"
    others = {name: said for name, said in several.items() if said != alone[name]}
    patterns = EXCEPTIONS[suite]
    unknown = [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in alone)]
    assert not unknown, "exceptions that name nothing"
    for pattern in patterns:
        others = {name: said for name, said in others.items() if not fnmatchcase(name, pattern)}
    assert not others


# ---- the official one


class Official:
    """The suite that `cargo xtask setup` gets."""

    def __init__(self, place: Place) -> None:
        self.place = place
        entries = "target/conformance/*/node_modules/@modelcontextprotocol/conformance/dist/index.js"
        found = sorted(place.built.glob(entries))
        nodes = [*place.built.glob("target/node22/node_modules/*/bin/node"), *filter(None, [shutil.which("node")])]
        if not found or not nodes:
            pytest.fail("the official suite is not there: cargo xtask setup")
        loopback = place.built / "xtask/src/conformance/loopback.cjs"
        self.words = [str(nodes[0]), "--require", str(loopback), str(found[-1])]

    async def scenarios(self) -> dict[str, list[str]]:
        """Scenarios by revision, and those of extensions."""
        status, text = await self.place.run([*self.words, "list", "--server"])
        assert status == 0, text
        legs: dict[str, list[str]] = {}
        for name, tags in re.findall(r"^  - (\S+) \[(.*)\]", text, re.MULTILINE):
            for tag in tags.split(","):
                legs.setdefault(tag, []).append(name)
        assert legs.keys() >= {"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "extension"}, legs
        return legs

    async def figures(self, count: int) -> Figures:
        legs = await self.scenarios()
        figures: Figures = {}
        turns = asyncio.Semaphore(AT_ONCE)

        async def run(url: str, leg: str, *which: str) -> None:
            async with turns:
                folder = self.place.folder / "-".join((str(count), leg, *which)).replace("/", "_")
                words = ["server", "--url", url, *which, "-o", str(folder), "--timeout", "30000"]
                _, text = await self.place.run([*self.words, *words])
            for path in folder.glob("*/checks.json"):
                match = re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT.*", path.parent.name)
                assert match, path.parent.name
                figures[f"{leg} {match[1]}"] = summary(json.loads(path.read_text()))
            wanted = [which[1]] if which[0] == "--scenario" else legs[leg]
            missing = [name for name in wanted if f"{leg} {name}" not in figures]
            assert not missing, text[-2000:]

        # Extensions are off by default.
        async with self.place.serving(count, EVERYTHING_TASKS="600") as url, asyncio.TaskGroup() as group:
            for name in legs.pop("extension"):
                group.create_task(run(url, "extension", "--scenario", name))
            for leg in legs:
                group.create_task(run(url, leg, "--suite", "all", "--spec-version", leg))
        return figures


def summary(checks: list[dict[str, str]]) -> str:
    """The number of checks by their status, and those that are no success."""
    counts = Counter(check["status"] for check in checks)
    figures = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    wrong = [f"{one['id']}: {one.get('errorMessage')}" for one in checks if one["status"] in ("FAILURE", "WARNING")]
    shown = any(check["status"] == "SUCCESS" and check["id"] != ENVELOPE for check in checks)
    return "; ".join([figures, *wrong, *([] if shown else ["nothing was exercised"])])


@pytest.mark.parametrize("count", COUNTS)
async def test_the_official_suite(place: Place, count: int) -> None:
    official = Official(place)
    alone = KNOWN.get(("official", place.lang)) or await official.figures(1)
    KNOWN["official", place.lang] = alone
    assert not [name for name, said in alone.items() if "FAILURE" in said or "WARNING" in said], "with one process, too"
    assert sum("nothing was exercised" not in said for said in alone.values()) > len(alone) / 2
    several = await official.figures(count)
    assert several.keys() == alone.keys()
    others = {name: said for name, said in several.items() if said != alone[name]}
    assert others == {}

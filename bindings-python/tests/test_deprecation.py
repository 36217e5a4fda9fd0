"""Deprecated parts of the specification are marked, warn where they are used, and work on."""

from __future__ import annotations

import logging
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tricorn
from tricorn import AsyncClient, AsyncClientGroup, Client, ClientGroup, Context, LogHandler, Question, Server
from tricorn.json.deprecation import HTTP_SSE, LOGGING, ROOTS, SAMPLING
from tricorn.testing import connect

MARKED: list[tuple[Any, str]] = [
    (Context.sample, SAMPLING),
    (Question.sample, SAMPLING),
    (Context.list_roots, ROOTS),
    (Question.list_roots, ROOTS),
    (Server.on_roots_changed, ROOTS),
    (AsyncClient.set_roots, ROOTS),
    (AsyncClient.roots_changed, ROOTS),
    (Client.set_roots, ROOTS),
    (Client.roots_changed, ROOTS),
    (Context.log, LOGGING),
    (LogHandler, LOGGING),
    (AsyncClient.set_log_level, LOGGING),
    (Client.set_log_level, LOGGING),
    (AsyncClientGroup.set_log_level, LOGGING),
    (ClientGroup.set_log_level, LOGGING),
]


@pytest.mark.parametrize(("marked", "note"), MARKED)
def test_marks_are_those_of_pep_702(marked: Any, note: str) -> None:
    assert marked.__deprecated__ == note


def warned(run: Callable[[], object], note: str) -> None:
    with pytest.warns(DeprecationWarning, match="deprecates") as heard:
        run()
    assert [note in str(one.message) for one in heard] == [True]
    assert heard[0].filename == __file__, "the line of the program, and not of the library"


async def test_functions_warn_once_at_the_line_that_calls() -> None:
    app = Server("s")
    told: list[str] = []

    @app.tool
    async def use(ctx: Context) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for call in (
                lambda: ctx.log("info", "x"),
                lambda: ctx.sample("x", 1),
                ctx.list_roots,
                Question.list_roots,
                lambda: Question.sample("x", 1),
                LogHandler,
            ):
                with pytest.raises(DeprecationWarning):
                    call()
        with pytest.warns(DeprecationWarning, match="deprecates") as heard:
            said = await ctx.sample("x", 1)
        told.extend(str(one.message) for one in heard)
        with pytest.warns(DeprecationWarning, match="deprecates") as heard:
            roots = await ctx.list_roots()
        told.extend(str(one.message) for one in heard)
        return f"{said.text} {len(roots)}"

    with pytest.warns(DeprecationWarning, match="deprecates") as heard:
        client = connect(app, sampling=lambda _: "fine", roots=["/a"], revision="2025-11-25")
    assert sorted(str(one.message) for one in heard) == [f"option 'roots': {ROOTS}", f"option 'sampling': {SAMPLING}"]
    assert {one.filename for one in heard} == {__file__}
    async with client:
        assert (await client.call_tool("use")).text == "fine 1"
        assert told == [f"sample: {SAMPLING}", f"list_roots: {ROOTS}"]
        warned(lambda: client.set_roots(["/b"]), ROOTS)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DeprecationWarning):
                client.roots_changed()
            with pytest.raises(DeprecationWarning):
                await client.set_log_level("info")
    with pytest.warns(DeprecationWarning, match="on_roots_changed"):
        app.on_roots_changed(lambda: None)


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"on_log": print}, LOGGING),
        ({"roots": []}, ROOTS),
        ({"sampling": lambda _: "x"}, SAMPLING),
        ({"sampling": lambda _: "x", "sampling_tools": True, "sampling_context": True}, SAMPLING),
    ],
)
def test_options_of_clients_warn_where_the_client_is_made(options: dict[str, Any], note: str) -> None:
    for make in (AsyncClient, Client, tricorn.connect):
        with pytest.warns(DeprecationWarning, match="deprecates") as heard:
            make(Server("s"), **options)  # type: ignore[operator]
        assert [str(one.message) for one in heard] == [f"option {name!r}: {note}" for name in options]
        assert {one.filename for one in heard} == {__file__}, "the line of the program, and not of the library"


@pytest.mark.parametrize("option", [{"sse": True}, {"sse_path": "/a"}, {"sse_message_path": "/b"}])
def test_options_of_http_warn(option: dict[str, Any]) -> None:
    warned(lambda: Server("s").asgi(**option), HTTP_SSE)


def test_what_is_switched_off_is_not_used() -> None:
    # Warnings are errors here.
    Server("s").asgi(sse=False)
    AsyncClient(Server("s"), sampling_tools=False)


def test_the_library_does_not_warn_of_itself() -> None:
    app = Server("s")

    @app.tool
    def work() -> str:
        logging.getLogger("mine").warning("working")
        return "done"

    with pytest.warns(DeprecationWarning, match="deprecates"):
        handler = LogHandler()
    logging.getLogger("mine").addHandler(handler)
    try:
        # Warnings are errors here.
        with Client(app) as client:
            assert client.call_tool("work").text == "done"
    finally:
        logging.getLogger("mine").removeHandler(handler)


def test_a_program_hears_of_each_place_once() -> None:
    text = "from tricorn import *\nfor _ in range(3): Server('s').asgi(sse=True)\n"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stderr.count("DeprecationWarning") == 1, done.stderr

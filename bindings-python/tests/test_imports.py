"""Modules that `import tricorn` loads, and names that it loads when they are asked for."""

from __future__ import annotations

import ast
import modulefinder
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tricorn

from .conftest import PATIENCE

HEAVY = ("asyncio", "concurrent.futures", "email", "http", "logging", "multiprocessing", "socket", "ssl")
"""Modules that a program which only defines a server has no use for."""
OPTIONAL = ("annotated_types", "httpx", "opentelemetry", "pydantic", "starlette")
BARE = (*HEAVY, *OPTIONAL, "dataclasses", "inspect", "json", "msgspec", "typing_extensions", "urllib.parse")
"""Modules that importing the package alone does not load."""

SOURCE = Path(tricorn.__file__)

BEFORE = """
    import sys
    before = set(sys.modules)
"""
AFTER = """
    print(*set(sys.modules) - before)
"""
DEFINED = """
    from tricorn import Context, Server, Text, ToolError, user

    app = Server("demo")

    @app.tool
    def add(a: int, b: int, ctx: Context) -> int:
        return a + b

    @app.resource("notes://{number}")
    async def note(number: int) -> str:
        return f"Note {number}"

    @app.prompt
    def review(code: str) -> str:
        return code
"""


def loaded(script: Callable[[str], str], program: str) -> set[str]:
    """The modules that a program loads, and no interpreter by itself."""
    return set(script(BEFORE + program + AFTER).split())


def test_the_package_alone_loads_its_compiled_module_and_nothing_else(script: Callable[[str], str]) -> None:
    modules = loaded(script, "    import tricorn\n")
    assert not modules & set(BARE)
    assert {name for name in modules if name.startswith("tricorn")} == {"tricorn", "tricorn._core"}


def test_a_server_is_defined_without_what_serves_it(script: Callable[[str], str]) -> None:
    modules = loaded(script, DEFINED)
    assert not modules & {*HEAVY, *OPTIONAL}
    rooms = {name.split(".")[1] for name in modules if name.startswith("tricorn.")}
    assert rooms == {"_core", "bridge", "call", "errors", "json", "model", "server"}
    assert not modules & {f"tricorn.server.{name}" for name in ("asgi", "lifespan", "running")}


def test_every_public_name_is_there(script: Callable[[str], str]) -> None:
    assert set(tricorn.__all__) <= set(dir(tricorn))
    assert len(set(tricorn.__all__)) == len(tricorn.__all__)
    for name in tricorn.__all__:
        assert getattr(tricorn, name) is not None
    everything: dict[str, object] = {}
    exec("from tricorn import *", everything)
    assert set(tricorn.__all__) <= everything.keys()
    assert script("import tricorn; print(set(tricorn.__all__) - set(dir(tricorn)))") == "set()\n"


def test_type_checkers_are_told_the_same_as_programs() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    told = {
        node.module: {alias.name for alias in node.names} for node in guarded.body if isinstance(node, ast.ImportFrom)
    }
    assert told == {module: set(names) for module, names in tricorn._NAMES.items()}
    at_once = {"__version__", "is_safe_icon"}
    assert set().union(*told.values()) | at_once == set(tricorn.__all__)


def test_modules_with_public_names_are_attributes(script: Callable[[str], str]) -> None:
    assert script("import tricorn; print(tricorn.middleware.timing().kind, tricorn.errors.Error.__name__)") == (
        "timing Error\n"
    )


def test_a_name_that_is_not_there_is_told_as_everywhere() -> None:
    with pytest.raises(AttributeError, match=r"^module 'tricorn' has no attribute 'Sever'$") as caught:
        tricorn.Sever  # type: ignore[attr-defined]  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("Sever", tricorn)
    assert not hasattr(tricorn, "nothing_like_it")
    with pytest.raises(ImportError, match="cannot import name 'Sever' from 'tricorn'"):
        from tricorn import Sever  # type: ignore[attr-defined]  # noqa: F401
    said = subprocess.run(
        [sys.executable, "-c", "import tricorn; tricorn.Sever"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert said.stderr.splitlines()[-1] == (
        "AttributeError: module 'tricorn' has no attribute 'Sever'. Did you mean: 'Server'?"
    )


def test_threads_that_ask_at_once_get_the_same(script: Callable[[str], str]) -> None:
    code = """
        import threading
        import tricorn

        begin, found = threading.Barrier(16), []

        def ask(name):
            begin.wait()
            found.append(getattr(tricorn, name))

        names = ["Client", "Server", "connect", "Context"] * 4
        threads = [threading.Thread(target=ask, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(found), len(set(found)))
    """
    assert script(code) == "16 4\n"


def test_what_was_pickled_is_read_by_a_program_that_has_imported_nothing(script: Callable[[str], str]) -> None:
    pickled = pickle.dumps([tricorn.Server, tricorn.RpcError, tricorn.Text("hello"), tricorn.TraceContext])
    code = f"import pickle; print([getattr(one, '__name__', None) or one.text for one in pickle.loads({pickled!r})])"
    assert script(code) == "['Server', 'RpcError', 'hello', 'TraceContext']\n"


def test_the_package_can_be_loaded_again(script: Callable[[str], str]) -> None:
    code = """
        import importlib
        import tricorn

        before = tricorn.Server
        assert importlib.reload(tricorn) is tricorn
        print(tricorn.Server is before, tricorn.Text("x").text)
    """
    assert script(code) == "True x\n"


def test_programs_that_look_for_imports_find_them_all() -> None:
    # PyInstaller and cx_Freeze read the same instructions.
    finder = modulefinder.ModuleFinder()
    code = compile(SOURCE.read_text(encoding="utf-8"), str(SOURCE), "exec")
    found = {facts[-1] for what, facts in finder.scan_opcodes(code) if what == "relative_import"}
    assert found == {*tricorn._NAMES, "_core"}

"""A client's options on their way to the engine, and the targets that it connects to."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from .. import _core
from ..bridge.host import Host, OnError
from ..bridge.local_server import LocalServer
from ..call.request_options import limit
from ..errors import MisuseError
from ..json import checks
from ..json.checks import called, known_options
from ..json.deprecation import warn_options
from ..json.options import options_text, switched
from ..model.identity import caller
from ..model.trace import source_of
from .handlers import CALLBACKS, QUESTIONS, of_policy
from .options import ClientCache, Handlers, SharedOptions

Target = str | LocalServer | Mapping[str, Any] | Sequence[str] | os.PathLike[str]
"""A URL, a command line, a server of this process, `{"url": ...}`, `{"command": ..., "args": ...}`, a list of
arguments, the path of a host's `mcp.json`, what such a file holds, `{"mcpServers": {...}}`, or a cassette,
`"replay:FILE"` or `"replay:FILE?strict"`."""


def introduce(options: SharedOptions, module: Mapping[str, Any]) -> None:
    """Fills in name and version of the program that `module` belongs to."""
    if "name" not in options or "version" not in options:
        name, version = caller(module, "version" not in options)
        options.setdefault("name", name)
        options.setdefault("version", version)


class Given:
    """A client's options, sorted by who needs them."""

    def __init__(self, what: str, options: Mapping[str, Any], known: type) -> None:
        known_options(f"{what} options", options, known)
        self.settings: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
        if "request_timeout" in options:
            self.settings["request_timeout"] = limit(options["request_timeout"]) or 0
        switched(self.settings)
        take = self.settings.pop
        if (policy := take("policy", None)) is not None:
            self.settings = {**of_policy(policy), **self.settings}
            take = self.settings.pop
        warn_options(self.settings)
        self.auth: object = take("auth", None)
        self.http_transport: object = take("http_transport", None)
        self.callbacks = {name: called(name, take(name)) for name in CALLBACKS if name in self.settings}
        self.questions = {name: take(name) for name in QUESTIONS if name in self.settings}
        self.middleware: object = take("middleware", ())
        self.trace = source_of(called("trace_context", take("trace_context", None)), self.middleware)
        self.on_error: OnError | None = called("on_error", take("on_error", None))

    def text(self, host: Host) -> str:
        """The settings as the engine takes them; functions among them get their places in the table of `host`."""
        all_of_them: dict[str, Any] = {**self.settings}
        given: object = all_of_them.get("cache")
        if given is not None and not isinstance(given, bool):
            from .cache_store import kept

            all_of_them["cache"] = kept(host, given, ClientCache)
        if self.http_transport is not None:
            from .http_transport import place

            all_of_them["http_transport"] = place(host, self.http_transport)
        if self.auth:
            from .auth import settings

            all_of_them["auth"] = settings(host, self.auth)
        return options_text(all_of_them)

    def plus(self, what: str, more: Mapping[str, Any]) -> Given:
        """The same with other callbacks and answers in place."""
        added = Given(what, more, Handlers)
        both = Given(what, {}, Handlers)
        both.callbacks = {**self.callbacks, **added.callbacks}
        both.questions = {**self.questions, **added.questions}
        both.middleware, both.trace = self.middleware, self.trace
        return both


def _python(target: object) -> list[str] | None:
    """The words of a command that begins with a Python file which the system cannot run by itself: `./weather.py`."""
    words: list[str]
    if isinstance(target, str):
        # The engine says again what is wrong with it, for which UnicodeEncodeError has no words.
        with suppress(MisuseError, UnicodeEncodeError):
            words = [target] if os.path.isfile(target) else _core.split_command(target)
            return _run_by_python(words)
        return None
    if isinstance(target, os.PathLike):
        return _run_by_python([os.fsdecode(cast("os.PathLike[str]", target))])
    if isinstance(target, Sequence) and not isinstance(target, bytes):
        return _run_by_python([*cast("Sequence[str]", target)])
    return None


def _run_by_python(words: list[str]) -> list[str] | None:
    if not words or not os.path.normcase(words[0]).endswith(".py") or not os.path.isfile(words[0]):
        return None
    # On Windows every file counts as a program, and this is none.
    return None if sys.platform != "win32" and os.access(words[0], os.X_OK) else [sys.executable, *words]


def resolve(target: Target, which: str | None, heard: bool) -> dict[str, Any]:
    """Returns the target that the engine connects to, for everything but a server of this process.

    `which` names a server of a configuration; `heard`: somebody listens to the program's stderr.
    """
    where: dict[str, Any]
    if (program := _python(target)) is not None:
        target = program
    if isinstance(target, os.PathLike):
        path = os.fsdecode(target)
        if not path.isprintable() and any("\ud800" <= c <= "\udfff" for c in path):
            raise MisuseError(f"cannot connect to {target!r}: the path is not UTF-8")
        where = {"file": path}
    elif isinstance(target, str):
        where = {"text": target}
    elif isinstance(target, Mapping):
        where = dict(target)
        if "mcpServers" in where and not isinstance(where["mcpServers"], Mapping):
            raise MisuseError(f'target "mcpServers": expected an object, got {checks.type_of(where["mcpServers"])}')
    elif isinstance(target, LocalServer) or not isinstance(target, Sequence) or isinstance(target, bytes) or not target:  # pyright: ignore[reportUnnecessaryIsInstance]
        got = "bytes" if isinstance(target, bytes) else repr(target)
        raise MisuseError(f"cannot connect to {got}: expected a URL, a path, a command line or an object")
    else:
        command, *arguments = target
        where = {"command": command, "args": arguments}
    if which is not None:
        where["server"] = which
    if heard and "url" not in where:
        where.setdefault("stderr", "event")
    return where

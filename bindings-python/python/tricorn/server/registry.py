"""Decorators that offer tools, resources and prompts, to all clients or to one, by functions or values."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from ..bridge.host import Handler, Host
from ..bridge.threads import Threads
from ..call.handler import Subject, handler
from ..call.signature import Arguments, arguments_of, is_result, name_of, result_of, signature_of
from ..errors import MisuseError
from ..json import checks
from ..json.encoding import encode
from ..model.definitions import Kind
from . import completion, prompts, resources, tools
from .completion import Complete
from .definition_options import PromptOptions, ResourceOptions, ToolOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

F = TypeVar("F", bound=Callable[..., Any])


class Offering:
    """Tools, resources and prompts that can be offered to all clients of a server, or to one."""

    _host: Host
    _threads: Threads

    # -- tools

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, called: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    def tool(self, function: F | str | None = None, /, **options: Unpack[ToolOptions]) -> F | Callable[[F], F]:
        """Makes a function a tool: `@app.tool`, `@app.tool("name")`, or `@app.tool(title="Add", ...)` with any of
        `ToolOptions`.

        The name, description and schemas come from the function: its docstring describes it, `Annotated[int,
        msgspec.Meta(description=...)]`, pydantic's `Field` or an `Args:` section describe the parameters. A parameter
        annotated `Context` receives the call's context. What it returns is the answer: a plain value, content blocks
        (`Text`, `Image`, ...), a list of them, or a whole `CallToolResult`. `ToolError` tells the model what went
        wrong, `RpcError` answers with a protocol error; of any other exception the model sees the type only, the
        server's `on_error` all.

        Plain functions run in worker threads, `async def` on the event loop.
        """
        if isinstance(function, str):
            _named("tool", function, options)
        elif function is not None:
            self.add_tool(function, **options)
            return function

        def register(function: F) -> F:
            self.add_tool(function, **options)
            return function

        return register

    def add_tool(self, function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> None:
        """Makes a function a tool; the same as `tool` for functions that exist already."""
        _known("tool", options.get("name"), options, ToolOptions)
        options = _given(options, "description", "output_schema")
        _callable("tool", function)
        signature = signature_of(function)
        given = options.get("definition")
        result = result_of(signature.hint, name_of(function))
        takes = arguments_of(signature)
        definition = (
            tools.define(function, signature, options, takes.schema, result.schema) if given is None else dict(given)
        )
        returns = result.returns
        if "outputSchema" not in definition and returns in ("value", "values"):
            returns = "any"
        answer = tools.answering(self._host, returns, "outputSchema" in definition, result.write, result.write_item)
        subject = Subject("tool", str(definition.get("name")), for_model=True)
        threads = self._where(options)
        entry = handler(self._host, subject, signature, takes.decoder, answer, threads)
        own = given is None and "input_schema" not in options
        self._add("tool", definition, _judged(takes) if own else {}, entry, {}, options)

    def remove_tool(self, name: str) -> bool:
        """Removes a tool; False when there is none of that name."""
        return self._remove("tool", name)

    # -- resources

    def resource(self, uri: str, /, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Makes a function what is read at a URI: `@app.resource("notes://today", mime_type="text/plain")`.

        A URI with `{...}` is a template (RFC 6570), and the variables are the function's parameters, typed: with
        `@app.resource("notes://{number}")` and `number: int` the engine refuses what is no integer. A parameter
        annotated `Context` receives the call's context; where there are no variables, `uri: str` is the URI. What the
        function returns is the answer: text, bytes, `ResourceContents` or a list of them, a `ReadResourceResult`, or
        any other value, which is read as JSON. `ResourceNotFoundError` says that there is none.
        """
        if callable(uri):
            raise MisuseError('resource: say where it is: @app.resource("notes://today")')

        def register(function: F) -> F:
            self.add_resource(uri, function, **options)
            return function

        return register

    def add_resource(self, uri: str, content: Any, /, **options: Unpack[ResourceOptions]) -> None:
        """As `resource` for a function that exists already, or for a plain value: text, bytes, anything JSON has."""
        if not isinstance(cast(object, uri), str):
            raise MisuseError(f'resource "uri": expected a string that is not empty, got {checks.shown(uri)}')
        _known("resource template" if "{" in uri else "resource", uri, options, ResourceOptions)
        options = _given(options, "description")
        template = "{" in uri
        kind: Literal["resource", "resource_template"] = "resource_template" if template else "resource"
        subject = Subject("resource template" if template else "resource", uri)
        parameters: dict[str, Any] = {}
        function: Callable[..., Any] | None = None
        description: str | None = None
        if callable(content):
            function = cast("Callable[..., Any]", content)
            signature = signature_of(function)
            description = signature.description
            resources.check_parameters(uri, signature)
            takes = arguments_of(signature)
            whole = is_result(signature.hint, "ReadResourceResult")
            write = result_of(signature.hint, name_of(function)).write
            answer = resources.answering(self._host, whole, write)
            entry = handler(self._host, subject, signature, takes.decoder, answer, self._where(options))
            if template:
                parameters = {"parameters": takes.schema, **_judged(takes)}
        elif resources.is_template(uri):
            raise MisuseError(f"{subject}: expected a function of the variables, got {checks.shown(content)}")
        else:
            entry = self._constant(content)
        definition = resources.define(kind, uri, function, description, options)
        complete = options.get("complete") or {}
        if complete and not template:
            raise MisuseError(f'{subject}: the option "complete" is for templates')
        self._add(kind, definition, parameters, entry, complete, options)

    def _constant(self, content: Any) -> Handler:
        answer = resources.answering(self._host)

        def entry(_params: bytes, key: int) -> None:
            answer(key, content)

        return entry

    def remove_resource(self, uri: str) -> bool:
        """Removes a resource; False when there is none of that URI."""
        return self._remove("resource", uri)

    def remove_resource_template(self, uri_template: str) -> bool:
        """Removes a resource template; False when there is none like that."""
        return self._remove("resource_template", uri_template)

    # -- prompts

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(self, called: str | None = None, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...

    def prompt(self, function: F | str | None = None, /, **options: Unpack[PromptOptions]) -> F | Callable[[F], F]:
        """Makes a function a prompt: `@app.prompt`, `@app.prompt("name")`, or `@app.prompt(title="Review", ...)` with
        any of `PromptOptions`.

        Its parameters are the prompt's arguments. They come as text; with `lines: int` the engine reads and checks a
        number. What it returns is the answer: text, which the user says; messages, made by `user(...)` and
        `assistant(...)`; content blocks; a list of these; or a `GetPromptResult`.
        """
        if isinstance(function, str):
            _named("prompt", function, options)
        elif function is not None:
            self.add_prompt(function, **options)
            return function

        def register(function: F) -> F:
            self.add_prompt(function, **options)
            return function

        return register

    def add_prompt(self, function: Callable[..., Any], /, **options: Unpack[PromptOptions]) -> None:
        """Makes a function a prompt; the same as `prompt` for functions that exist already."""
        _known("prompt", options.get("name"), options, PromptOptions)
        options = _given(options, "description")
        _callable("prompt", function)
        signature = signature_of(function)
        definition = prompts.define(function, signature.description, options)
        takes = arguments_of(signature)
        answer = prompts.answering(self._host, is_result(signature.hint, "GetPromptResult"))
        subject = Subject("prompt", definition["name"])
        entry = handler(self._host, subject, signature, takes.decoder, answer, self._where(options))
        settings = {"parameters": takes.schema, **_judged(takes)}
        self._add("prompt", definition, settings, entry, options.get("complete") or {}, options)

    def remove_prompt(self, name: str) -> bool:
        """Removes a prompt; False when there is none of that name."""
        return self._remove("prompt", name)

    def _where(self, options: Any) -> Threads | None:
        return self._threads if options.get("run_in_thread", True) else None

    def _add(
        self,
        kind: Kind,
        definition: dict[str, Any],
        settings: dict[str, Any],
        entry: Handler,
        complete: Mapping[str, Complete],
        options: Mapping[str, object],
    ) -> None:
        name = str(definition.get({"resource": "uri", "resource_template": "uriTemplate"}.get(kind, "name")))
        of = f"{kind.replace('_', ' ')} {json.dumps(name)}"
        host = self._host
        numbers = [host.add(entry)]
        try:
            completions: dict[str, int] = {}
            for argument, function in complete.items():
                numbers.append(host.add(completion.completer(host, of, argument, function, self._threads)))
                completions[argument] = numbers[-1]
            if completions:
                settings["completions"] = completions
            for option in ("enabled", "replace"):
                if option in options:
                    settings[option] = _flag(of, option, options[option])
            if "scopes" in options:
                settings["scopes"] = _scopes(of, options["scopes"])
            if "timeout" in options:
                settings["timeout"] = options["timeout"]
            # Schemas are left alone: the default of a parameter may well be infinite.
            checks.finite("", {option: options.get(option) for option in ("cache", "annotations", "size", "timeout")})
            if "cache" in options:
                settings["cache"] = options["cache"]
            text = encode(settings).decode() if settings else ""
            self._tell(kind, name, encode(definition).decode(), text, numbers[0])
        except BaseException:
            for number in numbers:
                host.drop(number)
            raise
        self._keep(kind, name, numbers)

    def _tell(self, kind: Kind, name: str, definition: str, options: str, number: int) -> None:
        raise NotImplementedError

    def _keep(self, kind: Kind, name: str, numbers: list[int]) -> None:
        raise NotImplementedError

    def _remove(self, kind: Kind, name: str) -> bool:
        raise NotImplementedError


def _named(what: str, name: str, options: Any) -> None:
    """Takes a name that stands before the options."""
    if options.get("name", name) != name:
        raise MisuseError(f"{what}: it has two names, {name!r} and {options['name']!r}")
    options["name"] = name


def _callable(what: str, function: object) -> None:
    """`MisuseError` for what is no function."""
    if isinstance(function, classmethod):
        raise MisuseError(
            f"{what}: {function!r} is a method of a class, and has no class yet: register it after the class, "
            f"such as app.add_{what}(Shop.buy)"
        )
    if not callable(function):
        raise MisuseError(f"{what}: expected a function, got {checks.shown(function)}")


def _judged(takes: Arguments) -> dict[str, Any]:
    """The settings of what the decoder checks instead of the engine."""
    return {"judged": ["input"]} if takes.judged else {}


D = TypeVar("D")


def _given(options: D, *meant: str) -> D:
    """The options without those that are None, but for the ones of which None says something."""
    members = cast("dict[str, Any]", options)
    return cast(D, {name: value for name, value in members.items() if value is not None or name in meant})


def _known(kind: str, name: object, options: Any, known: type) -> None:
    what = f"{kind} {checks.shown(name)}" if isinstance(name, str) and name else kind
    if options.keys() - known.__annotations__.keys():
        checks.known_options(what, options, known)
    if options.get("name") == "":
        raise MisuseError(f'{kind} "name": expected a string that is not empty, got ""')


def _flag(of: str, option: str, value: Any) -> bool:
    flag = value.tolist() if hasattr(value, "tolist") else value  # numpy's
    if not isinstance(flag, bool):
        raise MisuseError(f'{of}: option "{option}": expected a boolean, got {checks.shown(value)}')
    return flag


def _scopes(of: str, scopes: object) -> list[str]:
    """Scopes for the engine, which looks at each; as JSON bytes and the like would be other texts."""
    if not isinstance(scopes, (list, tuple, set, frozenset)):
        raise MisuseError(f'{of}: option "scopes": expected a list of strings, got {checks.shown(scopes)}')
    listed = list(cast("Collection[object]", scopes))
    for at, scope in enumerate(listed):
        if not isinstance(scope, str):
            raise MisuseError(f'{of}: option "scopes": [{at}]: expected a string, got {checks.shown(scope)}')
    return cast("list[str]", listed)

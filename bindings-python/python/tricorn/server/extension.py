"""Extensions of the protocol that a server offers: settings, requests, notifications."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from ..bridge.host import Host
from ..bridge.threads import Threads
from ..call.handler import Subject, handler
from ..call.signature import arguments_of, name_of, result_of, signature_of
from ..errors import MisuseError
from ..json import checks
from ..json.encoding import encode, encode_params

F = TypeVar("F", bound=Callable[..., Any])


class _Method(NamedTuple):
    name: str
    function: Callable[..., Any]
    idempotent: bool
    schema: Mapping[str, Any] | None
    run_in_thread: bool


class Extension:
    """An extension of the protocol: what it is called, its settings, its requests and notifications.

        search = Extension("com.example/search", {"languages": ["en"]})

        @search.method("com.example/search")
        async def find(query: str, limit: int = 10) -> dict:
            return {"found": await index.find(query, limit)}

        app = Server("library", extensions=[search])

    `id` is an identifier with a prefix, `settings` an object that clients are told; `MisuseError` for settings that are
    none. Both sides have to declare it: of a client that does not, requests are refused (-32021), and it hears no
    notification.
    """

    def __init__(self, id: str, settings: Mapping[str, Any] | None = None) -> None:  # noqa: A002 - its name
        if not isinstance(cast("object", id), str):
            raise MisuseError(f'extension "id": expected a string, got {checks.shown(id)}')
        if settings is not None:
            checks.settings(f"extension {checks.shown(id)}: settings", settings)
        self.id = id
        self.settings = dict(settings or {})
        self._methods: list[_Method] = []
        self._notifications: list[tuple[str, str]] = []

    def method(
        self,
        name: str,
        *,
        idempotent: bool = False,
        schema: Mapping[str, Any] | None = None,
        run_in_thread: bool = True,
    ) -> Callable[[F], F]:
        """Makes a function answer a request of the extension: `@search.method("com.example/search")`.

        The members of its parameters are the function's arguments, typed and checked as those of tools are (-32602);
        `**params` takes any. A parameter annotated `Context` receives the call's context. What it returns is the
        result, an object; None is an empty one. `RpcError` answers with that error. `idempotent`: it may be sent again
        when nobody knows whether it was carried out. `schema` is a JSON Schema of the parameters, instead of the one
        made from the signature. Plain functions run in worker threads unless `run_in_thread` is False.
        """

        def register(function: F) -> F:
            self._methods.append(_Method(name, function, idempotent, schema, run_in_thread))
            return function

        return register

    def notification(self, method: str, member: str) -> None:
        """Sends this notification to clients that ask for it; `Server.notify` does it.

        `member` of the filter of `subscriptions/listen` is true, or an array of the keys that they want to hear of.
        """
        self._notifications.append((method, member))

    def __repr__(self) -> str:
        return f"Extension({self.id!r})"


def register(extension: Extension, host: Host, threads: Threads, add: Callable[[str], None]) -> None:
    """Offers the extension."""
    if not isinstance(extension, Extension):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may not check types
        raise MisuseError(f"extensions: expected an Extension, got {checks.shown(extension)}")
    methods: list[dict[str, Any]] = []
    encode_params(f"extension {extension.id!r}", {"settings": extension.settings})
    try:
        for method in extension._methods:  # pyright: ignore[reportPrivateUsage]
            if method.schema is not None:
                checks.json_schema(
                    f"extension {checks.shown(extension.id)}: {checks.shown(method.name)} schema", method.schema
                )
            signature = signature_of(method.function)
            takes = arguments_of(signature)
            write = result_of(signature.hint, name_of(method.function)).write
            number = host.add(
                handler(
                    host,
                    Subject("request", method.name),
                    signature,
                    takes.decoder,
                    functools.partial(_answer, host, write),
                    threads if method.run_in_thread else None,
                )
            )
            methods.append(
                {
                    "name": method.name,
                    "handler": number,
                    "idempotent": method.idempotent,
                    "schema": method.schema or takes.schema,
                }
            )
        notifications = [
            {"method": method, "member": member}
            for method, member in extension._notifications  # pyright: ignore[reportPrivateUsage]
        ]
        add(
            encode(
                {
                    "id": extension.id,
                    "settings": extension.settings,
                    "methods": methods,
                    "notifications": notifications,
                }
            ).decode()
        )
    except BaseException:
        for entry in methods:
            host.drop(entry["handler"])
        raise
    host.extensions.add(extension.id)


def _answer(host: Host, write: Callable[[Any], bytes], key: int, value: Any) -> object:
    if value is None:
        return host.bridge.result(key, b"{}")
    text = write(value)
    # The engine says what is expected when it is no object.
    return host.bridge.result(key, text) if text.startswith(b"{") else host.bridge.value(key, text)

"""Stores that the processes of one server share, other than those that the engine knows."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Iterable, Mapping, Set
from typing import Any, NamedTuple, Protocol, TypedDict, cast, runtime_checkable

from ..bridge import callouts
from ..bridge.host import Host
from ..bridge.threads import MAX_THREADS, Threads
from ..errors import MisuseError, PeerMisbehavedError
from ..json import checks

_OPTION = 'server option "store"'
_METHODS = ("get", "commit")


class Document(NamedTuple):
    """A text in a store, and its version."""

    version: str
    """Another one each time that the text is written: visible ASCII of at most 32 bytes, used once."""
    text: str
    """JSON without control characters, of some hundred bytes mostly, and of at most 16 MiB."""


class DocumentWrite(NamedTuple):
    """One write to a store."""

    key: str
    """Visible ASCII of at most 512 bytes, in which letters of either case are different."""
    document: Document | None
    """The content of the key from now on. None: nothing."""
    ttl: float
    """Seconds, whole and at least 1, after which nobody needs it any more, in place of those before. It may stay there
    for longer."""


Found = Iterable[Document | tuple[str, str] | None]
"""Documents in the order of their keys, each with its version first."""


@runtime_checkable
class DocumentStore(Protocol):
    """A store of your own that makes one server of several processes, such as a table of a database: documents, which
    are texts under keys, each with a version.

    Two operations are enough: documents are read, and written all or none if nobody has written some others meanwhile.
    Methods may be plain, then they run in worker threads, or asynchronous; they are called several times at once. A
    store whose documents are in a dictionary, for one process:

        def get(self, keys):
            with self.lock:
                return [self.kept.get(key) for key in keys]

        def commit(self, expected, writes):
            with self.lock:
                for key, version in expected.items():
                    found = self.kept.get(key)
                    if (found.version if found else None) != version:
                        return False
                self.kept.update({write.key: write.document for write in writes})
                return True

    A store that can tell when something changes has a method `wait(seen, timeout)`, too, plain or asynchronous, which
    gets versions by keys as `commit` does. It returns when one of these documents has another version, or after
    `timeout` seconds; too early is no error. Each process reads a store without it ten times in a second. A store with
    a clock of its own, for machines whose clocks do not agree to a second, has a method `now()`, which returns the
    seconds since 1970 and is asked once in a minute.

    An operation that takes longer than 2 s counts as failed and is cancelled. Requests that need the store are refused
    (503) while it fails, and the rest goes on: a line on standard error says so once, and `on_error` hears what was
    raised each time, under the name `store`, or `PeerMisbehavedError` for what is no answer, such as None of `commit`.
    A `MisuseError` that `get` or `commit` raises refuses that one question, such as one with a text that is too long
    for the database, and the others go on. `tricorn.testing.check_document_store` tries all rules.
    """

    def get(self, keys: list[str], /) -> Found | Awaitable[Found]:
        """Returns the documents under these keys, in their order, as they are at one time; at most 64. None for a key
        without one."""
        ...

    def commit(self, expected: dict[str, str | None], writes: list[DocumentWrite], /) -> bool | Awaitable[bool]:
        """Does all of `writes` in one step, at most 1,024, and returns True, if the document under each key of
        `expected` still has this version, or is still not there where it is None. Else does nothing, and returns
        False."""
        ...


class _Documents(TypedDict):
    documents: DocumentStore
    """The store."""


class DocumentStoreOptions(_Documents, total=False):
    """A server's store of your own, with more options."""

    prefix: str
    """First part of every key, 1 to 64 letters, digits or `-_.:`; `tricorn`."""
    secret: str
    """Secret of at least 32 bytes, the same in all processes, that seals the server's keys of request states; they are
    not sealed."""


def place(host: Host, given: object) -> object:
    """Returns a server's option `store` as the engine takes it."""
    if given is None or isinstance(given, str):
        return given
    options: dict[str, Any] = {}
    if isinstance(given, Mapping) and not isinstance(given, DocumentStore):
        options = dict(cast("Mapping[str, Any]", given))
        if options.get("documents") is None:
            options.pop("documents", None)
            return options
        store = _documents(options)
    else:
        store = given
        _has_methods(f"{_OPTION}: expected a URL, StoreOptions or a DocumentStore", store)
    threads = Threads(MAX_THREADS)

    async def do(params: dict[str, Any]) -> object:
        match params["op"]:
            case "get":
                return {"documents": _found(await callouts.method(threads, store, "get", params["keys"]))}
            case "commit":
                writes = [_write(**write) for write in params["writes"]]
                return {"done": _done(await callouts.method(threads, store, "commit", params["expected"], writes))}
            case "wait":
                await callouts.method(threads, store, "wait", params["seen"], float(params["timeout"]))
                return {}
            case _:
                return {"now": _seconds(await callouts.method(threads, store, "now"))}

    return {
        **options,
        "documents": callouts.entry(host, "store", do, counted=True),
        "waits": callable(getattr(store, "wait", None)),
        "tells_time": callable(getattr(store, "now", None)),
    }


def _documents(options: dict[str, Any]) -> object:
    """Takes the store out of its options, which are checked."""
    if options.get("url") is not None:
        raise MisuseError(f'{_OPTION}: expected "url" or "documents", got both')
    options.pop("url", None)
    checks.known_options(_OPTION, options, DocumentStoreOptions)
    for name in ("prefix", "secret"):
        if options.get(name) is not None:
            checks.secret(f"{_OPTION}: {name}", options[name])
    store: object = options.pop("documents")
    _has_methods(f"{_OPTION}: documents: expected a DocumentStore", store)
    return store


def _has_methods(expected: str, store: object) -> None:
    for name in _METHODS:
        if not checks.has_method(store, name):
            raise MisuseError(f'{expected}: it has no function "{name}"')


def _write(key: str, document: dict[str, str] | None, ttl: int) -> DocumentWrite:
    return DocumentWrite(key, None if document is None else Document(**document), float(ttl))


def _broken(why: str) -> PeerMisbehavedError:
    """The error of a store that returned what is none of its answers. It has failed: `MisuseError` is a refusal of its
    own."""
    return PeerMisbehavedError(f"store: {why}")


def _found(found: object) -> list[dict[str, str] | None]:
    if isinstance(found, (str, bytes, Mapping, Set)) or not isinstance(found, Iterable):
        got = f"a {type(cast(Any, found)).__qualname__}"
        raise _broken(f"get: expected a list in the order of the keys, got {got}")
    return [_document(one) for one in cast("Iterable[object]", found)]


def _document(one: object) -> dict[str, str] | None:
    if one is None:
        return None
    if not isinstance(one, (tuple, list)) or len(cast("list[object]", one)) != 2:
        raise _broken(f"get: expected a Document or None, got {checks.type_of(cast(Any, one))}")
    version, text = cast("list[Any]", one)
    try:
        checks.secret("get: version", version)
        checks.secret("get: text", text)
    except MisuseError as error:
        raise _broken(error.message) from None
    return {"version": version, "text": text}


def _done(done: object) -> bool:
    if not isinstance(done, bool):
        raise _broken(f"commit: expected true or false, got {checks.type_of(done)}")
    return done


def _seconds(now: object) -> float:
    try:
        seconds = float(cast("float", now))
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if isinstance(now, str) or not math.isfinite(seconds):
        raise _broken(f"now: expected a number of seconds since 1970, got {checks.shown(now)}")
    return seconds

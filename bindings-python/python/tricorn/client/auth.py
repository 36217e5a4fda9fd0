"""Authorization of a client at a protected server."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, cast, get_args

import msgspec

from ..bridge import callouts
from ..bridge.host import Host
from ..bridge.threads import MAX_THREADS, Threads
from ..call.functions import Function
from ..errors import MisuseError
from ..json import checks
from ..model.principal import shown, written
from .token_store import Store, place

MAX_PORT = 65535

Grant = Literal["authorization_code", "client_credentials", "jwt_bearer", "id_jag"]


class Wanted(msgspec.Struct, frozen=True):
    """The purpose of a token or an assertion that a function is asked for."""

    issuer: str
    """The authorization server's issuer, which is the assertion's audience; empty where no server is asked."""
    resource: str | None = None
    """The resource that it is to open, as the server names itself."""


Source = Callable[..., "str | Awaitable[str]"]
"""A function of a `Wanted`, or of nothing, that gives a text which nobody else may know."""


class Identity(msgspec.Struct, omit_defaults=True):
    """The identity provider of an enterprise, which answers for its users."""

    token_endpoint: str
    """Its token endpoint, an https URL."""
    client_id: str
    """The client id of this program there."""
    token: str | None = None
    """The ID token it has issued for the user; None: the option `assertion`, a function, gives it."""
    client_secret: str | None = None
    """The program's secret there, if it has one."""
    token_type: str | None = None
    """The token's type; `urn:ietf:params:oauth:token-type:id_token`."""

    def __rich_repr__(self) -> Any:
        return [("token_endpoint", _bare(self.token_endpoint)), *shown(self, ("client_id", "token_type"))]

    def __repr__(self) -> str:
        return written(self)


def _bare(url: object) -> str:
    """A URL without what may be secret in it: who asks, the query, the fragment."""
    bare = re.sub(r"[?#].*", "", str(url), flags=re.DOTALL)
    return re.sub(r"(?<=//)[^/]*@", "", bare)


class ClientAuth(msgspec.Struct, kw_only=True):
    """Authorization of a client at a protected server: `connect(url, auth=ClientAuth())`, or `auth=True`.

    With nothing given it finds out everything: it discovers the authorization server, registers the program there where
    that is possible, and lets the user log in with the browser. After that it refreshes its tokens, and asks for more
    scopes when the server wants them. There is no secret in its `repr`.

    Functions may be plain ones, which run in worker threads, or asynchronous. An asynchronous one is cancelled when
    nobody waits for it any more; a plain one goes on, in one of 32 threads, or of 256 more.

    What `assertion`, `browser` and `callback` raise ends the login as an `AuthError` that names the step. What `token`
    and the store raise ends it as what it means: a `TimeoutError`, or what was caused by one, as a `TimeoutError`; a
    `TransportError`, a `ClosedError` or an `OSError` other than `PermissionError`, or what was caused by one, as a
    `TransportError`; what is not of the type that it has to be as a `MisuseError`; all else as an `AuthError`. Where
    `find` or `save` of a store fails there is a warning, and the login goes on. The message of this package's own
    exceptions is told, of others the type alone, as it may hold secrets: `on_error` gets all of those, and every
    `MisuseError`.
    """

    grant: Grant | None = None
    """The way tokens are obtained; chosen by the other options, a user's login otherwise."""
    client_id: str | None = None
    """The program's id at the authorization server, where it is registered already."""
    client_secret: str | None = None
    """Its secret there."""
    private_key: str | None = None
    """Its private key there, PEM; it proves itself with `private_key_jwt` (RFC 7523) then."""
    signing_algorithm: str | None = None
    """The key's algorithm; `"ES256"`. Others are ES384, RS256 to RS512, PS256 to PS512 and EdDSA."""
    key_id: str | None = None
    """The key's id (`kid`), where the server needs it."""
    issuer: str | None = None
    """The issuer that `client_id` belongs to: of the authorization servers that a server lists, this one is taken. For
    servers without metadata, the one that is asked. An https URL.

    Say it beside a secret: what a server lists is its own choice.
    """
    client_metadata_url: str | None = None
    """The URL of the program's own Client ID Metadata Document: its id at servers that understand that."""
    client_name: str | None = None
    """The program's name for people, where it registers itself; the client's own name."""
    client_uri: str | None = None
    """The URL of a page about the program."""
    application_type: Literal["native", "web"] | None = None
    """The type the program registers as (OpenID Connect); `"native"` where the browser comes back to this machine."""
    user: str | None = None
    """The user of the login, where one program has several: the login of one is not used for another; that of the one
    user of the program."""
    scopes: Sequence[str] = ()
    """Scopes that are always asked for, besides what the server wants; none."""
    dpop: bool | None = None
    """Tokens bound to a key (RFC 9449): True wherever the authorization server can, False never; where the MCP server
    asks for it."""
    identity: Identity | None = None
    """The identity provider that answers for the user."""
    assertion: str | Source | None = None
    """A workload's JWT, which is the grant, or a function of a `Wanted` that gives it each time; with `identity` what
    the provider has said of the user. It may take 300 s."""
    token: str | Source | None = None
    """An access token, or a function of a `Wanted` that gives one, and another when the server refuses it; it may take
    300 s. Nothing else is done then."""
    login_timeout: float = 300
    """Seconds that a user may take to log in; 300."""
    no_browser: bool = False
    """Writes the login page's address to standard error instead of opening it, where no `browser` is given."""
    redirect_port: int | None = None
    """The port of this machine that the browser comes back to, at `/callback`; one that is free. A client that was
    registered by hand may need its own."""
    browser: Callable[[str], object] | None = None
    """Called with the URL of the login page, to show it to the user; the system's browser. What it gives is ignored,
    and it need not wait for the user."""
    redirect_uri: str | None = None
    """The URL the browser comes back to, when that is not a port that the library listens on: needs `callback`."""
    callback: Source | None = None
    """Gives the URL with which the browser came back, or its query. Called with `redirect_uri` before the browser is
    shown the page; it waits as long as the user does, and is cancelled when nobody waits any more."""
    store: Store | None = None
    """The place where logins are kept: `"file"`, files that only the user can read and that all programs of this user
    share; `"memory"`, for this client alone; `"keychain"`, the same files sealed with a key of the system's keychain,
    which may ask the user, and unsealed where no keychain gives a key, which is said on standard error; a `FileStore`;
    `StoreOptions` with a `secret`, a Redis or Valkey that clients of other machines share; or a `TokenStore` of your
    own. Default: `"keychain"`, which says nothing where there is no keychain at all; for a
    user without a home directory the memory of this process, which is said on standard error."""

    @classmethod
    def bearer(cls, token: str | Source) -> ClientAuth:
        """An access token that is there already, or a function that gives it."""
        return cls(token=token)

    @classmethod
    def client_credentials(cls, client_id: str, client_secret: str) -> ClientAuth:
        """The program as itself, with a secret (RFC 6749 §4.4)."""
        return cls(grant="client_credentials", client_id=client_id, client_secret=client_secret)

    @classmethod
    def private_key_jwt(cls, client_id: str, private_key: str, signing_algorithm: str = "ES256") -> ClientAuth:
        """The program as itself, with a private key in PEM (RFC 7523 §2.2)."""
        return cls(
            grant="client_credentials",
            client_id=client_id,
            private_key=private_key,
            signing_algorithm=signing_algorithm,
        )

    @classmethod
    def identity_assertion(cls, identity: Identity, client_id: str, client_secret: str | None = None) -> ClientAuth:
        """The user as their identity provider knows them (enterprise-managed authorization).

        `client_id` is what the program is known as at the server's authorization server.
        """
        return cls(identity=identity, client_id=client_id, client_secret=client_secret)

    @classmethod
    def workload(cls, client_id: str, assertion: str | Source) -> ClientAuth:
        """A workload, whose platform gives it JWTs: the function is asked for one each time (RFC 7523 §2.1)."""
        return cls(grant="jwt_bearer", client_id=client_id, assertion=assertion)

    def __rich_repr__(self) -> Any:
        return shown(self, ("grant", "client_id", "issuer", "client_metadata_url", "scopes", "identity"))

    def __repr__(self) -> str:
        return written(self)

    def _check(self) -> None:
        # Bytes among them: as JSON they would be others.
        for name in _TEXTS:
            if (value := getattr(self, name)) is not None and not (name in _ASKED and callable(value)):
                checks.secret(f"auth: {name}", value, "a string or a function" if name in _ASKED else "a string")
        # The engine's word on it would name the option twice.
        if self.grant is not None and self.grant not in (grants := get_args(Grant)):
            raise MisuseError(f"auth: grant: expected one of {', '.join(grants)}, got {checks.shown(self.grant)}")
        checks.scopes("auth: scopes", self.scopes)
        checks.seconds("auth: login_timeout", self.login_timeout)
        checks.flag("auth: no_browser", self.no_browser)
        if self.dpop is not None:
            checks.flag("auth: dpop", self.dpop)
        port = cast("object", self.redirect_port)
        if port is not None and not isinstance(port, (int, float)):
            raise MisuseError(f"auth: redirect_port: expected a number, got {checks.type_of(port)}")
        if port is not None and (isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= MAX_PORT):
            raise MisuseError(f"auth: redirect_port: expected a port, 0 to {MAX_PORT}, got {checks.shown(port)}")
        if self.identity is not None:
            checks.a("auth: identity", self.identity, Identity)
            for name in Identity.__struct_fields__:
                if (value := getattr(self.identity, name)) is not None:
                    checks.secret(f"auth: identity.{name}", value)

    def to_wire(self, host: Host) -> dict[str, Any]:
        """As the engine takes it; functions get their places in the table of `host`."""
        self._check()
        threads = Threads(MAX_THREADS)
        wire = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        for name in _ASKED:
            if callable(function := wire.get(name)):
                del wire[name]
                wire[f"{name}s"] = callouts.entry(host, name, _giving(name, function, threads))
        for name in ("browser", "callback"):
            if name in wire:
                if not callable(wire[name]):
                    raise MisuseError(f"auth: {name}: expected a function, got {checks.type_of(wire[name])}")
                wire[name] = callouts.entry(host, name, _told(name, wire[name], threads))
        if self.store is not None:
            wire["store"] = place(host, self.store, threads)
        return wire


_ASKED = ("token", "assertion")
_TEXTS = (
    *("grant", "client_id", "client_secret", "private_key", "signing_algorithm", "key_id", "issuer"),
    *("client_metadata_url", "client_name", "client_uri", "application_type", "user", "redirect_uri", *_ASKED),
)


def settings(host: Host, auth: object) -> dict[str, Any] | None:
    """A client's option `auth` as the engine takes it; None is none."""
    if auth is None or auth is False:
        return None
    if auth is True:
        auth = ClientAuth()
    if not isinstance(auth, ClientAuth):
        raise MisuseError(f"auth: expected a ClientAuth or True, got {checks.type_of(auth)}")
    return auth.to_wire(host)


def _giving(name: str, function: Any, threads: Threads) -> callouts.Asked:
    call = Function(name, function, threads)

    async def give(params: dict[str, Any]) -> object:
        given = await call(Wanted(params["issuer"], params.get("resource")))
        checks.secret(name, given)
        return {name: given}

    return give


def _told(name: str, function: Any, threads: Threads) -> callouts.Asked:
    call = Function(name, function, threads)

    async def tell(params: dict[str, Any]) -> object:
        if name == "browser":
            await call(params["url"])
            return {}
        came = await call(params["redirect_uri"])
        checks.secret(name, came)
        return {"url": came}

    return tell

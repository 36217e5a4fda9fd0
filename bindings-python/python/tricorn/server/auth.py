"""Access tokens that a server accepts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from ..bridge import callouts
from ..bridge.host import Host
from ..bridge.threads import MAX_THREADS, Threads
from ..call.functions import Function
from ..errors import MisuseError
from ..json import checks
from ..model.principal import Principal, shown, written

Verifier = Callable[[str], "Principal | Awaitable[Principal | None] | None"]
"""A function of an access token that says whose it is. None: the token is refused."""


class Introspection(msgspec.Struct):
    """The endpoint to ask about tokens (RFC 7662), and the credentials for it (`client_secret_basic`)."""

    url: str
    """The introspection endpoint, an https URL."""
    client_id: str
    """The client id of the server there."""
    client_secret: str
    """Its secret there."""

    def __rich_repr__(self) -> Any:
        return shown(self, ("client_id",))  # the query of the URL may hold a key

    def __repr__(self) -> str:
        return written(self)


class ServerAuth(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Validation of access tokens over HTTP: the server is an OAuth 2.1 resource server then.

        auth = ServerAuth(issuer="https://login.example.com", resource="https://mcp.example.com/mcp",
                          required_scopes=["mcp"])
        app = Server("notes", auth=auth)

    One of `issuer`, `introspection` and `verifier` says whose a token is. A request without a token, or with one that
    is not for this server now, is answered with 401 and a challenge that says where the protected-resource metadata is
    (RFC 9728), which is served, too; one whose token lacks scopes with 403 and a challenge that names all that it
    needs; one whose token cannot be checked now with 503. Handlers learn who asks by `ctx.principal`, and never see the
    token. There is no secret in its `repr`. What is wrong with it is a `MisuseError` when the server is made, or begins
    to serve HTTP.
    """

    issuer: str | None = None
    """Takes JSON Web Tokens (RFC 9068) of this issuer: the text that their `iss` has, byte for byte, an https URL.
    Signatures are RS, PS, ES or EdDSA. Its keys are found by its metadata (RFC 8414, OpenID Connect Discovery) and
    kept; they are fetched again when they are an hour old or a token is signed with another, once in 30 s at most, and
    used for a day while there are no others."""
    introspection: Introspection | None = None
    """Asks the authorization server about each token (RFC 7662): what is active has to say for whom it is (`aud`). An
    answer is believed for 30 s. Needs `authorization_servers`."""
    verifier: Verifier | None = None
    """Asks a function about each token, which has to make sure that it is for this server; what it says of the expiry
    is checked. A plain one runs in one of 32 worker threads, and goes on when it takes longer than `timeout`; an
    asynchronous one is cancelled then. It gives a `Principal`. None, or an exception, refuses the token; but a
    `TimeoutError`, or an `OSError` such as `ConnectionError`, raised or the cause of what is raised, says that nobody
    can tell now (503). The client is told neither's message; `on_error` hears of exceptions that are not this
    package's, such as an `AuthError`. Needs `authorization_servers`."""
    jwks_uri: str | None = None
    """The URL of the issuer's keys, for one that publishes no metadata; of no effect without `issuer`."""
    resource: str | None = None
    """The server's own URL, as its clients write it, such as `"https://mcp.example.com/mcp"`: `https`, also where a
    proxy ends TLS, and `http` only on this machine; tokens have to be for it (RFC 8707). Needed, unless the server
    listens on the loopback interface with its default `allowed_hosts`."""
    audiences: Sequence[str] = ()
    """The audiences of which a token needs one, for authorization servers that have names of their own for resources;
    the `resource`, which they replace: name that, too, where it may come. No other server may have them."""
    required_scopes: Sequence[str] = ()
    """The scopes that every request needs, all of them; none. `offline_access` is none of them."""
    scopes_supported: Sequence[str] = ()
    """The scopes that the metadata lists: those that a client should ask for at first; the required ones."""
    scope_implies: Mapping[str, Sequence[str]] = {}
    """Narrower scopes that whoever was granted a scope has, too: `{"admin": ["read", "write"]}`; none."""
    authorization_servers: Sequence[str] = ()
    """The issuers that clients may get tokens from, as the metadata lists them; the `issuer`."""
    resource_name: str | None = None
    """The server's name for people, in the metadata."""
    resource_documentation: str | None = None
    """The page for developers about the server, in the metadata: an http or https URL."""
    clock_skew: float = 60
    """By how many whole seconds the clocks of issuer and server may differ, 600 at most; 60."""
    timeout: float = 10
    """Seconds that the authorization server, or the function, may take over one question, for keys, metadata and all;
    10, and longer is 503. More than 0."""

    def __rich_repr__(self) -> Any:
        names = ("issuer", "introspection", "resource", "required_scopes", "authorization_servers")
        return shown(self, names)

    def __repr__(self) -> str:
        return written(self)

    def _check(self) -> None:
        for name in ("issuer", "jwks_uri", "resource", "resource_name", "resource_documentation"):
            if (value := getattr(self, name)) is not None:
                checks.secret(f"auth: {name}", value)
        for name in ("audiences", "authorization_servers"):
            checks.secrets(f"auth: {name}", getattr(self, name))
        for name in ("required_scopes", "scopes_supported"):
            checks.scope_list(f"auth: {name}", getattr(self, name))
        checks.a("auth: scope_implies", self.scope_implies, Mapping)
        for scope, narrower in self.scope_implies.items():
            checks.scopes("auth: scope_implies", [scope])
            checks.scopes(f"auth: scope_implies: {scope}", narrower)
        if self.introspection is not None:
            checks.a("auth: introspection", self.introspection, Introspection)
            for name in ("url", "client_id", "client_secret"):
                checks.secret(f"auth: introspection.{name}", getattr(self.introspection, name))
        for name in ("clock_skew", "timeout"):
            checks.seconds(f"auth: {name}", getattr(self, name))

    def to_wire(self, host: Host) -> dict[str, Any]:
        """As the engine takes it; the verifier gets its place in the table of `host`."""
        self._check()
        wire = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        if self.verifier is not None:
            if not callable(cast("object", self.verifier)):
                raise MisuseError(f"auth: verifier: expected a function, got {checks.type_of(self.verifier)}")
            wire["verifier"] = callouts.entry(host, "verifier", _verifying(self.verifier))
        return wire


def settings(host: Host, auth: object) -> dict[str, Any]:
    """A server's option `auth` as the engine takes it."""
    if not isinstance(auth, ServerAuth):
        raise MisuseError(f"auth: expected a ServerAuth, got {checks.type_of(auth)}")
    return auth.to_wire(host)


def _verifying(verifier: Verifier) -> callouts.Asked:
    # Threads of its own: tools that are at work in all of a server's keep nobody out.
    call = Function("verifier", verifier, Threads(MAX_THREADS))

    async def verify(params: dict[str, Any]) -> object:
        principal = await call(params["token"])
        if principal is None:
            return {}
        if not isinstance(principal, Principal):
            raise MisuseError(f"verifier: expected a Principal or None, got a {type(principal).__qualname__}")
        return {"principal": principal.to_wire()}

    return verify

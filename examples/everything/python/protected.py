"""What tests/cases/FIXTURES.md has of a server that protects itself."""

from __future__ import annotations

import json
from typing import Any

from tricorn import Context, Introspection, Principal, Server, ServerAuth

Json = dict[str, Any]


def protection(text: str) -> ServerAuth:
    """The option `auth`, of what the languages share."""
    given: Json = json.loads(text)
    if (asked := given.pop("introspection", None)) is not None:
        given["introspection"] = Introspection(**asked)
    people: dict[str, Json | None] | None = given.pop("verifier", None)
    if people is not None:

        def verify(token: str) -> Principal | None:
            known = people.get(token, {})
            if known is None:
                raise TimeoutError("nobody can tell")
            return Principal(**known) if known else None

        given["verifier"] = verify
    return ServerAuth(**given)


def add_protected(app: Server) -> None:
    """What needs scopes, and what tells who asks."""

    @app.tool(output_schema=None)
    async def whoami(ctx: Context) -> Json:
        """Say who asks"""
        principal = ctx.principal
        names = ("subject", "issuer", "client_id", "scopes", "expires_at")
        return {
            **{name: getattr(principal, name, None) for name in names},
            "team": None if principal is None else principal.claims.get("team"),
            "reads": principal is not None and principal.has_scope("files:read"),
        }

    @app.tool(scopes=["files:read", "files:write"])
    async def delete_file(name: str) -> str:
        """Delete a file"""
        return f"deleted {name}"

    options: Json = {"mime_type": "text/plain", "scopes": ["files:read"]}

    @app.resource("test://secret", name="secret", **options)
    async def secret() -> str:
        return "the secret"

    @app.resource("test://secret/{id}", name="secret-of", **options)
    async def secret_of(id: str) -> str:  # noqa: A002 - the variable's name
        return f"the secret of {id}"

    @app.prompt(scopes=["files:read"], complete={"id": ["alpha"]})
    async def secret_prompt(id: str) -> str:  # noqa: A002 - the argument's name
        """Say a secret"""
        return f"Say the secret of {id}."

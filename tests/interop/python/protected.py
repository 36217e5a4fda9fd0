"""A protected server on the official Python SDK: protected.py --http HOST:PORT, the issuer in PROTECTED_BY."""

import asyncio
import os
import socket
import sys
from typing import Any

import jwt
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from serving import Announcing
from uvicorn import Config

ISSUER = os.environ["PROTECTED_BY"]


class Verifier:
    """The SDK's `TokenVerifier`, for JSON Web Tokens: their audience is the SDK's own business."""

    def __init__(self) -> None:
        self.keys = jwt.PyJWKClient(f"{ISSUER}/jwks")

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            claims = await asyncio.to_thread(self.claims, token)
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims.get("scope", "").split(),
            expires_at=claims["exp"],
            resource=claims["aud"],
            subject=claims["sub"],
            claims=claims,
        )

    def claims(self, token: str) -> dict[str, Any]:
        key = self.keys.get_signing_key_from_jwt(token)
        return jwt.decode(token, key, ["RS256"], issuer=ISSUER, options={"verify_aud": False})


def offer(server: MCPServer) -> None:
    @server.tool()
    def whoami() -> dict[str, Any]:
        """Say who asks"""
        token = get_access_token()
        assert token is not None
        issuer = (token.claims or {})["iss"]
        return {"subject": token.subject, "issuer": issuer, "client_id": token.client_id, "scopes": token.scopes}

    @server.tool()
    async def slow(ms: int) -> str:
        """Take a while"""
        await asyncio.sleep(ms / 1000)
        return f"slept {ms} ms"


def main(address: str) -> None:
    host, port = address.rsplit(":", 1)
    # The settings want to know the port.
    listening = socket.create_server((host, int(port)))
    url = f"http://{host}:{listening.getsockname()[1]}/mcp"
    # Texts: an `AnyHttpUrl` of no path gets a slash, and is another issuer then.
    auth = AuthSettings.model_validate(
        {
            "issuer_url": ISSUER,
            "resource_server_url": url,
            "required_scopes": ["mcp"],
            "validate_token_resource": True,
        }
    )
    server = MCPServer("python-sdk", log_level="ERROR", auth=auth, token_verifier=Verifier())
    offer(server)
    Announcing(Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listening])


match sys.argv[1:]:
    case ["--http", address]:
        main(address)
    case _:
        sys.exit(__doc__)

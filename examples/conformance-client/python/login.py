"""How the client gets in where the suite's servers are protected, and the user that it needs for that."""

import asyncio
import http.client
from typing import Any
from urllib.parse import urlsplit

from tricorn import AuthError, ClientAuth, Identity

DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""What the suite knows as this program; nobody fetches it."""
CALLBACK = "http://localhost:3000/callback"
"""Nothing listens there."""


class User:
    """Consents to everything at once."""

    def __init__(self) -> None:
        self.back: asyncio.Queue[str] = asyncio.Queue()

    async def browse(self, url: str) -> None:
        await self.back.put(await asyncio.to_thread(visited, url))


def visited(url: str) -> str:
    """Where the page at `url` leads. The redirect is not followed: it leads to nobody."""
    page = urlsplit(url)
    connection = http.client.HTTPConnection(page.netloc)
    connection.request("GET", f"{page.path}?{page.query}")
    answer = connection.getresponse()
    location = answer.getheader("Location")
    connection.close()
    if location is None:
        raise AuthError(f"the authorization page: HTTP {answer.status}, and no way back")
    return location


def login(scenario: str, context: dict[str, Any]) -> ClientAuth:
    """The options that a scenario is to be passed with."""
    match scenario:
        case "auth/client-credentials-basic":
            auth = ClientAuth.client_credentials(context["client_id"], context["client_secret"])
        case "auth/client-credentials-jwt":
            auth = ClientAuth.private_key_jwt(
                context["client_id"], context["private_key_pem"], context["signing_algorithm"]
            )
        case "auth/enterprise-managed-authorization":
            identity = Identity(context["idp_token_endpoint"], context["idp_client_id"], context["idp_id_token"])
            auth = ClientAuth.identity_assertion(identity, context["client_id"], context["client_secret"])
        case "auth/wif-jwt-bearer":
            auth = ClientAuth.workload(context["client_id"], context["valid_jwt"])
        case "auth/pre-registration":
            auth = ClientAuth(client_id=context["client_id"], client_secret=context["client_secret"])
        case _:
            auth = ClientAuth(client_metadata_url=DOCUMENT, dpop=scenario.startswith("auth/dpop"))
    user = User()
    auth.browser, auth.redirect_uri, auth.callback = user.browse, CALLBACK, user.back.get
    auth.store = "memory"
    return auth

"""An authorization server on the loopback interface, with a user who says yes to everything."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import threading
import time
import urllib.request
from collections.abc import AsyncGenerator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tricorn import Principal, Server

# A key of nobody's, for tests.
MODULUS = (
    "zwCuQLjgQqbCEk3BDM6q3ZypY0VrZnWxxsX3gSVOhVBe7IcABdJgKCJxLAT2rTHCxSVYHPGJif7bzqtiRX3euS1YEqUvOgG1IoLe"
    "o2vvpp1cCPFJdUCq488tzOo969Btfs4PsjmzrSXip9PWNtEYWhZodfICu7QwAb0CQroOXoPNqi_vs2Qi_8luy37oTsm_-IQrniH-"
    "R67BBHfuKMEpWPM9jBSHy1wuKibDj2hlqF1dTBZtZPf-RBUHE1J7CN0vAwQSZRNH3lnPzzsrDw5bwIIxXQS9F0ktBMd2cUTqsLPv"
    "B5FjoiK8ZKHIC8AbYzD49Et_oSC29ji4t4iwl8dJcw=="
)
EXPONENT = (
    "HSlS4wJIcYtNfseeYSACOSsXP8lpSmtdKov8BKENUUGTxc105t0Ot8i2WcWvPJHshtpucdFjF2IkdBZ3xyNmy36EUEgeAZV4_44h"
    "MDOF9NppO0dGmnKMQICQyrPbGkvoCPudgXWYhtV1-z-gB2PogtRyTd9UnD3Tn4MRfPX6DT1SCZjz4kDy3AHQH_TA3uogcLb6fPyV"
    "bmXDtv0EgLg1Unwt0CdN3Tt-wHSnKWUNuRY85RxUDAM8QNASQRN8_O3mO44o2qRLGKgo-4iFk8Q6It9xnbXGqx0MD98xz77JzBNa"
    "EBcBywnR6SGRDro_SVnec3tLJ6LphlfbPieyV4KTqQ=="
)
DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")


def number(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text), "big")


def urlsafe(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed(claims: dict[str, Any], kid: str = "1") -> str:
    """A JSON Web Token (RS256)."""
    parts = [{"alg": "RS256", "typ": "at+jwt", "kid": kid}, claims]
    text = ".".join(urlsafe(json.dumps(part).encode()) for part in parts)
    digest = DIGEST_INFO + hashlib.sha256(text.encode()).digest()
    padded = b"\x00\x01" + b"\xff" * (256 - 3 - len(digest)) + b"\x00" + digest
    signature = pow(int.from_bytes(padded, "big"), number(EXPONENT), number(MODULUS))
    return f"{text}.{urlsafe(signature.to_bytes(256, 'big'))}"


class AuthorizationServer:
    """An authorization server that records what it sees and issues; its tokens are RS256 JWTs for the requested
    `resource`."""

    def __init__(self) -> None:
        self.subject = "ada"
        self.registered: list[dict[str, Any]] = []
        self.forms: list[dict[str, str]] = []
        """Forms that were posted to the token endpoint."""
        self.authorized: list[dict[str, str]] = []
        """Queries of the login page."""
        self.introspected: list[dict[str, str]] = []
        self.audience = ""
        """For whom the token `opaque` is."""
        self.short = 0
        """Number of the next access tokens that are to be renewed before they are used again."""
        self.tokens: dict[str, Principal] = {}
        """Tokens that were issued and hold: for servers that ask for each token."""
        self.slow = threading.Event()
        """Set: a refresh is answered when `answers` is set, although the refresh token is used up before."""
        self.waits = threading.Event()
        """A refresh waits for its answer."""
        self.answers = threading.Event()
        self.secrets = {"robot": "hush", "server": "shh"}
        self._codes: dict[str, dict[str, str]] = {}
        self._refreshes: dict[str, str] = {}
        self._granted: dict[str, str] = {}
        self._count = 0
        self._lock = threading.Lock()
        own = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                own.get(self)

            def do_POST(self) -> None:
                own.post(self)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def scopes_asked(self) -> list[set[str]]:
        return [set(query.get("scope", "").split()) for query in self.authorized]

    def grants(self) -> list[str]:
        return [form["grant_type"] for form in self.forms]

    def metadata(self) -> dict[str, Any]:
        url = self.url
        return {
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "registration_endpoint": f"{url}/register",
            "introspection_endpoint": f"{url}/introspect",
            "jwks_uri": f"{url}/keys",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
            "grant_types_supported": [
                "authorization_code",
                "refresh_token",
                "client_credentials",
                "urn:ietf:params:oauth:grant-type:jwt-bearer",
            ],
        }

    def get(self, request: BaseHTTPRequestHandler) -> None:
        path, query = urlsplit(request.path).path, pairs(urlsplit(request.path).query)
        if path == "/.well-known/oauth-authorization-server":
            answer(request, 200, self.metadata())
        elif path == "/keys":
            key = {"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": MODULUS.rstrip("="), "e": "AQAB"}
            answer(request, 200, {"keys": [key]})
        elif path == "/authorize":
            with self._lock:
                self.authorized.append(query)
                code = f"code-{len(self.authorized)}"
                self._codes[code] = query
            back = urlencode({"code": code, "state": query["state"], "iss": self.url})
            request.send_response(302)
            request.send_header("Location", f"{query['redirect_uri']}?{back}")
            request.end_headers()
        else:
            answer(request, 404, {})

    def post(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        with self._lock:
            status, said = self.posted(request.path, body, request.headers.get("Authorization", ""))
        if self.slow.is_set() and request.path == "/token" and self.forms[-1]["grant_type"] == "refresh_token":
            self.waits.set()
            self.answers.wait(30)
        answer(request, status, said)

    def posted(self, path: str, body: bytes, authorization: str) -> tuple[int, dict[str, Any]]:
        if path == "/register":
            self.registered.append(json.loads(body))
            return 201, {**json.loads(body), "client_id": f"client-{len(self.registered)}"}
        if path == "/token":
            self.forms.append(pairs(body.decode()))
            return self.token(self.forms[-1], authorization)
        if path == "/introspect":
            form = pairs(body.decode())
            self.introspected.append({**form, "authorization": authorization})
            claims = {"active": True, "sub": self.subject, "aud": self.audience, "scope": "read"}
            return 200, claims if form["token"] == "opaque" else {"active": False}
        return 404, {}

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        kind = form["grant_type"]
        if kind == "authorization_code":
            asked = self._codes.pop(form["code"], {})
            challenge = urlsafe(hashlib.sha256(form["code_verifier"].encode()).digest())
            if challenge != asked.get("code_challenge") or form["redirect_uri"] != asked["redirect_uri"]:
                return 400, {"error": "invalid_grant"}
            scope = asked.get("scope", "")
        elif kind == "refresh_token":
            kept = self._refreshes.pop(form["refresh_token"], None)
            if kept is None:
                return 400, {"error": "invalid_grant"}
            scope = kept
        elif kind == "client_credentials":
            client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
            if not secret or self.secrets.get(client) != secret:
                return 401, {"error": "invalid_client"}
            form["client_id"] = client
            scope = form.get("scope", "")
        elif kind.endswith("jwt-bearer"):
            if not form["assertion"].startswith("proof"):
                return 400, {"error": "invalid_grant"}
            scope = form.get("scope") or self._granted.get(form["assertion"], "")
        elif kind.endswith("token-exchange"):
            kind = "urn:ietf:params:oauth:token-type:id-jag"
            self._granted[f"proof of {form['subject_token']}"] = form.get("scope", "")
            return 200, {
                "access_token": f"proof of {form['subject_token']}",
                "issued_token_type": kind,
                "token_type": "N_A",
            }
        else:
            return 400, {"error": "unsupported_grant_type"}
        self._count += 1
        now = int(time.time())
        life = 0 if self.short > 0 else 3600
        self.short -= 1
        claims = {
            "iss": self.url,
            "sub": self.subject,
            "aud": form["resource"],
            "client_id": form.get("client_id", "?"),
            "scope": scope,
            "iat": now,
            "exp": now + 3600,
            "jti": str(self._count),
        }
        token = signed(claims)
        self.tokens[token] = Principal(self.subject, issuer=self.url, scopes=scope.split())
        body = {"access_token": token, "token_type": "Bearer", "expires_in": life, "scope": scope}
        if kind in ("authorization_code", "refresh_token"):
            body["refresh_token"] = f"refresh-{self._count}"
            self._refreshes[f"refresh-{self._count}"] = scope
        return 200, body


def pairs(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}


def answer(request: BaseHTTPRequestHandler, status: int, body: object) -> None:
    text = json.dumps(body).encode()
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(text)))
    request.end_headers()
    request.wfile.write(text)


class Visitor:
    """Somebody with a browser, who follows every login page to its end."""

    def __init__(self) -> None:
        self.visited: list[str] = []

    def browse(self, url: str) -> str:
        """Gives the page on which it ends."""
        self.visited.append(url)
        with urllib.request.urlopen(url, timeout=30) as page:
            text: str = page.read().decode()
        return text


@contextlib.asynccontextmanager
async def serving(app: Server) -> AsyncGenerator[str]:
    """The URL at which a server listens."""
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(app.serve_http(port=0, on_listening=listening.set_result))
    try:
        await asyncio.wait([task, listening], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        yield listening.result()
    finally:
        app.close()
        await asyncio.wait_for(task, 30)

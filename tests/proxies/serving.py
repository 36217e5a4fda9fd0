"""The servers behind the proxies: TLS before programs that have none, an authority that vouches for it, and the user's
browser."""

import asyncio
import contextlib
import datetime
import http.client
import re
import ssl
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)
MOST_STEPS = 20


class Authority:
    """An authority that nobody knows, and a certificate of it for some names."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self.ca, self.chain = folder / "authority.pem", folder / "server.pem"
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of the tests")])
        ca = self.begun(name, name, key.public_key())
        ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        ca = ca.add_extension(self.usage(signs=True), critical=True)
        ca = ca.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        self.ca.write_bytes(ca.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        own = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        leaf = self.begun(subject, name, own.public_key())
        leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        leaf = leaf.add_extension(self.usage(signs=False), critical=True)
        leaf = leaf.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        leaf = leaf.add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
        leaf = leaf.add_extension(issuer, critical=False)
        private = own.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.chain.write_bytes(private + leaf.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    @staticmethod
    def begun(subject: x509.Name, issuer: x509.Name, key: Any) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - DAY).not_valid_after(now + 2 * DAY)

    @staticmethod
    def usage(signs: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=signs,
            crl_sign=signs,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain)
        return context


class Terminator:
    """A port that speaks TLS, and leads on to a program that does not."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.port = self.to = 0
        self.server: asyncio.Server | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str) -> int:
        self.server = await asyncio.start_server(self.serve, host, 0, ssl=self.authority.context())
        self.port = self.server.sockets[0].getsockname()[1]
        return self.port

    def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        if self.server:
            self.server.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self.tasks.add(task)
        ends = [writer]
        try:
            there, away = await asyncio.open_connection("127.0.0.1", self.to)
            ends.append(away)
            ways = [asyncio.ensure_future(self.copy(*way)) for way in ((reader, away), (there, writer))]
            # TLS here has no half that is closed: where one side ends, both do.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
        except OSError:
            pass
        finally:
            for end in ends:
                end.close()
            self.tasks.discard(task)

    @staticmethod
    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await source.read(65536):
                target.write(piece)
                await target.drain()


class Front:
    """TLS before the authorization server, which is called otherwise here than it calls itself: each text that names it
    is written anew on the way."""

    def __init__(self, authority: Authority, name: str) -> None:
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                front.asked.append(f"{self.command} {self.path.partition('?')[0]}")
                status, headers, page = front.ask(self.command, self.path, dict(self.headers), body)
                self.send_response(status)
                for key, value in headers:
                    self.send_header(key, value)
                self.send_header("content-length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            do_GET = do_POST = answer  # noqa: N815

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = authority.context().wrap_socket(self.server.socket, server_side=True)
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.issuer = f"https://{name}:{self.server.server_address[1]}"
        self.real = ""
        self.asked: list[str] = []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """One exchange with the authorization server, as from outside."""
        passed = {key: value for key, value in headers.items() if key.lower() not in ("host", "connection")}
        real = http.client.HTTPConnection(self.real.partition("//")[2], timeout=20)
        real.request(method, path, body or None, passed)
        answer = real.getresponse()
        page = self.renamed(answer.read().decode()).encode()
        dropped = ("content-length", "transfer-encoding", "connection", "keep-alive")
        kept = [(key, self.renamed(value)) for key, value in answer.getheaders() if key.lower() not in dropped]
        real.close()
        return answer.status, kept, page

    def renamed(self, text: str) -> str:
        for form in (str, lambda url: urllib.parse.quote(url, safe="")):
            text = text.replace(form(self.real), form(self.issuer))
        return text

    def log_in(self, url: str) -> str:
        """A browser, and a user who consents: what the program that waits answers in the end."""
        cookies: dict[str, str] = {}
        method, form = "GET", b""
        for _ in range(MOST_STEPS):
            if not url.startswith(self.issuer):
                return self.come_back(url)
            headers = {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())} if cookies else {}
            if form:
                headers["content-type"] = "application/x-www-form-urlencoded"
            status, came, page = self.ask(method, url.removeprefix(self.issuer), headers, form)
            for name, value in came:
                if name.lower() == "set-cookie":
                    key, _, kept = value.partition(";")[0].partition("=")
                    cookies[key] = kept
            cookies = {key: value for key, value in cookies.items() if value}
            location = next((value for name, value in came if name.lower() == "location"), None)
            if location:
                method, url, form = "GET", urllib.parse.urljoin(url, location), b""
                continue
            text = page.decode()
            prompt = re.search(r'name="prompt" value="(\w+)"', text)
            action = re.search(r'<form[^>]* action="([^"]+)"', text)
            if status != 200 or not prompt or not action:
                raise RuntimeError(f"{status}: {text[:300]}")
            method, url = "POST", urllib.parse.urljoin(url, action[1])
            form = urllib.parse.urlencode({"prompt": prompt[1], "login": "ada", "password": "x"}).encode()
        raise RuntimeError("the login has no end")

    @staticmethod
    def come_back(url: str) -> str:
        parts = urllib.parse.urlsplit(url)
        back = http.client.HTTPConnection(parts.netloc, timeout=20)
        back.request("GET", f"{parts.path}?{parts.query}", headers={"sec-fetch-mode": "navigate"})
        answer = back.getresponse()
        said = f"{answer.status} {answer.read().decode()[:200]}"
        back.close()
        return said

"""A server in the open: TLS, the log of requests, the budget of memory."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tricorn import MisuseError, Server, TransportError, connect

from .conftest import PATIENCE

TLS = Path(__file__).resolve().parents[2] / "tests" / "tls"
CERT, KEY, AUTHORITY = (str(TLS / name) for name in ("cert.pem", "key.pem", "authority.pem"))


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_tls(revision: str) -> None:
    app = Server("tls")

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    async with app.listen(port=0, cert=CERT, key=KEY) as url:
        assert url.startswith("https://127.0.0.1:")
        async with connect(url, ca=AUTHORITY, revision=revision) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        with pytest.raises(TransportError, match='authority; name that in the option "ca", SSL_CERT_FILE'):
            async with connect(url, revision=revision):
                pass


@pytest.mark.skipif(sys.platform == "win32", reason="there are no Unix sockets")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_unix_sockets(revision: str, tmp_path: Path) -> None:
    app = Server("local")

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    socket = tmp_path / "my app.sock"
    async with app.listen(f"unix:{socket}") as url:
        assert url == f"unix://{str(socket).replace(' ', '%20')}#/mcp"
        async with connect(url, revision=revision) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        reader, writer = await asyncio.open_unix_connection(socket)
        writer.write(b"PUT /mcp HTTP/1.1\r\nHost: any.example.com\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 405 ")
        writer.close()
    assert not socket.exists()
    with pytest.raises(TransportError, match="cannot connect: No such file"):
        await connect(url)
    with pytest.raises(MisuseError, match="expected the path of a socket"):
        await connect("unix://app.sock")
    program = """
        from tricorn import Server
        Server("local").run()
    """
    arguments = ["-c", textwrap.dedent(program), "--http", f"unix:{socket}"]
    started = await asyncio.create_subprocess_exec(sys.executable, *arguments, stderr=subprocess.PIPE)
    assert started.stderr is not None
    assert (await started.stderr.readline()).decode().strip() == f"ready {url}"
    async with connect(url, revision=revision) as client:
        assert client.server_info.name == "local"
    started.terminate()
    assert await asyncio.wait_for(started.wait(), PATIENCE) == 0
    assert not socket.exists()


async def test_what_is_no_certificate() -> None:
    app = Server("tls")
    with pytest.raises(MisuseError, match='"key": expected "cert" besides'):
        async with app.listen(port=0, key=KEY):
            pass
    with pytest.raises(MisuseError, match='"cert": expected PEM, or the path of a file'):
        async with app.listen(port=0, cert="/nowhere/cert.pem"):
            pass
    with pytest.raises(MisuseError, match='"max_memory": expected at least 1, got 0'):
        async with Server("none", max_memory=0).listen(port=0):
            pass


PROGRAM = """
    import asyncio
    from tricorn import Server, connect

    app = Server("log", max_memory=8 << 20)

    @app.tool
    def length(text: str) -> int:
        return len(text)

    async def main():
        async with app.listen(port=0, access_log=True) as url:
            async with connect(url, revision="2026-07-28") as client:
                print((await client.call_tool("length", {"text": "x" * (2 << 20)})).text)
            assert isinstance(app.metrics()["memory"], int)

    asyncio.run(main())
"""


def test_requests_are_written_to_standard_error() -> None:
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (0, "2097152\n"), done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("127.0.0.1 - - [")]
    assert any('"POST /mcp HTTP/1.1" 200 ' in line and line.endswith("ms") for line in lines), done.stderr

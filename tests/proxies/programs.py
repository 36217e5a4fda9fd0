"""The proxies, each with a configuration of the tests and an access log."""

import asyncio
import contextlib
import os
import re
import shutil
import socket
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
START = 40.0
"""Seconds that a proxy has to listen."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


class Proxy:
    """A proxy and its access log."""

    def __init__(self, name: str, work: Path, words: list[str], env: dict[str, str], log: Path, port: int) -> None:
        self.name, self.words, self.log, self.port = name, words, log, port
        self.env = {**os.environ, **env}
        self.said = work / f"{name}.out"
        self.process: asyncio.subprocess.Process | None = None
        self.socks = 0

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        with self.said.open("ab") as out:
            self.process = await asyncio.create_subprocess_exec(
                *self.words, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out, env=self.env
            )
        async with asyncio.timeout(START):
            while self.process.returncode is None:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    return
                await asyncio.sleep(0.05)
        said = self.said.read_text(errors="replace").strip()[-600:]
        raise RuntimeError(f"{self.name} ended with {self.process.returncode}: {said}")

    async def stop(self) -> None:
        if self.process is None or self.process.returncode is not None:
            return
        self.process.terminate()
        try:
            async with asyncio.timeout(5):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()

    def lines(self) -> list[str]:
        """The requests that it has written down so far: method and target, and who asked where that is known."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        found = re.findall(r"\b(CONNECT|GET|POST|DELETE) (\S+)(?: (\S+))?", text)
        return [" ".join(part for part in line if part) for line in found]


def open_to_all(folder: Path) -> None:
    """Lets a proxy in that gives up being root."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)


def squid(at: Path, work: Path, name: str, hosts: str, account: tuple[str, str] | None = None) -> Proxy | None:
    """Squid of this machine, or what `at` has of Debian's packages: it finds the names of `hosts` alone. With an
    account it asks for that."""
    own = shutil.which("squid", path=os.environ.get("PATH", "") + ":/usr/sbin")
    root = Path("/") if own else at
    program = own or str(root / "usr/sbin/squid")
    if not Path(program).is_file():
        return None
    folder, port = work / name, free_port()
    open_to_all(folder)
    shared, programs = root / "usr/share/squid", root / "usr/lib/squid"
    templates = next(iter([*shared.glob("errors/templates"), *shared.glob("errors/en")]), None)
    (folder / "hosts").write_text(hosts)
    lines = [
        f"http_port 127.0.0.1:{port}",
        f"hosts_file {folder}/hosts",
        "visible_hostname proxy.test",
        "pid_filename none",
        f"cache_log {folder}/cache.log",
        f"access_log stdio:{folder}/access.log proxies",
        f"coredump_dir {folder}",
        "cache deny all",
        "netdb_filename none",
        "pinger_enable off",
        "shutdown_lifetime 0 seconds",
        f"unlinkd_program {programs}/unlinkd",
        f"logfile_daemon {programs}/log_file_daemon",
        f"mime_table {shared}/mime.conf",
        f"icon_directory {shared}/icons",
    ]
    lines.insert(0, "logformat proxies %rm %ru %[un %>Hs")
    if templates:
        lines.append(f"error_directory {templates}")
    if os.geteuid() == 0:
        lines.append("cache_effective_user nobody")
    if account:
        user, word = account
        helper = folder / "helper"
        quoted = [f"'{user} {word.replace('@', at_sign).replace(' ', '%20')}'" for at_sign in ("@", "%40")]
        text = f"while read -r line; do case $line in {'|'.join(quoted)}) echo OK ;; *) echo ERR ;; esac; done"
        helper.write_text(f"#!/bin/sh\n{text}\n")
        helper.chmod(0o755)
        lines += [
            f"auth_param basic program {helper}",
            "auth_param basic realm proxies",
            "acl known proxy_auth REQUIRED",
            "http_access allow known",
            "http_access deny all",
        ]
    else:
        lines += ["acl blocked dstdomain blocked.test", "http_access deny blocked", "http_access allow all"]
    configuration = folder / "squid.conf"
    configuration.write_text("\n".join(lines) + "\n")
    libraries = ":".join(str(found) for found in root.glob("usr/lib/*-linux-*"))
    env = {} if own else {"LD_LIBRARY_PATH": libraries}
    words = [program, "-N", "-f", str(configuration)]
    return Proxy(name, work, words, env, folder / "access.log", port)


def tinyproxy(at: Path, work: Path, name: str, account: tuple[str, str] | None = None) -> Proxy | None:
    program = shutil.which("tinyproxy") or str(at / "usr/bin/tinyproxy")
    if not Path(program).is_file():
        return None
    folder, port = work / name, free_port()
    open_to_all(folder)
    lines = [
        f"Port {port}",
        "Listen 127.0.0.1",
        "Timeout 600",
        "MaxClients 200",
        "LogLevel Connect",
        f'LogFile "{folder}/access.log"',
    ]
    if account:
        lines.append(f"BasicAuth {account[0]} {account[1]}")
    configuration = folder / "tinyproxy.conf"
    configuration.write_text("\n".join(lines) + "\n")
    return Proxy(name, work, [program, "-d", "-c", str(configuration)], {}, folder / "access.log", port)


def mitmproxy(work: Path, name: str, trusted: Path) -> Proxy | None:
    """mitmproxy of the environment that runs this program; `trusted` vouches for the servers behind it."""
    program = Path(sys.executable).with_name("mitmdump")
    if not program.is_file():
        return None
    folder, port, socks = work / name, free_port(), free_port()
    open_to_all(folder)
    words = [str(program), "--quiet", "--scripts", str(HERE / "intercept.py")]
    words += ["--mode", f"regular@127.0.0.1:{port}", "--mode", f"socks5@127.0.0.1:{socks}"]
    for setting in (f"confdir={folder}", f"ssl_verify_upstream_trusted_ca={trusted}", "termlog_verbosity=warn"):
        words += ["--set", setting]
    env = {"PROXIES_LOG": str(folder / "access.log"), "PYTHONDONTWRITEBYTECODE": "1"}
    proxy = Proxy(name, work, words, env, folder / "access.log", port)
    proxy.socks = socks
    return proxy

"""Our clients through proxies that others wrote: `run.py LANG [CASE]...`, with the Python that mitmproxy lives in.

The client is the language's runner of tests/cases. The servers are the fixtures in Rust, called `mcp.test` and
`auth.test`, names that the proxies alone can find: a request that arrives there has gone through a proxy. The
proxies' access logs are looked at, too.

Prints one line for each case, `{"case", "ok", "note"}`; `ok` is null where this machine lacks what it needs. Ends
with 1 when a case failed. `PROXIES` is the folder of the unpacked Debian packages.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from programs import Proxy, free_port, mitmproxy, squid, tinyproxy
from serving import Authority, Front, Terminator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOON = 30.0
"""Seconds for one thing that is asked of a client."""
NOW = 20.0
"""Seconds in which a client has to say that it cannot connect: it looks for a modern server first, and then for any."""
MODERN, LEGACY = "2026-07-28", "2025-11-25"
USER = "ada"
WORD, PLAIN_WORD = "s@cret word", "secret-word"
"""Passwords: one that has to be written otherwise in a URL, and one that tinyproxy can have in its configuration."""
WRITTEN = "s%40cret%20word"
VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
Json = dict[str, Any]


class Failed(Exception):  # noqa: N818
    """The client has answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error.get('kind')}: {error.get('message')}")
        self.error = error


def expect(fits: object, got: object) -> None:
    if not fits:
        raise AssertionError(str(got)[:600])


class Runner:
    """A client's program, which takes commands."""

    def __init__(self, lang: str, env: dict[str, str], front: Front | None = None) -> None:
        outside = {*VARIABLES, *(name.lower() for name in VARIABLES), *AUTHORITIES}
        kept = {name: value for name, value in os.environ.items() if name not in outside}
        self.words, self.env, self.front = [str(ROOT / f"tests/cases/runners/{lang}/run")], {**kept, **env}, front
        self.waiting: dict[int, asyncio.Future[Any]] = {}
        self.progress: dict[int, list[Json]] = {}
        self.count = 0
        self.errors: list[str] = []
        self.readers: list[asyncio.Task[None]] = []
        self.came_back = ""

    async def __aenter__(self) -> "Runner":
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            *self.words, stdin=pipe, stdout=pipe, stderr=pipe, env=self.env, limit=1 << 24, start_new_session=True
        )
        self.readers = [asyncio.ensure_future(self.read()), asyncio.ensure_future(self.overhear())]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            async with asyncio.timeout(SOON):
                code = await self.process.wait()
        except TimeoutError:
            os.killpg(self.process.pid, 9)
            code = None
        for reader in self.readers:
            reader.cancel()
        if kind is None:
            expect(code == 0, f"the client ended with {code}: {' / '.join(self.errors[-3:])}")

    async def read(self) -> None:
        assert self.process.stdout
        while line := await self.process.stdout.readline():
            said = json.loads(line)
            number = said["id"]
            if "progress" in said:
                self.progress.setdefault(number, []).append(said["progress"])
                continue
            answer = self.waiting.pop(number, None)
            if answer is None or answer.done():
                continue
            if "error" in said:
                answer.set_exception(Failed(said["error"]))
            else:
                answer.set_result(said["result"])
        for answer in self.waiting.values():
            if not answer.done():
                answer.set_exception(RuntimeError(f"the client is gone: {' / '.join(self.errors[-3:])}"))

    async def overhear(self) -> None:
        """Reads the lines for its user: the address of a login is followed."""
        assert self.process.stderr
        while line := await self.process.stderr.readline():
            text = line.decode(errors="replace").strip()
            self.errors.append(text)
            if self.front and text.startswith(self.front.issuer):
                try:
                    self.came_back = await asyncio.to_thread(self.front.log_in, text)
                except Exception as error:  # noqa: BLE001
                    self.errors.append(f"the browser: {error}")

    def start(self, do: str, **members: Any) -> tuple[int, asyncio.Future[Any]]:
        assert self.process.stdin
        self.count += 1
        answer = asyncio.get_running_loop().create_future()
        self.waiting[self.count] = answer
        line = json.dumps({"id": self.count, "do": do, "client": 1, **members}) + "\n"
        self.process.stdin.write(line.encode())
        return self.count, answer

    async def done(self, do: str, **members: Any) -> Any:
        async with asyncio.timeout(SOON):
            return await self.start(do, **members)[1]

    async def call(self, name: str, **arguments: Any) -> Json:
        return await self.done("call_tool", name=name, arguments=arguments)

    async def connect(self, url: str, options: Json, revision: str | None) -> Json:
        pinned = {"revision": revision} if revision else {}
        return await self.done("connect", target={"url": url}, options={**options, **pinned})


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    end = time.monotonic() + SOON
    while not await holds():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {SOON:.0f} s")
        await asyncio.sleep(0.05)


async def quick(runner: Runner, url: str, options: Json, revision: str | None = None) -> None:
    await runner.connect(url, options, revision)
    said = await runner.call("add", a=20, b=22)
    expect(said["text"] == "42", said)
    await runner.done("close")


async def at_once(runner: Runner) -> None:
    numbers = [str(n) for n in range(20)]
    said = await asyncio.gather(*(runner.call("echo", text=number) for number in numbers))
    expect([answer["text"] for answer in said] == numbers, said)


async def in_a_row(runner: Runner) -> None:
    """Calls of which each follows the answer of the one before, on whatever connection is left of that."""
    for number in range(300):
        try:
            await runner.call("echo", text=str(number))
        except Failed as failed:
            raise AssertionError(f"call {number}: {failed}") from failed


async def reports(runner: Runner) -> None:
    number, answer = runner.start("call_tool", name="count", arguments={"to": 5}, progress=True)
    async with asyncio.timeout(SOON):
        said = await answer
    got = [report["progress"] for report in runner.progress.get(number, [])]
    expect(said["text"] == "counted to 5" and got == [1, 2, 3, 4, 5], (said, got))


async def arrives_early(runner: Runner) -> None:
    """A report is there while the call goes on: nobody keeps the stream back."""
    number, answer = runner.start("call_tool", name="slow", arguments={"ms": 1500}, progress=True)

    async def reported() -> bool:
        return bool(runner.progress.get(number))

    await until(reported, "a report")
    expect(not answer.done(), "the report came with the answer")
    async with asyncio.timeout(SOON):
        await answer


async def works_again(runner: Runner) -> None:
    """A call goes through, be it after some that were lost with their connection."""

    async def works() -> bool:
        with contextlib.suppress(Failed):
            return (await runner.call("add", a=1, b=1))["text"] == "2"
        return False

    await until(works, "a call")


async def changes(runner: Runner, revision: str, *, again: bool = False) -> None:
    """Changes of a list and of a resource, which the server tells by itself."""
    known = len((await runner.done("info"))["notifications"])

    async def heard(method: str) -> bool:
        info = await runner.done("info")
        return any(notification["method"] == method for notification in info["notifications"][known:])

    async def list_changed() -> bool:
        await runner.call("test_trigger_tool_change")
        return await heard("notifications/tools/list_changed")

    async def updated() -> bool:
        await runner.call("touch", uri="test://watched-resource")
        return await heard("notifications/resources/updated")

    await until(list_changed, f"{revision}: tools/list_changed")
    if not again:
        await runner.done("subscribe", uri="test://watched-resource")
    await until(updated, f"{revision}: resources/updated")


async def cancel(runner: Runner) -> None:
    """A call that is given up: the server hears of it, and the next call works."""

    async def counted() -> tuple[int, int]:
        slow = (await runner.call("test_metrics"))["structured"]["slow"]
        return slow["cancelled"], slow["running"]

    before, _ = await counted()
    number, answer = runner.start("call_tool", name="slow", arguments={"ms": 60000}, progress=True)

    async def started() -> bool:
        return bool(runner.progress.get(number))

    await until(started, "the call's first report")
    await runner.done("cancel", call=number)
    try:
        async with asyncio.timeout(SOON):
            said = await answer
    except Failed as failed:
        expect(failed.error["kind"] == "cancelled_here", failed)
    else:
        raise AssertionError(said)

    async def is_told() -> bool:
        return await counted() == (before + 1, 0)

    await until(is_told, "the server hears that the call is cancelled")


async def everything(runner: Runner, url: str, options: Json) -> None:
    for revision in (MODERN, LEGACY):
        info = await runner.connect(url, options, revision)
        expect(info["protocolVersion"] == revision, info)
        for what in (at_once, reports, arrives_early, cancel):
            try:
                await what(runner)
            except (AssertionError, Failed, TimeoutError) as error:
                raise AssertionError(f"{revision}, {what.__name__}: {error or type(error).__name__}") from error
        await changes(runner, revision)
        await runner.done("close")


class Stage:
    """Everything that runs: servers, proxies, and the client's language."""

    def __init__(self, lang: str, work: Path) -> None:
        self.lang, self.work = lang, work
        self.own = own_name()
        names = ["mcp.test", "auth.test", *([self.own[0]] if self.own else [])]
        self.authority = Authority(work, names)
        self.ca = str(self.authority.ca)
        at = Path(os.environ.get("PROXIES", ROOT / "target/proxies/debian"))
        hosts = "127.0.0.1 mcp.test auth.test\n" + (f"{self.own[1]} {self.own[0]}\n" if self.own else "")
        self.squid = squid(at, work, "squid", hosts)
        self.strict = squid(at, work, "squid-strict", hosts, (USER, WORD))
        self.tiny = tinyproxy(at, work, "tinyproxy")
        self.tiny_strict = tinyproxy(at, work, "tinyproxy-strict", (USER, PLAIN_WORD))
        self.mitm = mitmproxy(work, "mitmproxy", self.authority.ca)
        self.mitm_ca = str(work / "mitmproxy/mitmproxy-ca-cert.pem")
        self.front: Front | None = None
        self.plain = self.tls = self.own_tls = self.own_plain = self.protected = self.own_protected = ""
        self.dead = f"127.0.0.1:{free_port()}"

    async def start(self, loose: contextlib.AsyncExitStack) -> None:
        for proxy in (self.squid, self.strict, self.tiny, self.tiny_strict, self.mitm):
            if proxy:
                loose.push_async_callback(proxy.stop)
                await proxy.start()
        port = await served(loose, [str(ROOT / "examples/everything/rust/run"), "--http", "127.0.0.1:0"], {})
        self.plain = f"http://mcp.test:{port}/mcp"
        self.tls = f"https://mcp.test:{await self.secured(loose, '127.0.0.1', port)}/mcp"
        if self.own:
            name, address = self.own
            self.own_tls = f"https://{name}:{await self.secured(loose, address, port)}/mcp"
            if address == "127.0.0.1":
                self.own_plain = f"http://{name}:{port}/mcp"
        await self.protect(loose)

    async def secured(self, loose: contextlib.AsyncExitStack, host: str, to: int) -> int:
        terminator = Terminator(self.authority)
        terminator.to = to
        loose.callback(terminator.stop)
        return await terminator.start(host)

    async def protect(self, loose: contextlib.AsyncExitStack) -> None:
        """The protected fixture, and the authorization server of tests/auth."""
        program = ROOT / "target/interop/npm-provider/provider.mjs"
        node = shutil.which("node")
        if not program.exists() or not node:
            return
        self.front = Front(self.authority, "auth.test")
        loose.callback(self.front.server.shutdown)
        found: list[str] = []
        await served(loose, [node, str(program)], {}, found)
        self.front.real = found[0]
        self.protected = await self.protected_at(loose, self.front, "mcp.test", "127.0.0.1")
        if self.own:
            self.own_protected = await self.protected_at(loose, self.front, *self.own)

    async def protected_at(self, loose: contextlib.AsyncExitStack, front: Front, name: str, host: str) -> str:
        terminator = Terminator(self.authority)
        loose.callback(terminator.stop)
        url = f"https://{name}:{await terminator.start(host)}/mcp"
        auth = {
            "issuer": front.real,
            "resource": url,
            "required_scopes": ["mcp"],
            "authorization_servers": [front.issuer],
        }
        words = [str(ROOT / "examples/everything/rust/run"), "--http", "127.0.0.1:0"]
        terminator.to = await served(loose, words, {"EVERYTHING_AUTH": json.dumps(auth)})
        return url

    def runner(self, **env: str) -> Runner:
        return Runner(self.lang, env, self.front)


async def served(
    loose: contextlib.AsyncExitStack, words: list[str], env: dict[str, str], found: list[str] | None = None
) -> int:
    """The port of a server that says `ready URL`, and the URL in a list."""
    outside = {*VARIABLES, *(name.lower() for name in VARIABLES)}
    kept = {name: value for name, value in os.environ.items() if name not in outside}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.DEVNULL, stderr=pipe, env={**kept, "EVERYTHING_ALLOWED_HOSTS": "*", **env}
    )

    async def stop() -> None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    loose.push_async_callback(stop)
    assert process.stderr
    said = b""
    async with asyncio.timeout(60):
        while line := await process.stderr.readline():
            said += line
            if line.startswith(b"ready "):
                url = line.split()[1].decode()
                drain = asyncio.ensure_future(emptied(process.stderr))
                loose.callback(drain.cancel)
                if found is not None:
                    found.append(url)
                return int(url.split("//")[1].partition("/")[0].rpartition(":")[2])
    raise RuntimeError(f"{words[0]} ended: {said.decode(errors='replace')[-400:]}")


async def emptied(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass


def own_name() -> tuple[str, str] | None:
    """A name of this machine that is not `localhost`, for what is asked without a proxy, and its address."""
    name = socket.gethostname()
    with contextlib.suppress(OSError):
        address = socket.gethostbyname(name)
        with socket.create_server((address, 0)):
            return name, address
    return None


# ---- cases -----------------------------------------------------------------------------------------------------------

Case = Callable[[Stage], Awaitable[None]]
CASES: dict[str, Case] = {}


class Absent(Exception):  # noqa: N818
    """A case needs something that is not on this machine."""


def case(name: str) -> Callable[[Case], Case]:
    def add(function: Case) -> Case:
        CASES[name] = function
        return function

    return add


def there(proxy: Proxy | None, name: str) -> Proxy:
    if proxy is None:
        raise Absent(f"there is no {name}")
    return proxy


def place(url: str) -> str:
    return url.split("//")[1].partition("/")[0]


@contextlib.asynccontextmanager
async def logged(proxy: Proxy, wanted: str | None) -> AsyncIterator[None]:
    """Makes sure that the proxy writes down this request meanwhile; None: no request at all."""
    before = len(proxy.lines())
    yield
    if wanted is None:
        # Tunnels are written down when they end, which they have by now.
        await asyncio.sleep(0.2)

    async def written() -> bool:
        return any(wanted in line for line in proxy.lines()[before:]) if wanted else True

    try:
        await until(written, f"{proxy.name} has written {wanted}")
    except AssertionError as error:
        raise AssertionError(f"{error}: {proxy.lines()[before:]}") from None
    if wanted is None:
        expect(len(proxy.lines()) == before, proxy.lines()[before:])


async def refused(
    stage: Stage,
    url: str,
    options: Json,
    env: dict[str, str],
    words: list[str],
    *,
    any_of: tuple[str, ...] = (),
    kinds: tuple[str, ...] = ("transport",),
) -> None:
    """The connection fails soon, and the error says these words, one of the others, and no password."""
    async with stage.runner(**env) as runner:
        begun = time.monotonic()
        try:
            info = await runner.connect(url, options, None)
        except Failed as failed:
            error = failed.error
        else:
            raise AssertionError(f"connected: {info}")
        took = time.monotonic() - begun
        overheard = " ".join(runner.errors)
    message = str(error.get("message"))
    missing = [word for word in words if word not in message]
    if any_of and not any(word in message for word in any_of):
        missing.append(f"one of {any_of}")
    problems = [f"does not say {missing}"] if missing else []
    problems += [] if error.get("kind") in kinds else [f"is of the kind {error.get('kind')}"]
    problems += [f"took {took:.1f} s"] if took > NOW else []
    secret = [word for word in (WORD, WRITTEN, PLAIN_WORD, "wrong-word") if word in message + overheard]
    problems += ["shows the password"] if secret else []
    expect(not problems, f"the error {', '.join(problems)}: {message}")


async def through(
    stage: Stage, proxy: Proxy, url: str, wanted: str, env: dict[str, str], options: Json | None = None
) -> None:
    async with logged(proxy, wanted), stage.runner(**env) as runner:
        await everything(runner, url, options or {})


async def briefly(
    stage: Stage, proxy: Proxy, url: str, wanted: str | None, env: dict[str, str], options: Json | None = None
) -> None:
    async with logged(proxy, wanted), stage.runner(**env) as runner:
        await quick(runner, url, options or {})


@case("squid: CONNECT")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    env = {"HTTPS_PROXY": f"http://{proxy.place}", "SSL_CERT_FILE": stage.ca}
    await through(stage, proxy, stage.tls, f"CONNECT {place(stage.tls)}", env)


@case("squid: variables")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    for name, value in (
        ("https_proxy", f"http://{proxy.place}"),
        ("ALL_PROXY", f"http://{proxy.place}"),
        ("all_proxy", f"http://{proxy.place}/"),
        ("HTTPS_PROXY", proxy.place),
    ):
        env = {name: value, "SSL_CERT_FILE": stage.ca}
        try:
            await briefly(stage, proxy, stage.tls, f"CONNECT {place(stage.tls)}", env)
        except (AssertionError, Failed) as error:
            raise AssertionError(f"{name}={value}: {error}") from error


@case("squid: CONNECT with a password")
async def _(stage: Stage) -> None:
    proxy = there(stage.strict, "squid")
    env = {"HTTPS_PROXY": f"http://{USER}:{WRITTEN}@{proxy.place}", "SSL_CERT_FILE": stage.ca}
    await through(stage, proxy, stage.tls, f"CONNECT {place(stage.tls)} {USER}", env)


@case("squid: a password as people write it")
async def _(stage: Stage) -> None:
    """The last @ is what ends a name and a password, as other programs have it."""
    proxy = there(stage.strict, "squid")
    env = {"HTTPS_PROXY": f"http://{USER}:{WORD.replace(' ', '%20')}@{proxy.place}", "SSL_CERT_FILE": stage.ca}
    await briefly(stage, proxy, stage.tls, f"CONNECT {place(stage.tls)} {USER}", env)


@case("squid: a wrong password")
async def _(stage: Stage) -> None:
    proxy = there(stage.strict, "squid")
    env = {"HTTPS_PROXY": f"http://{USER}:wrong-word@{proxy.place}", "SSL_CERT_FILE": stage.ca}
    await refused(stage, stage.tls, {}, env, [proxy.place], any_of=("407", "password", "credentials"))


@case("squid: no password")
async def _(stage: Stage) -> None:
    proxy = there(stage.strict, "squid")
    env = {"HTTPS_PROXY": f"http://{proxy.place}", "SSL_CERT_FILE": stage.ca}
    await refused(stage, stage.tls, {}, env, [proxy.place], any_of=("407", "password", "credentials"))


@case("squid: plain")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    await through(stage, proxy, stage.plain, f"POST {stage.plain}", {"HTTP_PROXY": f"http://{proxy.place}"})


@case("squid: plain with a password")
async def _(stage: Stage) -> None:
    proxy = there(stage.strict, "squid")
    env = {"HTTP_PROXY": f"http://{USER}:{WRITTEN}@{proxy.place}"}
    await through(stage, proxy, stage.plain, f"POST {stage.plain} {USER}", env)


@case("squid: plain with a wrong password")
async def _(stage: Stage) -> None:
    proxy = there(stage.strict, "squid")
    env = {"HTTP_PROXY": f"http://{USER}:wrong-word@{proxy.place}"}
    await refused(stage, stage.plain, {}, env, [proxy.place], any_of=("407", "password", "credentials"))


@case("squid: a server that is not there")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    env = {"HTTPS_PROXY": f"http://{proxy.place}", "HTTP_PROXY": f"http://{proxy.place}"}
    for url in (f"https://{stage.dead.replace('127.0.0.1', 'mcp.test')}/mcp", "http://nobody.test/mcp"):
        await refused(stage, url, {}, env, [proxy.place])


@case("squid: what it forbids")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    env = {"HTTPS_PROXY": f"http://{proxy.place}", "HTTP_PROXY": f"http://{proxy.place}"}
    # Of an answer to CONNECT nobody is told more than that it is a refusal.
    for url, words in (("https://blocked.test/mcp", []), ("http://blocked.test/mcp", ["403"])):
        await refused(stage, url, {}, env, [proxy.place, *words], kinds=("transport", "auth"))


@case("squid: plain, calls in a row")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    async with stage.runner(HTTP_PROXY=f"http://{proxy.place}") as runner:
        await runner.connect(stage.plain, {}, None)
        await in_a_row(runner)


@case("squid: it is started again")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    for variable, url in (("HTTPS_PROXY", stage.tls), ("HTTP_PROXY", stage.plain)):
        for revision in (MODERN, LEGACY):
            env = {variable: f"http://{proxy.place}", "SSL_CERT_FILE": stage.ca}
            async with stage.runner(**env) as runner:
                await runner.connect(url, {}, revision)
                await changes(runner, revision)
                await proxy.stop()
                await proxy.start()
                await works_again(runner)
                await changes(runner, revision, again=True)


@case("squid: NO_PROXY")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    if not stage.own:
        raise Absent("this machine has no name")
    env = {"HTTPS_PROXY": f"http://{proxy.place}", "SSL_CERT_FILE": stage.ca}
    await briefly(stage, proxy, stage.own_tls, f"CONNECT {place(stage.own_tls)}", env)
    for names in (stage.own[0], f"example.com, {stage.own[0].upper()}", "*"):
        try:
            await briefly(stage, proxy, stage.own_tls, None, {**env, "NO_PROXY": names})
            await briefly(stage, proxy, stage.own_tls, None, {**env, "no_proxy": names})
        except (AssertionError, Failed) as error:
            raise AssertionError(f"NO_PROXY={names}: {error}") from error


@case("squid: NO_PROXY, plain")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    if not stage.own_plain or not stage.own:
        raise Absent("this machine has no name")
    env = {"HTTP_PROXY": f"http://{proxy.place}"}
    await briefly(stage, proxy, stage.own_plain, f"POST {stage.own_plain}", env)
    await briefly(stage, proxy, stage.own_plain, None, {**env, "NO_PROXY": stage.own[0]})


@case("squid: this machine needs no proxy")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    url = stage.plain.replace("mcp.test", "localhost")
    await briefly(stage, proxy, url, None, {"HTTP_PROXY": f"http://{proxy.place}"})


@case("squid: the option")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    env = {"HTTPS_PROXY": f"http://{stage.dead}", "NO_PROXY": "*"}
    options = {"proxy": f"http://{proxy.place}", "ca": stage.ca}
    await through(stage, proxy, stage.tls, f"CONNECT {place(stage.tls)}", env, options)


@case("squid: the option, plain and with a password")
async def _(stage: Stage) -> None:
    proxy = there(stage.strict, "squid")
    options = {"proxy": f"http://{USER}:{WRITTEN}@{proxy.place}"}
    await briefly(stage, proxy, stage.plain, f"POST {stage.plain} {USER}", {}, options)


@case("squid: the option says none")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    if not stage.own:
        raise Absent("this machine has no name")
    env = {"HTTPS_PROXY": f"http://{proxy.place}"}
    await briefly(stage, proxy, stage.own_tls, None, env, {"proxy": "", "ca": stage.ca})


LOGIN: Json = {"no_browser": True, "store": "memory", "dpop": False}
"""The client's option `auth`. A proof (DPoP) would name the authorization server's URL, of which it knows another."""


async def login(stage: Stage, proxy: Proxy, env: dict[str, str], options: Json, *, direct: bool = False) -> None:
    """A user logs in, and a call tells who it is. With `direct` the server itself is asked without a proxy."""
    if not stage.front:
        raise Absent("there is no authorization server")
    target = stage.own_protected if direct else stage.protected
    if not target:
        raise Absent("this machine has no name")
    stage.front.asked.clear()
    before = len(proxy.lines())
    async with stage.runner(**env) as runner:
        try:
            await runner.connect(target, {**options, "auth": LOGIN}, None)
        except (Failed, TimeoutError) as failed:
            heard = "; ".join(runner.errors[-4:])
            raise AssertionError(f"{failed}; the browser: {runner.came_back}; {heard}") from failed
        said = await runner.call("whoami")
        expect(said["structured"]["subject"] == "ada", said)
        await runner.done("close")
    expect({"POST /token", "POST /reg"} <= set(stage.front.asked), stage.front.asked)
    proxied = [stage.front.issuer, *([] if direct else [target])]

    async def written() -> bool:
        lines = " ".join(proxy.lines()[before:])
        return all(f"CONNECT {place(server)}" in lines for server in proxied)

    await until(written, f"{proxy.name} has written {proxied}")
    expect(not direct or place(target) not in " ".join(proxy.lines()[before:]), proxy.lines()[before:])


@case("squid: login")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    await login(stage, proxy, {"HTTPS_PROXY": f"http://{proxy.place}", "SSL_CERT_FILE": stage.ca}, {})


@case("squid: login, by options and with a password")
async def _(stage: Stage) -> None:
    proxy = there(stage.strict, "squid")
    options = {"proxy": f"http://{USER}:{WRITTEN}@{proxy.place}", "ca": stage.ca}
    await login(stage, proxy, {"HTTPS_PROXY": f"http://{stage.dead}"}, options)


@case("squid: login, the server without a proxy")
async def _(stage: Stage) -> None:
    proxy = there(stage.squid, "squid")
    own = stage.own[0] if stage.own else ""
    env = {"HTTPS_PROXY": f"http://{proxy.place}", "NO_PROXY": own, "SSL_CERT_FILE": stage.ca}
    await login(stage, proxy, env, {}, direct=True)


@case("login without a way to the authorization server")
async def _(stage: Stage) -> None:
    if not stage.own or not stage.own_protected:
        raise Absent("there is no authorization server, or this machine has no name")
    strict, mitm = there(stage.strict, "squid"), there(stage.mitm, "mitmproxy")
    for at, any_of in (
        (stage.dead, ()),
        (strict.place, ("407", "password", "credentials")),
        (mitm.place, ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", '"ca"')),
    ):
        proxy = f"http://{USER}:wrong-word@{at}"
        env = {"HTTPS_PROXY": proxy, "NO_PROXY": stage.own[0], "SSL_CERT_FILE": stage.ca}
        options = {"auth": LOGIN}
        await refused(stage, stage.own_protected, options, env, [at], any_of=any_of, kinds=("transport", "auth"))


@case("tinyproxy: CONNECT")
async def _(stage: Stage) -> None:
    proxy = there(stage.tiny, "tinyproxy")
    if not stage.own:
        raise Absent("this machine has no name")
    env = {"HTTPS_PROXY": f"http://{proxy.place}", "SSL_CERT_FILE": stage.ca}
    await through(stage, proxy, stage.own_tls, f"CONNECT {place(stage.own_tls)}", env)


@case("tinyproxy: plain")
async def _(stage: Stage) -> None:
    proxy = there(stage.tiny, "tinyproxy")
    if not stage.own_plain:
        raise Absent("this machine has no name")
    await through(stage, proxy, stage.own_plain, f"POST {stage.own_plain}", {"HTTP_PROXY": f"http://{proxy.place}"})


@case("tinyproxy: plain, calls in a row")
async def _(stage: Stage) -> None:
    proxy = there(stage.tiny, "tinyproxy")
    if not stage.own_plain:
        raise Absent("this machine has no name")
    async with stage.runner(HTTP_PROXY=f"http://{proxy.place}") as runner:
        await runner.connect(stage.own_plain, {}, None)
        await in_a_row(runner)


@case("tinyproxy: passwords")
async def _(stage: Stage) -> None:
    proxy = there(stage.tiny_strict, "tinyproxy")
    if not stage.own_plain:
        raise Absent("this machine has no name")
    for kind, url, wanted in (
        ("HTTPS_PROXY", stage.own_tls, f"CONNECT {place(stage.own_tls)}"),
        ("HTTP_PROXY", stage.own_plain, f"POST {stage.own_plain}"),
    ):
        env = {"SSL_CERT_FILE": stage.ca}
        await briefly(stage, proxy, url, wanted, {**env, kind: f"http://{USER}:{PLAIN_WORD}@{proxy.place}"})
        wrong = {**env, kind: f"http://{USER}:wrong-word@{proxy.place}"}
        # It answers with 401, which is the server's word.
        words = ("407", "401", "password", "credentials")
        await refused(stage, url, {}, wrong, [proxy.place], any_of=words, kinds=("transport", "auth"))


@case("mitmproxy: nobody knows its authority")
async def _(stage: Stage) -> None:
    proxy = there(stage.mitm, "mitmproxy")
    env = {"HTTPS_PROXY": f"http://{proxy.place}", "SSL_CERT_FILE": stage.ca}
    await refused(stage, stage.tls, {}, env, ["certificate"], any_of=("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", '"ca"'))


@case("mitmproxy: SSL_CERT_FILE")
async def _(stage: Stage) -> None:
    proxy = there(stage.mitm, "mitmproxy")
    env = {"HTTPS_PROXY": f"http://{proxy.place}", "SSL_CERT_FILE": stage.mitm_ca}
    await through(stage, proxy, stage.tls, f"POST {stage.tls}", env)


@case("mitmproxy: SSL_CERT_DIR")
async def _(stage: Stage) -> None:
    proxy = there(stage.mitm, "mitmproxy")
    folder = stage.work / "authorities"
    folder.mkdir(exist_ok=True)
    shutil.copy(stage.mitm_ca, folder / "mitmproxy.pem")
    env = {"HTTPS_PROXY": f"http://{proxy.place}", "SSL_CERT_DIR": str(folder)}
    await briefly(stage, proxy, stage.tls, f"POST {stage.tls}", env)


@case("mitmproxy: NODE_EXTRA_CA_CERTS")
async def _(stage: Stage) -> None:
    proxy = there(stage.mitm, "mitmproxy")
    env = {"HTTPS_PROXY": f"http://{proxy.place}", "NODE_EXTRA_CA_CERTS": stage.mitm_ca}
    await briefly(stage, proxy, stage.tls, f"POST {stage.tls}", env)


@case("mitmproxy: the option")
async def _(stage: Stage) -> None:
    proxy = there(stage.mitm, "mitmproxy")
    for ca in (stage.mitm_ca, await asyncio.to_thread(Path(stage.mitm_ca).read_text)):
        options = {"proxy": f"http://{proxy.place}", "ca": ca}
        await briefly(stage, proxy, stage.tls, f"POST {stage.tls}", {}, options)


@case("mitmproxy: login")
async def _(stage: Stage) -> None:
    proxy = there(stage.mitm, "mitmproxy")
    await login(stage, proxy, {"HTTPS_PROXY": f"http://{proxy.place}"}, {"ca": stage.mitm_ca})


@case("mitmproxy: SOCKS")
async def _(stage: Stage) -> None:
    proxy = there(stage.mitm, "mitmproxy")
    for scheme in ("socks5", "socks5h"):
        env = {"ALL_PROXY": f"{scheme}://127.0.0.1:{proxy.socks}", "SSL_CERT_FILE": stage.mitm_ca}
        await through(stage, proxy, stage.tls, f"POST {stage.tls}", env)
    await briefly(stage, proxy, stage.plain, f"POST {stage.plain}", env)


@case("no proxy there")
async def _(stage: Stage) -> None:
    url = f"http://{USER}:{WRITTEN}@{stage.dead}"
    for target, env, options in (
        (stage.tls, {"HTTPS_PROXY": url}, {}),
        (stage.plain, {"HTTP_PROXY": url}, {}),
        (stage.tls, {}, {"proxy": url}),
        (stage.tls, {"ALL_PROXY": f"socks5://{stage.dead}"}, {}),
    ):
        await refused(stage, target, options, env, [stage.dead])


@case("a proxy of which nobody knows the name")
async def _(stage: Stage) -> None:
    await refused(stage, stage.tls, {}, {"HTTPS_PROXY": "http://nobody.test:3128"}, ["nobody.test:3128"])


@case("a proxy that does not answer")
async def _(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        at = f"127.0.0.1:{silent.getsockname()[1]}"
        await refused(stage, stage.tls, {}, {"HTTPS_PROXY": f"http://{at}"}, [at])


@case("a proxy that cannot be spoken to")
async def _(stage: Stage) -> None:
    env = {"HTTPS_PROXY": f"https://{USER}:{PLAIN_WORD}@{stage.dead}"}
    await refused(stage, stage.tls, {}, env, [stage.dead])


@case("a proxy that is no URL")
async def _(stage: Stage) -> None:
    """A variable that cannot be used is never passed over, which would lead past the proxy."""
    if not stage.own:
        raise Absent("this machine has no name")
    problems = []
    for value in (f"http://{USER}:{PLAIN_WORD}#@{stage.dead}", f"ftp://{stage.dead}", "http://[::1:3128"):
        env = {"HTTPS_PROXY": value, "SSL_CERT_FILE": stage.ca}
        try:
            await refused(stage, stage.own_tls, {}, env, ["HTTPS_PROXY"], kinds=("transport", "misuse"))
        except AssertionError as error:
            problems.append(f"{value}: {error}")
    expect(not problems, "; ".join(problems))


# ----------------------------------------------------------------------------------------------------------------------


async def play(lang: str, names: list[str], work: Path) -> bool:
    good = True
    async with contextlib.AsyncExitStack() as loose:
        stage = Stage(lang, work)
        await stage.start(loose)
        for name, function in CASES.items():
            if names and not any(part in name for part in names):
                continue
            ok: bool | None = True
            note = ""
            try:
                await function(stage)
            except Absent as absent:
                ok, note = None, str(absent)
            except (AssertionError, Failed, TimeoutError, RuntimeError, OSError, KeyError) as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                plain = isinstance(error, (AssertionError, Failed))
                note = str(error) if plain else f"{type(error).__name__} ({where.name}:{where.lineno}): {error}"
                ok = good = False
            print(json.dumps({"case": name, "ok": ok, "note": note}, ensure_ascii=False), flush=True)
    return good


def main() -> None:
    lang, *names = sys.argv[1:]
    work = Path(tempfile.mkdtemp(prefix="proxies-"))
    work.chmod(0o755)
    good = False
    try:
        good = asyncio.run(play(lang, names, work))
    finally:
        if good:
            shutil.rmtree(work, ignore_errors=True)
        else:
            print(f"what the proxies wrote is in {work}", file=sys.stderr)
    sys.exit(0 if good else 1)


main()

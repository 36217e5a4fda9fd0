"""A store, processes and nginx that start, speak and end as one fixture server does: `as_one.py --http HOST:PORT`.

For tests of one server that know nothing of processes: it says `ready URL` on standard error, repeats there what the
processes say, writes nothing on standard output, and is gone soon after SIGTERM, or with the program that started it.
`EVERYTHING_…` goes to all processes.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from world import BLOCK, LANGS, NOTHING, SHARED, TREE, Front, Process, Program, Store, Unfit, reserve

AUTH = "EVERYTHING_AUTH"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Spoken(Process):
    """A process whose words are those of the whole."""

    async def read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr
        while line := await process.stderr.readline():
            text = line.decode(errors="replace").rstrip()
            self.lines.append(text)
            if text.startswith("ready "):
                self.ready.set()
            else:
                say(f"{self.name}: {text}")
        self.ready.set()


class Open(Front):
    """nginx that leaves what is refused, and how, to the server: it passes on every path and whatever is long."""

    def write(self, down: tuple[int, ...] = ()) -> None:
        super().write(down)
        path = self.folder / "nginx.conf"
        text = path.read_text()
        for shown, ours in (
            # Metadata of a protected server and HTTP+SSE have paths of their own.
            ("location ~ ^/(mcp|sse|messages) {", "large_client_header_buffers 4 128k;\n    location / {"),
            ("client_max_body_size 4m;", "client_max_body_size 0;"),
        ):
            assert text.count(shown) == 1, f"expected {shown!r} once in the settings of nginx"
            text = text.replace(shown, ours)
        path.write_text(text)


def environment(url: str) -> dict[str, str]:
    """The settings of the fixture. One that listens itself takes its own port for the URL that its tokens are for."""
    given = os.environ.get(AUTH)
    if given is None or "EVERYTHING_MOUNT" in os.environ:
        return {}
    auth: dict[str, Any] = json.loads(given)
    return {AUTH: json.dumps({"resource": url, **auth})}


def tied(program: Program, signal_name: str) -> None:
    """Makes a program end with this one, even if it is killed."""
    program.words = ["setpriv", "--pdeathsig", signal_name, *program.words]


async def orphaned(parent: int, ended: asyncio.Event) -> None:
    """Ends it all when nobody is there any more who could."""
    while os.getppid() == parent:  # noqa: ASYNC110 - nothing announces it
        await asyncio.sleep(1)
    ended.set()


async def without_loss(programs: list[Program], ended: asyncio.Event) -> None:
    """Waits for the end. The others would hide that one of them is gone: then all are."""
    waits = {asyncio.create_task(one.process.wait()): one for one in programs if one.process}
    asked = asyncio.create_task(ended.wait())
    await asyncio.wait({asked, *waits}, return_when=asyncio.FIRST_COMPLETED)
    gone = [one.name for wait, one in waits.items() if wait.done()]
    for task in (asked, *waits):
        task.cancel()
    if gone and not ended.is_set():
        raise Unfit(f"{' and '.join(gone)} ended without being asked to")


async def serve(options: argparse.Namespace, folder: Path, ports: list[int]) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    watch = asyncio.create_task(orphaned(os.getppid(), ended))
    port = int(options.http.rpartition(":")[2])
    words = [str(options.built / f"examples/everything/{options.lang}/run")]
    store = Store(options.built, folder, ports[0])
    own = environment(f"http://127.0.0.1:{port or ports[1]}/mcp")
    own["TRICORN_STORE"] = store.url if options.sharing == SHARED else ""
    processes = [
        Spoken(number, words, folder, each, own) for number, each in enumerate(ports[2 : options.processes + 2])
    ]
    front = Open(options.built, folder, port or ports[1], list(processes))
    programs: list[Program] = [front, *processes, store]
    for program in programs:
        # nginx has to end its workers.
        tied(program, "TERM" if program is front else "KILL")
    try:
        await store.start()
        await asyncio.gather(*(process.start() for process in processes))
        await front.start()
        say(f"ready {front.url}")
        await without_loss(programs, ended)
        for process in processes:
            process.terminate()
        for process in processes:
            await process.ended()
    finally:
        watch.cancel()
        for program in programs:
            await program.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--http", required=True, metavar="HOST:PORT", help="on the loopback interface; 0: any port")
    parser.add_argument("--processes", type=int, default=2, choices=range(1, BLOCK - 1), metavar="N")
    parser.add_argument("--lang", default="rust", choices=LANGS)
    parser.add_argument("--built", type=Path, default=TREE, help="the tree whose programs are run")
    parser.add_argument("--sharing", default=SHARED, choices=[SHARED, NOTHING])
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tricorn-scale-"))
    try:
        ports, lock = reserve()
        with lock:
            asyncio.run(serve(options, folder, ports))
    except (Unfit, AssertionError) as error:
        say(f"{type(error).__name__}: {error}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

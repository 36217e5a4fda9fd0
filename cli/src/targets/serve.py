# The program by which `tricorn` runs a Python file: as `python FILE` does, and if the file did not serve anything by
# itself, it runs the server that the file has defined.
import ast
import os
import select
import sys
import types

PATH, NAME, HTTP = sys.argv[1:4]
NAMES = ("app", "mcp", "server")
KINDS = ("tricorn", "fastmcp", "mcp")


def fail(message):
    sys.stderr.write(f"{os.path.basename(PATH)}: {message}\n")
    raise SystemExit(2)


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def is_main_guard(node):
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


def input_has_ended():
    """Says whether somebody has read standard input to its end, as a server does."""
    if os.name != "posix":
        return False
    import fcntl
    import termios

    try:
        if not select.select([0], [], [], 0)[0]:
            return False
        waiting = bytearray(4)
        fcntl.ioctl(0, termios.FIONREAD, waiting, True)
    except (OSError, ValueError):
        return True
    return not int.from_bytes(waiting, sys.byteorder)


def made(found):
    """The server that a function without parameters makes, also an async one."""
    if not isinstance(found, types.FunctionType):
        return found
    try:
        found = found()
    except TypeError as error:
        fail(f"{NAME!r} is a function that does not make a server: {error}")
    if isinstance(found, types.CoroutineType):
        import asyncio

        found = asyncio.run(found)
    return found


def servers(namespace):
    """The servers of the file by their names."""
    return {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_") and not isinstance(value, (type, types.ModuleType))
        if {kind.__module__.split(".")[0] for kind in type(value).__mro__} & set(KINDS) and hasattr(value, "run")
    }


def known(namespace):
    """The end of a sentence about a name that is no server's."""
    names = ", ".join(servers(namespace))
    return f"; the servers in it are {names}" if "," in names else f"; the server in it is {names}" if names else ""


def find(namespace):
    if NAME:
        found = namespace
        for part in NAME.split("."):
            found = found.get(part) if isinstance(found, dict) else getattr(found, part, None)
            if found is None:
                fail(f"there is nothing called {NAME!r} in it{known(namespace)}")
        found = made(found)
        if not hasattr(found, "run"):
            fail(f"{NAME!r} is no server, as the type {type(found).__name__} has no run(){known(namespace)}")
        return found
    for name in NAMES:
        found = namespace.get(name)
        if hasattr(found, "run"):
            return found
    found = servers(namespace)
    if len(found) == 1:
        return next(iter(found.values()))
    hint = f"it has several servers ({', '.join(found)})" if found else "it defines no app, mcp or server"
    fail(f"it did not serve anything, and {hint}: say which is meant with {os.path.basename(PATH)}:NAME")


def run(server):
    kind = type(server).__module__
    host, _, port = HTTP.rpartition(":")
    host, port = host.strip("[]") or "127.0.0.1", port or "8000"
    if kind.startswith("mcp.server.lowlevel"):
        if HTTP:
            fail("a low-level server of the package mcp has no HTTP of its own")
        import anyio
        from mcp.server.stdio import stdio_server

        async def serve():
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())

        anyio.run(serve)
    elif HTTP and kind.split(".")[0] == "fastmcp":
        server.run(transport="http", host=host, port=int(port))
    elif HTTP and kind.split(".")[0] == "mcp":
        # Until version 2 they were settings.
        if hasattr(server.settings, "port"):
            server.settings.host, server.settings.port = host, int(port)
            server.run(transport="streamable-http")
        else:
            server.run(transport="streamable-http", host=host, port=int(port))
    else:
        # Ours reads --http from the command line.
        server.run()


def main():
    try:
        with open(PATH, "rb") as file:
            source = file.read()
    except OSError as error:
        fail(f"cannot be read: {error.strerror}")
    # Frames of this program are no part of what went wrong in the file.
    tree = ast.parse(source, PATH)
    others = HTTP and {"fastmcp", "mcp"} & set(imports(tree))
    guarded = any(map(is_main_guard, tree.body))
    as_main = not NAME and not (others and guarded)
    module = types.ModuleType("__main__" if as_main else os.path.splitext(os.path.basename(PATH))[0])
    module.__file__ = PATH
    sys.modules[module.__name__] = module
    sys.path[0] = os.path.dirname(os.path.abspath(PATH))
    sys.argv[:] = [PATH, *(("--http", HTTP) if HTTP else ())]
    exec(compile(tree, PATH, "exec", dont_inherit=True), module.__dict__)
    if as_main and (guarded if HTTP or os.isatty(0) else input_has_ended()):
        return
    run(find(module.__dict__))


def shorten(kind, error, trace):
    """Leaves the frames of this program out of a traceback."""
    while trace is not None and trace.tb_frame.f_code.co_filename in ("<string>", ast.__file__):
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)
    if issubclass(kind, ModuleNotFoundError) and error.name == "tricorn":
        folder = os.environ.get("VIRTUAL_ENV")
        lost = f"VIRTUAL_ENV names {folder}, which is not there; " if folder and not os.path.isdir(folder) else ""
        line = f"{lost}this Python has no tricorn; install it there: {sys.executable} -m pip install tricorn"
        sys.stderr.write(f"{os.path.basename(PATH)}: {line}\n")
    if issubclass(kind, ImportError) and "no known parent package" in str(error):
        folder, name = os.path.split(os.path.abspath(PATH))
        parts = [os.path.splitext(name)[0]]
        while not parts[1:] or os.path.isfile(os.path.join(folder, "__init__.py")):
            folder, name = os.path.split(folder)
            parts.insert(0, name)
        line = f"-- {os.path.basename(sys.executable)} -m {'.'.join(parts)}"
        sys.stderr.write(f"{os.path.basename(PATH)}: it is a part of a package; in {folder} run it as one: {line}\n")


sys.excepthook = shorten
main()

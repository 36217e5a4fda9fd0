# The program by which `tricorn pack` asks an interpreter which of its installed distributions a server needs.
import ast
import importlib.util
import json
import os
import platform
import re
import sys
from importlib import metadata

given = json.load(sys.stdin)
found, linked_files, missing = [], [], set()


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def imports(path):
    with open(path, "rb") as file:
        try:
            tree = ast.parse(file.read(), path)
        except SyntaxError:
            return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def required(text, extras=()):
    """The name of a requirement and its extras; None for one that belongs to another extra."""
    name = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?", text)
    of = re.search(r"\bextra\s*==\s*[\"']([^\"']*)[\"']", text)
    if not name or (of and plain(of.group(1)) not in extras):
        return None
    return plain(name.group(1)), frozenset(plain(extra.strip()) for extra in (name.group(2) or "").split(",") if extra)


installed = {}
for distribution in metadata.distributions():
    name = distribution.metadata["Name"]
    if name:
        installed.setdefault(plain(name), distribution)
owners = metadata.packages_distributions()


def is_editable(distribution):
    said = json.loads(distribution.read_text("direct_url.json") or "{}")
    return said.get("dir_info", {}).get("editable", False)


def modules(distribution):
    """Top-level names of a distribution that is installed as a link to its sources."""
    said = (distribution.read_text("top_level.txt") or "").split()
    return said or [plain(distribution.metadata["Name"]).replace("-", "_")]


editable = {name: one for name, one in installed.items() if is_editable(one)}
linked = {module: name for name, one in editable.items() for module in modules(one)}

wanted = [required(text) for text in given["requires"]]
for path in given["files"]:
    for module in imports(path):
        if module in sys.stdlib_module_names or module in given["local"] or module == "__future__":
            continue
        names = owners.get(module) or ([linked[module]] if module in linked else [])
        wanted += [(plain(name), frozenset()) for name in names]
        if not names:
            missing.add(module)

needed, asked, todo = {}, set(), [one for one in wanted if one]
while todo:
    name, extras = one = todo.pop()
    if one in asked or name not in installed:
        continue
    asked.add(one)
    needed[name] = installed[name]
    todo += filter(None, (required(text, extras) for text in installed[name].requires or []))

# Files of this machine, and of no use elsewhere.
OWN = {"direct_url.json", "INSTALLER", "REQUESTED", "RECORD"}


def add(place, path, root=None):
    if "__pycache__" not in place.split("/") and not place.endswith((".pyc", ".pth")) and os.path.isfile(path):
        if root is None:
            found.append([place, os.path.abspath(path)])
        else:
            linked_files.append([place, os.path.abspath(path), os.path.abspath(root)])


def add_module(module):
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return missing.add(module)
    for folder in spec.submodule_search_locations or []:
        for base, _, files in os.walk(folder):
            for file in files:
                inside = os.path.relpath(os.path.join(base, file), os.path.dirname(folder))
                add(inside.replace(os.sep, "/"), os.path.join(base, file), folder)
    if spec.submodule_search_locations is None:
        add(os.path.basename(spec.origin), spec.origin, os.path.dirname(spec.origin))


for name, distribution in sorted(needed.items()):
    for file in distribution.files or []:
        place = file.as_posix()
        if not place.startswith(("..", "/")) and file.name not in OWN:
            add(place, str(distribution.locate_file(file)))
    if name in editable:
        for module in modules(distribution):
            add_module(module)

json.dump(
    {
        "version": list(sys.version_info[:3]),
        "base": getattr(sys, "_base_executable", sys.executable),
        "machine": platform.machine().lower(),
        "distributions": [f"{one.metadata['Name']} {one.version}" for _, one in sorted(needed.items())],
        "files": sorted(found),
        "linked": sorted(linked_files),
        "missing": sorted(missing),
    },
    sys.stdout,
)

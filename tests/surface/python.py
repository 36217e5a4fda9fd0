"""Prints the public surface of the Python package, one declaration a line: `python.py [--write | --check]`.

Reads the sources with `ast` and imports nothing, so that it needs neither the built module nor other packages.
"""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent.parent / "bindings-python" / "python" / "tricorn"
MODULES = ("apps", "middleware", "otel", "testing", "types")
"""Modules whose own names are public, beside those that `tricorn` itself exports."""
INTERNAL = {"C", "Wrapped", "to_wire", "wrap", "wrap_all"}
"""Names without an underscore that the package keeps for itself: of `tricorn.middleware`, and a method of options."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Found = tuple[str, ast.stmt]
"""A module, and the statement in it that defines a name."""


def main() -> None:
    """Prints the surface, or writes it beside this file."""
    text = "\n".join(Surface().lines()) + "\n"
    if sys.argv[1:] == ["--write"]:
        (HERE / "python.txt").write_text(text, encoding="utf-8")
    elif sys.argv[1:] == ["--check"]:
        known = (HERE / "python.txt").read_text(encoding="utf-8").splitlines()
        changes = [line for line in difflib.unified_diff(known, text.splitlines(), n=0, lineterm="") if line[:1] != "@"]
        if changes:
            print("\n".join(changes[2:]))
            raise SystemExit("the public surface of Python has changed: `cargo xtask surface --write` takes it over")
    elif sys.argv[1:]:
        raise SystemExit("usage: python.py [--write | --check]")
    else:
        sys.stdout.write(text)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those under `if`, `try` and `with` included."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            yield from statements(statement.body)
            yield from statements(getattr(statement, "orelse", []))


def targets(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement assigns to."""
    if isinstance(statement, ast.Assign):
        yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id


def is_public(name: str) -> bool:
    """True for names without an underscore in front, and for the language's own such as `__iter__`."""
    return (not name.startswith("_") or (name.startswith("__") and name.endswith("__"))) and name not in INTERNAL


class Module:
    """A source file: what it defines, and what it imports from the package."""

    def __init__(self, name: str, package: str, tree: ast.Module) -> None:
        self.defined: dict[str, list[ast.stmt]] = {}
        self.imported: dict[str, tuple[str, str]] = {}
        self.exported: list[str] | None = None
        for statement in statements(tree.body):
            if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                self.defined.setdefault(statement.name, []).append(statement)
            elif isinstance(statement, ast.ImportFrom) and statement.level:
                # Relative to the package that the module is in, or is.
                above = [part for part in package.split(".") if part]
                source = [*above[: len(above) - statement.level + 1], *(statement.module or "").split(".")]
                for alias in statement.names:
                    self.imported[alias.asname or alias.name] = (".".join(filter(None, source)), alias.name)
            for target in targets(statement):
                self.defined.setdefault(target, []).append(statement)
                if target == "__all__" and isinstance(statement, ast.Assign):
                    self.exported = ast.literal_eval(statement.value)
        self.name = name

    def public(self) -> list[str]:
        """Its public names: `__all__`, or all that it defines without an underscore in front."""
        if self.exported is not None:
            return self.exported
        return [name for name in self.defined if not name.startswith("_") and is_public(name)]


class Surface:
    """All modules, and the lines of the surface as they are found."""

    def __init__(self) -> None:
        self.modules: dict[str, Module] = {}
        for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]):
            relative = path.relative_to(PACKAGE).with_suffix("")
            name = ".".join(relative.parts).removesuffix("__init__").rstrip(".")
            package = ".".join(relative.parts[:-1])
            self.modules[name] = Module(name, package, ast.parse(path.read_text(encoding="utf-8")))
        self.names: dict[int, str] = {}
        """The printed name of each statement, by its identity."""
        self.found: list[tuple[str, str]] = []

    def lines(self) -> list[str]:
        """The surface: exported names first in order, then what their declarations name."""
        work: list[tuple[str, Found]] = []
        for module, prefix in (("", "tricorn"), *((name, f"tricorn.{name}") for name in MODULES)):
            for name in self.modules[module].public():
                for found in self.find(module, name):
                    known = self.names.get(id(found[1]))
                    if known is not None:
                        self.found.append((f"{prefix}.{name}", f"= {known}"))
                        continue
                    self.names[id(found[1])] = f"{prefix}.{name}"
                    work.append((f"{prefix}.{name}", found))
        while work:
            path, (module, statement) = work.pop(0)
            for name in self.declare(path, module, statement):
                for found in self.find(module, name):
                    if id(found[1]) not in self.names and found[0] != "types":
                        self.names[id(found[1])] = f"named.{name}"
                        work.append((f"named.{name}", found))
        self.found.sort(key=lambda line: line[0])
        return list(dict.fromkeys(f"{path} {text}" for path, text in self.found))

    def find(self, module: str, name: str) -> list[Found]:
        """The statements that define a name which a module uses, nothing for names from elsewhere."""
        here = self.modules.get(module)
        if here is None:
            return []
        if name in here.defined:
            return [(module, statement) for statement in here.defined[name]]
        if name in here.imported:
            source, original = here.imported[name]
            return self.find(source, original)
        return []

    def declare(self, path: str, module: str, statement: ast.stmt) -> set[str]:
        """Adds the lines of one definition; returns the names that it mentions."""
        if isinstance(statement, ast.ClassDef):
            return self.declare_class(path, module, statement)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self.add(path, function(statement), *signature(statement))
        if isinstance(statement, ast.AnnAssign):
            text = f": {ast.unparse(statement.annotation)}"
            parts: list[ast.expr | None] = [statement.annotation]
            if statement.value is not None and ast.unparse(statement.annotation) == "TypeAlias":
                text += f" = {ast.unparse(statement.value)}"
                parts.append(statement.value)
            return self.add(path, text, *parts)
        if isinstance(statement, ast.Assign):
            alias = None if isinstance(statement.value, ast.Call) else statement.value
            return self.add(path, f"= {ast.unparse(statement.value)}", alias)
        return set()

    def declare_class(self, path: str, module: str, statement: ast.ClassDef) -> set[str]:
        """Adds a class and its members, also those of bases that are not public."""
        keywords = [f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in statement.keywords]
        shown = ", ".join([*(ast.unparse(base) for base in statement.bases), *keywords])
        decorators = "".join(f"@{ast.unparse(decorator)} " for decorator in statement.decorator_list)
        names = self.add(path, f"{decorators}class({shown})", *statement.bases)
        own: set[str] = set()
        for member, text, parts in members(statement):
            own.add(member)
            mentions = self.add(f"{path}.{member}", text, *parts)
            # Constructors of what the package alone makes take its internals: those classes are no surface.
            names |= {name for name in mentions if member != "__init__" or self.is_shape(module, name)}
        hidden: set[str] = set()
        for source, base in self.hidden_bases(module, statement):
            names |= self.inherit(path, source, base, own, statement, hidden)
        names -= hidden
        return names

    def is_shape(self, module: str, name: str) -> bool:
        """True for a name that no class with behaviour has: an alias, a typed dictionary, a protocol."""
        found = self.find(module, name)
        bases = {ast.unparse(base) for _, each in found if isinstance(each, ast.ClassDef) for base in each.bases}
        classes = any(isinstance(each, ast.ClassDef) for _, each in found)
        return not classes or any(base.startswith(("TypedDict", "Protocol")) for base in bases)

    def hidden_bases(self, module: str, statement: ast.ClassDef) -> Iterator[tuple[str, ast.ClassDef]]:
        """The bases of a class that are of the package and not public, with their modules."""
        for base in statement.bases:
            origin = base.value if isinstance(base, ast.Subscript) else base
            for source, found in self.find(module, origin.id) if isinstance(origin, ast.Name) else []:
                if isinstance(found, ast.ClassDef) and self.names.get(id(found), "named.").startswith("named."):
                    yield source, found

    def inherit(
        self, path: str, module: str, base: ast.ClassDef, own: set[str], heir: ast.ClassDef, hidden: set[str]
    ) -> set[str]:
        """Adds the members of a hidden base that the class has not itself; returns the names that they mention."""
        hidden.add(base.name)
        required = is_partial(heir) and not is_partial(base)
        names = set()
        for member, text, parts in list(members(base)):
            if member not in own:
                mentions = self.add(f"{path}.{member}", f"{text} (required)" if required else text, *parts)
                names |= {name for name in mentions if member != "__init__" or self.is_shape(module, name)}
        own |= {member for member, _, _ in members(base)}
        for source, found in self.hidden_bases(module, base):
            names |= self.inherit(path, source, found, own, heir, hidden)
        return names

    def add(self, path: str, text: str, *parts: ast.expr | None) -> set[str]:
        """Adds a line; returns the names in the parts of its declaration."""
        # Python before 3.12 prints a space there.
        self.found.append((path, " ".join(text.split()).replace("lambda :", "lambda:")))
        return {name for part in parts if part is not None for name in mentioned(part)}


def is_partial(statement: ast.ClassDef) -> bool:
    """True for a typed dictionary whose keys are optional."""
    return any(keyword.arg == "total" and ast.unparse(keyword.value) == "False" for keyword in statement.keywords)


def mentioned(expression: ast.expr) -> Iterator[str]:
    """The names in an annotation, those in quoted annotations included."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def function(definition: Function) -> str:
    """A function's decorators, parameters and result."""
    decorators = "".join(f"@{ast.unparse(decorator)} " for decorator in definition.decorator_list)
    kind = "async def" if isinstance(definition, ast.AsyncFunctionDef) else "def"
    result = f" -> {ast.unparse(definition.returns)}" if definition.returns else ""
    return f"{decorators}{kind}({ast.unparse(definition.args)}){result}"


def signature(definition: Function) -> list[ast.expr | None]:
    """The annotations of a function."""
    arguments = definition.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [*(argument.annotation for argument in every if argument is not None), definition.returns]


def members(statement: ast.ClassDef) -> Iterator[tuple[str, str, list[ast.expr | None]]]:
    """The public members of a class: name, declaration, annotations."""
    annotated = set()
    for member in statements(statement.body):
        if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if is_public(member.name):
                yield member.name, function(member), signature(member)
            if member.name == "__init__":
                for name, annotation in attributes(member):
                    if name not in annotated:
                        text = f": {ast.unparse(annotation)}" if annotation else "attribute"
                        yield name, text, [annotation]
        elif isinstance(member, ast.AnnAssign):
            for name in targets(member):
                annotated.add(name)
                if is_public(name):
                    default = f" = {ast.unparse(member.value)}" if member.value else ""
                    yield name, f": {ast.unparse(member.annotation)}{default}", [member.annotation]
        elif isinstance(member, ast.Assign):
            for name in targets(member):
                if is_public(name) and name not in ("__slots__", "__doc__"):
                    yield name, f"= {ast.unparse(member.value)}", []


def attributes(definition: Function) -> Iterator[tuple[str, ast.expr | None]]:
    """The public attributes that a constructor sets, with their annotations."""
    seen = set()
    for node in ast.walk(definition):
        assigned = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in assigned:
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id == "self"
                and not target.attr.startswith("_")
                and target.attr not in seen
            ):
                seen.add(target.attr)
                yield target.attr, node.annotation if isinstance(node, ast.AnnAssign) else None


if __name__ == "__main__":
    main()

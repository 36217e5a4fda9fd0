"""Prints the public surface of the crate `tricorn`, as rustdoc's pages show it.

`rust.py [--check | --write] [DOC]`: DOC is the folder of the pages (default: target/doc/tricorn, which `cargo doc
--release --no-deps --package tricorn` makes). One declaration a line. The module `bridge` is for the packages and
promises nothing. The text is that of one version of rustdoc, which stands in the first line; pages of another one are
not compared.
"""

import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOT = Path(__file__).with_name("rust.txt")
INTERNAL = ("bridge/",)
PAGE = re.compile(r"(struct|enum|trait|fn|type|constant|macro|union)\.(\w+)\.html")
DECLARATION = re.compile(r'<pre class="rust item-decl"><code>(.*?)</code></pre>', re.S)
MEMBER = re.compile(
    r'<section id="(?:method|tymethod|associatedtype|associatedconstant)\.[^"]*" class="[a-z]+">.*?'
    r'<h4 class="code-header">(.*?)</h4>',
    re.S,
)
IMPLEMENTATION = re.compile(r'<h3 class="code-header">(.*?)</h3>', re.S)
NAME = re.compile(r"\b(?:const fn|fn|type|const)\s+(\w+)")
ENDS = ('id="synthetic-implementations"', 'id="blanket-implementations"', 'id="implementors"')


def text(markup: str) -> str:
    """Returns the words of a piece of a page, without comments, on one line."""
    plain = html.unescape(
        re.sub(r"<[^>]+>", "", re.sub(r'<summary class="hideme">.*?</summary>', "", markup, flags=re.S))
    )
    return " ".join(re.sub(r"//[^\n]*", "", plain).split())


def declarations(page: Path, path: str) -> Iterator[str]:
    """The lines of one page: the item, its members, and the traits that it has."""
    markup = page.read_text(encoding="utf-8")
    end = min((at for at in map(markup.find, ENDS) if at >= 0), default=len(markup))
    own, _, traits = markup[:end].partition('id="trait-implementations"')
    found = DECLARATION.search(own)
    yield f"{path} {text(found[1]) if found else ''}"
    for member in MEMBER.finditer(own):
        said = text(member[1])
        named = NAME.search(said)
        yield f"{path}::{named[1] if named else '?'} {said}"
    for implementation in IMPLEMENTATION.finditer(traits):
        yield f"{path} {text(implementation[1])}"


def surface(folder: Path) -> list[str]:
    """All lines, with rustdoc's version as the first."""
    version = re.search(r'data-rustdoc-version="([^"]*)"', (folder / "index.html").read_text(encoding="utf-8"))
    lines: set[str] = set()
    # Pages of earlier builds stay in the folder.
    places = set(re.findall(r'<a href="([^"#]+\.html)"', (folder / "all.html").read_text(encoding="utf-8")))
    for place in sorted(places):
        page = folder / place
        named = PAGE.fullmatch(page.name)
        if named is None or not page.is_file() or place.startswith(INTERNAL):
            continue
        path = "::".join(["tricorn", *place.split("/")[:-1], named[2]])
        lines.update(declarations(page, path))
    return [f"rustdoc {version[1] if version else '?'}", *sorted(lines)]


def main() -> None:
    """Prints, writes or compares."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    folder = Path(words[0]) if words else ROOT / "target/doc/tricorn"
    if not (folder / "index.html").is_file():
        sys.exit(f"{folder}: no pages: cargo doc --release --no-deps --package tricorn")
    lines = surface(folder)
    if "--write" in sys.argv:
        SNAPSHOT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif "--check" in sys.argv:
        known = SNAPSHOT.read_text(encoding="utf-8").splitlines()
        if known[0] != lines[0]:
            print(f"skipped: {lines[0]}, and rust.txt is of {known[0]}")
            return
        gone, new = sorted(set(known) - set(lines)), sorted(set(lines) - set(known))
        print("\n".join([f"- {line}" for line in gone] + [f"+ {line}" for line in new]))
        if gone or new:
            sys.exit("the surface of the crate has changed: python3 tests/surface/rust.py --write")
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()

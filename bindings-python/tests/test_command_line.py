"""Words of command lines: those of Windows have rules of their own, which the engine has there, too."""

from __future__ import annotations

import pytest

from tricorn.command_line import split_as_windows


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("  \t ", []),
        ("python server.py", ["python", "server.py"]),
        (r"C:\tools\server.exe --port 1", [r"C:\tools\server.exe", "--port", "1"]),
        (r'"C:\Program Files\a.exe" x', [r"C:\Program Files\a.exe", "x"]),
        (r"\\host\share\a.py", [r"\\host\share\a.py"]),
        (r'a "b\" c" d', ["a", 'b" c', "d"]),
        (r'a "b\\" c', ["a", "b\\", "c"]),
        (r"a \\\"b", ["a", '\\"b']),
        (r'a "b""c"', ["a", 'b"c']),
        ('a "" b', ["a", "", "b"]),
        ('a"b c"d', ["ab cd"]),
        ("it's 'one two'", ["it's", "'one", "two'"]),
        (r'"C:\x\" a', ["C:\\x\\", "a"]),
        ("x\r\ny", ["x", "y"]),
        ("a\\", ["a\\"]),
    ],
)
def test_words(line: str, words: list[str]) -> None:
    assert split_as_windows(line) == words


@pytest.mark.parametrize("line", ['"open', 'x "a', r'x "a\"'])
def test_open_quotes(line: str) -> None:
    with pytest.raises(ValueError, match="not closed"):
        split_as_windows(line)

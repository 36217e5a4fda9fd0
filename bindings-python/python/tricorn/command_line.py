"""The words of a command line, as the engine finds them."""

from __future__ import annotations

import shlex
import sys


def split(line: str) -> list[str]:
    """The words of a line: by the rules of a POSIX shell, and on Windows by those that its programs have."""
    return split_as_windows(line) if sys.platform == "win32" else shlex.split(line)


def split_as_windows(line: str) -> list[str]:
    """The words of a line of Windows: a backslash means itself, unless quotation marks follow.

    Two backslashes before one stand for one, `\\"` for a quotation mark, and so does `""` between quotation marks. In
    the name of the program, the first word, all backslashes mean themselves.

    Raises:
        ValueError: A quote is opened and not closed.
    """
    words: list[str] = []
    word: str | None = None
    quoted = False
    at = 0
    while at < len(line):
        char = line[at]
        if char in " \t\r\n" and not quoted:
            if word is not None:
                words.append(word)
            word = None
        elif char == "\\" and words:
            end = at
            while end < len(line) and line[end] == "\\":
                end += 1
            count = end - at
            if line[end : end + 1] == '"':
                word = (word or "") + "\\" * (count // 2)
                if count % 2:
                    word += '"'
                    end += 1
            else:
                word = (word or "") + "\\" * count
            at = end
            continue
        elif char == '"':
            word = word or ""
            if quoted and words and line[at + 1 : at + 2] == '"':
                word += '"'
                at += 1
            else:
                quoted = not quoted
        else:
            word = (word or "") + char
        at += 1
    if quoted:
        raise ValueError("a quote is opened and not closed")
    return words if word is None else [*words, word]

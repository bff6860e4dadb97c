"""Names that the output brings in, and the user's macros that would change what they mean.

In: the program and text that is to be inserted. Out: names that are free, and those that are not. Apart from the
writing because the same question is asked of the prologue, of the inserted lines and of the text that stands in for
the prologue when the output is read again.

Macros around the prologue are put away while it is compiled; among the user's own lines that would be unreadable, so
that a function whose inserted lines a macro would change stays serial.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from kesco.ir.program import Program

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"')
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_NAME_OF_THE_LIBRARY = re.compile(r"[a-z][a-z0-9_]*")  # what the standard headers call their own has underscores first


def macros(program: Program) -> frozenset[str]:
    """The macros of the file, and those of its headers and the command line that have small letters in their names."""
    others = (name[6:] for name, _ in program.constructs if name.startswith("macro "))
    return defined_in(program.text.decode("utf-8", "replace")) | frozenset(others)


def defined_in(text: str) -> frozenset[str]:
    """The names that a text defines as macros."""
    return frozenset(_DEFINED.findall(text))


def words(text: str) -> set[str]:
    """The identifiers and keywords of a text, comments and string literals left out."""
    return set(_WORD.findall(_LITERAL.sub(" ", _COMMENT.sub(" ", text))))


def in_the_way(text: str, defined: Collection[str]) -> tuple[str, ...]:
    """The macros that would change a text, or the standard headers that it includes."""
    own = words(text)
    return tuple(sorted(m for m in defined if m in own or _NAME_OF_THE_LIBRARY.fullmatch(m)))


def changed(texts: Iterable[str], defined: Collection[str]) -> str:
    """A macro that would change one of the texts, or an empty text."""
    return min((w for text in texts for w in words(text) if w in defined), default="")


def free_name(program: Program) -> str:
    """A name for the local reference that the file does not use yet."""
    bare = re.sub(rb"#\s*pragma\s+kesco|//[^\n]*|/\*.*?\*/", b"", program.text, flags=re.DOTALL)
    used = {w.decode("utf-8", "replace") for w in re.findall(rb"\bkesco\w*", bare)} | macros(program)
    number = 0
    while (name := f"kesco{number or ''}") in used:
        number += 1
    return name


def counter(program: Program) -> str:
    """A name for the counter of an inserted loop: ``s``, unless a macro, or anything in the text, is called so.

    A counter of the same name around it would be hidden: right in C++, but it is a warning of many compilers, and two
    counters of one name are not told apart by who proves the text.
    """
    taken = macros(program) | (words(program.text.decode("utf-8", "replace")) & {"s"})
    return next(name for name in ("s", *(f"kesco_s{n or ''}" for n in range(len(taken) + 1))) if name not in taken)


def section_between(
    text: bytes, mark: str, last: str, genuine: Callable[[str, frozenset[str]], bool]
) -> tuple[int, int] | None:
    """Where the section between two lines begins and ends, if a text has one, and only one, and it is `genuine`.

    That is asked with the section, its lines ended as on Linux, and the macros that the text defines.
    """
    start, end = text.find(mark.encode()), text.find(last.encode())
    if start < 0 or end < start or text.count(mark.encode()) != 1:
        return None
    end += len(last)
    normal = text.replace(b"\r\n", b"\n").decode("utf-8", "surrogateescape")
    written = text[start:end].replace(b"\r\n", b"\n").decode("utf-8", "surrogateescape") + "\n"
    return (start, end) if genuine(written, defined_in(normal)) else None

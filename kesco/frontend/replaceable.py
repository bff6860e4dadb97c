"""Definitions that another file may replace: weak ones, in whose place the linker takes a strong one.

In: the texts of the file and of the user's headers, without comments, and the macros of the command line. Out: which
names may be those of such functions. libclang tells neither an attribute that an earlier declaration has nor one of a
pragma, so the texts are read: each name of a declaration with the attribute, or with a macro that brings it, counts.
Too many names cost speed and nothing else: a call of such a function is one of code that is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from kesco.llvm.names import display_name

_WEAK = rb"\b(?:__)?weak(?:__)?\b"
_MARK = re.compile(
    rb"\b__attribute(?:__)?\s*\(\s*\([^;{}]*?" + _WEAK + rb"|\[\s*\[[^;{}\]]*?" + _WEAK
    + rb'|^[ \t]*(?:#|%:)[ \t]*pragma[ \t]+weak\b[^\n]*|\b_Pragma\s*\(\s*"\s*weak\b[^"\n]*"',
    re.MULTILINE,
)  # fmt: skip
_PRAGMA = re.compile(
    rb'^[ \t]*(?:#|%:)[ \t]*pragma[ \t]+weak[ \t]+([\w.$]+)|\b_Pragma\s*\(\s*"\s*weak[ \t]+([\w.$]+)', re.MULTILINE
)
_DEFINE = re.compile(rb"^[ \t]*(?:#|%:)[ \t]*define[ \t]+([A-Za-z_]\w*)([^\n]*)", re.MULTILINE)
_CONTINUED = re.compile(rb"\\[ \t]*\r?\n")
_WORD = re.compile(rb"[A-Za-z_]\w*")


def by_pragma(texts: Iterable[bytes]) -> frozenset[str]:
    """The symbols that pragmas name: clang sees these only where they have C's linkage and are declared later."""
    found = (first or second for text in texts for first, second in _PRAGMA.findall(_CONTINUED.sub(b" ", text)))
    return frozenset(name.decode() for name in found)


def replaceable(texts: Iterable[bytes], macros: Iterable[str]) -> Callable[[str], bool]:
    """Whether a function of this name may be one of them; `macros` are ``NAME=TEXT``, as ``-D`` has them."""
    joined = [_CONTINUED.sub(b" ", text) for text in texts]
    given = (b"#define " + one.replace("=", " ", 1).encode("utf-8", "surrogateescape") for one in macros)
    joined.append(b"\n".join(given))
    if not any(b"weak" in text for text in joined):
        return lambda name: False
    defined = [found for text in joined for found in _DEFINE.findall(text)]
    bringing: set[bytes] = set()
    while True:
        more = {n for n, body in defined if _MARK.search(body) or not bringing.isdisjoint(_WORD.findall(body))}
        if more <= bringing:
            break
        bringing |= more
    marked = bringing or any(_MARK.search(text) for text in joined)
    if marked and any(b"##" in body for _, body in defined):
        return lambda name: True  # it may make names that stand nowhere
    names = {word for text in joined for word in _declared(_DEFINE.sub(b"", text), bringing)}
    names |= {word for one in by_pragma(joined) for word in _WORD.findall(display_name(one).encode())}
    return lambda name: not names.isdisjoint(_WORD.findall(name.encode("utf-8", "surrogateescape")))  # operators, too


def _declared(text: bytes, bringing: set[bytes]) -> Iterable[bytes]:
    """The words of the declarations of a text that have the attribute."""
    marks = [match.span() for match in _MARK.finditer(text)]
    marks += [match.span() for match in _WORD.finditer(text) if match[0] in bringing]
    for begin, end in marks:
        before = text.rfind(b";", 0, begin)  # braces may be those of a default argument
        behind = min(at for letter in (b";", b"{") if (at := text.find(letter, end)) >= 0 or (at := len(text)))
        yield from _WORD.findall(text, before + 1, behind)

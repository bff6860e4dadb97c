"""Headers of the user's whose functions can be edited: they are put into the text of the file that includes them.

In: a parsed file and its program. Out: the text with these headers in the place of their ``#include`` lines (see
`ir.pieces`), or the same text. Apart from `parse` because it goes by files, and because all that comes behind it sees
one text.

1. A header is wanted if the file calls a function of it that launches, itself or through others. 2. So are those that
include it. 3. A header's own ``#include "…"`` that would not lead to the same file from the source's folder gets a path
from there.

It refuses headers that come in more than once, whose ``#include`` is not written as such, and functions of which
other files have the same text: inline ones and templates that are not this file's alone (`is_shared`). The linker keeps
one of all such texts, and it must not matter which.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from clang.cindex import Cursor, CursorKind

from kesco.frontend import clang
from kesco.frontend.clang import kind_of
from kesco.frontend.standard import is_standard_path
from kesco.ir import program as ir
from kesco.ir.pieces import has_marks, put_in

K = CursorKind
_DIRECTIVE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([ !#-)+-~]+)"|<[ -)+-=?-~]+>)', re.MULTILINE)
_NAMED = re.compile(rb"([A-Za-z_]\w*)\s*(?:<[^<>;()]*>)?\s*\(")
_TEMPLATES = (K.FUNCTION_TEMPLATE, K.CLASS_TEMPLATE, K.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION)
_OWN = ("INTERNAL", "NO_LINKAGE", "UNIQUE_EXTERNAL")


def is_shared(cursor: Cursor) -> bool:
    """Whether other files may have the same function, so that there must be one text of it."""
    if cursor.linkage.name in _OWN:
        return False
    around: Cursor | None = cursor
    while around is not None and kind_of(around) not in _TEMPLATES:
        around = around.semantic_parent
    return around is not None or clang.is_inlined(cursor)


def with_headers(
    path: str, text: bytes, arguments: tuple[str, ...], program: ir.Program, headers: Mapping[str, bytes]
) -> bytes:
    """The text of a file with those of the user's `headers`, without comments, in it whose functions may be edited."""
    wanted = _wanted(program, headers)
    if not wanted:
        return text
    inclusions = [(os.path.realpath(by), line, name) for by, line, name in clang.inclusions(path, text, arguments)]
    counted = Counter([os.path.realpath(path), *(os.path.realpath(name) for _, _, name in inclusions)])
    places = {os.path.realpath(name): (by, line, name) for by, line, name in inclusions}
    chain: dict[tuple[str, int], str] = {}
    for name in map(os.path.realpath, wanted):  # and what includes them
        while name in places and counted[name] == 1 and places[name][:2] not in chain and not is_standard_path(name):
            by, line, written = places[name]
            chain[by, line] = written
            name = by
    return _put_in(path, text, chain, Path(path).parent)


def _wanted(program: ir.Program, headers: Mapping[str, bytes]) -> set[str]:
    """The headers that launch and to which names lead that are called, and those of functions that lead to them.

    Names, since the parse does not always say which function a call means.
    """
    calls = {f.key: [n for n in ir.walk(f.body) if isinstance(n, ir.Call)] for f in program.functions}
    names = {n.name.rpartition("::")[2].partition("<")[0].encode() for called in calls.values() for n in called}
    reached: set[str] = set()
    while more := {h for h, bare in headers.items() if h not in reached and names & {*_NAMED.findall(bare)}}:
        reached |= more
        names |= {name for h in more for name in _NAMED.findall(headers[h])}
    found = {h for h in reached if b"<<<" in headers[h]}
    launching = {f.key for f in program.functions if f.span.path in found}
    while again := {k for k, called in calls.items() if k not in launching and launching & {n.key for n in called}}:
        launching |= again
    return found | {f.span.path for f in program.functions if f.key in launching and f.span.path in headers}


def _put_in(path: str, text: bytes, chain: Mapping[tuple[str, int], str], folder: Path) -> bytes:
    """A file's text with those of the chain in it, whose nested includes lead to the same files from `folder`."""
    moved = Path(path).parent != folder
    for directive in reversed([*_DIRECTIVE.finditer(text)]):
        start, end = directive.span()
        name = chain.get((os.path.realpath(path), text.count(b"\n", 0, start) + 1), "")
        header = _read(name, folder) if name else None
        if header is not None:
            text = put_in(text, start, end, name, _put_in(name, header, chain, folder))
        elif moved and directive[1] is not None:
            text = text[:start] + _from(folder, Path(path).parent, directive) + text[end:]
    return text


def _from(folder: Path, own: Path, directive: re.Match[bytes]) -> bytes:
    """An include that leads from one folder to the file to which it leads from its own."""
    name = os.fsdecode(directive[1])
    beside, there = own / name, folder / name
    if not beside.is_file() or (there.is_file() and there.samefile(beside)):
        return directive[0]
    way = Path(os.path.relpath(beside, folder))
    right = (folder / way).is_file() and (folder / way).samefile(beside)
    return f'#include "{way if right else beside.absolute()}"'.encode()


def _read(name: str, folder: Path) -> bytes | None:
    """The text of a header if it can be put into another one."""
    try:
        text = Path(name).read_bytes()
    except OSError:
        return None
    odd = (
        "*/" in name
        or text.startswith(b"\xef\xbb\xbf")
        or text.endswith((b"\\", b"\\\n", b"\\\r\n"))
        or has_marks(text)
    )
    moved = Path(name).parent != folder and b'R"' in text  # what looks like an include may be in a literal
    return None if odd or moved else text

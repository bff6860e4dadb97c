"""Which files a translation unit includes, as libclang has it.

In: a translation unit. Out: every file that was entered, with who names it where. Apart from `clang` because libclang
tells it in two ways, and neither is whole: with a preamble it leaves out the first file that is included behind that.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from clang import cindex

_FOLDERS = ("-I", "-iquote", "-isystem")
_NAMED = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


class Include(NamedTuple):
    """One inclusion of a file: its name, how deep (1: by the main file itself), and where in the file that does so."""

    name: str
    depth: int
    at: int


def included(unit: cindex.TranslationUnit) -> tuple[Include, ...]:
    """As the binding's ``get_includes``, without what it asks beside for each of some hundred files."""
    lib, found = cindex.conf.lib, list[Include]()

    def visit(file: Any, places: Any, depth: int, _: object) -> None:
        if depth:
            name = str(cindex.File(ctypes.cast(file, cindex.c_object_p)).name)
            found.append(Include(name, depth, places[0].offset if depth == 1 else 0))

    lib.clang_getInclusions(unit, cindex.callbacks["translation_unit_includes"](visit), None)
    return tuple(found)


def lacks(found: tuple[Include, ...], path: str, text: bytes, arguments: Sequence[str]) -> bool:
    """Whether a source names a file that is there and not among those: libclang leaves it out, or a condition does."""
    names = {one.name.rpartition("/")[2] for one in found}
    named = (os.fsdecode(name) for name in _NAMED.findall(text))
    left = [name for name in named if name.rpartition("/")[2] not in names]
    folders = [Path(path).parent, *(Path(b) for a, b in pairwise(arguments) if a in _FOLDERS)]
    folders += [Path(a[2:]) for a in arguments if a.startswith("-I") and a != "-I"]
    return any((folder / name).is_file() for name in left for folder in folders)


def entered(unit: cindex.TranslationUnit) -> list[tuple[str, int, str]]:
    """Every ``#include`` that was entered: its file, its line and what it brought, in order."""
    every = ((one.location, one.include) for one in unit.get_includes())
    return [(str(at.file.name), int(at.line), str(brought.name)) for at, brought in every if at.file is not None]

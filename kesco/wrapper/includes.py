"""Which files a source may include, found in the texts alone, and whether another folder would change that.

In: a source, its flags in clang's words. Out: `Includes`: files of the user's that any include in any of them names,
also those that a condition leaves out; the places where an include looked in vain, at which a new file would be found
first; and why the source cannot be read from another folder.

The text that nvcc compiles in the source's place stands in another folder, and the source's own is searched for quoted
includes of *all* files. That changes nothing unless a header names a file so that is not beside it, and is beside the
source, and would not be found there anyway; such a source is left as it is, and so is one that includes itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence

_NAMED = re.compile(rb'\b(?:include|include_next|import|__has_include(?:_next)?)\b\s*\(?\s*(?:"([^"\n]+)"|<([^>\n]+)>)')
_ITSELF = re.compile(rb"\binclude\s+__FILE__")  # clang does not list it
_FOLDERS = ("-I", "-isystem", "-iquote", "-idirafter", "-cxx-isystem")
_FORCED = ("-include", "-imacros")
_MOST = 20_000
SYSTEM = ("/usr/local/include", "/usr/include")
DEEPEST = 8
"""How many folders up an include may begin: what stands for the source lies so deep."""


class Includes:
    """What `scan` found; `hazard` is empty where the source may be read from another folder."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.missing: list[str] = []
        self.hazard = ""


def scan(
    source: str,
    text: bytes,
    flags: Sequence[str],
    known: Iterable[str],
    standard: Callable[[str], bool],
    system: Sequence[str] = SYSTEM,
) -> Includes:
    """Follow the includes of a source; `known` are further files that are read, as a compiler said.

    Files of the system and the toolchain, for which `standard` is true, are named and not looked into; `system` are
    folders of theirs that are searched after the user's.
    """
    result = Includes()
    beside = os.path.dirname(source) or "."
    quoted, angled = _folders(flags)
    missing: dict[str, None] = {}
    seen: dict[str, None] = {}
    in_the_way: dict[str, None] = {}  # files that make the hazard: without them there may be none
    work: list[tuple[str, bytes | None]] = [(source, text)]
    if _ITSELF.search(text):
        result.hazard = "it includes itself"
    for name in _values(flags, _FORCED):
        work += [(path, None) for path in _first(name, (".", *quoted, *angled, *system), missing)]
    for path in known:
        if standard(path):
            seen[path] = None  # what those include is theirs
        else:
            work.append((path, None))
    itself = os.path.realpath(source)
    while work and len(seen) < _MOST:
        path, content = work.pop()
        if content is None:
            real = os.path.realpath(path)
            if real == itself:
                result.hazard = result.hazard or "it includes itself"
            if path in seen:
                continue
            seen[path] = None
            if standard(path):
                continue
            try:
                with open(path, "rb") as file:
                    content = file.read()
            except OSError:
                continue
        own = os.path.dirname(path) or "."
        for in_quotes, in_angles in dict.fromkeys(_NAMED.findall(content)):  # in order: an entry is the same bytes
            name = os.fsdecode(in_quotes or in_angles)
            if in_quotes and path == source and name.count("../") > DEEPEST:
                result.hazard = f"it includes {name}"
            folders = (*((own, *quoted) if in_quotes else ()), *angled, *system)
            first = _first(name, folders, missing)
            if in_quotes and path != source and own != beside and not _is_file(os.path.join(own, name)):
                wrong = os.path.join(beside, name)
                missing[wrong] = None
                if _is_file(wrong) and first != [wrong]:  # else the source's folder is searched anyway
                    in_the_way[wrong] = None
                    result.hazard = f'{path} includes "{name}", which is not beside it but beside the source'
            work += [(path, None) for path in first if path not in seen]
    result.files = [path for path in {**seen, **in_the_way} if os.path.realpath(path) != itself]
    result.missing = [path for path in missing if not os.path.lexists(path)]
    return result


def _first(name: str, folders: Sequence[str], missing: dict[str, None]) -> list[str]:
    """The file of this name in the first folder that has it, if any; takes note of where it is not."""
    for folder in ("",) if os.path.isabs(name) else folders:
        candidate = os.path.join(folder, name)
        if _is_file(candidate):
            return [candidate]
        missing[candidate] = None
    return []


def _is_file(path: str) -> bool:
    return os.path.isfile(path)


def _folders(flags: Sequence[str]) -> tuple[list[str], list[str]]:
    """The user's folders for quoted includes alone, then those for all."""
    every = _values(flags, tuple(f for f in _FOLDERS if f != "-iquote"))
    for variable in ("CPATH", "CPLUS_INCLUDE_PATH"):
        if found := os.environ.get(variable):
            every += [folder or "." for folder in found.split(os.pathsep)]
    return _values(flags, ("-iquote",)), every


def _values(flags: Sequence[str], names: tuple[str, ...]) -> list[str]:
    found = []
    for flag, following in zip(flags, [*flags[1:], ""], strict=False):
        for name in names:
            if flag == name:
                found.append(following)
            elif flag.startswith(name) and not (name == "-I" and flag.startswith("-Include")):
                found.append(flag[len(name) :].removeprefix("="))
            else:
                continue
            break
    return found

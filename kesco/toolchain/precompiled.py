"""The headers that clang includes before the first line of every CUDA file, precompiled once and kept in the cache.

In: a program or library of clang, the arguments it will be given, and how to precompile with it. Out: a file to start
from, or none, in which case everything works as without, only slower: they take half of the time of a compilation.

What decides the content is in the file's name as a digest: the program, its arguments, and the environment variables
that add include folders. The user's own folders (``-I``) are left out, so that the targets of a build share a file,
unless one of them has a name that any of the headers asks for, and could hide the system's: beside each file stands
which names those are. Then there is one for these folders and the names in them. That the headers themselves are
still the same, clang checks. Where a compilation that started from such a file fails for any reason, the
caller repeats it without, so a bad file costs time and nothing else. Who needs a file that another process is making
waits for it. The files used last are kept, the rest removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from kesco.errors import KescoError
from kesco.toolchain.places import cache_folder, names
from kesco.toolchain.process import run

KEPT = 12
"""How many files the cache keeps, of some 10 MB each."""
IN_USE = 120
"""Seconds for which a file may be in use by a process that looked for it, and stays beyond that number."""
PATIENCE = 30.0
"""Seconds to wait for another process that is making a file; it takes about one."""
_ROOM = 32 << 20
"""Bytes for which there must be room before a file is made."""
_NOT_WITH = ("-include", "--include", "-imacros", "--imacros", "-Xclang", "-Xarch", "-Xpreprocessor", "-Wp,")
_BESIDE = ".names"
_FOLDER_FLAGS = ("-I", "-isystem", "-iquote", "-idirafter", "--sysroot", "-isysroot", "-B", "--gcc-toolchain")
_VARIABLES = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "CCC_OVERRIDE_OPTIONS")

_ASKED_FOR = re.compile(rb'\b(?:include|include_next|import|__has_include(?:_next)?)\b\s*\(?\s*["<]([^">\n]+)[">]')
# kesco's own macros are whole paths, and no folder can hide what they name
_MACRO = re.compile(rb"^[ \t]*#[ \t]*include(?:_next)?[ \t]+(?!KESCO_)[A-Za-z_]", re.MULTILINE)

Maker = Callable[[Sequence[str], Path, Path], Sequence[str] | None]
"""With these arguments, precompile the first file, an empty source, into the second; None if that did not work.

What it returns are the files that are in it."""


def find(tool: Path, arguments: Sequence[str], make: Maker, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The precompiled file for these arguments, made now if it is not there; None where there can be none."""
    if any(argument.startswith(_NOT_WITH) for argument in arguments):
        return None
    less, folders = _without_folders(arguments)
    if folders and (shared := _file(tool, less, make, environ)) is not None:
        asked_for = _names_asked_for(shared)
        if asked_for is not None and all(asked_for.isdisjoint(names(Path(folder))) for folder in folders):
            return shared
    return _file(tool, arguments, make, environ)


def _without_folders(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments without the user's folders for all includes, and these."""
    less, folders, rest = list[str](), list[str](), iter(arguments)
    for argument in rest:
        if argument.startswith("-I"):
            folders.append(argument[2:] or next(rest, ""))
        else:
            less.append(argument)
    return less, folders


def _names_asked_for(header: Path) -> frozenset[str] | None:
    """What an include in a precompiled header begins with, also one that was not found; None if it is not known."""
    try:
        found = json.loads(header.with_suffix(_BESIDE).read_bytes())
    except (OSError, ValueError):
        return None
    return frozenset(map(str, found)) if isinstance(found, list) and found else None


def _asked_for(files: Sequence[str]) -> list[str]:
    """The first parts of all names that these files include, or ask whether they are there; none if one is a macro."""
    found: set[str] = set()
    for file in files:
        text = Path(file).read_bytes()
        if _MACRO.search(text):
            return []
        found.update(os.path.normpath(os.fsdecode(name)).split("/")[0] for name in _ASKED_FOR.findall(text))
    return sorted(found)


def _file(tool: Path, arguments: Sequence[str], make: Maker, environ: Mapping[str, str]) -> Path | None:
    """The file for just these arguments, made now if it is not there."""
    folder = cache_folder(environ) / "headers"
    try:
        known = folder / f"{_digest(tool, arguments, environ)}.pch"
        if known.is_file():
            os.utime(known)
            return known
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(known.with_suffix(".lock")):
            if not known.is_file() and not _made(known, arguments, make):
                return None
        _remove_old(folder)
    except (OSError, KescoError):
        return None
    return known


def _made(known: Path, arguments: Sequence[str], make: Maker) -> bool:
    """Whether the file, and the one beside it, could be made; both are there as a whole or not at all."""
    empty = known.with_name("empty.cu")
    with contextlib.suppress(FileExistsError):  # clang compares its time: it is made once
        empty.open("x").close()
    aside = known.with_suffix(f".{os.getpid()}.{threading.get_ident()}")  # several may do this at once
    beside = Path(f"{aside}{_BESIDE}")
    try:
        with aside.open("xb") as file:  # libclang ends the process where it cannot write all of it
            os.posix_fallocate(file.fileno(), 0, _ROOM)
        aside.unlink()
        if (files := make(arguments, empty, aside)) is None:
            return False
        beside.write_text(json.dumps(_asked_for(files)), "utf-8")
        beside.replace(known.with_suffix(_BESIDE))
        aside.replace(known)
    finally:
        for one in (aside, beside):
            one.unlink(missing_ok=True)
    return True


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Enter when no other process is in here with this path, or when that takes too long: then both do the work."""
    with path.open("ab") as file:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:  # a file system without locks
                break
        try:
            yield
        finally:
            path.unlink(missing_ok=True)  # who waits for it has it open, and finds what was made


def by_clang(program: str, *more: str) -> Maker:
    """How clang precompiles, with arguments that are of this alone."""

    def make(arguments: Sequence[str], empty: Path, header: Path) -> Sequence[str] | None:
        listed = Path(f"{header}.d")
        saving = ("-Xclang", "-emit-pch", "-MD", "-MF", str(listed), *more, str(empty), "-o", str(header))
        try:
            if run((program, *arguments, *saving), timeout=300).returncode != 0 or not header.is_file():
                return None
            words = re.findall(r"(?:\\ |\S)+", listed.read_text("utf-8", "surrogateescape").replace("\\\n", " "))
            return [word.replace("\\ ", " ") for word in words if not word.endswith(":")]
        finally:
            listed.unlink(missing_ok=True)

    return make


def use(header: Path) -> tuple[str, ...]:
    """The arguments that make clang start from a precompiled file."""
    return ("-Xclang", "-include-pch", "-Xclang", str(header))


def discard(header: Path) -> None:
    """Remove a file that turned out to be of no use."""
    for one in (header, header.with_suffix(_BESIDE)):
        with contextlib.suppress(OSError):
            one.unlink()


def _digest(tool: Path, arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    status = tool.stat()
    parts = [str(tool), str(status.st_mtime_ns), str(status.st_size), *arguments]
    parts += [f"{name}={environ.get(name, '')}" for name in _VARIABLES]
    for folder in _folders(arguments):
        parts += [str(Path(folder).resolve()), *(n for n in names(Path(folder)) if "." not in n or n.endswith(".h"))]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _folders(arguments: Sequence[str]) -> list[str]:
    found = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        for flag in _FOLDER_FLAGS:
            if argument.startswith(flag):
                found.append(argument.removeprefix(flag).removeprefix("=") or following)
    return found


def _remove_old(folder: Path) -> None:
    used = {file: file.stat().st_mtime for file in folder.glob("*.pch")}
    for file in sorted(used, key=used.__getitem__, reverse=True)[KEPT:]:
        if used[file] < time.time() - IN_USE:
            discard(file)

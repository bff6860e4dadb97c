"""The headers that clang includes before the first line of every CUDA file, precompiled once and kept in the cache.

In: a program or library of clang, the arguments it will be given, and how to precompile with it. Out: a file to start
from, or none, in which case everything works as without, only slower: they take half of the time of a compilation.

What decides the content is in the file's name as a digest: the program, its arguments, the environment variables that
add include folders, and the names of headers in the user's folders, which could hide the system's. That the headers
themselves are still the same, clang checks. Where a compilation that started from such a file fails for any reason, the
caller repeats it without, so a bad file costs time and nothing else. The files used last are kept, the rest removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kesco.errors import KescoError
from kesco.toolchain.places import cache_folder, names

KEPT = 12
"""How many files the cache keeps, of some 10 MB each."""
IN_USE = 120
"""Seconds for which a file may be in use by a process that looked for it, and stays beyond that number."""
_NOT_WITH = ("-include", "--include", "-imacros", "--imacros", "-Xclang", "-Xarch", "-Xpreprocessor", "-Wp,")
_FOLDER_FLAGS = ("-I", "-isystem", "-iquote", "-idirafter", "--sysroot", "-isysroot", "-B", "--gcc-toolchain")
_VARIABLES = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "CCC_OVERRIDE_OPTIONS")

Maker = Callable[[Path, Path], bool]
"""Precompile the first file, an empty source, into the second; false if that did not work."""


def find(tool: Path, arguments: Sequence[str], make: Maker, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The precompiled file for these arguments, made now if it is not there; None where there can be none."""
    if any(argument.startswith(_NOT_WITH) for argument in arguments):
        return None
    folder = cache_folder(environ) / "headers"
    try:
        known = folder / f"{_digest(tool, arguments, environ)}.pch"
        if known.is_file():
            os.utime(known)
            return known
        folder.mkdir(parents=True, exist_ok=True)
        empty = folder / "empty.cu"
        with contextlib.suppress(FileExistsError):  # clang compares its time: it is made once
            empty.open("x").close()
        aside = known.with_suffix(f".{os.getpid()}.{threading.get_ident()}")  # several may do this at once
        try:
            if not make(empty, aside):
                return None
            aside.replace(known)
        finally:
            aside.unlink(missing_ok=True)
        _remove_old(folder)
    except (OSError, KescoError):
        return None
    return known


def use(header: Path) -> tuple[str, ...]:
    """The arguments that make clang start from a precompiled file."""
    return ("-Xclang", "-include-pch", "-Xclang", str(header))


def discard(header: Path) -> None:
    """Remove a file that turned out to be of no use."""
    with contextlib.suppress(OSError):
        header.unlink()


def _digest(tool: Path, arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    status = tool.stat()
    parts = [str(tool), str(status.st_mtime_ns), str(status.st_size), *arguments]
    parts += [f"{name}={environ.get(name, '')}" for name in _VARIABLES]
    for folder in _folders(arguments):
        parts += [str(Path(folder).resolve()), *(n for n in names(Path(folder)) if "." not in n or n.endswith(".h"))]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _folders(arguments: Sequence[str]) -> list[str]:
    found = []
    for argument, following in zip(arguments, (*arguments[1:], ""), strict=True):
        for flag in _FOLDER_FLAGS:
            if argument.startswith(flag):
                found.append(argument.removeprefix(flag).removeprefix("=") or following)
    return found


def _remove_old(folder: Path) -> None:
    used = {file: file.stat().st_mtime for file in folder.glob("*.pch")}
    for file in sorted(used, key=used.__getitem__, reverse=True)[KEPT:]:
        if used[file] < time.time() - IN_USE:
            file.unlink(missing_ok=True)

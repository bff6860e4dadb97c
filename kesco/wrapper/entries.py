"""What kesco found out about a source, kept under a key of all that decides it.

An entry is found by a digest of the source's content, its name and folder, the flags, the variables that matter, the
compiler and kesco itself. It says which other files were read: it is good only while each of the user's has the same
content, each of the system's the same size and time, and nothing stands where an include would have found it earlier.

An entry is one file with a digest of itself, written aside and renamed: it is right or it is not there. Several
processes may write the same one; they write the same content.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from kesco import __version__
from kesco.wrapper.files import digest, forget, read, write_whole

KEPT = 4000
"""How many entries the cache keeps: those used last."""

TYPE_CHECKING = False  # typing takes as long to import as the rest of this
if TYPE_CHECKING:
    from typing import Any

    Entry = dict[str, Any]
else:
    Entry = dict


def stamp() -> bytes:
    """What changes with kesco itself, also in a checkout."""
    newest, count, work = 0, 0, [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    while work:
        with os.scandir(work.pop()) as found:
            for one in found:
                if one.name.endswith((".py", ".toml", ".j2", ".js")):
                    status = one.stat()
                    newest, count = max(newest, status.st_mtime_ns), count + status.st_size
                elif "." not in one.name and one.name != "__pycache__" and one.is_dir():
                    work.append(one.path)
    return f"{__version__}:{newest}:{count}".encode()


def identity(path: str) -> str:
    """What changes with a program."""
    status = os.stat(path)
    return f"{os.path.realpath(path)}:{status.st_mtime_ns}:{status.st_size}"


def key(parts: Sequence[bytes]) -> str:
    """The name of an entry."""
    return digest(parts)


def without_text(why: str) -> Entry:
    """The entry of a source that is compiled as it is; `why` is empty where there is nothing to tell."""
    return {"text": "", "headers": [], "why": why, "files": [], "missing": [], "report": {}}


def lookup(folder: str, name: str) -> Entry | None:
    """The entry of this name, if it is whole and everything that it was made from is as it was."""
    path = os.path.join(folder, name[:2], name)
    try:
        data = read(path)
    except OSError:
        return None
    entry = loads(data)
    if entry is None:
        forget(path)
        return None
    try:
        if changed(entry):
            return None
        if os.stat(path).st_mtime < _now() - 3600:
            os.utime(path)
    except (OSError, KeyError, TypeError, ValueError):
        return None
    return entry


def changed(entry: Entry) -> str:
    """A file that is no longer what an entry was made from; empty if none is."""
    for path, *described in entry["files"]:
        try:
            if not _same(path, *described):
                return str(path)
        except OSError:
            return str(path)
    return next((str(path) for path in entry["missing"] if os.path.lexists(path)), "")


def _now() -> float:
    import time

    return time.time()


def store(folder: str, name: str, data: bytes) -> None:
    """Keep an entry; a cache that cannot be written is no error."""
    try:
        os.makedirs(os.path.join(folder, name[:2]), exist_ok=True)
        write_whole(os.path.join(folder, name[:2], name), data)
        if name[2:4] == "00":
            _remove_old(folder)
    except OSError:
        pass


def dumps(entry: Entry) -> bytes:
    """An entry as it is kept."""
    text = json.dumps(entry, sort_keys=True).encode()
    return digest([text]).encode() + b"\n" + text


def loads(data: bytes) -> Entry | None:
    """An entry, unless a byte of it is wrong."""
    head, _, text = data.partition(b"\n")
    if digest([text]).encode() != head:
        return None
    found = json.loads(text)
    return found if isinstance(found, dict) else None


def described(path: str, content: bool) -> list[object]:
    """A file as an entry names it: with a digest of its content, or only with its size and time."""
    status = os.stat(path)
    return [path, status.st_size, 0 if content else status.st_mtime_ns, digest([read(path)]) if content else ""]


def _same(path: str, size: int, time: int, content: str) -> bool:
    status = os.stat(path)
    if status.st_size != size:
        return False
    return digest([read(path)]) == content if content else status.st_mtime_ns == time


def _remove_old(folder: str) -> None:
    found = []
    for part in os.listdir(folder):
        inside = os.path.join(folder, part)
        if os.path.isdir(inside):
            found += [os.path.join(inside, name) for name in os.listdir(inside)]
    found.sort(key=lambda path: os.stat(path).st_mtime, reverse=True)
    for path in found[KEPT:]:
        forget(path)

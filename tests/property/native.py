"""Programs that really run, on a CUDA runtime that takes any order which CUDA allows: what do they print?

In: texts, of a serial program and of what kesco made of it. Out: what each run printed. Apart from the paper oracle,
which only knows a small part of C++: here a compiler reads all of it. Kernels are known by their names (`lazy.cpp`).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir

from kesco.toolchain import precompiled
from kesco.toolchain.compile import architectures, host_arguments
from kesco.toolchain.model import Toolchain

RUNTIME = Path(__file__).with_name("lazy.cpp")
SEEDS = (0, *range(1, 13))
INPUTS = (("nnnnnnnnnnnnnnnnnnnnnnnn",), ("yyyyyyyyyyyyyyyyyyyyyyyy", "2"), ("ynnynyynnyynynyynnynyyyn", "2", "3"))


@lru_cache(maxsize=1)
def runtime(toolchain: Toolchain) -> Path:
    """The runtime as an object file, made once for each text of it."""
    made = Path(gettempdir()) / f"kesco-lazy-{sha256(RUNTIME.read_bytes()).hexdigest()[:16]}.o"
    if made.exists():
        return made
    fresh = made.with_suffix(f".{os.getpid()}")
    include = Path(str(toolchain.cuda_path)) / "include"
    command = ("g++", "-std=c++17", f"-I{include}", "-O1", "-c", str(RUNTIME), "-o", str(fresh))
    subprocess.run(command, check=True, timeout=300)
    fresh.rename(made)
    return made


def built(toolchain: Toolchain, text: str, folder: Path, name: str = "program") -> Path:
    """A program of a text; its own `main` is called like any other function."""
    source, made, program = folder / f"{name}.cu", folder / f"{name}.o", folder / name
    source.write_text(text)
    image = folder / "image"
    image.write_bytes(b"kesco")
    target = f"--cuda-gpu-arch={architectures(toolchain, ())[0]}"
    arguments = (*host_arguments(toolchain), target, "-Dmain=program_main")
    registered = ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", str(image))
    command = (*toolchain.clang, *arguments, "-O0")
    rest = (*registered, "-c", str(source), "-o", str(made))
    header = precompiled.find(Path(toolchain.clang[0]), command[1:], precompiled.by_clang(command[0], "-c"))
    started = precompiled.use(header) if header is not None else ()
    subprocess.run((*command, *started, *rest), check=True, timeout=120, capture_output=True)
    command = ("g++", "-rdynamic", str(made), str(runtime(toolchain)), "-o", str(program), "-ldl", "-lpthread")
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return program


def printed(program: Path, entry: str, given: tuple[str, ...], seeds: tuple[int, ...]) -> list[str]:
    """What each run printed, and how it ended."""
    name, drawn = "program_main" if entry == "main" else entry, ",".join(map(str, seeds))
    environ = {**os.environ, "KESCO_GRAPHS": "plain"}
    command = (str(program), name, drawn, *given)
    ran = subprocess.run(command, capture_output=True, timeout=300, env=environ, check=True)
    return [one.partition("\n")[2] for one in ran.stdout.decode(errors="replace").split("=== seed ")[1:]]


def disagreements(
    toolchain: Toolchain, serial: str, other: str, entries: list[str], folder: Path
) -> Iterator[tuple[str, str]]:
    """Entries whose runs print something else than the serial program does, each once, and in which run."""
    before, after = built(toolchain, serial, folder, "serial"), built(toolchain, other, folder, "other")
    for entry in entries:
        found = next(differs(before, after, entry), "")
        if found:
            yield entry, found


def differs(before: Path, after: Path, entry: str, seeds: tuple[int, ...] = SEEDS) -> Iterator[str]:
    """In which runs two programs print different things; nothing if the first one disagrees with itself."""
    for given in INPUTS:
        expected, *others = printed(before, entry, given, (0, 1, 2, 3))
        if any(one != expected for one in others):
            yield f"serial: {given}"
            continue
        found = printed(after, entry, given, seeds)
        wrong = next((n for n, one in enumerate(found) if one != expected), None)
        if wrong is not None:
            yield f"{given}, seed {seeds[wrong]}:\n{expected}\nbut\n{found[wrong]}"

"""Programs that really run, on a CUDA runtime that takes any order which CUDA allows: what do they print?

In: texts, of a serial program and of what kesco made of it. Out: what each run printed. Apart from the paper oracle,
which only knows a small part of C++: here a compiler reads all of it. Kernels are known by their names (`lazy.cpp`).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

from kesco.toolchain import precompiled
from kesco.toolchain.compile import architectures, host_arguments
from kesco.toolchain.model import Toolchain

RUNTIME = Path(__file__).with_name("lazy.cpp")
SEEDS = (0, *range(1, 13))
INPUTS = (("nnnnnnnnnnnnnnnnnnnnnnnn",), ("yyyyyyyyyyyyyyyyyyyyyyyy", "2"), ("ynnynyynnyynynyynnynyyyn", "2", "3"))


@lru_cache(maxsize=1)
def runtime(toolchain: Toolchain) -> Path:
    """The runtime as an object file, made once in a process."""
    made = Path(mkdtemp(prefix="kesco-lazy-")) / "lazy.o"
    command = [*toolchain.clang, *host_arguments(toolchain), f"--cuda-gpu-arch={architectures(toolchain, ())[0]}"]
    subprocess.run([*command, "-O1", "-c", str(RUNTIME), "-o", str(made)], check=True, timeout=300)
    return made


def built(toolchain: Toolchain, text: str, folder: Path, name: str = "program") -> Path:
    """A program of a text; its own `main` is called like any other function."""
    source, made, program = folder / f"{name}.cu", folder / f"{name}.o", folder / name
    source.write_text(text)
    image = folder / "image"
    image.write_bytes(b"kesco")
    arguments = (*host_arguments(toolchain), f"--cuda-gpu-arch={architectures(toolchain, ())[0]}", "-Dmain=program_main")
    registered = ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", str(image))
    command = (*toolchain.clang, *arguments, "-O0")
    rest = (*registered, "-c", str(source), "-o", str(made))
    header = precompiled.find(Path(toolchain.clang[0]), command[1:], precompiled.by_clang(command[0], "-c"))
    started = precompiled.use(header) if header is not None else ()
    subprocess.run((*command, *started, *rest), check=True, timeout=120, capture_output=True)
    command = ("g++", "-rdynamic", str(made), str(runtime(toolchain)), "-o", str(program), "-ldl", "-lpthread")
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return program


def printed(program: Path, entry: str, given: tuple[str, ...], seed: int, **more: str) -> str:
    """What one run printed, and how it ended."""
    environ = {**os.environ, "LAZY_SEED": str(seed), "KESCO_GRAPHS": "plain", **more}
    if seed % 2:
        environ.setdefault("KESCO_COPIES", "move")
    command = (str(program), "program_main" if entry == "main" else entry, *given)
    try:
        ran = subprocess.run(command, capture_output=True, timeout=20, env=environ, check=False)
    except subprocess.TimeoutExpired:
        return "does not end"
    return f"{ran.stdout.decode(errors='replace')}\nends with {ran.returncode}\n{ran.stderr.decode(errors='replace')}"


def disagreements(toolchain: Toolchain, serial: str, other: str, entries: list[str], folder: Path) -> Iterator[tuple[str, str]]:
    """Entries whose runs print something else than the serial program does, each once, and in which run."""
    before, after = built(toolchain, serial, folder, "serial"), built(toolchain, other, folder, "other")
    for entry in entries:
        found = next(differs(before, after, entry), "")
        if found:
            yield entry, found


def differs(before: Path, after: Path, entry: str, seeds: tuple[int, ...] = SEEDS) -> Iterator[str]:
    """In which runs two programs print different things; nothing if the first one disagrees with itself."""
    for given in INPUTS:
        expected = printed(before, entry, given, 0)
        if any(printed(before, entry, given, seed) != expected for seed in (1, 2, 3)):
            yield f"serial: {given}"
            continue
        for seed in seeds:
            if (found := printed(after, entry, given, seed)) != expected:
                yield f"{given}, seed {seed}:\n{expected}\nbut\n{found}"
                break

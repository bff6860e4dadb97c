"""Build a program against the dry-run CUDA runtime, and run it without a GPU.

In: a `Toolchain`, a source file and flags. Out: a program whose CUDA calls are recorded, and what its run came to.

1. `build`: the host side only, without optimisation, with lines and frame pointers, linked with the dry-run runtime
   (`runtimes`);
2. `run_program`: the program, with a time limit; the record survives however it ends.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError, ToolchainError
from kesco.toolchain import precompiled
from kesco.toolchain.compile import architectures, host_arguments, parse_diagnostics
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import TOO_SLOW, run
from kesco.toolchain.runtimes import PER_THREAD, broken, cxx_compiler, runtime_library

UNSUPPORTED, NO_SPACE = 86, 87  # the exit codes that kesco/runtime/dryrun/recorder.h ends a program with
_LINES = ("-O0", "-gdwarf-4", "-gline-tables-only", "-fno-omit-frame-pointer")
_MISSING = re.compile(r"undefined (?:reference to|symbol:) [`']?([^'\n]+?)(?:'|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended: the program's return code (negative: the signal), what it wrote, whether it was stopped."""

    returncode: int
    said: str = ""
    stopped: bool = False


def build(toolchain: Toolchain, sources: Sequence[str], flags: Sequence[str], folder: Path) -> Path:
    """A program from its sources; `InputError` (K100, K611) where it does not compile or link."""
    with ThreadPoolExecutor(2) as pool:
        (folder / "runtime").mkdir()
        library = pool.submit(runtime_library, toolchain, folder / "runtime")
        objects = [
            pool.submit(_compile, toolchain, source, flags, folder / f"{number}.o")
            for number, source in enumerate(sources)
        ]
        return link(toolchain, [one.result() for one in objects], library.result(), flags, folder)


def link(toolchain: Toolchain, objects: Sequence[Path], library: Path, flags: Sequence[str], folder: Path) -> Path:
    """A program from the objects of its host sides and the runtime; `InputError` (K611) where something is missing."""
    program, made = folder / "program", map(str, objects)
    wanted = [flag for flag in flags if flag.startswith(("-l", "-L", "-Wl,")) and flag not in ("-lcudart", "-lineinfo")]
    command = (*cxx_compiler(toolchain), *made, str(library), f"-Wl,-rpath,{library.parent}", *wanted)
    linked = run((*command, "-o", str(program), "-ldl", "-lpthread"), timeout=300)
    if linked.returncode:
        missing = list(dict.fromkeys(_MISSING.findall(linked.stderr)))
        if not missing:
            raise ToolchainError(broken("the program cannot be linked", linked))
        named = ", ".join(f"'{name}'" for name in missing[:8]) + (", …" if len(missing) > 8 else "")
        help_ = "only the CUDA runtime can be run without a GPU; give other files of the program with --with"
        what = f"the program cannot be linked without {named}"
        raise InputError(Diagnostic("K611", Severity.ERROR, what, help=help_))
    return program


def _compile(toolchain: Toolchain, source: str, flags: Sequence[str], made: Path) -> Path:
    target = architectures(toolchain, flags)[0]
    arguments = (*host_arguments(toolchain, flags), f"--cuda-gpu-arch={target}", *_LINES)
    if any(flag.startswith(f"-D{PER_THREAD}") for flag in arguments):
        arguments = (*arguments, "-Xclang", "-fgpu-default-stream=per-thread")
    command = (*toolchain.clang, *arguments)
    plain = ("-fno-color-diagnostics", "-fno-caret-diagnostics", "-fdiagnostics-print-source-range-info")
    # With a device binary of any content clang emits the code that registers kernels and symbols by their names.
    image = made.with_suffix(".image")
    image.write_bytes(b"kesco")
    rest = ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", str(image), *plain, "-c", source, "-o", str(made))

    header = precompiled.find(Path(toolchain.clang[0]), command[1:], precompiled.by_clang(command[0], "-c"))
    if header is not None and run((*command, *precompiled.use(header), *rest), timeout=300).returncode == 0:
        return made
    finished = run((*command, *rest), timeout=300)
    if finished.returncode == 0:
        if header is not None:
            precompiled.discard(header)
        return made
    diagnostics = parse_diagnostics(finished.stderr)
    if diagnostics and finished.returncode > 0:
        raise InputError(*diagnostics)
    raise ToolchainError(broken("the host side does not compile", finished))


def run_program(
    program: Path,
    arguments: Sequence[str],
    record: Path,
    kernels: Path,
    limit: float,
    devices: int = 1,
    watch: bool = True,
    arch: str = "sm_90",
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
) -> Ran:
    """Run a program that `build` or `link` made; its calls are in `record` afterwards."""
    environment = {
        "KESCO_COPIES": "move",  # an output's copies as they are in the long run, not the default stream's
        "KESCO_GRAPHS": "plain",  # with all streams that the text has, and memsets whose bytes are known
        **environ,
        "CUDA_DRY_RUN_RECORD": str(record),
        "CUDA_DRY_RUN_KERNELS": str(kernels),
        "CUDA_DRY_RUN_DEVICES": str(devices),
        "CUDA_DRY_RUN_ARCH": re.sub(r"\D", "", arch),
        **({} if watch else {"CUDA_DRY_RUN_BLIND": "1"}),
    }
    return ran((str(program), *arguments), limit, environment, cwd)


def ran(
    command: Sequence[str], limit: float, environment: Mapping[str, str], cwd: Path | None = None, through: bool = False
) -> Ran:
    """Run a command for so many seconds at most; with `through` it reads and writes what this process does."""
    try:
        finished = run(command, cwd=cwd, timeout=limit, env=environment, through=through)
    except ToolchainError as problem:
        if problem.diagnostics[0].code != TOO_SLOW:
            raise
        return Ran(0, stopped=True)
    return Ran(finished.returncode, finished.stderr + finished.text)

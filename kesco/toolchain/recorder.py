"""Build a program for a GPU, and run it there with the recorder in front of the real CUDA runtime.

In: a `Toolchain`, source files and flags. Out: a program as nvcc makes it, with the *shared* CUDA runtime, and what its
run came to. Its calls are in the record afterwards, as after a dry run.

1. `build`: nvcc compiles and links it; the host's side without optimisation, with lines and frame pointers, so that
   the stacks of its calls can be walked;
2. `run_program`: the recorder is preloaded, under its name alone: a folder's name may have spaces. Where the system
   finds no shared runtime, the toolkit's is taken.

The program is the same with and without the recorder. What has the runtime linked into it cannot be recorded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.errors import InputError, ToolchainError
from kesco.toolchain.compile import architectures
from kesco.toolchain.cuda import HOW_TO_GET, NO_CUDA
from kesco.toolchain.dryrun import Ran
from kesco.toolchain.flags import translate
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import TOO_SLOW, run
from kesco.toolchain.runtimes import Kind, runtime_library

_HOST = "-O0,-gdwarf-4,-g1,-gno-column-info,-fno-omit-frame-pointer,-fno-optimize-sibling-calls"
_NOT_FOUND = re.compile(r"loading shared libraries: (libcudart\S*):")
_LEFT_OUT = ("-O", "--optimize", "-cudart", "--cudart")  # where their value is the next word
_CANNOT_LOAD = 127  # the exit code of a program that lacks a shared library
_LIBRARIES = ("lib64", "lib", "targets/x86_64-linux/lib")


def build(toolchain: Toolchain, sources: Sequence[str], flags: Sequence[str], folder: Path) -> Path:
    """A program from its sources; `InputError` (K621) where nvcc refuses, `ToolchainError` where something is missing.

    The recorder lies in the folder afterwards.
    """
    if toolchain.nvcc is None:
        raise ToolchainError(Diagnostic(NO_CUDA, Severity.ERROR, "no nvcc found to build for a GPU", help=HOW_TO_GET))
    spare = folder / "runtime"
    spare.mkdir()
    (folder / Kind.RECORDER.value).symlink_to(runtime_library(toolchain, spare, Kind.RECORDER))
    arch = () if translate(flags).architectures else (f"-arch={architectures(toolchain, flags)[0]}",)
    folders = tuple(part for one in toolchain.cuda_include for part in ("-isystem", str(one)))
    found = tuple(part for one in (*_libraries(toolchain), _named(toolchain, spare)) for part in ("-L", one))
    program = folder / "program"
    fixed = ("-cudart", "shared", "-Xcompiler", _HOST)
    command = (str(toolchain.nvcc), *_kept(flags), *arch, *fixed, *folders, *found, *sources, "-o", str(program))
    made = run(command, timeout=600)
    if made.returncode:
        last = [line for line in (made.stderr + made.text).splitlines() if line.strip()]
        if any("-lcudart" in line for line in last):
            raise ToolchainError(_no_runtime("the toolkit has no shared CUDA runtime to link with"))
        notes = tuple(Note(line) for line in last[:5])
        what = "nvcc cannot build the program"
        help_ = f"give what it needs with --flags and --with; by hand: {made.command}"
        raise InputError(Diagnostic("K621", Severity.ERROR, what, notes=notes, help=help_))
    return program


def _kept(flags: Sequence[str]) -> list[str]:
    """The user's flags but for those that would optimise the host's side, or link the runtime into the program.

    What is for the host's compiler alone stays: kesco's own ``-O0`` comes behind it.
    """
    kept: list[str] = []
    last = ""
    for flag in flags:
        if last.startswith(("-X", "--compiler-options")) or (
            last not in _LEFT_OUT and not flag.startswith(("-O", "--optimize", "-cudart", "--cudart"))
        ):
            kept.append(flag)
        last = "" if last in _LEFT_OUT else flag
    return kept


def _libraries(toolchain: Toolchain) -> list[str]:
    return [str(toolchain.cuda_path / one) for one in _LIBRARIES if (toolchain.cuda_path / one).is_dir()]


def _named(toolchain: Toolchain, folder: Path) -> str:
    """A folder where the toolkit's shared runtime has the name that linkers look for: wheels leave that name out."""
    versions = [file for one in _libraries(toolchain) for file in sorted(Path(one).glob("libcudart.so.*"))]
    if versions:
        (folder / "libcudart.so").symlink_to(versions[0])
    return str(folder)


def _no_runtime(what: str) -> Diagnostic:
    help_ = "install the CUDA toolkit with its libraries, or name their folder in LD_LIBRARY_PATH"
    return Diagnostic("K622", Severity.ERROR, what, help=help_)


def run_program(
    toolchain: Toolchain,
    program: Path,
    arguments: Sequence[str],
    record: Path,
    kernels: Path,
    limit: float,
    environ: Mapping[str, str] = os.environ,
) -> Ran:
    """Run a program that `build` made; its calls are in `record` afterwards. K622 if it cannot be loaded."""
    folders = [environ.get("LD_LIBRARY_PATH", ""), str(program.parent), *_libraries(toolchain)]
    preloaded = environ.get("LD_PRELOAD", "")
    environment = {
        "KESCO_GRAPHS": "plain",  # with all streams that the text has, and memsets whose bytes are known
        **environ,
        "CUDA_RECORDER_RECORD": str(record),
        "CUDA_RECORDER_KERNELS": str(kernels),
        "CUDA_RECORDER_PRELOAD": preloaded,
        "LD_PRELOAD": f"{Kind.RECORDER.value} {preloaded}".strip(),
        "LD_LIBRARY_PATH": ":".join(filter(None, folders)),
    }
    try:
        finished = run((str(program), *arguments), timeout=limit, env=environment)
    except ToolchainError as problem:
        if problem.diagnostics[0].code != TOO_SLOW:
            raise
        return Ran(0, stopped=True)
    lacks = _NOT_FOUND.search(finished.stderr) if finished.returncode == _CANNOT_LOAD else None
    if lacks:
        raise ToolchainError(_no_runtime(f"the program does not find the shared CUDA runtime, {lacks[1]}"))
    return Ran(finished.returncode, finished.stderr + finished.text)

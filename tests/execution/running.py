"""A CUDA file → a run of its host side, without a GPU.

In: a source file, its flags, arguments, how it is run. Out: a `Run`, or `Unfit` with the reason why there is none.

1. clang compiles the host side to LLVM IR as kesco's own reader gets it; 2. the IR is instrumented; 3. llvmlite
compiles it, with a `main` where there is none; 4. it is linked with the CUDA runtime of `kesco check`, which has memory
of the host for the device's and where kernels do nothing; 5. it runs, with a limit on seconds and on calls of CUDA, and
its record is read.

The runtime is not one of the tests' own: that one has 200 functions, judges calls as the real one does, and sees the
host touch pinned and managed memory. What it lacked are the marks, and results that can be asked for.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import llvmlite.binding as llvm

from execution.drivers import WAYS, driven
from execution.happened import Run, happened
from execution.instrument import Instrumented, instrument
from kesco.check import kernel_table
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError
from kesco.ir.effects import KernelEffects
from kesco.toolchain.compile import architectures, host_arguments, parse_diagnostics
from kesco.toolchain.dryrun import link, run_program
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import run
from kesco.toolchain.runtimes import runtime_library
from kesco.verify.trace import read

_AS_READ = ("-O1", "-Xclang", "-disable-llvm-passes", "-gline-tables-only", "-gcolumn-info", "-S", "-emit-llvm")
_DECLARED = re.compile(r'^declare .*?@"?([\w.$]+)"?\(', re.MULTILINE)
_EXTERNAL = re.compile(r'^@"?([\w.$]+)"? = external (?!.*thread_local).*?(?:global|constant)', re.MULTILINE)
_LLVM = threading.Lock()  # its targets are set up once


class Unfit(Exception):
    """The program cannot be run here; the text says why."""


@dataclass(frozen=True, slots=True)
class How:
    """How a program is run: its arguments, seconds, calls of CUDA, what its kernels leave (0: nothing), and where.

    Where nothing is said it runs in the folder that it was built in, which goes: it may write files.
    """

    arguments: tuple[str, ...] = ()
    seconds: float = 10
    calls: int = 20_000
    results: int = 0
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """A program that can be run, and the meaning of its marks."""

    folder: Path
    table: Instrumented
    toolchain: Toolchain
    entries: tuple[str, ...] = ()  # the functions that are called where there is no `main`

    def ways(self, how: How) -> list[How]:
        """How to run all of it: once, or each function that is called."""
        calls = range(len(self.entries) * WAYS)
        return [replace(how, arguments=("x",) * number) for number in calls] if self.entries else [how]

    @property
    def program(self) -> Path:
        return self.folder / "program"


def host_ir(toolchain: Toolchain, source: str, flags: Sequence[str], folder: Path) -> str:
    """The LLVM IR of the host side, with the code that registers kernels."""
    image = folder / "image"
    image.write_bytes(b"kesco")
    device = ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", str(image))
    target = f"--cuda-gpu-arch={architectures(toolchain, flags)[0]}"
    arguments = (*host_arguments(toolchain, flags), target, *_AS_READ, *device, "-fno-omit-frame-pointer")
    finished = run((*toolchain.clang, *arguments, "-fno-color-diagnostics", "-o", "-", source), timeout=300)
    if finished.returncode:
        said = parse_diagnostics(finished.stderr)
        raise InputError(*said) if said else Unfit(f"clang failed with exit code {finished.returncode}")
    return finished.text


def build(
    toolchain: Toolchain,
    source: str,
    flags: Sequence[str],
    effects: Mapping[str, KernelEffects],
    sizes: Mapping[str, tuple[int, ...]],
    folder: Path,
) -> Built:
    """The instrumented program of a file; `effects` and `sizes` are of its kernels and their parameters."""
    table = instrument(host_ir(toolchain, source, flags, folder))
    text, entries = table.text, ()
    if not re.search(r"^define .*@main\(", text, re.MULTILINE):
        text, entries = driven(text, {one.symbol for one in table.functions})
        if not entries:
            raise Unfit("it has no function that could be called")
    objects = [folder / "0.o", folder / "unseen.o"]
    # What a library has, and clang shows for inlining, is defined here: no pass inlines, and not all of it is there.
    text = text.replace("\ndefine available_externally ", "\ndefine linkonce_odr ")
    for made, one in zip(objects, (text, _unseen(text)), strict=True):
        made.write_bytes(_object(one))
    spare = folder / "runtime"
    spare.mkdir(exist_ok=True)
    try:
        link(toolchain, objects, runtime_library(toolchain, spare), flags, folder)
    except InputError as problem:
        raise Unfit(problem.diagnostics[0].message) from None
    (folder / "kernels").write_text(kernel_table(effects, sizes))
    return Built(folder, table, toolchain, entries)


def _unseen(text: str) -> str:
    """Definitions of what the file declares and no library has: functions that do nothing, variables that are zero.

    Code that is not seen may do nothing, so what happens then is one of the things that must be foreseen.
    """
    libraries = [ctypes.CDLL(name) for name in (None, "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1")]
    lines = [line for line in text.splitlines() if line.startswith("target ")]
    for name in _DECLARED.findall(text):
        if not name.startswith(("llvm.", "cuda", "__cuda")) and not any(hasattr(one, name) for one in libraries):
            lines.append(f'define weak i64 @"{name}"() {{ ret i64 0 }}')
    for name in _EXTERNAL.findall(text):
        if not any(hasattr(one, name) for one in libraries):
            lines.append(f'@"{name}" = weak global [4096 x i8] zeroinitializer, align 16')
    return "\n".join([*lines, ""])


def _object(text: str) -> bytes:
    with _LLVM:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        try:
            module = llvm.parse_assembly(text)
            module.verify()
            triple = module.triple or llvm.get_default_triple()
            # Without optimisation: two calls that are alike must not become one.
            machine = llvm.Target.from_triple(triple).create_target_machine(opt=0, reloc="pic", codemodel="default")
            return bytes(machine.emit_object(module))
        except RuntimeError as problem:
            raise Unfit(f"llvmlite: {str(problem).splitlines()[0]}") from None


def execute(built: Built, how: How, environ: Mapping[str, str] = os.environ) -> Run:
    """Run it once."""
    record = built.folder / "record"
    record.unlink(missing_ok=True)
    environment = {
        **environ,
        "CUDA_DRY_RUN_MOST_CALLS": str(how.calls),
        **({"CUDA_DRY_RUN_RESULTS": str(how.results)} if how.results else {}),
    }
    kernels = built.folder / "kernels"
    where = how.folder or built.folder
    run_program(built.program, how.arguments, record, kernels, how.seconds, environ=environment, cwd=where)
    if not record.exists():
        raise Unfit("it left no record")
    try:
        return happened(read(record.read_bytes().rstrip(b"\0").decode("utf-8", "replace")), built.table)
    except (ValueError, IndexError):
        raise Unfit("it wrote over its record") from None  # which is in its memory


def refusal(problem: Exception) -> str:
    """Why something could not be done, in one line."""
    if isinstance(problem, InputError):
        one: Diagnostic = next((d for d in problem.diagnostics if d.severity is Severity.ERROR), problem.diagnostics[0])
        return f"{one.code} {one.message}"
    return str(problem).splitlines()[0] if str(problem) else type(problem).__name__

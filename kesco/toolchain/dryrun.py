"""Build a program against the dry-run CUDA runtime, and run it without a GPU.

In: a `Toolchain`, a source file and flags. Out: a program whose CUDA calls are recorded, and what its run came to.

1. `runtime_library`: the C++ in ``kesco/runtime/dryrun``, compiled once for each compiler and version of the CUDA
   headers and kept in the cache. What the headers declare and the C++ lacks gets a function that ends the program with
   its name, so that nothing is missing and nothing pretends to work;
2. `build`: the host side only, without optimisation, with lines and frame pointers, linked with that library;
3. `run_program`: the program, with a time limit; the record survives however it ends.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.errors import InputError, ToolchainError
from kesco.toolchain import precompiled
from kesco.toolchain.compile import architectures, host_arguments, parse_diagnostics
from kesco.toolchain.model import Toolchain
from kesco.toolchain.places import cache_folder
from kesco.toolchain.process import TOO_SLOW, Finished, run

SOURCES = Path(__file__).resolve().parent.parent / "runtime" / "dryrun"
LIBRARY = "libkesco_dryrun.so"
UNSUPPORTED, NO_SPACE = 86, 87  # the exit codes that kesco/runtime/dryrun/recorder.h ends a program with
_TWICE = "stream_api.cpp"
_PER_THREAD = "CUDA_API_PER_THREAD_DEFAULT_STREAM"
_HEADERS = ("cuda_runtime_api.h", "cuda_profiler_api.h")
_COMPILE = ("-std=c++17", "-O1", "-fPIC", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-w")
_LINES = ("-O0", "-gdwarf-4", "-gline-tables-only", "-fno-omit-frame-pointer")
_DECLARED = re.compile(r"CUDARTAPI\s+(cuda[A-Z]\w*)\s*\(")
_RENAMED = re.compile(r"#\s*define\s+(cuda[A-Z]\w*)\s+__CUDART_API_PT(SZ|DS)\(")
_MISSING = re.compile(r"undefined (?:reference to|symbol:) [`']?([^'\n]+?)(?:'|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended: the program's return code (negative: the signal), what it wrote, whether it was stopped."""

    returncode: int
    said: str = ""
    stopped: bool = False


def cxx_compiler(toolchain: Toolchain) -> tuple[str, ...]:
    """The command that compiles and links C++; raises `ToolchainError` (K612) if there is none."""
    if not toolchain.is_zig:
        return (*toolchain.clang, "--driver-mode=g++", *toolchain.cxx_flags)
    for name in ("g++", "c++", "clang++"):
        if found := shutil.which(name):
            return (found,)
    raise ToolchainError(
        Diagnostic("K612", Severity.ERROR, "no C++ compiler that can link a program", help="apt-get install g++")
    )


def runtime_library(toolchain: Toolchain, spare: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The compiled runtime; made now if the cache does not have it, in the `spare` folder if it cannot take it."""
    compiler = cxx_compiler(toolchain)
    include = toolchain.cuda_path / "include"
    stamp = hashlib.sha256("\0".join((*compiler, *_COMPILE)).encode())
    for file in (*sorted(SOURCES.glob("*.[ch]*")), *(include / name for name in _HEADERS), Path(__file__)):
        stamp.update(file.read_bytes() if file.is_file() else b"")
    folder = cache_folder(environ) / "dryrun" / stamp.hexdigest()[:32]
    library = folder / LIBRARY
    if library.is_file():
        return library
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = TemporaryDirectory(prefix="kesco-", dir=folder)
    except OSError:
        _make(compiler, toolchain, spare)
        return spare / LIBRARY
    with place as name:
        _make(compiler, toolchain, Path(name))
        (Path(name) / LIBRARY).replace(library)  # several may do this at once
    return library


def declared(header: str) -> list[str]:
    """The functions of the runtime that a header declares, their per-thread variants included."""
    plain = set(_DECLARED.findall(header))
    renamed = {f"{name}_pt{kind.lower()}" for name, kind in _RENAMED.findall(header)}
    return sorted(plain | renamed)


def _make(compiler: tuple[str, ...], toolchain: Toolchain, place: Path) -> None:
    include = toolchain.cuda_path / "include"
    texts = [(include / name).read_text("utf-8", "replace") for name in _HEADERS if (include / name).is_file()]
    functions = sorted({name for text in texts for name in declared(text)})
    lines = [f'extern "C" __attribute__((weak)) int {name}() {{ dryrun::refuse("{name}"); }}' for name in functions]
    head = "namespace dryrun { [[noreturn]] void refuse(const char *); }"
    (place / "unsupported.cpp").write_text("\n".join([head, *lines, ""]))
    folders = [part for folder in (include, *toolchain.cuda_include) for part in ("-isystem", str(folder))]
    files = (*sorted(SOURCES.glob("*.cpp")), place / "unsupported.cpp")
    work: list[tuple[Path, tuple[str, ...]]] = [(file, ()) for file in files]
    work.append((SOURCES / _TWICE, (f"-D{_PER_THREAD}",)))

    def compile_one(number: int) -> Path:
        file, flags = work[number]
        target = place / f"{number}.o"
        made = run((*compiler, *_COMPILE, *flags, *folders, "-c", str(file), "-o", str(target)), timeout=300)
        if made.returncode:
            raise ToolchainError(_broken("the dry-run runtime does not compile", made))
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = [str(one) for one in pool.map(compile_one, range(len(work)))]
    linked = run((*compiler, "-shared", *objects, "-o", str(place / LIBRARY), "-ldl", "-lpthread"), timeout=300)
    if linked.returncode:
        raise ToolchainError(_broken("the dry-run runtime cannot be linked", linked))


def _broken(what: str, finished: Finished) -> Diagnostic:
    last = [line for line in finished.stderr.splitlines() if line.strip()][:5]
    help_ = f"run it by hand to see more: {finished.command}"
    return Diagnostic("K612", Severity.ERROR, what, notes=tuple(Note(line) for line in last), help=help_)


def build(toolchain: Toolchain, sources: Sequence[str], flags: Sequence[str], folder: Path) -> Path:
    """A program from its sources; `InputError` (K100, K611) where it does not compile or link."""
    with ThreadPoolExecutor(2) as pool:
        (folder / "runtime").mkdir()
        library = pool.submit(runtime_library, toolchain, folder / "runtime")
        objects = [
            pool.submit(_compile, toolchain, source, flags, folder / f"{number}.o")
            for number, source in enumerate(sources)
        ]
        program = folder / "program"
        made = [str(one.result()) for one in objects]
        found = library.result()
    wanted = [flag for flag in flags if flag.startswith(("-l", "-L", "-Wl,")) and flag not in ("-lcudart", "-lineinfo")]
    command = (*cxx_compiler(toolchain), *made, str(found), f"-Wl,-rpath,{found.parent}", *wanted)
    linked = run((*command, "-o", str(program), "-ldl", "-lpthread"), timeout=300)
    if linked.returncode:
        missing = list(dict.fromkeys(_MISSING.findall(linked.stderr)))
        if not missing:
            raise ToolchainError(_broken("the program cannot be linked", linked))
        named = ", ".join(f"'{name}'" for name in missing[:8]) + (", …" if len(missing) > 8 else "")
        help_ = "only the CUDA runtime can be run without a GPU; give other files of the program with --with"
        what = f"the program cannot be linked without {named}"
        raise InputError(Diagnostic("K611", Severity.ERROR, what, help=help_))
    return program


def _compile(toolchain: Toolchain, source: str, flags: Sequence[str], made: Path) -> Path:
    target = architectures(toolchain, flags)[0]
    arguments = (*host_arguments(toolchain, flags), f"--cuda-gpu-arch={target}", *_LINES)
    if any(flag.startswith(f"-D{_PER_THREAD}") for flag in arguments):
        arguments = (*arguments, "-Xclang", "-fgpu-default-stream=per-thread")
    command = (*toolchain.clang, *arguments)
    plain = ("-fno-color-diagnostics", "-fno-caret-diagnostics", "-fdiagnostics-print-source-range-info")
    # With a device binary of any content clang emits the code that registers kernels and symbols by their names.
    image = made.with_suffix(".image")
    image.write_bytes(b"kesco")
    rest = ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", str(image), *plain, "-c", source, "-o", str(made))

    def make(empty: Path, header: Path) -> bool:
        finished = run((*command, "-Xclang", "-emit-pch", str(empty), "-o", str(header)), timeout=300)
        return finished.returncode == 0 and header.is_file()

    header = precompiled.find(Path(toolchain.clang[0]), command[1:], make)
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
    raise ToolchainError(_broken("the host side does not compile", finished))


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
) -> Ran:
    """Run a program that `build` made; its calls are in `record` afterwards."""
    environment = {
        **environ,
        "CUDA_DRY_RUN_RECORD": str(record),
        "CUDA_DRY_RUN_KERNELS": str(kernels),
        "CUDA_DRY_RUN_DEVICES": str(devices),
        "CUDA_DRY_RUN_ARCH": re.sub(r"\D", "", arch),
        **({} if watch else {"CUDA_DRY_RUN_BLIND": "1"}),
    }
    try:
        finished = run((str(program), *arguments), timeout=limit, env=environment)
    except ToolchainError as problem:
        if problem.diagnostics[0].code != TOO_SLOW:
            raise
        return Ran(0, stopped=True)
    return Ran(finished.returncode, finished.stderr + finished.text)

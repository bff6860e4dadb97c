"""The CUDA runtimes of `kesco check`, compiled: the one that needs no GPU, and the recorder in front of the real one.

In: a `Toolchain`. Out: a shared library, made once for each compiler and version of the CUDA headers and kept in the
cache. Both keep the same books, ``kesco/runtime/dryrun``, and differ in what is around them:

1. the *dry run* has memory of its own. What the headers declare and it lacks gets a function that ends the program with
   its name, so that nothing is missing and nothing pretends to work;
2. in the *recorder* the functions of the books have other names, ``model_cudaMalloc`` for `cudaMalloc`, and
   ``kesco/runtime/recorder`` has the real ones. What the headers declare and it lacks goes through to the real runtime,
   and is named in the record unless ``asks_only.toml`` says that it does nothing.

It needs a compiler that links C++ (K612), and it never changes a library that is there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.errors import ToolchainError
from kesco.toolchain.library_functions import TABLE, library_functions
from kesco.toolchain.model import Toolchain
from kesco.toolchain.places import cache_folder
from kesco.toolchain.process import Finished, run

SOURCES = Path(__file__).resolve().parent.parent / "runtime"
PER_THREAD = "CUDA_API_PER_THREAD_DEFAULT_STREAM"
_HEADERS = ("cuda_runtime_api.h", "cuda_profiler_api.h")
_COMPILE = ("-std=c++17", "-O1", "-fPIC", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-w")
_DECLARED = re.compile(r"CUDARTAPI\s+(cuda[A-Z]\w*)\s*\(")
_RENAMED = re.compile(r"#\s*define\s+(cuda[A-Z]\w*)\s+__CUDART_API_PT(SZ|DS)\(")
_VERSION = re.compile(r"(?:_v\d+)?(?:_ptsz|_ptds)?$")
_MADE_BY = (Path(__file__), TABLE, Path(__file__).with_name("library_functions.py"))
_ONLY_DRY = frozenset({"libraries.cpp", "pages.cpp", "nothing_runs.cpp", "host_io.cpp", "marks.cpp"})
_COMPILED_TWICE = frozenset({"stream_api.cpp", "transfer_api.cpp", "forward_streams.cpp"})
_BY_COMPILERS = (  # called by what compilers make of kernels and symbols; no header of the API declares them
    *("__cudaRegisterFatBinary", "__cudaRegisterFatBinaryEnd", "__cudaUnregisterFatBinary", "__cudaRegisterFunction"),
    *("__cudaRegisterVar", "__cudaGetKernel", "__cudaLaunchKernel", "__cudaLaunchKernel_ptsz", "__cudaInitModule"),
    *("__cudaPushCallConfiguration", "__cudaPopCallConfiguration"),
)
# Nothing else may be seen from outside: the two libraries share names, and a program may have both.
_SEEN = "cublas*; cufft*; curand*; read; pread; write; pwrite; readv; writev; recv; send; fread; fwrite;"
_EXPORTS = "{ global: cuda*; __cuda*; kesco_check_*; %s local: *; };"


class Kind(Enum):
    """Which of the two; the value is the library's name."""

    DRY_RUN = "libkesco_dryrun.so"
    RECORDER = "libkesco_recorder.so"


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


def runtime_library(
    toolchain: Toolchain, spare: Path, kind: Kind = Kind.DRY_RUN, environ: Mapping[str, str] = os.environ
) -> Path:
    """The compiled runtime; made now if the cache does not have it, in the `spare` folder if it cannot take it."""
    compiler = cxx_compiler(toolchain)
    include = toolchain.cuda_path / "include"
    stamp = hashlib.sha256("\0".join((kind.value, *compiler, *_COMPILE)).encode())
    sources = (*sorted((SOURCES / "dryrun").iterdir()), *sorted((SOURCES / "recorder").iterdir()))
    for file in (*sources, *(include / name for name in _HEADERS), *_MADE_BY):
        stamp.update(file.read_bytes() if file.is_file() else b"")
    folder = cache_folder(environ) / "dryrun" / stamp.hexdigest()[:32]
    library = folder / kind.value
    if library.is_file():
        return library
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock, place = (folder / "lock").open("w"), TemporaryDirectory(prefix="kesco-", dir=folder)
    except OSError:
        _make(compiler, toolchain, kind, spare)
        return spare / kind.value
    with lock, place as name:
        with contextlib.suppress(OSError):  # where files cannot be locked, several do the same at once
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.is_file():
            try:
                _make(compiler, toolchain, kind, Path(name))
                (Path(name) / kind.value).replace(library)
            except (OSError, ToolchainError):  # it may be that there is no room for it
                _make(compiler, toolchain, kind, spare)
                return spare / kind.value
    return library


def declared(header: str) -> list[str]:
    """The functions of the runtime that a header declares, their per-thread variants included."""
    plain = set(_DECLARED.findall(header))
    renamed = {f"{name}_pt{kind.lower()}" for name, kind in _RENAMED.findall(header)}
    return sorted(plain | renamed)


def _unsupported(functions: list[str]) -> str:
    """Of the dry run: what there is no other definition of ends the program."""
    lines = [f'extern "C" __attribute__((weak)) int {name}() {{ dryrun::refuse("{name}"); }}' for name in functions]
    return "\n".join(["namespace dryrun { [[noreturn]] void refuse(const char *); }", *lines, ""])


def _passing(functions: list[str]) -> str:
    """Of the recorder: what there is no other definition of goes through to the real runtime (``passing.cpp``)."""
    asks = set(tomllib.loads((SOURCES / "recorder" / "asks_only.toml").read_text("utf-8"))["functions"])
    lines = ["#include <atomic>", "#ifdef __x86_64__"]
    lines += [f'extern "C" __attribute__((weak, visibility("hidden"))) void model_{name}();' for name in functions]
    lines += ["namespace forward {", "struct Function { const char *name; bool known; };"]
    lines.append("extern const Function kFunctions[] = {")
    for name in functions:
        lines.append(f'  {{"{name}", {"true" if _VERSION.sub("", name) in asks else f"model_{name} != nullptr"}}},')
    lines += ["};", f"std::atomic<void *> kReal[{len(functions)}];", "}"]
    for number, name in enumerate(functions):
        entry = f".text\\n.weak {name}\\n.type {name}, @function\\n{name}:\\n"
        lines.append(f'asm("{entry}movl ${number}, %r11d\\njmp recorder_pass\\n.size {name}, .-{name}\\n");')
    return "\n".join([*lines, "#endif", ""])


def _make(compiler: tuple[str, ...], toolchain: Toolchain, kind: Kind, place: Path) -> None:
    include = toolchain.cuda_path / "include"
    texts = [(include / name).read_text("utf-8", "replace") for name in _HEADERS if (include / name).is_file()]
    functions = sorted({name for text in texts for name in declared(text)})
    folders = tuple(part for folder in (include, *toolchain.cuda_include) for part in ("-isystem", str(folder)))
    rest, books = place / "rest.cpp", sorted((SOURCES / "dryrun").glob("*.cpp"))
    work: list[tuple[Path, tuple[str, ...]]] = [(rest, ())]
    if kind is Kind.DRY_RUN:
        rest.write_text(_unsupported(functions))
        libraries = place / "library_functions.cpp"
        libraries.write_text(library_functions())
        work += [(libraries, ()), *((file, ()) for file in books)]
    else:
        rest.write_text(_passing(functions))
        names = place / "names.h"
        names.write_text("".join(f"#define {name} model_{name}\n" for name in (*functions, *_BY_COMPILERS)))
        work += [(file, ("-include", str(names))) for file in books if file.name not in _ONLY_DRY]
        work += [(file, ()) for file in sorted((SOURCES / "recorder").glob("*.cpp"))]
    work += [(file, (*flags, f"-D{PER_THREAD}")) for file, flags in work if file.name in _COMPILED_TWICE]

    def compile_one(number: int) -> Path:
        file, flags = work[number]
        target = place / f"{number}.o"
        made = run((*compiler, *_COMPILE, *flags, *folders, "-c", str(file), "-o", str(target)), timeout=300)
        if made.returncode:
            raise ToolchainError(broken(f"{kind.value} does not compile", made))
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = [str(one) for one in pool.map(compile_one, range(len(work)))]
    exports = place / "exports"
    exports.write_text(_EXPORTS % (_SEEN if kind is Kind.DRY_RUN else ""))
    closed = ("-Wl,-Bsymbolic", f"-Wl,--version-script={exports}")
    made = run(
        (*compiler, "-shared", *closed, *objects, "-o", str(place / kind.value), "-ldl", "-lpthread"), timeout=300
    )
    if made.returncode:
        raise ToolchainError(broken(f"{kind.value} cannot be linked", made))


def broken(what: str, finished: Finished) -> Diagnostic:
    """A compiler of ours failed, and what it said."""
    last = [line for line in finished.stderr.splitlines() if line.strip()][:5]
    help_ = f"run it by hand to see more: {finished.command}"
    return Diagnostic("K612", Severity.ERROR, what, notes=tuple(Note(line) for line in last), help=help_)

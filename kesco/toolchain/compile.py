"""Run the compilers: arguments for libclang, LLVM IR of the device side, and a check that a file compiles at all.

In: a `Toolchain`, a source file, the user's flags. Out: argument tuples, IR text, or what a compiler said. Host parse
and device compile get the same headers, language and macros, so that both see the same program.

1. `host_arguments`: what libclang needs to parse the host side;
2. `device_arguments`, `device_ir`: clang's LLVM IR of the device side, at -O1, where attribute inference has run;
3. `host_ir`: that of the host side, as clang makes it, before any pass, with lines and columns;
4. `check_compiles`: the whole file, both sides, to an object that is thrown away.

Errors in the user's code are an `InputError` with clang's own words and places. Nothing here links or writes output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.errors import InputError, ToolchainError
from kesco.source import Span
from kesco.toolchain import hostcxx, precompiled
from kesco.toolchain.cuda import HOW_TO_GET, NO_CUDA
from kesco.toolchain.flags import UserFlags, translate
from kesco.toolchain.mending import taken
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import Finished, run

NOT_VALID_CUDA = "K100"
COMPILER_FAILED = "K508"
_DEFAULT_STANDARD = "gnu++17"
"""What nvcc's host compiler and clang take when nothing is said."""

# With -ffast-math, which stands for nvcc's -use_fast_math, too, clang leaves out what runs for NaNs and rounding errors
# (`if (x != x) *bad = 1;`). nvcc does not.
_ALL_NUMBERS = "-fno-fast-math"

# Which of the pointers in a struct a kernel writes is told by a counter. Loops that end by a number are taken apart for
# that, and no others: their counters tell ranges.
_SHORT_LOOPS = (
    "-funroll-loops",
    *(word for one in ("runtime", "allow-partial", "allow-peeling") for word in ("-mllvm", f"-unroll-{one}=false")),
)
_WITH_PLACES = ("-gline-tables-only", "-gcolumn-info")

# clang leaves out memory that is allocated, used and freed; nvcc does not, and kernels share the device's heap.
_NO_HEAP_LEFT_OUT = ("-fno-builtin-malloc", "-fno-builtin-free")

# NVVM built-ins that the 22 headers use in device functions and libclang 18 does not know. Their value does not matter
# in a host-side parse; defining them leaves it without a single error, so that any error is the user's.
_FOR_OLD_LIBCLANG = (
    "-D__nvvm_activemask()=0u",
    "-D__nvvm_atom_cas_gen_us(p,c,v)=(*(p))",
    "-D__nvvm_atom_cta_cas_gen_us(p,c,v)=(*(p))",
    "-D__nvvm_atom_sys_cas_gen_us(p,c,v)=(*(p))",
    "-D__malloc__(...)=",  # as g++'s omp.h says who frees
)
_FIRST_WITH_THEM = 21

# Clang 22 crashes at any source for these. Its reading for one of the same kind differs in the value of macros alone.
_CRASHING = {"sm_88": ("sm_87", "880"), "sm_110": ("sm_103", "1100")}

_PLACED = re.compile(
    r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+):(?:(?P<ranges>(?:\{[^}]*\})+):)? "
    r"(?P<kind>fatal error|error|warning|note): (?P<message>.*)$"
)
_UNPLACED = re.compile(r"(?:[^\s:]+: )?(?:fatal )?error: (?P<message>.*)$")
_RANGE = re.compile(r"\{(\d+):(\d+)-(\d+):(\d+)\}")
_MISSING_HEADER = re.compile(r"'([^']+)' file not found")
_C_HEADERS = {
    "stdio.h",
    "stdlib.h",
    "string.h",
    "features.h",
    "stdint.h",
    "limits.h",
    "math.h",
    "assert.h",
    "time.h",
}


def host_arguments(toolchain: Toolchain, user_flags: Sequence[str] = ()) -> tuple[str, ...]:
    """Arguments for libclang's host-side parse, without the file's name."""
    user = translate(user_flags)
    old = toolchain.libclang_major < _FIRST_WITH_THEM <= toolchain.clang_major  # 0: not known, and they do no harm
    shims = _FOR_OLD_LIBCLANG if old else ()
    return (*_common(toolchain, user), *shims, "--cuda-host-only", "-nocudalib", "-w", "-ferror-limit=100")


def device_arguments(toolchain: Toolchain, user_flags: Sequence[str] = (), arch: str | None = None) -> tuple[str, ...]:
    """Arguments for clang that print the device side's LLVM IR, without the command and the file's name."""
    user = translate(user_flags)
    library = () if toolchain.libdevice else ("-nocudalib",)
    wanted = arch or architectures(toolchain, user_flags)[0]
    nearest, value = _CRASHING.get(wanted, (wanted, ""))
    names = ("__CUDA_ARCH__", "__CUDA_ARCH_LIST__") if value else ()
    as_if = tuple(flag for name in names for flag in (f"-U{name}", f"-D{name}={value}"))
    return (
        *_common(toolchain, user),
        *library,
        "--cuda-device-only",
        f"--cuda-gpu-arch={nearest}",
        *as_if,
        *_NO_HEAP_LEFT_OUT,
        _ALL_NUMBERS,
        *(("-D__FAST_MATH__=1",) if user.has("-ffast-math") else ()),
        "-w",
        "-O1",
        *_SHORT_LOOPS,
        "-S",
        "-emit-llvm",
        "-o",
        "-",
    )


def standard_of(passed: Sequence[str]) -> str:
    """The language standard that these flags of clang name, or the usual one."""
    named = [flag.removeprefix("-std=") for flag in passed if flag.startswith("-std=")]
    return named[-1] if named else _DEFAULT_STANDARD


def architectures(toolchain: Toolchain, user_flags: Sequence[str] = ()) -> tuple[str, ...]:
    """The architectures the user compiles for, highest first; the toolchain's where none is named."""
    return translate(user_flags).architectures or (toolchain.arch,)


def device_ir(
    toolchain: Toolchain,
    source_path: str | Path,
    user_flags: Sequence[str] = (),
    timeout: float = 300,
    arch: str | None = None,
) -> str:
    """The LLVM IR of a file's device side; raises `InputError` with clang's diagnostics if it does not compile."""
    return _ir(toolchain, device_arguments(toolchain, user_flags, arch), (), source_path, timeout)


def host_ir(
    toolchain: Toolchain,
    source_path: str | Path,
    user_flags: Sequence[str] = (),
    timeout: float = 300,
    text: bytes | None = None,
) -> str:
    """The LLVM IR of a file's host side, before any pass, or of a `text` in the file's place.

    Raises `InputError` if it does not compile.
    """
    common = _common(toolchain, translate(user_flags))
    arch = f"--cuda-gpu-arch={architectures(toolchain, user_flags)[0]}"  # names of kernels may hold it
    arguments = (
        *common,
        "--cuda-host-only",
        arch,
        "-nocudalib",
        "-w",
        "-O1",
        *_WITH_PLACES,
        "-S",
        "-emit-llvm",
        "-o",
        "-",
    )
    more = ("-Xclang", "-disable-llvm-passes")
    if text is None:
        return _ir(toolchain, arguments, more, source_path, timeout)
    place = Path(source_path).absolute()
    name = str(place).replace("\\", "\\\\").replace('"', '\\"')
    given = f'#line 1 "{name}"\n'.encode() + text
    return _ir(toolchain, arguments, (*more, "-iquote", str(place.parent)), "-", timeout, given)


def _ir(
    toolchain: Toolchain,
    arguments: Sequence[str],
    more: Sequence[str],
    source_path: str | Path,
    timeout: float,
    text: bytes | None = None,
) -> str:
    """What clang prints; `more` arguments have nothing to do with the headers, which are precompiled without them."""
    plain = ("-fno-color-diagnostics", "-fno-caret-diagnostics", "-fdiagnostics-print-source-range-info")
    command = (*toolchain.clang, *arguments)
    header = precompiled.find(Path(toolchain.clang[0]), command[1:], precompiled.by_clang(command[0]))
    command = (*command, *more)
    if header is not None:
        finished = run((*command, *precompiled.use(header), *plain, str(source_path)), timeout=timeout, input=text)
        if finished.returncode == 0:
            return finished.text
    finished = run((*command, *plain, str(source_path)), timeout=timeout, input=text)
    if finished.returncode == 0:
        if header is not None:
            precompiled.discard(header)
        return finished.text
    told = parse_diagnostics(finished.stderr)
    if told and finished.returncode > 0:
        again = _mended(command, plain, source_path, told, timeout)
        if again is not None:
            return again.text
        raise InputError(*told)
    raise ToolchainError(_failed(finished))


def _mended(
    command: Sequence[str], plain: Sequence[str], source: str | Path, told: Sequence[Diagnostic], timeout: float
) -> Finished | None:
    """What clang says of the file as nvcc reads it; None where the errors are about something else."""
    try:
        text = Path(source).read_bytes()
    except OSError:
        return None
    with TemporaryDirectory(prefix="kesco-") as folder:
        instead, overlay = Path(folder) / "instead.cu", Path(folder) / "overlay.json"
        root = {"type": "file", "name": str(Path(source).absolute()), "external-contents": str(instead)}
        overlay.write_text(json.dumps({"version": 0, "use-external-names": False, "roots": [root]}))
        runs: list[Finished] = []

        def again(other: bytes) -> tuple[Diagnostic, ...]:
            instead.write_bytes(other)
            runs.append(run((*command, *plain, "-ivfsoverlay", str(overlay), str(source)), timeout=timeout))
            return parse_diagnostics(runs[-1].stderr) if runs[-1].returncode else ()

        done = taken(text, told, str(source), again, same_length=False)
        return runs[-1] if done and runs and runs[-1].returncode == 0 else None


def check_compiles(
    toolchain: Toolchain,
    path: str | Path,
    user_flags: Sequence[str] = (),
    compiler: Literal["clang", "nvcc"] = "clang",
    output: str | Path | None = None,
    timeout: float = 600,
) -> Finished:
    """Compile both sides of a file to an object, without linking; the result says whether it worked and what was said.

    The object is thrown away unless `output` names a file.
    """
    if output is None:
        with TemporaryDirectory(prefix="kesco-") as folder:
            return check_compiles(toolchain, path, user_flags, compiler, Path(folder) / "object.o", timeout)
    arch = architectures(toolchain, user_flags)[0]
    if compiler == "nvcc":
        if toolchain.nvcc is None:
            raise ToolchainError(Diagnostic(NO_CUDA, Severity.ERROR, "no nvcc found", help=HOW_TO_GET))
        chosen = () if translate(user_flags).architectures else (f"-arch={arch}",)
        folders = tuple(part for folder in toolchain.cuda_include for part in ("-isystem", str(folder)))
        command = (str(toolchain.nvcc), *user_flags, *chosen, *folders)
    else:
        command = (*toolchain.clang, *_common(toolchain, translate(user_flags)), f"--cuda-gpu-arch={arch}")
    return run((*command, "-c", str(path), "-o", str(output)), timeout=timeout)


def _common(toolchain: Toolchain, user: UserFlags) -> tuple[str, ...]:
    """What host parse and device compile share; the user's folders come before kesco's."""
    folders = [hostcxx.OWN_HEADERS, *toolchain.cuda_include]
    own_library = user.has("-stdlib", "-nostdinc", "--gcc-", "--sysroot", "-isysroot")
    return (
        "-x",
        "cuda",
        # ziglang's clang would assume musl; libclang and clang must agree.
        *((f"--target={toolchain.target}",) if toolchain.is_zig and not user.has("--target", "-target") else ()),
        "-resource-dir",
        str(toolchain.resource_dir),
        f"--cuda-path={toolchain.cuda_path}",
        *(() if user.has("-std=") else (f"-std={_DEFAULT_STANDARD}",)),
        "-Wno-unknown-cuda-version",
        # nvcc and the host's compiler take these with a warning: `register` in C++17, `int a[] = {0.5 * n}`
        "-Wno-register",
        "-Wno-c++11-narrowing",
        "-Wno-reserved-user-defined-literal",  # "%"PRIu64
        *_driver_header(toolchain),
        *user.passed,
        *(part for folder in folders for part in ("-isystem", str(folder))),
        *(() if own_library else toolchain.cxx_flags),
    )


def _driver_header(toolchain: Toolchain) -> tuple[str, ...]:
    """What keeps the driver's cuda.h and one of the program's apart (``include/cuda.h`` of this package)."""
    folders = (toolchain.cuda_path / "include", *toolchain.cuda_include, Path("/usr/include"))
    found = next((folder / "cuda.h" for folder in folders if (folder / "cuda.h").is_file()), None)
    return ("-iquote", str(hostcxx.OWN_HEADERS), f'-DKESCO_CUDA_H="{found}"') if found else ()


def parse_diagnostics(stderr: str) -> tuple[Diagnostic, ...]:
    """Clang's errors as diagnostics, each with the notes that follow it; warnings are left out."""
    found: list[tuple[str, Span | None, list[Note]]] = []
    following: list[Note] = []
    for line in stderr.splitlines():
        if match := _PLACED.match(line):
            span, message = _span(match), match["message"]
            if match["kind"] == "note":
                following.append(Note(message, span))
            else:
                following = []
                if match["kind"] != "warning":
                    found.append((message, span, following))
        elif match := _UNPLACED.match(line):
            found.append((match["message"], None, []))
    return tuple(
        Diagnostic(NOT_VALID_CUDA, Severity.ERROR, message, span, tuple(notes), help_for(message))
        for message, span, notes in found
    )


def help_for(message: str) -> str:
    """What a user can do about one of clang's messages, where it is the machine that lacks something."""
    if message.startswith("unknown argument"):
        return "the flags after '--' are given to clang; nvcc's own are translated where kesco knows them"
    if message.startswith("invalid value '") and "-std=" in message:
        return "give a standard that clang knows, such as -std=c++17 or -std=c++20"
    if message.startswith("unsupported CUDA gpu architecture"):
        return "give one that clang knows, such as sm_90"
    if message.startswith("no such file or directory"):
        return "what follows '--' are flags for one file; run the command for each file"
    header = _MISSING_HEADER.search(message)
    if header and header[1] in _C_HEADERS:
        return "the C library's headers are missing on this machine: apt-get install libc6-dev"
    if header and re.fullmatch(r"c?[a-z_]+", header[1]):
        return f"C++ standard headers are missing on this machine: {hostcxx.HOW_TO_GET}"
    return "give its folder with -I after '--'" if header else ""


def _span(match: re.Match[str]) -> Span | None:
    """The place of a clang message, with the range clang underlined where it begins at the caret."""
    path, line, column = match["file"], int(match["line"]), int(match["column"])
    try:
        lines = Path(path).read_bytes().splitlines(keepends=True)
    except OSError:
        lines = []
    if line > len(lines):
        return None if path.startswith("<") else Span(path, 0, 0, line, column)
    start = sum(len(text) for text in lines[: line - 1]) + column - 1
    end = start + 1
    for first_line, first, last_line, last in (map(int, found) for found in _RANGE.findall(match["ranges"] or "")):
        if first_line == last_line == line and first <= column < last:
            end = start + last - column
    return Span(path, start, end, line, column)


def _failed(finished: Finished) -> Diagnostic:
    """A compiler that crashed, or failed without saying why."""
    last = [line for line in finished.stderr.strip().splitlines() if line.strip()][-5:]
    code = finished.returncode
    how = f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code} and no error message"
    return Diagnostic(
        COMPILER_FAILED,
        Severity.ERROR,
        f"'{finished.argv[0]}' {how}",
        notes=tuple(Note(line) for line in last),
        help=f"run it by hand to see more: {finished.command}",
    )

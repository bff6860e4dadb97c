"""Does the text mean the same to clang, which reads it here, and to nvcc, which may build it?

In: a file, its flags, the texts that the user wrote. Out: why the user's text is another one to nvcc with the host's
g++, or nothing. A module of its own since only preprocessors are asked, and what they leave is compared. What headers
of the system ask for is no matter: either way they are one implementation of what the user calls.

1. A text without a conditional about more than its own macros, and without names of compilers, is the same to all.
2. Clang's preprocessor and g++, with the macros that nvcc defines, go through the file for the host and for each
   architecture; directives are followed and no macro is expanded.
3. Of both outputs the user's lines are compared. Where a line of code is in one only, or differs, that is the answer.
4. A macro means something else where its definition differs, or mentions such a macro. So does one that compilers
   define with other values, named by the user or reached from a reserved name of a header. Where a line of code that
   both have names such a macro, that is the answer.

Where there is no g++, clang stands in for it as the oldest and as the newest that nvcc takes, and what it cannot stand
in for (its own features, the C++ library's macros) is an answer wherever it is named; so are features where libclang is
of another version than clang.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kesco.errors import ToolchainError
from kesco.toolchain.compile import device_arguments, host_arguments, standard_of
from kesco.toolchain.flags import translate
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import Finished, run

_COMMENT = re.compile(
    rb'R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'|(//[^\n]*|/\*.*?\*/)',
    re.DOTALL,
)
_CONTINUED = re.compile(rb"\\[ \t]*\r?\n")
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_MAY_INCLUDE_CURAND = re.compile(
    rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:[<"][^>"\n]*curand|[A-Za-z_])', re.MULTILINE
)
_SPLICE = b"\0"
_TOKEN = re.compile(rb'R?"(?:\\.|[^"\\\n])*"|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.\'])*|[^\s\w]')
_NAME = re.compile(rb"[A-Za-z_]\w*")
_MARKER = re.compile(rb'^[ \t]*# (\d+) "((?:\\.|[^"\\\n])*)"[ \d]*\n', re.MULTILINE)
_DEFINE = re.compile(rb"^#define[ \t]+([A-Za-z_]\w*)([^\n]*)$", re.MULTILINE)
_CONDITIONAL = re.compile(rb"^[ \t]*(?:#|%:)[ \t]*(?:el)?if(?:n?def)?\b([^\n]*)", re.MULTILINE)
_DEFINED = re.compile(rb"^[ \t]*(?:#|%:)[ \t]*define[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_LITERAL = re.compile(rb'R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
# What a compiler may define is written in capitals, or begins like this; what the languages define is said to all.
_COMPILERS = re.compile(rb"__[A-Z]\w*|_[A-Z]\w*|__(?:clang|llvm|has|cpp)_\w+|__(?:clang|llvm)__")
_OF_THE_LANGUAGE = frozenset(
    b"defined __cplusplus __CUDACC__ __CUDA_ARCH__ __FILE__ __LINE__ __VA_ARGS__ __VA_OPT__ __DATE__ __TIME__".split()
)
_FEATURES = re.compile(rb"__has_(?!include)\w+|__cpp_\w+|__clang_[a-z]\w*|__VERSION__")  # from version to version
_NOT_OF_GXX = re.compile(rb"__clang__|_LIBCPP\w*|_?_GLIBCXX\w*")
_ONLY_SAID = re.compile(rb"GCC|clang|nv_\w+|diag_\w+|hd_warning_disable|warning|message|once")
_TO_PREPROCESSORS = (
    *("-D", "-U", "-I", "-isystem", "-iquote", "-idirafter", "-m", "-fno-exceptions", "-fno-rtti", "-pthread"),
    "-nostdinc",
)
_WITH_VALUE = ("-D", "-U", "-I", "-include", "-imacros", "-isystem", "-iquote", "-idirafter")
_DEFINING = {
    "--extended-lambda": "__CUDACC_EXTENDED_LAMBDA__",
    "-extended-lambda": "__CUDACC_EXTENDED_LAMBDA__",
    "--expt-extended-lambda": "__CUDACC_EXTENDED_LAMBDA__",
    "-expt-extended-lambda": "__CUDACC_EXTENDED_LAMBDA__",
    "--expt-relaxed-constexpr": "__CUDACC_RELAXED_CONSTEXPR__",
    "-expt-relaxed-constexpr": "__CUDACC_RELAXED_CONSTEXPR__",
    "--device-debug": "__CUDACC_DEBUG__",
    "-G": "__CUDACC_DEBUG__",
}
_CCBIN = ("-ccbin", "--compiler-bindir")
_OLDEST, _NEWEST = "7.5.0", "16.0.0"
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a preprocessor left: the user's tokens by file and line, and the macros of compilers and of headers."""

    lines: dict[tuple[str, int], tuple[bytes, ...]]
    given: dict[bytes, bytes]
    headers: dict[bytes, bytes]


def without_curand(path: str, text: bytes, flags: Sequence[str]) -> tuple[str, ...]:
    """The flag for a program that includes nothing of cuRAND: clang's wrapper does, and nvcc does not."""
    passed = translate(flags).passed
    given = [*(b for a, b in pairwise(passed) if a in _WITH_VALUE), *(f[2:] for f in passed if f.startswith("-I"))]
    folders = [Path(path).parent, *map(Path, given)]
    work, seen = [text, *(_content(Path(name)) for name in given)], set[Path]()
    while work:
        text = work.pop()
        if _MAY_INCLUDE_CURAND.search(text):
            return ()
        names = {Path(os.fsdecode(name)) for name in _INCLUDE.findall(text)}
        found = {folder / name for name in names for folder in (*folders, *(p.parent for p in seen))} - seen
        work += [_content(one) for one in found if one.is_file()]
        seen |= {one for one in found if one.is_file()}
    return ("-DKESCO_NO_CURAND",)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # a folder, or gone
        return b""


def differs(
    toolchain: Toolchain,
    path: str,
    flags: Sequence[str],
    texts: Sequence[bytes],
    architectures: Sequence[str],
    standard: Callable[[str], bool],
) -> str:
    """Why the user's text may mean something else to nvcc; empty where it does not.

    `texts` are the file and the user's headers; `standard` tells which files are not the user's.
    """
    passed = translate(flags).passed
    joined = [_bare(_CONTINUED.sub(b"", text)) for text in texts]
    if not _asks(joined, passed):
        return ""
    no_gxx = not _host_compiler(toolchain, flags)
    untold = [_FEATURES] * (no_gxx or toolchain.libclang_major != toolchain.clang_major) + [_NOT_OF_GXX] * no_gxx
    for text in joined:
        if named := next((m for one in untold if (m := one.search(text))), None):
            return f"it asks for {named[0].decode()}"
    try:
        return next(_differences(toolchain, path, flags, architectures, standard), "")
    except ToolchainError as error:  # nobody but nvcc needs g++
        return str(error.diagnostics[0].message)


def _differences(
    toolchain: Toolchain,
    path: str,
    flags: Sequence[str],
    architectures: Sequence[str],
    standard: Callable[[str], bool],
) -> Iterator[str]:
    for ours, theirs in _readings(toolchain, path, flags, architectures):
        for other in theirs:
            if other.returncode:
                yield _first_error(other)
            elif why := _difference(_read(ours, standard), _read(other.stdout, standard), path):
                yield why


def _bare(text: bytes) -> bytes:
    return _COMMENT.sub(lambda m: re.sub(rb"[^\n\0]", b" ", m[0]) if m[2] else m[0], text)


def _asks(texts: Sequence[bytes], passed: Sequence[str]) -> bool:
    """Whether the texts ask for anything that they do not say themselves."""
    own = {name for text in texts for name in _DEFINED.findall(text)} | _OF_THE_LANGUAGE
    own |= {re.split(r"[=(]", flag[2:])[0].encode() for flag in passed if flag.startswith("-D")}
    for text in texts:
        if any(set(_NAME.findall(line)) - own for line in _CONDITIONAL.findall(text)):
            return True
        if any(_COMPILERS.fullmatch(name) for name in set(_NAME.findall(_LITERAL.sub(b" ", text))) - own):
            return True
    return any(flag in ("-include", "-imacros") for flag in passed)


# ---- the preprocessors ----------------------------------------------------------------------------------------------


def _readings(
    toolchain: Toolchain, path: str, flags: Sequence[str], architectures: Sequence[str]
) -> Iterator[tuple[bytes, list[Finished]]]:
    """What clang leaves of the host's side and of each device's, with its own macros, each with what others leave."""
    keep = ("-E", "-fdirectives-only", "-w")
    sides = [(host_arguments(toolchain, flags), "")]
    sides += [(device_arguments(toolchain, flags, arch), arch) for arch in architectures]
    with ThreadPoolExecutor(2) as pool:
        started = []
        for arguments, arch in sides:
            plain = [a for a in arguments if a not in ("-S", "-emit-llvm", "-o", "-")]
            ours = [(*plain, "-nocudainc", "-E", "-dM", os.devnull), (*plain, *keep, path)]
            others = [(*command, *keep, path) for command in _as_nvcc(toolchain, flags, arch)]
            commands = [*((*toolchain.clang, *one) for one in ours), *others]
            started.append([pool.submit(run, command, timeout=_SECONDS) for command in commands])
        for own, left, *theirs in started:
            defined = b'# 1 "<built-in>"\n' + own.result().stdout
            yield defined + left.result().stdout, [one.result() for one in theirs]


def _as_nvcc(toolchain: Toolchain, flags: Sequence[str], arch: str) -> list[tuple[str, ...]]:
    """The commands by which nvcc has a file preprocessed for the host, or for an architecture."""
    passed = translate(flags).passed
    major, minor, *_ = (*re.findall(r"\d+", toolchain.cuda_version or "13.0"), "0")
    defined = ["__CUDACC__", "__NVCC__", f"__CUDACC_VER_MAJOR__={major}", f"__CUDACC_VER_MINOR__={minor}"]
    defined += ["__CUDACC_VER_BUILD__=0", f"__CUDA_API_VER_MAJOR__={major}", f"__CUDA_API_VER_MINOR__={minor}"]
    defined += ["__NVCC_DIAG_PRAGMA_SUPPORT__=1", "__NV_NO_HOST_COMPILER_CHECK=1"]
    defined += ["__CUDACC_DEVICE_ATOMIC_BUILTINS__=1"] * ((int(major), int(minor)) >= (12, 8))
    defined += [macro for flag, macro in _DEFINING.items() if flag in flags]
    defined += ["__CUDACC_RDC__"] * ("-fgpu-rdc" in passed)
    defined += ["_OPENMP=201511"] * ("-fopenmp" in passed)  # with the flag g++ leaves out lines with its pragmas
    number = re.sub(r"\D", "", arch)
    defined += [f"__CUDA_ARCH__={number}0", f"__CUDA_ARCH_LIST__={number}0"] * bool(arch)
    folders = [p for f in (toolchain.cuda_path / "include", *toolchain.cuda_include) for p in ("-isystem", str(f))]
    values = {b for a, b in pairwise(passed) if a in _WITH_VALUE}
    given = [f for f in passed if f in values or f in _WITH_VALUE or f.startswith(_TO_PREPROCESSORS)]
    # optimized, as programs are built in the end: who asks for that gets another answer than clang's here
    shared = (f"-std={standard_of(passed)}", "-O2", *(f"-D{one}" for one in defined), *given, *folders)
    shared = (*shared, "-include", "cuda_runtime.h", "-x", "c++")
    if gxx := _host_compiler(toolchain, flags):
        return [(gxx, *shared, "-fno-canonical-system-headers")]
    own = "__clang__ __clang_major__ __clang_minor__ __clang_patchlevel__ __clang_version__ __llvm__".split()
    hidden = [f"-U{name}" for name in own]
    library = ("-resource-dir", str(toolchain.resource_dir), *toolchain.cxx_flags)
    return [(*toolchain.clang, *library, f"-fgnuc-version={v}", *hidden, *shared) for v in (_OLDEST, _NEWEST)]


def _host_compiler(toolchain: Toolchain, flags: Sequence[str]) -> str:
    """The one that nvcc starts, with these flags."""
    named = [f.partition("=")[2] for f in flags if f.startswith(_CCBIN) and "=" in f]
    named += [value for flag, value in pairwise(flags) if flag in _CCBIN]
    folder = bool(named) and Path(named[-1]).is_dir()
    return str(Path(named[-1]) / "g++") if folder else named[-1] if named else toolchain.gxx


def _first_error(finished: Finished) -> str:
    line = next((one for one in finished.stderr.splitlines() if "error" in one), "no reason given")
    return f"as nvcc starts it, {Path(finished.argv[0]).name} says: {line.strip()}"


# ---- what they left -------------------------------------------------------------------------------------------------


def _read(output: bytes, standard: Callable[[str], bool]) -> _Reading:
    lines: dict[tuple[str, int], list[bytes]] = defaultdict(list)
    given: dict[bytes, bytes] = {}
    headers: dict[bytes, bytes] = {}
    markers = list(_MARKER.finditer(output))
    for marker, following in zip(markers, [*markers[1:], None], strict=True):
        chunk = output[marker.end() : following.start() if following else len(output)]
        name = os.path.normpath(os.fsdecode(marker[2]))
        if name.startswith("<"):
            given |= {m[1]: m[2].rstrip() for m in _DEFINE.finditer(chunk)}
        elif standard(name):
            headers |= {m[1]: m[2].rstrip() for m in _DEFINE.finditer(chunk)}
        else:
            number = int(marker[1])
            for line in _bare(_CONTINUED.sub(_SPLICE, chunk)).split(b"\n"):
                lines[name, number] += _TOKEN.findall(line.replace(_SPLICE, b"").replace(b"%:", b"#"))
                number += 1 + line.count(_SPLICE)
    return _Reading({at: tuple(tokens) for at, tokens in lines.items() if tokens}, given, headers)


def _difference(ours: _Reading, theirs: _Reading, path: str) -> str:
    """Why the user's text is another one in the other reading."""
    changed = {at for at in ours.lines.keys() | theirs.lines.keys() if ours.lines.get(at) != theirs.lines.get(at)}
    both = [(at, tokens) for at, tokens in ours.lines.items() if at not in changed]
    values = {n for n in ours.given.keys() | theirs.given.keys() if ours.given.get(n) != theirs.given.get(n)}
    other = {t for at in changed for lines in (ours.lines, theirs.lines) for t in _defined(lines.get(at, ()))}
    if all(_harmless(lines.get(at, ())) for at in changed for lines in (ours.lines, theirs.lines)):
        named = {t for _, tokens in both for t in tokens if _NAME.match(t)}
        called = {t for _, tokens in both for t, following in pairwise((*tokens, b"(")) if following == b"("}
        reserved = {n for n in named if n.startswith(b"_")}
        other |= (named & values) | {n for n in reserved if _reaches(n, n in called, values, ours, theirs)}
        other = _closed(other, [tokens for _, tokens in both if _defined(tokens)])
        for (name, line), tokens in both:
            if not _harmless(tokens) and (found := next((t for t in tokens if t in other), None)):
                return f"{found.decode()}, {_place(name, line, path)}, is another for nvcc than for clang"
        return ""
    name, line = min(at for at in changed if not all(_harmless(s.lines.get(at, ())) for s in (ours, theirs)))
    return f"{_place(name, line, path)} is another for nvcc than for clang"


def _place(name: str, line: int, path: str) -> str:
    return f"line {line}" + ("" if os.path.normpath(path) == name else f" of {Path(name).name}")


def _defined(tokens: Sequence[bytes]) -> tuple[bytes, ...]:
    """The macro that a line defines or forgets."""
    return tuple(tokens[2:3]) if tokens[1:2] in ((b"define",), (b"undef",)) and tokens[0] == b"#" else ()


def _harmless(tokens: Sequence[bytes]) -> bool:
    """Whether a line does nothing by itself: a macro's definition, or a pragma that is about messages."""
    if not tokens or _defined(tokens):
        return True
    return tokens[:2] == (b"#", b"pragma") and len(tokens) > 2 and _ONLY_SAID.fullmatch(tokens[2]) is not None


def _closed(names: set[bytes], definitions: Iterable[Sequence[bytes]]) -> set[bytes]:
    """The names and the macros whose definitions lead to one of them."""
    bodies = [(tokens[2], set(tokens[3:])) for tokens in definitions if tokens[1] == b"define"]
    while more := {name for name, body in bodies if name not in names and body & names}:
        names = names | more
    return names


def _reaches(name: bytes, called: bool, values: set[bytes], *readings: _Reading) -> bool:
    """Whether a reserved name leads, through macros of headers, to a value that differs."""
    for one in readings:
        body = one.headers.get(name, b"")
        seen, work = {name}, [body if called or not body.startswith(b"(") else b""]
        while work:
            names = set(_NAME.findall(work.pop()))
            if names & values:
                return True
            work += [one.headers.get(inner, b"") for inner in names - seen]
            seen |= names
    return False

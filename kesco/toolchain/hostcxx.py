"""Which C++ standard library the host side is parsed with, and the flags that make clang and libclang agree on it.

1. libstdc++ of the newest gcc that has its C++ headers. Clang would take the newest gcc folder even if only the C
   compiler is installed there, so where the two differ the folder is named. Its omp.h is named, too: it is in a folder
   that clang rightly leaves out (``include/omp.h`` of this package).
2. Where there is gcc but no g++, the libc++ inside the ziglang wheel: its configuration comes from
   ``include/libcxx/__config`` of this package, since zig passes it on the command line.
3. Otherwise no flags: clang's own search, and its own message.

It runs no program.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kesco.toolchain.model import Choice
from kesco.toolchain.places import Places, natural

OWN_HEADERS = Path(__file__).parent / "include"
HOW_TO_GET = "apt-get install g++ (or pip install 'kesco[toolchain]', whose ziglang wheel brings libc++ headers)"


@dataclass(frozen=True, slots=True)
class HostCxx:
    """The host C++ library: its name in words, and flags for clang and libclang."""

    name: str
    flags: tuple[str, ...]


def find_host_cxx(places: Places) -> tuple[HostCxx, Choice]:
    """The C++ library to parse host code with; never fails, because the user's flags may name another."""
    installs = sorted(
        {path for folder in ("lib", "lib64") for path in places.root.glob(f"usr/{folder}/gcc/*/*") if _is_gcc(path)},
        key=lambda path: natural(path.name),
        reverse=True,
    )
    installs = [path for path in installs if path.parent.name.startswith(places.machine)]
    with_cxx = [path for path in installs if (places.root / f"usr/include/c++/{path.name}/vector").is_file()]
    if with_cxx:
        best = with_cxx[0]
        flags: tuple[str, ...] = () if best == installs[0] else (f"--gcc-install-dir={best}",)
        if (best / "include/omp.h").is_file():
            flags += (f'-DKESCO_OMP_H="{best}/include/omp.h"',)
        skipped = tuple(f"{path}: no C++ headers (libstdc++)" for path in installs if path not in with_cxx)
        return HostCxx(f"libstdc++ {best.name}", flags), Choice(
            "host C++ library", f"libstdc++ {best.name}", "system", "the newest gcc with C++ headers", skipped
        )
    zig = places.in_wheels("ziglang/lib")
    if zig and (zig / "libcxx/include/vector").is_file():
        folders = (OWN_HEADERS / "libcxx", zig / "libcxx/include", zig / "libcxxabi/include")
        flags = ("-nostdinc++", *(part for folder in folders for part in ("-isystem", str(folder))))
        name = f"libc++ of ziglang {places.version_of('ziglang') or ''}".strip()
        return HostCxx(name, flags), Choice(
            "host C++ library", name, "wheel ziglang", "no libstdc++ headers on the system"
        )
    return HostCxx("none", ()), Choice("host C++ library", "none", "", "no libstdc++ headers and no ziglang wheel")


def find_gxx(places: Places) -> str:
    """The compiler that nvcc starts for the host, or an empty text where there is none."""
    named = places.environ.get("NVCC_CCBIN", "") or "g++"
    path = places.which(str(Path(named) / "g++") if Path(named).is_dir() else named)
    return str(path or "")


def has_c_headers(places: Places) -> bool:
    """Whether the C library's headers are where Linux distributions put them."""
    return (places.root / "usr/include/stdio.h").is_file()


def _is_gcc(path: Path) -> bool:
    return path.name[:1].isdigit() and (path / "crtbegin.o").is_file()

"""What discovery found, as values: `Toolchain`, and a `Choice` for each part that says where it came from and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Choice:
    """One part of the toolchain: which one is used, who decided that, why, and what else there was."""

    what: str
    value: str
    origin: str
    why: str
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Everything needed to parse and compile CUDA, fully resolved: using it looks nothing up any more."""

    clang: tuple[str, ...]
    """Command prefix: ``("/usr/bin/clang-22",)`` or ``(".../ziglang/zig", "clang")``."""
    clang_version: str
    resource_dir: Path
    libclang: Path
    libclang_version: str | None
    cuda_path: Path
    """A folder with ``include/``, ``bin/`` and ``nvvm/libdevice``, as clang's ``--cuda-path`` wants it."""
    cuda_include: tuple[Path, ...]
    """Include folders beside the one clang takes from `cuda_path` by itself (CCCL, cu12's components, Debian's)."""
    cuda_version: str | None
    libdevice: Path | None
    nvcc: Path | None
    arch: str
    cxx_library: str
    """The host C++ library in words: ``libstdc++ 12``, ``libc++ of ziglang 0.17.0``, or ``none``."""
    cxx_flags: tuple[str, ...]
    """What makes clang and libclang alike use that library."""
    gxx: str = ""
    """The g++ that nvcc starts, if there is one."""
    target: str = "x86_64-unknown-linux-gnu"
    gpu: str | None = None
    choices: tuple[Choice, ...] = ()

    @property
    def is_zig(self) -> bool:
        """Whether clang is the one inside the ziglang wheel (it defaults to another target triple)."""
        return self.clang[-1] == "clang" and len(self.clang) > 1

    @property
    def clang_major(self) -> int:
        """Clang's major version, 0 if unknown."""
        return major(self.clang_version)

    @property
    def libclang_major(self) -> int:
        """Major version of libclang, 0 if unknown."""
        return major(self.libclang_version)

    def choice(self, what: str) -> Choice:
        """The choice made for one part, by its name."""
        return next(choice for choice in self.choices if choice.what == what)


def major(version: str | None) -> int:
    """The first number of a version, 0 if there is none."""
    head = (version or "").split(".", 1)[0]
    return int(head) if head.isdigit() else 0

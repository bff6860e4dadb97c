"""The library that the CUDA driver loads into a traced program, built for the CUPTI of this machine.

In: a `Toolchain`. Out: a shared library in the folder given. CUPTI comes with the CUDA toolkit or as the wheel
``nvidia-cuda-cupti``; the library finds it again by its path, so that nothing has to be set where the program runs.
"""

from __future__ import annotations

from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import ToolchainError
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import run
from kesco.toolchain.runtimes import SOURCES, broken, cxx_compiler

NO_CUPTI = "K550"
NAME = "libkesco_trace.so"
_HEADERS = ("include", "extras/CUPTI/include", "targets/x86_64-linux/include")
_LIBRARIES = ("extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib")


def cupti(toolchain: Toolchain) -> tuple[Path, Path]:
    """The folder of CUPTI's headers, and its library; raises `ToolchainError` (K550) without them."""
    root = toolchain.cuda_path
    headers = [*(root / one for one in _HEADERS), *toolchain.cuda_include]
    include = next((one for one in headers if (one / "cupti.h").is_file()), None)
    libraries = [file for one in _LIBRARIES for file in sorted((root / one).glob("libcupti.so*"))]
    if include is None or not libraries:
        what = f"no CUPTI below {root}"
        help_ = "install the CUDA toolkit with it, or the wheel nvidia-cuda-cupti of the same version"
        raise ToolchainError(Diagnostic(NO_CUPTI, Severity.ERROR, what, help=help_))
    return include, libraries[0]


def tracer_library(toolchain: Toolchain, folder: Path) -> Path:
    """The library, built in `folder`."""
    include, library = cupti(toolchain)
    target = folder / NAME
    folders = [part for one in (include, toolchain.cuda_path / "include") for part in ("-isystem", str(one))]
    made = run(
        (
            *cxx_compiler(toolchain), "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w", *folders,
            str(SOURCES / "tracer" / "tracer.cpp"), "-o", str(target), str(library), f"-Wl,-rpath,{library.parent}",
        ),
        timeout=300,
    )  # fmt: skip
    if made.returncode:
        raise ToolchainError(broken(f"{NAME} cannot be built", made))
    return target

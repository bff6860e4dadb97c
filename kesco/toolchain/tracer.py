"""The library that the CUDA driver loads into a traced program, built for the CUPTI of this machine.

In: a `Cuda`. Out: a shared library in the folder given. CUPTI comes with the CUDA toolkit or as the wheel
``nvidia-cuda-cupti``; the library finds it again by its path, so that nothing has to be set where the program runs.
It takes any C++ compiler and no clang: who traces only looks at a program that somebody else has built.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import ToolchainError
from kesco.toolchain.cuda import Cuda
from kesco.toolchain.native import compiler
from kesco.toolchain.process import run
from kesco.toolchain.runtimes import SOURCES, broken

NO_CUPTI = "K550"
NAME = "libkesco_trace.so"
_HEADERS = ("include", "extras/CUPTI/include", "targets/*-linux/include")
_LIBRARIES = ("extras/CUPTI/lib64", "lib64", "lib", "targets/*-linux/lib")


def cupti(cuda: Cuda) -> tuple[Path, Path]:
    """The folder of CUPTI's headers, and its library; raises `ToolchainError` (K550) without them."""
    root = cuda.root
    headers = [*(found for one in _HEADERS for found in sorted(root.glob(one))), *cuda.extra_include]
    include = next((one for one in headers if (one / "cupti.h").is_file()), None)
    libraries = [file for one in _LIBRARIES for file in sorted(root.glob(f"{one}/libcupti.so*"))]
    if include is None or not libraries:
        what = f"no CUPTI below {root}"
        help_ = "install the CUDA toolkit with it, or the wheel nvidia-cuda-cupti of the same version"
        raise ToolchainError(Diagnostic(NO_CUPTI, Severity.ERROR, what, help=help_))
    return include, libraries[0]


def tracer_library(cuda: Cuda, folder: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The library, built in `folder`; raises `ToolchainError` where CUPTI (K550) or a compiler (K612) is missing."""
    include, library = cupti(cuda)
    target = folder / NAME
    folders = [part for one in (include, cuda.headers) for part in ("-isystem", str(one))]
    made = run(
        (
            *compiler(environ), "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w", *folders,
            str(SOURCES / "tracer" / "tracer.cpp"), "-o", str(target), str(library), f"-Wl,-rpath,{library.parent}",
        ),
        timeout=300,
    )  # fmt: skip
    if made.returncode:
        raise ToolchainError(broken(f"{NAME} cannot be built", made))
    return target

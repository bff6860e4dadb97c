"""Find the compilers: `discover` returns a `Toolchain` in which every part is resolved, or says what is missing.

In: what the user asked for and the environment. Out: a frozen value with, for each part, where it came from and why.
A stage of its own because everything after it must agree on one clang, one set of headers and one CUDA.

1. CUDA's headers first, since they decide which clang will do;
2. the target architecture;
3. clang and its built-in headers; 4. libclang; 5. the host's C++ library.

For each: explicit option, then environment, then the system, then wheels. It refuses to guess: a part that was asked
for and cannot be used is an error, never silently replaced. In the usual cases no program is run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.toolchain.clangs import find_clang, find_libclang
from kesco.toolchain.cuda import find_cuda
from kesco.toolchain.hostcxx import find_gxx, find_host_cxx
from kesco.toolchain.model import Choice, Toolchain
from kesco.toolchain.places import Places

DEFAULT_ARCH = "sm_90"
BAD_ARCH = "K507"


def discover(
    *,
    clang: str | None = None,
    cuda_path: str | None = None,
    arch: str | None = None,
    libclang: str | None = None,
    environ: Mapping[str, str] = os.environ,
    places: Places | None = None,
) -> Toolchain:
    """The toolchain to use; raises `ToolchainError` (exit code 5) that says what is missing and how to get it."""
    places = places or Places.current(environ)
    architecture, arch_choice = choose_arch(places, arch)
    cuda, cuda_choice = find_cuda(places, cuda_path)
    found, clang_choice = find_clang(places, clang, cuda.version)
    library, library_version, libclang_choice = find_libclang(places, libclang, found)
    cxx, cxx_choice = find_host_cxx(places)
    return Toolchain(
        clang=found.command,
        clang_version=found.version,
        resource_dir=found.resource_dir,
        libclang=library,
        libclang_version=library_version,
        cuda_path=cuda.root,
        cuda_include=cuda.extra_include,
        cuda_version=cuda.version,
        libdevice=cuda.libdevice,
        nvcc=cuda.nvcc,
        arch=architecture,
        cxx_library=cxx.name,
        cxx_flags=cxx.flags,
        gxx=find_gxx(places),
        target=places.target,
        choices=(clang_choice, libclang_choice, cuda_choice, arch_choice, cxx_choice),
    )


def choose_arch(places: Places, explicit: str | None) -> tuple[str, Choice]:
    """The GPU architecture to analyse for; raises `UsageError` (K507) if it is not one."""
    asked = ((explicit, "--arch"), (places.environ.get("KESCO_ARCH"), "KESCO_ARCH"))
    text, origin = next(((text, origin) for text, origin in asked if text), (DEFAULT_ARCH, "default"))
    if not re.fullmatch(r"sm_\d{2,3}[af]?", text):
        raise UsageError(
            Diagnostic(
                BAD_ARCH,
                Severity.ERROR,
                f"{origin} names '{text}', which is not a GPU architecture",
                help="write it as sm_90",
            )
        )
    return text, Choice("architecture", text, origin, "kesco's default" if origin == "default" else "asked for")

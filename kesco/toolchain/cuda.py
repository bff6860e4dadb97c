"""Which CUDA headers, libdevice and nvcc: `find_cuda` looks in the documented order and says why it took what it took.

1. the explicit option, then ``KESCO_CUDA_PATH``: must be usable, otherwise an error, since somebody asked for it;
2. ``CUDA_HOME`` and ``CUDA_PATH``, which other tools set too: skipped with a reason if there are no headers;
3. the system: nvcc on PATH (links followed, wrapper scripts read), ``/usr/local/cuda*``, Debian's;
4. wheels: CUDA 13's single folder, or CUDA 12's folder per component; those of CUDA's libraries are searched, too.

It runs no program: a root is what its headers say it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.errors import ToolchainError
from kesco.toolchain.model import Choice
from kesco.toolchain.places import Places

NO_CUDA = "K503"
HOW_TO_GET = (
    "pip install 'kesco[toolchain]' brings the headers, libdevice and nvcc; "
    "or name an installed toolkit with --cuda-path or KESCO_CUDA_PATH"
)

GET_LIBRARIES = "pip install 'kesco[libraries]'"
LIBRARIES = {
    "cuBLAS": "cublas_v2.h",
    "cuFFT": "cufft.h",
    "cuRAND": "curand.h",
    "cuSPARSE": "cusparse.h",
    "cuSOLVER": "cusolverDn.h",
}
"""A header of each library that programs call most, by the library's name."""
_COMPONENTS = ("cuda_runtime", "cuda_cccl", "cublas", "cufft", "curand", "cusparse", "cusolver")

_VERSION = re.compile(rb"#define\s+CUDA(?:RT)?_VERSION\s+(\d+)")
_NVCC_IN_SCRIPT = re.compile(r"(/[^\s\"'$;]+/bin/nvcc)\b")
# The define stands in the first 20 kB of headers that are a megabyte long.
_ENOUGH = 65536


@dataclass(frozen=True, slots=True)
class Cuda:
    """A usable CUDA root."""

    root: Path
    headers: Path
    extra_include: tuple[Path, ...]
    version: str | None
    libdevice: Path | None
    nvcc: Path | None


def find_cuda(places: Places, explicit: str | None) -> tuple[Cuda, Choice]:
    """The CUDA root to use; raises `ToolchainError` (K503) if there is none or the one asked for is unusable."""
    skipped: list[str] = []
    chosen: tuple[Cuda, str, str] | None = None
    for path, origin, why in _candidates(places, explicit):
        cuda = _inspect(places, path)
        if chosen:
            if cuda and cuda.root.resolve() != chosen[0].root.resolve():
                skipped.append(f"{path} ({origin}): not needed, an earlier choice is usable")
        elif cuda:
            chosen = (cuda, origin, why)
        elif origin in ("--cuda-path", "KESCO_CUDA_PATH"):
            raise _missing(f"{origin} names '{path}', which has no CUDA headers (include/cuda_runtime.h)", [str(path)])
        else:
            skipped.append(f"{path} ({origin}): no include/cuda_runtime.h there")
    if chosen is None:
        raise _missing("no CUDA headers (cuda_runtime.h) found", skipped)
    found, origin, why = chosen
    return found, Choice("CUDA", str(found.root), origin, why, tuple(dict.fromkeys(skipped)))


def _candidates(places: Places, explicit: str | None) -> list[tuple[Path, str, str]]:
    """Where CUDA may be, best first: the path, its origin, and why it would be chosen."""
    found: list[tuple[Path, str, str]] = []
    if explicit:
        found.append((Path(explicit), "--cuda-path", "named on the command line"))
    for variable in ("KESCO_CUDA_PATH", "CUDA_HOME", "CUDA_PATH"):
        if value := places.environ.get(variable):
            found.append((Path(value), variable, "named in the environment"))
    if nvcc := places.which("nvcc"):
        found.append((root_of_nvcc(nvcc), "system", "the toolkit of nvcc on PATH"))
    usual = [places.root / "usr/local/cuda", *places.system("usr/local/cuda-*"), places.root / "usr/lib/cuda"]
    found += [(path, "system", "an installed toolkit wins over wheels") for path in usual if path.is_dir()]
    for folder in ("nvidia/cu13", "nvidia/cu12", "nvidia/cuda_nvcc"):
        if path := places.in_wheels(folder):
            package = "nvidia-cuda-runtime" if folder == "nvidia/cu13" else "nvidia-cuda-runtime-cu12"
            version = places.version_of(package)
            found.append(
                (
                    path,
                    f"wheel {package} {version}" if version else "wheel",
                    "no usable toolkit on the system",
                )
            )
    return found


def libraries(cuda: Cuda) -> dict[str, bool]:
    """Whether the headers of each library are there."""
    folders = (cuda.headers, *cuda.extra_include)
    return {name: any((folder / header).is_file() for folder in folders) for name, header in LIBRARIES.items()}


def root_of_nvcc(nvcc: Path) -> Path:
    """The toolkit an nvcc belongs to, through links and through the usual one-line wrapper script."""
    resolved = nvcc.resolve()
    with resolved.open("rb") as file:
        head = file.read(4096)
    if head.startswith(b"#!") and (match := _NVCC_IN_SCRIPT.search(head.decode("utf-8", errors="replace"))):
        resolved = Path(match[1]).resolve()
    return resolved.parent.parent


def _inspect(places: Places, root: Path) -> Cuda | None:
    """The CUDA root at a path, or None if it has no headers."""
    debian = places.root / "usr/lib/cuda"
    if root == places.root / "usr" and debian.is_dir():
        root = debian
    components = [root.parent / name / "include" for name in _COMPONENTS]
    extra: list[Path] = []
    if (root / "include/cuda_runtime.h").is_file():
        headers = root / "include"
    elif root.name == "cuda_nvcc" and (components[0] / "cuda_runtime.h").is_file():
        headers, extra = components[0], [path for path in components if path.is_dir()]
    elif root == debian and (places.root / "usr/include/cuda_runtime.h").is_file():
        # Debian splits its toolkit: headers in /usr/include, the rest below /usr/lib/cuda.
        headers = places.root / "usr/include"
    else:
        return None
    extra += [path for path in (headers / "cccl",) if path.is_dir()]
    libdevice = next(iter(sorted(root.glob("nvvm/libdevice/libdevice*.bc"))), None)
    nvcc = root / "bin/nvcc"
    return Cuda(
        root,
        headers,
        tuple(extra),
        _version(headers),
        libdevice,
        nvcc if nvcc.is_file() else places.which("nvcc"),
    )


def _version(headers: Path) -> str | None:
    for name in ("cuda.h", "cuda_runtime_api.h"):
        try:
            with (headers / name).open("rb") as file:
                match = _VERSION.search(file.read(_ENOUGH))
        except OSError:
            continue
        if match:
            number = int(match[1])
            return f"{number // 1000}.{number % 1000 // 10}"
    return None


def _missing(message: str, looked_at: list[str]) -> ToolchainError:
    places = looked_at or ["CUDA_HOME, CUDA_PATH, nvcc on PATH, /usr/local/cuda*, /usr/lib/cuda and the nvidia wheels"]
    notes = tuple(Note(f"looked at {place}") for place in places)
    return ToolchainError(Diagnostic(NO_CUDA, Severity.ERROR, message, notes=notes, help=HOW_TO_GET))

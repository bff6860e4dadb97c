"""Which headers are the system's: those of the C and C++ libraries, of the compiler and of CUDA.

In: the path by which a header was included. Out: whether its code is the library's and not the user's.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

_STANDARD = re.compile(
    r"/include/(?:[^/]+/)?c\+\+/v?\d|/libcxx/|^/usr/include/|/lib/clang/|/lib/libc/|/lib/gcc/"
    r"|/kesco/toolchain/include/"
)
_CUDA = re.compile(r"-packages/nvidia/|/hpc_sdk/")
_PERHAPS_CUDA = re.compile(r"/(?:cuda|targets)[^/]*/(?:.*/)?include/")


@functools.lru_cache(maxsize=100_000)
def is_standard_path(name: str) -> bool:
    """Whether a header belongs to the C or C++ library, to the compiler or to CUDA."""
    return _STANDARD.search(name) is not None or is_toolkit_path(name)


@functools.lru_cache(maxsize=100_000)
def is_toolkit_path(name: str) -> bool:
    """Whether a header is in a toolkit of CUDA's, or of a wheel of it, whichever way the compiler was told of that."""
    return _CUDA.search(name) is not None or (_PERHAPS_CUDA.search(name) is not None and _is_toolkits(name))


def _is_toolkits(name: str) -> bool:
    """Whether one of its folders is a toolkit's: a project, too, may have ``cuda/include/`` in its path."""
    ends = (match.end() for match in re.finditer(r"/include/", name))
    return any(_has_runtime(name[:end]) for end in ends)


@functools.lru_cache(maxsize=1000)
def _has_runtime(folder: str) -> bool:
    return Path(folder, "cuda_runtime_api.h").is_file()

"""The compiler that does the work: the nvcc or clang++ behind this one.

In: the environment. Out: a path, or none. What was asked for by a variable is taken or refused, never replaced; a
script of kesco's own on PATH is passed over, so that kesco-nvcc may be installed as ``nvcc``. So is the link of a
compiler cache: it would keep kesco's result under the name of the serial source.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping

CACHES = ("ccache", "sccache", "distcc", "icecc")
_VARIABLE = {"nvcc": "KESCO_NVCC", "clang++": "KESCO_CLANGXX"}


def find(name: str, environ: Mapping[str, str]) -> str | None:
    """The path of the compiler of this name."""
    if asked := environ.get(_VARIABLE[name]):
        return next((path for path in _on_path(asked, environ) if _runs(path)), None)
    return next((path for path in _candidates(name, environ) if _runs(path) and not _stands_before(path)), None)


def variable(name: str) -> str:
    """The environment variable that names this compiler."""
    return _VARIABLE[name]


def _candidates(name: str, environ: Mapping[str, str]) -> Iterator[str]:
    yield from _on_path(name, environ)
    if name == "nvcc":
        yield from (
            os.path.join(environ[v], "bin", name) for v in ("CUDA_HOME", "CUDA_PATH", "CUDACXX_HOME") if environ.get(v)
        )
        yield os.path.join("/usr/local/cuda/bin", name)
        yield from (os.path.join(folder, "nvidia", "cu13", "bin", name) for folder in sys.path if folder)
    else:
        yield from (path for number in range(30, 17, -1) for path in _on_path(f"{name}-{number}", environ))


def _on_path(name: str, environ: Mapping[str, str]) -> Iterator[str]:
    if os.sep in name:
        yield name
        return
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        if folder:
            yield os.path.join(folder, name)


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _stands_before(path: str) -> bool:
    if os.path.basename(os.path.realpath(path)) in CACHES:
        return True
    try:
        with open(path, "rb") as file:
            return b"kesco.wrapper" in file.read(2048)
    except OSError:
        return False

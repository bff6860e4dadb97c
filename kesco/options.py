"""What a user may ask of one compilation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one compilation.

    `streams` is the largest number of streams, 0 for as many as the graph is wide (at most 16). `flags` are the user's
    own compiler flags. `prefetch` puts prefetches of managed memory in. `clang`, `libclang`, `cuda_path` and `arch`
    override what would be found. `force` rewrites also where no gain is expected.
    """

    streams: int = 0
    strategy: str = "kesco"
    flags: tuple[str, ...] = ()
    clang: str | None = None
    libclang: str | None = None
    cuda_path: str | None = None
    arch: str | None = None
    force: bool = False
    prefetch: bool = True

"""What a user may ask of one compilation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one compilation.

    `streams` is the largest number of streams, 0 for as many as the graph is wide (at most 16). `flags` are the user's
    own compiler flags. `prefetch` puts prefetches of managed memory in, where streams are emitted. `clang`, `libclang`,
    `cuda_path` and `arch` override what would be found. `force` rewrites also where no gain is expected. `emit` is
    ``streams``, ``graph`` for work that is replayed as a CUDA graph where it runs again and again, or ``auto`` for
    both, of which the program keeps the faster one. `copies` is ``keep``, ``move`` for ``cudaMemcpy``
    on streams, or ``send`` for that with sources that are read in the background.
    `profile` is a file with the measured costs of the operations.
    `memory` is ``keep``, or ``reuse`` for allocations that are made late and freed early, where streams are emitted.
    """

    streams: int = 0
    strategy: str = "kesco"
    flags: tuple[str, ...] = ()
    clang: str | None = None
    libclang: str | None = None
    cuda_path: str | None = None
    arch: str | None = None
    force: bool = False
    prefetch: bool = False
    emit: str = "streams"
    copies: str = "keep"
    profile: str | None = None
    memory: str = "keep"

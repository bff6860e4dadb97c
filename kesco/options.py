"""What a user may ask of one compilation."""

from __future__ import annotations

from dataclasses import dataclass

BY_TASK = ("zones", "zones-fair")
"""The strategies that order tasks."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one compilation.

    `streams` is the largest number of streams, 0 for as many as the graph is wide (at most 16). `flags` are the user's
    own compiler flags. `prefetch` puts prefetches of managed memory in, where streams are emitted. `clang`, `libclang`,
    `cuda_path` and `arch` override what would be found. `force` rewrites also where no gain is expected. `emit` is
    ``streams``, ``graph`` for work that is replayed as a CUDA graph where it runs again and again, or ``auto`` for
    both, of which the program keeps the faster one. `copies` is ``keep``, ``move`` for ``cudaMemcpy`` on
    streams, with sources that are read in the background where that can be, or ``auto`` for that where functions are
    rewritten anyway and it may pay.
    `profile` is a file with the measured costs of the operations.
    `page` tells that the report's page is wanted, which shows what operations cost also where no stage asks for that.
    `memory` is ``keep``, or ``reuse`` for allocations that are made late and freed early, where streams are emitted.
    `order` is ``need`` for statements issued in the order in which the device needs them, or ``keep``.
    `syncs` is ``move`` for waits of the host that go where nothing sees the difference, or ``keep``.
    `strategy` is empty for the one that fits: by tasks where there are any, by costs with a profile. Where there are
    tasks, at most `zone_limit` operations of one priority are in flight, and a task is held for at most `zone_age`
    times as long as it runs (None: 4 with a profile, else 0). With a profile the highest one is to take at most
    `promise` percent longer than serially alone (None: 10). `fikit` puts a runtime's hooks around each launch.
    `launches` is ``batch`` for launches of loops that are given to the device many at a time, or ``keep``.
    `turns` lets turns of loops run beside each other, with memory of their own.
    `headers` is what the names of edited copies of headers begin with; where it is empty, headers stay as they are.
    """

    streams: int = 0
    strategy: str = ""
    flags: tuple[str, ...] = ()
    clang: str | None = None
    libclang: str | None = None
    cuda_path: str | None = None
    arch: str | None = None
    force: bool = False
    prefetch: bool = False
    emit: str = "streams"
    copies: str = "auto"
    profile: str | None = None
    page: bool = False
    memory: str = "keep"
    order: str = "need"
    syncs: str = "move"
    zone_limit: int = 6
    zone_age: int | None = None
    promise: int | None = None
    fikit: bool = False
    turns: bool = True
    launches: str = "batch"
    headers: str = ""

    def strategy_for(self, tasks: bool) -> str:
        """The strategy for a function in which there are tasks, or none; those for tasks do nothing without."""
        if self.strategy and (tasks or self.strategy not in BY_TASK):
            return self.strategy
        if tasks:
            return "zones-fair"
        return "critical_path" if self.profile is not None else "kesco"

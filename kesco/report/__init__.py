"""Reports: what was found in a program and what was done with it, as text, pictures and JSON.

In: the outcome of a compilation, seen through the protocols below. Out: text; only the command line prints it. The
protocols are here because imports go down only: `kesco.pipeline` knows the stages, and none of them knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kesco.diagnostics import Diagnostic
    from kesco.ir.dfg import Dfg
    from kesco.ir.flow import Region, Site
    from kesco.ir.schedule import Schedule
    from kesco.ir.syncplan import SyncPlan


class Function(Protocol):
    """What was found in one function and done with it: `kesco.pipeline.FunctionResult` for a reader."""

    @property
    def region(self) -> Region: ...

    @property
    def dfg(self) -> Dfg: ...

    @property
    def schedule(self) -> Schedule: ...

    @property
    def plan(self) -> SyncPlan: ...

    @property
    def width(self) -> int: ...

    @property
    def left_because(self) -> str: ...

    @property
    def rewritten(self) -> bool: ...


class Outcome(Protocol):
    """The outcome for one file: `kesco.pipeline.Compilation` for a reader."""

    @property
    def path(self) -> str: ...

    @property
    def functions(self) -> Sequence[Function]: ...

    @property
    def diagnostics(self) -> Sequence[Diagnostic]: ...


def streams_of(function: Function) -> dict[int, int]:
    """Site → the stream it was given; nothing for a function that was left as it is."""
    return function.schedule.as_dict() if function.rewritten else {}


def touched(site: Site) -> dict[str, list[str]]:
    """The names of the buffers of a site by mode (``r``, ``w``, ``rw``), each buffer once."""
    modes: dict[tuple[str, str], int] = {}
    for access in site.accesses:
        key = access.buffer.key, access.buffer.name
        modes[key] = modes.get(key, 0) | access.mode.value
    found: dict[str, list[str]] = {}
    for mode, text in ((1, "r"), (3, "rw"), (2, "w")):
        names = [name for (_, name), value in modes.items() if value == mode]
        if names:
            found[text] = list(dict.fromkeys(names))
    return found


def iteration_text(site: Site) -> str:
    """Which iteration of the unrolled loops around it a site is, such as ``i = 2, j = 0``; often empty."""
    return ", ".join(f"{one.counter} = {one.value}" for one in site.iterations)


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 wait``, ``2 waits``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"

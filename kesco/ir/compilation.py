"""What comes of one file, and of each of its functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kesco.diagnostics import Diagnostic

if TYPE_CHECKING:  # the pipeline imports this before the compilers run, and the rest while they do
    from kesco.ir.batches import Batch
    from kesco.ir.costs import Expected
    from kesco.ir.deferred import Deferred
    from kesco.ir.dfg import Dfg
    from kesco.ir.flow import Region
    from kesco.ir.issue import Reordered
    from kesco.ir.lifetimes import Moved
    from kesco.ir.pieces import Copy
    from kesco.ir.schedule import Schedule
    from kesco.ir.syncplan import SyncPlan
    from kesco.ir.timeline import Timeline
    from kesco.ir.transfers import Fetches, Prefetch, Sends, Zeroes
    from kesco.ir.turns import Turns
    from kesco.ir.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """One function: what was found, and what was done; `left_because` is empty for a rewritten one.

    `expected` is what the model expects of streams, where there is a profile and the model can say something.
    `region` has a site for each prefetch of `prefetches`, too; `serial` is the function as its author wrote it.
    `joins_saved` is how many joins it has fewer than its parts by themselves, if its region has members.
    `sends` are its copies that are read in the background, `fetches` those to the host that are waited for later.
    `moved` are the allocations that were moved in it: then `region` is that of the text in which they are.
    `reordered` are the statements that are issued in another order, likewise.
    `watched` are the operations in macros that leave it where a call has failed, which in `region` are waits.
    `zeroes` are stores of the host that in `region` are memsets. `follows` tells that its operations are on the stream
    of whoever calls it, which is all that changes in its text. `verdict` is what became of its concurrency; None for
    one that launches nothing. `turns` are its loops whose turns run beside each other.
    """

    region: Region
    dfg: Dfg
    schedule: Schedule
    plan: SyncPlan
    width: int
    left_because: str = ""
    prefetches: tuple[Prefetch, ...] = ()
    before: Region | None = None
    expected: Expected | None = None
    joins_saved: int = 0
    moved: tuple[Moved, ...] = ()
    reordered: tuple[Reordered, ...] = ()
    sends: Sends | None = None
    watched: tuple[int, ...] = ()
    fetches: Fetches | None = None
    zeroes: Zeroes | None = None
    follows: bool = False
    verdict: Verdict | None = None
    turns: tuple[Turns, ...] = ()

    @property
    def rewritten(self) -> bool:
        """Whether the function's text was changed."""
        return not self.left_because

    @property
    def serial(self) -> Region:
        """The region of the user's own text."""
        return self.before or self.region


@dataclass(frozen=True, slots=True)
class Compilation:
    """The outcome for one file: `text` is the input's bytes where nothing was changed.

    `kept` are the stretches of the input that are in the text: begin and end in the input, begin in the text, in bytes.
    `headers` are the copies of headers that the text includes in the place of the user's own.
    `batches` are the loops whose launches are given to the device many at a time, `deferred` those in which the host
    uses results later.
    `timelines` are for each function its runs in the model, the serial one first, where the report's page is wanted.
    """

    path: str
    source: bytes
    text: bytes
    functions: tuple[FunctionResult, ...]
    diagnostics: tuple[Diagnostic, ...]
    kept: tuple[tuple[int, int, int], ...] = ()
    timelines: tuple[tuple[Timeline, ...], ...] = ()
    headers: tuple[Copy, ...] = ()
    batches: tuple[Batch, ...] = ()
    deferred: tuple[Deferred, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the output differs from the input."""
        return self.text != self.source

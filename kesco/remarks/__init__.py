"""What a user is told about a compilation that went well: what was left serial and why, and what cost concurrency.

In: the program and the results of its functions. Out: diagnostics. The pipeline says what is done, this says what of it
matters to the author.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.ir.access import RELEASED, Access, AccessMode, BufferKind
from kesco.ir.costs import Expected
from kesco.ir.dfg import Dfg
from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.ir.lifetimes import Moved
from kesco.ir.program import Call, Launch, Loop, Program, Stmt, walk
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import SyncPlan
from kesco.ir.transfers import Pages, Prefetch, Zeroes
from kesco.ir.verdicts import Verdict, Word
from kesco.remarks.gain import gain, is_refused
from kesco.remarks.managed import said_of_zeroes
from kesco.remarks.memory import known, peak, weights_of
from kesco.source import Span

_UNKNOWN_HELP = "allocate what it uses in this file, or mark pointers __restrict__"
_UNSEEN = "its body is not visible"
_UNSEEN_HELP = (
    "define '{0}' where this file sees it, or state what it does: '#pragma kesco kernel({0}) reads(...) writes(...)'"
)
_OTHER_WAYS = (
    ("through a surface", "write through a pointer instead of a surface object: where that leads is not followed"),
    ("reads a texture", "read through a pointer instead of a texture object: where that leads is not followed"),
    (RELEASED, "wait for the device in front of the call that may look at it; where none does, take off the volatile"),
    ("pointers loaded from", "pass each array as an argument of its own instead of pointers stored in memory"),
)
_WORK = (Role.MOVABLE, Role.LEGACY)
_MOST_NOTES = 3
_MOST_MOVED = 12
_MOVED_HELP = "without '--memory reuse' memory is there from its cudaMalloc to its cudaFree"
_WHICH = {
    Pages.DEVICE: "which {} reads",
    Pages.HOST: "which the host reads behind {}",
    Pages.BOTH: "which {} and the host only read",
}
_SOME = {Pages.HOST: "back to the host", Pages.BOTH: "of memory that is read only"}
_PREFETCH_HELP = "without '--prefetch' the pages move on demand"


class Result(Protocol):
    """What is asked of a function's result."""

    @property
    def region(self) -> Region:
        """The function."""

    @property
    def dfg(self) -> Dfg:
        """Its data-flow graph, whose region is the one without needless waits of the host."""

    @property
    def left_because(self) -> str:
        """Why it was left serial, or an empty text."""

    @property
    def prefetches(self) -> tuple[Prefetch, ...]:
        """What was put into it."""

    @property
    def zeroes(self) -> Zeroes | None:
        """The host's stores in it that are memsets."""

    @property
    def verdict(self) -> Verdict | None:
        """What became of its concurrency, if it launches."""

    @property
    def schedule(self) -> Schedule:
        """Its streams."""

    @property
    def plan(self) -> SyncPlan:
        """Its waits."""

    @property
    def moved(self) -> tuple[Moved, ...]:
        """The allocations that were moved in it."""

    @property
    def follows(self) -> bool:
        """Whether its operations are on the stream of whoever calls it."""

    @property
    def rewritten(self) -> bool:
        """Whether its text was changed."""

    @property
    def expected(self) -> Expected | None:
        """What the model expects of streams, where it was asked."""


def _top(program: Program) -> Span:
    return Span(program.path, 0, 1, 1, 1)


def diagnose(program: Program, functions: Sequence[Result]) -> tuple[Diagnostic, ...]:
    """What a user should know: what was left serial and why, and where something unknown cost concurrency."""
    if not program.launches and not any(s.role in _WORK for f in functions for s in f.region.sites):
        return (
            Diagnostic("K201", Severity.REMARK, "no kernel is launched in this file: copied unchanged", _top(program)),
        )
    found: list[Diagnostic] = []
    for result in functions:
        found += _about(program, result)
    found += _pragmas_unused(program)
    if not found and not any(f.rewritten for f in functions):
        found.append(
            Diagnostic("K204", Severity.REMARK, "no function has two operations that could overlap", _top(program))
        )
    return tuple(dict.fromkeys(found))


def _has_work(program: Program, region: Region) -> bool:
    """Whether a function has two operations whose stream could be chosen, or one in a loop."""

    def count(body: Stmt) -> int:
        calls = (n for n in walk(body) if isinstance(n, Call) and n.operation >= 0)
        copies = sum(program.operations[n.operation].stream_text is not None for n in calls)
        return copies + sum(isinstance(n, Launch) for n in walk(body))

    bodies = [f.body for f in program.functions if f.here and f.span == region.span]
    loops = (n for body in bodies for n in walk(body) if isinstance(n, Loop))
    return any(count(body) > 1 for body in bodies) or any(count(loop) for loop in loops)


def _about(program: Program, result: Result) -> list[Diagnostic]:
    """The diagnostics of one function."""
    found: list[Diagnostic] = []
    region = result.region
    moved = sum(s.role is Role.MOVABLE for s in region.sites)
    if region.serial_because:
        if result.follows or not _has_work(program, region):
            return []
        message = f"'{region.function}' stays serial: {result.left_because}"
        return [Diagnostic("K202", Severity.REMARK, message, region.span)]
    given = result.verdict
    found += gain(region, result.expected, result.left_because)
    stays = bool(result.left_because) and not result.follows
    unclear = given is not None and given.word in (Word.LOST, Word.UNKNOWN)
    if stays and (moved > 1 or unclear) and not is_refused(result.left_because):
        message = f"'{region.function}' stays serial: {result.left_because}"
        chain = (Note(given.text),) if given is not None and "→" in given.why else ()
        advice = given.help if given is not None else ""
        found.append(Diagnostic("K204", Severity.REMARK, message, region.span, chain, advice))
    found += _prefetched(result)
    found += said_of_zeroes(region, result.zeroes if result.rewritten else None)
    found += _moved(result)
    told: set[int] = set()
    for site in region.sites:
        if site.operation in told:
            continue
        told.add(site.operation)
        if site.role is Role.LEGACY and site.note and site.kind.value == "kernel":
            message = f"'{site.label}' stays on the default stream: {site.note}"
            found.append(Diagnostic("K205", Severity.WARNING, message, site.span))
        unknown = [a for a in site.accesses if a.buffer.kind is BufferKind.UNKNOWN]
        if site.role is Role.MOVABLE and unknown and (moved > 1 or unclear):
            verb = "writes" if any(AccessMode.WRITE & a.mode for a in unknown) else "reads"
            message = f"'{site.label}' {verb} memory that is not known, so it is ordered against everything"
            if all(a.why == RELEASED for a in unknown):
                message = f"'{site.label}' writes what others may watch, so it is ordered against everything"
            notes = tuple(Note(a.why) for a in unknown[:2])
            found.append(Diagnostic("K203", Severity.WARNING, message, site.span, notes, _known_instead(site, unknown)))
    if given is None or given.word is not Word.CONCURRENT:
        return found + list(given.lost if given is not None else ())
    return found + [one for one in given.lost if one.code == "K208"]  # the rest is for who asks: it has concurrency


def _known_instead(site: Site, unknown: Sequence[Access]) -> str:
    """What to do so that an operation's memory is known."""
    whys = {a.why for a in unknown}
    if _UNSEEN in whys:
        return _UNSEEN_HELP.format(site.label.partition("#")[0])
    return next((way for words, way in _OTHER_WAYS if any(words in why for why in whys)), _UNKNOWN_HELP)


def _prefetched(result: Result) -> list[Diagnostic]:
    """What was put in for managed memory."""
    added = result.prefetches if result.rewritten else ()
    if not added:
        return []
    many = f"{len(added)} prefetches" if len(added) > 1 else "one prefetch"
    ways = Counter(one.pages for one in added)
    some = "".join(f", {ways[pages]} {which}" for pages, which in _SOME.items() if ways[pages])
    message = f"'{result.region.function}': {many} of managed memory put in{some}"
    notes = [Note(f"'{one.pointer}', {_WHICH[one.pages].format(one.kernel)}", one.statement) for one in added]
    notes = notes[:_MOST_NOTES]
    return [Diagnostic("K209", Severity.REMARK, message, result.region.span, tuple(notes), _PREFETCH_HELP)]


def _moved(result: Result) -> list[Diagnostic]:
    """The allocations whose life was cut to their uses, and what that does to the peak."""
    if not result.moved:
        return []
    weights = weights_of(result.moved, result.region)
    count = len(weights)
    sized = known(result.moved)
    most = peak(result.moved, result.region, result.schedule, result.plan)
    everything = sum(weights.values())
    how_much = (f"{most} of {everything} bytes" if sized else f"{most} of them") + " at a time in a model"
    many = f"{count} allocations are" if count > 1 else "one allocation is"
    message = f"'{result.region.function}': {many} made late and freed early, {how_much}, and never more than before"
    needed = {
        a.buffer.name.partition("[")[0]: s.span
        for s in result.region.sites
        if s.kind is SiteKind.ALLOC
        for a in s.accesses
    }
    shown = result.moved[:_MOST_MOVED]
    notes = [Note(f"'{m.pointer}', {m.size} bytes, is first needed here", needed.get(m.pointer)) for m in shown]
    return [Diagnostic("K212", Severity.REMARK, message, result.region.span, tuple(notes), _MOVED_HELP)]


def _pragmas_unused(program: Program) -> list[Diagnostic]:
    """Pragmas that name a kernel which is not launched here, most likely misspelt."""
    launched = {n.kernel.name for f in program.functions for n in walk(f.body) if isinstance(n, Launch)}
    return [
        Diagnostic("K207", Severity.WARNING, f"no kernel '{s.kernel}' is launched in this file", s.span)
        for s in program.stated
        if s.kernel not in launched
    ]

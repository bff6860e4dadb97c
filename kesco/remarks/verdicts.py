"""What became of each function's concurrency, and of each loop's: ``verdict(result, …)``.

In: a function as it was planned, and the pairs of its region's operations (`independence`). Out: a `Verdict`, or None
for a function that launches nothing. Apart from the pairs because these do not know what was done, and from the lost
ones in words (`lost`) because most functions have none.

1. A function with operations on several streams is *concurrent*. 2. Else it is *lost* where two operations are
independent, or would be with a second buffer; 3. *not known* where it cannot be followed, or a pair cannot be told;
4. *a chain* where each pair of operations is tied firmly. 5. A loop is judged by the pairs inside it, of one turn and
of two turns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from kesco.ir.dfg import Dfg
from kesco.ir.flow import Region, SiteKind
from kesco.ir.program import Launch, walk
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import SyncPlan
from kesco.ir.turns import Turns
from kesco.ir.verdicts import Verdict, Word
from kesco.remarks.facts import LoopText
from kesco.remarks.independence import MOST, Independence, Pair
from kesco.remarks.ties import Grade
from kesco.source import Span

NOTHING = "no two of its operations are independent"
IMMOVABLE = "it launches nothing that could be moved"
KEPT_APART = "what is independent in it is kept apart"
ONLY_MEMSETS = "only memsets could overlap with anything, which does not pay for the streams"
HELD = "but in each the host waits for"
# What to do where a pair cannot be told, by words that occur in why.
UNSURE = (
    ("writes all of", "if it does, give each use of the buffer one of its own"),
    ("which part of", "pass a pointer to the part instead of an index"),
    (HELD, "let the host look at what is copied to it, and print, behind the loop"),
    ("the host uses", "if it does not, copy asynchronously with page-locked memory (cudaMallocHost)"),
)
_LINKS = 6  # operations of a chain that are named


class Planned(Protocol):
    """What is asked of a function's result."""

    @property
    def dfg(self) -> Dfg:
        """Its data-flow graph, whose region is the one without needless waits of the host."""

    @property
    def schedule(self) -> Schedule:
        """Its streams."""

    @property
    def plan(self) -> SyncPlan:
        """Its waits."""

    @property
    def width(self) -> int:
        """How many of its operations can run at once."""

    @property
    def left_because(self) -> str:
        """Why it was left serial, or an empty text."""

    @property
    def turns(self) -> tuple[Turns, ...]:
        """Its loops whose turns run beside each other."""


def verdict(result: Planned, found: Independence) -> Verdict | None:
    """The verdict of a function, without what is lost in it in words."""
    region = found.region
    if not _launches(region, found):
        return None
    if region.serial_because:
        return Verdict(Word.UNKNOWN, region.span, region.serial_because)
    if found.too_large:
        why = f"more than {MOST} operations are not compared with each other"
        return (
            Verdict(Word.CONCURRENT, region.span, "")
            if is_concurrent(result)
            else Verdict(Word.UNKNOWN, region.span, why)
        )
    if HELD in result.left_because:
        return Verdict(Word.LOST, region.span, result.left_because)
    running = is_concurrent(result)
    word, why = _judged(found.pairs, found, running)
    if running:
        word, why = Word.CONCURRENT, ""
    beside = () if result.left_because else tuple(one.span for one in result.turns)
    return Verdict(word, region.span, why, loops=tuple(_loops(found, running, beside)))


def is_concurrent(result: Planned) -> bool:
    """Whether two operations of a function were put where they may overlap."""
    graphs = bool(result.plan.replays) and result.width > 1
    return not result.left_because and (result.schedule.streams > 1 or graphs or bool(result.turns))


def reason(left_because: str, given: Verdict) -> str:
    """Why a function stays serial of which nothing could be put on a second stream; empty where that is not why."""
    if left_because not in (NOTHING, ONLY_MEMSETS, IMMOVABLE):
        return ""
    if given.word is Word.CHAIN:
        return left_because
    if given.word is Word.LOST:
        return KEPT_APART if given.lost else f"{given.why}, but kesco does not tell apart what they touch"
    return f"it is not known whether two of its operations are independent: {given.why}"


def advice(given: Verdict) -> str:
    """What to do so that it becomes known; empty where that is told elsewhere, or nobody knows."""
    unsure = (given.word is Word.UNKNOWN and given.reason) or HELD in given.why
    return next((text for words, text in UNSURE if unsure and words in given.why), "")


def _launches(region: Region, found: Independence) -> bool:
    """Whether a function launches, or calls functions that do more than once."""
    own = (f.body for f in found.facts.program.functions if f.here and f.span == region.span)
    if any(isinstance(n, Launch) for body in own for n in walk(body)):
        return True
    sites = [region.sites[n] for n in found.operations if region.sites[n].kind is not SiteKind.COPY]
    if any(s.kind in (SiteKind.KERNEL, SiteKind.LIBRARY) for s in sites):
        return True
    return bool(sites) and (len(found.operations) > 1 or bool(found.circles))


def _loops(found: Independence, running: bool, beside: Collection[Span]) -> Iterable[Verdict]:
    """The verdicts of the loops, by their places; turns of those `beside` run beside each other."""
    of_loop: dict[LoopText, list[Pair]] = {}
    for circle in found.circles:
        if circle.text is not None:
            body = circle.body
            mine = [p for p in found.pairs if p.circle is None and {p.first.number, p.second.number} <= body]
            mine += [p for p in found.pairs if p.circle is circle]
            of_loop.setdefault(circle.text, []).extend(mine)
    texts = {text.number: text for text in found.facts.loops}
    unrolled = {i.loop for n in found.operations for i in found.region.sites[n].iterations}
    for number in sorted(unrolled & texts.keys()):
        mine = [p for p in found.pairs if _both_in(p, number)]
        of_loop.setdefault(texts[number], []).extend(mine)
    for text, pairs in sorted((one for one in of_loop.items() if one[1]), key=lambda one: one[0].span):
        word, why = _judged(pairs, found, running, of_loop=True)
        yield Verdict(Word.CONCURRENT, text.span) if text.span in beside else Verdict(word, text.span, why)


def _both_in(pair: Pair, loop: int) -> bool:
    return all(any(i.loop == loop for i in s.iterations) for s in (pair.first, pair.second))


def _judged(pairs: Sequence[Pair], found: Independence, running: bool, of_loop: bool = False) -> tuple[Word, str]:
    """The verdict of some pairs, and why."""
    free = [p for p in pairs if p.grade is None]
    if running and any(not p.apart for p in free):
        return Word.CONCURRENT, ""
    second = [p for p in pairs if p.grade is Grade.RENAME]
    if free or second:
        one = min(free or second, key=lambda p: (p.circle is not None, abs(p.second.number - p.first.number)))
        return Word.LOST, _together(one) + ("" if free else f", with {one.ties[0].why}")
    for one in pairs:
        if one.grade is Grade.UNKNOWN:
            return Word.UNKNOWN, one.ties[0].why
    return Word.CHAIN, (_chain_of_turns if of_loop else _chain)(pairs, found)


def _together(one: Pair) -> str:
    if one.circle is None:
        return f"'{one.first.label}' and '{one.second.label}' could overlap"
    return f"'{one.first.label}' and '{one.second.label}' of the next turn could overlap"


def _chain(pairs: Sequence[Pair], found: Independence) -> str:
    """The chain: each operation with what it needs of the one before."""
    tied = {(p.first.number, p.second.number): p for p in pairs if p.circle is None}
    if not tied:
        sites = [found.region.sites[n] for n in found.operations]
        return f"'{sites[0].label}' alone" if len(sites) == 1 else "no two of its operations run one behind the other"
    text, at, count = "", -1, 0
    for after in sorted({n for pair in tied for n in pair}):
        label = found.region.sites[after].label
        link = tied.get((at, after))
        if link is not None:
            text += f" → {label} ({', '.join(t.buffer for t in link.ties)})"
        elif not text or found.region.sites[after].kind is not SiteKind.COPY:
            text += f", {label}" if text else label
        else:
            continue  # copies are not compared with each other
        at, count = after, count + 1
        if count == _LINKS:
            return text + " → …"
    return text


def _chain_of_turns(pairs: Sequence[Pair], found: Independence) -> str:
    """The chain of a loop: what a turn needs of the turn before."""
    turns = [p for p in pairs if p.circle is not None]
    if not turns:
        return _chain(pairs, found)
    one = next((p for p in turns if p.first == p.second), turns[0])
    buffers = ", ".join(f"'{t.buffer}'" for t in one.ties)
    return f"'{one.second.label}' needs {buffers} of '{one.first.label}' in the turn before"

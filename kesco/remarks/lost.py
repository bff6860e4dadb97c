"""What a function keeps apart though it is independent, in words, with what is in the way and what helps.

In: the pairs of a region's operations. Out: warnings. K208: something stands between two operations. K223: one of them
cannot run beside anything, or they are of two turns of a loop, or share a buffer that could be two. Apart from the
pairs because what helps depends on who stands there.

1. Pairs that have the same thing in the way first are one warning, about the nearest of them. 2. What helps is a step
for each thing in the way: a buffer, a copy, what stands between. Nothing is said where no step is known that was seen
to help. `moves` are pairs of operations of which was tried that ``--copies move`` makes them overlap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.ir.access import BufferKind
from kesco.ir.flow import Region, Role, Site, SiteKind, is_barrier
from kesco.ir.verdicts import Verdict, Word
from kesco.remarks.calls import advice
from kesco.remarks.independence import Independence, Pair
from kesco.remarks.ties import Grade
from kesco.source import Span

_MOST = 3
MOVE = "'--copies move' puts it on a stream"
TURNS = "with a constant number of turns, each has a stream of its own"
_COPY = "it blocks the host: move it in front of both or behind both, or {}"
BETWEEN = {
    SiteKind.FREE: "it waits for the whole device: free memory behind both",
    SiteKind.MEMSET: "move it in front of both or behind both",
    SiteKind.SYNC: "what it waits for or measures is kept as it was; if nothing depends on that, remove it",
    SiteKind.CALL: "all work is joined before it: move it in front of both or behind both",
    SiteKind.LIBRARY: "it stays on the default stream, which all wait for: move it in front of both or behind both",
}


def in_words(
    found: Independence, given: Verdict, regions: Sequence[Region], moves: Collection[tuple[int, int]]
) -> list[Diagnostic]:
    """The warnings of a function, the first few."""
    groups: dict[tuple[object, ...], list[Pair]] = {}
    running = {loop.span for loop in given.loops if loop.word is Word.CONCURRENT}
    for pair in found.pairs:
        if pair.barriers and pair.barriers[0].kind is SiteKind.KERNEL:
            continue  # that one is told: K205
        text = pair.circle.text if pair.circle is not None else None
        if text is not None and text.span in running:
            continue  # there is always a further turn
        second = pair.grade is Grade.RENAME and given.word is not Word.CONCURRENT
        if (pair.grade is None and pair.apart) or second:
            groups.setdefault(_key(pair), []).append(pair)
    ordered = sorted(groups.values(), key=lambda pairs: _place(pairs[0]).start)
    shown = [_warning(found, regions, pairs, moves) for pairs in ordered[:_MOST]]
    if len(ordered) > _MOST:
        rest = ordered[_MOST:]
        note = Note(f"so do {len(rest)} more in this function, from here on", _place(rest[0][0]))
        shown[-1] = replace(shown[-1], notes=(*shown[-1].notes, note))
    return shown


def _key(pair: Pair) -> tuple[object, ...]:
    """What is in the way of a pair first."""
    if pair.grade is Grade.RENAME:
        return ("buffer", *(t.buffer for t in pair.ties))
    for site in (pair.first, pair.second):
        if _holds(site):
            return ("at", site.operation)
    if pair.barriers:
        return ("at", pair.barriers[0].operation)
    return ("turns", pair.circle.head if pair.circle is not None else -1)


def _holds(site: Site) -> bool:
    """Whether an operation runs beside nothing since it is what it is."""
    return is_barrier(site) and site.kind in (SiteKind.COPY, SiteKind.LIBRARY)


def _place(pair: Pair) -> Span:
    for site in (pair.first, pair.second):
        if _holds(site):
            return site.span
    return pair.barriers[0].span if pair.barriers else pair.second.span


def _between(pair: Pair) -> list[Site]:
    ends = (pair.first.number, pair.second.number)
    return [s for s in pair.barriers if s.number not in ends]


def _rank(pair: Pair) -> tuple[bool, bool, int]:
    """Which pair is told of several with one thing in the way: one that need not be explained, the nearest."""
    holds = any(_holds(s) or s.held is not None for s in (pair.first, pair.second))
    return pair.circle is not None, holds, len(pair.barriers)


def _warning(
    found: Independence, regions: Sequence[Region], pairs: Sequence[Pair], moves: Collection[tuple[int, int]]
) -> Diagnostic:
    one = min(pairs, key=_rank)
    more = f" (and {len(pairs) - 1} more such pairs)" if len(pairs) > 1 else ""
    message, code = _message(found, one, more), "K223"
    standing = _between(one)
    place = _place(one)
    notes = [Note(f"'{s.label}' is here", s.span) for s in (one.first, one.second) if s.span != place]
    ends = one.first, one.second
    if one.circle is None and one.grade is None and not any(_holds(s) or s.held is not None for s in ends):
        first, code = one.barriers[0], "K208"
        message = (
            f"'{first.label}' keeps '{one.first.label}' and '{one.second.label}' apart{more}: neither touches what "
        )
        message += "the other writes"
        if first.number in (one.first.number, one.second.number):
            message = f"'{one.first.label}' and '{one.second.label}' cannot overlap{more}, though neither touches what "
            message += "the other writes"
        standing = [s for s in standing if s is not first]
    if one.circle is not None and one.circle.text is not None:
        notes.append(Note("in this loop", one.circle.text.span))
    notes += [Note(f"'{s.label}' stands between them, too", s.span) for s in standing[:1]]
    help_text = "; ".join(filter(None, _steps(found, regions, one, moves)))
    return Diagnostic(code, Severity.WARNING, message, place, tuple(dict.fromkeys(notes)), help_text)


def _message(found: Independence, one: Pair, more: str) -> str:
    """What is independent, and why it is lost, where it is not only that something stands between."""
    first, second = f"'{one.first.label}'", f"'{one.second.label}'"
    if one.circle is not None:
        second += " of the next turn"
    if one.grade is Grade.RENAME:
        return f"{second} could run beside {first} with {one.ties[0].why}{more}"
    holding = next((s for s in (one.first, one.second) if _holds(s)), None)
    if holding is not None:
        beside = second if holding is one.first else first
        mine = first if holding is one.first else second
        waits = holding.kind is SiteKind.COPY and _asynchronous(found, holding)
        why = "holds the host until it is done" if waits else "stays on the default stream"
        return f"{mine} could run beside {beside}{more}, but {why}"
    if one.barriers:
        return f"{second} could run beside {first}{more}, but '{one.barriers[0].label}' keeps them apart"
    return f"{second} could run beside {first}{more}, but it is one launch, which has one stream"


# ---- what helps ------------------------------------------------------------------------------------------------------


def _steps(
    found: Independence, regions: Sequence[Region], one: Pair, moves: Collection[tuple[int, int]]
) -> Iterator[str]:
    """What to do, a step for each thing in the way."""
    if (one.first.operation, one.second.operation) in moves:
        yield MOVE
        return
    if one.grade is Grade.RENAME:
        name = one.ties[0].buffer
        yield (
            f"write two turns in one, the second with another buffer than '{name}'"
            if one.circle is not None
            else f"give '{one.second.label}', and what reads that, another buffer than '{name}'"
        )
    standing = _between(one)
    for site, other in ((one.first, one.second), (one.second, one.first)):
        if _holds(site) and site.kind is SiteKind.COPY:
            way = _asynchronous(found, site)
            past = bool(way and standing) and one.circle is None and _may_pass(found, one, site)
            yield way + f", {'behind' if site is one.first else 'in front of'} '{other.label}'" * past
            standing = [] if past else standing
    if one.first is one.second and not one.barriers:
        yield TURNS
    calls = [s for s in (one.first, one.second, *standing) if is_barrier(s) and s.operation in found.facts.calls]
    if calls:
        yield advice(found.facts.program, regions, one, calls[0])
    elif standing:
        blocking = standing[0].kind is SiteKind.COPY
        text = _COPY.format(_asynchronous(found, standing[0])) if blocking else BETWEEN.get(standing[0].kind, "")
        text = text.removesuffix(", or ")
        told = one.circle is None and not any(map(_holds, (one.first, one.second)))  # the message is about it
        yield text if told else f"'{standing[0].label}': {text}" * bool(text)


def _asynchronous(found: Independence, copy: Site) -> str:
    """How a copy does not hold the host; empty where it is asynchronous already and stays for another reason."""
    name = found.facts.called.get(copy.operation, copy.label.partition("#")[0])
    hosts = [a.buffer for a in copy.accesses if not a.buffer.on_device]
    pinned = all(b.kind is BufferKind.PINNED for b in hosts)
    call = "" if name.endswith("Async") else f"call {name}Async"
    return call if pinned else f"{call or 'copy'} with page-locked memory (cudaMallocHost)"


def _may_pass(found: Independence, one: Pair, copy: Site) -> bool:
    """Whether a copy may change places with the other operation: nothing between the two needs it, or is needed."""
    other = one.second if copy is one.first else one.first
    low, high = sorted((copy.number, other.number))
    return not any(
        found.ties.between(*((copy.number, n) if copy is one.first else (n, copy.number)))
        for n in found.work
        if low < n < high and found.region.sites[n].role in (Role.MOVABLE, Role.LEGACY)
    )

"""Order of issue: ``reorderings(program, function, result)`` puts what is needed early ahead of what is not.

In: a program, and a function of it as it was planned. Out: the statements of it that are better issued in another
order. A stage of its own because the stages in front of it keep the order of the text, and because what comes of it is
a text again, which is planned and proven as if its author had written it.

Copies to the device share one engine, which takes them in the order of issue. So a small copy behind large ones, or one
that begins a long chain behind one that ends it, keeps kernels waiting. Behind a copy that keeps the host nothing is
issued before it is done, so what does not need it goes first. What a graph is ready to do, the GPU begins in the order
in which it was captured.

1. A *run* is statements of one block, one behind the other (`statements`, `lines`): copies that keep the host, with
launches, memsets, calm statements and waits of the host that go away between them; copies to the device that do not
keep it; or launches and memsets that become one graph. 2. Two of them depend on each other if they touch the same
memory and one writes it. Beside copies that keep the host all others keep their order, no copy goes ahead of one of
those, and none of them ahead of a copy that may write what it reads (`reads`). Different are only allocations that were
made at different places; what a guard, ``restrict`` or a stated effect makes different is not, nor are parts of one
allocation: where the guard fails, and under `KESCO_STREAMS=1`, one stream has to be the serial program. 3. Beside
copies that keep the host each launch goes behind what it needs, in the order of the text, and nothing else. Else what
may go next is taken by its rank: small copies, then those with the longest chain of kernels behind them, then the order
of the text. Of launches in a graph those that wait for nothing come first, that of the longest chain before the others:
its own kernel and those behind it, each with what it costs (measured, or estimated) and what a graph takes from one to
the next. 4. A run is only changed where that pays: a large copy goes behind one that begins a longer chain, or behind a
small one that some kernel needs which does not need the large one; a launch goes ahead of a copy that keeps the host,
or behind one that begins a longer chain.

What it refuses to do: move a copy past one of the other kind, since the host would have waited for less then; and
change a function that stays as it is, or whose copies do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import networkx as nx

from kesco.ir import program as ir
from kesco.ir.access import Access, AccessMode, BufferKind, may_alias
from kesco.ir.compilation import FunctionResult
from kesco.ir.dfg import Dfg
from kesco.ir.flow import Held, Site
from kesco.ir.issue import Reordered
from kesco.issue.lines import blocks
from kesco.issue.pairs import statuses
from kesco.issue.reads import Reads
from kesco.issue.runs import Block, Chains, Statement, forward, runs
from kesco.model.forecast import Prices

_ANYTHING = (BufferKind.ENTRY, BufferKind.UNKNOWN)  # told apart by guards, promises, or not at all


def reorderings(
    program: ir.Program, function: ir.Function, result: FunctionResult, prices: Callable[[], Prices]
) -> list[Reordered]:
    """The runs of a function, or of one whose calls are a part of it, whose order is better changed.

    `prices` is asked where launches become graphs.
    """
    if result.region.serial_because or function.template or program.tasks:
        return []
    found: list[Reordered] = []
    chains = Chains(result, prices)
    reads = Reads(program)
    known = statuses(function.body)
    for block in blocks(function.body, program.text, known):
        for run in runs(Block(program, function, result, chains, reads, known, block)):
            run = _begun(run, forward(result.dfg))
            order = _order(run)
            if order != list(range(len(run))) and _pays(run, order, result.dfg):
                found.append(_reordered(function, run, order))
    return found


# ---- order ----------------------------------------------------------------------------------------------------------


def _begun(run: Sequence[Statement], forward: nx.DiGraph[int]) -> list[Statement]:
    """The run, with those marked that begin chains: they wait for nothing, neither here nor before."""
    own = ({s.number for s in one.sites} for one in run)
    waits = (any(not mine.issuperset(forward.predecessors(n)) for n in mine) for mine in own)
    return [replace(one, begins=not some) for one, some in zip(run, waits, strict=True)]


def _order(run: Sequence[Statement]) -> list[int]:
    """The launches beside copies that keep the host, each behind what it needs; then list scheduling.

    Of the statements that nothing left has to come before, that takes the one with the lowest rank.
    """
    copy = next((n for n, one in enumerate(run) if one.kind.waits), 0)  # in front of it nothing is gained
    last = max((n for n, one in enumerate(run) if one.stays), default=len(run))  # nobody waits again for what follows
    before = [{m for m in range(n) if m < copy or m <= last < n or _depend(run[n], run[m])} for n in range(len(run))]
    order: list[int] = []
    for n in (n for n, one in enumerate(run) if one.kind.launches and one.kind.mixes):
        needed, work = {n}, [n]
        while work:
            more = before[work.pop()] - needed
            needed |= more
            work += more
        order += sorted(needed - {*order})
    left = [n for n in range(len(run)) if n not in order]
    while left:
        ready = (n for n in left if before[n].isdisjoint(left))
        order.append(min(ready, key=lambda n: (run[n].rank, n)))
        left.remove(order[-1])
    return order


def _depend(one: Statement, other: Statement) -> bool:
    """Whether a statement must stay behind another one: they may touch the same memory, and one of the two writes it.

    Beside copies that keep the host, more must stay.
    """
    if one.kind.mixes and other.kind.mixes:
        if other.stays and not other.to_host:
            return True  # what waits for all that was issued keeps more apart than it did
        if not (other.kind.waits or (other.passed and one.kind.launches)) or (other.to_host and one.reads):
            return True
        if (one.asks and other.bare) or one.declares & other.names or other.declares & one.names:
            return True
    # the host's side of a copy on a stream is no other work's
    whole = one.kind.waits == other.kind.waits or one.stays or other.stays
    return any(
        _may_meet(a, b)
        for s in one.serial
        for t in other.serial
        for a in (s.accesses if whole else _of_the_device(s))
        for b in (t.accesses if whole else _of_the_device(t))
    )


def _of_the_device(site: Site) -> Iterator[Access]:
    sides = {Held.SOURCE: AccessMode.READ, Held.ALL: AccessMode.WRITE}
    return (a for a in site.accesses if site.held is None or a.mode != sides.get(site.held))


def _may_meet(a: Access, b: Access) -> bool:
    if AccessMode.WRITE not in a.mode | b.mode:
        return False
    return a.buffer.kind in _ANYTHING or b.buffer.kind in _ANYTHING or may_alias(a.buffer, b.buffer)


def _pays(run: Sequence[Statement], order: Sequence[int], dfg: Dfg) -> bool:
    """Whether something goes behind what it kept waiting: a large copy, or one that keeps the host."""
    graph = forward(dfg)
    for place, n in enumerate(order):
        if run[n].kind.mixes and not run[n].kind.waits:
            if run[n].kind.launches and any(m < n and run[m].kind.waits for m in order[place + 1 :]):
                return True
            continue
        passed = [run[m] for m in order[place + 1 :] if m < n and (run[m].kind.launches or not run[m].small)]
        if any(one.chain < run[n].chain and one.begins and run[n].begins for one in passed):
            return True
        if run[n].small and not run[n].kind.launches and any(_holds_up(one, run[n], graph) for one in passed):
            return True
    return False


def _holds_up(large: Statement, small: Statement, forward: nx.DiGraph[int]) -> bool:
    """Whether something needs the small copy, and not all of the large ones ahead of it."""
    users = {n for s in small.sites for n in forward.successors(s.number)}
    needs = (nx.descendants(forward, s.number) for s in large.sites)
    return any(not users <= found for found in needs)


def _reordered(function: ir.Function, run: Sequence[Statement], order: Sequence[int]) -> Reordered:
    """The change, with as few statements as possible said to have moved."""
    stay = _longest_ascending(order)
    why = ["" if n in stay else _why(run, order, n) for n in range(len(run))]
    return Reordered(function.span, tuple(one.piece for one in run), tuple(order), tuple(why))


def _why(run: Sequence[Statement], order: Sequence[int], n: int) -> str:
    """What a statement that moved went behind or ahead of."""
    overtook = [run[m] for m in order[: order.index(n)] if m > n]
    if run[n].kind.mixes and not run[n].kind.waits:
        return "ahead of copies that the host waits for"
    if any(one.kind.mixes and not one.kind.waits for one in overtook):
        return "behind work that need not wait for it"
    if run[n].kind.launches:
        return "behind launches that begin a longer chain" if overtook else "ahead of launches that may wait"
    if any(not one.small for one in overtook):
        return "behind copies that are needed earlier"
    if overtook:
        return "behind small copies, which keep nobody waiting"
    return "ahead of large copies" if run[n].small else "ahead of copies that are needed later"


def _longest_ascending(order: Sequence[int]) -> set[int]:
    """The numbers of a longest ascending part of a sequence."""
    best: list[list[int]] = [[]]
    for n in order:
        longest: list[int] = []
        for one in best:
            if len(one) > len(longest) and one[-1] < n:
                longest = one
        best.append([*longest, n])
    return set(next(one for one in best if len(one) == max(map(len, best))))

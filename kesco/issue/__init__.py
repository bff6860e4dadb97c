"""Order of issue: ``reorderings(program, function, result)`` puts what is needed early ahead of what is not.

In: a program, and a function of it as it was planned. Out: the statements of it that are better issued in another
order. A stage of its own because the stages in front of it keep the order of the text, and because what comes of it is
a text again, which is planned and proven as if its author had written it.

Copies to the device share one engine, which takes them in the order of issue. So a small copy behind large ones, or one
that begins a long chain behind one that ends it, keeps kernels waiting. What a graph is ready to do, the GPU begins in
the order in which it was captured.

1. A *run* is statements of one block, one behind the other, that do nothing but issue copies to the device
(`statements`, `lines`), all of which keep the host, or none; or launches and memsets that become one graph. 2. Two of
them depend on each other if they touch the same memory and one writes it. Different are only allocations that were made
at different places; what a guard, ``restrict`` or a stated effect makes different is not, nor are parts of one
allocation: where the guard fails, and under `KESCO_STREAMS=1`, one stream has to be the serial program. 3. What may go
next is taken by its rank: small copies, then those with the longest chain of kernels behind them, then the order of the
text. Of launches those that wait for nothing come first, that of the longest chain before the others: its own kernel
and those behind it, each with what it costs (measured, or estimated) and what a graph takes from one to the next. 4. A
run is only changed where that pays: a large copy goes behind one that begins a longer chain, or behind a small one that
some kernel needs which does not need the large one; a launch goes behind one that begins a longer chain.

What it refuses to do: move what the host waits for past what it does not, since it would have waited for less then; and
change a function that stays as it is, or whose copies do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import networkx as nx

from kesco.ir import program as ir
from kesco.ir.access import RELEASED, Access, AccessMode, BufferKind, may_alias
from kesco.ir.compilation import FunctionResult
from kesco.ir.dfg import Dfg
from kesco.ir.flow import SMALL, Held, Role, Site, SiteKind
from kesco.ir.issue import Reordered
from kesco.issue.lines import Piece, beside, blocks, piece_of
from kesco.issue.statements import issued
from kesco.model.forecast import Prices

_ANYTHING = (BufferKind.ENTRY, BufferKind.UNKNOWN)  # told apart by guards, promises, or not at all
_NODE = 2.0  # microseconds from the end of one kernel of a graph to the next one on an H200


@dataclass(frozen=True, slots=True)
class _Kind:
    """What the statements of a run have in common: they launch, or copy; the host waits for the copies, or does not.

    `replay` is the number of the graph that the launches become a part of.
    """

    launches: bool
    waits: bool
    replay: int = -1


@dataclass(frozen=True, slots=True)
class _Statement:
    """One statement of a run: its lines, its sites in the serial program and as planned, and what it keeps waiting.

    `kind` is the same in all of a run. `small`: all that it copies is. `chain` is the longest one that it begins: for
    copies the number of kernels behind it, for launches the time in what a graph takes from one to the next.
    `begins`: it waits for nothing.
    """

    piece: Piece
    serial: tuple[Site, ...]
    sites: tuple[Site, ...]
    kind: _Kind
    small: bool
    chain: float
    begins: bool = True

    @property
    def rank(self) -> tuple[int, float]:
        """What goes first has the lowest."""
        if self.kind.launches:
            return (0, -self.chain) if self.begins else (1, 0)
        return (0, 0) if self.small else (1, -self.chain)


def reorderings(
    program: ir.Program, function: ir.Function, result: FunctionResult, prices: Callable[[], Prices]
) -> list[Reordered]:
    """The runs of a function, or of one whose calls are a part of it, whose order is better changed.

    `prices` is asked where launches become graphs.
    """
    if not result.rewritten or function.template or program.tasks:
        return []
    found: list[Reordered] = []
    chains = _Chains(result, prices)
    for block in blocks(function.body, program.text):
        for run in _runs(program, function, result, chains, block):
            run = _begun(run, _forward(result.dfg))
            order = _order(run)
            if order != list(range(len(run))) and _pays(run, order, result.dfg):
                found.append(_reordered(function, run, order))
    return found


# ---- runs -----------------------------------------------------------------------------------------------------------


def _runs(
    program: ir.Program,
    function: ir.Function,
    result: FunctionResult,
    chains: _Chains,
    block: Sequence[ir.Stmt],
) -> Iterator[list[_Statement]]:
    """The runs of a block that have more than one statement."""
    run: list[_Statement] = []
    for at in range(len(block)):
        one = _statement(program, function, result, chains, block, at)
        goes_on = one and run and one.kind == run[-1].kind and beside(program.text, run[-1].piece, one.piece)
        if not goes_on:
            if len(run) > 1:
                yield run
            run = []
        if one is not None:
            run.append(one)
    if len(run) > 1:
        yield run


def _statement(
    program: ir.Program,
    function: ir.Function,
    result: FunctionResult,
    chains: _Chains,
    block: Sequence[ir.Stmt],
    at: int,
) -> _Statement | None:
    """The statement at a position of a block, if it may stand elsewhere in a run."""
    inside = (n.operation for n in ir.walk(block[at]) if isinstance(n, (ir.Call, ir.Launch)))
    own = {n: [s for s in result.serial.sites if s.operation == n] for n in inside if n >= 0}
    known = frozenset(n for n, sites in own.items() if sites and len({_kind(s) for s in sites} - {None}) == 1)
    operations = issued(program, function, block[at], known)
    piece = piece_of(program, block, at) if operations else None
    if piece is None or any(program.operations[n].stuck for n in operations):
        return None
    planned = result.dfg.region.sites
    serial = [s for s in result.serial.sites if _is_in(s, piece)]
    sites = [s for s in planned if s.operation in operations and s.role is Role.MOVABLE]
    if any(s.operation not in operations for s in serial) or {s.operation for s in serial} != {
        s.operation for s in sites
    }:
        return None
    if any(s.role is Role.DEVICE_SYNC for s in planned if s.operation in operations):
        return None  # the host waits there
    kinds = {_kind(s) for s in serial}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is not None and kind.launches:
        kind = replace(kind, replay=_replay_of(result, sites))
    if kind is None or (kind.launches and kind.replay < 0):
        return None
    small = all(s.bytes is not None and s.bytes <= SMALL for s in serial)
    chain = max((chains.launches if kind.launches else chains.copies)[s.number] for s in sites)
    return _Statement(piece, tuple(serial), tuple(sites), kind, small, chain)


def _replay_of(result: FunctionResult, sites: Sequence[Site]) -> int:
    """The graph that sites become a part of; negative for none."""
    own = {s.number for s in sites}
    return next((number for number, one in enumerate(result.plan.replays) if own <= {*one.sites}), -1)


def _is_in(site: Site, piece: Piece) -> bool:
    """Whether a site is in the text of a piece; a place where nothing happens is no site."""
    return piece[0] <= site.span.start < piece[1] and site.mark is None


def _kind(site: Site) -> _Kind | None:
    """Which runs a site of the serial program may be a part of."""
    if site.stream is not None or site.stuck or site.note == RELEASED or not site.accesses:
        return None
    if site.kind in (SiteKind.KERNEL, SiteKind.MEMSET):
        return _Kind(launches=True, waits=False) if site.role is Role.MOVABLE and site.held is None else None
    return _Kind(launches=False, waits=site.held is not None) if _to_device(site) else None


def _to_device(site: Site) -> bool:
    """Whether a site copies from the host to memory that only the device reaches."""
    if site.kind is not SiteKind.COPY:
        return False
    if not (site.role is Role.MOVABLE or (site.role is Role.LEGACY and site.held is Held.SOURCE)):
        return False
    written = [a.buffer for a in site.accesses if AccessMode.WRITE in a.mode]
    read = [a.buffer for a in site.accesses if AccessMode.READ in a.mode]
    return bool(written) and all(b.on_device for b in written) and not any(b.on_device for b in read)


# ---- order ----------------------------------------------------------------------------------------------------------


def _begun(run: Sequence[_Statement], forward: nx.DiGraph[int]) -> list[_Statement]:
    """The run, with those marked that begin chains: they wait for nothing, neither here nor before."""
    own = ({s.number for s in one.sites} for one in run)
    waits = (any(not mine.issuperset(forward.predecessors(n)) for n in mine) for mine in own)
    return [replace(one, begins=not some) for one, some in zip(run, waits, strict=True)]


def _order(run: Sequence[_Statement]) -> list[int]:
    """List scheduling: of the statements that nothing left has to come before, the one with the lowest rank."""
    left = list(range(len(run)))
    order: list[int] = []
    while left:
        ready = (n for n in left if not any(_depend(run[n], run[m]) for m in left if m < n))
        order.append(min(ready, key=lambda n: (run[n].rank, n)))
        left.remove(order[-1])
    return order


def _depend(one: _Statement, other: _Statement) -> bool:
    """Whether two statements must stay in order: they may touch the same memory, and one of the two writes it."""
    return any(_may_meet(a, b) for s in one.serial for t in other.serial for a in s.accesses for b in t.accesses)


def _may_meet(a: Access, b: Access) -> bool:
    if AccessMode.WRITE not in a.mode | b.mode:
        return False
    return a.buffer.kind in _ANYTHING or b.buffer.kind in _ANYTHING or may_alias(a.buffer, b.buffer)


class _Chains:
    """The longest chain that begins with each movable site of a function, as it counts for copies and for launches."""

    def __init__(self, result: FunctionResult, prices: Callable[[], Prices]) -> None:
        self._forward = _forward(result.dfg)
        self._sites = result.dfg.region.sites
        self._prices = prices

    @cached_property
    def copies(self) -> dict[int, float]:
        """Kernels."""
        return self._longest(lambda site: site.kind is SiteKind.KERNEL)

    @cached_property
    def launches(self) -> dict[int, float]:
        """As many kernels that take no time: a difference below that is none."""
        prices = self._prices()

        def node(site: Site) -> float:
            known = site.kind is SiteKind.KERNEL or site.operation in prices.of
            return _NODE + (prices.at(site).cost.microseconds if known else 0.0)

        return {number: length // _NODE for number, length in self._longest(node).items()}

    def _longest(self, weight: Callable[[Site], float]) -> dict[int, float]:
        found: dict[int, float] = {}
        for number in reversed(list(nx.topological_sort(self._forward))):
            behind = max((found[n] for n in self._forward.successors(number)), default=0.0)
            found[number] = behind + weight(self._sites[number])
        return found


def _forward(dfg: Dfg) -> nx.DiGraph[int]:
    """The dependences within one trip of all loops."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(dfg.graph.nodes)
    graph.add_edges_from((d.source, d.target) for d in dfg.dependences if not d.carried)
    return graph


def _pays(run: Sequence[_Statement], order: Sequence[int], dfg: Dfg) -> bool:
    """Whether some large copy goes behind one that keeps others waiting."""
    forward = _forward(dfg)
    for place, n in enumerate(order):
        passed = [run[m] for m in order[place + 1 :] if m < n and (run[m].kind.launches or not run[m].small)]
        if any(one.chain < run[n].chain and one.begins and run[n].begins for one in passed):
            return True
        if run[n].small and not run[n].kind.launches and any(_holds_up(one, run[n], forward) for one in passed):
            return True
    return False


def _holds_up(large: _Statement, small: _Statement, forward: nx.DiGraph[int]) -> bool:
    """Whether something needs the small copy, and not all of the large ones ahead of it."""
    users = {n for s in small.sites for n in forward.successors(s.number)}
    needs = (nx.descendants(forward, s.number) for s in large.sites)
    return any(not users <= found for found in needs)


def _reordered(function: ir.Function, run: Sequence[_Statement], order: Sequence[int]) -> Reordered:
    """The change, with as few statements as possible said to have moved."""
    stay = _longest_ascending(order)
    why = ["" if n in stay else _why(run, order, n) for n in range(len(run))]
    return Reordered(function.span, tuple(one.piece for one in run), tuple(order), tuple(why))


def _why(run: Sequence[_Statement], order: Sequence[int], n: int) -> str:
    """What a statement that moved went behind or ahead of."""
    overtook = [run[m] for m in order[: order.index(n)] if m > n]
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

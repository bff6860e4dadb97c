"""Runs of statements that may change places: ``runs(block)``, each statement with what decides about its place.

In: a block of a function that was planned. Out: its runs, as lists of `Statement`. Apart from their order because here
the text, the sites of the serial program and those of the plan are brought together.

1. A statement that only issues work (`statements`) is of the kind of what it issues, if that is one kind, has its lines
to itself (`lines`), and is on streams in the plan. 2. One that asks for errors right behind a launch goes along with
it. 3. Calm ones, and waits of the host that go away, stand only between others. 4. Of a copy for which the host waits
for the whole device, the place matters: it is in no run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import networkx as nx

from kesco.ir import program as ir
from kesco.ir.access import RELEASED, AccessMode, BufferKind
from kesco.ir.compilation import FunctionResult
from kesco.ir.dfg import Dfg
from kesco.ir.flow import SMALL, Held, Role, Site, SiteKind
from kesco.issue.lines import Piece, beside, piece_of
from kesco.issue.reads import Reads
from kesco.issue.statements import calm, given_values, is_bare, issued, issued_or_asked
from kesco.model.forecast import Prices

_NAME = re.compile(rb"[A-Za-z_]\w*")
_NODE = 2.0  # microseconds from the end of one kernel of a graph to the next one on an H200


@dataclass(frozen=True, slots=True)
class Kind:
    """What the statements of a run have in common: they launch, or copy; the host waits for the copies, or does not.

    `replay` is the number of the graph that the launches become a part of. What neither launches nor copies is `calm`.
    """

    launches: bool
    waits: bool
    replay: int = -1
    calm: bool = False

    @property
    def mixes(self) -> bool:
        """Whether it stands in a run of copies that keep the host."""
        return self.waits or self.calm or (self.launches and self.replay < 0)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a run: its lines, its sites in the serial program and as planned, and what it keeps waiting.

    `kind` is the same in all of a run. `small`: all that it copies is. `chain` is the longest one that it begins: for
    copies the number of kernels behind it, for launches the time in what a graph takes from one to the next.
    `begins`: it waits for nothing.
    """

    piece: Piece
    serial: tuple[Site, ...]
    sites: tuple[Site, ...]
    kind: Kind
    small: bool
    chain: float
    begins: bool = True
    names: frozenset[bytes] = frozenset()  # of the text
    declares: frozenset[bytes] = frozenset()
    reads: bool = False  # what a copy to the host may write
    bare: bool = False  # nobody looks at the status of its calls
    asks: bool = False  # for errors
    passed: bool = False  # launches may go ahead of it: it is the host's own, and no wait

    @property
    def rank(self) -> tuple[int, float]:
        """What goes first has the lowest."""
        if self.kind.calm:
            return (2, 0)
        if self.kind.launches:
            return (0, -self.chain) if self.begins else (1, 0)
        return (0, 0) if self.small else (1, -self.chain)

    @property
    def stays(self) -> bool:
        """Whether it is a copy on the default stream, which waits for all that was issued."""
        return any(s.role is Role.LEGACY for s in self.sites)

    @property
    def to_host(self) -> bool:
        """Whether it is a copy that may write the host's memory."""
        return self.kind.waits and not all(map(to_device, self.serial))


def runs(block: Block) -> Iterator[list[Statement]]:
    """The runs of a block in which more than one statement issues something."""
    run: list[Statement] = []
    for at in range(len(block.body)):
        one = block.statement(at)
        near = one is not None and bool(run) and beside(block.program.text, run[-1].piece, one.piece)
        if one is not None and one.asks:
            if near and run[-1].kind.mixes and run[-1].kind.launches:  # it is about that launch, and goes along
                run[-1] = replace(run[-1], piece=(run[-1].piece[0], one.piece[1]), asks=True)
                continue
            one = None
        if not (near and one is not None and _go_together(one.kind, run[-1].kind)):
            if _may_change(run):
                yield run
            run = []
        if one is not None:
            run.append(one)
    if _may_change(run):
        yield run


def _may_change(run: Sequence[Statement]) -> bool:
    return sum(not one.kind.calm for one in run) > 1


def _go_together(one: Kind, other: Kind) -> bool:
    return one == other or (one.mixes and other.mixes)


@dataclass(frozen=True, slots=True)
class Block:
    """The statements of a block of a function that was planned, and what is asked about each."""

    program: ir.Program
    function: ir.Function
    result: FunctionResult
    chains: Chains
    reads: Reads
    known: frozenset[str]
    body: Sequence[ir.Stmt]

    def statement(self, at: int) -> Statement | None:
        """The statement at a position, if it may stand elsewhere in a run."""
        one = self.body[at]
        inside = [n.operation for n in ir.walk(one) if isinstance(n, (ir.Call, ir.Launch)) and n.operation >= 0]
        piece = piece_of(self.program, self.body, at) if inside or _may_be_calm(one) else None
        found = None
        if piece is not None:
            found = self._work(one, piece, inside) or self._calm(one, piece, inside)
        if found is None:
            return None
        text = self.program.text[found.piece[0] : found.piece[1]]
        names = {n.variable.name.encode() for n in ir.walk(one) if isinstance(n, ir.Name)}
        return replace(found, names=frozenset({*_NAME.findall(text), *names}), reads=self.reads.may_be_written(one))

    def _work(self, one: ir.Stmt, piece: Piece, inside: Sequence[int]) -> Statement | None:
        """A statement that issues something."""
        result, program = self.result, self.program
        own = {n: [s for s in result.serial.sites if s.operation == n] for n in inside}
        known = frozenset(n for n, sites in own.items() if sites and len({_kind(s) for s in sites} - {None}) == 1)
        operations = issued(program, self.function, one, known, self.known)
        if not operations or any(program.operations[n].stuck for n in operations):
            return None
        planned = result.dfg.region.sites
        serial = [s for s in result.serial.sites if _is_in(s, piece)]
        sites = [s for s in planned if s.operation in operations and _is_in_order(s)]
        if any(s.operation not in operations for s in serial) or {s.operation for s in serial} != {
            s.operation for s in sites
        }:
            return None
        if any(s.role is Role.DEVICE_SYNC for s in planned if s.operation in operations):
            return None  # the host waits there
        kinds = {_kind(s) for s in serial}
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is None:
            return None
        if kind.launches:
            kind = replace(kind, replay=_replay_of(result, sites))
        small = all(s.bytes is not None and s.bytes <= SMALL for s in serial)
        known_chains = self.chains.launches if kind.replay >= 0 else self.chains.copies
        chain = max(known_chains[s.number] for s in sites)
        return Statement(piece, tuple(serial), tuple(sites), kind, small, chain, bare=is_bare(one, operations))

    def _calm(self, one: ir.Stmt, piece: Piece, inside: Sequence[int]) -> Statement | None:
        """A statement that does nothing to the device, or a wait of the host that goes away."""
        serial = [s for s in self.result.serial.sites if _is_in(s, piece)]
        empty = Statement(piece, (), (), Kind(False, False, calm=True), small=True, chain=0)
        if any(s.operation in inside for s in serial):
            waits = {s.number for s in self.result.region.sites if s.operation in inside}
            away = waits and waits <= {*self.result.plan.needless}
            return empty if away and all(s.operation in inside for s in serial) else None
        if issued_or_asked(self.program, self.function, one, frozenset(), self.known)[1]:
            silent = all(s.role is Role.HOST and not s.looks and not s.accesses for s in serial)
            return replace(empty, asks=True) if silent else None
        if not all(map(_only_reads, serial)) or not calm(self.program, one):
            return None
        given = [*given_values(one)]
        if any(map(self.reads.may_be_written, given)):
            return None  # it has another name, by which a kernel may come to it
        new = [n.variable for n in ir.walk(one) if isinstance(n, ir.Declare)]
        new += [n.variable for n in given if isinstance(n, ir.Name)]
        return replace(empty, serial=tuple(serial), declares=frozenset(n.name.encode() for n in new), passed=True)


def _may_be_calm(one: ir.Stmt) -> bool:
    """Whether it is worth the while to look at the text of a statement without operations."""
    return isinstance(one, (ir.Declare, ir.Block, ir.Evaluate, ir.If))


def _only_reads(site: Site) -> bool:
    """Whether the host does nothing at a site but read memory, such as a result that came home."""
    return site.role is Role.HOST and not site.looks and all(a.mode is AccessMode.READ for a in site.accesses)


def _is_in_order(site: Site) -> bool:
    """Whether it is work on a stream, or a copy on the default stream behind which the host goes on when it is done."""
    return site.role is Role.MOVABLE or (site.role is Role.LEGACY and site.held in (Held.SOURCE, Held.ALL))


def _replay_of(result: FunctionResult, sites: Sequence[Site]) -> int:
    """The graph that sites become a part of; negative for none."""
    own = {s.number for s in sites}
    return next((number for number, one in enumerate(result.plan.replays) if own <= {*one.sites}), -1)


def _is_in(site: Site, piece: Piece) -> bool:
    """Whether a site is in the text of a piece; a place where nothing happens is no site."""
    return piece[0] <= site.span.start < piece[1] and site.mark is None


def _kind(site: Site) -> Kind | None:
    """Which runs a site of the serial program may be a part of."""
    if site.stream is not None or site.stuck or site.note == RELEASED or not site.accesses:
        return None
    if site.kind in (SiteKind.KERNEL, SiteKind.MEMSET):
        return Kind(launches=True, waits=False) if site.role is Role.MOVABLE and site.held is None else None
    if any(a.buffer.kind is BufferKind.MANAGED for a in site.accesses):
        return None  # not every device lets the host reach it while a kernel runs
    held = site.held in (Held.SOURCE, Held.ALL)
    return Kind(launches=False, waits=held) if to_device(site) or (held and site.kind is SiteKind.COPY) else None


def to_device(site: Site) -> bool:
    """Whether a site copies from the host to memory that only the device reaches."""
    if site.kind is not SiteKind.COPY:
        return False
    if not (site.role is Role.MOVABLE or (site.role is Role.LEGACY and site.held is Held.SOURCE)):
        return False
    written = [a.buffer for a in site.accesses if AccessMode.WRITE in a.mode]
    read = [a.buffer for a in site.accesses if AccessMode.READ in a.mode]
    return bool(written) and all(b.on_device for b in written) and not any(b.on_device for b in read)


class Chains:
    """The longest chain that begins with each movable site of a function, as it counts for copies and for launches."""

    def __init__(self, result: FunctionResult, prices: Callable[[], Prices]) -> None:
        self._forward = forward(result.dfg)
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


def forward(dfg: Dfg) -> nx.DiGraph[int]:
    """The dependences within one trip of all loops."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(site.number for site in dfg.region.sites)
    graph.add_edges_from((d.source, d.target) for d in dfg.dependences if not d.carried)
    return graph

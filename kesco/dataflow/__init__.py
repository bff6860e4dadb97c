"""Which site must come after which: ``build(region)`` turns a `Region` into its data-flow graph, a `Dfg`.

In: the sites of one function, what each touches, and the paths between them. Out: every RAW, WAR and WAW
dependence between two movable sites, with the buffer, and a frozen graph over them. It is a stage of its own
because everything after it (streams, events, pictures) asks only this question, and because the proof asks
the same question differently.

Method:

1. Cut the control-flow graph into straight chains, in reverse post order.
2. A state says for each buffer which sites may have been the last to write it and which have read it since. A
   site that reads comes after the last writers (RAW); a site that writes comes after the readers since (WAR)
   and the last writers (WAW) and then is the only last writer, because it is ordered behind all those it
   replaced.
3. Where paths meet the sets are united; repeat until nothing changes. An ENTRY, EXIT, JOIN, LEGACY or
   DEVICE_SYNC site orders all that is before it against all that is behind it, so it empties the state.
   Where sites touch parts of a buffer that cannot meet, each part is a buffer of its own here (`parts`).
   Parts that turn with a loop are looked at by themselves (`turning`).
4. Unknown memory overlaps with all memory. Reading it is reading every buffer; writing it is writing every
   buffer, so one entry then stands for all of them until a buffer is touched by its own name.
5. Once more without the edges that lead back in a depth-first walk: what only the full graph shows is
   loop-carried.

So a site that may conflict with an earlier one is reached from it by dependences, directly or through others.

What it refuses to do: it neither moves nor drops anything, it never calls two buffers distinct that
`may_alias` joins, and it says nothing about HOST, RECORD, WAIT and other synchronizing sites, which order no
memory here.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import networkx as nx

from kesco.dataflow.turning import turning_facts
from kesco.ir.access import UNKNOWN, AccessMode, Buffer, BufferKind, may_alias
from kesco.ir.dfg import Dependence, DependenceKind, Dfg
from kesco.ir.flow import Held, Region, Role, Site, is_sure_barrier
from kesco.parts import Parts

_Fact = tuple[int, int, DependenceKind, str]  # source, target, kind, buffer key
_Entry = tuple[int, int]  # last writers, readers since: bit i is site i
_NOBODY: _Entry = (0, 0)


def build(region: Region) -> Dfg:
    """All dependences between the movable sites of `region`."""
    parts = Parts(region)
    touches = [_touch(site, parts) for site in region.sites]
    known = {buffer.key: buffer for touch in touches if touch for buffer in (*touch.reads, *touch.writes)}
    order, retreating = _walk(region.successors)
    known |= parts.whole
    known |= {key: parts.whole[key] for key in parts.turning}

    def found(without: frozenset[tuple[int, int]]) -> set[_Fact]:
        every = _facts(region, touches, order, without) | turning_facts(region, parts, without)
        return _of_buffers(every, known)

    facts = found(frozenset())
    forward = found(retreating) if retreating else facts
    known = {buffer.key: buffer for buffer in known.values()}
    ordered = sorted(facts, key=lambda fact: (*fact[:2], fact[2].value, fact[3]))
    kinds = [_kind(region, source, target, kind, known[key]) for source, target, kind, key in ordered]
    every = (
        Dependence(source, target, kind, known[key], (source, target, hazard, key) not in forward)
        for (source, target, hazard, key), kind in zip(ordered, kinds, strict=True)
    )
    dependences = tuple(dict.fromkeys(every))
    return Dfg(region, _graph(region, dependences), dependences)


def _kind(region: Region, source: int, target: int, hazard: DependenceKind, buffer: Buffer) -> DependenceKind:
    """What a dependence is: a hazard between what both touch themselves, or what a flag tells of others."""
    for site in (region.sites[source], region.sites[target]):
        if len(site.own) < len(site.accesses) and not any(may_alias(a.buffer, buffer) for a in site.own):
            return DependenceKind.RELEASE
    return hazard


def _of_buffers(facts: set[_Fact], known: dict[str, Buffer]) -> set[_Fact]:
    """The facts about parts as facts about the buffers that people know."""
    return {(source, target, kind, known[key].key) for source, target, kind, key in facts}


def _graph(region: Region, dependences: tuple[Dependence, ...]) -> nx.DiGraph[int]:
    """The frozen graph: every movable site a node, each edge with its tuple of dependences."""
    edges: dict[tuple[int, int], list[Dependence]] = {}
    for dependence in dependences:
        edges.setdefault((dependence.source, dependence.target), []).append(dependence)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(site.number for site in region.sites if site.role is Role.MOVABLE)
    graph.add_edges_from((source, target, {"dependences": tuple(why)}) for (source, target), why in edges.items())
    nx.freeze(graph)
    return graph


@dataclass(frozen=True, slots=True)
class _Touch:
    """The buffers that one movable site reads and writes, each once, in key order."""

    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    reads_unknown: bool
    writes_unknown: bool


def _touch(site: Site, parts: Parts) -> _Touch | None:
    """What `site` touches, or None where that is of no concern to the device's order."""
    if site.role is not Role.MOVABLE:
        return None
    buffers = [
        (buffer, access.mode)
        for access in site.accesses
        for buffer in ((UNKNOWN,) if access.buffer.kind is BufferKind.UNSEEN_HOST else parts.touched(access))
        if buffer.key not in parts.turning
    ]
    reads = {buffer.key: buffer for buffer, mode in buffers if AccessMode.READ in mode}
    writes = {buffer.key: buffer for buffer, mode in buffers if AccessMode.WRITE in mode}
    return _Touch(
        tuple(reads[key] for key in sorted(reads)),
        tuple(writes[key] for key in sorted(writes)),
        any(buffer.kind is BufferKind.UNKNOWN for buffer in reads.values()),
        any(buffer.kind is BufferKind.UNKNOWN for buffer in writes.values()),
    )


@dataclass(slots=True)
class _State:
    """Last writers and readers since, by buffer key; `rest` holds for all memory that is not in `memory`."""

    rest: _Entry = _NOBODY
    memory: dict[str, _Entry] = field(default_factory=dict)
    orders: dict[str, _Entry] = field(default_factory=dict)

    def of(self, buffer: Buffer) -> _Entry:
        """The entry that holds for `buffer`, which is not unknown memory."""
        if buffer.kind is BufferKind.ORDER:
            return self.orders.get(buffer.key, _NOBODY)
        return self.memory.get(buffer.key, self.rest)

    def put(self, buffer: Buffer, entry: _Entry) -> None:
        """Let `entry` hold for `buffer`, which is not unknown memory."""
        (self.orders if buffer.kind is BufferKind.ORDER else self.memory)[buffer.key] = entry

    def copy(self) -> _State:
        return _State(self.rest, dict(self.memory), dict(self.orders))

    def clear(self) -> None:
        self.rest = _NOBODY
        self.memory.clear()
        self.orders.clear()

    def join(self, other: _State) -> bool:
        """Unite with `other` what may hold on another path; whether anything was new."""
        rest = _union(self.rest, other.rest)
        changed = _unite(self.memory, self.rest, other.memory, other.rest)
        changed |= _unite(self.orders, _NOBODY, other.orders, _NOBODY) or rest != self.rest
        self.rest = rest
        return changed

    def execute(self, bit: int, touch: _Touch) -> None:
        """The state behind the site whose bit is `bit`: reads first, then writes."""
        if touch.reads_unknown:
            self.rest = (self.rest[0], self.rest[1] | bit)
            self.memory = {key: (writers, readers | bit) for key, (writers, readers) in self.memory.items()}
        for buffer in touch.reads:
            if buffer.kind is not BufferKind.UNKNOWN:
                writers, readers = self.of(buffer)
                self.put(buffer, (writers, readers | bit))
        if touch.writes_unknown:
            self.rest = (bit, 0)
            self.memory.clear()
        for buffer in touch.writes:
            if buffer.kind is not BufferKind.UNKNOWN:
                self.put(buffer, (bit, 0))


def _union(a: _Entry, b: _Entry) -> _Entry:
    return (a[0] | b[0], a[1] | b[1])


def _unite(mine: dict[str, _Entry], my_rest: _Entry, theirs: dict[str, _Entry], their_rest: _Entry) -> bool:
    """Unite `theirs` into `mine`, where the rests hold for all that is not listed; whether anything was new."""
    changed = False
    for key in [*theirs, *(mine.keys() - theirs.keys())]:
        a, b = mine.get(key), theirs.get(key, their_rest)
        if a is not b:
            both = _union(my_rest if a is None else a, b)
            if both != a:
                mine[key] = both
                changed = True
    return changed


def _facts(
    region: Region, touches: list[_Touch | None], order: list[int], without: frozenset[tuple[int, int]]
) -> set[_Fact]:
    """All dependences as plain tuples, over the control-flow graph without the edges `without`."""
    successors = {site: [after for after in region.successors[site] if (site, after) not in without] for site in order}
    chains = _chains(order, successors)
    before: list[_State | None] = [None] * len(chains)
    before[0] = _State()
    place = {chain[0]: index for index, chain in enumerate(chains)}
    work = [0]
    waiting = {0}
    while work:
        index = heapq.heappop(work)
        waiting.discard(index)
        state = _run(region, touches, chains[index], before[index])
        for after in successors[chains[index][-1]]:
            target = place[after]
            known = before[target]
            if known is None:
                before[target] = state.copy()
            elif not known.join(state):
                continue
            if target not in waiting:
                waiting.add(target)
                heapq.heappush(work, target)
    through_unknown = (
        sum(1 << n for n, touch in enumerate(touches) if touch and touch.reads_unknown),
        sum(1 << n for n, touch in enumerate(touches) if touch and touch.writes_unknown),
    )
    facts: set[_Fact] = set()
    for index, chain in enumerate(chains):
        _run(region, touches, chain, before[index], facts, through_unknown)
    return facts


def _run(
    region: Region,
    touches: list[_Touch | None],
    chain: list[int],
    before: _State | None,
    facts: set[_Fact] | None = None,
    through_unknown: _Entry = _NOBODY,
) -> _State:
    """The state behind `chain`; what its sites depend on is added to `facts` where given."""
    state = before.copy() if before is not None else _State()
    for number in chain:
        touch = touches[number]
        if is_sure_barrier(region.sites[number]):
            state.clear()
        elif touch is not None:
            if facts is not None:
                facts.update(_depends(number, touch, state, through_unknown))
            if region.sites[number].held is not Held.ALL:  # nobody waits for what the host has waited for
                state.execute(1 << number, touch)
    return state


def _depends(number: int, touch: _Touch, state: _State, through_unknown: _Entry) -> Iterator[_Fact]:
    """What site `number` depends on when it is reached in `state`."""
    for buffer in touch.reads:
        for writers, _, name in _overlapping(buffer, state, through_unknown):
            yield from ((source, number, DependenceKind.RAW, name) for source in _bits(writers))
    for buffer in touch.writes:
        for writers, readers, name in _overlapping(buffer, state, through_unknown):
            yield from ((source, number, DependenceKind.WAR, name) for source in _bits(readers))
            yield from ((source, number, DependenceKind.WAW, name) for source in _bits(writers))


def _overlapping(buffer: Buffer, state: _State, through_unknown: _Entry) -> Iterator[tuple[int, int, str]]:
    """Last writers and readers of all that `buffer` may overlap with, and the key of the buffer to name.

    Between a known and an unknown target the known one is named: it tells a person more.
    """
    if buffer.kind is not BufferKind.UNKNOWN:
        yield (*state.of(buffer), buffer.key)
        return
    reading, writing = through_unknown
    yield (*state.rest, buffer.key)
    for key, (writers, readers) in state.memory.items():
        yield writers & ~writing, readers & ~reading, key
        yield writers & writing, readers & reading, buffer.key


def _bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _walk(successors: tuple[tuple[int, ...], ...]) -> tuple[list[int], frozenset[tuple[int, int]]]:
    """The sites reachable from site 0 in reverse post order, and the edges back to a site still open."""
    open_sites: set[int] = {0}
    seen = {0}
    finished: list[int] = []
    retreating: set[tuple[int, int]] = set()
    stack: list[tuple[int, Iterator[int]]] = [(0, iter(successors[0]))]
    while stack:
        site, rest = stack[-1]
        for after in rest:
            if after in open_sites:
                retreating.add((site, after))
            elif after not in seen:
                seen.add(after)
                open_sites.add(after)
                stack.append((after, iter(successors[after])))
                break
        else:
            open_sites.discard(site)
            finished.append(site)
            stack.pop()
    return finished[::-1], frozenset(retreating)


def _chains(order: list[int], successors: dict[int, list[int]]) -> list[list[int]]:
    """`order` cut into longest straight chains, in the order of their first sites."""
    fan_in: dict[int, int] = dict.fromkeys(order, 0)
    fan_in[order[0]] = 1  # the way in from outside
    for site in order:
        for after in successors[site]:
            fan_in[after] += 1
    inside: set[int] = {after for site in order for after in _only(successors[site]) if fan_in[after] == 1}
    chains: list[list[int]] = []
    for site in order:
        if site not in inside:
            chain = [site]
            while (onward := _only(successors[chain[-1]])) and onward[0] in inside:
                chain.append(onward[0])
            chains.append(chain)
    return chains


def _only(successors: Iterable[int]) -> tuple[int, ...]:
    """The successor, where there is exactly one."""
    found = tuple(successors)
    return found if len(found) == 1 else ()

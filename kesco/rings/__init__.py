"""Loops whose turns may run beside each other if each has memory of its own: ``rings(program, region)``.

In: the program, and a region as it is to be planned. Out: such loops (`ir.turns.Turns`). It is a stage of its own since
it looks at statements: what order is needed *within* a turn the stages behind find out as if there were one turn at a
time, and the proof shows that apart from that nothing is.

1. The loop is a statement of a block, and is left only by its condition or ``break``. In it there are launches, memsets
and copies, and nothing that another turn's work could show. 2. Memory that each turn allocates and frees (`own`) is a
turn's own. So is a buffer that two turns would otherwise share, where all that touches it does so through one variable,
or one member. 3. That buffer gets a second place, which begins as a copy. So it holds in each turn
what it did in the serial program if, turn by turn, first of all the same bytes are written (`first_writers`), whatever
memory holds; and all that reads it, or writes to it otherwise, stands behind that. Where variables of a turn decide
which bytes these are, turns overlap as long as all have the same (`alike`): a last one that is shorter comes behind the
one before, in the same place. 4. All else that two turns touch is only read, or apart.

Where the loop is come to again and again and that is all that is done with the device, see `lanes`.

It refuses where the memory's address may be seen or kept, and where anything else in the loop allocates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kesco.ir import program as ir
from kesco.ir.access import Access, AccessMode, Buffer, BufferKind, context_of
from kesco.ir.failures import runs_at_exit
from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.ir.poly import ByteRange
from kesco.ir.turns import Turns
from kesco.parts import apart, apart_in_turns, as_if_in_one_turn
from kesco.rings.body import Body, body_of
from kesco.rings.lanes import in_lanes
from kesco.rings.meeting import is_in as is_in
from kesco.rings.meeting import may_stay, may_throw, meeting, waits_behind
from kesco.rings.uses import Use, deciding_in, pointer_of, uses, written_before
from kesco.source import Span

_WORK = (SiteKind.KERNEL, SiteKind.COPY, SiteKind.MEMSET)
_READ, _WRITE = AccessMode.READ, AccessMode.WRITE


def rings(program: ir.Program, region: Region, calm: Callable[[ir.Stmt], bool] = lambda _: False) -> tuple[Turns, ...]:
    """The loops of a region whose turns may overlap, in the order of the text; none inside another one.

    `calm` are statements in which the host changes nothing but small variables that are named there.
    """
    function = next((f for f in program.functions if f.here and f.span == region.span), None)
    if function is None or region.serial_because or region.members:
        return ()
    alone: list[Turns] = []
    calls = frozenset(s.operation for s in region.sites if s.kind is SiteKind.CALL and s.role is Role.MOVABLE)
    bodies = [one for loop in region.loops if (one := body_of(program, function, loop, calls, calm)) is not None]
    for body in reversed([one for one in bodies if one.placed]):
        turns = _Loop(program, function, region, body, tuple(alone)).turns()
        if turns is not None:
            alone.append(turns)
    found: list[Turns] = []
    every = (*in_lanes(program, region, bodies), *alone)
    for turns in sorted(every, key=lambda one: (one.whole.start, one.span.start)):
        around = [one.whole for one in found if one.whole.start <= turns.span.start < one.whole.end]
        if all(turns.lane and place == turns.outer for place in around):
            found.append(turns)
    return tuple(found)


def as_planned(region: Region, turns: Sequence[Turns]) -> Region:
    """The region in which the memory of a turn's own is there, and the host waits before and behind such loops.

    In it a turn's work meets that of the turn before: turns overlap by having other streams, not by waiting for less.
    """
    ends = {number for one in turns for number in one.frees}

    def planned(site: Site) -> Site:
        if site.number in ends:
            return replace(site, kind=SiteKind.HOST_USE, role=Role.HOST, label="host", accesses=(), note="")
        for one in turns:
            if is_in(site, one.span):
                site = replace(site, accesses=tuple(_in_one_turn(a, one.loop) for a in site.accesses))
        return site

    result = replace(region, sites=tuple(map(planned, region.sites)))
    for one in {t.whole: t for t in turns}.values():
        within = (s for s in result.sites if is_in(s, one.whole) and s.operation != -1)
        inside = {s.number for s in within if s.role is not Role.EXIT}
        others = set(range(len(result.sites))).difference(inside)
        leaving = {after for n in inside for after in result.successors[n] if after in others}
        result = _with_wait(result, max(inside) + 1, inside, leaving, one.whole)
        others = set(range(len(result.sites))).difference(inside)
        entered = {after for n in others for after in result.successors[n] if after in inside}
        coming = {n for n in others if entered.intersection(result.successors[n])}
        result = _with_wait(result, min(entered), coming, entered, one.whole)
    return result


def _in_one_turn(access: Access, loop: str) -> Access:
    return access if access.bytes is None else replace(access, bytes=as_if_in_one_turn(access.bytes, loop))


def _with_wait(region: Region, at: int, before: set[int], behind: set[int], span: Span) -> Region:
    """The region with a wait of the host for the device, of this number, between these sites and those."""

    def then(number: int) -> int:
        return number + (number >= at)

    wait = Site(at, -1, "cudaDeviceSynchronize", SiteKind.SYNC, Role.DEVICE_SYNC, span)
    sites = [replace(s, number=then(s.number)) for s in region.sites]
    after = [
        {then(one) for one in targets if n not in before or one not in behind}
        | ({at} if n in before and behind.intersection(targets) else set())
        for n, targets in enumerate(region.successors)
    ]
    sites.insert(at, wait)
    after.insert(at, {then(one) for one in behind})
    return replace(region, sites=tuple(sites), successors=tuple(tuple(sorted(one)) for one in after))


@dataclass(frozen=True, slots=True)
class _Loop:
    """One loop; `later` are those behind it whose turns may overlap."""

    program: ir.Program
    function: ir.Function
    region: Region
    body: Body
    later: tuple[Turns, ...] = ()

    def turns(self) -> Turns | None:
        """The loop, if its turns may overlap and need not be in order as they are."""
        sites = self.body.sites(self.region)
        taken = self.body.own_memory(self.program, self.function)
        frees = {s.number for s in sites if any(s.span == one.frees for one in taken)}
        work = [s for s in sites if s.number not in frees and s.mark is None]
        if not all(map(may_stay, work)) or not self.body.allocates_nothing_else(self.program, taken):
            return None
        if taken and any(s.looks for s in work):
            return None
        own = {a.buffer for s in sites if s.number in frees for a in s.accesses}
        if any(a.buffer.kind is not BufferKind.DEVICE for s in sites if s.number in frees for a in s.accesses):
            return None
        if len(own) != len(taken):
            return None
        shared = self._shared(work, own)
        later = [one.span for one in self.later]
        waits = waits_behind(self.region, sites, self.body.loop.span, later)
        waits = waits or any(s.role is Role.DEVICE_SYNC for s in work)
        if shared is None or not (taken or waits or shared) or (shared and self.body.around and not taken):
            return None  # the host waits behind turns that overlap: a loop that gains no more keeps its order
        alike: set[str] = set()
        names = self._names(work, shared, alike)
        ends = runs_at_exit(self.program) and self.body.may_end_the_process(self.program)
        if may_throw(self.region, sites) or (names and ends):
            return None  # nothing would be put back, and somebody may look
        if names is None or not any(s.role is Role.MOVABLE for s in work):
            return None
        first = self.body.first({s.operation for s in work if s.role is Role.MOVABLE}, taken)
        if first is None:
            return None
        span, copies = self.body.loop.span, any(s.kind is SiteKind.COPY or s.holds for s in work)
        return Turns(
            self.body.key, span, first.span, names, taken, tuple(sorted(frees)), self.body.lone, copies,
            alike=tuple(sorted(alike)),
        )  # fmt: skip

    def _shared(self, work: list[Site], own: set[Buffer]) -> set[Buffer] | None:
        """The buffers that two turns would have to share; None where one of them cannot be a turn's own."""
        found: set[Buffer] = set()
        for n, one in enumerate(work):
            for other in work[n:]:
                for x, y in meeting(one, other):
                    if x.buffer in own or y.buffer in own or self._apart(x.bytes, y.bytes):
                        continue
                    if (
                        x.buffer != y.buffer
                        or x.buffer.kind is not BufferKind.DEVICE
                        or Role.HOST in (one.role, other.role)
                    ):
                        return None
                    found.add(x.buffer)
        return found

    def _apart(self, x: ByteRange | None, y: ByteRange | None) -> bool:
        """Whether two ranges do not meet in two turns."""
        if x is None or y is None:
            return False
        turns = all(any(c.turn is not None and c.turn.loop == self.body.key for c in one.counters) for one in (x, y))
        return apart(x, y) or (turns and apart_in_turns(x, y, self.body.key))

    def _names(self, work: list[Site], shared: set[Buffer], alike: set[str]) -> tuple[str, ...] | None:
        """The variables of the buffers that are shared, if each may have a second place in turns that are `alike`."""
        found: dict[Buffer, ir.Variable] = {}
        touching: defaultdict[Buffer, list[tuple[Site, Access, Use]]] = defaultdict(list)
        by_operation = uses(self.body.loop.body, self.body.calls)
        for site in work:
            for access in (a for a in site.accesses if a.buffer in shared):
                use = by_operation.get(site.operation)
                pointer = pointer_of(use, access) if use is not None else None
                if use is None or pointer is None or found.setdefault(access.buffer, pointer) != pointer:
                    return None
                if sum(_is_alike(a, access) for a in site.accesses) != 1:
                    return None  # one of several buffers
                touching[access.buffer].append((site, access, use))
        variables = [(one.key, context_of(buffer)) for buffer, one in found.items()]
        if len(set(variables)) != len(variables) or not all(
            self.body.may_shadow(one, self.program.text) for one in found.values()
        ):
            return None
        if not all(self._is_kept_in_turn(touching[one], found[one], alike) for one in shared):
            return None
        return tuple(sorted({one.name for one in found.values()}))

    def _is_kept_in_turn(self, touching: list[tuple[Site, Access, Use]], pointer: ir.Variable, alike: set[str]) -> bool:
        """Whether a turn writes the same bytes first, and then touches what is left of the buffer, if it does.

        Turns are `alike` in which the variables have the same values that are added to that.
        """
        first: list[tuple[int, Access, Use]] = []
        rest: list[tuple[int, Access, Use]] = []
        for site, access, use in touching:
            place = self.body.index(use.node)
            both = AccessMode.NONE
            for other in (a for s, a, _ in touching if s is site):
                both |= other.mode
            same = deciding_in(self.region.kernels.steering, use, access, self.body) if _READ not in both else None
            if same is not None and self.body.is_always(use.node):
                alike |= same
                first.append((place, access, use))
            else:
                rest.append((place, access, use))
        if not first or self.body.leaves_between(max(place for place, _, _ in first)):
            return False
        last = max(place for place, _, _ in first)
        return all(place > last and self._writes_no_more(first, access, use) for place, access, use in rest)

    def _writes_no_more(self, first: Sequence[tuple[int, Access, Use]], access: Access, use: Use) -> bool:
        """Whether all that is written through an access was written by one of the first ones."""
        if _WRITE not in access.mode:
            return True
        whole = (a for _, a, _ in first if a.why in ("copies", "memset") and a.bytes is not None)
        return any(_covers(one, access) for one in whole) or any(
            written_before(self.region.kernels.writes, one, use, a, access, self.body) for _, a, one in first
        )


def _is_alike(one: Access, other: Access) -> bool:
    """Whether two accesses of a site are the same way into memory, in the same call of its function."""
    return (one.why, one.mode, context_of(one.buffer)) == (other.why, other.mode, context_of(other.buffer))


def _covers(one: Access, other: Access) -> bool:
    """Whether a copy or memset writes all that another access may touch."""
    assert one.bytes is not None
    if other.bytes == one.bytes:
        return True
    length = one.buffer.length
    return one.bytes.low.bounds() == (0, 0) and length is not None and one.bytes.high == length

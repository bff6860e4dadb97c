"""Collects the sites of one function activation while the interpreter walks it.

In: sites, in the order in which control reaches them, along every path, possibly many times. Out: a `Region`. The
interpreter asks for sites by what they are (operation, purpose, iteration), so walking a loop until nothing changes
adds edges and accesses but no duplicates.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from kesco.ir.access import Access, AccessMode, Buffer
from kesco.ir.flow import CURRENT, Handle, Held, Iteration, Mark, Region, Role, Site, SiteKind
from kesco.ir.poly import ByteRange
from kesco.source import Span

if TYPE_CHECKING:
    from kesco.ir.program import Function

Frontier = frozenset[int]
Seen = tuple[Buffer, AccessMode, bool]
"""What the host reads or writes, and whether it only decides by it where to go on, and reads it as volatile memory."""
ANY_SIZE = 1 << 63
_MOST_PARTS = 8  # of one buffer, that the host touches in one place
_JOINED = (Role.ENTRY, Role.EXIT, Role.JOIN, Role.LEGACY, Role.DEVICE_SYNC)  # all work before has been joined
SiteKey = tuple[int, str, tuple[Iteration, ...]]


class Walked(Protocol):
    """An activation of a function, as far as it was walked; `generic`: with what came in from anywhere."""

    function: Function
    builder: RegionBuilder
    generic: bool
    touches_device: bool
    foreign: bool
    device_changed: bool
    throws: bool
    exits: bool

    @property
    def returns(self) -> object:
        """Whether it comes back."""


@dataclass(slots=True)
class Growth:
    """How much is known of all functions that are walked, a measure that grows until the walk is complete."""

    size: int = 0


@dataclass(slots=True)
class Draft:
    """A site that is still gathering accesses."""

    number: int
    operation: int
    name: str
    kind: SiteKind
    role: Role
    span: Span
    iterations: tuple[Iteration, ...]
    accesses: dict[tuple[Buffer, str, ByteRange | None], AccessMode] = field(default_factory=dict)
    note: str = ""
    priority: int = 1
    stream: Handle | None = None
    event: Handle | None = None
    foreign: bool = False
    bytes: int = 0  # of a copy or memset; `ANY_SIZE` where it is not a constant
    looks: bool = False
    acts: bool = True
    held: Held | None = None
    stuck: bool = False
    failed: bool = False
    outside: bool = False
    mark: Mark | None = None
    loop: str = ""
    zeroes: int = -1  # the operation that sets its one access to zero
    seen: set[Seen] = field(default_factory=set)  # what the host may do behind it, before the next site
    waits: bool = False  # the host waits here for all before
    records: str = ""  # the event that is recorded here
    awaits: str = ""  # the event that the host waits for
    callees: dict[str, Walked] = field(default_factory=dict)  # the functions that are called here, by key
    lent: bool | None = None  # whether all that is not known here is which handle it is, that came in
    holds: bool = False  # copies keep the host in it
    busy: bool = False  # and there is other work
    takes: bool = False  # memory is allocated and freed in it
    does: frozenset[SiteKind] = frozenset()
    growth: Growth = field(default_factory=Growth)

    def touch(self, buffer: Buffer, why: str, mode: AccessMode, part: ByteRange | None = None) -> None:
        """The site touches a buffer, or that part of it."""
        key = (buffer, why, part)
        self.growth.size += key not in self.accesses
        self.accesses[key] = self.accesses.get(key, AccessMode.NONE) | mode

    def touch_few(self, buffer: Buffer, why: str, mode: AccessMode, part: ByteRange | None) -> None:
        """The same, where many parts say no more than the whole."""
        many = (
            sum(one[0] is buffer for one in self.accesses) >= _MOST_PARTS and (buffer, why, part) not in self.accesses
        )
        self.touch(buffer, why, mode, None if many else part)

    def is_looked_behind(self, seen: set[Seen], outside: bool) -> None:
        """What the host may do behind it, and whether it touches memory there that is not known."""
        self.growth.size += len(seen - self.seen) + (outside and not self.outside)
        self.seen |= seen
        self.outside = self.outside or outside

    @property
    def calls(self) -> tuple[tuple[str, Span], ...]:
        """The functions that are called here, by name and place."""
        own = ((one.function.name, one.function.span) for one in self.callees.values())
        return tuple(dict.fromkeys(own))

    def become(self, other: Draft, first: bool) -> None:
        """The site stands for another one as well, whose accesses apart; `first`: so far it stands for none."""
        self.note, self.priority, self.bytes = other.note or self.note, other.priority, max(self.bytes, other.bytes)
        self.foreign, self.looks = self.foreign or other.foreign, self.looks or other.looks
        self.acts = self.acts and other.acts
        self.callees, self.holds = self.callees | other.callees, self.holds or other.holds
        self.busy, self.takes, self.does = self.busy or other.busy, self.takes or other.takes, self.does | other.does
        self.mark, self.loop = other.mark, other.loop
        self.held = other.held if first or self.held is other.held else None
        self.stuck, self.outside = self.stuck or other.stuck, self.outside or other.outside
        self.failed = other.failed and (first or self.failed)
        self.stream = other.stream if first else _either(self.stream, other.stream)
        self.event = other.event if first else _either(self.event, other.event)


def _either(one: Handle | None, other: Handle | None) -> Handle | None:
    """The stream or event that is one of two; None is the legacy default stream."""
    if one == other:
        return one
    known = [handle for handle in (one, other) if handle is not None]
    names = ",".join(sorted({handle.name for handle in known}))
    return Handle(f"?{names}", names, all(handle.blocking for handle in known), False)


class RegionBuilder:
    """Builds the control-flow graph over sites of one activation of a function."""

    def __init__(self, function: str, span: Span, growth: Growth | None = None) -> None:
        self.function, self.span = function, span
        self.growth = growth if growth is not None else Growth()
        self.drafts: list[Draft] = []
        self._by_key: dict[SiteKey, Draft] = {}
        self._successors: list[set[int]] = []
        self.serial_because = ""
        self.add((-1, "entry", ()), "entry", SiteKind.BOUNDARY, Role.ENTRY, span, frozenset())

    def add(
        self, key: SiteKey, name: str, kind: SiteKind, role: Role, span: Span, frontier: Frontier
    ) -> tuple[Draft, Frontier]:
        """The site with this key, reached from `frontier`; and the new frontier, which is the site itself."""
        draft = self._by_key.get(key)
        if draft is None:
            draft = Draft(len(self.drafts), key[0], name, kind, role, span, key[2], growth=self.growth)
            self._by_key[key] = draft
            self.drafts.append(draft)
            self._successors.append(set())
        for source in frontier:
            self.connect(source, draft.number)
        return draft, frozenset((draft.number,))

    def follows_launches(self, frontier: Frontier) -> bool:
        """Whether the last work before this point is a kernel, on every path that was walked so far."""
        seen: set[int] = set()
        open_ends = set(frontier)
        while open_ends:
            number = open_ends.pop()
            if number in seen or self.drafts[number].kind is SiteKind.KERNEL:
                continue
            passed = self.drafts[number].mark is not None
            if not passed and self.drafts[number].role not in (Role.RECORD, Role.WAIT, Role.CAPTURE, Role.REPLAY):
                return False
            seen.add(number)
            open_ends |= {n for n, after in enumerate(self._successors) if number in after}
        return True

    def after(self, number: int) -> list[int]:
        """The sites that may come next after one."""
        return sorted(self._successors[number])

    def before(self, number: int) -> list[Draft]:
        """The sites that may come right before one."""
        return [one for one in self.drafts if number in self._successors[one.number]]

    def pending(self, ends: Frontier) -> Draft | None:
        """The first work that may not have been joined yet on a way to one of these sites."""
        seen: set[int] = set()
        todo, found = sorted(ends, reverse=True), list[Draft]()
        while todo:
            one = self.drafts[todo.pop()]
            if one.number in seen or one.role in _JOINED:
                continue
            seen.add(one.number)
            if one.role is Role.MOVABLE:
                found.append(one)
            todo += [before.number for before in self.before(one.number)]
        return min(found, key=lambda one: one.number, default=None)

    def connect(self, source: int, target: int) -> None:
        """Control may go from one site to another."""
        if target not in self._successors[source]:
            self._successors[source].add(target)
            self.growth.size += 1

    def finish(self) -> Region:
        """The region; labels get ``#k`` where a name occurs more than once."""
        counts = Counter(d.name for d in self.drafts if d.role is not Role.HOST)
        seen: Counter[str] = Counter()
        sites = []
        for d in self.drafts:
            label = d.name
            if counts[d.name] > 1 and d.kind is not SiteKind.BOUNDARY:
                seen[d.name] += 1
                label = f"{d.name}#{seen[d.name]}"
            ordered = sorted(d.accesses.items(), key=lambda item: (item[0][0].key, item[0][1], str(item[0][2])))
            whole = {(buffer, why): mode for (buffer, why, part), mode in ordered if part is None}
            accesses = tuple(
                Access(buffer, mode, why, part)
                for (buffer, why, part), mode in ordered
                if part is None or mode not in whole.get((buffer, why), AccessMode.NONE)  # told of all of it, too
            )
            sites.append(
                Site(
                    d.number,
                    d.operation,
                    label,
                    d.kind,
                    d.role,
                    d.span,
                    d.iterations,
                    accesses,
                    d.note,
                    d.priority,
                    None if d.stream == CURRENT else d.stream,
                    d.event,
                    d.foreign,
                    d.bytes if 0 < d.bytes < ANY_SIZE else None,
                    d.looks,
                    acts=d.acts,
                    held=d.held,
                    stuck=d.stuck,
                    failed=d.failed,
                    outside=d.outside,
                    mark=d.mark,
                    loop=d.loop,
                    zeroes=d.zeroes,
                    calls=d.calls,
                    holds=d.holds,
                    busy=d.busy,
                    takes=d.takes,
                    does=d.does,
                )
            )
        successors = tuple(tuple(sorted(s)) for s in self._successors)
        return Region(self.function, self.span, tuple(sites), successors, (), self.serial_because)


def _is_of_batches(region: Region, trip: Site) -> bool:
    """Whether what follows where a trip begins, until the next one does, are kernels and copies that keep the host."""
    found, work = {trip.number}, [trip.number]
    while work:
        after = set(region.successors[work.pop()]) - found
        work += after
        found |= after
    inside = {n for n in found if trip.span.start <= region.sites[n].span.start < trip.span.end}
    sites = [region.sites[n] for n in inside]
    works = any(s.kind is SiteKind.KERNEL or (s.kind is SiteKind.CALL and s.calls) for s in sites)
    return works and any(s.holds or (s.kind is SiteKind.COPY and s.held is not None) for s in sites)


def without_idle_marks(region: Region) -> Region:
    """The region without the marks of loops that no range of work depends on.

    Those stay in whose turns the host waits for copies and kernels run: their turns may have buffers of their own.
    """
    work = (s for s in region.sites if s.role in (Role.MOVABLE, Role.LEGACY))
    every = (a.bytes for s in work for a in s.accesses if a.bytes is not None)
    used = {c.turn.loop for part in every for c in part.counters if c.turn is not None}
    used |= {s.loop for s in region.sites if s.mark is Mark.TURNS and _is_of_batches(region, s)}
    gone = [s.number for s in region.sites if s.mark is not None and s.loop not in used]
    if not gone:
        return region
    after = [set(targets) for targets in region.successors]
    for number in gone:
        for targets in after:
            if number in targets:
                targets |= after[number]
                targets.discard(number)
    number_of = {old: new for new, old in enumerate(n for n in range(len(after)) if n not in set(gone))}
    sites = tuple(replace(region.sites[old], number=new) for old, new in number_of.items())
    successors = tuple(tuple(sorted(number_of[n] for n in after[old])) for old in number_of)
    return replace(region, sites=sites, successors=successors)

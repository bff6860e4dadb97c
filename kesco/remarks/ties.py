"""How two operations depend on each other, and how firmly: ``Ties(region, facts).between(a, b)``.

In: a `Region`, and the `Facts` of its text. Out: for two of its sites a `Tie`, or None where neither touches what the
other writes. Apart from the data-flow graph because that must be safe, and this must be true: what may depend there is
here told apart into what does, what would not with a second buffer, and what is not known.

1. *Firm*: the later one reads what the earlier one writes, or changes in place what that reads, or writes what nobody
has read in between. What an operation may read it is taken to read. 2. *A second buffer* would do where the later one
writes all of a buffer first: a copy or a memset over all of it is known to, with nothing read in between. 3. *Not
known* is what touches unknown memory; a kernel that writes a buffer without reading it, which may leave a part as it
was; a piece of a buffer whose bounds are not known where two launches of one kernel, or turns of a loop, are given
different integers; and what the host does with what it was told.
4. Between two turns of a loop the later operation's own turn comes in between: what that frees, or writes all of, does
not come from the turn before. Ranges that turn with the loop do not meet.
"""

from __future__ import annotations

import enum
from collections import defaultdict, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain

from kesco.ir.access import DEVICE_HEAP, Access, AccessMode, Buffer, BufferKind, may_alias
from kesco.ir.flow import Held, Mark, Region, Role, Site, SiteKind
from kesco.ir.poly import ByteRange, Poly, constant
from kesco.parts import apart, apart_in_one_trip, apart_in_turns
from kesco.remarks.facts import Facts, LoopText

_VAGUE = (BufferKind.UNKNOWN, BufferKind.UNSEEN_HOST)
_READ, _WRITE = AccessMode.READ, AccessMode.WRITE


class Grade(enum.IntEnum):
    """How firm a tie is."""

    RENAME = 1
    UNKNOWN = 2
    FIRM = 3


@dataclass(frozen=True, slots=True)
class Tie:
    """Why one operation comes after another; `buffer` is named where a second one would do, or where it is firm."""

    grade: Grade
    why: str
    buffer: str = ""


@dataclass(frozen=True, slots=True)
class Circle:
    """A loop of the region: the site that its turns begin with, all its sites, and its text where that is known."""

    head: int
    body: frozenset[int]
    text: LoopText | None


class Ties:
    """Answers for one region."""

    def __init__(self, region: Region, facts: Facts) -> None:
        self.region, self.facts = region, facts
        self.forward = region.forward()
        self._accesses: dict[int, dict[str, list[Access]]] = {}
        self._writers: defaultdict[str, set[int]] = defaultdict(set)
        self._ranges: defaultdict[str, set[ByteRange | None]] = defaultdict(set)
        self._vague = {s.number: [a for a in s.accesses if a.buffer.kind in _VAGUE] for s in region.sites}
        for site in region.sites:
            mine = self._accesses.setdefault(site.number, {})
            for access in site.accesses:
                mine.setdefault(access.buffer.key, []).append(access)
                self._ranges[access.buffer.key].add(access.bytes)
            for key, found in mine.items():
                if any(a.mode & _WRITE for a in found) and not any(a.mode & _READ for a in found):
                    self._writers[key].add(site.number)
        self._given = {a.buffer for s in region.sites if s.kind is SiteKind.KERNEL for a in s.accesses}
        self._reached: dict[tuple[int, frozenset[int], Circle | None], frozenset[int]] = {}
        self._apart: dict[tuple[ByteRange, ByteRange, str | None], bool] = {}

    def between(self, a: int, b: int, circle: Circle | None = None) -> Tie | None:
        """How `b` depends on `a`, which comes before it; with `circle`, on `a` of the turn before."""
        one, other = self.region.sites[a], self.region.sites[b]
        told = Tie(Grade.UNKNOWN, f"whether the host uses what '{one.label}' tells it in what follows")
        best: Tie | None = told if self._is_told(one) else None
        own = frozenset[str]()
        if one.kind is SiteKind.CALL and other.kind is SiteKind.CALL:
            own = self.facts.made_in(one.operation) | self.facts.made_in(other.operation)
        for x in one.accesses:
            for y in self._meeting(x, other):
                if not (x.mode | y.mode) & _WRITE or x.buffer.key in own:
                    continue
                tie = self._of(one, x, other, y, circle)
                if tie is not None and (best is None or tie.grade > best.grade):
                    best = tie
                if best is not None and best.grade is Grade.FIRM:
                    return best
        return best

    def _meeting(self, x: Access, other: Site) -> Iterable[Access]:
        """The accesses of a site to what may be the same memory."""
        if x.buffer.kind in _VAGUE:
            return (y for y in other.accesses if may_alias(x.buffer, y.buffer))
        same = self._accesses[other.number].get(x.buffer.key, [])
        return chain(same, (y for y in self._vague[other.number] if may_alias(x.buffer, y.buffer)))

    def _of(self, one: Site, x: Access, other: Site, y: Access, circle: Circle | None) -> Tie | None:
        for site in (one, other):
            if site.kind is SiteKind.CALL and site.foreign:
                what = f"'{site.label}': {site.note}" if site.note else f"what '{site.label}' does, which is not seen"
                return Tie(Grade.UNKNOWN, what)
        if x.buffer.kind in _VAGUE or y.buffer.kind in _VAGUE:
            site, access = (one, x) if x.buffer.kind in _VAGUE else (other, y)
            return Tie(Grade.UNKNOWN, f"what '{site.label}' touches ({access.why})")
        buffer = y.buffer
        if buffer.key == DEVICE_HEAP.key:
            return Tie(Grade.UNKNOWN, f"whether '{one.label}' and '{other.label}' hand memory of the device heap on")
        if buffer.kind is BufferKind.ORDER:
            return Tie(Grade.FIRM, buffer.name, buffer.name)
        loop = self._counted(circle) if circle is not None else None
        if self._are_apart(x.bytes, y.bytes, loop) or (circle is not None and self._is_freed(circle, buffer)):
            return None
        if self.facts.only_frees(other):
            return Tie(Grade.FIRM, buffer.name, buffer.name)
        reads = self._reads(other.number, buffer)
        grade, last = self._kept(one, other, buffer, circle)
        if grade is Grade.FIRM and not reads and self._is_used(one.number, other.number, buffer, circle):
            grade, last = (Grade.RENAME, other) if self._covers(other, buffer) else (Grade.UNKNOWN, other)
        if grade is Grade.RENAME:
            return Tie(grade, f"a second buffer for '{buffer.name}'", buffer.name)
        if grade is Grade.UNKNOWN:
            return Tie(grade, f"whether '{last.label}' writes all of '{buffer.name}'")
        if None in (x.bytes, y.bytes) and self._pieces(one, other, circle):
            return Tie(
                Grade.UNKNOWN, f"which part of '{buffer.name}' {'each turn' if circle else 'each of them'} touches"
            )
        if _may_lie_apart(x.bytes, y.bytes):
            what = f"the parts of '{buffer.name}' that '{one.label}' and '{other.label}' touch"
            return Tie(Grade.UNKNOWN, f"whether {what} are apart")
        return Tie(Grade.FIRM, buffer.name, buffer.name)

    def _is_told(self, site: Site) -> bool:
        """Whether the host learns here what the device computed; all that follows may depend on it."""
        if site.held is Held.ALL:  # on a stream or not, the host goes on when it is complete
            return True
        if site.role is not Role.HOST and site.kind is not SiteKind.COPY:
            return False
        wanted = _READ if site.role is Role.HOST else _WRITE
        found = {a.buffer for a in site.accesses if a.mode & wanted and a.buffer.kind is not BufferKind.UNKNOWN}
        if site.kind is SiteKind.COPY:  # what came in is the device's where kernels are given it
            found -= self._given
        return not all(one.on_device for one in found)

    def _reads(self, number: int, buffer: Buffer) -> bool:
        return any(a.mode & _READ for a in self._accesses[number].get(buffer.key, ()))

    def _is_used(self, a: int, b: int, buffer: Buffer, circle: Circle | None) -> bool:
        """Whether something reads a buffer before it is written again: else that only completes or repeats it."""
        if self._reads(a, buffer):
            return True
        if circle is not None:
            return any(self._reads(n, buffer) for n in circle.body)
        between = (n for n in self.reached(a, (), None) if self._reads(n, buffer))
        return any(b in self.reached(n, (), None) for n in between)

    # ---- what lies in between ---------------------------------------------------------------------------------------

    def _kept(self, one: Site, other: Site, buffer: Buffer, circle: Circle | None) -> tuple[Grade, Site]:
        """Whether what a buffer held may still be there: firm where nobody writes all of it in between."""
        writers = {n for n in self._writers[buffer.key] - {other.number} if self._may_cover(n, buffer)}
        start = one.number
        if circle is not None:
            writers, start = writers & circle.body, circle.head
        else:
            writers -= {one.number}
        if not writers:
            return Grade.FIRM, other
        covering = {n for n in writers if self._covers(self.region.sites[n], buffer)}
        if other.number in self.reached(start, writers, circle):
            return Grade.FIRM, other
        if covering and other.number not in self.reached(start, covering, circle):
            return Grade.RENAME, other
        return Grade.UNKNOWN, self.region.sites[min(writers - covering, default=other.number)]

    def _covers(self, site: Site, buffer: Buffer) -> bool:
        """Whether a copy or memset certainly writes all of a buffer that anybody touches."""
        if site.kind not in (SiteKind.COPY, SiteKind.MEMSET):
            return False
        if buffer.kind is BufferKind.SYMBOL:
            return site.bytes is not None and site.bytes == buffer.bytes
        found = [a for a in self._accesses[site.number].get(buffer.key, ()) if a.mode & _WRITE]
        if len(found) != 1 or found[0].bytes is None or buffer.kind is not BufferKind.DEVICE:
            return False
        whole = found[0].bytes
        ends: list[Poly | None] = [buffer.length, constant(buffer.bytes) if buffer.bytes is not None else None]
        return (whole.low.constant == 0 and whole.high in ends) or self._ranges[buffer.key] == {whole}

    def _may_cover(self, number: int, buffer: Buffer) -> bool:
        """Whether what only writes a buffer may write all of it: a copy of a known part does not."""
        site = self.region.sites[number]
        if self.facts.only_frees(site):
            return False
        if site.kind not in (SiteKind.COPY, SiteKind.MEMSET) or self._covers(site, buffer):
            return True
        return any(a.bytes is None for a in self._accesses[number][buffer.key])

    def _is_freed(self, circle: Circle, buffer: Buffer) -> bool:
        """Whether each turn frees a buffer, so that the next one has another."""
        sites = self.region.sites
        frees = {n for n in circle.body if sites[n].kind is SiteKind.FREE and buffer.key in self._accesses[n]}
        others = self.reached(circle.head, frees, circle) - frees
        return bool(frees) and not any(circle.head in self.region.successors[n] for n in others)

    def reached(self, start: int, without: Collection[int], circle: Circle | None) -> frozenset[int]:
        """The sites that control may come to from `start`, not through those of `without`, though to them.

        In one round of every loop; with `circle`, in one turn of that, from its head, which is among them.
        """
        key = (start, frozenset(without), circle)
        known = self._reached.get(key)
        if known is not None:
            return known
        found: set[int] = {start} if circle is not None else set()
        queue = deque([] if start in without else [start])
        while queue:
            for after in self.forward[queue[0]] if circle is None else self.region.successors[queue[0]]:
                if after in found or (circle is not None and (after not in circle.body or after == circle.head)):
                    continue
                found.add(after)
                if after not in without:
                    queue.append(after)
            queue.popleft()
        self._reached[key] = frozenset(found)
        return self._reached[key]

    # ---- pieces -----------------------------------------------------------------------------------------------------

    def _are_apart(self, x: ByteRange | None, y: ByteRange | None, loop: str | None) -> bool:
        """Whether two ranges do not meet, in one trip of every loop or in two trips of this one."""
        if x is None or y is None:
            return False
        key = (x, y, loop)
        if key not in self._apart:
            turns = bool(loop) and loop is not None and _turns(x, loop) and apart_in_turns(x, y, loop)
            self._apart[key] = apart_in_one_trip(x, y) if loop is None else turns or apart(x, y)
        return self._apart[key]

    def _counted(self, circle: Circle) -> str:
        """The name of a loop whose trips are marked."""
        sites = (self.region.sites[n] for n in sorted(circle.body))
        return next((s.loop for s in sites if s.mark is Mark.TURNS), "")

    def _pieces(self, one: Site, other: Site, circle: Circle | None) -> bool:
        """Whether two operations may be told by integers to work on different pieces."""
        if circle is not None:
            return all(self.facts.varies(s.operation, circle.text) for s in (one, other))
        if one.label.partition("#")[0] != other.label.partition("#")[0]:
            return False
        return one.iterations != other.iterations or self.facts.differ(one.operation, other.operation)


def _may_lie_apart(x: ByteRange | None, y: ByteRange | None) -> bool:
    """Whether integers that say nothing of how long two ranges are decide how far they lie apart."""
    if x is None or y is None:
        return False
    return bool((y.low - x.low).symbols - (x.high - x.low).symbols - (y.high - y.low).symbols)


def _turns(part: ByteRange, loop: str) -> bool:
    return any(c.turn is not None and c.turn.loop == loop for c in part.counters)


def circles(region: Region, facts: Facts) -> tuple[Circle, ...]:
    """The loops of a region, in the order of their heads; several may begin with one site."""
    before: list[list[int]] = [[] for _ in region.sites]
    for number, after in enumerate(region.successors):
        for target in after:
            before[target].append(number)
    found: dict[tuple[int, LoopText | None], set[int]] = {}
    for number, after in enumerate(region.forward()):
        for head in set(region.successors[number]) - set(after):
            body = {head}
            work = [number]
            while work:
                one = work.pop()
                if one not in body:
                    body.add(one)
                    work += before[one]
            found.setdefault((head, _text(region, body, facts)), set()).update(body)
    ordered = sorted(found.items(), key=lambda one: (one[0][0], -len(one[1])))
    return tuple(Circle(head, frozenset(body), text) for (head, text), body in ordered)


def _text(region: Region, body: Iterable[int], facts: Facts) -> LoopText | None:
    """The outermost loop of the text all of whose operations, as far as they are sites, are in the body."""
    inside = {region.sites[n].operation for n in body if region.sites[n].operation >= 0}
    every = {s.operation for s in region.sites}
    fits = [t for t in facts.loops if (ours := t.operations & every) and ours <= inside]
    return max(fits, key=lambda t: (len(t.operations & inside), -t.span.start), default=None)

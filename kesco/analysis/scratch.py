"""Which memory is scratch: what each call of a function fills anew, so that calls beside each other may have their own.

In: the program, the activations of all functions, and what decides which bytes kernels touch. Out: `Found`, the
allocations and the pointers to them in the text. A stage of its own since it is about all that a file does with them.

1. Whatever touches such an allocation, but for what allocates and frees it, is in one function that follows its
caller's stream, and is given a pointer that does not change there. 2. Each call first writes to it by one launch,
memset or copy, in bytes that are the same for the same `values`, whatever memory holds. All that touches it otherwise
comes behind that, in the same call, and only reads; or writes where a memset or copy has written all of it. 3. So
whatever it holds beside these bytes is what it held before the first call, in each stream's own as in the one of the
serial program. Whether the values are the same as before is asked as the program runs. 4. No code runs that is not
seen, and no work touches memory that is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kesco.analysis.harmless import Harmless
from kesco.analysis.region import Walked
from kesco.analysis.scratch_text import WORK, Text
from kesco.ir import program as ir
from kesco.ir.access import Access, AccessMode, BufferKind
from kesco.ir.flow import CURRENT, Region, Role, Site, SiteKind
from kesco.ir.kernels import Kernels
from kesco.ir.poly import ByteRange, Poly, constant
from kesco.ir.scratch import EACH, Scratch, allocation

_Place = tuple[str, int, int]  # a function, an operation in it, and an argument


@dataclass(frozen=True, slots=True)
class Found:
    """The keys of the allocations that are scratch, and all pointers to them."""

    buffers: frozenset[str] = frozenset()
    given: tuple[Scratch, ...] = ()


def scratch_of(
    program: ir.Program,
    activations: Mapping[str, Mapping[Any, Walked]],
    kernels: Callable[[], Kernels],
    follow: Collection[str],
    *,
    streams: bool = False,
) -> Found:
    """What is scratch, in a program where these functions `follow`; with `streams`, in a text that says of what."""
    every = [a for known in activations.values() for a in known.values()]
    drafts = [d for a in every for d in a.builder.drafts]
    vague = (b for d in drafts if d.role is not Role.HOST for b, _, _ in d.accesses)
    if not follow or any(d.foreign for d in drafts) or any(b.kind is BufferKind.UNKNOWN for b in vague):
        return Found()
    harmless = Harmless(program)
    bodies = {f.key: Text(program, f, harmless, streams) for f in program.functions if f.here and f.key in follow}
    search = _Search(bodies, activations, kernels, streams)
    search.touch()
    return search.found() if search.places else Found()


def with_own(region: Region, found: Found) -> Region:
    """The region in which calls that may be given streams only read what such memory held before they had any."""
    if not found.buffers:
        return region
    changed = tuple(
        replace(s, accesses=tuple(dict.fromkeys(_of_each(a, found) for a in s.accesses))) if _is_given(s) else s
        for s in region.sites
    )
    return replace(region, sites=changed, scratch=found.given)


def _is_given(site: Site) -> bool:
    """Whether a site is a call that is, or may be, given a stream."""
    return site.kind is SiteKind.CALL and (site.role is Role.MOVABLE or site.holds)


def _of_each(access: Access, found: Found) -> Access:
    if allocation(access.buffer.key) not in found.buffers:
        return access
    return replace(access, mode=AccessMode.READ, why=EACH, bytes=None)


@dataclass(slots=True)
class _Search:
    """What is touched through which pointers, until no more is found that speaks against them."""

    bodies: Mapping[str, Text]
    activations: Mapping[str, Mapping[Any, Walked]]
    kernels: Callable[[], Kernels]
    streams: bool
    places: dict[_Place, set[str]] = field(default_factory=dict)  # and the allocations that they point to
    spoilt: set[str] = field(default_factory=set)

    def touch(self) -> None:
        """Look through which pointers each allocation is touched.

        Whoever else calls a function has the default stream, and there each pointer means what it did.
        """
        for key, known in self.activations.items():
            body = self.bodies.get(key)
            for draft in (d for a in known.values() if body is None or not a.generic for d in a.builder.drafts):
                if draft.role in (Role.ENTRY, Role.EXIT, Role.HOST):
                    continue
                ends = draft.kind is SiteKind.FREE and body is not None
                if ends and (draft.stream == CURRENT or not self.streams):  # it is the function's own
                    self.spoilt |= {buffer.key for buffer, _, _ in draft.accesses}
                if draft.kind in (SiteKind.ALLOC, SiteKind.FREE, SiteKind.CALL):
                    continue  # what a call touches is seen in the function
                for (buffer, why, _), mode in draft.accesses.items():
                    argument = body.argument(draft, why, mode) if body is not None else None
                    if argument is None or (self.streams and draft.stream != CURRENT):
                        self.spoilt.add(buffer.key)
                        continue
                    self.places.setdefault((key, draft.operation, argument), set()).add(buffer.key)
                    if buffer.kind is not BufferKind.DEVICE:
                        self.spoilt.add(buffer.key)

    def found(self) -> Found:
        """What is left; each round takes something away, or is the last."""
        firsts: dict[str, _Place] = {}
        while True:
            bad = {one for one, keys in self.places.items() if not keys.isdisjoint(self.spoilt)}
            lost = {key for one in bad for key in self.places.pop(one)} - self.spoilt
            self.spoilt |= lost
            if lost or bad:
                continue
            if not self.places:
                return Found()
            firsts, wrong = self._firsts()
            if not wrong:
                break
            self.spoilt |= wrong
        first = set(firsts.values())
        given: list[Scratch] = []
        for place, keys in sorted(self.places.items()):
            key, operation, argument = place
            given.append(self.bodies[key].scratch(operation, argument, place in first, frozenset(keys)))
        return Found(frozenset(firsts), tuple(given))

    def _firsts(self) -> tuple[dict[str, _Place], set[str]]:
        """For each allocation where a call first writes to it, and those of which that is not known."""
        firsts: dict[str, _Place] = {}
        wrong: set[str] = set()
        for key in {place[0] for place in self.places}:
            for activation in (a for a in self.activations[key].values() if not a.generic):
                found, several = self._touches(key, activation)
                wrong |= several
                for buffer, touches in found.items():
                    first = self._first(key, buffer, touches)
                    if first is None or firsts.setdefault(buffer, first) != first:
                        wrong.add(buffer)
        starts = set(firsts.values())
        for place, keys in self.places.items():
            told = self.bodies[place[0]].is_told(place[1], place[2], first=place in starts)
            mixed = place in starts and any(firsts.get(key) != place for key in keys)
            if mixed or not told or any(key not in firsts for key in keys):
                wrong |= keys
        return firsts, wrong

    def _touches(self, key: str, activation: Walked) -> tuple[dict[str, list[_Touch]], set[str]]:
        """What touches each allocation, and those of which a pointer may mean another one, too."""
        body = self.bodies[key]
        found: defaultdict[str, list[_Touch]] = defaultdict(list)
        meant: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        for draft in activation.builder.drafts:
            for (buffer, why, part), mode in draft.accesses.items():
                argument = body.argument(draft, why, mode) if draft.kind in WORK else None
                if argument is not None and (key, draft.operation, argument) in self.places:
                    length = constant(buffer.bytes) if buffer.bytes is not None else buffer.length
                    whole = part is not None and length is not None and _is_all(part, length)
                    found[buffer.key].append(_Touch(draft.operation, argument, mode, draft.kind, whole))
                    meant[draft.number, argument].add(buffer.key)
        return found, {key for keys in meant.values() if len(keys) > 1 for key in keys}

    def _first(self, key: str, buffer: str, touches: list[_Touch]) -> _Place | None:
        """Where a call of the function first writes to an allocation, if it does as it must."""
        body = self.bodies[key]
        at = {one.operation: body.index(one.operation) for one in touches}
        start = min(at, key=lambda one: at[one])
        mine = {(t.argument, t.mode) for t in touches if t.operation == start}
        if len(mine) != 1 or list(at.values()).count(at[start]) != 1:
            return None
        argument, mode = next(iter(mine))
        if mode is not AccessMode.WRITE or not body.is_always(start):
            return None
        if not body.is_steered(start, argument, self.kernels().steering):
            return None
        if len({body.word(one.operation, one.argument) for one in touches}) != 1:
            return None  # it might be another one of the allocations of one line
        filled = all(t.whole and t.kind is not SiteKind.KERNEL for t in touches if t.operation == start)
        for one in touches:
            places = (start, argument), (one.operation, one.argument)
            more = one.operation != start and AccessMode.WRITE in one.mode and not filled
            if more and not body.writes_no_more(*places, self.kernels().writes):
                return None
            if not body.keeps_no_address(one.operation, self.kernels().steering):
                return None
        return key, start, argument


def _is_all(part: ByteRange, length: Poly) -> bool:
    return part.low.bounds() == (0, 0) and part.high == length


@dataclass(frozen=True, slots=True)
class _Touch:
    operation: int
    argument: int
    mode: AccessMode
    kind: SiteKind
    whole: bool

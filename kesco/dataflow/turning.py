"""The dependences within parts that turn with a loop (`Parts.turning`): such a loop carries none of them.

In: a region, its parts, and edges of the control-flow graph to leave out. Out: dependences as plain tuples. Apart from
the general walk because there whoever writes a buffer replaces those before it, which is not so where each trip touches
bytes of its own.

Of each such part three pairs of sets are kept, the last writers and those that have read since:

* *now*: what this trip has done. A trip's own accesses follow those of the same trip, and replace them.
* *stay*: what all trips since control came to the loop have done. No trip follows another one, so nothing is replaced.
* *old*: what was done before. Everybody follows it.

A trip begins: *now* is empty. Control comes to the loop: *stay* becomes a part of *old*. An access that does not depend
on the loop's counters, in the loop or outside, follows all of it, and if it writes, replaces all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kesco.ir.access import AccessMode
from kesco.ir.dfg import DependenceKind
from kesco.ir.flow import Held, Mark, Region, Role, is_sure_barrier
from kesco.parts import Parts

Fact = tuple[int, int, DependenceKind, str]  # source, target, kind, buffer key
_Entry = tuple[int, int]  # last writers, readers since: bit i is site i
_NOBODY: _Entry = (0, 0)


@dataclass(frozen=True, slots=True)
class _State:
    now: _Entry = _NOBODY
    stay: _Entry = _NOBODY
    old: _Entry = _NOBODY

    def __or__(self, other: _State) -> _State:
        return _State(_union(self.now, other.now), _union(self.stay, other.stay), _union(self.old, other.old))


@dataclass(frozen=True, slots=True)
class _Touch:
    """How a site touches a part; `own`: only bytes of the trip that it is in."""

    mode: AccessMode
    own: bool


def turning_facts(region: Region, parts: Parts, without: frozenset[tuple[int, int]]) -> set[Fact]:
    """All dependences within the parts that turn with a loop, without these edges."""
    return {fact for key, loop in parts.turning.items() for fact in _Part(region, parts, key, loop).facts(without)}


class _Part:
    """One such part."""

    def __init__(self, region: Region, parts: Parts, key: str, loop: str) -> None:
        self.region, self.key, self.loop = region, key, loop
        self.touches: dict[int, _Touch] = {}
        for site in (s for s in region.sites if s.role is Role.MOVABLE):
            found = [a for a in site.accesses if any(b.key == key for b in parts.touched(a))]
            if found:
                mode = AccessMode.NONE
                for access in found:
                    mode |= access.mode
                self.touches[site.number] = _Touch(mode, all(parts.is_own(a, loop) for a in found))

    def facts(self, without: frozenset[tuple[int, int]]) -> Iterator[Fact]:
        """What depends on what."""
        before: dict[int, _State] = {0: _State()}
        work = [0]
        while work:
            number = work.pop()
            state = self._behind(number, before[number])
            for after in self.region.successors[number]:
                if (number, after) in without:
                    continue
                merged = before[after] | state if after in before else state
                if before.get(after) != merged:
                    before[after] = merged
                    work.append(after)
        for number, touch in self.touches.items():
            if number in before:
                yield from self._depends(number, touch, before[number])

    def _behind(self, number: int, state: _State) -> _State:
        site, touch, bit = self.region.sites[number], self.touches.get(number), 1 << number
        if is_sure_barrier(site):
            return _State()
        if site.mark is not None and site.loop == self.loop:
            if site.mark is Mark.TURNS:
                return replace(state, now=_NOBODY)
            return _State(old=_union(state.old, state.stay))
        if touch is None or site.held is Held.ALL:  # nobody waits for what the host has waited for
            return state
        reads, writes = AccessMode.READ in touch.mode, AccessMode.WRITE in touch.mode
        if touch.own:
            stay = _union(state.stay, (bit * writes, bit * reads))
            now = (bit, 0) if writes else _union(state.now, (0, bit))
            return _State(now, stay, state.old)
        return _State(old=(bit, 0)) if writes else replace(state, old=_union(state.old, (0, bit)))

    def _depends(self, number: int, touch: _Touch, state: _State) -> Iterator[Fact]:
        writers, readers = _union(state.old, state.now if touch.own else state.stay)
        if AccessMode.READ in touch.mode:
            yield from ((source, number, DependenceKind.RAW, self.key) for source in _bits(writers))
        if AccessMode.WRITE in touch.mode:
            yield from ((source, number, DependenceKind.WAR, self.key) for source in _bits(readers))
            yield from ((source, number, DependenceKind.WAW, self.key) for source in _bits(writers))


def _union(a: _Entry, b: _Entry) -> _Entry:
    return (a[0] | b[0], a[1] | b[1])


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low

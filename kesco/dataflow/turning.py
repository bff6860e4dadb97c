"""The dependences within parts of which some ranges turn with a loop (`Parts.turning`): it carries none between them.

In: a region, its parts, and edges of the control-flow graph to leave out. Out: dependences as plain tuples. Apart from
the general walk because there whoever writes a buffer replaces those before it, which is not so where each trip touches
bytes of its own.

Of each such part pairs of sets are kept, the last writers and those that have read since:

* *now*, for each loop: what its trip has done. A trip's own accesses follow those of the same trip, and replace them.
* *stay*, for each loop: what all trips since control came to it have done. No trip follows another one, so nothing is
  replaced.
* *old*: what was done before, and otherwise.

An access that turns with a loop follows what is *now* there, and all that is *old* or of other loops. A trip begins:
*now* is empty. Control comes to the loop: its *stay* becomes a part of *old*. Any other access, in the loop or outside,
follows all of it, and if it writes, replaces all of it.
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
    """See the module; `now` and `stay` have an entry for each loop of the part, in the order of their names."""

    now: tuple[_Entry, ...]
    stay: tuple[_Entry, ...]
    old: _Entry = _NOBODY

    def __or__(self, other: _State) -> _State:
        return _State(_each(self.now, other.now), _each(self.stay, other.stay), _union(self.old, other.old))


@dataclass(frozen=True, slots=True)
class _Touch:
    """How a site touches a part; `loop`: the place of the loop that it turns with, -1 for none."""

    mode: AccessMode
    loop: int


def turning_facts(region: Region, parts: Parts, without: frozenset[tuple[int, int]]) -> set[Fact]:
    """All dependences within the parts that turn with loops, without these edges."""
    return {fact for key in parts.turning for fact in _Part(region, parts, key).facts(without)}


class _Part:
    """One such part."""

    def __init__(self, region: Region, parts: Parts, key: str) -> None:
        self.region, self.key = region, key
        turns = parts.turning[key]
        self.loops = sorted(set(turns.values()))
        self.nothing = _State((_NOBODY,) * len(self.loops), (_NOBODY,) * len(self.loops))
        self.touches: dict[int, _Touch] = {}
        for site in (s for s in region.sites if s.role is Role.MOVABLE):
            found = [a for a in site.accesses if any(b.key == key for b in parts.touched(a))]
            if found:
                mode = AccessMode.NONE
                for access in found:
                    mode |= access.mode
                loops = {turns.get(a.bytes, "") if a.bytes is not None else "" for a in found}
                (loop,) = loops if len(loops) == 1 else ("",)
                self.touches[site.number] = _Touch(mode, self.loops.index(loop) if loop else -1)

    def facts(self, without: frozenset[tuple[int, int]]) -> Iterator[Fact]:
        """What depends on what."""
        before: dict[int, _State] = {0: self.nothing}
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
            return self.nothing
        if site.mark is not None and site.loop in self.loops:
            at = self.loops.index(site.loop)
            now = _with(state.now, at, _NOBODY)
            if site.mark is Mark.TURNS:
                return replace(state, now=now)
            return _State(now, _with(state.stay, at, _NOBODY), _union(state.old, state.stay[at]))
        if touch is None or site.held is Held.ALL:  # nobody waits for what the host has waited for
            return state
        reads, writes, at = AccessMode.READ in touch.mode, AccessMode.WRITE in touch.mode, touch.loop
        if at >= 0:
            stay = _union(state.stay[at], (bit * writes, bit * reads))
            own = (bit, 0) if writes else _union(state.now[at], (0, bit))
            return _State(_with(state.now, at, own), _with(state.stay, at, stay), state.old)
        return replace(self.nothing, old=(bit, 0)) if writes else replace(state, old=_union(state.old, (0, bit)))

    def _depends(self, number: int, touch: _Touch, state: _State) -> Iterator[Fact]:
        before = state.old
        for at, (now, stay) in enumerate(zip(state.now, state.stay, strict=True)):
            before = _union(before, now if at == touch.loop else stay)
        writers, readers = before
        if AccessMode.READ in touch.mode:
            yield from ((source, number, DependenceKind.RAW, self.key) for source in _bits(writers))
        if AccessMode.WRITE in touch.mode:
            yield from ((source, number, DependenceKind.WAR, self.key) for source in _bits(readers))
            yield from ((source, number, DependenceKind.WAW, self.key) for source in _bits(writers))


def _each(a: tuple[_Entry, ...], b: tuple[_Entry, ...]) -> tuple[_Entry, ...]:
    return tuple(map(_union, a, b))


def _with(entries: tuple[_Entry, ...], at: int, entry: _Entry) -> tuple[_Entry, ...]:
    return (*entries[:at], entry, *entries[at + 1 :])


def _union(a: _Entry, b: _Entry) -> _Entry:
    return (a[0] | b[0], a[1] | b[1])


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low

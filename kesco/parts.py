"""Which parts of a buffer are used apart from each other: a `Region` → what each access means to the data-flow graph.

In: the sites of one function with the byte ranges they touch. Out: for each access the *parts* it touches, each a
buffer of its own for whoever looks for dependences. A module of its own because it is the one place where the compiler
decides that two accesses of one allocation cannot meet; the proof decides the same in `verify.ranges`, its own way.

1. Of each buffer take the different ranges. Some of which no two are provably apart are a part, and none more could be
   added. So two ranges share a part where they may meet, and only there: whoever overwrites all of a pool touches each
   of the parts that its users keep apart. Ranges that turn with a loop are in one part with all that they may meet,
   directly or through others.
2. An access with a range touches the parts of its range. One without touches all parts, and what is in none.

Two ranges are apart where one ends before the other begins, *or* one of the two is empty. So that there are bytes in
both may be taken for granted: with lengths of at least 1, the gap is a sum of non-negative multiples of the lengths,
and of something that is never negative.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, islice
from math import gcd

import networkx as nx

from kesco.ir.access import Access, Buffer, BufferKind
from kesco.ir.flow import Region, Role, Site
from kesco.ir.poly import ByteRange, Poly, Symbol, constant, of

_MORE = Symbol("?more", 0, 1 << 63)  # how many trips more than one lie between two
_ANY = (BufferKind.UNKNOWN, BufferKind.UNSEEN_HOST)
_MOST_TURNING = 24  # ranges of a part that are compared by trips
MOST = 256  # different ranges of one buffer; with more it is taken as a whole


class Parts:
    """The parts of all buffers of a region."""

    def __init__(self, region: Region) -> None:
        ranges: defaultdict[Buffer, dict[ByteRange, None]] = defaultdict(dict)
        every: defaultdict[Buffer, set[ByteRange]] = defaultdict(set)  # with those of work that stays where it is
        for site, access in ((s, a) for s in region.sites for a in s.accesses):
            if access.bytes is not None and access.buffer.kind not in (BufferKind.UNKNOWN, BufferKind.ORDER):
                every[access.buffer].add(access.bytes)
                if site.role is Role.MOVABLE:
                    ranges[access.buffer][access.bytes] = None
        self._of: dict[Buffer, dict[ByteRange, tuple[Buffer, ...]]] = {}
        self.whole: dict[str, Buffer] = {}  # a part's key → the buffer that it is a part of
        self.turning: dict[str, dict[ByteRange, str]] = {}  # a part's key → the loops that its ranges turn with
        loops = region.loops if not any(map(_vague, region.sites)) else ()
        for buffer, found in ranges.items():
            divided: list[tuple[list[ByteRange], dict[ByteRange, str]]] = []
            for group in _groups(list(found)) if len(every[buffer]) <= MOST else ():
                turns = _turning(region, buffer, group, loops)
                divided += [(group, turns)] if turns else [(one, {}) for one in _meeting(group)]
            if len(divided) > 1 or any(turns for _, turns in divided):
                self._divide(buffer, divided)

    def _divide(self, buffer: Buffer, divided: list[tuple[list[ByteRange], dict[ByteRange, str]]]) -> None:
        self._of[buffer] = {}
        for number, (ranges, loops) in enumerate(divided):
            part = replace(buffer, key=f"{buffer.key}|{number}")
            self.whole[part.key] = buffer
            for one in ranges:
                self._of[buffer][one] = (*self._of[buffer].get(one, ()), part)
            if loops:
                self.turning[part.key] = loops

    def touched(self, access: Access) -> tuple[Buffer, ...]:
        """The parts that an access touches; the buffer itself stands for what is in no part."""
        known = self._of.get(access.buffer)
        if known is None:
            return (access.buffer,)
        if access.bytes is not None:
            return known[access.bytes]
        return (*dict.fromkeys(part for parts in known.values() for part in parts), access.buffer)


def _groups(ranges: list[ByteRange]) -> Iterator[list[ByteRange]]:
    """The ranges, those together that may overlap, directly or through others."""
    left = ranges
    while left:
        group, left = [left[0]], left[1:]
        for one in group:  # grows while it is walked
            near = [other for other in left if not apart(one, other)]
            group += near
            left = [other for other in left if other not in near]
        yield group


def _meeting(group: list[ByteRange]) -> list[list[ByteRange]]:
    """The largest sets of ranges of which no two are apart; all as one where there are too many such sets."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(group)))
    graph.add_edges_from((a, b) for a, b in combinations(range(len(group)), 2) if not apart(group[a], group[b]))
    found = list(islice(nx.find_cliques(graph), len(group) + 1))
    if len(found) > len(group):  # never so where ranges are intervals of numbers
        return [group]
    return [[group[n] for n in numbers] for numbers in sorted(map(sorted, found))]


def _vague(site: Site) -> bool:
    """Whether movable work may touch any memory: then parts do not say what meets."""
    return site.role is Role.MOVABLE and any(a.buffer.kind in _ANY for a in site.accesses)


def _turning(region: Region, buffer: Buffer, group: list[ByteRange], loops: tuple[str, ...]) -> dict[ByteRange, str]:
    """The ranges of this part of a buffer that are apart in other trips of a loop, with that loop; outer ones first.

    Where the work of one site touches the part in more than one of these ways, none of them counts.
    """
    if not loops:
        return {}
    found: dict[ByteRange, str] = {}
    touched = [[a.bytes for a in s.accesses if a.buffer == buffer] for s in region.sites if s.role is Role.MOVABLE]
    for loop in loops:
        turns = [one for one in group if loop in _loops(one) and one not in found]
        mixed = (
            any(part in turns for part in of_site)
            and any(part not in turns and (part is None or part in group) for part in of_site)
            for of_site in touched
        )
        together = len(turns) <= _MOST_TURNING and all(
            apart_in_turns(a, b, loop) for i, a in enumerate(turns) for b in turns[i:]
        )
        if together and not any(mixed):
            found |= dict.fromkeys(turns, loop)
    return found


def _loops(one: ByteRange) -> frozenset[str]:
    return frozenset(c.turn.loop for c in one.counters if c.turn is not None)


def apart(a: ByteRange, b: ByteRange) -> bool:
    """Whether no byte is in both, whatever the symbols are, and whichever trips of their loops these are."""
    return any(_apart(one, other) for one in _widened(a) for other in _widened(_in_other_trip(b, lambda _: None)))


def apart_in_one_trip(a: ByteRange, b: ByteRange) -> bool:
    """Whether no byte is in both, whatever the symbols are, in one trip of every loop."""
    return any(_apart(one, other) for one in _widened(a) for other in _widened(b))


def apart_in_turns(a: ByteRange, b: ByteRange, loop: str) -> bool:
    """Whether no byte is in both in two different trips of one stay in the loop."""

    def later(counter: Symbol) -> Poly | None:
        turn = counter.turn
        assert turn is not None
        if turn.loop == loop:
            return of(counter) + turn.step + turn.step * of(_MORE)
        inside = next(c.turn.around for r in (a, b) for c in r.counters if c.turn is not None and c.turn.loop == loop)
        return of(counter) if turn.loop in inside else None

    return _is_apart_later(a, b, later) and _is_apart_later(b, a, later)


def apart_in_lanes(a: ByteRange, b: ByteRange, counters: Mapping[str, str]) -> bool:
    """Whether no byte is in both in two trips of loops whose counters have other values, whenever that is.

    `counters` names one for each loop.
    """
    both = [[c for c in one.counters if c.turn is not None and counters.get(c.turn.loop) == c.turn.counter]
            for one in (a, b)]  # fmt: skip
    if any(len(one) != 1 for one in both):
        return False

    def later(first: Symbol, its: Symbol, symbol: Symbol) -> Poly | None:
        return of(first) + constant(1) + of(_MORE) if symbol == its else None

    (here,), (there,) = both
    return _is_apart_later(a, b, partial(later, here, there)) and _is_apart_later(b, a, partial(later, there, here))


def _is_apart_later(one: ByteRange, other: ByteRange, value: Callable[[Symbol], Poly | None]) -> bool:
    """Whether no byte of a range is in the other in a later trip, with `value` as `_in_other_trip` takes it."""
    return any(
        _apart(first, second) for first in _widened(one) for second in _widened(_in_other_trip(other, value))
        if _MORE not in (second.high - second.low).symbols  # a range of one length, whichever trip
    )  # fmt: skip


def as_if_in_one_turn(one: ByteRange, loop: str) -> ByteRange:
    """The range as if all turns of a loop were the same one: what two of them touch then meets."""

    def known(counter: Symbol) -> Poly | None:
        return None if counter.turn is not None and counter.turn.loop == loop else of(counter)

    return _in_other_trip(one, known)


def _in_other_trip(one: ByteRange, value: Callable[[Symbol], Poly | None]) -> ByteRange:
    """The range in another trip: with `value` for each counter, or any other value where that is None."""

    def then(symbol: Symbol) -> Poly:
        found = value(symbol) if symbol.turn is not None else None
        if found is not None or not symbol.counters:
            return of(symbol) if found is None else found
        most = tuple(poly for part in symbol.most if (poly := part.substituted(then)) is not None)
        return of(Symbol(f"{symbol.name}'", symbol.low, symbol.high, most=most))

    low, high = one.low.substituted(then), one.high.substituted(then)
    assert low is not None and high is not None
    return ByteRange(low, high)


def _known_or_itself(known: Mapping[Symbol, Poly], symbol: Symbol) -> Poly:
    return known[symbol] if symbol in known else of(symbol)


def _widened(one: ByteRange) -> Iterator[ByteRange]:
    """The range, and larger ones: where its end is a minimum, either of the two."""
    yield one
    capped = sorted(s for m, factor in one.high.terms for s in m if s.most and len(m) == 1 and factor > 0)
    for symbol in capped[:2]:
        for most in symbol.most:
            high = one.high.substituted(partial(_known_or_itself, {symbol: most}))
            if high is not None and not any(symbol in m for m, _ in one.high.terms if len(m) > 1):
                yield ByteRange(one.low, high)


def _apart(a: ByteRange, b: ByteRange) -> bool:
    sizes = a.high - a.low, b.high - b.low
    if any(size.bounds()[1] <= 0 for size in sizes):
        return True
    beyond = [_beyond_least(size) for size in sizes]
    if _MORE in a.low.symbols | b.low.symbols:  # none of these is negative either
        beyond += [size * of(_MORE) for size in beyond]
    return any(_is_covered(gap, *beyond) for gap in (b.low - a.high, a.low - b.high))


def _beyond_least(size: Poly) -> Poly:
    """How much a length is more than the least that it can be: where it is not 0, what divides all its factors."""
    return size - constant(gcd(*(factor for _, factor in size.terms)))


def _is_covered(gap: Poly, *sizes: Poly) -> bool:
    """Whether `gap` is not negative where none of the sizes is."""
    if gap.bounds()[0] >= 0:
        return True
    if not sizes:
        return False
    first, *others = sizes
    for factor in {Fraction(0), *_ratios(gap, first)}:
        rest = gap.times(factor.denominator) - first.times(factor.numerator)
        if _is_covered(rest, *others):
            return True
    return False


def _ratios(gap: Poly, size: Poly) -> Iterator[Fraction]:
    """How often `size` fits into `gap`, by each of the products that both have."""
    factors = dict(size.terms)
    for monomial, factor in gap.terms:
        ratio = Fraction(factor, factors[monomial]) if monomial and monomial in factors else Fraction(0)
        if ratio > 0:
            yield ratio

"""Which parts of a buffer are used apart from each other: a `Region` → what each access means to the data-flow graph.

In: the sites of one function with the byte ranges they touch. Out: for each access the *parts* it touches, each a
buffer of its own for whoever looks for dependences. A module of its own because it is the one place where the compiler
decides that two accesses of one allocation cannot meet; the proof decides the same in `verify.ranges`, its own way.

1. Of each buffer take the different ranges. Two that are not provably apart belong to one part, and so do two that
   share a third.
2. An access with a range touches the part of its range. One without touches all parts, and what is in none.

Two ranges are apart where one ends before the other begins, *or* one of the two is empty. So that there are bytes in
both may be taken for granted: with lengths of at least 1, the gap is a sum of non-negative multiples of the lengths,
and of something that is never negative.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import gcd

from kesco.ir.access import Access, Buffer, BufferKind
from kesco.ir.flow import Region, Role
from kesco.ir.poly import ByteRange, Poly, constant

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
        self._of: dict[Buffer, dict[ByteRange, Buffer]] = {}
        self.whole: dict[str, Buffer] = {}  # a part's key → the buffer that it is a part of
        for buffer, found in ranges.items():
            groups = list(_groups(list(found))) if len(every[buffer]) <= MOST else []
            if len(groups) > 1:
                self._divide(buffer, groups)

    def _divide(self, buffer: Buffer, groups: list[list[ByteRange]]) -> None:
        self._of[buffer] = {}
        for number, group in enumerate(groups):
            part = replace(buffer, key=f"{buffer.key}|{number}")
            self.whole[part.key] = buffer
            self._of[buffer].update(dict.fromkeys(group, part))

    def touched(self, access: Access) -> tuple[Buffer, ...]:
        """The parts that an access touches; the buffer itself stands for what is in no part."""
        known = self._of.get(access.buffer)
        if known is None:
            return (access.buffer,)
        if access.bytes is not None:
            return (known[access.bytes],)
        return (*dict.fromkeys(known.values()), access.buffer)


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


def apart(a: ByteRange, b: ByteRange) -> bool:
    """Whether no byte is in both, whatever the symbols are."""
    sizes = a.high - a.low, b.high - b.low
    if any(size.bounds()[1] <= 0 for size in sizes):
        return True
    sizes = _beyond_least(sizes[0]), _beyond_least(sizes[1])
    return any(_is_covered(gap, *sizes) for gap in (b.low - a.high, a.low - b.high))


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

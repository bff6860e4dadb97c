"""Whether two byte ranges of one allocation can have a byte in common: the proof's own answer.

In: two ranges, or None for all of a buffer. Out: True only where they cannot. It shares no line with the compiler's
answer (`parts`) and works another way: it looks for the best refutation there is of one kind.

1. Suppose that they have a byte in common. Then both are not empty, and each begins before the other ends: four
   polynomials are at least 1, the lengths at least what divides all their factors.
2. Where these hold for one choice of the symbols' values, nothing can refute them.
3. Else add multiples of the two lengths to an overlap. If what is left is, for all values of the symbols, below what it
   would have to be, the four cannot hold together. What the sum is at most, less what it has to be, is a convex
   function of the two multipliers, in pieces that are linear. So it is smallest where two of the lines meet at which a
   product cancels out or a multiplier is 0, or along one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import gcd

from kesco.ir.poly import ByteRange, Monomial, Poly, Symbol

_Sum = dict[Monomial, int]
_Line = tuple[int, int, int]  # a, b, c: all pairs of multipliers x, y with a*x + b*y + c = 0
_TERMS = 24  # products in all; with more there are too many places to look at
_SAMPLES = (0, 1, 1 << 12, 1 << 20)


def cannot_meet(a: ByteRange | None, b: ByteRange | None) -> bool:
    """Whether no byte is in both ranges, whatever the values of their symbols."""
    if a is None or b is None:
        return False
    lengths = Lengths(a.high - a.low, b.high - b.low)
    overlaps = [a.high - b.low, b.high - a.low]
    if any(_highest(dict(one.terms)) < 1 for one in overlaps) or lengths.cannot_be():
        return True
    if any(_all_positive((*lengths.both, *overlaps), sample) for sample in _SAMPLES):
        return False
    return any(lengths.refute(dict(one.terms)) for one in overlaps)


class Lengths:
    """The lengths of two ranges, neither of which is empty, and what they rule out."""

    def __init__(self, first: Poly, second: Poly) -> None:
        self.both = first, second
        self._x, self._y = dict(first.terms), dict(second.terms)
        self._least = gcd(*self._x.values()), gcd(*self._y.values())

    def cannot_be(self) -> bool:
        """Whether they cannot both be at least what divides all their factors."""
        if _highest(self._x) < 1 or _highest(self._y) < 1:
            return True
        axes = [(1, 0), (0, 1)]
        axes += [(abs(b), abs(a)) for a, b, _ in self._lines({}) if a * b < 0]
        return any(self._beyond({}, Fraction(x), Fraction(y)) < 0 for x, y in axes)

    def refute(self, claim: _Sum) -> bool:
        """Whether ``claim >= 1`` cannot hold beside them."""
        return any(self._beyond(claim, x, y) < 1 for x, y in self._corners(claim))

    def _beyond(self, claim: _Sum, x: Fraction, y: Fraction) -> Fraction:
        """What the claim with `x` and `y` times the lengths is at most, beyond the least that the lengths are."""
        total: dict[Monomial, Fraction] = {}
        for factor, part in ((Fraction(1), claim), (x, self._x), (y, self._y)):
            for monomial, value in part.items():
                total[monomial] = total.get(monomial, Fraction(0)) + factor * value
        return _highest(total) - x * self._least[0] - y * self._least[1]

    def _lines(self, claim: _Sum) -> set[_Line]:
        """Where a product cancels out."""
        products = {*claim, *self._x, *self._y} - {()}
        return {(self._x.get(m, 0), self._y.get(m, 0), claim.get(m, 0)) for m in products}

    def _corners(self, claim: _Sum) -> Iterator[tuple[Fraction, Fraction]]:
        yield Fraction(0), Fraction(0)
        lines = sorted({(1, 0, 0), (0, 1, 0), *self._lines(claim)})
        if len(lines) > _TERMS:
            return
        for (a, b, c), (d, e, f) in combinations(lines, 2):
            turn = a * e - b * d
            if turn:
                x, y = Fraction(b * f - c * e, turn), Fraction(c * d - a * f, turn)
                if x >= 0 and y >= 0:
                    yield x, y


def _all_positive(polys: tuple[Poly, ...], sample: int) -> bool:
    """Whether all are above 0 where each symbol is as near to a number as its bounds allow."""

    def value(symbol: Symbol) -> int:
        return min(max(sample, symbol.low), symbol.high)

    for poly in polys:
        total = 0
        for monomial, factor in poly.terms:
            for symbol in monomial:
                factor *= value(symbol)
            total += factor
        if total < 1:
            return False
    return True


def _highest(total: _Sum | dict[Monomial, Fraction]) -> Fraction:
    """What a sum is at most, from the bounds of its symbols."""
    most = Fraction(0)
    for monomial, factor in total.items():
        low, high = 1, 1
        for symbol in monomial:
            ends = [end * limit for end in (low, high) for limit in (symbol.low, symbol.high)]
            low, high = min(ends), max(ends)
        most += max(factor * low, factor * high)
    return most

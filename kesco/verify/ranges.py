"""Whether two byte ranges of one allocation can have a byte in common: the proof's own answer.

In: two ranges, or None for all of a buffer. Out: True only where they cannot. It shares no line with the compiler's
answer (`parts`) and works another way: by elimination.

1. Suppose that they have a byte in common. Then both are not empty, and each begins before the other ends: four
   polynomials are at least 1.
2. Add up positive multiples of some of them so that one product after the other cancels out. If what is left is below
   1 for all values of the symbols, the four cannot hold together.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from kesco.ir.poly import ByteRange, Monomial, Poly

_ROUNDS = 16
_Sum = dict[Monomial, Fraction]


def cannot_meet(a: ByteRange | None, b: ByteRange | None) -> bool:
    """Whether no byte is in both ranges, whatever the values of their symbols."""
    if a is None or b is None:
        return False
    lengths = [a.high - a.low, b.high - b.low]
    overlaps = [a.high - b.low, b.high - a.low]
    if any(_highest(_fractions(one)) < 1 for one in (*lengths, *overlaps)):
        return True
    return any(_refuted(_fractions(one), lengths) for one in overlaps)


def _fractions(poly: Poly) -> _Sum:
    return {monomial: Fraction(factor) for monomial, factor in poly.terms}


def _refuted(claim: _Sum, lengths: list[Poly]) -> bool:
    """Whether ``claim >= 1`` cannot hold where all lengths are at least 1: adding lengths must bring it below 1."""
    total, most = dict(claim), Fraction(1)  # the sum of what is added is at least `most`
    for _ in range(_ROUNDS):
        if _highest(total) < most:
            return True
        step = next((s for one in lengths if (s := _step(total, _fractions(one))) is not None), None)
        if step is None:
            return False
        factor, length = step
        for monomial, value in length.items():
            total[monomial] = total.get(monomial, Fraction(0)) + factor * value
        most += factor * gcd(*(value.numerator for value in length.values()))  # a length is a multiple of that
    return False


def _step(total: _Sum, length: _Sum) -> tuple[Fraction, _Sum] | None:
    """How much of a length makes one product of the sum vanish; None if none does."""
    for monomial in sorted(total, reverse=True):
        here, there = total[monomial], length.get(monomial, Fraction(0))
        if monomial and here and there and (here < 0) != (there < 0):
            return -here / there, length
    return None


def _highest(total: _Sum) -> Fraction:
    """What a sum is at most, from the bounds of its symbols."""
    most = Fraction(0)
    for monomial, factor in total.items():
        ends = [factor]
        for symbol in monomial:
            ends = [end * limit for end in ends for limit in (symbol.low, symbol.high)]
            ends = [min(ends), max(ends)]
        most += max(ends)
    return most

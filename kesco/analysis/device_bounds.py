"""Bounds of an integer from both sides, each with the conditions under which it holds, and how they combine.

In: `Range`s. Out: a `Range`. Apart from the values they are of (`device_ranges`), which is about instructions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kesco.ir.effects import DIMENSIONS
from kesco.ir.poly import Poly

Condition = tuple[Poly, int]
_DIMENSIONS = frozenset(DIMENSIONS)
_KEPT = 4  # bounds of each side


class Bound(NamedTuple):
    """The value is not beyond this, if each polynomial of `needs` is at most the number beside it."""

    at: Poly
    needs: frozenset[Condition] = frozenset()

    def plus(self, by: Poly, *more: frozenset[Condition]) -> Bound:
        """The bound moved, and with more conditions."""
        return Bound(self.at + by, self.needs.union(*more))


class Range(NamedTuple):
    """Bounds from below and from above, best first; any of each holds, and none means what the type holds."""

    lows: tuple[Bound, ...] = ()
    highs: tuple[Bound, ...] = ()


def joined(one: Range, other: Range, bits: int, signed: bool) -> Range:
    """A value's bounds by both views of it, signed and not: they are of one number where it has no sign bit."""
    unsigned, as_signed = (other, one) if signed else (one, other)
    low = not_negative(as_signed)
    high = next((b for b in unsigned.highs if b.at.bounds()[1] < 1 << (bits - 1)), None)
    if low is None and high is None:
        return one
    needs = low.needs if low is not None else high.needs if high is not None else frozenset()
    lows, highs = ([b.plus(Poly(), needs) for b in side] for side in other)
    return Range(best((*one.lows, *lows)), best((*one.highs, *highs), -1))


def best(bounds: Iterable[Bound], side: int = 1) -> tuple[Bound, ...]:
    """The nearest and simplest of these from below, or from above if `side` is -1; each place once.

    Those come first that need no dimensions of the launch, under few conditions. What is multiplied is not negative: a
    product of more factors is the nearer one from below, and the one further away from above.
    """

    def cost(bound: Bound) -> tuple[int, int, int, int, str]:
        factors = max((len(monomial) for monomial, _ in bound.at.terms), default=0)
        dimensions = len(bound.at.symbols & _DIMENSIONS)
        return dimensions, len(bound.needs), -side * factors, len(bound.at.terms), str(bound.at)

    kept: dict[Poly, Bound] = {}
    for bound in sorted(bounds, key=cost):
        kept.setdefault(bound.at, bound)
    return tuple(kept.values())[:_KEPT]


def hull(parts: list[tuple[Bound, ...]], upper: bool) -> tuple[Bound, ...]:
    """Bounds that hold for every one of several ranges."""
    found: list[Bound] = []
    for candidate in (b for part in parts for b in part):
        needs = all_reach(candidate, [Range(p, p) for p in parts], upper)
        if needs is not None:
            found.append(Bound(candidate.at, candidate.needs | needs))
    return best(found, -1 if upper else 1)


def all_reach(bound: Bound, ranges: list[Range], upper: bool = False) -> frozenset[Condition] | None:
    """The conditions under which none of these goes beyond the bound; None if one may."""
    needs: frozenset[Condition] = frozenset()
    for one in ranges:
        for other in one.highs if upper else one.lows:
            gap = (bound.at - other.at) if upper else (other.at - bound.at)
            if gap.bounds()[0] >= 0:
                needs |= other.needs
                break
        else:
            return None
    return needs


def not_negative(one: Range) -> Bound | None:
    """A bound that shows that a value is not negative."""
    return next((b for b in one.lows if b.at.bounds()[0] >= 0), None)


def product(a: Range, b: Range) -> Range:
    """Of two factors that are not negative, which is a condition where it is not seen; nothing is said of others."""
    low_a, low_b = _floor(a), _floor(b)
    if low_a is None or low_b is None:
        return Range()
    needs = low_a.needs | low_b.needs
    pairs = [
        (low_a, low_b),
        *((x, y) for x in a.lows[:2] for y in _exact(b)),
        *((x, y) for x in _exact(a) for y in b.lows[:2]),
    ]
    lows = (Bound(x.at * y.at, needs.union(x.needs, y.needs)) for x, y in pairs)
    highs = (x.plus(Poly(), needs, y.needs)._replace(at=x.at * y.at) for x in a.highs[:3] for y in b.highs[:3])
    return Range(best(lows), best(highs, -1))


def _floor(one: Range) -> Bound | None:
    """A bound from below that is not negative, or is so under a condition that a launch may meet."""
    known = not_negative(one)
    low = next((b for b in reversed(one.lows) if b.at.bounds()[1] >= 0), None)
    return known or (low and low.plus(Poly(), frozenset({(low.at.times(-1), 0)})))


def _exact(one: Range) -> list[Bound]:
    """What a value is, where that is known."""
    highs = {b.at: b.needs for b in one.highs}
    return [b.plus(Poly(), highs[b.at]) for b in one.lows if b.at in highs][:1]


def fitting(one: Range, bits: int, signed: bool) -> Range:
    """The range of a result that may wrap around: it holds where both ends fit."""
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if not one.lows or not one.highs:
        return Range()
    low = next((b for b in one.lows if b.at.bounds()[0] >= least), one.lows[0])
    high = next((b for b in one.highs if b.at.bounds()[1] <= most), one.highs[0])
    needs = low.needs | high.needs
    if low.at.bounds()[0] < least:
        needs |= {(low.at.times(-1), -least)}
    if high.at.bounds()[1] > most:
        needs |= {(high.at, most)}
    return Range(*(tuple(b.plus(Poly(), needs) for b in side) for side in one))

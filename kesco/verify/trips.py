"""Whether what two accesses touch in different trips of a loop can have a byte in common: the proof's own answer.

In: ranges whose ends may depend on counters of loops (`poly.Turn`). Out: True only where they cannot meet. It shares no
line with the compiler's answer (`parts`) and argues in another way, by induction over the trips that lie between:

1. In trips of which nothing is known, each counter of one of the two is any number.
2. In two trips of one stay in a loop, the later counter is larger by one step or more. The later range is as long
   whichever trip it is; in the very next trip it is beyond the end of the earlier one; and from each trip to the next
   it moves on and never back. So it is beyond that end in all later trips. Or the same, downwards.
3. Where turns of one number are in order (`never_meet_in_lanes`), the same of a counter's value instead of the trips:
whatever else counts is any number then.
4. A length that is the lesser of two may be taken to be either: then the range is larger, if anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import product

from kesco.ir.poly import ByteRange, Poly, Symbol, constant, of
from kesco.verify.ranges import Lengths, cannot_meet

_SKIPPED = Symbol("!skipped", 0, 1 << 63)
Lanes = Collection[tuple[str, str]]
"""Loops, each with its counter: trips in which these have one value are in order."""
_Renaming = Callable[[Symbol], Poly | None]


def never_meet(a: ByteRange | None, b: ByteRange | None) -> bool:
    """Whether no byte is in both ranges, whichever trips of whichever loops they are of."""
    if a is None or b is None:
        return False
    if not a.counters and not b.counters:
        return cannot_meet(a, b)
    other = _renamed(b, lambda counter: None)
    return any(cannot_meet(one, two) for one, two in product(_outlines(a), _outlines(other)))


def never_meet_in_turns(a: ByteRange | None, b: ByteRange | None, loop: str) -> bool:
    """Whether no byte is in both ranges in two different trips of one stay in the loop."""
    if a is None or b is None:
        return False
    around = [c.turn.around for r in (a, b) for c in r.counters if c.turn is not None and c.turn.loop == loop]
    if not all(_turns_with(r, loop) for r in (a, b)) or any(known != around[0] for known in around):
        return False
    return all(
        any(_beyond(one, two, loop, around[0]) for one, two in product(_outlines(first), _outlines(second)))
        for first, second in ((a, b), (b, a))
    )


def never_meet_in_lanes(a: ByteRange | None, b: ByteRange | None, lanes: Lanes) -> bool:
    """Whether no byte is in both ranges in trips whose loops' counters have different values, whenever these are."""
    if a is None or b is None:
        return False
    mine, theirs = _counter(a, lanes), _counter(b, lanes)
    if mine is None or theirs is None:
        return False

    def after(second: ByteRange, its: Symbol, first: Symbol, more: Poly) -> ByteRange:
        return _renamed(second, lambda symbol: of(first) + more if symbol == its else None)

    return all(
        any(_lies_beyond(one, partial(after, two, *named)) for one, two in product(_outlines(first), _outlines(second)))
        for first, second, named in ((a, b, (theirs, mine)), (b, a, (mine, theirs)))
    )


def _counter(one: ByteRange, lanes: Lanes) -> Symbol | None:
    """The counter among these that a range depends on, if it is one only."""
    found = {c for c in one.counters if c.turn is not None and (c.turn.loop, c.turn.counter) in lanes}
    return found.pop() if len(found) == 1 else None


def _turns_with(one: ByteRange, loop: str) -> bool:
    """Whether a range is of a trip of the loop: it depends on one of its counters."""
    return any(c.turn is not None and c.turn.loop == loop for c in one.counters)


def _beyond(first: ByteRange, second: ByteRange, loop: str, around: tuple[str, ...]) -> bool:
    """Whether `second` in all later trips lies on one side of `first`."""

    def after(trips: Poly) -> ByteRange:
        def then(counter: Symbol) -> Poly | None:
            turn = counter.turn
            assert turn is not None
            if turn.loop == loop:
                return of(counter) + turn.step * trips
            return of(counter) if turn.loop in around else None

        return _renamed(second, then)

    return _lies_beyond(first, after)


def _lies_beyond(first: ByteRange, after: Callable[[Poly], ByteRange]) -> bool:
    """Whether a range, so many steps further on, lies on one side of `first` from the first step on."""
    next_one, later, last = after(constant(1)), after(of(_SKIPPED)), after(of(_SKIPPED) + constant(1))
    if _SKIPPED in (later.high - later.low).symbols:
        return False
    lengths = Lengths(first.high - first.low, next_one.high - next_one.low)
    if lengths.cannot_be():
        return True

    def cannot_be_positive(poly: Poly) -> bool:
        return lengths.refute(dict(poly.terms))

    upwards = cannot_be_positive(first.high - next_one.low) and cannot_be_positive(later.low - last.low)
    return upwards or (cannot_be_positive(next_one.high - first.low) and cannot_be_positive(last.low - later.low))


def _renamed(one: ByteRange, renaming: _Renaming) -> ByteRange:
    return ByteRange(_renamed_in(one.low, renaming), _renamed_in(one.high, renaming))


def _renamed_in(poly: Poly, renaming: _Renaming) -> Poly:
    """A polynomial with other counters; what depends on one in a way that is not seen becomes another number."""
    total = Poly()
    for monomial, factor in poly.terms:
        term = constant(factor)
        for symbol in monomial:
            known = renaming(symbol) if symbol.turn is not None else None
            if known is None and symbol.counters:
                limits = tuple(_renamed_in(limit, renaming) for limit in symbol.most)
                known = of(Symbol(f"{symbol.name} of another trip", symbol.low, symbol.high, most=limits))
            term = term * (of(symbol) if known is None else known)
        total = total + term
    return total


def _outlines(one: ByteRange) -> Iterator[ByteRange]:
    """The range, and ranges around it without minima in their ends."""
    choices = [[one.high]]
    for monomial, factor in one.high.terms:
        if len(monomial) == 1 and factor > 0 and monomial[0].most and len(choices) < 3:
            choices.append(
                [of(monomial[0]).times(-factor) + limit.times(factor) for limit in (*monomial[0].most, of(monomial[0]))]
            )
    for high, *changes in product(*choices):
        yield ByteRange(one.low, sum(changes, high))

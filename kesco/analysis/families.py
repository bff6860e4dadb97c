"""Allocations that one call makes again and again and an array holds, told apart by the elements they were stored to.

In: pointers as they go into elements of arrays and come out of them. Out: the same pointers, in another form. A module
of its own because it is the one place where two results of one call are taken to be different memory.

1. A *family* is one object for all that a call allocates into elements of arrays. It is thought of as one piece of
memory in which the allocation for element n begins n times `APART` behind the first: more than any allocation is long.
Two executions of the call that were given elements of different numbers made different memory, so members of different
numbers never meet. Members of one number may be the same.
2. Where such a pointer lies in the element that its number names, the store keeps that in place of a number which turns
with a loop (`filed`): whoever reads any element knows the number of what is there (`found`).
3. What is done through a pointer stays in its allocation, or the program has no meaning (`whole_member`).
4. What a call allocates for a plain variable gets its number later, from the element that it is stored to first
(`newcomer`; `analysis/numbering.py` says when).
"""

from __future__ import annotations

from kesco.ir.poly import APART, ByteRange, Poly, Symbol, constant, of

_ELEMENT = Symbol("?element", -(1 << 63), 1 << 63)  # the number of the element that a pointer lies in

_NEW = Symbol("?new", -(1 << 63), 1 << 63)  # the number that the latest allocation of a call will be given


def member(element: Poly) -> Poly:
    """Where the allocation for an element begins."""
    return element.times(APART)


def newcomer() -> Poly:
    """Where the latest allocation of a call begins, before it has a number."""
    return member(of(_NEW))


def is_new(offset: Poly | None) -> bool:
    """Whether an offset is in an allocation that has no number yet."""
    return offset is not None and _NEW in offset.symbols


def numbered(offset: Poly, element: Poly) -> Poly:
    """An offset in a newcomer that gets the number of an element."""
    return offset - newcomer() + member(element)


def filed(offset: Poly | None, element: Poly | None) -> Poly | None:
    """An offset as an element of this number holds it."""
    if offset is None or element is None or element.constant is not None:
        return offset
    number = _number(offset)
    return offset - member(number) + member(of(_ELEMENT)) if number == element else offset


def found(offset: Poly | None, element: Poly | None) -> Poly | None:
    """An offset as it is read from an element of this number, or of one that is not known."""
    if offset is None or _ELEMENT not in offset.symbols:
        return offset
    number = _number(offset) - of(_ELEMENT)
    rest = offset - member(number + of(_ELEMENT))
    return None if element is None or number.terms else rest + member(element)


def is_settled(offset: Poly) -> bool:
    """Whether an offset says the same in each trip of a loop: a number, maybe in an allocation for its element."""
    return not offset.symbols - {_ELEMENT, _NEW}


def whole_member(offset: Poly | None) -> ByteRange | None:
    """All of the allocation of a family that an offset is in; None where it is in no family."""
    if offset is None or is_new(offset) or not (number := _number(offset)).terms:
        return None
    return ByteRange(member(number), member(number + constant(1)))


def _number(offset: Poly) -> Poly:
    """Which member of a family an offset is in: 0 of what is in none."""
    return Poly(tuple((m, n) for m, f in offset.terms if (n := (f + APART // 2) // APART)))

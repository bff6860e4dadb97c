"""What instructions that only compute make of values: arithmetic, comparisons, casts.

In: an opcode, values and widths. Out: a value, and through `escape` those whose addresses went into a number that no
longer says so. Known numbers are computed as the machine does it; a pointer goes through additions, and through masks
that only align it. Anything else gives a number that is not known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from kesco.analysis.host.contents import signed
from kesco.analysis.host.values import (
    ANYWHERE,
    DISTANCE,
    EITHER,
    NOTHING,
    NUMBER,
    NUMBER_ATOM,
    Atom,
    Pointer,
    Scalar,
    Unknown,
    Value,
    moved,
    offset_of,
    scalar,
    united,
)

Escape = Callable[[Value], None]
Apart = Callable[[Pointer, Pointer], bool]
CAME_IN = ("outside", "symbol", "entry")  # whose addresses others chose: two may be one, or null
_DISTANT: Scalar = frozenset((DISTANCE,))
_MOST = 16  # combinations that are computed one by one


def _divided(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _calculated(op: str, a: int, b: int, bits: int) -> int | None:
    mask = (1 << bits) - 1
    ua, ub = a & mask, b & mask
    if op in ("sdiv", "udiv", "srem", "urem"):
        if not b:
            return None
        if op[0] == "u":
            return ua // ub if op == "udiv" else ua % ub
        return _divided(a, b) if op == "sdiv" else a - b * _divided(a, b)
    if op in ("shl", "lshr", "ashr"):
        if ub >= bits:
            return None
        return a << ub if op == "shl" else ua >> ub if op == "lshr" else a >> ub
    return _SIMPLE[op](a, b) if op in _SIMPLE else None


_SIMPLE: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor,
}  # fmt: skip


def binary(op: str, left: Value, right: Value, bits: int, escape: Escape) -> Scalar:
    """The result of an instruction with two integers."""
    a, b = scalar(left), scalar(right)
    if op[0] == "f" or not bits:
        return NUMBER
    if not a or not b:
        return NOTHING if not a and not b else NUMBER
    if all(type(x) is int for x in a) and all(type(x) is int for x in b) and len(a) * len(b) <= _MOST:
        found: set[Atom] = set()
        for x in a:
            for y in b:
                assert type(x) is int and type(y) is int
                result = _calculated(op, x, y, bits)
                found.add(Unknown("a number") if result is None else signed(result, bits))
        return united(frozenset(found))
    if not any(type(x) is Pointer for x in a | b):
        return _DISTANT if DISTANCE in a or DISTANCE in b else NUMBER
    return _of_pointers(op, a, b, bits, escape)


def _of_pointers(op: str, a: Scalar, b: Scalar, bits: int, escape: Escape) -> Scalar:
    """Arithmetic on integers some of which are addresses."""
    found: set[Atom] = set()
    if op == "sub":  # from which the address is found again only by adding it to one of the others
        others = {y.object for y in b if type(y) is Pointer}
        if others:
            strange = frozenset(x for x in a if type(x) is Pointer and x.object not in others)
            if strange:
                escape(strange)
            if strange or any(type(x) is Unknown for x in a):  # which may be a place in another, too
                found.add(DISTANCE)
            escape = nothing_escapes
    for x in a:
        for y in b:
            found |= _pair(op, x, y, bits, escape)
    return united(frozenset(found))


def nothing_escapes(value: Value) -> None:
    """For what no address can be found from again."""


def _pair(op: str, x: Atom, y: Atom, bits: int, escape: Escape) -> Scalar:
    if type(x) is int and type(y) is int:
        result = _calculated(op, x, y, bits)
        return NUMBER if result is None else frozenset((signed(result, bits),))
    if op == "add" and type(y) is Pointer and type(x) is not Pointer:
        x, y = y, x
    if op == "add" and type(x) is Pointer and type(y) is Unknown:  # which may be the distance to another allocation
        return frozenset((Pointer(x.object, ANYWHERE), DISTANCE))
    if type(x) is Pointer and type(y) is int:
        if op in ("add", "sub"):
            return frozenset((Pointer(x.object, moved(x.offset, (0, y if op == "add" else -y))),))
        if op == "and" and y < 0:  # aligned down: the same object, or just in front of it
            return frozenset((Pointer(x.object, (1, 0)),))
        if op == "or" and 0 <= y < 16:
            return frozenset((Pointer(x.object, (1, 0)),))
    if op == "sub" and type(x) is Pointer and type(y) is Pointer and x.object is y.object and not x.object.many:
        if not x.offset[0] and not y.offset[0]:
            return frozenset((x.offset[1] - y.offset[1],))
        return NUMBER
    escape(frozenset((x, y)))
    return NUMBER


def stepped(base: Value, steps: Sequence[tuple[Value, int]], constant: int, escape: Escape) -> Scalar:
    """An address and so many elements of so many bytes."""
    result = scalar(base)
    if any(DISTANCE in scalar(index) for index, _ in steps):
        result |= {DISTANCE}
    offsets = [(0, constant)]
    addresses: Scalar = NOTHING  # among the steps
    for index, size in steps:
        own: list[tuple[int, int]] = []
        for atom in scalar(index):
            if type(atom) is int:
                own.append((0, atom * size))
            else:
                if type(atom) is Pointer:
                    escape(index)
                    addresses |= {Pointer(atom.object, ANYWHERE)}
                own.append(offset_of(size, 0))
        if not own:
            own = [offset_of(size, 0)]
        offsets = list(dict.fromkeys(moved(o, x) for o in offsets for x in own))
        if len(offsets) > _MOST:
            offsets = [(1, 0)] if len({o[0] for o in offsets}) > 1 else offsets
    found: set[Atom] = set()
    counts = not any(type(one) is Pointer for one in result)  # of a pointer that may be null, null leads nowhere
    for one in result:
        if type(one) is Pointer:
            found.update(Pointer(one.object, moved(one.offset, o)) for o in offsets)
        elif type(one) is Unknown:
            found.add(one)
        else:
            assert type(one) is int
            found |= addresses
            if one or counts:
                found.update(NUMBER_ATOM if o[0] else one + o[1] for o in offsets)
            else:
                found.add(one)
    return united(frozenset(found))


_SIGNED = {"slt": operator.lt, "sle": operator.le, "sgt": operator.gt, "sge": operator.ge}
_FROM_ZERO = {("ult", True): False, ("uge", True): True, ("ugt", False): False, ("ule", False): True}
_UNSIGNED = {"ult": operator.lt, "ule": operator.le, "ugt": operator.gt, "uge": operator.ge}


def compared(relation: str, left: Value, right: Value, bits: int, apart: Apart) -> Scalar:
    """The result of a comparison of integers or pointers; `apart`: whether two places are certainly not one."""
    a, b = scalar(left), scalar(right)
    found: set[Atom] = set()
    if len(a) * len(b) > _MOST * 4:
        return EITHER
    for x in a:
        for y in b:
            one = _compared(relation, x, y, bits, apart)
            if one is None:
                return EITHER
            found.add(int(one))
    return frozenset(found) if found else EITHER


def _compared(relation: str, x: Atom, y: Atom, bits: int, apart: Apart) -> bool | None:
    if type(x) is int and type(y) is int:
        if relation in _SIGNED:
            return bool(_SIGNED[relation](x, y))
        mask = (1 << (bits or 64)) - 1
        if relation in _UNSIGNED:
            return bool(_UNSIGNED[relation](x & mask, y & mask))
        return (x == y) is (relation == "eq")
    if type(x) is Pointer and type(y) is Pointer:
        if x.object is y.object:
            if x.object.many or x.offset[0] or y.offset[0]:
                return None
            # what came in may point into the middle of an allocation: less is in front, with a sign
            return _compared(relation.replace("u", "s"), x.offset[1], y.offset[1], 64, apart)
        return relation == "ne" if relation in ("eq", "ne") and apart(x, y) else None
    place, other = (x, y) if type(x) is Pointer else (y, x)
    if type(place) is Pointer and other == 0 and relation in ("eq", "ne") and place.object.kind not in CAME_IN:
        return relation == "ne"
    if 0 in (x, y):  # nothing is below it
        return _FROM_ZERO.get((relation, y == 0))
    return None


def converted(op: str, value: Value, bits: int, to: int, escape: Escape) -> Value:
    """The result of a cast from so many bits to so many; 0 for what is no integer."""
    if op in ("bitcast", "inttoptr", "addrspacecast", "freeze"):
        return value
    if op in ("ptrtoint", "ptrtoaddr"):
        if to == 64:
            return value
        op = "trunc"
    if op not in ("trunc", "zext", "sext") or isinstance(value, tuple):
        return NUMBER
    found: set[Atom] = set()
    for one in value:
        if type(one) is int:
            if op == "zext" or (op == "sext" and bits == 1):
                one &= (1 << bits) - 1
                one = -one if op == "sext" else one
            found.add(signed(one, to))
        else:
            if type(one) is Pointer:
                escape(value)
            found.add(DISTANCE if one == DISTANCE else Unknown("a number"))
    return united(frozenset(found))

"""What a value of the host may be: a set of numbers, of places in memory, or something that is not known.

A value is a frozen set of *atoms*: an integer; a `Pointer`; an `Unknown`. The empty set is what nobody initialised,
which no correct program uses. An aggregate is a tuple of values.

An `Unknown` stands for any number and for any place that has *escaped*: whose address may be known outside of what is
followed here. Where a pointer is turned into something that its atom does not describe, its object therefore escapes
(`memory.State.escape`). So nothing that an unknown pointer may lead to is ever forgotten.

An offset is a pair (stride, rest): ``(0, n)`` is n, ``(s, r)`` is r plus any multiple of s, and ``(1, 0)`` anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import NamedTuple, TypeAlias

Offset: TypeAlias = tuple[int, int]
ANYWHERE: Offset = (1, 0)
_INTEGERS, _OFFSETS = 6, 4  # kept apart in one value
_LEAST_STRIDE = 2
_FEW = 6  # atoms; what more become is kept, as the same ones meet again and again
_NAMED = "= "


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """Memory, a function, or a resource of CUDA, by where it was made; each is made once, so identity is equality.

    `kind` is stack, heap, global, function, outside, entry (what came in has this name), or what CUDA gives: device,
    managed, pinned, stream, event, symbol; library (a handle) and descriptor. `many`: it stands for several, since its
    site was reached again and again. `visible`: the host may look at it.
    """

    kind: str
    name: str
    number: int
    place: int = -1
    context: int = 0
    many: bool = False
    size: int = -1

    @property
    def visible(self) -> bool:
        """Whether the host reads and writes it by itself."""
        return self.kind in ("stack", "heap", "global", "managed", "pinned", "outside", "entry")

    @property
    def shared(self) -> bool:
        """Whether the device may reach it, too, though the program has not told it."""
        return self.kind in ("managed", "pinned", "entry")


class Pointer(NamedTuple):
    """A place in an object."""

    object: Object
    offset: Offset


class Unknown(NamedTuple):
    """A number, or a pointer to what has escaped."""

    reason: str


Atom: TypeAlias = int | Pointer | Unknown
Scalar: TypeAlias = frozenset[Atom]
Value: TypeAlias = "Scalar | tuple[Value, ...]"

NUMBER_ATOM = Unknown("a number")
EXCEPTION = Unknown("an exception")
BEFORE = Unknown("what was there before main")
DISTANCE = Unknown("the distance between two allocations")  # added to a place in one, it may be a place in the other
STATUS_ATOM = Unknown("the status of a call of CUDA")
NOTHING: Scalar = frozenset()
ZERO: Scalar = frozenset((0,))
ONE: Scalar = frozenset((1,))
EITHER: Scalar = frozenset((0, 1))
NUMBER: Scalar = frozenset((NUMBER_ATOM,))
STATUS: Scalar = frozenset((STATUS_ATOM,))


def named(words: str) -> Scalar:
    """A number that is not known, of which it is known how the program comes by it (`record.Words`)."""
    return frozenset((Unknown(_NAMED + words),))


def name_of(value: Value) -> str:
    """How the program comes by a number; nothing where that is not known."""
    if isinstance(value, frozenset) and len(value) == 1:
        (atom,) = value
        if type(atom) is Unknown and atom.reason.startswith(_NAMED):
            return atom.reason.removeprefix(_NAMED)
    return ""


def nameless(value: Value) -> Value:
    """A value whose numbers are just numbers."""
    if isinstance(value, tuple):
        return tuple(nameless(one) for one in value)
    return frozenset(NUMBER_ATOM if type(a) is Unknown and a.reason.startswith(_NAMED) else a for a in value)


def unknown(reason: str) -> Scalar:
    """A value of which only this is known."""
    return frozenset((Unknown(reason),))


def pointer(to: Object, offset: int = 0) -> Scalar:
    """The address of a place."""
    return frozenset((Pointer(to, (0, offset)),))


def scalar(value: Value) -> Scalar:
    """A value that is no aggregate; what an aggregate holds, if it is one."""
    if isinstance(value, frozenset):
        return value
    found: set[Atom] = set()
    for part in value:
        found |= scalar(part)
    return frozenset(found)


def pointers(value: Value) -> list[Pointer]:
    """The places that a value may be."""
    return [atom for atom in scalar(value) if type(atom) is Pointer]


def objects(value: Value) -> set[Object]:
    """The objects whose addresses a value may hold."""
    return {atom.object for atom in scalar(value) if type(atom) is Pointer}


def is_known(value: Value) -> bool:
    """Whether all that a value may be is described."""
    return not any(type(atom) is Unknown for atom in scalar(value))


def why_unknown(value: Value) -> str:
    """Why a value is not known; nothing where it is."""
    return min((atom.reason for atom in scalar(value) if type(atom) is Unknown), default="")


def number(value: Value) -> int | None:
    """The one integer that a value is, or None."""
    if isinstance(value, frozenset) and len(value) == 1:
        (atom,) = value
        return atom if type(atom) is int else None
    return None


def numbers(value: Value) -> list[int] | None:
    """The integers that a value may be, or None where it may be something else."""
    if not isinstance(value, frozenset) or not value:
        return None
    found = [atom for atom in value if type(atom) is int]
    return found if len(found) == len(value) else None


# ---- offsets


def moved(offset: Offset, by: Offset) -> Offset:
    """The sum of two offsets."""
    stride = gcd(offset[0], by[0])
    total = offset[1] + by[1]
    return (0, total) if not stride else offset_of(stride, total)


def offset_of(stride: int, rest: int) -> Offset:
    """An offset in its one form."""
    if not stride:
        return (0, rest)
    return (stride, rest % stride) if stride >= _LEAST_STRIDE else ANYWHERE


def hull(offsets: Iterable[Offset]) -> Offset:
    """One offset that is all of these."""
    found: Offset | None = None
    for one in offsets:
        if found is None:
            found = one
        elif one != found:
            stride = gcd(found[0], one[0], abs(found[1] - one[1]))
            found = offset_of(stride, one[1])
    assert found is not None
    return found


def scaled(value: Scalar, size: int) -> list[Offset] | None:
    """How far this many elements of a size reach; None where the index holds a pointer."""
    found = []
    for atom in value:
        if type(atom) is int:
            found.append((0, atom * size))
        elif type(atom) is Unknown:
            return [offset_of(size, 0)]
        else:
            return None
    return found


# ---- joining


def joined(a: Value, b: Value, *, widen: bool = False) -> Value:
    """What is either of two values; `widen` lets a sequence of them end soon."""
    if a is b or a == b:
        return a
    if isinstance(a, tuple) or isinstance(b, tuple):
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return tuple(joined(x, y, widen=widen) for x, y in zip(a, b, strict=True))
        if not a or not b:  # one is what nobody initialised
            return a or b
        return united(scalar(a) | scalar(b), widen=widen)
    return united(a | b, widen=widen)


def united(atoms: frozenset[Atom], *, widen: bool = False) -> Scalar:
    """The atoms as a value, those that are too many made fewer."""
    if len(atoms) <= 1:
        return atoms
    return _of_many(atoms, widen) if len(atoms) > _FEW else _united(atoms, widen)


def _united(atoms: Scalar, widen: bool) -> Scalar:
    integers = [one for one in atoms if type(one) is int]
    unknowns = [one for one in atoms if type(one) is Unknown]
    if any(one.reason.startswith(_NAMED) for one in unknowns):
        return united(scalar(nameless(atoms)), widen=widen)
    by: dict[Object, list[Offset]] = {}
    for one in atoms:
        if type(one) is Pointer:
            by.setdefault(one.object, []).append(one.offset)
    found: set[Atom] = set()
    for target, offsets in by.items():
        apart = len(offsets) == 1 or (not widen and len(offsets) <= _OFFSETS and not any(o[0] for o in offsets))
        found.update(Pointer(target, one) for one in (offsets if apart else [hull(offsets)]))
    most, integers_are_zero = 1 if widen else _INTEGERS, not any(integers)  # a status that is 0 says the same
    if len([one for one in integers if one]) > most or (unknowns and integers):
        unknowns.append(NUMBER_ATOM)
        integers = []
    found.update(integers)
    if unknowns:
        others = [one for one in unknowns if one not in (NUMBER_ATOM, STATUS_ATOM)]
        plain = STATUS_ATOM if integers_are_zero and NUMBER_ATOM not in atoms and not others else NUMBER_ATOM
        found.add(DISTANCE if DISTANCE in unknowns else min(others, default=plain))
    return frozenset(found)


_of_many = lru_cache(1 << 14)(_united)

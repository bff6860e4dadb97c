"""How far accesses go: footprints and lengths in terms of the host program's integers.

In: a kernel's `Footprint` and what a launch gives it, or the length of a copy. Out: a `ByteRange`, or None where it may
be anywhere. Apart from the integers themselves because here counts what the device would refuse:

1. A launch happens only with 1 to 2³¹-1 blocks along x. So a dimension that is a number of 32 bits, up to a multiple of
   2³², is that number itself.
2. A copy of 2⁶³ bytes or more fails and touches nothing. So a length that wrapped around from below 0 is an empty
   range.
3. A pointer that moves stays within its allocation, or the program has no meaning. So an index in 64 bits moves it by
   what it is as a signed number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from kesco.analysis.families import whole_member
from kesco.analysis.integers import converted, holds, written_type
from kesco.analysis.memory import Place, Value
from kesco.ir import program as ir
from kesco.ir.effects import DIMENSIONS, Footprint
from kesco.ir.poly import ByteRange, Poly, Symbol, constant, of, unwrapped, wrapped

_AXES = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class LaunchValues:
    """What a launch gives a kernel: its integer arguments by position, and its dimensions, where they are followed.

    `ends` are the least and the most that each argument can be, as its type says.
    """

    arguments: tuple[Poly | None, ...] = ()
    dimensions: tuple[Poly | None, ...] = (None,) * len(DIMENSIONS)
    ends: tuple[tuple[int, int] | None, ...] = ()


def launch_values(
    kernel: ir.Kernel, arguments: list[Value], configuration: list[Value], written: Sequence[ir.Expr] = ()
) -> LaunchValues:
    """The integers of a launch; `configuration` begins with the grid and the block, `written` are the arguments."""
    given = tuple(
        _passed(value.integer, kernel.parameters[at], written_type(written[at]) if at < len(written) else None)
        if at < len(kernel.parameters)
        else None
        for at, value in enumerate(arguments)
    )
    ends = tuple(holds(kind) for kind in kernel.parameters[: len(given)])
    shapes = [*configuration[:2], *([Value()] * 2)][:2]
    return LaunchValues(given, tuple(size for shape in shapes for size in _dimensions(shape)), ends)


def _passed(value: Poly | None, declared: ir.Type, given: ir.Type | None) -> Poly | None:
    """An argument as the parameter holds it, of whose type it may be already."""
    if given is not None and holds(given) is not None and holds(given) == holds(declared):
        return value
    return converted(value, declared)


def _dimensions(shape: Value) -> tuple[Poly | None, ...]:
    if shape.unknown:  # what is known of its members may be out of date
        return (None,) * 3
    if not shape.fields:
        alone = None if shape.places or shape.integer is None else _counted(shape.integer)
        return (alone, *([constant(1)] * 2)) if alone is not None else (None,) * 3
    known = {path: part.integer for path, part in shape.fields}
    sizes = (known.get((axis,)) for axis in _AXES)
    return tuple(None if size is None else _counted(size) for size in sizes)


def _counted(size: Poly) -> Poly | None:
    """A number of blocks or threads, as a launch that happens has it."""
    plain = unwrapped(size, 1 << 32)
    least, most = plain.bounds()
    if least >= -(1 << 31) and most < 1 << 31:
        return plain
    return size if size.bounds()[0] >= 0 and size.bounds()[1] < 1 << 32 else None


def touched(place: Place, footprint: Footprint | None, given: LaunchValues) -> ByteRange | None:
    """The bytes that a launch touches through a pointer to a place."""
    return None if place.path else extent(place.offset, footprint, given) or whole_member(place.offset)


def extent(offset: Poly | None, footprint: Footprint | None, given: LaunchValues) -> ByteRange | None:
    """The bytes that a launch touches through a pointer at an offset in a buffer."""
    if footprint is None or offset is None:
        return None
    for poly, most in footprint.fits:
        values = [poly.substituted(partial(_value, given=given, bounded=by)) for by in (True, False)]
        if not any(value is not None and value.bounds()[1] <= most for value in values):
            return None
    ends = [p.substituted(lambda symbol: _value(symbol, given)) for p in (footprint.bytes.low, footprint.bytes.high)]
    if ends[0] is None or ends[1] is None:
        return None
    return ByteRange(ends[0], ends[1]).moved(offset)


def _value(symbol: Symbol, given: LaunchValues, bounded: bool = False) -> Poly | None:
    """What a symbol of a footprint is in a launch; `bounded`: its bounds will do where it is not known."""
    if symbol in DIMENSIONS:
        size = given.dimensions[DIMENSIONS.index(symbol)]
        return _any(symbol) if size is None and bounded else size
    kind, _, name = symbol.name.partition(" arg")
    index = int(name)
    if not kind or index >= len(given.arguments):
        return None
    value = given.arguments[index]
    if value is None:
        return _any(symbol) if bounded else None
    ends = given.ends[index] if index < len(given.ends) else None
    if not bounded and ends is not None and symbol.low <= ends[0] and ends[1] <= symbol.high:
        return value
    return wrapped(value, symbol.low, symbol.high)


def _any(symbol: Symbol) -> Poly:
    """What is not followed, under a name that no variable of the program has."""
    return of(Symbol(f"?{symbol.name}", symbol.low, symbol.high))


def copied(place: Place, length: Poly | None) -> ByteRange | None:
    """The bytes of a copy or memset of so many bytes, at a place."""
    if length is None or place.offset is None or place.path:
        return None if place.path else whole_member(place.offset)
    plain = unwrapped(length, 1 << 64)
    least, most = plain.bounds()
    if not (least >= -(1 << 63) and most < 1 << 63):
        plain = length
    return ByteRange(place.offset, place.offset + plain)


def distance(size: int | None, index: Poly | None) -> Poly | None:
    """How many bytes a pointer to things of `size` bytes moves by an index."""
    if size is None or index is None:
        return None
    plain = unwrapped(index, 1 << 64)
    least, most = plain.bounds()
    if least >= -(1 << 63) and most < 1 << 63:
        return plain.times(size)
    return index.times(size)

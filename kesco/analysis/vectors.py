"""Vectors of pointers, and of structs that hold them, as arrays: which calls of theirs do nothing but make, size,
grow, ask or reach elements.

In: a call. Out: its value, or None where it is something else: code of the library's, which may change all that it is
given. Apart from the calls because it is a model, not a walk. Where the elements lie changes when a vector grows, not
what they hold: to use an old address of one has no meaning. How many there are is kept beside them.
"""

from __future__ import annotations

from collections.abc import Mapping

from kesco.analysis.aggregates import Aggregates
from kesco.analysis.integers import kind_of
from kesco.analysis.memory import SIZE, TOP, Path, Place, Value, number
from kesco.analysis.state import State
from kesco.ir import program as ir
from kesco.ir.poly import Poly, constant

_MOST = 1 << 62  # more elements than there can be
_WHAT = {
    "resize": "sized", "reserve": "asked", "size": "counted", "empty": "asked", "capacity": "asked",
    "push_back": "grown", "emplace_back": "grown", "clear": "cleared", "operator[]": "element", "front": "first",
    "back": "last",
}  # fmt: skip


def of_pointers(walk: Aggregates, state: State, call: ir.Call) -> Value | None:
    """The value of a call that makes such a vector, gives it a size, asks for that, or for an element."""
    records = walk.program.records
    held = ir.held_by(call.type if call.constructs else _kind(call.receiver), records)
    what = _what(call, held) if held is not None else ""
    if not what or held is None:
        return None
    values = [walk.evaluate(state, argument) for argument in call.arguments]
    if call.receiver is None:
        many = values[0] if values and call.arguments[0] != ir.Literal("default") else number(0)
        return Value(fields=(*_zeros(held, records), ((SIZE,), _sized(many.integer))))
    places, unknown = walk.places(state, call.receiver)
    size_at = frozenset(p.within(SIZE) for p in places)
    size = walk.read_all(state, size_at, unknown).integer
    if what == "element":
        return _elements(places, unknown, values[0].integer)
    if what in ("first", "last"):
        return _elements(places, unknown, constant(0) if what == "first" else _plus(size, -1))
    if what == "grown":
        new = _elements(places, unknown, size)
        walk.assign(state, new.places, new.unknown, walk.made(state, held, values[0]))
        walk.assign(state, size_at, unknown, _sized(_plus(size, 1)))
    elif what == "sized":
        for path, zero in _zeros(held, records):
            walk.assign(state, frozenset(_part(p, path) for p in places), unknown, zero)
        walk.assign(state, size_at, unknown, _sized(values[0].integer))
    elif what == "cleared":
        walk.assign(state, size_at, unknown, number(0))
    return _sized(size) if what == "counted" and size is not None else TOP


def _elements(places: frozenset[Place], unknown: bool, at: Poly | None) -> Value:
    """The elements of this number of vectors at these places."""
    found = None if at is None else at.constant
    return Value(frozenset(p.within(found, at) for p in places), None, unknown)


def _zeros(held: ir.Type, records: Mapping[str, ir.Record]) -> list[tuple[Path, Value]]:
    """What elements begin with."""
    if held.shape is ir.Shape.POINTER:
        return [((None,), number(0))]
    simple = (ir.Shape.POINTER, ir.Shape.INTEGER)
    return [((None, f.name), number(0) if f.type.shape in simple else TOP) for f in records[held.record].fields]


def _part(place: Place, path: Path) -> Place:
    for step in path:
        place = place.within(step)
    return place


def _kind(receiver: ir.Expr | None) -> ir.Type | None:
    return kind_of(receiver) if receiver is not None else None


def _plus(size: Poly | None, more: int) -> Poly | None:
    return None if size is None else size + constant(more)


def _sized(size: Poly | None) -> Value:
    """A number of elements."""
    if size is None or size.bounds()[0] < 0 or size.bounds()[1] > _MOST:
        return TOP
    return number(size.constant) if size.constant is not None else Value(formula=size)


def constructed(program: ir.Program, call: ir.Call) -> ir.Record | None:
    """The class of what a constructor makes, or of its elements."""
    kind = call.type
    while kind is not None and kind.shape is ir.Shape.ARRAY:
        kind = kind.element
    return program.records.get(kind.record) if kind is not None else None


def members(program: ir.Program, call: ir.Call) -> Value:
    """What an object holds whose members have made themselves: vectors of pointers are empty."""
    record = constructed(program, call)
    if record is None or record.bases or record.defaults or call.type is None or call.type.shape is ir.Shape.ARRAY:
        return TOP
    found: list[tuple[Path, Value]] = []
    for one in record.fields:
        held = ir.held_by(one.type, program.records)
        inside = [*_zeros(held, program.records), ((SIZE,), number(0))] if held is not None else []
        found += [((one.name, *path), zero) for path, zero in inside] or [((one.name,), TOP)]
    return Value(fields=tuple(found)) if found else TOP


def _what(call: ir.Call, held: ir.Type) -> str:
    if not call.standard or not call.name.startswith("std::vector::"):
        return ""
    given = [a for a in call.arguments if a != ir.Literal("default")]
    numbers = all(_is_integer(one) for one in given)
    if call.constructs:
        empty = len(given) < 2 or (len(given) == 2 and _is_null(given[1]) and held.shape is ir.Shape.POINTER)
        return "made" if empty and all(map(_is_integer, given[:1])) and call.receiver is None else ""
    name = call.name.rpartition("::")[2]
    what = _WHAT.get(name, "")
    takes = 1 if what in ("sized", "grown", "element") or name == "reserve" else 0
    if what == "grown":
        kind = kind_of(given[0]) if len(given) == 1 else None
        return what if len(given) == 1 and (held.shape is ir.Shape.POINTER or _same(kind, held)) else ""
    return what if len(given) == takes and numbers else ""


def _same(kind: ir.Type | None, held: ir.Type) -> bool:
    """Whether an argument is an element as it is: no other constructor makes one of it."""
    kind = kind.element if kind is not None and kind.shape is ir.Shape.REFERENCE else kind
    return kind is not None and kind.record == held.record


def _is_null(argument: ir.Expr) -> bool:
    return ir.bare(argument) in (ir.Constant(0), ir.Literal("nullptr"))


def _is_integer(argument: ir.Expr) -> bool:
    kind = kind_of(argument)
    return isinstance(argument, ir.Constant) or (kind is not None and kind.shape is ir.Shape.INTEGER)

"""Vectors of pointers as arrays: which calls of theirs do nothing but make, size, ask or reach elements.

In: a call. Out: its value, or None where it is something else: code of the library's, which may change all that it is
given. Apart from the calls because it is a model, not a walk. Where the elements lie changes when a vector grows, not
what they hold: to use an old address of one has no meaning.
"""

from __future__ import annotations

import re

from kesco.analysis.integers import kind_of
from kesco.analysis.memory import TOP, Path, Value, number
from kesco.analysis.places import Places
from kesco.analysis.state import State
from kesco.ir import program as ir

_OF_POINTERS = re.compile(r"(?:const )?std::vector<[^<>]*\*>(?: ?&)?")
_SIZES = ("std::vector::resize", "std::vector::reserve")
_ASKS = ("std::vector::size", "std::vector::empty", "std::vector::capacity")


def of_pointers(walk: Places, state: State, call: ir.Call) -> Value | None:
    """The value of a call that makes a vector of pointers, gives it a size, asks for that, or for an element."""
    what = _what(call)
    if not what:
        return None
    values = [walk.evaluate(state, argument) for argument in call.arguments]
    if call.receiver is None:
        return Value(fields=(((None,), number(0)),))
    places, unknown = walk.places(state, call.receiver)
    if what == "element":
        index = values[0]
        return Value(frozenset(p.within(index.number, index.integer) for p in places), None, unknown)
    if what == "sized":
        walk.assign(state, frozenset(p.within(None) for p in places), unknown, number(0))
    return TOP


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
        vector = _OF_POINTERS.fullmatch(one.type.spelling) is not None
        found.append(((one.name, None), number(0)) if vector else ((one.name,), TOP))
    return Value(fields=tuple(found)) if found else TOP


def _what(call: ir.Call) -> str:
    if not call.standard or not call.name.startswith("std::vector::"):
        return ""
    given = [a for a in call.arguments if a != ir.Literal("default")]
    numbers = all(_is_integer(one) for one in given)
    if call.constructs:
        made = call.type is not None and _OF_POINTERS.fullmatch(call.type.spelling) is not None
        empty = len(given) < 2 or (len(given) == 2 and _is_null(given[1]))
        return "made" if made and empty and all(map(_is_integer, given[:1])) and call.receiver is None else ""
    if call.name == "std::vector::operator[]":
        return "element" if call.type is not None and call.type.shape is ir.Shape.POINTER else ""
    kind = kind_of(call.receiver) if call.receiver is not None else None
    if kind is None or not _OF_POINTERS.fullmatch(kind.spelling):
        return ""
    if call.name in _SIZES and numbers and len(given) == 1:
        return "sized"
    return "asked" if call.name in _ASKS else ""


def _is_null(argument: ir.Expr) -> bool:
    while isinstance(argument, ir.Cast):
        argument = argument.operand
    return argument in (ir.Constant(0), ir.Literal("nullptr"))


def _is_integer(argument: ir.Expr) -> bool:
    kind = kind_of(argument)
    return isinstance(argument, ir.Constant) or (kind is not None and kind.shape is ir.Shape.INTEGER)

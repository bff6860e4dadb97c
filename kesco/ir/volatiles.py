"""Which lvalues are volatile: reading or writing one is something that others may watch.

In: an expression. Out: whether it names an object of a volatile type. Another process, a signal handler or a thread of
another file may wait for such an access and then expect what came before it, as C++ says of all observable behaviour.
Apart because the analysis asks, and the proof does for itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from kesco.ir import tree as ir
from kesco.ir.types import Record, Shape, Type

_POINTS = (Shape.POINTER, Shape.ARRAY)


def is_volatile(expression: ir.Expr) -> bool:
    """Whether an expression names an object that is volatile, as a whole or in its elements."""
    if not isinstance(expression, (ir.Name, ir.Select, ir.Subscript, ir.Dereference)):
        return False
    return is_volatile_type(type_of(expression))


def is_volatile_type(kind: Type | None) -> bool:
    """Whether a type is volatile, as a whole or in its elements."""
    while kind is not None and kind.shape is Shape.ARRAY and not kind.volatile:
        kind = kind.element
    return kind is not None and kind.volatile


def points_to_volatile(expression: ir.Expr, records: Mapping[str, Record]) -> bool:
    """Whether a pointer, before it is converted, points to what is volatile or atomic."""
    inside = isinstance(expression, ir.Cast) and points_to_volatile(expression.operand, records)
    return inside or is_watched(type_of(expression), records)


def is_watched(kind: Type | None, records: Mapping[str, Record]) -> bool:
    """Whether a type is a pointer to what is volatile or atomic, or has such members."""
    return _watched(_element(kind), records, frozenset())


def _watched(kind: Type | None, records: Mapping[str, Record], around: frozenset[str]) -> bool:
    while kind is not None and kind.shape is Shape.ARRAY and not kind.volatile:
        kind = kind.element
    if kind is None or kind.volatile or "atomic" in kind.spelling:
        return kind is not None
    record = records.get(kind.record) if kind.shape is Shape.RECORD and kind.record not in around else None
    return record is not None and any(_watched(f.type, records, around | {kind.record}) for f in record.fields)


def type_of(expression: ir.Expr) -> Type | None:
    """The type of an expression, references aside; None where the tree does not say."""
    match expression:
        case ir.Name():
            kind: Type | None = expression.variable.type
        case ir.Select() | ir.Cast() | ir.Binary() | ir.Call():
            kind = expression.type
        case ir.Assign():
            kind = type_of(expression.target)
        case ir.Branch():
            kind = type_of(expression.then) or type_of(expression.other)
        case ir.Decay():
            kind = type_of(expression.array)
        case ir.Subscript():
            kind = _element(type_of(expression.base))
        case ir.Dereference():
            kind = _element(type_of(expression.pointer))
        case _:
            return None
    return kind.element if kind is not None and kind.shape is Shape.REFERENCE else kind


def _element(kind: Type | None) -> Type | None:
    return kind.element if kind is not None and kind.shape in _POINTS else None

"""Structs and arrays as a whole: what a list in braces makes of them.

In: the value of a list, whose items have numbers, and the type of what it becomes. Out: the value by names of members.
Apart from objects with constructors because no code runs here.
"""

from __future__ import annotations

from kesco.analysis.evaluate import Evaluator
from kesco.analysis.memory import NOTHING, TOP, Value
from kesco.analysis.state import State
from kesco.ir import program as ir


class Aggregates(Evaluator):
    """Gives lists the shape of their types; calls are left to the subclass."""

    def made(self, state: State, declared: ir.Type, value: Value) -> Value:
        """A value as an object of a type begins with it; what is not followed into it has escaped."""
        inside = self.shaped(declared, value)
        if value.every_place() - inside.every_place():
            self.escape_values(state, value)
        return inside

    def shaped(self, declared: ir.Type, value: Value) -> Value:
        """An initialiser list's items by number become a record's fields by name;

        Lists without inner braces are unknown.
        """
        if not value.fields or not any(path and isinstance(path[0], int) for path, _ in value.fields):
            return value
        record = self.program.records.get(declared.record) if declared.shape is ir.Shape.RECORD else None
        if record is None and declared.shape is not ir.Shape.ARRAY:
            return value
        items: dict[int, list[tuple[tuple[str | int | None, ...], Value]]] = {}
        for path, part in value.fields:
            if not path or not isinstance(path[0], int):
                return TOP
            items.setdefault(path[0], []).append((path[1:], part))
        fields: list[tuple[tuple[str | int | None, ...], Value]] = []
        for index, parts in items.items():
            if record is not None and index >= len(record.fields):
                return TOP
            step: str | int = index if record is None else record.fields[index].name
            kind = declared.element if record is None else record.fields[index].type
            whole = next((v for p, v in parts if not p), NOTHING)
            inner = Value(whole.places, whole.number, whole.unknown, tuple((p, v) for p, v in parts if p))
            nested = kind is not None and kind.shape in (ir.Shape.RECORD, ir.Shape.ARRAY)
            if kind is None or (nested and not inner.fields and not inner.unknown):
                return TOP
            made = self.shaped(kind, self.stored(kind, inner))
            fields.append(((step,), Value(made.places, made.number, made.unknown)))
            fields += [((step, *p), v) for p, v in made.fields]
        return Value(value.places, value.number, value.unknown, tuple(fields))

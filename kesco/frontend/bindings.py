"""Structured bindings: ``auto [a, b] = f();`` → the declarations that it stands for.

In: the cursor of the declaration. Out: a declaration of the object that has no name, and one for each name. Apart from
other declarations because libclang shows nothing but the names and the initialiser.

1. The object is a variable, or a reference. 2. Each name is a member or an element of it: a reference to that, or a
variable with its value where the object is a plain one that nothing else can name. 3. What the standard library takes
apart with ``std::get`` is what that call gives. It refuses static objects, bit-fields, arrays of objects, and classes
of a program that says itself how they are taken apart.
"""

from __future__ import annotations

from dataclasses import replace

from clang.cindex import Cursor, CursorKind

from kesco.frontend import clang
from kesco.frontend.clang import kind_of
from kesco.frontend.statement_expressions import PLAIN, StatementExpressions
from kesco.ir import program as ir

K = CursorKind


def is_binding(cursor: Cursor) -> bool:
    """Whether a declaration is a structured binding as a whole."""
    return kind_of(cursor) is K.UNEXPOSED_DECL and str(cursor.spelling).startswith("[")


class Bindings(StatementExpressions):
    """Lowers structured bindings; statements are left to the subclass."""

    def decomposed(self, cursor: Cursor, given: ir.Expr | None = None) -> list[ir.Stmt] | None:
        """The declarations, or None; a range-based ``for`` has `given` the initial value."""
        initial = clang.initializer(cursor) if is_binding(cursor) else None
        names = [c for c in cursor.get_children() if kind_of(c) is K.UNEXPOSED_DECL]
        if initial is None or not names:
            return None
        whole = self.variable(cursor)
        refers = whole.type.shape is ir.Shape.REFERENCE
        shape = whole.type.element if refers and whole.type.element is not None else whole.type
        if whole.scope is not ir.Scope.LOCAL or not self._may_be_taken_apart(cursor, shape, len(names)):
            return None
        if given is None:
            copied = shape.shape is ir.Shape.ARRAY and not refers and kind_of(initial) is K.UNEXPOSED_EXPR
            first = self.children(initial)[0] if copied else initial
            given = self.lower(first) if refers or copied else self.value(first)
        found: list[ir.Stmt] = [ir.Declare(self.span(cursor), whole, given)]
        record = self.types.records.get(shape.record) if shape.shape is ir.Shape.RECORD else None
        plain = not refers and (record is None or (record.plain and not record.standard and not record.destructor))
        for index, name in enumerate(names):
            variable, part = self.variable(name), self._part(whole, shape, index, name)
            if not plain or variable.type.shape not in PLAIN:
                reference = ir.Type(ir.Shape.REFERENCE, f"{variable.type.spelling} &", variable.type)
                variable = replace(variable, type=reference)
            self.variables[variable.key] = variable
            self.bound.add(variable.key)
            found.append(ir.Declare(self.span(name), variable, part))
        return found

    def _may_be_taken_apart(self, cursor: Cursor, shape: ir.Type, count: int) -> bool:
        if shape.shape is ir.Shape.ARRAY:
            return shape.element is not None and shape.element.shape in PLAIN
        record = self.types.records.get(shape.record) if shape.shape is ir.Shape.RECORD else None
        if record is None or record.standard:
            return record is not None
        declared = cursor.type.get_canonical()
        declared = declared if declared.get_declaration().get_usr() else declared.get_pointee().get_canonical()
        bits = any(kind_of(c) is K.FIELD_DECL and c.is_bitfield() for c in clang.members(declared.get_declaration()))
        own = any(b"tuple_size" in text for text in (self.source.text, *self.source.user_headers()))
        return len(record.fields) == count and not (record.ambiguous or bits or own)

    def _part(self, whole: ir.Variable, shape: ir.Type, index: int, name: Cursor) -> ir.Expr:
        span = self.span(name)
        base = ir.Name(whole, span)
        if shape.shape is ir.Shape.ARRAY:
            return ir.Subscript(base, ir.Constant(index), True, span)
        record = self.types.records[shape.record]
        if not record.standard:
            field = record.fields[index]
            return ir.Select(base, field.name, False, field.type)
        number = self._operation(name, None)
        given = self.types.lower(name.type)
        return ir.Call("std::get", "", (base,), span, number, standard=True, type=given, references=(True,),
                       reference=True)  # fmt: skip

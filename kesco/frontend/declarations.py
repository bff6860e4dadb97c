"""Declared variables: libclang cursors → `ir.types.Variable`.

In: the cursor of a variable or parameter, wherever it is declared. Out: the one value that stands for it in the whole
file.
"""

from __future__ import annotations

import re

from clang.cindex import Cursor, CursorKind, StorageClass, TypeKind

from kesco.frontend import clang
from kesco.frontend.clang import SourceFile, kind_of
from kesco.frontend.operations import span_of
from kesco.frontend.types import TypeTable
from kesco.ir import program as ir

K = CursorKind
_LAMBDA = re.compile(r"\(lambda at [^)]*\)")  # clang names closures by their place
_SYMBOL_ATTRIBUTES = {K.CUDADEVICE_ATTR, K.CUDACONSTANT_ATTR, K.CUDASHARED_ATTR}


class Declarations:
    """Collects the variables of one file."""

    def __init__(self, source: SourceFile, types: TypeTable) -> None:
        self.source, self.types = source, types
        self.variables: dict[str, ir.Variable] = {}

    def variable(self, cursor: Cursor) -> ir.Variable:
        """The variable declared by (or referred to as) `cursor`."""
        cursor = cursor.canonical
        key = cursor.get_usr() or f"{cursor.spelling}@{cursor.location.offset}"
        if kind_of(cursor) in (K.VAR_DECL, K.PARM_DECL) and not key.startswith("c:@"):
            key = f"{key}@{cursor.location.offset}"
        found = self.variables.get(key)
        if found is None:
            found = self.variables[key] = self._declare(cursor, key)
        return found

    def _declare(self, cursor: Cursor, key: str) -> ir.Variable:
        parent = cursor.semantic_parent
        kind = kind_of(cursor)
        attributes = {kind_of(c) for c in cursor.get_children()}
        outer = parent is None or kind_of(parent) in (
            K.TRANSLATION_UNIT, K.NAMESPACE, K.STRUCT_DECL, K.CLASS_DECL, K.LINKAGE_SPEC, K.UNEXPOSED_DECL,
        )  # fmt: skip
        managed = "managed" in self._written_before(cursor)
        if kind is K.PARM_DECL:
            scope = ir.Scope.PARAMETER
        elif attributes & _SYMBOL_ATTRIBUTES or managed:
            scope = ir.Scope.SYMBOL
        elif outer:
            scope = ir.Scope.GLOBAL
        else:
            scope = ir.Scope.STATIC if cursor.storage_class == StorageClass.STATIC else ir.Scope.LOCAL
        kind_type = cursor.type
        value = None
        if (
            kind is K.VAR_DECL
            and kind_type.is_const_qualified()
            and kind_type.get_canonical().kind is not TypeKind.RECORD
        ):
            lowered = self.types.lower(kind_type)
            if lowered.shape is ir.Shape.INTEGER and not self._dependent(cursor):
                value = clang.constant(cursor)
        internal = scope is not ir.Scope.GLOBAL or cursor.linkage.name in ("INTERNAL", "NO_LINKAGE", "UNIQUE_EXTERNAL")
        mangled = cursor.mangled_name if scope is ir.Scope.SYMBOL else ""
        return ir.Variable(
            key, cursor.spelling, self.types.lower(kind_type), scope, span_of(self.source.path, cursor), internal,
            value, mangled, managed, qualified_name(cursor),
        )  # fmt: skip

    def _written_before(self, cursor: Cursor) -> str:
        """The declaration's specifiers when it may be a ``__managed__`` one; libclang shows no attribute for that."""
        start = cursor.extent.start.offset
        if not self.source.is_here(cursor):
            return ""
        line = self.source.text.rfind(b"\n", 0, start) + 1
        return (
            self.source.text[line : cursor.location.offset].decode("utf-8", "replace")
            if b"__managed__" in (self.source.text[line : cursor.location.offset])
            else ""
        )

    def _dependent(self, cursor: Cursor) -> bool:
        at = cursor.semantic_parent
        while at is not None and kind_of(at) is not K.TRANSLATION_UNIT:
            if kind_of(at) in (K.FUNCTION_TEMPLATE, K.CLASS_TEMPLATE, K.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION):
                return True
            at = at.semantic_parent
        return False


def qualified_name(cursor: Cursor) -> str:
    """``ns::Class::name`` of a declaration."""
    parts: list[str] = []
    at: Cursor | None = cursor
    while at is not None and kind_of(at) is not K.TRANSLATION_UNIT:
        if at.spelling:
            parts.append(_LAMBDA.sub("lambda", at.spelling))
        at = at.semantic_parent
    return "::".join(reversed(parts))

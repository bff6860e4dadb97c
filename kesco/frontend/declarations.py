"""Declared variables: libclang cursors → `ir.types.Variable`.

In: the cursor of a variable or parameter, wherever it is declared. Out: the one value that stands for it in the whole
file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from clang.cindex import Cursor, CursorKind, StorageClass, TLSKind, TypeKind
from clang.cindex import Type as ClangType

from kesco.frontend import clang
from kesco.frontend.clang import SourceFile, kind_of
from kesco.frontend.operations import span_of
from kesco.frontend.types import TypeTable, is_standard
from kesco.ir import program as ir

K = CursorKind
_LAMBDA = re.compile(r"\(lambda at [^)]*\)")  # clang names closures by their place
_SYMBOL_ATTRIBUTES = {K.CUDADEVICE_ATTR, K.CUDACONSTANT_ATTR, K.CUDASHARED_ATTR}
CLASSES = frozenset(
    {K.STRUCT_DECL, K.CLASS_DECL, K.UNION_DECL, K.CLASS_TEMPLATE, K.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION}
)
FUNCTIONS = frozenset(
    {K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.FUNCTION_TEMPLATE, K.CONVERSION_FUNCTION}
)
_RANGE = re.compile(r"(?:const )?std::(?:__\w+::)*(\w+)<(.*)>")
_OWN_ARGUMENTS = {  # the template arguments of a container that do not change what iterating over it does
    "vector": 1, "deque": 1, "list": 1, "forward_list": 1, "set": 1, "multiset": 1, "unordered_set": 1, "map": 2,
    "multimap": 2, "unordered_map": 2, "array": 2, "span": 2, "initializer_list": 1, "basic_string": 1,
    "basic_string_view": 1, "valarray": 1,
}  # fmt: skip


class Declarations:
    """Collects the variables of one file."""

    def __init__(self, source: SourceFile, types: TypeTable) -> None:
        self.source, self.types = source, types
        self.variables: dict[str, ir.Variable] = {}
        self._declared: dict[str, list[Cursor]] = {}

    def variable(self, cursor: Cursor) -> ir.Variable:
        """The variable declared by (or referred to as) `cursor`."""
        cursor = cursor.canonical
        key = cursor.get_usr() or f"{cursor.spelling}@{cursor.location.offset}"
        if kind_of(cursor) in (K.VAR_DECL, K.PARM_DECL) and not key.startswith("c:@"):
            key = f"{key}@{cursor.location.offset}"
        if not key.startswith("c:@"):
            key += self._which(key, cursor)
        found = self.variables.get(key)
        if found is None:
            found = self.variables[key] = self._declare(cursor, key)
        return found

    def _which(self, key: str, cursor: Cursor) -> str:
        """What tells a variable from others of its name that come out of the same macro invocation."""
        known = self._declared.setdefault(key, [])
        if cursor not in known:
            known.append(cursor)
        number = known.index(cursor)
        return f"#{number}" if number else ""

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
        elif outer or cursor.storage_class == StorageClass.EXTERN:
            scope = ir.Scope.GLOBAL
        else:
            kept = cursor.storage_class == StorageClass.STATIC or cursor.tls_kind != TLSKind.NONE
            scope = ir.Scope.STATIC if kept else ir.Scope.LOCAL
        kind_type = _named_type(cursor)
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
        alone = not managed and (cursor.storage_class == StorageClass.STATIC or not self.source.relocatable)
        mangled = cursor.mangled_name if scope is ir.Scope.SYMBOL else ""
        return ir.Variable(
            key, cursor.spelling, self.types.lower(kind_type), scope, span_of(self.source, cursor), internal,
            value, mangled, managed, qualified_name(cursor), K.CUDACONSTANT_ATTR in attributes and alone,
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

    def range_runs_code(self, over: Cursor, variable: Cursor) -> bool:
        """Whether a range-based ``for`` calls functions that no call in the text names: ``begin``, ``++``, ``*``, …"""
        shape = self.types.lower(over.type)
        if shape.shape is not ir.Shape.ARRAY:
            record = self.types.records.get(shape.record)
            written = _RANGE.fullmatch(shape.spelling)
            if record is None or not record.standard or written is None:
                return True
            if _arguments(written[2]) > _OWN_ARGUMENTS.get(written[1], 0):
                return True
        first = clang.initializer(variable)
        return first is not None and any(self._calls_user_code(n) for n in first.walk_preorder())

    def _calls_user_code(self, cursor: Cursor) -> bool:
        if kind_of(cursor) is not K.CALL_EXPR:
            return False
        target = cursor.referenced
        if target is None:
            return True
        record = self.types.records.get(self.types.lower(cursor.type).record)
        if kind_of(target) is K.CONSTRUCTOR:
            return record is None or not (record.plain or (record.standard and not record.destructor))
        return not is_standard(target)

    def _dependent(self, cursor: Cursor) -> bool:
        for at in (cursor.semantic_parent, cursor.lexical_parent):  # a friend's is the class it is written in
            while at is not None and kind_of(at) is not K.TRANSLATION_UNIT:
                if kind_of(at) in (K.FUNCTION_TEMPLATE, K.CLASS_TEMPLATE, K.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION):
                    return True
                at = at.semantic_parent
        return False


def functions_within(cursor: Cursor) -> Iterator[Cursor]:
    """The functions that a class declares: its members, its friends, and those of the classes in it."""
    for child in cursor.get_children():
        kind = kind_of(child)
        if kind in FUNCTIONS:
            yield child
        elif kind in CLASSES or kind is K.FRIEND_DECL:
            yield from functions_within(child)


def _arguments(inside: str) -> int:
    """How many template arguments stand between angle brackets."""
    depth, count = 0, 1
    for letter in inside:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        count += letter == "," and not depth
    return count


def qualified_name(cursor: Cursor) -> str:
    """``ns::Class::name`` of a declaration."""
    parts: list[str] = []
    at: Cursor | None = cursor
    while at is not None and kind_of(at) is not K.TRANSLATION_UNIT:
        if at.spelling:
            parts.append(_LAMBDA.sub("lambda", at.spelling))
        at = at.semantic_parent
    return "::".join(reversed(parts))


def _named_type(cursor: Cursor) -> ClangType:
    """The type of a variable; of ``decltype(x)`` in a template that of x, which libclang does not go on to."""
    found = cursor.type
    if not found.spelling.startswith("decltype(") or found.get_canonical().spelling != found.spelling:
        return found
    inner = [c.referenced for c in cursor.get_children() if kind_of(c) is K.DECL_REF_EXPR]
    whole = len(inner) == 1 and inner[0] is not None and found.spelling == f"decltype({inner[0].spelling})"
    return inner[0].type if whole else found

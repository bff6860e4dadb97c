"""Functions: libclang cursors → `ir.program.Function`.

In: the cursor of a host function with a body, in the named file, in a header or instantiated from a template. Out: its
parameters and lowered body. Only what stands in the named file itself can be edited.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from clang.cindex import Cursor, CursorKind

from kesco.frontend import clang
from kesco.frontend.clang import SourceFile, file_place, kind_of
from kesco.frontend.declarations import CLASSES, qualified_name
from kesco.frontend.operations import span_of
from kesco.frontend.statements import Statements
from kesco.frontend.types import TypeTable
from kesco.ir import program as ir

K = CursorKind
_CODE = (K.CALL_EXPR, K.LAMBDA_EXPR, K.CXX_NEW_EXPR, K.UNARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR)
DEEPEST = 5000
"""How deep expressions and statements may nest. The interpreter's own limit would end in the middle of a call of
libclang, which loses the cursors that it was about to return."""


class Functions(Statements):
    """Lowers functions; statements come from the base class."""

    def __init__(self, source: SourceFile, types: TypeTable) -> None:
        super().__init__(source, types)
        self._texts: dict[str, bytes] = {source.path: source.text}
        self.first: dict[str, tuple[str, int]] = {}  # where each function is declared for the first time

    _depth = 0

    def lower(self, cursor: Cursor) -> ir.Expr:
        """The expression at `cursor`; raises `RecursionError` for one that is nested too deeply."""
        self._deeper()
        try:
            return super().lower(cursor)
        finally:
            self._depth -= 1

    def _statement(self, cursor: Cursor) -> ir.Stmt:
        self._deeper()
        try:
            return super()._statement(cursor)
        finally:
            self._depth -= 1

    def _deeper(self) -> None:
        if self._depth >= DEEPEST:
            raise RecursionError
        self._depth += 1

    def function(self, cursor: Cursor, method_of: str, *, here: bool = True) -> ir.Function | None:
        """The function defined at `cursor`, or None when it has no body; unless `here`, nothing in it is editable."""
        before = len(self.operations)
        self.text = self.source.text if here else self._file_text(cursor)
        self.closures = [] if here else None
        found = self._function(cursor, method_of, here)
        alike = len({one.key for one in self.closures or ()}) < len(self.closures or ())
        if found is not None and self.closures and (found.template or alike):  # libclang gives them one name
            closures = enumerate(self.closures)
            self.closures = [replace(one, template=found.template, key=f"{one.key}@{n}") for n, one in closures]
        self.text = self.source.text
        for number in range(before if not here else len(self.operations), len(self.operations)):
            self._stick(number, "it is not in this file's own text")
        return found

    def _default_code(self, children: list[Cursor]) -> bool:
        """Whether a default argument runs code; a call that leaves it out is then not walked."""
        defaults = (d for c in children if kind_of(c) is K.PARM_DECL for d in self.children(c))
        calls = (n for d in defaults for n in d.walk_preorder())
        return any(kind_of(n) in _CODE or clang.binary_operator(n) == "=" for n in calls)

    def _initialisers(self, children: list[Cursor]) -> list[ir.Stmt]:
        """A constructor's member initialisers, which run before its body."""
        found: list[ir.Stmt] = []
        member: Cursor | None = None
        for child in children:
            kind = kind_of(child)
            if kind is K.MEMBER_REF:
                member = child.referenced
            elif kind.is_expression():
                value, span = self.unanchored(child), self.span(child)
                if member is None or self.types.lower(member.type).shape is ir.Shape.REFERENCE:
                    bound = (value,) if member is None else (ir.AddressOf(value),)
                    found.append(ir.Evaluate(span, ir.Unknown(bound, "initialiser", span)))
                else:
                    target = ir.Select(None, member.spelling, False, self.types.lower(member.type))
                    found.append(ir.Evaluate(span, ir.Assign(target, "", value, span)))
                member = None
        return found

    def _file_text(self, cursor: Cursor) -> bytes:
        """The content of the file that the cursor is in; empty when it cannot be read."""
        file = cursor.location.file
        name = file.name if file is not None else self.source.path
        if name not in self._texts:
            try:
                self._texts[name] = Path(name).read_bytes()
            except OSError:
                self._texts[name] = b""
        return self._texts[name]

    def _function(self, cursor: Cursor, method_of: str, here: bool) -> ir.Function | None:
        children = list(cursor.get_children())
        bodies = [c for c in children if kind_of(c) in (K.COMPOUND_STMT, K.CXX_TRY_STMT)]
        if not bodies:
            return None
        self.anchor, self.hidden, self.in_method = None, "", bool(method_of)
        if method_of and kind_of(cursor.semantic_parent) in (K.STRUCT_DECL, K.CLASS_DECL):
            self.types.lower(cursor.semantic_parent.type)  # whose members it knows by the name of none
        parameters = tuple(self.variable(c) for c in children if kind_of(c) is K.PARM_DECL)
        body = self.statement(bodies[0])
        if kind_of(cursor) is K.CONSTRUCTOR:  # member initialisers run before the body
            body = ir.Block(self.span(cursor), (*self._initialisers(children), body))
        if self.hidden:
            body = ir.Block(self.span(cursor), (ir.Obstacle(self.span(cursor), self.hidden), body))
        defaults = self._default_code(children)
        if defaults:  # calls may change what stands there
            named = [one for c in children if kind_of(c) is K.PARM_DECL for one in self.mentions(c)]
            unseen = ir.Evaluate(self.span(cursor), ir.Unknown(tuple(named), "?", self.span(cursor)))
            body = ir.Block(self.span(cursor), (unseen, body))
        template = kind_of(cursor) is K.FUNCTION_TEMPLATE or self._dependent(cursor)
        key = cursor.canonical.get_usr()
        first = file_place(cursor.canonical.location)
        self.first[key] = first.file, first.offset
        internal = cursor.linkage.name in ("INTERNAL", "NO_LINKAGE", "UNIQUE_EXTERNAL")
        return ir.Function(
            key,
            _name(cursor),
            parameters,
            body,
            span_of(self.source, cursor),
            internal,
            False,
            template,
            method_of,
            self.top,
            here,
            (kind_of(cursor) is K.CXX_METHOD and bool(cursor.is_virtual_method())) or defaults,
            result=self.types.lower(cursor.result_type),
        )


def _name(cursor: Cursor) -> str:
    """Its name; what a class or a namespace calls ``main`` is not the program's."""
    parent = cursor.semantic_parent
    if cursor.spelling != "main" or parent is None or kind_of(parent) not in (K.NAMESPACE, *CLASSES):
        return str(cursor.spelling)
    return f"{qualified_name(parent)}::main"

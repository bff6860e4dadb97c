"""Statements within expressions: GNU's ``({ statements; value; })``, which macros that check calls often are.

In: the cursor of an expression. Out: the statements inside, to stand before what is lowered, and the value as a plain
expression. Apart because it is decided here whether they may stand before it.

1. Where all of a statement is one, it is a block. 2. Where one comes first of all that its statement evaluates (an
initialiser, an assigned or returned value, a condition, compared or converted), its statements come first, too. 3. One
that only names values (``({ int a_ = a; int b_ = b; a_ < b_ ? a_ : b_; })``) is its value anywhere.

All others keep their function serial, and so do those whose value is an object of a class or that declare objects with
destructors, and those that leave the statement from within one whose text is not a macro's.
"""

from __future__ import annotations

from clang.cindex import Cursor, CursorKind, StorageClass, TLSKind

from kesco.frontend import clang
from kesco.frontend.anchors import Anchors
from kesco.frontend.clang import SourceFile, kind_of
from kesco.frontend.types import TypeTable
from kesco.ir import program as ir
from kesco.ir.volatiles import is_volatile
from kesco.ir.walking import breaks

K = CursorKind
_AROUND = {
    K.PAREN_EXPR, K.UNEXPOSED_EXPR, K.CSTYLE_CAST_EXPR, K.CXX_STATIC_CAST_EXPR, K.CXX_FUNCTIONAL_CAST_EXPR,
    K.UNARY_OPERATOR,
}  # fmt: skip
_PLACES = ("&", "++", "--", "post++", "post--", "*")
_ONE_AFTER_THE_OTHER = ("&&", "||", ",")
_VALUES = (
    ir.Constant, ir.Literal, ir.Name, ir.Select, ir.Subscript, ir.Dereference, ir.Decay, ir.Binary, ir.Unary,
    ir.Branch, ir.Cast,
)  # fmt: skip
PLAIN = (ir.Shape.INTEGER, ir.Shape.POINTER, ir.Shape.OTHER)
"""What is copied without a call."""


class StatementExpressions(Anchors):
    """Lowers statement expressions; statements are left to the subclass."""

    def __init__(self, source: SourceFile, types: TypeTable) -> None:
        super().__init__(source, types)
        self.ahead: list[ir.Stmt] = []  # what stands before the statement that is being lowered
        self._read: list[tuple[Cursor, ir.Expr]] = []  # values of those whose statements are ahead
        self._named: dict[str, ir.Expr] = {}  # values of variables inside one that only names values

    def lower(self, cursor: Cursor) -> ir.Expr:
        """The expression at `cursor`."""
        if kind_of(cursor) is not K.StmtExpr:
            return super().lower(cursor)
        known = next((pair for pair in self._read if pair[0] == cursor), None)
        if known is not None:
            self._read.remove(known)
            return known[1]
        return self._only_values(cursor) or self._unknown(cursor)

    def value(self, cursor: Cursor) -> ir.Expr:
        """What a statement evaluates before anything else."""
        found = _first(cursor)
        if found is not None and kind_of(_statements(found)[-1]).is_expression() and self._may_be_ahead(found):
            *first, last = _statements(found)
            outer, self.ahead = self.ahead, []
            body = self._inside(first)
            inner, self._inside_macro = self._inside_macro, True
            given = self.value(last)
            self._inside_macro = inner
            body, self.ahead = [*body, *self.ahead], outer
            self._stay_inside(found, body)
            self._read.append((found, given))
            self.ahead.append(ir.Block(self.span(found), tuple(body)))
        return self.lower(cursor)

    def whole(self, cursor: Cursor) -> ir.Stmt | None:
        """The block that an expression statement is, where all of it is a statement expression."""
        found = _first(cursor, alone=True)
        if found is None or not self._may_be_ahead(found):
            return None
        body = self._inside(_statements(found))
        self._stay_inside(found, body)
        return ir.Block(self.span(cursor), tuple(body))

    def _inside(self, cursors: list[Cursor]) -> list[ir.Stmt]:
        """Statements in an expression, which share the anchor of the statement around it as those of a macro do."""
        inner, self._inside_macro = self._inside_macro, True
        try:
            return [self._statement(c) for c in cursors]
        finally:
            self._inside_macro = inner

    def _stay_inside(self, cursor: Cursor, body: list[ir.Stmt]) -> None:
        """Unless the statement around is a macro's, which is looked at as a whole, there must be no way out of it."""
        ways = any(isinstance(n, ir.Leave) and n.how in ("return", "throw") for one in body for n in ir.walk(one))
        if not self._inside_macro and (ways or any(map(breaks, body))):
            self.hidden = self.hidden or f"a way out inside an expression (line {self.span(cursor).line})"

    def _may_be_ahead(self, cursor: Cursor) -> bool:
        """Whether no code runs for its value's sake or at its end, and there is a statement to be ahead of."""
        declared = (c for s in _statements(cursor) if kind_of(s) is K.DECL_STMT for c in clang.children(s))
        objects = any(self.types.destroys(self.types.lower(c.type)) for c in declared)
        return self.anchor is not None and not objects and self.types.lower(cursor.type).shape in PLAIN

    def _only_values(self, cursor: Cursor) -> ir.Expr | None:
        """The value of one that does nothing but give names to values, or None."""
        if not _statements(cursor):
            return ir.Literal()
        *first, last = _statements(cursor)
        keep = dict(self._named)
        try:
            declared = [c for s in first for c in clang.children(s)]
            if any(kind_of(s) is not K.DECL_STMT for s in first) or not all(map(self._names_a_value, declared)):
                return None
            found = self.lower(last) if kind_of(last).is_expression() else None
        finally:
            self._named = keep
        return found if found is not None and _is_value(found) else None

    def _names_a_value(self, cursor: Cursor) -> bool:
        """Whether a declaration is a variable with a value that has no effect; if so, it is remembered."""
        initial = clang.initializer(cursor) if kind_of(cursor) is K.VAR_DECL else None
        if initial is None or cursor.storage_class != StorageClass.NONE or cursor.tls_kind != TLSKind.NONE:
            return False
        variable, given = self.variable(cursor), self.lower(initial)
        if variable.type.shape not in PLAIN or variable.type.volatile or not _is_value(given):
            return False
        self._named[variable.key] = ir.Cast(given, variable.type, self.types.lower(initial.type))
        return True

    def _name(self, cursor: Cursor) -> ir.Expr:
        found = super()._name(cursor)
        return self._named.get(found.variable.key, found) if isinstance(found, ir.Name) else found


def _statements(cursor: Cursor) -> list[Cursor]:
    (body,) = clang.children(cursor)
    return clang.children(body)


def _first(cursor: Cursor, *, alone: bool = False) -> Cursor | None:
    """The statement expression that comes before all else in an expression, with nothing beside it if `alone`."""
    kind = kind_of(cursor)
    if kind is K.StmtExpr:
        return cursor if alone or _statements(cursor) else None
    inner = [c for c in clang.children(cursor) if kind_of(c).is_expression()]
    if kind in _AROUND and len(inner) == 1:
        effects = kind is K.UNARY_OPERATOR and clang.unary_operator(cursor) in _PLACES
        return None if effects else _first(inner[0], alone=alone)
    if alone or not inner:
        return None
    if kind is K.CONDITIONAL_OPERATOR:
        return _first(inner[0])
    if kind is not K.BINARY_OPERATOR or len(inner) != 2:
        return None
    left, right = inner
    operator = clang.binary_operator(cursor)
    if operator == "=":
        return _first(right) if kind_of(left) is K.DECL_REF_EXPR else None
    if operator in _ONE_AFTER_THE_OTHER or clang.constant(right) is not None:
        return _first(left)
    return _first(right) if clang.constant(left) is not None else None


def _is_value(expression: ir.Expr) -> bool:
    """Whether evaluating an expression has no effect."""
    return all(isinstance(n, _VALUES) and not is_volatile(n) for n in ir.walk(expression))

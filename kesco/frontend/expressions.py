"""Expressions: libclang cursors → `ir.program.Expr`.

In: the cursor of an expression. Out: a frozen expression in which only effects, places and constants are left.
A module of its own because this is where libclang's view is reshaped: implicit casts vanish, arrays decay,
overloaded operators become calls, launches are taken out of `CALL_EXPR`.

1. Dispatch on the cursor's kind. 2. What has a known meaning becomes its own node. 3. Everything else becomes
`Unknown` with all its children lowered, so that no effect is lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from clang.cindex import Cursor, CursorKind, TypeKind

from kesco.frontend import clang
from kesco.frontend.clang import SourceFile, kind_of
from kesco.frontend.declarations import Declarations
from kesco.frontend.lists import Followed, is_array, placed
from kesco.frontend.operations import (
    Anchor,
    span_of,
)
from kesco.frontend.types import TypeTable
from kesco.ir import program as ir
from kesco.source import Span

K = CursorKind
_TRANSPARENT = {K.PAREN_EXPR, K.UNEXPOSED_EXPR, K.CXX_FUNCTIONAL_CAST_EXPR}
_CASTS = {
    K.CSTYLE_CAST_EXPR,
    K.CXX_STATIC_CAST_EXPR,
    K.CXX_REINTERPRET_CAST_EXPR,
    K.CXX_CONST_CAST_EXPR,
    K.CXX_DYNAMIC_CAST_EXPR,
    K.CXX_FUNCTIONAL_CAST_EXPR,
}
_LITERALS = {K.FLOATING_LITERAL, K.IMAGINARY_LITERAL, K.STRING_LITERAL}
_INTEGER_LITERALS = {K.INTEGER_LITERAL, K.CHARACTER_LITERAL, K.CXX_BOOL_LITERAL_EXPR}
_LVALUES = (ir.Name, ir.Select, ir.Subscript, ir.Dereference)
_NOT_EXPRESSIONS = {K.TYPE_REF, K.NAMESPACE_REF, K.TEMPLATE_REF, K.MEMBER_REF, K.OVERLOADED_DECL_REF, K.LABEL_REF}


class Expressions(Declarations):
    """Lowers the expressions of one file; collects its operations."""

    def __init__(self, source: SourceFile, types: TypeTable) -> None:
        super().__init__(source, types)
        self.text = source.text  # of the file whose function is being lowered
        self.operations: list[ir.Operation] = []
        self.taken: set[str] = set()  # functions whose address is taken
        self.captured: list[set[str]] = []
        self.bound: set[str] = set()  # names of structured bindings that are followed
        self.anchor: Anchor | None = None
        self.in_method = False
        self.seen: list[tuple[str, Span]] = []
        self.elsewhere: dict[str, Cursor] = {}  # functions called here whose bodies are in headers or templates
        self.launched = False
        self.hidden = ""  # why the function being lowered cannot be followed
        self.inside: list[ir.Stmt] = []  # what runs where something else is called
        self.on_lambda: Callable[[Cursor], None] = lambda cursor: None

    # ---- expressions ----------------------------------------------------------------------------------------------

    def span(self, cursor: Cursor) -> Span:
        """Where the cursor is, for people and edits."""
        return span_of(self.source, cursor)

    def children(self, cursor: Cursor) -> list[Cursor]:
        """The children that are expressions, not names of types and namespaces."""
        return [c for c in clang.children(cursor) if kind_of(c) not in _NOT_EXPRESSIONS]

    def lower(self, cursor: Cursor) -> ir.Expr:
        """The expression at `cursor`."""
        kind = kind_of(cursor)
        if kind in _TRANSPARENT:
            return self._transparent(cursor)
        if kind is K.DECL_REF_EXPR:
            return self._name(cursor)
        if kind is K.CALL_EXPR:
            return self._call(cursor)
        if kind in _INTEGER_LITERALS:
            value = clang.constant(cursor)
            return ir.Constant(value) if value is not None else ir.Literal()
        if kind in _LITERALS:
            return ir.Literal("string" if kind is K.STRING_LITERAL else "")
        if kind in (K.CXX_NULL_PTR_LITERAL_EXPR, K.GNU_NULL_EXPR):
            return ir.Constant(0)
        if kind is K.BINARY_OPERATOR or kind is K.COMPOUND_ASSIGNMENT_OPERATOR:
            return self._binary(cursor)
        if kind is K.UNARY_OPERATOR:
            return self._unary(cursor)
        if kind is K.ARRAY_SUBSCRIPT_EXPR:
            base, index = self.children(cursor)
            lowered = self.lower(base)
            if isinstance(lowered, ir.Decay):
                return ir.Subscript(lowered.array, self.lower(index), True, self.span(cursor))
            return ir.Subscript(lowered, self.lower(index), False, self.span(cursor))
        if kind is K.MEMBER_REF_EXPR:
            return self._member(cursor)
        if kind in _CASTS:
            inner = self.children(cursor)
            if not inner:
                return ir.Literal()
            return ir.Cast(self.lower(inner[-1]), self.types.lower(cursor.type), self.types.lower(inner[-1].type))
        if kind is K.CONDITIONAL_OPERATOR:
            parts = [self.lower(c) for c in self.children(cursor)]
            return ir.Branch(*parts) if len(parts) == 3 else self._unknown(cursor)
        if kind is K.CXX_UNARY_EXPR:  # sizeof and its relatives: the operand is not evaluated
            value = clang.constant(cursor)
            same = ir.OF_INSTANCE if _is_of_parameter(cursor) else ir.VARYING
            return ir.Constant(value) if value is not None else same
        if kind is K.INIT_LIST_EXPR:
            return self._list(cursor)
        if kind is K.CXX_DELETE_EXPR:
            return self._delete(cursor)
        if kind is K.CXX_NEW_EXPR:
            given, made_of = tuple(self.lower(c) for c in self.children(cursor)), self.types.lower(cursor.type).element
            simple = made_of is not None and made_of.shape in (ir.Shape.INTEGER, ir.Shape.POINTER)
            written = [token.spelling for token in cursor.get_tokens()] if simple else []  # neither ``(p)`` nor a value
            bare = len(given) == 1 and written[:1] == ["new"] and written[1:2] != ["("] and written[-1:] == ["]"]
            made = ir.New(given, self.span(cursor), bare)
            return ir.Unknown((made,), "operator new", self.span(cursor)) if self.types.allocates else made
        if kind is K.CXX_THIS_EXPR:
            return ir.AddressOf(ir.Dereference(ir.Literal("this"), self.span(cursor)))
        if kind is K.LAMBDA_EXPR:
            return self._lambda(cursor)
        if kind is K.VARIABLE_REF:
            return self._name(cursor)
        return self._unknown(cursor)

    def _list(self, cursor: Cursor) -> ir.Expr:
        """``{ … }``; what it leaves out may be a member whose default runs code."""
        inner, span = self.children(cursor), self.span(cursor)
        declared = self.types.lower(cursor.type)
        if declared.shape in (ir.Shape.INTEGER, ir.Shape.POINTER) and len(inner) == 1:
            return self._item(inner[0])
        each: ir.Type | None = declared
        while each is not None and each.shape is ir.Shape.ARRAY:
            each = each.element
        record = self.types.records.get(each.record) if each is not None and each.shape is ir.Shape.RECORD else None
        destroys = record is not None and record.destructor and not record.standard
        found = placed(self.types, cursor.type, inner)
        if isinstance(found, Followed):
            what = ir.DESTROYED if destroys else "a conversion in a list" if found is Followed.CODE else "?"
            parts = [self._item(c) for c in inner]
            if self.types.references() or self.types.wraps or destroys:
                parts += [ir.AddressOf(one) for one in parts if isinstance(one, _LVALUES)]
            return ir.Unknown(tuple(parts), what, span)
        items = tuple(self._item(c) if c is not None else ir.Unknown((), "?", span) for c in found)
        lvalues = [ir.AddressOf(one) for one in items if isinstance(one, _LVALUES)]
        if destroys or (lvalues and self.types.wraps):  # whose members keep the addresses of what they got
            return ir.Unknown((*items, *lvalues), ir.DESTROYED if destroys else "?", span)
        if record is not None and record.code:
            return ir.Unknown(items, "default of a member", span)
        return ir.InitList(items)

    def _item(self, cursor: Cursor) -> ir.Expr:
        """An item of a list, whose conversion to a pointer libclang does not show."""
        lowered = self.lower(cursor)
        inner = clang.children(cursor) if cursor.type.kind is TypeKind.VOID else []
        array = is_array(inner[-1].type if inner else cursor.type) and not isinstance(
            lowered, (ir.Literal, ir.InitList)
        )
        return ir.Decay(lowered) if array else lowered

    def _unknown(self, cursor: Cursor) -> ir.Expr:
        parts = [self.lower(c) for c in self.children(cursor) if kind_of(c).is_expression() or c.type.spelling]
        if any(kind_of(c).is_statement() for c in clang.children(cursor)):
            self.hidden = self.hidden or f"statements inside an expression (line {self.span(cursor).line})"
            parts += self.mentions(cursor)
        return ir.Unknown(tuple(parts), kind_of(cursor).name.lower(), self.span(cursor))

    def mentions(self, cursor: Cursor) -> list[ir.Expr]:
        """The variables that stand in something of unknown form: whoever calls it has to reckon with a change."""
        found: list[ir.Expr] = []
        for child in clang.children(cursor):
            known = kind_of(child) in (K.DECL_REF_EXPR, K.LAMBDA_EXPR)
            found += [self.lower(child)] if known else self.mentions(child)
        return found

    def _transparent(self, cursor: Cursor) -> ir.Expr:
        inner = self.children(cursor)
        if not inner:
            return ir.DEFAULT
        if len(inner) > 1:
            return self._unknown(cursor)
        value = self.lower(inner[0])
        mine, its = cursor.type.get_canonical().kind, inner[0].type.get_canonical().kind
        if mine is TypeKind.POINTER and its in (
            TypeKind.CONSTANTARRAY,
            TypeKind.INCOMPLETEARRAY,
            TypeKind.VARIABLEARRAY,
        ):
            return ir.Decay(value)
        to, of = self.types.lower(cursor.type), self.types.lower(inner[0].type)
        if to.spelling != of.spelling and {to.shape, of.shape} <= {ir.Shape.INTEGER, ir.Shape.OTHER, ir.Shape.POINTER}:
            return ir.Cast(value, to, of)
        return value

    def _delete(self, cursor: Cursor) -> ir.Expr:
        inner = self.children(cursor)
        pointee = self.types.lower(inner[0].type).element if inner else None
        record = self.types.records.get(pointee.record) if pointee is not None else None
        runs = (
            self.types.allocates
            or pointee is None
            or (pointee.shape is ir.Shape.RECORD and (record is None or record.destructor))
        )
        parts = tuple(self.lower(c) for c in inner)
        return ir.Unknown(parts, "delete object" if runs else "delete", self.span(cursor))

    def _name(self, cursor: Cursor) -> ir.Expr:
        target = cursor.referenced
        if target is None:
            return self._unknown(cursor)
        kind = kind_of(target)
        bound = kind is K.UNEXPOSED_DECL and self.variable(target).key in self.bound
        if kind in (K.VAR_DECL, K.PARM_DECL) or bound:
            variable = self.variable(target)
            for names in self.captured:
                names.add(variable.key)
            return ir.Name(variable, self.span(cursor))
        if kind is K.ENUM_CONSTANT_DECL:
            return ir.Constant(int(target.enum_value))
        if kind in (K.FUNCTION_DECL, K.CXX_METHOD, K.FUNCTION_TEMPLATE, K.OVERLOADED_DECL_REF):
            key = target.canonical.get_usr()
            self.taken.add(key)
            return ir.FunctionName(key, target.spelling, self._kernel(target) if is_kernel(target) else None)
        if kind is K.UNEXPOSED_DECL:
            self.hidden = self.hidden or f"a name of unknown form (line {self.span(cursor).line})"
        return self._unknown(cursor)

    def _member(self, cursor: Cursor) -> ir.Expr:
        target = cursor.referenced
        inner = self.children(cursor)
        base = self.lower(inner[0]) if inner else None
        if target is not None and kind_of(target) is K.VAR_DECL:  # a static data member
            return ir.Name(self.variable(target), self.span(cursor))
        if target is None or kind_of(target) is not K.FIELD_DECL:
            return ir.Unknown((base,) if base is not None else (), "member", self.span(cursor))
        arrow = bool(inner) and inner[0].type.get_canonical().kind is TypeKind.POINTER
        union = _shares_storage(target)
        kind = ir.Type(ir.Shape.OTHER, "bit-field") if target.is_bitfield() else self.types.lower(target.type)
        return ir.Select(base, "" if union else target.spelling, arrow, kind, self.span(cursor))

    def _binary(self, cursor: Cursor) -> ir.Expr:
        operator = clang.binary_operator(cursor)
        inner = self.children(cursor)
        if len(inner) != 2:
            return self._unknown(cursor)
        left, right = (self.lower(c) for c in inner)
        if operator == "=":
            return ir.Assign(left, "", right, self.span(cursor))
        if operator.endswith("=") and operator not in ("<=", ">=", "==", "!="):
            return ir.Assign(left, operator[:-1], right, self.span(cursor))
        if operator == "&&":
            return ir.Branch(left, right, ir.Constant(0))
        if operator == "||":
            return ir.Branch(left, ir.Constant(1), right)
        if operator in (".*", "->*", "?"):
            return ir.Unknown((left if operator == "->*" else ir.AddressOf(left), right), operator, self.span(cursor))
        return ir.Binary(operator, left, right, self.types.lower(cursor.type), self.span(cursor))

    def _unary(self, cursor: Cursor) -> ir.Expr:
        operator = clang.unary_operator(cursor)
        inner = self.children(cursor)
        if len(inner) != 1:
            return self._unknown(cursor)
        operand = self.lower(inner[0])
        if operator in ("++", "--", "post++", "post--"):
            return ir.Assign(operand, operator[-1], ir.Constant(1), self.span(cursor), operator.startswith("post"))
        if operator == "*":
            return ir.Dereference(operand, self.span(cursor))
        if operator == "&":
            return operand if isinstance(operand, ir.FunctionName) else ir.AddressOf(operand)
        if operator in ("-", "+", "~", "!"):
            return ir.Unary(operator, operand, self.types.lower(cursor.type))
        return operand

    def _lambda(self, cursor: Cursor) -> ir.Expr:
        """A lambda may run at any later time: every variable it mentions has escaped."""
        self.captured.append(set())
        hidden = self.hidden
        self.on_lambda(cursor)
        self.hidden = hidden
        names = self.captured.pop()
        for capture in clang.children(cursor):  # ``[&r = p]`` mentions p nowhere else
            initial = _initial(capture)
            for inner in initial.walk_preorder() if initial is not None else ():
                named = self.lower(inner) if kind_of(inner) is K.DECL_REF_EXPR else None
                if isinstance(named, ir.Name):
                    names.add(named.variable.key)
        for outer in self.captured:
            outer |= names
        span = self.span(cursor)
        coded = any(self._copies_with_code(self.variables[n]) for n in names)
        if (coded or self.in_method) and not self._by_reference(cursor, coded):
            self.hidden = self.hidden or f"an object that a lambda holds (line {span.line})"
        parts = [ir.AddressOf(ir.Name(self.variables[n], span)) for n in sorted(names)]
        if self.in_method:
            parts.append(ir.AddressOf(ir.Dereference(ir.Literal("this"), span)))
        return ir.Unknown(tuple(parts), "lambda", span)

    def captured_by(self, capture: Cursor) -> None:
        """What a lambda holds; what it is made of runs where the lambda is."""
        self.lower(capture)
        initial = _initial(capture)
        if initial is not None and any(kind_of(one) is K.CALL_EXPR for one in initial.walk_preorder()):
            self.inside.append(ir.Evaluate(self.span(capture), self.lower(initial)))

    def _copies_with_code(self, variable: ir.Variable) -> bool:
        """Whether code of the user's runs where a variable is copied, or where the copy goes."""
        record = self.types.records.get(variable.type.record) if variable.type.shape is ir.Shape.RECORD else None
        return record is not None and not record.standard and (record.destructor or not record.plain)

    def _by_reference(self, cursor: Cursor, coded: bool) -> bool:
        """Whether a lambda copies no object with code, where the variables that it uses are `coded` or not."""
        words = [token.spelling for token in itertools.islice(cursor.get_tokens(), 200)]
        if words[:1] != ["["] or "]" not in words:  # the text is a macro's
            return False
        held = "".join(words[1 : words.index("]")]).split(",")
        return "*this" not in held and (not coded or all(one.startswith(("&", "this")) or not one for one in held))

    def _call(self, cursor: Cursor) -> ir.Expr:
        """Left to the subclass."""
        raise NotImplementedError

    def _kernel(self, target: Cursor) -> ir.Kernel:
        """Left to the subclass."""
        raise NotImplementedError


def _shares_storage(field: Cursor) -> bool:
    """Whether a member is one of a union's, also within structs without a name there."""
    parent = field.semantic_parent
    while parent is not None and kind_of(parent) is K.STRUCT_DECL and parent.is_anonymous():
        parent = parent.semantic_parent
    return parent is not None and kind_of(parent) is K.UNION_DECL


def is_kernel(cursor: Cursor) -> bool:
    """Whether a function declaration is a ``__global__`` function."""
    return any(kind_of(c) is K.CUDAGLOBAL_ATTR for c in clang.children(cursor))


def _initial(capture: Cursor) -> Cursor | None:
    """What a capture is made of, if that is said: ``[p = next()]``."""
    declared = capture.referenced if kind_of(capture) is K.VARIABLE_REF else None
    return clang.initializer(declared) if declared is not None and kind_of(declared) is K.VAR_DECL else None


def _is_of_parameter(cursor: Cursor) -> bool:
    """Whether ``sizeof`` names the type that a template is given, and nothing else."""
    inner = list(cursor.get_children())
    named = [one.referenced for one in inner if kind_of(one) is K.TYPE_REF]
    kinds = {kind_of(one) for one in named if one is not None}
    return len(inner) == len(named) == 1 and kinds == {K.TEMPLATE_TYPE_PARAMETER}

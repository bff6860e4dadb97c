"""Expressions: libclang cursors → `ir.program.Expr`.

In: the cursor of an expression. Out: a frozen expression in which only effects, places and constants are left.
A module of its own because this is where libclang's view is reshaped: implicit casts vanish, arrays decay,
overloaded operators become calls, launches are taken out of `CALL_EXPR`.

1. Dispatch on the cursor's kind. 2. What has a known meaning becomes its own node. 3. Everything else becomes
`Unknown` with all its children lowered, so that no effect is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from clang.cindex import Cursor, CursorKind, TypeKind

from kesco.frontend import clang
from kesco.frontend.clang import SourceFile, kind_of
from kesco.frontend.declarations import Declarations
from kesco.frontend.operations import Anchor, file_range, launch_stream_text, span_of, with_semicolon
from kesco.frontend.types import TypeTable, is_standard
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
_NOT_EXPRESSIONS = {K.TYPE_REF, K.NAMESPACE_REF, K.TEMPLATE_REF, K.MEMBER_REF, K.OVERLOADED_DECL_REF, K.LABEL_REF}
_STUB = re.compile(r"(\d+)__device_stub__")


def kernel_symbol(mangled: str) -> str:
    """The device's name of a kernel, given the mangled name of its host stub."""
    return _STUB.sub(lambda m: str(int(m.group(1)) - len("__device_stub__")), mangled, count=1)


def qualified_name(cursor: Cursor) -> str:
    """``ns::Class::name`` of a declaration."""
    parts: list[str] = []
    at: Cursor | None = cursor
    while at is not None and kind_of(at) is not K.TRANSLATION_UNIT:
        if at.spelling:
            parts.append(at.spelling)
        at = at.semantic_parent
    return "::".join(reversed(parts))


class Expressions(Declarations):
    """Lowers the expressions of one file; collects its operations."""

    def __init__(self, source: SourceFile, types: TypeTable) -> None:
        super().__init__(source, types)
        self.text = source.text  # of the file whose function is being lowered
        self.operations: list[ir.Operation] = []
        self.taken: set[str] = set()  # functions whose address is taken
        self.captured: list[set[str]] = []
        self.anchor: Anchor | None = None
        self.seen: list[tuple[str, Span]] = []
        self.elsewhere: dict[str, Cursor] = {}  # functions called here whose bodies are in headers or templates
        self.on_lambda: Callable[[Cursor], None] = lambda cursor: None

    # ---- expressions ----------------------------------------------------------------------------------------------

    def span(self, cursor: Cursor) -> Span:
        """Where the cursor is, for people and edits."""
        return span_of(self.source.path, cursor)

    def children(self, cursor: Cursor) -> list[Cursor]:
        """The children that are expressions, not names of types and namespaces."""
        return [c for c in cursor.get_children() if kind_of(c) not in _NOT_EXPRESSIONS]

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
            return ir.Cast(self.lower(inner[-1]), self.types.lower(cursor.type)) if inner else ir.Literal()
        if kind is K.CONDITIONAL_OPERATOR:
            parts = [self.lower(c) for c in self.children(cursor)]
            return ir.Branch(*parts) if len(parts) == 3 else self._unknown(cursor)
        if kind is K.CXX_UNARY_EXPR:  # sizeof and its relatives: the operand is not evaluated
            value = clang.constant(cursor)
            return ir.Constant(value) if value is not None else ir.Literal()
        if kind is K.INIT_LIST_EXPR:
            return ir.InitList(tuple(self.lower(c) for c in self.children(cursor)))
        if kind is K.CXX_NEW_EXPR:
            return ir.New(tuple(self.lower(c) for c in self.children(cursor)), self.span(cursor))
        if kind is K.CXX_THIS_EXPR:
            return ir.AddressOf(ir.Dereference(ir.Literal("this"), self.span(cursor)))
        if kind is K.LAMBDA_EXPR:
            return self._lambda(cursor)
        if kind is K.VARIABLE_REF:
            return self._name(cursor)
        return self._unknown(cursor)

    def _unknown(self, cursor: Cursor) -> ir.Expr:
        parts = tuple(self.lower(c) for c in self.children(cursor) if kind_of(c).is_expression() or c.type.spelling)
        return ir.Unknown(parts, kind_of(cursor).name.lower(), self.span(cursor))

    def _transparent(self, cursor: Cursor) -> ir.Expr:
        inner = self.children(cursor)
        if not inner:
            return ir.Literal("default")
        if len(inner) > 1:
            return self._unknown(cursor)
        value = self.lower(inner[0])
        mine, its = cursor.type.get_canonical().kind, inner[0].type.get_canonical().kind
        if mine is TypeKind.POINTER and its in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY, TypeKind.VARIABLEARRAY):
            return ir.Decay(value)
        if its is TypeKind.POINTER and mine in (TypeKind.BOOL, TypeKind.ULONG, TypeKind.LONG):
            return ir.Cast(value, self.types.lower(cursor.type))
        return value

    def _name(self, cursor: Cursor) -> ir.Expr:
        target = cursor.referenced
        if target is None:
            return self._unknown(cursor)
        kind = kind_of(target)
        if kind in (K.VAR_DECL, K.PARM_DECL):
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
        return ir.Select(base, target.spelling, arrow, self.types.lower(target.type))

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
            return ir.Unknown((left, right), operator, self.span(cursor))
        return ir.Binary(operator, left, right)

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
            return ir.Unary(operator, operand)
        return operand

    def _lambda(self, cursor: Cursor) -> ir.Expr:
        """A lambda may run at any later time: every variable it mentions has escaped."""
        self.captured.append(set())
        self.on_lambda(cursor)
        names = self.captured.pop()
        for outer in self.captured:
            outer |= names
        span = self.span(cursor)
        parts = tuple(ir.AddressOf(ir.Name(self.variables[n], span)) for n in sorted(names))
        return ir.Unknown(parts, "lambda", span)

    # ---- calls and launches -----------------------------------------------------------------------------------------

    def _call(self, cursor: Cursor) -> ir.Expr:
        inner = self.children(cursor)
        if len(inner) >= 2 and kind_of(inner[1]) is K.CALL_EXPR and inner[1].spelling == "__cudaPushCallConfiguration":
            return self._launch(cursor, inner)
        target = cursor.referenced
        arguments = [c for c in cursor.get_arguments() if c is not None]
        if target is None or kind_of(target) not in (
            K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.CONVERSION_FUNCTION, K.FUNCTION_TEMPLATE,
        ):  # fmt: skip
            return self._call_of(cursor, "", "", None, [self.lower(c) for c in inner], False)
        key, name = target.canonical.get_usr(), qualified_name(target)
        if key not in self.elsewhere and not is_standard(target):
            self.elsewhere[key] = target
        if kind_of(target) is K.CONSTRUCTOR:
            parts = [self.lower(a) for a in arguments]
            return self._call_of(cursor, name, key, None, parts, is_standard(target), constructs=True)
        receiver: ir.Expr | None = None
        if kind_of(target) in (K.CXX_METHOD, K.CONVERSION_FUNCTION, K.DESTRUCTOR):
            receiver, arguments = self._receiver(inner, arguments, target)
        parts = [self.lower(a) for a in arguments]
        return self._call_of(cursor, name, key, receiver, parts, is_standard(target), target=target)

    def _receiver(
        self, inner: list[Cursor], arguments: list[Cursor], target: Cursor
    ) -> tuple[ir.Expr | None, list[Cursor]]:
        """The object of a member call, and the arguments without it."""
        if not inner:
            return None, arguments
        first = inner[0]
        if kind_of(first) is K.MEMBER_REF_EXPR:
            bases = self.children(first)
            if not bases:
                return ir.Dereference(ir.Literal("this"), self.span(first)), arguments
            base = self.lower(bases[0])
            pointer = bases[0].type.get_canonical().kind is TypeKind.POINTER
            return (ir.Dereference(base, self.span(first)) if pointer else base), arguments
        if target.spelling.startswith("operator") and arguments:  # an overloaded operator: the object comes first
            return self.lower(arguments[0]), arguments[1:]
        return None, arguments

    def _call_of(
        self,
        cursor: Cursor,
        name: str,
        key: str,
        receiver: ir.Expr | None,
        arguments: list[ir.Expr],
        standard: bool,
        *,
        constructs: bool = False,
        target: Cursor | None = None,
    ) -> ir.Expr:
        number = self._operation(cursor, None)
        result = self.types.lower(cursor.type)
        return ir.Call(
            name, key, tuple(arguments), self.span(cursor), number, receiver, constructs, standard, result
        )

    def _launch(self, cursor: Cursor, inner: list[Cursor]) -> ir.Expr:
        written = [c for c in self.children(inner[1])[1:] if c.extent.start.offset or c.extent.end.offset]
        configuration = tuple(self.lower(c) for c in written)
        arguments = tuple(self.lower(c) for c in inner[2:])
        kernel = self._kernel_of(inner[0])
        number = self._operation(cursor, (inner[1], written))
        return ir.Launch(kernel, configuration, arguments, self.span(cursor), number)

    def _kernel_of(self, callee: Cursor) -> ir.Kernel:
        at = callee
        while kind_of(at) in (K.UNEXPOSED_EXPR, K.PAREN_EXPR) and self.children(at):
            at = self.children(at)[0]
        target = at.referenced
        if target is not None and kind_of(target) is K.FUNCTION_DECL and is_kernel(target):
            return self._kernel(target)
        name = (target.spelling if target is not None else "") or at.spelling
        if not name:
            for child in at.get_children():
                if kind_of(child) is K.OVERLOADED_DECL_REF:
                    name = child.spelling
        pointer = target is not None and kind_of(target) in (K.VAR_DECL, K.PARM_DECL, K.FIELD_DECL)
        return ir.Kernel(name or "kernel", () if pointer or not name else (f"?{name}",))

    def _kernel(self, target: Cursor) -> ir.Kernel:
        outputs = priority = None
        if not self._dependent(target) and kind_of(target) is K.FUNCTION_DECL:
            for one in target.get_arguments():
                if one.spelling in ("outputs", "priority"):
                    value = next((clang.constant(c) for c in self.children(one)), None)
                    outputs, priority = (value, priority) if one.spelling == "outputs" else (outputs, value)
        parameters = tuple(self.types.lower(a.type) for a in target.get_arguments())
        symbol = kernel_symbol(target.mangled_name) if kind_of(target) is K.FUNCTION_DECL else f"?{target.spelling}"
        names = tuple(a.spelling for a in target.get_arguments())
        return ir.Kernel(target.spelling, (symbol,), parameters, outputs, priority, names)

    def leaving(self, cursor: Cursor) -> int:
        """Note a return or throw statement, so that text can be inserted before it; returns its number."""
        return self._operation(cursor, None)

    def _operation(self, cursor: Cursor, launch: tuple[Cursor, list[Cursor]] | None) -> int:
        """Note the operation's text; returns its number."""
        number = len(self.operations)
        anchor, path, text = self.anchor, self.source.path, self.text
        span = self.span(cursor)
        stuck, stream, defaults, name_text = "", None, (), None
        if span.path != path:
            stuck = "it is not in this file's own text"
        elif anchor is None:
            stuck = "it stands in a loop's header or outside a function"
        elif anchor.stuck:
            stuck = anchor.stuck
        if launch is not None and not stuck:
            where = launch_stream_text(text, path, launch[0])
            if where is None:
                stuck = "its <<<…>>> comes from the body of a macro"
            else:
                stream, defaults = self._launch_stream(where, launch[1])
                stuck = "" if stream else "its <<<…>>> comes from the body of a macro"
        elif not stuck:
            stream, name_text = self._call_texts(cursor)
        statement = None
        if anchor is not None and span.path == path and anchor.end > anchor.start:
            end = with_semicolon(text, anchor.end)
            line = text.count(b"\n", 0, anchor.start) + 1
            column = anchor.start - (text.rfind(b"\n", 0, anchor.start) + 1) + 1
            statement = Span(path, anchor.start, end, line, column)
        self.operations.append(
            ir.Operation(
                number, span, statement, bool(anchor and anchor.lone), bool(anchor and anchor.stuck), stream, defaults,
                name_text, stuck,
            )  # fmt: skip
        )
        return number

    def _launch_stream(
        self, where: tuple[int, int], written: list[Cursor]
    ) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
        if len(written) < 4:
            return (where[1], where[1]), ("0",) * (3 - len(written))
        start, end = file_range(written[3])
        inside = where[0] < start.offset < where[1]
        return ((start.offset, where[1]) if inside else None), ()

    def _call_texts(self, cursor: Cursor) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """The range of the call's name, and the empty range before its closing parenthesis."""
        start, _ = file_range(cursor)
        text = self.text
        name = cursor.spelling.encode()
        if text[start.offset : start.offset + len(name)] != name:
            return None, None
        close = _closing(text, start.offset + len(name))
        return ((close, close) if close is not None else None), (start.offset, start.offset + len(name))


def _closing(text: bytes, position: int) -> int | None:
    """The offset of the parenthesis that closes the one opening at or behind `position`."""
    from kesco.frontend.operations import _end_of_literal, skip_space

    position = skip_space(text, position)
    if text[position : position + 1] != b"(":
        return None
    depth = 0
    while position < len(text):
        byte = text[position : position + 1]
        if text[position : position + 2] in (b"//", b"/*"):
            position = skip_space(text, position)
            continue
        if byte in (b'"', b"'"):
            position = _end_of_literal(text, position, byte)
            continue
        depth += {b"(": 1, b")": -1}.get(byte, 0)
        if depth == 0:
            return position
        position += 1
    return None


def is_kernel(cursor: Cursor) -> bool:
    """Whether a function declaration is a ``__global__`` function."""
    return any(kind_of(c) is K.CUDAGLOBAL_ATTR for c in cursor.get_children())

"""Expressions: libclang cursors → `ir.program.Expr`.

In: the cursor of an expression. Out: a frozen expression in which only effects, places and constants are left.
A module of its own because this is where libclang's view is reshaped: implicit casts vanish, arrays decay,
overloaded operators become calls, launches are taken out of `CALL_EXPR`.

1. Dispatch on the cursor's kind. 2. What has a known meaning becomes its own node. 3. Everything else becomes
`Unknown` with all its children lowered, so that no effect is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from clang.cindex import Cursor, CursorKind, TypeKind
from clang.cindex import Type as ClangType

from kesco.frontend import clang
from kesco.frontend.api_table import cuda_call
from kesco.frontend.clang import SourceFile, kind_of
from kesco.frontend.declarations import Declarations, qualified_name
from kesco.frontend.operations import (
    Anchor,
    closing_parenthesis,
    file_range,
    launch_stream_text,
    span_of,
    with_semicolon,
)
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
_STUB = "__device_stub__"


def kernel_symbol(cursor: Cursor) -> str:
    """The device's name of a kernel: the mangled name of its host stub without the stub's prefix."""
    mangled, name = str(cursor.mangled_name), cursor.spelling.partition("<")[0]
    return mangled.replace(f"{len(_STUB) + len(name)}{_STUB}{name}", f"{len(name)}{name}", 1)


class Expressions(Declarations):
    """Lowers the expressions of one file; collects its operations."""

    def __init__(self, source: SourceFile, types: TypeTable) -> None:
        super().__init__(source, types)
        self.text = source.text  # of the file whose function is being lowered
        self.operations: list[ir.Operation] = []
        self.taken: set[str] = set()  # functions whose address is taken
        self.captured: list[set[str]] = []
        self.anchor: Anchor | None = None
        self.in_method = False
        self.seen: list[tuple[str, Span]] = []
        self.elsewhere: dict[str, Cursor] = {}  # functions called here whose bodies are in headers or templates
        self.launched = False
        self.hidden = ""  # why the function being lowered cannot be followed
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
            if not inner:
                return ir.Literal()
            return ir.Cast(self.lower(inner[-1]), self.types.lower(cursor.type), self.types.lower(inner[-1].type))
        if kind is K.CONDITIONAL_OPERATOR:
            parts = [self.lower(c) for c in self.children(cursor)]
            return ir.Branch(*parts) if len(parts) == 3 else self._unknown(cursor)
        if kind is K.CXX_UNARY_EXPR:  # sizeof and its relatives: the operand is not evaluated
            value = clang.constant(cursor)
            return ir.Constant(value) if value is not None else ir.Literal()
        if kind is K.INIT_LIST_EXPR:
            return ir.InitList(tuple(self.lower(c) for c in self.children(cursor)))
        if kind is K.CXX_DELETE_EXPR:
            return self._delete(cursor)
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
        if any(kind_of(c).is_statement() for c in cursor.get_children()):
            self.hidden = self.hidden or f"statements inside an expression (line {self.span(cursor).line})"
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
        to, of = self.types.lower(cursor.type), self.types.lower(inner[0].type)
        if to.spelling != of.spelling and {to.shape, of.shape} <= {ir.Shape.INTEGER, ir.Shape.OTHER, ir.Shape.POINTER}:
            return ir.Cast(value, to, of)
        return value

    def _delete(self, cursor: Cursor) -> ir.Expr:
        inner = self.children(cursor)
        pointee = self.types.lower(inner[0].type).element if inner else None
        record = self.types.records.get(pointee.record) if pointee is not None else None
        runs = pointee is None or (pointee.shape is ir.Shape.RECORD and (record is None or record.destructor))
        parts = tuple(self.lower(c) for c in inner)
        return ir.Unknown(parts, "delete object" if runs else "delete", self.span(cursor))

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
        parent = target.semantic_parent
        union = parent is not None and kind_of(parent) is K.UNION_DECL
        return ir.Select(base, "" if union else target.spelling, arrow, self.types.lower(target.type))

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
        return ir.Binary(operator, left, right, self.types.lower(cursor.type))

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
        for outer in self.captured:
            outer |= names
        span = self.span(cursor)
        parts = [ir.AddressOf(ir.Name(self.variables[n], span)) for n in sorted(names)]
        if self.in_method:
            parts.append(ir.AddressOf(ir.Dereference(ir.Literal("this"), span)))
        return ir.Unknown(tuple(parts), "lambda", span)

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
            parts = [self.lower(c) for c in inner]
            return self._call_of(cursor, None, "", None, parts, arguments, (True,) * len(parts))
        key = target.canonical.get_usr()
        parent = target.semantic_parent
        closure = parent is not None and (not parent.spelling or "(lambda" in parent.type.spelling)
        if key not in self.elsewhere and not is_standard(target) and not closure:
            self.elsewhere[key] = target
        receiver: ir.Expr | None = None
        if kind_of(target) in (K.CXX_METHOD, K.CONVERSION_FUNCTION, K.DESTRUCTOR):
            receiver, arguments = self._receiver(inner, arguments, target)
        parts = [self.lower(a) for a in arguments]
        changed = [_changeable(p.type) for p in target.get_arguments()]
        changed += [False] * (len(parts) - len(changed))
        return self._call_of(cursor, target, key, receiver, parts, arguments, tuple(changed[: len(parts)]))

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
        target: Cursor | None,
        key: str,
        receiver: ir.Expr | None,
        parts: list[ir.Expr],
        arguments: list[Cursor],
        references: tuple[bool, ...],
    ) -> ir.Expr:
        name = qualified_name(target) if target is not None else ""
        standard = target is not None and is_standard(target)
        number = self._operation(cursor, None, name if standard else "", arguments)
        constructs = target is not None and kind_of(target) is K.CONSTRUCTOR
        result = self.types.lower(cursor.type)
        return ir.Call(
            name, key, tuple(parts), self.span(cursor), number, receiver, constructs, standard, result, references,
            target is None or (not constructs and target.result_type.get_canonical().kind.name.endswith("REFERENCE")),
            constructs and target is not None and _is_implicit(target),
            standard and self._destroys_user_objects(cursor, arguments),
        )  # fmt: skip

    def _destroys_user_objects(self, cursor: Cursor, arguments: list[Cursor]) -> bool:
        """Whether a library call may destroy objects of the user's classes that it holds."""
        for one in (*self.children(cursor)[:1], *arguments):
            inner = self.children(one)[:1] if kind_of(one) is K.MEMBER_REF_EXPR else [one]
            for part in inner:
                found = self.types.lower(part.type)
                while found.element is not None:
                    found = found.element
                record = self.types.records.get(found.record)
                if record is not None and record.standard and record.destructor:
                    return True
        return False

    def _launch(self, cursor: Cursor, inner: list[Cursor]) -> ir.Expr:
        self.launched = True
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
        symbol = kernel_symbol(target) if kind_of(target) is K.FUNCTION_DECL else f"?{target.spelling}"
        names = tuple(a.spelling for a in target.get_arguments())
        return ir.Kernel(target.spelling, (symbol,), parameters, outputs, priority, names)

    def leaving(self, cursor: Cursor) -> int:
        """Note a return or throw statement, so that text can be inserted before it; returns its number."""
        return self._operation(cursor, None)

    def _operation(
        self,
        cursor: Cursor,
        launch: tuple[Cursor, list[Cursor]] | None,
        called: str = "",
        arguments: list[Cursor] | None = None,
    ) -> int:
        """Note the operation's text; returns its number."""
        number = len(self.operations)
        anchor, path, text = self.anchor, self.source.path, self.text
        span = self.span(cursor)
        stuck, stream, rename = "", None, None
        defaults: tuple[str, ...] = ()
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
            stream, rename = self._call_texts(cursor, called, arguments or [])
        statement = None
        if anchor is not None and span.path == path and anchor.end > anchor.start:
            end = with_semicolon(text, anchor.end)
            line = text.count(b"\n", 0, anchor.start) + 1
            column = anchor.start - (text.rfind(b"\n", 0, anchor.start) + 1) + 1
            statement = Span(path, anchor.start, end, line, column)
        self.operations.append(
            ir.Operation(
                number, span, statement, bool(anchor and anchor.lone), bool(anchor and anchor.stuck), stream, defaults,
                rename, stuck,
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

    def _call_texts(
        self, cursor: Cursor, called: str, arguments: list[Cursor]
    ) -> tuple[tuple[int, int] | None, tuple[tuple[int, int], str] | None]:
        """Where a runtime API call states its stream, and what it has to be called to do so."""
        entry = cuda_call(called, len(arguments)) if called else None
        if entry is None or (entry.stream is None and entry.async_form is None):
            return None, None
        start, _ = file_range(cursor)
        name = (start.offset, start.offset + len(called))
        if self.text[slice(*name)] != called.encode():
            return None, None
        close = closing_parenthesis(self.text, name[1])
        if close is None:
            return None, None
        written = [a for a in arguments if a.extent.start.offset or a.extent.end.offset]
        if entry.stream is None:
            complete = len(written) == len(arguments) and entry.async_form is not None
            return ((close, close), (name, entry.async_form or "")) if complete else (None, None)
        if entry.stream < len(written):
            first, last = file_range(written[entry.stream])
            inside = name[1] < first.offset < last.offset <= close
            return ((first.offset, last.offset) if inside else None), None
        return ((close, close) if entry.stream == len(written) else None), None


def _changeable(declared: ClangType) -> bool:
    """Whether a parameter is a reference through which the callee may change the argument."""
    canonical = declared.get_canonical()
    return canonical.kind.name.endswith("REFERENCE") and not canonical.get_pointee().is_const_qualified()


def _is_implicit(constructor: Cursor) -> bool:
    """Whether the compiler wrote a constructor: it is defaulted, or its class does not declare it."""
    if constructor.is_default_method():
        return True
    usr = constructor.canonical.get_usr()
    return all(c.get_usr() != usr for c in constructor.semantic_parent.get_children())


def is_kernel(cursor: Cursor) -> bool:
    """Whether a function declaration is a ``__global__`` function."""
    return any(kind_of(c) is K.CUDAGLOBAL_ATTR for c in cursor.get_children())

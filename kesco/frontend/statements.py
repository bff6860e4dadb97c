"""Statements: libclang cursors → `ir.program.Stmt`.

In: the body of a host function. Out: its structured control flow. Kept apart from the expressions because this is
where the *anchor* of every operation is decided: the statement of the file before and behind which text may be
inserted.

1. Each statement of a block sets the anchor for what it contains; statements that a macro expands to share the
   anchor of the outermost invocation. 2. Conditions, loop headers and returns clear it. 3. Loops and branches inside
   one macro invocation mark it stuck, since text around the invocation would not run as often as the operation.
It refuses goto, labels, inline assembly and try: they become an `Obstacle`.
"""

from __future__ import annotations

from dataclasses import replace

from clang.cindex import Cursor, CursorKind, StorageClass

from kesco.frontend import clang
from kesco.frontend.bindings import Bindings, is_binding
from kesco.frontend.clang import SourceFile, kind_of
from kesco.frontend.declarations import CLASSES, functions_within
from kesco.frontend.operations import header_semicolons, semicolon_between
from kesco.frontend.types import TypeTable
from kesco.frontend.zeroing import zeroing
from kesco.ir import program as ir
from kesco.ir.walking import breaks

K = CursorKind
_OBSTACLES = {
    K.GOTO_STMT: "goto",
    K.INDIRECT_GOTO_STMT: "a computed goto",
    K.LABEL_STMT: "a label",
    K.ASM_STMT: "inline assembly",
    K.MS_ASM_STMT: "inline assembly",
    K.CXX_TRY_STMT: "a try block",
    K.CXX_CATCH_STMT: "a try block",
    K.SEH_TRY_STMT: "a try block",
}
_COUNTS = ir.Type(ir.Shape.INTEGER, "long")  # what counts the elements of a range: there are never so many
_WAYS_OUT = {K.RETURN_STMT: "return", K.CXX_THROW_EXPR: "throw"}
_JUMPS = {K.BREAK_STMT: "break", K.CONTINUE_STMT: "continue"}
_DECLARATIONS_WITHOUT_EFFECT = {
    K.TYPEDEF_DECL, K.TYPE_ALIAS_DECL, K.STRUCT_DECL, K.CLASS_DECL, K.UNION_DECL, K.ENUM_DECL, K.USING_DECLARATION,
    K.USING_DIRECTIVE, K.NAMESPACE_ALIAS, K.STATIC_ASSERT, K.FUNCTION_DECL, K.TYPE_ALIAS_TEMPLATE_DECL,
}  # fmt: skip


class Statements(Bindings):
    """Lowers statements; expressions come from the base class."""

    def __init__(self, source: SourceFile, types: TypeTable) -> None:
        super().__init__(source, types)
        self.loops = 0
        self.on_lambda = self._lambda_body

    # ---- statements -------------------------------------------------------------------------------------------------

    def _statement(self, cursor: Cursor) -> ir.Stmt:
        outer, self.ahead = self.ahead, []
        lowered = self._lowered(cursor)
        ahead, self.ahead = self.ahead, outer
        return ir.Block(lowered.span, (*ahead, lowered), declares=True) if ahead else lowered

    def _lowered(self, cursor: Cursor) -> ir.Stmt:
        kind = kind_of(cursor)
        span = self.span(cursor)
        if kind is K.COMPOUND_STMT:
            return self._compound(cursor)
        if kind in (K.DECL_STMT, K.VAR_DECL):
            return self._declarations(cursor)
        if kind is K.NULL_STMT:
            return ir.Block(span, ())
        if kind is K.IF_STMT:
            return self._if(cursor)
        if kind is K.FOR_STMT:
            return self._for(cursor)
        if kind in (K.WHILE_STMT, K.DO_STMT):
            return self._while(cursor, kind is K.DO_STMT)
        if kind is K.CXX_FOR_RANGE_STMT:
            return self._range_for(cursor)
        if kind is K.SWITCH_STMT:
            return self._switch(cursor)
        if kind in (K.CASE_STMT, K.DEFAULT_STMT):
            return self._case(cursor, kind is K.DEFAULT_STMT)
        if kind is K.UNEXPOSED_EXPR and [kind_of(c) for c in clang.children(cursor)] == [K.CXX_THROW_EXPR]:
            return self._statement(clang.children(cursor)[0])  # what is thrown is made in it
        if kind in _WAYS_OUT:
            inner = self.children(cursor)
            value = self.within(inner[0]) if inner else None
            self._leaves = True
            return ir.Leave(span, _WAYS_OUT[kind], value, self.leaving(cursor))
        if kind in _JUMPS:
            return ir.Leave(span, _JUMPS[kind])
        if kind in _OBSTACLES or kind.name.startswith("OMP_"):
            reason = _OBSTACLES.get(kind, "an OpenMP directive")
            if kind.name.startswith("OMP_"):
                self.seen.append(("openmp", span))
            return ir.Block(
                span, (ir.Obstacle(span, reason), *(self._statement_or_skip(c) for c in clang.children(cursor)))
            )
        if kind in _DECLARATIONS_WITHOUT_EFFECT:
            return ir.Block(span, ())
        if kind.is_expression():
            return self.whole(cursor) or self._zeroing(cursor, ir.Evaluate(span, self.value(cursor)))
        inner = [c for c in clang.children(cursor) if kind_of(c).is_statement() or kind_of(c).is_expression()]
        if kind is K.UNEXPOSED_STMT and len(inner) == 1:  # a statement with attributes, or behind #pragma unroll
            return self._statement(inner[0])
        return self._refused(cursor, "a statement of unknown form")

    def _zeroing(self, cursor: Cursor, lowered: ir.Evaluate) -> ir.Stmt:
        """The statement; it has an operation if all it does is to set a number to zero."""
        found = None if self._inside_macro else zeroing(cursor, self.text, lowered)
        if found is None or not isinstance(lowered.expression, ir.Assign):
            return lowered
        number = self._operation(cursor, None)
        place = self.operations[number].statement
        if place is None or self.operations[number].stuck or self.text[lowered.span.end : place.end].strip() != b";":
            self.operations.pop()
            return lowered
        self.operations[number] = replace(self.operations[number], zeroing=found)
        return replace(lowered, expression=replace(lowered.expression, operation=number))

    def _refused(self, cursor: Cursor, reason: str) -> ir.Stmt:
        """A statement that is not followed; what it mentions it may change."""
        span = self.span(cursor)
        mentioned = ir.Unknown(tuple(self.mentions(cursor)), "obstacle", span)
        return ir.Block(span, (ir.Obstacle(span, reason), ir.Evaluate(span, mentioned)))

    def _statement_or_skip(self, cursor: Cursor) -> ir.Stmt:
        if kind_of(cursor).is_expression() or kind_of(cursor).is_statement():
            return self._labelled(cursor)
        return ir.Block(self.span(cursor), ())

    def _labelled(self, cursor: Cursor) -> ir.Stmt:
        """The statement behind a label, which is as lone as the label."""
        lone = self.anchor is not None and self.anchor.lone and kind_of(cursor) is not K.COMPOUND_STMT
        return self.statement(cursor, lone=lone)

    def _compound(self, cursor: Cursor) -> ir.Stmt:
        body: list[ir.Stmt] = []
        for one in map(self.statement, clang.children(cursor)):
            if not (body and self._ends_invocation(body[-1], one)):
                body.append(one)
        span = self.span(cursor)
        return ir.Block(span, tuple(body), end=-1 if self._inside_macro else self.closing(cursor, span))

    def _ends_invocation(self, one: ir.Stmt, other: ir.Stmt) -> bool:
        """Whether a statement is but the semicolon behind a macro that expands to braces: they are one."""
        own, text = other.span, self.text
        empty = isinstance(other, ir.Block) and not other.body and text[own.start : own.end] == b";"
        return empty and text[one.span.end - 1 : one.span.end] == b")" and not text[one.span.end : own.start].strip()

    def _declarations(self, cursor: Cursor) -> ir.Stmt:
        found: list[ir.Stmt] = []
        for child in [cursor] if kind_of(cursor) is K.VAR_DECL else clang.children(cursor):
            if kind_of(child) in CLASSES:  # unseen code may call its functions, through a base or by their address
                self.elsewhere.update({one.canonical.get_usr(): one for one in functions_within(child)})
            if kind_of(child) is K.VAR_DECL:
                declared = self._declare_variable(child)
                found += [*self.ahead, declared]
                self.ahead = []
            elif kind_of(child) not in _DECLARATIONS_WITHOUT_EFFECT:
                apart = self.decomposed(child) or [self._refused(child, "a declaration of unknown form")]
                found += [*self.ahead, *apart]
                self.ahead = []
        return found[0] if len(found) == 1 else ir.Block(self.span(cursor), tuple(found), declares=True)

    def _declare_variable(self, cursor: Cursor) -> ir.Stmt:
        if cursor.storage_class == StorageClass.EXTERN:  # it names a variable and makes none
            return ir.Block(self.span(cursor), ())
        if clang.runs_at_end(cursor):
            return self._refused(cursor, "a variable with the attribute 'cleanup'")
        initial = clang.initializer(cursor)
        variable = self.variable(cursor)
        each_time = variable.scope is ir.Scope.LOCAL and variable.type.shape is not ir.Shape.REFERENCE
        value = None if initial is None else self.value(initial) if each_time else self.lower(initial)
        return ir.Declare(self.span(cursor), variable, value)

    def _header(self, cursors: list[Cursor], *, stuck: bool = True) -> tuple[ir.Stmt, ...]:
        """Declarations and expressions that run once at the head of a statement, or of a macro's invocation."""
        if self.anchor is None or self._inside_macro or not stuck:
            return tuple(self._statement(c) for c in cursors)
        keep, self.anchor.stuck = self.anchor.stuck, self.anchor.stuck or "it stands in the head of a statement"
        try:
            return tuple(self._statement(c) for c in cursors)
        finally:
            self.anchor.stuck = keep

    def _body(self, cursor: Cursor) -> ir.Stmt:
        """The sub-statement of an if or loop, which is a scope of its own also where it has no braces."""
        lowered = self._sub_statement(cursor)
        return ir.Block(self.span(cursor), (lowered,)) if kind_of(cursor) is K.DECL_STMT else lowered

    def _sub_statement(self, cursor: Cursor) -> ir.Stmt:
        """A sub-statement; inside one macro invocation it is stuck to it."""
        if self._inside_macro and self.anchor is not None:
            keep = self.anchor.stuck
            self.anchor.stuck = keep or "it stands in a loop or branch inside a macro"
            try:
                return self._statement(cursor)
            finally:
                self.anchor.stuck = keep
        lone = kind_of(cursor) is not K.COMPOUND_STMT
        keep_anchor, self.anchor = self.anchor, None
        try:
            return self.statement(cursor, lone=lone)
        finally:
            self.anchor = keep_anchor

    def _if(self, cursor: Cursor) -> ir.Stmt:
        inner = self.children(cursor)
        before: list[Cursor] = []
        while len(inner) > 2 and kind_of(inner[0]) in (K.DECL_STMT, K.VAR_DECL):  # the latter is the condition's own
            before.append(inner.pop(0))
        if len(inner) > 2:
            first, second = inner[0].extent, inner[1].extent
            if (
                semicolon_between(self.text, first.end.offset, second.start.offset)
                and not self._inside_macro
                and (b")" not in self.text[first.end.offset : second.start.offset].split(b";")[0])
            ):
                before.append(inner.pop(0))
        if len(inner) not in (2, 3):
            return self._refused(cursor, "an if statement of unknown form")
        heads = max(int(c.extent.end.offset) for c in (*before, inner[0]))
        leaves, begin = len(inner) == 2 and self.ends_by_leaving(inner[1], heads), len(self.operations)
        head = self._header(sorted(before, key=lambda c: int(c.extent.start.offset)), stuck=not leaves)
        condition = self.condition(inner[0], first=not head, leaves=leaves)
        if leaves and len(self.operations) > begin:
            self.seen.append((ir.HEADS, self.span(cursor)))
        then = self._body(inner[1])
        other = self._body(inner[2]) if len(inner) == 3 else None
        return ir.If(self.span(cursor), head, condition, then, other)

    def _loop(self) -> int:
        self.loops += 1
        return self.loops

    def _for(self, cursor: Cursor) -> ir.Stmt:
        inner = self.children(cursor)
        span = self.span(cursor)
        if not inner:
            return self._refused(cursor, "a for statement of unknown form")
        body, header = inner[-1], inner[:-1]
        marks = (
            None if self._inside_macro or not self.text else header_semicolons(self.text, cursor.extent.start.offset)
        )
        if marks is None:
            if len(header) != 3:
                return self._refused(cursor, "a for statement that comes from a macro")
            first, conditions, steps = header[:1], header[1:2], header[2:]
        else:
            first = [c for c in header if c.extent.start.offset < marks[0]]
            conditions = [c for c in header if marks[0] < c.extent.start.offset < marks[1]]
            steps = [c for c in header if marks[1] < c.extent.start.offset]
        if len(conditions) > 1 or len(steps) > 1:
            return self._refused(cursor, "a for statement of unknown form")
        number = self._loop()
        head = self._header(first)
        stuck = self._enter_macro_loop()
        condition = self.unanchored(conditions[0]) if conditions else None
        step = self.unanchored(steps[0]) if steps else None
        lowered = self._body(body)
        self._leave_macro_loop(stuck)
        return ir.Loop(span, number, head, condition, step, lowered)

    def _enter_macro_loop(self) -> str | None:
        if not self._inside_macro or self.anchor is None:
            return None
        keep, self.anchor.stuck = self.anchor.stuck, self.anchor.stuck or "it stands in a loop inside a macro"
        return keep

    def _leave_macro_loop(self, keep: str | None) -> None:
        if keep is not None and self.anchor is not None:
            self.anchor.stuck = keep

    def _while(self, cursor: Cursor, after: bool) -> ir.Stmt:
        inner = self.children(cursor)
        span = self.span(cursor)
        if len(inner) != 2:
            return self._refused(cursor, "a while statement with a declaration in its condition")
        number = self._loop()
        body, condition = (inner[0], inner[1]) if after else (inner[1], inner[0])
        test = self.unanchored(condition)
        plain = ir.bare(test)
        once = after and isinstance(plain, ir.Constant) and plain.value == 0
        if once:  # do { … } while (0): the usual dress of a macro; what is inside runs once
            lowered = self._statement(body) if self._inside_macro else self._body(body)
            if not breaks(lowered):
                return lowered
            return ir.Loop(span, number, (), test, None, lowered, True)
        stuck = self._enter_macro_loop()
        lowered = self._body(body)
        self._leave_macro_loop(stuck)
        return ir.Loop(span, number, (), test, None, lowered, after)

    def _range_for(self, cursor: Cursor) -> ir.Stmt:
        inner = [c for c in clang.children(cursor) if kind_of(c).is_expression() or kind_of(c).is_statement()]
        variables = [c for c in clang.children(cursor) if kind_of(c) is K.VAR_DECL or is_binding(c)]
        span = self.span(cursor)
        if len(inner) != 2 or len(variables) != 1 or clang.runs_at_end(variables[0]):
            return self._refused(cursor, "a range-based for statement of unknown form")
        number = self._loop()
        over = self.unanchored(inner[0])
        runs = self.range_runs_code(inner[0], variables[0])
        test: ir.Expr = ir.Unknown((over,), "range-based for over a class", span) if runs else ir.Literal()
        base: ir.Expr = over.array if isinstance(over, ir.Decay) else over
        kind = self.types.lower(inner[0].type)
        held = ir.held_by(kind, self.types.records) if not runs and _is_fixed(over) else None
        element: ir.Expr = ir.Unknown((over,), ir.RANGE_ELEMENT, span)
        counter = ir.Variable(f"range:{number}", "#", _COUNTS, ir.Scope.LOCAL, span)
        count = ir.Name(counter, span)
        if kind.shape is ir.Shape.ARRAY:
            element = ir.Subscript(base, count, True, span)
        elif held is not None:
            name = "std::vector::operator[]"
            element = ir.Call(name, name, (count,), span, -1, over, standard=True, type=held, reference=True)
        apart = self.decomposed(variables[0], element) if is_binding(variables[0]) else None
        if apart is None and is_binding(variables[0]):
            return self._refused(cursor, "a range-based for statement of unknown form")
        declared = apart or [ir.Declare(span, self.variable(variables[0]), element)]
        body = self._body(inner[-1])
        each = ir.Block(span, (*declared, body))
        begins = ir.Declare(span, counter, ir.Constant(0))
        step = ir.Assign(count, "+", ir.Constant(1), span)
        loop = ir.Loop(span, number, (begins,), test, step, each, ranged=True)
        return ir.Block(span, (loop, ir.Evaluate(span, test))) if runs else loop  # a temporary is destroyed behind it

    def _switch(self, cursor: Cursor) -> ir.Stmt:
        inner = self.children(cursor)
        span = self.span(cursor)
        before = inner[:-2]
        if len(inner) < 2:
            return self._refused(cursor, "a switch statement of unknown form")
        if kind_of(inner[-1]) is not K.COMPOUND_STMT:
            return self._refused(cursor, "a switch without braces")
        head = self._header(before)
        condition = self.condition(inner[-2], first=not head)
        return ir.Switch(span, head, condition, self._body(inner[-1]))

    def _case(self, cursor: Cursor, default: bool) -> ir.Stmt:
        inner = self.children(cursor)
        value = None if default else clang.constant(inner[0])
        if not default and value is None:
            return self._refused(cursor, "a case label whose value is not known")
        if not default and len(inner) > 2:
            return self._refused(cursor, "a case range")
        return ir.Case(self.span(cursor), value, self._labelled(inner[-1]))

    def _lambda_body(self, cursor: Cursor) -> None:
        """Look through a lambda's body for the variables it mentions; if it launches it is a function of its own."""
        keep, self.anchor = self.anchor, None
        inside, self._inside_macro = self._inside_macro, False
        before = len(self.operations)
        body: ir.Stmt | None = None
        for child in clang.children(cursor):
            if kind_of(child) is K.COMPOUND_STMT:
                body = self.statement(child)
            elif kind_of(child) is K.VARIABLE_REF:
                self.captured_by(child)
        launches = body is not None and any(isinstance(n, ir.Launch) for n in ir.walk(body))
        called = _call_operator(cursor)
        if self.closures is not None and called is not None and body is not None and launches and not inside:
            self.closures.append(self._closure(cursor, called, body))
        else:
            self.inside += [ir.Block(self.span(cursor), (body,))] if body is not None else []
            for number in range(before, len(self.operations)):
                self._stick(number, "it stands in a lambda")
        self.anchor, self._inside_macro = keep, inside

    closures: list[ir.Function] | None = None  # what launches of the lambdas in a function; None where none is edited

    def _closure(self, cursor: Cursor, called: Cursor, body: ir.Stmt) -> ir.Function:
        """A lambda as a function; what is known of the variables that it holds the text does not say."""
        span = self.span(cursor)
        parameters = tuple(self.variable(c) for c in clang.children(cursor) if kind_of(c) is K.PARM_DECL)
        whole = ir.Block(span, (ir.Obstacle(span, ir.CLOSURE), body))
        return ir.Function(
            called.canonical.get_usr(), "operator()", parameters, whole, span, True, True,
            template=kind_of(called) is K.FUNCTION_TEMPLATE, method_of=called.semantic_parent.get_usr(), top=self.top,
            result=self.types.lower(called.result_type),
        )  # fmt: skip


def _is_fixed(over: ir.Expr) -> bool:
    """Whether an lvalue is the same object each time: it was bound once."""
    while isinstance(over, ir.Select) and not over.arrow and over.base is not None:
        over = over.base
    return isinstance(over, ir.Name)


def _call_operator(cursor: Cursor) -> Cursor | None:
    """What runs where a lambda is called; a template where it has a parameter of any type."""
    made = (c for c in clang.children(cursor.type.get_declaration()) if c.spelling == "operator()")
    return next((c for c in made if kind_of(c) in (K.CXX_METHOD, K.FUNCTION_TEMPLATE)), None)

"""What a statement that a graph may stand for depends on.

In: a statement. Out: the expressions, written as they would be before it, whose values decide what it gives the device
to do; or `NotCaptured`. Apart from the search because it is the one place that says what host code a replay may leave
out.

1. Launches, copies and memsets may use constants, variables of their own, and values: variables and members of them.
Of an array whose element depends on a variable of the statement's own, the whole array is the value. 2. Loops and
branches may be decided by the same. 3. A check of an error may end the process. 4. Nothing else: no call that is not
known, no store to anything declared outside, nothing read through a pointer or a container. 5. The members of what a
pointer points to are values where the statements follow that pointer whatever they decide: all values are read before
them, and a pointer that a branch or a loop of no trips leaves alone may point to nothing.
"""

from __future__ import annotations

import re

from kesco.ir import program as ir
from kesco.ir.replay import ENDS, STATUS

_CUDA_VALUE_TYPE = re.compile(r"(?:dim3|u?(?:int|char|short|long|longlong)[1-4]|(?:float|double)[1-4])")
_PLAIN = (ir.Shape.INTEGER, ir.Shape.POINTER, ir.Shape.OTHER)


class NotCaptured(Exception):
    """A statement does, or depends on, what a replay would leave out; the message is the reason in words."""


class Reader:
    """Reads statements one after another and collects their `values`.

    `followed` are pointers to objects that are certainly there, as text; those that the statements follow are added.
    """

    def __init__(self, program: ir.Program, movable: frozenset[int], followed: set[str] | None = None) -> None:
        self.program, self.movable = program, movable
        self.followed = set[str]() if followed is None else followed
        self.values: dict[str, None] = {}
        self._own: set[str] = set()  # variables that the statements declare
        self._results: set[str] = set()  # of these, the results of calls: errors
        self._perhaps = False  # what is read now may be left out
        self._ended = False  # so it may, since the process may have ended

    def statement(self, statement: ir.Stmt) -> None:
        """Read a statement; raises `NotCaptured`."""
        if isinstance(statement, ir.Block):
            if statement.end >= 0:
                raise NotCaptured("a destructor runs")
            for one in statement.body:
                self.statement(one)
        elif isinstance(statement, ir.Evaluate):
            self._effect(statement.expression)
        elif isinstance(statement, ir.Declare):
            self._declare(statement)
        elif isinstance(statement, ir.If) and not statement.before:
            self._if(statement)
        elif isinstance(statement, ir.Loop) and statement.condition not in (None, ir.Literal()):
            self._loop(statement, statement.condition)
        else:
            raise NotCaptured("control flow of another kind")

    def _loop(self, statement: ir.Loop, condition: ir.Expr | None) -> None:
        for one in statement.before:
            self.statement(one)
        assert condition is not None
        if statement.tested_after:
            self.statement(statement.body)
        self.value(condition)
        outer, self._perhaps = self._perhaps, True
        if statement.step is not None:
            self._effect(statement.step)
        if not statement.tested_after:
            self.statement(statement.body)
        self._perhaps = outer

    def _declare(self, statement: ir.Declare) -> None:
        variable = statement.variable
        if variable.scope is not ir.Scope.LOCAL or not self._is_data(variable.type, reference=False):
            raise NotCaptured(f"the variable '{variable.name}'")
        self._own.add(variable.key)
        if isinstance(statement.initial, ir.Call) and not statement.initial.constructs:
            self._effect(statement.initial)
            self._results.add(variable.key)
        elif statement.initial is not None:
            self.value(statement.initial)

    def _if(self, statement: ir.If) -> None:
        names = {n.variable.key for n in ir.walk(statement.condition) if isinstance(n, ir.Name)}
        if not names & self._results:
            self.value(statement.condition)
            outer, self._perhaps = self._perhaps, True
            self.statement(statement.then)
            if statement.other is not None:
                self.statement(statement.other)
            self._perhaps = outer
            return
        if not names <= self._own or statement.other is not None or not _ends(statement.then):
            raise NotCaptured("an error does not end the process")
        self._ended = True

    def _effect(self, expression: ir.Expr) -> None:
        """An expression that may do something."""
        if isinstance(expression, ir.Cast):
            self._effect(expression.operand)
        elif isinstance(expression, ir.Launch) and expression.operation in self.movable:
            if not expression.kernel.candidates or ir.DEFAULT in expression.arguments:
                raise NotCaptured("a kernel, or an argument of one, that is not written here")
            for one in (*expression.configuration, *expression.arguments):
                self.value(one)
        elif isinstance(expression, ir.Assign):
            target = expression.target
            if not isinstance(target, ir.Name) or target.variable.key not in self._own:
                raise NotCaptured("a store to a variable from outside")
            self.value(expression.value)
        elif isinstance(expression, ir.Call) and expression.receiver is None and expression.operation in self.movable:
            for one in expression.arguments:
                self.value(one)
        elif not (isinstance(expression, ir.Call) and expression.standard and expression.name in STATUS):
            raise NotCaptured("a call or an effect of another kind")

    def value(self, expression: ir.Expr) -> None:
        """An expression that has to have the same value whenever the graph is replayed."""
        if isinstance(expression, (ir.Constant, ir.Literal)) and expression != ir.Literal("varying"):
            return
        if isinstance(expression, (ir.Name, ir.Select)) and self._own.isdisjoint(_names(expression)):
            self._take(expression)
        elif isinstance(expression, ir.Name):
            if expression.variable.key in self._results:
                raise NotCaptured("the result of a call")
        elif isinstance(expression, ir.Select) and expression.base is not None and not expression.arrow:
            self.value(expression.base)
        elif isinstance(expression, ir.Subscript) and expression.array:
            self.value(expression.base)
            self.value(expression.index)
        elif isinstance(expression, (ir.Binary, ir.Unary, ir.Branch, ir.Cast, ir.InitList)):
            outer = self._perhaps
            for one in ir.children(expression):
                assert isinstance(one, ir.Expr)
                self.value(one)
                self._perhaps = outer or isinstance(expression, ir.Branch)  # only what comes first always has a value
            self._perhaps = outer
        elif isinstance(expression, ir.Call) and self._makes_data(expression):
            for one in expression.arguments:
                self.value(one)
        else:
            raise NotCaptured("a value that cannot be compared")

    def _makes_data(self, call: ir.Call) -> bool:
        """Whether a call is a constructor that does nothing but copy fields."""
        if not call.constructs or call.receiver is not None:
            return False
        record = self.program.records.get(call.type.record) if call.type is not None else None
        copies = call.implicit and len(call.arguments) == 1 and record is not None and record.plain
        return copies or (call.standard and bool(_CUDA_VALUE_TYPE.fullmatch(call.name.rpartition("::")[2])))

    def _take(self, expression: ir.Name | ir.Select) -> None:
        root = expression
        while isinstance(root, ir.Select) and isinstance(root.base, (ir.Name, ir.Select)):
            root = root.base
        if isinstance(root, ir.Name) and root is expression and root.variable.constant is not None:
            return
        shape = expression.variable.type if isinstance(expression, ir.Name) else expression.type
        if isinstance(root, ir.Name) and root.variable.scope is ir.Scope.SYMBOL:
            raise NotCaptured("memory of the device")
        if not self._is_data(shape, reference=True):
            raise NotCaptured("an object that cannot be compared byte by byte")
        written = self._written(expression)
        self._follow(expression)
        self.values[written] = None

    def _follow(self, expression: ir.Expr) -> None:
        """What a value is read through must be there."""
        if not isinstance(expression, ir.Select) or expression.base is None:
            return
        self._follow(expression.base)
        if not expression.arrow or _is_this(expression.base):
            return
        pointer = self._written(expression.base)
        if (self._perhaps or self._ended) and pointer not in self.followed:
            raise NotCaptured("a member of what may not be there")
        self.followed.add(pointer)

    def _is_data(self, shape: ir.Type, *, reference: bool) -> bool:
        """Whether a type's values can be copied and compared as bytes."""
        if shape.volatile:
            return False
        if shape.shape is ir.Shape.REFERENCE or shape.shape is ir.Shape.ARRAY:
            follow = shape.element is not None and (reference or shape.shape is ir.Shape.ARRAY)
            return follow and shape.element is not None and self._is_data(shape.element, reference=False)
        if shape.shape is ir.Shape.RECORD:
            record = self.program.records.get(shape.record)
            known = record is not None and record.standard and _CUDA_VALUE_TYPE.fullmatch(record.name) is not None
            plain = record is not None and record.plain and not record.destructor and not record.standard
            return known or plain
        return shape.shape in _PLAIN

    def _written(self, expression: ir.Expr) -> str:
        """A variable or a member of one as text."""
        if isinstance(expression, ir.Name):
            text = self.program.text[expression.span.start : expression.span.end].decode("utf-8", "replace")
            name, qualified = expression.variable.name, expression.variable.qualified
            if re.fullmatch(rf"(?:::)?(?:\w+::)*{re.escape(name)}", text):
                return text
            if expression.variable.scope is not ir.Scope.GLOBAL or qualified == name:
                return name  # in a macro
            raise NotCaptured("a member of a class, or of a namespace, that is not written with its name")
        if isinstance(expression, ir.Select) and re.fullmatch(r"[A-Za-z_]\w*", expression.member):
            if _is_this(expression.base):
                return f"this->{expression.member}"
            if isinstance(expression.base, (ir.Name, ir.Select)):
                return f"{self._written(expression.base)}{'->' if expression.arrow else '.'}{expression.member}"
        raise NotCaptured("a value that cannot be named")


def _is_this(base: ir.Expr | None) -> bool:
    this = ir.Literal("this")
    return base is None or (
        isinstance(base, ir.AddressOf) and isinstance(base.target, ir.Dereference) and base.target.pointer == this
    )


def _names(expression: ir.Expr) -> set[str]:
    return {n.variable.key for n in ir.walk(expression) if isinstance(n, ir.Name)}


def _ends(statement: ir.Stmt) -> bool:
    """Whether a statement does nothing but call functions, the last of which does not come back."""
    body = statement.body if isinstance(statement, ir.Block) else (statement,)
    calls = [s.expression for s in body if isinstance(s, ir.Evaluate)]
    last = calls[-1] if calls and len(calls) == len(body) else None
    return isinstance(last, ir.Call) and last.standard and last.name.rpartition("::")[2] in ENDS

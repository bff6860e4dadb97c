"""Statements that do nothing but give the device work: which operations one issues.

In: a program and a statement of a function. Out: the numbers of its operations, or none. Apart from the rest because
this is about the language: what else a statement does, and what it depends on.

1. Launches, copies and memsets may use what can be read without effect: variables, members, elements, arithmetic, and
members of containers of the library that only say what is there. So it makes no difference when they are evaluated, as
long as nobody writes what they read: what the device may write is a site of its own where the host reads it, and
`issue` refuses a statement with one. What a copy to the host may write is asked in `reads`. 2. Nothing is stored but to
variables of the statement's own, such as a loop's counter or the status of a call. 3. Where a call has failed, the
program may say so and end; it may not go on in another way than where none has: no store, no ``return`` from a function
that is called, no exception. 4. Loops have a condition, which can be read without effect.
5. Between them may stand statements that are `calm`: empty ones, and those that give the function's own plain variables
values which can be read without effect; and those that only ask for errors.

It refuses what is volatile, calls of functions that are not known, declarations that others see, and kernels whose
effects their author has stated: a promise is good for streams, which `KESCO_STREAMS=1` takes back, but not for this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kesco.ir import program as ir
from kesco.ir.failures import (
    CLEANS,
    NAMES_ERRORS,
    SAYS,
    leaves_if_it_went_well,
    may_return,
    never_comes_back,
    runs_at_exit,
    where_it_failed,
)
from kesco.ir.replay import ENDS

_PLAIN = (ir.Constant, ir.Literal, ir.FunctionName, ir.Subscript, ir.Dereference, ir.AddressOf, ir.Decay, ir.Binary,
          ir.Unary, ir.Branch, ir.Cast, ir.InitList)  # fmt: skip
_GOES_ON = (ir.Assign, ir.Launch, ir.New, ir.Obstacle, ir.Declare, ir.Loop, ir.Unknown)
_CONTAINERS = ("std::vector::", "std::array::", "std::basic_string::", "std::unique_ptr::", "std::span::")
_ONLY_SAY = frozenset({"data", "size", "empty", "get", "operator[]", "c_str"})
_VALUES = frozenset({"dim3", "min", "max", "ceil", "ceilf", "floor", "floorf"})
_ASKS = frozenset({"cudaGetLastError", "cudaPeekAtLastError"})
_PLAIN_VALUES = (ir.Shape.INTEGER, ir.Shape.POINTER)
_FLOATING = frozenset({"float", "double", "bool", "dim3"})


class _OtherEffect(Exception):
    """A statement does something else, or depends on what may change."""


def issued(
    program: ir.Program, function: ir.Function, statement: ir.Stmt, work: frozenset[int], known: frozenset[str]
) -> frozenset[int]:
    """The operations, all of them in `work`, that are all a statement of a function does; none if it does more.

    `known` are variables that hold nothing but the status of the latest call (`pairs`).
    """
    reader = _Reader(program, work, known)
    if isinstance(statement, ir.Declare) or (isinstance(statement, ir.Block) and statement.declares):
        return frozenset()
    try:
        reader.statement(statement)
    except _OtherEffect:
        return frozenset()
    return frozenset() if may_return(program, function, statement) else frozenset(reader.found)


def calm(program: ir.Program, statement: ir.Stmt) -> bool:
    """Whether a statement does nothing but give plain variables of the function's own their values."""
    parts = statement.body if isinstance(statement, ir.Block) and statement.declares else (statement,)
    if isinstance(statement, ir.Block) and not statement.body:
        return True
    reader = _Reader(program, frozenset(), frozenset())
    try:
        for one in parts:
            if isinstance(one, ir.Evaluate) and isinstance(one.expression, ir.Assign):
                target = one.expression.target
                value: ir.Expr | None = one.expression.value
                fits = isinstance(target, ir.Name) and _is_plain(target.variable)
            else:
                fits = isinstance(one, ir.Declare) and _is_plain(one.variable)
                value = one.initial if isinstance(one, ir.Declare) else None
            if not fits:
                return False
            if value is not None:
                reader.value(value)
    except _OtherEffect:
        return False
    return True


def given_values(statement: ir.Stmt) -> Iterator[ir.Expr]:
    """The variables that a calm statement gives new values to."""
    return (n.target for n in ir.walk(statement) if isinstance(n, ir.Assign))


def _is_plain(variable: ir.Variable) -> bool:
    kind = variable.type
    known = kind.shape in _PLAIN_VALUES or kind.spelling.removeprefix("const ") in _FLOATING
    return known and variable.scope is ir.Scope.LOCAL and not _is_volatile(kind)


def issued_or_asked(
    program: ir.Program, function: ir.Function, statement: ir.Stmt, work: frozenset[int], known: frozenset[str]
) -> tuple[frozenset[int], bool]:
    """As `issued`, of a statement that may also ask whether a call has failed; and whether it does."""
    reader = _Reader(program, work, known, asks=True)
    try:
        reader.statement(statement)
    except _OtherEffect:
        return frozenset(), False
    return (frozenset(), False) if may_return(program, function, statement) else (frozenset(reader.found), reader.asked)


def is_bare(statement: ir.Stmt, operations: Collection[int]) -> bool:
    """Whether nobody looks at what the call of an operation in a statement returns."""
    for one in ir.walk(statement):
        inner = ir.bare(one.expression) if isinstance(one, ir.Evaluate) else None
        if isinstance(inner, ir.Call) and inner.operation in operations:
            return True
    return False


class _Reader:
    """Reads one statement, which may ask for errors if `asks` says so."""

    def __init__(self, program: ir.Program, work: frozenset[int], known: frozenset[str], *, asks: bool = False) -> None:
        self.work, self.found = work, set[int]()
        self.may_ask, self.asked = asks, False
        self._program = program
        self._functions = {f.key: f for f in program.functions}
        self._stated = {one.kernel for one in program.stated}
        self._own = set(known)
        self._depth = 0

    def statement(self, one: ir.Stmt) -> None:
        """Read a statement, or one inside it."""
        if isinstance(one, ir.Block) and one.end < 0:
            for inner in one.body:
                self.statement(inner)
        elif isinstance(one, ir.Evaluate):
            self._effect(one.expression)
        elif isinstance(one, ir.Declare):
            self._declare(one)
        elif isinstance(one, ir.If) and not one.before and (which := where_it_failed(one.condition)) is not None:
            self.value(one.condition)
            failed, other = (one.then, one.other) if which else (one.other, one.then)
            if failed is not None:
                self._failed(failed)
            if other is not None:
                self.statement(other)
        elif isinstance(one, ir.Loop):
            self._loop(one)
        elif not (isinstance(one, ir.Leave) and one.how == "return" and one.value is None and self._depth):
            raise _OtherEffect

    def _loop(self, one: ir.Loop) -> None:
        if one.tested_after:
            if one.condition != ir.Constant(0):  # what macros are wrapped in
                raise _OtherEffect
        elif one.condition in (None, ir.Literal()):
            raise _OtherEffect
        for inner in one.before:
            self.statement(inner)
        assert one.condition is not None
        self.value(one.condition)
        self.statement(one.body)
        if one.step is not None:
            self._effect(one.step)

    def _declare(self, one: ir.Declare) -> None:
        shape = one.variable.type.shape
        if one.variable.scope is not ir.Scope.LOCAL or shape in (ir.Shape.REFERENCE, ir.Shape.RECORD):
            raise _OtherEffect
        self._own.add(one.variable.key)
        if one.initial is not None:
            self._effect(one.initial)

    def _effect(self, one: ir.Expr) -> None:
        """An expression that may issue something."""
        if isinstance(one, ir.Cast):
            self._effect(one.operand)
        elif isinstance(one, ir.Launch):
            if one.operation not in self.work or one.kernel.name in self._stated or one.kernel.outputs is not None:
                raise _OtherEffect
            self._takes(one.operation, (*one.configuration, *one.arguments))
        elif isinstance(one, ir.Assign):
            if not isinstance(one.target, ir.Name) or one.target.variable.key not in self._own:
                raise _OtherEffect
            self._effect(one.value)
        elif isinstance(one, ir.Call) and one.operation in self.work and one.receiver is None:
            self._takes(one.operation, one.arguments)
        elif isinstance(one, ir.Call) and self.may_ask and one.standard and one.name in _ASKS:
            self.asked = True
        elif isinstance(one, ir.Call) and one.key in self._functions and not one.standard:
            self._checks(one, self._functions[one.key])
        else:
            self.value(one)

    def _takes(self, operation: int, arguments: tuple[ir.Expr, ...]) -> None:
        if self._depth:
            raise _OtherEffect  # in a function that is called: other statements may call it, too
        self.found.add(operation)
        for argument in arguments:
            self.value(argument)

    def _checks(self, call: ir.Call, function: ir.Function) -> None:
        """A function of the program that is given the status of a call, and looks at it."""
        if self._depth or call.receiver is not None or function.method_of or call.constructs:
            raise _OtherEffect
        for argument in call.arguments:
            self._effect(argument)
        self._depth += 1
        own, self._own = self._own, set()
        body = function.body.body if isinstance(function.body, ir.Block) else (function.body,)
        for behind, inner in enumerate(body, start=1):
            self.statement(inner)
            if leaves_if_it_went_well(inner):
                self._failed(ir.Block(function.span, body[behind:]))
                break
        self._depth, self._own = 0, own

    def _failed(self, one: ir.Stmt | ir.Expr) -> None:
        """What runs where a call has failed: it says so, and ends."""
        for node in ir.walk(one):
            if isinstance(node, ir.Call):
                name = node.name.rpartition("::")[2]
                cleans = name in CLEANS and isinstance(one, ir.Stmt) and never_comes_back(one)
                if not node.standard or node.runs or not (cleans or name in SAYS | NAMES_ERRORS):
                    raise _OtherEffect
                if name in ENDS and runs_at_exit(self._program):  # what runs there may look at the device
                    raise _OtherEffect
            elif isinstance(node, ir.Leave):
                if node.how != "return" or self._depth:
                    raise _OtherEffect
            elif isinstance(node, _GOES_ON):
                raise _OtherEffect

    def value(self, one: ir.Expr) -> None:
        """An expression that is read without effect."""
        if isinstance(one, (ir.Name, ir.Select)):
            if _is_volatile(one.variable.type if isinstance(one, ir.Name) else one.type):
                raise _OtherEffect
        elif isinstance(one, ir.Call):
            if not _only_says(one):
                raise _OtherEffect
        elif not isinstance(one, _PLAIN):
            raise _OtherEffect
        for inner in ir.children(one):
            if not isinstance(inner, ir.Expr):
                raise _OtherEffect
            self.value(inner)


def _is_volatile(shape: ir.Type | None) -> bool:
    return shape is not None and (shape.volatile or _is_volatile(shape.element))


def _only_says(call: ir.Call) -> bool:
    """Whether a call of the library has no effect, and depends on nothing but its operands."""
    if not call.standard or call.runs or call.destroys:
        return False
    name = call.name.rpartition("::")[2]
    return name in _VALUES or (call.name.startswith(_CONTAINERS) and name in _ONLY_SAY)

"""Expressions and statements of the host program: a small C with launches.

Only what decides where pointers point, in which order operations run and what the host touches is kept; everything else
is `Unknown` with its parts, so that nothing with an effect is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kesco.ir.types import Shape, Type, Variable
from kesco.source import Span

# ---- expressions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expr:
    """Base of expressions."""


@dataclass(frozen=True, slots=True)
class Constant(Expr):
    """An integer constant, wherever the front-end could fold one; null pointers are 0."""

    value: int


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """A variable."""

    variable: Variable
    span: Span


@dataclass(frozen=True, slots=True)
class FunctionName(Expr):
    """A function used as a value; `kernel` is set when it is a ``__global__`` function."""

    key: str
    name: str
    kernel: Kernel | None = None


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """``base.member`` or, with `arrow`, ``base->member``; a missing base is ``this``."""

    base: Expr | None
    member: str
    arrow: bool
    type: Type
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Subscript(Expr):
    """``base[index]``; `array` when the base is an array object rather than a pointer."""

    base: Expr
    index: Expr
    array: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Dereference(Expr):
    """``*pointer``."""

    pointer: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class AddressOf(Expr):
    """``&target``."""

    target: Expr


@dataclass(frozen=True, slots=True)
class Decay(Expr):
    """An array used as a pointer to its first element."""

    array: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """Arithmetic, comparison or pointer arithmetic; `operator` as in C."""

    operator: str
    left: Expr
    right: Expr
    type: Type | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """``-``, ``+``, ``~`` or ``!``."""

    operator: str
    operand: Expr
    type: Type | None = None


@dataclass(frozen=True, slots=True)
class Assign(Expr):
    """``target operator= value``; plain assignment has an empty operator. `post` marks ``x++`` and ``x--``.

    `operation` is that of a statement which does nothing but set a number to zero (`Operation.zeroing`).
    """

    target: Expr
    operator: str
    value: Expr
    span: Span
    post: bool = False
    operation: int = -1


@dataclass(frozen=True, slots=True)
class Branch(Expr):
    """``condition ? then : other``; ``a && b`` is ``a ? b : 0`` and ``a || b`` is ``a ? 1 : b``."""

    condition: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """A conversion to `type` from `source`, where that matters: between integers, and between pointers."""

    operand: Expr
    type: Type
    source: Type | None = None

    @property
    def adds_const(self) -> bool:
        """Whether a scalar stays where it is, and is only const: a new value of a scalar type is never const."""
        source = self.source
        return (
            source is not None and source.shape is not Shape.RECORD and self.type.spelling == f"const {source.spelling}"
        )


@dataclass(frozen=True, slots=True)
class InitList(Expr):
    """``{a, b, c}`` for an array or record."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A string or floating-point literal, or anything else without effect and without a pointer to data we track."""

    text: str = ""


DEFAULT = Literal("default")
"""An argument that is not written; what it is may be another value each time."""
VARYING = Literal("varying")
"""A size that may be another one each time."""
OF_INSTANCE = Literal("of the instance")
"""The size of a parameter of a template: in an instance it is one number."""


@dataclass(frozen=True, slots=True)
class New(Expr):
    """``new T`` or ``new T[n]``, a fresh host object; `inner` are the arguments.

    `bare`: it is an array of numbers or pointers, in memory of its own, which no code of anybody's makes.
    """

    inner: tuple[Expr, ...]
    span: Span
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A call that is not a kernel launch.

    `name` is the qualified name (empty for calls through pointers), `key` the callee's identity, whether or not its
    body is in this file; `receiver` is the object of a member call (an lvalue); `constructs` is set for constructors.
    `standard` marks callees declared in system headers. `operation` indexes `Program.operations`. `references` tells
    for each argument whether the callee may change it (a reference that is not const). `reference` tells that the call
    is itself an lvalue. `implicit` marks constructors that the compiler wrote. `destroys` tells that the call may run
    destructors of the user's classes (``unique_ptr::reset``, ``vector::clear``). `runs` tells that a library call may
    run other code of theirs: constructors, operators, calls of function objects. `copies` tells that an assignment
    copies fields and does nothing else.
    """

    name: str
    key: str
    arguments: tuple[Expr, ...]
    span: Span
    operation: int
    receiver: Expr | None = None
    constructs: bool = False
    standard: bool = False
    type: Type | None = None
    references: tuple[bool, ...] = ()
    reference: bool = False
    implicit: bool = False
    destroys: bool = False
    runs: bool = False
    copies: bool = False


@dataclass(frozen=True, slots=True)
class Kernel:
    """The kernel a launch names. `candidates` are the mangled names it may stand for, empty when not known.

    `outputs` and `priority` are the integer defaults of KeSCo's trailing parameters, `parameters` the types as
    declared and `names` their names (empty where the kernel is only known by name).
    """

    name: str
    candidates: tuple[str, ...]
    parameters: tuple[Type, ...] = ()
    outputs: int | None = None
    priority: int | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch(Expr):
    """``kernel<<<grid, block, shared, stream>>>(arguments)`` or ``cudaLaunchKernel``.

    `configuration` holds the written configuration arguments (2 to 4).
    """

    kernel: Kernel
    configuration: tuple[Expr, ...]
    arguments: tuple[Expr, ...]
    span: Span
    operation: int


DESTROYED = "an object with a destructor"
"""What an `Unknown` is that makes an object by a list, when something of the user's runs as it goes."""


@dataclass(frozen=True, slots=True)
class Unknown(Expr):
    """Anything else: evaluates `parts`, and what comes out is not known."""

    parts: tuple[Expr, ...]
    what: str
    span: Span


RANGE_ELEMENT = "range element"
"""What a range-based ``for`` over a class gives in a trip (`Unknown.what`)."""

# ---- statements -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stmt:
    """Base of statements. `span` covers the statement in the text without its semicolon."""

    span: Span


@dataclass(frozen=True, slots=True)
class Block(Stmt):
    """``{ … }``; statements that come from one macro invocation share its span.

    Several variables declared at once are one, too: `declares` tells that they belong to the scope around them. `end`
    is the operation at the closing brace, where destructors run; negative where there is none or it cannot be edited.
    """

    body: tuple[Stmt, ...]
    declares: bool = False
    end: int = -1


@dataclass(frozen=True, slots=True)
class Evaluate(Stmt):
    """An expression statement."""

    expression: Expr


@dataclass(frozen=True, slots=True)
class Declare(Stmt):
    """One declared variable with its initialiser, if any."""

    variable: Variable
    initial: Expr | None


@dataclass(frozen=True, slots=True)
class If(Stmt):
    """``if``; `condition` may be preceded by declarations (C++17 init-statement, condition variable)."""

    before: tuple[Stmt, ...]
    condition: Expr
    then: Stmt
    other: Stmt | None


@dataclass(frozen=True, slots=True)
class Loop(Stmt):
    """Any loop. `before` runs once; `condition` is tested before the body unless `tested_after`; `step` after it.

    `condition` None is an endless loop. `number` identifies the loop in the file. `ranged`: it is over a range.
    """

    number: int
    before: tuple[Stmt, ...]
    condition: Expr | None
    step: Expr | None
    body: Stmt
    tested_after: bool = False
    ranged: bool = False

    @property
    def inner(self) -> Stmt:
        """The body as it stands in the text: behind what a range-based ``for`` declares."""
        return self.body.body[-1] if self.ranged and isinstance(self.body, Block) and self.body.body else self.body


@dataclass(frozen=True, slots=True)
class Case(Stmt):
    """``case value:`` (None for ``default:``) in front of a statement of a switch."""

    value: int | None
    body: Stmt


@dataclass(frozen=True, slots=True)
class Switch(Stmt):
    """``switch``: control enters at any `Case` of `body`, or skips it when there is no default."""

    before: tuple[Stmt, ...]
    condition: Expr
    body: Stmt


@dataclass(frozen=True, slots=True)
class Leave(Stmt):
    """``return``, ``throw``, ``break`` or ``continue`` (in `how`); the first two have an operation to edit around."""

    how: str
    value: Expr | None = None
    operation: int = -1


CLOSURE = "a lambda's body"
"""The `Obstacle` of a function that a lambda is: only the host's IR says what the variables are that it holds."""


@dataclass(frozen=True, slots=True)
class Obstacle(Stmt):
    """Control flow that is not followed (goto, label, inline assembly, try): the function stays serial."""

    reason: str

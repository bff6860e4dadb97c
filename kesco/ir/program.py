"""The host side of one CUDA file as a small C: what the front-end hands to the analysis.

Only what decides where pointers point, which operations run in which order and what the host touches is kept.
Everything else is `Unknown` with its sub-expressions, so that nothing with an effect is ever dropped. Operations that
the device sees (launches and API calls) are expressions like any other, each with its place in the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kesco.ir.task import Task as Task
from kesco.ir.tree import CLOSURE as CLOSURE
from kesco.ir.tree import DEFAULT as DEFAULT
from kesco.ir.tree import DESTROYED as DESTROYED
from kesco.ir.tree import OF_INSTANCE as OF_INSTANCE
from kesco.ir.tree import RANGE_ELEMENT as RANGE_ELEMENT
from kesco.ir.tree import VARYING as VARYING
from kesco.ir.tree import AddressOf as AddressOf
from kesco.ir.tree import Assign as Assign
from kesco.ir.tree import Binary as Binary
from kesco.ir.tree import Block as Block
from kesco.ir.tree import Branch as Branch
from kesco.ir.tree import Call as Call
from kesco.ir.tree import Case as Case
from kesco.ir.tree import Cast as Cast
from kesco.ir.tree import Constant as Constant
from kesco.ir.tree import Decay as Decay
from kesco.ir.tree import Declare as Declare
from kesco.ir.tree import Dereference as Dereference
from kesco.ir.tree import Evaluate as Evaluate
from kesco.ir.tree import Expr as Expr
from kesco.ir.tree import FunctionName as FunctionName
from kesco.ir.tree import If as If
from kesco.ir.tree import InitList as InitList
from kesco.ir.tree import Kernel as Kernel
from kesco.ir.tree import Launch as Launch
from kesco.ir.tree import Leave as Leave
from kesco.ir.tree import Literal as Literal
from kesco.ir.tree import Loop as Loop
from kesco.ir.tree import Name as Name
from kesco.ir.tree import New as New
from kesco.ir.tree import Obstacle as Obstacle
from kesco.ir.tree import Select as Select
from kesco.ir.tree import Stmt as Stmt
from kesco.ir.tree import Subscript as Subscript
from kesco.ir.tree import Switch as Switch
from kesco.ir.tree import Unary as Unary
from kesco.ir.tree import Unknown as Unknown
from kesco.ir.types import Field as Field
from kesco.ir.types import Record as Record
from kesco.ir.types import Scope as Scope
from kesco.ir.types import Shape as Shape
from kesco.ir.types import Type as Type
from kesco.ir.types import Variable as Variable
from kesco.ir.types import held_by as held_by
from kesco.ir.walking import always as always
from kesco.ir.walking import bare as bare
from kesco.ir.walking import changes_others as changes_others
from kesco.ir.walking import children as children
from kesco.ir.walking import flat as flat
from kesco.ir.walking import lent as lent
from kesco.ir.walking import named as named
from kesco.ir.walking import named_in as named_in
from kesco.ir.walking import names as names
from kesco.ir.walking import placed as placed
from kesco.ir.walking import reassigned as reassigned
from kesco.ir.walking import walk as walk
from kesco.source import Span

# ---- operations and functions ---------------------------------------------------------------------------------------


HEADS = "heads"
"""In `Program.constructs`: what is in the condition of a branch that leaves its function, and may move."""
SHARED, TIMES, CATCH, SAYS = "shared memory", "elapsed times", "catch", "errors that are named"
"""There, too: the file or its headers allocate what both sides reach, ask how far events are apart, go on behind an
exception, or print what the library's functions said of errors."""


@dataclass(frozen=True, slots=True)
class Zeroing:
    """A statement that sets `bytes` bytes at `pointer` to zero and does nothing else; `target` is what it assigns."""

    pointer: str
    target: str
    bytes: int


@dataclass(frozen=True, slots=True)
class LaunchMacro:
    """A macro of the file whose body is a launch, where an operation uses it.

    `name` is the range of its name there; `variant` is the definition, to be put behind its own at `end`, of a macro
    called `called` that takes a stream before all else.
    """

    name: tuple[int, int]
    called: str
    variant: str
    end: int


@dataclass(frozen=True, slots=True)
class Operation:
    """A launch or call as text, with what is needed to edit it.

    `statement` covers the statement of the file around it, with its semicolon, or is None where nothing can be inserted
    before it (it runs in a loop's header, or not in this file's text). `within` tells that it is only a part of that
    statement's header (a condition, a returned value), so that nothing can be inserted right behind it. `lone` tells
    that the statement is the unbraced body of an ``if``, ``else`` or loop. `stream_text` is the byte range of the text
    that states the stream: an empty range where a stream argument may be appended, the range of the written argument
    otherwise; None where it cannot be edited. `defaults` counts the arguments that must be spelled out between the last
    written one and the stream (a launch without shared memory has one). `rename` is the range of the call's name and
    its asynchronous sibling, where it has to become that. `stuck` says in words why it cannot be edited.
    `zeroing` is what a statement does that is no operation of the device, and could be one. `macro` is the macro that a
    launch comes from: its stream is the first argument of a variant. `call` is where a call of a function of the user's
    stands, where a stream can be set around it: its text's range, and whether it has no value. `handle` is the function
    that sets the stream of a library's call, and where in the text that says its handle, if it can be said twice.
    """

    number: int
    span: Span
    statement: Span | None
    lone: bool
    within: bool
    stream_text: tuple[int, int] | None
    defaults: tuple[str, ...] = ()
    rename: tuple[tuple[int, int], str] | None = None
    stuck: str = ""
    zeroing: Zeroing | None = None
    macro: LaunchMacro | None = None
    call: tuple[int, int, bool] | None = None
    handle: tuple[str, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A host function with a body in the named file.

    `internal`: no other file can call it. `address_taken`: it may be called through a pointer. `template`: a pattern
    whose types are not known. `top` is the offset of the outermost declaration around the function. `declared` counts
    its declarations in the file and `mentioned` how often its name stands there. `here` is False for functions of
    headers and instances of templates, which are looked into but not edited. `virtual`: a call of it may run another
    function. `method_of` names the record of a member function, which has an implicit ``this``.
    """

    key: str
    name: str
    parameters: tuple[Variable, ...]
    body: Stmt
    span: Span
    internal: bool
    address_taken: bool
    template: bool = False
    method_of: str = ""
    top: int = 0
    here: bool = True
    virtual: bool = False
    declared: int = 1
    mentioned: int = 0
    result: Type | None = None


@dataclass(frozen=True, slots=True)
class Stated:
    """What ``#pragma kesco kernel(k) reads(a, b) writes(c)`` says of a kernel whose body cannot be seen."""

    kernel: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Program:
    """One parsed file.

    `constructs` names file-wide facts that decide what is safe: ``"threads"`` (other host threads), ``"openmp"``,
    ``"coroutines"``, ``"second names"``, ``"per-thread-stream"``,
    ``"managed"`` (variables that host and device share), `SHARED` and what follows it, each with its place.
    `text` is the file as bytes, `weak` are symbols that a pragma lets another file replace. `inside` is what runs where
    something else is called: the bodies of lambdas that launch nothing, and initialisers of members.
    """

    path: str
    text: bytes
    functions: tuple[Function, ...]
    globals: tuple[tuple[Variable, Expr | None], ...]
    records: dict[str, Record] = field(hash=False)
    operations: tuple[Operation, ...]
    constructs: tuple[tuple[str, Span], ...] = ()
    kernels: tuple[str, ...] = ()
    stated: tuple[Stated, ...] = ()
    launches: bool = True
    tasks: tuple[Task, ...] = ()
    weak: frozenset[str] = frozenset()
    inside: tuple[Stmt, ...] = ()

    def is_fixed(self, mangled: str) -> bool:
        """Whether a device symbol is a constant one that is written by its name alone (`Variable.fixed`)."""
        return any(one.mangled == mangled and one.fixed for one, _ in self.globals)

    @property
    def shares_memory(self) -> bool:
        """Whether the file or its headers allocate memory that kernels and the host reach, managed or page-locked."""
        return self.has(SHARED)

    @property
    def header_names(self) -> tuple[str, ...]:
        """The names in the headers that may be those that the output inserts."""
        return tuple(name[5:] for name, _ in self.constructs if name.startswith("name "))

    def has(self, name: str) -> bool:
        """Whether a fact of the whole file holds."""
        return any(one == name for one, _ in self.constructs)

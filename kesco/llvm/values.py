"""The nouns of LLVM IR: values, instructions, functions and global variables, as far as they mean something to kesco.

`reading` makes them; whoever uses them needs to know nothing of how LLVM spells things. All are frozen, equal where
they mean the same, and may be keys. A value of a function is known by its name there, and a constant by what it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from kesco.llvm.types import Type


@dataclass(frozen=True, slots=True)
class Local:
    """What an instruction of the same function yields, or a parameter."""

    name: str
    type: Type = field(compare=False)


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a function or a global variable."""

    name: str
    type: Type = field(compare=False)


@dataclass(frozen=True, slots=True)
class Integer:
    """A constant integer, with its sign as LLVM prints it; ``true`` is 1."""

    value: int
    type: Type


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that is one word: null, undef, poison, zeroinitializer, none, or a floating-point number."""

    text: str
    type: Type


@dataclass(frozen=True, slots=True)
class Bytes:
    """A string."""

    data: bytes
    type: Type


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A constant structure, array or vector."""

    parts: tuple[Value, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Expression:
    """A constant that is computed: `op` is getelementptr, a cast, add, sub or xor."""

    op: str
    operands: tuple[Value, ...]
    type: Type
    source: Type | None = None  # what a getelementptr counts in


@dataclass(frozen=True, slots=True)
class Assembly:
    """Inline assembly, as LLVM spells it."""

    text: str
    type: Type


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that only its text says: metadata, the address of a block."""

    text: str
    type: Type


Value: TypeAlias = Local | Symbol | Integer | Literal | Bytes | Aggregate | Expression | Assembly | Unread


@dataclass(frozen=True, slots=True)
class Attribute:
    """What is promised of a parameter or an argument, such as ``byval`` with its type."""

    name: str
    type: Type | None = None
    text: str = ""  # what stands in its parentheses


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    `words` stand between its name and its operands (``nsw``, ``volatile``, the relation of a comparison, what an atomic
    operation does). A call's operands are its arguments, then what is called.
    """

    opcode: str
    result: Local | None
    type: Type
    operands: tuple[Value, ...]
    words: tuple[str, ...] = ()
    about: Type | None = (
        None  # what an alloca makes and a getelementptr counts in; the type of a function that is called
    )
    indices: tuple[int, ...] = ()  # of extractvalue and insertvalue; the cases of a switch
    targets: tuple[
        str, ...
    ] = ()  # where control may go (br: if true, if false; switch: else, cases; invoke: to, unwind)
    attributes: tuple[tuple[Attribute, ...], ...] = ()  # of each argument
    promised: tuple[str, ...] = ()  # a call's own, such as noreturn
    metadata: tuple[tuple[str, int], ...] = ()

    @property
    def place(self) -> int:
        """The number of its debug location, or -1."""
        return next((number for name, number in self.metadata if name == "dbg"), -1)


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that run one after the other; the last one says where control goes."""

    name: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter and what is promised of it."""

    value: Local
    attributes: tuple[Attribute, ...] = ()

    @property
    def type(self) -> Type:
        """Its type; what is passed by value is a pointer."""
        return self.value.type

    def promised(self, name: str) -> Attribute | None:
        """The attribute of that name, if it has one."""
        return next((one for one in self.attributes if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Head:
    """A function's first line. `words`: linkage, calling convention and the like."""

    name: str
    words: tuple[str, ...]
    returns: Type
    parameters: tuple[Parameter, ...]
    variadic: bool
    attributes: tuple[str, ...]
    metadata: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function with a body; control enters at the first block."""

    head: Head
    blocks: tuple[Block, ...]

    @property
    def is_read(self) -> bool:
        """Whether each of its instructions could be read."""
        return not any(UNREAD in one.words for block in self.blocks for one in block.instructions)

    @property
    def name(self) -> str:
        """The mangled name."""
        return self.head.name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters."""
        return self.head.parameters


@dataclass(frozen=True, slots=True)
class Variable:
    """A global variable or an alias: `kind` is global, constant, alias or ifunc; `initial` is None if it is unseen."""

    name: str
    kind: str
    words: tuple[str, ...]
    space: int
    type: Type
    initial: Value | None


UNREAD = "unread"
"""Among an instruction's words: its text could not be read, and it may be anything."""


def callee(instruction: Instruction) -> str:
    """The name of the function that a call names; nothing where it is computed, or no call."""
    called = instruction.operands[-1] if instruction.operands else None
    return called.name if isinstance(called, Symbol) and instruction.opcode in ("call", "invoke") else ""


def symbols_in(value: Value) -> tuple[str, ...]:
    """The functions and variables whose addresses a constant is made of, each once."""
    if isinstance(value, Symbol):
        return (value.name,)
    inside = value.parts if isinstance(value, Aggregate) else value.operands if isinstance(value, Expression) else ()
    return tuple(dict.fromkeys(name for one in inside for name in symbols_in(one)))

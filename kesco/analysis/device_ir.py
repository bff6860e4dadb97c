"""The nouns of device code: as much of LLVM IR as the effects analysis needs, in plain values.

`device_reader` makes them; whoever uses them needs to know nothing of LLVM or llvmlite. Values of a function are
numbered (*slots*): its parameters, its instructions, and the constants that may be pointers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kesco.analysis.device_calls import Behaviour

NOTHING = -1  # the slot of a value that cannot hold a pointer


class Shape(NamedTuple):
    """A type: its size in bytes, whether it holds a pointer, is one floating-point number, is made of such only.

    `declared`: of a load, that the source says that a pointer is there, and no union, bytes or integers.
    """

    size: int
    pointer: bool
    floating: bool
    floats: bool
    declared: bool = False


class Constant(NamedTuple):
    """A constant operand: the global names in it, a byte offset if certain, and how else it could be a pointer."""

    names: tuple[str, ...] = ()
    offset: int | None = 0
    null: bool = False
    absolute: bool = False  # an integer turned into a pointer


class Instr(NamedTuple):
    """One instruction: what it does, where its result goes, the slots it reads.

    `op` is move, offset (pointer plus integer), sub, gep, inttoptr, load, store, atomic, alloca, call, ret or unknown.
    """

    op: str
    result: int
    args: tuple[int, ...]
    shape: Shape | None = None  # of what is loaded, stored or called for
    offset: int | None = None  # gep: the byte offset, if constant
    call: str | Behaviour = ""  # call: the name of a function with a body, or what is known of one without
    lengths: tuple[int | None, ...] = ()  # call: the arguments that are constant integers
    null_base: bool = False  # gep: the base is literally null


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter; `pointers` and `raw` are where what a ``byval`` parameter points to has pointers, or their bytes."""

    pointer: bool
    byval: int = 0  # size of the structure passed by value, 0 if the parameter is passed directly
    pointers: tuple[int, ...] = ()
    raw: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function with a body. `straight`: no value is used before the line that defines it."""

    name: str
    params: tuple[Param, ...]
    instrs: tuple[Instr, ...]
    constants: tuple[tuple[int, Constant], ...]
    slots: int
    straight: bool


@dataclass(frozen=True, slots=True)
class Global:
    """A global variable: `fixed` if nothing can ever change it; `names` are the globals its initializer mentions."""

    name: str
    space: int
    fixed: bool
    declared: bool
    names: tuple[str, ...]
    text: str | None = None  # what it holds, if it is fixed and a string

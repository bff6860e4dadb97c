"""Integers and addresses of many threads at once, one number a thread: the arithmetic of `device_threads`.

In: an instruction of LLVM and its operands, each a `Lanes`. Out: its result. Apart from the control flow because it is
all the arithmetic there is, and what wraps around is where such a thing goes wrong.

An integer is kept as a signed number of 64 bits, whatever its width, and brought back to its width after each step.
What is not computed here, floating point above all, is *not known*; so is all that is made of it. `of` says which
pointers a value may be made of, also where its number is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kesco.ir.effects import ParamBase
from kesco.llvm.types import Layouts
from kesco.llvm.values import Instruction, Value

Numbers = NDArray[np.int64]
Known = NDArray[np.bool_]
Base = ParamBase | str
OWN, DEEP, ANYWHERE = "own", "deep", "anywhere"  # pointers to the kernel's own memory, from memory, from somewhere


class Place(NamedTuple):
    """Where a pointer comes from: a root of the kernel, its copy of a structure (`copy`), or one of the three words."""

    base: Base
    kind: str = ""


class Lanes(NamedTuple):
    """A value in each thread; arrays without an axis where it is the same in all of them."""

    at: Numbers
    known: Known
    of: frozenset[Place] = frozenset()

    def take(self, rows: NDArray[np.intp] | slice) -> Lanes:
        """The value in some of the threads."""
        at = self.at[rows] if self.at.ndim else self.at
        return Lanes(at, self.known[rows] if self.known.ndim else self.known, self.of)

    def spread(self, count: int) -> tuple[Numbers, Known]:
        """One number for each of so many threads, and whether it is known."""
        return np.broadcast_to(self.at, (count,)), np.broadcast_to(self.known, (count,))

    def own(self, count: int) -> Lanes:
        """The same in arrays that may be changed."""
        at, known = self.spread(count)
        return Lanes(at.copy(), known.copy(), self.of)


TRUE, FALSE = np.array(True), np.array(False)
ZERO = np.array(0, np.int64)
UNKNOWN = Lanes(ZERO, FALSE)


def number(value: int, of: frozenset[Place] = frozenset()) -> Lanes:
    """The same number in all threads."""
    return Lanes(np.array(_signed(value, 64), np.int64), TRUE, of)


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def fit(at: Numbers, bits: int) -> Numbers:
    """A result as an integer of that many bits keeps it."""
    if bits >= 64:
        return at
    shift = np.int64(64 - bits)
    return (at << shift) >> shift


def unsigned(at: Numbers, bits: int) -> NDArray[np.uint64]:
    """The same bits without a sign."""
    made = at.astype(np.uint64)
    return made if bits >= 64 else made & np.uint64((1 << bits) - 1)


def _bits(value: Value) -> int:
    return value.type.number if value.type.kind == "int" else 64


def _shifted(a: Numbers, by: Numbers, bits: int, opcode: str) -> Numbers:
    by = np.clip(by, 0, bits - 1)
    if opcode == "shl":
        return a << by
    if opcode == "ashr":
        return a >> by
    return (unsigned(a, bits) >> by.astype(np.uint64)).astype(np.int64)


def _divided(a: Numbers, b: Numbers, bits: int, opcode: str) -> Numbers:
    if opcode[0] == "u":
        left, right = unsigned(a, bits), np.maximum(unsigned(b, bits), np.uint64(1))
        return (left // right if opcode == "udiv" else left % right).astype(np.int64)
    b = np.where(b == 0, 1, b)
    quotient: Numbers = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return quotient if opcode == "sdiv" else a - quotient * b


_PLAIN: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip
_COMPARED: dict[str, Callable[..., Known]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_CASTS = frozenset({"zext", "sext", "trunc", "freeze", "ptrtoint", "inttoptr", "addrspacecast", "bitcast"})
_DIVISIONS = frozenset({"udiv", "sdiv", "urem", "srem"})
_SHIFTS = frozenset({"shl", "lshr", "ashr"})
COMPUTED = frozenset({*_PLAIN, *_CASTS, *_DIVISIONS, *_SHIFTS, "icmp", "select", "getelementptr"})


def computed(code: Instruction, operands: list[Lanes], layouts: Layouts) -> Lanes:
    """What an instruction yields; not known where it is of no kind that is computed here."""
    of = frozenset(place for one in operands for place in one.of)
    opcode = code.opcode
    scalar = code.type.kind in ("int", "ptr") and all(v.type.kind in ("int", "ptr") for v in code.operands)
    if opcode not in COMPUTED or not scalar:
        return Lanes(ZERO, FALSE, of)
    with np.errstate(all="ignore"):
        if opcode == "select":
            return _selected(*operands)
        if opcode == "getelementptr":
            return _stepped(code, operands, layouts, of)
        known = operands[0].known if len(operands) == 1 else operands[0].known & operands[1].known
        return Lanes(_number(code, [one.at for one in operands]), known, frozenset() if opcode == "icmp" else of)


def _number(code: Instruction, at: list[Numbers]) -> Numbers:
    opcode, bits = code.opcode, _bits(code.operands[0])
    if opcode == "icmp":
        relation = code.words[-1]
        compare = _COMPARED[relation[-2:]]
        if relation[0] == "u" or (code.operands[0].type.kind == "ptr" and relation not in ("eq", "ne")):
            return compare(unsigned(at[0], bits), unsigned(at[1], bits)).astype(np.int64) * -1
        return compare(at[0], at[1]).astype(np.int64) * -1  # a bit that is set is -1, as any other signed number
    if opcode in _CASTS:
        made = unsigned(at[0], bits).astype(np.int64) if opcode == "zext" else at[0]
        return fit(made, _bits_of(code))
    if opcode in _SHIFTS:
        return fit(_shifted(at[0], at[1], bits, opcode), bits)
    if opcode in _DIVISIONS:
        return fit(_divided(at[0], at[1], bits, opcode), bits)
    return fit(_PLAIN[opcode](at[0], at[1]), bits)


def _bits_of(code: Instruction) -> int:
    return code.type.number if code.type.kind == "int" else 64


def _selected(condition: Lanes, yes: Lanes, no: Lanes) -> Lanes:
    at = np.where(condition.at != 0, yes.at, no.at)
    one = np.where(condition.at != 0, yes.known, no.known)
    same = yes.known & no.known & (yes.at == no.at)
    return Lanes(at, (condition.known & one) | (~condition.known & same), yes.of | no.of)


def _stepped(code: Instruction, operands: list[Lanes], layouts: Layouts, of: frozenset[Place]) -> Lanes:
    assert code.about is not None
    at, known, type_ = operands[0].at, operands[0].known, code.about
    for position, index in enumerate(operands[1:]):
        if position:
            real = layouts.resolved(type_)
            if real.kind in ("struct", "packed"):
                field = int(index.at)
                at, type_ = at + layouts.offsets(real)[field], real.parts[field]
                continue
            type_ = real.parts[0]
        at, known = at + index.at * layouts.size(type_), known & index.known
    return Lanes(at, known, of)


def least_or_most(name: str, a: Lanes, b: Lanes, bits: int) -> Lanes:
    """LLVM's smin, smax, umin and umax."""
    left, right = (a.at, b.at) if name[0] == "s" else (unsigned(a.at, bits), unsigned(b.at, bits))
    first = left < right if name.endswith("min") else left > right
    return Lanes(np.where(first, a.at, b.at), a.known & b.known, a.of | b.of)

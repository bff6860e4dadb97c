"""How a program comes by a number that is not known: an operand → words that are the same for the same way.

In: an activation and an operand. Out: a text, or an empty one where the way is not followed. Two programs that come by
a number in the same way get the same words; the proof of a pair takes it then to be the same number.

1. What an instruction computes is its name with the words of its operands. 2. A parameter is what the caller gives.
3. What is loaded of a variable is where in it, and the call that filled it: its constructor, or who returned it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kesco.analysis.host.frames import Frame
from kesco.llvm.types import Type
from kesco.llvm.values import Function, Instruction, Integer, Literal, Local, Symbol, Value, callee

_DEEPEST = 24
_PLAIN = frozenset(
    (
        *("add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr", "ashr", "and", "or", "xor"),
        *("fadd", "fsub", "fmul", "fdiv", "fneg", "icmp", "fcmp", "select", "trunc", "zext", "sext", "fptrunc"),
        *("fpext", "fptoui", "fptosi", "uitofp", "sitofp", "getelementptr", "freeze", "extractvalue"),
    )
)


class _Lost(Exception):
    """The way is not followed."""


@dataclass(slots=True)
class _Defined:
    """What defines the values of a function, and what fills its variables."""

    made: dict[str, Instruction] = field(default_factory=dict)
    fills: dict[str, list[Instruction]] = field(default_factory=dict)  # by the name of an alloca


@dataclass(slots=True)
class Words:
    """Answers for one module."""

    _known: dict[str, _Defined] = field(default_factory=dict)

    def of(self, frame: Frame, operand: Value) -> str:
        """The words of an operand in an activation."""
        try:
            return self._of(frame, operand, 0, ())
        except _Lost:
            return ""

    def _of(self, frame: Frame, operand: Value, depth: int, around: tuple[str, ...]) -> str:
        if depth > _DEEPEST:
            raise _Lost
        if isinstance(operand, Integer):
            return str(operand.value)
        if isinstance(operand, Literal):
            return operand.text
        if isinstance(operand, Symbol):
            return operand.name
        if not isinstance(operand, Local):
            raise _Lost
        defined = self._defined(frame.function)
        one = defined.made.get(operand.name)
        if one is None:
            return self._parameter(frame, operand, depth)
        if one.opcode == "phi":
            return self._phi(frame, one, depth, around)
        if one.opcode == "load":
            return self._load(frame, one.operands[0], depth, around)
        if one.opcode in ("call", "invoke"):
            name = callee(one)
            if not name or name.startswith("cuda"):
                raise _Lost
            given = (self._of(frame, each, depth + 1, around) for each in one.operands[:-1])
            return f"{name}({', '.join(given)})"
        if one.opcode == "alloca":
            return self._variable(frame, one, depth, around)
        if one.opcode not in _PLAIN:
            raise _Lost
        given = (self._of(frame, each, depth + 1, around) for each in one.operands)
        about = f" {_spelled(one.about)}" if one.about is not None else f" {_spelled(one.type)}"
        extra = "".join(f".{word}" for word in one.words if one.opcode in ("icmp", "fcmp"))
        return f"{one.opcode}{extra}{about}({', '.join(given)})"

    def _parameter(self, frame: Frame, operand: Local, depth: int) -> str:
        names = [one.value.name for one in frame.function.parameters]
        if operand.name not in names:
            raise _Lost
        index = names.index(operand.name)
        outer = frame.caller
        if outer is None:
            return f"{frame.function.name}'s {index}"
        call = outer.at
        if call is None or callee(call) != frame.function.name or index >= len(call.operands) - 1:
            raise _Lost
        return self._of(outer, call.operands[index], depth + 1, ())

    def _phi(self, frame: Frame, one: Instruction, depth: int, around: tuple[str, ...]) -> str:
        """A counter of a loop is how it begins and goes on; what two paths give is either."""
        assert one.result is not None
        if one.result.name in around:
            return f"#{len(around) - around.index(one.result.name)}"
        inside = (*around, one.result.name)
        given = sorted({self._of(frame, each, depth + 1, inside) for each in one.operands})
        return f"phi({', '.join(given)})"

    def _load(self, frame: Frame, address: Value, depth: int, around: tuple[str, ...]) -> str:
        return f"[{self._of(frame, address, depth + 1, around)}]"

    def _variable(self, frame: Frame, one: Instruction, depth: int, around: tuple[str, ...]) -> str:
        """A variable, by who filled it; where that is plain stores, nothing is said."""
        assert one.result is not None and one.about is not None
        fills = self._defined(frame.function).fills.get(one.result.name, [])
        if len(fills) != 1 or one.result.name in around:
            raise _Lost
        inside = (*around, one.result.name)
        fill = fills[0]
        given = []
        for each in fill.operands[:-1]:
            own = isinstance(each, Local) and each.name == one.result.name
            given.append("it" if own else self._of(frame, each, depth + 1, inside))
        return f"{_spelled(one.about)} of {callee(fill)}({', '.join(given)})"

    def _defined(self, function: Function) -> _Defined:
        if function.name not in self._known:
            self._known[function.name] = _definitions(function)
        return self._known[function.name]


def _definitions(function: Function) -> _Defined:
    found = _Defined()
    variables: set[str] = set()
    stored: set[str] = set()
    for block in function.blocks:
        for one in block.instructions:
            if one.result is not None:
                found.made[one.result.name] = one
                if one.opcode == "alloca":
                    variables.add(one.result.name)
    for block in function.blocks:
        for one in block.instructions:
            if one.opcode == "store":
                stored.add(_base(found, one.operands[1]))
            if one.opcode not in ("call", "invoke"):
                continue
            first = one.operands[0] if len(one.operands) > 1 else None
            if not isinstance(first, Local) or first.name not in variables:
                continue
            if _fills(one):
                found.fills.setdefault(first.name, []).append(one)
    for name in stored & set(found.fills):
        del found.fills[name]
    return found


def _fills(call: Instruction) -> bool:
    """Whether a call makes the variable that it is given first."""
    name = callee(call)
    made = any(one.name == "sret" for one in call.attributes[0]) if call.attributes else False
    return made or "C2E" in name or "C1E" in name or name.startswith("llvm.memcpy")


def _base(found: _Defined, address: Value) -> str:
    while isinstance(address, Local):
        one = found.made.get(address.name)
        if one is None or one.opcode != "getelementptr":
            return address.name
        address = one.operands[0]
    return ""


def _spelled(type_: Type | None) -> str:
    return "" if type_ is None else type_.name or f"{type_.kind}{type_.number or ''}"

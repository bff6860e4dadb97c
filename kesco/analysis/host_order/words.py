"""How a program comes by a number that is not known: an operand → words that are the same for the same way.

In: an activation and an operand. Out: a text, or an empty one where the way is not followed. Two programs that come by
a number in the same way get the same words; the proof of a pair takes it then to be the same number.

1. What an instruction computes is its name with the words of its operands. 2. A parameter is what the caller gives.
3. What is loaded of a variable is where in it, and the call that filled it: its constructor, or who returned it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import networkx as nx

from kesco.analysis.host.arguments import place_at
from kesco.analysis.host.engine import Engine
from kesco.analysis.host.frames import Frame, in_words
from kesco.analysis.host.memory import State
from kesco.analysis.host.steps import evaluated
from kesco.analysis.host.values import (
    NOTHING,
    NUMBER,
    STATUS,
    is_known,
    name_of,
    named,
    nameless,
    number,
    objects,
)
from kesco.analysis.host.values import Value as Known
from kesco.frontend.api_table import host_call
from kesco.llvm.types import Type
from kesco.llvm.values import Assembly, Function, Instruction, Integer, Literal, Local, Symbol, Value, callee

_DEEPEST = 24
_DIFFERS = ("llvm.read", "llvm.x86", "llvm.thread", "llvm.va")
_BOOL = "zext int8("
_LONGEST, _HALF = 1000, 4  # characters; bytes
_PLAIN = frozenset(
    (
        *("add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr", "ashr", "and", "or", "xor"),
        *("fadd", "fsub", "fmul", "fdiv", "fneg", "icmp", "fcmp", "select", "trunc", "zext", "sext", "fptrunc"),
        *("fpext", "fptoui", "fptosi", "uitofp", "sitofp", "getelementptr", "freeze", "extractvalue"),
    )
)


class _Lost(Exception):
    """The way is not followed."""


def in_memory(state: State, address: Known, size: int) -> str:
    """What a number in memory is called; nothing for one that is known. Eight bytes may be two numbers."""
    value = state.load(address, size)
    if name_of(value) or number(value) is not None or size != 2 * _HALF:
        return name_of(value)
    if len(objects(address)) != 1 or not is_known(address):
        return ""
    halves = (state.load(place_at(state, address, i * _HALF), _HALF) for i in (0, 1))
    words = [said(one) for one in halves]
    return ":".join(words) if all(words) else ""


def said(value: Known) -> str:
    """A number, or what it is called."""
    known = number(value)
    return name_of(value) if known is None else str(known)


@dataclass(slots=True)
class _Defined:
    """What defines the values of a function, and what fills its variables."""

    made: dict[str, Instruction] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)  # the block of each
    fills: dict[str, list[Instruction]] = field(default_factory=dict)  # by the name of an alloca
    given: dict[str, list[tuple[str, Instruction]]] = field(default_factory=dict)  # who gets an alloca's address, where
    flow: nx.DiGraph[str] = field(default_factory=nx.DiGraph)
    calls: dict[int, int] = field(default_factory=dict)  # of each call, how many of the same function stand before it


@dataclass(slots=True)
class Words:
    """Answers for one module."""

    engine: Engine
    _known: dict[str, _Defined] = field(default_factory=dict)
    _constant: dict[str, bool] = field(default_factory=dict)
    _quiet: dict[str, bool] = field(default_factory=dict)

    def of(self, frame: Frame, operand: Value) -> str:
        """The words of an operand in an activation."""
        try:
            return self._of(frame, operand, 0, ())
        except _Lost:
            return ""

    # ---- for how long

    def is_steady(self, frame: Frame, operand: Value, depth: int = 0) -> bool:
        """Whether the same words are the same number throughout a trip, here and wherever the function asks again.

        What is loaded is, of a variable that one call fills, and that nothing else may write before it is asked.
        """
        if not isinstance(operand, Local):
            return isinstance(operand, (Integer, Literal))
        defined = self._defined(frame.function)
        one = defined.made.get(operand.name)
        if one is None or one.opcode == "phi":
            return one is None or self._counts(frame, defined, operand.name)
        if depth > _DEEPEST:
            return False
        if one.opcode == "load":
            name = _base(defined, one.operands[0])
            fills = defined.fills.get(name, [])
            others = [(at, each) for at, each in defined.given.get(name, ()) if not self._keeps(callee(each))]
            given = [block for block, each in others if not fills or each is not fills[0]]
            return len(fills) == 1 and not any(nx.has_path(defined.flow, block, frame.block) for block in given)
        if one.opcode in ("call", "invoke") and any(each.type.kind == "ptr" for each in one.operands[:-1]):
            return list(map(callee, _calls(frame.function))).count(callee(one)) == 1  # what is there may change
        if one.opcode not in _PLAIN and one.opcode not in ("call", "invoke"):
            return False
        operands = one.operands[:-1] if one.opcode in ("call", "invoke") else one.operands
        return all(self.is_steady(frame, each, depth + 1) for each in operands)

    # ---- in memory

    def loaded(self, frame: Frame, instruction: Instruction, state: State, value: Known) -> Known:
        """See `record.Words`."""
        assert instruction.result is not None
        words = name_of(value)
        if value == NUMBER and instruction.type.kind == "int":
            address = evaluated(frame, instruction.operands[0], state)
            words = in_memory(state, address, self.engine.layouts.size(instruction.type))
        state.values[in_words(instruction.result.name)] = named(words) if words else NUMBER
        return nameless(value)

    def stored(self, frame: Frame, operand: Value, state: State, value: Known) -> Known:
        """See `record.Words`. What a loop counts differs from trip to trip, and is not called anything."""
        if value not in (NUMBER, STATUS) or operand.type.kind not in ("int", "float"):
            return value
        frame.values = state.values
        words = self.of(frame, operand)
        return named(words) if words and len(words) <= _LONGEST and "phi" not in words else value

    # ---- in registers

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
            if not self._counts(frame, defined, operand.name):
                raise _Lost
            return self._phi(frame, one, depth, around)
        if one.opcode == "load":
            named = name_of(frame.values.get(in_words(operand.name), NOTHING))
            return named or self._load(frame, one.operands[0], depth, around)
        if one.opcode in ("call", "invoke"):
            name = callee(one)
            if not name or name.startswith("cuda"):
                raise _Lost
            passed = ", ".join(self._of(frame, each, depth + 1, around) for each in one.operands[:-1])
            return f"{name}{self._which(defined, one)}({passed})"
        if one.opcode == "alloca":
            return self._variable(frame, one, depth, around)
        if one.opcode not in _PLAIN:
            raise _Lost
        given = [self._of(frame, each, depth + 1, around) for each in one.operands]
        about = f" {_spelled(one.about)}" if one.about is not None else f" {_spelled(one.type)}"
        if one.opcode == "trunc" and one.type.number == 1 and given[0].startswith(_BOOL):
            return given[0][len(_BOOL) : -1]  # a bool in memory has eight bits
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

    def _counts(self, frame: Frame, defined: _Defined, name: str) -> bool:
        """Whether a loop around counts with it; what else decides which of several it is, the words do not say."""
        return defined.where[name] in frame.graph.inside[frame.block]

    def _phi(self, frame: Frame, one: Instruction, depth: int, around: tuple[str, ...]) -> str:
        """A counter of a loop is how it begins and goes on; what two paths give is either."""
        assert one.result is not None
        if one.result.name in around:
            return f"#{len(around) - around.index(one.result.name)}"
        inside = (*around, one.result.name)
        given = sorted({self._of(frame, each, depth + 1, inside) for each in one.operands})
        return f"phi({', '.join(given)})"

    def _load(self, frame: Frame, address: Value, depth: int, around: tuple[str, ...]) -> str:
        where = self._of(frame, address, depth + 1, around)
        variable = self.engine.module.variable(where)
        if variable is not None and variable.kind == "constant" and isinstance(variable.initial, Literal):
            return variable.initial.text
        return f"[{where}]"

    def _variable(self, frame: Frame, one: Instruction, depth: int, around: tuple[str, ...]) -> str:
        """A variable, by who filled it; where that is plain stores, nothing is said."""
        assert one.result is not None and one.about is not None
        defined = self._defined(frame.function)
        fills = defined.fills.get(one.result.name, [])
        if len(fills) != 1 or one.result.name in around:
            raise _Lost
        others = defined.given.get(one.result.name, ())
        given = [at for at, each in others if each is not fills[0] and not self._keeps(callee(each))]
        if any(nx.has_path(defined.flow, at, frame.block) for at in given):
            raise _Lost
        inside = (*around, one.result.name)
        fill = fills[0]
        given = []
        for each in fill.operands[:-1]:
            own = isinstance(each, Local) and each.name == one.result.name
            given.append("it" if own else self._of(frame, each, depth + 1, inside))
        which = self._which(defined, fill)
        return f"{_spelled(one.about)} of {callee(fill)}{which}({', '.join(given)})"

    def _which(self, defined: _Defined, call: Instruction) -> str:
        """Which call it is of a function that may give another number each time: ``rand`` does, and a generator."""
        name = callee(call)
        if name not in self._constant:
            self._constant[name] = all(map(self._gives_the_same, self.engine.named_in(name)))
        given = call.operands[1 if _fills(call) else 0 : -1]
        writes = self.engine.module.has_body(name) and not self._keeps(name)
        changed = writes and any(one.type.kind == "ptr" for one in given)  # what it is given, maybe
        return "" if self._constant[name] and not changed else f"#{defined.calls[id(call)]}"

    def _keeps(self, name: str) -> bool:
        """Whether a function stores to nothing but variables of its own, and calls only such functions."""
        if name not in self._quiet:
            self._quiet[name] = False  # it may call itself
            body = self.engine.module.function(name)
            self._quiet[name] = body is not None and all(
                self._is_own(body, one) for block in body.blocks for one in block.instructions
            )
        return self._quiet[name]

    def _is_own(self, body: Function, one: Instruction) -> bool:
        if one.opcode in ("call", "invoke"):
            return callee(one).startswith(("llvm.lifetime", "llvm.dbg")) or self._keeps(callee(one))
        defined = self._defined(body)
        made = defined.made.get(_base(defined, one.operands[1])) if one.opcode == "store" else None
        own = one.opcode != "store" or (made is not None and made.opcode == "alloca")
        return own and one.opcode not in ("atomicrmw", "cmpxchg")

    def _gives_the_same(self, name: str) -> bool:
        """Whether what a function or variable is, is the same at all times; its callers are asked of all it names."""
        one = self.engine.symbol(name)
        if one.kind != "function":
            return self.engine.is_constant(one)
        known = host_call(name)
        pure = known is not None and known.kind == "pure" and "rand" not in name
        if name.startswith("llvm."):
            return not name.startswith(_DIFFERS)
        body = self.engine.module.function(name)
        asm = body is not None and any(isinstance(each.operands[-1], Assembly) for each in _calls(body))
        return pure or (body is not None and not asm)

    def _defined(self, function: Function) -> _Defined:
        if function.name not in self._known:
            self._known[function.name] = _definitions(function)
        return self._known[function.name]


def _calls(function: Function) -> list[Instruction]:
    every = (one for block in function.blocks for one in block.instructions)
    return [one for one in every if one.opcode in ("call", "invoke")]


def _definitions(function: Function) -> _Defined:
    found = _Defined()
    variables: set[str] = set()
    stored: set[str] = set()
    counted: Counter[str] = Counter()
    for block in function.blocks:
        for one in block.instructions:
            if one.result is not None:
                found.made[one.result.name] = one
                found.where[one.result.name] = block.name
                if one.opcode == "alloca":
                    variables.add(one.result.name)
    for block in function.blocks:
        found.flow.add_edges_from((block.name, target) for target in block.instructions[-1].targets)
        found.flow.add_node(block.name)
        for one in block.instructions:
            handed = one.operands[:1] if callee(one).startswith("llvm.memcpy") else one.operands
            for name in {_base(found, each) for each in handed} & variables if _hands_out(one) else ():
                found.given.setdefault(name, []).append((block.name, one))
            if one.opcode == "store":
                stored.add(_base(found, one.operands[1]))
            if one.opcode not in ("call", "invoke"):
                continue
            found.calls[id(one)] = counted[callee(one)]
            counted[callee(one)] += 1
            first = one.operands[0] if len(one.operands) > 1 else None
            if not isinstance(first, Local) or first.name not in variables:
                continue
            if _fills(one):
                found.fills.setdefault(first.name, []).append(one)
    for name in stored & set(found.fills):
        del found.fills[name]
    return found


def _hands_out(one: Instruction) -> bool:
    """Whether who gets the address of a variable in an instruction may write there, now or later."""
    reads = callee(one).startswith(("llvm.lifetime", "llvm.dbg"))
    return one.opcode not in ("load", "getelementptr", "icmp") and not reads


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

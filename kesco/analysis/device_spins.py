"""Device LLVM IR → whether a function waits in a loop for memory that somebody else changes.

In: functions with a body, as `llvm` reads them. Out: yes or no for each. A file of its own because this is about
control flow and not about accesses: a barrier between the blocks of a kernel, made by hand, works only if all blocks
are on the GPU at once. The program has seen to that for the kernel alone; beside another one it may wait for ever.

1. A *watch* is an instruction that reads what others may have written and changes nothing: a volatile or atomic load,
   an atomic operation that leaves the value as it is (``atomicAdd(p, 0)``, ``atomicCAS(p, v, v)``), inline PTX that
   loads, a call of a function that does one of these. So is an atomic operation that takes a value which somebody else
   must have put there: ``atomicCAS(p, n, 0)``, ``atomicExch(p, 0)``.
2. A loop waits if whether it goes on depends on a watch within it, whose address stays the same, or may.
3. A plain load is a watch, too, where the loop has a fence or a barrier, does not write there itself, and counts
   nothing that decides with it: only others can end such a loop.

Not meant are loops that try again until their own change succeeds: locks and compare-and-swap. Whoever is in their way
is running, and gets on. Shared memory is no matter of other blocks. Watches whose address moves on, or only back (a
look back at the blocks before), wait for blocks that were started earlier.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kesco.analysis.device_flow import Flow, Node
from kesco.llvm.types import BIT, Type
from kesco.llvm.values import Assembly, Expression, Function, Integer, Value, callee

_FREE = (0, -1)  # what a lock, or a slot of a table, holds while it is nobody's
_LOADS = re.compile(r"\b(?:ld\.(?!shared|const|param|local)|atom\.(?!\S*shared)\S*(?:add|or|xor|max)\S* [^;]*, ?0 ?;)")
_FENCES = tuple(f"llvm.nvvm.{one}" for one in ("membar", "fence", "barrier", "bar.", "nanosleep"))
_SHARED = 3
_ADDRESSES = ("getelementptr", "addrspacecast", "bitcast", "add", "sub", "mul", "sext", "zext", "trunc", "shl")
_WRITES = {"store": 1, "atomicrmw": 0, "cmpxchg": 0}


class Spins:
    """Answers for the functions of a module; `body` gives the one of a name, or None where it is not seen."""

    def __init__(self, body: Callable[[str], Function | None]) -> None:
        self._body = body
        self._waits: dict[str, bool] = {}
        self._looks: dict[str, bool] = {}

    def waits(self, name: str) -> bool:
        """Whether a loop of this function goes on until somebody else has written something."""
        if name not in self._waits:
            function = self._body(name)
            self._waits[name] = function is not None and self._has_waiting_loop(function)
        return self._waits[name]

    def _has_waiting_loop(self, function: Function) -> bool:
        if not function.is_read:
            return True
        flow = Flow(function)
        if not any(_may_matter(node) for node in flow.order):
            return False
        return any(_Loop(flow, body, self.looks).waits() for body in flow.loops())

    def looks(self, name: str) -> bool:
        """Whether a function watches memory, or one that it calls does."""
        if name not in self._looks:
            self._looks[name] = False  # where it calls itself
            function = self._body(name)
            nodes = Flow(function).order if function is not None else []
            self._looks[name] = any(_is_watch(n) or (n.opcode == "call" and self.looks(_called(n))) for n in nodes)
        return self._looks[name]


class _Loop:
    """One loop, as the blocks of it."""

    def __init__(self, flow: Flow, body: frozenset[str], looks: Callable[[str], bool]) -> None:
        self._flow, self._body, self._looks = flow, body, looks

    def waits(self) -> bool:
        """Whether it ends by a watch."""
        flow, body = self._flow, self._body
        ends = [node for block in body for node in flow.conditions(block) if not body.issuperset(flow.after(block))]
        return any(self._decides(end) for end in ends)

    def _decides(self, end: Node) -> bool:
        seen: set[Node] = set()
        loads: list[Node] = []
        counts = False
        todo = [end]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            if (_is_watch(node) or self._takes(node) or self._calls_a_look(node)) and self._stays(node):
                return True
            if node.opcode == "load":
                loads.append(node)
            counts = counts or node.opcode == "phi"
            todo += self._inside(node)
        return not counts and any(self._only_others_write(load) for load in loads)

    def _inside(self, node: Node) -> list[Node]:
        """What an instruction is made of in the same trip of the loop, or the one before."""
        known = (self._flow.nodes.get(o) for o in node.operands)
        return [one for one in known if one is not None and one.block in self._body]

    def _takes(self, node: Node) -> bool:
        """Whether an atomic operation takes what somebody else has put there, and is no lock."""
        if node.opcode == "cmpxchg":
            expected = node.operands[1]
            made = self._flow.nodes.get(expected)
            free = isinstance(expected, Integer) and expected.type != BIT and expected.value in _FREE
            return (made is None or made.block not in self._body) and not free
        return _atomic(node) == "xchg" and not _is_shared(node) and _is_number(node.operands[1], 0)

    def _calls_a_look(self, node: Node) -> bool:
        return node.opcode == "call" and self._looks(_called(node))

    def _only_others_write(self, load: Node) -> bool:
        """Whether a plain load reads what this loop waits for: there is a fence, and no write of its own."""
        if _is_shared(load) or not self._stays(load):
            return False
        nodes = [node for node in self._flow.order if node.block in self._body]
        place = self._base(load.operands[0])
        for node in nodes:
            if node.opcode in _WRITES and self._base(node.operands[_WRITES[node.opcode]]) == place:
                return False
            if node.opcode == "call" and any(self._base(o) == place for o in node.operands):
                return False
        return any(_is_fence(node) for node in nodes)

    def _base(self, pointer: Value) -> Value:
        """What an address was computed from."""
        node = self._flow.nodes.get(pointer)
        while node is not None and node.opcode in ("getelementptr", "addrspacecast", "bitcast"):
            pointer = node.operands[0]
            node = self._flow.nodes.get(pointer)
        return pointer

    def _stays(self, node: Node) -> bool:
        """Whether an instruction may look at the same place in each trip of the loop."""
        made = self._inside(node)
        if node.opcode in ("load", "atomicrmw", "cmpxchg"):
            made = [one for one in made if one.code.result == node.operands[0]]
        return all(
            not _is_shared(one) and (self._lingers(one) if one.opcode == "phi" else self._is_address(one))
            for one in made
        )

    def _is_address(self, one: Node) -> bool:
        return one.opcode in _ADDRESSES and self._stays(one)

    def _lingers(self, phi: Node) -> bool:
        """Whether a place may be the same one trip later, and is never one further back."""
        steps: set[int | None] = set()
        seen: set[Value] = set()
        todo: list[tuple[Value | None, int]] = [(v, 0) for v, b in self._flow.incoming(phi) if b in self._body]
        while todo:
            value, step = todo.pop()
            node = self._flow.nodes.get(value) if value is not None else None
            if value is not None and value == phi.code.result:
                steps.add(step)
            elif value in seen:
                pass
            elif value is None or node is None or node.block not in self._body:
                steps.add(None)
            else:
                seen.add(value)
                todo += self._from(node, step) or [(None, 0)]
        return 0 in steps and -1 not in steps

    def _from(self, node: Node, step: int) -> list[tuple[Value | None, int]]:
        """Of what a value was made, and by which steps; nothing where it is not known."""
        if node.opcode == "phi":
            return [(v, step) for v, _ in self._flow.incoming(node)]
        if node.opcode == "select":
            return [(v, step) for v in node.operands[1:]]
        if node.opcode not in ("add", "getelementptr") or len(node.operands) != 2:
            return []
        by = node.operands[1]
        if isinstance(by, Integer):
            return [(node.operands[0], -1 if by.value < 0 else 1)]
        made = self._flow.nodes.get(by)
        if made is None or made.opcode not in ("zext", "sext") or made.operands[0].type != BIT:
            return []
        return [(node.operands[0], step), (node.operands[0], 1 if made.opcode == "zext" else -1)]


def _called(node: Node) -> str:
    """The name of the function that is called, or nothing."""
    return callee(node.code)


def _atomic(node: Node) -> str:
    """What an ``atomicrmw`` does; nothing for other instructions."""
    return node.code.words[-1] if node.opcode == "atomicrmw" else ""


def _is_number(value: Value, number: int) -> bool:
    return isinstance(value, Integer) and value.type != BIT and value.value == number


def _is_shared(node: Node) -> bool:
    """Whether an instruction has to do with a block's own memory."""
    types = (node.code.type, *(type_ for one in node.operands for type_ in _types(one)))
    return any(one.kind == "ptr" and one.number == _SHARED for one in types)


def _types(value: Value) -> tuple[Type, ...]:
    """The types of a value and of what it is made of."""
    inner = value.operands if isinstance(value, Expression) else ()
    return (value.type, *(type_ for one in inner for type_ in _types(one)))


def _assembly(node: Node) -> str:
    """The inline assembly that is called, or nothing."""
    called = node.operands[-1] if node.opcode == "call" and node.operands else None
    return called.text if isinstance(called, Assembly) else ""


def _is_fence(node: Node) -> bool:
    return node.opcode == "fence" or _called(node).startswith(_FENCES) or "asm sideeffect " in _assembly(node)


def _may_matter(node: Node) -> bool:
    """Whether a loop with this instruction may wait."""
    own = node.opcode == "load" and {"volatile", "atomic"}.intersection(node.code.words)
    calls = node.opcode == "call" and not _called(node).startswith("llvm.")
    return bool(own) or node.opcode in ("atomicrmw", "cmpxchg") or calls or _is_fence(node)


def _is_watch(node: Node) -> bool:
    if _is_shared(node):
        return False
    if node.opcode == "load":
        return bool({"volatile", "atomic"}.intersection(node.code.words))
    if node.opcode == "atomicrmw":
        keeps = -1 if _atomic(node) == "and" else 0
        return _atomic(node) in ("add", "sub", "or", "xor", "and") and _is_number(node.operands[1], keeps)
    if node.opcode == "cmpxchg":
        return node.operands[1] == node.operands[2]
    return _LOADS.search(_assembly(node)) is not None

"""Device LLVM IR → whether a function waits in a loop for memory that somebody else changes.

In: functions with a body, as llvmlite has them. Out: yes or no for each. A file of its own because this is about
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
from typing import Any

from kesco.analysis.device_flow import Flow, Node

_MAY_WATCH = re.compile(
    r"load (?:volatile|atomic)|atomicrmw (?:volatile )?(?:add|sub|or|and|xor|xchg)|cmpxchg|asm .*\b(?:ld|atom)\."
)
_SAME = re.compile(r"atomicrmw (?:volatile )?(?:(?:add|sub|or|xor) .*, i\d+ 0|and .*, i\d+ -1) ")
_TAKES = re.compile(r"atomicrmw (?:volatile )?xchg .*, i\d+ 0 ")
_FREE = re.compile(r"i\d+ (?:0|-1)")  # what a lock, or a slot of a table, holds while it is nobody's
_LOADS = re.compile(
    r"\basm\b.*\b(?:ld\.(?!shared|const|param|local)|atom\.(?!\S*shared)\S*(?:add|or|xor|max)\S* [^;]*, ?0 ?;)"
)
_FENCE = re.compile(r"fence |call .*(?:@llvm\.nvvm\.(?:membar|fence|barrier|bar\.|nanosleep)|asm sideeffect )")
_CALL = re.compile(r"\bcall [^@\n]*@(?!llvm\.)")
_SHARED = "addrspace(3)"
_ADDRESSES = ("getelementptr", "addrspacecast", "bitcast", "add", "sub", "mul", "sext", "zext", "trunc", "shl")
_WRITES = {"store": 1, "atomicrmw": 0, "cmpxchg": 0}


class Spins:
    """Answers for the functions of a module; `body` gives the one of a name, or None where it is not seen."""

    def __init__(self, body: Callable[[str], Any]) -> None:
        self._body = body
        self._waits: dict[str, bool] = {}
        self._looks: dict[str, bool] = {}

    def waits(self, name: str) -> bool:
        """Whether a loop of this function goes on until somebody else has written something."""
        if name not in self._waits:
            self._waits[name] = self._has_waiting_loop(self._body(name))
        return self._waits[name]

    def _has_waiting_loop(self, function: Any) -> bool:
        text = str(function)
        if not (_MAY_WATCH.search(text) or _FENCE.search(text) or _CALL.search(text)):
            return False
        flow = Flow(function)
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

    def __init__(self, flow: Flow, body: frozenset[int], looks: Callable[[str], bool]) -> None:
        self._flow, self._body, self._looks = flow, body, looks

    def waits(self) -> bool:
        """Whether it ends by a watch."""
        flow, body = self._flow, self._body
        ends = [node for block in body for node in flow.conditions(block) if not body.issuperset(flow.after(block))]
        return any(self._decides(end) for end in ends)

    def _decides(self, end: Node) -> bool:
        seen: set[int] = set()
        loads: list[Node] = []
        counts = False
        todo = [end]
        while todo:
            node = todo.pop()
            if hash(node.value) in seen:
                continue
            seen.add(hash(node.value))
            if (_is_watch(node) or self._takes(node) or self._calls_a_look(node)) and self._stays(node):
                return True
            if node.opcode == "load":
                loads.append(node)
            counts = counts or node.opcode == "phi"
            todo += self._inside(node)
        return not counts and any(self._only_others_write(load) for load in loads)

    def _inside(self, node: Node) -> list[Node]:
        """What an instruction is made of in the same trip of the loop, or the one before."""
        known = (self._flow.nodes.get(hash(o)) for o in node.operands)
        return [one for one in known if one is not None and one.block in self._body]

    def _takes(self, node: Node) -> bool:
        """Whether an atomic operation takes what somebody else has put there, and is no lock."""
        if node.opcode == "cmpxchg":
            expected = node.operands[1]
            made = self._flow.nodes.get(hash(expected))
            return (made is None or made.block not in self._body) and not _FREE.fullmatch(str(expected).strip())
        return node.opcode == "atomicrmw" and _SHARED not in node.text and _TAKES.search(node.text) is not None

    def _calls_a_look(self, node: Node) -> bool:
        return node.opcode == "call" and self._looks(_called(node))

    def _only_others_write(self, load: Node) -> bool:
        """Whether a plain load reads what this loop waits for: there is a fence, and no write of its own."""
        if _SHARED in load.text or not self._stays(load):
            return False
        nodes = [node for node in self._flow.order if node.block in self._body]
        place = self._base(load.operands[0])
        for node in nodes:
            if node.opcode in _WRITES and self._base(node.operands[_WRITES[node.opcode]]) == place:
                return False
            if node.opcode == "call" and any(self._base(o) == place for o in node.operands):
                return False
        return any(node.opcode in ("fence", "call") and _FENCE.match(_bare(node)) for node in nodes)

    def _base(self, pointer: Any) -> int:
        """What an address was computed from."""
        node = self._flow.nodes.get(hash(pointer))
        while node is not None and node.opcode in ("getelementptr", "addrspacecast", "bitcast"):
            pointer = node.operands[0]
            node = self._flow.nodes.get(hash(pointer))
        return hash(pointer)

    def _stays(self, node: Node) -> bool:
        """Whether an instruction may look at the same place in each trip of the loop."""
        made = self._inside(node)
        if node.opcode in ("load", "atomicrmw", "cmpxchg"):
            made = [one for one in made if hash(one.value) == hash(node.operands[0])]
        return all(
            _SHARED not in one.text and (self._lingers(one) if one.opcode == "phi" else self._is_address(one))
            for one in made
        )

    def _is_address(self, one: Node) -> bool:
        return one.opcode in _ADDRESSES and self._stays(one)

    def _lingers(self, phi: Node) -> bool:
        """Whether a place may be the same one trip later, and is never one further back."""
        steps: set[int | None] = set()
        seen: set[int] = set()
        todo: list[tuple[Any, int]] = [(v, 0) for v, b in self._flow.incoming(phi) if b in self._body]
        while todo:
            value, step = todo.pop()
            node = self._flow.nodes.get(hash(value))
            if hash(value) == hash(phi.value):
                steps.add(step)
            elif node is None or node.block not in self._body or hash(value) in seen:
                steps |= set() if hash(value) in seen else {None}
            else:
                seen.add(hash(value))
                todo += self._from(node, step) or [(None, 0)]
        return 0 in steps and -1 not in steps

    def _from(self, node: Node, step: int) -> list[tuple[Any, int]]:
        """Of what a value was made, and by which steps; nothing where it is not known."""
        if node.opcode == "phi":
            return [(v, step) for v, _ in self._flow.incoming(node)]
        if node.opcode == "select":
            return [(v, step) for v in node.operands[1:]]
        if node.opcode not in ("add", "getelementptr") or len(node.operands) != 2:
            return []
        by = re.fullmatch(r"i\d+ (-?)\d+", str(node.operands[1]).strip()) if node.operands[1].is_constant else None
        if by is not None:
            return [(node.operands[0], -1 if by[1] else 1)]
        made = self._flow.nodes.get(hash(node.operands[1]))
        if made is None or made.opcode not in ("zext", "sext") or str(made.operands[0].type) != "i1":
            return []
        return [(node.operands[0], step), (node.operands[0], 1 if made.opcode == "zext" else -1)]


def _bare(node: Node) -> str:
    """An instruction without the name of its result."""
    return re.sub(r"^%\S+ = ", "", node.text).removeprefix("tail ").removeprefix("must")


def _called(node: Node) -> str:
    """The name of the function that is called, or nothing."""
    return str(node.operands[-1].name) if node.operands else ""


def _is_watch(node: Node) -> bool:
    text = node.text if node.opcode in ("load", "atomicrmw", "cmpxchg", "call") else ""
    if _SHARED in text:
        return False
    if node.opcode == "load":
        return bool(re.search(r"\bload (?:volatile|atomic)\b", text))
    if node.opcode == "atomicrmw":
        return _SAME.search(text) is not None
    if node.opcode == "cmpxchg":
        return len(node.operands) > 2 and str(node.operands[1]).strip() == str(node.operands[2]).strip()
    return node.opcode == "call" and _LOADS.search(text) is not None

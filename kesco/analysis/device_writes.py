"""Device IR → which elements a kernel writes through its pointer parameters, as words that can be compared.

In: a kernel as `llvm` reads it. Out: `Written` for pointer parameters. Apart from the footprints, which bound what is
touched: this says nothing of where that is, but that two kernels write the same, or that one writes no more.

1. The word of an access is how its address is reckoned from the thread's and block's numbers, the launch's dimensions
and the arguments, and all branches that decide whether it is made, with what decides of those. Arguments are numbered
as they occur in it. So two accesses of one word, given the same where the word names an argument, are made by the same
threads at the same places. 2. There is no word for what depends on memory, or stands in a loop. 3. A kernel in which a
thread may end, or call what is not known to come back, has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from kesco.analysis.device_flow import Flow, Node
from kesco.analysis.device_reader import DeviceModule
from kesco.analysis.device_steering import says_end
from kesco.ir.effects import KernelEffects
from kesco.ir.kernels import Key, Writes, Written
from kesco.llvm.types import Layouts
from kesco.llvm.values import Assembly, Function, Integer, Symbol, Value, callee

_PLAIN = frozenset(
    "add sub mul shl lshr ashr and or xor sext zext trunc udiv sdiv urem srem icmp select freeze".split()
)
_QUIET = ("llvm.lifetime.", "llvm.assume", "llvm.dbg.", "llvm.experimental.noalias.scope.decl")
_THREAD = re.compile(r"llvm\.nvvm\.read\.ptx\.sreg\.(?:n?ctaid|n?tid)\.[xyz]")
_NUMBERS = re.compile(r"llvm\.(?:[su](?:min|max)|abs)\.")
_COMES_BACK = ("llvm.", "__nv_")
_NEVER = ("llvm.trap", "llvm.debugtrap", "llvm.ubsantrap", "llvm.nvvm.exit")
_ARGUMENT = re.compile(r"\$(\d+)")
_LONGEST, _LARGE = 1500, 3000  # characters of a word; instructions of a kernel


def kernel_writes(texts: Iterable[str], effects: Mapping[str, KernelEffects]) -> Writes:
    """What the kernels of some modules write, where that is known; of two that have one, what both say."""
    found: dict[str, dict[int, Written]] = {}
    for module in map(DeviceModule, texts):
        for name in module.kernels:
            known, function = effects.get(name), module.body(name)
            large = sum(len(block.instructions) for block in function.blocks) > _LARGE
            here: dict[int, Written] = {}
            if known is not None and not known.opaque and not known.keeps and function.is_read and not large:
                here = dict(_Kernel(function, module.layouts).written()) if _comes_back(module, name, set()) else {}
            before = found.setdefault(name, here)
            found[name] = {index: one for index, one in here.items() if before.get(index) == one}
    return found


class _Kernel:
    """One kernel."""

    def __init__(self, function: Function, layouts: Layouts) -> None:
        self._flow, self._layouts = Flow(function), layouts
        self._arguments = {one.value: n for n, one in enumerate(function.parameters) if one.type.kind == "int"}
        self._roots = {
            one.value: n
            for n, one in enumerate(function.parameters)
            if one.type.kind == "ptr" and one.promised("byval") is None
        }
        self._words: dict[Value, str] = {}
        self._when: dict[str, str | None] = {}
        self._decided = self._flow.decided()
        self._looping = {block for loop in self._flow.loops() for block in loop}

    def written(self) -> Iterator[tuple[int, Written]]:
        """What is written through each pointer parameter."""
        derived: dict[Value, tuple[int, tuple[Node, ...]]] = {one: (n, ()) for one, n in self._roots.items()}
        size = -1
        while size != len(derived):
            size = len(derived)
            for node in self._flow.order:
                base = derived.get(node.operands[0]) if node.operands else None
                if base is not None and node.opcode == "getelementptr" and node.code.result is not None:
                    derived[node.code.result] = base[0], (*base[1], node)
        surely: dict[int, set[Key]] = {n: set() for n in self._roots.values()}
        every: dict[int, set[Key] | None] = {n: set() for n in self._roots.values()}
        for node in self._flow.order:
            if node.opcode in ("icmp", "getelementptr") or callee(node.code).startswith(_QUIET):
                continue
            for at, operand in enumerate(node.operands):
                if operand not in derived or (node.opcode == "load" and at == 0):
                    continue
                index, steps = derived[operand]
                key = self._key(node, at, steps)
                keys = every[index]
                if key is None:
                    every[index] = None
                elif keys is not None:
                    keys.add(key)
                if key is not None and node.opcode == "store":
                    surely[index].add(key)
        for index, keys in every.items():
            yield index, Written(frozenset(surely[index]), None if keys is None else frozenset(keys))

    def _key(self, node: Node, at: int, steps: tuple[Node, ...]) -> Key | None:
        """The word of what an instruction writes through its operand; None for what is no such thing."""
        if (node.opcode, at) not in (("store", 1), ("atomicrmw", 0)):
            return None
        width = self._layouts.size(node.operands[1 - at].type)
        places = [self._step(one) for one in steps]
        when = self._reached(node.block)
        if when is None or not all(places):
            return None
        text = f"{width}@{'+'.join(places)}?{when}"
        if len(text) > _LONGEST:
            return None
        numbers = list(dict.fromkeys(map(int, _ARGUMENT.findall(text))))
        return _ARGUMENT.sub(lambda m: f"#{numbers.index(int(m[1]))}", text), tuple(numbers)

    def _step(self, node: Node) -> str:
        if node.code.about is None or len(node.operands) != 2:
            return ""
        index = self._word(node.operands[1])
        return f"{self._layouts.size(node.code.about)}*{index}" if index else ""

    def _word(self, value: Value) -> str:
        """A number, as it is reckoned; empty where that is not known."""
        if isinstance(value, Integer):
            return f"{value.value}:{value.type.number}"
        if value in self._arguments:
            return f"${self._arguments[value]}"
        if value not in self._words:
            self._words[value] = ""  # what is reckoned from itself has no word
            node = self._flow.nodes.get(value)
            self._words[value] = "" if node is None or node.block in self._looping else self._made(node)
        return self._words[value]

    def _made(self, node: Node) -> str:
        called = callee(node.code) if node.opcode == "call" else ""
        if _THREAD.fullmatch(called):
            return called.rpartition("sreg.")[2]
        if node.opcode not in _PLAIN and not _NUMBERS.match(called):
            return ""
        operands = node.operands[:-1] if called else node.operands
        words = [self._word(one) for one in operands]
        relation = node.code.words[-1] if node.opcode == "icmp" else called
        text = f"({node.opcode}{relation}:{node.code.type.number} {' '.join(words)})"
        return text if all(words) and len(text) <= _LONGEST else ""

    def _reached(self, block: str) -> str | None:
        """What decides that control comes to a block; None where that is not known."""
        if block not in self._when:
            self._when[block] = None  # a loop
            parts = [self._way(branch, way) for branch, way in self._decided[block]]
            known = [one for one in parts if one is not None]
            text = "".join(sorted(known))
            good = len(known) == len(parts) and len(text) <= _LONGEST and block not in self._looping
            self._when[block] = text if good else None
        return self._when[block]

    def _way(self, branch: str, way: int) -> str | None:
        (node,) = self._flow.conditions(branch)
        before, word = self._reached(branch), self._word(node.operands[0])
        return None if before is None or not word or node.opcode != "br" else f"[{word}={way}{before}]"


def _comes_back(module: DeviceModule, name: str, seen: set[str]) -> bool:
    """Whether each thread that calls a function comes back from it: it, and what it calls, ends none."""
    if name in seen:
        return True
    seen.add(name)
    if not module.has_body(name):
        return name.startswith(_COMES_BACK) and not name.startswith(_NEVER)
    instructions = [one for block in module.body(name).blocks for one in block.instructions]
    if any(one.opcode in ("unreachable", "indirectbr", "invoke") for one in instructions):
        return False
    called = [one.operands[-1] for one in instructions if one.opcode == "call"]
    return all(_call_comes_back(module, one, seen) for one in called)


def _call_comes_back(module: DeviceModule, called: Value, seen: set[str]) -> bool:
    if isinstance(called, Assembly):
        return not says_end(called)
    return isinstance(called, Symbol) and _comes_back(module, called.name, seen)

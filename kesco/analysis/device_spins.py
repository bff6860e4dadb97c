"""Device LLVM IR → whether a function waits in a loop for memory that somebody else changes.

In: a function with a body, as llvmlite has it. Out: yes or no. A file of its own because this is about control flow and
not about accesses: a barrier between the blocks of a kernel, made by hand, works only if all blocks are on the GPU at
once. The program has seen to that for the kernel alone; beside another one it may wait for ever.

1. A *watch* is an instruction that reads what others may have written and changes nothing: a volatile or atomic load,
   an atomic operation that leaves the value as it is (``atomicAdd(p, 0)``, ``atomicCAS(p, v, v)``), inline PTX that
   loads. 2. A loop waits if whether it goes on depends on a watch within it, whose address stays the same.

Not meant are loops that try again until their own change succeeds: locks and compare-and-swap. Whoever is in their way
is running, and gets on. Shared memory is no matter of other blocks. Watches whose address moves on (a look back at the
blocks before) wait for blocks that were started earlier.
"""

from __future__ import annotations

import re
from typing import Any

from kesco.analysis.device_flow import Flow, Node

_MAY_WATCH = re.compile(r"load (?:volatile|atomic)|atomicrmw (?:volatile )?(?:add|sub|or|and|xor)|cmpxchg|asm .*\bld\.")
_SAME = re.compile(r"atomicrmw (?:volatile )?(?:(?:add|sub|or|xor) .*, i\d+ 0|and .*, i\d+ -1) ")
_LOADS = re.compile(r"\basm\b.*\bld\.(?!shared|const|param|local)")
_SHARED = "addrspace(3)"


def waits_for_others(function: Any) -> bool:
    """Whether a loop of this function goes on until somebody else has written something."""
    if not _MAY_WATCH.search(str(function)):
        return False
    flow = Flow(function)
    return any(_waits(flow, body) for body in flow.loops())


def _waits(flow: Flow, body: frozenset[int]) -> bool:
    """Whether a loop, the blocks of which are given, ends by a watch."""
    open_ends = [node for block in body for node in flow.conditions(block) if not body.issuperset(flow.after(block))]
    seen: set[int] = set()
    while open_ends:
        node = open_ends.pop()
        if hash(node.value) in seen or node.block not in body:
            continue
        seen.add(hash(node.value))
        if _is_watch(node) and _stays(flow, body, node):
            return True
        open_ends += [known for o in node.operands if (known := flow.nodes.get(hash(o))) is not None]
    return False


def _is_watch(node: Node) -> bool:
    text = node.text
    if _SHARED in text:
        return False
    if node.opcode == "load":
        return bool(re.search(r"\bload (?:volatile|atomic)\b", text))
    if node.opcode == "atomicrmw":
        return _SAME.search(text) is not None
    if node.opcode == "cmpxchg":
        return len(node.operands) > 2 and str(node.operands[1]).strip() == str(node.operands[2]).strip()
    return node.opcode == "call" and _LOADS.search(text) is not None


def _stays(flow: Flow, body: frozenset[int], node: Node) -> bool:
    """Whether an instruction has the same operands in each trip of a loop."""
    made = [known for o in node.operands if (known := flow.nodes.get(hash(o))) is not None and known.block in body]
    if node.opcode in ("load", "atomicrmw", "cmpxchg"):
        made = [one for one in made if hash(one.value) == hash(node.operands[0])]
    plain = ("getelementptr", "addrspacecast", "bitcast", "add", "sub", "mul", "sext", "zext", "trunc", "shl")
    return all(one.opcode in plain and _SHARED not in one.text and _stays(flow, body, one) for one in made)

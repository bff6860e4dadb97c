"""Through which parameter of a function its work touches memory: ``Passing(program).parameter(…)``.

In: a site of a function, and one of its accesses. Out: the number of the parameter whose value the pointer is reckoned
from, if that is all that it is. Apart from the walk because it is about the text alone: what is told of a call names
the argument, so that its caller knows which pointer of its own that is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from kesco.analysis.region import Draft
from kesco.ir import program as ir
from kesco.ir.access import AccessMode, Buffer, argument_of, through_parameter
from kesco.ir.flow import CURRENT, SiteKind
from kesco.ir.scratch import OWN, OWNED
from kesco.ir.taken import OwnMemory
from kesco.ir.within import Within


@dataclass(frozen=True)
class Passing:
    """What is known of the functions of a program."""

    program: ir.Program
    _nodes: dict[str, dict[int, ir.Launch | ir.Call]] = field(default_factory=dict)
    _changed: dict[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def frees(self) -> frozenset[int]:
        """The operations that free what the function that they are in has taken for itself."""
        own = OwnMemory(self.program, Within(self.program))
        functions = (f for f in self.program.functions if f.here and not f.template)
        calls = (free for f in functions for number, free in own.of(f).items() if self._is_plain(number, free))
        return frozenset(free.operation for free in calls)

    def _is_plain(self, number: int, free: ir.Call) -> bool:
        """Whether both calls stand in the text as such, where they can get another name."""
        starts = ((number, b"cudaMalloc("), (free.operation, b"cudaFree("))
        text, operations = self.program.text, self.program.operations
        return all(text.startswith(word, operations[n].span.start) and not operations[n].stuck for n, word in starts)

    def own(self, drafts: Iterable[Draft]) -> frozenset[Buffer]:
        """The memory that a function takes for itself: what it frees so, or gives back in a text that says so."""
        frees = [d for d in drafts if d.kind is SiteKind.FREE and (d.operation in self.frees or d.stream == CURRENT)]
        return frozenset(buffer for draft in frees for buffer, _, _ in draft.accesses)

    def parameter(self, function: ir.Function, draft: Draft, why: str, mode: AccessMode) -> int:
        """The parameter that an access goes through, from 0; -1 where that is not known."""
        node = self._nodes_of(function).get(draft.operation)
        if node is None:
            return -1
        index = _argument(node, draft, why, mode)
        if not 0 <= index < len(node.arguments):
            return -1
        roots = _pointers(node.arguments[index])
        if len(roots) != 1 or roots[0].key in self._changed[function.key]:
            return -1
        return next((n for n, one in enumerate(function.parameters) if one.key == roots[0].key), -1)

    def _nodes_of(self, function: ir.Function) -> dict[int, ir.Launch | ir.Call]:
        if function.key not in self._nodes:
            nodes = [n for n in ir.walk(function.body) if isinstance(n, (ir.Launch, ir.Call))]
            self._nodes[function.key] = {n.operation: n for n in nodes if n.operation >= 0}
            self._changed[function.key] = frozenset(ir.reassigned(function.body))
        return self._nodes[function.key]


def _argument(node: ir.Launch | ir.Call, draft: Draft, why: str, mode: AccessMode) -> int:
    """Which argument of a launch or call an access goes through."""
    if isinstance(node, ir.Launch):
        return next((n for n in range(len(node.arguments)) if why == through_parameter(n)), -1)
    if draft.kind is SiteKind.CALL:
        return argument_of(why)
    if draft.kind is SiteKind.MEMSET:
        return 0
    if draft.kind is SiteKind.COPY and why == "copies" and mode in (AccessMode.READ, AccessMode.WRITE):
        return 0 if mode is AccessMode.WRITE else 1
    return -1


def _pointers(one: ir.Expr) -> list[ir.Variable]:
    """The variables in an expression that are no integers; more than one where it is not just reckoned from them."""
    inner = ir.bare(one)
    match inner:
        case ir.Name(variable=variable):
            return [variable] if variable.type.shape is ir.Shape.POINTER else []
        case ir.Binary(operator="+" | "-"):
            return [*_pointers(inner.left), *_pointers(inner.right)]
        case ir.Call() if inner.name.rpartition("::")[2] in (OWN, OWNED) and inner.arguments:
            return _pointers(inner.arguments[0])
    names = (n.variable for n in ir.walk(inner) if isinstance(n, ir.Name))
    others = [one for one in names if one.type.shape is ir.Shape.POINTER]
    return [*others, *others]

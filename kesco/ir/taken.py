"""Memory that a function takes for itself and gives back before it ends: ``OwnMemory(program).of(function)``.

In: a function, and what the calls are called. Out: the calls that allocate and free such memory. Apart because whoever
lets calls of the function run beside each other asks it, and the proof of that.

1. A pointer of the function's own is declared without a value. One statement allocates what it points to, a later one
frees it, both on each way and once. 2. In between it is given to the device's work and to nothing else, and nothing
leaves the function; apart from that it is not named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kesco.ir import program as ir
from kesco.ir.within import Within

_AS_WRITTEN = ("cudaMalloc", "cudaFree")


@dataclass(frozen=True, slots=True)
class OwnMemory:
    """What is known of the functions of a program, whose calls have these names."""

    program: ir.Program
    within: Within
    names: tuple[str, str] = _AS_WRITTEN
    _known: dict[str, dict[int, ir.Call]] = field(default_factory=dict)

    def of(self, function: ir.Function) -> dict[int, ir.Call]:
        """The call that frees, by the operation of the one that allocates."""
        if function.key not in self._known:
            pairs = ((call.operation, self._freed(function, call)) for call in self._calls(function, self.names[0]))
            self._known[function.key] = {number: free for number, free in pairs if free is not None}
        return self._known[function.key]

    def _calls(self, function: ir.Function, name: str) -> Iterator[ir.Call]:
        """The calls of this name on each way through a function, in the order of its statements."""
        for statement in _statements(function):
            for node in ir.walk(statement):
                named = isinstance(node, ir.Call) and node.name.rpartition("::")[2] == name
                if named and isinstance(node, ir.Call) and ir.always(statement, node) and node.operation >= 0:
                    yield node

    def _freed(self, function: ir.Function, call: ir.Call) -> ir.Call | None:
        target = ir.bare(call.arguments[0]) if len(call.arguments) == 2 else None
        name = ir.bare(target.target) if isinstance(target, ir.AddressOf) else None
        if not isinstance(name, ir.Name) or name.variable.type.shape is not ir.Shape.POINTER:
            return None
        pointer, statements = name.variable, _statements(function)
        declared = [s for s in statements if isinstance(s, ir.Declare) and s.variable.key == pointer.key]
        ends = [one for one in self._calls(function, self.names[1]) if _is_of(one.arguments[0], pointer)]
        if len(declared) != 1 or not _is_empty(declared[0].initial) or len(ends) != 1 or pointer.type.volatile:
            return None
        begin, at, end = (_index(statements, one) for one in (declared[0], call, ends[0]))
        between = [h for s in statements[at + 1 : end] for h in self.within.handed(s, pointer.key)]
        mentions = sum(_is_of(n, pointer) for n in ir.walk(function.body) if isinstance(n, ir.Name))
        inside = any(isinstance(n, ir.Leave) for s in statements[:end] for n in ir.walk(s))
        if not begin < at < end or not all(between) or len(between) + 2 != mentions or inside:
            return None
        return ends[0]


def _statements(function: ir.Function) -> list[ir.Stmt]:
    return list(ir.flat(function.body)) if isinstance(function.body, ir.Block) else []


def _index(statements: list[ir.Stmt], node: ir.Expr | ir.Stmt) -> int:
    return next(n for n, s in enumerate(statements) if any(one is node for one in ir.walk(s)))


def _is_of(one: ir.Expr, pointer: ir.Variable) -> bool:
    inner = ir.bare(one)
    return isinstance(inner, ir.Name) and inner.variable.key == pointer.key


def _is_empty(initial: ir.Expr | None) -> bool:
    return initial is None or ir.bare(initial) == ir.Constant(0)

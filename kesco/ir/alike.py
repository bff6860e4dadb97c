"""What deals with an error in one place does so in another: ``is_alike(…)`` and ``is_quiet(…)``.

In: the statement of a copy, and the one of the wait for it, which is the same text but for the call. Out: whether the
two mean the same, and whether a further one of them does nothing where there is no error. Apart because it compares
trees, node by node.

1. A name means the same variable or function, but for variables that each statement declares. Numbers may differ that
are the lines in which the statements stand. 2. Where there is no error, nothing is changed but such variables, and
nothing is called but what asks for errors: what a branch does that is for errors alone is no matter.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields

from kesco.ir import program as ir

_Node = ir.Expr | ir.Stmt
_QUIET = frozenset(
    {
        *("cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorString", "cudaGetErrorName"),
        *("cudaDeviceSynchronize", "cudaStreamSynchronize", "__assert_fail"),
    }
)
"""What a check may call where there is no error: it says what went wrong, or waits. A function of the program that has
a name like that is looked into."""
_APART = ("span", "operation", "number")


def statement_of(program: ir.Program, function: ir.Function, call: ir.Call) -> ir.Stmt | None:
    """The statement that a call stands in, with all that a macro around it has."""
    place = program.operations[call.operation].statement if call.operation >= 0 else None
    if place is None:
        return None
    nodes = (n for n in ir.walk(function.body) if isinstance(n, ir.Stmt) and n.span.start == place.start)
    around = [n for n in nodes if n.span.end <= place.end and any(one is call for one in ir.walk(n))]
    return max(around, key=lambda n: sum(1 for _ in ir.walk(n)), default=None)


@dataclass(slots=True)
class _Pair:
    """Two statements, with the call in each that may differ."""

    lines: tuple[int, int]
    calls: tuple[ir.Call, ir.Call]
    names: dict[str, str] = field(default_factory=dict)

    def same(self, one: object, other: object) -> bool:
        """Whether two nodes, or what they hold, mean the same."""
        if one is self.calls[0] or other is self.calls[1]:
            return one is self.calls[0] and other is self.calls[1]
        if type(one) is not type(other):
            return False
        if isinstance(one, ir.Constant) and isinstance(other, ir.Constant):
            return one == other or (one.value, other.value) == self.lines
        if isinstance(one, ir.Variable) and isinstance(other, ir.Variable):
            known = self.names.get(one.key, one.key)
            return known == other.key and one.name == other.name and one.type == other.type
        if isinstance(one, ir.Declare) and isinstance(other, ir.Declare):
            self.names[one.variable.key] = other.variable.key
        if isinstance(one, tuple) and isinstance(other, tuple):
            return len(one) == len(other) and all(map(self.same, one, other))
        if isinstance(one, (ir.Expr, ir.Stmt)):
            kept = (f.name for f in fields(one) if f.name not in _APART)
            return all(self.same(getattr(one, name), getattr(other, name)) for name in kept)
        return one == other


def is_alike(one: ir.Stmt, call: ir.Call, other: ir.Stmt, wait: ir.Call) -> bool:
    """Whether two statements mean the same, apart from these calls in them."""
    return _Pair((one.span.line, other.span.line), (call, wait)).same(one, other)


def is_quiet(program: ir.Program, one: ir.Stmt, call: ir.Call) -> bool:
    """Whether a statement does nothing but this call that could be seen where there is no error."""
    return _Quiet({f.key: f for f in program.functions}, call).holds(one, frozenset(), frozenset(), 3)


@dataclass(frozen=True, slots=True)
class _Quiet:
    """Looks through statements and the functions that they call; what `call` does is no matter."""

    functions: dict[str, ir.Function]
    call: ir.Call

    def holds(self, one: ir.Stmt, own: frozenset[str], given: frozenset[str], depth: int) -> bool:
        """Whether a statement does nothing that could be seen; `own` are parameters, of which `given` have a status."""
        mine = own | {n.variable.key for n in ir.walk(one) if isinstance(n, ir.Declare)}
        statuses = self._statuses(one, given)
        todo: list[_Node] = [one]
        while todo:
            node = todo.pop()
            if node is self.call:
                continue
            if isinstance(node, (ir.Unknown, ir.New, ir.Obstacle)):
                return False
            if isinstance(node, ir.Assign) and not _is_in(ir.bare(node.target), mine):
                return False
            if isinstance(node, ir.Call) and not self._is_quiet(node, statuses, depth):
                return False
            if isinstance(node, ir.If):
                failing = self._failing(node, statuses)
                todo += [*node.before, node.condition]
                todo += [arm for arm in (node.then, node.other) if arm is not None and arm is not failing]
            else:
                todo += ir.children(node)
        return True

    def _is_quiet(self, call: ir.Call, statuses: frozenset[str], depth: int) -> bool:
        if call.standard and call.name in _QUIET:
            return True
        function = self.functions.get(call.key)
        if function is None or call.standard or function.virtual or not depth:
            return False
        pairs = list(zip(function.parameters, call.arguments, strict=False))
        own = frozenset(p.key for p, _ in pairs if p.type.shape is not ir.Shape.REFERENCE)
        given = own & {p.key for p, a in pairs if self._is_status(a, statuses)}
        return self.holds(function.body, own, given, depth - 1)

    def _statuses(self, one: ir.Stmt, given: frozenset[str]) -> frozenset[str]:
        """The variables that only ever hold what a call of CUDA's has told."""
        values: dict[str, list[ir.Expr]] = {}
        for node in ir.walk(one):
            if isinstance(node, ir.Declare) and node.initial is not None:
                values.setdefault(node.variable.key, []).append(node.initial)
            elif isinstance(node, ir.Assign):
                for key in ir.names(node.target):
                    values.setdefault(key, []).append(ir.VARYING if node.operator else node.value)
        found = given
        for _ in values:
            found |= {k for k, every in values.items() if all(self._is_status(one, found) for one in every)}
        return found - {k for k, every in values.items() if not all(self._is_status(one, found) for one in every)}

    def _is_status(self, one: ir.Expr, statuses: frozenset[str]) -> bool:
        inner = ir.bare(one)
        told = isinstance(inner, ir.Call) and inner.standard and inner.name in _QUIET
        return inner is self.call or told or _is_in(inner, statuses)

    def _failing(self, branch: ir.If, statuses: frozenset[str]) -> ir.Stmt | None:
        """The arm of a branch that is for errors: where a status is not 0."""
        test = ir.bare(branch.condition)
        if isinstance(test, ir.Binary) and test.operator in ("==", "!="):
            sides = (ir.bare(test.left), ir.bare(test.right))
            known = [one for one in sides if self._is_result(one, statuses)]
            arm = branch.then if test.operator == "!=" else branch.other
            return arm if len(known) == 1 and ir.Constant(0) in sides else None
        return branch.then if self._is_result(test, statuses) else None

    def _is_result(self, one: ir.Expr, statuses: frozenset[str]) -> bool:
        return self._is_status(ir.bare(one.target) if isinstance(one, ir.Assign) else one, statuses)


def _is_in(one: ir.Expr, keys: Collection[str]) -> bool:
    return isinstance(one, ir.Name) and one.variable.key in keys

"""What the host reads once a launch is behind it, and whether that is much: ``Reading``.

In: a program and a launch. Out: the statements that are certainly executed later, each a `Unit`, and whether one of
them reads most of an array. Apart because it is about the host's text alone.

1. Statements behind the launch, in its block and in those around it, are executed for certain until one of them may
leave the block. Conditional ones are none. 2. An array is read by much where a loop takes its elements one by one, more
than `MOST_FEW` of them or nobody knows how many; where a library function gets it whole; or where a function of the
program that gets it does one of both. 3. Loops are taken at their word: that they run at all, and to their end.

What it refuses to do: guess. Elements in steps, pointers that walk, and what stands in branches count for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from kesco.ir import program as ir
from kesco.ir.flow import SMALL
from kesco.source import Span

MOST_FEW = SMALL // 4
"""Elements that are few: of a large array these are not worth moving all of it."""
_NEAR = 16
"""Elements between two of a loop that still takes all pages."""
_WHOLE = {
    **{"memcpy": (2,), "memmove": (2,), "memcmp": (2,), "fwrite": (1, 2), "write": (2,)},
    **{"std::copy_n": (1,), "std::basic_ostream::write": (1,)},
}
"""Functions that read all of what they get, and the arguments whose product says how much that is."""
_ENDS = ("return", "throw", "break", "continue")


@dataclass(frozen=True, slots=True)
class Unit:
    """A statement that is certainly executed once control has passed a launch."""

    statement: ir.Stmt

    @property
    def span(self) -> Span:
        """Its place."""
        return self.statement.span


class Reading:
    """The host's side of one program; `failed` are operations of exits that only a failed call of CUDA leads to."""

    def __init__(self, program: ir.Program, failed: frozenset[int]) -> None:
        self.functions = {f.key: f for f in program.functions}
        self.failed = failed
        self._known: dict[tuple[str, str], bool] = {}

    # ---- which statements -----------------------------------------------------------------------------------------

    def units(self, body: ir.Stmt, launch: ir.Launch) -> list[Unit]:
        """The statements behind a launch that are executed whenever it is, or when the loops around it end."""
        found: list[Unit] = []
        for block, place in reversed(_way_to(body, launch)):
            if not self._behind(block.body[place + 1 :], found):
                break
        return found

    def _behind(self, statements: tuple[ir.Stmt, ...], found: list[Unit]) -> bool:
        """Collect units; whether control certainly comes behind the last of the statements."""
        for one in statements:
            if isinstance(one, ir.Block):
                if not self._behind(one.body, found):
                    return False
            elif isinstance(one, (ir.Loop, ir.Evaluate, ir.Declare)):
                found.append(Unit(one))
            if any(self._leaves(n) for n in ir.walk(one)):
                return False
        return True

    def leaves_function(self, node: ir.Expr | ir.Stmt) -> bool:
        """Whether control may leave the function at a node, other than where a call of CUDA has failed."""
        return self._leaves(node) and not (isinstance(node, ir.Leave) and node.how in ("break", "continue"))

    def _leaves(self, node: ir.Expr | ir.Stmt) -> bool:
        return isinstance(node, ir.Obstacle) or (
            isinstance(node, ir.Leave) and node.how in _ENDS and node.operation not in self.failed
        )

    # ---- how much -------------------------------------------------------------------------------------------------

    def much(self, statement: ir.Stmt, root: str) -> bool:
        """Whether a statement reads most of the array that pointers of this root point to."""
        return self._much(statement, root, {})

    def _much(self, node: ir.Expr | ir.Stmt, root: str, counters: Mapping[str, float]) -> bool:
        if isinstance(node, ir.Loop):
            counters = {**counters, **_counter(node)}
        if isinstance(node, ir.Subscript) and not node.array and root_of(node.base) == root:
            if _trips(node.index, counters) > MOST_FEW:
                return True
        elif isinstance(node, ir.Dereference) and isinstance(node.pointer, ir.Binary) and root_of(node.pointer) == root:
            if _trips(node.pointer.right, counters) > MOST_FEW:
                return True
        elif isinstance(node, ir.Call) and self._call(node, root):
            return True
        return any(self._much(one, root, counters) for one in self._certain(node))

    def _certain(self, node: ir.Expr | ir.Stmt) -> Iterator[ir.Expr | ir.Stmt]:
        """The parts of a node that are evaluated whenever it is, without lvalues that are only written."""
        if isinstance(node, ir.Block):
            for one in node.body:
                yield one
                if any(self._leaves(n) for n in ir.walk(one)) and not isinstance(one, ir.Loop):
                    return
        elif isinstance(node, ir.If):
            yield from (*node.before, node.condition)
        elif isinstance(node, ir.Branch):
            yield node.condition
        elif isinstance(node, ir.Switch):
            yield from (*node.before, node.condition)
        elif isinstance(node, ir.Assign) and not node.operator and isinstance(node.target, ir.Subscript):
            yield from (node.target.index, node.value)
        else:
            yield from ir.children(node)

    def _call(self, call: ir.Call, root: str) -> bool:
        roots = [root_of(one) for one in call.arguments]
        if root not in roots:
            return False
        if not call.standard:
            function = self.functions.get(call.key)
            return function is not None and any(
                self._function(function, parameter.key)
                for given, parameter in zip(roots, function.parameters, strict=False)
                if given == root and parameter.type.shape is ir.Shape.POINTER
            )
        if (sizes := _WHOLE.get(call.name)) is not None:
            product = 1.0
            for index in sizes:
                product *= _number(call.arguments[index]) if index < len(call.arguments) else inf
            return product > SMALL
        ends = (b for a, b in zip(roots, call.arguments[1:], strict=False) if a == root and root_of(b) == root)
        return any(isinstance(end, ir.Binary) and _number(end.right) > MOST_FEW for end in map(_bare, ends))

    def _function(self, function: ir.Function, key: str) -> bool:
        """Whether a function reads most of what its parameter points to, whenever it is called."""
        known = self._known.get((function.key, key))
        if known is None:
            self._known[function.key, key] = False  # while it is looked at: recursion is not followed
            known = self._known[function.key, key] = self._much(function.body, key, {})
        return known


def root_of(pointer: ir.Expr) -> str:
    """What a pointer is made from: its variable and members, ``[]`` for any index; empty where that is not plain."""
    plain = _bare(pointer)
    if isinstance(plain, ir.Name):
        return plain.variable.key
    if isinstance(plain, ir.Select) and plain.member.isidentifier():
        base = "this" if plain.base is None else root_of(plain.base)
        return f"{base}.{plain.member}" if base else ""
    if isinstance(plain, ir.Subscript):
        base = root_of(plain.base)
        return f"{base}[]" if base else ""
    if isinstance(plain, ir.AddressOf):
        target = _bare(plain.target)
        return root_of(target.base) if isinstance(target, ir.Subscript) else ""
    return root_of(plain.left) if isinstance(plain, ir.Binary) and plain.operator in "+-" else ""


def _bare(expression: ir.Expr) -> ir.Expr:
    while isinstance(expression, (ir.Cast, ir.Decay)):
        expression = expression.operand if isinstance(expression, ir.Cast) else expression.array
    return expression


def _number(expression: ir.Expr) -> float:
    """Its value, or infinity where it is not known."""
    plain = _bare(expression)
    return float(plain.value) if isinstance(plain, ir.Constant) else inf


def _counter(loop: ir.Loop) -> dict[str, float]:
    """The variable that a loop counts in, in small steps, and how often at most; nothing for other loops."""
    step, test = loop.step, _bare(loop.condition) if loop.condition is not None else None
    if not isinstance(step, ir.Assign) or step.operator not in ("+", "-") or not isinstance(test, ir.Binary):
        return {}
    counter, left = _bare(step.target), _bare(test.left)
    if not isinstance(counter, ir.Name) or not isinstance(left, ir.Name) or left.variable.key != counter.variable.key:
        return {}
    if test.operator not in ("<", "<=", ">", ">=", "!=") or not 1 <= _number(step.value) <= _NEAR:
        return {}
    first = next((s.initial for s in loop.before if isinstance(s, ir.Declare) and s.variable == counter.variable), None)
    begin = _number(first) if first is not None else inf
    trips = abs(_number(test.right) - begin) if begin != inf else inf
    return {counter.variable.key: trips / _number(step.value)}


def _trips(index: ir.Expr, counters: Mapping[str, float]) -> float:
    """How many elements are taken one by one with this index; 0 where no counter takes them so."""
    near, every = _mentioned(index, counters)
    product = 1.0
    for key in every:
        product *= counters[key]
    return product if near else 0.0


def _mentioned(index: ir.Expr, counters: Mapping[str, float]) -> tuple[set[str], set[str]]:
    """The counters of an index that go on by a few elements, and all of its counters."""
    plain = _bare(index)
    if isinstance(plain, ir.Name):
        mine = {plain.variable.key} & counters.keys()
        return mine, mine
    if isinstance(plain, ir.Binary) and plain.operator in ("+", "-", "*"):
        (near, all_left), (far, all_right) = (_mentioned(side, counters) for side in (plain.left, plain.right))
        if plain.operator == "*":
            near = near if abs(_number(plain.right)) <= _NEAR else set()
            far = far if abs(_number(plain.left)) <= _NEAR else set()
        return near | far, all_left | all_right
    return set(), set()


def _way_to(node: ir.Stmt, launch: ir.Launch) -> list[tuple[ir.Block, int]]:
    """The blocks around a launch, the outermost first, each with the place of the statement that holds it."""
    for child in ir.children(node):
        if isinstance(child, ir.Stmt) and any(n is launch for n in ir.walk(child)):
            here = (
                [(node, next(i for i, s in enumerate(node.body) if s is child))] if isinstance(node, ir.Block) else []
            )
            return [*here, *_way_to(child, launch)]
    return []

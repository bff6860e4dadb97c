"""What the host reads once a launch is behind it, and whether that is much: ``Reading``.

In: a program and a launch. Out: the statements that are certainly executed later, each a `Unit`, and whether one of
them reads most of an array. Apart because it is about the host's text alone.

1. Statements behind the launch, in its block and in those around it, are executed for certain until one of them may
leave the block. Conditional ones are none. 2. Much of an array is read where a loop takes its elements one by one, or a
library function gets it whole, or a function of the program that gets it does one of both. How many that are is a
constant above `MOST_FEW`, or named as an allocation's or the launch's own size is. 3. Loops are taken at their word:
that they run at all, and to their end.

What it refuses to do: guess. Elements in steps, pointers that walk, other numbers of elements, and what stands in
branches count for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf

from kesco.ir import program as ir
from kesco.ir.flow import SMALL
from kesco.source import Span

MOST_FEW = SMALL // 4
"""Elements that are few: of a large array these are not worth moving all of it."""
_SOME = 256.0
"""What a factor of an array's size counts for: one alone is few, two are many."""
_NEAR = 16
"""Elements between two of a loop that still takes all pages."""
_WHOLE = {
    "memcpy": (2,),
    "memmove": (2,),
    "memcmp": (2,),
    "fwrite": (1, 2),
    "write": (2,),
    "std::copy_n": (1,),
    "std::basic_ostream::write": (1,),
}
"""Functions that read all of what they get, and the arguments whose product says how much that is."""
_ENDS = ("return", "throw", "break", "continue")


@dataclass(frozen=True, slots=True)
class Unit:
    """A statement that is certainly executed once control has passed a launch.

    `sizes` are the variables and members that say how large arrays are: infinite, or a factor of that. `loops` are
    those of the function that may run more than once.
    """

    statement: ir.Stmt
    sizes: Mapping[str, float]
    loops: tuple[Span, ...]

    def loops_at(self, place: Span) -> tuple[Span, ...]:
        """The function's loops around a place."""
        return tuple(loop for loop in self.loops if loop.start <= place.start < loop.end)

    @property
    def span(self) -> Span:
        """Its place."""
        return self.statement.span


class Reading:
    """The host's side of one program; `failed` are the ways out that only a failed call of CUDA leads to."""

    def __init__(self, program: ir.Program, failed: frozenset[int]) -> None:
        self.functions = {f.key: f for f in program.functions}
        self.failed = failed
        nodes = [n for f in program.functions for n in ir.walk(f.body)]
        first = {n.variable.key: n.initial for n in nodes if isinstance(n, ir.Declare) and n.initial is not None}
        made = (n for n in nodes if isinstance(n, ir.Call) and n.name == "cudaMallocManaged")
        self.sizes: dict[str, float] = {}
        self._units: dict[int, list[Unit]] = {}  # by the launch's operation
        self._loops: tuple[Span, ...] | None = None
        for size in (call.arguments[1] for call in made if len(call.arguments) > 1):
            self._add(size)
            self._add(first.get(_key(size), size))

    def _add(self, size: ir.Expr) -> None:
        """Remember what an allocation's size is made from."""
        factors = _factors(size)
        for key in factors:
            self.sizes[key] = max(inf if len(factors) == 1 else _SOME, self.sizes.get(key, 0.0))

    # ---- which statements -----------------------------------------------------------------------------------------

    def units(self, body: ir.Stmt, launch: ir.Launch) -> list[Unit]:
        """The statements behind a launch that are executed whenever it is, or when the loops around it end.

        `body` is that of the one function that is asked about.
        """
        if launch.operation not in self._units:
            self._units[launch.operation] = self._found(body, launch)
        return self._units[launch.operation]

    def _found(self, body: ir.Stmt, launch: ir.Launch) -> list[Unit]:
        found: list[ir.Stmt] = []
        broken = False  # whether control may go on behind the loop around this place
        for node, place in reversed(_way_to(body, launch)):
            if not isinstance(node, ir.Block):
                broken = False
            elif not broken:
                rest = node.body[place + 1 :]
                broken = not self._behind(rest, found)
                if any(self.leaves_function(n) for one in rest for n in ir.walk(one)):
                    break
        names = [key for argument in launch.arguments for key in _factors(argument)]
        given = dict.fromkeys(names, inf if len(names) == 1 else _SOME)
        if self._loops is None:
            every = (n for n in ir.walk(body) if isinstance(n, ir.Loop))
            self._loops = tuple(
                loop.span for loop in every if not (loop.tested_after and loop.condition == ir.Constant(0))
            )
        return [Unit(one, {**given, **self.sizes}, self._loops) for one in found]

    def _behind(self, statements: tuple[ir.Stmt, ...], found: list[ir.Stmt]) -> bool:
        """Collect statements; whether control certainly comes behind the last of the statements."""
        for one in statements:
            if isinstance(one, ir.Block):
                if not self._behind(one.body, found):
                    return False
            elif isinstance(one, (ir.Loop, ir.Evaluate, ir.Declare)):
                found.append(one)
            leaves = self.leaves_function if isinstance(one, ir.Loop) else self._leaves
            if any(map(leaves, ir.walk(one))):
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

    def much(self, unit: Unit, root: str) -> bool:
        """Whether a statement reads most of the array that pointers of this root point to."""
        return self._much(unit.statement, root, _Known(unit.sizes, {}, {}, frozenset()))

    def _much(self, node: ir.Expr | ir.Stmt, root: str, known: _Known) -> bool:
        if isinstance(node, ir.Loop):
            known = replace(known, counters={**known.counters, **_counter(node, known)})
        if isinstance(node, ir.Subscript) and not node.array and root_of(node.base) == root:
            if _trips(node.index, known.counters) > MOST_FEW:
                return True
        elif isinstance(node, ir.Dereference) and isinstance(node.pointer, ir.Binary) and root_of(node.pointer) == root:
            if _trips(node.pointer.right, known.counters) > MOST_FEW:
                return True
        elif isinstance(node, ir.Call) and self._call(node, root, known):
            return True
        return any(self._much(one, root, known) for one in self._certain(node))

    def _certain(self, node: ir.Expr | ir.Stmt) -> Iterator[ir.Expr | ir.Stmt]:
        """The parts of a node that are evaluated whenever it is, without lvalues that are only written."""
        if isinstance(node, ir.Block):
            for one in node.body:
                yield one
                if any(self._leaves(n) for n in ir.walk(one)) and not isinstance(one, ir.Loop):
                    return
        elif isinstance(node, ir.If):
            yield from node.before
            yield node.condition
        elif isinstance(node, ir.Branch):
            yield node.condition
        elif isinstance(node, ir.Switch):
            yield from node.before
            yield node.condition
        elif isinstance(node, ir.Assign) and not node.operator and isinstance(node.target, ir.Subscript):
            yield from (node.target.index, node.value)
        else:
            yield from ir.children(node)

    def _call(self, call: ir.Call, root: str, known: _Known) -> bool:
        roots = [root_of(one) for one in call.arguments]
        if root not in roots:
            return False
        if not call.standard:
            function = self.functions.get(call.key)
            if function is None or call.key in known.within or len(function.parameters) != len(roots):
                return False
            given = {
                p.key: known.values.get(_key(a), a) for p, a in zip(function.parameters, call.arguments, strict=True)
            }
            inner = _Known(known.sizes, {}, given, known.within | {call.key})
            taken = [p.key for p, one in zip(function.parameters, roots, strict=True) if one == root]
            return any(self._much(function.body, key, inner) for key in taken)
        if (sizes := _WHOLE.get(call.name)) is not None:
            product = 1.0
            for index in sizes:
                product *= known.amount(call.arguments[index]) if index < len(call.arguments) else 0.0
            return product > SMALL
        ends = (_bare(b) for a, b in zip(roots, call.arguments[1:], strict=False) if a == root and root_of(b) == root)
        return any(isinstance(end, ir.Binary) and known.amount(end.right) > MOST_FEW for end in ends)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known at a place: how often loops count, what parameters are given, and which functions are around it."""

    sizes: Mapping[str, float]
    counters: Mapping[str, float]
    values: Mapping[str, ir.Expr]
    within: frozenset[str]

    def amount(self, expression: ir.Expr) -> float:
        """How many a number of elements or bytes is: infinity for a size of arrays, 0 where nobody knows."""
        plain = _bare(expression)
        plain = _bare(self.values.get(_key(plain), plain))
        if isinstance(plain, ir.Constant):
            return float(plain.value)
        if isinstance(plain, ir.Binary) and plain.operator in ("+", "-"):
            return max(self.amount(plain.left), self.amount(plain.right))
        if isinstance(plain, ir.Binary) and plain.operator == "*":
            left, right = self.amount(plain.left), self.amount(plain.right)
            return left * right if left and right else 0.0
        if isinstance(plain, ir.Binary) and plain.operator == "<<":
            return self.amount(plain.left) * float(1 << int(max(0.0, min(self.amount(plain.right), 63.0))))
        return self.sizes.get(_key(plain), 0.0)


def _key(expression: ir.Expr) -> str:
    """The variable, or the name of the member, that an expression names."""
    plain = _bare(expression)
    if isinstance(plain, ir.Name):
        return plain.variable.key
    return f".{plain.member}" if isinstance(plain, ir.Select) else ""


def _factors(size: ir.Expr) -> set[str]:
    """The integer variables and members that a product is made from, without constants; none for what is no product."""
    plain = _bare(size)
    if isinstance(plain, ir.Binary) and plain.operator == "*":
        return _factors(plain.left) | _factors(plain.right)
    if isinstance(plain, ir.Name):
        return {plain.variable.key} if plain.variable.type.shape is ir.Shape.INTEGER else set()
    return {_key(plain)} if isinstance(plain, ir.Select) and plain.type.shape is ir.Shape.INTEGER else set()


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


def _counter(loop: ir.Loop, known: _Known) -> dict[str, float]:
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
    begin = known.amount(first) if first is not None else 0.0
    trips = max(known.amount(test.right), begin)  # from the one to the other, whichever is the larger
    return {counter.variable.key: trips / _number(step.value)}


def _trips(index: ir.Expr, counters: Mapping[str, float]) -> float:
    """How many elements are taken one by one with this index; 0 where no counter takes them so."""
    near, every = _mentioned(index, counters)
    product = 1.0
    for key in every:
        product *= max(counters[key], 1.0)
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


def _way_to(node: ir.Stmt, launch: ir.Launch) -> list[tuple[ir.Block | ir.Loop, int]]:
    """The blocks and loops around a launch, the outermost first; of a block also which statement holds it."""
    for child in ir.children(node):
        if isinstance(child, ir.Stmt) and any(n is launch for n in ir.walk(child)):
            here: list[tuple[ir.Block | ir.Loop, int]] = []
            if isinstance(node, ir.Block):
                here.append((node, next(i for i, s in enumerate(node.body) if s is child)))
            elif isinstance(node, ir.Loop):
                here.append((node, 0))
            return [*here, *_way_to(child, launch)]
    return []

"""The text of a loop whose turns may overlap: its statements in their order, and where something may be put.

In: the program and the number of a loop. Out: a `Body`, or None where lines cannot be put around the loop or at the
beginning of a turn. Apart from the rest because this is about the language alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from kesco.ir import program as ir
from kesco.ir.flow import Mark, Region, Site
from kesco.ir.transfers import FILLS
from kesco.ir.turns import Taken
from kesco.ir.within import Within
from kesco.rings.meeting import is_in
from kesco.rings.uses import handed_on, is_dim3

_CALLS = frozenset(
    {
        *("cudaMemcpy", "cudaMemcpyAsync", "cudaMemset", "cudaMemsetAsync", "cudaDeviceSynchronize"),
        *("cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorString", "cudaGetErrorName"),
    }
)
"""What of CUDA's own may be called in the loop, beside what takes and gives the memory of a turn."""


_ENDS = ("exit", "quick_exit")
_OF_FUNCTION = (ir.Scope.LOCAL, ir.Scope.PARAMETER)
_PLAIN = (ir.Name, ir.Constant, ir.Literal, ir.Binary, ir.Unary, ir.Cast)


@dataclass(frozen=True, slots=True)
class Body:
    """A loop and the statements of its body.

    `around` tells that it is inside another loop, and `lone` that its body is one statement without braces. `calls` are
    the operations of calls that are work on one stream as a whole. Before and behind a loop that is `placed`, and
    before and behind those of `outers`, loops around it, outermost first, something may be put. `calm` tells that
    nothing in it changes variables that are not the function's own, but where it names them.
    """

    key: str
    loop: ir.Loop
    statements: tuple[ir.Stmt, ...]
    around: bool
    lone: bool
    function: ir.Function
    within: Within
    calls: frozenset[int] = frozenset()
    placed: bool = True
    outers: tuple[ir.Loop, ...] = ()
    calm: bool = False

    def sites(self, region: Region) -> list[Site]:
        """What is in the loop; where it is entered is not."""
        inside = (s for s in region.sites if is_in(s, self.loop.span))
        return [s for s in inside if s.mark is not Mark.ENTERS or s.loop != self.key]

    @property
    def counter(self) -> str:
        """The variable that its head counts with, which is no name in the text where that is a range; or nothing."""
        step = self.loop.step
        if not isinstance(step, ir.Assign) or not isinstance(step.target, ir.Name):
            return ""
        return step.target.variable.name

    def index(self, node: ir.Expr | ir.Stmt) -> int:
        """In which statement of the body a node is; before all of them where it is in none."""
        return next((n for n, s in enumerate(self.statements) if any(one is node for one in ir.walk(s))), -1)

    def is_always(self, node: ir.Expr | ir.Stmt) -> bool:
        """Whether each turn that comes to a node's statement executes it."""
        at = self.index(node)
        return at >= 0 and ir.always(self.statements[at], node)

    def leaves_between(self, last: int) -> bool:
        """Whether a turn may end in one of the statements from its first work on up to that of this number."""
        return any(_leaves(s) for s in self.statements[self.begins() : last + 1])

    def begins(self) -> int:
        """The first statement that gives the device anything, or asks it for memory."""
        return next((n for n, s in enumerate(self.statements) if any(map(self._is_given, ir.walk(s)))), 0)

    def _is_given(self, node: ir.Expr | ir.Stmt) -> bool:
        return _is_of_cuda(node) or (isinstance(node, ir.Call) and node.operation in self.calls)

    def first(self, operations: Collection[int], taken: Collection[Taken]) -> ir.Stmt | None:
        """The statement that a turn begins with; None where some of its work is not behind that."""
        start = self.begins()
        head: list[ir.Expr | ir.Stmt | None] = [*self.loop.before, self.loop.condition, self.loop.step]
        elsewhere = [n for one in head if one is not None for n in ir.walk(one)]
        if any(map(self._is_given, elsewhere)) or not self.statements:
            return None
        nodes = [n for s in self.statements[start:] for n in ir.walk(s)]
        found = {n.operation for n in nodes if isinstance(n, (ir.Launch, ir.Call))}
        return self.statements[start] if operations and set(operations) <= found else None

    def changing(self) -> frozenset[str]:
        """The variables that the loop assigns to, and those of the function that have another name or an address."""
        inside = list(ir.walk(self.loop))
        found = {n.variable.key for n in inside if isinstance(n, ir.Declare)}
        found |= {key for n in inside if isinstance(n, ir.Assign) for key in ir.named_in(n.target)}
        return frozenset({*found, *ir.lent(self.function.body)})

    def values(self) -> dict[str, ir.Expr | None]:
        """The variables of a turn that keep their values from its beginning on, or from where they are declared.

        For each what is reckoned from other variables alone, which have kept their values since, or None for a value
        that has to be looked at, such as the lesser of two.
        """
        begins = self.begins()
        rest = [self.loop.step, *self.statements[begins:]]
        assigned = [n.target for s in rest if s is not None for n in ir.walk(s) if isinstance(n, ir.Assign)]
        other = {key for one in assigned for key in ir.names(one)}.union(ir.lent(self.function.body))
        head = [n.target for s in self.statements[:begins] for n in ir.walk(s) if isinstance(n, ir.Assign)]
        chosen = {key for one in head for key in ir.names(one)}
        found: dict[str, ir.Expr | None] = {}
        for variable in self._set_ahead(begins):
            found[variable.key] = None
        for n, one in enumerate(self.statements):
            if not isinstance(one, ir.Declare) or one.variable.key in other:
                continue
            plain = one.initial is not None and all(isinstance(part, _PLAIN) for part in ir.walk(one.initial))
            kept = plain and one.initial is not None and chosen.isdisjoint((one.variable.key, *ir.names(one.initial)))
            if n < begins:
                found[one.variable.key] = one.initial if kept else None
            elif one.initial is not None:
                found[one.variable.key] = one.initial
        return found

    def _set_ahead(self, begins: int) -> Iterator[ir.Variable]:
        """The integers declared outside that the loop sets anew ahead of a turn's work, and nowhere else."""
        parts = [self.loop.condition, *self.statements[:begins]]
        ahead = [n for s in parts if s is not None for n in ir.walk(s) if isinstance(n, ir.Assign)]
        declared, lent = self._declared(), ir.lent(self.function.body)
        for one in ahead:
            target = one.target
            if not isinstance(target, ir.Name) or one.operator or target.variable.key in {*declared, *lent}:
                continue
            key = target.variable.key
            again = [n for n in ir.walk(self.loop) if isinstance(n, ir.Assign) and key in ir.names(n.target)]
            if len(again) == 1 and key not in ir.names(one.value):
                yield target.variable

    def in_turn(self, one: ir.Expr) -> str:
        """The key of a variable that has one value from the first work of a turn on; empty for others."""
        if not isinstance(one, ir.Name) or one.variable.type.volatile:
            return ""
        own = one.variable.scope in _OF_FUNCTION
        plain = one.variable.type.shape in (ir.Shape.INTEGER, ir.Shape.POINTER) or is_dim3(one.variable)
        rest = self.statements[self.begins() :]
        assigned = (key for s in rest for n in ir.walk(s) if isinstance(n, ir.Assign) for key in ir.names(n.target))
        changed = {*assigned, *ir.lent(self.function.body, FILLS)}
        return one.variable.key if own and plain and one.variable.key not in changed else ""

    def may_shadow(self, pointer: ir.Variable, text: bytes) -> bool:
        """Whether a variable's name may stand for another one in the body: its value is given to work and no more."""
        declared = {s.variable.name for s in self.statements if isinstance(s, ir.Declare)}
        spelling = pointer.type.spelling
        plain = pointer.type.shape is ir.Shape.POINTER and not pointer.type.volatile
        plain = plain and (self.calm or pointer.scope in _OF_FUNCTION)
        if not plain or spelling.endswith("const") or pointer.name in declared or pointer.key in self._declared():
            return False
        if pointer.key in ir.lent(self.function.body, FILLS):
            return False
        leaves = [n for n in ir.walk(self.loop) if isinstance(n, (ir.Name, ir.Select))]
        mentions = [n for n in leaves if (one := ir.named(n)) is not None and one.key == pointer.key]
        if any(n.span is None or text[n.span.start : n.span.end] != pointer.name.encode() for n in mentions):
            return False  # ``this->p``, or a name in another file
        here = [mention for s in self.statements[self.begins() :] for mention in handed_on(s, pointer, self.within)]
        return bool(here) and all(here) and len(here) == len(mentions)

    def _declared(self) -> set[str]:
        return {n.variable.key for n in ir.walk(self.loop) if isinstance(n, ir.Declare)}

    # ---- memory of a turn's own -------------------------------------------------------------------------------------

    def own_memory(self, program: ir.Program, function: ir.Function) -> tuple[Taken, ...]:
        """What each turn allocates and frees, in two statements of its own, and gives to work alone in between."""
        return tuple(filter(None, (self._taken(program, function, n, c) for n, c in self._calls("cudaMalloc"))))

    def _calls(self, name: str) -> Iterator[tuple[int, ir.Call]]:
        for n, statement in enumerate(self.statements):
            for node in ir.walk(statement):
                if isinstance(node, ir.Call) and node.name == name and ir.always(statement, node):
                    yield n, node

    def _taken(self, program: ir.Program, function: ir.Function, at: int, call: ir.Call) -> Taken | None:
        target = ir.bare(call.arguments[0]) if len(call.arguments) == 2 else None
        name = ir.bare(target.target) if isinstance(target, ir.AddressOf) else None
        if not isinstance(name, ir.Name) or name.variable.type.shape is not ir.Shape.POINTER:
            return None
        own = [s.variable.key for s in self.statements[:at] if isinstance(s, ir.Declare) and _is_empty(s.initial)]
        pointer = name.variable
        ends = [(n, c) for n, c in self._calls("cudaFree") if _is_pointer(c.arguments[0], pointer)]
        if pointer.key not in own or len(ends) != 1 or not at < ends[0][0]:
            return None
        end, free = ends[0]
        between = [mention for s in self.statements[at + 1 : end] for mention in handed_on(s, pointer, self.within)]
        mentions = sum(isinstance(n, ir.Name) and n.variable.key == pointer.key for n in ir.walk(function.body))
        if not all(between) or len(between) + 2 != mentions or any(map(_leaves, self.statements[at : end + 1])):
            return None
        for one in (call, free):
            text = program.text[one.span.start : one.span.end]
            operation = program.operations[one.operation] if one.operation >= 0 else None
            plain = text.startswith((b"cudaMalloc(", b"cudaFree(")) and text.endswith(b")")
            if operation is None or operation.statement is None or operation.stuck or not plain:
                return None
        return Taken(pointer.name, call.span, free.span)

    def may_end_the_process(self, program: ir.Program) -> bool:
        """Whether something in the loop may call ``exit``, a function of the file among it."""
        bodies = {f.key: f.body for f in program.functions}
        seen: set[str] = set()

        def ends(node: ir.Stmt | None) -> bool:
            calls = [n for n in ir.walk(node) if isinstance(n, ir.Call)] if node is not None else []
            inner = {c.key for c in calls} & bodies.keys() - seen
            seen.update(inner)
            return any(c.name.rpartition("::")[2] in _ENDS for c in calls) or any(ends(bodies[key]) for key in inner)

        return ends(self.loop)

    def allocates_nothing_else(self, program: ir.Program, taken: Collection[Taken]) -> bool:
        """Whether nothing else in the loop takes or frees memory, or asks how much there is."""
        functions = {f.key: f for f in program.functions}
        known = {span for one in taken for span in (one.allocates, one.frees)}

        def calm(node: ir.Expr | ir.Stmt, depth: int) -> bool:
            if isinstance(node, (ir.New, ir.Obstacle)):
                return False
            if isinstance(node, ir.Call) and node.operation in self.calls:
                return True
            if not isinstance(node, ir.Call) or node.span in known:
                return not (depth and isinstance(node, ir.Launch))
            if node.key in functions:
                return depth < 4 and all(calm(one, depth + 1) for one in ir.walk(functions[node.key].body))
            if node.name.startswith("cu"):
                return node.name in _CALLS
            return node.standard and not (node.runs or node.destroys)

        return all(calm(one, 0) for one in ir.walk(self.loop))


def body_of(
    program: ir.Program,
    function: ir.Function,
    key: str,
    calls: frozenset[int] = frozenset(),
    calm: Callable[[ir.Stmt], bool] = lambda _: False,
) -> Body | None:
    """The loop of this number, if it is a statement of a block, and nothing jumps about there.

    `calls` are operations that are work on one stream as a whole. In a statement that is `calm` nothing but small
    variables of the function's own, and others by their names, is changed by the host.
    """
    if not key.isdigit() or any(isinstance(n, (ir.Obstacle, ir.Case)) for n in ir.walk(function.body)):
        return None
    nodes = list(ir.walk(function.body))
    loops = [n for n in nodes if isinstance(n, ir.Loop)]
    loop = next((n for n in loops if n.number == int(key)), None)
    if loop is None or loop.tested_after:
        return None
    whole, span = loop.inner, loop.inner.span
    braces = program.text[span.start : span.start + 1] + program.text[span.end - 1 : span.end]
    statements = tuple(ir.flat(whole)) if isinstance(whole, ir.Block) else (whole,)
    lone = braces != b"{}" and len(statements) == 1 and program.text[span.end : span.end + 1] == b";"
    if not (braces == b"{}" or lone) or span.end != loop.span.end:
        return None
    blocks = (n for n in nodes if isinstance(n, ir.Block) and program.text[n.span.start : n.span.start + 1] == b"{")
    placed = {id(s) for block in blocks for s in ir.flat(block)}
    around = [n for n in loops if n is not loop and any(one is loop for one in ir.walk(n))]
    ends = [
        n
        for n in around
        if n.span.end == span.end or n.tested_after or program.text[n.span.end - 1 : n.span.end] == b"}"
    ]
    bodies = {f.key: f.body for f in program.functions}
    outers = tuple(sorted((n for n in ends if id(n) in placed), key=lambda n: n.span.start))
    return Body(
        key,
        loop,
        statements,
        bool(around),
        lone,
        function,
        Within(program),
        calls,
        id(loop) in placed and not _leaves_function(loop),
        outers,
        calm(loop) and not ir.changes_others(loop, bodies),
    )


def _leaves_function(loop: ir.Loop) -> bool:
    """Whether the function may be left in a loop."""
    return any(isinstance(n, ir.Leave) and n.how in ("return", "throw") for n in ir.walk(loop))


def _leaves(statement: ir.Stmt, inside: bool = False) -> bool:
    """Whether a statement may end the turn: what leaves an inner loop does not."""
    if isinstance(statement, ir.Leave):
        return not inside
    inner = inside or isinstance(statement, ir.Loop)
    return any(_leaves(one, inner) for one in ir.children(statement) if isinstance(one, ir.Stmt))


def _is_of_cuda(node: ir.Expr | ir.Stmt) -> bool:
    return isinstance(node, ir.Launch) or (isinstance(node, ir.Call) and node.name.startswith("cuda"))


def _is_empty(initial: ir.Expr | None) -> bool:
    return initial is None or ir.bare(initial) == ir.Constant(0)


def _is_pointer(argument: ir.Expr, pointer: ir.Variable) -> bool:
    bare = ir.bare(argument)
    return isinstance(bare, ir.Name) and bare.variable.key == pointer.key

"""The loops of a text whose turns are on streams of their own, and what their statements must be like.

In: a function of the concurrent program as read from its text. Out: a `Ring` for each such loop, with what speaks
against it in words. Apart from the order of the device's work (`turning`) because all of this is about the language.

1. A ring is ``KescoTurns r = kesco_turns(…)``, a loop, and ``kesco_turned(r)``, one behind the other in a block; its
body has ``kesco_turn(r)`` once, and ahead of that nothing of CUDA. 2. The loop is left by its condition or ``break``.
3. A buffer in two places has a variable of its own in the body, which is set right behind ``kesco_turn`` and takes the
name of the one that was given to ``kesco_turns``. That one has one value in the loop. 4. Memory that a turn takes it
gives back, in a later statement of the body, and its variable is declared there. 5. The value of all these variables
goes to launches, copies and memsets, nowhere else. 6. All calls of these names belong to a ring. 7. ``kesco_pin(r, …)``
may stand right before the loop (`pins`). What else ``kesco_turn`` is given are integers that do not change from there
to the turn's end.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kesco.ir import program as ir
from kesco.ir.handing import carries, is_from, works_on
from kesco.ir.transfers import COPIES, FILLS
from kesco.ir.turns import GIVE, LANE, PIN, PLACE, TAKE, TURN, TURNED, TURNS
from kesco.ir.within import Within
from kesco.source import Span
from kesco.verify.calls import call_in, is_of, is_of_cuda, is_streams, names, statements_of
from kesco.verify.lanes import in_lanes, leaves_function, left_by
from kesco.verify.sources import Reader, word_of

_OURS = (TURNS, TURN, LANE, TURNED, PLACE, TAKE, GIVE, PIN)
_CALLED = re.compile(
    rb"(?<!KescoTurns )(?<!KescoStreams\* )(?<!void )(?<!cudaError_t )\b(?:" + "|".join(_OURS).encode() + rb")\s*\("
)
FILLED = ("cudaMemset", "cudaMemsetAsync")
_QUIET = ("cudaDeviceSynchronize", "cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorString", "cudaGetErrorName",
          "cudaEventRecord", "cudaStreamWaitEvent")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ring:
    """One loop: its number, the statements of its body, and the calls that give a turn memory, by their operations.

    Only turns overlap in which the variables `alike` have the same values. `places` are buffers in two places; `taken`
    is memory of a turn's own, as the call that takes it. `pins` tells that the host's memory may be pinned in it.
    With `lanes`, turns of one number are on the same streams all through the loop `outer`: of each such loop in it, its
    key, and the name of its counter. `within` knows what functions do with pointers. In a `calm` loop nothing changes
    variables that are not the function's own, but where it names them.
    """

    loop: ir.Loop
    statements: tuple[ir.Stmt, ...]
    begins: int
    places: dict[int, ir.Variable]
    taken: dict[int, ir.Call]
    function: ir.Function
    pins: bool
    alike: frozenset[str]
    problems: tuple[str, ...]
    calm: bool
    within: Within
    lanes: tuple[tuple[str, str], ...] = ()
    outer: ir.Loop | None = None
    left: int = 0

    @property
    def key(self) -> str:
        """What marks in the region call it."""
        return str(self.loop.number)

    def is_around(self, place: Span) -> bool:
        """Whether a place is in the loop around it."""
        return self.outer is not None and self.outer.span.start <= place.start < self.outer.span.end


def rings_of(program: ir.Program, function: ir.Function) -> tuple[Ring, ...]:
    """The rings of a function of a program."""
    found, within = [], Within(program)
    for block in (n for n in ir.walk(function.body) if isinstance(n, ir.Block) and not n.declares):
        flat = statements_of(block)
        for at, declared in enumerate(flat):
            call = call_in(declared, TURNS)
            pin = call_in(flat[at + 1], PIN) if call is not None and at + 1 < len(flat) else None
            loop, behind = (*flat[at + 1 + (pin is not None) :][:2], None, None)[:2]
            if call is None or not isinstance(declared, ir.Declare) or not isinstance(loop, ir.Loop) or behind is None:
                continue
            end = call_in(behind, TURNED)
            if end is not None and is_of(end.arguments[0], declared.variable):
                inside = [n for n in ir.walk(loop.body) if isinstance(n, ir.Loop) and _begins(n, LANE)]
                left = left_by(loop, declared.variable) if inside else {}
                calls = max(1, len(inside)) + len(left)
                calm = Reader(program).is_calm(loop)
                var = declared.variable
                every = inside or [loop]
                rings = [_ring(function, var, call, one, pin, calls, left, within, calm=calm) for one in every]
                found += in_lanes(rings, loop, left) if inside else rings
    return tuple(found)


def _begins(loop: ir.Loop, name: str) -> bool:
    """Whether a statement right in a loop's body is a call of this name."""
    return isinstance(loop.inner, ir.Block) and any(call_in(s, name) is not None for s in statements_of(loop.inner))


def stray_calls(program: ir.Program) -> Iterator[tuple[Span, str]]:
    """What speaks against the calls of a file: one that belongs to no loop of this kind."""
    text = program.text
    if not _CALLED.search(text):
        return
    own = [f.span for f in program.functions if f.here]
    once = [f for f in program.functions if f.here or not any(_is_inside(f.span, one) for one in own)]  # no instance
    rings = [one for f in once for one in rings_of(program, f)]
    belong = sum((1 if one.lanes else 3) + len(one.places) + 2 * len(one.taken) + one.pins for one in rings)
    belong += sum({id(one.outer): 2 + one.left for one in rings if one.lanes}.values())
    nodes = [n for f in once for n in ir.walk(f.body) if isinstance(n, ir.Call) and word_of(n) in _OURS]
    if len(nodes) != belong or len(_CALLED.findall(text)) != belong:
        yield Span(program.path, 0, 1, 1, 1), "turns of a loop begin, or have memory, where it cannot be followed"


def _is_inside(one: Span, other: Span) -> bool:
    return one.path == other.path and other.start <= one.start and one.end <= other.end


def _ring(
    function: ir.Function, ring: ir.Variable, call: ir.Call, loop: ir.Loop, pin: ir.Call | None, calls: int,
    left: Mapping[int, ir.Stmt], within: Within, *, calm: bool,
) -> Ring:  # fmt: skip
    """A loop; so many `calls` begin its turns, and those of others that share the variable, or end them within."""
    wrong: list[str] = []
    body = statements_of(loop.inner) if isinstance(loop.inner, ir.Block) else []
    begins = next((n for n, s in enumerate(body) if call_in(s, TURN) or call_in(s, LANE)), -1)
    if begins < 0 or any(is_of_cuda(n) for s in body[:begins] for n in ir.walk(s)):
        wrong.append("a turn of it does not begin before its work")
    heads: list[ir.Expr | ir.Stmt | None] = [*loop.before, loop.condition, loop.step]
    if loop.tested_after or any(is_of_cuda(n) for one in heads if one is not None for n in ir.walk(one)):
        wrong.append("its head is not only the host's")
    if any(leaves_function(n, left) for n in ir.walk(loop)):
        wrong.append("it may be left without what stands behind it")
    if any(isinstance(n, (ir.Obstacle, ir.Case)) for n in ir.walk(function.body)):
        wrong.append("control may jump into it")
    first = body[begins] if begins >= 0 else None
    own = first.variable.key if isinstance(first, ir.Declare) else ""
    streams = (n for n in ir.walk(loop) if isinstance(n, ir.Name) and is_streams(n.variable))
    if any(n.variable.key != own for n in streams):
        wrong.append("some of its work is on streams that are not those of the turn")
    places = _places(function, ring, call, loop, body, begins, wrong, within, calm=calm)
    taken = _taken(function, loop, body, begins, wrong, within)
    mentions = sum(is_of(n, ring) for n in ir.walk(function.body))
    if pin is not None and not is_of(pin.arguments[0], ring):
        wrong.append("memory is pinned for another one")
    if mentions != 1 + calls + len(places) + 2 * len(taken) + (pin is not None):
        wrong.append("its turns are not all that its streams and memory are used for")
    for one in ir.walk(loop):
        if isinstance(one, ir.Call) and one.name.startswith("cu") and not _is_known(one):
            wrong.append(f"'{one.name}' is called in it")
    alike = _alike(function, body, begins, wrong)
    return Ring(loop, tuple(body), begins, places, taken, function, pin is not None, alike, tuple(wrong), calm, within)


def _alike(function: ir.Function, body: list[ir.Stmt], begins: int, wrong: list[str]) -> frozenset[str]:
    """What is the same in turns that may overlap: variables that keep their values from there to the end of a turn."""
    call = call_in(body[begins], TURN) if begins >= 0 else None
    changed = {key for s in body[begins:] for n in ir.walk(s) if isinstance(n, ir.Assign) for key in names(n.target)}
    changed.update(lent_in(function.body))
    changed.update(s.variable.key for s in body[max(begins, 0) :] if isinstance(s, ir.Declare))
    found = set()
    for one in call.arguments[1:] if call is not None else ():
        name = ir.bare(one)
        whole = isinstance(name, ir.Name) and name.variable.type.shape is ir.Shape.INTEGER
        whole = whole and isinstance(name, ir.Name) and "__int128" not in name.variable.type.spelling
        if not isinstance(name, ir.Name) or not whole or not _is_own(name.variable) or name.variable.key in changed:
            wrong.append("what is compared from turn to turn need not be what the turn has")
        else:
            found.add(name.variable.key)
    return frozenset(found)


def _is_own(variable: ir.Variable) -> bool:
    return variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER) and not variable.type.volatile


def _places(
    function: ir.Function, ring: ir.Variable, call: ir.Call, loop: ir.Loop, body: list[ir.Stmt], begins: int,
    wrong: list[str], within: Within, *, calm: bool,
) -> dict[int, ir.Variable]:  # fmt: skip
    """The buffers that are in two places: for the call that says where, the variable in the body.

    In a `calm` loop nothing changes variables that are not the function's own, but where it names them.
    """
    found: dict[int, ir.Variable] = {}
    outer = call.arguments[1:]
    lent = set(lent_in(function.body, FILLS))
    changed = {key for n in ir.walk(loop) if isinstance(n, ir.Assign) for key in ir.named_in(n.target)}
    for at, one in enumerate(outer):
        name = ir.named(one)
        here = begins + 1 + 2 * at
        declared, set_ = (*body[here : here + 2], None, None)[:2]
        place = call_in(set_, PLACE) if set_ is not None else None
        if not isinstance(declared, ir.Declare) or place is None or name is None:
            wrong.append("a buffer of its turns is not declared where they begin")
            continue
        inner, target = declared.variable, ir.bare(place.arguments[2])
        fits = is_of(place.arguments[0], ring) and place.arguments[1] == ir.Constant(at) and inner.name == name.name
        if not fits or not isinstance(target, ir.AddressOf) or not is_of(ir.bare(target.target), inner):
            wrong.append(f"'{inner.name}' is not the buffer of its turns that has this name")
        own = name.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER) or calm
        if name.key in lent or name.key in changed or not own or name.type.volatile:
            wrong.append(f"'{inner.name}' may be another buffer in each turn")
        if not _goes_to_work(inner, loop, set_, within):
            wrong.append(f"the address in '{inner.name}' may be kept or seen")
        found[place.operation] = inner
    return found


def _taken(
    function: ir.Function, loop: ir.Loop, body: list[ir.Stmt], begins: int, wrong: list[str], within: Within
) -> dict[int, ir.Call]:
    """The memory that a turn takes."""
    found: dict[int, ir.Call] = {}
    numbers = set()
    for at, statement in enumerate(body):
        for call in (n for n in ir.walk(statement) if isinstance(n, ir.Call) and word_of(n) == TAKE):
            target = ir.bare(call.arguments[2])
            pointer = ir.bare(target.target) if isinstance(target, ir.AddressOf) else None
            number = call.arguments[1]
            if not isinstance(pointer, ir.Name) or not isinstance(number, ir.Constant) or number.value in numbers:
                wrong.append("memory of its turns has no variable or number of its own")
                continue
            numbers.add(number.value)
            found[call.operation] = call
            variable = pointer.variable
            calls = [(n, c) for n, s in enumerate(body) for c in ir.walk(s) if isinstance(c, ir.Call)]
            gives = [n for n, c in calls if word_of(c) == GIVE and is_of(ir.bare(c.arguments[1]), variable)]
            declared = any(isinstance(s, ir.Declare) and s.variable.key == variable.key for s in body[:at])
            between = sum(is_of(n, variable) for s in body[at + 1 : min(gives, default=0)] for n in ir.walk(s))
            whole = sum(is_of(n, variable) for n in ir.walk(function.body))
            if not on_each_way(statement, call):
                wrong.append(f"a turn may take '{variable.name}' more than once, or not at all")
            ends = any(leaves_turn(s) for s in body[at : min(gives, default=at) + 1])
            if len(gives) != 1 or not begins < at < gives[0] or not declared or between + 2 != whole or ends:
                wrong.append(f"'{variable.name}' is not there from where a turn takes it to where it gives it back")
            if not all(h for s in body[at + 1 : min(gives, default=0)] for h in _handed_on(s, variable, within)):
                wrong.append(f"the address in '{variable.name}' may be kept or seen")
    return found


def _goes_to_work(inner: ir.Variable, loop: ir.Loop, but: ir.Stmt | None, within: Within) -> bool:
    return all(_handed_on(loop, inner, within, but=but))


def _handed_on(
    node: ir.Expr | ir.Stmt, pointer: ir.Variable, within: Within, given: bool = False, but: ir.Stmt | None = None
) -> Iterator[bool]:
    """For each mention of a pointer whether its value goes to the device's work and nowhere else."""
    if node is but:
        return
    if is_of(node, pointer):
        yield given
        return
    for child in ir.children(node):
        passes = works_on(node, child) or (given and carries(node, child))
        if isinstance(node, ir.Call) and not passes:
            numbers = [n for n, one in enumerate(node.arguments) if one is child and is_from(one, pointer.key)]
            passes = bool(numbers) and within.hands_on(node, numbers[0])
        yield from _handed_on(child, pointer, within, passes, but)


def lent_in(node: ir.Expr | ir.Stmt, but: Collection[str] = ()) -> Iterator[str]:
    """The variables that something else may change: an address is taken, but in the first argument of these calls."""
    inner = ir.children(node)
    match node:
        case ir.AddressOf():
            yield from ir.placed(node.target)
        case ir.Unknown() | ir.New() | ir.Obstacle():
            yield from names(node)
        case ir.Declare() if node.variable.type.shape is ir.Shape.REFERENCE and node.initial is not None:
            yield from names(node.initial)
        case ir.Call():
            if node.name in but:
                inner = [one for one in inner if one is not node.arguments[0]]
            for argument, changes in zip(node.arguments, node.references, strict=False):
                yield from names(argument) if changes else ()
            yield from names(node.receiver) if node.receiver is not None else ()
    for one in inner:
        yield from lent_in(one, but)


def leaves_turn(statement: ir.Stmt, inside: bool = False) -> bool:
    """Whether a turn may end in a statement."""
    if isinstance(statement, ir.Leave):
        return not inside
    loop = inside or isinstance(statement, ir.Loop)
    return any(leaves_turn(one, loop) for one in ir.children(statement) if isinstance(one, ir.Stmt))


def on_each_way(node: ir.Expr | ir.Stmt, target: ir.Launch | ir.Call | None) -> bool:
    """Whether all ways through a statement come to what is in it."""
    if node is target:
        return True
    match node:
        case ir.If() | ir.Branch():
            others: list[ir.Expr | ir.Stmt | None] = [node.then, node.other]
        case ir.Loop() if any(isinstance(one, ir.Leave) for one in ir.walk(node)):
            return False
        case ir.Loop():
            others = [node.condition, node.step, *(() if node.tested_after else (node.body,))]
        case ir.Switch() | ir.Unknown():
            return False
        case _:
            others = []
    inside = next((c for c in ir.children(node) if any(n is target for n in ir.walk(c))), None)
    if inside is None or any(inside is one for one in others):
        return False
    return on_each_way(inside, target)


def _is_known(call: ir.Call) -> bool:
    return call.name in COPIES or call.name in FILLED or call.name in _QUIET

"""Which loops may use a turn's results while the device works on the next one: ``turns_of(program)``, ``deferred(…)``.

In: a program; then what the statements of such loops do. Out: what is kept of a turn, and where it is run in the next
one (`kesco.ir.deferred`). A stage of its own because it asks nothing of streams: a launch does not hold the host, so
what the host does behind it and ahead of its next wait is done while the device works.

1. A loop has a body with braces, whose last statements, but for those that count, give the device nothing and do not
leave the loop. If a loop is in them, or in a function that they call, they are worth keeping: they are run as late as
may be, in front of the first statement that meets them, or of a wait ahead of it, behind which nothing is pending.
2. Where such work comes first in a turn, the wait is kept, with what stands behind it if that is not kept by itself: it
is run in front of the first statement that calls CUDA.

It refuses loops of functions with control flow that is not followed, with turns beside each other, graphs or batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from kesco.ir import program as ir
from kesco.ir.deferred import AROUND, Deferred, Turn, TurnFacts, place_of, statements_of
from kesco.ir.pieces import pieces
from kesco.source import Span

_WALKS = frozenset(
    """accumulate reduce inner_product transform for_each sort stable_sort nth_element max_element min_element
    minmax_element count count_if fwrite write memcpy memcmp copy equal""".split()
)
"""Functions of the library that go through all of what they are given."""
_WAITS = ("cudaMemcpy", "cudaDeviceSynchronize", "cudaStreamSynchronize", "kesco_copy")
_OURS = (b"kesco_turn", b"kesco_batch", b"kesco_replay", b"kesco_deferred")
"""What a function has that is not looked into."""
_DEEPEST = 8


def turns_of(program: ir.Program) -> tuple[Turn, ...]:
    """The loops whose turns end with work of the host that may be worth deferring, none inside another."""
    if any(map(program.has, ("threads", "coroutines", "per-thread-stream"))):
        return ()
    functions, headers = {one.key: one for one in program.functions}, pieces("", program.text)
    found: list[Turn] = []
    for function in (one for one in program.functions if one.here and not one.template):
        if headers.is_header(function.span.start):
            continue  # other files may have the same text
        text = program.text[function.span.start : function.span.end]
        if any(name in text for name in _OURS) or any(isinstance(n, ir.Obstacle) for n in ir.walk(function.body)):
            continue
        loops = list(_placed(program.text, function.body))
        mine = [one for loop in loops for one in _turns(program, functions, function, loop)]
        found += (one for one in mine if not any(_is_around(one.whole, other.whole) for other in mine))
    return tuple(sorted(found, key=lambda one: one.whole.start))


def _placed(text: bytes, body: ir.Stmt) -> Iterator[ir.Loop]:
    """The loops that are statements of blocks with braces, in which nothing is jumped to."""
    for block in (n for n in ir.walk(body) if isinstance(n, ir.Block)):
        if text[block.span.start : block.span.start + 1] == b"{" and not any(
            isinstance(n, ir.Case) for n in block.body
        ):
            yield from (one for one in block.body if isinstance(one, ir.Loop))


def deferred(found: Sequence[tuple[Turn, TurnFacts]]) -> tuple[Deferred, ...]:
    """What is kept of each loop's turns; what is run first in the next turn comes behind what is run last."""
    chosen: list[Deferred] = []
    for _, loop in groupby(found, key=lambda pair: pair[0].whole):
        dues = [(turn, facts, _due(turn, facts)) for turn, facts in loop]
        uses = next((one for one in dues if not one[0].early and one[2] >= 0), None)
        waits = next(
            (one for one in dues if one[2] >= 0 and _fits(one[0], uses[0] if uses is not None else None)), None
        )
        if uses is not None and waits is not None:
            uses = (*uses[:2], min(uses[2], waits[0].kept))
        chosen += [Deferred(turn, due, facts.held) for turn, facts, due in filter(None, (uses, waits))]
    return tuple(chosen)


def _fits(turn: Turn, uses: Turn | None) -> bool:
    """Whether that is a wait, alone if what stands behind it is kept by itself."""
    return turn.early > 0 and (turn.last == turn.beyond if uses is None else turn.last == uses.kept)


def in_the_way(turn: Turn, facts: TurnFacts) -> tuple[str, Span]:
    """Why the last part of a loop's turns is not kept for the next one, and what the place is."""
    part = turn.statements[turn.kept]
    if facts.why:
        return facts.why, part
    if AROUND in facts.meets:
        return "the loop's head, or what stands behind it, touches the same", part
    if facts.meets:
        return "this touches the same", turn.statements[min(facts.meets)]
    return "nothing is at work where it could be run", part


def _due(turn: Turn, facts: TurnFacts) -> int:
    """The statement that is run behind what is kept; -1 if there is none ahead of which that would pay."""
    if facts.why or AROUND in facts.meets:
        return -1
    if turn.early:
        first = min(facts.meets, default=turn.kept)
        done = max(facts.launches, default=turn.kept) + 1
        return first if first >= turn.early and facts.waits.isdisjoint(range(done, turn.kept)) else -1
    pending, due = False, -1
    for number in range(turn.kept):
        if pending:
            due = number
        if number in facts.meets:
            break
        pending = number not in facts.waits and (pending or number in facts.launches)
    return due


def _turns(
    program: ir.Program, functions: dict[str, ir.Function], function: ir.Function, loop: ir.Loop
) -> Iterator[Turn]:
    """What may be kept of a loop's turns: what uses results; and the wait, alone or with what stands behind it."""
    body, text = loop.inner, program.text
    if not isinstance(body, ir.Block) or text[body.span.start : body.span.start + 1] != b"{" or body.end >= 0:
        return
    groups = statements_of(body)
    statements = tuple(map(place_of, groups))

    def turn(kept: int, last: int, beyond: int, early: int) -> Turn:
        begin, end = body.span.start, body.span.end - 1
        return Turn(function.name, loop.number, loop.span, begin, end, statements, kept, last, beyond, early)

    def some(asks: Callable[[ir.Stmt], bool], first: int, last: int) -> bool:
        return any(asks(one) for group in groups[first:last] for one in group)

    last = len(groups)
    while last and _counts(loop, groups[last - 1]):
        last -= 1
    host = last
    while host and all(_is_of_the_host(functions, one) for one in groups[host - 1]):
        host -= 1
    kept = host
    while kept < last and not any(isinstance(n, ir.Declare) or _walks(functions, n) for n in groups[kept]):
        kept += 1  # what comes in front of it is soon done, and may be needed for the next turn
    launches = [n for n in range(host) if some(lambda one: _gives(functions, one), n, n + 1)]
    if not launches:
        return
    if some(lambda one: _walks(functions, one), kept, last):
        yield turn(kept, last, last, 0)
    first = next(n for n in range(len(groups)) if not all(_is_of_the_host(functions, one) for one in groups[n]))
    early = next((n + 1 for n in range(first) if some(lambda one: _walks(functions, one), n, n + 1)), 0)
    wait = host
    while wait - 1 > launches[-1] and not any(isinstance(n, ir.Declare) or _leaves(n) for n in groups[wait - 1]):
        wait -= 1
    if early and some(lambda one: _waits(functions, one), wait, host):
        if some(lambda one: _walks(functions, one), kept, last):
            yield turn(wait, kept, last, early)
        yield turn(wait, last, last, early)


def _counts(loop: ir.Loop, group: list[ir.Stmt]) -> bool:
    """Whether a statement only changes a number that the loop's condition asks for."""
    asked = {n.variable.key for n in ir.walk(loop.condition) if isinstance(n, ir.Name)} if loop.condition else set()
    one = group[0]
    return (
        len(group) == 1
        and isinstance(one, ir.Evaluate)
        and isinstance(one.expression, ir.Assign)
        and isinstance(one.expression.target, ir.Name)
        and one.expression.target.variable.key in asked
    )


def _is_around(one: Span, other: Span) -> bool:
    return one != other and one.start <= other.start and other.end <= one.end


def _inside(functions: dict[str, ir.Function], node: ir.Expr | ir.Stmt) -> Iterator[ir.Expr | ir.Stmt]:
    """What is in a node, and in the functions of the file that it calls."""
    seen: set[str] = set()
    todo: list[tuple[ir.Expr | ir.Stmt, int]] = [(node, 0)]
    while todo:
        one, depth = todo.pop()
        for n in ir.walk(one):
            yield n
            if isinstance(n, ir.Call) and n.key in functions and n.key not in seen and depth < _DEEPEST:
                seen.add(n.key)
                todo.append((functions[n.key].body, depth + 1))


def _gives(functions: dict[str, ir.Function], node: ir.Stmt) -> bool:
    return any(isinstance(n, ir.Launch) for n in _inside(functions, node))


def _waits(functions: dict[str, ir.Function], node: ir.Stmt) -> bool:
    return any(isinstance(n, ir.Call) and n.name.startswith(_WAITS) for n in _inside(functions, node))


def _is_of_the_host(functions: dict[str, ir.Function], node: ir.Stmt) -> bool:
    """Whether a statement calls nothing of CUDA's, and does not leave the loop around it."""
    if _leaves(node):
        return False
    return not any(
        isinstance(n, (ir.Launch, ir.Obstacle)) or (isinstance(n, ir.Call) and n.name.startswith(("cu", "kesco_")))
        for n in _inside(functions, node)
    )


def _leaves(node: ir.Stmt, *, inner: bool = False) -> bool:
    if isinstance(node, ir.Leave):
        return node.how in ("return", "throw") or not inner
    inner = inner or isinstance(node, (ir.Loop, ir.Switch))
    return any(_leaves(one, inner=inner) for one in ir.children(node) if isinstance(one, ir.Stmt))


def _walks(functions: dict[str, ir.Function], node: ir.Stmt) -> bool:
    """Whether a statement may take long: it has a loop, or a function of the library does."""
    return any(
        isinstance(n, ir.Loop) or (isinstance(n, ir.Call) and n.standard and n.name.rpartition("::")[2] in _WALKS)
        for n in _inside(functions, node)
    )

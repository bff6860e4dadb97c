"""Which launches may be given to the device many at a time: ``batches(program)``.

In: a program. Out: the loops, and where lines have to stand for them (`kesco.ir.batches`). A stage of its own because
it asks nothing of memory: whatever a launch does, the device may do it at any time until somebody waits for it or asks
about it. So a launch on the default stream may be late as long as nothing comes in between that could tell: no call of
CUDA, no code that is not seen, no wait, no way out.

1. A loop is walked as it is written, with the functions of the file that it calls (`Walk`). In front of each statement
that could tell, while launches may be late, the host issues them. 2. A loop pays only if many launches come one behind
the other: in the trips of a loop in it, or in one of its own. 3. Callers come first: what they call is
then a part of their batches.

It refuses loops with control flow that is not followed, and what cannot be edited.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from kesco.batching.quiet import Quiet
from kesco.ir import program as ir
from kesco.ir.batches import CALLS, Batch, Batches, is_own_stream
from kesco.ir.walking import leaves
from kesco.source import Span

_FEW = 16
"""A loop of fewer launches is left alone, and in `main`, which runs once, one of less than eight times as many."""
_MANY = 8
"""So many launches in a row are worth a graph."""
_OPENMP = re.compile(rb"pragma\s+omp\b|_Pragma")
_TRIED = (b"kesco_pace", b"kesco_stretch(")  # what chooses one stream where that is faster
_WITHIN = 3  # cudaMemcpyDeviceToDevice
_LOOP = re.compile(rb"(?:for|while|do)\b")
_DEFINED = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_NAME = re.compile(rb"(?:::)?(\w+)")
_CAPTURES = (b"BeginCapture", b"cudaThreadExchangeStreamCaptureMode")


class NotBatchedError(Exception):
    """Something in a loop is not followed, or cannot be edited; the message is the reason in words."""


@dataclass(slots=True)
class Found:
    """What a walk has found so far: operations, places of lines, and the functions that it went through."""

    launches: dict[int, None] = field(default_factory=dict)
    calls: dict[int, None] = field(default_factory=dict)
    issues: dict[int, tuple[Span, bool]] = field(default_factory=dict)
    trips: dict[int, Span] = field(default_factory=dict)
    members: dict[str, None] = field(default_factory=dict)
    pays: bool = False

    def add(self, other: Found) -> None:
        """Everything of another one, but whether it pays."""
        self.launches |= other.launches
        self.calls |= other.calls
        self.issues |= other.issues
        self.trips |= other.trips
        self.members |= other.members


def batches(program: ir.Program, without: Collection[Span] = ()) -> Batches:
    """The loops of a file whose launches may be batched, `without` some.

    None where the program captures graphs of its own.
    """
    if any(name == "per-thread-stream" for name, _ in program.constructs):
        return Batches()
    if b"<<<" not in program.text or any(one in program.text for one in _CAPTURES):
        return Batches()
    quiet, whole, loops = Quiet(program), Found(), list[Batch]()
    here = [f for f in program.functions if quiet.is_own(f) and _may_be_on_one(program, f)]
    called = {n.key for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Call)}
    for function in sorted(here, key=lambda f: (f.key in called, -f.span.start)):
        if function.key in whole.members or any(_jumps(n) for n in ir.walk(function.body)):
            continue
        for loop in _outermost(function.body):
            for one, found in _batched(program, quiet, function, loop, nested=False):
                if one.span in without or any(one.span == other.whole for other in loops):
                    continue
                whole.add(found)
                loops.append(Batch(function.name, one.span, tuple(found.launches), tuple(found.members)))
    loops.sort(key=lambda one: one.whole.start)
    return Batches(
        tuple(loops),
        tuple(whole.launches),
        tuple(whole.calls),
        tuple(whole.issues.values()),
        tuple(whole.trips.values()),
    )


def _may_be_on_one(program: ir.Program, function: ir.Function) -> bool:
    """Whether a function's own work is on the default stream, or may come to be there as the program runs."""
    text = program.text[function.span.start : function.span.end]
    return b"->stream[" not in text or any(one in text for one in _TRIED)


def _jumps(node: ir.Expr | ir.Stmt) -> bool:
    """Whether control may go past a declaration, or a directive gives a statement another meaning."""
    return isinstance(node, ir.Obstacle) and node.reason != "a try block"


def _outermost(statement: ir.Stmt) -> Iterator[ir.Loop]:
    """The loops in a block of a statement that are in no other loop, and in no `switch`."""
    if isinstance(statement, ir.Block):
        for one in statement.body:
            if isinstance(one, ir.Loop):
                yield one
            elif isinstance(one, ir.Block) and any(isinstance(s, ir.Loop) and s.ranged for s in one.body[:1]):
                yield from (s for s in one.body[:1] if isinstance(s, ir.Loop))
            else:
                yield from _outermost(one)
    elif isinstance(statement, ir.If):
        for branch in (statement.then, statement.other):
            if isinstance(branch, ir.Block):
                yield from _outermost(branch)


def _batched(
    program: ir.Program, quiet: Quiet, function: ir.Function, loop: ir.Loop, *, nested: bool
) -> Iterator[tuple[ir.Loop, Found]]:
    """A loop with what was found in it, or the loops in it."""
    try:
        found = Walk(program, quiet, function.key).loop_of_its_own(loop)
    except NotBatchedError:
        found = Found()
    least = _FEW * 8 if function.name == "main" and not nested else _FEW
    if found.pays and launches_of(loop, found) >= least:
        yield loop, found
        return
    for inner in _outermost(loop.inner):
        yield from _batched(program, quiet, function, inner, nested=True)


def launches_of(node: ir.Stmt, found: Found) -> float:
    """How many launches a statement makes, as far as its text says; infinite where that is not known."""
    if isinstance(node, ir.Loop):
        each = launches_of(node.body, found)
        return each * _trips(node) if each else 0
    inside = ir.children(node)
    return sum(launches_of(n, found) if isinstance(n, ir.Stmt) else _launches_in(n, found) for n in inside)


def _launches_in(expression: ir.Expr, found: Found) -> int:
    calls = [n for n in ir.walk(expression) if isinstance(n, (ir.Launch, ir.Call))]
    return sum(isinstance(n, ir.Launch) or n.key in found.members for n in calls)


def _trips(loop: ir.Loop) -> float:
    """How many trips a loop has that counts from a number to another one in steps of one."""
    first = loop.before[0] if len(loop.before) == 1 else None
    test, initial = loop.condition, first.initial if isinstance(first, ir.Declare) else None
    initial = ir.bare(initial) if initial is not None else None
    if not isinstance(test, ir.Binary) or test.operator not in ("<", "<=") or not isinstance(initial, ir.Constant):
        return math.inf
    last = ir.bare(test.right)
    if isinstance(last, ir.Name) and last.variable.constant is not None:
        last = ir.Constant(last.variable.constant)
    return float(last.value - initial.value + 1) if isinstance(last, ir.Constant) else math.inf


class Walk:
    """One loop or function as it is written: `late` tells whether launches may be pending at the place that is reached.

    `path` are the functions that are walked at present.
    """

    def __init__(self, program: ir.Program, quiet: Quiet, *path: str) -> None:
        self.program, self.quiet, self.path = program, quiet, path
        self.found, self.late = Found(), False
        self._run = 0.0  # launches that come one behind the other, up to here
        self._macros = {n[6:] for n, _ in program.constructs if n.startswith("macro ")}
        self._macros |= {name.decode() for name in _DEFINED.findall(program.text)}
        self._around: list[list[bool] | None] = []  # loops, and None for branches; of loops: issued, and has launches
        self._launching: set[int] = set()  # where statements with launches begin

    def loop_of_its_own(self, loop: ir.Loop) -> Found:
        """What is found in a loop; raises `NotBatchedError`."""
        if _LOOP.match(self.program.text, loop.span.start) is None:
            raise NotBatchedError("the loop comes from a macro")
        self._not_with_openmp(loop.span)
        self.statement(loop, (loop.span, False))
        return self.found

    def body_of(self, function: ir.Function) -> Found:
        """What is found in a function that is called while launches may be late; raises `NotBatchedError`."""
        self.late = True
        self._not_with_openmp(function.span)
        self.statement(function.body, (function.body.span, False))
        return self.found

    # ---- statements -------------------------------------------------------------------------------------------------

    def _not_with_openmp(self, place: Span) -> None:
        if _OPENMP.search(self._text(place)) is not None:  # what stands between its loops may matter to it
            raise NotBatchedError("OpenMP")

    def statement(self, one: ir.Stmt, anchor: tuple[Span, bool]) -> None:
        """Walk a statement; lines go to `anchor`: a place, and whether it is the unbraced body of another statement."""
        if isinstance(one, ir.Block):
            self._block(one, anchor)
        elif isinstance(one, ir.Evaluate):
            self.expression(one.expression, anchor)
        elif isinstance(one, ir.Declare):
            self._declare(one, anchor)
        elif isinstance(one, ir.If):
            self._if(one, anchor)
        elif isinstance(one, ir.Loop):
            self._loop(one, anchor)
        elif isinstance(one, ir.Leave):
            if one.value is not None:
                self.expression(one.value, anchor)
        else:
            raise NotBatchedError("control flow of another kind")

    def _block(self, block: ir.Block, anchor: tuple[Span, bool]) -> None:
        if block.end >= 0:
            raise NotBatchedError("a destructor runs")
        braced = self._text(block.span)[:1] == b"{"
        for one in block.body:
            own = one.span.start != anchor[0].start and (braced or block.declares)
            self.statement(one, (one.span, False) if own and not block.declares else anchor)

    def _declare(self, one: ir.Declare, anchor: tuple[Span, bool]) -> None:
        if not self.quiet.is_plain(one.variable.type):
            raise NotBatchedError(f"the end of '{one.variable.name}' may do something")
        if one.initial is not None:
            self.expression(one.initial, anchor)

    def _if(self, one: ir.If, anchor: tuple[Span, bool]) -> None:
        for first in one.before:
            self.statement(first, anchor)
        self.expression(one.condition, anchor)
        if one.other is None and leaves(one.then) and self.quiet.is_last_words(one):
            return
        self._around.append(None)
        states, runs = [], []
        before, run = self.late, self._run
        for branch in (one.then, one.other):
            self.late, self._run = before, run
            if branch is not None:
                self.statement(branch, self._slot(branch, one.span, anchor))
            if branch is None or not leaves(branch):
                states.append(self.late)
                runs.append(self._run)
        self.late, self._run = any(states), max(runs, default=0.0)
        self._around.pop()

    def _slot(self, inner: ir.Stmt, outer: Span, anchor: tuple[Span, bool]) -> tuple[Span, bool]:
        """Where lines go for the body of another statement."""
        if inner.span.start == outer.start or self._text(inner.span)[:1] == b"{":
            return anchor if inner.span.start == outer.start else (inner.span, False)
        return (inner.span, True)

    def _loop(self, one: ir.Loop, anchor: tuple[Span, bool]) -> None:
        launches = [n for n in ir.walk(one.body) if isinstance(n, ir.Launch) or self._is_member(n)]
        if not launches:
            self._host_loop(one, anchor)
            return
        for first in one.before:
            self.statement(first, anchor)
        frame = [False, False]
        self._around.append(frame)
        before, self.late = self.late, True
        for header in (one.condition, one.step):
            if header is not None and not self.quiet.is_quiet(header):
                raise NotBatchedError("the head of the loop may look at the device")
        run = self._run
        self.statement(one.body, self._slot(one.inner, one.span, anchor))
        self.late = before or frame[1]
        self._around.pop()
        if not frame[0] and self._run > run:
            self._run = run + (self._run - run) * _trips(one)
        if frame[1] and not frame[0]:
            self.found.pays = True
        body = one.inner
        if not isinstance(body, (ir.Block, ir.Evaluate, ir.Loop)):  # trips that launch nothing would not be counted
            raise NotBatchedError("a loop's body without braces")
        if frame[1] and isinstance(body, ir.Block) and self._text(body.span)[:1] == b"{":
            self.found.trips.setdefault(body.span.start, body.span)

    def _host_loop(self, one: ir.Loop, anchor: tuple[Span, bool]) -> None:
        """A loop that launches nothing: what it waits for, if it does, must have been launched."""
        parts = [one.condition, one.step]
        heads = all(part is None or self.quiet.is_counting(part) for part in parts)
        if not (heads and one.condition is not None and self.quiet.is_quiet(one)):
            self._issue(anchor)

    def _is_member(self, node: ir.Expr | ir.Stmt) -> bool:
        return isinstance(node, ir.Call) and self._called(node) is not None

    # ---- expressions ------------------------------------------------------------------------------------------------

    def expression(self, one: ir.Expr, anchor: tuple[Span, bool]) -> None:
        """Walk a full expression: it may launch, or look, but not both, since their order is open."""
        launches = [n for n in ir.walk(one) if isinstance(n, ir.Launch) and self._may_be_late(n)]
        late = [n for n in ir.walk(one) if isinstance(n, ir.Call) and self._may_be_called_late(n)]
        calls = [(n, self._called(n)) for n in ir.walk(one) if isinstance(n, ir.Call)]
        members = [found for n, found in calls if found is not None]
        known = {id(n) for n in (*launches, *late)} | {id(n) for n, found in calls if found is not None}
        if not self.quiet.is_quiet(one, known):
            if launches or members:  # a memset that is not late is one more call
                raise NotBatchedError("a launch and something that looks at it share a statement")
            self._issue(anchor)
        elif launches and members:  # their order, and that of a launch's own parts, is open
            raise NotBatchedError("a launch and a function that launches share a statement")
        elif launches or members or late:
            self.found.calls |= dict.fromkeys(n.operation for n in late)
            self._launch(launches, members, anchor)

    def _launch(
        self, launches: list[ir.Launch], members: list[tuple[ir.Function, Found]], anchor: tuple[Span, bool]
    ) -> None:
        self.late = True
        self._launching.add(anchor[0].start)
        for frame in self._around:
            if frame is not None:
                frame[1] = True
        self.found.launches |= dict.fromkeys(map(self.quiet.number, launches))
        self._run += len(launches) + sum(len(found.launches) for _, found in members)
        if self._run >= _MANY and any(frame is not None for frame in self._around):
            self.found.pays = True
        for function, found in members:
            self.found.add(found)
            self.found.members[function.key] = None
            if found.issues:
                self._interrupt()

    def _interrupt(self) -> None:
        """The loops around, up to a branch, issue what is late in each trip."""
        for frame in reversed(self._around):
            if frame is None:
                return
            frame[0] = True

    def _issue(self, anchor: tuple[Span, bool]) -> None:
        if not self.late:
            return
        place, lone = anchor
        if place.start in self._launching:
            raise NotBatchedError("a macro launches and looks")
        self._interrupt()
        self.late, self._run = False, 0.0
        self.found.issues.setdefault(place.start, (self._whole(place), lone) if lone else (place, False))

    def _whole(self, place: Span) -> Span:
        """The place of an unbraced body with its semicolon."""
        text, end = self.program.text, place.end
        while text[end : end + 1].isspace():
            end += 1
        if text[end : end + 1] == b";":
            return Span(place.path, place.start, end + 1, place.line, place.column)
        if text[place.end - 1 : place.end] in (b"}", b";"):
            return place
        raise NotBatchedError("where a statement ends is not known")

    def _may_be_late(self, launch: ir.Launch) -> bool:
        """Whether a launch is on the default stream, and its stream can be stated."""
        if (number := self.quiet.number(launch)) < 0:
            return False
        operation, configuration = self.program.operations[number], launch.configuration
        plain = b"<<<" in self._text(launch.span) and operation.macro is None
        default = len(configuration) < 4 or ir.bare(configuration[3]) in (ir.Constant(0), ir.Literal("default"))
        default = default or is_own_stream(configuration[3])
        return plain and default and operation.stream_text is not None and not operation.stuck

    def _may_be_called_late(self, call: ir.Call) -> bool:
        """Whether a call is a memset, or a copy within the device, whose name stands in the text."""
        if not call.standard or call.name not in CALLS or call.operation < 0 or call.receiver is not None:
            return False
        name = _NAME.match(self.program.text, call.span.start)
        if name is None or name[1] != call.name.encode() or call.name in self._macros:
            return False
        if call.name == "cudaMemsetAsync":
            stream = ir.bare(call.arguments[3]) if len(call.arguments) > 3 else ir.Constant(0)
            return stream in (ir.Constant(0), ir.Literal("default")) or is_own_stream(stream)
        kind = ir.bare(call.arguments[3]) if call.name == "cudaMemcpy" and len(call.arguments) == 4 else None
        return call.name == "cudaMemset" or kind == ir.Constant(_WITHIN)

    def _called(self, call: ir.Call) -> tuple[ir.Function, Found] | None:
        """The function of the file that a call runs, if its launches may be late, and what is in it."""
        function = self.quiet.function(call)
        if function is None or not self.quiet.is_own(function) or function.key in self.path:
            return None
        found = self.quiet.launching(function, self.path)
        return (function, found) if found is not None else None

    def _text(self, span: Span) -> bytes:
        return self.program.text[span.start : span.end]

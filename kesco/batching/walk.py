"""A loop as it is written, with the functions that it calls: ``Walk(quiet, members, …).loop_of_its_own(loop)``.

In: a loop. Out: the launches in it that may be late, and where lines have to stand for them (`Found`). Apart from the
choice of loops, which asks this of each.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, field

from kesco.batching.quiet import Quiet
from kesco.ir import program as ir
from kesco.ir.batches import CALLS, is_own_stream
from kesco.ir.walking import leaves
from kesco.source import Span

_MANY = 8
"""So many launches in a row are worth a graph."""
_OPENMP = re.compile(rb"pragma\s+omp\b|_Pragma")
_WITHIN = 3  # cudaMemcpyDeviceToDevice
_LOOP = re.compile(rb"(?:for|while|do)\b")
_DEFINED = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_NAME = re.compile(rb"(?:::)?(\w+)")


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


def trips_of(loop: ir.Loop) -> float:
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

    `path` are the functions that are walked at present. `members` remembers what is in functions that are called; None
    for one in which no launch is, or something else.
    """

    def __init__(self, quiet: Quiet, members: dict[str, Found | None], *path: str) -> None:
        self.program, self.quiet, self.members, self.path = quiet.program, quiet, members, path
        self.found, self.late = Found(), False
        self._run = 0.0  # launches that come one behind the other, up to here
        self._macros = {n[6:] for n, _ in self.program.constructs if n.startswith("macro ")}
        self._macros |= {name.decode() for name in _DEFINED.findall(self.program.text)}
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
            self._run = run + (self._run - run) * trips_of(one)
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
        default = len(configuration) < 4 or ir.bare(configuration[3]) in (ir.Constant(0), ir.DEFAULT)
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
            return stream in (ir.Constant(0), ir.DEFAULT) or is_own_stream(stream)
        kind = ir.bare(call.arguments[3]) if call.name == "cudaMemcpy" and len(call.arguments) == 4 else None
        return call.name == "cudaMemset" or kind == ir.Constant(_WITHIN)

    def _called(self, call: ir.Call) -> tuple[ir.Function, Found] | None:
        """The function of the file that a call runs, if its launches may be late, and what is in it."""
        function = self.quiet.function(call)
        if function is None or not self.quiet.is_own(function) or function.key in self.path:
            return None
        if function.key not in self.members:
            self.members[function.key] = None
            with suppress(NotBatchedError):
                found = Walk(self.quiet, self.members, *self.path, function.key).body_of(function)
                self.members[function.key] = found if found.launches else None
        known = self.members[function.key]
        return (function, known) if known is not None else None

    def _text(self, span: Span) -> bytes:
        return self.program.text[span.start : span.end]

"""What stands in a loop of ``kesco_replay`` must be left out without harm, since a graph may be launched instead.

In: the concurrent program as read from its text, and its regions. Out: what speaks against its replays, in words, each
with its place. A stage of its own because the order of the work says nothing about it: this is about values and about
the host.

1. Each replay has a number of its own, one of those that the prologue has room for, and launches on one of kesco's
streams. 2. All that it gives the device is on streams of kesco's, which are captured, and the events in it are of that
kind, too. 3. Every value that decides what it gives the device is a constant, comes from variables of its own, or is
among those that are compared. 4. It changes nothing but variables of its own; it calls nothing but what gives the
device work, asks for errors, or ends the process because of one; and control leaves it only at its end. 5. What is
compared through a pointer is read ahead of the statements: so they follow that pointer whenever they run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from kesco.ir import program as ir
from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.ir.replay import ENDS, REPLAYS, STATUS
from kesco.source import Span

_WORK = frozenset({SiteKind.KERNEL, SiteKind.COPY, SiteKind.MEMSET})
_INSIDE = frozenset({Role.MOVABLE, Role.RECORD, Role.WAIT})
_CALLED = re.compile(rb"\bkesco_replay(?:_alone)?\s*\(\s*\w+\s*,")
_VECTOR = re.compile(r"(?:dim3|u?(?:int|char|short|long|longlong)[1-4]|(?:float|double)[1-4])")

Problem = tuple[Span, str]
Key = tuple[object, ...]


def replay_problems(program: ir.Program, regions: Sequence[Region], room: int) -> tuple[Problem, ...]:
    """All that speaks against the replays of a program whose prologue has room for so many."""
    found: list[Problem] = []
    used: set[int] = set()
    checked = 0
    for function in program.functions:
        calls = [n for n in ir.walk(function.body) if isinstance(n, ir.Call) and n.name in REPLAYS]
        region = next((r for r in regions if r.span == function.span), None) if function.here else None
        for loop in _loops(function.body):
            call = loop.condition
            assert isinstance(call, ir.Call)
            if loop.before or loop.step is not None:
                continue
            calls.remove(call)
            checked += 1
            number = call.arguments[1] if len(call.arguments) > 2 else None
            if not isinstance(number, ir.Constant) or number.value in used or not 0 <= number.value < room:
                found.append((call.span, "a replay has no number of its own"))
                continue
            used.add(number.value)
            found += _captured(region, call)
            found += _Body(program, call, _operations(region, call)).problems(loop)
        found += [(call.span, f"{call.name} is not the condition of a loop") for call in calls]
    if not found and checked != len(_CALLED.findall(program.text)):
        top = Span(program.path, 0, 1, 1, 1)
        found.append((top, "a replay stands where it cannot be read"))
    return tuple(found)


def _loops(body: ir.Stmt) -> Iterator[ir.Loop]:
    for node in ir.walk(body):
        condition = node.condition if isinstance(node, ir.Loop) and not node.tested_after else None
        if isinstance(node, ir.Loop) and isinstance(condition, ir.Call) and condition.name in REPLAYS:
            yield node


# ---- the device's side ----------------------------------------------------------------------------------------------


def _within(region: Region | None, call: ir.Call) -> Iterator[Site]:
    """The sites between the beginning of a replay and its end, and both of these."""
    if region is None:
        return
    work = [s.number for s in region.sites if s.operation == call.operation and s.role is Role.CAPTURE]
    seen = set(work)
    while work:
        site = region.sites[work.pop()]
        yield site
        if site.role is Role.REPLAY and site.operation == call.operation:
            continue
        fresh = set(region.successors[site.number]) - seen
        seen |= fresh
        work += fresh


def _captured(region: Region | None, call: ir.Call) -> Iterator[Problem]:
    sites = list(_within(region, call))
    if not {Role.CAPTURE, Role.REPLAY} <= {s.role for s in sites}:
        yield call.span, "a replay cannot be followed"
    for site in sites:
        mine = site.operation == call.operation and site.role in (Role.CAPTURE, Role.REPLAY)
        if site.role is Role.HOST and not site.accesses:
            continue
        if not mine and (site.role not in _INSIDE or (site.role is Role.MOVABLE and site.kind not in _WORK)):
            yield site.span, f"'{site.label}' cannot be captured"
        elif site.stream is None or not site.stream.certain or not site.stream.key.startswith("kesco:stream:"):
            yield site.span, f"'{site.label}' is on a stream that is not captured"
        elif not mine and site.role is not Role.MOVABLE:
            event = site.event
            if event is None or not event.certain or not event.key.startswith("kesco:done:"):
                yield site.span, f"'{site.label}' is of an event that is not captured"


def _operations(region: Region | None, call: ir.Call) -> frozenset[int]:
    return frozenset(s.operation for s in _within(region, call) if s.role in _INSIDE)


# ---- the host's side ------------------------------------------------------------------------------------------------


class _Body:
    """One replay's statements."""

    def __init__(self, program: ir.Program, call: ir.Call, operations: Collection[int]) -> None:
        self.program, self.call, self.operations = program, call, operations
        self.compared = {key for a in call.arguments[3:] if (key := _key(a)) is not None}
        self.own: set[str] = set()
        self.results: set[str] = set()
        self.found: list[Problem] = []

    def problems(self, loop: ir.Loop) -> list[Problem]:
        """All that speaks against leaving the statements out."""
        self.found += [
            (self.call.span, "what is compared is not a value") for a in self.call.arguments[3:] if not _key(a)
        ]
        there = {key for one in _always(loop.body) for key in _followed(one)}
        if any(key not in there for a in self.call.arguments[3:] for key in _followed(a)):
            self._say(self.call.span, "what is compared may not be there")
        own = [n.variable for n in ir.walk(loop.body) if isinstance(n, ir.Declare)]
        for variable in own:
            if (
                variable.scope is not ir.Scope.LOCAL
                or variable.type.shape is ir.Shape.REFERENCE
                or variable.type.volatile
            ):
                self._say(variable.span, f"the variable '{variable.name}' is not only this replay's")
        self.own = {v.key for v in own}
        self.results = {
            n.variable.key
            for n in ir.walk(loop.body)
            if isinstance(n, ir.Declare) and isinstance(n.initial, ir.Call) and not n.initial.constructs
        }
        self._statement(loop.body)
        return self.found

    def _say(self, span: Span, what: str) -> None:
        self.found.append((span, what))

    def _statement(self, statement: ir.Stmt) -> None:
        if isinstance(statement, ir.Block) and statement.end < 0:
            for one in statement.body:
                self._statement(one)
        elif isinstance(statement, ir.Evaluate):
            self._effect(statement.expression, statement.span)
        elif isinstance(statement, ir.Declare):
            if statement.variable.key in self.results and statement.initial is not None:
                self._effect(statement.initial, statement.span)
            elif statement.initial is not None:
                self._value(statement.initial, statement.span)
        elif isinstance(statement, ir.If):
            self._if(statement)
        elif isinstance(statement, ir.Loop) and statement.condition is not None:
            for one in statement.before:
                self._statement(one)
            self._value(statement.condition, statement.span)
            if statement.step is not None:
                self._effect(statement.step, statement.span)
            self._statement(statement.body)
        else:
            self._say(statement.span, "control may leave a replay, or come into it, in its midst")

    def _if(self, statement: ir.If) -> None:
        for one in statement.before:
            self._statement(one)
        names = [n.variable.key for n in ir.walk(statement.condition) if isinstance(n, ir.Name)]
        calls = any(isinstance(n, (ir.Call, ir.Launch, ir.Assign)) for n in ir.walk(statement.condition))
        if names and self.results.issuperset(names) and not calls and statement.other is None:
            if not self._ends(statement.then):
                self._say(statement.span, "what follows an error would be left out of a replay")
            return
        self._value(statement.condition, statement.span)
        self._statement(statement.then)
        if statement.other is not None:
            self._statement(statement.other)

    def _ends(self, statement: ir.Stmt) -> bool:
        """Whether a statement only calls functions, and the last of them never comes back."""
        body = statement.body if isinstance(statement, ir.Block) else (statement,)
        calls = [one.expression if isinstance(one, ir.Evaluate) else None for one in body]
        last = calls[-1] if calls else None
        inside = (n for one in body for n in ir.walk(one))
        works = any(isinstance(n, (ir.Call, ir.Launch)) and n.operation in self.operations for n in inside)
        comes_back = not isinstance(last, ir.Call) or not last.standard or last.name.rpartition("::")[2] not in ENDS
        return not works and not comes_back and all(isinstance(one, ir.Call) for one in calls)

    def _effect(self, expression: ir.Expr, span: Span) -> None:
        expression = ir.bare(expression)
        if isinstance(expression, ir.Launch) and expression.operation in self.operations:
            for one in (*expression.configuration[:3], *expression.arguments):
                self._value(one, expression.span)
            if not expression.kernel.candidates or ir.Literal("default") in expression.arguments:
                self._say(expression.span, f"what '{expression.kernel.name}' is, or is given, is not known")
            for one in expression.configuration[3:]:
                self._handle(one, expression.span)
        elif (
            isinstance(expression, ir.Call) and expression.operation in self.operations and expression.receiver is None
        ):
            for one in expression.arguments:
                self._handle(one, expression.span)
        elif isinstance(expression, ir.Assign):
            if not isinstance(expression.target, ir.Name) or expression.target.variable.key not in self.own:
                self._say(span, "something that lives on behind a replay is changed in it")
            self._value(expression.value, span)
        elif not (isinstance(expression, ir.Call) and expression.standard and expression.name in STATUS):
            self._say(span, "what a statement does would be left out of a replay")

    def _handle(self, expression: ir.Expr, span: Span) -> None:
        """An argument that may be one of kesco's streams or events, which the loop itself provides."""
        streams = self.call.arguments[0]
        expression = ir.bare(expression)
        if isinstance(expression, ir.Subscript) and isinstance(expression.base, ir.Select):
            of = expression.base.base
            mine = isinstance(of, ir.Name) and isinstance(streams, ir.Name) and of.variable.key == streams.variable.key
            if mine and expression.base.member in ("stream", "done"):
                expression = expression.index
        self._value(expression, span)

    def _value(self, expression: ir.Expr, span: Span) -> None:
        """Report whatever in an expression may be another value when the graph is replayed."""
        key = _key(expression)
        fixed = isinstance(expression, (ir.Constant, ir.Literal)) and expression != ir.Literal("varying")
        if fixed or (key is not None and key in self.compared):
            return
        if isinstance(expression, ir.Name):
            variable = expression.variable
            if variable.key in self.results or (variable.key not in self.own and variable.constant is None):
                self._say(expression.span, f"'{variable.name}' is not among the values that are compared")
        elif isinstance(expression, ir.Select) and expression.base is not None and not expression.arrow:
            if not re.fullmatch(r"\w+", expression.member):  # of a union, or what a container holds elsewhere
                self._say(span, "a value is not where its object is")
            self._value(expression.base, span)
        elif isinstance(expression, ir.Subscript) and expression.array:
            self._value(expression.base, span)
            self._value(expression.index, span)
        elif isinstance(expression, (ir.Binary, ir.Unary, ir.Branch, ir.Cast, ir.InitList)) or self._copies(expression):
            for one in expression.arguments if isinstance(expression, ir.Call) else ir.children(expression):
                if isinstance(one, ir.Expr):
                    self._value(one, span)
        else:
            self._say(span, "a value is not among those that are compared")

    def _copies(self, expression: ir.Expr) -> bool:
        """Whether an expression is a constructor that only copies fields."""
        if not isinstance(expression, ir.Call) or not expression.constructs or expression.receiver is not None:
            return False
        if expression.standard and _VECTOR.fullmatch(expression.name.rpartition("::")[2]):
            return True
        record = self.program.records.get(expression.type.record) if expression.type is not None else None
        return expression.implicit and len(expression.arguments) == 1 and record is not None and record.plain


def _key(expression: ir.Expr) -> Key | None:
    """What tells variables and their members apart, or None for another expression."""
    if isinstance(expression, ir.Cast) and expression.source is not None:
        same = _bare(expression.type.spelling) == _bare(expression.source.spelling)
        return _key(expression.operand) if same else None
    if isinstance(expression, ir.Name):
        fixed = not expression.variable.type.volatile and expression.variable.scope is not ir.Scope.SYMBOL
        return (expression.variable.key,) if fixed else None
    if isinstance(expression, ir.Select) and re.fullmatch(r"\w+", expression.member) and not expression.type.volatile:
        if expression.base is None or _is_this(expression.base):
            return "this", expression.member
        base = _key(expression.base)
        return (*base, expression.arrow, expression.member) if base is not None else None
    return None


def _always(statement: ir.Stmt) -> Iterator[ir.Expr]:
    """The expressions that have a value whenever control enters a statement."""
    if isinstance(statement, ir.Block):
        for one in statement.body:
            yield from _always(one)
            if any(isinstance(n, ir.Call) and n.name.rpartition("::")[2] in ENDS for n in ir.walk(one)):
                return
    elif isinstance(statement, ir.Evaluate):
        yield statement.expression
    elif isinstance(statement, ir.Declare) and statement.initial is not None:
        yield statement.initial
    elif isinstance(statement, (ir.If, ir.Loop)):
        for one in statement.before:
            yield from _always(one)
        if isinstance(statement, ir.Loop) and statement.tested_after:
            yield from _always(statement.body)
        elif statement.condition is not None:
            yield statement.condition


def _followed(expression: ir.Expr) -> Iterator[Key | None]:
    """The pointers that are followed wherever an expression has a value."""
    if isinstance(expression, (ir.AddressOf, ir.Decay)):
        return
    if isinstance(expression, ir.Select) and expression.arrow and not _is_this(expression.base or expression):
        yield _key(expression.base) if expression.base is not None else None
    inner = [expression.condition] if isinstance(expression, ir.Branch) else ir.children(expression)
    for one in inner:
        if isinstance(one, ir.Expr):
            yield from _followed(one)


def _is_this(base: ir.Expr) -> bool:
    return (
        isinstance(base, ir.AddressOf)
        and isinstance(base.target, ir.Dereference)
        and base.target.pointer == ir.Literal("this")
    )


def _bare(spelling: str) -> str:
    return re.sub(r"\bconst\b|\s", "", spelling)

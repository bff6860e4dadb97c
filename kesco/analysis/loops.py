"""Loops of the host program.

In: a loop and the state before it. Out: the state behind it, with all sites of the body. Apart from the other
statements because this is where it is decided whether iterations are told apart.

1. A counting loop with constant bounds and few trips is walked once a trip, with the counter's value known: ``x[i]`` is
then a different buffer each time. 2. Any other loop is walked until neither state nor region changes, as are all in
functions that only compute. It refuses to unroll where the body may change the counter, and gives up (the function
stays serial) when the walk does not settle.
"""

from __future__ import annotations

from kesco.analysis.memory import TOP, Place, Value
from kesco.analysis.numbering import end_trip
from kesco.analysis.paying import paying
from kesco.analysis.references import changes
from kesco.analysis.region import Growth
from kesco.analysis.state import Activation, State, converted
from kesco.analysis.turns import Counters, Turns, forget
from kesco.ir import program as ir
from kesco.ir.flow import Iteration, Role, SiteKind
from kesco.ir.replay import REPLAYS
from kesco.source import Span

MAX_TRIPS = 64
MAX_UNROLLED = 1024
_MAX_ROUNDS = 12
_MAX_WORK = 3000  # rounds of all rolled loops in one walk: loops in loops multiply them


class Loops(Turns):
    """Walks loops; statements are left to the subclass."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.activations: dict[str, dict[str, Activation]] = {}
        self.growth = Growth()
        self.paying = paying(self.program)
        self.unroll: dict[int, bool] = {}
        self.uncounted: set[int] = set()  # loops whose trips turned out not to be known each time
        self.rounds = 0
        self.walked: set[tuple[str, str, int]] = set()  # (root activation, function called, operation)

    def execute(self, statement: ir.Stmt, state: State | None) -> State | None:
        """Left to the subclass."""
        raise NotImplementedError

    def temporaries(self, state: State, expression: ir.Expr, span: Span, *, but: ir.Expr | None = None) -> None:
        """Left to the subclass."""
        raise NotImplementedError

    def walk_loop(self, loop: ir.Loop, state: State) -> State | None:
        """The state behind a loop; None when control cannot come out of it."""
        condition = loop.condition
        if self.streams and isinstance(condition, ir.Call) and condition.name in REPLAYS:
            return self._replayed(loop, condition, state)
        self._no_destructors(loop.before, loop.span)
        for one in loop.before:
            after = self.execute(one, state)
            if after is None:
                return None
            state = after
        trips = self._trips(loop, state)
        if trips is not None:
            return self._unrolled(loop, state, trips)
        return self._rolled(loop, state)

    def _replayed(self, loop: ir.Loop, call: ir.Call, state: State) -> State | None:
        """Statements that kesco makes a graph of: their work is given to a stream once each time control comes here."""
        values = [self.evaluate(state, argument) for argument in call.arguments[2:]]
        for role in (Role.CAPTURE, Role.REPLAY):
            site = self.site(state, call.name, SiteKind.SYNC, role, call.operation, call.span)
            site.stream = self.handle_of(values[0]) if values else None
            after = self.execute(loop.body, state) if role is Role.CAPTURE else state
            if after is None:
                return None
            state = after
        return state

    def _no_destructors(self, head: tuple[ir.Stmt, ...], span: Span) -> None:
        """An object in a statement's head is destroyed behind it, where that is not followed."""
        for node in (n for s in head for n in ir.walk(s) if isinstance(n, ir.Declare)):
            record = self.program.records.get(node.variable.type.record)
            if record is not None and record.destructor:
                self.stay_serial("an object with a destructor is declared in the head of a statement", span)

    def _trips(self, loop: ir.Loop, state: State) -> list[Iteration] | None:
        """The iterations of a loop whose counter has constant bounds, or None."""
        if loop.number not in self.paying:
            return None
        decided = self.unroll.get(loop.number)
        if decided is False or loop.tested_after or loop.condition is None or loop.step is None:
            return None
        counter = counter_of(loop)
        values = None
        if counter is not None and self._settled(loop, counter):
            inside = 1
            for one in self.now.iterations:
                inside *= one.trips
            start = state.store.read(Place(self.object_of(counter))).number
            step = step_of(loop.step, counter)
            if start is not None and step:
                limit = min(MAX_TRIPS, MAX_UNROLLED // inside)
                values = self._values(loop.condition, counter, start, step, state, limit)
        if decided is None and (self.now.generic or self.now.function.name == "main" or not self.now.function.here):
            self.unroll[loop.number] = values is not None
        elif decided is None:
            values = None
        if decided and values is None:  # sites of both kinds would stand for one text
            self.uncounted.add(loop.number)
        if values is None or counter is None:
            return None
        first, step = values[0] if values else 0, step_of(loop.step, counter) or 1
        return [Iteration(loop.number, counter.name, i, len(values), v, first, step) for i, v in enumerate(values)]

    def _settled(self, loop: ir.Loop, counter: ir.Variable) -> bool:
        """Whether counter and bounds change nowhere but in the loop's step, and no inner name hides the counter."""
        assert loop.condition is not None
        aliased = self.aliased()
        for node in ir.walk(loop.condition):
            if not isinstance(node, ir.Name) or node.variable.constant is not None:
                continue
            variable = node.variable
            local = variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER) and variable.type.shape is ir.Shape.INTEGER
            if not local or variable.key in aliased or changes(loop.body, variable.key):
                return False
            if self.object_of(variable) in self.escaped:
                return False
        if counter.key in aliased or any(i.counter == counter.name for i in self.now.iterations):
            return False
        declared = (n.variable for n in ir.walk(loop.body) if isinstance(n, ir.Declare))
        return all(v.name != counter.name for v in declared)

    def _values(
        self, condition: ir.Expr, counter: ir.Variable, start: int, step: int, state: State, limit: int
    ) -> list[int] | None:
        probe = state.fork()
        place = Place(self.object_of(counter))
        keep, self.now.host = (self.now.host, self.now.looked, self.now.asked), {}
        found: list[int] = []
        at = start
        try:
            while len(found) <= limit:
                probe.store.write((place,), Value(number=at))
                holds = self.evaluate(probe, condition).number if _simple(condition) else None
                if holds is None:
                    return None
                if not holds:
                    return found
                found.append(at)
                at += step
                if converted(at, counter.type) != at:
                    return None
        finally:
            self.now.host, self.now.looked, self.now.asked = keep
        return None

    def _unrolled(self, loop: ir.Loop, state: State, trips: list[Iteration]) -> State | None:
        outer = self.now.iterations
        place = Place(self.object_of(counter_of(loop) or _no_counter()))
        current: State | None = state
        left: list[State] = []
        for iteration in trips:
            if current is None:
                break
            current.store.write((place,), Value(number=iteration.value))
            self.now.iterations = (*outer, iteration)
            self.now.breaks.append([])
            self.now.continues.append([])
            current = self.execute(loop.body, current)
            for again in self.now.continues.pop():
                current = again.merge(current)
            left += self.now.breaks.pop()
        self.now.iterations = outer
        if current is not None:
            last = trips[-1].value + trips[-1].step if trips else None
            if last is not None:
                current.store.write((place,), Value(number=last))
        for one in left:
            current = one.merge(current)
        return current

    def _rolled(self, loop: ir.Loop, state: State) -> State | None:
        counters = self.enter_loop(loop, state)
        head = state
        counter = counter_of(loop)
        if counter is not None and loop.number not in self.paying:  # one round says what all do
            head.store.write((Place(self.object_of(counter)),), TOP)
        out: State | None = None
        self.rolled += 1
        for _ in range(_MAX_ROUNDS if self.rounds < _MAX_WORK else 1):
            self.rounds += 1
            edges = self._size()
            again, out = self._round(loop, head.fork(), counters)
            if again is None:
                break
            merged = again.merge(head)
            if merged.store == head.store and merged.frontier == head.frontier and self._size() == edges:
                break
            head = merged
        else:
            for activation in self.stack:  # what callers do with these values is not known either
                why = f"the values in a loop could not be followed to an end (line {loop.span.line})"
                activation.builder.serial_because = activation.builder.serial_because or why
        self.rolled -= 1
        if counters is not None:
            self.left_loop()
        return out

    def _size(self) -> int:
        return self.growth.size + len(self.escaped)

    def _round(self, loop: ir.Loop, state: State, counters: Counters | None) -> tuple[State | None, State | None]:
        """One trip: the state at the next test, and the state behind the loop."""
        out: State | None = None
        if not loop.tested_after:
            out = self._test(loop, state)
            if out is state:  # the condition is never true
                return None, out
        if counters is not None:
            self.begin_trip(loop, counters, state)
        begun = state.store.copy()
        self.now.breaks.append([])
        self.now.continues.append([])
        end = self.execute(loop.body, state)
        for again in self.now.continues.pop():
            end = again.merge(end)
        if end is not None:
            self.learned.look(loop, begun, end.store, [p for p, _ in counters.values] if counters else ())
            if self.learned.filing:
                end_trip(end.store)
        if counters is not None and end is not None:
            forget(end.store, counters.loop)
        for left in self.now.breaks.pop():
            if counters is not None:
                forget(left.store, counters.loop)
            out = left.merge(out)
        if end is not None and loop.step is not None:
            self.evaluate(end, loop.step)
            self.temporaries(end, loop.step, loop.span)
            self.flush_host(end)
        if loop.tested_after and end is not None:
            done = self._test(loop, end)
            if done is not None:
                out = done.fork().merge(out)
                if done is end:
                    end = None
        return end, out

    def _test(self, loop: ir.Loop, state: State) -> State | None:
        """The state when the condition fails: None if it cannot, `state` itself if it always does."""
        if loop.condition is None:
            return None
        value = self.decided(state, loop.condition)
        self.temporaries(state, loop.condition, loop.span)
        self.flush_host(state)
        if value.number is None:
            return state.fork()
        return None if value.number else state


def counter_of(loop: ir.Loop) -> ir.Variable | None:
    """The counter of a counting loop, if its body leaves it alone; the text cannot name one over a range."""
    step = loop.step
    if loop.ranged or not isinstance(step, ir.Assign) or not isinstance(step.target, ir.Name):
        return None
    variable = step.target.variable
    if variable.scope not in (ir.Scope.LOCAL, ir.Scope.PARAMETER) or variable.type.shape is not ir.Shape.INTEGER:
        return None
    return None if changes(loop.body, variable.key) else variable


def step_of(step: ir.Expr | None, counter: ir.Variable) -> int | None:
    """By how much a counting loop counts, where that is a number."""
    if not isinstance(step, ir.Assign):
        return None
    value = step.value.value if isinstance(step.value, ir.Constant) else None
    if isinstance(step.value, ir.Name):
        value = step.value.variable.constant
    if step.operator in ("+", "-") and value is not None:
        return value if step.operator == "+" else -value
    return None


def _simple(expression: ir.Expr) -> bool:
    """Whether evaluating a condition again and again has no effect."""
    if isinstance(expression, ir.Binary):
        return _simple(expression.left) and _simple(expression.right)
    if isinstance(expression, ir.Cast):
        return _simple(expression.operand)
    return isinstance(expression, (ir.Name, ir.Constant, ir.Literal))


def _no_counter() -> ir.Variable:
    raise AssertionError("an unrolled loop has a counter")

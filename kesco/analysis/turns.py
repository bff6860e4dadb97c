"""Variables that change by the same amount in each trip of a loop whose trips are not told apart.

In: a loop and the state before it. Out: a *counter* (`poly.Turn`) for each such variable, as its value at the beginning
of a trip; marks in the region where the loop is entered and where a trip begins; and states from which the counters are
taken out where they would mean another trip. Apart from the walk of loops because it is about values only: what the
counters are good for is decided by whoever compares two accesses (`parts`, and the proof).

1. A variable counts if one assignment of the loop changes it, which adds or takes away what is the same in all trips,
   and which runs once in each trip: the loop's own step, or a statement of its body that nothing leaps over.
2. Signed variables do not overflow. Unsigned ones count only where the loop's test shows that they do not.
3. The size of a container counts where each trip was seen to change it by the same number (`growing`).
4. A counter means the trip that is walked. So it is forgotten where a trip ends, where the loop is left and where the
   function returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kesco.analysis.calls import Calls
from kesco.analysis.extents import distance
from kesco.analysis.integers import holds, kind_of, size_of
from kesco.analysis.memory import Place, Store, Value
from kesco.analysis.references import aliased, referred
from kesco.analysis.state import State
from kesco.ir import program as ir
from kesco.ir.flow import Mark, Role, SiteKind
from kesco.ir.poly import Poly, Symbol, Turn, of

_FAR = 1 << 63


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of one loop: what variables hold when a trip begins."""

    loop: str
    values: tuple[tuple[Place, Value], ...]


@dataclass(frozen=True, slots=True)
class _Update:
    """The one assignment that changes a variable in a loop: ``variable += by`` or ``-=``."""

    variable: ir.Variable
    operator: str
    by: ir.Expr


class Turns(Calls):
    """Follows counters; loops are left to the subclass."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._aliased: dict[str, frozenset[str]] = {}
        self._updates: dict[int, tuple[_Update, ...]] = {}
        self._working: dict[int, bool] = {}
        self._open: list[str] = []  # loops whose trips are marked, around what is walked

    def aliased(self) -> frozenset[str]:
        """The variables of the function whose address is taken, or that have another name."""
        function = self.now.function
        found = self._aliased.get(function.key)
        if found is None:
            found = self._aliased[function.key] = aliased(function.body, self.references)
        return found

    def in_loops(self) -> tuple[str, ...]:
        """The loops around what is walked whose trips are marked, those of callers too."""
        return tuple(self._open)

    # ---- marks ------------------------------------------------------------------------------------------------------

    def enter_loop(self, loop: ir.Loop, state: State) -> Counters | None:
        """The counters of a loop that control comes to; then its trips are marked until `left_loop`.

        None where it has none, nor work of its own: nobody would ask how one trip stands to another.
        """
        if not self.rolled:
            self._name_integers(loop, state)
        trips = ",".join(f"{i.loop}.{i.index}" for i in self.now.iterations)
        key = f"{loop.number}" + (f"[{trips}]" if trips else "")
        if key in self._open:
            return None
        grown = self.learned.counters(loop, key, tuple(self._open), state.store)
        values = (*self._counters(loop, state, key), *grown)
        if not values and not self._has_work(loop):
            return None
        self._open.append(key)
        self.now.turns.append(key)
        self._mark(loop, state, key, Mark.ENTERS)
        return Counters(key, values)

    def _has_work(self, loop: ir.Loop) -> bool:
        """Whether a loop of this function launches, in its own text."""
        found = self._working.get(loop.number)
        if found is None:
            found = any(isinstance(node, ir.Launch) for node in ir.walk(loop.body))
            self._working[loop.number] = found
        return found

    def begin_trip(self, loop: ir.Loop, counters: Counters, state: State) -> None:
        """A trip begins: the counters have the values that they have in it."""
        self._mark(loop, state, counters.loop, Mark.TURNS)
        for place, value in counters.values:
            state.store.write((place,), value)

    def left_loop(self) -> None:
        """The loop that was entered last has been walked."""
        self._open.pop()
        self.now.turns.pop()

    def _mark(self, loop: ir.Loop, state: State, key: str, mark: Mark) -> None:
        self.flush_host(state)
        name = f"{mark.value} {key}"
        where = (-2 - loop.span.start, name, self.now.iterations)
        draft, state.frontier = self.now.builder.add(
            where, name, SiteKind.HOST_USE, Role.HOST, loop.span, state.frontier
        )
        draft.mark, draft.loop = mark, key

    # ---- counters ---------------------------------------------------------------------------------------------------

    def _name_integers(self, loop: ir.Loop, state: State) -> None:
        """Integers that a loop mentions and of which nothing is known get a name before it: in it they would not."""
        seen: set[str] = set()
        for node in ir.walk(loop):
            if isinstance(node, ir.Name) and node.variable.key not in seen:
                seen.add(node.variable.key)
                there = state.store.has(Place(self.object_of(node.variable)))
                if there and node.variable.constant is None and self._is_own(state, node.variable):
                    self.evaluate(state, node)

    def _counters(self, loop: ir.Loop, state: State, key: str) -> Iterator[tuple[Place, Value]]:
        updates = self._updates.get(loop.number)
        if updates is None:
            updates = self._updates[loop.number] = tuple(_updates(loop))
        for update in updates:
            variable = update.variable
            place = Place(self.object_of(variable))
            if variable.key in self.aliased() or place.object in self.escaped | state.store.clobbered:
                continue
            if not self._is_fixed(loop, state, update.by):
                continue
            by = self.evaluate(state.fork(), update.by).integer
            start = state.store.read(place)
            if by is None or any(c.turn is not None and c.turn.loop not in self._open for c in by.counters):
                continue
            by = by if update.operator == "+" else by.times(-1)
            if variable.type.shape is ir.Shape.POINTER:
                value = self._moving(variable, start, by, key)
            else:
                value = self._counting(loop, state, update, start, by, key)
            if value is not None:
                yield place, value

    def _is_fixed(self, loop: ir.Loop, state: State, expression: ir.Expr) -> bool:
        """Whether an integer is the same each time it is evaluated in a loop."""
        changed = _assigned(loop)
        for node in ir.walk(expression):
            if isinstance(node, ir.Name):
                variable = node.variable
                own = self._is_own(state, variable) and variable.key not in self.aliased()
                if variable.constant is None and (not own or changed[variable.key]):
                    return False
            elif not isinstance(node, (ir.Constant, ir.Cast, ir.Binary)):
                return False
        return True

    def _moving(self, variable: ir.Variable, start: Value, by: Poly, key: str) -> Value | None:
        """A pointer that moves on in each trip."""
        step = distance(size_of(variable.type.element), by)
        if step is None or not start.places or start.unknown or start.fields:
            return None
        if any(p.offset is None or p.path for p in start.places):
            return None
        moved = of(Symbol(f"{variable.name}@{key}", -_FAR, _FAR, turn=Turn(key, step, tuple(self._open))))
        return replace(start, places=frozenset(replace(p, offset=_plus(p, moved)) for p in start.places))

    def _counting(self, loop: ir.Loop, state: State, update: _Update, start: Value, by: Poly, key: str) -> Value | None:
        """An integer that grows or shrinks in each trip."""
        declared = update.variable.type
        ends, given = holds(declared), kind_of(update.by)
        if ends is None or ends[1] < (1 << 31) - 1:  # what is narrower is converted, which may wrap around
            return None
        if not isinstance(update.by, ir.Constant) and (given is None or _plain(given) != _plain(declared)):
            return None
        if ends[0] == 0 and not self._stays_below(loop, state, update, by, ends[1]):
            return None
        low, high = ends
        if start.integer is not None and by.bounds()[0] >= 0:
            low = max(low, start.integer.bounds()[0])
        if start.integer is not None and by.bounds()[1] <= 0:
            high = min(high, start.integer.bounds()[1])
        turn = Turn(key, by, tuple(self._open), update.variable.name)
        return Value(formula=of(Symbol(f"{update.variable.name}@{key}", low, max(low, high), turn=turn)))

    def _stays_below(self, loop: ir.Loop, state: State, update: _Update, by: Poly, most: int) -> bool:
        """Whether a loop's test, ``variable < limit``, shows that an unsigned variable does not wrap around."""
        test = loop.condition
        if loop.tested_after or not isinstance(test, ir.Binary) or test.operator != "<" or by.bounds()[0] < 0:
            return False
        left, kind = test.left, _plain(update.variable.type)
        if isinstance(left, ir.Cast) and _plain(left.type) == kind:
            left = left.operand
        right = kind_of(test.right)
        if not isinstance(left, ir.Name) or left.variable.key != update.variable.key:
            return False
        if not isinstance(test.right, ir.Constant) and (right is None or _plain(right) != kind):
            return False
        limit = most
        if self._is_fixed(loop, state, test.right):
            known = self.evaluate(state.fork(), test.right).integer
            limit = limit if known is None else min(limit, known.bounds()[1])
        return limit - 1 + by.bounds()[1] <= most


def _plus(place: Place, moved: Poly) -> Poly:
    assert place.offset is not None
    return place.offset + moved


def _plain(kind: ir.Type) -> str:
    return kind.spelling.replace("const ", "")


def _assigned(loop: ir.Loop) -> Counter[str]:
    """How many assignments of a loop may change each variable."""
    parts: list[ir.Expr | ir.Stmt] = [loop.body, *(p for p in (loop.condition, loop.step) if p is not None)]
    found: Counter[str] = Counter()
    nodes = [n for part in parts for n in ir.walk(part)]
    for node in nodes:
        if isinstance(node, ir.Assign):
            found.update(referred(node.target))
        elif isinstance(node, ir.Declare):
            found.update((node.variable.key,))
    return found


def _updates(loop: ir.Loop) -> Iterator[_Update]:
    """The variables that one assignment changes, once in each trip."""
    if _enters_midway(loop.body):
        return
    changed = _assigned(loop)
    once = list(_flat(loop.step)) if loop.step is not None else []
    if isinstance(loop.body, ir.Block) and not any(
        isinstance(n, ir.Leave) and n.how == "continue" for n in ir.walk(loop.body)
    ):
        once += [s.expression for s in loop.body.body if isinstance(s, ir.Evaluate)]
    for one in once:
        if not isinstance(one, ir.Assign) or not isinstance(one.target, ir.Name):
            continue
        variable, operator, by = one.target.variable, one.operator, one.value
        if not operator and isinstance(by, ir.Binary) and isinstance(by.left, ir.Name):  # i = i + 1
            if by.left.variable.key != variable.key:
                continue
            operator, by = by.operator, by.right
        local = variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER) and not variable.type.volatile
        shape = variable.type.shape in (ir.Shape.INTEGER, ir.Shape.POINTER)
        if operator in ("+", "-") and local and shape and changed[variable.key] == 1:
            yield _Update(variable, operator, by)


def _flat(expression: ir.Expr) -> Iterator[ir.Expr]:
    """What a comma puts one behind the other."""
    if isinstance(expression, ir.Binary) and expression.operator == ",":
        yield from _flat(expression.left)
        yield from _flat(expression.right)
    else:
        yield expression


def _enters_midway(statement: ir.Stmt) -> bool:
    """Whether a case of a switch around a loop may stand in its body."""
    if isinstance(statement, ir.Case):
        return True
    if isinstance(statement, ir.Switch):
        return False
    inner = (n for n in ir.children(statement) if isinstance(n, ir.Stmt))
    return any(map(_enters_midway, inner))


# ---- forgetting -----------------------------------------------------------------------------------------------------


def forget(store: Store, loop: str) -> None:
    """Take the counters of a loop out of all that a store holds."""
    for one, entries in list(store.objects.items()):
        for value in entries.values():  # of most objects nothing depends on a counter
            if _depends(value, loop):
                store.objects[one] = {path: without(kept, loop) for path, kept in entries.items()}
                break


def without(value: Value, loop: str) -> Value:
    """A value that says nothing that depends on a counter of the loop."""
    if not _depends(value, loop):
        return value
    places = frozenset(_without(p, loop) for p in value.places)
    fields = tuple((path, without(part, loop)) for path, part in value.fields)
    formula = None if _of_trip(value.formula, loop) else value.formula
    return replace(value, places=places, fields=fields, formula=formula)


def _without(place: Place, loop: str) -> Place:
    offset, index = (None if _of_trip(poly, loop) else poly for poly in (place.offset, place.index))
    return place if (offset, index) == (place.offset, place.index) else replace(place, offset=offset, index=index)


def _depends(value: Value, loop: str) -> bool:
    """Whether a value or a part of it says something that depends on a counter of the loop."""
    if value.formula is not None and _of_trip(value.formula, loop):
        return True
    for place in value.places:
        if _of_trip(place.offset, loop) or _of_trip(place.index, loop):
            return True
    for _, part in value.fields:  # noqa: SIM110 (this runs for all values of a program in each trip of each loop)
        if _depends(part, loop):
            return True
    return False


def _of_trip(poly: Poly | None, loop: str) -> bool:
    return poly is not None and any(c.turn is not None and c.turn.loop == loop for c in poly.counters)

"""Containers of pointers: what constructors and members of a ``std::vector`` do to its elements.

In: a call that the front-end marked by what it does with a container. Out: the new elements and size, in the store.
What reads elements is an ordinary expression and not seen here.

1. The elements are part of the object, as those of an array are, so a copy is one of their own. 2. Where the size is
known an element is appended at a place of its own, else it may be any. 3. A container that is moved hands over its
storage: where something points into it, neither container is followed from then on.
"""

from __future__ import annotations

from kesco.analysis.launches import Launches
from kesco.analysis.memory import NOTHING, TOP, Path, Place, Value, is_certain, number
from kesco.analysis.state import State
from kesco.ir import program as ir
from kesco.ir.types import ELEMENTS, SIZE


class Containers(Launches):
    """Walks calls that work on containers; other calls are left to the subclass."""

    def container(self, state: State, call: ir.Call) -> Value:
        """A constructor or member that the front-end knows."""
        arguments = tuple(a for a in call.arguments if a != ir.Literal("default"))
        if call.container in ("own", "take", "retake", "reset", "release"):
            return self._owner(state, call, arguments)
        if call.constructs:
            return self._content(state, call, arguments)
        assert call.receiver is not None
        if call.container == "fields":
            return self._copy_fields(state, call, call.receiver, arguments[0])
        places, unknown = self.places(state, call.receiver)
        if call.container in ("list", "copy", "move"):
            value = self._content(state, call, arguments) | self._doubt(state, places)
            self.assign(state, places, unknown, value if is_certain(places) else _any_size(value))
            return Value(places, None, unknown)
        values = self.in_any_order(state, arguments, [self.evaluate(state, a) for a in arguments])
        size = self.size_of(state, places, unknown)
        if call.container == "append":
            at = frozenset(p.within(ELEMENTS).within(size) for p in places)
            self._set_size(state, places, unknown, None if size is None else size + 1)
            self.assign(state, at, unknown, values[0] if values else number(0))
            return Value(at, None, unknown)
        if call.container == "last":
            last = size - 1 if size else None
            return Value(frozenset(p.within(ELEMENTS).within(last) for p in places), None, unknown)
        if call.container == "pop":
            self._set_size(state, places, unknown, size - 1 if size else None)
        elif call.container == "clear":
            if is_certain(places):
                self.assign(state, places, unknown, self._doubt(state, places))
            self._set_size(state, places, unknown, 0)
        elif call.container == "resize":
            self._set_size(state, places, unknown, values[0].number if values else None)
            if len(values) > 1:
                every = frozenset(p.within(ELEMENTS).within(None) for p in places)
                self.assign(state, every, unknown, values[1])
        return NOTHING

    def _copy_fields(self, state: State, call: ir.Call, target: ir.Expr, source: ir.Expr) -> Value:
        """One struct is assigned to another; as a part of a derived one, which keeps the rest, it is not followed."""
        value = self.evaluate(state, source)
        declared = call.type.element or call.type if call.type is not None else None
        value = value if declared is None else self.made(state, declared, value)
        places, unknown = self.places(state, target)
        self.assign(state, places, unknown, value)
        if declared is None or declared.record in self.bases or not declared.record:
            state.store.clobber(p.object for p in places)
        return Value(places, None, unknown)

    def _owner(self, state: State, call: ir.Call, arguments: tuple[ir.Expr, ...]) -> Value:
        """What a ``unique_ptr`` is given; its deleter is code that is not seen."""
        if call.container in ("take", "retake"):
            given = self._taken(state, arguments[0], moved=True, left=number(0))
        else:
            values = self.in_any_order(state, arguments, [self.evaluate(state, one) for one in arguments])
            self.escape_values(state, *values[1:])  # the deleter, with what it may know
            first = values[0] if values else number(0)
            given = Value(fields=(((ELEMENTS,), Value(first.places, first.number, first.unknown)),))
        if call.receiver is None:
            return given
        places, unknown = self.places(state, call.receiver)
        before = self.read_all(state, frozenset(p.within(ELEMENTS) for p in places), unknown)
        self.assign(state, places, unknown, given)
        if call.container == "release":
            return before
        if before != number(0):
            self.escape_values(state, before)
            self.run_unseen(state, call.name, call.span, call.operation)
        return Value(places, None, unknown)

    def _doubt(self, state: State, places: frozenset[Place]) -> Value:
        """A container of which nothing is known may share its storage: new content does not end that."""
        return TOP if any(state.store.read(p).unknown for p in places) else NOTHING

    def size_of(self, state: State, places: frozenset[Place], unknown: bool) -> int | None:
        """How many elements a container has, where that is known."""
        if unknown or not is_certain(places):
            return None
        (place,) = places
        return self.read(state, place.within(SIZE)).number

    def _set_size(self, state: State, places: frozenset[Place], unknown: bool, size: int | None) -> None:
        at = frozenset(p.within(SIZE) for p in places)
        self.assign(state, at, unknown, NOTHING if size is None or not is_certain(at) else number(size))

    def _content(self, state: State, call: ir.Call, arguments: tuple[ir.Expr, ...]) -> Value:
        """What a container holds that is made from, or assigned, these arguments."""
        if call.container == "list":
            (given,) = arguments
            items = given.items if isinstance(given, ir.InitList) else ()
            values = self.in_any_order(state, items, [self.evaluate(state, one) for one in items])
            return _holding(number(len(values)), [((i,), v) for i, v in enumerate(values)])
        if call.container in ("copy", "move"):
            return self._taken(state, arguments[0], moved=call.container == "move")
        values = self.in_any_order(state, arguments, [self.evaluate(state, one) for one in arguments])
        size = values[0] if values else number(0)
        return _holding(size, [((None,), one) for one in values[1:]])

    def _taken(self, state: State, source: ir.Expr, *, moved: bool, left: Value = TOP) -> Value:
        """The elements of another container: copied, or handed over with their storage."""
        if not moved or (isinstance(source, ir.Call) and not source.reference):
            value = self.evaluate(state, source)
            return value if value.fields else value | TOP
        places, unknown = self.places(state, source)
        value = self.read_all(state, places, unknown)
        if unknown or not is_certain(places) or self.is_pointed_into(state, places):
            self.escape_values(state, Value(places))
            state.store.clobber(p.object for p in places)
            if unknown:
                self.clobber_escaped(state)
            return TOP
        gone = left if left is TOP else Value(fields=(((ELEMENTS,), left),))
        self.assign(state, places, False, gone)
        return value if value.fields else value | TOP

    def is_pointed_into(self, state: State, containers: frozenset[Place]) -> bool:
        """Whether something may hold the address of one of these objects, or of an element of it."""
        objects = {p.object for p in containers}
        if objects & self.escaped:
            return True
        return any(
            p.object in objects
            for one, held in state.store.items()
            if not self.is_over(one)
            for value in held.values()
            for p in value.every_place()
        )

    def is_over(self, one: object) -> bool:
        """Left to the subclass."""
        raise NotImplementedError


def _holding(size: Value, items: list[tuple[Path, Value]]) -> Value:
    counted = Value(number=size.number) if size.number is None or size.number >= 0 else NOTHING
    fields: list[tuple[Path, Value]] = [((SIZE,), counted)]
    for path, value in items:
        fields.append(((ELEMENTS, *path), Value(value.places, value.number, value.unknown)))
    return Value(fields=tuple(sorted(fields, key=lambda item: tuple(map(str, item[0])))))


def _any_size(value: Value) -> Value:
    """The same for a container that is only one of several that may be meant."""
    fields = tuple((p, NOTHING if p == (SIZE,) else v) for p, v in value.fields)
    return Value(value.places, value.number, value.unknown, fields)

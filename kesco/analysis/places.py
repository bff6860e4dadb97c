"""Where lvalues are: expressions of the host program → places, and reading and writing there.

In: an lvalue and the current state. Out: the places it may be, and whether it may be anywhere else. Apart from the
evaluation of values because soundness of all stores rests on it: a store to a place that is not certain only adds, and
one through an unknown pointer makes everything that could be meant unknown.
"""

from __future__ import annotations

from dataclasses import replace

from kesco.analysis.escapes import Escapes
from kesco.analysis.extents import distance
from kesco.analysis.families import filed, is_settled
from kesco.analysis.growing import Learned
from kesco.analysis.integers import ZERO, pointee, size_of
from kesco.analysis.memory import NOTHING, OVERLAID, TOP, Object, ObjectKind, Place, Value, pointer
from kesco.analysis.number_containers import is_of_numbers
from kesco.analysis.numbering import given, made_for_variables
from kesco.analysis.state import KESCO, Activation, State, is_kesco, kesco_handle
from kesco.ir import program as ir
from kesco.ir.access import UNSEEN_HOST, AccessMode, Buffer, BufferKind
from kesco.ir.poly import Poly
from kesco.ir.volatiles import is_volatile

_HOST_REACHABLE = {BufferKind.MANAGED, BufferKind.PINNED}


class Places(Escapes):
    """Finds, reads and writes places; values of expressions are left to the subclass."""

    def __init__(self, program: ir.Program) -> None:
        super().__init__(program)
        self.has_managed = program.has("managed")
        self.streams = False  # whether streams and events in the text are followed (to verify it) or an obstacle
        self.ambiguous = {"", *(f.name for r in program.records.values() if r.ambiguous for f in r.fields)}
        self.stack: list[Activation] = []
        self.guarded: dict[str, set[Place]] = {}  # entry values whose distinctness is only assumed, by name
        self.strays = False  # whether that becomes sites, too, which the host does to memory that is not known
        self.spoilt: set[int] = set()  # stores to zero and memsets that may be something else, too
        self.looks = False  # whether places that may show how far the device is become sites
        self.watched: set[Buffer] = set()  # what the host may look at again and again, to see how far the device is
        self.reached: dict[str, Buffer] = {}  # memory of the host that the device is given, by its object
        self.volatile: set[int] = set()  # the operations that are given a pointer to volatile memory
        self.learned = Learned()  # for the next walk
        self.deciding = self.watching = False  # it is decided where to go on, by what is read, which is volatile
        self.rolled = 0  # loops around the current point whose iterations are not told apart

    @property
    def now(self) -> Activation:
        """The function being walked."""
        return self.stack[-1]

    # ---- objects ----------------------------------------------------------------------------------------------------

    def object_of(self, variable: ir.Variable) -> Object:
        """The storage of a variable."""
        found = self.objects.get(variable.key)
        if found is None:
            buffer = None
            if variable.scope is ir.Scope.SYMBOL:
                key, kind = variable.mangled or variable.key, BufferKind.SYMBOL
                apart, fixed = not self.has_managed and not variable.managed, self.program.is_fixed(key)
                buffer = Buffer(key, variable.name, kind, variable.span, apart=apart, fixed=fixed)
            entry = variable.scope in (ir.Scope.GLOBAL, ir.Scope.STATIC)
            name = f"::{variable.qualified}" if variable.scope is ir.Scope.GLOBAL else variable.name
            found = Object(variable.key, name, ObjectKind.VARIABLE, buffer, entry=entry)
            self.objects[variable.key] = found
            self.variables[variable.key] = variable
            if self.is_made_by_code(variable.type):  # which may have kept its address
                self.escaped.add(found)
        return found

    def is_made_by_code(self, kind: ir.Type | None) -> bool:
        """Whether constructors of the user's make or copy what has a type."""
        while kind is not None and kind.shape is ir.Shape.ARRAY:
            kind = kind.element
        record = self.program.records.get(kind.record) if kind is not None and kind.shape is ir.Shape.RECORD else None
        return record is not None and not record.plain and not record.standard

    def entry_value(self, place: Place, promised: bool = False) -> Value:
        """What an unwritten place of a parameter or global held when the function was entered.

        It counts as an allocation of its own; the region's guards make the program check that at run time, unless
        the author `promised` it with ``__restrict__``.
        """
        through = place.object.key.startswith("this:*")  # what a pointer that came in points to
        name = place.name.replace(".", "->", 1) if through else place.name.replace("this.", "this->", 1)
        if not promised:
            self.guarded.setdefault(name, set()).add(place)
        key = f"entry:{self.now.function.key}:{place.object.key}:{place.path}"
        buffer = Buffer(key, name, BufferKind.ENTRY)
        return pointer(Place(Object(key, name, ObjectKind.BUFFER, buffer), (), ZERO))

    # ---- reading and writing ----------------------------------------------------------------------------------------

    def read(self, state: State, place: Place, kind: ir.Type | None = None) -> Value:
        """The value at a place, read as `kind`; the host touching memory that the device can reach is noted."""
        self.touch(place, AccessMode.READ)
        if place.object is KESCO:
            return kesco_handle(place)
        buffer = place.object.kind is ObjectKind.BUFFER
        if place.object.entry and not buffer and not state.store.has(place):
            if place.object in state.store.clobbered or None in place.path or state.store.covers(place):
                return TOP
            if kind is not None and kind.shape is ir.Shape.INTEGER:
                return TOP  # one that comes in as an argument is not taken for an address either
            return self.unwritten(place)
        if not state.store.has(place):
            self.escape_unread(state, place)
            return TOP
        return state.store.read(place)

    def unwritten(self, place: Place) -> Value:
        """The value of a global or parameter that nothing here has written yet."""
        shared = place.object.key in self.static_keys or self._is_whole(place)
        return self.entry_value(place) if self.now.generic and not shared else TOP

    def _is_whole(self, place: Place) -> bool:
        """Whether a struct or an array is at a place: it holds several pointers, and is none to be compared.

        Nor is what no member's name leads to: a member of what an object was only taken for, or of a union without a
        name.
        """
        key = place.object.key
        variable = self.variables.get(key.removeprefix("this:&").removeprefix("this:*"))
        shape = variable.type if variable is not None else None
        while shape is not None and shape.shape is ir.Shape.REFERENCE:
            shape = shape.element
        if key.startswith("this:*") and shape is not None:
            shape = shape.element
        record = shape.record if shape is not None and shape.shape is ir.Shape.RECORD else ""
        if variable is None and key.startswith("this:"):
            if not place.path:
                return True
            record = self.now.function.method_of
        for step in place.path:
            if shape is not None and shape.shape is ir.Shape.ARRAY:
                shape = shape.element
            else:
                known = self.program.records.get(record)
                shape = next((f.type for f in known.fields if f.name == step), None) if known is not None else None
                if known is not None and ((shape is None and known.fields) or not str(step).isidentifier()):
                    return True
            record = shape.record if shape is not None and shape.shape is ir.Shape.RECORD else ""
        return shape is not None and shape.shape in (ir.Shape.RECORD, ir.Shape.ARRAY)

    static_keys: frozenset[str] = frozenset()

    def touch(self, place: Place, mode: AccessMode) -> None:
        """Note that the host itself reads or writes a place."""
        buffer = place.object.buffer
        unseen = place.object.entry and self.stack[0].generic  # work that is not seen may copy to it
        self.go_outside(unseen or (buffer is not None and buffer.kind is BufferKind.ENTRY))
        if buffer is not None and buffer.kind in _HOST_REACHABLE:
            self.now.host[buffer] = self.now.host.get(buffer, AccessMode.NONE) | mode
        if buffer is None:
            buffer = self.reached.get(place.object.key)
        if buffer is not None and mode & AccessMode.READ and not buffer.on_device:
            self.now.seen.add((buffer, AccessMode.READ, self.watching))
        if buffer is not None and mode & AccessMode.WRITE and buffer.kind in (BufferKind.HOST, BufferKind.ENTRY):
            self.now.seen.add((buffer, AccessMode.WRITE, False))

    def see(self, certain: bool) -> None:
        """Note that the host may look at memory that is not known, unless a call of CUDA has failed."""
        if certain and not self.now.failing:
            self.now.seen.add((UNSEEN_HOST, AccessMode.READ, False))

    def go_outside(self, certain: bool = True, *, itself: bool = False) -> None:
        """Note that the host may touch memory that its function did not make, unless a call of CUDA has failed.

        What ran before ``main`` is nothing. Where it does so `itself`, that may be what the device reaches, too.
        """
        if not certain or self.now.failing:
            return
        if self.strays or (itself and self.learned.shares):
            self.now.host[UNSEEN_HOST] = AccessMode.READ_WRITE
        self.now.outside = self.now.outside or self.now.function.name != "main"

    def look(self) -> None:
        """Note that something here may show how far the device is, unless a call of CUDA has failed."""
        if self.looks and not self.now.failing:
            self.now.looked = True

    def read_all(self, state: State, places: frozenset[Place], unknown: bool, kind: ir.Type | None = None) -> Value:
        """The union of what these places hold; unknown when the places themselves are."""
        result = TOP if unknown or not places else NOTHING
        self.go_outside(unknown or not places, itself=True)
        self.see(unknown or not places)
        for place in places:
            found = self.read(state, place, kind)
            result = result | found if result is not NOTHING else found
        return result

    def assign(self, state: State, places: frozenset[Place], unknown: bool, value: Value) -> None:
        """Store a value; a store through an unknown pointer may change everything that has escaped."""
        for place in places:
            self.touch(place, AccessMode.WRITE)
        if len(places) == 1:
            place = next(iter(places))
            self.learned.filing |= made_for_variables(value, place)
            value = place.renumbered(given(state.store, place, value), filed)
        state.store.write(places, self.settled(value))
        self._overlapping(state, places)
        if any(p.object.buffer is not None and p.object.buffer.kind is BufferKind.ENTRY for p in places):
            unknown = True  # what came in from outside may overlap on the host's side
        self.escape_stored(state, places, value)
        if unknown or not places:
            self.go_outside(itself=True)
            self.escape_values(state, value)
            state.store.clobber(p.object for p in places)
            self.clobber_escaped(state)

    def settled(self, value: Value) -> Value:
        """A value as it is stored: in a loop whose trips are not told apart a pointer that moves has no known place.

        Else a pointer that walks through a buffer would be somewhere new in each round of the analysis.
        """
        known = (poly for p in value.every_place() for poly in (p.offset, p.index) if poly is not None)
        return value.elsewhere(_settled) if self.rolled and not all(map(is_settled, known)) else value

    def fixed(self, variable: ir.Variable, value: Value) -> Value:
        """A value as a variable begins with it; pointers and references begin anew wherever they are declared."""
        return value if variable.type.shape in (ir.Shape.POINTER, ir.Shape.REFERENCE) else self.settled(value)

    def _overlapping(self, state: State, places: frozenset[Place]) -> None:
        """``*this`` and what parameters refer to, as it was at entry, may be each other or global objects."""
        written = {p.object for p in places}
        for one in (o for o in written if o.entry):
            outside = {o for o in self.escaped if o.entry} | {p.object for a in self.stack for p in a.this}
            state.store.clobber(o for o in outside | state.store.objects.keys() if o != one and self._may_be(o, one))
            if one.key.startswith("this:"):
                state.store.clobber(o for k, o in self.objects.items() if self._is_record(k) and o.entry)

    def _may_be(self, one: Object, other: Object) -> bool:
        """Whether one of two objects that came from outside may be, or be a part of, the other."""
        kinds = {o.key.partition(":")[0] for o in (one, other)}
        if one.buffer is not None and one.buffer.kind is BufferKind.ENTRY:
            return True
        if "this" not in kinds or not one.entry:
            return False
        if len(kinds) == 1:
            return True
        return self._is_record(one.key) or self._is_record(other.key)

    def _is_record(self, key: str) -> bool:
        shape = one.type if (one := self.variables.get(key)) is not None else None
        while shape is not None and shape.shape is ir.Shape.ARRAY:
            shape = shape.element
        return shape is not None and shape.shape is ir.Shape.RECORD

    # ---- lvalues ----------------------------------------------------------------------------------------------------

    def places(self, state: State, expression: ir.Expr) -> tuple[frozenset[Place], bool]:
        """Where an lvalue may be, and whether it may be anywhere else besides."""
        found, unknown = self._places(state, expression)
        if is_volatile(expression):
            self.look()
            self.watched |= {p.object.buffer for p in found if p.object.buffer is not None}
            self.see(unknown or not found)
        return found, unknown

    def _places(self, state: State, expression: ir.Expr) -> tuple[frozenset[Place], bool]:
        if isinstance(expression, ir.Name):
            place = frozenset((Place(self.object_of(expression.variable)),))
            return self._bound(state, place) if expression.variable.type.shape is ir.Shape.REFERENCE else (place, False)
        if isinstance(expression, ir.Select):
            return self._select(state, expression)
        if isinstance(expression, ir.Subscript):
            return self._subscript(state, expression)
        if isinstance(expression, ir.Dereference):
            if isinstance(expression.pointer, ir.Literal) and expression.pointer.text == "this":
                return self.now.this, not self.now.this
            value = self.evaluate(state, expression.pointer)
            return value.places, value.unknown or not value.places
        if isinstance(expression, ir.Cast):  # a new value, or the old place by another type: both are possible
            places, unknown = self.places(state, expression.operand)
            return places, unknown or not expression.adds_const
        if isinstance(expression, ir.Decay):
            return self.places(state, expression.array)
        if isinstance(expression, ir.Binary) and expression.operator == ",":
            self.evaluate(state, expression.left)
            return self.places(state, expression.right)
        if isinstance(expression, ir.Assign):
            return self._assigned(state, expression)
        if isinstance(expression, ir.Branch):
            self.evaluate(state, expression.condition)
            other = state.fork()
            a, b = self.places(state, expression.then), self.places(other, expression.other)
            state.store, state.frontier = (merged := state.merge(other)).store, merged.frontier
            return a[0] | b[0], a[1] or b[1]
        if isinstance(expression, ir.Call):
            value = self.call(state, expression)
            if is_kesco(expression.name) and self.streams:
                return value.places, False
            if expression.reference:
                if not (value.places or is_of_numbers(expression)):  # std::max: to an argument, perhaps
                    element = expression.standard and expression.name.endswith(("::operator[]", "::at"))
                    self.escape_names(state, (expression.receiver if element else None) or expression)
                return value.places, value.unknown or not value.places
            return self._temporary(state, value, expression.operation), False
        self.evaluate(state, expression)
        self.escape_names(state, expression)
        return frozenset(), True

    def _assigned(self, state: State, expression: ir.Assign) -> tuple[frozenset[Place], bool]:
        """An assignment as an lvalue is its target, unless finding that again would repeat an effect."""
        self.evaluate(state, expression)
        if any(isinstance(n, (ir.Assign, ir.Call)) for n in ir.walk(expression.target)):
            self.escape_names(state, expression)
            return frozenset(), True
        return self.places(state, expression.target)[0], expression.post

    def escape_names(self, state: State, expression: ir.Expr) -> None:
        """An lvalue that is not followed may be any of the variables it mentions."""
        for node in ir.walk(expression):
            if isinstance(node, ir.Name):
                self.escape_values(state, Value(frozenset((Place(self.object_of(node.variable)),))))
                bound, _ = self.places(state, node)
                self.escape_values(state, Value(bound))

    def _bound(self, state: State, references: frozenset[Place]) -> tuple[frozenset[Place], bool]:
        """What references at these places refer to."""
        bound = NOTHING
        for place in references:
            bound = bound | (state.store.read(place) if state.store.has(place) else TOP)
        return bound.places, bound.unknown or not bound.places

    def _temporary(self, state: State, value: Value, operation: int) -> frozenset[Place]:
        place = Place(Object(f"temporary:{operation}:{self.now.key}", "temporary", ObjectKind.VARIABLE, many=True))
        state.store.write((place,), value)
        return frozenset((place,))

    def _select(self, state: State, expression: ir.Select) -> tuple[frozenset[Place], bool]:
        if expression.base is None:
            bases, unknown = self.now.this, not self.now.this
        elif expression.arrow:
            value = self.evaluate(state, expression.base)
            bases, unknown = value.places, value.unknown or not value.places
        else:
            bases, unknown = self.places(state, expression.base)
        step = OVERLAID if expression.member in self.ambiguous else expression.member
        if expression.type.shape is ir.Shape.REFERENCE:  # what it refers to is not followed; it has escaped
            return frozenset(), True
        return frozenset(base.within(step) for base in bases), unknown

    def _subscript(self, state: State, expression: ir.Subscript) -> tuple[frozenset[Place], bool]:
        subscript = self.evaluate(state, expression.index)
        index = subscript.number
        if expression.array:
            bases, unknown = self.places(state, expression.base)
            return frozenset(b.within(index, subscript.integer) for b in bases), unknown
        value = self.evaluate(state, expression.base)
        if subscript.places or (subscript.unknown and not value.places):  # ``i[t]``
            self.escape_names(state, expression)
            return frozenset(), True
        moved = self.offset(value, index, self.distance(expression.base, subscript), subscript.integer)
        return moved.places, moved.unknown or not moved.places

    def offset(self, value: Value, by: int | None, bytes_: Poly | None = None, count: Poly | None = None) -> Value:
        """A pointer moved by a number of elements, `by` or `count`, which are so many bytes, where that is known."""
        if by == 0 or not value.places:
            return value
        places, unknown = set(), value.unknown
        for place in value.places:
            if not place.object.laid_out:
                moved = None
                if place.offset is not None and bytes_ is not None and not place.path:
                    moved = place.offset + bytes_
                places.add(replace(place, offset=moved))
            elif sum(not isinstance(step, str) for step in place.path) > 1:  # it may run into the next row
                places.add(Place(place.object, tuple(s if isinstance(s, str) else None for s in place.path)))
            elif place.path and not isinstance(place.path[-1], str):
                last, element = place.path[-1], place.element
                index = None if element is None or count is None else element + count
                step = None if last is None or by is None else last + by
                places.add(Place(place.object, (*place.path[:-1], step), None, index))
            else:
                places.add(place)
                unknown = True
        return Value(frozenset(places), None, unknown)

    def distance(self, base: ir.Expr, index: Value, sign: int = 1) -> Poly | None:
        """How many bytes a pointer, which is the value of `base`, moves by an index."""
        moved = distance(size_of(pointee(base)), index.integer)
        return None if moved is None else moved.times(sign)

    def evaluate(self, state: State, expression: ir.Expr) -> Value:
        """Left to the subclass."""
        raise NotImplementedError

    def call(self, state: State, call: ir.Call) -> Value:
        """Left to the subclass."""
        raise NotImplementedError


def _settled(place: Place) -> Place:
    offset, index = (poly if poly is not None and is_settled(poly) else None for poly in (place.offset, place.index))
    return replace(place, offset=offset, index=index)

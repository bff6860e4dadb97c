"""Sites of one activation as the walk comes to them, and the values that a call is given.

In: an operation and the state. Out: its draft in the region that is being built; the stream or event that a value
stands for; the buffers that an access touches.
"""

from __future__ import annotations

from collections.abc import Iterable

from kesco.analysis.aggregates import Aggregates
from kesco.analysis.called_order import Meetings, bound, shifts
from kesco.analysis.evaluation_order import (
    IN_ORDER,
    assigned,
    before_arguments,
    is_of_the_program,
    order_matters,
    pure_functions,
)
from kesco.analysis.memory import TOP, Object, Place, Value
from kesco.analysis.passing import Passing
from kesco.analysis.region import Draft
from kesco.analysis.state import State
from kesco.ir import program as ir
from kesco.ir.access import UNSEEN_HOST, AccessMode, Buffer, BufferKind
from kesco.ir.flow import Handle, Role, SiteKind
from kesco.ir.volatiles import points_to_volatile
from kesco.source import Span

_OPEN = "the order in which parts of an expression are evaluated is open, and matters"


class Sites(Aggregates):
    """Makes sites, and says what they touch."""

    def __init__(self, program: ir.Program, *, streams: bool) -> None:
        super().__init__(program)
        self.streams = streams
        self.pure, self.meetings = pure_functions(program), Meetings(program)
        self.bound = bound(program)
        self.acting: dict[int, tuple[ir.Expr | ir.Stmt, bool]] = {}
        self.passing = Passing(program)

    follows: tuple[int, Handle | None] | None = None  # the call for which the text sets a stream here, and which

    # ---- sites ------------------------------------------------------------------------------------------------------

    def site(self, state: State, name: str, kind: SiteKind, role: Role, operation: int, span: Span) -> Draft:
        """The site of an operation at this point; control has passed it afterwards."""
        self.flush_host(state)
        if self.follows is not None and operation != self.follows[0] and role not in (Role.HOST, Role.EXIT):
            self.stay_serial(f"{name} runs where a stream is set for another call", span)
        key = (operation, role.value, self.now.iterations)
        draft, state.frontier = self.now.builder.add(key, name, kind, role, span, state.frontier)
        if role not in (Role.HOST, Role.EXIT):
            self.now.touches_device = True
        return draft

    def may_throw(self, state: State, name: str, operation: int, span: Span) -> None:
        """Control may leave the function here: who catches it may look at the default stream, so work is joined first.

        Where a call of CUDA has failed nobody relies on that; and nobody catches what leaves ``main``.
        """
        if self.now.failing or self.in_main():
            return
        self.now.throws = True
        touched = self.now.touches_device
        self.site(state, name, SiteKind.CALL, Role.JOIN, operation, span)
        self.now.touches_device = touched

    def in_main(self) -> bool:
        """Whether this is ``main`` itself."""
        return self.now.key == "main" and len(self.stack) == 1

    def flush_host(self, state: State) -> None:
        """A site for what the host itself has touched, or looked at, since the last site."""
        if self.now.outside or self.now.seen:
            for number in state.frontier:
                self.now.builder.drafts[number].is_looked_behind(self.now.seen, self.now.outside)
        self.now.outside, self.now.seen = False, set()
        zeroing, self.now.zeroing = self.now.zeroing, None
        part = zeroing[1] if zeroing is not None and self.strays else None
        if part is None or self.now.looked or self.now.asked or self.now.host != {part[0]: AccessMode.WRITE}:
            self.spoilt |= {zeroing[0]} if zeroing is not None else set()
            part = None
        if not (self.now.host or self.now.looked or self.now.asked):
            return
        span = self.now.statement or self.now.function.span
        about_launch = self.now.builder.follows_launches(state.frontier)
        touched, self.now.host = self.now.host, {}
        key = (-2 - span.start, "host", self.now.iterations)
        draft, state.frontier = self.now.builder.add(key, "host", SiteKind.HOST_USE, Role.HOST, span, state.frontier)
        draft.looks = draft.looks or self.now.looked or (self.now.asked and not about_launch)
        self.now.looked = self.now.asked = False
        for one, mode in touched.items():
            buffer = UNSEEN_HOST if one.kind is BufferKind.UNKNOWN else one  # the host cannot reach all memory
            draft.touch(buffer, "host", mode, part[1] if part is not None else None)
        if zeroing is not None and part is not None:
            draft.zeroes = zeroing[0]

    def device_site(
        self,
        state: State,
        name: str,
        kind: SiteKind,
        operation: int,
        span: Span,
        stream: Value,
        has_stream: bool,
        note: str,
        called: str = "",
    ) -> Draft:
        """The site of asynchronous device work: movable where its text can be edited and nothing speaks against it."""
        handle = self.handle_of(stream) if has_stream else None
        stuck = self.program.operations[operation].stuck
        if self.program.operations[operation].stream_text is None and not stuck:
            stuck = "its text cannot be edited"
        if self.is_beside_unseen():
            stuck = stuck or "code that is not seen runs in the same statement"
        role = Role.LEGACY if (stuck or note) and handle is None else Role.MOVABLE
        draft = self.site(state, name, kind, role, operation, span)
        draft.note = note or stuck
        self.put_on(draft, handle, called or name, span)
        return draft

    def put_on(self, draft: Draft, handle: Handle | None, name: str, span: Span) -> None:
        """The site's work goes to a stream. On one of the program's own it may still run when the function is left."""
        draft.stream = handle
        if handle is not None and not self.streams:
            draft.foreign = self.now.foreign = True
            self.stay_serial(f"{name} uses a stream of its own", span)

    def is_beside_unseen(self) -> bool:
        """Whether code that is not seen has run in this statement: what must stand behind it has no place there."""
        return self.now.unseen_in is not None and self.now.unseen_in == self.now.statement

    def stay_serial(self, why: str, span: Span) -> None:
        """This function is left as it was."""
        if not self.now.builder.serial_because:
            self.now.builder.serial_because = f"{why} (line {span.line})"

    def handle_of(self, value: Value) -> Handle | None:
        """The stream or event a value stands for; None for the legacy default stream."""
        if not value.places and not value.unknown and value.number in (0, 1):
            return None  # 0 and cudaStreamLegacy
        handles = {p.object.handle for p in value.places if p.object.handle is not None}
        if len(handles) == 1 and not value.unknown and len(value.places) == 1:
            (place,) = value.places
            handle = place.object.handle
            if handle is not None and not place.object.many:
                return handle
        names = ",".join(sorted(h.name for h in handles)) or "unknown"
        return Handle(f"?{names}", names, all(h.blocking for h in handles) and not value.unknown, False)

    def buffer_of(self, place: Place) -> Buffer:
        """The unit of aliasing a place belongs to."""
        one = place.object
        if one.buffer is not None:
            return one.buffer
        return Buffer(f"host:{one.key}", one.name, BufferKind.HOST)

    def note_volatile(self, operation: int, given: Iterable[ir.Expr]) -> None:
        """Whether an operation is given a pointer to volatile memory, which somebody watches."""
        if any(points_to_volatile(one, self.program.records) for one in given):
            self.volatile.add(operation)

    def note_reached(self, objects: Iterable[Object]) -> None:
        """The device is given memory of the host: what the host does with that from now on is noted."""
        for one in objects:
            buffer = self.buffer_of(Place(one))
            if buffer.kind is BufferKind.HOST:
                self.reached[one.key] = buffer

    # ---- arguments ---

    def argument_values(self, state: State, call: ir.Call) -> list[Value]:
        """The values of the arguments; one that is passed by a reference that is not const counts as its address."""
        values = []
        for index, argument in enumerate(call.arguments):
            if index < len(call.references) and call.references[index] and _is_lvalue(argument):
                places, unknown = self.places(state, argument)
                values.append(Value(places, None, unknown))
            else:
                values.append(self.evaluate(state, argument))
        return self.in_any_order(state, call, call.arguments, values)

    def arguments(self, state: State, call: ir.Call) -> list[Value]:
        """The values of the receiver, if any, and of the arguments."""
        values = []
        if call.receiver is not None:
            places, unknown = self.places(state, call.receiver)
            values.append(Value(places, None, unknown))
        return values + self.argument_values(state, call)

    def in_any_order(
        self, state: State, node: ir.Call | ir.Launch, arguments: tuple[ir.Expr, ...], values: list[Value]
    ) -> list[Value]:
        """The values of arguments; none is known where one may change what another mentions.

        Where one calls what changes something that another one's call reads, the function stays serial. But for the
        streams that kesco's own text names: nothing that the program evaluates changes them.
        """
        ours = [self._is_of_kesco(value) for value in values]
        written = tuple(a for a, its in zip(arguments, ours, strict=True) if not its)
        ordered = isinstance(node, ir.Call) and shifts(self.program, node)
        its_object = before_arguments(node) if isinstance(node, ir.Call) else ()
        every = (*its_object, *written)
        matters = order_matters(every, self.pure, self._is_exposed)
        if not ordered and (self.meetings.matter(every, self.pure) or (its_object and matters)):
            self.stay_serial(_OPEN, node.span)
        if not matters:
            return values
        self.escape_values(state, *values)
        return [value if its else TOP for value, its in zip(values, ours, strict=True)]

    def _assign(self, state: State, expression: ir.Assign) -> Value:
        """The function stays serial where a call in the value may change what says where that goes."""
        sides = assigned(expression) if any(map(is_of_the_program, ir.walk(expression))) else ()
        if sides and self.meetings.matters_to(sides, self.pure):
            self.stay_serial(_OPEN, expression.span)
        return super()._assign(state, expression)

    def _binary(self, state: State, expression: ir.Binary) -> Value:
        """The same for operands: nothing is known of the value where one may change what the other mentions."""
        value = super()._binary(state, expression)
        sides = (expression.left, expression.right)
        if expression.operator in IN_ORDER or not any(map(self._acts, sides)):
            return value
        if self.meetings.matter(sides, self.pure):
            self.stay_serial(_OPEN, expression.span or self.now.function.span)
        if not order_matters(sides, self.pure, self._is_exposed):
            return value
        self.escape_values(state, value)
        return TOP

    def _acts(self, node: ir.Expr | ir.Stmt) -> bool:
        """Whether something in it changes a variable or is code of the program; asked of each part of a long sum."""
        known = self.acting.get(id(node))
        if known is None or known[0] is not node:
            acts = isinstance(node, ir.Assign) or is_of_the_program(node) or any(map(self._acts, ir.children(node)))
            known = self.acting[id(node)] = (node, acts)
        return known[1]

    def _is_of_kesco(self, value: Value) -> bool:
        handle = self.handle_of(value) if self.streams else None
        return handle is not None and handle.certain and handle.key.startswith("kesco:")

    def _is_exposed(self, variable: ir.Variable) -> bool:
        own = variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER) and variable.type.shape is not ir.Shape.REFERENCE
        return not own or variable.key in self.bound or self.object_of(variable) in self.escaped


def _is_lvalue(expression: ir.Expr) -> bool:
    return isinstance(expression, (ir.Name, ir.Select, ir.Subscript, ir.Dereference, ir.Call, ir.Cast, ir.Assign))

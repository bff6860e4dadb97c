"""Objects of the user's classes: how they come to be, what they are made of, and what runs when they go.

In: constructor calls, declarations and ends of scopes. Out: values of fields, and joins where destructors run. Apart
from the statements because an object has an identity: a constructor may keep the address of what it makes.

1. What a constructor makes is a place of its own, and its fields are then copied into the variable. 2. That is right
only while nothing else knows that place. Where something does, a declared variable is not followed, and another object
keeps the whole file serial. 3. A destructor is code that is not seen: work is joined before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kesco.analysis.loops import Loops
from kesco.analysis.memory import TOP, Object, Place, Value
from kesco.analysis.state import State
from kesco.ir import program as ir
from kesco.ir.failures import EARLY, LEAVE, destroyed
from kesco.ir.flow import Role, SiteKind
from kesco.ir.types import MARKS
from kesco.source import Span

_NAMED = (ir.Name, ir.Select, ir.Subscript, ir.Dereference)
_RUNS = (ir.Call, ir.Launch, ir.Assign, ir.New, ir.Unknown)


class Objects(Loops):
    """Makes and destroys objects; statements are left to the subclass."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.destructors = any(r.destructor for r in self.program.records.values())
        self.leaks: dict[int, Span] = {}  # constructor calls whose object something else knows
        self.extended: dict[str, ir.Record] = {}  # references, by key, that a temporary lives as long as
        self.making = ""  # the variable whose constructor is about to be called
        self.taken_in: set[int] = set()  # those of them whose object is a variable

    # ---- construction -----------------------------------------------------------------------------------------------

    def begin_construction(self, state: State, call: ir.Call, this: frozenset[Place]) -> None:
        """What default member initialisers give is not followed."""
        record = self.program.records.get(call.type.record if call.type is not None else "")
        if record is None or not record.defaults:
            return
        names = [one.name for one in record.fields]
        if self.ambiguous & {*names}:
            state.store.write(this, TOP)
            return
        for name in names:
            state.store.write([place.within(name) for place in this], TOP)

    def constructed(self, state: State, call: ir.Call, this: frozenset[Place]) -> Value:
        """The value of the object that a constructor has made."""
        built = [state.store.read(p) for p in this]
        if self._is_known_elsewhere(state, this):
            self.escape_values(state, Value(this))
            self.leaks[call.operation] = call.span
            return TOP
        record = self.program.records.get(call.type.record if call.type is not None else "")
        if record is not None and record.destructor:
            self.escape_values(state, *built)
        return built[0] if built else TOP

    def _is_known_elsewhere(self, state: State, this: frozenset[Place]) -> bool:
        """Whether anything that outlives the constructor refers to the object that it made."""
        made = {p.object for p in this}
        if made & self.escaped:
            return True
        for one, held in state.store.items():
            if not self.is_over(one) and any(p.object in made for v in held.values() for p in v.every_place()):
                return True
        return False

    def is_over(self, one: object) -> bool:
        """Whether an object is a parameter of a function that has been left."""
        variable = self.variables.get(one.key) if isinstance(one, Object) else None
        return variable is not None and variable.scope is ir.Scope.PARAMETER and not self._is_live(variable)

    def _is_live(self, variable: ir.Variable) -> bool:
        """Whether a parameter belongs to a function that is being walked."""
        return any(p.key == variable.key for a in self.stack for p in a.function.parameters)

    def take_in(self, state: State, call: ir.Call, made: Object) -> None:
        """A variable whose constructor let its address out may be changed by anyone."""
        self.taken_in.add(call.operation)
        self.escaped.add(made)
        state.store.clobber((made,))

    # ---- destruction ------------------------------------------------------------------------------------------------

    def in_scope(self) -> list[ir.Variable]:
        """The variables of all open blocks of the function, in the order in which they were declared."""
        return [v for scope in self.now.scopes for v in scope]

    def is_watch(self, variable: ir.Variable) -> bool:
        """Whether a variable of kesco's own output waits for the device where the function is left early."""
        ours = variable.type.shape is ir.Shape.RECORD and variable.type.spelling == f"(anonymous namespace)::{LEAVE}"
        return self.streams and ours and variable.scope is ir.Scope.LOCAL

    def unwind(self, state: State, span: Span, *, leaves: bool, operation: int = -1) -> None:
        """Control jumps out of blocks: their objects are destroyed; behind a function's exit all is joined anyway."""
        self._look_at_marks(self.in_scope())
        if leaves:
            self._wait_before_leaving(state, span, operation)
        records = [(v, r) for v in self.in_scope() if (r := self.destroyed(v)) is not None]
        if not records:
            return
        self._escape(state, (v for v, _ in records))
        found = records[0][1]
        if leaves:
            self.now.touches_device = self.now.foreign = True
            self.forget(state)
        else:
            self.run_unseen(state, f"~{found.name}", span)

    def _look_at_marks(self, gone: Sequence[ir.Variable]) -> None:
        """A range of a profiler that ends here tells when the host has come here."""
        if any(v.type.spelling.removeprefix("const ").startswith(MARKS) for v in gone):
            self.look()

    def _wait_before_leaving(self, state: State, span: Span, operation: int) -> None:
        """What kesco put into its output waits for the device here, unless objects of the program go before it does."""
        for variable in reversed(self.in_scope()):
            if self.destroyed(variable) is not None:
                return
            if self.is_watch(variable):
                early = state.store.read(Place(self.object_of(variable)).within(EARLY))
                if early.number == 1 and EARLY not in self.ambiguous:
                    self.site(state, "cudaDeviceSynchronize", SiteKind.SYNC, Role.DEVICE_SYNC, operation, span)
                return

    def destroyed(self, variable: ir.Variable) -> ir.Record | None:
        """The record whose destructor runs when a variable goes out of scope."""
        return destroyed(self.program, variable) or self.extended.get(variable.key)

    def extends(self, state: State, variable: ir.Variable, initial: ir.Expr) -> None:
        """A reference may bind a temporary object, which is then destroyed as a variable is."""
        made = self._made_in(initial) if self.destructors else None
        if made is not None:
            self.extended[variable.key] = made
            self._escape_named(state, initial)

    def _escape(self, state: State, gone: Iterable[ir.Variable]) -> None:
        """What a destructor can reach: the object, and what its members point to."""
        for variable in gone:
            self.escape_values(state, Value(frozenset((Place(self.object_of(variable)),))))

    def destroy(self, declared: Sequence[ir.Variable], state: State, operation: int) -> None:
        """Objects with destructors of their own go out of scope: code that is not seen runs."""
        self._look_at_marks(declared)
        gone = [(v, r) for v in reversed(declared) if (r := self.destroyed(v)) is not None]
        self._escape(state, (v for v, _ in gone))
        if gone and not self.now.scopes:  # the end of the function: everything has been joined before it
            self.now.touches_device = self.now.foreign = True
            self.forget(state)
        elif gone:
            where = self.program.operations[operation].span if operation >= 0 else gone[0][0].span
            self.run_unseen(state, f"~{gone[0][1].name}", where, operation)

    def temporaries(self, state: State, expression: ir.Expr, span: Span, *, but: ir.Expr | None = None) -> None:
        """Destructors of temporary objects run at the end of the expression, all but that of the object declared."""
        made = self._made_in(expression, but) if self.destructors else None
        if made is not None:
            self._escape_named(state, expression)
            self.run_unseen(state, f"~{made.name}", span)

    def _escape_named(self, state: State, expression: ir.Expr) -> None:
        """A temporary object may keep the address of all that is named where it is made."""
        for node in ir.walk(expression):
            if isinstance(node, _NAMED) and not any(isinstance(n, _RUNS) for n in ir.walk(node)):
                places, unknown = self.places(state, node)
                self.escape_values(state, Value(places, None, unknown))

    def _made_in(self, expression: ir.Expr, but: ir.Expr | None = None) -> ir.Record | None:
        """The class of an object with a destructor that an expression makes."""
        for node in ir.walk(expression):
            if node is but:
                continue
            if isinstance(node, ir.Unknown) and node.what == ir.DESTROYED:
                return ir.Record(node.what, (), destructor=True, standard=False)
            if isinstance(node, ir.Call) and node.type is not None and not node.reference:
                record = self.program.records.get(node.type.record)
                if record is not None and record.destructor:
                    return record
        return None

    def holds_references(self, declared: ir.Type) -> bool:
        """Whether an object of this type has members that are references."""
        while declared.shape is ir.Shape.ARRAY and declared.element is not None:
            declared = declared.element
        record = self.program.records.get(declared.record) if declared.shape is ir.Shape.RECORD else None
        return record is not None and any(
            f.type.shape is ir.Shape.REFERENCE or self.holds_references(f.type) for f in record.fields
        )

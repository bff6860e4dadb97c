"""Objects of the user's classes: what runs when they go.

In: declarations and ends of scopes. Out: joins where destructors run. Apart from the statements because an object has
an identity, which its destructor knows. A destructor is code that is not seen: work is joined before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kesco.analysis.loops import Loops
from kesco.analysis.memory import Place, Value
from kesco.analysis.state import State
from kesco.ir import program as ir
from kesco.ir.failures import EARLY, LEAVE, destroyed
from kesco.ir.flow import Role, SiteKind
from kesco.ir.types import MARKS
from kesco.source import Span

_NAMED = (ir.Name, ir.Select, ir.Subscript, ir.Dereference)
_RUNS = (ir.Call, ir.Launch, ir.Assign, ir.New, ir.Unknown)


class Objects(Loops):
    """Destroys objects; statements are left to the subclass."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.destructors = any(r.destructor for r in self.program.records.values())
        self.extended: dict[str, ir.Record] = {}  # references, by key, that a temporary lives as long as

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

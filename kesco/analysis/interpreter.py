"""Statements and functions of the host program, walked abstractly.

In: a program and the kernels' effects. Out: for each activation of a function, the region of its sites. This is the
control flow of the analysis; expressions, calls and API facts come from the base classes.

1. Blocks, branches and switches fork and merge the state. 2. A loop whose trips are known (a counter with constant
bounds) is walked once per trip, so that ``x[i]`` is a different buffer each time. 3. Any other loop is walked until
neither state nor region changes. 4. A call of a function of the file is walked in a region of its own; in the
caller's region it is one join. 5. Every exit is a site, so that work can be joined there.
"""

from __future__ import annotations

from kesco.analysis.called import after_call
from kesco.analysis.following import stream_set
from kesco.analysis.integers import holds, written_type
from kesco.analysis.memory import NOTHING, TOP, Place, Value, number
from kesco.analysis.objects import Objects
from kesco.analysis.region import RegionBuilder
from kesco.analysis.state import Activation, State
from kesco.analysis.turns import forget, without
from kesco.ir import program as ir
from kesco.ir.failures import EARLY, leaves_if_it_went_well, never_comes_back, runs_at_exit, where_it_failed
from kesco.ir.flow import EXCEPTION, Role, SiteKind
from kesco.source import Span


class Interpreter(Objects):
    """Walks functions."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.ended: list[State] = []  # states in which the process ends
        records = self.program.records.values()
        self.at_exit = runs_at_exit(self.program)
        self.references = any(f.type.shape is ir.Shape.REFERENCE for r in records if not r.standard for f in r.fields)
        for function in self.program.functions:  # a global met later could have been changed before
            for node in ir.walk(function.body):
                if isinstance(node, ir.Name) and node.variable.scope in (ir.Scope.GLOBAL, ir.Scope.STATIC):
                    self.object_of(node.variable)

    # ---- functions --------------------------------------------------------------------------------------------------

    def walk_function(
        self, function: ir.Function, state: State, key: str, generic: bool, this: frozenset[Place]
    ) -> None:
        """Walk one activation; its result and region are left in `activations`. Parameters are already bound."""
        known = self.activations.setdefault(function.key, {})
        activation = known.get(key)
        if activation is None:
            activation = Activation(
                function, key, RegionBuilder(function.name, function.span, self.growth), generic, this
            )
            known[key] = activation
        activation.returns, activation.iterations, activation.scopes = [], (), []
        activation.this = this
        self.rounds = self.rounds if self.stack else 0
        self.stack.append(activation)
        try:
            state.frontier = frozenset((0,))
            end = self.execute(function.body, state)
            if end is not None:
                self.leave(end, "end", _end_of(function.span))
                activation.returns.append((end, NOTHING))
        finally:
            self.stack.pop()

    def walk_call(self, state: State, call: ir.Call, function: ir.Function) -> Value:
        """Walk a function of this file with the values of this call."""
        this, values = frozenset[Place](), []
        if call.receiver is not None:
            this, unknown = self.places(state, call.receiver)
            if unknown:  # what the callee writes reaches the places that it may be, and all else that has escaped
                self.escape_values(state, Value(this))
                state.store.clobber(p.object for p in this)
                this = frozenset()
        for index, argument in enumerate(call.arguments):
            parameter = function.parameters[index] if index < len(function.parameters) else None
            if parameter is not None and parameter.type.shape is ir.Shape.REFERENCE:
                places, unknown = self.places(state, argument)
                values.append(Value(places, None, unknown))
            else:
                values.append(self.evaluate(state, argument))
        values = self.in_any_order(state, call, call.arguments, values)
        if argument_defaults(call):
            values = [TOP if a == ir.Literal("default") else v for a, v in zip(call.arguments, values, strict=True)]
        self.escape_values(state, *values[len(function.parameters) :])  # what ``va_arg`` gives is not known
        self.flush_host(state)
        key = f"{self.now.key}/{call.operation}:{','.join(str(i.value) for i in self.now.iterations)}"
        for index, parameter in enumerate(function.parameters):
            value = values[index] if index < len(values) else TOP
            place = Place(self.object_of(parameter))
            state.store.clobbered -= {place.object}
            given = written_type(call.arguments[index]) if index < len(values) else None
            inside = self.made(state, parameter.type, self.stored(parameter.type, value, given))
            state.store.write((place,), self.fixed(parameter, inside))
        self.walked.add((self.stack[0].key, function.key, call.operation))
        frontier = state.frontier
        inner = State(state.store, frontier)
        self.walk_function(function, inner, key, False, this)
        activation = self.activations[function.key][key]
        result, after = NOTHING, None
        for left, value in activation.returns:
            result = result | value if after is not None else value
            after = left if after is None else left.merge(after)
        state.frontier = frontier
        self.now.exits = self.now.exits or activation.exits
        self.now.raises = self.now.raises or activation.raises
        if after is None:  # it never returns
            state.store = state.store.copy()
            caught = activation.throws and not self.in_main()
            if caught:
                self.now.throws = self.now.throws or not self.now.failing
                self.unwind(state, call.span, leaves=True, operation=call.operation)
            self.leave(state, "throw" if caught else "exit", call.span, call.operation)
            return NOTHING
        state.store = after.store
        after_call(self, state, call, activation)
        if activation.raises and not (activation.throws or self.in_main()):
            self.thrown_out(state, call.span)
        return result

    def thrown_out(self, state: State, span: Span) -> None:
        """An exception may leave the function here: who catches it goes on with the default stream."""
        thrown = state.fork()
        self.unwind(thrown, span, leaves=True)
        self.leave(thrown, EXCEPTION, self.now.function.span)

    def leave(self, state: State, how: str, span: Span, operation: int = -1) -> None:
        """Control leaves the function here (or the process, for ``exit``)."""
        self.flush_host(state)
        if how != "exit":
            key = (operation, how, self.now.iterations)
            draft, state.frontier = self.now.builder.add(key, how, SiteKind.BOUNDARY, Role.EXIT, span, state.frontier)
            draft.failed = self.now.failing > 0
        else:
            self.ended.append(state)

    # ---- statements -------------------------------------------------------------------------------------------------

    def execute(self, statement: ir.Stmt, state: State | None) -> State | None:
        """Walk a statement; None when control cannot come out at its end."""
        if isinstance(statement, ir.Case):
            entered = self.now.cases[-1].fork()
            return self.execute(statement.body, entered if state is None else state.merge(entered))
        if isinstance(statement, ir.Block):
            return self._block(statement, state)
        if state is None:
            return self._skip_to_case(statement)
        outer, self.now.statement = self.now.statement, statement.span
        deciding, self.deciding = self.deciding, False
        around, self.follows, self.setting = (self.follows, self.setting), None, stream_set(statement)
        self.ended = []
        try:
            result = self._execute(statement, state)
        finally:
            if isinstance(statement, (ir.Evaluate, ir.Declare)):
                self.flush_host(state)
            self.now.statement, self.deciding = outer, deciding
            self.follows, self.setting = around
        return result

    def _skip_to_case(self, statement: ir.Stmt) -> State | None:
        """Code behind a jump runs only where a case label inside it is."""
        return None

    def _block(self, block: ir.Block, state: State | None) -> State | None:
        if block.declares and self.now.scopes:  # ``T a, b;``
            for statement in block.body:
                state = self.execute(statement, state)
            return state
        declared: list[ir.Variable] = []
        failing, dying = self.now.failing, self.now.dying
        self.now.scopes.append(declared)
        for behind, statement in enumerate(block.body, start=1):
            declared += (one.variable for one in _declarations(statement))
            if isinstance(statement, ir.Case):
                self.now.failing, self.now.dying = failing, dying
            state = self.execute(statement, state)
            if leaves_if_it_went_well(statement):
                self.now.failing += 1
                self.now.dying += never_comes_back(ir.Block(block.span, block.body[behind:]))
        self.now.scopes.pop()
        if state is not None:
            self.destroy(declared, state, block.end)
        self.now.failing, self.now.dying = failing, dying
        return state

    def _execute(self, statement: ir.Stmt, state: State) -> State | None:
        if isinstance(statement, ir.Evaluate):
            self.evaluate(state, statement.expression)
            self.temporaries(state, statement.expression, statement.span)
            return None if any(e is state for e in self.ended) else state
        if isinstance(statement, ir.Declare) and statement.variable.scope is ir.Scope.STATIC:
            return self._declare_static(statement, state)
        if isinstance(statement, ir.Declare):
            self._declare(statement, state)
            if statement.initial is not None:
                self.temporaries(state, statement.initial, statement.span, but=statement.initial)
            return None if any(e is state for e in self.ended) else state
        if isinstance(statement, ir.If):
            return self._if(statement, state)
        if isinstance(statement, ir.Loop):
            return self.walk_loop(statement, state)
        if isinstance(statement, ir.Switch):
            return self._switch(statement, state)
        if isinstance(statement, ir.Leave):
            return self._leave(statement, state)
        if isinstance(statement, ir.Obstacle):
            self.stay_serial(f"it contains {statement.reason}", statement.span)
            return state
        raise AssertionError(f"statement {type(statement).__name__}")

    def _declare_static(self, statement: ir.Declare, state: State) -> State:
        """Its initial value is evaluated when control comes here for the first time, and not again."""
        if statement.initial is None:
            return state
        again = state.fork()
        self._declare(statement, state)
        self.temporaries(state, statement.initial, statement.span, but=statement.initial)
        if any(e is state for e in self.ended):
            return again
        self.flush_host(state)
        return state.merge(again)

    def _declare(self, statement: ir.Declare, state: State) -> None:
        variable = statement.variable
        place = Place(self.object_of(variable))
        if self.is_watch(variable) and not (statement.initial is not None and ir.children(statement.initial)):
            state.store.write((place.within(EARLY),), number(1))
            return
        if statement.initial is None:
            if variable.scope is not ir.Scope.STATIC:
                state.store.write((place,), NOTHING)
                state.store.clobbered -= {place.object}
            return
        if variable.type.shape is ir.Shape.REFERENCE:
            places, unknown = self.places(state, statement.initial)
            state.store.write((place,), Value(places, None, unknown))
            self.extends(state, variable, statement.initial)
            return
        built = statement.initial if isinstance(statement.initial, ir.Call) and statement.initial.constructs else None
        value = self.evaluate(state, statement.initial)
        if built is not None and variable.type.shape is ir.Shape.ARRAY and self.is_made_by_code(variable.type):
            self.opaque(state, built)  # its elements are constructed one by one
            value = TOP
        if self.holds_references(variable.type) or variable.scope is ir.Scope.STATIC:
            self.escape_values(state, value)
            value = TOP
        if variable.scope is ir.Scope.STATIC:
            return  # initialised once, at a time that is not followed
        if place.object not in self.escaped:
            state.store.clobbered -= {place.object}
        inside = self.made(state, variable.type, self.stored(variable.type, value, written_type(statement.initial)))
        state.store.write((place,), self.fixed(variable, inside))

    def _if(self, statement: ir.If, state: State) -> State | None:
        for one in statement.before:
            after = self.execute(one, state)
            if after is None:
                return None
            state = after
        self._no_destructors(statement.before, statement.span)
        condition = self.decided(state, statement.condition)
        self.temporaries(state, statement.condition, statement.span)
        if any(e is state for e in self.ended):
            return None
        self.flush_host(state)
        if condition.number is not None:
            if condition.number:
                return self.execute(statement.then, state)
            return self.execute(statement.other, state) if statement.other is not None else state
        other: State | None = state.fork()
        sides = self.compared(state, statement.condition)
        failed = where_it_failed(statement.condition)
        then = self._arm(statement.then, state, failed=failed is True)
        if statement.other is not None:
            other = self._arm(statement.other, other, failed=failed is False)
        if then is None or other is None:
            return then or other
        merged = then.merge(other)
        for variable in _set_in(statement) if sides is not None else ():
            at = Place(self.object_of(variable))
            if all(one.store.has(at) for one in (then, other)) and at.object not in merged.store.clobbered:
                chosen = self.either(sides, then.store.read(at), other.store.read(at), holds(variable.type))
                if chosen.formula is not None:
                    merged.store.write((at,), chosen)
        return merged

    def _arm(self, branch: ir.Stmt, state: State | None, *, failed: bool) -> State | None:
        dies = failed and never_comes_back(branch)
        self.now.failing += failed
        self.now.dying += dies
        after = self.execute(branch, state)
        self.now.failing -= failed
        self.now.dying -= dies
        return after

    def _switch(self, statement: ir.Switch, state: State) -> State | None:
        for one in statement.before:
            after = self.execute(one, state)
            if after is None:
                return None
            state = after
        self._no_destructors(statement.before, statement.span)
        self.decided(state, statement.condition)
        self.temporaries(state, statement.condition, statement.span)
        self.flush_host(state)
        self.now.cases.append(state)
        self.now.breaks.append([])
        end = self.execute(statement.body, None)
        self.now.cases.pop()
        for left in self.now.breaks.pop():
            end = left.merge(end)
        return end if _has_default(statement.body) else state.merge(end)

    def _ends_the_process(self) -> bool:
        """Whether control leaves ``main`` because a call has failed, and nothing runs there as it goes: like exit()."""
        return self.in_main() and self.now.failing > 0 and not any(map(self.destroyed, self.in_scope()))

    def _leave(self, statement: ir.Leave, state: State) -> State | None:
        if statement.how in ("return", "throw"):
            result = self.now.function.result
            value = NOTHING
            if statement.value is not None:
                if result is not None and result.shape is ir.Shape.REFERENCE:
                    places, unknown = self.places(state, statement.value)
                    value = Value(places, None, unknown)
                else:
                    value = self.evaluate(state, statement.value)
                    if statement.how == "throw":
                        self.escape_values(state, value)
                    elif result is not None:
                        value = self.made(state, result, value)
                self.temporaries(state, statement.value, statement.span, but=statement.value)
            for loop in self.now.turns:
                forget(state.store, loop)
                value = without(value, loop)
            how = "exit" if self._ends_the_process() else statement.how
            self.now.throws = self.now.throws or (how == "throw" and not self.now.failing)
            self.now.raises = self.now.raises or how == "throw"
            self.unwind(state, statement.span, leaves=True, operation=statement.operation)
            self.leave(state, how, statement.span, statement.operation)
            if statement.how == "return":
                self.now.returns.append((state, value))
            return None
        self.unwind(state, statement.span, leaves=False)
        if statement.how == "break":
            self.now.breaks[-1].append(state)
        elif self.now.continues:
            self.now.continues[-1].append(state)
        return None


def _set_in(statement: ir.If) -> list[ir.Variable]:
    """The integers of the function that a branch assigns by name."""
    nodes = (n.target for n in ir.walk(statement) if isinstance(n, ir.Assign))
    names = [n.variable for n in nodes if isinstance(n, ir.Name)]
    return [v for v in names if v.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER) and v.type.shape is ir.Shape.INTEGER]


def _declarations(statement: ir.Stmt) -> list[ir.Declare]:
    """What a statement of a block declares in the block's scope."""
    while isinstance(statement, ir.Case):
        statement = statement.body
    if isinstance(statement, ir.Block) and statement.declares:
        return [one for one in statement.body if isinstance(one, ir.Declare)]
    return [statement] if isinstance(statement, ir.Declare) else []


def argument_defaults(call: ir.Call) -> bool:
    """Whether some arguments of a call are the callee's defaults, whose values are not followed."""
    return any(a == ir.Literal("default") for a in call.arguments)


def _has_default(statement: ir.Stmt) -> bool:
    if isinstance(statement, ir.Case):
        return statement.value is None or _has_default(statement.body)
    if isinstance(statement, ir.Block):
        return any(_has_default(s) for s in statement.body)
    return False


def _end_of(span: Span) -> Span:
    return Span(span.path, max(span.start, span.end - 1), span.end, span.line, span.column)

"""Expressions of the host program → abstract values.

In: an expression and the current state. Out: what it may evaluate to; the state's store is updated in place. Kept apart
from calls and control flow: this file answers only "where does this pointer expression point".

What it cannot follow becomes unknown, never nothing: an unknown value conflicts with everything later on.
"""

from __future__ import annotations

from dataclasses import replace

from kesco.analysis.casts import Casts
from kesco.analysis.integers import ZERO, Symbols, combined, holds, is_moved, kind_of, written_type
from kesco.analysis.integers import converted as converted_formula
from kesco.analysis.memory import NOTHING, TOP, Object, ObjectKind, Place, Value, number, pointer
from kesco.analysis.state import State, converted, fold, is_kesco
from kesco.analysis.zeroes import certain_part
from kesco.ir import program as ir
from kesco.ir.access import AccessMode
from kesco.ir.flow import Iteration
from kesco.ir.poly import Poly, least
from kesco.ir.volatiles import is_volatile, is_watched
from kesco.source import Span


class Evaluator(Casts):
    """Evaluates expressions; calls are left to the subclass."""

    def __init__(self, program: ir.Program) -> None:
        super().__init__(program)
        self.symbols = Symbols()

    # ---- rvalues ----------------------------------------------------------------------------------------------------

    def evaluate(self, state: State, expression: ir.Expr) -> Value:
        """What the expression may evaluate to; an integer of which nothing is known gets a name."""
        value = self._value(state, expression)
        if value.number is not None or value.formula is not None or value.places or value.fields or self.rolled:
            return value
        formula = self.symbols.fresh(expression)
        if formula is None:
            return value
        value = replace(value, formula=formula)
        if isinstance(expression, ir.Name) and self._is_own(state, expression.variable):
            state.store.write((Place(self.object_of(expression.variable)),), value)  # the next read sees the same
        return value

    def decided(self, state: State, condition: ir.Expr) -> Value:
        """The value of an expression that only decides where control goes on."""
        outer, self.deciding = self.deciding, True
        value = self.evaluate(state, condition)
        self.deciding = outer
        return value

    def _is_own(self, state: State, variable: ir.Variable) -> bool:
        """Whether a variable changes only where the function that is walked says so."""
        one = self.object_of(variable)
        local = variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER) and variable.type.shape is ir.Shape.INTEGER
        return local and not variable.type.volatile and one not in self.escaped and one not in state.store.clobbered

    def _value(self, state: State, expression: ir.Expr) -> Value:
        if isinstance(expression, ir.Constant):
            return number(expression.value)
        if isinstance(expression, (ir.Literal, ir.FunctionName)):
            return NOTHING
        if isinstance(expression, ir.Name):
            return self._name(state, expression)
        if isinstance(expression, (ir.Select, ir.Subscript, ir.Dereference)):
            places, unknown = self.places(state, expression)
            self.watching = self.deciding and is_volatile(expression)
            value = self.read_all(state, places, unknown, kind_of(expression))
            self.watching = False
            return value
        if isinstance(expression, ir.AddressOf):
            places, unknown = self.places(state, expression.target)
            return Value(places, None, unknown)
        if isinstance(expression, ir.Decay):
            places, unknown = self.places(state, expression.array)
            return Value(frozenset(p.within(0) for p in places), None, unknown)
        if isinstance(expression, ir.Binary):
            return self._binary(state, expression)
        if isinstance(expression, ir.Unary):
            return self._unary(state, expression)
        if isinstance(expression, ir.Assign):
            return self._assign(state, expression)
        if isinstance(expression, ir.Branch):
            return self._branch(state, expression)
        if isinstance(expression, ir.Cast):
            return self._cast(state, expression)
        if isinstance(expression, ir.InitList):
            self.bind_references(state, expression)
            parts = tuple((((i,), self.evaluate(state, item))) for i, item in enumerate(expression.items))
            return Value(fields=_flatten(parts))
        if isinstance(expression, ir.New):
            self.bind_references(state, expression)
            inner = [self.evaluate(state, e) for e in expression.inner]
            self.escape_values(state, *inner)
            state.store.clobber(p.object for v in inner for p in v.places)  # placement
            made = self.fresh(f"new:{expression.span.start}", "new")
            if expression.bare:
                return pointer(Place(made, (0,)))
            state.store.clobber((made,))
            self.escaped.add(made)  # it may lie in memory that has a name
            return pointer(Place(made, (0,)))
        if isinstance(expression, ir.Call):
            smaller = self._minimum(state, expression)
            value = self.call(state, expression)
            if smaller is not None:
                return Value(formula=smaller)
            if expression.reference and not (self.streams and is_kesco(expression.name)):
                return self.read_all(state, value.places, value.unknown or not value.places)
            return value
        if isinstance(expression, ir.Launch):
            return self.launch(state, expression)
        if isinstance(expression, ir.Unknown):
            values = [self._perhaps(state, part) for part in expression.parts]
            if expression.what == "delete":
                self.go_outside()  # the caller's memory, perhaps
                for place in (p for v in values for p in v.places):
                    self.touch(place, AccessMode.WRITE)
            else:
                self.escape_values(state, *values)
            if expression.what == "unexposed_expr":  # such as __atomic_store_n, for which others may wait
                self.look()
                for place in (p for v in values for p in v.places):
                    self.touch(place, AccessMode.READ | AccessMode.WRITE)
                state.store.clobber(state.store.reachable(p for v in values for p in v.every_place()))
                if any(v.any_unknown() for v in values):
                    self.clobber_escaped(state)
            if expression.what not in _QUIET:
                self.run_unseen(state, expression.what, expression.span)
            return TOP
        return TOP

    def _perhaps(self, state: State, part: ir.Expr) -> Value:
        """A part of an expression of unknown form, such as ``a ?: b``, which may be evaluated or not."""
        before = state.fork() if any(isinstance(n, _EFFECTS) for n in ir.walk(part)) else state
        value = self.evaluate(state, part)
        if before is not state:
            merged = state.merge(before)
            state.store, state.frontier = merged.store, merged.frontier
        return value

    def bind_references(self, state: State, expression: ir.Expr) -> None:
        """An object made from these expressions may keep references to what they name."""
        if self.references:
            for node in ir.walk(expression):
                if isinstance(node, (ir.Name, ir.Select, ir.Subscript)):
                    places, _ = self.places(state.fork(), node)
                    self.escape_values(state, Value(places))

    references = False
    """Whether any class of the program has members that are references."""

    def run_unseen(self, state: State, what: str, span: Span, operation: int = -1) -> None:
        """Left to the subclass."""
        raise NotImplementedError

    def launch(self, state: State, launch: ir.Launch) -> Value:
        """Left to the subclass."""
        raise NotImplementedError

    def fresh(self, what: str, name: str) -> Object:
        """A host allocation of this place in the text, in this iteration of this activation."""
        key = f"{what}:{self.now.key}:{_iteration_text(self.now.iterations)}"
        return Object(key, name, ObjectKind.HEAP, many=self.in_loop())

    def in_loop(self) -> bool:
        """Whether the text may run more than once for one abstract object."""
        return self.rolled > 0

    def _name(self, state: State, expression: ir.Name) -> Value:
        variable = expression.variable
        if variable.constant is not None:
            return number(variable.constant)
        places, unknown = self.places(state, expression)
        if variable.scope is ir.Scope.SYMBOL:
            for place in places:
                self.touch(place, AccessMode.READ)
            return Value(places)
        if variable.type.volatile:
            self.escape_contents(state, (p.object for p in places))
            return TOP
        value = self.read_all(state, places, unknown, kind_of(expression))
        return TOP if variable.type.shape is ir.Shape.POINTER and value == NOTHING else value

    def _binary(self, state: State, expression: ir.Binary) -> Value:
        left, right = self.evaluate(state, expression.left), self.evaluate(state, expression.right)
        if expression.operator == ",":
            return right
        if left.number is not None and right.number is not None:
            result = fold(expression.operator, left.number, right.number)
            exact = None if result is None else converted(result, expression.type)
            return NOTHING if exact is None else number(exact)
        formula = combined(expression.operator, left.integer, right.integer, expression.type)
        if expression.operator in ("==", "!=", "<", ">", "<=", ">=", "<=>"):
            return NOTHING
        if expression.operator in ("+", "-"):
            sign = 1 if expression.operator == "+" else -1
            if left.places and not right.places:
                step = None if right.number is None else sign * right.number
                count = None if right.integer is None else right.integer.times(sign)
                moved = self.offset(left, step, self.distance(expression.left, right, sign), count)
                strays = right.unknown and not is_moved(expression, expression.left, expression.right)
                return Value(moved.places, None, moved.unknown or strays)
            if right.places and not left.places and sign == 1:
                moved = self.offset(right, left.number, self.distance(expression.right, left), left.integer)
                strays = left.unknown and not is_moved(expression, expression.right, expression.left)
                return Value(moved.places, None, moved.unknown or strays)
        mixed = left.places | right.places
        if mixed:
            return Value(frozenset(Place(p.object, ()) for p in mixed), None, True)
        return replace(TOP if left.unknown or right.unknown else NOTHING, formula=formula)

    def _unary(self, state: State, expression: ir.Unary) -> Value:
        value = self.evaluate(state, expression.operand)
        if value.number is None:
            formula = None
            if expression.operator in ("+", "-"):
                formula = combined(expression.operator, ZERO, value.formula, expression.type)
            return NOTHING if expression.operator == "!" else Value(value.places, None, value.unknown, (), formula)
        plain = {"-": -value.number, "+": value.number, "~": ~value.number}
        exact = converted(plain.get(expression.operator, int(not value.number)), expression.type)
        return NOTHING if exact is None else number(exact)

    def _assign(self, state: State, expression: ir.Assign) -> Value:
        value = self.evaluate(state, expression.value)
        places, unknown = self.places(state, expression.target)
        if not expression.operator:
            value = self.stored(_declared(expression.target), value, written_type(expression.value))
            self.assign(state, places, unknown, value)
            if expression.operation >= 0:
                zeroing = self.program.operations[expression.operation].zeroing
                part = certain_part(places, unknown, zeroing.bytes if zeroing is not None else None)
                self.now.zeroing = expression.operation, part
            return value
        old = self.read_all(state, places, unknown, _declared(expression.target))
        if old.number is not None and value.number is not None:
            signed = min(old.number, value.number) < 0 and expression.operator in ("/", "%")  # or their type is not
            folded = None if signed else fold(expression.operator, old.number, value.number)
            exact = None if folded is None else converted(folded, _declared(expression.target))
            new = NOTHING if exact is None else number(exact)
        elif expression.operator in ("+", "-") and old.places:
            sign = 1 if expression.operator == "+" else -1
            step = None if value.number is None else sign * value.number
            new = self.offset(old, step, self.distance(expression.target, value, sign))
            strays = value.unknown and _declared(expression.target).shape is not ir.Shape.POINTER
            new = Value(new.places, None, new.unknown or strays)
            if value.places:  # ``p += q - p`` is ``q``
                new = Value(frozenset(Place(p.object, ()) for p in old.places | value.places), None, True)
        else:
            self.escape_addresses(state, old, value)
            new = TOP if old.unknown or value.unknown or old.places or value.places else NOTHING
            new = replace(new, formula=self._compound(expression, old, value))
        self.assign(state, places, unknown, new)
        return old if expression.post else new

    def _compound(self, expression: ir.Assign, old: Value, value: Value) -> Poly | None:
        """``target operator= value``, where the arithmetic is done in the target's own type, for all that is seen."""
        declared, given = _declared(expression.target), kind_of(expression.value)
        if isinstance(expression.value, ir.Constant) and expression.operator in ("+", "-", "*"):
            return converted_formula(combined(expression.operator, old.integer, value.integer, declared), declared)
        if given is None or _plain(given.spelling) != _plain(declared.spelling):
            return None
        return combined(expression.operator, old.integer, value.integer, declared)

    def _branch(self, state: State, expression: ir.Branch) -> Value:
        condition = self.evaluate(state, expression.condition)
        if condition.number is not None:
            return self.evaluate(state, expression.then if condition.number else expression.other)
        other = state.fork()
        sides = self.compared(state, expression.condition)
        then_value = self.evaluate(state, expression.then)
        other_value = self.evaluate(other, expression.other)
        merged = state.merge(other)
        state.store, state.frontier = merged.store, merged.frontier
        return self.either(sides, then_value, other_value, holds(written_type(expression)))

    def compared(self, state: State, condition: ir.Expr) -> tuple[Poly, Poly] | None:
        """What is at most what where a condition holds, and at least that where it does not."""
        if not isinstance(condition, ir.Binary) or condition.operator not in ("<", "<=", ">", ">="):
            return None
        if any(isinstance(n, (ir.Assign, ir.Call, ir.Unknown, ir.Launch)) for n in ir.walk(condition)):
            return None  # it would not be what was compared
        ends = [self.evaluate(state.fork(), side).integer for side in (condition.left, condition.right)]
        less, more = ends if condition.operator[0] == "<" else ends[::-1]
        return None if less is None or more is None else (less, more)

    def either(self, sides: tuple[Poly, Poly] | None, then: Value, other: Value, ends: tuple[int, int] | None) -> Value:
        """What one of two values is, the first where `sides` are in this order: it may be the lesser of the two.

        `ends` are those of its type.
        """
        merged = then | other
        one, two = then.integer, other.integer
        if sides is None or ends is None or one is None or two is None or merged.integer is not None:
            return merged
        if merged.places or merged.unknown or merged.fields or one - two != sides[0] - sides[1]:
            return merged
        return replace(merged, formula=least(one, two, *ends))

    def _minimum(self, state: State, call: ir.Call) -> Poly | None:
        """What ``std::min`` of two integers of one type gives."""
        if not call.standard or call.name not in ("std::min", "min") or len(call.arguments) != 2:
            return None
        kinds = [kind for a in call.arguments if not isinstance(a, ir.Constant) and (kind := kind_of(a)) is not None]
        given = [self.evaluate(state.fork(), argument) for argument in call.arguments]
        known = len(kinds) + sum(isinstance(a, ir.Constant) for a in call.arguments)
        if known < 2 or len({_plain(kind.spelling) for kind in kinds}) != 1 or holds(kinds[0]) is None:
            return None
        one, other = (None if v.places or v.unknown or v.fields else v.integer for v in given)
        return None if one is None or other is None else least(one, other, *(holds(kinds[0]) or (0, 0)))

    def stored(self, declared: ir.Type, value: Value, given: ir.Type | None = None) -> Value:
        """A value as a variable of this type holds it: integers converted, and not followed through other types.

        One of type `given` needs no conversion where that is the variable's own.
        """
        if declared.shape in (ir.Shape.POINTER, ir.Shape.REFERENCE):
            return value
        same = given is not None and holds(given) is not None and _plain(given.spelling) == _plain(declared.spelling)
        if same and value.number is None:
            return value
        if value.number is None:
            return (
                value if value.formula is None else replace(value, formula=converted_formula(value.formula, declared))
            )
        return Value(value.places, converted(value.number, declared), value.unknown, value.fields)

    def _cast(self, state: State, expression: ir.Cast) -> Value:
        value = self.evaluate(state, expression.operand)
        to, source = expression.type, expression.source
        if is_watched(source, self.program.records) and not is_watched(to, self.program.records):
            self.watched |= {p.object.buffer for p in value.places if p.object.buffer is not None}
        if value.number is not None:
            if to.shape is ir.Shape.POINTER:
                known = value.number in (0, 1, 2)  # 1 and 2 are the handles cudaStreamLegacy and cudaStreamPerThread
                return value if known or value.places else TOP
            return Value(value.places, converted(value.number, to), value.unknown, value.fields)
        if value.formula is not None:
            value = replace(value, formula=converted_formula(value.formula, to))
        shapes = (source.shape if source is not None else None, to.shape)
        if shapes == (ir.Shape.INTEGER, ir.Shape.POINTER):
            return value | TOP
        if shapes == (ir.Shape.POINTER, ir.Shape.INTEGER):  # what is reached through a sum of bytes is not followed
            self.escape_addresses(state, value)
            state.store.clobber(p.object for p in value.places if p.object.laid_out)
        if shapes != (ir.Shape.POINTER, ir.Shape.POINTER) or source is None:
            return value
        return self.reinterpreted(state, value, to.element, source.element)


def _plain(spelling: str) -> str:
    return spelling.replace("const ", "").replace(" ", "")


def _declared(target: ir.Expr) -> ir.Type:
    """The type of what is assigned to; where that is not known integers are not followed through it."""
    if isinstance(target, ir.Name):
        declared = target.variable.type
        return declared.element or declared if declared.shape is ir.Shape.REFERENCE else declared
    return target.type if isinstance(target, ir.Select) else ir.Type(ir.Shape.OTHER, "?")


_EFFECTS = (ir.Assign, ir.Call, ir.Launch, ir.New, ir.Unknown)
_QUIET = frozenset(
    ("lambda", "member", ir.RANGE_ELEMENT, "delete", "decl_ref_expr", "variable_ref", "unexposed_expr", "initialiser",
     "cxx_typeid_expr", "package_expansion_expr", "size_of_pack_expr", "?")
)  # fmt: skip


def _flatten(
    parts: tuple[tuple[tuple[int, ...], Value], ...],
) -> tuple[tuple[tuple[str | int | None, ...], Value], ...]:
    flat: list[tuple[tuple[str | int | None, ...], Value]] = []
    for path, value in parts:
        flat.append((path, Value(value.places, value.number, value.unknown)))
        flat.extend(((*path, *inner), part) for inner, part in value.fields)
    return tuple(flat)


def _iteration_text(iterations: tuple[Iteration, ...]) -> str:
    return ",".join(f"{i.loop}={i.value}" for i in iterations)


def kernel_named(expression: ir.Expr) -> ir.Kernel | None:
    """The kernel that an expression such as ``(const void*)blur<float>`` names."""
    if isinstance(expression, ir.Cast):
        return kernel_named(expression.operand)
    if isinstance(expression, ir.AddressOf):
        return kernel_named(expression.target)
    return expression.kernel if isinstance(expression, ir.FunctionName) else None

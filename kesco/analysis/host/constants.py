"""Constants of a module as values: operands, and what variables hold at first.

In: a module's layouts, and what the address of a function or variable is. Out: a value; the contents of an object.
"""

from __future__ import annotations

from collections.abc import Callable

from kesco.analysis.host.arithmetic import binary, nothing_escapes, stepped
from kesco.analysis.host.contents import Contents, signed
from kesco.analysis.host.values import NOTHING, NUMBER, ZERO, Object, Scalar, Value, joined, pointer, unknown
from kesco.llvm.types import Layouts, Type
from kesco.llvm.values import Aggregate, Bytes, Expression, Integer, Literal, Symbol, Unread, Variable, symbols_in
from kesco.llvm.values import Value as Operand

_LARGEST = 4096  # parts of an initial value that are looked at


class Constants:
    """See the module's docstring."""

    def __init__(self, layouts: Layouts, symbol: Callable[[str], Object], weak: frozenset[str]) -> None:
        """`weak` are the symbols that may not be there."""
        self.layouts, self.symbol, self.weak = layouts, symbol, weak
        self._constants: dict[Operand, Value] = {}

    def of(self, operand: Operand) -> Value:
        """What a constant operand is."""
        found = self._constants.get(operand)
        if found is None:
            found = self._constants[operand] = self._of_constant(operand)
        return found

    def _of_constant(self, operand: Operand) -> Value:
        if isinstance(operand, Integer):
            return frozenset((operand.value,))
        if isinstance(operand, Symbol):
            one = self.symbol(operand.name)
            return joined(pointer(one), ZERO) if one.name in self.weak else pointer(one)
        if isinstance(operand, Literal):
            if operand.text in ("undef", "poison"):
                return self.uniform(operand.type, NOTHING)
            if operand.text in ("null", "zeroinitializer", "none"):
                return self.uniform(operand.type, ZERO)
            return NUMBER
        if isinstance(operand, Aggregate):
            return tuple(self.of(one) for one in operand.parts)
        if isinstance(operand, Expression):
            return self._expression(operand)
        return unknown("the address of a label") if isinstance(operand, Unread) else NUMBER

    def _expression(self, operand: Expression) -> Scalar:
        parts = [self.of(one) for one in operand.operands]
        if operand.op == "getelementptr" and operand.source is not None:
            indices = [one.value if isinstance(one, Integer) else None for one in operand.operands[1:]]
            offset = self.layouts.offset(operand.source, indices)
            steps = [] if offset is not None else [(NUMBER, 1)]
            return stepped(parts[0], steps, offset or 0, nothing_escapes)
        if len(parts) == 1:
            one = parts[0]
            return one if isinstance(one, frozenset) else NUMBER
        if operand.op in ("add", "sub"):
            return binary(operand.op, parts[0], parts[1], operand.type.number or 64, nothing_escapes)
        return unknown("a computed address")

    def uniform(self, type_: Type, value: Scalar) -> Value:
        """A value of a type, the same in each of its parts."""
        real = self.layouts.resolved(type_)
        if real.kind in ("struct", "packed"):
            return tuple(self.uniform(part, value) for part in real.parts)
        if real.kind == "array":
            return tuple(self.uniform(real.parts[0], value) for _ in range(min(real.number, 64)))
        return value

    def initially(self, variable: Variable) -> Contents:
        """What a variable with an initial value holds at first."""
        contents = Contents(rest=ZERO)
        assert variable.initial is not None
        todo: list[tuple[int, Operand]] = [(0, variable.initial)]
        while todo:
            at, value = todo.pop()
            if isinstance(value, Aggregate):
                real = self.layouts.resolved(value.type)
                if len(value.parts) + len(contents.cells) > _LARGEST:
                    contents.weak[1, 0, 1] = NUMBER
                    contents.rest = NUMBER
                    for name in symbols_in(value):
                        contents.weak[8, 0, 8] = joined(
                            contents.weak.get((8, 0, 8), NOTHING), pointer(self.symbol(name))
                        )
                elif real.kind in ("struct", "packed"):
                    todo += zip((at + o for o in self.layouts.offsets(real)), value.parts, strict=True)
                else:
                    size = self.layouts.size(real.parts[0])
                    todo += ((at + i * size, part) for i, part in enumerate(value.parts))
            elif isinstance(value, Bytes):
                if len(value.data) <= 256:
                    for i, byte in enumerate(value.data):
                        contents.cells[at + i] = (1, frozenset((signed(byte, 8),)))
                else:
                    contents.weak[0, at, len(value.data)] = NUMBER
            elif not (isinstance(value, Literal) and value.text in ("zeroinitializer", "null")):
                contents.cells[at] = (self.layouts.size(value.type), self.of(value))
        return contents

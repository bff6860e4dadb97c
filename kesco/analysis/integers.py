"""Integers of the host program that are not known, as exact polynomials over symbols.

In: an expression's operator or type and the polynomials of its operands. Out: the polynomial of the result, or None
where it is not followed. The one place that knows when C++ arithmetic is exact:

1. Signed arithmetic does not overflow in a program that has a meaning, so its result is the sum or product itself.
2. Unsigned arithmetic, shifts and conversions wrap around. Where the bounds of the symbols do not show that the result
   fits, it becomes a symbol of its own, the same one for the same polynomial (`poly.wrapped`).
3. A quotient by a positive constant is a symbol with bounds of its own; a remainder and all else is not followed.

A symbol is made where an integer is read that nothing is known of. It stands for what was read there *once*: inside a
loop whose trips are not told apart there are none (`Symbols.fresh` says nothing then).
"""

from __future__ import annotations

from collections import Counter

from kesco.ir import program as ir
from kesco.ir.poly import Poly, Symbol, constant, of, quotient, wrapped

_BITS = {
    "char": (8, True), "signed char": (8, True), "unsigned char": (8, False), "short": (16, True),
    "unsigned short": (16, False), "int": (32, True), "unsigned int": (32, False), "long": (64, True),
    "unsigned long": (64, False), "long long": (64, True), "unsigned long long": (64, False),
}  # fmt: skip
_BYTES = {"bool": 1, "float": 4, "double": 8}
_PARTS = (("char", 1), ("uchar", 1), ("short", 2), ("ushort", 2), ("int", 4), ("uint", 4), ("float", 4), ("double", 8))
_VECTORS = {f"{name}{n}": size * n for name, size in _PARTS for n in (1, 2, 3, 4)}
_TERMS = 24  # a polynomial with more is not followed


def holds(kind: ir.Type | None) -> tuple[int, int] | None:
    """The least and the most that an integer type holds; None for what is not a plain integer."""
    if kind is None or kind.shape is not ir.Shape.INTEGER:
        return None
    bits, signed = _BITS.get(_plain(kind), (0, False))
    if not bits:
        return None
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def size_of(kind: ir.Type | None) -> int | None:
    """The size in bytes of what a pointer counts in, on the host as on the device; None where it is not known."""
    if kind is None:
        return None
    if kind.shape is ir.Shape.POINTER:
        return 8
    name = _plain(kind)
    if kind.shape is ir.Shape.INTEGER and name in _BITS:
        return _BITS[name][0] // 8
    return _BYTES.get(name) or _VECTORS.get(name)


def converted(value: Poly | None, to: ir.Type | None) -> Poly | None:
    """An integer after conversion to a type."""
    ends = holds(to)
    return None if value is None or ends is None else wrapped(value, *ends)


def combined(operator: str, left: Poly | None, right: Poly | None, kind: ir.Type | None) -> Poly | None:
    """``left operator right`` in the type of the result, to which both were converted."""
    ends = holds(kind)
    if left is None or right is None or ends is None:
        return None
    number = right.constant
    if operator == "/" and number is not None and number > 0:
        found = quotient(left, number, *ends)
        return found if found.counters == left.counters else None  # its symbol would not tell trips apart
    if operator == "<<" and number is not None and 0 <= number < 32:
        return _kept(left.times(1 << number), ends, False)
    if operator in ("+", "-", "*"):
        result = {"+": left.__add__, "-": left.__sub__, "*": left.__mul__}[operator](right)
        return _kept(result, ends, ends[0] < 0 and ends[1] >= 2**31 - 1)
    return None


def _kept(value: Poly, ends: tuple[int, int], exact: bool) -> Poly | None:
    if len(value.terms) > _TERMS:
        return None
    return value if exact else wrapped(value, *ends)


def pointee(pointer: ir.Expr) -> ir.Type | None:
    """What a pointer expression counts in; None where its type is not known."""
    if isinstance(pointer, ir.Name):
        kind: ir.Type | None = pointer.variable.type
    elif isinstance(pointer, (ir.Select, ir.Cast, ir.Binary, ir.Call)):
        kind = pointer.type
    else:
        return None
    if kind is not None and kind.shape is ir.Shape.REFERENCE:
        kind = kind.element
    return kind.element if kind is not None and kind.shape is ir.Shape.POINTER else None


def kind_of(expression: ir.Expr) -> ir.Type | None:
    """The type of an integer expression that may be a symbol; None for others."""
    if isinstance(expression, ir.Name):
        declared = expression.variable.type
        return declared.element if declared.shape is ir.Shape.REFERENCE else declared
    if isinstance(expression, (ir.Select, ir.Cast, ir.Binary, ir.Unary, ir.Call)):
        kind = expression.type
        return kind.element if kind is not None and kind.shape is ir.Shape.REFERENCE else kind
    return None


def is_moved(sum_: ir.Binary, one: ir.Expr, other: ir.Expr) -> bool:
    """Whether `one` is a pointer and `other` by how many elements it is moved: it stays within what it points into.

    Integers that are made of addresses may lead from one allocation to another one.
    """
    if sum_.type is None or sum_.type.shape is not ir.Shape.POINTER:
        return False
    kind, its = kind_of(one), kind_of(other)
    return (kind is not None and kind.shape is ir.Shape.POINTER) or (its is not None and its.shape is ir.Shape.INTEGER)


def written_type(expression: ir.Expr) -> ir.Type | None:
    """The type in which the value of an integer expression is, so that it needs no conversion to that one."""
    if isinstance(expression, ir.Branch):
        then, other = written_type(expression.then), written_type(expression.other)
        return then if then is not None and other is not None and _plain(then) == _plain(other) else None
    return kind_of(expression)


def _plain(kind: ir.Type) -> str:
    return kind.spelling.replace("const ", "").replace("volatile ", "")


class Symbols:
    """Makes symbols, each with a name of its own."""

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()
        self.off = False

    def fresh(self, expression: ir.Expr) -> Poly | None:
        """A symbol for what an expression evaluates to, this once."""
        ends = holds(kind_of(expression))
        if ends is None or self.off:
            return None
        name = _spelled(expression)
        self._made[name] += 1
        number = self._made[name]
        return of(Symbol(name if number == 1 else f"{name}#{number}", *ends))


def _spelled(expression: ir.Expr) -> str:
    if isinstance(expression, ir.Name):
        return expression.variable.name
    if isinstance(expression, ir.Select):
        inner = _spelled(expression.base) if expression.base is not None else "this"
        return f"{inner}.{expression.member}"
    if isinstance(expression, ir.Call) and not expression.constructs:
        return f"{expression.name}()"
    return _spelled(expression.operand) if isinstance(expression, ir.Cast) else "value"


ZERO = constant(0)

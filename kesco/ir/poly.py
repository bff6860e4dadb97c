"""Integers that are not known, as polynomials: sizes, offsets and the byte ranges made from them.

A *symbol* stands for one integer that does not change while the function runs in which it is compared: the value of a
variable at one moment, a kernel's argument, a dimension of a launch. A *counter* (`Turn`) is the exception: it has one
value in each trip of a loop, so whoever compares two executions says of which trips they are.

A *polynomial* is a sum of products of symbols
with integer factors. It is exact: nothing wraps around. Whoever makes one from a program's arithmetic says where that
would not be so, and makes a new symbol there (`wrapped`, `quotient`).

`ByteRange` is the memory from `low` up to, not including, `high`, in bytes from where a buffer begins. Where `high` is
not more than `low` it is empty, whatever the two are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """One unknown integer between `low` and `high`, both included.

    `name` is unique: two symbols of one name are one value. `wraps` is what it is up to a multiple of a power of two.
    `turn` makes it a counter. `most` are polynomials that it is never above, such as the two operands of a minimum.
    """

    name: str
    low: int
    high: int
    wraps: Poly | None = field(default=None, repr=False)
    turn: Turn | None = field(default=None, repr=False)
    most: tuple[Poly, ...] = field(default=(), repr=False)

    @property
    def counters(self) -> frozenset[Symbol]:
        """All counters that its value depends on."""
        if self.turn is not None:
            return frozenset((self,))
        inner = (*((self.wraps,) if self.wraps is not None else ()), *self.most)
        return frozenset(c for poly in inner for c in poly.counters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbol) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __lt__(self, other: Symbol) -> bool:
        return self.name < other.name


Monomial = tuple[Symbol, ...]
APART = 1 << 200
"""More bytes than any allocation has: so far apart those are thought to be that are taken for parts of one memory."""


@dataclass(frozen=True, slots=True)
class Turn:
    """How a counter changes: by `step` from one trip of a loop to the next, which is the same in all trips.

    `loop` names the loop, and `around` are the loops around it, outermost first: as long as this loop is not left,
    their counters keep their values. `counter` is the name of the variable that is counted, if it is one.
    """

    loop: str
    step: Poly
    around: tuple[str, ...] = ()
    counter: str = ""


@dataclass(frozen=True, slots=True)
class Poly:
    """A sum of products; `terms` pairs sorted symbols with a factor that is not 0."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    def __add__(self, other: Poly) -> Poly:
        return _sum((*self.terms, *other.terms))

    def __sub__(self, other: Poly) -> Poly:
        return self + other.times(-1)

    def __mul__(self, other: Poly) -> Poly:
        return _sum((tuple(sorted((*a, *b))), m * n) for a, m in self.terms for b, n in other.terms)

    def times(self, factor: int) -> Poly:
        """The polynomial, `factor` times."""
        return Poly(tuple((m, n * factor) for m, n in self.terms)) if factor else Poly()

    @property
    def constant(self) -> int | None:
        """The number that it is, if it is one."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () and len(self.terms) == 1 else None

    @property
    def symbols(self) -> frozenset[Symbol]:
        """All symbols in it."""
        return frozenset(s for m, _ in self.terms for s in m)

    def bounds(self) -> tuple[int, int]:
        """Numbers that it is never below and never above."""
        low = high = 0
        for monomial, factor in self.terms:
            a = b = factor
            for symbol in monomial:
                ends = (a * symbol.low, a * symbol.high, b * symbol.low, b * symbol.high)
                a, b = min(ends), max(ends)
            low, high = low + a, high + b
        return low, high

    @property
    def counters(self) -> frozenset[Symbol]:
        """All counters that its value depends on, also by way of other symbols."""
        return frozenset(c for s in self.symbols for c in s.counters)

    def substituted(self, value: Callable[[Symbol], Poly | None]) -> Poly | None:
        """The polynomial with values for its symbols; None where one has none."""
        result = Poly()
        for monomial, factor in self.terms:
            product = constant(factor)
            for symbol in monomial:
                known = value(symbol)
                if known is None:
                    return None
                product = product * known
            result = result + product
        return result

    def __str__(self) -> str:
        text = ""
        for monomial, factor in sorted(self.terms, key=lambda term: (-len(term[0]), term[0])):
            names = "*".join(s.name for s in monomial)
            sign = "-" if factor < 0 else "+"
            size = abs(factor)
            if size % APART == 0:
                size, names = size // APART, f"apart*{names}" if names else "apart"
            part = names if names and size == 1 else f"{size}*{names}" if names else str(size)
            text += f" {sign} {part}" if text else f"{'-' if factor < 0 else ''}{part}"
        return text or "0"


def _sum(terms: Iterable[tuple[Monomial, int]]) -> Poly:
    found: dict[Monomial, int] = {}
    for monomial, factor in terms:
        found[monomial] = found.get(monomial, 0) + factor
    return Poly(tuple(sorted((m, f) for m, f in found.items() if f)))


def constant(value: int) -> Poly:
    """A number."""
    return Poly((((), value),)) if value else Poly()


def of(symbol: Symbol) -> Poly:
    """A symbol alone."""
    return Poly((((symbol,), 1),))


def wrapped(value: Poly, low: int, high: int) -> Poly:
    """`value` as an integer type that holds `low` to `high` keeps it: itself where it fits, else a new symbol."""
    least, most = value.bounds()
    if low <= least and most <= high:
        return value
    return of(Symbol(f"[{low}..{high}]({value})", low, high, value))


def quotient(value: Poly, by: int, low: int, high: int) -> Poly:
    """`value` divided by a positive number, towards 0; `low` and `high` are what its type holds."""
    if all(factor % by == 0 for _, factor in value.terms):
        return Poly(tuple((m, f // by) for m, f in value.terms))
    least, most = (min(max(end, low), high) for end in value.bounds())
    ends = [abs(end) // by * (1 if end >= 0 else -1) for end in (least, most)]
    shown = str(value) if len(value.terms) == 1 and value.terms[0][1] == 1 else f"({value})"
    return of(Symbol(f"({shown}/{by})", ends[0], ends[1]))


def least(one: Poly, other: Poly, type_low: int, type_high: int) -> Poly:
    """The lesser of two, which is known to be from `type_low` to `type_high`."""
    if one == other:
        return one
    ends = (one.bounds(), other.bounds())
    for this, that in ((0, 1), (1, 0)):
        if ends[this][1] <= ends[that][0]:
            return (one, other)[this]
    low, high = max(type_low, min(ends[0][0], ends[1][0])), min(type_high, ends[0][1], ends[1][1])
    both = tuple(sorted((one, other), key=str))
    return of(Symbol(f"min({both[0]}, {both[1]})", low, max(low, high), most=both))


def unwrapped(value: Poly, modulus: int) -> Poly:
    """What `value` is up to a multiple of `modulus`, without the symbols that only stand for what wrapped around."""

    def inner(symbol: Symbol) -> Poly:
        whole = symbol.high - symbol.low + 1
        if symbol.wraps is None or whole % modulus:
            return of(symbol)
        return unwrapped(symbol.wraps, modulus)

    return value.substituted(inner) or Poly()


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `low` up to `high` of a buffer; see the module's docstring."""

    low: Poly
    high: Poly

    @property
    def counters(self) -> frozenset[Symbol]:
        """All counters that its ends depend on."""
        return self.low.counters | self.high.counters

    def moved(self, by: Poly) -> ByteRange:
        """The range, `by` bytes further on."""
        return ByteRange(self.low + by, self.high + by)

    def __str__(self) -> str:
        return f"[{self.low}, {self.high})"

"""What one object holds: cells that are certain, entries that may have been written, and what all other bytes are.

*Cells* (offset → size and value) do not overlap and are certain. *Weak* entries may have been written at an offset, or
at many. `rest` is what all other bytes hold. A *volatile* object may be changed by somebody who is not followed, at any
time: what it holds is unknown, and what is put there escapes. In a *blurred* one only numbers may be changed so, of
types for which C++ has it that no pointer is changed by them ([basic.lval]). What a *lazy* one held when the path began
is asked for when it is first read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import gcd

from kesco.analysis.host.values import NOTHING, ZERO, Object, Offset, Scalar, Value, joined, number, objects

WIDEST = 16  # bytes of a cell
FEW = 512  # bytes that are zeroed or copied cell by cell
Weak = tuple[int, int, int]  # stride, rest, size


@dataclass(slots=True)
class Contents:
    """See the module's docstring."""

    cells: dict[int, tuple[int, Value]] = field(default_factory=dict)
    weak: dict[Weak, Value] = field(default_factory=dict)
    rest: Scalar = NOTHING
    volatile: bool = False
    blurred: bool = False
    freed: bool = False
    lazy: bool = False  # what no cell holds is what was there when the path began, and has a name
    _links: frozenset[Object] | None = None

    def copy(self) -> Contents:
        """Contents of their own."""
        return Contents(
            dict(self.cells), dict(self.weak), self.rest, self.volatile, self.blurred, self.freed, self.lazy
        )  # fmt: skip

    def links(self) -> frozenset[Object]:
        """The objects whose addresses are held; found once for as long as nothing changes."""
        if self._links is None:
            self._links = frozenset(one for value in self.held() for one in objects(value))
        return self._links

    def change(self) -> None:
        """What is held is about to change."""
        self._links = None

    def held(self) -> Iterable[Value]:
        """Every value that is held somewhere."""
        yield from (value for _, value in self.cells.values())
        yield from self.weak.values()
        yield self.rest

    def held_at(self, offset: Offset, size: int) -> Iterable[Value] | None:
        """What may be held there, or anywhere in the object where that is not told; None: what was there at first."""
        cell = self.cells.get(offset[1]) if not offset[0] and not self.weak else None
        if cell is not None and cell[0] == size:
            return [cell[1]]
        return None if self.lazy else self.held()

    def overlapping(self, at: int, size: int) -> list[int]:
        """Where cells begin that have a byte in this range."""
        if size > FEW:
            return [o for o, (s, _) in self.cells.items() if o < at + size and at < o + s]
        return [o for o in range(at - WIDEST + 1, at + size) if (c := self.cells.get(o)) and at < o + c[0]]

    def assembled(self, parts: list[int], at: int, size: int) -> int | None:
        """The number that a range holds, of the cells that begin at `parts`; None where not all of it is known."""
        total, end = 0, at
        for o in parts:
            length, value = self.cells[o]
            one = number(value)
            if one is None or (o > end and self.rest != ZERO):
                return None
            one &= (1 << 8 * length) - 1
            if o < at:
                one, length, o = one >> 8 * (at - o), length - (at - o), at
            total |= one << 8 * (o - at)
            end = o + length
        return signed(total, 8 * size) if end >= at + size or self.rest == ZERO else None

    def cut(self, at: int, size: int, part: Callable[[Value], Scalar]) -> None:
        """Take a range out of the cells; what is left of one that reaches beyond stays, as a `part` of its value."""
        if self.weak:
            for key in [k for k in self.weak if not k[0] and at <= k[1] and k[1] + k[2] <= at + size]:
                del self.weak[key]
        exact = self.cells.get(at)
        if exact is not None and exact[0] == size:
            del self.cells[at]
            return
        for o in self.overlapping(at, size):
            length, value = self.cells.pop(o)
            for first, end in ((o, at), (at + size, o + length)):
                if first < end:
                    one = number(value)
                    if one is not None:
                        bits = 8 * (end - first)
                        left: Scalar = frozenset((signed(one >> 8 * (first - o), bits),))
                    else:
                        left = part(value)
                    self.cells[first] = (end - first, left)

    def add(self, offset: Offset, size: int, value: Value) -> None:
        """Let a value have been written, or not."""
        stride, rest = offset
        cell = self.cells.get(rest) if not stride else None
        if cell is not None and cell[0] == size:
            self.cells[rest] = (size, joined(cell[1], value))
        else:
            key = (stride, rest, size)
            old = self.weak.get(key)
            self.weak[key] = value if old is None else joined(old, value)


def signed(bits_: int, bits: int) -> int:
    """A number of so many bits, with its sign."""
    bits_ &= (1 << bits) - 1
    return bits_ - (1 << bits) if bits > 1 and bits_ >> (bits - 1) else bits_


def may_overlap(a: Offset, size: int, b: Offset, length: int) -> bool:
    """Whether a byte of one range may be a byte of the other."""
    stride = gcd(a[0], b[0])
    gap = a[1] - b[1]
    if not stride:
        return -size < gap < length
    gap %= stride
    return gap < length or stride - gap < size

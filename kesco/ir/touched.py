"""What a launch touches, as bytes: disjoint ranges of addresses, in order.

Values that both sides of the check share: who runs a kernel's addresses makes them, who looks for races compares them.
Kept as two arrays, since an interleaved component of an array is as many ranges as it has elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kesco.ir.effects import ParamBase

Addresses = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Ranges from `lows` up to, not including, `highs`; sorted, and apart from each other."""

    lows: Addresses
    highs: Addresses

    @classmethod
    def none(cls) -> Spans:
        """No bytes at all."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def of(cls, lows: Addresses, width: int) -> Spans:
        """The bytes of accesses that are `width` wide."""
        begins = np.unique(lows)
        return _joined(begins, begins + width)

    @classmethod
    def rows(cls, low: int, width: int, pitch: int = 0, count: int = 1) -> Spans:
        """`count` rows, each `pitch` behind the one before."""
        begins = low + pitch * np.arange(count, dtype=np.int64)
        return cls.of(begins, width)

    @classmethod
    def all_of(cls, parts: Iterable[Spans]) -> Spans:
        """The bytes of any of these."""
        several = [one for one in parts if len(one.lows)]
        if len(several) < 2:
            return several[0] if several else cls.none()
        begins, ends = np.concatenate([s.lows for s in several]), np.concatenate([s.highs for s in several])
        order = np.argsort(begins, kind="stable")
        return _joined(begins[order], np.maximum.accumulate(ends[order]))

    def moved(self, by: int) -> Spans:
        """The same bytes, further on."""
        return Spans(self.lows + by, self.highs + by)

    def within(self, low: int, high: int) -> Spans:
        """The ranges that touch these addresses."""
        first = int(np.searchsorted(self.highs, low, "right"))
        last = int(np.searchsorted(self.lows, high, "left"))
        return Spans(self.lows[first:last], self.highs[first:last])

    def meets(self, other: Spans) -> bool:
        """Whether there is a byte in both."""
        few, many = (self, other) if len(self.lows) <= len(other.lows) else (other, self)
        if not len(few.lows):
            return False
        after = np.searchsorted(many.highs, few.lows, "right")  # the first range that ends behind where this one begins
        inside = after < len(many.lows)
        return bool(np.any(many.lows[after[inside]] < few.highs[inside]))

    def covers(self, low: int, high: int) -> bool:
        """Whether all bytes from one address up to another are among these."""
        at = int(np.searchsorted(self.lows, low, "right")) - 1
        return at >= 0 and bool(self.highs[at] >= high)

    def __bool__(self) -> bool:
        return len(self.lows) > 0


class Bytes(NamedTuple):
    """The bytes that something reads, or that it writes.

    `may` is an upper limit, None where an address is not known. `surely` it touches whatever the memory that it reads
    holds, and `somewhere` is whether it surely touches a byte of which only the allocation is known.
    """

    may: Spans | None
    surely: Spans
    somewhere: bool = False

    @classmethod
    def unknown(cls) -> Bytes:
        """Any bytes, or none."""
        return cls(None, Spans.none())

    @classmethod
    def exactly(cls, spans: Spans) -> Bytes:
        """These bytes and no others."""
        return cls(spans, spans)

    @classmethod
    def any_of(cls, parts: Sequence[Bytes]) -> Bytes:
        """What several do together."""
        limits = [one.may for one in parts if one.may is not None]
        may = Spans.all_of(limits) if len(limits) == len(parts) else None
        return cls(may, Spans.all_of(one.surely for one in parts), any(one.somewhere for one in parts))

    def moved(self, by: int) -> Bytes:
        """The same, further on."""
        return self._replace(may=None if self.may is None else self.may.moved(by), surely=self.surely.moved(by))


class Touch(NamedTuple):
    """What a launch does through one root."""

    reads: Bytes
    writes: Bytes


@dataclass(frozen=True, slots=True)
class Touches:
    """What a launch does, by root; `whole` is whether all of its threads were looked at.

    The addresses behind a device symbol count from where it begins.
    """

    by: Mapping[ParamBase | str, Touch]
    whole: bool

    def of(self, root: ParamBase | str) -> Touch:
        """Through one root: a pointer in a structure may also be one that is chosen by an index."""
        names: list[ParamBase | str] = [root] if isinstance(root, str) else [root, (root[0], -1)]
        found = [self.by[one] for one in dict.fromkeys(names) if one in self.by]
        if not found:
            nothing = Bytes.exactly(Spans.none()) if self.whole else Bytes.unknown()
            return Touch(nothing, nothing)
        return Touch(Bytes.any_of([one.reads for one in found]), Bytes.any_of([one.writes for one in found]))


Shape = tuple[int, int, int]
Asked = Callable[[str, tuple[bytes, ...], Shape, Shape], Touches | None]
"""A kernel's name, the bytes of its arguments, grid and block → what such a launch touches; None: nothing is known."""


def _joined(begins: Addresses, ends: Addresses) -> Spans:
    """Ranges whose begins and ends are both in order → those that touch each other in one."""
    if not len(begins):
        return Spans.none()
    apart = begins[1:] > ends[:-1]
    return Spans(begins[np.concatenate(([True], apart))], ends[np.concatenate((apart, [True]))])

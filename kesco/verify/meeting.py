"""Whether two accesses of one allocation touch a common byte, and whether one stands for the other.

In: two `Access`es, and somebody who knows which bytes each of them touches. Out: no, perhaps, or yes: *yes* only where
there is a byte that both touch whatever memory holds, or where the two are launches that touch the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from kesco.ir.touched import Bytes
from kesco.verify.footprint import Access
from kesco.verify.memory import Memory
from kesco.verify.trace import Range


class Meeting(Enum):
    """Whether two accesses touch a common byte."""

    NO = "no"
    PERHAPS = "perhaps"
    YES = "yes"


def overlaps(a: Access, b: Access, touched: Callable[[Access], Bytes], whole: tuple[int, int]) -> Meeting:
    """Whether two accesses of one allocation, which is the bytes of `whole`, touch a common byte."""
    if a.exact and b.exact:
        return Meeting.YES if _share(a.bytes, b.bytes) else Meeting.NO
    if a.vague or b.vague:
        return Meeting.PERHAPS
    limits = _limits(a) or whole, _limits(b) or whole
    if not (limits[0][0] < limits[1][1] and limits[1][0] < limits[0][1]):
        return Meeting.NO
    x, y = touched(a), touched(b)
    if x.surely.meets(y.surely):
        return Meeting.YES
    for one, other, stays in ((x, y, limits[1]), (y, x, limits[0])):
        if one.somewhere and other.surely.covers(*whole):
            return Meeting.YES
        if one.may is not None and not (one.may.within(*stays) if other.may is None else one.may.meets(other.may)):
            return Meeting.NO
    if a.part is not None and a.part == b.part and a.writes and b.writes:
        return Meeting.YES
    return Meeting.PERHAPS


def _share(x: Range, y: Range) -> bool:
    """Whether two ranges have a common byte."""
    if x.high <= y.low or y.high <= x.low:
        return False
    pitch = x.pitch if x.rows > 1 else y.pitch
    if pitch and (x.rows == 1 or x.pitch == pitch) and (y.rows == 1 or y.pitch == pitch):
        apart = (y.low - x.low) % pitch  # columns of one grid
        return apart < x.width or apart + y.width > pitch
    return True


def _limits(access: Access) -> tuple[int, int] | None:
    """The addresses between which an access stays; None where that may be anywhere in the allocation."""
    return (access.bytes.low, access.bytes.high) if access.exact else access.most


def identity(access: Access) -> object:
    """Two accesses of which this is equal touch the same bytes."""
    if access.part is not None:
        return access.allocation, access.writes, access.bytes.low, access.part
    return access.allocation, access.writes, access.bytes, access.exact, access.vague


def covers(new: Access, old: Access, memory: Memory) -> bool:
    """Whether whatever conflicts with the old access conflicts with the new one, and as certainly."""
    if old.writes and not new.writes:
        return False
    if new.vague or old.vague:
        return new.vague == old.vague
    if new.part is not None and new.part == old.part:
        return True
    if not new.exact or new.bytes.rows > 1:
        return new.exact and old.exact and new.bytes == old.bytes._replace(writes=new.bytes.writes)
    limits = _limits(old)
    if limits is None:
        whole = memory.all[old.allocation]
        limits = (whole.base, whole.base + whole.size)
    return new.bytes.low <= limits[0] and limits[1] <= new.bytes.high

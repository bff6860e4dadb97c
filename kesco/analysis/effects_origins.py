"""Where a pointer may come from, as sets that cost one machine operation to join.

An *origin* is a root of the kernel (a parameter, a field of one, a device symbol), reached directly or through memory;
a place in memory of the kernel's own (stack, shared memory, its copy of a by-value parameter); or one of five special
ones. A set of origins is an integer, one bit an origin, so that joining sets is ``|``.

An origin is *data* when it was read as something other than a pointer: an integer loaded from memory may be a pointer
in disguise, but as an array index it is only an index. Turning it into a pointer makes it an address again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kesco.ir.effects import ParamBase

NULL = 1  # null or undefined: an access would fault
INTEGER = 2  # an integer the host passed by value: data
FORGED = 4  # such an integer, used as a pointer
UNKNOWN = 8
FIELD = 16  # an integer in a field of its own, which holds no address: only in memory of the kernel's own

Base = ParamBase | str  # a str is a device symbol


class Root(NamedTuple):
    """A pointer that is the root itself, or was loaded from memory reached through it."""

    base: Base
    deep: bool = False
    data: bool = False


class Fixed(NamedTuple):
    """The address of a symbol that never changes: accesses are no effect, its initializer may hold pointers."""

    name: str


class Local(NamedTuple):
    """The address of the kernel's own memory: object number and byte offset (None: anywhere in it)."""

    object: int
    offset: int | None


Origin = Root | Fixed | Local

MANY_OFFSETS = 4  # a pointer with more offsets into one object than this points anywhere in it


class Origins:
    """Numbers the origins of one kernel and answers questions about sets of them, remembering the answers."""

    def __init__(self) -> None:
        self._bits: dict[Origin, int] = {}
        self._of: dict[int, Origin] = {}
        self._next = 32
        self.data = INTEGER  # every origin that is data
        self.locals = 0  # every origin that is the kernel's own memory
        self._addresses: dict[int, int] = {}
        self._moved: dict[tuple[int, int | None], int] = {}

    def bit(self, origin: Origin) -> int:
        """The set of just that origin."""
        found = self._bits.get(origin)
        if found is None:
            found = self._bits[origin] = self._next
            self._of[found] = origin
            self._next <<= 1
            if isinstance(origin, Local):
                self.locals |= found
            elif isinstance(origin, Root) and origin.data:
                self.data |= found
        return found

    def each(self, mask: int) -> Iterator[Origin]:
        """The origins in a set, without the special ones."""
        mask &= ~31
        while mask:
            low = mask & -mask
            yield self._of[low]
            mask ^= low

    def address(self, mask: int) -> int:
        """The set, once its values are used as pointers."""
        if not mask & self.data:
            return mask
        found = self._addresses.get(mask)
        if found is None:
            found = mask & ~self.data
            if mask & INTEGER:
                found |= FORGED
            for origin in self.each(mask & self.data):
                assert isinstance(origin, Root)
                found |= self.bit(origin._replace(data=False))
            self._addresses[mask] = found
        return found

    def pointers(self, mask: int) -> int:
        """The part of a set that is certainly meant as pointers."""
        return mask & ~self.data & ~NULL

    def moved(self, mask: int, by: int | None) -> int:
        """The set after adding `by` bytes (None: any number of them)."""
        if by == 0 or not mask & self.locals:
            return mask
        key = (mask, by)
        found = self._moved.get(key)
        if found is None:
            found = mask & ~self.locals
            offsets: dict[int, set[int | None]] = {}
            for origin in self.each(mask & self.locals):
                assert isinstance(origin, Local)
                to = None if by is None or origin.offset is None else origin.offset + by
                offsets.setdefault(origin.object, set()).add(to)
            for number, seen in offsets.items():
                anywhere = None in seen or len(seen) > MANY_OFFSETS
                for offset in (None,) if anywhere else seen:
                    found |= self.bit(Local(number, offset))
            self._moved[key] = found
        return found

    def one_object(self, mask: int) -> bool:
        """Whether all values of the set certainly point into one and the same allocation."""
        bases = {o.object if isinstance(o, Local) else o for o in self.each(self.pointers(mask))}
        if len(bases) != 1 or mask & (FORGED | UNKNOWN):
            return False
        only = next(iter(bases))
        return not (isinstance(only, Root) and (only.deep or (isinstance(only.base, tuple) and only.base[1] < 0)))

"""What pointers the kernel keeps in memory of its own: stack, shared memory, its by-value parameters.

Contents only ever grow (the analysis does not know in which order things happen), and are kept per object, byte offset
and size, so that the two pointers of a structure stay apart as long as their offsets are known.
"""

from __future__ import annotations

from kesco.analysis.device_ir import Param
from kesco.analysis.effects_origins import FIELD, INTEGER, NULL, Origins, Root

EVERYTHING = 1 << 40  # a size that covers any object
_POINTER = 8
_MANY_ENTRIES = 256

Place = tuple[int | None, int]  # byte offset (None: anywhere) and size


class LocalMemory:
    """The objects of one kernel and what they hold; `version` changes whenever a content grows."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._numbers: dict[object, int] = {}
        self._contents: list[dict[Place, int]] = []
        self.version = 0

    def object(self, key: object) -> int:
        """The number of the object with that key, made when first asked for."""
        if key not in self._numbers:
            self._numbers[key] = len(self._contents)
            self._contents.append({})
        return self._numbers[key]

    def parameter(self, index: int, param: Param) -> int:
        """The kernel's copy of by-value parameter `index`: its pointers are roots, all else is integers.

        Those where bytes of pointers may be, too, are kept apart from integers in fields of their own.
        """
        number = self.object(("parameter", index))
        for offset in param.pointers:
            self.store(number, offset, _POINTER, self._origins.bit(Root((index, offset))))
        at = 0
        for offset in (*sorted(param.pointers), param.byval):
            if offset > at:
                self.store(number, at, offset - at, FIELD)
            at = offset + _POINTER
        for offset, size in param.raw:
            self.store(number, offset, size, INTEGER)
        return number

    def store(self, number: int, offset: int | None, size: int, mask: int) -> None:
        """Add to what an object may hold."""
        if not mask:
            return
        content = self._contents[number]
        place: Place = (offset, size) if offset is not None else (None, size)
        if place not in content and len(content) >= _MANY_ENTRIES:
            place = (None, EVERYTHING)
        old = content.get(place, 0)
        if old | mask != old:
            content[place] = old | mask
            self.version += 1

    def load(self, number: int, offset: int | None, size: int, pointer: bool) -> int:
        """What a read of `size` bytes may see; a `pointer`, so declared, is not read from an integer's own field."""
        result = 0
        for (start, length), mask in self._contents[number].items():
            if offset is None or start is None or (start < offset + size and offset < start + length):
                result |= mask
        if not result & FIELD:
            return result
        result &= ~FIELD  # seen because the offset is unknown, if there are pointers as well
        return result if pointer and result & ~(INTEGER | NULL) else result | INTEGER

    def copy(self, source: int, start: int | None, target: int, to: int | None, size: int) -> None:
        """Add what `size` bytes of one object hold to another object."""
        for (offset, length), mask in list(self._contents[source].items()):
            if start is None or to is None or offset is None:
                self.store(target, None, length, mask)
            elif start < offset + length and offset < start + size:
                self.store(target, to + offset - start, length, mask)

    def all_contents(self) -> int:
        """Everything that is held anywhere."""
        result = 0
        for content in self._contents:
            for mask in content.values():
                result |= mask
        return result & ~FIELD | INTEGER if result & FIELD else result

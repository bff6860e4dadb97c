"""Types of LLVM IR, and how a target lays them out.

In: the string ``target datalayout`` of a module and its named structures. Out: sizes and offsets in bytes. Types are
values: two that are spelled alike are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_SPECS = re.compile(r"(?:^|-)([ifvap])(\d*):(\d+)(?::(\d+))?")
_FLOATS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "fp128": 128, "x86_fp80": 80, "ppc_fp128": 128}
_USUAL = {
    ("i", 1): 8, ("i", 8): 8, ("i", 16): 16, ("i", 32): 32, ("i", 64): 32, ("f", 16): 16, ("f", 32): 32,
    ("f", 64): 64, ("f", 128): 128, ("v", 64): 64, ("v", 128): 128,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Type:
    """A type: what it is, and what it is made of.

    `kind` is void, int, float, ptr, array, vector, struct, packed, named, function or other. `number` counts an
    integer's bits or the elements of an array, or is a pointer's address space.
    """

    kind: str
    number: int = 0
    name: str = ""  # of a structure, or of a kind of float
    parts: tuple[Type, ...] = ()  # the element; a structure's members; a function's result and parameters


VOID, POINTER, BIT, BYTE = Type("void"), Type("ptr"), Type("int", 1), Type("int", 8)
FLOATS = {name: Type("float", bits, name) for name, bits in _FLOATS.items()}


class Layouts:
    """Answers for one module's types."""

    def __init__(self, specification: str, named: Mapping[str, Type]) -> None:
        self._named = named
        self._alignments = dict(_USUAL)
        self._pointers = {0: (8, 8)}
        for letter, first, second, third in _SPECS.findall(specification):
            if letter == "p":
                self._pointers[int(first or 0)] = int(second) // 8, int(third or second) // 8
            elif letter != "a" and first:
                self._alignments[letter, int(first)] = int(second)
        self._known: dict[Type, tuple[int, int]] = {}
        self._offsets: dict[Type, tuple[int, ...]] = {}

    def resolved(self, type_: Type) -> Type:
        """The structure behind a name."""
        while type_.kind == "named" and type_.name in self._named:
            type_ = self._named[type_.name]
        return type_

    def size(self, type_: Type) -> int:
        """The bytes from one element of an array to the next."""
        return self._both(type_)[0]

    def offsets(self, type_: Type) -> tuple[int, ...]:
        """Where a structure's members are."""
        if type_ not in self._offsets:
            real, at, found = self.resolved(type_), 0, []
            for part in real.parts:
                size, alignment = self._both(part)
                at = at if real.kind == "packed" else _rounded(at, alignment)
                found.append(at)
                at += size
            self._offsets[type_] = tuple(found)
        return self._offsets[type_]

    def element(self, type_: Type, index: int) -> Type:
        """The type of a member, or of an element."""
        real = self.resolved(type_)
        return real.parts[index if real.kind in ("struct", "packed") else 0]

    def offset(self, source: Type, indices: Sequence[int | None]) -> int | None:
        """How far a getelementptr goes that counts in `source`; None where an index that matters is not known."""
        at, type_ = 0, source
        for position, index in enumerate(indices):
            if position:
                real = self.resolved(type_)
                if real.kind in ("struct", "packed"):
                    if index is None:
                        return None
                    at += self.offsets(real)[index]
                    type_ = real.parts[index]
                    continue
                type_ = real.parts[0]
            if index is None:
                return None
            at += index * self.size(type_)
        return at

    def scalars(self, type_: Type, at: int = 0, most: int = 4096) -> Iterator[tuple[int, Type]]:
        """What a type holds that has no parts, each with its offset; of long arrays the first elements only."""
        real = self.resolved(type_)
        if real.kind in ("struct", "packed"):
            for offset, part in zip(self.offsets(real), real.parts, strict=True):
                yield from self.scalars(part, at + offset, most)
        elif real.kind in ("array", "vector"):
            size = self.size(real.parts[0])
            for index in range(min(real.number, most)):
                yield from self.scalars(real.parts[0], at + index * size, most)
        else:
            yield at, real

    def _both(self, type_: Type) -> tuple[int, int]:
        """Size and alignment."""
        found = self._known.get(type_)
        if found is None:
            found = self._known[type_] = self._measured(self.resolved(type_))
        return found

    def _measured(self, real: Type) -> tuple[int, int]:
        if real.kind == "ptr":
            return self._pointers.get(real.number, self._pointers[0])
        if real.kind == "array":
            size, alignment = self._both(real.parts[0])
            return size * real.number, alignment
        if real.kind in ("struct", "packed"):
            offsets = self.offsets(real)
            end = offsets[-1] + self.size(real.parts[-1]) if offsets else 0
            alignment = 1 if real.kind == "packed" else max((self._both(p)[1] for p in real.parts), default=1)
            return _rounded(end, alignment), alignment
        if real.kind == "vector":
            element = self.resolved(real.parts[0])
            bits = real.number * (8 * self.size(element) if element.kind == "ptr" else element.number)
            alignment = self._alignments.get(("v", bits), 8 * _power(-(-bits // 8))) // 8
        elif real.kind in ("int", "float"):
            bits = real.number
            alignment = self._scalar("i" if real.kind == "int" else "f", bits) // 8
        else:
            return 0, 1
        return _rounded(-(-bits // 8), alignment), alignment

    def _scalar(self, letter: str, bits: int) -> int:
        exact = self._alignments.get((letter, bits))
        if exact is not None:
            return exact
        if letter == "f":
            return 8 * _power(-(-bits // 8))
        known = sorted(width for one, width in self._alignments if one == "i")
        return self._alignments["i", next((width for width in known if width > bits), known[-1])]


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _power(size: int) -> int:
    """The smallest power of two that is not below."""
    return 1 << max(0, size - 1).bit_length()

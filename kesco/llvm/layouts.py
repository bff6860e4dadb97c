"""What a structure that is passed by value has where: ``layout_of(type, layouts)``.

In: a type and its module's layouts. Out: a `Layout`: where pointers are, and where the bytes of others may be.

An integer field holds no address that is read as a pointer: the language forbids it. Two things do: an array of bytes,
into which pointers are copied, and a union, whose LLVM type is that of only one of its members.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kesco.llvm.types import Layouts, Type

_POINTER = 8
_ANY_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class Layout:
    """Byte offsets of pointers, and offset and size of what may hold the bytes of some."""

    pointers: tuple[int, ...]
    raw: tuple[tuple[int, int], ...]


def layout_of(type_: Type, layouts: Layouts) -> Layout:
    """The layout of a type."""
    pointers: list[int] = []
    raw: list[tuple[int, int]] = []
    _walk(type_, 0, layouts, pointers, raw)
    return Layout(
        tuple(pointers), tuple(part for begin, size in raw for part in _between(begin, begin + size, pointers))
    )


def _between(begin: int, end: int, pointers: list[int]) -> Iterator[tuple[int, int]]:
    """Offset and size of what is no pointer there: a union whose type has one is read as that one."""
    for pointer in (*sorted(p for p in pointers if begin <= p < end), end):
        if pointer > begin:
            yield begin, pointer - begin
        begin = pointer + _POINTER


def _walk(type_: Type, base: int, layouts: Layouts, pointers: list[int], raw: list[tuple[int, int]]) -> None:
    if type_.name.startswith("union."):
        raw.append((base, layouts.size(type_)))
    real = layouts.resolved(type_)
    if real.kind == "ptr":
        pointers.append(base)
    elif real.kind in ("struct", "packed"):
        for part, offset in zip(real.parts, layouts.offsets(real), strict=True):
            _walk(part, base + offset, layouts, pointers, raw)
    elif real.kind in ("other", "named"):  # what it holds is not known
        raw.append((base, _ANY_SIZE))
    elif real.kind in ("array", "vector"):
        size = layouts.size(real.parts[0])
        if size == 1 and real.number >= _POINTER:
            raw.append((base, real.number))
            return
        inner = layout_of(real.parts[0], layouts)
        for at in range(base, base + real.number * size, size) if inner.pointers or inner.raw else ():
            pointers += (at + offset for offset in inner.pointers)
            raw += ((at + offset, length) for offset, length in inner.raw)

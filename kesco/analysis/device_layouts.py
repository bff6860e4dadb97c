"""What a structure that a kernel gets by value has where: ``layout_of(type, sizes)``.

In: an LLVM type and the target's sizes (llvmlite). Out: a `Layout`: where pointers are, and where the bytes of others
may be. Apart from the reader, which has enough to do with instructions.

An integer field holds no address that the kernel reads as a pointer: the language forbids it. Two things do: an array
of bytes, into which pointers are copied, and a union, whose LLVM type is that of only one of its members.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_POINTER = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """Byte offsets of pointers, and offset and size of what may hold the bytes of some."""

    pointers: tuple[int, ...]
    raw: tuple[tuple[int, int], ...]


def layout_of(type_: Any, sizes: Any) -> Layout:
    """The layout of a type; `sizes` answers for the target (llvmlite's ``TargetData``)."""
    pointers: list[int] = []
    raw: list[tuple[int, int]] = []
    _walk(type_, 0, sizes, pointers, raw)
    return Layout(
        tuple(pointers), tuple(part for begin, size in raw for part in _between(begin, begin + size, pointers))
    )


def _between(begin: int, end: int, pointers: list[int]) -> Iterator[tuple[int, int]]:
    """Offset and size of what is no pointer there: a union whose type has one is read as that one."""
    for pointer in (*sorted(p for p in pointers if begin <= p < end), end):
        if pointer > begin:
            yield begin, pointer - begin
        begin = pointer + _POINTER


def _walk(type_: Any, base: int, sizes: Any, pointers: list[int], raw: list[tuple[int, int]]) -> None:
    if type_.is_pointer:
        pointers.append(base)
    elif type_.is_struct:
        if str(type_.name).startswith("union."):
            raw.append((base, sizes.get_abi_size(type_)))
        for i, element in enumerate(type_.elements):
            _walk(element, base + sizes.get_element_offset(type_, i), sizes, pointers, raw)
    elif type_.is_array or type_.is_vector:
        element = next(iter(type_.elements))
        size = sizes.get_abi_size(element)
        if size == 1 and type_.element_count >= _POINTER:
            raw.append((base, type_.element_count))
            return
        inner = layout_of(element, sizes)
        for at in range(base, base + type_.element_count * size, size) if inner.pointers or inner.raw else ():
            pointers += (at + offset for offset in inner.pointers)
            raw += ((at + offset, length) for offset, length in inner.raw)

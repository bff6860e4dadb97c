"""Which sites conflict: they touch the same memory and at least one writes it.

In: the accesses of all sites. Out: for each site the set of sites it conflicts with, as bits. Kept apart from the
proof because it is the one thing both programs are asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from kesco.ir.access import Access, AccessMode, Buffer, BufferKind, may_alias


def conflicts(accesses: Sequence[tuple[Access, ...]]) -> list[int]:
    """For each list of accesses the mask of all that touch the same memory, one of the two writing."""
    read: defaultdict[tuple[str, BufferKind], int] = defaultdict(int)
    written: defaultdict[tuple[str, BufferKind], int] = defaultdict(int)
    buffers: dict[tuple[str, BufferKind], Buffer] = {}
    for number, access in ((n, a) for n, listed in enumerate(accesses) for a in listed if a.mode):
        unit = access.buffer.key, access.buffer.kind
        buffers[unit] = access.buffer
        (written if access.mode & AccessMode.WRITE else read)[unit] |= 1 << number
    by_key: defaultdict[str, set[tuple[str, BufferKind]]] = defaultdict(set)
    for unit in buffers:
        by_key[unit[0]].add(unit)
    unknown = {unit for unit in buffers if unit[1] is BufferKind.UNKNOWN}
    writers, users = {}, {}
    for unit, buffer in buffers.items():
        # Aliasing needs equal keys or unknown memory; `may_alias` has the last word on each candidate.
        candidates = buffers if unit in unknown else by_key[unit[0]] | unknown
        near = [other for other in candidates if may_alias(buffer, buffers[other])]
        writers[unit] = union(written[other] for other in near)
        users[unit] = writers[unit] | union(read[other] for other in near)
    result = []
    for listed in accesses:
        of_modes = ((users if a.mode & AccessMode.WRITE else writers, a.buffer) for a in listed if a.mode)
        result.append(union(masks[buffer.key, buffer.kind] for masks, buffer in of_modes))
    return result


def union(masks: Iterable[int]) -> int:
    """All bits of all masks."""
    result = 0
    for mask in masks:
        result |= mask
    return result


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def hazards(first: tuple[Access, ...], second: tuple[Access, ...]) -> tuple[Buffer | None, tuple[str, ...]]:
    """The buffer of a conflict, the best known one first, and in which ways it conflicts."""
    found: list[tuple[bool, Buffer, str]] = []
    for a in first:
        for b in second:
            if not may_alias(a.buffer, b.buffer):
                continue
            vague = BufferKind.UNKNOWN in (a.buffer.kind, b.buffer.kind)
            shown = b.buffer if a.buffer.kind is BufferKind.UNKNOWN else a.buffer
            for kind, was, becomes in (
                ("RAW", AccessMode.WRITE, AccessMode.READ),
                ("WAR", AccessMode.READ, AccessMode.WRITE),
                ("WAW", AccessMode.WRITE, AccessMode.WRITE),
            ):
                if a.mode & was and b.mode & becomes:
                    found.append((vague, shown, kind))
    if not found:
        return None, ()
    _, buffer, _ = min(found, key=lambda f: (f[0], f[1].name, f[1].key))
    kinds = {kind for _, shown, kind in found if shown.key == buffer.key}
    return buffer, tuple(kind for kind in ("RAW", "WAR", "WAW") if kind in kinds)

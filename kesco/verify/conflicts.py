"""Which sites conflict: they touch the same memory and at least one writes it.

In: the accesses of all sites. Out: for each site the set of sites it conflicts with, as bits. Kept apart from the
proof because it is the one thing both programs are asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from kesco.ir.access import Access, AccessMode, Buffer, BufferKind, may_alias
from kesco.ir.poly import ByteRange
from kesco.verify.trips import Lanes, never_meet, never_meet_in_lanes, never_meet_in_turns

_MANY = 256
_Unit = tuple[str, BufferKind, ByteRange | None]

_VAGUE = (BufferKind.UNKNOWN, BufferKind.UNSEEN_HOST)


def conflicts(accesses: Sequence[tuple[Access, ...]], loop: str = "", lanes: Lanes = ()) -> list[int]:
    """For each list of accesses the mask of all that touch the same memory, one of the two writing.

    With `loop`, only those that may do so in two different trips of one stay in that loop; with `lanes`, in
    trips of such loops in which their counters have different values, whenever these are.
    """
    read: defaultdict[_Unit, int] = defaultdict(int)
    written: defaultdict[_Unit, int] = defaultdict(int)
    buffers: dict[_Unit, Buffer] = {}
    parts = _parts(a for listed in accesses for a in listed if a.mode)
    for number, access in ((n, a) for n, listed in enumerate(accesses) for a in listed if a.mode):
        unit = _unit(access, parts)
        buffers[unit] = access.buffer
        (written if access.mode & AccessMode.WRITE else read)[unit] |= 1 << number
    by_key: defaultdict[str, set[_Unit]] = defaultdict(set)
    for unit in buffers:
        by_key[unit[0]].add(unit)
    unknown = {unit for unit in buffers if unit[1] in _VAGUE}
    writers, users = {}, {}
    for unit, buffer in buffers.items():
        # Aliasing needs equal keys or unknown memory; `may_alias` has the last word on each candidate.
        candidates = buffers if unit in unknown else by_key[unit[0]] | unknown
        near = [o for o in candidates if may_alias(buffer, buffers[o]) and not _never_meet(unit, o, loop, lanes)]
        writers[unit] = union(written[other] for other in near)
        users[unit] = writers[unit] | union(read[other] for other in near)
    result = []
    for listed in accesses:
        of_modes = ((users if a.mode & AccessMode.WRITE else writers, _unit(a, parts)) for a in listed if a.mode)
        result.append(union(masks[unit] for masks, unit in of_modes))
    return result


def _parts(accesses: Iterable[Access]) -> dict[str, set[ByteRange]]:
    """The different ranges of each buffer; a buffer with very many is not told apart."""
    found: defaultdict[str, set[ByteRange]] = defaultdict(set)
    for access in accesses:
        if access.bytes is not None:
            found[access.buffer.key].add(access.bytes)
    return {key: ranges for key, ranges in found.items() if len(ranges) <= _MANY}


def _unit(access: Access, parts: dict[str, set[ByteRange]]) -> _Unit:
    """What is asked about as one: a buffer, or the range of it that is touched."""
    buffer = access.buffer
    return buffer.key, buffer.kind, access.bytes if buffer.key in parts else None


def _never_meet(a: _Unit, b: _Unit, loop: str, lanes: Lanes) -> bool:
    """Whether two ranges are of one allocation and have no byte in common."""
    memory = BufferKind.UNKNOWN not in (a[1], b[1]) and BufferKind.ORDER not in (a[1], b[1])
    if not memory or a[0] != b[0]:
        return False
    if never_meet(a[2], b[2]):
        return True
    if lanes:
        return never_meet_in_lanes(a[2], b[2], lanes)
    return bool(loop) and never_meet_in_turns(a[2], b[2], loop)


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
            if a.buffer.key == b.buffer.key and never_meet(a.bytes, b.bytes):
                continue
            vague = a.buffer.kind in _VAGUE or b.buffer.kind in _VAGUE
            shown = b.buffer if a.buffer.kind in _VAGUE else a.buffer
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

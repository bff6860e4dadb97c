"""Proves that memory which is taken late and given back early is there for every operation that uses it.

In: the serial region and the concurrent one. Out: the serial region in the form that the rest of the proof compares
with, and what speaks against the lives of the memory. Apart from the order of the device's work because most of it is
about the host: which call comes first in the text, on every path.

1. Memory is the same in both programs if it has the same name, which only one buffer of each has, and the same size in
   terms of the program's integers, where that can be followed.
2. Along every path of the concurrent program each of these is there or not. An operation that uses it, in either
   program, must find it there; it is taken where it is not there, and given back where it is.
3. Where the serial program has surely freed it at an exit, so has the concurrent one.
4. From where it is taken to where the serial program frees it, nothing runs that could keep the pointer or find one
   that was kept: a kernel or a call that touches unknown memory.
5. What the serial program's ``cudaFree`` does to the host is to wait for the device: in its place the region has a
   synchronize.
6. That the device keeps to it is the rest of the proof's business: taking and giving back write the memory.

It refuses memory that is taken or given back on a stream that may be one of several.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import replace

from kesco.ir.access import Access, BufferKind
from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.ir.lifetimes import ALLOCATE, FREE

_MAY_KEEP = (SiteKind.KERNEL, SiteKind.LIBRARY, SiteKind.CALL)


class _Life(enum.Enum):
    """What is of the memory at one place, on one path."""

    BEFORE = "not taken yet"
    THERE = "there"
    GONE = "given back"


def moved_names(concurrent: Region) -> frozenset[str]:
    """The names of the memory that the concurrent program takes or gives back by calls of kesco's own."""
    return frozenset(a.buffer.name for s in concurrent.sites if _ours(s) for a in s.accesses)


def as_compared(serial: Region, names: frozenset[str]) -> Region:
    """The serial region in which the host just waits where this memory is freed."""

    def compared(site: Site) -> Site:
        if not _is_free(site) or site.accesses[0].buffer.name not in names:
            return site
        return replace(site, role=Role.DEVICE_SYNC, kind=SiteKind.SYNC, label="cudaDeviceSynchronize", accesses=())

    return replace(serial, sites=tuple(map(compared, serial.sites))) if names else serial


def problems(serial: Region, concurrent: Region, to_serial: tuple[int, ...]) -> Iterator[str]:
    """What speaks against it, in words; `to_serial` pairs the sites."""
    for site in filter(_ours, concurrent.sites):
        if len(site.accesses) != 1 or site.stream is None or not site.stream.certain:
            yield f"'{site.label}' ({site.span}) does not say which memory, or on which stream"
    for name in sorted(moved_names(concurrent)):
        yield from _of_one(name, serial, concurrent, to_serial)


def _of_one(name: str, serial: Region, concurrent: Region, to_serial: tuple[int, ...]) -> Iterator[str]:
    lengths = set()
    for region in (serial, concurrent):
        found = {a.buffer for s in region.sites for a in s.accesses if a.buffer.name == name}
        if len(found) != 1 or any(b.kind is not BufferKind.DEVICE for b in found):
            yield f"'{name}' is not the name of one allocation"
            return
        lengths |= {b.length for b in found}
    if len(lengths) != 1:
        yield f"'{name}' may have another size than in the serial program"
    ends = {s.number for s in serial.sites if _touches(s, name) and _is_free(s)}
    states = _states(concurrent, name, {c for c, s in enumerate(to_serial) if s in ends})
    for site in concurrent.sites:
        lives = {life for life, _ in states[site.number]}
        if not lives:  # never reached
            continue
        other = to_serial[site.number]
        theirs = _touches(serial.sites[other], name) if other >= 0 and other not in ends else ()
        mine = _touches(site, name)
        if other >= 0 and {a.mode for a in theirs} != {a.mode for a in mine}:
            yield f"'{site.label}' ({site.span}) does not use '{name}' as the serial program does"
        if _is(site, ALLOCATE) and mine and _Life.THERE in lives:
            yield f"'{name}' may be allocated a second time ({site.span}) while it is there"
        elif not _is(site, ALLOCATE) and (mine or theirs) and lives != {_Life.THERE}:
            how = "freed" if _Life.GONE in lives else "not allocated yet"
            yield f"'{site.label}' ({site.span}) may find '{name}' {how}"
        known = any(life is not _Life.BEFORE and not over for life, over in states[site.number])
        if known and site.kind in _MAY_KEEP and _knows_all(site):
            yield f"'{site.label}' ({site.span}) may keep '{name}', which is freed early"
        if site.role is Role.EXIT and (_Life.THERE, True) in states[site.number]:
            yield f"'{name}' is not freed on every path to '{site.label}' ({site.span})"


def _states(region: Region, name: str, ends: set[int]) -> list[set[tuple[_Life, bool]]]:
    """Before each site what may be of the memory, and whether the serial program has freed it by then.

    `ends` are the sites at which the serial program does. Where none is reached the set is empty.
    """
    states: list[set[tuple[_Life, bool]]] = [set() for _ in region.sites]
    states[0] = {(_Life.BEFORE, False)}
    work = [0]
    while work:
        number = work.pop()
        site = region.sites[number]
        behind = states[number]
        if _touches(site, name) and _is(site, ALLOCATE):
            behind = {(_Life.THERE, False)}
        elif _touches(site, name) and _is(site, FREE):
            behind = {(_Life.GONE, over) for _, over in behind}
        elif number in ends:
            behind = {(life, True) for life, _ in behind}
        for successor in region.successors[number]:
            if not behind <= states[successor]:
                states[successor] |= behind
                work.append(successor)
    return states


def _is_free(site: Site) -> bool:
    return site.kind is SiteKind.FREE and site.role is Role.JOIN and site.acts and len(site.accesses) == 1  # cudaFree


def _knows_all(site: Site) -> bool:
    return site.foreign or any(a.buffer.kind is BufferKind.UNKNOWN for a in site.accesses)


def _is(site: Site, name: str) -> bool:
    return site.label.partition("#")[0] == name


def _ours(site: Site) -> bool:
    return _is(site, ALLOCATE) or _is(site, FREE)


def _touches(site: Site, name: str) -> tuple[Access, ...]:
    return tuple(a for a in site.accesses if a.mode and a.buffer.name == name)

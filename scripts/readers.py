"""Compare what the text of programs and what their host IR say: regions as `resolve` and as `host_regions` have them.

    python scripts/readers.py tests/golden soundness workloads      folders or files; --all prints what is equal, too

For each function that both can follow it prints what the reading of the IR lacks: an operation, a path from one to
another, a pair that conflicts, a barrier. Each is a defect of one of the two, to be explained or mended. Exit code 1 if
there is any. With --weaker it prints where the reading of the IR says less: functions that it does not follow, barriers
and conflicts that the text's has not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import click

from kesco.errors import KescoError
from kesco.ir.access import AccessMode, may_alias
from kesco.ir.flow import Region, Role, Site
from kesco.nesting import deep
from kesco.options import Options
from kesco.parts import apart
from kesco.session import Session

_WORK = (Role.MOVABLE, Role.LEGACY)
_ORDERS = (Role.LEGACY, Role.JOIN, Role.DEVICE_SYNC)


@click.command()
@click.argument("places", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--flag", multiple=True, help="for the compiler")
@click.option("--show-all", "--all", is_flag=True, help="also print programs without a difference")
@click.option("--weaker", is_flag=True, help="print where the reading of the IR says less")
def main(places: tuple[Path, ...], flag: tuple[str, ...], show_all: bool, weaker: bool) -> None:
    """Read every .cu file both ways."""
    programs = functions = differences = 0
    for path in _sources(places):
        began = time.monotonic()
        try:
            found = deep(str(path), lambda path=path: list(_of(path, flag, weaker)))
        except KescoError as error:
            click.echo(f"{path}: {error.diagnostics[0].message}")
            continue
        programs += 1
        functions += len(found)
        lines = [line for _, lines in found for line in lines]
        differences += len(lines)
        if lines or show_all:
            click.echo(f"{path}: {len(found)} functions, {time.monotonic() - began:.1f} s")
        for line in lines:
            click.echo(f"  {line}")
    click.echo(f"{programs} programs, {functions} functions read both ways, {differences} differences")
    sys.exit(1 if differences else 0)


def _sources(places: tuple[Path, ...]) -> Iterator[Path]:
    for place in places:
        every = [place] if place.is_file() else sorted(place.rglob("*.cu"))
        yield from (one for one in every if b"KescoStreams" not in one.read_bytes())


def _of(path: Path, flags: tuple[str, ...], weaker: bool) -> Iterator[tuple[str, list[str]]]:
    session = Session(str(path), Options(flags=flags))
    by_text = session.of_text()
    by_ir = {region.span: region for region in session.of_ir()}
    for region in by_text:
        other = by_ir.get(region.span)
        if other is None or region.serial_because:
            continue
        if other.serial_because and weaker:
            yield region.function, [f"{region.function} is not followed: {other.serial_because}"]
        elif not other.serial_because:
            found = less(region, other) if weaker else compared(region, other)
            yield region.function, [f"{region.function}: {line}" for line in found]


def less(text: Region, seen: Region) -> Iterator[str]:
    """Where the second region keeps more in order than the first."""
    ours, theirs = _by_operation(text), _by_operation(seen)
    names = {number: f"@{number} {sites[0].label}" for number, sites in theirs.items()}
    for number in theirs:
        movable = number in ours and all(s.role is Role.MOVABLE for s in ours[number])
        if movable and not all(s.role is Role.MOVABLE for s in theirs[number]):
            yield f"{names[number]} is {theirs[number][0].role.value}: {theirs[number][0].note}"
        elif number not in ours and theirs[number][0].role in _ORDERS:
            yield f"{names[number]} is a barrier: {theirs[number][0].role.value}"
        elif movable and ours[number][0].held is not theirs[number][0].held:
            yield f"{names[number]} may keep the host"
    both = [number for number in ours if number in theirs]
    for a, b in product(both, both):
        moving = all(site.role is Role.MOVABLE for site in (*ours[a], *ours[b], *theirs[a], *theirs[b]))
        if a <= b and moving and _may_conflict(theirs[a], theirs[b]) and not _may_conflict(ours[a], ours[b]):
            yield f"{names[a]} and {names[b]} conflict"


def _may_conflict(some: list[Site], others: list[Site]) -> bool:
    return any(
        (a.mode | b.mode) & AccessMode.WRITE and may_alias(a.buffer, b.buffer)
        for one, other in product(some, others)
        if one is not other
        for a, b in product(one.accesses, other.accesses)
        if a.bytes is None or b.bytes is None or not apart(a.bytes, b.bytes)
    )


def compared(text: Region, seen: Region) -> Iterator[str]:
    """What the second region lacks of the first."""
    ours, theirs = _by_operation(text), _by_operation(seen)
    names = {number: f"@{number} {sites[0].label}" for number, sites in ours.items()}
    for number in ours:
        if number not in theirs:
            yield f"{names[number]} is not there"
        elif {s.role for s in ours[number]} & {*_ORDERS} and not {s.role for s in theirs[number]} & {*_ORDERS}:
            yield f"{names[number]} is no barrier: {theirs[number][0].role.value}"
    both = [number for number in ours if number in theirs]
    paths, other_paths = _paths(text), _paths(seen)
    for a, b in product(both, both):
        if (a, b) in paths and (a, b) not in other_paths:
            yield f"no path from {names[a]} to {names[b]}"
        moving = all(site.role is Role.MOVABLE for site in (*theirs[a], *theirs[b]))
        if a < b and moving and _may_conflict(ours[a], ours[b]) and not _may_conflict(theirs[a], theirs[b]):
            yield f"{names[a]} and {names[b]} do not conflict"
    missing = set(text.guards) - set(seen.guards)
    if missing and any(s.role is Role.MOVABLE for s in seen.sites):
        yield f"nobody compares {', '.join(sorted(missing))}"


def _by_operation(region: Region) -> dict[int, list[Site]]:
    found: dict[int, list[Site]] = {}
    for site in region.sites:
        if site.operation >= 0 and site.role in (*_WORK, Role.JOIN, Role.DEVICE_SYNC):
            found.setdefault(site.operation, []).append(site)
    return found


def _paths(region: Region) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for site in region.sites:
        if site.operation < 0:
            continue
        todo, seen = list(region.successors[site.number]), set[int]()
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo += region.successors[one]
        found |= {(site.operation, region.sites[one].operation) for one in seen if region.sites[one].operation >= 0}
    return found


if __name__ == "__main__":
    main()

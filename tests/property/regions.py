"""Regions for tests: written down as text, or drawn at random."""

from __future__ import annotations

import dataclasses
import re

from hypothesis import strategies as st

from kesco.ir.access import DEVICE_PRINTF, UNKNOWN, Access, AccessMode, Buffer, BufferKind
from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.source import Span

SPAN = Span("app.cu", 0, 1, 1, 1)
MODES = {"r": AccessMode.READ, "w": AccessMode.WRITE, "rw": AccessMode.READ_WRITE}
BARRIERS = (Role.JOIN, Role.LEGACY, Role.DEVICE_SYNC)


def buffer(name: str) -> Buffer:
    """The buffer of that name; ``?`` is unknown memory, ``!printf`` the order of device printf, ``host…`` pinned."""
    special = {"?": UNKNOWN, "!printf": DEVICE_PRINTF}
    kind = BufferKind.PINNED if name.startswith("host") else BufferKind.DEVICE
    return special.get(name) or Buffer(f"buffer {name}", name, kind)


def site(number: int, label: str, role: Role, accesses: tuple[Access, ...] = ()) -> Site:
    kind = SiteKind.KERNEL if role is Role.MOVABLE else SiteKind.BOUNDARY
    if any(access.buffer.kind is BufferKind.PINNED for access in accesses):
        kind = SiteKind.COPY
    elif any(access.why == "prefetch" for access in accesses) or label.startswith("prefetch"):
        kind = SiteKind.PREFETCH
    return Site(number, number, label, kind, role, Span("app.cu", 2 * number, 2 * number + 1, 1, 1), accesses=accesses)


def program(text: str, paths: str = "") -> Region:
    """A region from ``A(w X,Y; r Z) B(rw X) sync C(w ?)``.

    A word without parentheses is a site of the role of that name. `paths` lists further control-flow edges as
    ``A>C`` and edges to take away as ``A|B``; otherwise each site leads to the next. Entry and exit are added.
    """
    sites = [site(0, "entry", Role.ENTRY)]
    for label, touched in re.findall(r"([\w-]+)(\([^)]*\))?", text):
        if not touched:
            sites.append(site(len(sites), f"{label}@{len(sites)}", Role(label)))
            continue
        accesses = [
            Access(buffer(name.strip()), MODES[mode])
            for mode, names in re.findall(r"(rw|r|w) ([^;)]*)", touched)
            for name in names.split(",")
        ]
        sites.append(site(len(sites), label, Role.MOVABLE, tuple(accesses)))
    sites.append(site(len(sites), "exit", Role.EXIT))
    number = {found.label: found.number for found in sites}
    successors: list[set[int]] = [{found.number + 1} if found.role is not Role.EXIT else set() for found in sites]
    for a, sign, b in re.findall(r"([\w@-]+)([>|])([\w@-]+)", paths):
        change = successors[number[a]].add if sign == ">" else successors[number[a]].discard
        change(number[b])
    return Region("f", SPAN, tuple(sites), tuple(tuple(sorted(after)) for after in successors))


def named(region: Region, label: str) -> int:
    """The number of the site of that label."""
    return next(found.number for found in region.sites if found.label == label)


# Statements: ("op", accesses) ("bar", role) ("host",) ("if", then, else) ("loop", body, may_skip, repeats) ("return",)
NAMES = ("a", "b", "c", "d")


_MODE = st.sampled_from(list(MODES.values()))


@st.composite
def _accesses(draw: st.DrawFn) -> tuple[Access, ...]:
    odd = draw(st.integers(0, 29))
    if odd == 29:
        return (Access(UNKNOWN, draw(_MODE)),)
    if odd in (23, 24, 25):
        device, host = buffer(draw(st.sampled_from(NAMES))), buffer(draw(st.sampled_from(("host", "host2"))))
        if odd == 23:
            return (Access(device, AccessMode.READ_WRITE, "prefetch"),)
        read, write = (host, device) if odd == 24 else (device, host)
        return (Access(read, AccessMode.READ), Access(write, AccessMode.WRITE))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=odd != 28, max_size=3, unique=True))
    touched = [Access(buffer(name), draw(_MODE)) for name in names]
    if odd == 27:
        touched.append(Access(DEVICE_PRINTF, AccessMode.WRITE))
    if odd == 26:
        touched.append(Access(UNKNOWN, AccessMode.READ))
    return tuple(touched)


_OPERATION = st.tuples(st.just("op"), _accesses())
_OTHER = st.one_of(st.tuples(st.just("bar"), st.sampled_from(BARRIERS)), st.just(("host",)))


def _block(loops: bool, barriers: bool, depth: int, size: int) -> st.SearchStrategy[list[object]]:
    leaf: st.SearchStrategy[object] = st.one_of(*[_OPERATION] * 6, _OTHER) if barriers else _OPERATION
    statement = leaf
    if depth:
        inner = _block(loops, barriers, depth - 1, 3)
        choices: list[st.SearchStrategy[object]] = [
            *[leaf] * 4,
            st.tuples(st.just("if"), inner, inner),
            st.tuples(st.just("if"), inner, st.just([])),
        ]
        if loops:
            choices.append(st.tuples(st.just("loop"), inner, st.booleans(), st.booleans()))
        if barriers:
            leave = inner.map(lambda body: [*body, ("return",)])
            choices.append(st.tuples(st.just("if"), leave, st.just([])))
        statement = st.one_of(choices)
    return st.lists(statement, min_size=1, max_size=size)


class _Lowering:
    """Statements to sites; dangling sites are those whose next site is not known yet."""

    def __init__(self) -> None:
        self.sites = [site(0, "entry", Role.ENTRY)]
        self.edges: set[tuple[int, int]] = set()

    def add(self, dangling: set[int], role: Role, accesses: tuple[Access, ...] = ()) -> set[int]:
        number = len(self.sites)
        self.sites.append(site(number, f"k{number}" if role is Role.MOVABLE else role.value, role, accesses))
        self.edges |= {(before, number) for before in dangling}
        return {number}

    def block(self, statements: list[object], dangling: set[int]) -> set[int]:
        for kind, *rest in statements:  # type: ignore[misc]
            if not dangling:
                break  # behind a return
            if kind == "op":
                dangling = self.add(dangling, Role.MOVABLE, rest[0])
            elif kind == "bar":
                dangling = self.add(dangling, rest[0])
            elif kind == "host":
                dangling = self.add(dangling, Role.HOST)
            elif kind == "return":
                self.add(dangling, Role.EXIT)
                dangling = set()
            elif kind == "if":
                fork = self.add(dangling, Role.HOST)
                dangling = self.block(rest[0], fork) | self.block(rest[1], fork)
            elif kind == "loop":
                head = self.add(dangling, Role.HOST)
                end = self.block(rest[0], head)
                self.edges |= {(last, *head) for last in end}
                dangling = (head if rest[1] else set()) | (end if rest[2] else set()) or head
        return dangling

    def region(self, contract: bool) -> Region:
        """The region; `contract` takes out the sites that only stood for a fork or a loop's head."""
        edges = set(self.edges)
        gone = {found.number for found in self.sites if contract and found.role is Role.HOST}
        for number in gone:
            before = {a for a, b in edges if b == number and a != number}
            after = {b for a, b in edges if a == number and b != number}
            edges = {edge for edge in edges if number not in edge} | {(a, b) for a in before for b in after}
        kept = [found for found in self.sites if found.number not in gone]
        place = {found.number: index for index, found in enumerate(kept)}
        successors: list[set[int]] = [set() for _ in kept]
        for a, b in edges:
            successors[place[a]].add(place[b])
        sites = tuple(dataclasses.replace(found, number=index, operation=index) for index, found in enumerate(kept))
        return Region("f", SPAN, sites, tuple(tuple(sorted(after)) for after in successors))


@st.composite
def regions(draw: st.DrawFn, loops: bool = True, depth: int = 2, size: int = 7) -> Region:
    """A random region: lines, branches, early returns, barriers and, with `loops`, nested loops."""
    lowering = _Lowering()
    end = lowering.block(draw(_block(loops, draw(st.booleans()), depth, size)), {0})
    if end:
        lowering.add(end, Role.EXIT)
    return lowering.region(draw(st.booleans()))


def lines(size: int = 14) -> st.SearchStrategy[Region]:
    """Random regions without branches."""
    return regions(loops=False, depth=0, size=size)

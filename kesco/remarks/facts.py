"""What a region does not say and its text does: which calls launch, where loops are, which arguments choose a piece.

In: a `Program`. Out: `Facts`. Apart from the pairs of operations because those are decided on a region alone; here is
only what is looked up in the text for them.

1. A function launches if it has a launch, or calls one of this file that does. 2. A loop has all operations of its
body, and of the functions that are called there. 3. What tells an operation which piece to work on is the integers
among its arguments; in a loop they may change where the loop assigns one of their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from kesco.ir.flow import Region, Site, SiteKind
from kesco.ir.program import Assign, Call, Constant, Declare, Expr, Function, Launch, Loop, Name, Program, walk
from kesco.ir.types import Shape
from kesco.source import Span

_MORE = (SiteKind.KERNEL, SiteKind.LIBRARY, SiteKind.CALL)
_WORK = (*_MORE, SiteKind.COPY, SiteKind.MEMSET)


@dataclass(frozen=True, slots=True)
class LoopText:
    """A loop of the text: the operations in it, those of functions called there too, and the variables it assigns."""

    number: int
    span: Span
    operations: frozenset[int]
    assigned: frozenset[str]


class Facts:
    """Looks things up in one program."""

    def __init__(self, program: Program, regions: Sequence[Region] = ()) -> None:
        self.program, self._regions = program, {r.span: r for r in regions}
        self._functions = {f.key: f for f in program.functions}
        self._given: dict[int, tuple[Expr, ...]] = {}
        self.called: dict[int, str] = {}  # the names of what operations call
        for function in program.functions:
            for node in walk(function.body):
                if isinstance(node, (Call, Launch)) and node.operation >= 0:
                    self._given[node.operation] = node.arguments
                if isinstance(node, Call):
                    self.called[node.operation] = node.name.rpartition("::")[2]

    @cached_property
    def launching(self) -> frozenset[str]:
        """The keys of the functions that launch, also by way of others."""
        calls = {f.key: {n.key for n in walk(f.body) if isinstance(n, Call)} for f in self.program.functions}
        found = {f.key for f in self.program.functions if any(isinstance(n, Launch) for n in walk(f.body))}
        while more := {key for key, called in calls.items() if key not in found and called & found}:
            found |= more
        return frozenset(found)

    @cached_property
    def calls(self) -> dict[int, Function]:
        """The operations that call functions of this file that launch."""
        nodes = (n for f in self.program.functions for n in walk(f.body))
        return {n.operation: self._functions[n.key] for n in nodes if isinstance(n, Call) and n.key in self.launching}

    def only_copies(self, site: Site) -> bool:
        """Whether a site gives the device nothing to do but copies, if it is a call also of functions of this file."""
        kinds = self._called(site)
        return site.kind is SiteKind.COPY or (SiteKind.COPY in kinds and kinds.isdisjoint(_MORE))

    def only_makes(self, site: Site) -> bool:
        """Whether all that a call gives the device is memory, and zeros for it."""
        kinds = self._called(site)
        return site.kind is SiteKind.CALL and bool(kinds) and kinds.isdisjoint((*_MORE, SiteKind.COPY))

    def only_frees(self, site: Site) -> bool:
        """Whether a site writes nothing of the memory that it touches, and gives it back: also by a destructor."""
        kinds = self._called(site)
        ends = site.kind is SiteKind.CALL and not site.calls and site.label.startswith("~")
        return site.kind is SiteKind.FREE or ends or (SiteKind.FREE in kinds and kinds.isdisjoint(_WORK))

    def _called(self, site: Site, around: frozenset[Span] = frozenset()) -> set[SiteKind]:
        """The kinds of sites that a call runs, but for calls that are known themselves; none where one is not known."""
        regions = {span: self._regions.get(span) for _, span in site.calls if span not in around}
        found = set(site.does)
        if None in regions.values() or site.foreign:
            return set()
        for each in (s for r in regions.values() if r is not None for s in r.sites):
            inside = self._called(each, around.union(regions)) if each.kind is SiteKind.CALL else set()
            found |= inside or {each.kind}
        return found

    @cached_property
    def loops(self) -> tuple[LoopText, ...]:
        """The loops of the functions in this file."""
        loops = (n for f in self.program.functions if f.here for n in walk(f.body) if isinstance(n, Loop))
        return tuple(LoopText(n.number, n.span, self._inside(n), _assigned(n)) for n in loops)

    def _inside(self, loop: Loop) -> frozenset[int]:
        found: set[int] = set()
        seen: set[str] = set()
        work = [n for part in (loop.body, loop.condition, loop.step) if part is not None for n in walk(part)]
        while work:
            node = work.pop()
            if isinstance(node, (Call, Launch)):
                found.add(node.operation)
            if isinstance(node, Call) and node.key in self._functions and node.key not in seen:
                seen.add(node.key)
                work += walk(self._functions[node.key].body)
        return frozenset(found)

    def made_in(self, operation: int) -> frozenset[str]:
        """The keys of the buffers that each call of a function makes anew and frees."""
        function = self.calls.get(operation)
        region = self._regions.get(function.span) if function is not None else None
        if function is None or region is None:
            return frozenset()
        freed = {a.buffer for s in region.sites if s.kind is SiteKind.FREE for a in s.accesses}
        here = (b for b in freed if b.span is not None and b.span.path == function.body.span.path)
        return frozenset(b.key for b in here if _within(b.span, function.body.span))

    def differ(self, one: int, other: int) -> bool:
        """Whether two operations are given different integers."""
        return self._integers(one) != self._integers(other)

    def varies(self, operation: int, loop: LoopText | None) -> bool:
        """Whether integers that an operation is given may be others in another turn."""
        names = {node.variable.key for node in self._whole(operation) if isinstance(node, Name)}
        return loop is None or bool(names & loop.assigned)

    def _integers(self, operation: int) -> list[tuple[object, ...]]:
        given = self._given.get(operation, ())
        return [tuple(n.value if isinstance(n, Constant) else n.variable.key for n in _whole(one)) for one in given]

    def _whole(self, operation: int) -> Iterator[Constant | Name]:
        for one in self._given.get(operation, ()):
            yield from _whole(one)


def _whole(expression: Expr) -> Iterator[Constant | Name]:
    """The integers in an expression."""
    for node in walk(expression):
        if isinstance(node, Constant) or (isinstance(node, Name) and node.variable.type.shape is Shape.INTEGER):
            yield node


def _within(inner: Span | None, outer: Span) -> bool:
    return inner is not None and outer.start <= inner.start and inner.end <= outer.end


def _assigned(loop: Loop) -> frozenset[str]:
    parts = [part for part in (loop.body, loop.condition, loop.step) if part is not None]
    found = set()
    for node in (n for part in parts for n in walk(part)):
        if isinstance(node, Assign) and isinstance(node.target, Name):
            found.add(node.target.variable.key)
        elif isinstance(node, Declare):
            found.add(node.variable.key)
    return frozenset(found)

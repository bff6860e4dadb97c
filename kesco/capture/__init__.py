"""Which statements may become a graph: ``candidates(program, function, region)``.

In: one function, as statements and as a region. Out: the `Replay`s that it may have, in the order of the text. A stage
of its own because the question is put to the statements as well as to the sites: what stands between two launches must
do nothing that anybody could see, since a replay leaves it out.

1. Take the longest runs of statements of one block of which each only gives the device work (`values.py` says which
do). 2. A run must be executed again: in a loop, or in a function that may be called again. A loop of unknown trips
counts as a whole only inside another loop; otherwise its body is what runs again. The body of a loop that the analysis
unrolled is none: its trips differ in their streams. 3. All sites in a run must be
movable kernels, copies and memsets, and two of them no memsets, for the launch of a graph costs more than one launch.
4. What a run declares must not be used behind it, since its statements get braces of their own.

It refuses runs that do not stand on lines of their own, and those in which work stays on the default stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kesco.capture.values import NotCaptured, Reader
from kesco.ir import program as ir
from kesco.ir.flow import Region, Role, Site, SiteKind, is_wait
from kesco.ir.replay import Replay

_KINDS = frozenset({SiteKind.KERNEL, SiteKind.COPY, SiteKind.MEMSET})


def candidates(program: ir.Program, function: ir.Function, region: Region) -> tuple[Replay, ...]:
    """The runs of statements of a function that may become graphs."""
    movable = frozenset(s.operation for s in region.sites if s.role is Role.MOVABLE and s.operation >= 0)
    finder = _Finder(program, region, movable)
    return tuple(finder.block(function.body, again=function.name != "main", looped=False))


@dataclass(frozen=True, slots=True)
class _Finder:
    program: ir.Program
    region: Region
    movable: frozenset[int]

    def block(self, statement: ir.Stmt, *, again: bool, looped: bool) -> Iterator[Replay]:
        """The replays in a statement; `again`: it may be executed more than once; `looped`: in a loop around it."""
        if not isinstance(statement, ir.Block):
            loop = isinstance(statement, ir.Loop)
            if isinstance(statement, ir.Loop) and self._counted(statement):
                return  # each trip has streams of its own
            for inner in _bodies(statement):
                yield from self.block(inner, again=again or loop, looped=looped or loop)
            return
        run: list[ir.Stmt] = []
        followed = set[str]()
        for number, one in enumerate(statement.body):
            if again and self._fits(one, looped, followed):
                run.append(one)
                continue
            yield from self._replay(run, statement.body[number:])
            run, followed = [], set()
            yield from self.block(one, again=again, looped=looped)
        yield from self._replay(run, ())

    def _fits(self, statement: ir.Stmt, looped: bool, followed: set[str]) -> bool:
        """Whether a statement may be in a run; to the pointers that the run has `followed` it adds its own."""
        if not looped and any(isinstance(n, ir.Loop) and not self._counted(n) for n in ir.walk(statement)):
            return False
        try:
            Reader(self.program, self.movable, followed).statement(statement)
        except NotCaptured:
            return False
        return True

    def _counted(self, loop: ir.Loop) -> bool:
        """Whether the analysis knows the trips of a loop."""
        return any(i.loop == loop.number for s in self.region.sites for i in s.iterations)

    def _replay(self, run: list[ir.Stmt], behind: Sequence[ir.Stmt]) -> Iterator[Replay]:
        """The replay that a run makes, if it makes one; what is not work at its ends stays outside."""
        while run and not self._works(run[0]):
            run = run[1:]
        while run and not self._works(run[-1]):
            run = run[:-1]
        if not run:
            return
        reader = Reader(self.program, self.movable)
        try:
            for one in run:
                reader.statement(one)
        except NotCaptured:
            return  # one statement uses what another one changed
        declared = {n.variable.key for one in run for n in _declared(one)}
        if any(isinstance(n, ir.Name) and n.variable.key in declared for one in behind for n in ir.walk(one)):
            return
        extent = self._extent(run)
        sites = self._sites(extent) if extent is not None else ()
        if extent is None or not sites:
            return
        rolled = any(isinstance(n, ir.Loop) and not self._counted(n) for one in run for n in ir.walk(one))
        work = sum(
            s.role is Role.MOVABLE and s.kind is not SiteKind.MEMSET for s in map(self.region.sites.__getitem__, sites)
        )
        if work > (0 if rolled else 1):
            again = rolled and not self._waits(behind)
            yield Replay(*extent, sites, tuple(reader.values), rolled, again=again)

    def _waits(self, behind: Sequence[ir.Stmt]) -> bool:
        """Whether the host waits for the device in the first of these statements that does anything there."""
        syncs = {s.operation for s in self.region.sites if is_wait(s)}
        others = {s.operation for s in self.region.sites if s.operation >= 0} - syncs
        for one in behind:
            found = {n.operation for n in ir.walk(one) if isinstance(n, (ir.Call, ir.Launch))}
            simple = not any(isinstance(n, (ir.Loop, ir.Leave, ir.Switch)) for n in ir.walk(one))
            if not simple or not found.isdisjoint(others):
                return False
            if not found.isdisjoint(syncs):
                return isinstance(one, (ir.Evaluate, ir.Block))
        return False

    def _works(self, statement: ir.Stmt) -> bool:
        return any(isinstance(n, (ir.Launch, ir.Call)) and n.operation in self.movable for n in ir.walk(statement))

    def _sites(self, extent: tuple[int, int]) -> tuple[int, ...]:
        """The sites in a piece of the text; none if one of them cannot be captured."""
        found = tuple(s.number for s in self.region.sites if self._place(s) in range(*extent))
        return found if all(_capturable(self.region.sites[n]) for n in found) else ()

    def _place(self, site: Site) -> int:
        statement = self.program.operations[site.operation].statement if site.operation >= 0 else None
        return statement.start if statement is not None else site.span.start if site.role is Role.HOST else -1

    # ---- places in the text -----------------------------------------------------------------------------------------

    def _extent(self, run: list[ir.Stmt]) -> tuple[int, int] | None:
        """The bytes of a run, comments behind it included, if it stands on lines of its own."""
        text = self.program.text
        start, end = self._span(run[0])[0], self._span(run[-1])[1]
        line = text.rfind(b"\n", 0, start) + 1
        newline = text.find(b"\n", end)
        stop = len(text) if newline < 0 else newline
        rest = text[end:stop].strip()
        if text[line:start].strip() or (rest and not rest.startswith(b"//")) or rest.endswith(b"\\"):
            return None
        end = stop - 1 if text[stop - 1 : stop] == b"\r" else stop
        if (
            start >= end
            or b'R"' in text[start:end]
            or re.search(rb"\b(?:using|namespace)\b", text[start:end])
            or any(x.lstrip()[:1] == b"#" for x in text[start:end].split(b"\n"))
        ):
            return None  # a raw string would be indented, and what a directive or ``using`` is for may stand around it
        return start, end

    def _span(self, statement: ir.Stmt) -> tuple[int, int]:
        """Where a statement begins and ends, with its semicolon; that of a macro invocation is the operation's."""
        start, end = statement.span.start, statement.span.end
        for node in ir.walk(statement):
            if isinstance(node, (ir.Launch, ir.Call)):
                place = self.program.operations[node.operation].statement
                if place is not None:
                    start, end = min(start, place.start), max(end, place.end)
        text = self.program.text
        after = end
        while text[after : after + 1].isspace():
            after += 1
        return (start, after + 1) if text[after : after + 1] == b";" else (start, end)


def _capturable(site: Site) -> bool:
    if site.role is Role.HOST:
        return not site.accesses  # at most a look at errors, such as a check in the midst of launches
    return site.role is Role.MOVABLE and site.kind in _KINDS and not site.note


def _bodies(statement: ir.Stmt) -> tuple[ir.Stmt, ...]:
    """The statements inside a statement that stand in blocks of their own."""
    if isinstance(statement, ir.If):
        return (statement.then, *((statement.other,) if statement.other is not None else ()))
    return (statement.body,) if isinstance(statement, (ir.Loop, ir.Switch, ir.Case)) else ()


def _declared(statement: ir.Stmt) -> Iterator[ir.Declare]:
    """What a statement declares in the block that it stands in."""
    if isinstance(statement, ir.Declare):
        yield statement
    elif isinstance(statement, ir.Block) and statement.declares:
        for one in statement.body:
            yield from _declared(one)

"""Where trips of loops begin whose trips are not told apart: marks among the sites, as the walk comes to a loop's head.

In: the head of a loop of the IR. Out: the loop of the text that it is, and two sites: where the loop is entered, and
where a trip of it begins. Apart from `counting`, which is about loops whose trips have sites of their own.

1. A loop of the IR is the innermost one of the text around all that its blocks have a place for. 2. One is marked in
which something is asked of the device. 3. A trip begins where control comes to the head: what decides whether there is
one is a part of it, and of the last one there is no more than that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host_regions.watching import Watching
from kesco.frontend.api_table import is_cuda_name
from kesco.ir import program as ir
from kesco.ir.flow import Mark, Role, SiteKind
from kesco.llvm.values import Instruction


@dataclass(slots=True)
class Marking:
    """Marks the loops of what is walked."""

    paths: Watching
    _loops: dict[tuple[str, str], ir.Loop | None] = field(default_factory=dict)
    _working: dict[str, list[ir.Loop]] = field(default_factory=dict)

    def begins(self, frame: Frame, head: str, state: State) -> None:
        """Control comes to the head of a loop, from outside or at the end of a trip."""
        level = self.paths.now
        if not level.is_text or level.call is not None or frame.function.name != level.function:
            return
        at = (frame.function.name, head)
        if at not in self._loops:
            self._loops[at] = self._found(frame, level.activation.function, head)
        loop = self._loops[at]
        if loop is None or self.paths.counting.is_counted(loop):
            return
        trips = self.paths.iterations()
        key = f"{loop.number}" + (f"[{','.join(f'{one.loop}.{one.index}' for one in trips)}]" if trips else "")
        for mark in (Mark.ENTERS, Mark.TURNS) if head not in frame.around else (Mark.TURNS,):
            name, builder = f"{mark.value} {key}", level.activation.builder
            where = (-2 - loop.span.start, name, trips)
            draft, state.frontier = builder.add(where, name, SiteKind.HOST_USE, Role.HOST, loop.span, state.frontier)
            draft.mark, draft.loop = mark, key

    def _found(self, frame: Frame, function: ir.Function, head: str) -> ir.Loop | None:
        """The loop of a function's text that begins at a head, if there is work in it."""
        candidates = self._in(function)
        if not candidates:
            return None
        blocks = (b for name, b in frame.graph.blocks.items() if head in frame.graph.inside.get(name, ()))
        places = {self._offset(one) for block in blocks for one in block.instructions} - {-1}
        around = [n for n in candidates if places and all(n.span.start <= at < n.span.end for at in places)]
        return min(around, key=lambda n: n.span.end - n.span.start, default=None)

    def _offset(self, instruction: Instruction) -> int:
        """Where an instruction stands; -1 for what the compiler has added, which has a line and no column."""
        place = self.paths.texts.module.place(instruction.place) if instruction.place >= 0 else None
        return self.paths.texts.offset(instruction.place) if place is not None and place.column else -1

    def _in(self, function: ir.Function) -> list[ir.Loop]:
        """The loops of a function in which something is asked of the device."""
        if function.key not in self._working:
            here = {f.key for f in self.paths.texts.program.functions if f.here}
            loops = (n for n in ir.walk(function.body) if isinstance(n, ir.Loop))
            self._working[function.key] = [n for n in loops if any(_works(one, here) for one in ir.walk(n.body))]
        return self._working[function.key]


def _works(node: ir.Expr | ir.Stmt, here: set[str]) -> bool:
    if isinstance(node, ir.Call):
        return is_cuda_name(node.name) if node.standard else node.key in here
    return isinstance(node, ir.Launch)

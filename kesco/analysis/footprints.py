"""Device LLVM IR → which bytes behind each pointer parameter a launch of a kernel touches at most.

In: a kernel as `llvm` reads it. Out: for each pointer parameter a `Footprint`, or nothing where the
accesses may be anywhere. Apart from the effects, which say who is touched and how: a kernel has effects without a
footprint, never the other way round, and the footprint of a parameter says nothing of pointers loaded through it.

1. Follow each pointer parameter through address arithmetic. Whatever else is done with it, a call, a store of the
   pointer itself, a choice between pointers, leaves it without a footprint.
2. Of each access, bound the offset (`device_ranges`), in bytes, and add what the access is wide.
3. The footprint is a range that contains all of them; without one that does, provably, there is none.

Offsets are sums in 64 bits. Without ``inbounds`` they might wrap around, so their ends must fit, as those of any other
integer.
"""

from __future__ import annotations

from kesco.analysis.device_bounds import Bound, Condition, Range
from kesco.analysis.device_flow import Flow, Node
from kesco.analysis.device_ranges import OutOfWork, Ranges
from kesco.ir.effects import Footprint
from kesco.ir.poly import ByteRange, Poly, constant
from kesco.llvm.types import Layouts
from kesco.llvm.values import Function, Value, callee

_QUIET = ("llvm.lifetime.", "llvm.assume", "llvm.dbg.", "llvm.experimental.noalias.scope.decl")
_FITS = 1 << 62
_LARGE = 3000  # instructions; a kernel with more has no footprints


def footprints(function: Function, layouts: Layouts) -> dict[int, Footprint]:
    """The footprints of a kernel's pointer parameters, by index."""
    roots: dict[Value, int] = {}
    integers: dict[Value, tuple[int, int]] = {}
    for index, one in enumerate(function.parameters):
        if one.type.kind == "int":
            integers[one.value] = index, one.type.number
        elif one.type.kind == "ptr" and one.promised("byval") is None:
            roots[one.value] = index
    large = sum(len(block.instructions) for block in function.blocks) > _LARGE
    if not roots or large or not function.is_read:
        return {}
    flow = Flow(function)
    return _Walk(flow, Ranges(flow, integers), layouts).run(roots)


class _Walk:
    """Follows the pointers of one kernel."""

    def __init__(self, flow: Flow, ranges: Ranges, layouts: Layouts) -> None:
        self._flow, self._ranges, self._layouts = flow, ranges, layouts
        self._derived: dict[Value, tuple[int, tuple[Node, ...]]] = {}  # pointer → parameter, address arithmetic so far
        self._anywhere: set[int] = set()
        self._touched: dict[int, list[tuple[Range, int]]] = {}

    def run(self, roots: dict[Value, int]) -> dict[int, Footprint]:
        self._derived = {pointer: (index, ()) for pointer, index in roots.items()}
        size = -1
        while size != len(self._derived):  # blocks need not stand in the order in which they run
            size = len(self._derived)
            for node in self._flow.order:
                base = self._derived.get(node.operands[0]) if node.operands else None
                if base is not None and node.opcode in ("getelementptr", "addrspacecast"):
                    step = (node,) if node.opcode == "getelementptr" else ()
                    assert node.code.result is not None
                    self._derived[node.code.result] = base[0], (*base[1], *step)
        for node in self._flow.order:
            self._use(node)
        found = {index: _union(self._touched.get(index, [])) for index in roots.values() if index not in self._anywhere}
        return {index: one for index, one in found.items() if one is not None}

    def _use(self, node: Node) -> None:
        if node.opcode in ("icmp", "getelementptr", "addrspacecast"):
            return
        used = [(at, known) for at, o in enumerate(node.operands) if (known := self._derived.get(o)) is not None]
        if used and callee(node.code).startswith(_QUIET):
            return
        for at, (index, steps) in used:
            width = self._width(node, at)
            if width is None:
                self._anywhere.add(index)
            elif index not in self._anywhere:
                offset = self._offset(steps, node.block)
                if not offset.lows or not offset.highs:
                    self._anywhere.add(index)
                self._touched.setdefault(index, []).append((offset, width))

    def _width(self, node: Node, operand: int) -> int | None:
        """The bytes that an instruction touches through its operand; None if it does anything else with it."""
        if node.opcode == "load" and operand == 0:
            return self._layouts.size(node.code.type)
        if node.opcode == "store" and operand == 1:
            return self._layouts.size(node.operands[0].type)
        if node.opcode in ("atomicrmw", "cmpxchg") and operand == 0:
            return self._layouts.size(node.operands[1].type)
        return None

    def _offset(self, steps: tuple[Node, ...], block: str) -> Range:
        """How many bytes behind the parameter an address is."""
        low, high = Bound(Poly()), Bound(Poly())
        for step in steps:
            if step.code.about is None or len(step.operands) != 2:
                return Range()
            size = self._layouts.size(step.code.about)
            try:
                index = self._ranges.of(step.operands[1], block)
            except OutOfWork:
                return Range()
            if not index.lows or not index.highs:
                return Range()
            nearest = _nearest(index.lows, 1), _nearest(index.highs, -1)
            ends = [Bound(b.at.times(size), b.needs) for b in nearest]
            if not {"inbounds", "nusw"}.intersection(step.code.words):
                needs: frozenset[Condition] = frozenset(
                    {(ends[0].at.times(-1), _FITS), (ends[1].at, _FITS)} - {(Poly(), _FITS)}
                )
                needs = frozenset(n for n in needs if n[0].bounds()[1] > n[1])
                ends = [b.plus(Poly(), needs) for b in ends]
            low, high = low.plus(ends[0].at, ends[0].needs), high.plus(ends[1].at, ends[1].needs)
        return Range((low,), (high,))


def _nearest(bounds: tuple[Bound, ...], side: int) -> Bound:
    """The first of these that none of the others is provably nearer than, on fewer conditions or the same."""
    for one in bounds:
        if not any((o.at - one.at).times(side).bounds()[0] > 0 and o.needs <= one.needs for o in bounds):
            return one
    return bounds[0]


def _union(touched: list[tuple[Range, int]]) -> Footprint | None:
    """One range around all of these; None if none is known to be."""
    if not touched:
        return None
    low = _outermost([one.lows[0] for one, _ in touched], -1)
    high = _outermost([one.highs[0].plus(constant(width)) for one, width in touched], 1)
    if low is None or high is None:
        return None
    needs = frozenset(n for one, _ in touched for b in (one.lows[0], one.highs[0]) for n in b.needs)
    fits = tuple(sorted(needs, key=lambda n: (str(n[0]), n[1])))
    return Footprint(ByteRange(low, high), fits)


def _outermost(ends: list[Bound], side: int) -> Poly | None:
    """The one of these that none of the others is beyond."""
    for one in ends:
        if all((one.at - other.at).times(side).bounds()[0] >= 0 for other in ends):
            return one.at
    return None

"""Where streams are fetched so that no clock measures it: ``before_clock(program, body, place)``.

In: a program, the body of a function and the statement in front of which the streams are fetched at the latest. Out:
that place, or that of an earlier statement of the same block. The first call in a process makes the streams, which
takes as long as some kernels do; who times these by hand makes streams before the clock starts, and so does kesco.

1. A statement is passed if nothing in it can change the device, or what is known of it: declarations, clocks, output,
events, waits, copies and allocations of CUDA, and calls of functions of the file with nothing else in them. 2. The
place is in front of the first clock or event that is passed. With none the streams are fetched where they are needed.
"""

from __future__ import annotations

from kesco.frontend.api_table import cuda_call, host_call
from kesco.ir import program as ir

_CALM = frozenset({"alloc", "copy", "memset", "event_create", "event_record", "sync", "event_sync", "query"})
_CALM_ON_HOST = frozenset({"pure", "io", "clock", "exit"})
_SEES_STREAMS = ("cudaMemGetInfo",)
_CHRONO = "std::chrono::"
_DEPTH = 4


def before_clock(program: ir.Program, body: ir.Block, place: int) -> int:
    """Where the streams are fetched, as an offset into the text."""
    blocks = (n for n in ir.walk(body) if isinstance(n, ir.Block))
    row = next((b.body for b in blocks if any(s.span.start == place for s in b.body)), ())
    passed = _Passed(program)
    found = place
    for one in reversed([s for s in row if s.span.start < place]):
        if not passed.is_calm(one, 0):
            break
        start = one.span.start
        alone = not program.text[program.text.rfind(b"\n", 0, start) + 1 : start].strip()
        if alone and passed.reads_clock(one, 0):
            found = start
    return found


class _Passed:
    """Which statements may be passed, with the functions that they call."""

    def __init__(self, program: ir.Program) -> None:
        self.records = program.records
        self.bodies = {f.key: f.body for f in program.functions if not f.virtual}  # else another one may be called

    def is_calm(self, one: ir.Stmt, depth: int) -> bool:
        """Whether nothing in a statement can change the device."""
        return all(self._may_pass(node, depth) for node in ir.walk(one))

    def reads_clock(self, one: ir.Stmt, depth: int) -> bool:
        """Whether a statement reads a clock, or records an event."""
        calls = [n for n in ir.walk(one) if isinstance(n, ir.Call)]
        if any(n.standard and _kind(n) in ("clock", "event_record") for n in calls):
            return True
        own = {n.key for n in calls if not n.standard} & self.bodies.keys()
        return depth < _DEPTH and any(self.reads_clock(self.bodies[key], depth + 1) for key in own)

    def _may_pass(self, node: ir.Expr | ir.Stmt, depth: int) -> bool:
        if isinstance(node, (ir.Launch, ir.New, ir.Obstacle, ir.Unknown)):
            return False
        if isinstance(node, ir.Declare) and node.variable.type.shape is ir.Shape.RECORD:
            record = self.records.get(node.variable.type.record)
            return record is not None and (record.standard or not record.destructor)
        if not isinstance(node, ir.Call):
            return True
        if node.destroys or node.runs or node.name in _SEES_STREAMS:
            return False
        if not node.standard:
            return depth < _DEPTH and node.key in self.bodies and self.is_calm(self.bodies[node.key], depth + 1)
        compilers = node.constructs and node.implicit
        return compilers or node.name.startswith(_CHRONO) or _kind(node) in (_CALM | _CALM_ON_HOST)


def _kind(call: ir.Call) -> str:
    found = cuda_call(call.name) or host_call(call.name)
    return found.kind if found is not None else ""

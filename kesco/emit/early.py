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
_CHRONO = "std::chrono::"
_DEPTH = 4


def before_clock(program: ir.Program, body: ir.Block, place: int) -> int:
    """Where the streams are fetched, as an offset into the text."""
    blocks = (n for n in ir.walk(body) if isinstance(n, ir.Block))
    row = next((b.body for b in blocks if any(s.span.start == place for s in b.body)), ())
    bodies = {f.key: f.body for f in program.functions}
    before = [s for s in row if s.span.start < place]
    found = place
    for one in reversed(before):
        if not _is_calm(one, bodies, 0):
            break
        start = one.span.start
        alone = not program.text[program.text.rfind(b"\n", 0, start) + 1 : start].strip()
        if alone and _reads_clock(one, bodies, 0):
            found = start
    return found


def _is_calm(one: ir.Stmt, bodies: dict[str, ir.Stmt], depth: int) -> bool:
    for node in ir.walk(one):
        if isinstance(node, (ir.Launch, ir.New, ir.Obstacle, ir.Unknown)):
            return False
        if isinstance(node, ir.Call) and not _may_pass(node, bodies, depth):
            return False
    return True


def _may_pass(call: ir.Call, bodies: dict[str, ir.Stmt], depth: int) -> bool:
    if call.destroys or call.runs:
        return False
    if not call.standard:
        return depth < _DEPTH and call.key in bodies and _is_calm(bodies[call.key], bodies, depth + 1)
    if call.name.startswith(_CHRONO) or (call.constructs and call.implicit):
        return True
    return _kind(call) in (_CALM | _CALM_ON_HOST)


def _kind(call: ir.Call) -> str:
    found = cuda_call(call.name) or host_call(call.name)
    return found.kind if found is not None else ""


def _reads_clock(one: ir.Stmt, bodies: dict[str, ir.Stmt], depth: int) -> bool:
    calls = [n for n in ir.walk(one) if isinstance(n, ir.Call)]
    if any(n.standard and _kind(n) in ("clock", "event_record") for n in calls):
        return True
    own = {n.key for n in calls if not n.standard} & bodies.keys()
    return depth < _DEPTH and any(_reads_clock(bodies[key], bodies, depth + 1) for key in own)

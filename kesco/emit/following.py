"""Calls that are given a stream, and functions that follow it: the edits for both.

In: an operation and, for a call, the text of its stream. Out: edits. Apart from the rest of the writing because here
the stream of an operation stands in another function than the operation.

1. Around a call an object sets the current stream until the end of the expression, in front of a comma. 2. It stands in
parentheses unless the call is the whole statement, since a comma may also part arguments or declarations; and it is
cast to ``void`` unless the call is, so that no comma operator of the user's can be meant. 3. In a function that
follows, all operations are put on the current stream, copies that keep the host by a function of the prologue's, and
calls of libraries by lines around them.
"""

from __future__ import annotations

from kesco.emit.edits import Edit, newline_of
from kesco.emit.handles import CURRENT, lent
from kesco.emit.places import around
from kesco.ir import program as ir
from kesco.ir.flow import Region, Role, Site, SiteKind, is_wait
from kesco.ir.taken import OwnMemory
from kesco.ir.transfers import COPY_HERE, GIVE_HERE, LATER, ON, TAKE_HERE, WAIT_HERE
from kesco.ir.within import Within

_WAIT = "cudaDeviceSynchronize"
_LAST = 9  # behind the lines that come before the statement


def given_stream(program: ir.Program, operation: ir.Operation, stream: str, *, later: bool = False) -> list[Edit]:
    """The edits that let a call run on a stream; with `later` copies in it may go on behind it."""
    assert operation.call is not None
    start, end, nothing = operation.call
    on = f"{'' if nothing else '(void)'}{LATER if later else ON}({stream}), "
    place = operation.statement
    if place is not None and place.start == start and program.text[end : place.end].strip() == b";":
        return [Edit(start, start, on, _LAST)]
    return [Edit(start, start, f"({on}", _LAST), Edit(end, end, ")")]


def wait_behind(truth: str) -> str:
    """Behind a call in which copies waited for the device, as the host may look: the line where the caller waits."""
    condition = "" if truth == "true" else f"if ({truth}) "
    return f"{condition}cudaDeviceSynchronize();  // kesco: as the copies in the call did" if truth != "false" else ""


def stated(program: ir.Program, operation: ir.Operation, stream: str, name: str = "") -> list[Edit]:
    """The edits that put an operation on a stream, under another name where it needs one."""
    assert operation.stream_text is not None
    start, end = operation.stream_text
    if (macro := operation.macro) is not None:
        variant = f"{newline_of(program.text)}{macro.variant}"
        return [Edit(*macro.name, macro.called), Edit(start, end, f"{stream}, "), Edit(macro.end, macro.end, variant)]
    before = "".join(f", {default}" for default in operation.defaults)
    edits = [Edit(start, end, f"{before}, {stream}" if start == end else stream)]
    if operation.rename is not None:
        (first, last), plain = operation.rename
        edits.append(Edit(first, last, name or plain))
    return edits


def follow(program: ir.Program, region: Region) -> list[Edit]:
    """The edits of a function that follows its caller."""
    operations = {s.operation: s for s in region.sites if _is_put_there(program, s)}
    edits = [edit for number, site in operations.items() for edit in _followed(program, number, site, region)]
    kept = (s for s in region.sites if s.kind is SiteKind.COPY)  # up in one call and home in another: not one `held`
    copies = {s.operation for s in kept if s.held is not None or s.role is Role.LEGACY}
    names = (program.operations[number].rename for number in sorted(copies))
    edits += [Edit(*name[0], COPY_HERE) for name in names if name is not None]
    waits = {s.operation for s in region.sites if is_wait(s) and s.operation >= 0}
    named = [(number, _WAIT, WAIT_HERE) for number in sorted(waits)]
    for takes, gives in taken_in(program, region):
        named += [(takes, "cudaMalloc", TAKE_HERE), (gives, "cudaFree", GIVE_HERE)]
    places = ((program.operations[number].span.start, old, new) for number, old, new in named)
    return [*edits, *(Edit(at, at + len(old), new) for at, old, new in places)]


def taken_in(program: ir.Program, region: Region) -> list[tuple[int, int]]:
    """The operations by which a function allocates and frees memory for itself."""
    function = next(f for f in program.functions if f.here and f.span == region.span)
    own = OwnMemory(program, Within(program)).of(function)
    return [(takes, free.operation) for takes, free in sorted(own.items())]


def _is_put_there(program: ir.Program, site: Site) -> bool:
    """Whether a site is work of the function itself; with a handle that came in, it is a join for the function."""
    lends = site.role is Role.JOIN and site.operation >= 0 and program.operations[site.operation].handle is not None
    return lends or (site.role is Role.MOVABLE and site.kind is not SiteKind.CALL)


def _followed(program: ir.Program, number: int, site: Site, region: Region) -> list[Edit]:
    """The edits that put one operation on the current stream."""
    operation = program.operations[number]
    if operation.handle is None or operation.statement is None:
        return stated(program, operation, CURRENT)
    before, after = lent(program, operation, site.label, seen=not (region.open or region.trusting))
    return around(program, (operation.statement.start, operation.statement.end), number, [before], [after])

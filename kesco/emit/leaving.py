"""The object that waits for the device where a macro leaves a function early, and what the other exits tell it.

In: the program, a function that is rewritten with `watched` operations, and where its streams are fetched. Out: the
line that declares the object, and the exits before which it is told that they are no early ones. Apart from the writing
of joins because it is decided here whether the object can do its work at all.

It refuses functions that declare objects with destructors behind it, which would go before it waits (in a ``try``, the
library's may, as the proof follows the way of an exception; then no macro may return), and those that a
macro may also leave where nothing has failed.
"""

from __future__ import annotations

from collections.abc import Iterator

from kesco.emit.places import CannotInsert, Rewrite, tried
from kesco.ir import program as ir
from kesco.ir.failures import EARLY, LEAVE, destroyed
from kesco.ir.flow import Role, Site


def watch_line(name: str) -> str:
    """The line behind the one that fetches the streams; `name` is that of the local pointer."""
    return f"{LEAVE} {name}_leave;  // kesco: where an error leaves the function, the host waits for the device"


def off_line(name: str) -> str:
    """The line before an exit that is none of these."""
    return f"{name}_leave.{EARLY} = false;  // kesco: it is left as usual"


def usual_exits(program: ir.Program, rewrite: Rewrite, fetched: int) -> Iterator[Site]:
    """The exits behind the object; `fetched` is where the streams are, right before it."""
    behind = False
    within = tried(program, rewrite, fetched)
    for node in ir.walk(rewrite.function.body if within is None else within):
        if not isinstance(node, ir.Declare) or node.span.start < fetched:
            continue
        record = destroyed(program, node.variable)
        behind = behind or record is not None
        if record is not None and (within is None or not record.standard):
            raise CannotInsert(
                f"line {node.span.line}: a macro may return while work is pending, and '{node.variable.name}' goes then"
            )
    for site in rewrite.region.sites:
        if site.role is not Role.EXIT or site.span.start < fetched:
            continue
        if within is not None and site.span.start >= within.span.end:
            continue
        in_a_macro = site.operation >= 0 and program.operations[site.operation].within
        if in_a_macro and site.failed and not behind:  # nothing of the function is pending there: to wait does no harm
            continue
        if in_a_macro:
            raise CannotInsert(
                f"line {site.span.line}: a macro may return though nothing has failed, and no text can be put there"
            )
        yield site

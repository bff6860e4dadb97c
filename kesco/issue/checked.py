"""Waits whose result is looked at, and nothing else is done: ``checked(program, region)``.

In: a program and a function's region. Out: the sites where the host waits, by a synchronize or a copy, in a statement
that otherwise only asks for errors, says that there is one, and ends the process; of each whether it asks. Apart from
the rest because nothing moves here: one of these may report what another one would have.
"""

from __future__ import annotations

from kesco.ir import program as ir
from kesco.ir.flow import Region, comes_home, is_wait
from kesco.issue.lines import blocks, is_whole
from kesco.issue.pairs import statuses
from kesco.issue.statements import is_bare, issued_or_asked


def checked(program: ir.Program, region: Region) -> dict[int, bool]:
    """The sites of such waits, with whether their statement also asks for the error of a launch."""
    waits: dict[int, list[int]] = {}
    for site in region.sites:
        if (is_wait(site) or comes_home(site)) and site.operation >= 0:
            waits.setdefault(site.operation, []).append(site.number)
    places = {region.span, *(span for _, span in region.members)}
    found: dict[int, bool] = {}
    for function in (f for f in program.functions if f.here and f.span in places):
        known = statuses(function.body)
        for block in blocks(function.body, program.text, known):
            for at, one in enumerate(block):
                inside = [n for n in ir.walk(one) if isinstance(n, ir.Call) and n.operation in waits]
                work = frozenset(n.operation for n in inside[:1])
                if len(inside) == 1 and not is_bare(one, waits) and is_whole(program, block, at):
                    operations, asks = issued_or_asked(program, function, one, work, known)
                    found |= {number: asks for n in operations for number in waits[n]}
    return found

"""Where a function must look as if all were on the default stream: ``add_joins(before, program, rewrite, name)``.

In: the program, a planned function, and the lines before each operation, to which those of its joins are added; `name`
is that of the local pointer to the streams. Out: the lines before the function's closing brace. Apart from `render`,
as a place of the text is joined once, whatever number of sites the analysis makes of it, and in all its trips alike:
a stream that has no work by then has nothing to wait for.

It refuses, with `CannotInsert`, a place where no text can be put.
"""

from __future__ import annotations

from kesco.emit.comments import why_joined
from kesco.emit.names import counter
from kesco.emit.places import CannotInsert, Rewrite
from kesco.ir import program as ir
from kesco.ir.flow import Site, SiteKind

_END = -1
"""In the place of an operation: the closing brace."""


def add_joins(before: dict[int, list[str]], program: ir.Program, rewrite: Rewrite, name: str) -> list[str]:
    """Adds the joins of a function; returns the lines before its closing brace."""
    sites: dict[int, list[Site]] = {}
    streams: dict[int, set[int]] = {}
    for join in rewrite.plan.joins:
        site = rewrite.region.sites[join.target]
        place = _place(program, site)
        sites.setdefault(place, []).append(site)
        streams.setdefault(place, set()).update(join.streams)
    at_end: list[str] = []
    for place, seen in sites.items():
        lines = at_end if place == _END else before.setdefault(place, [])
        more = _lines(program, name, sorted(streams[place]), why_joined(seen))
        lines += [line for line in more if line not in lines]
    return at_end


def _place(program: ir.Program, site: Site) -> int:
    """The operation before which the text of a join is put."""
    line = f"line {site.span.line}"
    if site.kind is SiteKind.BOUNDARY and site.label.partition("#")[0] == "end":
        return _END
    if site.operation < 0:
        raise CannotInsert(f"{line}: work would have to be joined before {site.label}, where no text can be put")
    if site.kind is SiteKind.BOUNDARY and program.operations[site.operation].within:
        raise CannotInsert(f"{line}: a macro may return while work is pending, and no text can be put there")
    return site.operation


def _lines(program: ir.Program, name: str, streams: list[int], why: str) -> list[str]:
    """What lets the default stream wait for others."""
    record = f"cudaEventRecord({name}->tail[%s], {name}->stream[%s]);"
    wait = f"cudaStreamWaitEvent(cudaStreamLegacy, {name}->tail[%s], 0);"
    if len(streams) > 2 and streams == [*range(len(streams))]:
        s = counter(program)
        body = f"{record % (s, s)} {wait % s}"
        return [f"for (int {s} = 0; {s} < {len(streams)}; ++{s}) {{ {body} }}  {why}"]
    return [x for s in streams for x in (record % (s, s), f"{wait % s}  {why}")]

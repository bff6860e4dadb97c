"""The report's page: one HTML file that shows what was found in a program and what was done with it.

In: the outcome for one file. Out: the text of a page that needs nothing else: no network, no other file. Its template,
style sheet and script are in ``templates/``; nothing of the program gets into either of the last two, and everything
of it that gets into the first is escaped. A content security policy allows those two texts by their digests and
nothing else, so that even a mistake in escaping could not run anything.

1. Each function's drawing, as `drawing` has it, and its operations and dependences as data for details on demand.
2. Timelines: of the model, and measured ones where there are any. 3. Source beside rewritten source.
4. What was gained and what was lost.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol

from kesco.report import (
    Edge,
    Function,
    Outcome,
    edges_of,
    iteration_text,
    movable,
    streams_of,
)
from kesco.report.drawing import PALETTE, drawing, summary
from kesco.report.page.findings import findings
from kesco.report.page.source_view import rows
from kesco.report.page.timeline_view import duration, views

if TYPE_CHECKING:
    from jinja2 import Environment

    from kesco.ir.flow import Site
    from kesco.ir.timeline import Timeline


Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A caption, the heads of columns, and rows whose first cell is what the row is of."""


class Compiled(Outcome, Protocol):
    """The outcome for one file with its texts: `kesco.pipeline.Compilation` for this page."""

    @property
    def source(self) -> bytes:
        """The file as it was."""

    @property
    def text(self) -> bytes:
        """The file as it became."""

    @property
    def kept(self) -> Sequence[tuple[int, int, int]]:
        """Which stretches of the one are in the other."""

    @property
    def timelines(self) -> Sequence[Sequence[Timeline]]:
        """For each function its runs in the model."""


def page(result: Compiled, measured: Sequence[Timeline] = ()) -> str:
    """The page of a compilation; `measured` are timelines of real runs, which share a scale of their own."""
    functions = [_function(n, one, _at(result.timelines, n)) for n, one in enumerate(result.functions)]
    by_function, other = findings(result.functions, result.diagnostics, result.timelines)
    lines = rows(result.source, result.text, result.kept)
    return _rendered(
        title=result.path.rpartition("/")[2],
        path=result.path,
        tiles=_tiles(result),
        functions=functions,
        measured=views(measured, len(PALETTE)),
        rows=lines,
        blocks=Counter(one.block for one in lines),
        operations_at=_operations_at(result),
        findings=by_function,
        other=other,
        tables=(),
        data={"functions": [_data(one) for one in result.functions]},
    )


def timeline_page(
    title: str, tiles: Sequence[tuple[str, str]], measured: Sequence[Timeline], tables: Sequence[Table] = ()
) -> str:
    """A page with measured timelines alone, and tables below them."""
    return _rendered(
        title=title, path=title, tiles=tiles, functions=[], measured=views(measured, len(PALETTE)), rows=[], blocks={},
        operations_at={}, findings=[], other=[], data={"functions": []}, tables=tables,
    )  # fmt: skip


def _rendered(**values: Any) -> str:
    style, digest = style_and_digest()
    script = files("kesco.report").joinpath("templates", "page.js").read_text("utf-8")
    made = environment().get_template("page.html.j2").render(
        style=style, script=script, digests={"style": digest, "script": _digest(script)}, palette=PALETTE, **values,
    )  # fmt: skip
    return made.encode("utf-8", "replace").decode()


def environment() -> Environment:
    """What renders the templates of pages; it escapes everything."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("kesco.report", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def style_and_digest() -> tuple[str, str]:
    """The style sheet of all pages, and what a content security policy calls it."""
    text = files("kesco.report").joinpath("templates", "page.css.j2").read_text("utf-8")
    style = environment().from_string(text).render(palette=PALETTE)
    return style, _digest(style)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _at(timelines: Sequence[Sequence[Timeline]], number: int) -> Sequence[Timeline]:
    return timelines[number] if number < len(timelines) else ()


def _tiles(result: Compiled) -> list[tuple[str, str]]:
    """The numbers at the top, each with its words."""
    done = [one for one in result.functions if one.rewritten]
    tiles = [(f"{len(done)}/{len(result.functions)}", "functions rewritten")]
    if done:
        waits = sum(len(one.plan.waits) for one in done)
        removed = sum(len(one.plan.removed) for one in done)
        tiles += [
            (str(sum(len(one.schedule.stream_of) for one in done)), "operations"),
            (str(max(one.schedule.streams for one in done)), "streams"),
            (str(waits), "waits"),
            (str(removed), "waits not needed"),
            ("✓", "proven"),
        ]
    runs = [pair for pair in result.timelines if len(pair) > 1 and pair[0].exact]
    if runs:
        before, after = (sum(pair[n].end for pair in runs) for n in (0, 1))
        tiles.append((f"{before / after:.2f}×" if after else "–", "as fast, in the model"))
        tiles.append((duration(after), f"instead of {duration(before)}"))
    return tiles


def _function(number: int, function: Function, runs: Sequence[Timeline]) -> dict[str, Any]:
    """One function for the template."""
    return {
        "number": number,
        "name": function.region.function,
        "place": str(function.region.span),
        "summary": summary(function),
        "drawing": drawing(function, -44.0) if movable(function) else None,
        "streams": function.schedule.streams if function.rewritten else 0,
        "count": len(movable(function)),
        "runs": views(runs, len(PALETTE), streams_of(function)),
    }


def _operations_at(result: Compiled) -> dict[int, str]:
    """Line → the operations that begin there, as ``function-site`` with spaces."""
    found: dict[int, list[str]] = {}
    for number, function in enumerate(result.functions):
        for site in movable(function):
            if site.span.path == result.path:
                found.setdefault(site.span.line, []).append(f"{number}-{site.number}")
    return {line: " ".join(names) for line, names in found.items()}


# ---- details on demand -------------------------------------------------------------------------------------


def _data(function: Function) -> dict[str, Any]:
    """What the page's script says of operations and dependences."""
    stream_of = streams_of(function)
    return {
        "name": function.region.function,
        "operations": {site.number: _operation(site, stream_of.get(site.number)) for site in movable(function)},
        "edges": [_edge(function, edge) for edge in edges_of(function)],
    }


def _operation(site: Site, stream: int | None) -> dict[str, Any]:
    accesses = dict.fromkeys((one.mode.text, one.buffer.name, one.why) for one in site.accesses)
    return {
        "label": site.label,
        "kind": site.kind.value,
        "line": site.span.line,
        "place": str(site.span),
        "stream": stream,
        "around": iteration_text(site),
        "task": f"{site.task}, priority {site.priority}" if site.task else "",
        "accesses": [list(one) for one in accesses],
    }


def _edge(function: Function, edge: Edge) -> dict[str, Any]:
    graph = function.dfg.graph
    between = function.dfg.between(edge.source, edge.target) if graph.has_edge(edge.source, edge.target) else ()
    return {
        "source": edge.source,
        "target": edge.target,
        "kind": edge.kind,
        "carried": edge.carried,
        "buffers": sorted({f"{one.kind.value} {one.buffer.name}" for one in between}),
        "why": list(edge.why),
    }

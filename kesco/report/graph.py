"""Pictures of data-flow graphs: ``draw(functions, form)`` gives SVG, DOT or JSON.

In: the functions of one file. Out: text in the form asked for: JSON with all that is known, for programs; DOT
for graphviz; SVG that needs nothing else, for people. It is apart from the drawing, which the report's page shares.

Method:

1. Every pair of operations with a dependence becomes one `Edge`.
2. JSON and DOT write that down as it is.
3. For SVG `drawing` says where boxes and lines go, and a template writes them.

What it refuses to do: draw what stays on the default stream (JSON lists it). Such operations are barriers,
and the pictures show them as such.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from kesco.report import Function, edges_of, levels_of, movable, streams_of
from kesco.report.drawing import MARGIN, PALETTE, SWATCHES_IN_LINE, box_lines, drawing, summary, tooltip
from kesco.report.explain import lost

if TYPE_CHECKING:
    from kesco.ir.dfg import Dependence

FORMS = ("svg", "dot", "json")
VERSION = 1  # of the JSON; a field that goes or changes its meaning raises it
_STYLES = {"wait": "solid", "stream": "bold", "removed": "dashed"}  # of DOT


def draw(functions: Sequence[Function], form: str) -> str:
    """The graphs of all `functions` in one of the `FORMS`."""
    text = {"svg": _svg, "dot": _dot, "json": _json}[form](functions)
    return text.encode("utf-8", "replace").decode()


# ---- JSON --------------------------------------------------------------------------------------------------


def _json(functions: Sequence[Function]) -> str:
    value = {"version": VERSION, "functions": [_json_function(function) for function in functions]}
    return json.dumps(value, indent=2) + "\n"


def explained_json(functions: Sequence[Function]) -> str:
    """The JSON of `draw`, and for each function what was lost, with advice; without a final newline."""
    told = [_json_function(one) | {"lost": [asdict(missed) for missed in lost(one)]} for one in functions]
    return json.dumps({"version": VERSION, "functions": told}, indent=2)


def _json_function(function: Function) -> dict[str, Any]:
    region, plan = function.region, function.plan
    stream_of = streams_of(function)
    level_of = {site: number for number, row in enumerate(levels_of(function), 1) for site in row}
    done = function.rewritten
    dependences = sorted(function.dfg.dependences, key=_place_of)
    waits = sorted(plan.waits, key=lambda one: (one.target, one.source)) if done else []
    removed = sorted(plan.removed, key=lambda one: (one.target, one.source)) if done else []
    return {
        "name": region.function,
        "file": region.span.path,
        "line": region.span.line,
        "rewritten": done,
        "left_because": function.left_because,
        "streams": function.schedule.streams if done else 0,
        "width": function.width,
        "levels": max(level_of.values(), default=0),
        "guards": list(region.guards),
        "operations": [
            {
                "id": site.number,
                "label": site.label,
                "kind": site.kind.value,
                "role": site.role.value,
                "line": site.span.line,
                "column": site.span.column,
                "stream": stream_of.get(site.number),
                "level": level_of.get(site.number),
                "iteration": [
                    {key: getattr(i, key) for key in ("counter", "value", "index", "trips")} for i in site.iterations
                ],
                "note": site.note,
                "accesses": [
                    {"buffer": one.buffer.name, "mode": one.mode.text, "why": one.why} for one in site.accesses
                ],
            }
            for site in region.sites
        ],
        "dependences": [
            {
                "from": one.source,
                "to": one.target,
                "kind": one.kind.value,
                "buffer": one.buffer.name,
                "carried": one.carried,
                "reason": one.reason(region),
            }
            for one in dependences
        ],
        "waits": [{"from": one.source, "to": one.target} | ({"because": one.why} if one.why else {}) for one in waits],
        "removed": [{"from": one.source, "to": one.target, "because": one.because} for one in removed],
        "joins": [{"before": one.target, "streams": list(one.streams)} for one in plan.joins] if done else [],
        "fences": list(plan.fences) if done else [],
    }


def _place_of(one: Dependence) -> tuple[int, int, str, str, bool]:
    return one.source, one.target, one.kind.value, one.buffer.name, one.carried


# ---- DOT ---------------------------------------------------------------------------------------------------


def _dot(functions: Sequence[Function]) -> str:
    lines = [
        "digraph kesco {",
        '  graph [rankdir=TB, fontname="sans-serif"];',
        '  node [shape=box, style="rounded,filled", fillcolor="white", fontname="monospace", fontsize=10];',
    ]
    for number, function in enumerate(functions):
        title = f"{function.region.function} ({function.region.span})\n{summary(function)}"
        lines += [f"  f{number} [shape=plaintext, style=solid, label={_quoted(title)}];"]
        stream_of = streams_of(function)
        for site in movable(function):
            stream = stream_of.get(site.number)
            look = "" if stream is None else f', color="{PALETTE[stream % len(PALETTE)][0]}", penwidth=2'
            text = "\n".join(line for line in box_lines(site, stream) if line)
            look = f"label={_quoted(text)}, tooltip={_quoted(tooltip(site, stream))}{look}"
            lines.append(f"  f{number}_{site.number} [{look}];")
        for edge in edges_of(function):
            style = "dotted" if edge.carried else _STYLES[edge.kind]
            look = f'style={style}, class="{edge.kind}"'
            if edge.kind == "stream" and edge.source in stream_of:
                look += f', color="{PALETTE[stream_of[edge.source] % len(PALETTE)][0]}", penwidth=2'
            elif edge.kind == "removed":
                look += ', color="#888888"'
            if edge.carried:
                look += ", constraint=false"
            ends = f"f{number}_{edge.source} -> f{number}_{edge.target}"
            lines.append(f"  {ends} [{look}, tooltip={_quoted(chr(10).join(edge.why))}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


# ---- SVG ---------------------------------------------------------------------------------------------------


def _svg(functions: Sequence[Function]) -> str:
    from jinja2 import Environment, StrictUndefined

    text = files("kesco.report").joinpath("templates/graph.svg.j2").read_text("utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    used = sorted({stream % len(PALETTE) for f in functions for stream in streams_of(f).values()})
    swatches = max((f.schedule.streams for f in functions if f.rewritten), default=0)
    drawings, y = [], MARGIN + 44.0 + 18.0 * -(-swatches // SWATCHES_IN_LINE)
    for function in functions:
        drawings.append(drawing(function, y))
        y += drawings[-1]["height"] + 36.0
    width = max([760.0, *(d["width"] for d in drawings)])
    template = environment.from_string(text)
    made = template.render(
        drawings=drawings,
        swatches=swatches,
        per_line=SWATCHES_IN_LINE,
        palette=PALETTE,
        used=used,
        width=round(width),
        height=round(y),
        margin=MARGIN,
    )
    return made.rstrip() + "\n"

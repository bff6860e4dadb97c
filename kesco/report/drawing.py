"""Where everything of a function's picture goes: boxes for operations, lines for dependences, rows for levels.

In: one function. Out: plain data for a template, in units of the picture. It is apart from the forms because a picture
of its own and the report's page draw the same, and from the layout because it knows what a wait is.

Method:

1. The parts between full barriers are put one below another, each with its levels as rows, long rows wrapped.
2. Each box is as large as its words, by the width of a letter, and the layout places boxes and lines.

What it refuses to do: draw what stays on the default stream. Such operations are barriers, and are named as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from kesco.ir.flow import Site, is_barrier
from kesco.report import (
    Edge,
    Function,
    counted,
    edges_of,
    iteration_text,
    levels_of,
    movable,
    streams_of,
    touched,
)
from kesco.report.layout import Layout, Point, lay_out, wrap

# For light and dark ground: Okabe and Ito's, which all can tell apart, less the yellow that white swallows.
PALETTE = (
    ("#0072b2", "#4c8dff"),
    ("#e69f00", "#f0b43c"),
    ("#009e73", "#2bc79a"),
    ("#cc79a7", "#e39bc3"),
    ("#d55e00", "#ff8a3d"),
    ("#56b4e9", "#8fd8fa"),
    ("#8a8500", "#c9c24a"),
    ("#7a4b1e", "#c08a5a"),
)
_MOST_IN_ROW = 16
_SMALL = 6.1  # width of a letter in small type
_LARGE = 7.6  # and in a label's
_LINE = 13.0
_LINE_TEXT = 32  # letters of a box's small lines
MARGIN = 20.0
_LEFT = 64.0  # room for the names of levels
SWATCHES_IN_LINE = 8  # of the legend


# ---- words -------------------------------------------------------------------------------------------------


def summary(function: Function) -> str:
    """What was done, in a line."""
    count = len(movable(function))
    if not count:
        return f"nothing that could be moved: {function.left_because or 'no operation'}"
    shape = f"width {function.width}, {counted(len(levels_of(function)), 'level')}"
    if not function.rewritten:
        serial = "" if function.follows else "stays serial: "
        return f"{counted(count, 'operation')}, {shape}; {serial}{function.left_because}"
    waits = f"{counted(len(function.plan.waits), 'wait')}, {len(function.plan.removed)} not needed"
    return f"{counted(count, 'operation')} on {counted(function.schedule.streams, 'stream')}, {shape}; {waits}"


def tooltip(site: Site, stream: int | None) -> str:
    """All that is known of an operation, line by line."""
    where = "default stream" if stream is None else f"stream {stream}"
    around = iteration_text(site)
    lines = [f"{site.label} at {site.span}, {where}" + (f", {around}" if around else "")]
    lines += [f"{one.mode.text} {one.buffer.name}" + (f": {one.why}" if one.why else "") for one in site.accesses]
    return "\n".join(lines)


# ---- boxes and lines ---------------------------------------------------------------------------------------


def drawing(function: Function, top: float) -> dict[str, Any]:
    """One function in the page's coordinates, from `top` downwards."""
    region, stream_of = function.region, streams_of(function)
    title = f"{region.function} ({region.span})"
    text = summary(function)
    found: dict[str, Any] = {
        "y": top,
        "title": title,
        "text": text,
        "nodes": [],
        "edges": [],
        "lines": [],
        "rows": [],
    }
    found |= {"height": 30.0, "width": MARGIN * 2 + max(len(title) * 9.0, len(text) * 6.6)}
    sites = {site.number: site for site in movable(function)}
    if not sites:
        return found
    texts = {number: box_lines(site, stream_of.get(number)) for number, site in sites.items()}
    sizes = {number: _size(lines, stream_of.get(number)) for number, lines in texts.items()}
    rows, names, barriers = _rows(function)
    edges = edges_of(function)
    layout = lay_out(rows, sizes, [(edge.source, edge.target) for edge in edges], dict.fromkeys(barriers, 26.0))
    left, down = MARGIN + _LEFT, top + 48.0
    for number, lines in texts.items():
        stream = stream_of.get(number)
        x, y = layout.corners[number]
        bars = 1 if stream is None else stream // len(PALETTE) + 1
        found["nodes"].append(
            {
                "site": number,
                "x": _round(x + left),
                "y": _round(y + down),
                "width": _round(sizes[number][0]),
                "height": sizes[number][1],
                "colour": "n" if stream is None else stream % len(PALETTE),
                "bars": bars,
                "inset": 9 + 6 * bars,
                "badge": lines[0],
                "label": lines[1],
                "small": lines[2:],
                "tooltip": tooltip(sites[number], stream),
            }
        )
    for edge in edges:
        colour = stream_of.get(edge.source)
        found["edges"].append(
            {
                "source": edge.source,
                "target": edge.target,
                "path": _path(edge, layout, sizes, left, down),
                "kind": edge.kind,
                "carried": edge.carried,
                "colour": "n" if colour is None else colour % len(PALETTE),
                "tooltip": "\n".join(edge.why),
            }
        )
    found["rows"] = [{"y": _round(layout.tops[row] + down + 16), "text": name} for row, name in names.items()]
    found["lines"] = [{"y": _round(layout.tops[row] + down - 38), "text": name} for row, name in barriers.items()]
    found["height"] = 48.0 + layout.height
    found["width"] = max(found["width"], left + layout.width + MARGIN)
    return found


def _round(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def box_lines(site: Site, stream: int | None) -> list[str]:
    """Badge, label and small lines of a box."""
    around = iteration_text(site)
    place = f"line {site.span.line}" + (f" · {around}" if around else "")
    lines = ["" if stream is None else f"s{stream}", _cut(site.label, 30), _cut(place, _LINE_TEXT)]
    return lines + [f"{mode:2s} {_listed(names, _LINE_TEXT - 3)}" for mode, names in touched(site).items()]


def _listed(names: Sequence[str], room: int) -> str:
    """As many names as fit, and how many do not."""
    for count in range(len(names), 1, -1):
        more = f", +{len(names) - count}" if count < len(names) else ""
        text = ", ".join(names[:count]) + more
        if len(text) <= room:
            return text
    more = f", +{len(names) - 1}" if len(names) > 1 else ""
    return _cut(names[0], room - len(more)) + more


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def _size(lines: Sequence[str], stream: int | None) -> Point:
    bars = 1 if stream is None else stream // len(PALETTE) + 1
    badge, label, *small = lines
    width = max(len(label) * _LARGE + 10 + len(badge) * _SMALL, max(map(len, small)) * _SMALL)
    return (max(96.0, width + 9 + 6 * bars + 10), 22.0 + _LINE * len(small) + 5.0)


def _rows(function: Function) -> tuple[list[tuple[int, ...]], dict[int, str], dict[int, str]]:
    """Step 3: rows, the names of levels by row, and what is between two rows that a full barrier parts."""
    level_of = {site: number for number, row in enumerate(levels_of(function)) for site in row}
    rows: list[tuple[int, ...]] = []
    names: dict[int, str] = {}
    barriers: dict[int, str] = {}
    last = -1
    for phase in _phases(function):
        if rows:
            barriers[len(rows)] = _between(function, last, phase[0])
        last = phase[-1]
        by_level: dict[int, list[int]] = {}
        for site in phase:
            by_level.setdefault(level_of[site], []).append(site)
        for level, sites in sorted(by_level.items()):
            names[len(rows)] = f"level {level + 1}"
            rows += wrap(sites, _MOST_IN_ROW)
    return rows, names, barriers


def _between(function: Function, before: int, after: int) -> str:
    found = [site.label for site in function.dfg.region.sites[before + 1 : after] if is_barrier(site)]
    more = f" and {len(found) - 2} more" if len(found) > 2 else ""
    return "full barrier" + (f": {', '.join(found[:2])}{more}" if found else "")


def _phases(function: Function) -> Iterator[tuple[int, ...]]:
    """Movable sites that remain connected when full barriers are taken out, ordered by their first ones."""
    import networkx as nx

    region = function.dfg.region  # without the waits that are taken out
    inside = {site.number for site in region.sites if not is_barrier(site)}
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(sorted(inside))
    graph.add_edges_from((a, b) for a in inside for b in region.successors[a] if b in inside)
    phases = [sorted(n for n in part if n in function.dfg.graph) for part in nx.connected_components(graph)]
    yield from sorted(tuple(phase) for phase in phases if phase)


def _path(edge: Edge, layout: Layout, sizes: dict[int, Point], left: float, down: float) -> str:
    """The line of an edge as SVG path data, with vertical tangents at every box."""
    if edge.source == edge.target:
        (x, y), (width, height) = layout.corners[edge.source], sizes[edge.source]
        x, y = x + width + left, y + height / 2 + down
        return f"M{_round(x)} {_round(y - 10)}c20 -12 20 32 0 20"
    points = [(x + left, y + down) for x, y in layout.routes[edge.source, edge.target]]
    text = f"M{_round(points[0][0])} {_round(points[0][1])}"
    for number, ((x0, y0), (x1, y1)) in enumerate(pairwise(points)):
        if number % 2:
            text += f"L{_round(x1)} {_round(y1)}"
            continue
        a, b = ((y0 + y1) / 2,) * 2 if y0 != y1 else (y0 + 34, y1 + 34)
        text += f"C{_round(x0)} {_round(a)} {_round(x1)} {_round(b)} {_round(x1)} {_round(y1)}"
    return text

"""Timelines as a page draws them: lanes, bars in parts of the whole, ticks.

In: the timelines that share one scale. Out: plain data for a template; positions are percentages, so that a page zooms
by making the drawing wider. On a lane with very many bars those too narrow to be told apart are drawn as one, with
their number: a run of a hundred thousand operations is as quick to open as one of a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kesco.ir.timeline import Bar, Timeline

MOST_BARS = 2000
"""Of one lane; finer than that nobody can point at."""
TICKS = 8
_LANE = 30
_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"), (0.0, "ns"))


def views(
    timelines: Sequence[Timeline], colours: int, stream_of: Mapping[int, int] | None = None
) -> list[dict[str, Any]]:
    """What a template draws of timelines that share one scale.

    `colours` is how many the page tells apart, and `stream_of` whose colour an operation has on any lane. What only
    weighs operations is in parts of the first timeline, which is the serial one; a later one may be longer.
    """
    whole = max((one.end for one in timelines), default=0.0)
    serial = timelines[0].end if timelines else 0.0
    return [_view(one, whole, serial or whole, colours, stream_of or {}) for one in timelines]


def _view(
    timeline: Timeline, whole: float, serial: float, colours: int, stream_of: Mapping[int, int]
) -> dict[str, Any]:
    scale = 100 / whole if whole > 0 else 0.0
    lanes = []
    for lane in timeline.lanes:
        bars = [
            {
                "x": f"{bar.start * scale:.4f}",
                "width": f"{max((bar.end - bar.start) * scale, 0.02):.4f}",
                "label": bar.label,
                "site": bar.site,
                "kind": bar.kind,
                "critical": bar.critical,
                "colour": _colour(stream_of.get(bar.site, lane.stream), colours),
                "said": _said(bar, timeline.exact, whole if timeline.exact else serial),
            }
            for bar in (lane.bars if len(lane.bars) <= MOST_BARS else merged(lane.bars, whole / MOST_BARS))
        ]
        busy = sum(bar.end - bar.start for bar in lane.bars)
        lanes.append(
            {
                "name": lane.name,
                "colour": _colour(lane.stream, colours),
                "swatches": max(0, lane.stream) // colours + 1,
                "bars": bars,
                "busy": f"{100 * busy / timeline.end:.0f} %" if timeline.end else "",
            }
        )
    return {
        "name": timeline.name,
        "origin": timeline.origin,
        "exact": timeline.exact,
        "lanes": lanes,
        "height": _LANE * len(lanes),
        "lane": _LANE,
        "end": duration(timeline.end, whole) if timeline.exact else f"{100 * timeline.end / (serial or 1):.0f} %",
        "end_at": f"{timeline.end * scale:.4f}",
        "ticks": list(_ticks(whole, None if timeline.exact else serial)),
    }


def _colour(stream: int, colours: int) -> int | str:
    return "n" if stream < 0 else stream % colours


def _said(bar: Bar, exact: bool, whole: float) -> str:
    """A bar in words, line by line; `whole` is the time that its own are shown beside, or that it is a part of."""
    name = bar.label if bar.count == 1 else f"{bar.label} and {bar.count - 1} more"
    lines = [name]
    if exact:
        lines.append(f"{duration(bar.end - bar.start)}, from {duration(bar.start, whole)} on")
    elif whole:
        lines.append(f"weight {100 * (bar.end - bar.start) / whole:.1f} % of the serial function")
    if bar.critical:
        lines.append("on the critical path")
    return "\n".join(lines + ([bar.detail] if bar.detail else []))


def merged(bars: Sequence[Bar], least: float) -> Iterator[Bar]:
    """The bars, those that are narrower than `least` and closer than that to each other as one; in microseconds."""
    group: list[Bar] = []
    for bar in sorted(bars, key=lambda one: one.start):
        narrow = bar.end - bar.start < least
        if group and narrow and bar.start - group[-1].end < least and bar.end - group[0].start < 2 * least:
            group.append(bar)
            continue
        yield from _as_one(group)
        group = [bar]
        if not narrow:
            yield bar
            group = []
    yield from _as_one(group)


def _as_one(group: Sequence[Bar]) -> Iterator[Bar]:
    if len(group) == 1:
        yield group[0]
    elif group:
        first, critical = group[0], any(one.critical for one in group)
        count = sum(one.count for one in group)
        yield Bar(first.label, first.kind, first.start, group[-1].end, -1, critical, "", count)


def duration(microseconds: float, of: float | None = None) -> str:
    """A time for people, in the unit that fits it, or fits the time `of`: ``12.3 µs``."""
    least = abs(microseconds if of is None else of)
    size, unit = next((size, unit) for size, unit in _UNITS if least >= size)
    value = microseconds / size if size else microseconds * 1000
    digits = 0 if abs(value) >= 100 or value == 0 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f} {unit}"


def _ticks(whole: float, serial: float | None) -> Iterator[dict[str, str]]:
    """Marks at round times, about `TICKS` of them; or at round parts of the serial function, where its length says."""
    if whole <= 0:
        return
    unit = 1.0 if serial is None else serial / 100
    raw = whole / unit / TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    for number in range(int(whole / unit / step * 0.97) + 1):
        at = number * step
        text = duration(at, whole) if serial is None else f"{at:g} %"
        yield {"x": f"{100 * at * unit / whole:.4f}", "text": text}

"""One run of a function in the model, as a timeline: which operation ran when on which stream, and which chain decided.

In: a region, its `Prices`, and for several streams a schedule and a plan. Out: a `Timeline`. It is apart from the
forecast because that only asks when the last operation ends.

1. The forecast's steps are run, and begin and end of every launch and copy are kept. 2. An operation's *cause* is the
last to end of: the one before it on its stream, and those whose events its stream waits for; behind a barrier, of all
before it. 3. From the operation that ends last the causes lead back to the first: the critical chain. Where an
operation began later than its cause ended, the host was late, or the chain begins there.

On the default stream alone everything is critical, and nothing is marked. Host time is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kesco.ir.flow import Region, Role, Site, SiteKind, is_barrier
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import SyncPlan
from kesco.ir.timeline import Bar, Lane, Timeline
from kesco.model.forecast import Prices, is_known_legacy, preferred, steps_of, waits_of, walk
from kesco.model.gpu import spans

DEFAULT_LANE = "default stream"
_KINDS = {SiteKind.KERNEL: "kernel", SiteKind.COPY: "copy", SiteKind.MEMSET: "memset", SiteKind.PREFETCH: "copy"}


@dataclass(frozen=True, slots=True)
class _Ran:
    """A bar with its stream, and its place among those of one stretch between barriers."""

    bar: Bar
    stream: int
    stretch: int


def timeline(
    name: str, region: Region, prices: Prices, schedule: Schedule | None = None, plan: SyncPlan | None = None
) -> Timeline:
    """What the model makes of a function: with these streams and events, or without a schedule on one stream."""
    stream_of = schedule.as_dict() if schedule is not None else {}
    ranks = dict.fromkeys(preferred(schedule), 0) if schedule is not None else {}
    works, stretches = _works(region, prices)
    times = spans(prices.machine, steps_of(region, prices, schedule, plan), ranks)
    ran = [
        _Ran(_bar(site, start, end), stream_of.get(site.number, -1), stretch)
        for (site, stretch), (start, end) in zip(zip(works, stretches, strict=True), times, strict=True)
    ]
    critical = _critical(ran, waits_of(plan)) if plan is not None else set[int]()
    ran = [replace(one, bar=replace(one.bar, critical=number in critical)) for number, one in enumerate(ran)]
    lanes = []
    for stream in sorted({one.stream for one in ran}):
        bars = tuple(one.bar for one in ran if one.stream == stream)
        lanes.append(Lane(DEFAULT_LANE if stream < 0 else f"stream {stream}", bars, stream))
    return Timeline(name, tuple(lanes), max((one.bar.end for one in ran), default=0.0))


def _works(region: Region, prices: Prices) -> tuple[list[Site], list[int]]:
    """The sites of all launches and copies of the forecast, in its order, and the stretch that each is in."""
    works: list[Site] = []
    stretches: list[int] = []
    stretch = 0
    for number in walk(region, prices):
        site = region.sites[number]
        if is_barrier(site):
            stretch += 1
        if (site.role is Role.MOVABLE and not prices.at(site).absent) or is_known_legacy(site, prices):
            works.append(site)
            stretches.append(stretch)
            stretch += site.role is Role.LEGACY
    return works, stretches


def _bar(site: Site, start: float, end: float) -> Bar:
    return Bar(site.label, _KINDS.get(site.kind, "other"), start, end, site.number)


def _critical(ran: list[_Ran], waits: Mapping[int, list[int]]) -> set[int]:
    """Steps 2 and 3: the places in `ran` of the chain that ends last."""
    if not ran:
        return set()
    cause: list[int] = []
    last_of_stream: dict[int, int] = {}
    last_of_site: dict[int, int] = {}
    latest_before = latest = -1  # of all stretches before this one, and of all
    stretch = ran[0].stretch
    for number, one in enumerate(ran):
        if one.stretch != stretch:
            stretch, latest_before = one.stretch, latest
        before = [last_of_stream.get(one.stream, -1), latest_before]
        before += [last_of_site.get(source, -1) for source in waits.get(one.bar.site, ())]
        cause.append(max((n for n in before if n >= 0), key=lambda n: ran[n].bar.end, default=-1))
        last_of_stream[one.stream] = last_of_site[one.bar.site] = number
        if latest < 0 or one.bar.end >= ran[latest].bar.end:
            latest = number
    chain: set[int] = set()
    while latest >= 0:
        chain.add(latest)
        latest = cause[latest]
    return chain

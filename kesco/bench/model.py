"""Predict, without a GPU, how long one pass of a function takes in each variant.

In: what kesco made of a function, and its kernels' costs. Out: microseconds by variant. The kernels and memsets from
the first kernel to the last are taken in the order of the text, a loop that is not unrolled as often as `passes` says.

The hand-written stream version and all programs with copies are read from a dry run instead: `recorded`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kesco.bench.costs import MEMSET, Costs
from kesco.bench.measure import Row, Setting
from kesco.bench.results import Results, median
from kesco.bench.suite import STYLES, Workload
from kesco.ir.flow import Site, SiteKind
from kesco.model.forecast import issued, waits_of
from kesco.model.gpu import KernelCost, Kind, Step, graph_makespan, makespan
from kesco.options import Options
from kesco.pipeline import FunctionResult, compile_file

VARIANTS = ("serial", "sync", "kesco", "kesco-1", "async", "graph")
_TRIED = 2000.0  # microseconds: repeated work that takes less ends up on one stream where that is faster
INNER = {"hits": 4}
"""How often the loop of a workload runs in one pass (the default of its ``--inner``)."""


def predicted(workloads: Sequence[Workload], costs: Costs, sizes: Sequence[str], blocks: Sequence[int]) -> Results:
    """Results as if measured, one time each, for the settings whose kernels' costs are known; kernels only."""
    rows = []
    for workload in workloads:
        functions = compile_file(str(workload.folder / STYLES["device"].serial), Options()).functions
        main = next(one for one in functions if one.region.function == "main")
        for size in sizes:
            for block in blocks:
                setting = f"{workload.name}/{size}/{block}"
                if setting not in costs.settings:
                    continue
                times = predict(main, costs, setting, INNER.get(workload.name, 1))
                n = workload.sizes.get(size, 0)
                at = Setting(workload.name, "device", size, n, block, workload.grid, workload.tolerance)
                rows += [Row(at, variant, 0, (time / 1000,)) for variant, time in times.items()]
    return Results(tuple(rows), {"gpu": "a model of an NVIDIA H200"})


def errors(model: Results, measured: Results) -> list[tuple[Setting, str, float, float]]:
    """Setting, variant, the model's and the measured milliseconds, where both are there."""
    found = []
    for row in model.rows:
        other = measured.find(row.setting, row.variant)
        if other is not None:
            found.append((row.setting, row.variant, median(row), median(other)))
    return found


def predict(function: FunctionResult, costs: Costs, setting: str = "", passes: int = 1) -> dict[str, float]:
    """Microseconds of each variant; a function that kesco leaves alone takes as long as the serial one."""
    sites = work(function)
    cost_of = {site.number: _cost(site, costs, setting) for site in sites}
    serial = [Step(Kind.LAUNCH, 0, cost_of[site.number]) for _ in range(passes) for site in sites]
    sync = [step for launch in serial for step in (launch, Step(Kind.SYNCHRONIZE))]
    concurrent = list(_steps(function, sites, cost_of, passes)) if function.rewritten else serial
    one = [Step(Kind.LAUNCH, 0, step.cost) for step in concurrent if step.kind is Kind.LAUNCH]  # without events
    found = {
        name: makespan(costs.machine, steps)
        for name, steps in (("serial", serial), ("sync", sync), ("kesco", concurrent), ("kesco-1", one))
    }
    if (function.plan.stretches or function.plan.paces) and found["kesco"] < _TRIED:
        found["kesco"] = min(found["kesco"], found["kesco-1"])
    nodes = [cost_of[site.number] for _ in range(passes) for site in sites]
    return found | {"graph": graph_makespan(costs.machine, nodes, _edges(function, sites, passes))}


def work(function: FunctionResult) -> list[Site]:
    """The movable kernels and memsets from the first kernel to the last."""
    movable = [function.region.sites[n] for n in sorted(function.schedule.as_dict())]
    kernels = [site.number for site in movable if site.kind is SiteKind.KERNEL]
    if not kernels:
        return []
    return [
        site
        for site in movable
        if site.kind in (SiteKind.KERNEL, SiteKind.MEMSET) and kernels[0] <= site.number <= kernels[-1]
    ]


def _cost(site: Site, costs: Costs, setting: str) -> KernelCost:
    return MEMSET if site.kind is SiteKind.MEMSET else costs.of(setting, site.label)


def _steps(function: FunctionResult, sites: list[Site], cost_of: dict[int, KernelCost], passes: int) -> Iterator[Step]:
    """What the host does in kesco's program, events numbered by the sites they stand behind."""
    stream_of, waits = function.schedule.as_dict(), waits_of(function.plan)
    for _ in range(passes):
        for site in sites:
            work = Step(Kind.LAUNCH, stream_of[site.number], cost_of[site.number])
            yield from issued(site.number, work, waits, function.plan.events)


def _edges(function: FunctionResult, sites: list[Site], passes: int) -> Iterator[tuple[int, int]]:
    """Dependences between nodes; a carried one goes to the next pass."""
    place = {site.number: position for position, site in enumerate(sites)}
    for one in function.dfg.dependences:
        if one.source in place and one.target in place:
            for number in range(passes - one.carried):
                at = number * len(sites)
                yield at + place[one.source], at + one.carried * len(sites) + place[one.target]

"""The published mixes of tasks in the model of a GPU, with measured costs: the high task loses nothing, nobody starves.

It is a model: what a GPU does is measured elsewhere. But a strategy that starves a task here does so there.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from property.regions import program

from kesco.dataflow import build
from kesco.ir.dfg import Dfg
from kesco.ir.flow import Role
from kesco.ir.schedule import Schedule
from kesco.model.forecast import Price, Prices, task_times
from kesco.model.gpu import KernelCost
from kesco.scheduling.distributor import distribute
from kesco.scheduling.streams import default_streams
from kesco.scheduling.tasks import only, zone_streams, zones_of
from kesco.scheduling.zones import zones
from kesco.scheduling.zones_fair import zones_fair
from kesco.synchronize import synchronize

COSTS = tomllib.loads((Path(__file__).parent.parent.parent / "workloads/costs.toml").read_text())
KERNELS = {
    "ml": "rr1(r x; w z) nb1(r x; rw p) rr2(r z; rw q) nb2(r p; w m) nb3(r p,m; w l) rr3(rw q) nb4(rw p; r l) "
    "s1(rw p) s2(rw q) arg(r p,q; w c)",
    "dl": "c1(r x; w a) c2(r y; w b) p1(r a; w c) p2(r b; w d) c3(r c; w e) c4(r d; w f) cat(r e,f; w g) "
    "dot(r g; rw h)",
    "bs": " ".join(f"b{n}(r x{n}; w y{n})" for n in range(10)),
    "img": "b1(r i; w s) b2(r i; w l) b3(r i; w u) so1(r s; w ms) so2(r l; w ml) mx(r ml; rw x) mn(r ml; rw n) "
    "ext(rw ml; r n,x) un(r i,u; w iu) co1(r iu,l,ml; w i2) co2(r i2,s,ms; w i3)",
    "vec": "q1(r a; w b) q2(r c; w d) red(r b,d; rw e)",
    "hits": "sa(r h; w a) sb(r k; w b) su1(r a; rw an) su2(r b; rw hn) d1(r a,an; w k) d2(r b,hn; w h)",
}
MIXES = {"MP-1": (("img", 3), ("vec", 2), ("vec", 2), ("hits", 1)), "MP-2": (("ml", 3), ("dl", 2), ("bs", 1))}


@cache
def mixed(mix: str, block: int) -> tuple[Dfg, Prices]:
    """The tasks one after another, each with buffers of its own and the costs that its kernels were measured with."""
    text, costs, task_of = "", [], {}
    for number, (name, priority) in enumerate(MIXES[mix]):
        own = re.sub(r"(?<=[rw] )[^;)]*", lambda m, n=number: re.sub(r"\w+", rf"\g<0>_{n}", m[0]), KERNELS[name])
        labels = re.findall(r"(\w+)\(", own)
        text += re.sub(r"(\w+)\(", rf"\1-{number}(", own) + " "
        measured = [KernelCost(**one) for one in COSTS[f"{name}/1gb/{block}"].values()]
        costs += (measured * len(labels))[: len(labels)]
        task_of |= {f"{label}-{number}": (f"{number} {name}", priority) for label in labels}
    region = program(text)
    sites = (
        replace(s, task=task_of[s.label][0], priority=task_of[s.label][1]) if s.label in task_of else s
        for s in region.sites
    )
    prices = Prices(of={number: Price(cost, True, 1) for number, cost in enumerate(costs, 1)})
    return build(replace(region, sites=tuple(sites))), prices


def times(dfg: Dfg, prices: Prices, schedule: Schedule) -> dict[str, float]:
    return task_times(dfg.region, prices, schedule, synchronize(dfg, schedule))


def alone(dfg: Dfg, prices: Prices) -> dict[str, float]:
    """Each task by itself on the GPU, on as many streams as it can use."""
    found: dict[str, float] = {}
    for zone in zones_of(dfg):
        part = only(dfg, zone.sites)
        assert all(s.role is not Role.MOVABLE or s.number in zone.sites for s in part.region.sites)
        found |= times(part, prices, distribute(part, default_streams(part)))
    return found


@pytest.mark.parametrize("profile", [False, True])
@pytest.mark.parametrize("block", [32, 256])
@pytest.mark.parametrize("mix", MIXES)
def test_the_published_mixes(mix: str, block: int, profile: bool) -> None:
    dfg, prices = mixed(mix, block)
    streams = zone_streams(dfg, 6)
    costs = {n: prices.at(dfg.region.sites[n]).cost for n in dfg.graph.nodes} if profile else None
    fair = times(dfg, prices, zones_fair(dfg, streams, costs=costs))
    published, by_itself = times(dfg, prices, zones(dfg, streams)), alone(dfg, prices)
    high = min(fair)
    assert fair[high] <= 1.02 * by_itself[high]
    assert all(fair[task] <= 1.01 * published[task] for task in fair)
    assert all(fair[task] <= 3 * by_itself[task] for task in fair), "somebody starves"
    lowest = max(fair)
    assert published[lowest] > 3 * by_itself[lowest], "the published zones do starve the lowest task"

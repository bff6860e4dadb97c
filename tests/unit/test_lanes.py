"""Where transfers between host and device go: beside their users where that delays nothing, else on a lane."""

from __future__ import annotations

from dataclasses import replace

import pytest
from property.regions import program

from kesco.dataflow import build
from kesco.ir.flow import SiteKind
from kesco.scheduling.strategies import STRATEGIES, default_streams
from kesco.synchronize import synchronize


def placed(text: str, count: int = 0, added: bool = False) -> tuple[list[str], int]:
    """What stands on each stream, in the order of the text, and how many waits that needs.

    `added`: its prefetches were put in.
    """
    region = program(text)
    sites = tuple(replace(s, added=added and s.kind is SiteKind.PREFETCH) for s in region.sites)
    dfg = build(replace(region, sites=sites))
    schedule = STRATEGIES["kesco"](dfg, count or default_streams(dfg))
    found = [""] * schedule.streams
    for number, stream in schedule.stream_of:
        found[stream] += f" {dfg.region.sites[number].label}"
    return [one.strip() for one in found], len(synchronize(dfg, schedule).waits)


def test_a_copy_goes_where_its_first_user_begins() -> None:
    text = "inA(r hostA; w A) inB(r hostB; w B) K1(rw A) K2(rw B)"
    assert placed(text) == (["inA K1", "inB K2"], 0)


def test_what_is_needed_later_goes_on_a_lane_and_is_awaited_alone() -> None:
    text = "inA(r hostA; w A) inB(r hostB; w B) inC(r hostC; w C) K1(rw A) K2(r B; rw A) K3(r C; rw A)"
    assert placed(text) == (["inA K1 K2 K3", "inB inC"], 2)


def test_two_branches_share_one_lane() -> None:
    copies = "".join(f"in{name}(r host{name}; w {name}) " for name in "ABCD")
    text = copies + "K1(rw A) K2(rw B) L1(rw A; r C) L2(rw B; r D)"
    assert placed(text) == (["inA K1 L1", "inB K2 L2", "inC inD"], 2)


def test_a_result_goes_behind_the_operation_that_made_it_where_that_is_the_last() -> None:
    assert placed("K1(w A) K2(w B) outA(r A; w hostA) outB(r B; w hostB)") == (["K1 outA", "K2 outB"], 0)


def test_a_result_that_is_ready_earlier_does_not_hold_up_what_follows() -> None:
    text = "K1(w A) K2(r A; w B) outA(r A; w hostA) K3(rw B) outB(r B; w hostB)"
    assert placed(text) == (["K1 K2 K3 outB", "outA"], 1)


def test_each_direction_has_its_own_lane() -> None:
    text = "inA(r hostA; w A) inB(r hostB; w B) K1(rw A; w X) K2(r B; rw A) outX(r X; w hostX)"
    assert placed(text) == (["inA K1 K2", "inB", "outX"], 2)


@pytest.mark.parametrize(("count", "streams"), [(1, 1), (2, 2), (3, 3), (8, 3)])
def test_kernels_come_first_where_streams_are_few(count: int, streams: int) -> None:
    text = "inC(r hostC; w C) K1(rw A) K2(rw B) L1(rw A; r C) L2(rw B; r C)"
    found, _ = placed(text, count)
    assert len(found) == streams
    assert len({n for n, one in enumerate(found) for label in one.split() if label in ("K1", "K2")}) == min(count, 2)


PREFETCHES = "prefetchA(rw A) prefetchB(rw B) prefetchC(rw C) K1(r A,B; w X) K2(r C; w Y)"


@pytest.mark.parametrize("added", [False, True])
def test_prefetches_go_beside_their_users_or_on_a_lane(added: bool) -> None:
    assert placed(PREFETCHES, added=added) == (["prefetchA prefetchB K1", "prefetchC K2"], 0)
    text = "prefetchA(rw A) prefetchB(rw B) prefetchC(rw C) K1(rw A) K2(rw A; r B) K3(rw A; r C)"
    assert placed(text, added=added) == (["prefetchA K1 K2 K3", "prefetchB prefetchC"], 2)
    as_kernels, _ = placed(PREFETCHES.replace("prefetch", "kernel"))
    assert len(as_kernels) == 3


@pytest.mark.parametrize("added", [False, True])
def test_prefetches_that_nothing_follows_go_to_the_host(added: bool) -> None:
    assert placed("K1(w A) prefetchA(rw A) K2(w B) prefetchB(rw B)", added=added) == (
        ["K1 prefetchA", "K2 prefetchB"],
        0,
    )
    text = "K1(w A) K2(r A; w B) prefetchA(rw A) K3(rw B) prefetchC(rw C) K4(r B; rw C) prefetchC2(rw C)"
    assert placed(text, added=added) == (["K1 K2 K3 K4 prefetchC2", "prefetchA", "prefetchC"], 2)


def test_a_copy_that_overwrites_what_a_kernel_reads_goes_behind_it_where_nothing_else_has_to_wait() -> None:
    text = "inA(r hostA; w A) K1(r A; rw B) again(r hostA; w A) K2(r A; rw B)"
    assert placed(text) == (["inA K1 again K2"], 0)
    text = "inA(r hostA; w A) K1(r A; rw B) K2(rw B) again(r hostA; w A) K3(r A; rw B)"
    assert placed(text) == (["inA K1 K2 K3", "again"], 2)


def test_a_copy_to_the_host_goes_before_what_waits_for_it() -> None:
    text = "K1(w A) outA(r A; w hostA) K2(rw A)"
    assert placed(text) == (["K1 outA K2"], 0)
    text = "K1(w A; rw B) outA(r A; w hostA) K2(rw B) K3(rw A; rw B)"
    assert placed(text) == (["K1 K2 K3", "outA"], 2)


def test_copies_behind_a_barrier_and_before_one_have_their_users_on_this_side() -> None:
    found, waits = placed("inA(r hostA; w A) K1(rw A) device-sync inA2(r hostA; w A) device-sync K2(rw A) K3(rw B)")
    assert waits == 0
    assert found[0].startswith("inA K1")

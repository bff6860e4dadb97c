"""Profiles: distributions that merge exactly, and a file that is either right or refused."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesco.errors import UsageError
from kesco.ir import kprof
from kesco.ir.costs import Cost, Costs, Identity, Origin, Times, merged

NANOSECONDS = st.lists(st.integers(0, 10**12), min_size=1, max_size=30)
SQUARE = Identity("kernel", "_Z6squarePf", (64, 1, 1), (256, 1, 1), 0, "a.cu:12")
COPY = Identity("copy", "cudaMemcpy", at="a.cu:9")


def example() -> Costs:
    origin = Origin("H200", "13.0", "13.0", "events, queued", (("a.cu", "ab12"),), (("sms", 132),))
    gap = Times.of([500])
    square = Cost(SQUARE, "square", Times.of([1000, 1100, 9000]), gap, 26, 1024, 0.25, 0.5)
    return Costs.of(origin, [square, Cost(COPY, "cudaMemcpy", Times.of([70_000]), bytes=4096)])


@given(NANOSECONDS, NANOSECONDS)
def test_two_runs_merge_as_if_they_were_one(one: list[int], other: list[int]) -> None:
    assert Times.of(one) + Times.of(other) == Times.of(one + other) == Times.of(other) + Times.of(one)


@given(NANOSECONDS)
def test_quantiles_are_within_a_hundredth(times: list[int]) -> None:
    found = Times.of(times)
    assert found.median == pytest.approx(statistics.median_low(times), rel=0.0101, abs=1)
    assert found.quantile(0) == pytest.approx(min(times), rel=0.0101, abs=1)
    assert found.quantile(1) == pytest.approx(max(times), rel=0.0101, abs=1)


def test_one_time_is_exact() -> None:
    assert Times.of([12_345]).median == 12_345
    assert Times.of([12_345] * 100).quantile(0.9) == 12_345


def test_the_size_does_not_grow_with_the_run() -> None:
    chance = random.Random(1)
    assert len(Times.of([int(chance.gauss(1e6, 1e5)) for _ in range(20_000)]).bins) < 100


@pytest.mark.parametrize("times", [[], [-1]])
def test_no_times_and_negative_ones_are_refused(times: list[int]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        Times.of(times)


def test_costs_of_one_identity_are_merged_and_in_order() -> None:
    once = example()
    both = merged([once, once])
    assert [one.identity for one in both.costs] == [COPY, SQUARE]
    square = both.costs[1]
    assert square.time is not None
    assert square.gap is not None
    assert (square.time.count, square.gap.count, square.registers) == (6, 2, 26)


def test_either_time_may_be_unknown() -> None:
    gap = Cost(SQUARE, gap=Times.of([5]))
    both = gap + Cost(SQUARE, "square", time=Times.of([7]))
    assert (both.time, both.gap, both.display) == (Times.of([7]), Times.of([5]), "square")


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (Origin("A100", method="m", sources=(("a.cu", "1"),)), "one is of 'H200', the other of 'A100'"),
        (Origin("H200", method="n", sources=(("a.cu", "1"),)), "one was measured by m, the other by n"),
        (Origin("H200", method="m", sources=(("a.cu", "2"),)), "'a.cu' changed between them"),
        (Origin("H200", "14.0", method="m", sources=(("a.cu", "1"), ("b.cu", "2"))), ""),
    ],
)
def test_what_must_not_be_merged(other: Origin, why: str) -> None:
    mine = Costs(Origin("H200", "13.0", method="m", sources=(("a.cu", "1"),)))
    assert mine.why_not_with(Costs(other)) == why


def test_the_file_has_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "run.kprof"
    file.write_text(kprof.to_json(example()))
    assert kprof.read(file) == example()
    assert kprof.to_json(kprof.read(file)) == file.read_text()


def test_members_that_are_not_known_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "run.kprof"
    found = json.loads(kprof.to_json(example()))
    found["costs"][0]["colour"] = "blue"
    found["more"] = {}
    file.write_text(json.dumps(found))
    assert kprof.read(file) == example()


def change(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def apply(found: Any) -> None:
        for name in path[:-1]:
            found = found[name]
        if to is None:
            del found[path[-1]]
        else:
            found[path[-1]] = to

    return apply


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (change("format", to="prof"), "its 'format' is not 'kprof'"),
        (change("version", to=2), "has version 2 of the form; this kesco reads version 1"),
        (change("version", to=0), "has version 0"),
        (change("costs", to=None), "it lacks 'costs'"),
        (change("origin", to=None), "it lacks 'origin'"),
        (change("origin", to=[]), "is damaged"),
        (change("origin", "limits", to={"sms": -1}), "'sms' is not a whole number"),
        (change("costs", 0, "kind", to="dream"), "kind 'dream'"),
        (change("costs", 1, "grid", to=[1, 2]), "is damaged"),
        (change("costs", 1, "shared", to="8"), "'shared' is not a whole number"),
        (change("costs", 1, "sm", to=1.5), "'sm' is not a share"),
        (change("costs", 1, "sm", to=float("nan")), "'sm' is not a share"),
        (change("costs", 1, "time_ns", "count", to=4), "do not hold as many"),
        (change("costs", 1, "time_ns", "bins", to=[]), "do not hold as many"),
        (change("costs", 1, "time_ns", "bins", to=[[9000, 3]]), "no time falls into"),
        (change("costs", 1, "time_ns", "total", to=1), "its total is not between"),
        (change("costs", 1, "time_ns", "longest", to=1 << 70), "'longest' is not a whole number"),
    ],
)
def test_a_file_that_is_damaged_is_refused(tmp_path: Path, spoil: Callable[[dict[str, Any]], None], says: str) -> None:
    file = tmp_path / "run.kprof"
    found = json.loads(kprof.to_json(example()))
    spoil(found)
    file.write_text(json.dumps(found))
    with pytest.raises(UsageError) as raised:
        kprof.read(file)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "K530"
    assert says in diagnostic.message
    assert diagnostic.help


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[]", b"3", b'{"format": "kprof"', b"[" * 100_000])
def test_what_is_no_profile_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "run.kprof"
    file.write_bytes(data)
    with pytest.raises(UsageError, match="is no profile"):
        kprof.read(file)


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(UsageError, match="cannot read"):
            kprof.read(path)

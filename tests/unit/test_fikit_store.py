"""Profiles of tasks and traces: files that are either right or refused, and merge exactly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from kesco.cli import main
from kesco.errors import UsageError
from kesco.fikit import synthetic, trace
from kesco.ir import kfikit
from kesco.ir.costs import Identity, Times
from kesco.ir.kfikit import Kernel, Store, TaskProfile

TIMES = st.lists(st.integers(0, 10**12), min_size=1, max_size=20).map(Times.of)
KERNELS = st.builds(Kernel, st.sampled_from(["a", "b<int>"]), time=st.none() | TIMES, gap=st.none() | TIMES)
TASKS = st.dictionaries(st.integers(0, 2**64 - 1), KERNELS, max_size=4).map(lambda d: tuple(sorted(d.items())))
STORES = st.dictionaries(st.sampled_from(["one:1", "two:2"]), TASKS).map(
    lambda d: Store("H200", "580", tuple(TaskProfile(key, kernels) for key, kernels in sorted(d.items())))
)
SQUARE = Kernel("_Z6squarePf", (64, 1, 1), (256, 1, 1), 0, "a.cu:12", Times.of([1000, 1100, 9000]), Times.of([500]))


def example() -> Store:
    kernels = ((0, Kernel(gap=Times.of([70]))), (0xAB, SQUARE))
    return Store("H200", "580.1", (TaskProfile("0123456789abcdef", kernels, "a.out"),))


def written(folder: Path, store: Store, name: str = "a.kfikit") -> Path:
    (folder / name).write_text(kfikit.to_json(store))
    return folder / name


@settings(max_examples=40, deadline=None)
@given(STORES)
def test_a_store_comes_back_as_it_was(store: Store) -> None:
    assert kfikit.from_json(json.loads(kfikit.to_json(store))) == store


@settings(max_examples=40, deadline=None)
@given(STORES, STORES, STORES)
def test_merging_does_not_depend_on_the_order(one: Store, two: Store, three: Store) -> None:
    assert (one + two) + three == one + (two + three)
    for key in ("one:1", "two:2"):
        found = [{i: (k.time, k.gap) for i, k in task.kernels} for s in (one + two, two + one) if (task := s.task(key))]
        assert found[:1] == found[1:]


def test_runs_of_a_task_add_up() -> None:
    both = example() + example()
    task = both.task("0123456789abcdef")
    assert task is not None
    found = dict(task.kernels)[0xAB]
    assert found.time == Times.of([1000, 1100, 9000] * 2)
    assert both.task("another") is None


def test_the_text_of_the_daemon_has_all_that_is_known() -> None:
    lines = kfikit.to_text(example()).splitlines()
    assert lines[:2] == ["kesco-fikit-costs 2", "task 0123456789abcdef"]
    assert lines[-1] == "end"
    words = lines[3].split()
    assert words[:4] == ["kernel", "00000000000000ab", "3", "3700"]
    assert (*words[4:6], *words[66:69], words[-1]) == ("0", "1000", "1000000", "9000", "1", "500")
    assert lines[2].split()[2:68] == ["0"] * 66  # nothing is known of the time of no kernel


def test_a_store_is_a_profile_for_the_compiler() -> None:
    (cost,) = example().costs.costs
    assert cost.identity == Identity("kernel", "_Z6squarePf", (64, 1, 1), (256, 1, 1), 0, "a.cu:12")
    assert (cost.time, cost.gap) == (SQUARE.time, SQUARE.gap)


def broken_store(change: Callable[[Any], object]) -> str:
    found = json.loads(kfikit.to_json(example()))
    change(found)
    return json.dumps(found)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda f: f.update(format="kprof"), "its 'format' is not 'kfikit'"),
        (lambda f: f.update(version=2), "has version 2"),
        (lambda f: f.pop("tasks"), "lacks 'tasks'"),
        (lambda f: f["tasks"].update({"a b": {}}), "cannot be a task's key"),
        (lambda f: f["tasks"]["0123456789abcdef"]["kernels"].update(xyz={}), "cannot be a kernel's identity"),
        (lambda f: f["tasks"]["0123456789abcdef"]["kernels"]["00000000000000ab"].pop("grid"), "lacks 'grid'"),
        (
            lambda f: f["tasks"]["0123456789abcdef"]["kernels"]["00000000000000ab"]["time_ns"].update(count=4),
            "do not hold as many times",
        ),
    ],
)
def test_a_damaged_store_is_refused(tmp_path: Path, change: Callable[[Any], object], why: str) -> None:
    (tmp_path / "a.kfikit").write_text(broken_store(change))
    with pytest.raises(UsageError, match=why) as found:
        kfikit.read(tmp_path / "a.kfikit")
    assert found.value.diagnostics[0].code == "K540"


def test_what_is_no_json_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.kfikit").write_bytes(b"\xff")
    for name in ("a.kfikit", "b.kfikit"):
        with pytest.raises(UsageError):
            kfikit.read(tmp_path / name)
        with pytest.raises(UsageError):
            trace.read(tmp_path / name)


def test_a_trace_comes_back_as_it_was(tmp_path: Path) -> None:
    found = synthetic.trace(5)
    (tmp_path / "a.kftrace").write_text(trace.to_json(found))
    assert trace.read(tmp_path / "a.kftrace") == found
    assert synthetic.trace(5) == found != synthetic.trace(6)


def test_a_trace_of_a_newer_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"format": "kftrace", "version": 2}')
    with pytest.raises(UsageError, match="version 2"):
        trace.read(tmp_path / "a")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda f: f.update(tasks=[]), "no tasks"),
        (lambda f: f["tasks"][0].update(priority=10), "at most 9"),
        (lambda f: f["tasks"][0].update(name=f["tasks"][1]["name"]), "the same name"),
        (lambda f: f["tasks"][0]["steps"].append([1, 999, 1, 0]), "kernel 999"),
        (lambda f: f["tasks"][0]["steps"].append([1, 0, 1, 2]), "0 or 1"),
        (lambda f: f["tasks"][0]["steps"].append([1 << 51, 0, 1, 1]), "ten days"),
        (lambda f: f["tasks"][0].update(steps=[]), "launches nothing"),
        (lambda f: f["kernels"][0].update(share=0), "above 0"),
    ],
)
def test_a_damaged_trace_is_refused(tmp_path: Path, change: Callable[[Any], object], why: str) -> None:
    found = json.loads(trace.to_json(synthetic.trace(5)))
    change(found)
    (tmp_path / "a").write_text(json.dumps(found))
    with pytest.raises(UsageError, match=why) as refused:
        trace.read(tmp_path / "a")
    assert refused.value.diagnostics[0].code == "K548"


def test_show_and_merge(tmp_path: Path) -> None:
    one = written(tmp_path, example())
    other = written(tmp_path, Store("H100", "580", ()), "b.kfikit")
    shown = CliRunner().invoke(main, ["fikit", "show", str(one)])
    assert shown.exit_code == 0
    assert "_Z6squarePf" in shown.output and "before the first" in shown.output
    as_data = CliRunner().invoke(main, ["fikit", "show", "--json", str(one)])
    assert as_data.output == kfikit.to_json(example())
    target = str(tmp_path / "c.kfikit")
    words = ["fikit", "merge", str(one), str(one), "-o", target]
    merged = CliRunner().invoke(main, words)
    assert merged.exit_code == 0 and merged.stderr == f"{target}: {len(example().tasks)} tasks\n"
    assert kfikit.read(Path(target)) == example() + example()
    told = json.loads(CliRunner().invoke(main, [*words, "--json"]).output)
    assert told == {"output": target, "tasks": [task.key for task in example().tasks]}
    assert CliRunner().invoke(main, [*words, "--quiet"]).output == ""
    refused = CliRunner().invoke(main, ["fikit", "merge", str(one), str(other), "-o", target])
    assert refused.exit_code == 2
    assert "K549" in refused.output and "H100" in refused.output

"""Ratios of slices that lie side by side: what a round says, what of it is missing, and a round without a GPU."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def summary(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS / "fikit"))
    return importlib.import_module("summary")


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS / "fikit"))
    return importlib.import_module("slices")


def rounds_of(count: int, factors: dict[str, float]) -> list[dict[str, Any]]:
    """Rounds on a machine that becomes a tenth slower in the middle of each block."""
    speed, found = 1.0, []
    for number in range(count):
        taken: list[list[Any]] = []

        def take(way: str, speed: float, taken: list[list[Any]] = taken) -> None:
            taken.append([way, 0.2 * len(taken), 100.0 * speed * factors.get(way, 1), 1.0, 2.0, 20])

        blocks = []
        take("alone", speed)
        for way in factors:
            take(way, speed)
            speed *= 1.1  # so each of the two is right only beside its own slice alone
            take(way, speed)
            take("alone", speed)
            block: dict[str, Any] = {"way": way, "process": 7 + number % 2, "seconds": 2.0, "low_seconds": 1.6,
                                     "low_per_s": 4.0}  # fmt: skip
            if way == "fikit":
                block |= {"done": 8, "fills": 4, "late": 1, "overruns": 1, "fillable_ns": 10**9, "busy_ns": 5 * 10**8,
                          "wide_ns": 15 * 10**8}  # fmt: skip
            blocks.append(block)
        found.append({"slices": taken, "blocks": blocks, "low_alone_per_s": 8.0,
                      "results": {"high": ["a"], "low": ["b"]}})  # fmt: skip
    return found


def said_of(summary: ModuleType, rounds: list[dict[str, Any]]) -> Any:
    pairs = importlib.import_module("pairs")
    return summary.summary(pairs.Pair("a/b", ("a", 0.0), ("b", 0.0)), rounds, {"b+0": {"kernels_per_request": 2.5}})


def test_each_slice_is_over_the_one_alone_beside_it(summary: ModuleType) -> None:
    row = [["alone", 0, 10.0], ["mps", 0, 12.0], ["mps", 0, 26.0], ["alone", 0, 20.0], ["alone", 0, 40.0],
           ["fikit", 0, 40.0], ["fikit", 0, 30.0], ["alone", 0, 15.0]]  # fmt: skip
    assert summary.ratios(row, "mps") == pytest.approx([1.2, 1.3])
    assert summary.ratios(row, "fikit") == pytest.approx([1.0, 2.0]), "not the one that is two before"
    assert summary.ratios(row, "strict") == []


def test_a_machine_that_becomes_slower_changes_no_ratio(summary: ModuleType) -> None:
    factors = {"sharing": 2.0, "fikit": 1.25, "self": 1.0, "again": 1.0}
    found = said_of(summary, rounds_of(6, factors))
    for way, factor in factors.items():
        assert found[way]["ratio"] == pytest.approx(factor) and found[way]["of"] == 12, way
        assert found[way]["lies"] == pytest.approx([factor, factor]), way
    assert found["alone_us_to"] / found["alone_us_from"] > 2, "which medians of what is seconds apart would be off by"
    assert len(found["self"]["processes"]) == 2, "each process by itself"


def test_rates_and_gaps_are_sums_of_rounds(summary: ModuleType) -> None:
    rounds = rounds_of(3, {"sharing": 2.0, "fikit": 1.25})
    found = said_of(summary, rounds)
    assert found["sharing"]["low"] == 0.5
    assert found["fikit"]["low"] == pytest.approx(8 / 1.6 / 2.5 / 8)
    assert [found["fikit"][name] for name in ("fill", "bound", "idle", "overran", "late")] == [0.5, 0.5, 0.75, 0.25, 3]
    assert found["same"] and "RESULTS" not in summary.table({"a/b": found})
    rounds[0]["results"]["low"] = ["c"]
    assert "RESULTS DIFFER" in summary.table({"a/b": said_of(summary, rounds)})


def test_of_few_slices_it_is_not_known_where_the_median_lies(summary: ModuleType) -> None:
    found = said_of(summary, rounds_of(1, {"fikit": 1.25}))
    assert found["fikit"]["lies"] == [None, None]
    text = summary.table({"a/b": found})
    assert "anywhere" in text and "1.25" in text and said_of(summary, [{}]) == {}
    json.dumps(found, allow_nan=False)


def test_what_is_missing_of_a_round(slices: ModuleType) -> None:
    def kept(*ways: str) -> dict[str, Any]:
        return {"blocks": [{"way": one} for one in ways]}

    ways, extra = ["sharing", "fikit"], ["self"]
    every = ["sharing", "fikit", "self", "sharing", "fikit"]
    assert slices.missing({}, ways, extra) == every
    assert slices.missing(kept("sharing", "fikit"), ways, extra) == ["self", "sharing", "fikit"]
    assert slices.missing(kept("fikit", "fikit", "self"), ways, extra) == ["sharing", "sharing"]
    assert slices.missing(kept(*every), ways, extra) == []


def run(folder: Path, *words: str) -> str:
    command = (sys.executable, str(SCRIPTS / "fikit_gpu.py"), "--fake", "--parts", "pairs", "--pairs", "11", "--modes",
               "sharing,fikit", "--seconds", "0.05", "--out", str(folder / "out"))  # fmt: skip
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))  # where the daemon may be compiled already
    env = os.environ | {"TMPDIR": str(folder), "XDG_CACHE_HOME": cache}
    done = subprocess.run((*command, *words), env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0 and "FAILED" not in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_a_round_without_a_gpu(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text(json.dumps({"pairs": {"bert/small": [{"sharing": {}}] * 9}, "cpus": {"own": {}}}))
    words = ("--resume", str(old))
    said = run(tmp_path, "--rounds", "1", *words)
    assert "begun anew" in said
    found = json.loads((tmp_path / "out/fikit_gpu.json").read_text())
    (first,) = found["pairs"]["bert/small"]
    names = [one[0] for one in first["slices"]]
    for way in ("sharing", "fikit"):
        assert names.count(way) == 4 and [one["way"] for one in first["blocks"]].count(way) == 2
    assert names.count("self") == names.count("again") == 2
    starts = [one[1] for one in first["slices"]]
    assert starts == sorted(starts)
    for at, name in enumerate(names):
        assert name == "alone" or [names[at - 1], names[at + 1]].count("alone") == 1
    assert all(one[5] > 0 and one[2] > 1000 for one in first["slices"]), "60 kernels of 20 us"
    counted = [one for one in first["blocks"] if one["way"] == "fikit"]
    assert all(one["seconds"] > 0.1 and one["wide_ns"] > 0 and one["lost_records"] == 0 for one in counted)
    assert found["summary"]["bert/small"]["fikit"]["of"] == 4 and found["summary"]["bert/small"]["same"]
    run(tmp_path, "--rounds", "2", *words)
    both = json.loads((tmp_path / "out/fikit_gpu.json").read_text())["pairs"]["bert/small"]
    assert both[0] == first and len(both) == 2

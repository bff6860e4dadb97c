"""How it is measured what FIKIT costs: CPUs for each role, turns and ratios of `scripts/fikit`, without a GPU."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts/fikit"
THREADED = "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); print('on', flush=True)"


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("places")


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("turns")


def test_lists_of_cpus_are_read(places: ModuleType) -> None:
    assert places.listed("0-2,8\n") == {0, 1, 2, 8}
    assert places.listed("\n") == frozenset()
    assert 0 in places.siblings(0)
    assert places.siblings(99999) == {99999}


def test_each_role_has_whole_cores_of_its_own(places: ModuleType) -> None:
    found = places.places(range(16), lambda cpu: frozenset((cpu % 8, cpu % 8 + 8)))
    assert found.cores == 8 and found.roles.keys() == places.ROLES.keys()
    assert found.roles["high"] == {1, 9, 2, 10} and found.roles["mps"] == {6, 14}
    every = [cpu for cpus in found.roles.values() for cpu in cpus]
    assert len(every) == len(set(every)) == 12 and not {0, 8} & set(every)


def test_with_too_few_cores_nobody_has_any(places: ModuleType) -> None:
    assert places.places(range(6), lambda cpu: frozenset((cpu,))).roles == {}
    assert places.places(range(12), lambda cpu: frozenset((cpu % 6, cpu % 6 + 6))).roles == {}
    assert places.places(range(7), lambda cpu: frozenset((cpu,))).roles != {}
    assert places.places((3, 5), places.siblings).to_json() == {"cores": 2, "own": {}}


def test_processes_are_where_their_role_is(places: ModuleType) -> None:
    before = os.sched_getaffinity(0)
    one = max(before)
    own = places.Places({"high": frozenset((one,))}, 1)
    with own.begun_in("low"):
        assert os.sched_getaffinity(0) == before
    with own.begun_in("high"):
        said = subprocess.run(
            (sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"), capture_output=True, text=True
        )
    assert said.stdout == f"[{one}]\n" and os.sched_getaffinity(0) == before
    with subprocess.Popen((sys.executable, "-c", THREADED), stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline() == b"on\n"
        own.put(child.pid, "high")
        threads = os.listdir(f"/proc/{child.pid}/task")
        assert len(threads) == 2
        assert all(os.sched_getaffinity(int(thread)) == {one} for thread in threads)
        child.kill()
    own.put(child.pid, "high")  # which is not there any more


def test_ways_of_one_process_are_judged_within_it(turns: ModuleType) -> None:
    ways = turns.attached("asked")
    slow, fast = [17.0, 17.0, 19.0, 17.0, 17.0], [10.0, 10.0, 10.0, 30.0, 10.0]
    times = {way.name: [slow, fast] for way in ways} | {"plain": [[12.0] * 5, [8.0] * 5]}
    times["attached, alone"] = [[1.02 * one for one in slow], [1.02 * one for one in fast]]
    every = (turns.Way("plain", "plain"), *ways)
    row = turns._row(ways[2], every, times)
    assert row["over"] == "no daemon, again" and row["same process"]
    assert [row[name] for name in ("percent", "low", "high")] + row["processes"] == pytest.approx([2, 2, 2, 2, 2])
    assert turns._row(ways[1], every, times)["percent"] == 0
    across = turns._row(ways[0], every, times)
    assert across["over"] == "plain" and not across["same process"]
    assert [across[name] for name in ("percent", "low", "high")] == pytest.approx([35, 0, 70])
    few = turns._row(ways[2], every, {name: [one[:1] for one in each] for name, each in times.items()})
    assert few["low"] is None and "anywhere" in turns.told({"few": few}, "us")


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_what_a_launch_costs_is_measured_without_a_gpu(tmp_path: Path) -> None:
    target = tmp_path / "found.json"
    words = ("--processes", "2", "--rounds", "3", "--seconds", "0.02", "--json", str(target))
    begin = time.monotonic()
    done = subprocess.run(
        (sys.executable, str(SCRIPTS / "launch_cost.py"), *words), capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(target.read_text(), parse_constant=pytest.fail)["launches"]
    assert len(found) == 11 and all([len(each) for each in row["times"]] == [3, 3] for row in found.values())
    assert found["library, no daemon"]["percent"] > 20 > found["library, not asked"]["percent"]
    assert found["library, attached, alone"]["low"] > 5, f"after {time.monotonic() - begin:.0f} s: {done.stdout}"

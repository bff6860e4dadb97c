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

from kesco.fikit import serving
from tests.fikit.yard import Yard

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


def test_what_stands_side_by_side_is_compared(turns: ModuleType) -> None:
    """Processes differ, and so do times of one; what is between two that stand side by side is 2 %."""
    aside = [17.0, 17.0, 19.0, 19.0, 34.0, 34.0, 17.0, 17.0]
    slow = {"with": [1.02 * one for one in aside], "aside": aside}
    fast = {"with": [0.51 * one for one in aside], "aside": [0.5 * one for one in aside]}
    row = turns.row([[slow, slow], [fast, fast]])
    assert [row[name] for name in ("percent", "low", "high")] + row["processes"] == pytest.approx([2, 2, 2, 2, 2])
    assert row["same"] == {"percent": 0, "low": 0, "high": 0} and row["pairs"] == 32
    assert row["aside"] == 17


def test_what_gets_slower_in_time_is_not_taken_for_a_difference(turns: ModuleType) -> None:
    times = [1.01**n for n in range(40)]  # with, aside, aside, with
    places = {"with": (0, 3), "aside": (1, 2)}
    taken = {way: [times[4 * n + at] for n in range(10) for at in both] for way, both in places.items()}
    row = turns.row([[taken]])
    assert abs(row["percent"]) < 0.01 and abs(row["same"]["percent"]) < 0.01
    few = turns.row([[{way: each[:2] for way, each in taken.items()}]])
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
    assert len(found) == 9 and all(len(row["processes"]) == 2 and row["pairs"] > 20 for row in found.values())
    assert found["library, no daemon"]["percent"] > 10 > found["the same twice"]["percent"]
    more = found["library, attached, alone"]["low"], found["library, no daemon"]["high"]
    assert more[0] > more[1], f"after {time.monotonic() - begin:.0f} s: {done.stdout}"


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_the_daemon_hears_of_no_launch_that_passes_by(yard: Yard) -> None:
    """A program with the library launches 5 kernels under it, 7 past it, and 3 under it."""
    yard.daemon("--policy", "5")
    code = (
        "import ctypes, sys, time; driver, own = ctypes.CDLL('libcuda.so.1'), ctypes.CDLL(None)\n"
        "for past, count in ((0, 5), (1, 7), (1, 0), (0, 3)):\n"
        "    own.kesco_fikit_pass_by(past)\n"
        "    for _ in range(count): driver.cuLaunchKernel(b'k', 1, 1, 1, 32, 1, 1, 0, None, None, None)\n"
        "print('done', flush=True); sys.stdin.readline()\n"
    )
    settings = {"SOCKET": str(yard.socket), "PRIORITY": "9"}
    own = dict(os.environ) | {"LD_LIBRARY_PATH": str(yard.parts), "FAKE_GPU": str(yard.folder / "gpu")}
    env = serving.environment(yard.client, settings, own)
    with subprocess.Popen((sys.executable, "-c", code), env=env, stdin=-1, stdout=-1, text=True) as child:
        assert child.stdout and child.stdin and child.stdout.readline() == "done\n"
        yard.until(lambda tasks: 9 in tasks and tasks[9]["launched"] == 8, "eight launches are known")
        child.stdin.close()

"""The FIKIT runtime under load, under kills and under sanitizers: with KESCO_THOROUGH=1."""

# ruff: noqa: T201 - the numbers are the result
from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from kesco.fikit import programs, serving
from tests.fikit.yard import HERE, LIMIT, Yard

KILLS = int(os.environ.get("KESCO_KILLS", "1000"))

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")]


def test_a_thousand_random_kills(yard: Yard) -> None:
    """Daemon and clients are killed, stopped and started anew at random; who is left ends, nothing leaks."""
    random.seed(int(os.environ.get("KESCO_SEED", "7")))
    daemon = yard.daemon("--policy", "5", "--deadline-ns", "20000000")
    before = len(os.listdir(f"/proc/{daemon.pid}/fd"))
    hows = ("plain", "threads", "fork", "exec", "capture", "nccl")
    words = ("200", "4", "50", "200")
    tasks = [yard.task(n, *words, random.choice(hows), deadline=500) for n in range(6)]
    kills = {"daemon": 0, "task": 0}
    while sum(kills.values()) < KILLS:
        time.sleep(random.expovariate(1 / 0.02))
        if random.random() < 0.2:
            if random.random() < 0.2:  # it hangs for a while before it is killed
                daemon.send_signal(signal.SIGSTOP)
                time.sleep(0.05)
            daemon.kill()
            daemon.communicate()
            kills["daemon"] += 1
            daemon = yard.daemon("--policy", random.choice("02345"), "--deadline-ns", "20000000")
            continue
        place = random.randrange(len(tasks))
        kills["task"] += tasks[place].poll() is None
        tasks[place].kill()
        tasks[place].communicate()
        yard.children.remove(tasks[place])
        tasks[place] = yard.task(random.randrange(10), *words, random.choice(hows), deadline=500)
    for one in tasks:
        assert yard.ends(one, 120) >= 0
    print(kills)
    yard.until(lambda t: not t, "all have left")
    time.sleep(0.2)
    assert daemon.poll() is None and len(os.listdir(f"/proc/{daemon.pid}/fd")) == before


def test_64_clients_and_a_million_launches(yard: Yard) -> None:
    """Each launch is made once, whoever waits for whom: the device counts them.

    Without the rests of the host each task is done before most others have come, and hardly anybody is held.
    """
    daemon = yard.daemon("--policy", "5", "--deadline-ns", "5000000")
    begin = time.monotonic()
    tasks = [yard.task(n % 10, "245", "64", "0", "200") for n in range(64)]
    at_once = held = 0
    while any(one.poll() is None for one in tasks):
        there = serving.status(yard.socket)["tasks"]
        at_once, held = max(at_once, len(there)), max(held, sum(one["holds"] for one in there))
        assert time.monotonic() - begin < 900
    for one in tasks:
        one.communicate(timeout=LIMIT)
        assert one.returncode == 0
    launches = int.from_bytes((yard.folder / "gpu").read_bytes()[8:16], "little")
    print(f"{launches} launches in {time.monotonic() - begin:.0f} s, {at_once} clients at once, {held} holds and more")
    assert launches == 64 * 245 * 64 > 1_000_000
    assert at_once > 32 and held > 5000
    yard.until(lambda t: not t, "all have left")
    assert daemon.poll() is None


def test_many_clients_that_come_and_are_killed(yard: Yard) -> None:
    daemon = yard.daemon("--policy", "5", "--deadline-ns", "20000000")
    before = len(os.listdir(f"/proc/{daemon.pid}/fd"))
    for turn in range(4):
        tasks = [yard.task(n % 10, "5", "20", "20", "100", ("plain", "threads", "fork")[n % 3]) for n in range(64)]
        time.sleep(0.3)
        for one in tasks[turn::4]:
            one.kill()
        for n, one in enumerate(tasks):
            one.communicate(timeout=120)
            assert one.returncode in (0, -signal.SIGKILL), n
    yard.until(lambda t: not t, "all have left")
    time.sleep(0.2)
    assert daemon.poll() is None and len(os.listdir(f"/proc/{daemon.pid}/fd")) == before


@pytest.mark.parametrize("sanitizer", ["thread", "address"])
def test_with_sanitizers(sanitizer: str, tmp_path: Path, parts: Path) -> None:
    """The daemon and, linked into a program instead of preloaded, the client; both end with a report's exit code."""
    flags = (f"-fsanitize={sanitizer}", "-g", "-O1", "-std=c++17", "-Wno-tsan", "-ldl", "-lpthread")
    source = Path(programs.__file__).parent.parent / "runtime" / "fikit"
    daemon, client = tmp_path / "daemon", tmp_path / "task"
    policy = sorted(source.glob("policy*.cpp"))
    mine = [source / f"{name}.cpp" for name in programs._DAEMON]
    subprocess.run(["g++", *map(str, [*mine, *policy]), "-o", str(daemon), *flags], check=True)
    theirs = [source / f"{name}.cpp" for name in programs._CLIENT if not name.startswith("intercept")]
    subprocess.run(["g++", *map(str, [*theirs, HERE / "hooked_task.cpp"]), "-o", str(client), *flags], check=True)
    yard = Yard(tmp_path, parts, programs.client(), daemon)
    own = dict(os.environ) | {"LD_LIBRARY_PATH": str(parts), "FAKE_GPU": str(tmp_path / "gpu")}
    own |= {"TSAN_OPTIONS": "halt_on_error=1", "ASAN_OPTIONS": "detect_leaks=0", "KESCO_FIKIT_SOCKET": str(yard.socket)}
    try:
        serving_one = yard.daemon("--policy", "5", "--deadline-ns", "5000000")
        tasks = [yard.start([str(client)], own | {"KESCO_FIKIT_PRIORITY": str(n)}) for n in (9, 5, 1)]
        for one in tasks:
            _, err = one.communicate(timeout=120)
            assert one.returncode == 0, err
        serving_one.terminate()
        _, err = serving_one.communicate(timeout=LIMIT)
        assert serving_one.returncode == 0, err
        for numbers in (("1000", "1000000", "32"), ("20000", "160000", "8")):  # and on credits
            lending = yard.start([str(parts / "lender"), str(tmp_path / f"l{numbers[0]}"), *numbers], {})
            assert lending.stdout is not None and lending.stdout.readline() == "ready\n"
            one = yard.start([str(client)], own | {"KESCO_FIKIT_SOCKET": str(tmp_path / f"l{numbers[0]}")})
            _, err = one.communicate(timeout=120)
            assert one.returncode == 0, err
            found = json.loads(lending.stdout.readline())
            assert found["launched"] == 800 and found["credited"] > 100, found
            assert 700 < found["ended"] <= 800, found  # nobody sees this program's waits, so not the last step
            lending.kill()
    finally:
        yard.close()

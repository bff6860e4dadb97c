"""Credits of the FIKIT runtime without a GPU: that they are used, and whoever is killed or stopped while one is out."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time

import pytest

from kesco.fikit import samples
from kesco.ir import kfikit
from tests.fikit.yard import LIMIT, Yard

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def on_credit(yard: Yard) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    """A task that rests between its requests, and one that fills its gaps on credits."""
    key = {"TASK": "key"}
    high = yard.task(9, "100000", "5", "100", "5000", **key)
    low = yard.task(1, "100000", "40", "20", "0", **key)
    yard.until(lambda t: 1 in t and t[1]["credited"] > 50, "it launches on credits")
    return high, low


@pytest.fixture
def costs(yard: Yard) -> tuple[str, str]:
    """What is known of the kernels of `on_credit`."""
    yard.ends(yard.task(0, "40", "5", "100", "5000", MEASURE=str(yard.folder / "samples.high")))
    yard.ends(yard.task(0, "40", "40", "20", "0", MEASURE=str(yard.folder / "samples.low")))
    known = samples.task_profile("key", "task", yard.folder.glob("samples*"))
    (yard.folder / "costs").write_text(kfikit.to_text(kfikit.Store("", "", (known,))))
    return "--costs", str(yard.folder / "costs")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_the_loss_of_the_daemon_ends_credits(yard: Yard, costs: tuple[str, str], how: int) -> None:
    daemon = yard.daemon("--policy", "5", *costs)
    tasks = on_credit(yard)
    daemon.send_signal(how)
    launches = yard.folder / "gpu"
    time.sleep(0.5)
    before = int.from_bytes(launches.read_bytes()[8:16], "little")
    time.sleep(0.5)
    assert int.from_bytes(launches.read_bytes()[8:16], "little") > before + 1000  # everyone goes on
    assert [one.poll() for one in tasks] == [None, None]
    daemon.send_signal(signal.SIGKILL)
    daemon.wait(LIMIT)
    yard.daemon("--policy", "5", *costs)  # to which both come, and where the old credit is worth nothing
    found = yard.until(lambda t: 1 in t and 9 in t and t[1]["credited"] > 50, "on credits once more")
    assert all(one["lost_records"] == 0 for one in found["tasks"])


def test_the_death_of_a_client_on_credit_is_noticed(yard: Yard, costs: tuple[str, str]) -> None:
    yard.daemon("--policy", "5", *costs)
    high, low = on_credit(yard)
    low.send_signal(signal.SIGKILL)
    yard.until(lambda t: 1 not in t and 9 in t, "it has left")
    yard.task(1, "100000", "40", "20", "0", TASK="key")
    yard.until(lambda t: 1 in t and t[1]["credited"] > 50, "the next one has its own credit")
    assert high.poll() is None

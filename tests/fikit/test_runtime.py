"""The FIKIT runtime without a GPU: daemon, client and a driver that only tells the time (``fake_driver.cpp``).

Whatever is killed, stopped or hostile: everyone else goes on, and nobody waits for longer than its deadline. What takes
minutes is in ``test_thorough.py``.
"""

from __future__ import annotations

import array
import contextlib
import mmap
import os
import shutil
import signal
import socket
import stat
import struct
import time
from typing import Any

import pytest

from kesco.fikit import samples
from tests.fikit.yard import FOREVER, LIMIT, Yard

HELLO = struct.Struct("IIIi40s64s")

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def test_a_lower_task_waits_and_goes_on_when_the_higher_one_ends(yard: Yard) -> None:
    daemon = yard.daemon("--policy", "0")
    high, low = yard.held()
    time.sleep(0.3)
    assert low.poll() is None
    state = yard.until(lambda t: t[1]["waiting"], "it still waits")
    assert state["tasks"][state["holder"]]["priority"] == 9
    high.terminate()
    assert yard.ends(low) < 5
    yard.until(lambda t: not t, "all have left")
    daemon.terminate()
    assert daemon.wait(LIMIT) == 0 and not yard.socket.exists()


def test_without_a_daemon_everything_runs(yard: Yard) -> None:
    assert yard.ends(yard.task(1, "20", "5", "50", "0")) < 5


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_the_loss_of_the_daemon_lets_everyone_go(yard: Yard, end: signal.Signals) -> None:
    daemon = yard.daemon("--policy", "0")
    _, low = yard.held()
    daemon.send_signal(end)
    assert yard.ends(low) < 5  # its deadline is 10 s


def test_clients_come_back_to_a_daemon_that_was_started_anew(yard: Yard) -> None:
    first = yard.daemon("--policy", "0")
    high = yard.task(9, *FOREVER)
    low = yard.task(1, *FOREVER, deadline=2000)

    def there(tasks: dict[int, dict[str, Any]]) -> bool:
        """Whoever came first has the device, and the other one waits."""
        first, second = sorted(tasks.values(), key=lambda one: -one["launched"]) if len(tasks) == 2 else ({}, {})
        return bool(first) and first["launched"] > 50 and bool(second["waiting"])

    yard.until(there, "both are there")
    first.kill()
    first.wait()
    time.sleep(0.2)
    yard.daemon("--policy", "0")
    yard.until(there, "both are there again")
    assert high.poll() is None and low.poll() is None


@pytest.mark.parametrize("who", ["holder", "waiting"])
def test_the_death_of_a_client_is_noticed(yard: Yard, who: str) -> None:
    daemon = yard.daemon("--policy", "0")
    before = len(os.listdir(f"/proc/{daemon.pid}/fd"))
    high, low = yard.held()
    (high if who == "holder" else low).kill()
    if who == "holder":
        assert yard.ends(low) < 5
    else:
        yard.until(lambda t: set(t) == {9}, "it is gone")
        high.kill()
    yard.until(lambda t: not t, "all have left")
    time.sleep(0.1)
    assert len(os.listdir(f"/proc/{daemon.pid}/fd")) == before


def test_no_hold_outlasts_its_deadline(yard: Yard) -> None:
    yard.daemon("--policy", "0", "--deadline-ns", "0")
    yard.task(9, *FOREVER)
    yard.until(lambda t: 9 in t and t[9]["launched"] > 50, "the high task launches")
    low = yard.task(1, "1", "10", "50", "0", deadline=50)
    assert 0.4 < yard.ends(low) < 5


@pytest.mark.parametrize("how", ["capture", "cooperative", "nccl"])
def test_what_must_not_be_held_is_not(yard: Yard, how: str) -> None:
    yard.daemon("--policy", "0", "--deadline-ns", "0")
    yard.task(9, *FOREVER)
    yard.until(lambda t: 9 in t and t[9]["launched"] > 50, "the high task launches")
    assert yard.ends(yard.task(1, "2", "5", "50", "0", how)) < 3


@pytest.mark.parametrize("how", ["fork", "exec", "threads"])
def test_processes_that_fork_exec_or_have_threads(yard: Yard, how: str) -> None:
    yard.daemon("--policy", "0", "--deadline-ns", "50000000")
    yard.task(9, *FOREVER)
    yard.until(lambda t: 9 in t and t[9]["launched"] > 50, "the high task launches")
    assert yard.ends(yard.task(1, "1", "3", "50", "0", how)) < 10
    yard.until(lambda t: set(t) == {9}, "it and its children have left")


@pytest.mark.parametrize(("policy", "least", "most"), [("5", 0.0, 0.3), ("2", 0.8, 1.2)])
def test_the_holder_records_few_events(yard: Yard, policy: str, least: float, most: float) -> None:
    """Where gaps are predicted: none behind kernels that have none; and what it waits for itself is known without."""
    yard.daemon("--policy", policy, "--deadline-ns", "0")
    high = yard.task(9, "100000", "100", "1", "0")
    yard.until(lambda t: 9 in t and t[9]["launched"] > 50, "the high task launches")
    yard.task(1, "100000", "1", "50", "5000")
    yard.until(lambda t: set(t) == {1, 9}, "another one is there")
    before = device(yard)
    time.sleep(0.3)
    after = device(yard)
    launches, events, _ = (two - one for one, two in zip(before, after, strict=True))
    assert high.poll() is None and launches > 500
    assert least <= events / launches <= most


def test_the_driver_is_not_asked_in_vain(yard: Yard) -> None:
    """Events behind which more was launched do not tell when the device is idle: each question takes its lock."""
    yard.daemon("--policy", "5", "--deadline-ns", "0")
    yard.task(9, "100000", "4000", "20", "0")
    yard.task(1, "2", "1", "1", "100000000")
    yard.until(lambda t: set(t) == {1, 9} and t[9]["launched"] > 500, "one launches, another one is there")
    before, begin = device(yard), time.monotonic()
    time.sleep(0.5)
    after, lasted = device(yard), time.monotonic() - begin
    launches, events, queries = (two - one for one, two in zip(before, after, strict=True))
    assert launches > 1000 and 0 < queries < lasted / 150e-6, f"of {events} events behind {launches} launches"


def device(yard: Yard) -> list[int]:
    """Launches, events recorded and queries of them until now."""
    said = (yard.folder / "gpu").read_bytes()
    return [int.from_bytes(said[n : n + 8], "little") for n in (8, 16, 24)]


def greet(yard: Yard, version: int = 6) -> tuple[socket.socket, tuple[int, int, int, int], int]:
    """A client by hand: its socket, the daemon's answer, and the descriptor of the shared words or -1."""
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(5)
    link.connect(str(yard.socket))
    link.sendall(HELLO.pack(0x4B464B54, version, 1, 5, b"key", b'evil"\n\x01'))
    data, ancillary, _, _ = link.recvmsg(16, socket.CMSG_SPACE(4))
    fds = array.array("i")
    for _, _, raw in ancillary:
        fds.frombytes(raw[:4])
    return link, struct.unpack("IIIi", data), fds[0] if fds else -1


def test_a_hostile_client_spoils_its_own_turn_only(yard: Yard) -> None:
    daemon = yard.daemon("--policy", "5")
    link, answer, fd = greet(yard)
    assert answer[2] == 0 and fd >= 0
    size = os.fstat(fd).st_size
    with pytest.raises(OSError):
        os.ftruncate(fd, 0)
    with pytest.raises(OSError):
        os.ftruncate(fd, 2 * size)
    with mmap.mmap(fd, size) as words:
        for fill in (b"\xff", b"\x80", b"\x01", os.urandom(1)):
            words[:] = fill * size
            link.send(b"w")
            time.sleep(0.05)
        for _ in range(20):
            words[:] = os.urandom(size)
            link.send(b"w" * 300)
            time.sleep(0.01)
        state = yard.until(lambda t: 5 in t, "it is seen")
        assert state["tasks"][0]["name"] == "evil???"
        assert yard.ends(yard.task(9, "20", "5", "50", "100")) < 5
    link.close()
    os.close(fd)
    yard.until(lambda t: not t, "it has left")
    assert daemon.poll() is None


def test_who_speaks_another_language_is_refused(yard: Yard) -> None:
    yard.daemon()
    link, answer, fd = greet(yard, version=99)
    assert answer[2] == 1 and fd == -1
    link.close()
    with socket.socket(socket.AF_UNIX) as half:
        half.settimeout(5)
        half.connect(str(yard.socket))
        half.send(b"TKFK\x01")  # and no more
        with contextlib.suppress(ConnectionResetError):
            assert half.recv(1) == b""  # dropped when its time is over
    assert yard.ends(yard.task(9, "2", "5", "50", "100")) < 5


def test_the_socket_is_the_users_and_the_daemon_is_one(yard: Yard) -> None:
    yard.daemon("--cap", "3")
    assert stat.S_IMODE(yard.socket.stat().st_mode) == 0o600
    second = yard.start([str(yard.program), "--socket", str(yard.socket)], dict(os.environ))
    assert second.wait(LIMIT) == 5
    link, answer, _ = greet(yard)
    assert answer[3] == 3  # it asked for 5
    link.close()


def test_measuring(yard: Yard) -> None:
    yard.ends(yard.task(0, "30", "4", "300", "2000", MEASURE=str(yard.folder / "samples")))
    found = samples.task_profile("key", "task", yard.folder.glob("samples*"))
    ((_, kernel),) = found.kernels
    assert kernel.name == "_Z4workPf" and kernel.grid == (300, 1, 1) and kernel.block == (256, 1, 1)
    assert kernel.time is not None and kernel.time.count == 120
    assert 290_000 < kernel.time.quantile(0.5) < 320_000
    assert kernel.gap is not None and kernel.gap.count == 119
    assert kernel.gap.quantile(0.1) < 1000 and kernel.gap.quantile(0.95) > 1_900_000

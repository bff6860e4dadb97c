"""The library in a process that closes what it did not open, cancels its threads or forks behind its back.

And among daemons that lie, or are stopped, or live by another clock. Whatever happens, the program goes on, and nothing
of the library's is where the program did not put it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kesco.ir import kfikit
from tests.fikit.yard import FOREVER, LIMIT, Yard

MAGIC, VERSION, BEAT = 0x4B464B54, 6, 80  # protocol.h; where the beat is in shared_memory.h
ENOUGH = 1 << 20  # bytes, and more than are shared

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def unshared(*namespaces: str) -> tuple[str, ...]:
    """What starts a program in namespaces of its own; the test is skipped where that is not allowed."""
    for user in ((), ("--user", "--map-root-user")):
        words = ("unshare", *user, *namespaces)
        with contextlib.suppress(OSError):
            if subprocess.run((*words, "true"), capture_output=True).returncode == 0:
                return words
    pytest.skip(f"no namespaces can be made here: unshare {' '.join(namespaces)}")


@pytest.fixture
def busy(yard: Yard) -> Yard:
    """With a daemon, and a task that never rests."""
    yard.daemon("--policy", "0", "--deadline-ns", "0")
    yard.task(9, *FOREVER)
    yard.until(lambda t: 9 in t and t[9]["launched"] > 50, "the high task launches")
    return yard


@pytest.mark.parametrize("how", ["closes", "fork", "clone", "exec", "old", "refused"])
def test_what_the_program_opens_is_the_programs(busy: Yard, how: str) -> None:
    assert busy.ends(busy.task(1, how, deadline=30, program="careless")) < 15
    busy.until(lambda t: set(t) == {9}, "it and its children have left")


def test_so_it_is_where_it_is_measured(yard: Yard) -> None:
    yard.ends(yard.task(0, "closes", program="careless", MEASURE=str(yard.folder / "samples")))
    (samples,) = yard.folder.glob("samples*")
    assert samples.read_text().count("\nS ") == 11


def test_a_task_that_closed_everything_is_held(busy: Yard) -> None:
    """It is attached all the same."""
    begin = time.monotonic()
    busy.ends(busy.task(1, "closes", deadline=200, program="careless"))
    assert time.monotonic() - begin > 11 * 0.2


@pytest.mark.parametrize("point", [{}, {"FAKE_POINT": "1"}])
@pytest.mark.parametrize("beside", [9, 0])
def test_threads_that_launch_may_be_cancelled(yard: Yard, point: dict[str, str], beside: int) -> None:
    """Also within the driver, and also the holder's. Then all that they launched is over."""
    yard.daemon("--policy", "0" if beside else "5", "--deadline-ns", "0")
    yard.task(beside, *(FOREVER if beside else ("1", "1", "1", "100000000")))
    yard.until(lambda t: beside in t and t[beside]["launched"], "another one is there")
    path = yard.folder / "go on"
    child = yard.task(5, "cancels", str(path), deadline=50, program="careless", **point)
    assert child.stdout is not None and child.stdout.readline() == "cancelled\n"
    yard.until(lambda t: t[5]["launched"] == t[5]["done"] > 5, "all is over")
    path.touch()
    yard.ends(child)


def test_nothing_else_of_the_library_is_in_front_of_the_program(yard: Yard) -> None:
    """Its own C++ library took the place of the program's: then a thread that is cancelled ends the program."""
    words = ("nm", "-D", "--defined-only", "--format=posix", str(yard.client))
    names = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    assert "dlsym" in (shown := {one.split()[0] for one in names})
    assert all(re.match("cu[A-Z]|cuda[A-Z]|kesco_|dlsym$", one) for one in shown), sorted(shown)


def test_a_launch_that_is_never_made_is_over(yard: Yard) -> None:
    """Also while it is measured, where launches wait for each other."""
    yard.ends(yard.task(0, "leaves", program="careless", MEASURE=str(yard.folder / "samples")))
    (samples,) = yard.folder.glob("samples*")
    assert samples.read_text().count("\nS ") == 6
    yard.daemon("--policy", "5")
    yard.task(9, "1", "1", "1", "100000000")
    yard.until(lambda t: set(t) == {9}, "another one is there")
    child = yard.task(5, "leaves", program="careless")
    yard.until(lambda t: 5 in t and t[5]["launched"] == 7 == t[5]["done"], "all are over")
    yard.ends(child)


def test_a_child_that_nobody_told_of_does_not_keep_its_parent(busy: Yard) -> None:
    """The parent holds the device, is killed, and its child lives on."""
    path = busy.folder / "go on"
    busy.children[-1].kill()
    parent = busy.task(8, "stays", str(path), program="careless")
    busy.until(lambda t: 8 in t and t[8]["launched"] > 50, "it launches")
    low = busy.task(1, "3", "5", "50", "0")
    busy.until(lambda t: 1 in t and t[1]["waiting"], "the low task waits")
    parent.kill()
    try:
        assert busy.ends(low) < 5
    finally:
        path.touch()


# ---- daemons that lie -----------------------------------------------------------------------------------------------


class Liar:
    """A daemon that hands out some memory, after a while, and then cuts it off if it can."""

    def __init__(self, path: Path, size: int, sealed: bool, after: float, ahead: int) -> None:
        self.memory = os.memfd_create("lies", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.memory, size)
        if size > BEAT:
            os.pwrite(self.memory, struct.pack("Q", time.monotonic_ns() + int(after * 1e9) + ahead), BEAT)
        if sealed:
            fcntl.fcntl(self.memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.after, self.answered = after, 0
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(path))
        self.listening.listen()
        self.links: list[socket.socket] = []
        self.serving = threading.Thread(target=self.serve)
        self.serving.start()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = self.listening.accept()
                self.links.append(link)
                link.recv(1000)
                time.sleep(self.after)
                socket.send_fds(link, [struct.pack("IIIi", MAGIC, VERSION, 0, 1)], [self.memory])
                self.answered += 1
                time.sleep(0.05)
                with contextlib.suppress(OSError):
                    os.ftruncate(self.memory, 0)

    def heard(self) -> bool:
        """Whether a client has written into the memory."""
        return any(os.pread(self.memory, ENOUGH, BEAT + 8))

    def close(self) -> None:
        self.listening.shutdown(socket.SHUT_RDWR)
        self.serving.join()
        for one in (self.listening, *self.links):
            one.close()
        os.close(self.memory)


@contextlib.contextmanager
def liar(yard: Yard, size: int, sealed: bool = True, after: float = 0.0, ahead: int = 0) -> Iterator[Liar]:
    made = Liar(yard.socket, size, sealed, after, ahead)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(("size", "sealed"), [(0, True), (4096, True), (ENOUGH, False)])
def test_memory_that_is_not_there_is_not_touched(yard: Yard, size: int, sealed: bool) -> None:
    with liar(yard, size, sealed) as daemon:
        yard.ends(yard.task(1, "100", "2", "20", "10000"))
        assert daemon.answered and not daemon.heard()


@pytest.mark.parametrize("after", [0.0, 1.0])
def test_memory_that_stays_is_used(yard: Yard, after: float) -> None:
    """Also where the daemon takes a second to answer, as with a long profile: the launches do not wait for that."""
    with liar(yard, ENOUGH, after=after) as daemon:
        yard.ends(yard.task(1, "200", "2", "20", "10000", deadline=50))
        assert daemon.answered == 1 and daemon.heard()


def test_a_daemon_that_lives_by_another_clock_is_none(yard: Yard) -> None:
    """What it says of when would hold launches for long, or nobody would see that it hangs."""
    with liar(yard, ENOUGH, ahead=3_600_000_000_000) as daemon:
        yard.ends(yard.task(1, "100", "2", "20", "10000"))
        assert daemon.answered and not daemon.heard()


@pytest.mark.parametrize("deadline", [1, 50])
def test_a_stopped_daemon_costs_no_more_than_the_deadline(yard: Yard, deadline: int) -> None:
    yard.daemon().send_signal(signal.SIGSTOP)
    child = yard.task(1, "1", "1", "0", "0", deadline=deadline)
    out, err = child.communicate(timeout=LIMIT)
    assert child.returncode == 0 and float(out) < 0.2, err


# ---- another clock --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["client", "daemon"])
def test_in_another_time_namespace_it_holds_and_sees_that_the_daemon_hangs(yard: Yard, who: str) -> None:
    """Whoever of them is there: its clock is ahead by a day."""
    before = unshared("--time", "--monotonic", "86400", "--fork", "--kill-child")
    daemon = yard.daemon("--policy", "0", "--deadline-ns", "0", before=before if who == "daemon" else ())
    yard.task(9, *FOREVER)
    yard.until(lambda t: 9 in t and t[9]["launched"] > 50, "the high task launches")
    low = yard.task(1, "3", "5", "50", "0", before=before if who == "client" else ())
    yard.until(lambda t: 1 in t and t[1]["waiting"], "the low task waits")
    time.sleep(0.5)
    assert low.poll() is None
    hung = daemon.pid if who == "client" else int(Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text())
    os.kill(hung, signal.SIGSTOP)
    try:
        assert yard.ends(low) < 5  # its deadline is 10 s
    finally:
        os.kill(hung, signal.SIGKILL)


# ---- a full folder --------------------------------------------------------------------------------------------------


def profiled(yard: Yard, tmp: Path, size: str) -> Iterator[subprocess.CompletedProcess[str]]:
    """`kesco fikit profile` of 1200 launches, where TMPDIR has so much room."""
    tmp.mkdir()
    before = "from kesco.fikit import programs; programs.client()"  # by the kesco that the command finds, too
    subprocess.run([sys.executable, "-c", before], check=True, timeout=LIMIT)
    env = dict(os.environ) | {"LD_LIBRARY_PATH": str(yard.parts), "FAKE_GPU": str(yard.folder / "gpu")}
    command = [sys.executable, "-m", "kesco", "fikit", "profile", "-o", str(yard.folder / "t.kfikit"), "--"]
    command += [str(yard.parts / "task"), "300", "4", "1", "0"]
    mount = f"mount -t tmpfs -o size={size} none '{tmp}' && export TMPDIR='{tmp}' && exec \"$@\""
    words = (*unshared("--mount"), "sh", "-c", mount, "sh", *command)
    yield subprocess.run(words, env=env, capture_output=True, text=True, timeout=LIMIT)


def test_a_profile_is_whole_or_none(yard: Yard) -> None:
    (full,) = profiled(yard, yard.folder / "full", "16k")
    assert full.returncode == 3 and "K541" in full.stderr and "TMPDIR" in full.stderr, full.stderr
    assert not (yard.folder / "t.kfikit").exists()
    (good,) = profiled(yard, yard.folder / "wide", "4m")
    assert good.returncode == 0, good.stderr
    (task,) = kfikit.read(yard.folder / "t.kfikit").tasks
    assert sum(one.time.count for _, one in task.kernels if one.time) == 1200

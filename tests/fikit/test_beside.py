"""Others run beside a task that is busy, as under MPS; and what a request is, by which that is measured.

The tests' driver has a device for each process where it is told so, as under an MPS that costs nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kesco.cli import main
from kesco.fikit import mps, samples, telling
from kesco.ir import kfikit
from tests.fikit.yard import LIMIT, Yard

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
SPACE = ("--policy", "5", "--switch-ns", "0", "--beside-permille", "900", "--deadline-ns", "0")
REQUESTS = ("100000", "20", "50", "0")  # without end, of a millisecond each
WITHOUT = ":".join(one for one in os.environ["PATH"].split(":") if not Path(one, "nvidia-cuda-mps-control").exists())
KESCO = (sys.executable, "-m", "kesco", "fikit")


def gaps(yard: Yard, how: str) -> int:
    """How often in half a second it was known that nothing of the urgent task is on the GPU."""
    yard.daemon("--policy", "5", "--deadline-ns", "0")
    yard.task(9, "100000", "20", "20", "2000", how)
    yard.task(1, "100000", "1", "1", "50000")
    found = yard.until(lambda t: set(t) == {1, 9} and t[9]["launched"] > 100, "both are there")
    before = next(one["gaps"] for one in found["tasks"] if one["priority"] == 9)
    time.sleep(0.5)
    found = yard.until(lambda t: 9 in t, "it is there")
    return int(next(one["gaps"] for one in found["tasks"] if one["priority"] == 9)) - before


def test_a_wait_for_the_context_by_name_is_a_wait_for_all(yard: Yard) -> None:
    """As PyTorch's with CUDA 13: else the urgent task seems busy through all its pauses, and nobody else runs."""
    assert gaps(yard, "context") > 40


def test_a_wait_for_another_context_is_none(yard: Yard) -> None:
    assert gaps(yard, "foreign") < 10


def test_a_kernel_that_rarely_leaves_a_gap_has_no_event(yard: Yard) -> None:
    """One in ten is followed by a pause: events for all would be paid by nine."""
    yard.ends(yard.task(0, "60", "10", "20", "3000", MEASURE=str(yard.folder / "samples")))
    known = samples.task_profile("key", "task", yard.folder.glob("samples*"))
    (yard.folder / "costs").write_text(kfikit.to_text(kfikit.Store("", "", (known,))))
    yard.daemon("--policy", "5", "--deadline-ns", "0", "--costs", str(yard.folder / "costs"))
    yard.task(9, "100000", "10", "20", "0", TASK="key")
    yard.task(1, "100000", "1", "1", "100000")
    yard.until(lambda t: set(t) == {1, 9} and t[9]["launched"] > 100, "both are there")
    before = (yard.folder / "gpu").read_bytes()
    time.sleep(0.5)
    after = (yard.folder / "gpu").read_bytes()
    launched, events = (int.from_bytes(after[n : n + 8], "little") - int.from_bytes(before[n : n + 8], "little")
                        for n in (8, 16))  # fmt: skip
    assert launched > 500 and events < launched / 4


def both(yard: Yard) -> tuple[subprocess.Popen[str], subprocess.Popen[str], subprocess.Popen[str]]:
    """A daemon, an urgent task that is never idle for long, and one beside it."""
    daemon = yard.daemon(*SPACE)
    high = yard.task(9, *REQUESTS, FAKE_OWN="1")
    yard.until(lambda t: 9 in t and t[9]["launched"] > 2000, "the high task launches")
    low = yard.task(1, "100000", "10", "50", "0", FAKE_OWN="1")
    yard.until(lambda t: 1 in t and t[9]["trials"] and t[1]["launched"] > 300, "others run beside it")
    return daemon, high, low


def test_beside_a_busy_task_others_run_though_no_profile_knows_them(yard: Yard) -> None:
    both(yard)
    found = yard.until(lambda t: t[9]["beside_ns"] > 20_000_000 and t[1]["credited"] > 100, "it goes on, on credit")
    assert all(one["abandoned"] == 0 for one in found["tasks"])
    said = telling.explain(found)
    assert "beside it now, and for" in said and "trials" in said
    assert telling.table(found).splitlines()[0].endswith("beside")


def test_without_it_the_same_task_waits(yard: Yard) -> None:
    yard.daemon("--policy", "5", "--deadline-ns", "0", "--react-permille", "0")
    yard.task(9, *REQUESTS, FAKE_OWN="1")
    yard.until(lambda t: 9 in t and t[9]["launched"] > 2000, "the high task launches")
    yard.task(1, "100000", "10", "50", "0", FAKE_OWN="1")
    found = yard.until(lambda t: 1 in t and t[9]["launched"] > 20_000, "a second is over")
    assert next(one["launched"] for one in found["tasks"] if one["priority"] == 1) < 300


@pytest.mark.parametrize("who", ["daemon", "high", "low"])
def test_whoever_is_killed_the_others_go_on(yard: Yard, who: str) -> None:
    daemon, high, low = both(yard)
    {"daemon": daemon, "high": high, "low": low}[who].send_signal(signal.SIGKILL)
    before = launches(yard)
    time.sleep(0.5)
    assert launches(yard) > before + 1000
    assert [one.poll() for one in (daemon, high, low)].count(None) == 2


def launches(yard: Yard) -> int:
    return int.from_bytes((yard.folder / "gpu").read_bytes()[8:16], "little")


# ---- MPS ------------------------------------------------------------------------------------------------------------

CONTROL = """#!/bin/sh
[ "$1" = -d ] && [ -n "$REFUSES" ] && echo "no GPU" && exit 1
if [ "$1" = -d ]; then
  setsid sleep 1000 < /dev/null > /dev/null 2>&1 &
  echo $! > "$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"
else
  read word && [ "$word" = quit ] && kill "$(cat "$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid")"
fi
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One with an MPS that does nothing; its folder of sockets."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "nvidia-cuda-mps-control").write_text(CONTROL)
    (programs / "nvidia-cuda-mps-control").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "kesco").mkdir(mode=stat.S_IRWXU)
    socket = tmp_path / "kesco/fikit-gpu0.sock"
    yield socket
    mps.stop(socket)


def served(yard: Yard, *words: str) -> subprocess.Popen[str]:
    child = yard.start([*KESCO, "serve", "--gpu", "0", *words], dict(os.environ))
    assert child.stdout is not None and child.stdout.readline() == "ready\n", child.communicate()
    return child


def environment(*words: str) -> dict[str, str]:
    """With what a program is run."""
    command = (*KESCO, "run", "--gpu", "0", *words, "--", "env")
    said = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True).stdout
    return dict(line.split("=", 1) for line in said.splitlines() if line.startswith("CUDA_MPS"))


def gone(true: object) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if true():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


def test_who_serves_with_mps_starts_it_and_leads_programs_there(yard: Yard, machine: Path) -> None:
    child = served(yard, "--mps", "--share", "60%")
    pipes = str(mps.folder(machine))
    high, low = environment("--priority", "9"), environment("--priority", "3")
    assert high == {"CUDA_MPS_PIPE_DIRECTORY": pipes, "CUDA_MPS_LOG_DIRECTORY": f"{pipes}/log"}
    assert low == high | {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "60", "CUDA_MPS_CLIENT_PRIORITY": "1"}
    child.terminate()
    assert child.wait(LIMIT) == 0 and gone(lambda: not mps.lives(machine)) and environment() == {}


def test_where_mps_dies_the_daemon_goes_on_without(yard: Yard, machine: Path) -> None:
    child = served(yard, "--mps")
    os.kill(int((mps.folder(machine) / "nvidia-cuda-mps-control.pid").read_text()), signal.SIGKILL)
    assert gone(lambda: not mps.lives(machine)) and environment() == {}
    assert child.stdout is not None and child.stdout.readline() == "ready\n"  # anew
    child.terminate()
    assert child.wait(LIMIT) == 0
    assert "MPS has ended" in child.communicate()[1]


def test_a_signal_that_comes_as_the_daemon_is_started_ends_it(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = subprocess.Popen

    def told(*words: Any, **options: Any) -> Any:
        child = started(*words, **options)
        os.kill(os.getpid(), signal.SIGTERM)  # before its caller knows it
        return child

    monkeypatch.setattr(subprocess, "Popen", told)
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    try:
        assert mps.served(("sleep", "20"), (), machine, (), print) == 128 + signal.SIGTERM
    finally:
        for one, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(one, handler)


def test_where_the_daemon_dies_mps_is_asked_to_end(yard: Yard, machine: Path) -> None:
    child = served(yard, "--mps")
    (daemon,) = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    os.kill(int(daemon), signal.SIGKILL)
    assert child.wait(LIMIT) == 128 + signal.SIGKILL and gone(lambda: not mps.lives(machine))


def test_the_unit_serves_with_mps() -> None:
    said = CliRunner().invoke(main, ["fikit", "unit", "--gpu", "0", "--mps", "--promise", "3%"]).output
    assert "--mps --promise 3%%" in said


@pytest.mark.parametrize(
    ("words", "env", "code", "said"),
    [
        (("--mps",), {"PATH": WITHOUT}, 5, "there is no nvidia-cuda-mps-control"),
        (("--mps",), {"REFUSES": "1"}, 5, "MPS does not start: no GPU"),
        (("--promise", "5%"), {}, 2, "add --mps"),
        (("--mps", "--share", "0"), {}, 2, "no percentage"),
    ],
)
def test_what_cannot_be_is_said(
    machine: Path, words: tuple[str, ...], env: dict[str, str], code: int, said: str
) -> None:
    command, own = (*KESCO, "serve", "--gpu", "0", *words), dict(os.environ) | env
    done = subprocess.run(command, env=own, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == code and said in done.stderr, done.stderr

"""The FIKIT runtime without a GPU: daemon, client and a driver that only tells the time (``fake_driver.cpp``).

Whatever is killed, stopped or hostile: everyone else goes on, and nobody waits for longer than its deadline. With
KESCO_THOROUGH=1 also many clients at once, and everything built with sanitizers.
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
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kesco.errors import ToolchainError
from kesco.fikit import programs, samples, serving

HERE = Path(__file__).parent
THOROUGH = bool(os.environ.get("KESCO_THOROUGH"))
LIMIT = 30.0
FOREVER = ("100000", "20", "200", "0")  # a task that does not end; under the policy "exclusive" nobody gets in between
HELLO = struct.Struct("IIIi40s64s")

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


class Yard:
    """A folder with a device, a daemon and programs; all that it starts is ended with it."""

    def __init__(self, folder: Path, parts: Path, client: Path, daemon: Path) -> None:
        self.folder, self.parts, self.client, self.program = folder, parts, client, daemon
        self.socket = folder / "s"
        self.children: list[subprocess.Popen[str]] = []

    def start(self, words: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        child = subprocess.Popen(words, env=env, stdout=pipe, stderr=pipe, text=True)
        self.children.append(child)
        return child

    def daemon(self, *words: str) -> subprocess.Popen[str]:
        child = self.start([str(self.program), "--socket", str(self.socket), *words], dict(os.environ))
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    def task(self, priority: int, *words: str, deadline: int = 10000, **more: str) -> subprocess.Popen[str]:
        own = dict(os.environ) | {"LD_LIBRARY_PATH": str(self.parts), "FAKE_GPU": str(self.folder / "gpu")}
        settings = {"SOCKET": str(self.socket), "PRIORITY": str(priority), "DEADLINE_MS": str(deadline)}
        return self.start([str(self.parts / "task"), *words], serving.environment(self.client, settings | more, own))

    def ends(self, child: subprocess.Popen[str], within: float = LIMIT) -> float:
        """Seconds from now until a task ends well."""
        begin = time.monotonic()
        _, err = child.communicate(timeout=within)
        assert child.returncode == 0, err
        return time.monotonic() - begin

    def until(self, true: Any, what: str) -> dict[str, Any]:
        """The daemon's state, once it is as wanted."""
        for _ in range(600):
            with contextlib.suppress(ToolchainError):
                found = serving.status(self.socket)
                if true({one["priority"]: one for one in found["tasks"]}):
                    return found
            time.sleep(0.01)
        pytest.fail(f"never: {what}")

    def held(self) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
        """A task that never rests, and one that waits at its launch behind it."""
        high = self.task(9, *FOREVER)
        self.until(lambda t: 9 in t and t[9]["launched"] > 50, "the high task launches")
        low = self.task(1, "3", "5", "50", "0")
        self.until(lambda t: 1 in t and t[1]["waiting"] and t[9]["launched"] > 50, "the low task waits")
        return high, low

    def close(self) -> None:
        for child in self.children:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
            child.communicate()


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    common = ("g++", "-std=c++17", "-O1", "-Wall", "-Wextra")
    shared = ("-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", "libcuda.so.1", str(HERE / "fake_driver.cpp"))
    subprocess.run((*common, *shared, "-ldl"), cwd=folder, check=True)
    subprocess.run((*common, "-o", "task", str(HERE / "task.cpp"), "-ldl", "-lpthread"), cwd=folder, check=True)
    return folder


@pytest.fixture(scope="session")
def runtime() -> tuple[Path, Path]:
    with ThreadPoolExecutor(2) as pool:
        client, daemon = pool.submit(programs.client), pool.submit(programs.daemon)
        return client.result(), daemon.result()


@pytest.fixture
def yard(tmp_path: Path, parts: Path, runtime: tuple[Path, Path]) -> Iterator[Yard]:
    made = Yard(tmp_path, parts, *runtime)
    yield made
    made.close()


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


def greet(yard: Yard, version: int = 2) -> tuple[socket.socket, tuple[int, int, int, int], int]:
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


@pytest.mark.skipif(not THOROUGH, reason="with KESCO_THOROUGH=1")
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


@pytest.mark.skipif(not THOROUGH, reason="with KESCO_THOROUGH=1")
@pytest.mark.parametrize("sanitizer", ["thread", "address"])
def test_with_sanitizers(sanitizer: str, tmp_path: Path, parts: Path) -> None:
    """The daemon and, linked into a program instead of preloaded, the client; both end with a report's exit code."""
    flags = (f"-fsanitize={sanitizer}", "-g", "-O1", "-std=c++17", "-Wno-tsan", "-ldl", "-lpthread")
    source = Path(programs.__file__).parent.parent / "runtime" / "fikit"
    daemon, client = tmp_path / "daemon", tmp_path / "task"
    policy = sorted(source.glob("policy*.cpp"))
    mine = [source / f"{name}.cpp" for name in programs._DAEMON]
    subprocess.run(["g++", *map(str, [*mine, *policy]), "-o", str(daemon), *flags], check=True)
    theirs = [source / f"{name}.cpp" for name in programs._CLIENT if name != "intercept"]
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
    finally:
        yard.close()

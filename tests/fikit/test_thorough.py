"""The FIKIT runtime under load, under kills and under sanitizers: with KESCO_THOROUGH=1."""

# ruff: noqa: T201 - the numbers are the result
from __future__ import annotations

import json
import mmap
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from kesco.fikit import programs, serving
from kesco.ir import kfikit
from kesco.ir.costs import Times
from tests.fikit.yard import HERE, LIMIT, Yard

KILLS = int(os.environ.get("KESCO_KILLS", "1000"))
FRAMES = int(os.environ.get("KESCO_FRAMES", "100000"))

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
    stops = 0
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
        if random.random() < 0.25:  # it hangs for a while, and goes on
            stopped = random.choice((tasks[place], daemon))
            stopped.send_signal(signal.SIGSTOP)
            time.sleep(random.choice((0.01, 0.05, 0.3)))
            stopped.send_signal(signal.SIGCONT)
            stops += 1
            continue
        kills["task"] += tasks[place].poll() is None
        tasks[place].kill()
        tasks[place].communicate()
        yard.children.remove(tasks[place])
        tasks[place] = yard.task(random.randrange(10), *words, random.choice(hows), deadline=500)
    for one in tasks:
        assert yard.ends(one, 120) >= 0
    print(kills, "stops", stops)
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


def sanitized_daemon(folder: Path, *flags: str) -> Path:
    """The daemon's program, made with sanitizers."""
    source = Path(programs.__file__).parent.parent / "runtime" / "fikit"
    made = [*sorted(source.glob("policy*.cpp")), *(source / f"{name}.cpp" for name in programs._DAEMON)]
    subprocess.run(["g++", *map(str, made), "-o", str(folder / "daemon"), *flags], check=True)
    return folder / "daemon"


def test_fuzzed_frames(tmp_path: Path, parts: Path) -> None:
    """Connections that say anything, in parts, with descriptors, and clients that write anything into their memory."""
    daemon = sanitized_daemon(
        tmp_path, "-fsanitize=address,undefined", "-fno-sanitize-recover", "-g", "-O1", "-std=c++17"
    )
    yard = Yard(tmp_path, parts, programs.client(), daemon)
    costs = tmp_path / "costs"
    times = Times.of([1000, 2000, 30000])
    kernels = tuple((n, kfikit.Kernel("k", time=times, gap=times)) for n in range(500))
    costs.write_text(kfikit.to_text(kfikit.Store("", "", (kfikit.TaskProfile("key", kernels),))))
    serving_one = yard.daemon("--costs", str(costs), "--record", str(tmp_path / "record"), "--record-bytes", "1000000")
    before = len(os.listdir(f"/proc/{serving_one.pid}/fd"))
    random.seed(int(os.environ.get("KESCO_SEED", "7")))
    kinds: dict[str, int] = {}
    open_ones: list[Frames] = []
    try:
        while sum(kinds.values()) < FRAMES:
            if len(open_ones) < 40 and random.random() < 0.4:
                open_ones.append(Frames(yard.socket))
                continue
            if not open_ones:
                continue
            one = random.choice(open_ones)
            kind = one.frame()
            kinds[kind] = kinds.get(kind, 0) + 1
            if kind == "end":
                open_ones.remove(one)
            assert serving_one.poll() is None, serving_one.communicate()[1]
        for one in open_ones:
            one.close()
        print(kinds)
        yard.until(lambda t: not t, "all have left")
        assert yard.ends(yard.task(9, "20", "5", "50", "100")) < 20
        yard.until(lambda t: not t, "all have left")
        time.sleep(0.2)
        assert len(os.listdir(f"/proc/{serving_one.pid}/fd")) == before
        serving_one.terminate()
        _, err = serving_one.communicate(timeout=LIMIT)
        assert serving_one.returncode == 0, err
    finally:
        yard.close()


class Frames:
    """A connection that says something at random, step by step."""

    def __init__(self, path: Path) -> None:
        self.link = socket.socket(socket.AF_UNIX)
        serving.patient(self.link, 5)
        self.link.connect(str(path))
        self.link.setblocking(False)
        self.words: mmap.mmap | None = None

    def frame(self) -> str:
        """Do one thing; what it was."""
        kind = random.choice(
            ("hello", "hello", "odd hello", "part", "noise", "rights", "status", "read", "half", "end")
        )
        if self.words:
            kind = random.choice(("scribble", "records", "scribble", "records", "noise", "rights", "end"))
        try:
            getattr(self, "_" + kind.replace(" ", "_"))()
        except BlockingIOError:  # nothing to read, or nobody reads
            return kind
        except OSError:  # the daemon has ended it
            self.close()
            return "end"
        return kind

    def close(self) -> None:
        if self.words:
            self.words.close()
        self.link.close()

    _end = close

    def _hello(self) -> None:
        self.link.send(_hello())
        time.sleep(0.0005)
        self._read()

    def _odd_hello(self) -> None:
        data = bytearray(_hello(random.choice((1, 1, 2, 3))))
        for _ in range(random.randrange(1, 6)):
            data[random.randrange(len(data))] = random.randrange(256)
        self.link.send(data)

    def _part(self) -> None:
        data, at = _hello(random.choice((1, 2))), random.randrange(120)
        self.link.send(data[at : at + random.randrange(1, 120)])

    def _noise(self) -> None:
        self.link.send(random.randbytes(random.randrange(1, 600)))

    def _rights(self) -> None:
        socket.send_fds(self.link, [_hello()[: random.randrange(1, 120)]], [0, 1, 2])

    def _status(self) -> None:
        self.link.send(_hello(2))

    def _half(self) -> None:
        self.link.shutdown(random.choice((socket.SHUT_WR, socket.SHUT_RD)))

    def _read(self) -> None:
        _, fds, _, _ = socket.recv_fds(self.link, random.choice((16, 1000, 100000)), 4)
        for fd in fds:
            self.words = mmap.mmap(fd, os.fstat(fd).st_size)
            os.close(fd)

    def _scribble(self) -> None:
        assert self.words
        for _ in range(random.randrange(1, 20)):
            at, data = random.randrange(len(self.words)), random.randbytes(random.choice((1, 8, 64, 4096)))
            self.words[at : at + len(data)] = data[: len(self.words) - at]
        self.link.send(b"w")

    def _records(self) -> None:
        """What looks like launches, with numbers at the ends of what there is."""
        assert self.words
        for at in range(0, len(self.words) - 8, random.choice((8, 40, 128, 1024))):
            if random.random() < 0.05:
                value = random.choice((0, 1, 2, 3, 4, 5, 1 << 63, (1 << 64) - 1, random.randrange(1 << 20)))
                self.words[at : at + 8] = value.to_bytes(8, "little")
        self.link.send(b"w")


def _hello(ask: int = 1) -> bytes:
    name = random.randbytes(64)
    return struct.pack("IIIi40s64s", 0x4B464B54, serving._VERSION, ask, random.randrange(-9, 99), b"key", name)


@pytest.mark.parametrize("sanitizer", ["thread", "address"])
def test_with_sanitizers(sanitizer: str, tmp_path: Path, parts: Path) -> None:
    """The daemon and, linked into a program instead of preloaded, the client; both end with a report's exit code."""
    flags = (f"-fsanitize={sanitizer}", "-g", "-O1", "-std=c++17", "-Wno-tsan", "-ldl", "-lpthread")
    source = Path(programs.__file__).parent.parent / "runtime" / "fikit"
    daemon, client = sanitized_daemon(tmp_path, *flags), tmp_path / "task"
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

"""The daemon under attack: by connections that only take room, by other users, by readers, and beside a second daemon.

Whoever is other users here is root for a moment; without it these tests are left out.
"""

from __future__ import annotations

import array
import contextlib
import json
import mmap
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kesco.errors import ToolchainError
from kesco.fikit import programs, serving
from kesco.ir import kfikit
from kesco.ir.costs import Times
from kesco.toolchain.runtimes import SOURCES
from tests.fikit.yard import LIMIT, Yard

HELLO = struct.Struct("IIIi40s64s")
MAGIC, VERSION = 0x4B464B54, serving._VERSION
STRANGER = 61001
FULL, NOT_ALLOWED = 2, 3

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


def hello(ask: int = 1, task: bytes = b"key", name: bytes = b"name") -> bytes:
    return HELLO.pack(MAGIC, VERSION, ask, 5, task, name)


class Crowd:
    """Connections by hand; all are closed with it."""

    def __init__(self) -> None:
        self.all = contextlib.ExitStack()

    def connect(self, path: Path) -> socket.socket:
        link = self.all.enter_context(socket.socket(socket.AF_UNIX))
        serving.patient(link, 5)
        link.connect(str(path))
        return link

    def attach(self, path: Path, task: bytes = b"key", name: bytes = b"name") -> tuple[int, int]:
        """Why it was refused or 0, and the descriptor of the shared words or -1."""
        link = self.connect(path)
        with contextlib.suppress(BrokenPipeError):
            link.sendall(hello(1, task, name))
        data, ancillary, _, _ = link.recvmsg(16, socket.CMSG_SPACE(4))
        fds = array.array("i")
        for _, _, raw in ancillary:
            fds.frombytes(raw[:4])
            self.all.callback(os.close, fds[0])
        return struct.unpack("IIIi", data)[2], fds[0] if fds else -1


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    made = Crowd()
    with made.all:
        yield made


def turns(pid: int) -> float:
    """Which part of the time a process wants a core, whether it gets one or not, in the calmest of five stretches."""

    def stretch() -> float:
        states = []
        for _ in range(100):
            states.append(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
            time.sleep(0.002)
        return states.count("R") / len(states)

    return min(stretch() for _ in range(5))


def worked(pid: int) -> float:
    """Seconds of a core that a process has used."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Where in the shared memory each thing is."""
    names = ("beat", "predicted", "head", "records", "names_head", "names")
    said = "".join(f'printf("%zu ", offsetof(fikit::Shared, {name}));' for name in names)
    folder = tmp_path_factory.mktemp("places")
    (folder / "p.cpp").write_text(f'#include <cstdio>\n#include "shared_memory.h"\nint main() {{ {said} }}\n')
    command = ["g++", "-std=c++17", "-w", f"-I{SOURCES / 'fikit'}", str(folder / "p.cpp"), "-o", str(folder / "p")]
    subprocess.run(command, check=True)
    found = subprocess.run([str(folder / "p")], check=True, capture_output=True, text=True).stdout
    return dict(zip(names, map(int, found.split()), strict=True))


def word(number: int) -> bytes:
    return number.to_bytes(8, "little")


@contextlib.contextmanager
def somebody_else() -> Iterator[None]:
    os.seteuid(STRANGER)
    try:
        yield
    finally:
        os.seteuid(0)


# ---- a second daemon ------------------------------------------------------------------------------------------------


def second(yard: Yard, *words: str) -> subprocess.Popen[str]:
    return yard.start([str(yard.program), "--socket", str(yard.socket), *words], dict(os.environ))


def test_a_second_daemon_leaves_the_first_ones_record(yard: Yard, crowd: Crowd, tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.write_text("of a run before\n")
    first = yard.daemon("--record", str(record))
    crowd.attach(yard.socket, name=b"seen")
    assert second(yard, "--record", str(record)).wait(LIMIT) == 5
    beside = yard.start([str(yard.program), "--socket", str(tmp_path / "t"), "--record", str(record)], dict(os.environ))
    assert beside.wait(LIMIT) == 5 and beside.stderr and "another daemon writes it" in beside.stderr.read()
    first.terminate()
    first.wait(LIMIT)
    lines = record.read_text().splitlines()
    assert lines[0] == "kesco-fikit-events 1" and "seen" in lines[1]


def test_one_daemon_also_without_its_files(yard: Yard) -> None:
    first = yard.daemon()
    for file in yard.folder.iterdir():
        if not file.is_socket() and file.name != "gpu":
            file.unlink()
    again = second(yard)
    assert again.wait(LIMIT) == 5 and again.stderr and "another daemon serves" in again.stderr.read()
    assert serving.status(yard.socket)["tasks"] == []
    yard.socket.unlink()
    taken = yard.daemon()
    assert first.wait(LIMIT) == 5 and first.stderr and "no longer" in first.stderr.read()
    assert taken.poll() is None and serving.status(yard.socket)["tasks"] == []
    taken.terminate()
    assert taken.wait(LIMIT) == 0 and not yard.socket.exists()


def test_of_many_that_start_one_serves(yard: Yard) -> None:
    for _ in range(10):
        before = yard.daemon()
        before.kill()  # its name stays
        before.wait()
        many = [second(yard) for _ in range(8)]
        said = [one.stdout.readline() for one in many if one.stdout]
        assert sorted(said) == [""] * 7 + ["ready\n"]
        assert serving.status(yard.socket)["tasks"] == []
        for one in many:
            one.kill()
            one.wait()


def test_what_is_no_socket_stays(yard: Yard) -> None:
    yard.socket.write_text("mine")
    assert second(yard).wait(LIMIT) == 5 and yard.socket.read_text() == "mine"


def test_a_record_ends_at_its_size(yard: Yard, crowd: Crowd, tmp_path: Path) -> None:
    record = tmp_path / "record"
    daemon = yard.daemon("--record", str(record), "--record-bytes", "500")
    for n in range(20):
        crowd.attach(yard.socket, name=b"%d" % n)
    daemon.terminate()
    _, err = daemon.communicate(timeout=LIMIT)
    assert 400 < record.stat().st_size <= 500 and record.read_bytes().endswith(b"\n")
    assert err.count("the record is full") == 1


# ---- connections that take room -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [False, True])
def test_half_a_greeting_costs_nothing(yard: Yard, crowd: Crowd, ends: bool) -> None:
    daemon = yard.daemon()
    link = crowd.connect(yard.socket)
    link.send(hello()[:20])
    if ends:
        link.close()
    assert turns(daemon.pid) < 0.2


def test_a_greeting_may_come_in_parts(yard: Yard, crowd: Crowd) -> None:
    yard.daemon()
    link = crowd.connect(yard.socket)
    for byte in hello():
        link.send(bytes([byte]))
    assert struct.unpack("IIIi", link.recv(16))[2] == 0


def test_silent_connections_keep_nobody_out(yard: Yard, crowd: Crowd) -> None:
    yard.daemon()
    for _ in range(200):
        crowd.connect(yard.socket)
    assert crowd.attach(yard.socket)[0] == 0
    assert serving.status(yard.socket)["tasks"]


@needs_root
def test_others_are_told_nothing(open_yard: Yard, crowd: Crowd) -> None:
    """Not even where the socket lets them connect."""
    yard = open_yard
    shared = yard.folder / "t"
    yard.daemon("--user", "61002:3", "--shared", str(shared))
    with somebody_else():
        with pytest.raises(PermissionError):
            crowd.connect(yard.socket)
        assert crowd.attach(shared)[0] == NOT_ALLOWED
        with pytest.raises(ToolchainError, match="not listed"):
            serving.status(shared)
        silent = [crowd.connect(shared) for _ in range(70)]
        assert all(one.recv(16) and not one.recv(1) for one in silent)  # refused at once
    assert crowd.attach(yard.socket)[0] == 0


@needs_root
def test_a_listed_user_leaves_places(open_yard: Yard, crowd: Crowd) -> None:
    yard = open_yard
    shared = yard.folder / "t"
    yard.daemon("--user", f"{STRANGER}:3", "--shared", str(shared))
    with somebody_else():
        theirs = [crowd.attach(shared)[0] for _ in range(200)]
        found = serving.status(shared)["tasks"]
        for _ in range(200):
            crowd.connect(shared)
    assert len(found) == 128 and {one["priority"] for one in found} == {3}
    assert theirs.count(FULL) == 72
    mine = [crowd.attach(yard.socket)[0] for _ in range(129)]
    assert mine.count(0) == 128  # all that there are


def test_many_slow_readers_delay_nobody(yard: Yard, crowd: Crowd, places: dict[str, int]) -> None:
    """Whoever reads gets all of it; while they do, the daemon shows that it lives."""
    yard.daemon("--policy", "0", "--deadline-ns", "3000000000")
    everyone = [crowd.attach(yard.socket, b"k" * 40, b"n" * 64)[1] for _ in range(256)]
    for ticket in (
        1,
        2,
    ):  # all but the holder are granted one launch of a kernel with a long name, and wait for another
        for fd in everyone[1:]:
            with mmap.mmap(fd, os.fstat(fd).st_size) as words:
                record = places["records"] + (ticket - 1) * 40
                words[places["names"] : places["names"] + 127] = word(1) + word(7) + b"k" * 111
                words[places["names_head"] : places["names_head"] + 8] = word(1)
                words[record : record + 40] = b"".join(map(word, (ticket, 7, ticket, 1, 2)))
                words[places["head"] : places["head"] + 8] = word(ticket)
        waiting = 255 if ticket == 2 else 0
        for _ in range(200):
            if sum(one["waiting"] for one in serving.status(yard.socket)["tasks"]) == waiting:
                break
            time.sleep(0.05)
    readers = [crowd.connect(yard.socket) for _ in range(40)]
    with mmap.mmap(everyone[0], os.fstat(everyone[0]).st_size) as words:
        for one in readers:
            one.sendall(hello(2))
        oldest, end, beat = 0, time.monotonic() + 2, places["beat"]
        while time.monotonic() < end:
            now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            oldest = max(oldest, now - int.from_bytes(words[beat : beat + 8], "little"))
            time.sleep(0.001)
    assert oldest < 500_000_000
    for one in readers:
        said = b""
        while part := one.recv(1 << 20):
            said += part
        assert len(json.loads(said)["tasks"]) == 256


# ---- what comes with a client ---------------------------------------------------------------------------------------


def test_a_long_profile_delays_nobody(yard: Yard, crowd: Crowd, tmp_path: Path, places: dict[str, int]) -> None:
    costs = tmp_path / "costs"
    times = Times.of([1000, 2000, 3000])
    kernels = tuple((n, kfikit.Kernel("k", time=times, gap=times)) for n in range(30_001))
    costs.write_text(kfikit.to_text(kfikit.Store("", "", (kfikit.TaskProfile("key", kernels),))))
    daemon = yard.daemon("--costs", str(costs))
    memory, before = resident(daemon.pid), worked(daemon.pid)
    everyone = [crowd.attach(yard.socket)[1] for _ in range(8)]
    assert worked(daemon.pid) - before < 0.4
    assert resident(daemon.pid) - memory < 8 * 8 << 20
    with mmap.mmap(everyone[0], os.fstat(everyone[0]).st_size) as words:
        begin = places["predicted"]
        known = {int.from_bytes(words[n : n + 8], "little") for n in range(begin, begin + 16 * 2048, 16)}
    assert len(known) > 1500 and max(known) <= 30_000


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    "words",
    [
        *(("--user", one) for one in ("bob:3", "1001:", "-1:9", "4294967296:9", "4294967295:9", ":5", "7:10", " 7:1")),
        ("--cap", "10"), ("--cap", "-1"), ("--policy", "7"), ("--policy", "x"), ("--guard-ns", "inf"),
        ("--inflight-launches", "4294967297"), ("--guard-ns", "-1"), ("--nothing", "1"), ("--cap",),
    ],
)  # fmt: skip
def test_the_daemon_takes_no_nonsense(words: tuple[str, ...], yard: Yard) -> None:
    refused = second(yard, *words)
    _, err = refused.communicate(timeout=LIMIT)
    assert refused.returncode == 2 and words[0] in err and not yard.socket.exists()


def test_it_needs_descriptors(yard: Yard) -> None:
    command = f"ulimit -n 100; exec {programs.daemon()} --socket {yard.socket}"
    child = yard.start(["sh", "-c", command], dict(os.environ))
    assert child.wait(LIMIT) == 5 and child.stderr and "ulimit -n" in child.stderr.read()

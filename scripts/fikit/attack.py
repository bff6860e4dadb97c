"""Attacks FIKIT's daemon and client with what they must bear, without a GPU, and with AddressSanitizer in both.

    python3 scripts/fikit/attack.py [--frames 100000] [--kills 1000] [--stops 295] [--scribbles 54390] [--seed 7]

1. Frames: anything at all is said to the daemon, and daemons that answer anything are believed or not by the client
   (`tests/native/greeting_attack.cpp`); as many of each.
2. Scribbles: clients write anywhere into the memory that they share with the daemon, and daemons into that which they
   share with a client; as many of each.
3. Stops: the daemon or a client is stopped, and somebody goes on within that time.
4. Kills: the daemon and clients are killed at random (`tests/fikit/test_thorough.py`).

After each of them the daemon serves an honest task, and has no descriptor left over. Prints what was done; ends with 1
where something was not borne. `tests/fikit/test_attack.py` does a little of 1 to 3.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import contextlib
import fcntl
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from kesco.fikit import programs  # noqa: E402
from tests.fikit.conftest import made  # noqa: E402
from tests.fikit.yard import Yard  # noqa: E402

SOURCES = ROOT / "kesco/runtime/fikit"
HELLO, WELCOME = struct.Struct("IIIi40s64s"), struct.Struct("IIIi")
MAGIC, VERSION, SHARED, BEAT = 0x4B464B54, 6, 1 << 18, 80
EDGES = (0, 1, 2, 1023, 1024, 1025, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
LIMIT = 60.0


def sanitized(target: Path, sources: list[Path]) -> Path:
    """A program with both sanitizers, which end it with a report."""
    flags = ("-std=c++17", "-g", "-O1", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    subprocess.run(["g++", *flags, *map(str, sources), "-o", str(target), "-ldl", "-lpthread"], check=True)
    return target


def daemon_made(folder: Path) -> Path:
    """The daemon."""
    parts = [SOURCES / f"{name}.cpp" for name in programs._DAEMON]
    return sanitized(folder / "daemon", [*parts, *sorted(SOURCES.glob("policy*.cpp"))])


def client_made(folder: Path) -> Path:
    """A program with the client linked in, which launches from four threads."""
    parts = [SOURCES / f"{name}.cpp" for name in programs._CLIENT if not name.startswith("intercept")]
    return sanitized(folder / "client", [*parts, ROOT / "tests/fikit/hooked_task.cpp"])


def greeter_made(folder: Path) -> Path:
    """What meets daemons that answer anything."""
    names = [SOURCES / "greeting.cpp", SOURCES / "clock.cpp"]
    return sanitized(folder / "greeter", [ROOT / "tests/native/greeting_attack.cpp", *names])


@contextlib.contextmanager
def borne(yard: Yard) -> Iterator[int]:
    """A daemon that serves an honest task before and after what is done to it, and has nothing left over then."""
    daemon = yard.daemon("--policy", "5", "--deadline-ns", "5000000")
    yard.ends(yard.task(9, "2", "5", "50", "100"))
    descriptors = Path(f"/proc/{daemon.pid}/fd")
    yard.until(lambda t: not t, "it has left")
    before = len(list(descriptors.iterdir()))
    yield daemon.pid
    yard.ends(yard.task(9, "20", "5", "50", "100"), LIMIT)
    yard.until(lambda t: not t, "all have left")
    end = time.monotonic() + 5  # who has not said all of a greeting is dropped after a while
    while len(list(descriptors.iterdir())) != before:
        assert time.monotonic() < end, "descriptors are left over"
        time.sleep(0.05)
    daemon.terminate()
    _, report = daemon.communicate(timeout=LIMIT)
    assert daemon.returncode == 0 and not report, report


def frame(dice: random.Random) -> bytes:
    """What a client may say instead of a greeting."""
    if not dice.randrange(4):
        return dice.randbytes(dice.randrange(300))
    priority = dice.choice((0, 9, -1, 10, 2**31 - 1, -(2**31)))
    name = dice.choice((b"key", b"\xff" * 64, dice.randbytes(64), b""))
    ask = dice.choice((1, 1, 2, 0, 3, 2**32 - 1))
    said = bytearray(HELLO.pack(MAGIC, VERSION, ask, priority, name[:40], name))
    if dice.randrange(2):
        said[dice.randrange(len(said))] ^= 1 << dice.randrange(8)
    return bytes(said[: dice.choice((len(said), len(said), dice.randrange(len(said))))])


def frames(yard: Yard, greeter: Path, count: int, seed: int) -> str:
    """Anything at all is said, to the daemon and by daemons."""
    dice = random.Random(seed)
    with borne(yard):
        for _ in range(count):
            with socket.socket(socket.AF_UNIX) as link, contextlib.suppress(OSError):
                link.settimeout(LIMIT)
                link.connect(str(yard.socket))
                link.sendall(frame(dice))
                if not dice.randrange(8):
                    link.settimeout(0.002)
                    link.recv(1 << 16)
    words = [str(greeter), str(yard.folder / "g"), str(count), str(seed)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    return f"{count} frames to the daemon; answers to the client: {done.stdout.strip()}"


def number(dice: random.Random) -> bytes:
    """What is scribbled."""
    return struct.pack("Q", dice.choice((*EDGES, time.monotonic_ns(), dice.getrandbits(64), dice.getrandbits(11))))


def scribble(words: mmap.mmap, dice: random.Random, count: int) -> None:
    """Half of it to the beginning and to what follows the tables, where the numbers are that count."""
    size = len(words) // 8 - 1
    for _ in range(count):
        place = dice.choice((dice.randrange(24), dice.randrange(4096, 4288), dice.randrange(size)))
        words[8 * place : 8 * place + 8] = number(dice)


def scribbles_to_daemon(yard: Yard, count: int, seed: int) -> str:
    """A client that scribbles, beside one that does not and whose launches go on."""
    dice, each = random.Random(seed), 50
    with borne(yard):
        honest = yard.task(9, "1000000", "2", "20", "500")
        for turn in range(-(-count // (each * 20))):
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(LIMIT)
                link.connect(str(yard.socket))
                link.sendall(HELLO.pack(MAGIC, VERSION, 1, dice.randrange(10), b"key", b"scribbler"))
                _, (memory, *_), _, _ = socket.recv_fds(link, WELCOME.size, 1)
                with mmap.mmap(memory, os.fstat(memory).st_size) as words:
                    for _ in range(20):
                        scribble(words, dice, each)
                        link.send(b"w")
                        time.sleep(0.002)
                os.close(memory)
            before = launched(yard.folder / "gpu")
            time.sleep(0.05)
            assert launched(yard.folder / "gpu") > before, f"nobody launches in turn {turn}"
        honest.kill()
    return f"{count} scribbles into the daemon's memory"


def scribbles_to_client(yard: Yard, client: Path, count: int, seed: int) -> str:
    """A daemon that scribbles into what it shares with a client."""
    dice, done, path = random.Random(seed), 0, yard.folder / "liar"
    env = dict(os.environ) | {"LD_LIBRARY_PATH": str(yard.parts), "FAKE_GPU": str(yard.folder / "gpu")}
    env |= {"KESCO_FIKIT_SOCKET": str(path), "KESCO_FIKIT_DEADLINE_MS": "1", "ASAN_OPTIONS": "detect_leaks=0"}
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(LIMIT)
        while done < count:
            child = yard.start([str(client)], env)
            link, _ = listening.accept()
            memory = os.memfd_create("lies", os.MFD_ALLOW_SEALING)
            with link, sealed(memory) as words:
                link.recv(1000)
                socket.send_fds(link, [WELCOME.pack(MAGIC, VERSION, 0, 1)], [memory])
                begin = time.monotonic()
                while child.poll() is None and time.monotonic() - begin < LIMIT:
                    scribble(words, dice, 10)
                    words[BEAT : BEAT + 8] = struct.pack("Q", time.monotonic_ns())
                    done += 10
            os.close(memory)
            _, report = child.communicate(timeout=LIMIT)
            assert child.returncode == 0, report
            yard.children.remove(child)
    return f"{done} scribbles into a client's memory"


def sealed(memory: int) -> mmap.mmap:
    """The memory of a daemon, which cannot be cut off, with its time in it."""
    os.ftruncate(memory, 2 * SHARED)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    words = mmap.mmap(memory, 2 * SHARED)
    words[BEAT : BEAT + 8] = struct.pack("Q", time.monotonic_ns())
    return words


def launched(device: Path) -> int:
    """Launches on a device until now."""
    return int.from_bytes(device.read_bytes()[8:16], "little")


def stops(yard: Yard, count: int, seed: int) -> str:
    """While the daemon or a client is stopped each of the others goes on; for that each has a device of its own."""
    dice, longest = random.Random(seed), 0.0
    with borne(yard) as daemon:
        tasks = {}
        for number, priority in enumerate((9, 5, 5, 1)):
            device = yard.folder / f"gpu{number}"
            tasks[device] = yard.task(priority, "1000000", "4", "50", "200", deadline=100, FAKE_GPU=str(device))
        yard.until(lambda t: set(t) == {9, 5, 1} and all(one["launched"] for one in t.values()), "all are there")
        for _ in range(count):
            who = dice.choice((None, *tasks)) if dice.randrange(2) else None
            stopped = tasks[who].pid if who else daemon
            os.kill(stopped, signal.SIGSTOP)
            begin, before = time.monotonic(), {device: launched(device) for device in tasks if device != who}
            while any(launched(device) < number + 4 for device, number in before.items()):
                assert time.monotonic() - begin < LIMIT, "somebody does not go on"
                time.sleep(0.001)
            longest = max(longest, time.monotonic() - begin)
            time.sleep(dice.random() * 0.1)
            os.kill(stopped, signal.SIGCONT)
            time.sleep(dice.random() * 0.05)
        for one in tasks.values():
            assert one.poll() is None
            one.kill()
    return f"{count} stops; the next four launches of everybody else took {longest:.2f} s at most"


def kills(count: int, seed: int) -> str:
    """As `test_thorough.py` has it."""
    env = dict(os.environ) | {"KESCO_THOROUGH": "1", "KESCO_KILLS": str(count), "KESCO_SEED": str(seed)}
    command = (sys.executable, "-m", "pytest", "-q", "-s", "tests/fikit/test_thorough.py", "-k", "random_kills")
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return f"kills: {done.stdout.splitlines()[0]}"


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser()
    for name, count in (("frames", 100_000), ("scribbles", 54_390), ("stops", 295), ("kills", 1000), ("seed", 7)):
        parser.add_argument(f"--{name}", type=int, default=count)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kesco-attack-") as name:
        folder = Path(name)
        parts, daemon, client, greeter = made(folder), daemon_made(folder), client_made(folder), greeter_made(folder)
        attacks = (
            lambda yard: frames(yard, greeter, given.frames, given.seed),
            lambda yard: scribbles_to_daemon(yard, given.scribbles, given.seed),
            lambda yard: scribbles_to_client(yard, client, given.scribbles, given.seed),
            lambda yard: stops(yard, given.stops, given.seed),
        )
        for attack in attacks:
            with tempfile.TemporaryDirectory(prefix="kesco-attack-") as own:
                yard, begin = Yard(Path(own), parts, programs.client(), daemon), time.monotonic()
                try:
                    print(f"{attack(yard)} ({time.monotonic() - begin:.0f} s)", flush=True)
                finally:
                    yard.close()
        for turn in range(2):
            print(kills(given.kills, given.seed + turn), flush=True)


if __name__ == "__main__":
    main()

"""NVIDIA MPS while programs run: its control daemon in a folder of its own, and how many work queues each client gets.

In: a folder and how many clients there will be. Out: the environment for these clients. It is apart from `sharing`
because only two of the schemes need it, and because MPS has limits that processes by themselves do not have.

1. The control daemon is started with pipes and logs in the folder, and told to quit in the end. The GPU's settings stay
as they are. 2. Clients own the work queues (`CUDA_DEVICE_MAX_CONNECTIONS`) that they ask for, out of one pool for all
of them (NVIDIA's guide, "Environment Variables"); without MPS each process has a pool. On an H200 three clients could
have 32 each, and the context of a fourth one failed as "out of memory". So the clients share `POOL` evenly. 3. Where a
client ends before the start all the same, `CONNECTIONS` says with how few to try again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from kesco.errors import ToolchainError
from kesco.toolchain.process import run

POOL = 96
"""Work queues of all clients together: as many as were seen to work."""
MOST = 32
"""Work queues of one process: CUDA has no more."""
CONNECTIONS = (MOST, 8, 2)
"""At most so many for a client, and in the next tries."""
QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"
_CONTROL = "nvidia-cuda-mps-control"


class Unserved(Exception):
    """MPS did not start, or serves nobody; its text says why."""


def queues(clients: int, most: int = MOST) -> int:
    """How many work queues each of so many clients asks for."""
    return max(1, min(most, POOL // max(clients, 1)))


@contextmanager
def service(folder: Path, pool: ThreadPoolExecutor, timeout: float) -> Iterator[dict[str, str]]:
    """NVIDIA MPS while this lasts: the environment for its clients. Its pipes and logs are in `folder`."""
    places = {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(folder / "log")}
    for place in places.values():
        Path(place).mkdir()
    environment = os.environ | places
    daemon = pool.submit(run, [_CONTROL, "-f"], env=environment, timeout=2 * timeout)
    try:
        until = time.monotonic() + 10
        while not (folder / "pipe" / "control").exists():
            if daemon.done():
                done = daemon.result()
                said = (done.stderr or done.text).strip().splitlines() or ["it said nothing"]
                raise Unserved(f"{_CONTROL} ended with {done.returncode}: {said[-1]}")
            if time.monotonic() > until:
                raise Unserved(f"{_CONTROL} made no control pipe in ten seconds")
            time.sleep(0.01)
        yield places
    finally:
        if not daemon.done():
            with suppress(ToolchainError):
                run([_CONTROL], input=b"quit\n", env=environment, timeout=30)


def is_served(places: Mapping[str, str]) -> None:
    """Ask the daemon for its servers; raises `Unserved` where no client of it is there."""
    said = run([_CONTROL], input=b"get_server_list\n", env=os.environ | places, timeout=30).text.split()
    if not any(one.isdigit() for one in said):
        raise Unserved("MPS serves nobody: the programs run beside it")


def said_by(folder: Path) -> str:
    """The last line of the server's log that tells of an error, or nothing."""
    try:
        lines = (folder / "log" / "server.log").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    wrong = [line for line in lines if "rror" in line or "ail" in line or "exceed" in line]
    return wrong[-1].strip() if wrong else ""

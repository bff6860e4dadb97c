"""One task of the GPU experiment, told by its standard input what to do: `worker.py TASK REST_MS [--cpu|--fake K US]`.

    run SECONDS [WARM]           requests one after another, REST_MS of sleep behind each; says times and a checksum
    slices SECONDS WARM COUNT    so many runs, one right behind another; says the times of each, and when it began
    alternate WHAT SECONDS WARM  requests under FIKIT's library and past it in turn; says microseconds of each
    work                         requests until there is another line, `rest`, which has no answer; says times
    sum                          says a checksum
    quit

TASK is a name of `nets.TASKS`. ``--fake KERNELS MICROSECONDS`` is for the tests' driver, which only tells the time.
Each answer is a line of JSON. A request ends when the device has done it. Those of the first WARM seconds do not count.
The checksum is of one more request's result.
"""
# ruff: noqa: T201, D102, D103

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import select
import sys
import time
from collections.abc import Callable


def with_torch(name: str, device: str) -> tuple[Callable[[], None], Callable[[], str]]:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else its sums may differ
    import torch
    from nets import TASKS

    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # else each new tensor is a launch more
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.set_num_threads(1)
    request = TASKS[name](device)

    def once() -> None:
        request()
        if device == "cuda":
            torch.cuda.synchronize()

    def checksum() -> str:
        return hashlib.sha256(request().float().cpu().numpy().tobytes()).hexdigest()[:12]

    return once, checksum


def with_fake(kernels: int, microseconds: int) -> tuple[Callable[[], None], Callable[[], str]]:
    driver = ctypes.CDLL("libcuda.so.1")
    launch, names = driver.cuLaunchKernel, [f"kernel_{n}".encode() for n in range(kernels)]

    def once() -> None:
        for name in names:
            launch(name, microseconds, 1, 1, 32, 1, 1, 0, None, None, None)
        driver.cuStreamSynchronize(None)

    return once, lambda: "fake"


class Told:
    """Lines of standard input, and whether there is one. Python's own reader would hide what it has read ahead."""

    def __init__(self) -> None:
        self.rest = b""

    def waits(self) -> bool:
        return b"\n" in self.rest or bool(select.select([0], [], [], 0)[0])

    def words(self) -> list[str]:
        while b"\n" not in self.rest:
            if not (part := os.read(0, 65536)):
                return ["quit"]
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode().split()


def run(once: Callable[[], None], seconds: float, rest: float, told: Told | None = None) -> dict[str, float]:
    times = []
    begin = now = time.perf_counter()
    while now - begin < seconds:
        once()
        times.append(time.perf_counter() - now)
        if rest:
            time.sleep(rest)
        now = time.perf_counter()
        if told and told.waits():
            break
    whole, n = now - begin, len(times)
    times.sort()
    found = {"requests": n, "per_s": n / whole, "mean_us": 1e6 * sum(times) / n}
    return found | {f"p{p}_us": 1e6 * times[min(n - 1, n * p // 100)] for p in (50, 90, 99)}


def slices(once: Callable[[], None], rest: float, seconds: float, warm: float, count: int) -> list[dict[str, float]]:
    begin = time.perf_counter()
    if warm:
        run(once, warm, rest)
    found = []
    for _ in range(count):
        after = time.perf_counter() - begin
        found.append({"after_s": after} | run(once, seconds, rest))
    return found


def alternate(once: Callable[[], None], seconds: float, warm: float) -> dict[str, list[float]]:
    """Requests with the library and past it: with, past, past, with; of short ones some, for a millisecond."""
    library = ctypes.CDLL(None)
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < max(warm, 0.01):
        once()
        count += 1
    each = math.ceil(0.001 * count / (time.perf_counter() - begin))
    found: dict[str, list[float]] = {"with": [], "aside": []}
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for way in ("with", "aside", "aside", "with"):
            library.kesco_fikit_pass_by(way == "aside")
            since = time.perf_counter()
            for _ in range(each):
                once()
            found[way].append(1e6 * (time.perf_counter() - since))
    library.kesco_fikit_pass_by(0)
    return found


def main() -> None:
    rest = float(sys.argv[2]) / 1e3
    if "--fake" in sys.argv:
        once, checksum = with_fake(int(sys.argv[4]), int(sys.argv[5]))
    else:
        once, checksum = with_torch(sys.argv[1], "cpu" if "--cpu" in sys.argv else "cuda")
    for _ in range(5):
        once()
    print(json.dumps({"ready": checksum()}), flush=True)
    told = Told()
    while (words := told.words())[:1] != ["quit"]:
        found: dict[str, object]
        if words == ["rest"]:
            continue
        if words[:1] == ["slices"]:
            found = {"slices": slices(once, rest, float(words[1]), float(words[2]), int(words[3]))}
        elif words[:1] == ["alternate"]:
            found = dict(alternate(once, float(words[2]), float(words[3])))
        elif words == ["work"]:
            found = dict(run(once, 600, rest, told))
        elif words == ["sum"]:
            found = {"result": checksum()}
        elif words[:1] == ["run"]:
            if len(words) > 2:
                run(once, float(words[2]), rest)
            found = dict(run(once, float(words[1]), rest)) | {"result": checksum()}
        else:
            found = {"unknown": words}
        print(json.dumps(found), flush=True)


main()

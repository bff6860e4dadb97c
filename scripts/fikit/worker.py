"""One task of the GPU experiment, told by its standard input what to do: `worker.py TASK REST_MS [--cpu|--fake K US]`.

    run SECONDS [WARM]  requests one after another, REST_MS of sleep behind each; answers with times and a checksum
    quit

TASK is a name of `nets.TASKS`. ``--fake KERNELS MICROSECONDS`` is for the tests' driver, which only tells the time.
Each answer is a line of JSON. A request ends when the device has done it. Those of the first WARM seconds do not count.
The checksum is of one more request's result.
"""
# ruff: noqa: T201, D103

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable


def with_torch(name: str, device: str) -> tuple[Callable[[], None], Callable[[], str]]:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else its sums may differ
    import torch
    from nets import TASKS

    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True, warn_only=True)
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


def run(once: Callable[[], None], seconds: float, rest: float) -> dict[str, float]:
    times = []
    begin = now = time.perf_counter()
    while now - begin < seconds:
        once()
        times.append(time.perf_counter() - now)
        if rest:
            time.sleep(rest)
        now = time.perf_counter()
    whole, n = now - begin, len(times)
    times.sort()
    found = {"requests": n, "per_s": n / whole, "mean_us": 1e6 * sum(times) / n}
    return found | {f"p{p}_us": 1e6 * times[min(n - 1, n * p // 100)] for p in (50, 90, 99)}


def main() -> None:
    rest = float(sys.argv[2]) / 1e3
    if "--fake" in sys.argv:
        once, checksum = with_fake(int(sys.argv[4]), int(sys.argv[5]))
    else:
        once, checksum = with_torch(sys.argv[1], "cpu" if "--cpu" in sys.argv else "cuda")
    for _ in range(5):
        once()
    print(json.dumps({"ready": checksum()}), flush=True)
    for line in sys.stdin:
        words = line.split()
        if not words or words[0] == "quit":
            return
        if len(words) > 2:
            run(once, float(words[2]), rest)
        found: dict[str, object] = dict(run(once, float(words[1]), rest))
        print(json.dumps(found | {"result": checksum()}), flush=True)


main()

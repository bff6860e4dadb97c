"""What FIKIT costs a task alone and beside an idle one, and that what it computes stays the same.

`launches`: nanoseconds of the host for each launch of a program in CUDA. `nets`: microseconds of a request in PyTorch:
one process without the library, one with it, both alive, their turns short and interleaved; the one with it is
attached, or not, as the daemon is there or not. `right`: PyTorch computes the same to the bit.
"""
# ruff: noqa: T201, D103

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time
from typing import Any

from bench import HERE, Bench, Failed

from kesco.fikit import serving


def ended(command: list[str], env: dict[str, str], limit: float) -> dict[str, Any]:
    """What a task of `task.cu` or `torch_task.py` printed last, by name."""
    child = subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit, check=False)
    words = (child.stdout.strip().splitlines() or [""])[-1].split()
    if child.returncode or len(words) < 13:
        raise Failed(f"exit {child.returncode}: {(child.stderr.strip().splitlines() or ['nothing said'])[-1][:200]}")
    return {words[i]: float(words[i + 1]) for i in range(0, 12, 2)} | {"result": words[12]}


def _task(bench: Bench, priority: int) -> dict[str, str]:
    return serving.environment(bench.client, {"SOCKET": str(bench.socket), "PRIORITY": str(priority)}, bench.base)


@contextlib.contextmanager
def _other(command: list[str], env: dict[str, str]) -> Any:
    child = subprocess.Popen(command, env=env, stdout=-3, stderr=-3, start_new_session=True)
    try:
        yield child
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def launches(bench: Bench, rounds: int) -> dict[str, Any]:
    programs = {}
    for name in ("task", "task_hooked"):
        programs[name] = str(bench.folder / name)
        source = str(HERE / f"{name}.cu")
        subprocess.run(("nvcc", "-O2", "-std=c++17", "-arch=native", source, "-o", programs[name]), check=True,
                       timeout=240)  # fmt: skip
    args = ["0.5", "200", "0", "0", "32", "1"]
    plain, hooked = [programs["task"], *args], [programs["task_hooked"], *args]
    loaded = bench.base | {"LD_PRELOAD": str(bench.client)}
    asked = _task(bench, 9)
    found: dict[str, list[float]] = {}

    def rounds_of(ways: list[tuple[str, list[str], dict[str, str]]]) -> None:
        for _ in range(rounds):
            for name, command, env in ways:
                found.setdefault(name, []).append(ended(command, env, 60)["launch_ns"])

    daemon = bench.serve("quantile")
    try:
        rounds_of([
            ("plain", plain, bench.base), ("hooks, no runtime", hooked, bench.base),
            ("library, not asked", plain, loaded),
            ("library, attached", plain, asked), ("hooks, attached", hooked, asked),
        ])  # fmt: skip
        other = [programs["task"], "60", "1", "1", "100000"]
        with _other(other, _task(bench, 1)):
            bench.attached(1)
            rounds_of([("plain beside", plain, bench.base), ("library beside", plain, asked),
                       ("hooks beside", hooked, asked)])  # fmt: skip
    finally:
        bench.stop(daemon)
    return _against(found, "ns a launch")


def _against(found: dict[str, list[float]], unit: str) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for name, times in found.items():
        base = statistics.median(found["plain beside" if "beside" in name and "plain beside" in found else "plain"])
        middle = statistics.median(times)
        rows[name] = {"median": middle, "least": min(times), "most": max(times), "percent": 100 * (middle / base - 1)}
        print(f"overhead  {name:24} {middle:9.1f} {unit}  {rows[name]['percent']:+6.2f} %  "
              f"({min(times):.1f} to {max(times):.1f})", flush=True)  # fmt: skip
    return rows


def nets(bench: Bench, name: str, rounds: int, seconds: float = 0.6) -> dict[str, Any]:
    """The median request of each turn; the least of all turns is what noise of the machine adds nothing to."""
    loaded = bench.base | {"LD_PRELOAD": str(bench.client)}
    ways = {"plain": bench.base, "not asked": loaded, "asked": _task(bench, 9)}
    with contextlib.ExitStack() as stack:
        workers = {}
        for way, env in ways.items():
            workers[way] = bench.worker(name, 0.0, env)
            stack.callback(workers[way].close)
        lower = bench.worker("small", 50.0, _task(bench, 1))
        stack.callback(lower.close)
        for one in (*workers.values(), lower):
            one.answer(150)
        found: dict[str, list[float]] = {}

        def turn(way: str, called: str) -> None:
            workers[way].ask(f"run {seconds}")
            found.setdefault(called, []).append(workers[way].answer(60)["p50_us"])

        for _ in range(rounds):
            turn("plain", "plain")
            turn("not asked", "library, not asked")
            turn("asked", "asked, no daemon")
            daemon = bench.serve("quantile")
            try:
                bench.attached(2)
                turn("asked", "attached, a lower one")  # it has attached, and does nothing
            finally:
                bench.stop(daemon)
        lower.close()
        for _ in range(rounds):
            turn("plain", "plain")
            daemon = bench.serve("quantile")
            try:
                bench.attached(1)
                turn("asked", "attached, alone")
            finally:
                bench.stop(daemon)
    return _against(found, f"us a request of {name}")


def right(bench: Bench) -> dict[str, Any]:
    """Digests of inference, of training and of CUDA graphs: plain, alone under the library, held by another."""
    found = {}
    for what in ("encoder", "train", "graph"):
        command = [sys.executable, str(HERE / "torch_task.py"), "1.5", what, "0"]
        busy = [sys.executable, str(HERE / "torch_task.py"), "300", "encoder", "2"]
        digests = {"plain": ended(command, bench.base, 90)["result"]}
        daemon = bench.serve("quantile")
        try:
            digests["attached"] = ended(command, _task(bench, 5), 90)["result"]
            with _other(busy, _task(bench, 9)):
                bench.attached(1, 60)
                digests["held"] = ended(command, _task(bench, 1), 120)["result"]
                time.sleep(0.1)
        finally:
            bench.stop(daemon)
        same = len(set(digests.values())) == 1
        print(f"right     {what}: {'the same to the bit' if same else f'DIFFERENT {digests}'}", flush=True)
        found[what] = digests | {"same": same}
    return found

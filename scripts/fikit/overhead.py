"""What FIKIT costs a task alone and beside an idle one, and that what it computes stays the same.

`launches`: nanoseconds of the host for each launch of a program in CUDA, with hooks and without. `nets`: microseconds
of some requests in PyTorch. Both by `turns`: with it and past it in one process, which is attached, alone or beside
another, or not, as a daemon is there or not; or which measures. `right`: PyTorch computes the same to the bit.
"""
# ruff: noqa: T201

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from bench import HERE, Bench, Failed, Worker
from turns import Plan, Way, attached, measured, told

from kesco.fikit import serving


def ended(command: list[str], env: dict[str, str], limit: float) -> dict[str, Any]:
    """What `torch_task.py` printed last, by name."""
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


def _measuring(bench: Bench) -> dict[str, str]:
    return serving.environment(bench.client, {"MEASURE": tempfile.mkdtemp(dir=bench.folder) + "/s"}, bench.base)


def launches(bench: Bench, plan: Plan) -> dict[str, Any]:
    """Programs that only launch; without a GPU, `launch_cost.cpp` and a driver that only tells the time."""
    made = {name: str(bench.folder / name) for name in ("task", "task_hooked")}
    compiling = []
    for name, program in made.items():
        command = ["nvcc", "-O2", "-std=c++17", "-arch=native", str(HERE / f"{name}.cu"), "-o", program]
        if bench.fake:
            hooks = ("-DHOOKS",) if "hooked" in name else ()
            command = ["g++", "-O2", "-std=c++17", *hooks, str(HERE / "launch_cost.cpp"), "-o", program, "-ldl"]
        compiling.append(subprocess.Popen(command))
    if [one for one in compiling if one.wait(240)]:
        raise Failed("a program cannot be compiled")
    args = ("64", "200") if bench.fake else ("200", "0", "32", "1")

    def start(name: str, env: Callable[[], Mapping[str, str]]) -> Callable[[], Worker]:
        return lambda: Worker([made[name], *args], env())

    kinds = {
        "plain": start("task", lambda: bench.base), "hooks": start("task_hooked", lambda: bench.base),
        "asked": start("task", lambda: _task(bench, 9)), "hooks asked": start("task_hooked", lambda: _task(bench, 9)),
        "measured": start("task", lambda: _measuring(bench)),
    }  # fmt: skip
    ways = (Way("the same twice", "plain", "hooks"), Way("hooks, no runtime", "hooks", "hooks"),
            *attached("asked", "library, "), *attached("hooks asked", "hooks, "),
            Way("library, measuring", "measured"))  # fmt: skip
    rows = measured(bench, ways, kinds, plan)
    print(told(rows, "ns"), flush=True)
    return rows


def nets(bench: Bench, name: str, plan: Plan) -> dict[str, Any]:
    """Requests of a net, some at a time where they are short."""
    kinds = {
        "asked": lambda: bench.worker(name, 0.0, bench.task_env(9, name, 0.0, bench.base)),
        "measured": lambda: bench.worker(name, 0.0, _measuring(bench)),
    }
    rows = measured(bench, (*attached("asked"), Way("measuring", "measured")), kinds, plan)
    print(told(rows, f"us, {name}"), flush=True)
    return rows


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

"""Measure FIKIT on a GPU: what hooks and the shim cost, that results stay right, and a pair of tasks under each policy.

    python3 scripts/fikit_gpu.py [--parts overhead,right,pair,torch] [--seconds 4] [--out FOLDER]

Needs python3 (nothing installed), nvcc and g++; PyTorch for `right` and `torch`. Everything has a time limit; a part
that fails says so and the others go on. The client and the daemon are built here, or taken from ``build/fikit``.
"""
# ruff: noqa: T201, D102, D103

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp(prefix="kesco-cache-"))

from kesco.fikit import programs, samples, serving  # noqa: E402
from kesco.ir import kfikit  # noqa: E402

POLICIES = {"strict": 2, "reactive": 3, "mean": 4, "quantile": 5}


class Bench:
    """Where things are, and how programs are run."""

    def __init__(self, seconds: float, out: Path) -> None:
        self.seconds, self.out = seconds, out
        self.folder = Path(tempfile.mkdtemp(prefix="kf-"))
        self.socket = self.folder / "d.sock"
        self.log: list[dict[str, Any]] = []
        self.client, self.daemon = self._built()

    def _built(self) -> tuple[Path, Path]:
        try:
            return programs.client(), programs.daemon()
        except Exception as problem:
            print(f"not built here ({problem}); taking build/fikit", flush=True)
            return ROOT / "build/fikit/libkesco_fikit.so", ROOT / "build/fikit/kesco-fikitd"

    def start(self, command: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def end(self, child: subprocess.Popen[str], limit: float) -> dict[str, Any]:
        """What a task printed, by name; its error where it failed or did not end."""
        try:
            out, err = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return {"error": f"did not end within {limit:.0f} s"}
        words = (out.strip().splitlines() or [""])[-1].split()
        if child.returncode or len(words) < 13:
            return {"error": f"exit {child.returncode}: {(err.strip().splitlines() or ['nothing said'])[-1][:160]}"}
        return {words[i]: float(words[i + 1]) for i in range(0, 12, 2)} | {"result": words[12]}

    def run(self, command: list[str], env: dict[str, str]) -> dict[str, Any]:
        return self.end(self.start(command, env), self.seconds + 90)

    def plain(self) -> dict[str, str]:
        return dict(os.environ)

    def task(self, priority: int, command: list[str], **more: str) -> dict[str, str]:
        settings = {"SOCKET": str(self.socket), "PRIORITY": str(priority), "TASK": serving.task_key(command)}
        return serving.environment(self.client, settings | more)

    def profile(self, command: list[str]) -> kfikit.TaskProfile | None:
        with tempfile.TemporaryDirectory() as folder:
            env = serving.environment(self.client, {"MEASURE": f"{folder}/s"})
            done = self.run(command, env)
            if "error" in done:
                print(f"  not measured: {done['error']}", flush=True)
                return None
            try:
                found = samples.task_profile(serving.task_key(command), command[0], Path(folder).iterdir())
            except Exception as problem:
                print(f"  no samples: {problem}", flush=True)
                return None
        for identity, one in found.kernels[:12]:
            if one.time is not None:
                gap = f"{one.gap.quantile(0.1) / 1e3:9.1f} {one.gap.quantile(0.9) / 1e3:9.1f}" if one.gap else "-"
                times = f"{one.time.count:7d} {one.time.quantile(0.5) / 1e3:9.1f} {one.time.quantile(0.95) / 1e3:9.1f}"
                print(f"  {identity:016x} {times} us, gap p10 p90 {gap} us  {one.name[:60]}", flush=True)
        return found

    def serve(self, kind: str, profiles: list[kfikit.TaskProfile | None], *more: str) -> subprocess.Popen[str]:
        known = tuple(sorted((one for one in profiles if one), key=lambda one: one.key))
        costs = self.folder / "costs"
        costs.write_text(kfikit.to_text(kfikit.Store("", "", known)))
        words = [str(self.daemon), "--policy", str(POLICIES[kind]), "--socket", str(self.socket), "--costs", str(costs)]
        child = self.start([*words, *more], self.plain())
        for _ in range(100):
            if self.socket.exists() or child.poll() is not None:
                break
            time.sleep(0.05)
        return child

    def stop(self, daemon: subprocess.Popen[str]) -> None:
        daemon.terminate()
        try:
            daemon.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            daemon.kill()
            print("  the daemon did not end", flush=True)

    def say(self, part: str, name: str, values: dict[str, Any]) -> None:
        self.log.append({"part": part, "name": name, **values})
        if "error" in values:
            print(f"{part:9} {name:44} {values['error']}", flush=True)
            return
        numbers = " ".join(f"{k} {v:.1f}" for k, v in values.items() if isinstance(v, float))
        print(f"{part:9} {name:44} {numbers} {values.get('result', '')}", flush=True)
        (self.out / "fikit_gpu.json").write_text(json.dumps(self.log, indent=1))


def nvcc(bench: Bench, source: Path, name: str) -> str:
    target = bench.folder / name
    subprocess.run(
        ["nvcc", "-O2", "-std=c++17", "-arch=native", str(source), "-o", str(target)], check=True, timeout=240
    )
    return str(target)


def overhead(bench: Bench) -> None:
    """Nanoseconds of the host for each launch, the ways in turn, five rounds; the median and the spread."""
    plain, hooked = (nvcc(bench, ROOT / f"scripts/fikit/{n}.cu", n) for n in ("task", "task_hooked"))
    args = ["0.7", "200", "0", "0", "32", "1"]
    daemon = bench.serve("quantile", [])
    ways: list[tuple[str, list[str], dict[str, str]]] = [
        ("plain", [plain, *args], bench.plain()),
        ("hooks, no runtime", [hooked, *args], bench.plain()),
        ("shim loaded, not asked for", [plain, *args], bench.plain() | {"LD_PRELOAD": str(bench.client)}),
        ("shim, attached, alone", [plain, *args], bench.task(9, [plain, *args])),
        ("hooks, attached, alone", [hooked, *args], bench.task(9, [hooked, *args])),
    ]
    found: dict[str, list[float]] = {}

    def rounds(part: list[tuple[str, list[str], dict[str, str]]]) -> None:
        for _ in range(5):
            for name, command, env in part:
                done = bench.run(command, env)
                if "error" in done or done["result"] != "right":
                    bench.say("overhead", name, {"error": done.get("error", "a wrong result")})
                else:
                    found.setdefault(name, []).append(done["launch_ns"])

    try:
        rounds(ways)
        other = [plain, "60", "1", "1", "100000"]
        beside = bench.start(other, bench.task(1, other))  # one launch each 0.1 s: makes the first one tell what ended
        time.sleep(2)
        try:
            rounds([("plain beside another", ways[0][1], ways[0][2]), ("shim, attached, beside another", *ways[3][1:]),
                    ("hooks, attached, beside another", *ways[4][1:])])  # fmt: skip
        finally:
            os.killpg(beside.pid, signal.SIGKILL)
            beside.communicate()
    finally:
        bench.stop(daemon)
    for name, times in found.items():
        base = statistics.median(found["plain beside another" if "beside" in name else "plain"])
        middle = statistics.median(times)
        values = {
            "ns_per_launch": middle,
            "least": min(times),
            "most": max(times),
            "percent_more": 100 * (middle / base - 1),
        }
        bench.say("overhead", name, values)


def right(bench: Bench) -> None:
    """PyTorch computes the same under the shim: alone, held, and with CUDA graphs."""
    daemon = bench.serve("quantile", [])
    busy = [sys.executable, str(ROOT / "scripts/fikit/torch_task.py"), "400", "encoder", "1"]
    try:
        for what in ("encoder", "train", "graph"):
            command = [sys.executable, str(ROOT / "scripts/fikit/torch_task.py"), "1", what, "0"]
            reference = bench.run(command, bench.plain())
            bench.say("right", f"{what}, plain", reference)
            alone = bench.run(command, bench.task(5, command))
            bench.say("right", f"{what}, shim, alone", alone)
            beside = bench.start(busy, bench.task(9, busy))
            time.sleep(12)
            try:
                held = bench.run(command, bench.task(1, command))
                bench.say("right", f"{what}, shim, held by another", held)
                print("   ", told(bench), flush=True)
            finally:
                os.killpg(beside.pid, signal.SIGKILL)
                beside.communicate()
            same = {one.get("result", one.get("error")) for one in (reference, alone, held)}
            print(f"{'right':9} {what}: {'THE SAME' if len(same) == 1 else f'DIFFERENT {same}'}", flush=True)
    finally:
        bench.stop(daemon)


def told(bench: Bench) -> str:
    try:
        found = serving.status(bench.socket)
    except Exception as problem:
        return f"no status: {problem}"
    names = (
        "priority",
        "launched",
        "done",
        "holds",
        "abandoned",
        "overruns",
        "gaps",
        "unknown",
        "drifted",
        "lost_records",
    )
    return "; ".join(" ".join(f"{n} {one[n]}" for n in names) + f" grants {one['grants']}" for one in found["tasks"])


def pair(bench: Bench, part: str, high: list[str], low: list[str]) -> None:
    """High and low alone, together without anything, and under each policy."""
    print(f"{part}: what is measured of the high task, then of the low one", flush=True)
    profiles = [bench.profile(one) for one in (high, low)]
    bench.say(part, "high, alone", bench.run(high, bench.plain()))
    bench.say(part, "low, alone", bench.run(low, bench.plain()))

    def both(name: str, envs: tuple[dict[str, str], dict[str, str]]) -> None:
        started = [bench.start(high, envs[0]), bench.start(low, envs[1])]
        time.sleep(bench.seconds * 0.7)
        state = told(bench) if "KESCO_FIKIT_SOCKET" in envs[0] else ""
        for child, who in zip(started, ("high", "low"), strict=True):
            bench.say(part, f"{who}, {name}", bench.end(child, bench.seconds + 90))
        if state:
            print("   ", state, flush=True)

    both("together, default", (bench.plain(), bench.plain()))
    for kind in POLICIES:
        daemon = bench.serve(kind, profiles)
        try:
            both(f"together, {kind}", (bench.task(9, high), bench.task(1, low)))
        finally:
            bench.stop(daemon)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", default="overhead,pair,right,torch")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    given = parser.parse_args()
    query = ["nvidia-smi", "--query-gpu=name,driver_version,compute_mode", "--format=csv,noheader"]
    print(subprocess.run(query, capture_output=True, text=True, timeout=30).stdout.strip(), flush=True)
    bench = Bench(given.seconds, Path(given.out))
    seconds = str(given.seconds)
    for part in given.parts.split(","):
        begin = time.monotonic()
        try:
            if part == "overhead":
                overhead(bench)
            elif part == "right":
                right(bench)
            elif part == "pair":
                task = nvcc(bench, ROOT / "scripts/fikit/task.cu", "pair_task")
                pair(bench, part, [task, seconds, "10", "100", "3000"], [task, seconds, "20", "300", "0"])
            elif part == "torch":
                worker = [sys.executable, str(ROOT / "scripts/fikit/torch_task.py")]
                later = str(given.seconds + 6)  # loading takes seconds: both shall run for long enough together
                pair(bench, part, [*worker, later, "encoder", "5"], [*worker, later, "train", "0"])
        except Exception as problem:
            print(f"{part:9} FAILED: {type(problem).__name__}: {problem}", flush=True)
        print(f"{part:9} took {time.monotonic() - begin:.0f} s", flush=True)


main()
